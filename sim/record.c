/* SPDX-License-Identifier: MIT */
/* Owns the recording window: a bounded stretch of the run in which slices and marks are kept for the pictures. */
#include <errno.h>
#include <stdlib.h>
#include "sim/state.h"

#define RECORD_WINDOW_NS 200000000ull
#define RECORD_SLICE_MAX 20000u

/* The first arrival of an open-loop service at or after from_ns, drawn from a copy of its stream; from_ns if there
 * is none. */
static uint64_t record_first_arrival_ns(const struct gp_sim *sim, uint64_t from_ns)
{
	const struct gp_work_client *work;
	struct gp_rng rng;
	uint64_t time_ns;
	uint32_t i, n;

	for (i = 0; i < sim->client_count; i++) {
		work = sim->clients[i].info.work;
		if (work->kind != GP_WORK_SERVICE || work->arrival == GP_ARRIVAL_CLOSED)
			continue;
		if (work->arrival == GP_ARRIVAL_EXPLICIT) {
			for (n = 0; n < work->request_count; n++) {
				if (work->start_ns + work->requests[n].offset_ns >= from_ns)
					return work->start_ns + work->requests[n].offset_ns;
			}
			continue;
		}
		rng = sim->clients[i].rng;
		time_ns = work->start_ns + gp_workload_first_gap_ns(work, &rng);
		while (time_ns < from_ns)
			time_ns += gp_workload_next_gap_ns(work, &rng);
		return time_ns;
	}
	return from_ns;
}

int gp_sim_record_init(struct gp_sim *sim)
{
	struct sim_record *record = &sim->record;
	uint64_t start_ns = sim->config.window_start_ns;
	uint64_t window_ns = sim->config.window_ns ? sim->config.window_ns : RECORD_WINDOW_NS;

	record->enabled = !sim->config.no_recording;
	if (!record->enabled)
		return 0;
	if (!start_ns && !sim->config.window_ns) {
		start_ns = record_first_arrival_ns(sim, sim->config.duration_ns / 10);
		/* What ran before the arrival belongs into the picture; a window beyond the end shows nothing. */
		start_ns = start_ns > window_ns / 20 ? start_ns - window_ns / 20 : 0;
		if (start_ns + window_ns > sim->config.duration_ns)
			start_ns = sim->config.duration_ns > window_ns ? sim->config.duration_ns - window_ns : 0;
	}
	record->start_ns = start_ns;
	record->end_ns = start_ns + window_ns;
	if (sim->config.duration_ns && record->end_ns > sim->config.duration_ns && !sim->config.no_arrivals_limit)
		record->end_ns = sim->config.duration_ns;
	record->slice_max = sim->config.slice_max ? sim->config.slice_max : RECORD_SLICE_MAX;
	record->mark_max = record->slice_max;
	record->slices = calloc(record->slice_max, sizeof(*record->slices));
	record->marks = calloc(record->mark_max, sizeof(*record->marks));
	return record->slices && record->marks ? 0 : -ENOMEM;
}

static bool record_wants(struct gp_sim *sim, uint64_t start_ns, uint64_t end_ns)
{
	const struct sim_record *record = &sim->record;

	return record->enabled && !record->is_full && end_ns >= record->start_ns && start_ns < record->end_ns;
}

/* A full window ends early, rather than showing some of what happened later and not the rest. */
static void record_cut(struct gp_sim *sim)
{
	sim->record.is_full = true;
	if (sim->now_ns < sim->record.end_ns)
		sim->record.end_ns = sim->now_ns;
}

void gp_sim_record_slice(struct gp_sim *sim, uint32_t index, const struct gp_gpu_event *event, uint64_t start_ns,
			 bool preempted)
{
	const struct sim_queue *queue = &sim->queues[index];
	struct sim_record *record = &sim->record;

	if (!record_wants(sim, start_ns, sim->now_ns))
		return;
	if (record->slice_count == record->slice_max) {
		record_cut(sim);
		return;
	}
	record->slices[record->slice_count++] = (struct gp_result_slice){
		.start_ns = start_ns,
		.end_ns = event->time_ns,
		.device = queue->info.device,
		.client = queue->info.client,
		.queue = index,
		.pipe = event->pipe,
		.slot = event->slot,
		.tag = event->tag,
		.preempted = preempted,
	};
}

void gp_sim_record_mark(struct gp_sim *sim, const struct gp_result_mark *mark)
{
	struct sim_record *record = &sim->record;

	if (!record_wants(sim, mark->start_ns, mark->end_ns))
		return;
	if (record->mark_count == record->mark_max) {
		record_cut(sim);
		return;
	}
	record->marks[record->mark_count++] = *mark;
}

static bool record_mark_type(enum gp_trace_type type, enum gp_result_mark_type *ret_type)
{
	switch (type) {
	case GP_TRACE_CLOSE: *ret_type = GP_MARK_CLOSE; return true;
	case GP_TRACE_OPEN: *ret_type = GP_MARK_OPEN; return true;
	case GP_TRACE_LEFT_OPEN: *ret_type = GP_MARK_LEFT_OPEN; return true;
	case GP_TRACE_TURN: *ret_type = GP_MARK_TURN; return true;
	case GP_TRACE_QUARANTINE:
	case GP_TRACE_ORDER_FAILED:
	case GP_TRACE_PLAN_TIMEOUT:
	case GP_TRACE_DEVICE_STOPPED:
	case GP_TRACE_HINT_MISSED: *ret_type = GP_MARK_FAULT; return true;
	default: return false;
	}
}

static void record_decision(struct gp_sim *sim, const struct gp_trace_event *event)
{
	/* The core's clock may have jumped; the difference is the same for all it has not told us yet. */
	uint64_t time_ns = event->time_ns - gp_sim_core_now_ns(sim) + sim->now_ns;
	struct gp_result_mark mark = { .start_ns = time_ns,
				       .end_ns = time_ns,
				       .device = event->device,
				       .other = SIM_NONE,
				       .client = SIM_NONE,
				       .queue = SIM_NONE,
				       .why = gp_why_name(event->why) };
	uint32_t other = gp_sim_find_queue(sim, event->other);

	if (!record_mark_type(event->type, &mark.type))
		return;
	if (event->type != GP_TRACE_DEVICE_STOPPED && event->type != GP_TRACE_PLAN_TIMEOUT &&
	    event->tag < sim->queue_count) {
		mark.queue = (uint32_t)event->tag;
		mark.client = sim->queues[mark.queue].info.client;
	}
	if (other != SIM_NONE)
		mark.other = sim->queues[other].info.client;
	gp_sim_record_mark(sim, &mark);
}

/* Copies what the core traced since the last time. Without a window it is not even read. */
void gp_sim_record_decisions(struct gp_sim *sim)
{
	struct gp_trace_event events[64];
	uint64_t lost;
	uint32_t i, count;

	if (!record_wants(sim, sim->now_ns, sim->now_ns) && !sim->trace_cursor)
		return;
	do {
		count = gp_sched_trace_read(sim->core, &sim->trace_cursor, events, 64, &lost);
		for (i = 0; i < count; i++)
			record_decision(sim, &events[i]);
	} while (count == 64);
}
