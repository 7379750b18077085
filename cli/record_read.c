/* SPDX-License-Identifier: MIT */
/* Owns the reading of a record back into what the views draw. A queue's work is taken to run while the queue has work
 * and its gate is open: that is what the daemon knows. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/event.h"
#include "cli/field.h"
#include "cli/record_file.h"

#define READ_CLIENT_MAX 4096u
#define READ_QUEUE_MAX  65536u
#define READ_DEVICE_MAX 64u
#define READ_WORD_MAX   256u
#define READ_NONE       UINT64_MAX

struct read_queue {
	uint64_t pid, gpu_id, queue_id;
	uint32_t client, device;
	uint64_t busy_ns; /* since when it has work; READ_NONE: it has none */
	uint64_t open_ns; /* since when it is open; READ_NONE: it is closed */
};

struct reader {
	struct gp_record *record;
	struct read_queue *queues;
	uint64_t *pids; /* of the clients */
	uint64_t gpu_ids[READ_DEVICE_MAX];
	uint64_t first_ns, last_ns;
	uint32_t queue_count, queue_room, client_room, slice_room, mark_room;
	bool is_out_of_memory;
};

/* Room for one more element, zeroed; NULL: no memory. */
static void *read_grow(struct reader *reader, void *array_pointer, uint32_t count, uint32_t *room, size_t size)
{
	void **array = array_pointer;
	uint32_t wanted = *room ? *room * 2 : 64;
	void *grown;

	if (count == *room) {
		grown = realloc(*array, wanted * size);
		reader->is_out_of_memory |= !grown;
		if (!grown)
			return NULL;
		*array = grown;
		*room = wanted;
	}
	return memset((char *)*array + count * size, 0, size);
}

/* The reason, kept once. */
static const char *read_word(struct reader *reader, const char *word)
{
	struct gp_record *record = reader->record;

	if (!*word)
		return NULL;
	for (uint32_t i = 0; i < record->word_count; i++)
		if (!strcmp(record->words[i], word))
			return record->words[i];
	if (record->word_count == READ_WORD_MAX)
		return "another reason";
	if (!record->words)
		record->words = calloc(READ_WORD_MAX, sizeof(*record->words));
	if (!record->words || !(record->words[record->word_count] = strdup(word))) {
		reader->is_out_of_memory = true;
		return NULL;
	}
	return record->words[record->word_count++];
}

static uint32_t read_device(struct reader *reader, uint64_t gpu_id)
{
	struct gp_result *result = &reader->record->result;

	for (uint32_t i = 0; i < result->device_count; i++)
		if (reader->gpu_ids[i] == gpu_id)
			return i;
	if (result->device_count == READ_DEVICE_MAX)
		return READ_DEVICE_MAX - 1;
	reader->gpu_ids[result->device_count] = gpu_id;
	return result->device_count++;
}

/* UINT32_MAX: too many, or no memory. */
static uint32_t read_client(struct reader *reader, uint64_t pid, const struct gp_event *event)
{
	struct gp_result_run *run = &reader->record->run;
	struct gp_result_client *client;
	uint32_t room = reader->client_room;

	for (uint32_t i = 0; i < run->client_count; i++)
		if (reader->pids[i] == pid)
			return i;
	if (run->client_count == READ_CLIENT_MAX || !event)
		return UINT32_MAX;
	client = read_grow(reader, &run->clients, run->client_count, &room, sizeof(*client));
	if (!client ||
	    !read_grow(reader, &reader->pids, run->client_count, &reader->client_room, sizeof(*reader->pids)))
		return UINT32_MAX;
	(void)snprintf(client->name, sizeof(client->name), "%.24s %llu", event->name[0] ? event->name : "pid",
		       (unsigned long long)pid);
	client->priority = event->priority <= 99 ? (int32_t)event->priority : 0;
	gp_hist_init(&client->latency_ns);
	reader->pids[run->client_count] = pid;
	return run->client_count++;
}

static struct read_queue *read_queue(struct reader *reader, const struct gp_event *event)
{
	struct read_queue *queue;
	uint32_t client;

	if (event->pid == GP_EVENT_UNKNOWN || event->queue_id == GP_EVENT_UNKNOWN || event->gpu_id == GP_EVENT_UNKNOWN)
		return NULL;
	for (uint32_t i = 0; i < reader->queue_count; i++) {
		queue = &reader->queues[i];
		if (queue->pid == event->pid && queue->queue_id == event->queue_id && queue->gpu_id == event->gpu_id)
			return queue;
	}
	client = read_client(reader, event->pid, event);
	if (client == UINT32_MAX || reader->queue_count == READ_QUEUE_MAX)
		return NULL;
	queue = read_grow(reader, &reader->queues, reader->queue_count, &reader->queue_room, sizeof(*queue));
	if (!queue)
		return NULL;
	*queue = (struct read_queue){ .pid = event->pid,
				      .gpu_id = event->gpu_id,
				      .queue_id = event->queue_id,
				      .client = client,
				      .device = read_device(reader, event->gpu_id),
				      .busy_ns = READ_NONE };
	reader->queue_count++;
	return queue;
}

/* What ran from then until now. */
static void read_slice(struct reader *reader, const struct read_queue *queue, uint64_t now_ns, bool preempted)
{
	struct gp_result_run *run = &reader->record->run;
	struct gp_result_slice *slice;
	uint64_t start_ns;

	if (queue->busy_ns == READ_NONE || queue->open_ns == READ_NONE)
		return;
	start_ns = queue->busy_ns > queue->open_ns ? queue->busy_ns : queue->open_ns;
	if (start_ns >= now_ns)
		return;
	slice = read_grow(reader, &run->slices, run->slice_count, &reader->slice_room, sizeof(*slice));
	if (!slice)
		return;
	*slice = (struct gp_result_slice){ .start_ns = start_ns,
					   .end_ns = now_ns,
					   .device = queue->device,
					   .client = queue->client,
					   .queue = (uint32_t)(queue - reader->queues),
					   .pipe = UINT32_MAX,
					   .slot = UINT32_MAX,
					   .preempted = preempted };
	run->slice_count++;
}

static void read_mark(struct reader *reader, const struct gp_event *event, const struct read_queue *queue,
		      enum gp_result_mark_type type, uint64_t length_ns, uint64_t now_ns)
{
	struct gp_result_run *run = &reader->record->run;
	struct gp_result_mark *mark;

	mark = read_grow(reader, &run->marks, run->mark_count, &reader->mark_room, sizeof(*mark));
	if (!mark)
		return;
	*mark = (struct gp_result_mark){ .type = type,
					 .start_ns = length_ns < now_ns ? now_ns - length_ns : 0,
					 .end_ns = now_ns,
					 .device = queue->device,
					 .client = queue->client,
					 .other = read_client(reader, event->other_pid, NULL),
					 .queue = (uint32_t)(queue - reader->queues),
					 .why = read_word(reader, event->why) };
	run->mark_count++;
}

static void read_gate(struct reader *reader, const struct gp_event *event, struct read_queue *queue, uint64_t now_ns)
{
	struct gp_result_run *run = &reader->record->run;

	if (!strcmp(event->event, "closed")) {
		read_slice(reader, queue, now_ns, queue->busy_ns != READ_NONE);
		run->preemptions += queue->busy_ns != READ_NONE && queue->open_ns != READ_NONE;
		queue->open_ns = READ_NONE;
	} else if (!strcmp(event->event, "opened") || !strcmp(event->event, "gate-lost")) {
		if (queue->open_ns == READ_NONE)
			queue->open_ns = now_ns;
	} else if (!strcmp(event->event, "busy")) {
		queue->busy_ns = queue->busy_ns == READ_NONE ? now_ns : queue->busy_ns;
	} else if (!strcmp(event->event, "idle") || !strcmp(event->event, "queue-remove")) {
		read_slice(reader, queue, now_ns, false);
		queue->busy_ns = READ_NONE;
	}
}

static void read_event(struct reader *reader, const struct gp_event *event)
{
	static const struct {
		const char *event;
		enum gp_result_mark_type type;
	} marks[] = { { "close", GP_MARK_CLOSE },         { "open", GP_MARK_OPEN },
		      { "left-open", GP_MARK_LEFT_OPEN }, { "turn", GP_MARK_TURN },
		      { "inversion", GP_MARK_INVERSION }, { "quarantine", GP_MARK_FAULT },
		      { "order-failed", GP_MARK_FAULT },  { "plan-timeout", GP_MARK_FAULT },
		      { "gate-lost", GP_MARK_FAULT } };
	struct gp_result_run *run = &reader->record->run;
	struct read_queue *queue;
	uint64_t now_ns, length_ns;

	if (!strcmp(event->event, "lost") && event->value != GP_EVENT_UNKNOWN)
		reader->record->lost_count += event->value;
	if (event->t_ns == GP_EVENT_UNKNOWN)
		return;
	if (reader->first_ns == READ_NONE)
		reader->first_ns = event->t_ns;
	now_ns = event->t_ns > reader->first_ns ? event->t_ns - reader->first_ns : 0;
	reader->last_ns = now_ns > reader->last_ns ? now_ns : reader->last_ns;
	queue = read_queue(reader, event);
	if (!queue)
		return;
	read_gate(reader, event, queue, now_ns);
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		if (strcmp(event->event, marks[i].event) != 0)
			continue;
		length_ns = marks[i].type == GP_MARK_INVERSION && event->value != GP_EVENT_UNKNOWN ? event->value : 0;
		read_mark(reader, event, queue, marks[i].type, length_ns, now_ns);
		run->inversion_count += marks[i].type == GP_MARK_INVERSION;
		run->inversion_ns += length_ns;
		run->inversion_ns_max = length_ns > run->inversion_ns_max ? length_ns : run->inversion_ns_max;
	}
}

/* Line by line; the header has been seen to be one. */
static void read_lines(struct reader *reader, const char *text, size_t size)
{
	const char *end = text + size;
	struct gp_event event;

	while (text < end && !reader->is_out_of_memory) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t length = (size_t)((stop ? stop : end) - text);

		if (length && !gp_event_read(&event, text, length, NULL)) {
			reader->record->event_count++;
			read_event(reader, &event);
		} else if (length) {
			reader->record->skipped++;
		}
		text += length + 1;
	}
	for (uint32_t i = 0; i < reader->queue_count; i++)
		read_slice(reader, &reader->queues[i], reader->last_ns, false);
}

int gp_record_read(struct gp_record *record, const char *text, size_t size, const char *name, struct gp_error *error)
{
	struct reader reader = { .record = record, .first_ns = READ_NONE };
	const char *stop = memchr(text, '\n', size);
	size_t head = stop ? (size_t)(stop - text) : size;
	uint64_t version = 0;

	memset(record, 0, sizeof(*record));
	if (!gp_field_u64(text, head, "gpreempt_record", &version))
		return gp_error_set(error, -EINVAL,
				    "%s is not a recording: its first line is not the one that gpreempt record writes",
				    name);
	if (version != 1)
		return gp_error_set(error, -EPROTONOSUPPORT,
				    "%s is a record of version %llu; this program reads version 1", name,
				    (unsigned long long)version);
	(void)snprintf(record->run.policy, sizeof(record->run.policy), "recorded");
	(void)snprintf(record->result.device, sizeof(record->result.device), "GPU");
	(void)snprintf(record->result.device_title, sizeof(record->result.device_title), "a recording");
	read_lines(&reader, stop ? stop + 1 : text + size, stop ? size - head - 1 : 0);
	record->run.duration_ns = record->run.window_end_ns = reader.last_ns;
	record->result.run_count = 1;
	record->result.runs = &record->run;
	free(reader.queues);
	free(reader.pids);
	if (!reader.is_out_of_memory)
		return 0;
	gp_record_fini(record);
	return gp_error_set(error, -ENOMEM, "out of memory");
}

void gp_record_fini(struct gp_record *record)
{
	for (uint32_t i = 0; i < record->word_count; i++)
		free(record->words[i]);
	free(record->words);
	free(record->run.clients);
	free(record->run.slices);
	free(record->run.marks);
	memset(record, 0, sizeof(*record));
}
