/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Slices, on devices that switch by themselves: how long the device runs a queue before it looks at others. A batch
 * queue below a client that takes no turns has the shortest slice there is, so that a more urgent queue waits for one
 * switch only. The only client above batch clients may have a long slice, so that the device interrupts none of its
 * requests. A batch client above another that stays open below it (under.c) has one in the middle. All others have the
 * slices of their applications, and so have members of one gang on several seats of the device.
 *
 * Two short slices open at once make no progress at all (measured: docs/decisions/0008). Hence, whatever answer is
 * late, lost or bad:
 *   - a slice that is not known to be long counts as short, and a gate that is not known to be closed as open;
 *   - a queue that may be short opens only when no other short queue with work is open: that one closes first, or,
 *     where it cannot be closed, the core first makes the opening queue's slice long;
 *   - when an open short queue gets work beside another, one of the two is about to close; if that takes longer than a
 *     few calls (a gate could not be closed), all of them get long slices again.
 * The core keeps closed and idle queues short, so that a turn costs no call. Where no client is above another any more,
 * on a device that was stopped, and with a policy that never closes a gate, all slices go back to what they were.
 */
#include "core/plan.h"

#define SLICE_GRACE_PAIRS 5u            /* so many times a close, an open and a slice (chosen) */
#define SLICE_RETRY_NS    1000000000ull /* the core repeats a failed order then, or after ack_timeout_ns if less … */
#define SLICE_RETRY_MAX   4u            /* … and doubles the time so often, after each further failure */
#define SLICE_OWN_NS      2000000ull    /* of an application that does not set it (measured: share/devices/h200.ini) */
#define SLICE_UNIT_NS     1000ull       /* slices are whole microseconds */
#define SLICE_PROMPT_PART 4u /* of ack_timeout_ns: how long a queue that must open anyway waits for its long slice */

bool gp_slice_is_short_ns(const struct gp_device *device, uint64_t slice_ns)
{
	return slice_ns && slice_ns != device->attr.mid_ns &&
	       (!device->attr.long_ns || slice_ns < device->attr.long_ns);
}

bool gp_slice_may_be_short(const struct gp_device *device, const struct gp_queue *q)
{
	return q->slice_unknown || gp_slice_is_short_ns(device, q->slice_ns) ||
	       (q->slice_seq && gp_slice_is_short_ns(device, q->slice_order_ns));
}

static bool slice_has_one(const struct gp_queue *q)
{
	return q->attr.kind == GP_KIND_COMPUTE && !q->attr.fixed_slice;
}

/* A client takes no turns here: batch queues are below it and want short slices. */
static bool slice_is_wanted(const struct gp_sched *sched, const struct gp_device *device)
{
	uint32_t i;

	if (!device->policy->gates || device->stopped)
		return false;
	for (i = device->seat_first; i != GP_NONE; i = sched->seats[i].device_next)
		if (sched->seats[i].batch_count < sched->seats[i].queue_count)
			return true;
	return false;
}

/* A batch queue that the device puts aside. Several clients of one gang instead run beside each other with their own
 * slices, and the core closes their gates together. */
static bool slice_is_turned(const struct gp_sched *sched, const struct gp_queue *q)
{
	return q->is_batch && !gp_gang_is_several(sched, q);
}

bool gp_slice_is_lower(const struct gp_sched *sched, const struct gp_queue *q)
{
	return slice_is_turned(sched, q) && slice_is_wanted(sched, &sched->devices[q->device]);
}

/* How the queue stands in the way of others. A queue that may be open in fact is at least SLICE_IDLE here. A queue
 * without work is in no other's way; the core looks again as soon as it has some. */
enum slice_stand { SLICE_CLOSED, SLICE_IDLE, SLICE_CLOSING, SLICE_STAYS };

static enum slice_stand slice_stand(const struct gp_queue *q)
{
	if (q->gate == GP_GATE_CLOSED)
		return SLICE_CLOSED;
	if (!q->has_work)
		return SLICE_IDLE;
	return q->gate == GP_GATE_CLOSING ? SLICE_CLOSING : SLICE_STAYS;
}

static bool slice_is_short_open(const struct gp_device *device, const struct gp_queue *q)
{
	return slice_has_one(q) && gp_slice_may_be_short(device, q) && slice_stand(q) > SLICE_IDLE;
}

/* The same for the queue and those that share its slice. */
static bool slice_is_shared_short_open(const struct gp_sched *sched, const struct gp_device *device,
				       const struct gp_queue *q)
{
	uint32_t i;

	if (!q->attr.shares_slice)
		return slice_is_short_open(device, q);
	for (i = sched->seats[q->seat].queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
		if (sched->queues[i].attr.shares_slice && slice_is_short_open(device, &sched->queues[i]))
			return true;
	return false;
}

static bool slice_is_same(const struct gp_queue *a, const struct gp_queue *b)
{
	return a == b || (a->seat == b->seat && a->attr.shares_slice && b->attr.shares_slice);
}

/* Whether the order for the queue's slice failed or is late; else wakes the device when it will be late. */
static bool slice_has_failed(const struct gp_sched *sched, struct gp_device *device, const struct gp_queue *q)
{
	uint64_t until_ns = q->slice_from_ns + device->attr.ack_timeout_ns / SLICE_PROMPT_PART;

	if (!q->slice_seq)
		return q->slice_hold_ns;
	if (until_ns > sched->now_ns)
		gp_device_wake(device, until_ns);
	return until_ns <= sched->now_ns;
}

bool gp_slice_is_barred(const struct gp_sched *sched, const struct gp_queue *q)
{
	const struct gp_device *device = &sched->devices[q->device];
	uint32_t seat, i;

	if (!device->attr.short_ns || !slice_has_one(q) || !gp_slice_may_be_short(device, q) ||
	    q->gate != GP_GATE_CLOSED || !gp_slice_is_lower(sched, q))
		return false;
	for (seat = device->seat_first; seat != GP_NONE; seat = sched->seats[seat].device_next)
		for (i = sched->seats[seat].queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
			if (sched->queues[i].gate == GP_GATE_QUARANTINED && !slice_is_same(q, &sched->queues[i]) &&
			    slice_is_short_open(device, &sched->queues[i]))
				return true;
	return false;
}

bool gp_slice_lets_open(struct gp_plan_builder *b, uint32_t queue)
{
	struct gp_sched *sched = b->sched;
	struct gp_queue *q = &sched->queues[queue];
	uint32_t seat, i, closing = 0, standing = 0;

	if (!slice_has_one(q) || !gp_slice_may_be_short(b->device, q))
		return true;
	for (seat = b->device->seat_first; seat != GP_NONE; seat = sched->seats[seat].device_next)
		for (i = sched->seats[seat].queue_first; i != GP_NONE; i = sched->queues[i].seat_next) {
			const struct gp_queue *other = &sched->queues[i];
			bool leaves = other->gate == GP_GATE_CLOSING && !other->is_overdue;

			if (slice_is_same(q, other) || !slice_is_short_open(b->device, other))
				continue;
			closing += leaves;
			standing += !leaves;
		}
	if (!closing && !standing)
		return true;
	gp_slice_look(b->device);
	q->slice_opens_long = q->gate == GP_GATE_UNKNOWN || (standing && q->has_work);
	if (q->gate == GP_GATE_CLOSED && gp_slice_is_lower(sched, q))
		return false;
	/* A queue that takes no turns, and a gate that may be open already, do not wait for a slice that cannot be
	 * set. */
	return slice_has_failed(sched, b->device, q);
}

/* What one round over the queues of one device finds. */
struct slice_round {
	bool is_wanted;
	bool is_crowded;      /* several have stayed open for longer than it takes to close one */
	uint32_t uppers;      /* clients with a queue that takes no turns */
	uint32_t lowers;      /* queues that take turns */
	int64_t best;         /* the highest rank of batch queues that may be open, with work or without … */
	uint32_t best_count;  /* … and how many have it */
	uint32_t staying;     /* batch queues with work that may be open and are not about to close */
	uint32_t short_count; /* queues that may be open, have work and may be short */
	int64_t least;        /* the lowest rank of batch queues that are open or about to open … */
	const struct gp_seat *least_seat; /* … the seat that has it, and the lowest rank of all other seats */
	int64_t least_other;
	uint32_t lengthening; /* queues that may be short and should not be: these change first, then others become
				 short */
};

/* Queues that share a slice count once: only the first of the seat with this stamp. */
static bool slice_counts(struct gp_sched *sched, const struct gp_queue *q, uint64_t stamp)
{
	struct gp_seat *seat = &sched->seats[q->seat];

	if (!q->attr.shares_slice)
		return true;
	if (seat->stamp == stamp)
		return false;
	seat->stamp = stamp;
	return true;
}

/* A seat under another (under.c) does not count as staying beside it. If the higher seat does not stay open, the lower
 * one counts like others. */
static bool slice_is_under(const struct gp_sched *sched, const struct gp_device *device, const struct gp_queue *q)
{
	uint32_t i;

	if (!gp_under_is(sched, q))
		return false;
	for (i = sched->seats[device->under_by].queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
		if (sched->queues[i].attr.kind == GP_KIND_COMPUTE && slice_stand(&sched->queues[i]) == SLICE_STAYS)
			return true;
	return false;
}

/* Adds the seat's open queues to the round. */
static void slice_look_open(struct gp_sched *sched, const struct gp_seat *seat, struct slice_round *round)
{
	const struct gp_device *device = &sched->devices[seat->device];
	uint64_t staying = ++sched->stamp, is_short = ++sched->stamp, open = ++sched->stamp;
	int64_t own_least = INT64_MAX;
	uint32_t i;

	for (i = seat->queue_first; i != GP_NONE; i = sched->queues[i].seat_next) {
		const struct gp_queue *q = &sched->queues[i];

		if (q->attr.kind == GP_KIND_COMPUTE && q->is_batch && slice_stand(q) == SLICE_STAYS &&
		    !slice_is_under(sched, device, q))
			round->staying += slice_counts(sched, q, staying);
	}
	for (i = seat->queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
		if (slice_is_short_open(device, &sched->queues[i]))
			round->short_count += slice_counts(sched, &sched->queues[i], is_short);
	for (i = seat->queue_first; i != GP_NONE; i = sched->queues[i].seat_next) {
		const struct gp_queue *q = &sched->queues[i];

		if (q->attr.kind != GP_KIND_COMPUTE || !q->is_batch || q->gate == GP_GATE_CLOSED)
			continue;
		if ((q->gate == GP_GATE_OPEN || q->gate == GP_GATE_OPENING) && !q->fail_count &&
		    q->own_rank < own_least)
			own_least = q->own_rank;
		if (q->rank < round->best || !slice_counts(sched, q, open))
			continue;
		round->best_count = q->rank > round->best ? 1 : round->best_count + 1;
		round->best = q->rank;
	}
	if (own_least < round->least) {
		round->least_other = round->least;
		round->least = own_least;
		round->least_seat = seat;
	} else if (own_least < round->least_other) {
		round->least_other = own_least;
	}
}

static bool slice_is_middle(const struct gp_sched *sched, const struct slice_round *round, const struct gp_queue *q)
{
	return q->own_rank > (round->least_seat == &sched->seats[q->seat] ? round->least_other : round->least);
}

static uint64_t slice_grace_ns(const struct gp_device *device)
{
	return SLICE_GRACE_PAIRS * (device->attr.close_ns + device->attr.open_ns + device->attr.slice_ns) + 1;
}

static struct slice_round slice_look(struct gp_sched *sched, struct gp_device *device)
{
	struct slice_round round = { .is_wanted = slice_is_wanted(sched, device),
				     .best = INT64_MIN,
				     .least = INT64_MAX,
				     .least_other = INT64_MAX };
	uint64_t grace_ns = slice_grace_ns(device);
	uint32_t s, i;

	for (s = device->seat_first; s != GP_NONE; s = sched->seats[s].device_next) {
		const struct gp_seat *seat = &sched->seats[s];

		round.uppers += seat->batch_count < seat->queue_count;
		round.lowers += seat->batch_count;
		for (i = seat->queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
			round.lengthening += slice_has_one(&sched->queues[i]) &&
					     gp_slice_may_be_short(device, &sched->queues[i]) &&
					     !(round.is_wanted && slice_is_turned(sched, &sched->queues[i]));
		slice_look_open(sched, seat, &round);
	}
	if (round.staying < 2 || !round.is_wanted)
		device->crowded_ns = 0;
	else if (!device->crowded_ns)
		device->crowded_ns = sched->now_ns;
	round.is_crowded = device->crowded_ns && sched->now_ns - device->crowded_ns >= grace_ns;
	if (device->crowded_ns && !round.is_crowded)
		gp_device_wake(device, device->crowded_ns + grace_ns);
	return round;
}

static void slice_order(struct gp_plan_builder *b, uint32_t queue, uint64_t slice_ns)
{
	struct gp_queue *q = &b->sched->queues[queue];
	struct gp_plan *plan = b->plan;

	if (plan->slice_count == GP_PLAN_SLICE_MAX) {
		b->device->slice_dirty = b->device->dirty = true;
		return;
	}
	plan->slice[plan->slice_count++] = (struct gp_slice_order){
		.queue = gp_queue_id_of(b->sched, queue),
		.client = { q->client, b->sched->clients[q->client].generation },
		.slice_ns = slice_ns,
	};
	q->slice_seq = b->sched->seq + 1; /* the seq that this plan gets */
	q->slice_order_ns = slice_ns;
	q->slice_from_ns = b->sched->now_ns;
	q->slice_due_ns = b->sched->now_ns + b->device->attr.ack_timeout_ns;
	gp_trace(b->sched, GP_TRACE_SLICE, queue, gp_slice_is_short_ns(b->device, slice_ns) ? GP_WHY_SELF : GP_WHY_NONE,
		 slice_ns);
	gp_work_timer(b->sched, queue);
}

static uint64_t slice_short_ns(const struct gp_device *device, const struct gp_queue *q)
{
	uint64_t short_ns = gp_budget_short_ns(device);
	uint64_t pressed_ns = device->pressed_slice_ns / 1000 * device->param.age_permille;

	if (q->aged)
		return 0; /* its aged turn must not be all switches */
	if (pressed_ns > short_ns)
		short_ns = pressed_ns;
	else if (q->attr.own_slice_ns && short_ns > q->attr.own_slice_ns && !gp_gather_is(device))
		short_ns = q->attr.own_slice_ns;
	return short_ns == device->attr.mid_ns ? short_ns + SLICE_UNIT_NS : short_ns; /* mid_ns means another thing */
}

/* The slice of a queue above another that stays open: no longer than its own. */
static uint64_t slice_mid_ns(const struct gp_device *device, const struct gp_queue *q)
{
	uint64_t own_ns = q->attr.own_slice_ns ? q->attr.own_slice_ns : SLICE_OWN_NS;

	return device->attr.mid_ns < own_ns ? device->attr.mid_ns : 0;
}

/* Whether a batch queue may become short now: no other short queue has work beside it. */
static bool slice_may_shorten(const struct slice_round *round, const struct gp_queue *q, bool is_short)
{
	bool is_alone = round->staying == (slice_stand(q) == SLICE_STAYS);

	switch (slice_stand(q)) {
	case SLICE_CLOSED: return true;
	/* It would take the turn if it had work, so it stays open beside another. */
	case SLICE_IDLE: return q->rank == round->best && round->best_count == 1 && !round->lengthening;
	case SLICE_STAYS: return is_alone && round->short_count == is_short && !round->lengthening;
	default: return false;
	}
}

/* Orders the slice that the queue should have, if it may have it now. */
static void slice_update(struct gp_plan_builder *b, uint32_t queue, struct slice_round *round)
{
	struct gp_queue *q = &b->sched->queues[queue];
	const struct gp_device *device = b->device;
	bool was_short = slice_is_shared_short_open(b->sched, device, q),
	     is_lower = round->is_wanted && slice_is_turned(b->sched, q);
	uint64_t want_ns = 0;

	if (!slice_has_one(q) || q->slice_seq || q->slice_hold_ns)
		return;
	if (q->slice_opens_long && (!round->short_count || slice_stand(q) > SLICE_IDLE))
		q->slice_opens_long = q->gate == GP_GATE_UNKNOWN && round->short_count > was_short;
	if (!is_lower) {
		if (round->is_wanted && !q->is_batch && round->uppers == 1 && round->lowers &&
		    q->attr.own_slice_ns < device->attr.long_ns && !device->pressed_slice_ns)
			want_ns = device->attr.long_ns;
	} else if (slice_stand(q) == SLICE_STAYS && round->staying > 1 && round->is_crowded) {
		want_ns = 0;
	} else if (device->attr.mid_ns && slice_is_middle(b->sched, round, q)) {
		want_ns = slice_mid_ns(device, q);
	} else if (!q->slice_opens_long) {
		want_ns = slice_short_ns(device, q);
		if (!slice_may_shorten(round, q, was_short))
			return;
	}
	if (q->slice_unknown || q->slice_ns != want_ns)
		slice_order(b, queue, want_ns);
	round->short_count += slice_is_shared_short_open(b->sched, device, q) - was_short;
}

/* Urgent work that never ends keeps a short queue aside for ever, though its gate is open. After a whole ageing window
 * the short queue's slice becomes age_permille of the urgent queue's, and the urgent queue gets its own slice. Behind a
 * long slice a program that starts, with some fifty small pieces of work one after the other, would take seconds
 * (measured: docs/decisions/0032), and guaranteed shares would never get their turn. */
static void slice_look_pressed(struct gp_sched *sched, struct gp_device *device)
{
	uint32_t top = gp_heap_top(device, GP_HEAP_WORK);
	const struct gp_queue *q = top == GP_NONE ? NULL : &sched->queues[top];
	uint64_t was_ns = device->pressed_slice_ns;

	device->pressed_slice_ns = 0;
	if (!q || q->is_batch)
		device->pressed_ns = 0;
	else if (!device->pressed_ns)
		device->pressed_ns = sched->now_ns;
	else if (sched->now_ns - device->pressed_ns < device->param.age_window_ns)
		device->pressed_slice_ns = 0;
	else
		device->pressed_slice_ns = q->attr.own_slice_ns                           ? q->attr.own_slice_ns :
					   device->floor_permille || device->attr.long_ns ? SLICE_OWN_NS :
											    q->slice_ns;
	if (device->pressed_ns && sched->now_ns - device->pressed_ns < device->param.age_window_ns)
		gp_device_wake(device, device->pressed_ns + device->param.age_window_ns);
	if (device->pressed_slice_ns != was_ns)
		gp_slice_look(device);
}

void gp_slice_plan(struct gp_plan_builder *b)
{
	struct gp_device *device = b->device;
	struct slice_round round;
	uint32_t s, i;

	gp_budget_refresh(b->sched, device);
	slice_look_pressed(b->sched, device);
	if (!device->slice_dirty && !device->crowded_ns)
		return;
	device->slice_dirty = false;
	round = slice_look(b->sched, device);
	for (s = device->seat_first; s != GP_NONE; s = b->sched->seats[s].device_next)
		for (i = b->sched->seats[s].queue_first; i != GP_NONE; i = b->sched->queues[i].seat_next)
			slice_update(b, i, &round);
}

static void slice_failed(struct gp_sched *sched, uint32_t queue, int result)
{
	struct gp_queue *q = &sched->queues[queue];
	struct gp_device *device = gp_device_of(sched, q);
	uint32_t shift = q->slice_fails < SLICE_RETRY_MAX ? q->slice_fails : SLICE_RETRY_MAX;
	uint64_t retry_ns = device->attr.ack_timeout_ns < SLICE_RETRY_NS ? device->attr.ack_timeout_ns : SLICE_RETRY_NS;

	q->slice_fails += q->slice_fails < UINT32_MAX;
	q->slice_hold_ns = sched->now_ns + (retry_ns << shift);
	device->stats.slice_failures++;
	gp_trace(sched, GP_TRACE_SLICE_FAILED, queue, result ? GP_WHY_FAILED : GP_WHY_TIMEOUT,
		 (uint64_t) - (int64_t)result);
}

static void slice_end(struct gp_sched *sched, uint32_t queue)
{
	struct gp_queue *q = &sched->queues[queue];
	struct gp_device *device = gp_device_of(sched, q);

	q->slice_seq = q->slice_due_ns = 0;
	gp_work_timer(sched, queue);
	gp_slice_look(device);
	device->dirty = true;
}

void gp_slice_due(struct gp_sched *sched, uint32_t queue)
{
	struct gp_queue *q = &sched->queues[queue];

	if (q->slice_due_ns && q->slice_due_ns <= sched->now_ns) {
		q->slice_unknown = true;
		slice_failed(sched, queue, 0);
		slice_end(sched, queue);
	}
	if (q->slice_hold_ns && q->slice_hold_ns <= sched->now_ns) {
		q->slice_hold_ns = 0;
		gp_slice_look(gp_device_of(sched, q));
	}
}

int gp_sched_sliced(struct gp_sched *sched, struct gp_queue_id queue, uint64_t seq, int result, uint64_t now_ns)
{
	struct gp_queue *q = gp_queue_find(sched, queue);
	struct gp_device *device;

	if (!q)
		return -ESTALE;
	device = gp_device_of(sched, q);
	if (!q->slice_seq || q->slice_seq != seq) {
		device->stats.stale_acks++;
		gp_trace(sched, GP_TRACE_STALE_ACK, queue.index, GP_WHY_NONE, seq);
		return -ESTALE;
	}
	gp_clock(sched, now_ns);
	if (result) { /* a refused order changes nothing */
		slice_failed(sched, queue.index, result);
	} else {
		q->slice_ns = q->slice_order_ns;
		q->slice_unknown = false;
		q->slice_fails = 0;
		device->stats.slices++;
		gp_trace(sched, GP_TRACE_SLICED, queue.index, GP_WHY_NONE, sched->now_ns - q->slice_from_ns);
	}
	slice_end(sched, queue.index);
	return 0;
}

int gp_sched_slice_lost(struct gp_sched *sched, struct gp_queue_id queue, uint64_t now_ns)
{
	struct gp_queue *q = gp_queue_find(sched, queue);

	if (!q)
		return -ESTALE;
	gp_clock(sched, now_ns);
	if (!gp_device_of(sched, q)->attr.short_ns)
		return 0;
	q->slice_unknown = true;
	slice_end(sched, queue.index); /* an answer that comes now may be older than the change */
	return 0;
}

bool gp_sched_switch_watch(const struct gp_sched *sched, uint32_t device, struct gp_queue_id *ret_queue)
{
	const struct gp_device *d = &sched->devices[device];
	const struct gp_heap *running = &d->heaps[GP_HEAP_RUNNING];
	uint32_t i;

	if (device >= sched->device_count || !d->attr.short_ns || !d->attr.switch_ns ||
	    (d->param.overhead_permille >= 1000 && d->param.protect == GP_PROTECT_THROUGHPUT))
		return false;
	for (i = 0; i < running->count; i++) {
		const struct gp_queue *q = &sched->queues[running->slots[i]];

		if (q->gate != GP_GATE_OPEN || q->slice_unknown || !gp_slice_is_short_ns(d, q->slice_ns) ||
		    !gp_slice_is_lower(sched, q))
			continue;
		*ret_queue = gp_queue_id_of(sched, running->slots[i]);
		return true;
	}
	return false;
}

static const char *slice_check_queue(const struct gp_sched *sched, const struct gp_queue *q)
{
	const struct gp_device *device = &sched->devices[q->device];

	if ((q->slice_seq != 0) != (q->slice_due_ns != 0) || q->slice_seq > sched->seq)
		return "an order for a slice is under way and never due";
	if (q->slice_seq && q->slice_hold_ns)
		return "a slice is ordered though it is to wait";
	if ((!device->attr.short_ns || !slice_has_one(q)) && (q->slice_seq || q->slice_ns))
		return "a slice is set that cannot be";
	return NULL;
}

/* When everything is decided: no two short queues with work stay open at once, and none is short where no client is
 * above it. */
const char *gp_slice_check(const struct gp_sched *sched, const struct gp_device *device)
{
	bool is_decided = !device->dirty && !gp_device_waits(sched, device) && !device->slice_dirty &&
			  device->wake_ns > sched->now_ns;
	bool is_moment = device->crowded_ns && sched->now_ns - device->crowded_ns < slice_grace_ns(device);
	const struct gp_queue *found = NULL;
	const char *wrong = NULL;
	bool is_wanted = slice_is_wanted(sched, device);
	uint32_t s, i;

	for (s = device->seat_first; s != GP_NONE && !wrong; s = sched->seats[s].device_next)
		for (i = sched->seats[s].queue_first; i != GP_NONE && !wrong; i = sched->queues[i].seat_next) {
			const struct gp_queue *q = &sched->queues[i];

			wrong = slice_check_queue(sched, q);
			/* While an order is under way, or was refused a moment ago, the core can order nothing. */
			if (wrong || !is_decided || !slice_has_one(q) || q->slice_seq || q->slice_hold_ns)
				continue;
			if (is_wanted ? !slice_is_turned(sched, q) && gp_slice_may_be_short(device, q) :
					q->slice_unknown || q->slice_ns)
				return "a slice is not given back";
			if (!gp_slice_may_be_short(device, q))
				continue;
			if (slice_stand(q) != SLICE_STAYS || is_moment)
				continue;
			if (found && !slice_is_same(found, q))
				return "two short slices are open at once";
			found = q;
		}
	return wrong;
}
