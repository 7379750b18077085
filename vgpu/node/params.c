/* SPDX-License-Identifier: MIT */
/* Module parameters: names, defaults and limits as in Linux 6.12 (amdgpu_drv.c), their files, and their parsing. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "vgpu/node/node.h"
#include "vgpu/node/params.h"

#define PARAMS_PATH 512u

static const struct {
	const char *name;
	int64_t value, min, max;
	mode_t mode;
} params_table[GP_PARAM_COUNT] = {
	[GP_PARAM_SCHED_POLICY] = { "sched_policy", 0, 0, 2, 0444 },
	[GP_PARAM_HWS_MAX_CONC_PROC] = { "hws_max_conc_proc", -1, -1, 16, 0444 },
	[GP_PARAM_CWSR_ENABLE] = { "cwsr_enable", 1, 0, 1, 0444 },
	[GP_PARAM_MAX_QUEUES] = { "max_num_of_queues_per_device", 4096, 1, 4096, 0444 },
	[GP_PARAM_QUEUE_PREEMPTION_TIMEOUT_MS] = { "queue_preemption_timeout_ms", 9000, 1, INT32_MAX, 0644 },
	[GP_PARAM_NUM_KCQ] = { "num_kcq", -1, -1, 8, 0444 },
	[GP_PARAM_HALT_IF_HWS_HANG] = { "halt_if_hws_hang", 0, 0, 0, 0644 },
	/* No parameter of the driver's, and no file: what nobody has published about the packet processor. */
	[GP_PARAM_RPTR_AT_FETCH] = { "vgpu_rptr_at_fetch", 0, 0, 1, 0 },
	[GP_PARAM_EXECUTE] = { "vgpu_execute", 1, 0, 2, 0 },
	[GP_PARAM_KFD_SCHED] = { "vgpu_kfd_sched", 0, 0, GP_PARAM_KFD_SCHED_BUSY, 0 },
};

void gp_params_init(struct gp_params *params)
{
	for (uint32_t i = 0; i < GP_PARAM_COUNT; i++)
		params->values[i] = params_table[i].value;
}

static int params_one(struct gp_params *params, const char *text, size_t size, struct gp_error *error)
{
	const char *equals = memchr(text, '=', size);
	size_t name_size = equals ? (size_t)(equals - text) : size;

	for (uint32_t i = 0; equals && i < GP_PARAM_COUNT; i++) {
		int64_t value;
		char *end;

		if (strlen(params_table[i].name) != name_size || strncmp(params_table[i].name, text, name_size))
			continue;
		errno = 0;
		value = strtoll(equals + 1, &end, 10);
		if (errno || end == equals + 1 || end != text + size || value < params_table[i].min ||
		    value > params_table[i].max)
			return gp_error_set(error, -EINVAL, "%s takes a number from %" PRId64 " to %" PRId64,
					    params_table[i].name, params_table[i].min, params_table[i].max);
		params->values[i] = value;
		return 0;
	}
	return gp_error_set(error, -EINVAL,
			    "'%.*s' is not NAME=VALUE of a parameter (sched_policy, hws_max_conc_proc, cwsr_enable, "
			    "max_num_of_queues_per_device, queue_preemption_timeout_ms, num_kcq, vgpu_rptr_at_fetch, "
			    "vgpu_execute, vgpu_kfd_sched)",
			    (int)size, text);
}

int gp_params_parse(struct gp_params *params, const char *text, struct gp_error *error)
{
	int r = 0;

	while (r == 0) {
		size_t size = strcspn(text, ",");

		r = params_one(params, text, size, error);
		text += size;
		if (!*text)
			break;
		text++;
	}
	return r;
}

/* By renaming: who reads meanwhile finds the old number or the new one. One that is there may not be writable, not even
 * by us. */
static int params_text_file(const char *path, const char *text, mode_t mode)
{
	char temporary[PARAMS_PATH + 8u];
	FILE *stream;
	int r;

	snprintf(temporary, sizeof(temporary), "%s.new", path);
	unlink(temporary);
	stream = fopen(temporary, "we");
	if (!stream)
		return -errno;
	fprintf(stream, "%s\n", text);
	r = fclose(stream) ? -EIO : 0;
	if (r == 0 && (chmod(temporary, mode) < 0 || rename(temporary, path) < 0))
		r = -errno;
	if (r < 0)
		unlink(temporary);
	return r;
}

static int params_file(const char *path, int64_t value, mode_t mode)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, value);
	return params_text_file(path, text, mode);
}

void gp_params_write_dilation(const struct gp_vnode *node)
{
	char path[PARAMS_PATH];

	if (!*node->module_dir)
		return;
	snprintf(path, sizeof(path), "%s/vgpu_dilation", node->module_dir);
	params_file(path, node->dilation, 0444);
}

int gp_params_write(struct gp_vnode *node, const char *dir)
{
	char path[PARAMS_PATH];
	int r = 0;

	snprintf(path, sizeof(path), "%s/parameters", dir);
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return -errno;
	for (uint32_t i = 0; r == 0 && i < GP_PARAM_COUNT; i++) {
		snprintf(path, sizeof(path), "%s/parameters/%s", dir, params_table[i].name);
		if (params_table[i].mode)
			r = params_file(path, node->params.values[i], params_table[i].mode);
	}
	snprintf(path, sizeof(path), "%s/parameters/kfd_sched_policy", dir);
	if (r == 0 && node->params.values[GP_PARAM_KFD_SCHED])
		r = params_text_file(
			path, node->params.values[GP_PARAM_KFD_SCHED] == GP_PARAM_KFD_SCHED_BUSY ? "hpf" : "off", 0444);
	snprintf(node->module_dir, sizeof(node->module_dir), "%s", dir);
	gp_params_write_dilation(node);
	return r;
}

uint32_t gp_params_timeout_ms(struct gp_vnode *node)
{
	int64_t *value = &node->params.values[GP_PARAM_QUEUE_PREEMPTION_TIMEOUT_MS], now;
	char path[PARAMS_PATH];
	FILE *stream;

	snprintf(path, sizeof(path), "%s/parameters/queue_preemption_timeout_ms", node->module_dir);
	stream = *node->module_dir ? fopen(path, "re") : NULL;
	if (stream) {
		if (fscanf(stream, "%" SCNd64, &now) == 1 && now >= 1 && now <= INT32_MAX)
			*value = now;
		fclose(stream);
	}
	return (uint32_t)*value;
}
