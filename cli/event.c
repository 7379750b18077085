/* SPDX-License-Identifier: MIT */
/* Owns the reading of events: lines out of packets, values out of a line. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/clean.h"
#include "cli/event.h"
#include "lib/json.h"

static void event_text(char *place, size_t size, const struct gp_json *json)
{
	if (json->type == GP_JSON_STRING)
		gp_clean_copy(place, size, json->string);
}

/* The number's place for a key, or NULL. */
static uint64_t *event_number(struct gp_event *event, const char *key, bool is_other)
{
	static const struct {
		const char *key;
		size_t offset;
	} numbers[] = {
		{ "t_ns", offsetof(struct gp_event, t_ns) },
		{ "real_ns", offsetof(struct gp_event, real_ns) },
		{ "gpu_id", offsetof(struct gp_event, gpu_id) },
		{ "pid", offsetof(struct gp_event, pid) },
		{ "queue_id", offsetof(struct gp_event, queue_id) },
		{ "priority", offsetof(struct gp_event, priority) },
		{ "value", offsetof(struct gp_event, value) },
	};

	if (is_other)
		return !strcmp(key, "pid")      ? &event->other_pid :
		       !strcmp(key, "queue_id") ? &event->other_queue_id :
						  NULL;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!strcmp(key, numbers[i].key))
			return (uint64_t *)(void *)((char *)event + numbers[i].offset);
	return NULL;
}

static int event_object(struct gp_event *event, struct gp_json *json, bool is_other)
{
	char key[32];
	int r;

	while (!(r = gp_json_next(json, NULL)) && json->type == GP_JSON_KEY) {
		uint64_t *number;

		gp_clean_copy(key, sizeof(key), json->string);
		r = gp_json_next(json, NULL);
		if (r)
			return r;
		number = event_number(event, key, is_other);
		if (number && json->type == GP_JSON_NUMBER && json->is_u64)
			*number = json->u64;
		else if (!is_other && !strcmp(key, "event"))
			event_text(event->event, sizeof(event->event), json);
		else if (!is_other && !strcmp(key, "why"))
			event_text(event->why, sizeof(event->why), json);
		else if (!is_other && !strcmp(key, "name"))
			event_text(event->name, sizeof(event->name), json);
		else if (!is_other && !strcmp(key, "text"))
			event_text(event->text, sizeof(event->text), json);
		if (!is_other && !strcmp(key, "other") && json->type == GP_JSON_OBJECT_BEGIN)
			r = event_object(event, json, true);
		else if (json->type == GP_JSON_OBJECT_BEGIN || json->type == GP_JSON_ARRAY_BEGIN)
			r = gp_json_skip(json, NULL);
		if (r)
			return r;
	}
	return r;
}

int gp_event_read(struct gp_event *event, const char *line, size_t size, struct gp_error *error)
{
	struct gp_event read = { .t_ns = GP_EVENT_UNKNOWN,
				 .real_ns = GP_EVENT_UNKNOWN,
				 .gpu_id = GP_EVENT_UNKNOWN,
				 .pid = GP_EVENT_UNKNOWN,
				 .queue_id = GP_EVENT_UNKNOWN,
				 .priority = GP_EVENT_UNKNOWN,
				 .value = GP_EVENT_UNKNOWN,
				 .other_pid = GP_EVENT_UNKNOWN,
				 .other_queue_id = GP_EVENT_UNKNOWN };
	struct gp_json json;

	gp_json_init(&json, line, size, "event");
	if (gp_json_next(&json, NULL) || json.type != GP_JSON_OBJECT_BEGIN || event_object(&read, &json, false) ||
	    json.type != GP_JSON_OBJECT_END || gp_json_next(&json, NULL) || json.type != GP_JSON_END)
		return gp_error_set(error, -EPROTO, "an event that is not one JSON object");
	*event = read;
	return 0;
}

int gp_event_stream_open(struct gp_event_stream *stream, uint32_t flags, struct gp_error *error)
{
	struct gp_control_request request = { .verb = GP_CONTROL_EVENTS, .flags = flags };
	int r = gp_control_open(&stream->control, error);

	stream->used = stream->taken = 0;
	stream->is_over = false;
	stream->buffer = NULL;
	if (r)
		return r;
	stream->buffer = malloc(GP_EVENT_LINE_SIZE + GP_WIRE_SIZE_MAX);
	r = stream->buffer ? gp_control_send(&stream->control, &request, error) :
			     gp_error_set(error, -ENOMEM, "out of memory");
	if (r)
		gp_event_stream_close(stream);
	return r;
}

void gp_event_stream_close(struct gp_event_stream *stream)
{
	gp_control_close(&stream->control);
	free(stream->buffer);
	stream->buffer = NULL;
}

/* A whole line of what has come. */
static bool event_line(struct gp_event_stream *stream, const char **ret_line, size_t *ret_size)
{
	char *start = stream->buffer + stream->taken;
	char *end = memchr(start, '\n', stream->used - stream->taken);

	if (!end)
		return false;
	*ret_line = start;
	*ret_size = (size_t)(end - start);
	stream->taken += *ret_size + 1;
	return true;
}

int gp_event_stream_next(struct gp_event_stream *stream, int timeout_ms, const char **ret_line, size_t *ret_size,
			 struct gp_error *error)
{
	for (;;) {
		const char *text = NULL;
		size_t size = 0;
		int r;

		while (event_line(stream, ret_line, ret_size))
			if (*ret_size)
				return 1;
		memmove(stream->buffer, stream->buffer + stream->taken, stream->used - stream->taken);
		stream->used -= stream->taken;
		stream->taken = 0;
		if (stream->is_over)
			return 0;
		r = gp_control_next(&stream->control, timeout_ms, &text, &size, error);
		if (r < 0)
			return r;
		stream->is_over = r == 0;
		if (stream->used + size > GP_EVENT_LINE_SIZE + GP_WIRE_SIZE_MAX - 1u)
			return gp_error_set(error, -EPROTO, "the daemon's answer is invalid: a line without an end");
		memcpy(stream->buffer + stream->used, text, size);
		stream->used += size;
	}
}
