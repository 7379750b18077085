/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What the driver reports about a queue: samples, edges, hints, gates that changed without an order. Checks what comes
 * from outside; work.c does the rest. */
#include "core/calls.h"

#define EVENT_TAIL_NS 50000u /* how long the last packet runs, with fetch counters and nothing learned (chosen) */

/* The counters of a queue moved. Where they move at fetch, the last packet may still run: the core allows it as long as
 * packets usually take. */
static void event_counters(struct gp_sched *sched, uint32_t queue, uint64_t written, uint64_t completed)
{
	struct gp_queue *q = &sched->queues[queue];
	uint64_t done_count = completed - q->completed;

	if (done_count && q->has_work)
		gp_learn_done(q, done_count, sched->now_ns);
	if (done_count)
		gp_age_completed(sched, queue);
	if (written != q->written) {
		q->written_ns = sched->now_ns;
		if (q->has_work) { /* announced work has come, though the queue may only have been in doubt until now */
			q->hinted = false;
			q->hint_from_ns = q->hint_at_ns = 0;
		}
	}
	q->written = written;
	q->completed = completed;
	if (written != completed) {
		q->tail_until_ns = q->tail_ns = 0;
		if (!q->has_work)
			gp_work_begin(sched, queue);
		gp_work_timer(sched, queue);
	} else if (q->has_work) {
		if (!gp_device_of(sched, q)->attr.fetch_counters && !q->attr.fetched) {
			gp_work_end(sched, queue);
			return;
		}
		q->tail_ns = q->tail_left_ns = q->packet_ns ? q->packet_ns + q->packet_ns / 2 : EVENT_TAIL_NS;
		q->tail_until_ns = gp_gate_lets_through(q->gate) ? sched->now_ns + q->tail_ns : GP_NEVER_NS;
		gp_work_timer(sched, queue);
	}
}

int gp_sched_sample(struct gp_sched *sched, struct gp_queue_id queue, uint64_t written, uint64_t completed,
		    uint64_t now_ns)
{
	struct gp_queue *q = gp_queue_find(sched, queue);

	if (!q)
		return -ESTALE;
	if (written == q->written && completed == q->completed)
		return 0;
	if (completed > written || written < q->written || completed < q->completed)
		return -EINVAL;
	gp_clock(sched, now_ns);
	gp_learn_ahead(q, written, completed);
	if (gp_device_of(sched, q)->attr.switch_ns)
		gp_gather_look(sched, q, written, completed);
	if (q->in_doubt) { /* of an older packet; this one is known, even if it was fetched before the core saw it */
		q->in_doubt = false;
		gp_work_rerank(sched, queue.index);
	}
	if (!q->has_work && completed == written) /* work came and went, or was fetched, between two samples */
		gp_work_begin(sched, queue.index);
	event_counters(sched, queue.index, written, completed);
	return 0;
}

int gp_sched_edge(struct gp_sched *sched, struct gp_queue_id queue, bool busy, uint64_t now_ns)
{
	struct gp_queue *q = gp_queue_find(sched, queue);

	if (!q)
		return -ESTALE;
	gp_clock(sched, now_ns);
	if (busy && !q->has_work)
		gp_work_begin(sched, queue.index);
	else if (!busy && q->has_work)
		gp_work_end(sched, queue.index);
	return 0;
}

int gp_sched_hint(struct gp_sched *sched, struct gp_queue_id queue, uint64_t in_ns, uint64_t now_ns)
{
	struct gp_queue *q = gp_queue_find(sched, queue);
	struct gp_device *device;
	uint64_t lead_ns;

	if (!q)
		return -ESTALE;
	if (in_ns > GP_DURATION_NS_MAX)
		return -EINVAL;
	gp_clock(sched, now_ns);
	device = gp_device_of(sched, q);
	device->stats.hints++;
	gp_trace(sched, GP_TRACE_HINT, queue.index, GP_WHY_NONE, sched->now_ns + in_ns);
	if (q->has_work || q->hinted) /* the lower gates are closed, or closing, already */
		return 0;
	lead_ns = device->attr.switch_ns ? device->attr.switch_ns : device->attr.close_ns;
	lead_ns += lead_ns / 4; /* a margin: early costs a little batch time, late costs all of the hint */
	q->hint_at_ns = sched->now_ns + in_ns;
	q->hint_from_ns = q->hint_at_ns > sched->now_ns + lead_ns ? q->hint_at_ns - lead_ns : sched->now_ns;
	gp_work_rerank(sched, queue.index);
	gp_work_refresh(sched, queue.index);
	return 0;
}

int gp_sched_gate_lost(struct gp_sched *sched, struct gp_queue_id queue, bool open, uint64_t now_ns)
{
	struct gp_queue *q = gp_queue_find(sched, queue);
	struct gp_device *device;

	if (!q)
		return -ESTALE;
	device = gp_device_of(sched, q);
	gp_clock(sched, now_ns);
	/* While an order is under way its answer does not tell whether this change came before it or after. */
	q->is_gate_lost |= gp_gate_moves(q->gate) && (q->gate == GP_GATE_OPENING) != open;
	q->is_lease_lost = false;
	if (q->gate != GP_GATE_OPEN && q->gate != GP_GATE_CLOSED)
		return 0;
	if ((q->gate == GP_GATE_OPEN) == open)
		return 0;
	gp_trace(sched, GP_TRACE_GATE_LOST, queue.index, GP_WHY_LOST, open);
	gp_work_gate(sched, queue.index, open ? GP_GATE_OPEN : GP_GATE_CLOSED);
	if (!open && (device->stopped || !device->policy->gates)) /* no decision about ranks would open it */
		device->opening_all = device->dirty = true;
	return 0;
}

int gp_sched_lease_lost(struct gp_sched *sched, struct gp_queue_id queue, uint64_t now_ns)
{
	struct gp_queue *q = gp_queue_find(sched, queue);
	bool was_lost = q && q->is_gate_lost && !q->is_lease_lost;
	int r = gp_sched_gate_lost(sched, queue, true, now_ns);

	if (!r)
		q->is_lease_lost = q->is_gate_lost && !was_lost;
	return r;
}
