/* SPDX-License-Identifier: MIT */
/* Owns the reading of DISB workload files. Knows the keys that decide when work arrives; addresses of servers are
 * skipped. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/cleanup.h"
#include "lib/file.h"
#include "lib/json.h"
#include "sim/disb.h"
#include "sim/kernels.h"

#define DISB_TRACE_MS_MAX (GP_DISB_TIME_S_MAX * 1000ull)

static const char *const disb_loads[] = {
	[GP_DISB_PERIODIC] = "periodic",
	[GP_DISB_CONTINUOUS] = "continuous",
	[GP_DISB_POISSON] = "poisson",
	[GP_DISB_TRACE] = "trace",
};

static int disb_refuse(const struct gp_json *json, struct gp_error *error, const char *what)
{
	return gp_error_set(error, -EINVAL, "%s:%u: %s", json->file_name, json->line, what);
}

/* The next token, which must be of this type. */
static int disb_expect(struct gp_json *json, enum gp_json_type type, const char *what, struct gp_error *error)
{
	int r = gp_json_next(json, error);

	if (r < 0)
		return r;
	return json->type == type ? 0 : disb_refuse(json, error, what);
}

static int disb_text(struct gp_json *json, char *text, size_t text_size, struct gp_error *error)
{
	int r = disb_expect(json, GP_JSON_STRING, "expected a string", error);

	if (r < 0)
		return r;
	if (strlen(json->string) >= text_size || !json->string[0])
		return disb_refuse(json, error, "a name is empty or longer than 63 bytes");
	memcpy(text, json->string, strlen(json->string) + 1);
	return 0;
}

static int disb_whole(struct gp_json *json, uint64_t min, uint64_t max, const char *what, uint64_t *ret_value,
		      struct gp_error *error)
{
	int r = disb_expect(json, GP_JSON_NUMBER, what, error);

	if (r < 0)
		return r;
	if (!json->is_u64 || json->u64 < min || json->u64 > max)
		return disb_refuse(json, error, what);
	*ret_value = json->u64;
	return 0;
}

/* A plain decimal ("20", "0.5") times 1000; what is finer is refused. */
static int disb_milli(struct gp_json *json, uint64_t *ret_milli, struct gp_error *error)
{
	static const char what[] = "the frequency must be a number from 0.001 to 1000000 with at most three decimals";
	uint64_t value = 0, scale = 1000;
	int r = disb_expect(json, GP_JSON_NUMBER, what, error);
	bool is_fraction = false;

	if (r < 0)
		return r;
	for (const char *at = json->string; *at; at++) {
		if (*at == '.') {
			is_fraction = true;
			continue;
		}
		if (*at < '0' || *at > '9' || value > GP_DISB_FREQUENCY_MILLI_MAX ||
		    (is_fraction && scale == 1 && *at != '0'))
			return disb_refuse(json, error, what);
		if (is_fraction && scale == 1)
			continue;
		value = value * 10u + (uint64_t)(*at - '0');
		if (is_fraction)
			scale /= 10u;
	}
	value = value > GP_DISB_FREQUENCY_MILLI_MAX ? UINT64_MAX / 1000u : value;
	if (!value || value * scale > GP_DISB_FREQUENCY_MILLI_MAX)
		return disb_refuse(json, error, what);
	*ret_milli = value * scale;
	return 0;
}

/* Milliseconds, ascending. */
static int disb_trace(struct gp_json *json, struct gp_disb_task *task, struct gp_error *error)
{
	GP_AUTO_FREE uint64_t *trace_ns = NULL;
	uint32_t count = 0, room = 0;
	int r = disb_expect(json, GP_JSON_ARRAY_BEGIN, "trace must be an array of milliseconds", error);

	if (r < 0)
		return r;
	if (task->trace_ns)
		return disb_refuse(json, error, "the task has a second trace");
	while ((r = gp_json_next(json, error)) == 0 && json->type != GP_JSON_ARRAY_END) {
		if (json->type != GP_JSON_NUMBER || !json->is_u64 || json->u64 > DISB_TRACE_MS_MAX)
			return disb_refuse(json, error, "an arrival must be whole milliseconds, at most a day");
		if (count && json->u64 * 1000000u < trace_ns[count - 1])
			return disb_refuse(json, error, "arrivals must ascend");
		if (count == GP_DISB_TRACE_MAX)
			return disb_refuse(json, error, "a trace has more than 65536 arrivals");
		if (count == room) {
			uint64_t *moved = realloc(trace_ns, (room ? room * 2 : 256) * sizeof(*moved));

			if (!moved)
				return disb_refuse(json, error, "not enough memory");
			trace_ns = moved;
			room = room ? room * 2 : 256;
		}
		trace_ns[count++] = json->u64 * 1000000u;
	}
	if (r < 0)
		return r;
	task->trace_count = count;
	task->trace_ns = GP_TAKE(trace_ns);
	return 0;
}

static int disb_load_type(struct gp_json *json, struct gp_disb_task *task, bool *has_load, struct gp_error *error)
{
	int r = disb_expect(json, GP_JSON_STRING, "the type of a load must be a string", error);

	if (r < 0)
		return r;
	for (size_t i = 0; i < sizeof(disb_loads) / sizeof(disb_loads[0]); i++)
		if (!strcmp(json->string, disb_loads[i])) {
			task->load = (enum gp_disb_load)i;
			*has_load = true;
			return 0;
		}
	return gp_error_set(error, -EINVAL,
			    "%s:%u: unknown load \"%.40s\"; known are: periodic, continuous, poisson, trace",
			    json->file_name, json->line, json->string);
}

static int disb_load_object(struct gp_json *json, struct gp_disb_task *task, bool *has_load, struct gp_error *error)
{
	uint64_t priority = 0;
	int r = disb_expect(json, GP_JSON_OBJECT_BEGIN, "load must be an object", error);

	while (r == 0 && (r = gp_json_next(json, error)) == 0 && json->type == GP_JSON_KEY) {
		if (!strcmp(json->string, "type"))
			r = disb_load_type(json, task, has_load, error);
		else if (!strcmp(json->string, "frequency"))
			r = disb_milli(json, &task->frequency_milli, error);
		else if (!strcmp(json->string, "trace"))
			r = disb_trace(json, task, error);
		else if (!strcmp(json->string, "priority")) {
			r = disb_whole(json, 0, INT32_MAX, "priority must be a whole number", &priority, error);
			task->is_realtime |= r == 0 && !priority;
		} else {
			r = gp_json_skip(json, error);
		}
	}
	return r;
}

static int disb_client_object(struct gp_json *json, struct gp_disb_task *task, struct gp_error *error)
{
	uint64_t batch_size = 1;
	int r = disb_expect(json, GP_JSON_OBJECT_BEGIN, "client must be an object", error);

	while (r == 0 && (r = gp_json_next(json, error)) == 0 && json->type == GP_JSON_KEY) {
		if (!strcmp(json->string, "model_name")) {
			r = disb_text(json, task->model, sizeof(task->model), error);
		} else if (!strcmp(json->string, "batch_size")) {
			r = disb_whole(json, 1, 65536, "batch_size must be from 1 to 65536", &batch_size, error);
			task->batch_size = (uint32_t)batch_size;
		} else {
			r = gp_json_skip(json, error);
		}
	}
	return r;
}

/* Behind the task's opening brace. What it allocates is freed by gp_disb_fini(), also after a failure. */
static int disb_task(struct gp_json *json, struct gp_disb_task *task, struct gp_error *error)
{
	bool has_load = false;
	size_t length;
	int r = 0;

	task->batch_size = 1;
	while (r == 0 && (r = gp_json_next(json, error)) == 0 && json->type == GP_JSON_KEY) {
		if (!strcmp(json->string, "id"))
			r = disb_text(json, task->id, sizeof(task->id), error);
		else if (!strcmp(json->string, "load"))
			r = disb_load_object(json, task, &has_load, error);
		else if (!strcmp(json->string, "client"))
			r = disb_client_object(json, task, error);
		else
			r = gp_json_skip(json, error);
	}
	if (r < 0)
		return r;
	if (!task->id[0] || !task->model[0] || !has_load)
		return disb_refuse(json, error,
				   "a task needs an id, a load with a type, and a client with a model_name");
	if ((task->load == GP_DISB_PERIODIC || task->load == GP_DISB_POISSON) && !task->frequency_milli)
		return disb_refuse(json, error, "a periodic or poisson load needs a frequency");
	if (task->load == GP_DISB_TRACE && !task->trace_count)
		return disb_refuse(json, error, "a trace load needs a trace with arrivals");
	length = strlen(task->id);
	task->is_realtime |= length > 3 && !strcmp(task->id + length - 3, "_rt");
	return 0;
}

static int disb_tasks(struct gp_json *json, struct gp_disb *disb, struct gp_error *error)
{
	int r = disb_expect(json, GP_JSON_ARRAY_BEGIN, "tasks must be an array", error);

	while (r == 0 && (r = gp_json_next(json, error)) == 0 && json->type != GP_JSON_ARRAY_END) {
		if (json->type != GP_JSON_OBJECT_BEGIN)
			return disb_refuse(json, error, "a task must be an object");
		if (disb->task_count == GP_DISB_TASK_MAX)
			return disb_refuse(json, error, "there are more than 64 tasks");
		r = disb_task(json, &disb->tasks[disb->task_count++], error);
	}
	return r;
}

static int disb_read(struct gp_json *json, struct gp_disb *disb, struct gp_error *error)
{
	uint64_t seconds = 0;
	int r = disb_expect(json, GP_JSON_OBJECT_BEGIN, "a workload must be an object with time and tasks", error);

	while (r == 0 && (r = gp_json_next(json, error)) == 0 && json->type == GP_JSON_KEY) {
		if (!strcmp(json->string, "time"))
			r = disb_whole(json, 1, GP_DISB_TIME_S_MAX, "time must be from 1 to 86400 seconds", &seconds,
				       error);
		else if (!strcmp(json->string, "tasks"))
			r = disb_tasks(json, disb, error);
		else
			r = gp_json_skip(json, error);
	}
	if (r < 0)
		return r;
	if (!seconds || !disb->task_count)
		return disb_refuse(json, error, "a workload needs time and at least one task");
	disb->duration_ns = seconds * 1000000000ull;
	return disb_expect(json, GP_JSON_END, "there is text behind the end", error);
}

int gp_disb_parse(const char *text, size_t text_size, const char *file_name, struct gp_disb *ret_disb,
		  struct gp_error *error)
{
	GP_AUTO_FREE struct gp_json *json = malloc(sizeof(*json));
	GP_AUTO_FREE struct gp_disb *disb = calloc(1, sizeof(*disb));
	int r;

	if (!json || !disb)
		return gp_error_set(error, -ENOMEM, "%s: not enough memory", file_name);
	gp_json_init(json, text, text_size, file_name);
	r = disb_read(json, disb, error);
	if (r < 0) {
		gp_disb_fini(disb);
		return r;
	}
	*ret_disb = *disb;
	return 0;
}

int gp_disb_load(const char *path, struct gp_disb *ret_disb, struct gp_error *error)
{
	GP_AUTO_FREE char *text = NULL;
	size_t text_size = 0;
	int r = gp_file_read(path, GP_TRACE_FILE_SIZE_MAX, &text, &text_size, error);

	return r < 0 ? r : gp_disb_parse(text, text_size, path, ret_disb, error);
}

void gp_disb_fini(struct gp_disb *disb)
{
	for (uint32_t i = 0; i < disb->task_count; i++)
		free(disb->tasks[i].trace_ns);
	memset(disb, 0, sizeof(*disb));
}
