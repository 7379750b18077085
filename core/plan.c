/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Decisions: for one device at a time, which gates one plan closes and which it opens. The order of the steps is the
 * precedence: repairs, what a more urgent queue asks for, turns that are over, what does not fit the slots, and then
 * queues that may open. A decision touches the queues that it changes, not all queues.
 */
#include "core/plan.h"

#define PLAN_REST_NS    1000000000ull /* after so long without work closed idle gates protect no arrival (chosen) */
#define PLAN_ROUNDS_MAX 8u            /* rounds over all devices in one call; the next call does the rest */

void gp_plan_close(struct gp_plan_builder *b, uint32_t queue, enum gp_why why)
{
	struct gp_queue *q = &b->sched->queues[queue];

	if (GP_NEVER(q->gate != GP_GATE_OPEN || b->plan->close_count >= GP_PLAN_MAX))
		return;
	b->plan->close[b->plan->close_count++] = gp_plan_order(b->sched, queue, why);
	b->closing_compute += q->attr.kind == GP_KIND_COMPUTE;
	b->device->stats.closes++;
	b->device->stats.preemptions += q->has_work;
	q->preemptions += q->has_work;
	q->order_ns = b->sched->now_ns;
	q->order_why = why;
	gp_work_gate(b->sched, queue, GP_GATE_CLOSING);
}

void gp_plan_open(struct gp_plan_builder *b, uint32_t queue, enum gp_why why)
{
	struct gp_queue *q = &b->sched->queues[queue];

	if (GP_NEVER((q->gate != GP_GATE_CLOSED && q->gate != GP_GATE_UNKNOWN) || b->plan->open_count >= GP_PLAN_MAX))
		return;
	b->plan->open[b->plan->open_count++] = gp_plan_order(b->sched, queue, why);
	b->device->stats.opens++;
	q->order_ns = b->sched->now_ns;
	q->order_why = why;
	if (why != GP_WHY_AGED && q->gang == GP_NONE)
		q->aged = false; /* it opens in its own right, so the core may close it like any other */
	gp_work_gate(b->sched, queue, GP_GATE_OPENING);
}

/* The core deliberately leaves the queue open. Traces and counts each reason once, until the reason changes. */
static void plan_leave(struct gp_plan_builder *b, uint32_t queue, enum gp_why why)
{
	struct gp_queue *q = &b->sched->queues[queue];

	if (q->left_why == why)
		return;
	q->left_why = why;
	b->device->stats.left_open[why]++;
	gp_trace(b->sched, GP_TRACE_LEFT_OPEN, queue, why, 0);
}

/* Self-switching: an idle queue above every holder stays open without a turn. When it gets work the device switches to
 * it at once, and it takes the turn. Not one only presumed idle, which may run: two lower ones slow each other down. */
static bool plan_may_stay(const struct gp_plan_builder *b, const struct gp_queue *q)
{
	return b->device->attr.switch_ns && q->gang == GP_NONE && !gp_work_is_active(b->sched, q) &&
	       !b->device->attr.fetch_counters && !q->attr.fetched && gp_turn_is_above(b->sched, b->device, q->rank);
}

/* Self-switching: gives turns to seats that stayed open without one and got work. */
static void plan_rise(struct gp_plan_builder *b)
{
	struct gp_sched *sched = b->sched;
	uint32_t index, i;

	if (!b->device->attr.switch_ns)
		return;
	/* A seat that loses its turn joins the list at its front, so this loop is not disturbed. */
	for (index = b->device->check_first; index != GP_NONE; index = sched->seats[index].check_next)
		for (i = sched->seats[index].queue_first; i != GP_NONE; i = sched->queues[i].seat_next) {
			const struct gp_queue *q = &sched->queues[i];

			if (q->gate == GP_GATE_OPEN && q->gang == GP_NONE && !gp_turn_allows(sched, q) &&
			    gp_work_is_active(sched, q) && !sched->seats[index].overdue_count &&
			    gp_turn_can_get(sched, index, q->rank))
				gp_turn_get(sched, index, q->rank);
		}
}

/* Why the core should leave a queue of lower rank open; GP_WHY_NONE: close it. */
static enum gp_why plan_reason_to_leave(struct gp_plan_builder *b, uint32_t queue, const struct gp_queue *urgent)
{
	struct gp_queue *q = &b->sched->queues[queue];
	const struct gp_device *device = b->device;
	uint64_t now_ns = b->sched->now_ns, rest_ns;

	if (q->aged)
		return GP_WHY_AGED;
	if (gp_under_is(b->sched, q) && !b->sched->seats[urgent->seat].is_behind)
		return GP_WHY_SELF;
	if (device->attr.switch_ns && !gp_stay_holds(device) && !urgent->is_batch &&
	    !b->sched->seats[urgent->seat].is_behind && q->is_batch && !gp_gang_is_several(b->sched, q) &&
	    !gp_under_is_long(b->sched, q) &&
	    (b->sched->seats[q->seat].has_turn ? gp_turn_is_best(b->sched, device, q->rank) : plan_may_stay(b, q)))
		return GP_WHY_SELF;
	if (q->hold_until_ns > now_ns)
		return q->hold_why;
	if (!q->has_work || q->gang != GP_NONE)
		return GP_WHY_NONE;
	if (q->opened_ns + device->param.min_open_ns > now_ns && q->opened_ns) {
		q->hold_until_ns = q->opened_ns + device->param.min_open_ns;
		q->hold_why = GP_WHY_MIN_OPEN;
		gp_work_timer(b->sched, queue);
		return GP_WHY_MIN_OPEN;
	}
	rest_ns = q->short_tried ? GP_NEVER_NS : gp_learn_rest_ns(q, now_ns);
	if (rest_ns >= device->attr.close_ns)
		return GP_WHY_NONE;
	q->short_tried = true;
	q->hold_until_ns = now_ns + rest_ns + rest_ns / 4 + 1;
	q->hold_why = GP_WHY_SHORT;
	q->left_why = GP_WHY_NONE; /* a rest of its own, although the last reason was one */
	gp_work_timer(b->sched, queue);
	return GP_WHY_SHORT;
}

uint32_t gp_plan_transactions(struct gp_sched *sched, const struct gp_device *device, const struct gp_order *orders,
			      uint32_t order_count)
{
	uint64_t stamp = ++sched->stamp;
	uint32_t i, count = 0;

	if (device->attr.unit == GP_UNIT_DEVICE)
		return order_count > 0;
	if (device->attr.unit == GP_UNIT_QUEUE)
		return order_count;
	for (i = 0; i < order_count; i++) {
		struct gp_seat *seat = &sched->seats[sched->queues[orders[i].queue.index].seat];

		count += seat->stamp != stamp;
		seat->stamp = stamp;
	}
	return count;
}

/* Moves the candidates to close to the front and returns their count: queues with work, then idle ones as far as the
 * upper half of the budget allows. Else a client with many idle gates would use up the budget for stopping others. */
static uint32_t plan_affordable(struct gp_plan_builder *b, struct gp_order *candidates, uint32_t count,
				uint32_t *ret_transactions)
{
	struct gp_sched *sched = b->sched;
	uint32_t i, busy = 0, half = b->device->param.burst / 2, most, fit, transactions;

	for (i = 0; i < count; i++) {
		struct gp_order order = candidates[i];

		if (!sched->queues[order.queue.index].has_work)
			continue;
		if (i != busy) {
			candidates[i] = candidates[busy];
			candidates[busy] = order;
		}
		busy++;
	}
	*ret_transactions = transactions = gp_plan_transactions(sched, b->device, candidates, busy);
	most = transactions + (half ? half : 1);
	for (fit = busy; fit < count; fit++) { /* gp_plan_transactions() has stamped the seats of queues with work */
		struct gp_seat *seat = &sched->seats[sched->queues[candidates[fit].queue.index].seat];
		bool more = b->device->attr.unit == GP_UNIT_DEVICE ? !transactions :
			    b->device->attr.unit == GP_UNIT_QUEUE  ? true :
								     seat->stamp != sched->stamp;

		if (transactions + more > most)
			break;
		transactions += more;
		seat->stamp = sched->stamp;
	}
	if (fit > busy && gp_budget_can_pay(sched, b->device, transactions + half))
		*ret_transactions = transactions;
	else
		fit = busy;
	for (i = fit; i < count; i++)
		plan_leave(b, candidates[i].queue.index, GP_WHY_RATE);
	return fit;
}

/* Closes the gates below the highest rank that has work, idle ones too, so that no queue starts late. */
static void plan_close_lower(struct gp_plan_builder *b)
{
	struct gp_sched *sched = b->sched;
	uint32_t top = gp_heap_top(b->device, GP_HEAP_WORK);
	struct gp_order *candidates = &b->plan->close[b->plan->close_count];
	uint32_t room = GP_PLAN_MAX - b->plan->close_count;
	uint32_t place = 0, count = 0, busy = 0, left = 0, transactions, i, queue;
	const struct gp_queue *urgent;
	bool full;

	if (top == GP_NONE)
		return;
	urgent = &sched->queues[top];
	while (count < room &&
	       (queue = gp_heap_visit(sched, b->device, GP_HEAP_OPEN, urgent->rank, &place)) != GP_NONE) {
		bool has_work = sched->queues[queue].has_work;
		enum gp_why why = plan_reason_to_leave(b, queue, urgent);

		if (why != GP_WHY_NONE) {
			plan_leave(b, queue, why);
			left += has_work && why != GP_WHY_SELF;
			continue;
		}
		busy += has_work;
		why = !has_work                                                 ? GP_WHY_IDLE :
		      gp_stay_holds(b->device) && sched->queues[queue].is_batch ? gp_stay_why(b->device) :
		      urgent->has_work                                          ? GP_WHY_PRIORITY :
										  GP_WHY_HINT;
		candidates[count++] = gp_plan_order(sched, queue, why);
	}
	if (left && !busy) /* the core lets what runs finish before it stops the device for idle gates */
		return;
	full = count == room;
	count = plan_affordable(b, candidates, count, &transactions);
	if (count && !gp_budget_can_pay(sched, b->device, transactions)) {
		for (i = 0; i < count; i++)
			plan_leave(b, candidates[i].queue.index, GP_WHY_RATE);
		return;
	}
	gp_budget_pay(b->device, transactions);
	for (i = 0; i < count; i++) {
		struct gp_order order = candidates[i]; /* a copy: gp_plan_close() writes to the same place */

		/* First, because the order carries the number of this move. */
		if (sched->queues[order.queue.index].gang != GP_NONE)
			gp_gang_close(sched, sched->queues[order.queue.index].gang, order.why);
		gp_plan_close(b, order.queue.index, order.why);
	}
	if (full)
		b->device->dirty = true;
}

/* Closes batch seats that lost the turn or never had it, idle ones too: here, not while an urgent queue waits. */
static void plan_close_turns(struct gp_plan_builder *b)
{
	struct gp_sched *sched = b->sched;
	uint32_t index, i;

	while ((index = b->device->check_first) != GP_NONE) {
		struct gp_seat *seat = &sched->seats[index];
		bool closed = false;

		for (i = seat->queue_first; i != GP_NONE; i = sched->queues[i].seat_next) {
			const struct gp_queue *q = &sched->queues[i];

			if (q->gate != GP_GATE_OPEN || gp_turn_allows(sched, q) || q->aged ||
			    q->hold_until_ns > sched->now_ns)
				continue;
			if (q->gang == GP_NONE && b->device->turn_count < b->device->batch_max) {
				gp_turn_give(sched, index); /* a turn is free: closing would only cost */
				continue;
			}
			if (plan_may_stay(b, q) || gp_under_is(sched, q)) {
				plan_leave(b, i, GP_WHY_SELF);
				continue;
			}
			if (q->gang != GP_NONE)
				gp_gang_close(sched, q->gang, GP_WHY_TURN);
			if (b->plan->close_count == GP_PLAN_MAX)
				return; /* the seat stays in the list for the next plan */
			gp_plan_close(b, i, seat->cut ? GP_WHY_SHARE : GP_WHY_TURN);
			closed = true;
		}
		if (closed)
			seat->cut = false; /* the budget paid for these closes; later ones end the turn */
		b->device->check_first = seat->check_next;
		seat->check_gates = false;
	}
}

static void plan_gangs(struct gp_plan_builder *b)
{
	struct gp_sched *sched = b->sched;
	uint32_t g, i, seen = 0, device = b->plan->device;

	for (g = 0; seen < sched->gang_count; g++) {
		const struct gp_gang *gang = &sched->gangs[g];

		if (!gang->used)
			continue;
		seen++;
		if (!(gang->device_mask >> device & 1))
			continue;
		for (i = gang->first; i != GP_NONE && !gp_plan_is_full(b); i = sched->queues[i].gang_next) {
			const struct gp_queue *q = &sched->queues[i];

			if (q->device != device)
				continue;
			if (!gang->want_open && q->gate == GP_GATE_OPEN && q->hold_until_ns <= sched->now_ns)
				gp_plan_close(b, i, gang->why == GP_WHY_NONE ? GP_WHY_GANG : gang->why);
			else if (gang->want_open && q->gate == GP_GATE_CLOSED && gp_slice_may_open(b, i))
				gp_plan_open(b, i, gang->why == GP_WHY_AGED ? GP_WHY_AGED : GP_WHY_GANG);
		}
	}
}

/* Opens idle gates of clients whose transaction is paid for anyway: their next work then needs no transaction. */
static void plan_open_company(struct gp_plan_builder *b, uint32_t first, int64_t hold_rank)
{
	struct gp_sched *sched = b->sched;
	uint32_t n, i, last = b->plan->open_count, before = GP_NONE;

	if (b->device->attr.unit == GP_UNIT_QUEUE)
		return;
	for (n = first; n < last; n++) {
		uint32_t seat = sched->queues[b->plan->open[n].queue.index].seat;

		/* The client's other queues could not open a moment ago. Only a slice may have changed that. */
		if (seat == before && !b->device->attr.short_ns)
			continue;
		before = seat;
		for (i = sched->seats[seat].queue_first; i != GP_NONE && !gp_plan_is_full(b);
		     i = sched->queues[i].seat_next) {
			const struct gp_queue *q = &sched->queues[i];

			if (q->gate == GP_GATE_CLOSED && q->rank >= hold_rank && gp_turn_allows(sched, q) &&
			    q->gang == GP_NONE && (q->attr.kind != GP_KIND_COMPUTE || gp_slots_has(b)) &&
			    gp_slice_may_open(b, i))
				gp_plan_open(b, i, GP_WHY_COMPANY);
		}
	}
}

/* Passes over a queue whose slice must be set before it opens. Returns the head of the list of queues passed over. */
static uint32_t plan_pass(struct gp_plan_builder *b, uint32_t queue, uint32_t passed)
{
	struct gp_queue *q = &b->sched->queues[queue];

	gp_heap_put(b->sched, b->device, GP_HEAP_READY, queue, false);
	if (q->is_passed)
		return passed;
	q->is_passed = true;
	q->passed_next = passed;
	return queue;
}

static void plan_open_ready(struct gp_plan_builder *b)
{
	struct gp_sched *sched = b->sched;
	int64_t hold_rank = gp_device_hold_rank(sched, b->device);
	uint32_t queue, first = b->plan->open_count, top = gp_heap_top(b->device, GP_HEAP_WORK), passed = GP_NONE;
	bool is_behind = top != GP_NONE && sched->seats[sched->queues[top].seat].is_behind;

	if (gp_age_others_yield(b->device))
		return;
	while ((queue = gp_heap_top(b->device, GP_HEAP_READY)) != GP_NONE && !gp_plan_is_full(b)) {
		const struct gp_queue *q = &sched->queues[queue];

		/* Self-switching: the holder stays open below urgent queues, so it may open there; not below a seat
		 * behind. */
		if (q->rank < hold_rank &&
		    !(b->device->attr.switch_ns && !gp_stay_holds(b->device) && q->is_batch && !is_behind &&
		      gp_turn_is_best(sched, b->device, q->rank) && !gp_under_is_long(sched, q)))
			break;
		if (gp_budget_holds_back(sched, q))
			break;
		if (!gp_slice_may_open(b, queue)) {
			passed = plan_pass(b, queue, passed);
			continue;
		}
		if (!gp_slots_make_room(b, q))
			break;
		gp_plan_open(b, queue,
			     q->is_batch                     ? GP_WHY_TURN :
			     sched->seats[q->seat].is_behind ? GP_WHY_FLOOR :
							       GP_WHY_WORK);
	}
	for (; passed != GP_NONE; passed = sched->queues[passed].passed_next) {
		sched->queues[passed].is_passed = false;
		gp_work_refresh(sched, passed);
	}
	plan_open_company(b, first, hold_rank);
}

/* Whether no queue of the device has had work for PLAN_REST_NS. */
static bool plan_rests(struct gp_plan_builder *b)
{
	struct gp_device *device = b->device;

	if (gp_heap_top(device, GP_HEAP_WORK) != GP_NONE || gp_heap_top(device, GP_HEAP_LINGER) != GP_NONE)
		device->rest_ns = GP_NEVER_NS;
	else if (device->rest_ns == GP_NEVER_NS)
		device->rest_ns = b->sched->now_ns + PLAN_REST_NS;
	return device->rest_ns <= b->sched->now_ns;
}

/* On a device that rests the core opens queues whose doorbells the agent cannot observe, so that the agent need not
 * sample them. Not those of gangs (all its devices would have to rest), nor where another queue would have to close. */
static void plan_open_unseen(struct gp_plan_builder *b)
{
	struct gp_sched *sched = b->sched;
	uint32_t seat, i, first = b->plan->open_count;

	if (!b->device->closed_unseen_count)
		return;
	if (!plan_rests(b)) {
		gp_device_wake(b->device, b->device->rest_ns);
		return;
	}
	for (seat = b->device->seat_first; seat != GP_NONE; seat = sched->seats[seat].device_next)
		for (i = sched->seats[seat].queue_first; i != GP_NONE && !gp_plan_is_full(b);
		     i = sched->queues[i].seat_next) {
			const struct gp_queue *q = &sched->queues[i];

			if (gp_gate_is_blind(q) && q->gang == GP_NONE && q->hold_until_ns <= sched->now_ns &&
			    gp_slots_is_free(b, q) && gp_slice_may_open(b, i))
				gp_plan_open(b, i, GP_WHY_REST);
		}
	plan_open_company(b, first, INT64_MIN);
}

/* Orders open gates whose state was lost, and all closed gates of a device that is stopped or whose policy closes
 * none. */
static void plan_repair(struct gp_plan_builder *b)
{
	struct gp_sched *sched = b->sched;
	uint32_t seat, i, later = 0;

	if (!b->device->unknown_count && !b->device->opening_all)
		return;
	for (seat = b->device->seat_first; seat != GP_NONE; seat = sched->seats[seat].device_next)
		for (i = sched->seats[seat].queue_first; i != GP_NONE && !gp_plan_is_full(b);
		     i = sched->queues[i].seat_next) {
			const struct gp_queue *q = &sched->queues[i];

			if (q->gate == GP_GATE_UNKNOWN ? q->hold_until_ns > sched->now_ns :
							 !b->device->opening_all || q->gate != GP_GATE_CLOSED)
				continue;
			if (gp_slice_may_open(b, i))
				gp_plan_open(b, i,
					     b->device->stopped         ? GP_WHY_STOPPED :
					     b->device->opening_all     ? GP_WHY_LOST :
					     gp_gang_is_stuck(sched, q) ? GP_WHY_QUARANTINE :
									  GP_WHY_TIMEOUT);
			else
				later++;
		}
	if (!b->plan->open_count && !later)
		b->device->opening_all = false;
}

static void plan_timers(struct gp_sched *sched, struct gp_device *device)
{
	uint32_t i;

	if (device->aged_seat != GP_NONE)
		gp_age_end(sched, device);
	while ((i = gp_heap_top(device, GP_HEAP_TIMER)) != GP_NONE && sched->queues[i].timer_ns <= sched->now_ns)
		gp_work_due(sched, i);
	/* A timer may have given up an order and so ended the aged turn; nothing else would notice that. */
	if (device->aged_seat != GP_NONE)
		gp_age_end(sched, device);
	if (device->aged_seat != GP_NONE || gp_heap_top(device, GP_HEAP_AGE) != GP_NONE)
		gp_age_begin(sched, device);
}

/* How long the device waits for answers; less if all of them come (all chosen). */
#define PLAN_PATIENCE       4u  /* times what the plan should take, but at least … */
#define PLAN_PATIENCE_LEAST 64u /* … this part of ack_timeout_ns, and at most … */
#define PLAN_PATIENCE_MOST  4u

static uint64_t plan_patience_ns(const struct gp_device *device, uint32_t closes, uint32_t opens)
{
	uint64_t expected_ns = PLAN_PATIENCE * (closes * device->attr.close_ns + opens * device->attr.open_ns);
	uint64_t least_ns = device->attr.ack_timeout_ns / PLAN_PATIENCE_LEAST + 1;
	uint64_t most_ns = device->attr.ack_timeout_ns / PLAN_PATIENCE_MOST + 1;

	return expected_ns < least_ns ? least_ns : expected_ns > most_ns ? most_ns : expected_ns;
}

static void plan_issue(struct gp_plan_builder *b)
{
	struct gp_sched *sched = b->sched;
	struct gp_device *device = b->device;
	struct gp_plan *plan = b->plan;
	uint32_t i, closes, opens;

	plan->seq = ++sched->seq;
	closes = gp_plan_transactions(sched, device, plan->close, plan->close_count);
	opens = gp_plan_transactions(sched, device, plan->open, plan->open_count);
	plan->transaction_count = closes + (device->attr.unit != GP_UNIT_DEVICE || !closes ? opens : 0);
	plan->patience_ns = plan_patience_ns(device, closes, opens);
	device->stats.plans++;
	device->stats.transactions += plan->transaction_count;
	gp_trace_plan(sched, plan);
	for (i = 0; i < plan->close_count; i++) {
		gp_apply_begin(sched, &plan->close[i], plan);
		gp_trace(sched, GP_TRACE_CLOSE, plan->close[i].queue.index, plan->close[i].why, plan->seq);
	}
	for (i = 0; i < plan->open_count; i++) {
		gp_apply_begin(sched, &plan->open[i], plan);
		gp_trace(sched, GP_TRACE_OPEN, plan->open[i].queue.index, plan->open[i].why, plan->seq);
	}
}

static bool plan_device(struct gp_sched *sched, uint32_t index, struct gp_plan *ret_plan)
{
	struct gp_device *device = &sched->devices[index];
	struct gp_plan_builder b = { .sched = sched, .device = device, .plan = ret_plan };

	if (gp_device_waits(sched, device))
		return false;
	device->wake_ns = GP_NEVER_NS;
	while (device->awaited_first != GP_NONE) /* patience is over */
		gp_apply_due(sched, device->awaited_first);
	plan_timers(sched, device);
	if (device->floor_first != GP_NONE)
		gp_floor_update(sched, device);
	b.closing_compute = device->closing_compute_count;
	device->dirty = false;
	ret_plan->device = index;
	ret_plan->close_count = ret_plan->open_count = ret_plan->slice_count = ret_plan->transaction_count = 0;
	ret_plan->patience_ns = 0;
	ret_plan->announce = device->announce != GP_NONE && !device->stopped && device->policy->gates;
	ret_plan->bring_in =
		ret_plan->announce ? gp_queue_id_of(sched, device->announce) : (struct gp_queue_id){ GP_NONE, 0 };
	device->announce = GP_NONE;
	plan_repair(&b);
	if (device->policy->gates && gp_rest_update(sched, device))
		gp_turn_settle(sched, device);
	if (device->policy->gates && !device->stopped) {
		if (sched->closed_first != GP_NONE)
			gp_gang_decide(sched);
		if (device->under_seat != GP_NONE)
			gp_under_update(sched, device);
		gp_turn_assign(sched, device);
		if (device->attr.switch_ns)
			gp_stay_plan(sched, device);
		plan_rise(&b);
		plan_close_lower(&b);
		if (!plan_rests(&b)) /* else the seats stay in their list until a queue has work */
			plan_close_turns(&b);
		plan_gangs(&b);
		gp_slots_close_overflow(&b);
		if (device->aged_seat != GP_NONE)
			gp_age_open(&b);
		plan_open_ready(&b);
		plan_open_unseen(&b);
	}
	/* The steps above mark the device dirty as they change it; only orders that did not fit are left over. */
	device->dirty = gp_plan_is_full(&b);
	if (device->attr.short_ns)
		gp_slice_plan(&b);
	if (ret_plan->close_count || ret_plan->open_count)
		plan_issue(&b);
	else if (ret_plan->announce || ret_plan->slice_count)
		ret_plan->seq = ++sched->seq;
	else
		return false;
	return true;
}

/* When the core must look at the device again. */
static uint64_t plan_deadline_ns(const struct gp_sched *sched, const struct gp_device *device)
{
	uint32_t timer = gp_heap_top(device, GP_HEAP_TIMER);
	uint64_t when_ns = device->wake_ns;

	if (device->awaited_first != GP_NONE)
		return device->patient_until_ns;
	if (device->dirty)
		return sched->now_ns;
	return timer != GP_NONE && sched->queues[timer].timer_ns < when_ns ? sched->queues[timer].timer_ns : when_ns;
}

bool gp_sched_plan(struct gp_sched *sched, uint64_t now_ns, struct gp_plan *ret_plan)
{
	uint32_t i, settled = 0;

	gp_clock(sched, now_ns);
	/* Until no device has anything to do: one may move a gang with members on a device before it. */
	for (i = 0; settled < sched->device_count && i < PLAN_ROUNDS_MAX * sched->device_count; i++) {
		uint32_t index = (sched->plan_next + i) % sched->device_count;

		if (plan_deadline_ns(sched, &sched->devices[index]) > sched->now_ns) {
			settled++;
			continue;
		}
		settled = 0;
		if (plan_device(sched, index, ret_plan)) {
			sched->plan_next = (index + 1) % sched->device_count;
			return true;
		}
	}
	return false;
}

uint64_t gp_sched_deadline_ns(const struct gp_sched *sched)
{
	uint64_t when_ns = GP_NEVER_NS;
	uint32_t i;

	for (i = 0; i < sched->device_count; i++) {
		uint64_t own_ns = plan_deadline_ns(sched, &sched->devices[i]);

		if (own_ns < when_ns)
			when_ns = own_ns;
	}
	return when_ns;
}
