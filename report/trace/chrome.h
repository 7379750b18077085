/* SPDX-License-Identifier: MIT */
/* What the readers of Chrome's trace event format share: one event as it stands in the file, and the lanes that stand
 * in the place of processes. */
#ifndef GP_REPORT_TRACE_CHROME_H
#define GP_REPORT_TRACE_CHROME_H

#include <stdbool.h>
#include <stdint.h>
#include "report/trace/event.h"
#include "report/trace/json_input.h"

#define CHROME_NAME_SIZE  1024u
#define CHROME_STREAM_MAX 1024u

/* What a "process" of the file is. */
enum chrome_lane_kind {
	CHROME_UNKNOWN,
	CHROME_HIP,
	CHROME_HSA,
	CHROME_COPY,
	CHROME_GPU,
	CHROME_BARRIER,
	CHROME_XLA_GPU,
	CHROME_XLA_HOST,
	CHROME_OTHER
};

struct chrome_lane {
	uint64_t pid;
	enum chrome_lane_kind kind;
	bool has_device;
	uint64_t device;
};

/* A value that may be a number or a text. */
struct chrome_value {
	bool is_seen;
	uint64_t value;
};

enum chrome_xla_kind { CHROME_XLA_UNKNOWN, CHROME_XLA_KERNEL, CHROME_XLA_COPY, CHROME_XLA_MEMORY };

/* What only XLA's events say of themselves. */
struct chrome_xla {
	enum chrome_xla_kind kind;
	bool has_context; /* of CUDA */
	bool is_async;
	struct chrome_value device, correlation, size;
};

struct chrome_event {
	char phase, name[CHROME_NAME_SIZE], category[64], description[64], lane_name[64];
	struct chrome_value pid, tid, begin, end, real_pid, real_tid, dispatch, complete, device, queue, stream,
		correlation, size, priority, wait_stream, wait_correlation;
	uint32_t grid_count; /* numbers of "grid" */
	uint64_t grid;       /* their product */
	bool has_time, has_duration;
	bool is_broken; /* ts or dur is there and is no time */
	uint64_t time_ns, duration_ns;
	struct chrome_xla xla;
};

/* The threads of XLA's devices that are streams. The others repeat the streams' work under names of operations. */
struct chrome_streams {
	uint32_t count;
	struct {
		uint64_t pid, tid, stream;
	} streams[CHROME_STREAM_MAX];
};

/* True: this is a process of a profile of XLA. */
bool gp_chrome_xla_lane(const char *name, struct chrome_lane *lane);
/* A thread of such a process has a name. */
void gp_chrome_xla_thread(struct chrome_streams *streams, const struct chrome_event *event);
void gp_chrome_xla_member(struct chrome_xla *xla, const struct gp_json_input *json, const char *key);
/* What an event of such a process is. It may get another name. */
enum gp_layer gp_chrome_xla_layer(const struct chrome_streams *streams, const struct chrome_lane *lane,
				  struct chrome_event *event);
/* Where it was, and by whom. */
void gp_chrome_xla_place(const struct chrome_streams *streams, const struct chrome_lane *lane,
			 const struct chrome_event *event, struct gp_profile_event *to);

#endif
