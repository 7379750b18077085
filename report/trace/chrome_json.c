/* SPDX-License-Identifier: MIT */
/*
 * Owns Chrome's trace event format as GPU tools write it: rocprof v1 (lanes in the place of processes, real times in
 * args), RPD, XLA (chrome_xla.c), and PyTorch's profiler, Kineto (categories; work names its device in the place of its
 * process). Complete events ("X") and pairs ("B", "E") become events; what else there is (flows, counters, instants) is
 * passed over. Times are microseconds with decimals, as numbers or in quotes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "lib/cleanup.h"
#include "report/trace/chrome.h"
#include "report/trace/readers.h"
#include "report/trace/rows.h"

#define CHROME_LANE_MAX 1024u
#define CHROME_OPEN_MAX 4096u /* begun and not ended, on all threads */

struct chrome_open {
	uint64_t pid, tid, start_ns;
	char name[128];
};

struct chrome {
	struct gp_json_input json;
	const struct gp_sink *sink;
	struct chrome_event event;
	uint32_t lane_count, open_count;
	struct chrome_lane lanes[CHROME_LANE_MAX];
	struct chrome_streams streams;
	struct chrome_open open[CHROME_OPEN_MAX];
	uint64_t rows, lost;
	bool has_xla;  /* it has lanes of XLA, which stand before their events */
	bool is_found; /* there was a list of events */
	bool is_trace; /* one of them says what it is ("ph") */
};

/* "e+06" behind a number's digits: the power of ten. False: this is no number. */
static bool chrome_exponent(const char *text, int32_t *ret_power)
{
	bool is_negative;
	uint64_t power = 0;
	size_t size;

	if (!*text)
		return true;
	if (*text != 'e' && *text != 'E')
		return false;
	is_negative = *++text == '-';
	text += *text == '-' || *text == '+';
	size = strspn(text, "0123456789");
	if (text[size] || size > 3 || !gp_rows_u64(text, size, &power))
		return false;
	*ret_power += is_negative ? -(int32_t)power : (int32_t)power;
	return true;
}

/* "12.345" or "1.2345e+1" microseconds to the nearest nanosecond: a float of 17 digits may end in 999. */
static bool chrome_micros(const char *text, uint64_t *ret_ns)
{
	uint64_t value = 0, larger = 0;
	int32_t power = 3; /* of ten, that makes the digits read so far nanoseconds */
	bool is_fraction = false, is_full = false, is_more = false; /* more: half or more of the last digit was cut */

	if (*text < '0' || *text > '9')
		return false;
	for (; (*text >= '0' && *text <= '9') || (*text == '.' && !is_fraction); text++) {
		if (*text == '.') {
			is_fraction = true;
			continue;
		}
		is_full |= __builtin_mul_overflow(value, 10u, &larger) ||
			   __builtin_add_overflow(larger, (uint64_t)(*text - '0'), &larger);
		if (is_full && !is_fraction)
			return false;
		if (is_full)
			continue;
		value = larger;
		power -= is_fraction;
	}
	if (!chrome_exponent(text, &power))
		return false;
	for (; power < 0 && (value || is_more); power++) {
		is_more = value % 10 >= 5;
		value /= 10;
	}
	value += is_more;
	for (; power > 0 && value; power--)
		if (__builtin_mul_overflow(value, 10u, &value))
			return false;
	*ret_ns = value;
	return true;
}

/* A time before zero, or a length below it, is none: the event is left out, and counted. */
static void chrome_time(struct chrome_event *event, const char *text, bool *has, uint64_t *ret_ns)
{
	if (*text == '-')
		return;
	*has = chrome_micros(text, ret_ns);
	event->is_broken |= !*has;
}

static void chrome_number(const struct gp_json_input *json, struct chrome_value *value)
{
	value->is_seen = gp_json_input_u64(json, &value->value);
}

static int chrome_grid_element(void *context, struct gp_json_input *json, struct gp_error *error)
{
	struct chrome_event *event = &((struct chrome *)context)->event;
	uint64_t value = 0;

	if (!gp_json_input_u64(json, &value) || __builtin_mul_overflow(event->grid, value, &event->grid))
		event->grid = 0;
	event->grid_count++;
	return gp_json_input_skip(json, error);
}

static int chrome_args_member(void *context, struct gp_json_input *json, const char *key, struct gp_error *error)
{
	struct chrome *chrome = context;
	struct chrome_event *event = &chrome->event;
	const struct {
		const char *key;
		struct chrome_value *value;
	} keys[] = {
		{ "BeginNs", &event->begin },
		{ "EndNs", &event->end },
		{ "pid", &event->real_pid },
		{ "tid", &event->real_tid },
		{ "DispatchNs", &event->dispatch },
		{ "CompleteNs", &event->complete },
		{ "gpu-id", &event->device },
		{ "device", &event->device },
		{ "queue-id", &event->queue },
		{ "queue", &event->queue },
		{ "stream", &event->stream },
		{ "correlation", &event->correlation },
		{ "bytes", &event->size },
		{ "Bytes", &event->size },
		{ "priority", &event->priority },
		{ "size", &event->size },
		{ "wait_on_stream", &event->wait_stream },
		{ "wait_on_cuda_event_record_corr_id", &event->wait_correlation },
	};
	int r = gp_json_input_next(json, error);

	if (r)
		return r;
	if (json->json.type == GP_JSON_ARRAY_BEGIN && !strcmp(key, "grid")) {
		event->grid = 1;
		return gp_json_input_array(json, chrome_grid_element, chrome, error);
	}
	if (json->json.type == GP_JSON_NUMBER || json->json.type == GP_JSON_STRING)
		for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
			if (!strcmp(key, keys[i].key))
				chrome_number(json, keys[i].value);
	if (chrome->has_xla)
		gp_chrome_xla_member(&event->xla, json, key);
	if (json->json.type == GP_JSON_STRING && !strcmp(key, "desc"))
		(void)snprintf(event->description, sizeof(event->description), "%.63s", json->json.string);
	if (json->json.type == GP_JSON_STRING && !strcmp(key, "name"))
		(void)snprintf(event->lane_name, sizeof(event->lane_name), "%.63s", json->json.string);
	return gp_json_input_skip(json, error);
}

static int chrome_event_member(void *context, struct gp_json_input *json, const char *key, struct gp_error *error)
{
	struct chrome *chrome = context;
	struct chrome_event *event = &chrome->event;
	int r = gp_json_input_next(json, error);
	const char *text = json->json.string;
	bool is_text = json->json.type == GP_JSON_STRING, is_number = json->json.type == GP_JSON_NUMBER;

	if (r)
		return r;
	if (!strcmp(key, "args"))
		return gp_json_input_object(json, chrome_args_member, chrome, error);
	if (!strcmp(key, "ph") && is_text)
		event->phase = text[0];
	else if (!strcmp(key, "name") && is_text)
		(void)snprintf(event->name, sizeof(event->name), "%.*s", (int)sizeof(event->name) - 1, text);
	else if (!strcmp(key, "cat") && is_text)
		(void)snprintf(event->category, sizeof(event->category), "%.63s", text);
	else if (!strcmp(key, "pid"))
		chrome_number(json, &event->pid);
	else if (!strcmp(key, "tid"))
		chrome_number(json, &event->tid);
	else if (!strcmp(key, "ts") && (is_text || is_number))
		chrome_time(event, text, &event->has_time, &event->time_ns);
	else if (!strcmp(key, "dur") && (is_text || is_number))
		chrome_time(event, text, &event->has_duration, &event->duration_ns);
	return gp_json_input_skip(json, error);
}

static struct chrome_lane *chrome_lane(struct chrome *chrome, uint64_t pid)
{
	for (uint32_t i = 0; i < chrome->lane_count; i++)
		if (chrome->lanes[i].pid == pid)
			return &chrome->lanes[i];
	return NULL;
}

/* rocprof v1 and RPD put lanes in the place of processes, and say by name what they are. */
static void chrome_metadata(struct chrome *chrome)
{
	const struct chrome_event *event = &chrome->event;
	struct chrome_lane *lane;
	const char *name = event->lane_name;

	if (!event->pid.is_seen)
		return;
	lane = chrome_lane(chrome, event->pid.value);
	if (lane && lane->kind == CHROME_XLA_GPU && !strcmp(event->name, "thread_name"))
		gp_chrome_xla_thread(&chrome->streams, event);
	if (strcmp(event->name, "process_name"))
		return;
	if (!lane) {
		if (chrome->lane_count == CHROME_LANE_MAX)
			return;
		lane = &chrome->lanes[chrome->lane_count++];
	}
	*lane = (struct chrome_lane){ .pid = event->pid.value, .kind = CHROME_OTHER };
	if (gp_chrome_xla_lane(name, lane)) {
		chrome->has_xla = true;
		return;
	}
	if (strstr(name, "HIP API"))
		lane->kind = CHROME_HIP;
	else if (strstr(name, "HSA API"))
		lane->kind = CHROME_HSA;
	else if (!strcmp(name, "COPY"))
		lane->kind = CHROME_COPY;
	else if (!strncmp(name, "GPU Barriers", 12))
		lane->kind = CHROME_BARRIER;
	else if (!strncmp(name, "GPU", 3)) {
		name += name[3] == ' ' ? 4 : 3;
		lane->kind = CHROME_GPU;
		lane->has_device = gp_rows_u64(name, strspn(name, "0123456789"), &lane->device);
	}
}

static bool chrome_is_copy(const struct chrome_event *event)
{
	return strstr(event->category, "memcpy") || strstr(event->category, "memset") ||
	       !strncmp(event->name, "Copy", 4) || !strncmp(event->description, "Copy", 4) ||
	       !strncmp(event->name, "Memcpy", 6) || !strncmp(event->name, "Memset", 6);
}

/* Kineto's categories, of which those of 2021 begin with capitals. A category says what an event is; a name does not:
 * an annotation may be called "nccl:all_reduce" or "hipMemcpy", and is no call. */
static const struct {
	const char *category;
	enum gp_layer layer;
} chrome_categories[] = {
	{ "kernel", GP_LAYER_KERNEL },
	{ "Kernel", GP_LAYER_KERNEL },
	{ "gpu_memcpy", GP_LAYER_COPY },
	{ "gpu_memset", GP_LAYER_COPY },
	{ "Memcpy", GP_LAYER_COPY },
	{ "Memset", GP_LAYER_COPY },
	{ "cuda_runtime", GP_LAYER_HIP },
	{ "cuda_driver", GP_LAYER_HIP },
	{ "hip_runtime", GP_LAYER_HIP },
	{ "Runtime", GP_LAYER_HIP },
	{ "cuda_sync", GP_LAYER_WAIT },
	{ "gpu_user_annotation", GP_LAYER_MARKER },
	{ "user_annotation", GP_LAYER_MARKER },
	{ "cpu_op", GP_LAYER_MARKER },
	{ "Operator", GP_LAYER_MARKER },
	{ "python_function", GP_LAYER_MARKER },
	{ "overhead", GP_LAYER_MARKER },
	{ "Trace", GP_LAYER_MARKER },
};

static bool chrome_kineto_layer(const struct chrome_event *event, enum gp_layer *ret_layer)
{
	for (size_t i = 0; i < sizeof(chrome_categories) / sizeof(chrome_categories[0]); i++)
		if (!strcmp(event->category, chrome_categories[i].category)) {
			*ret_layer = chrome_categories[i].layer;
			return true;
		}
	return false;
}

/* False: not a layer of ours. */
static bool chrome_layer(const struct chrome_event *event, const struct chrome_lane *lane, enum gp_layer *ret_layer)
{
	enum chrome_lane_kind kind = lane ? lane->kind : CHROME_UNKNOWN;

	if (kind == CHROME_BARRIER)
		return false;
	if (kind == CHROME_COPY || (kind == CHROME_GPU && chrome_is_copy(event)))
		*ret_layer = GP_LAYER_COPY;
	else if (kind == CHROME_GPU)
		*ret_layer = GP_LAYER_KERNEL;
	else if (kind == CHROME_HIP)
		*ret_layer = GP_LAYER_HIP;
	else if (kind == CHROME_HSA)
		*ret_layer = GP_LAYER_HSA;
	else if (!strcmp(event->category, "copy"))
		*ret_layer = GP_LAYER_COPY;
	else if (!strncmp(event->name, "hip", 3) || !strncmp(event->name, "__hip", 5))
		*ret_layer = GP_LAYER_HIP;
	else if (!strncmp(event->name, "hsa_", 4))
		*ret_layer = GP_LAYER_HSA;
	else if (!strncmp(event->name, "nccl", 4))
		*ret_layer = GP_LAYER_LIBRARY;
	else
		*ret_layer = GP_LAYER_MARKER;
	return true;
}

static void chrome_known(struct gp_profile_event *to, uint64_t *field, enum gp_known bit,
			 const struct chrome_value *value)
{
	if (!value->is_seen)
		return;
	*field = value->value;
	to->known |= bit;
}

/* Work that a lane or its own arguments place. */
static void chrome_work(const struct chrome_event *event, const struct chrome_lane *lane, struct gp_profile_event *to)
{
	chrome_known(to, &to->device, GP_KNOWN_DEVICE, &event->device);
	chrome_known(to, &to->queue, GP_KNOWN_QUEUE, &event->queue);
	chrome_known(to, &to->stream, GP_KNOWN_STREAM, &event->stream);
	if (!event->device.is_seen && lane && lane->has_device) {
		to->device = lane->device;
		to->known |= GP_KNOWN_DEVICE;
	}
	if (!event->queue.is_seen && lane && lane->kind == CHROME_GPU && !event->real_tid.is_seen)
		chrome_known(to, &to->queue, GP_KNOWN_QUEUE, &event->tid);
	if (event->priority.is_seen && event->priority.value <= INT32_MAX) {
		to->priority = (int64_t)event->priority.value;
		to->known |= GP_KNOWN_PRIORITY;
	}
	if (to->layer == GP_LAYER_COPY)
		chrome_known(to, &to->size, GP_KNOWN_SIZE, &event->size);
	if (to->layer == GP_LAYER_KERNEL) {
		chrome_known(to, &to->dispatch_ns, GP_KNOWN_DISPATCH, &event->dispatch);
		chrome_known(to, &to->complete_ns, GP_KNOWN_COMPLETE, &event->complete);
		if (event->grid_count && event->grid) {
			to->workgroups = event->grid;
			to->known |= GP_KNOWN_WORKGROUPS;
		}
	}
}

/* Kineto: what runs on the GPU has its device where others have their process, and its stream where they have their
 * thread; the process is the file's. A stream is the only line of work it knows. */
static void chrome_kineto(const struct chrome_event *event, struct gp_profile_event *to)
{
	chrome_known(to, &to->correlation, GP_KNOWN_CORRELATION, &event->correlation);
	if (to->layer == GP_LAYER_HIP ||
	    (to->layer == GP_LAYER_MARKER && strcmp(event->category, "gpu_user_annotation"))) {
		chrome_known(to, &to->pid, GP_KNOWN_PID, &event->pid);
		chrome_known(to, &to->tid, GP_KNOWN_TID, &event->tid);
		chrome_known(to, &to->size, GP_KNOWN_SIZE, &event->size);
		return;
	}
	chrome_work(event, NULL, to);
	if (!event->device.is_seen)
		chrome_known(to, &to->device, GP_KNOWN_DEVICE, &event->pid);
	if (!event->stream.is_seen && to->layer != GP_LAYER_WAIT)
		chrome_known(to, &to->stream, GP_KNOWN_STREAM, &event->tid);
	if (!event->queue.is_seen && (to->known & GP_KNOWN_STREAM)) {
		to->queue = to->stream;
		to->known |= GP_KNOWN_QUEUE;
	}
	if (to->layer == GP_LAYER_WAIT && event->wait_stream.is_seen && event->wait_correlation.is_seen) {
		to->recorded_stream = event->wait_stream.value;
		to->recorded_correlation = event->wait_correlation.value;
		to->known |= GP_KNOWN_RECORDED;
	}
}

static void chrome_other(const struct chrome_event *event, const struct chrome_lane *lane, struct gp_profile_event *to)
{
	bool is_lane = lane && lane->kind != CHROME_OTHER;

	/* A lane is no process: only what args say counts then. */
	chrome_known(to, &to->pid, GP_KNOWN_PID, event->real_pid.is_seen || is_lane ? &event->real_pid : &event->pid);
	chrome_known(to, &to->tid, GP_KNOWN_TID,
		     event->real_tid.is_seen || (is_lane && lane->kind == CHROME_GPU) ? &event->real_tid : &event->tid);
	chrome_known(to, &to->correlation, GP_KNOWN_CORRELATION, &event->correlation);
	if (to->layer == GP_LAYER_KERNEL || to->layer == GP_LAYER_COPY)
		chrome_work(event, lane, to);
}

static int chrome_emit_xla(struct chrome *chrome, const struct chrome_lane *lane, uint64_t start_ns, uint64_t end_ns,
			   struct gp_error *error)
{
	struct chrome_event *event = &chrome->event;
	enum gp_layer layer = gp_chrome_xla_layer(&chrome->streams, lane, event);
	struct gp_profile_event to;

	chrome->json.input->format = "Chrome JSON of XLA";
	gp_trace_event_init(&to, layer, event->name, strlen(event->name));
	to.start_ns = start_ns;
	to.end_ns = end_ns;
	to.row = chrome->rows;
	gp_chrome_xla_place(&chrome->streams, lane, event, &to);
	return chrome->sink->event(chrome->sink->context, &to, error);
}

static int chrome_emit(struct chrome *chrome, uint64_t start_ns, uint64_t end_ns, struct gp_error *error)
{
	struct chrome_event *event = &chrome->event;
	const struct chrome_lane *lane = event->pid.is_seen ? chrome_lane(chrome, event->pid.value) : NULL;
	enum gp_layer layer = GP_LAYER_MARKER;
	bool is_kineto = (!lane || lane->kind == CHROME_OTHER) && chrome_kineto_layer(event, &layer);
	struct gp_profile_event to;

	if (lane && (lane->kind == CHROME_XLA_GPU || lane->kind == CHROME_XLA_HOST))
		return chrome_emit_xla(chrome, lane, start_ns, end_ns, error);
	if (!is_kineto && !chrome_layer(event, lane, &layer))
		return 0;
	if (is_kineto)
		chrome->json.input->format = "Chrome JSON of PyTorch";
	/* The same name on the host is another range: this one is as long as its kernels. */
	if (is_kineto && !strcmp(event->category, "gpu_user_annotation"))
		(void)snprintf(event->name + strlen(event->name), sizeof(event->name) - strlen(event->name),
			       " (on the GPU)");
	gp_trace_event_init(&to, layer, event->name, strlen(event->name));
	to.start_ns = start_ns;
	to.end_ns = end_ns;
	to.row = chrome->rows;
	if (is_kineto)
		chrome_kineto(event, &to);
	else
		chrome_other(event, lane, &to);
	return chrome->sink->event(chrome->sink->context, &to, error);
}

static int chrome_begin(struct chrome *chrome)
{
	const struct chrome_event *event = &chrome->event;
	struct chrome_open *open = &chrome->open[chrome->open_count];

	if (chrome->open_count == CHROME_OPEN_MAX) {
		chrome->lost++;
		return 0;
	}
	chrome->open_count++;
	open->pid = event->pid.value;
	open->tid = event->tid.value;
	open->start_ns = event->time_ns;
	(void)snprintf(open->name, sizeof(open->name), "%.127s", event->name);
	return 0;
}

static int chrome_end(struct chrome *chrome, struct gp_error *error)
{
	struct chrome_event *event = &chrome->event;

	for (uint32_t i = chrome->open_count; i-- > 0;) {
		struct chrome_open open = chrome->open[i];

		if (open.pid != event->pid.value || open.tid != event->tid.value)
			continue;
		memmove(&chrome->open[i], &chrome->open[i + 1], (chrome->open_count - i - 1) * sizeof(open));
		chrome->open_count--;
		(void)snprintf(event->name, sizeof(event->name), "%s", open.name);
		return chrome_emit(chrome, open.start_ns, event->time_ns, error);
	}
	chrome->lost++;
	return 0;
}

static int chrome_complete(struct chrome *chrome, struct gp_error *error)
{
	struct chrome_event *event = &chrome->event;
	uint64_t end_ns = 0;

	if (event->begin.is_seen && event->end.is_seen)
		return chrome_emit(chrome, event->begin.value, event->end.value, error);
	/* Some tools leave "dur" out of what was open when they stopped. The end is unknown: left out, and counted. */
	if (!event->is_broken && (!event->has_time || !event->has_duration))
		return chrome_emit(chrome, 0, 0, error);
	if (event->is_broken || __builtin_add_overflow(event->time_ns, event->duration_ns, &end_ns))
		return gp_error_set(error, -EINVAL,
				    "%s:%" PRIu32 ": event %" PRIu64 " (\"X\") has a ts or dur that is no number of "
				    "microseconds",
				    chrome->json.input->file_name, chrome->json.json.line, chrome->rows);
	return chrome_emit(chrome, event->time_ns, end_ns, error);
}

static int chrome_element(void *context, struct gp_json_input *json, struct gp_error *error)
{
	struct chrome *chrome = context;
	int r;

	memset(&chrome->event, 0, sizeof(chrome->event));
	r = gp_json_input_object(json, chrome_event_member, chrome, error);
	if (r)
		return r;
	chrome->rows++;
	chrome->is_trace |= chrome->event.phase;
	switch (chrome->event.phase) {
	case 'M': chrome_metadata(chrome); return 0;
	case 'X': return chrome_complete(chrome, error);
	case 'B': return chrome->event.has_time ? chrome_begin(chrome) : 0;
	case 'E': return chrome->event.has_time ? chrome_end(chrome, error) : 0;
	default: return 0;
	}
}

static int chrome_job_member(void *context, struct gp_json_input *json, const char *key, struct gp_error *error)
{
	struct chrome *chrome = context;
	struct gp_fact fact = { .kind = GP_FACT_RANK, .text = "" };
	int r = gp_json_input_next(json, error);

	if (r)
		return r;
	if (!strcmp(key, "rank") && gp_json_input_u64(json, &fact.value))
		r = chrome->sink->fact(chrome->sink->context, &fact, error);
	return r ? r : gp_json_input_skip(json, error);
}

static int chrome_top_member(void *context, struct gp_json_input *json, const char *key, struct gp_error *error)
{
	struct chrome *chrome = context;
	int r = gp_json_input_next(json, error);

	if (!r && !strcmp(key, "distributedInfo"))
		return gp_json_input_object(json, chrome_job_member, chrome, error);
	if (r || strcmp(key, "traceEvents"))
		return r ? r : gp_json_input_skip(json, error);
	chrome->is_found = true;
	return gp_json_input_array(json, chrome_element, chrome, error);
}

static int chrome_read(struct chrome *chrome, struct gp_error *error)
{
	const struct gp_fact rank = { .kind = GP_FACT_RANK, .text = "", .value = UINT64_MAX };
	int r = gp_json_input_next(&chrome->json, error);

	if (!r)
		r = chrome->sink->fact(chrome->sink->context, &rank, error);
	if (r)
		return r;
	if (chrome->json.json.type == GP_JSON_ARRAY_BEGIN) {
		r = gp_json_input_array(&chrome->json, chrome_element, chrome, error);
		chrome->is_found = chrome->is_trace || !chrome->rows; /* any list may stand in a file */
	} else {
		r = gp_json_input_object(&chrome->json, chrome_top_member, chrome, error);
	}
	if (!r)
		r = gp_json_input_next(&chrome->json, error);
	if (!r && !chrome->is_found)
		return gp_error_set(error, -ENOMSG,
				    "%s: JSON, but no trace: there is neither \"traceEvents\" nor "
				    "\"rocprofiler-sdk-tool\"",
				    chrome->json.input->file_name);
	if (!r && (chrome->lost || chrome->open_count)) {
		struct gp_fact fact = { .kind = GP_FACT_WARNING, .row = chrome->rows };

		fact.text = "events that begin and never end, or end and never began, are left out";
		r = chrome->sink->fact(chrome->sink->context, &fact, error);
	}
	return r;
}

int gp_read_chrome_json(struct gp_input *input, const struct gp_sink *sink, struct gp_error *error)
{
	GP_AUTO_FREE struct chrome *chrome = calloc(1, sizeof(*chrome));

	if (!chrome)
		return gp_error_set(error, -ENOMEM, "%s: not enough memory", input->file_name);
	chrome->sink = sink;
	gp_json_input_init(&chrome->json, input);
	return chrome_read(chrome, error);
}
