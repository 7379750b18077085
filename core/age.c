/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Ageing: nobody waits for ever. A queue that had work for a whole ageing window and was open for less than an aged
 * turn of it gets an aged turn, whatever its rank; one seat of a device at a time. This file owns the queues' age_*
 * fields and the device's aged_* fields; everybody else asks it, or reads `aged` and `aged_seat`.
 */
#include "core/plan.h"

/* It had work for so long. One that is closing may be closed already: that is no time it was given. */
void gp_age_account(struct gp_queue *q, uint64_t elapsed_ns)
{
	if (q->gate == GP_GATE_OPEN)
		q->age_open_ns += elapsed_ns;
}

/* Ageing starts when a queue with work finds its gate closed, and goes on across short openings. */
void gp_age_update(struct gp_sched *sched, struct gp_queue *q)
{
	const struct gp_param *param = &gp_device_of(sched, q)->param;

	if (!q->has_work) {
		q->age_start_ns = q->age_due_ns = 0;
		q->age_open_ns = 0;
		return;
	}
	if (gp_gate_lets_through(q->gate)) {
		q->age_due_ns = 0;
		return;
	}
	if (q->age_due_ns)
		return;
	if (!q->age_start_ns || q->age_open_ns >= param->age_turn_ns) {
		q->age_start_ns = sched->now_ns;
		q->age_open_ns = 0;
	}
	q->age_due_ns = q->age_start_ns + param->age_window_ns;
}

/* While somebody has the aged turn the others only keep their place: age_free() lets the one who is due longest go
 * first. */
uint64_t gp_age_timer_ns(const struct gp_device *device, const struct gp_queue *q)
{
	return q->aged || device->aged_seat != GP_NONE ? 0 : q->age_due_ns;
}

/* It waited a whole window with less than an aged turn's worth of running. One seat at a time is served. */
static void age_begin(struct gp_sched *sched, struct gp_queue *q)
{
	struct gp_device *device = gp_device_of(sched, q);
	struct gp_seat *seat = &sched->seats[q->seat];
	uint32_t i;

	if (device->aged_seat != GP_NONE)
		return;
	device->aged_seat = q->seat;
	device->aged_begun = false;
	device->aged_until_ns = sched->now_ns + device->param.age_turn_ns + 2 * device->attr.open_ns;
	device->aged_alone = false;
	device->stats.aged++;
	for (i = seat->queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
		if (sched->queues[i].has_work && sched->queues[i].gate == GP_GATE_CLOSED) {
			sched->queues[i].aged = true;
			sched->queues[i].aged_mark = sched->queues[i].completed;
			device->aged_alone |= sched->queues[i].in_vain && q->gang == GP_NONE && !device->attr.switch_ns;
		}
	if (q->gang != GP_NONE)
		gp_gang_open(sched, q->gang, GP_WHY_AGED);
	else if (device->attr.switch_ns && q->is_batch)
		gp_turn_force(sched,
			      q->seat); /* beside the holder neither would get anywhere: two short slices only switch */
}

void gp_age_due(struct gp_sched *sched, uint32_t queue)
{
	struct gp_queue *q = &sched->queues[queue];

	if (!q->aged && q->age_due_ns && q->age_due_ns <= sched->now_ns)
		age_begin(sched, q);
}

/* Nobody has the aged turn any more: whoever is due is woken again. */
static void age_free(struct gp_sched *sched, struct gp_device *device)
{
	uint32_t seat, i;

	device->aged_seat = GP_NONE;
	device->aged_alone = false;
	device->dirty = true;
	for (seat = device->seat_first; seat != GP_NONE; seat = sched->seats[seat].device_next)
		for (i = sched->seats[seat].queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
			if (sched->queues[i].age_due_ns)
				gp_work_timer(sched, i);
}

/* The aged turn of this queue is over, and that of its gang. */
static void age_end_queue(struct gp_sched *sched, uint32_t queue)
{
	struct gp_queue *q = &sched->queues[queue];
	uint32_t member = q->gang == GP_NONE ? GP_NONE : sched->gangs[q->gang].first;

	for (; member != GP_NONE; member = sched->queues[member].gang_next) {
		sched->queues[member].aged = false;
		gp_device_of(sched, &sched->queues[member])->dirty = true;
	}
	q->in_vain = q->aged && q->has_work && q->completed == q->aged_mark;
	q->aged = false;
	q->age_start_ns = sched->now_ns;
	q->age_open_ns = 0;
	q->age_due_ns = 0;
	gp_work_refresh(sched, queue);
}

void gp_age_tick(struct gp_sched *sched, struct gp_device *device)
{
	uint32_t i, seat = device->aged_seat;

	if (seat == GP_NONE ||
	    (device->aged_until_ns > sched->now_ns && !(device->aged_alone && !sched->seats[seat].work_count)))
		return;
	age_free(sched, device);
	for (i = sched->seats[seat].queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
		age_end_queue(sched, i);
	gp_turn_check(sched, seat);
}

void gp_age_opened(struct gp_sched *sched, const struct gp_queue *q)
{
	struct gp_device *device = gp_device_of(sched, q);

	if (!q->aged || device->aged_seat != q->seat || device->aged_begun)
		return;
	device->aged_begun = true; /* once: gates that open later in the turn do not make it longer */
	device->aged_until_ns = sched->now_ns + device->param.age_turn_ns;
}

void gp_age_forget(struct gp_sched *sched, uint32_t seat)
{
	struct gp_device *device = &sched->devices[sched->seats[seat].device];

	if (device->aged_seat == seat)
		age_free(sched, device);
}

void gp_age_gang_opens(struct gp_sched *sched, const struct gp_gang *gang)
{
	uint32_t i;

	for (i = gang->first; i != GP_NONE; i = sched->queues[i].gang_next)
		sched->queues[i].aged = true;
}

void gp_age_gang_shrinks(struct gp_sched *sched, const struct gp_gang *gang)
{
	uint32_t i;

	for (i = gang->first; i != GP_NONE; i = sched->queues[i].gang_next)
		sched->queues[i].aged &= gp_device_of(sched, &sched->queues[i])->aged_seat == sched->queues[i].seat;
}

bool gp_age_others_yield(const struct gp_device *device)
{
	return device->aged_alone && device->aged_seat != GP_NONE && device->aged_until_ns != GP_NEVER_NS;
}

/* Of the aged seat's queues the one that was open longest ago: with few slots they take turns too. */
static uint32_t age_next(const struct gp_plan_builder *b)
{
	const struct gp_sched *sched = b->sched;
	uint32_t i, found = GP_NONE;

	for (i = sched->seats[b->device->aged_seat].queue_first; i != GP_NONE; i = sched->queues[i].seat_next) {
		const struct gp_queue *q = &sched->queues[i];

		if (q->aged && q->has_work && q->gate == GP_GATE_CLOSED && q->gang == GP_NONE &&
		    (found == GP_NONE || q->opened_ns < sched->queues[found].opened_ns))
			found = i;
	}
	return found;
}

/* Beside a device full of long workgroups an open gate may be worth nothing: after an aged turn in vain those with work
 * yield for the next one, if the budget can pay for that, too. */
static void age_yield(struct gp_plan_builder *b)
{
	struct gp_sched *sched = b->sched;
	const struct gp_heap *open = &b->device->heaps[GP_HEAP_OPEN];
	struct gp_order *candidates = &b->plan->close[b->plan->close_count];
	uint32_t i, count = 0, transactions;

	for (i = 0; i < open->count && b->plan->close_count + count < GP_PLAN_MAX; i++) {
		const struct gp_queue *q = &sched->queues[open->slots[i]];

		if (q->seat != b->device->aged_seat && q->has_work && !q->aged && q->gang == GP_NONE &&
		    q->hold_until_ns <= sched->now_ns)
			candidates[count++] = gp_plan_order(sched, open->slots[i], GP_WHY_YIELD);
	}
	transactions = gp_plan_transactions(sched, b->device, candidates, count);
	if (!count || !gp_budget_can_pay(sched, b->device, transactions + 1))
		return;
	gp_budget_pay(b->device, transactions);
	for (i = 0; i < count; i++)
		gp_plan_close(b, candidates[i].queue.index, GP_WHY_YIELD);
}

/* One that waited a whole window opens whatever its rank, if the budget can pay for putting it aside again. */
void gp_age_open(struct gp_plan_builder *b)
{
	struct gp_sched *sched = b->sched;
	uint32_t i;

	if (b->device->aged_seat == GP_NONE)
		return;
	if (b->device->aged_until_ns == GP_NEVER_NS)
		b->device->aged_until_ns = sched->now_ns + b->device->param.age_turn_ns + 2 * b->device->attr.open_ns;
	while ((i = age_next(b)) != GP_NONE) {
		if (!gp_budget_can_pay(sched, b->device, 1)) {
			if (!b->device->aged_begun)
				b->device->aged_until_ns =
					GP_NEVER_NS; /* the turn does not run out while it waits for the budget */
			break;
		}
		if (b->device->aged_alone && !b->device->aged_begun)
			age_yield(b);
		if (gp_plan_is_full(b) || !gp_slots_make_room(b, &sched->queues[i]))
			break;
		gp_plan_open(b, i, GP_WHY_AGED);
	}
	gp_device_wake(b->device, b->device->aged_until_ns);
}

/*
 * A queue that has work all the time is open for age_turn in every such stretch: the window itself, then at most one
 * aged turn of every other seat before its own, each with the plan that may be under way, its own open, and the time
 * the budget needs to pay for it; and one lost acknowledgement.
 */
uint64_t gp_sched_starvation_bound_ns(const struct gp_sched *sched, uint32_t device)
{
	const struct gp_device *d;
	uint64_t per_plan, pair_ns, refill_ns, turns;

	if (device >= sched->device_count)
		return 0;
	d = &sched->devices[device];
	per_plan = d->attr.unit == GP_UNIT_DEVICE  ? 1 :
		   d->attr.unit == GP_UNIT_PROCESS ? d->seat_count :
						     d->queue_count;
	/* With fewer slots than queues an aged turn may have room for one queue of its seat only. */
	turns = d->attr.slot_count && (uint64_t)d->queue_count + d->other_queue_count > d->attr.slot_count ?
			d->queue_count :
			d->seat_count;
	pair_ns = d->attr.close_ns + d->attr.open_ns;
	refill_ns = pair_ns * per_plan * 1000 / d->param.overhead_permille;
	return d->param.age_window_ns + d->attr.ack_timeout_ns +
	       turns * (d->param.age_turn_ns + 2 * d->attr.open_ns + 2 * pair_ns * per_plan + refill_ns);
}
