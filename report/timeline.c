/* SPDX-License-Identifier: MIT */
/* Owns the picture's data: a second pass that puts events onto lanes, one per thread and layer and one per queue, and
 * merges what is too short to be seen. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "report/analysis.h"

#define TIMELINE_THREADS 8u
#define TIMELINE_QUEUES  24u
#define TIMELINE_LANES   (TIMELINE_THREADS * GP_REPORT_LAYER_COUNT + TIMELINE_QUEUES + 1u)
#define TIMELINE_EXACT   4000u  /* with fewer events nothing is merged */
#define TIMELINE_COLUMNS 12000u /* divided among the lanes */

struct timeline {
	struct gp_analysis *analysis;
	uint32_t thread_lane[TIMELINE_THREADS][GP_REPORT_LAYER_COUNT], marker_lane;
	uint32_t threads[TIMELINE_THREADS], thread_count;
	uint32_t queues[TIMELINE_QUEUES], queue_lane[TIMELINE_QUEUES], queue_count;
	uint64_t least_ns; /* what is shorter may be merged */
	struct timeline_pending {
		bool is_used;
		uint64_t start_ns, end_ns, longest_ns;
		uint32_t name, count;
	} pending[TIMELINE_LANES];
	uint32_t slice_room;
};

/* The busiest first: indices of at most `max` of `count`, by weight. */
static uint32_t timeline_choose(uint32_t *chosen, uint32_t max, uint32_t count,
				uint64_t (*weight)(const struct gp_analysis *analysis, uint32_t index),
				const struct gp_analysis *analysis)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = used;

		if (!weight(analysis, i))
			continue;
		while (at && weight(analysis, chosen[at - 1]) < weight(analysis, i)) {
			if (at < max)
				chosen[at] = chosen[at - 1];
			at--;
		}
		if (at < max)
			chosen[at] = i;
		used += used < max;
	}
	return used;
}

static uint64_t timeline_thread_weight(const struct gp_analysis *analysis, uint32_t index)
{
	return analysis->threads[index].calls;
}

static uint64_t timeline_queue_weight(const struct gp_analysis *analysis, uint32_t index)
{
	return gp_busy_total(&analysis->queues[index].busy) + 1;
}

static uint32_t timeline_lane(struct timeline *timeline, int kind)
{
	struct gp_report *report = timeline->analysis->report;

	report->lanes[report->lane_count].kind = kind;
	return report->lane_count++;
}

static const char *timeline_id(bool is_known, uint64_t id, char *buffer, size_t size)
{
	if (is_known)
		(void)snprintf(buffer, size, "%" PRIu64, id);
	else
		(void)snprintf(buffer, size, "?");
	return buffer;
}

/* Queues are numbered within their process: with several of these the number alone says nothing. */
static void timeline_queue_lanes(struct timeline *timeline)
{
	struct gp_analysis *analysis = timeline->analysis;
	struct gp_report *report = analysis->report;
	char id[22], queue_id[22], pid[22], process[34], rank[24];
	uint32_t users = 0;

	for (uint32_t i = 0; i < analysis->process_count; i++)
		users += analysis->processes[i].gpu.is_used;
	for (uint32_t i = 0; i < timeline->queue_count; i++) {
		const struct analysis_queue *queue = &analysis->queues[timeline->queues[i]];
		const struct analysis_process *owner = &analysis->processes[queue->process];
		bool has_number = queue->has_queue || !queue->is_copy;

		timeline->queue_lane[i] = timeline_lane(timeline, queue->is_copy ? GP_LANE_COPY : GP_LANE_KERNEL);
		rank[0] = '\0';
		if (owner->rank)
			(void)snprintf(rank, sizeof(rank), "rank %" PRIu32 ", ", owner->rank - 1);
		(void)timeline_id(queue->has_device, queue->device, id, sizeof(id));
		(void)timeline_id(queue->has_queue, queue->queue, queue_id, sizeof(queue_id));
		(void)snprintf(process, sizeof(process), ", process %s",
			       timeline_id(owner->has_pid, owner->pid, pid, sizeof(pid)));
		(void)snprintf(report->lanes[report->lane_count - 1].name, sizeof(report->lanes[0].name),
			       "%sGPU %s, %s%s%s%s", rank, id, queue->is_copy ? "copies" : "queue",
			       has_number ? " " : "", has_number ? queue_id : "", users > 1 ? process : "");
	}
}

static void timeline_lanes(struct timeline *timeline)
{
	struct gp_analysis *analysis = timeline->analysis;
	struct gp_report *report = analysis->report;
	char id[24];

	timeline->thread_count = timeline_choose(timeline->threads, TIMELINE_THREADS, analysis->thread_count,
						 timeline_thread_weight, analysis);
	timeline->queue_count = timeline_choose(timeline->queues, TIMELINE_QUEUES, analysis->queue_count,
						timeline_queue_weight, analysis);
	if (report->marker_count) {
		timeline->marker_lane = timeline_lane(timeline, GP_LANE_MARKER);
		(void)snprintf(report->lanes[timeline->marker_lane].name, sizeof(report->lanes[0].name), "ranges");
	}
	for (uint32_t i = 0; i < timeline->thread_count; i++) {
		const struct analysis_thread *thread = &analysis->threads[timeline->threads[i]];

		for (int j = GP_REPORT_LIBRARY; j < GP_REPORT_LAYER_COUNT; j++) {
			timeline->thread_lane[i][j] = GP_ANALYSIS_NONE;
			if (!gp_busy_total(&thread->layers.below[j]) || !report->layers[j].is_traced)
				continue;
			timeline->thread_lane[i][j] = timeline_lane(timeline, j);
			(void)snprintf(report->lanes[report->lane_count - 1].name, sizeof(report->lanes[0].name),
				       "%s, thread %s", gp_report_layer_name(report, j),
				       timeline_id(thread->has_tid, thread->tid, id, sizeof(id)));
		}
	}
	timeline_queue_lanes(timeline);
}

static uint32_t timeline_lane_of(const struct timeline *timeline, const struct gp_trace_record *record)
{
	const struct gp_analysis *analysis = timeline->analysis;
	uint32_t index;
	int layer;

	switch (record->layer) {
	case GP_LAYER_MARKER:
	case GP_LAYER_MEMORY: return timeline->marker_lane;
	case GP_LAYER_KERNEL:
	case GP_LAYER_COPY:
		index = analysis->track_queue[record->track];
		for (uint32_t i = 0; i < timeline->queue_count; i++)
			if (timeline->queues[i] == index)
				return timeline->queue_lane[i];
		return GP_ANALYSIS_NONE;
	case GP_LAYER_WAIT: return GP_ANALYSIS_NONE;
	case GP_LAYER_HIP: layer = GP_REPORT_HIP; break;
	case GP_LAYER_HSA: layer = GP_REPORT_HSA; break;
	case GP_LAYER_DRIVER: layer = GP_REPORT_DRIVER; break;
	default: layer = GP_REPORT_LIBRARY;
	}
	index = analysis->track_thread[record->track];
	for (uint32_t i = 0; i < timeline->thread_count; i++)
		if (timeline->threads[i] == index)
			return timeline->thread_lane[i][layer];
	return GP_ANALYSIS_NONE;
}

static int timeline_flush(struct timeline *timeline, uint32_t lane)
{
	struct gp_report *report = timeline->analysis->report;
	struct timeline_pending *pending = &timeline->pending[lane];

	if (!pending->is_used)
		return 0;
	if (report->slice_count == timeline->slice_room) {
		uint32_t larger = timeline->slice_room ? timeline->slice_room * 2 : 1024;
		struct gp_report_slice *moved = realloc(report->slices, larger * sizeof(*moved));

		if (!moved)
			return -ENOMEM;
		report->slices = moved;
		timeline->slice_room = larger;
	}
	report->slices[report->slice_count++] =
		(struct gp_report_slice){ .lane = lane,
					  .count = pending->count,
					  .start_ns = pending->start_ns - timeline->analysis->first_ns,
					  .end_ns = pending->end_ns - timeline->analysis->first_ns,
					  .name = gp_names_get(&timeline->analysis->store->names, pending->name) };
	pending->is_used = false;
	return 0;
}

static int timeline_add(struct timeline *timeline, uint32_t lane, const struct gp_trace_record *record)
{
	struct timeline_pending *pending = &timeline->pending[lane];
	uint64_t length = record->end_ns - record->start_ns;

	if (pending->is_used) {
		bool is_inside = record->end_ns <= pending->end_ns;
		bool is_short = length < timeline->least_ns &&
				record->start_ns < pending->end_ns + timeline->least_ns &&
				(pending->count > 1 || pending->longest_ns < timeline->least_ns);

		/* Starts too close to be told apart: without this, calls that overlap would each have a slice. */
		bool is_close = record->start_ns < pending->start_ns + timeline->least_ns;

		if (is_inside || is_short || is_close) {
			/* A merged stretch stays short: it is a place where much happens, not one long thing. */
			pending->count++;
			pending->end_ns = record->end_ns > pending->end_ns ? record->end_ns : pending->end_ns;
			if (length > pending->longest_ns) {
				pending->longest_ns = length;
				pending->name = record->name;
			}
			return 0;
		}
		if (timeline_flush(timeline, lane))
			return -ENOMEM;
	}
	*pending = (struct timeline_pending){ true, record->start_ns, record->end_ns, length, record->name, 1 };
	return 0;
}

/* A range as long as the run would hide all others in its lane. */
static bool timeline_is_whole(const struct gp_analysis *analysis, const struct gp_trace_record *record)
{
	return record->layer == GP_LAYER_MARKER &&
	       (record->end_ns - record->start_ns) / 19 >= analysis->report->wall_ns / 20;
}

static int timeline_run(struct timeline *timeline, struct gp_error *error)
{
	struct gp_analysis *analysis = timeline->analysis;
	uint64_t duplicates = analysis->duplicate_count;
	struct gp_trace_record record;
	int r = gp_sweep_rewind(analysis, error);

	while (!r) {
		uint32_t lane;

		r = gp_sweep_next(analysis, &record, error);
		if (r <= 0)
			break;
		gp_rhythm_name(analysis, &record);
		lane = timeline_is_whole(analysis, &record) ? GP_ANALYSIS_NONE : timeline_lane_of(timeline, &record);
		r = lane == GP_ANALYSIS_NONE ? 0 : timeline_add(timeline, lane, &record);
		if (r)
			gp_error_set(error, r, "not enough memory");
	}
	analysis->duplicate_count = duplicates;
	for (uint32_t i = 0; !r && i < analysis->report->lane_count; i++)
		r = timeline_flush(timeline, i);
	return r;
}

int gp_timeline(struct gp_analysis *analysis, struct gp_error *error)
{
	struct timeline *timeline = calloc(1, sizeof(*timeline));
	struct gp_report *report = analysis->report;
	int r;

	report->lanes = calloc(TIMELINE_LANES, sizeof(*report->lanes));
	if (!timeline || !report->lanes) {
		free(timeline);
		return gp_error_set(error, -ENOMEM, "not enough memory");
	}
	timeline->analysis = analysis;
	timeline->marker_lane = GP_ANALYSIS_NONE;
	timeline_lanes(timeline);
	gp_rhythm_sort(analysis);
	if (analysis->event_count > TIMELINE_EXACT)
		timeline->least_ns = report->wall_ns / (TIMELINE_COLUMNS / (report->lane_count + 1u)) + 1;
	r = timeline_run(timeline, error);
	free(timeline);
	return r ? r : gp_rhythm_idles(analysis, error);
}
