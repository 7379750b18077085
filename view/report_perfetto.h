/* SPDX-License-Identifier: MIT */
/* Writes the events of a trace as native Perfetto TrackEvents, one by one: each thread of a process is a track, each
 * hardware queue a track of its device; work that overlaps in one queue goes to lanes of its own. */
#ifndef GP_VIEW_REPORT_PERFETTO_H
#define GP_VIEW_REPORT_PERFETTO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct gp_report_event {
	const char *name, *category; /* category: "HIP", "kernel", … */
	uint32_t name_index;         /* the same for every event of that name; below 2^15 */
	uint64_t start_ns, end_ns;
	/* A thread, or a queue of a device; numbers that the caller chose, below 2^20. */
	bool is_engine;
	uint32_t track, device_index, process_index;
	uint32_t rank; /* number + 1; 0: the files are not of several ranks. Those may have the same numbers. */
	bool has_pid, has_tid, has_device, has_queue, has_size, has_correlation;
	uint64_t pid, tid, device, queue, size, correlation;
};

struct gp_report_perfetto; /* opaque */

struct gp_report_perfetto *gp_report_perfetto_create(FILE *stream); /* NULL: no memory */
/* Events come in the order of their starts. 0 or a negative errno. */
int gp_report_perfetto_add(struct gp_report_perfetto *perfetto, const struct gp_report_event *event);
/* Flushes; -EIO if the stream failed. */
int gp_report_perfetto_finish(struct gp_report_perfetto *perfetto);
void gp_report_perfetto_destroy(struct gp_report_perfetto *perfetto);

#endif
