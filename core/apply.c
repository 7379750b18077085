/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What became of a plan's orders, each by itself. Every order ends in a defined state: done, failed and to be tried
 * again later, lost and to be ordered open, or quarantined. A close during which the gate was opened counts as failed,
 * unless only the driver's own delay opened it.
 *
 * The core quarantines a queue after fail_max failed orders, or at the first close that ends in -EIO, but only once the
 * queue is open or was ordered open after its last close. A queue in quarantine counts as open and gets no further
 * order. The other members of its gang stay open for as long as it is in quarantine. A failed open does not show that
 * the queue cannot be preempted (another queue may have failed the transaction that they shared): the core repeats the
 * open.
 */
#include "core/calls.h"

static void apply_quarantine(struct gp_sched *sched, uint32_t queue, enum gp_why why)
{
	struct gp_queue *q = &sched->queues[queue];

	gp_trace(sched, GP_TRACE_QUARANTINE, queue, why, q->fail_count);
	q->hold_until_ns = 0;
	q->condemned = GP_WHY_NONE;
	gp_age_quarantined(sched, queue);
	gp_work_gate(sched, queue, GP_GATE_QUARANTINED);
	q->left_why = GP_WHY_QUARANTINE;
}

/* Quarantines the queue in its own right: the other members of its gang follow. */
static void apply_stick(struct gp_sched *sched, uint32_t queue, enum gp_why why)
{
	gp_device_of(sched, &sched->queues[queue])->stats.quarantines++;
	apply_quarantine(sched, queue, why);
	gp_gang_stick(sched, queue, true);
}

/* Only an open gate can be in quarantine: the core first orders a closed one open, and waits for an order under way. */
void gp_apply_follow(struct gp_sched *sched, uint32_t queue)
{
	const struct gp_queue *q = &sched->queues[queue];

	if (!gp_device_of(sched, q)->policy->gates)
		return;
	if (q->gate == GP_GATE_OPEN)
		apply_quarantine(sched, queue, GP_WHY_QUARANTINE);
	else if (q->gate == GP_GATE_CLOSED)
		gp_work_gate(sched, queue, GP_GATE_UNKNOWN);
}

static void apply_failed(struct gp_sched *sched, uint32_t queue, bool open, enum gp_why why, int result)
{
	struct gp_queue *q = &sched->queues[queue];
	struct gp_device *device = gp_device_of(sched, q);
	bool lost = why != GP_WHY_FAILED, often; /* lost: the core does not know the state of the gate */
	uint32_t shift;

	device->stats.order_failures++;
	gp_trace(sched, GP_TRACE_ORDER_FAILED, queue, why, (uint64_t)(-(int64_t)result));
	q->fail_count++;
	often = q->fail_count >= device->param.fail_max;
	if (open == lost && (often || q->condemned || (!open && result == -EIO))) {
		apply_stick(sched, queue, why);
		return;
	}
	if (open == lost && gp_gang_is_stuck(sched, q)) {
		apply_quarantine(sched, queue, GP_WHY_QUARANTINE);
		return;
	}
	if (!open && often)
		q->condemned = why; /* it may have closed: the core opens it once more, then quarantines it */
	shift = q->fail_count < 10 ? q->fail_count : 10;
	q->hold_until_ns = sched->now_ns + ((device->attr.close_ns + device->attr.open_ns + 1) << shift);
	q->hold_why = why;
	gp_work_gate(sched, queue, open || lost ? GP_GATE_UNKNOWN : GP_GATE_OPEN);
	q->left_why = why;
}

static void apply_done(struct gp_sched *sched, uint32_t queue, bool open)
{
	struct gp_queue *q = &sched->queues[queue];

	if (!open && q->is_gate_lost && !q->is_lease_lost) { /* a failure, so that a client which does this at each
								close meets a pause */
		apply_failed(sched, queue, false, GP_WHY_LOST, -EBUSY);
		return;
	}
	if (!open)
		q->fail_count = 0; /* an open does not show that the queue can be closed */
	q->hold_until_ns = 0;
	gp_trace(sched, open ? GP_TRACE_OPENED : GP_TRACE_CLOSED, queue, q->order_why, sched->now_ns - q->order_ns);
	if (q->is_gate_lost) { /* nobody knows how the gate is: the core orders it open once more */
		gp_work_gate(sched, queue, GP_GATE_UNKNOWN);
		return;
	}
	if (open)
		gp_age_opened(sched, q);
	gp_work_gate(sched, queue, open ? GP_GATE_OPEN : GP_GATE_CLOSED);
	if (open)
		gp_turn_opened(sched, q);
	if (open && q->condemned)
		apply_stick(sched, queue, q->condemned);
	else if (gp_gang_is_stuck(sched, q))
		gp_apply_follow(sched, queue);
}

/* After its first late answer a client must give so many prompt ones; after each further late answer more (chosen). */
#define APPLY_DISTRUST     8u
#define APPLY_DISTRUST_MAX 1024u

void gp_apply_begin(struct gp_sched *sched, struct gp_order *order, const struct gp_plan *plan)
{
	struct gp_queue *q = &sched->queues[order->queue.index];
	const struct gp_core_client *client = &sched->clients[q->client];
	struct gp_device *device = gp_device_of(sched, q);

	q->order_seq = plan->seq;
	q->is_gate_lost = q->is_lease_lost = false;
	q->order_due_ns = sched->now_ns + device->attr.ack_timeout_ns;
	q->prompt_until_ns = sched->now_ns + 2 * plan->patience_ns;
	order->is_awaited = q->is_awaited = !client->distrust && !client->attr.is_distrusted;
	device->closing_compute_count += gp_gate_is_closing(q);
	device->patient_until_ns = q->prompt_until_ns;
	if (!q->is_awaited) {
		gp_work_timer(sched, order->queue.index);
		return;
	}
	q->awaited_prev = GP_NONE; /* an awaited order needs no timer of its own: patient_until_ns is its timer */
	q->awaited_next = device->awaited_first;
	if (q->awaited_next != GP_NONE)
		sched->queues[q->awaited_next].awaited_prev = order->queue.index;
	device->awaited_first = order->queue.index;
}

void gp_apply_not_awaited(struct gp_sched *sched, struct gp_queue *q)
{
	if (!q->is_awaited)
		return;
	q->is_awaited = false;
	*(q->awaited_prev == GP_NONE ? &gp_device_of(sched, q)->awaited_first :
				       &sched->queues[q->awaited_prev].awaited_next) = q->awaited_next;
	if (q->awaited_next != GP_NONE)
		sched->queues[q->awaited_next].awaited_prev = q->awaited_prev;
}

/* The core stops waiting for the order, but still accepts its answer. */
static void apply_overdue(struct gp_sched *sched, struct gp_queue *q)
{
	struct gp_core_client *client = &sched->clients[q->client];
	bool was_prompt;
	uint32_t i;

	gp_device_of(sched, q)->closing_compute_count -= gp_gate_is_closing(q);
	q->is_overdue = true;
	q->prompt_until_ns = 0;
	was_prompt = !sched->seats[q->seat].overdue_count++;
	gp_apply_not_awaited(sched, q);
	gp_age_late(sched, (uint32_t)(q - sched->queues));
	client->distrust = 2 * client->distrust + APPLY_DISTRUST;
	if (client->distrust > APPLY_DISTRUST_MAX)
		client->distrust = APPLY_DISTRUST_MAX;
	/* The first overdue order of a seat takes all its queues out of the heaps of waiting queues. A client may have
	 * a thousand overdue orders, so the others refresh only their own queue. */
	for (i = sched->seats[q->seat].queue_first; was_prompt && i != GP_NONE; i = sched->queues[i].seat_next)
		gp_work_refresh(sched, i);
	if (!was_prompt)
		gp_work_refresh(sched, (uint32_t)(q - sched->queues));
}

static void apply_give_up(struct gp_sched *sched, uint32_t queue, enum gp_why why)
{
	struct gp_queue *q = &sched->queues[queue];

	gp_apply_forget(sched, queue);
	q->given_seq = q->order_seq;
	q->given_open = q->gate == GP_GATE_OPENING;
	q->given_why = why;
	q->given_next = GP_NONE;
	q->given_prev = sched->given_last;
	*(q->given_prev == GP_NONE ? &sched->given_first : &sched->queues[q->given_prev].given_next) = queue;
	sched->given_last = queue;
}

void gp_apply_forget(struct gp_sched *sched, uint32_t queue)
{
	struct gp_queue *q = &sched->queues[queue];

	if (!q->given_seq)
		return;
	q->given_seq = 0;
	*(q->given_prev == GP_NONE ? &sched->given_first : &sched->queues[q->given_prev].given_next) = q->given_next;
	*(q->given_next == GP_NONE ? &sched->given_last : &sched->queues[q->given_next].given_prev) = q->given_prev;
}

bool gp_sched_given_up(struct gp_sched *sched, struct gp_given_up *ret_given_up)
{
	uint32_t queue = sched->given_first;
	const struct gp_queue *q;

	if (queue == GP_NONE)
		return false;
	q = &sched->queues[queue];
	*ret_given_up = (struct gp_given_up){ gp_queue_id_of(sched, queue), q->given_seq, q->given_open, q->given_why };
	gp_apply_forget(sched, queue);
	return true;
}

int gp_sched_applied(struct gp_sched *sched, struct gp_queue_id queue, uint64_t seq, int result, uint64_t now_ns)
{
	struct gp_queue *q = gp_queue_find(sched, queue);
	bool open;

	if (!q)
		return -ESTALE;
	if (!gp_gate_moves(q->gate) || q->order_seq != seq) {
		gp_device_of(sched, q)->stats.stale_acks++;
		gp_trace(sched, GP_TRACE_STALE_ACK, queue.index, GP_WHY_NONE, seq);
		return -ESTALE;
	}
	gp_clock(sched, now_ns);
	open = q->gate == GP_GATE_OPENING;
	if (q->prompt_until_ns && q->prompt_until_ns < sched->now_ns)
		apply_overdue(sched, q);
	else if (!q->is_overdue && sched->clients[q->client].distrust)
		sched->clients[q->client].distrust--;
	if (result == 0)
		apply_done(sched, queue.index, open);
	else
		apply_failed(sched, queue.index, open, GP_WHY_FAILED, result);
	gp_device_of(sched, q)->dirty = true;
	return 0;
}

/* The driver did not answer: the core does not know whether the order was carried out. */
static void apply_timeout(struct gp_sched *sched, uint32_t queue)
{
	struct gp_queue *q = &sched->queues[queue];
	struct gp_device *device = gp_device_of(sched, q);

	if (device->timeout_seq < q->order_seq) { /* the orders of one plan are due at the same time: count them once */
		device->timeout_seq = q->order_seq;
		device->stats.timeouts++;
		gp_trace_device(sched, GP_TRACE_PLAN_TIMEOUT, q->device, GP_WHY_TIMEOUT, q->order_seq);
	}
	apply_give_up(sched, queue, GP_WHY_TIMEOUT);
	apply_failed(sched, queue, q->gate == GP_GATE_OPENING, GP_WHY_TIMEOUT, -EBUSY);
}

void gp_apply_due(struct gp_sched *sched, uint32_t queue)
{
	struct gp_queue *q = &sched->queues[queue];

	if (q->prompt_until_ns && q->prompt_until_ns <= sched->now_ns)
		apply_overdue(sched, q);
	if (q->order_due_ns && q->order_due_ns <= sched->now_ns)
		apply_timeout(sched, queue);
}

int gp_sched_device_stop(struct gp_sched *sched, uint32_t device, uint64_t now_ns)
{
	struct gp_device *d;
	uint32_t seat, i;

	if (device >= sched->device_count)
		return -EINVAL;
	d = &sched->devices[device];
	if (d->stopped)
		return 0;
	gp_clock(sched, now_ns);
	for (seat = d->seat_first; seat != GP_NONE; seat = sched->seats[seat].device_next)
		for (i = sched->seats[seat].queue_first; i != GP_NONE; i = sched->queues[i].seat_next) {
			if (!gp_gate_moves(sched->queues[i].gate))
				continue;
			apply_give_up(sched, i, GP_WHY_STOPPED);
			gp_work_gate(sched, i, GP_GATE_UNKNOWN);
		}
	d->stopped = d->opening_all = d->dirty = true;
	gp_slice_look(d);
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
	d->stopped = false;
	d->opening_all = !d->policy->gates; /* with policy none, nothing else opens a gate that is still closed */
	d->dirty = true;
	gp_slice_look(d);
	for (seat = d->seat_first; seat != GP_NONE; seat = sched->seats[seat].device_next) {
		for (i = sched->seats[seat].queue_first; i != GP_NONE; i = sched->queues[i].seat_next) {
			sched->queues[i].fail_count = 0;
			sched->queues[i].condemned = GP_WHY_NONE;
			gp_gang_stick(sched, i, false);
			if (sched->queues[i].gate == GP_GATE_QUARANTINED)
				gp_work_gate(sched, i, GP_GATE_UNKNOWN);
		}
		gp_turn_check(sched, seat);
	}
	gp_trace_device(sched, GP_TRACE_DEVICE_STARTED, device, GP_WHY_NONE, 0);
	return 0;
}
