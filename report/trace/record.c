/* SPDX-License-Identifier: MIT */
/*
 * Owns the files of `gpreempt record` (docs/record.md): a header line, then one event of the daemon a line. A queue's
 * work runs while the queue has work and its gate is open, which is what the daemon knows; each such stretch is an
 * event here, with the time since which it could have run. Lines that are no objects of ours are passed over, a cut
 * last line too.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "lib/cleanup.h"
#include "lib/json.h"
#include "report/trace/lines.h"
#include "report/trace/readers.h"

#define RECORD_QUEUES 4096u
#define RECORD_NONE   UINT64_MAX

struct record_queue {
	uint64_t pid, device, queue;
	uint64_t wanted_ns; /* since when it has work and has not run; RECORD_NONE: it has none */
	uint64_t start_ns;  /* since when it runs; RECORD_NONE: it does not */
	bool is_closed, is_busy;
	int64_t priority;
	char name[48];
};

struct record {
	struct gp_lines lines;
	const struct gp_sink *sink;
	struct gp_json json;
	uint32_t queue_count;
	struct record_queue queues[RECORD_QUEUES];
	uint64_t last_ns, lost, skipped;
	/* the line */
	char event[32], name[48], text[160];
	bool has_version, has_time, has_device, has_pid, has_queue, has_priority, has_value;
	uint64_t version, time_ns, device, pid, queue, priority, value;
};

static int record_number(struct record *record, bool *ret_has, uint64_t *ret_value)
{
	*ret_has = record->json.type == GP_JSON_NUMBER && record->json.is_u64;
	if (*ret_has)
		*ret_value = record->json.u64;
	return gp_json_skip(&record->json, NULL);
}

static int record_word(struct record *record, char *to, size_t size)
{
	if (record->json.type == GP_JSON_STRING)
		(void)snprintf(to, size, "%.*s", (int)size - 1, record->json.string);
	return gp_json_skip(&record->json, NULL);
}

static int record_member(struct record *record, const char *key)
{
	const struct {
		const char *key;
		bool *has;
		uint64_t *value;
	} numbers[] = {
		{ "gpreempt_record", &record->has_version, &record->version },
		{ "t_ns", &record->has_time, &record->time_ns },
		{ "gpu_id", &record->has_device, &record->device },
		{ "pid", &record->has_pid, &record->pid },
		{ "queue_id", &record->has_queue, &record->queue },
		{ "priority", &record->has_priority, &record->priority },
		{ "value", &record->has_value, &record->value },
	};

	if (!strcmp(key, "event"))
		return record_word(record, record->event, sizeof(record->event));
	if (!strcmp(key, "name"))
		return record_word(record, record->name, sizeof(record->name));
	if (!strcmp(key, "text"))
		return record_word(record, record->text, sizeof(record->text));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!strcmp(key, numbers[i].key))
			return record_number(record, numbers[i].has, numbers[i].value);
	return gp_json_skip(&record->json, NULL);
}

/* False: the line is no object. */
static bool record_parse(struct record *record)
{
	char key[32];

	record->has_version = record->has_time = record->has_device = record->has_pid = record->has_queue =
		record->has_priority = record->has_value = false;
	record->event[0] = record->name[0] = record->text[0] = '\0';
	gp_json_init(&record->json, record->lines.text, record->lines.size, "line");
	record->json.cut_long = true;
	if (gp_json_next(&record->json, NULL) || record->json.type != GP_JSON_OBJECT_BEGIN)
		return false;
	while (!gp_json_next(&record->json, NULL)) {
		if (record->json.type == GP_JSON_OBJECT_END)
			return true;
		(void)snprintf(key, sizeof(key), "%.31s", record->json.string);
		if (gp_json_next(&record->json, NULL) || record_member(record, key))
			return false;
	}
	return false;
}

static struct record_queue *record_queue(struct record *record)
{
	struct record_queue *queue;

	if (!record->has_pid || !record->has_queue || !record->has_device)
		return NULL;
	for (uint32_t i = 0; i < record->queue_count; i++) {
		queue = &record->queues[i];
		if (queue->pid == record->pid && queue->queue == record->queue && queue->device == record->device)
			return queue;
	}
	if (record->queue_count == RECORD_QUEUES)
		return NULL;
	queue = &record->queues[record->queue_count++];
	*queue = (struct record_queue){ .pid = record->pid,
					.device = record->device,
					.queue = record->queue,
					.wanted_ns = RECORD_NONE,
					.start_ns = RECORD_NONE };
	(void)snprintf(queue->name, sizeof(queue->name), "%s", record->name[0] ? record->name : "work");
	return queue;
}

/* What ran until now. */
static int record_stop(struct record *record, struct record_queue *queue, struct gp_error *error)
{
	struct gp_profile_event event;

	if (queue->start_ns == RECORD_NONE)
		return 0;
	gp_trace_event_init(&event, GP_LAYER_KERNEL, queue->name, strlen(queue->name));
	/* The daemon's clock begins near 0, which means "no time" everywhere else. */
	event.start_ns = queue->start_ns ? queue->start_ns : 1;
	event.end_ns = record->last_ns > event.start_ns ? record->last_ns : event.start_ns;
	event.dispatch_ns = queue->wanted_ns < event.start_ns ? queue->wanted_ns : event.start_ns;
	event.pid = queue->pid;
	event.device = queue->device;
	event.queue = queue->queue;
	event.priority = queue->priority;
	event.known = GP_KNOWN_PID | GP_KNOWN_DEVICE | GP_KNOWN_QUEUE | GP_KNOWN_DISPATCH | GP_KNOWN_PRIORITY;
	event.row = record->lines.line;
	queue->start_ns = RECORD_NONE;
	return record->sink->event(record->sink->context, &event, error);
}

static int record_inversion(struct record *record, struct gp_error *error)
{
	struct gp_fact fact = { .kind = GP_FACT_INVERSION, .text = record->text, .value = record->value };

	fact.row = record->lines.line;
	return record->sink->fact(record->sink->context, &fact, error);
}

static int record_event(struct record *record, struct gp_error *error)
{
	struct record_queue *queue;
	uint64_t now_ns;
	int r = 0;

	if (!strcmp(record->event, "lost") && record->has_value)
		record->lost += record->value;
	if (!record->has_time || record->time_ns > INT64_MAX)
		return 0;
	/* Time that goes back stands still. */
	now_ns = record->last_ns = record->time_ns > record->last_ns ? record->time_ns : record->last_ns;
	queue = record_queue(record);
	if (!queue)
		return 0;
	if (record->has_priority && record->priority <= INT32_MAX)
		queue->priority = (int64_t)record->priority;
	if (!strcmp(record->event, "inversion") && record->has_value)
		return record_inversion(record, error);
	if (!strcmp(record->event, "closed")) {
		r = record_stop(record, queue, error);
		queue->is_closed = true;
		queue->wanted_ns = queue->is_busy ? now_ns : RECORD_NONE;
	} else if (!strcmp(record->event, "opened") || !strcmp(record->event, "gate-lost")) {
		if (queue->is_closed && queue->is_busy)
			queue->start_ns = now_ns;
		queue->is_closed = false;
	} else if (!strcmp(record->event, "busy") && !queue->is_busy) {
		queue->is_busy = true;
		queue->wanted_ns = now_ns;
		queue->start_ns = queue->is_closed ? RECORD_NONE : now_ns;
	} else if (!strcmp(record->event, "idle") || !strcmp(record->event, "queue-remove")) {
		r = record_stop(record, queue, error);
		queue->is_busy = false;
		queue->wanted_ns = RECORD_NONE;
	}
	return r;
}

static int record_lines(struct record *record, struct gp_error *error)
{
	int r = gp_lines_next(&record->lines, error);

	if (r < 0)
		return r;
	if (!r || !record_parse(record) || !record->has_version)
		return gp_error_set(error, -EINVAL, "%s:1: not the header of a record", record->lines.input->file_name);
	if (record->version != 1)
		return gp_error_set(error, -EINVAL,
				    "%s:1: a record of version %" PRIu64 "; this program reads version 1",
				    record->lines.input->file_name, record->version);
	while ((r = gp_lines_next(&record->lines, error)) > 0) {
		if (!record_parse(record)) {
			record->skipped++;
			continue;
		}
		r = record_event(record, error);
		if (r)
			return r;
	}
	for (uint32_t i = 0; !r && i < record->queue_count; i++)
		r = record_stop(record, &record->queues[i], error);
	return r;
}

int gp_read_record(struct gp_input *input, const struct gp_sink *sink, struct gp_error *error)
{
	GP_AUTO_FREE struct record *record = calloc(1, sizeof(*record));
	struct gp_fact fact = { .kind = GP_FACT_WARNING };
	char text[128];
	int r;

	if (!record)
		return gp_error_set(error, -ENOMEM, "%s: not enough memory", input->file_name);
	record->sink = sink;
	gp_lines_init(&record->lines, input);
	r = record_lines(record, error);
	if (r || (!record->lost && !record->skipped))
		return r;
	(void)snprintf(text, sizeof(text),
		       "%" PRIu64 " events were lost while recording, %" PRIu64 " lines are not whole", record->lost,
		       record->skipped);
	fact.text = text;
	fact.row = record->lines.line;
	return sink->fact(sink->context, &fact, error);
}
