/* SPDX-License-Identifier: MIT */
/*
 * Owns the translation of measured kernel lists into workgroups x time. A list says how long a kernel took on the
 * device it was measured on; there its workgroups ran in `rounds` of as many as that device holds, so one workgroup
 * took duration / rounds. That time is kept on every other device; what changes is how many run at once.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "lib/paths.h"
#include "sim/mix_state.h"
#include "sim/reef.h"

#define LIST_WAVE_SIZE     64u
#define LIST_VGPRS_DEFAULT 64u /* where a list does not say: a common size for inference kernels */

static uint32_t list_registers(const struct gp_trace_kernel *kernel, const struct gp_desc *desc, uint32_t waves)
{
	uint64_t vgprs;

	if (kernel->vgprs)
		return kernel->vgprs > 512 ? 512 : kernel->vgprs;
	if (!kernel->per_cu_max)
		return LIST_VGPRS_DEFAULT;
	/* So many fitted one compute unit: what each may have used of the register file, at most. */
	vgprs = (uint64_t)gp_desc_get(desc, GP_DESC_VGPR_SIZE) /
		((uint64_t)kernel->per_cu_max * waves * LIST_WAVE_SIZE * 4);
	vgprs = vgprs / 8 * 8;
	if (vgprs > 256)
		vgprs = 256;
	return vgprs < 8 ? 8 : (uint32_t)vgprs;
}

static struct gp_gpu_kernel list_kernel(const struct gp_trace_kernel *kernel, const struct mix_list *list,
					const struct gp_desc *desc)
{
	const struct gp_desc *measured_on = list->measured_on ? list->measured_on : desc;
	struct gp_gpu_kernel made = { .workgroups = kernel->workgroups ? kernel->workgroups : 1,
				      .workgroup_ns = 1,
				      .lds_size = kernel->lds_size };
	uint64_t places = list->places, rounds;

	made.waves = kernel->workgroup_size ? (kernel->workgroup_size + LIST_WAVE_SIZE - 1) / LIST_WAVE_SIZE : 4;
	if (made.waves > 16)
		made.waves = 16;
	made.vgprs = list_registers(kernel, measured_on, made.waves);
	/* LDS beyond what the simulated device has would never fit; it then takes all there is. */
	if (made.lds_size > (uint64_t)gp_desc_get(desc, GP_DESC_LDS_SIZE))
		made.lds_size = (uint32_t)gp_desc_get(desc, GP_DESC_LDS_SIZE);
	if (!places && kernel->per_cu_max)
		places = (uint64_t)kernel->per_cu_max * (uint64_t)gp_desc_get(measured_on, GP_DESC_CU_COUNT);
	if (!places)
		places = gp_gpu_capacity(measured_on, &made);
	if (!places)
		places = 1;
	rounds = (made.workgroups + places - 1) / places;
	made.workgroup_ns = kernel->duration_ns / rounds ? kernel->duration_ns / rounds : 1;
	return made;
}

int gp_mix_list_append(struct gp_workload *workload, uint32_t sequence, const struct mix_list *list,
		       const struct gp_desc *desc, struct gp_error *error)
{
	struct gp_work_step *step;
	uint32_t i;

	for (i = 0; i < list->kernels->count; i++) {
		step = gp_workload_add_step(workload, sequence);
		if (!step)
			return gp_error_set(error, -ENOSPC, "more than %u steps in one sequence", GP_WORK_STEP_MAX);
		step->deps[0] = workload->sequences[sequence].step_count - 1;
		step->kernel = list_kernel(&list->kernels->kernels[i], list, desc);
	}
	return 0;
}

/* Beside the mix, where it has a place of its own; else in the data folder. */
int gp_mix_find_file(const struct mix_parser *parser, const char *name, char *ret_path, size_t path_size,
		     struct gp_error *error)
{
	char relative[MIX_VALUE_SIZE + 8], path[4096];

	if (parser->options->no_files)
		return gp_error_set(error, -EPERM, "files are not read here");
	if (parser->folder[0] && name[0] != '/' &&
	    (size_t)snprintf(path, sizeof(path), "%s/%s", parser->folder, name) < path_size && !access(path, R_OK)) {
		strcpy(ret_path, path);
		return 0;
	}
	if (name[0] == '/' && strlen(name) < path_size && parser->folder[0] && !access(name, R_OK)) {
		strcpy(ret_path, name);
		return 0;
	}
	snprintf(relative, sizeof(relative), "data/%s", name);
	if (gp_paths_share(relative, ret_path, path_size))
		return gp_error_set(error, -ENOENT,
				    "there is no file \"%.200s\", neither beside the mix nor in the data folder", name);
	return 0;
}

static int list_measured_on(const char *device, struct gp_desc *desc, struct mix_list *list, struct gp_error *error)
{
	char relative[MIX_NAME_SIZE + 16], path[4096];
	int ret;

	if (!device[0])
		return 0;
	snprintf(relative, sizeof(relative), "devices/%s.ini", device);
	if (gp_paths_share(relative, path, sizeof(path)))
		return gp_error_set(error, -ENOENT, "there is no device \"%s\"", device);
	ret = gp_desc_load(path, desc, error);
	if (!ret)
		list->measured_on = desc;
	return ret;
}

static int list_append_repeated(struct mix_parser *parser, uint32_t sequence, const struct gp_trace_kernels *kernels,
				const char *device, struct gp_error *error)
{
	struct mix_list list = { .kernels = kernels, .places = parser->list_places };
	struct gp_desc measured_on;
	uint32_t i;
	int ret;

	ret = list_measured_on(device, &measured_on, &list, error);
	for (i = 0; i < parser->list_repeat && !ret; i++)
		ret = gp_mix_list_append(parser->workload, sequence, &list, parser->options->desc, error);
	return ret;
}

int gp_mix_list_load(struct mix_parser *parser, uint32_t sequence, const char *file, struct gp_error *error)
{
	struct gp_trace_kernels kernels;
	char path[4096];
	int ret;

	ret = gp_mix_find_file(parser, file, path, sizeof(path), error);
	if (!ret)
		ret = gp_trace_kernels_load(path, &kernels, error);
	if (ret)
		return ret;
	ret = list_append_repeated(parser, sequence, &kernels, parser->list_device, error);
	gp_trace_kernels_fini(&kernels);
	return ret;
}

/* One launch after the other: each takes its time and a packet's. Said once a list; those beyond the table are not. */
static int list_note(struct gp_workload *workload, const char *model, const char *device, const struct gp_reef *reef,
		     struct gp_error *error)
{
	struct gp_work_list *note = &workload->lists[workload->list_count];
	struct mix_list list = { 0 };
	struct gp_desc desc;
	uint64_t launch_ns, sum_ns = 0;
	uint32_t i;
	int ret = list_measured_on(device, &desc, &list, error);

	if (ret)
		return ret;
	for (i = 0; i < workload->list_count; i++)
		if (!strcmp(workload->lists[i].name, model) && !strcmp(workload->lists[i].device, device))
			return 0;
	if (i == GP_WORK_LIST_MAX)
		return 0;
	launch_ns = (uint64_t)gp_desc_get(&desc, GP_DESC_PACKET_NS);
	for (i = 0; i < reef->kernels.count; i++) {
		struct gp_gpu_kernel kernel = list_kernel(&reef->kernels.kernels[i], &list, &desc);
		uint64_t capacity = gp_gpu_capacity(&desc, &kernel);

		capacity = capacity ? capacity : 1;
		sum_ns += (kernel.workgroups + capacity - 1) / capacity * kernel.workgroup_ns + launch_ns;
	}
	snprintf(note->name, sizeof(note->name), "%s", model);
	snprintf(note->device, sizeof(note->device), "%s", device);
	note->model_ns = sum_ns;
	note->measured_ns = reef->model_latency_ns;
	workload->list_count++;
	return 0;
}

/* REEF's lists come in two files, by the model's name. */
int gp_mix_model_load(struct mix_parser *parser, uint32_t sequence, const char *model, struct gp_error *error)
{
	const char *device = parser->list_device[0] ? parser->list_device : "mi50";
	char name[MIX_NAME_SIZE + 32], path[4096], profile[4096];
	struct gp_reef reef;
	int ret;

	snprintf(name, sizeof(name), "reef-mi50/%s.json", model);
	ret = gp_mix_find_file(parser, name, path, sizeof(path), error);
	if (ret)
		return ret;
	snprintf(name, sizeof(name), "reef-mi50/%s.profile.json", model);
	ret = gp_mix_find_file(parser, name, profile, sizeof(profile), error);
	if (!ret)
		ret = gp_reef_load(path, profile, &reef, error);
	if (ret)
		return ret;
	ret = list_append_repeated(parser, sequence, &reef.kernels, device, error);
	if (!ret)
		ret = list_note(parser->workload, model, device, &reef, error);
	gp_reef_fini(&reef);
	return ret;
}

uint64_t gp_mix_request_ns(const struct gp_workload *workload, uint32_t sequence, const struct gp_desc *desc)
{
	const struct gp_work_sequence *seq = &workload->sequences[sequence];
	const struct gp_work_step *step;
	unsigned __int128 total_ns = 0;
	uint32_t i, capacity;

	for (i = 0; i < seq->step_count; i++) {
		step = &seq->steps[i];
		capacity = step->type == GP_STEP_COPY ? 0 : gp_gpu_capacity(desc, &step->kernel);
		if (capacity)
			total_ns += (unsigned __int128)((step->kernel.workgroups + (uint64_t)capacity - 1) / capacity) *
				    step->kernel.workgroup_ns * step->repeat;
	}
	return total_ns > UINT64_MAX ? UINT64_MAX : (uint64_t)total_ns;
}
