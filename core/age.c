/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Ageing: no queue waits for ever, and no user takes more than a share by waiting. A queue is due when it had work for
 * a whole ageing window and was open for less than an aged turn of it. It then waits in the list of its user on that
 * device (a *share*). Each user gets one aged turn in a window, for the client that has waited longest, whatever its
 * rank. One client of the device has an aged turn at a time, and aged turns take no more than age_permille of the
 * device's time. A queue that had the device to itself and completed nothing waits twice as long for the next one, up
 * to GP_AGE_BACK_OFF_MAX windows.
 *
 * This file owns the queues' age_* fields, the life of shares with their lists of due queues, and the device's aged_*
 * fields. Other files call it, or read `aged` and `aged_seat`.
 */
#include "core/plan.h"

#define AGE_LEVEL_MAX 6u

_Static_assert(1u << AGE_LEVEL_MAX == GP_AGE_BACK_OFF_MAX, "each level doubles the wait");

/* Drivers choose the numbers of users, so the hash depends on every bit. */
static uint32_t age_bucket(const struct gp_sched *sched, uint64_t user, uint32_t device)
{
	uint64_t x = user + 0x9e3779b97f4a7c15ull * (device + 1);

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return (uint32_t)((x ^ x >> 31) % sched->limits.queue_count);
}

void gp_age_join(struct gp_sched *sched, uint32_t seat)
{
	struct gp_seat *s = &sched->seats[seat];
	uint64_t user = sched->clients[s->client].attr.user;
	uint32_t *bucket = &sched->share_hash[age_bucket(sched, user, s->device)], i = GP_NONE;

	if (user)
		for (i = *bucket; i != GP_NONE; i = sched->shares[i].hash_next)
			if (sched->shares[i].user == user && sched->shares[i].device == s->device)
				break;
	if (i == GP_NONE) {
		i = sched->share_free;
		sched->share_free = sched->shares[i].hash_next;
		sched->shares[i] = (struct gp_share){ .user = user,
						      .device = s->device,
						      .first = GP_NONE,
						      .last = GP_NONE,
						      .head = GP_NONE,
						      .turn_tag = sched->devices[s->device].turn_tag + 1,
						      .hash_next = user ? *bucket : GP_NONE };
		if (user)
			*bucket = i;
		sched->devices[s->device].share_count++;
	}
	s->share = i;
	sched->shares[i].seat_count++;
}

static void age_free_share(struct gp_sched *sched, uint32_t share)
{
	struct gp_share *s = &sched->shares[share];
	uint32_t *link = &sched->share_hash[age_bucket(sched, s->user, s->device)];

	GP_ASSERT(s->first == GP_NONE && s->head == GP_NONE && !s->queue_count);
	while (s->user && *link != share) {
		if (GP_NEVER(*link == GP_NONE))
			return;
		link = &sched->shares[*link].hash_next;
	}
	if (s->user)
		*link = s->hash_next;
	sched->devices[s->device].share_count--;
	s->hash_next = sched->share_free;
	sched->share_free = share;
}

static uint64_t age_later(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns > b_ns ? a_ns : b_ns;
}

/* When the queue may have an aged turn as far as its user is concerned. */
static uint64_t age_key_ns(const struct gp_sched *sched, const struct gp_queue *q)
{
	return age_later(gp_share_of(sched, q)->next_ns, q->age_due_ns);
}

/* When its device may have an aged turn. An aged turn of a gang is one on all its devices: it waits at the head until
 * all of them may have one. Else queues that need only one device would always be before it. */
static uint64_t age_allowed_ns(const struct gp_sched *sched, const struct gp_queue *q)
{
	uint64_t when_ns = sched->devices[q->device].age_free_ns;
	uint32_t i;

	for (i = 0; q->gang != GP_NONE && i < sched->device_count; i++)
		if (sched->gangs[q->gang].device_mask >> i & 1)
			when_ns = age_later(when_ns, sched->devices[i].age_free_ns);
	return when_ns;
}

/* The head is the first queue in the list that waits behind a closed gate. Open queues only keep their place in the
 * list. */
static void age_refresh(struct gp_sched *sched, struct gp_share *share)
{
	struct gp_device *device = &sched->devices[share->device];
	uint32_t i = share->first;

	while (i != GP_NONE && (sched->queues[i].gate != GP_GATE_CLOSED || sched->queues[i].aged))
		i = sched->queues[i].age_next;
	if (i == share->head && (i == GP_NONE || age_key_ns(sched, &sched->queues[i]) == sched->queues[i].age_key_ns))
		return;
	if (share->head != GP_NONE)
		gp_heap_put(sched, device, GP_HEAP_AGE, share->head, false);
	share->head = i;
	if (i == GP_NONE)
		return;
	sched->queues[i].age_key_ns = age_key_ns(sched, &sched->queues[i]);
	gp_heap_put(sched, device, GP_HEAP_AGE, i, true);
}

static void age_wait(struct gp_sched *sched, uint32_t queue, bool waits)
{
	struct gp_queue *q = &sched->queues[queue];
	struct gp_share *share = gp_share_of(sched, q);

	if (q->age_waits == waits)
		return;
	q->age_waits = waits;
	if (waits) {
		q->age_prev = share->last;
		q->age_next = GP_NONE;
		*(share->last == GP_NONE ? &share->first : &sched->queues[share->last].age_next) = queue;
		share->last = queue;
		return;
	}
	*(q->age_prev == GP_NONE ? &share->first : &sched->queues[q->age_prev].age_next) = q->age_next;
	*(q->age_next == GP_NONE ? &share->last : &sched->queues[q->age_next].age_prev) = q->age_prev;
}

/* The queue was open for an aged turn's worth, or has no work: its wait begins anew at start_ns. */
static void age_restart(struct gp_sched *sched, uint32_t queue, uint64_t start_ns)
{
	struct gp_queue *q = &sched->queues[queue];

	q->age_start_ns = start_ns;
	q->age_open_ns = q->age_due_ns = 0;
	age_wait(sched, queue, false);
}

/* A queue ages from the moment its gate is closed on work, and goes on across short openings. */
void gp_age_update(struct gp_sched *sched, uint32_t queue)
{
	struct gp_queue *q = &sched->queues[queue];
	const struct gp_device *device = gp_device_of(sched, q);
	struct gp_share *share = gp_share_of(sched, q);

	if (!q->has_work) {
		age_restart(sched, queue, 0);
	} else if (gp_gate_lets_through(q->gate)) {
		q->age_due_ns = 0;
	} else if (!q->age_due_ns) {
		if (!q->age_start_ns || q->age_open_ns >= device->param.age_turn_ns)
			age_restart(sched, queue, sched->now_ns);
		q->age_due_ns = q->age_start_ns + gp_age_window_ns(device, q->age_level);
	}
	if (share->first != GP_NONE || share->head != GP_NONE)
		age_refresh(sched, share);
}

void gp_age_completed(struct gp_sched *sched, uint32_t queue)
{
	struct gp_queue *q = &sched->queues[queue];

	q->in_vain = false;
	if (!q->age_level)
		return;
	q->age_level = 0;
	if (q->age_due_ns && !q->age_waits) {
		q->age_due_ns = q->age_start_ns + gp_age_window_ns(gp_device_of(sched, q), 0);
		gp_work_timer(sched, queue);
	}
}

void gp_age_due(struct gp_sched *sched, uint32_t queue)
{
	struct gp_queue *q = &sched->queues[queue];

	if (!q->aged && q->age_due_ns && q->age_due_ns <= sched->now_ns)
		age_wait(sched, queue, true); /* gp_work_due() then refreshes the queue and its share */
}

/* The user's next aged turn comes a window after this one began. */
static void age_space(struct gp_sched *sched, struct gp_share *share, uint64_t from_ns)
{
	share->next_ns =
		age_later(share->next_ns, from_ns + gp_age_window_ns(&sched->devices[share->device], share->level));
	age_refresh(sched, share);
}

/* Gives a gang its aged turn, one on each of its devices. It counts as the turn of a member's user only if no other
 * queue of that user heads the list there: else that queue would never be first. */
static void age_give_gang(struct gp_sched *sched, uint32_t gang, const struct gp_share *own)
{
	uint32_t i;

	gp_gang_open(sched, gang, GP_WHY_AGED);
	for (i = sched->gangs[gang].first; i != GP_NONE; i = sched->queues[i].gang_next) {
		struct gp_share *share = gp_share_of(sched, &sched->queues[i]);

		if (share == own || share->head == GP_NONE || sched->queues[share->head].gang == gang)
			age_space(sched, share, sched->now_ns);
	}
}

/* Gives the queue's client the device's aged turn: all its queues with work and a closed gate. */
static void age_give(struct gp_sched *sched, const struct gp_queue *q)
{
	struct gp_device *device = gp_device_of(sched, q);
	uint32_t i;

	GP_ASSERT(device->aged_seat == GP_NONE && q->age_waits && q->gate == GP_GATE_CLOSED && !q->aged);
	device->aged_seat = q->seat;
	device->aged_mask = q->gang == GP_NONE ? 1ull << q->device : sched->gangs[q->gang].device_mask;
	device->aged_begun = device->aged_alone = device->aged_had_device = device->aged_forced = false;
	device->aged_from_ns = GP_NEVER_NS;
	device->aged_until_ns = sched->now_ns + device->param.age_turn_ns + 2 * device->attr.open_ns;
	device->stats.aged++;
	for (i = sched->seats[q->seat].queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
		if (sched->queues[i].has_work && sched->queues[i].gate == GP_GATE_CLOSED &&
		    (sched->queues[i].gang == GP_NONE || sched->queues[i].gang == q->gang)) {
			sched->queues[i].aged = true;
			sched->queues[i].aged_mark = sched->queues[i].completed;
			device->aged_alone |= sched->queues[i].in_vain && sched->queues[i].age_waits &&
					      q->gang == GP_NONE && !device->attr.switch_ns;
			gp_work_timer(sched, i);
		}
	age_refresh(sched, gp_share_of(sched, q));
	if (q->gang != GP_NONE) {
		device->aged_from_ns = sched->now_ns;
		age_give_gang(sched, q->gang, gp_share_of(sched, q));
	}
}

/* The first order of the aged turn was given: from here on it costs others. */
static void age_ordered(struct gp_sched *sched, struct gp_device *device)
{
	if (device->aged_from_ns != GP_NEVER_NS)
		return;
	device->aged_from_ns = sched->now_ns;
	age_space(sched, &sched->shares[sched->seats[device->aged_seat].share], sched->now_ns);
}

/* Self-switching: an aged batch client has the turn alone, because two short slices open at once only switch. The
 * holder loses the turn when the budget can pay for the aged turn and a gate can open, not before. */
static void age_take_turn(struct gp_sched *sched, struct gp_device *device)
{
	uint32_t i, seat = device->aged_seat;

	if (!device->attr.switch_ns || device->aged_from_ns != GP_NEVER_NS || sched->seats[seat].has_turn)
		return;
	for (i = sched->seats[seat].queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
		if (sched->queues[i].aged && sched->queues[i].is_batch &&
		    !gp_slice_is_barred(sched, &sched->queues[i]) && gp_budget_can_pay(sched, device, 1)) {
			gp_turn_force(sched, seat);
			device->aged_forced = true;
			return;
		}
}

/* Begins the next aged turn if it is time; else wakes the device then. */
static void age_start(struct gp_sched *sched, struct gp_device *device)
{
	uint32_t top = gp_heap_top(device, GP_HEAP_AGE);
	uint64_t when_ns;

	if (top == GP_NONE)
		return;
	when_ns = age_later(sched->queues[top].age_key_ns, age_allowed_ns(sched, &sched->queues[top]));
	if (when_ns > sched->now_ns)
		gp_device_wake(device, when_ns);
	else
		age_give(sched, &sched->queues[top]);
}

void gp_age_begin(struct gp_sched *sched, struct gp_device *device)
{
	if (device->stopped)
		return;
	if (device->aged_seat == GP_NONE)
		age_start(sched, device);
	if (device->aged_seat != GP_NONE)
		age_take_turn(sched, device);
}

/* Puts off the next aged turn until this one is at most age_permille of the time. A late answer makes a turn up to
 * twice as long; the core does not charge more than that, which is due to a driver that did not ask for plans. */
static void age_charge(struct gp_sched *sched, struct gp_device *device, uint64_t from_ns)
{
	uint64_t spent_ns = sched->now_ns - from_ns, most_ns = 2 * gp_age_run_ns(device);

	if (spent_ns > most_ns)
		spent_ns = most_ns;
	if (spent_ns > GP_DURATION_NS_MAX)
		spent_ns = GP_DURATION_NS_MAX;
	device->age_free_ns = age_later(device->age_free_ns, from_ns) + spent_ns * 1000 / device->param.age_permille;
}

/* Ends the aged turn. A gang's turn charges all the devices that the gang had when it began: a member that leaves or
 * gets stuck in between does not make it cheaper. */
static void age_free(struct gp_sched *sched, struct gp_device *device)
{
	uint32_t i;

	for (i = 0; device->aged_from_ns != GP_NEVER_NS && i < sched->device_count; i++)
		if (device->aged_mask >> i & 1)
			age_charge(sched, &sched->devices[i], device->aged_from_ns);
	device->aged_seat = GP_NONE;
	device->aged_alone = false;
	device->dirty = true;
}

/* Counts queues of other seats that have work and whose gates let it through; those in CLOSING only if closing is
 * set. */
static uint32_t age_others(const struct gp_sched *sched, const struct gp_device *device, uint32_t seat, bool closing)
{
	const struct gp_heap *running = &device->heaps[GP_HEAP_RUNNING];
	uint32_t i, count = 0;

	for (i = 0; i < running->count; i++)
		count += sched->queues[running->slots[i]].seat != seat &&
			 (closing || sched->queues[running->slots[i]].gate != GP_GATE_CLOSING);
	return count;
}

/* Judges the queue's aged turn; true: it made progress. A queue that had the device to itself and completed nothing
 * backs off: it waits longer. Where the driver reports only edges the core cannot tell; where others do not yield
 * (gangs, devices that switch by themselves) they may be the cause. */
static bool age_judge(struct gp_sched *sched, uint32_t queue, bool *ret_backs_off)
{
	struct gp_queue *q = &sched->queues[queue];
	struct gp_device *device = gp_device_of(sched, q);

	q->in_vain = q->has_work && q->written && q->completed == q->aged_mark;
	if (!q->in_vain)
		return q->completed != q->aged_mark || !q->has_work;
	if (!device->aged_had_device)
		return false;
	if (q->age_level < AGE_LEVEL_MAX)
		q->age_level++;
	*ret_backs_off = true;
	device->stats.back_offs++;
	gp_trace(sched, GP_TRACE_BACK_OFF, queue, GP_WHY_VAIN, gp_age_window_ns(device, q->age_level));
	return false;
}

/* A member of a gang loses its aged turn: it closes if it is open without a turn. */
static void age_lose(struct gp_sched *sched, uint32_t queue)
{
	if (!sched->queues[queue].aged)
		return;
	sched->queues[queue].aged = false;
	gp_turn_check(sched, sched->queues[queue].seat);
}

/* If the core has not ordered a member open in the aged turn, it has not decided that the member may open without one:
 * it closes the gang. gp_gang_decide() opens the gang again at once if it may open and no device of it awaits an
 * answer. */
static void age_close_late(struct gp_sched *sched, uint32_t gang)
{
	uint32_t i;

	if (sched->gangs[gang].want_open)
		sched->gangs[gang].why = GP_WHY_GANG; /* members that open from now on do so in their own right */
	for (i = sched->gangs[gang].first; i != GP_NONE; i = sched->queues[i].gang_next)
		if (sched->queues[i].gate == GP_GATE_CLOSED || sched->queues[i].gate == GP_GATE_CLOSING)
			gp_gang_close(sched, gang, GP_WHY_TURN);
}

static void age_end_gang(struct gp_sched *sched, uint32_t gang)
{
	uint32_t i;

	age_close_late(sched, gang);
	for (i = sched->gangs[gang].first; i != GP_NONE; i = sched->queues[i].gang_next) {
		age_lose(sched, i);
		gp_work_refresh(sched, i);
	}
}

/* No queue has the aged mark any more: the gates opened for another reason while they waited for the budget (a turn of
 * their own, no other work), or the order was lost. */
static bool age_is_moot(const struct gp_sched *sched, const struct gp_device *device)
{
	uint32_t i;

	for (i = sched->seats[device->aged_seat].queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
		if (sched->queues[i].aged)
			return false;
	return true;
}

void gp_age_end(struct gp_sched *sched, struct gp_device *device)
{
	uint32_t i, gang = GP_NONE, seat = device->aged_seat;
	uint64_t from_ns = device->aged_from_ns;
	bool done = false, backs_off = false;
	struct gp_share *share;

	if (device->aged_until_ns > sched->now_ns && !(device->aged_alone && !sched->seats[seat].work_count) &&
	    !age_is_moot(sched, device))
		return;
	if (age_others(sched, device, seat, true)) /* others that should have yielded still run, or did not answer */
		device->aged_had_device = false;
	age_free(sched, device);
	for (i = sched->seats[seat].queue_first; i != GP_NONE; i = sched->queues[i].seat_next) {
		struct gp_queue *q = &sched->queues[i];

		if (!q->aged)
			continue;
		q->aged = false;
		gang = q->gang != GP_NONE ? q->gang : gang;
		gp_work_account(sched, i);
		if (q->age_open_ns >= device->param.age_turn_ns || !q->has_work) {
			done |= age_judge(sched, i, &backs_off);
			age_restart(sched, i, sched->now_ns);
		} /* else it got its slot late, or none: its wait goes on */
		gp_work_refresh(sched, i);
	}
	if (gang != GP_NONE)
		age_end_gang(sched, gang);
	share = &sched->shares[sched->seats[seat].share];
	if (done)
		share->level = 0;
	else if (backs_off && share->level < AGE_LEVEL_MAX)
		share->level++;
	if (from_ns != GP_NEVER_NS)
		share->next_ns = from_ns + gp_age_window_ns(device, share->level);
	age_refresh(sched, share);
	gp_turn_check(sched, seat);
}

void gp_age_opened(struct gp_sched *sched, const struct gp_queue *q)
{
	struct gp_device *device = gp_device_of(sched, q);

	if (!q->aged || device->aged_seat != q->seat)
		return;
	/* The gates of one plan have the whole turn. Gates of later plans and late answers do not make it longer. */
	if (device->aged_begun && (q->order_seq != device->aged_seq || q->is_overdue))
		return;
	device->aged_begun = true;
	device->aged_seq = q->order_seq;
	device->aged_until_ns = sched->now_ns + device->param.age_turn_ns;
}

/* The queue left the order of an aged turn unanswered. It goes to the end of its user's list, and no other yields to
 * its next turn if this one is not judged. Else none of its turns would count, and others would wait for ever. */
void gp_age_late(struct gp_sched *sched, uint32_t queue)
{
	struct gp_queue *q = &sched->queues[queue];

	if (!q->age_waits || q->gate != GP_GATE_OPENING || q->order_why != GP_WHY_AGED)
		return;
	q->in_vain = false;
	age_wait(sched, queue, false);
	age_wait(sched, queue, true);
	age_refresh(sched, gp_share_of(sched, q));
}

void gp_age_forget(struct gp_sched *sched, uint32_t seat)
{
	struct gp_device *device = &sched->devices[sched->seats[seat].device];
	struct gp_share *share = &sched->shares[sched->seats[seat].share];

	if (device->aged_seat == seat)
		age_free(sched, device);
	if (--share->seat_count == 0)
		age_free_share(sched, sched->seats[seat].share);
}

void gp_age_gang_opens(struct gp_sched *sched, const struct gp_gang *gang)
{
	uint32_t i;

	for (i = gang->first; i != GP_NONE; i = sched->queues[i].gang_next) {
		sched->queues[i].aged = true;
		age_refresh(sched, gp_share_of(sched, &sched->queues[i]));
	}
}

/* The member that owns the gang's aged turn is still there. A seat may have one for a queue outside the gang. */
static bool age_has_owner(const struct gp_sched *sched, const struct gp_gang *gang)
{
	uint32_t i;

	for (i = gang->first; i != GP_NONE; i = sched->queues[i].gang_next) {
		const struct gp_queue *q = &sched->queues[i];
		const struct gp_device *device = &sched->devices[q->device];

		if (q->aged && device->aged_seat == q->seat &&
		    (device->aged_mask != 1ull << q->device || gang->device_mask == device->aged_mask))
			return true;
	}
	return false;
}

void gp_age_gang_shrinks(struct gp_sched *sched, const struct gp_gang *gang)
{
	bool goes_on = age_has_owner(sched, gang);
	uint32_t i;

	if (gang->want_open && gang->why == GP_WHY_AGED && !goes_on)
		age_close_late(sched, (uint32_t)(gang - sched->gangs));
	for (i = gang->first; i != GP_NONE; i = sched->queues[i].gang_next) {
		if (!goes_on && gp_device_of(sched, &sched->queues[i])->aged_seat != sched->queues[i].seat)
			age_lose(sched, i);
		age_refresh(sched, gp_share_of(sched, &sched->queues[i]));
	}
}

void gp_age_quarantined(struct gp_sched *sched, uint32_t queue)
{
	struct gp_queue *q = &sched->queues[queue];
	const struct gp_device *device = gp_device_of(sched, q);

	if (!q->aged)
		return;
	q->aged = false;
	if (q->gang != GP_NONE && device->aged_seat == q->seat && age_is_moot(sched, device))
		gp_age_gang_shrinks(sched, &sched->gangs[q->gang]);
}

/* The next queue of the aged seat to open: queues that are due first, and of these the one opened longest ago, so that
 * they take turns where slots are few. */
static uint32_t age_next(const struct gp_plan_builder *b)
{
	const struct gp_sched *sched = b->sched;
	uint32_t i, found = GP_NONE;

	for (i = sched->seats[b->device->aged_seat].queue_first; i != GP_NONE; i = sched->queues[i].seat_next) {
		const struct gp_queue *q = &sched->queues[i];

		if (q->aged && q->has_work && q->gate == GP_GATE_CLOSED && q->gang == GP_NONE &&
		    (found == GP_NONE ||
		     (q->age_waits == sched->queues[found].age_waits ? q->opened_ns < sched->queues[found].opened_ns :
								       q->age_waits)))
			found = i;
	}
	return found;
}

/* An open gate may be worth nothing on a device full of long workgroups. So after an aged turn in vain other queues
 * with work yield for the next one, if the budget can pay for that too. True: no other work runs. */
static bool age_yield(struct gp_plan_builder *b)
{
	struct gp_sched *sched = b->sched;
	const struct gp_heap *open = &b->device->heaps[GP_HEAP_OPEN];
	struct gp_order *candidates = &b->plan->close[b->plan->close_count];
	uint32_t i, count = 0, transactions, others = age_others(sched, b->device, b->device->aged_seat, false);

	for (i = 0; i < open->count && b->plan->close_count + count < GP_PLAN_MAX; i++) {
		const struct gp_queue *q = &sched->queues[open->slots[i]];

		if (q->seat != b->device->aged_seat && q->has_work && !q->aged && q->gang == GP_NONE &&
		    q->hold_until_ns <= sched->now_ns)
			candidates[count++] = gp_plan_order(sched, open->slots[i], GP_WHY_YIELD);
	}
	transactions = gp_plan_transactions(sched, b->device, candidates, count);
	if (!count || !gp_budget_can_pay(sched, b->device, transactions + 1))
		return !others;
	gp_budget_pay(b->device, transactions);
	for (i = 0; i < count; i++)
		gp_plan_close(b, candidates[i].queue.index, GP_WHY_YIELD);
	return others == count;
}

/* The aged turn does not run out while its first gate waits for the budget or for a slice. Once that gate is ordered
 * open it does: else the turn would last for as long as the order is not answered. If the order failed the turn is over
 * and the seat's other queues wait for the next one: else they could have this one late, right before the next. */
static void age_stall(struct gp_plan_builder *b)
{
	const struct gp_sched *sched = b->sched;
	uint32_t i;

	if (b->device->aged_begun)
		return;
	for (i = sched->seats[b->device->aged_seat].queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
		if (sched->queues[i].aged && sched->queues[i].gate == GP_GATE_OPENING)
			return;
	b->device->aged_until_ns = b->device->aged_from_ns == GP_NEVER_NS ? GP_NEVER_NS : sched->now_ns;
}

/* Whether the next gate must be paid for. One transaction closes all gates of the seat again, unless the unit is the
 * queue. Where the seat took the turn from the holder, the budget was asked then, for the first gate. */
static bool age_must_pay(const struct gp_sched *sched, const struct gp_device *device)
{
	uint32_t i;

	if (device->attr.unit != GP_UNIT_QUEUE)
		return device->aged_from_ns == GP_NEVER_NS && !device->aged_forced;
	for (i = sched->seats[device->aged_seat].queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
		if (sched->queues[i].aged && sched->queues[i].gate != GP_GATE_CLOSED)
			return true;
	return !device->aged_forced;
}

/* Opens queues that waited a whole window, whatever their rank, if the budget can pay for closing them again. */
void gp_age_open(struct gp_plan_builder *b)
{
	struct gp_sched *sched = b->sched;
	struct gp_device *device = b->device;
	uint32_t i;

	if (device->aged_until_ns == GP_NEVER_NS)
		device->aged_until_ns = sched->now_ns + device->param.age_turn_ns + 2 * device->attr.open_ns;
	while ((i = age_next(b)) != GP_NONE) {
		if (age_must_pay(sched, device) && !gp_budget_can_pay(sched, device, 1)) {
			age_stall(b);
			break;
		}
		if (device->aged_alone && !device->aged_begun) {
			uint32_t before = b->plan->close_count;

			device->aged_had_device = age_yield(b);
			if (b->plan->close_count > before)
				age_ordered(sched, device);
		}
		if (!gp_slice_may_open(b, i)) { /* the holder of the turn must close first */
			age_stall(b);
			break;
		}
		if (gp_plan_is_full(b) || !gp_slots_make_room(b, &sched->queues[i]))
			break;
		sched->queues[i].aged_mark = sched->queues[i].completed;
		gp_plan_open(b, i, GP_WHY_AGED);
		age_ordered(sched, device);
	}
	gp_device_wake(device, device->aged_until_ns);
}
