/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What became of a plan. Every order ends in a defined state: done, failed and to be tried again later, lost and to be
 * ordered open, or quarantined. A queue is quarantined after fail_max failed orders or at the first close that ends in
 * -EIO, but never before it is open or was ordered open after its last close; it counts as open and is never ordered
 * again. An open that fails says nothing about whether the queue can be preempted (a transaction it shared may have
 * failed for another): it is repeated.
 */
#include "core/state.h"

static void apply_quarantine(struct gp_sched *sched, uint32_t queue, enum gp_why why)
{
	struct gp_queue *q = &sched->queues[queue];

	gp_device_of(sched, q)->stats.quarantines++;
	gp_trace(sched, GP_TRACE_QUARANTINE, queue, why, q->fail_count);
	q->hold_until_ns = 0;
	q->aged = q->condemned = false;
	gp_work_gate(sched, queue, GP_GATE_QUARANTINED);
	q->left_why = GP_WHY_QUARANTINE;
}

static void apply_failed(struct gp_sched *sched, uint32_t queue, bool open, enum gp_why why, int result)
{
	struct gp_queue *q = &sched->queues[queue];
	struct gp_device *device = gp_device_of(sched, q);
	bool lost = why == GP_WHY_TIMEOUT, often;
	uint32_t shift;

	device->stats.order_failures++;
	gp_trace(sched, GP_TRACE_ORDER_FAILED, queue, why, (uint64_t)(-(int64_t)result));
	q->fail_count++;
	often = q->fail_count >= device->param.fail_max;
	if (open == lost && (often || q->condemned || (!open && result == -EIO))) {
		apply_quarantine(sched, queue, why);
		return;
	}
	if (!open && often)
		q->condemned = true; /* it may have closed: open it once more, then quarantine it */
	shift = q->fail_count < 10 ? q->fail_count : 10;
	q->hold_until_ns = sched->now_ns + ((device->attr.close_ns + device->attr.open_ns + 1) << shift);
	gp_work_gate(sched, queue, open || lost ? GP_GATE_UNKNOWN : GP_GATE_OPEN);
	q->left_why = why;
}

static void apply_done(struct gp_sched *sched, uint32_t queue, bool open)
{
	struct gp_queue *q = &sched->queues[queue];

	if (!open)
		q->fail_count = 0; /* that it opens does not show that it can be closed */
	q->hold_until_ns = 0;
	gp_trace(sched, open ? GP_TRACE_OPENED : GP_TRACE_CLOSED, queue, q->order_why, sched->now_ns - q->order_ns);
	if (open)
		gp_age_opened(sched, q);
	gp_work_gate(sched, queue, open ? GP_GATE_OPEN : GP_GATE_CLOSED);
	if (open && q->condemned)
		apply_quarantine(sched, queue, GP_WHY_TIMEOUT);
}

/* The queue of the i-th order, if it still exists and its gate is as the order left it. */
static uint32_t apply_order(const struct gp_sched *sched, const struct gp_device *device, uint32_t i)
{
	struct gp_queue_id id = device->orders[i];
	const struct gp_queue *q = &sched->queues[id.index];
	enum gp_gate expected = i < device->close_count ? GP_GATE_CLOSING : GP_GATE_OPENING;

	return q->used && q->generation == id.generation && q->gate == expected ? id.index : GP_NONE;
}

int gp_sched_applied(struct gp_sched *sched, uint32_t device, uint64_t seq, const int *results, uint32_t result_count,
		     uint64_t now_ns)
{
	struct gp_device *d;
	uint32_t i;

	if (device >= sched->device_count)
		return -EINVAL;
	d = &sched->devices[device];
	if (!d->in_flight || d->seq != seq) {
		d->stats.stale_acks++;
		gp_trace_device(sched, GP_TRACE_STALE_ACK, device, GP_WHY_NONE, seq);
		return -ESTALE;
	}
	if (result_count != d->order_count)
		return -EINVAL;
	gp_clock(sched, now_ns);
	for (i = 0; i < d->order_count; i++) {
		bool open = i >= d->close_count;
		uint32_t queue = apply_order(sched, d, i);

		if (queue == GP_NONE)
			continue;
		if (results[i] == 0)
			apply_done(sched, queue, open);
		else
			apply_failed(sched, queue, open, GP_WHY_FAILED, results[i]);
	}
	d->in_flight = false;
	d->dirty = true;
	return 0;
}

/* Nobody answered: we do not know which orders were carried out. */
void gp_apply_timeout(struct gp_sched *sched, struct gp_device *device)
{
	uint32_t i;

	device->stats.timeouts++;
	gp_trace_device(sched, GP_TRACE_PLAN_TIMEOUT, (uint32_t)(device - sched->devices), GP_WHY_TIMEOUT, device->seq);
	for (i = 0; i < device->order_count; i++) {
		uint32_t queue = apply_order(sched, device, i);

		if (queue != GP_NONE)
			apply_failed(sched, queue, i >= device->close_count, GP_WHY_TIMEOUT, -EBUSY);
	}
	device->in_flight = false;
	device->dirty = true;
}

int gp_sched_device_stop(struct gp_sched *sched, uint32_t device, uint64_t now_ns)
{
	struct gp_device *d;
	uint32_t i;

	if (device >= sched->device_count)
		return -EINVAL;
	d = &sched->devices[device];
	if (d->stopped)
		return 0;
	gp_clock(sched, now_ns);
	for (i = 0; d->in_flight && i < d->order_count; i++) {
		uint32_t queue = apply_order(sched, d, i);

		if (queue != GP_NONE)
			gp_work_gate(sched, queue, GP_GATE_UNKNOWN);
	}
	d->in_flight = false;
	d->stopped = d->opening_all = d->dirty = true;
	gp_trace_device(sched, GP_TRACE_DEVICE_STOPPED, device, GP_WHY_STOPPED, 0);
	return 0;
}

int gp_sched_device_start(struct gp_sched *sched, uint32_t device, uint64_t now_ns)
{
	struct gp_device *d;
	uint32_t seat, i;

	if (device >= sched->device_count)
		return -EINVAL;
	d = &sched->devices[device];
	if (!d->stopped)
		return 0;
	gp_clock(sched, now_ns);
	d->stopped = d->opening_all = false;
	d->dirty = true;
	for (seat = d->seat_first; seat != GP_NONE; seat = sched->seats[seat].device_next) {
		for (i = sched->seats[seat].queue_first; i != GP_NONE; i = sched->queues[i].seat_next) {
			sched->queues[i].fail_count = 0;
			sched->queues[i].condemned = false;
			if (sched->queues[i].gate == GP_GATE_QUARANTINED)
				gp_work_gate(sched, i, GP_GATE_UNKNOWN);
		}
		gp_turn_check(sched, seat);
	}
	gp_trace_device(sched, GP_TRACE_DEVICE_STARTED, device, GP_WHY_NONE, 0);
	return 0;
}
