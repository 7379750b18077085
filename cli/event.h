/* SPDX-License-Identifier: MIT */
/* One event of the daemon (docs/status.md, "Events"), read from its line, and the stream of lines they come in. */
#ifndef GP_CLI_EVENT_H
#define GP_CLI_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "cli/control.h"
#include "lib/error.h"

#define GP_EVENT_UNKNOWN   UINT64_MAX
#define GP_EVENT_LINE_SIZE 65536u

/* Texts are cut and fit for a terminal; numbers that are missing or null are GP_EVENT_UNKNOWN. */
struct gp_event {
	uint64_t t_ns, real_ns, gpu_id, pid, queue_id, priority, value;
	uint64_t other_pid, other_queue_id;
	char event[32], why[32], name[64], text[512];
};

/* -EPROTO with a sentence: not one JSON object. */
int gp_event_read(struct gp_event *event, const char *line, size_t size, struct gp_error *error);

/* The daemon's events as lines. */
struct gp_event_stream {
	struct gp_control control;
	char *buffer; /* what has come and is not taken yet */
	size_t used, taken;
	bool is_over;
};
/* flags: GP_CONTROL_EVENTS_PAST or 0. */
int gp_event_stream_open(struct gp_event_stream *stream, uint32_t flags, struct gp_error *error);
void gp_event_stream_close(struct gp_event_stream *stream);
/* 1: a line without its end, valid until the next call; 0: the answer is over; -EAGAIN: nothing within timeout_ms; or
 * an error with a sentence. */
int gp_event_stream_next(struct gp_event_stream *stream, int timeout_ms, const char **ret_line, size_t *ret_size,
			 struct gp_error *error);

#endif
