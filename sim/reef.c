/* SPDX-License-Identifier: MIT */
/* Owns the reading of REEF's MI50 models and profiles. Joins the two by the full kernel name, which is longer than
 * what we show. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/cleanup.h"
#include "lib/file.h"
#include "lib/json.h"
#include "sim/reef.h"

#define REEF_NAME_SIZE          256u
#define REEF_LATENCY_US_MAX     (GP_TRACE_DURATION_NS_MAX / 1000u)
#define REEF_LAUNCH_PARAM_COUNT 6u
#define REEF_LDS_SIZE_MAX       (1u << 20)

/* What is known of a kernel by its name. */
struct reef_entry {
	char name[REEF_NAME_SIZE];
	uint64_t latency_us; /* 0: not in the profile */
	uint32_t per_cu_max, lds_size;
};

struct reef_reader {
	struct gp_json json;
	uint32_t entry_count, kernel_count;
	struct reef_entry *entries; /* GP_REEF_NAME_MAX */
	struct gp_trace_kernel *kernels;
	uint32_t *kernel_entries; /* GP_REEF_KERNEL_MAX: entry of each kernel */
	uint64_t model_latency_us;
};

static int reef_refuse(const struct reef_reader *reader, struct gp_error *error, const char *what)
{
	return gp_error_set(error, -EINVAL, "%s:%u: %s", reader->json.file_name, reader->json.line, what);
}

static int reef_expect(struct reef_reader *reader, enum gp_json_type type, const char *what, struct gp_error *error)
{
	int r = gp_json_next(&reader->json, error);

	if (r < 0)
		return r;
	return reader->json.type == type ? 0 : reef_refuse(reader, error, what);
}

static int reef_whole(struct reef_reader *reader, uint64_t min, uint64_t max, const char *what, uint64_t *ret_value,
		      struct gp_error *error)
{
	int r = reef_expect(reader, GP_JSON_NUMBER, what, error);

	if (r < 0)
		return r;
	if (!reader->json.is_u64 || reader->json.u64 < min || reader->json.u64 > max)
		return reef_refuse(reader, error, what);
	*ret_value = reader->json.u64;
	return 0;
}

/* The entry of the name just read, made if it is new. */
static int reef_entry(struct reef_reader *reader, uint32_t *ret_index, struct gp_error *error)
{
	const char *name = reader->json.string;

	for (uint32_t i = 0; i < reader->entry_count; i++)
		if (!strcmp(reader->entries[i].name, name)) {
			*ret_index = i;
			return 0;
		}
	if (!name[0] || strlen(name) >= REEF_NAME_SIZE)
		return reef_refuse(reader, error, "the name of a kernel is empty or longer than 255 bytes");
	if (reader->entry_count == GP_REEF_NAME_MAX)
		return reef_refuse(reader, error, "there are more than 1024 different kernels");
	memcpy(reader->entries[reader->entry_count].name, name, strlen(name) + 1);
	*ret_index = reader->entry_count++;
	return 0;
}

/* {"latency": [µs, …], "total_latency": µs} of one kernel. */
static int reef_profile_kernel(struct reef_reader *reader, struct reef_entry *entry, struct gp_error *error)
{
	static const char what[] = "a latency must be whole microseconds, from 1 to an hour";
	int r = reef_expect(reader, GP_JSON_OBJECT_BEGIN, "the latency of a kernel must be an object", error);

	while (r == 0 && (r = gp_json_next(&reader->json, error)) == 0 && reader->json.type == GP_JSON_KEY) {
		if (!strcmp(reader->json.string, "total_latency")) {
			r = reef_whole(reader, 1, REEF_LATENCY_US_MAX, what, &entry->latency_us, error);
		} else if (!strcmp(reader->json.string, "latency")) {
			r = reef_expect(reader, GP_JSON_ARRAY_BEGIN, "latency must be an array", error);
			entry->per_cu_max = 0;
			while (r == 0 && (r = gp_json_next(&reader->json, error)) == 0 &&
			       reader->json.type != GP_JSON_ARRAY_END) {
				if (reader->json.type != GP_JSON_NUMBER)
					return reef_refuse(reader, error, what);
				entry->per_cu_max++;
			}
		} else {
			r = gp_json_skip(&reader->json, error);
		}
	}
	return r;
}

static int reef_profile_kernels(struct reef_reader *reader, struct gp_error *error)
{
	int r = reef_expect(reader, GP_JSON_OBJECT_BEGIN, "kernel_latency must be an object", error);

	while (r == 0 && (r = gp_json_next(&reader->json, error)) == 0 && reader->json.type == GP_JSON_KEY) {
		uint32_t index = 0;

		r = reef_entry(reader, &index, error);
		if (r == 0)
			r = reef_profile_kernel(reader, &reader->entries[index], error);
	}
	return r;
}

static int reef_profile(struct reef_reader *reader, struct gp_error *error)
{
	int r = reef_expect(reader, GP_JSON_OBJECT_BEGIN, "a profile must be an object", error);

	while (r == 0 && (r = gp_json_next(&reader->json, error)) == 0 && reader->json.type == GP_JSON_KEY) {
		if (!strcmp(reader->json.string, "model_latency"))
			r = reef_whole(reader, 1, REEF_LATENCY_US_MAX,
				       "model_latency must be whole microseconds, from 1 to an hour",
				       &reader->model_latency_us, error);
		else if (!strcmp(reader->json.string, "kernel_latency"))
			r = reef_profile_kernels(reader, error);
		else
			r = gp_json_skip(&reader->json, error);
	}
	if (r < 0)
		return r;
	if (!reader->model_latency_us || !reader->entry_count)
		return reef_refuse(reader, error, "a profile needs model_latency and kernel_latency");
	return reef_expect(reader, GP_JSON_END, "there is text behind the end", error);
}

/* [grid x, y, z, workgroup x, y, z] */
static int reef_launch_params(struct reef_reader *reader, struct gp_trace_kernel *kernel, struct gp_error *error)
{
	static const char what[] = "launch_params must be six whole numbers from 1 to 65535";
	uint64_t params[REEF_LAUNCH_PARAM_COUNT] = { 0 };
	int r = reef_expect(reader, GP_JSON_ARRAY_BEGIN, what, error);

	for (size_t i = 0; r == 0 && i < REEF_LAUNCH_PARAM_COUNT; i++)
		r = reef_whole(reader, 1, 65535, what, &params[i], error);
	if (r == 0)
		r = reef_expect(reader, GP_JSON_ARRAY_END, what, error);
	if (r < 0)
		return r;
	/* Each product stays below 2^48. */
	if (params[0] * params[1] * params[2] > UINT32_MAX || params[3] * params[4] * params[5] > UINT32_MAX)
		return reef_refuse(reader, error, "the grid has more than 4294967295 workgroups or work-items in one");
	kernel->workgroups = (uint32_t)(params[0] * params[1] * params[2]);
	kernel->workgroup_size = (uint32_t)(params[3] * params[4] * params[5]);
	return 0;
}

/* Behind the opening brace of a launch. */
static int reef_kernel(struct reef_reader *reader, struct gp_trace_kernel *kernel, uint32_t *ret_entry,
		       struct gp_error *error)
{
	bool has_name = false;
	int r = 0;

	while (r == 0 && (r = gp_json_next(&reader->json, error)) == 0 && reader->json.type == GP_JSON_KEY) {
		if (!strcmp(reader->json.string, "name")) {
			r = reef_expect(reader, GP_JSON_STRING, "the name of a kernel must be a string", error);
			if (r == 0)
				r = reef_entry(reader, ret_entry, error);
			if (r == 0)
				gp_trace_name_copy(kernel->name, sizeof(kernel->name), reader->json.string);
			has_name = true;
		} else if (!strcmp(reader->json.string, "launch_params")) {
			r = reef_launch_params(reader, kernel, error);
		} else {
			r = gp_json_skip(&reader->json, error);
		}
	}
	if (r < 0)
		return r;
	if (!has_name || !kernel->workgroups)
		return reef_refuse(reader, error, "a kernel needs a name and launch_params");
	if (!reader->entries[*ret_entry].latency_us)
		return gp_error_set(error, -EINVAL, "%s:%u: kernel %.100s is not in the profile",
				    reader->json.file_name, reader->json.line, reader->entries[*ret_entry].name);
	return 0;
}

static int reef_kernels(struct reef_reader *reader, struct gp_error *error)
{
	int r = reef_expect(reader, GP_JSON_ARRAY_BEGIN, "kernels must be an array", error);

	while (r == 0 && (r = gp_json_next(&reader->json, error)) == 0 && reader->json.type != GP_JSON_ARRAY_END) {
		struct gp_trace_kernel kernel = { 0 };

		if (reader->json.type != GP_JSON_OBJECT_BEGIN)
			return reef_refuse(reader, error, "a kernel must be an object");
		if (reader->kernel_count == GP_REEF_KERNEL_MAX)
			return reef_refuse(reader, error, "there are more than 16384 kernels");
		r = reef_kernel(reader, &kernel, &reader->kernel_entries[reader->kernel_count], error);
		if (r == 0)
			reader->kernels[reader->kernel_count++] = kernel;
	}
	return r;
}

static int reef_shared_memory(struct reef_reader *reader, struct gp_error *error)
{
	int r = reef_expect(reader, GP_JSON_OBJECT_BEGIN, "shared_memory must be an object", error);

	while (r == 0 && (r = gp_json_next(&reader->json, error)) == 0 && reader->json.type == GP_JSON_KEY) {
		uint64_t size = 0;
		uint32_t index = 0;

		r = reef_entry(reader, &index, error);
		if (r == 0)
			r = reef_whole(reader, 0, REEF_LDS_SIZE_MAX, "shared_memory must be bytes, at most 1048576",
				       &size, error);
		if (r == 0)
			reader->entries[index].lds_size = (uint32_t)size;
	}
	return r;
}

static int reef_model(struct reef_reader *reader, struct gp_error *error)
{
	int r = reef_expect(reader, GP_JSON_OBJECT_BEGIN, "a model must be an object", error);

	while (r == 0 && (r = gp_json_next(&reader->json, error)) == 0 && reader->json.type == GP_JSON_KEY) {
		if (!strcmp(reader->json.string, "kernels"))
			r = reef_kernels(reader, error);
		else if (!strcmp(reader->json.string, "shared_memory"))
			r = reef_shared_memory(reader, error);
		else
			r = gp_json_skip(&reader->json, error);
	}
	if (r < 0)
		return r;
	if (!reader->kernel_count)
		return reef_refuse(reader, error, "a model needs kernels");
	return reef_expect(reader, GP_JSON_END, "there is text behind the end", error);
}

/* shared_memory may stand behind kernels, so what is known by name is filled in at the end. */
static void reef_join(struct reef_reader *reader)
{
	for (uint32_t i = 0; i < reader->kernel_count; i++) {
		const struct reef_entry *entry = &reader->entries[reader->kernel_entries[i]];

		reader->kernels[i].duration_ns = entry->latency_us * 1000u;
		reader->kernels[i].lds_size = entry->lds_size;
		reader->kernels[i].per_cu_max = entry->per_cu_max;
	}
}

int gp_reef_parse(const struct gp_reef_text *model, const struct gp_reef_text *profile, struct gp_reef *ret_reef,
		  struct gp_error *error)
{
	GP_AUTO_FREE struct reef_reader *reader = calloc(1, sizeof(*reader));
	GP_AUTO_FREE struct reef_entry *entries = calloc(GP_REEF_NAME_MAX, sizeof(*entries));
	GP_AUTO_FREE uint32_t *kernel_entries = calloc(GP_REEF_KERNEL_MAX, sizeof(*kernel_entries));
	GP_AUTO_FREE struct gp_trace_kernel *kernels = calloc(GP_REEF_KERNEL_MAX, sizeof(*kernels));
	int r;

	if (!reader || !entries || !kernel_entries || !kernels)
		return gp_error_set(error, -ENOMEM, "%s: not enough memory", model->file_name);
	reader->entries = entries;
	reader->kernel_entries = kernel_entries;
	reader->kernels = kernels;
	gp_json_init(&reader->json, profile->text, profile->text_size, profile->file_name);
	r = reef_profile(reader, error);
	if (r < 0)
		return r;
	gp_json_init(&reader->json, model->text, model->text_size, model->file_name);
	r = reef_model(reader, error);
	if (r < 0)
		return r;
	reef_join(reader);
	*ret_reef = (struct gp_reef){
		.kernels = { .count = reader->kernel_count, .kernels = GP_TAKE(kernels) },
		.model_latency_ns = reader->model_latency_us * 1000u,
	};
	return 0;
}

int gp_reef_load(const char *model_path, const char *profile_path, struct gp_reef *ret_reef, struct gp_error *error)
{
	GP_AUTO_FREE char *model_text = NULL, *profile_text = NULL;
	struct gp_reef_text model = { .file_name = model_path }, profile = { .file_name = profile_path };
	int r = gp_file_read(model_path, GP_TRACE_FILE_SIZE_MAX, &model_text, &model.text_size, error);

	if (r < 0)
		return r;
	r = gp_file_read(profile_path, GP_TRACE_FILE_SIZE_MAX, &profile_text, &profile.text_size, error);
	if (r < 0)
		return r;
	model.text = model_text;
	profile.text = profile_text;
	return gp_reef_parse(&model, &profile, ret_reef, error);
}

void gp_reef_fini(struct gp_reef *reef)
{
	gp_trace_kernels_fini(&reef->kernels);
	reef->model_latency_ns = 0;
}
