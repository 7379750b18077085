/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Gangs: queues of a collective on several devices open and close together, because a rank that runs alone only spins.
 * A gang has work if any member has, its rank is its members' highest, and it opens only when every one of its devices
 * lets it: first it gets the turn on all of them, then the closes that it needs are acknowledged everywhere, then all
 * members open in orders that share a move number.
 */
#include "core/calls.h"

static void gang_mark_devices(struct gp_sched *sched, const struct gp_gang *gang)
{
	uint32_t i;

	for (i = 0; i < sched->device_count; i++)
		if (gang->device_mask >> i & 1)
			sched->devices[i].dirty = true;
}

/* The core does not order the gates of this device, or not now: the gang's other devices do not wait for it. */
static bool gang_is_free_of(const struct gp_device *device)
{
	return device->stopped || !device->policy->gates;
}

static uint32_t gang_find(const struct gp_sched *sched, uint32_t id)
{
	uint32_t i;

	for (i = 0; i < sched->limits.gang_count; i++)
		if (sched->gangs[i].used && sched->gangs[i].id == id)
			return i;
	return GP_NONE;
}

static void gang_count_devices(struct gp_sched *sched, struct gp_gang *gang)
{
	uint32_t i;

	gang->device_mask = 0;
	for (i = gang->first; i != GP_NONE; i = sched->queues[i].gang_next)
		gang->device_mask |= 1ull << sched->queues[i].device;
}

/* The members' heaps follow the gang's work. */
static void gang_refresh(struct gp_sched *sched, const struct gp_gang *gang)
{
	uint32_t i;

	for (i = gang->first; i != GP_NONE; i = sched->queues[i].gang_next)
		gp_work_refresh(sched, i);
}

bool gp_gang_can_join(const struct gp_sched *sched, uint32_t id)
{
	return sched->gang_count < sched->limits.gang_count || gang_find(sched, id) != GP_NONE;
}

static void gang_link(struct gp_sched *sched, uint32_t index)
{
	struct gp_gang *gang = &sched->gangs[index];

	gang->closed_next = GP_NONE;
	gang->closed_prev = sched->closed_last;
	*(gang->closed_prev == GP_NONE ? &sched->closed_first : &sched->gangs[gang->closed_prev].closed_next) = index;
	sched->closed_last = index;
}

static void gang_unlink(struct gp_sched *sched, uint32_t index)
{
	const struct gp_gang *gang = &sched->gangs[index];

	*(gang->closed_prev == GP_NONE ? &sched->closed_first : &sched->gangs[gang->closed_prev].closed_next) =
		gang->closed_next;
	*(gang->closed_next == GP_NONE ? &sched->closed_last : &sched->gangs[gang->closed_next].closed_prev) =
		gang->closed_prev;
}

void gp_gang_join(struct gp_sched *sched, uint32_t queue, uint32_t id)
{
	struct gp_queue *q = &sched->queues[queue];
	uint32_t index = gang_find(sched, id);
	struct gp_gang *gang;

	if (index == GP_NONE) {
		for (index = 0; index < sched->limits.gang_count && sched->gangs[index].used; index++)
			;
		if (GP_NEVER(index == sched->limits.gang_count))
			return;
		sched->gangs[index] = (struct gp_gang){ .used = true, .id = id, .first = GP_NONE, .want_open = true };
		sched->gang_count++;
	}
	gang = &sched->gangs[index];
	q->gang = index;
	q->gang_next = gang->first;
	gang->first = queue;
	gang->member_count++;
	gang->work_count += q->has_work;
	gang_count_devices(sched, gang);
	gang_refresh(sched, gang);
	gang_mark_devices(sched, gang);
	if (gang->stuck_count && gp_device_of(sched, q)->policy->gates)
		gp_work_gate(sched, queue, GP_GATE_UNKNOWN); /* the core orders it open, then quarantines it too */
}

void gp_gang_leave(struct gp_sched *sched, uint32_t queue)
{
	struct gp_queue *q = &sched->queues[queue];
	uint32_t index = q->gang;
	struct gp_gang *gang;
	uint32_t *link;

	if (index == GP_NONE)
		return;
	gang = &sched->gangs[index];
	for (link = &gang->first; *link != queue; link = &sched->queues[*link].gang_next)
		if (GP_NEVER(*link == GP_NONE))
			return;
	*link = q->gang_next;
	if (gp_device_of(sched, q)->turn_count > gp_device_of(sched, q)->batch_max)
		gp_turn_take(sched, q->seat); /* it had the turn only as a member of the gang */
	gp_age_gang_shrinks(sched, gang);
	gp_gang_stick(sched, queue, false);
	q->gang = GP_NONE;
	q->gang_next = GP_NONE;
	gang->work_count -= q->has_work;
	if (--gang->member_count == 0) {
		if (!gang->want_open)
			gang_unlink(sched, index);
		gang->used = false;
		sched->gang_count--;
	} else {
		gang_count_devices(sched, gang);
		gp_gang_rank(sched, index);
		gang_refresh(sched, gang);
		gang_mark_devices(sched, gang);
	}
	gp_work_set_rank(sched, queue);
	gp_work_refresh(sched, queue);
}

void gp_gang_work(struct gp_sched *sched, uint32_t index, bool begins)
{
	struct gp_gang *gang = &sched->gangs[index];

	GP_ASSERT(begins ? gang->work_count < gang->member_count : gang->work_count > 0);
	gang->work_count += begins ? 1u : -1u;
	if (!begins)
		gp_gang_rank(sched, index);
	if (gang->work_count == (begins ? 1u : 0u)) {
		gang_refresh(sched, gang);
		gang_mark_devices(sched, gang);
	}
}

/* The highest rank of its members. But if all work of the gang is in doubt and has been for long, it delays no other
 * queue: members without work do not lend the gang their rank, members that announced work do. Beside other work a
 * queue in doubt lends its rank like one without work: its long packet may wait for that work. */
void gp_gang_rank(struct gp_sched *sched, uint32_t index)
{
	struct gp_gang *gang = &sched->gangs[index];
	int64_t work = INT64_MIN;
	uint32_t i;

	gang->rank = INT64_MIN;
	for (i = gang->first; i != GP_NONE; i = sched->queues[i].gang_next) {
		const struct gp_queue *q = &sched->queues[i];

		if (q->policy_rank > gang->rank)
			gang->rank = q->policy_rank;
		if ((q->has_work || q->hinted) && q->own_rank > work)
			work = q->own_rank;
	}
	if (work == GP_RANK_DOUBT)
		gang->rank = work;
	for (i = gang->first; i != GP_NONE; i = sched->queues[i].gang_next)
		gp_work_set_rank(sched, i);
}

void gp_gang_close(struct gp_sched *sched, uint32_t index, enum gp_why why)
{
	struct gp_gang *gang = &sched->gangs[index];

	if (!gang->want_open || gang->stuck_count)
		return;
	gang->want_open = false;
	gang->closed_ns = sched->now_ns;
	gang_link(sched, index);
	gang->why = why;
	gang->move = ++sched->gang_move;
	gang_mark_devices(sched, gang);
}

void gp_gang_open(struct gp_sched *sched, uint32_t index, enum gp_why why)
{
	struct gp_gang *gang = &sched->gangs[index];

	if (why == GP_WHY_AGED)
		gp_age_gang_opens(sched, gang);
	if (!gang->want_open || why == GP_WHY_AGED)
		gang->why = why; /* an aged turn may begin while members still open for another reason */
	if (gang->want_open)
		return;
	gang->want_open = true;
	gang_unlink(sched, index);
	gang->move = ++sched->gang_move;
	gang_mark_devices(sched, gang);
}

/* A member that cannot be put aside would spin for the others. So they stay open with it, in quarantine, until it is
 * gone, or the device gives it another chance, or its client's is_stuck_alone is set. Then the core orders their gates
 * open once more, because it does not know their state. */
static void gang_keep(struct gp_sched *sched, uint32_t queue, bool keeps)
{
	struct gp_queue *q = &sched->queues[queue];
	struct gp_gang *gang;
	uint32_t i;

	if (q->keeps_gang == keeps)
		return;
	q->keeps_gang = keeps;
	if (q->gang == GP_NONE)
		return;
	gang = &sched->gangs[q->gang];
	GP_ASSERT(keeps || gang->stuck_count);
	gang->stuck_count += keeps ? 1u : -1u;
	if (gang->stuck_count != keeps)
		return;
	if (keeps)
		gp_gang_open(sched, q->gang, GP_WHY_QUARANTINE);
	for (i = gang->first; i != GP_NONE; i = sched->queues[i].gang_next)
		if (keeps)
			gp_apply_follow(sched, i);
		else if (sched->queues[i].gate == GP_GATE_QUARANTINED && !sched->queues[i].is_stuck)
			gp_work_gate(sched, i, GP_GATE_UNKNOWN);
		else if (sched->queues[i].gate == GP_GATE_CLOSING) /* the core did not decide that it may open */
			gp_gang_close(sched, q->gang, GP_WHY_GANG);
	gang_mark_devices(sched, gang);
}

void gp_gang_stick(struct gp_sched *sched, uint32_t queue, bool stuck)
{
	struct gp_queue *q = &sched->queues[queue];

	q->is_stuck = stuck;
	gang_keep(sched, queue, stuck && !sched->clients[q->client].attr.is_stuck_alone);
}

void gp_gang_stick_client(struct gp_sched *sched, uint32_t client)
{
	uint32_t seat, i;

	for (seat = sched->clients[client].seat_first; seat != GP_NONE; seat = sched->seats[seat].client_next)
		for (i = sched->seats[seat].queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
			gp_gang_stick(sched, i, sched->queues[i].is_stuck);
}

/* The members of one gang on one device share a turn: the first gets it by the rules, the others join it. */
static bool gang_has_turn(const struct gp_sched *sched, const struct gp_gang *gang, uint32_t device)
{
	uint32_t i;

	for (i = gang->first; i != GP_NONE; i = sched->queues[i].gang_next)
		if (sched->queues[i].device == device && sched->queues[i].is_batch &&
		    sched->seats[sched->queues[i].seat].has_turn)
			return true;
	return false;
}

void gp_gang_lose_turn(struct gp_sched *sched, uint32_t index, uint32_t device)
{
	const struct gp_gang *gang = &sched->gangs[index];
	bool idle = !gang->want_open && !gang->work_count; /* then its seats' turns elsewhere are not the gang's */
	uint32_t i;

	if (!idle)
		gp_gang_close(sched, index, GP_WHY_TURN);
	for (i = gang->first; i != GP_NONE; i = sched->queues[i].gang_next)
		if (sched->queues[i].is_batch && (!idle || sched->queues[i].device == device))
			gp_turn_take(sched, sched->queues[i].seat); /* comes back here, but only once per seat */
}

/* How many seats of the gang on the device need a turn and have none. */
static uint32_t gang_turns_needed(struct gp_sched *sched, const struct gp_gang *gang, uint32_t device)
{
	uint64_t stamp = ++sched->stamp;
	uint32_t i, count = 0;

	for (i = gang->first; i != GP_NONE; i = sched->queues[i].gang_next) {
		struct gp_seat *seat = &sched->seats[sched->queues[i].seat];

		if (sched->queues[i].device != device || !sched->queues[i].is_batch || seat->has_turn ||
		    seat->stamp == stamp)
			continue;
		seat->stamp = stamp;
		count++;
	}
	return count;
}

/* No queue outside gangs that waits for a turn on this device ranks above it, or is its equal and has waited longer. */
static bool gang_is_next(const struct gp_sched *sched, const struct gp_queue *q)
{
	uint32_t waiter = gp_heap_top(&sched->devices[q->device], GP_HEAP_TURN);

	return waiter == GP_NONE || sched->queues[waiter].rank < q->rank ||
	       (sched->queues[waiter].rank == q->rank && !gp_turn_is_before(&sched->queues[waiter], q));
}

/* A waiting queue would take the turn from it at once. A seat may have its turn for a queue outside the gang. */
static bool gang_is_outranked(const struct gp_sched *sched, const struct gp_queue *q)
{
	uint32_t waiter = gp_heap_top(&sched->devices[q->device], GP_HEAP_TURN);

	return waiter != GP_NONE && sched->queues[waiter].rank > q->rank;
}

bool gp_gang_is_several(const struct gp_sched *sched, const struct gp_queue *queue)
{
	uint32_t i;

	if (queue->gang == GP_NONE)
		return false;
	for (i = sched->gangs[queue->gang].first; i != GP_NONE; i = sched->queues[i].gang_next)
		if (sched->queues[i].device == queue->device && sched->queues[i].seat != queue->seat)
			return true;
	return false;
}

/* A queue above it keeps it closed, and the device does not make room for that queue by itself. */
static bool gang_is_held(const struct gp_sched *sched, const struct gp_queue *q)
{
	const struct gp_device *device = &sched->devices[q->device];

	return q->rank < gp_device_hold_rank(sched, device) &&
	       (!device->attr.switch_ns || gp_gang_is_several(sched, q));
}

void gp_gang_share_turn(struct gp_sched *sched, uint32_t seat)
{
	uint32_t i, k;

	for (i = sched->seats[seat].queue_first; i != GP_NONE; i = sched->queues[i].seat_next) {
		if (sched->queues[i].gang == GP_NONE || !sched->queues[i].is_batch)
			continue;
		k = sched->gangs[sched->queues[i].gang].first;
		for (; k != GP_NONE; k = sched->queues[k].gang_next)
			if (sched->queues[k].device == sched->seats[seat].device && sched->queues[k].is_batch &&
			    gp_device_of(sched, &sched->queues[k])->turn_count < GP_BATCH_MAX)
				gp_turn_give(sched, sched->queues[k].seat);
	}
}

/* Could this member open if the turn on its device ended? */
static bool gang_member_waits(const struct gp_sched *sched, const struct gp_gang *gang, uint32_t queue)
{
	const struct gp_queue *q = &sched->queues[queue];
	const struct gp_device *device = &sched->devices[q->device];

	if (gang_is_free_of(device))
		return true;
	if (q->gate == GP_GATE_UNKNOWN || sched->seats[q->seat].overdue_count || gang_is_held(sched, q))
		return false;
	return !q->is_batch || device->batch_max == GP_UNLIMITED || gang_has_turn(sched, gang, q->device) ||
	       (gp_turn_is_best(sched, device, q->rank) && gang_is_next(sched, q));
}

bool gp_gang_is_away(const struct gp_sched *sched, const struct gp_gang *gang)
{
	uint32_t i;

	for (i = gang->first; !gang->want_open && i != GP_NONE; i = sched->queues[i].gang_next)
		if (!gang_member_waits(sched, gang, i))
			return true;
	return false;
}

static bool gang_waits_before(const struct gp_sched *sched, const struct gp_gang *gang, const struct gp_queue *waiter)
{
	bool is_here = false, is_elsewhere = false;
	uint32_t i;

	if (!gang->work_count)
		return false;
	for (i = gang->first; i != GP_NONE; i = sched->queues[i].gang_next) {
		const struct gp_queue *q = &sched->queues[i];

		if (!gang_member_waits(sched, gang, i))
			return false;
		is_here |= q->device == waiter->device && q->is_batch && q->rank == waiter->rank;
		is_elsewhere |= q->device != waiter->device;
	}
	return is_here && is_elsewhere;
}

bool gp_gang_is_before(const struct gp_sched *sched, const struct gp_queue *waiter)
{
	uint32_t i;

	/* For a waiter in a gang: only gangs that were closed before its own. */
	for (i = sched->closed_first; i != GP_NONE && i != waiter->gang; i = sched->gangs[i].closed_next)
		if (gang_waits_before(sched, &sched->gangs[i], waiter))
			return true;
	return false;
}

/* Work above it was announced, and counts from now on: that device's own plan, which runs its timers, is still to come
 * in this call. */
static bool gang_is_announced_above(const struct gp_sched *sched, const struct gp_queue *q)
{
	const struct gp_device *device = &sched->devices[q->device];
	const struct gp_heap *timers = &device->heaps[GP_HEAP_TIMER];
	uint32_t i, top = gp_heap_top(device, GP_HEAP_TIMER);

	if (top == GP_NONE || sched->queues[top].timer_ns > sched->now_ns ||
	    (device->attr.switch_ns && !gp_gang_is_several(sched, q)))
		return false;
	for (i = 0; i < timers->count; i++) {
		const struct gp_queue *other = &sched->queues[timers->slots[i]];

		if (!other->hinted && other->hint_from_ns && other->hint_from_ns <= sched->now_ns &&
		    other->rank > q->rank)
			return true;
	}
	return false;
}

/* May this member open as far as its own device is concerned, or could it get the turn for that? */
static bool gang_member_may_open(struct gp_sched *sched, const struct gp_gang *gang, uint32_t queue)
{
	struct gp_queue *q = &sched->queues[queue];
	struct gp_device *device = gp_device_of(sched, q);

	if (gang_is_free_of(device))
		return true;
	if (gp_device_waits(sched, device) || sched->seats[q->seat].overdue_count ||
	    (q->gate != GP_GATE_CLOSED && q->gate != GP_GATE_OPEN && q->gate != GP_GATE_QUARANTINED) ||
	    gang_is_held(sched, q) || gang_is_announced_above(sched, q))
		return false;
	if (!q->is_batch || device->batch_max == GP_UNLIMITED)
		return true;
	if (device->turn_count + gang_turns_needed(sched, gang, q->device) > GP_BATCH_MAX)
		return sched->seats[q->seat].has_turn;
	if (gang_has_turn(sched, gang, q->device))
		return !gang_is_outranked(sched, q);
	return gang_is_next(sched, q) && gp_turn_can_get(sched, q->seat, q->rank) && !gp_turn_is_kept(sched, q);
}

/* No queue of lower rank, and no batch client without the turn, is open beside the member any more. */
static bool gang_member_has_room(const struct gp_sched *sched, uint32_t queue)
{
	const struct gp_queue *q = &sched->queues[queue];
	const struct gp_device *device = &sched->devices[q->device];
	uint32_t lowest = gp_heap_top(device, GP_HEAP_OPEN);

	return gang_is_free_of(device) ||
	       (!gp_turn_has_to_close(sched, device) &&
		(lowest == GP_NONE || sched->queues[lowest].rank >= q->rank || device->attr.switch_ns));
}

static void gang_decide_one(struct gp_sched *sched, uint32_t index)
{
	struct gp_gang *gang = &sched->gangs[index];
	uint32_t i;

	for (i = gang->first; i != GP_NONE; i = sched->queues[i].gang_next)
		if (!gang_member_may_open(sched, gang, i))
			return;
	for (i = gang->first; i != GP_NONE; i = sched->queues[i].gang_next) {
		const struct gp_queue *q = &sched->queues[i];

		if (!q->is_batch || gang_is_free_of(&sched->devices[q->device]))
			continue;
		if (gang_has_turn(sched, gang, q->device))
			gp_turn_give(sched, q->seat);
		else
			gp_turn_get(sched, q->seat, q->rank);
	}
	for (i = gang->first; i != GP_NONE; i = sched->queues[i].gang_next)
		if (!gang_member_has_room(sched, i))
			return; /* those devices' own plans close what is in the way; the answers lead back here */
	gp_gang_open(sched, index, GP_WHY_GANG);
}

/* The gang that was closed longest ago goes first: else the first two of several on the same devices would have all the
 * turns. */
void gp_gang_decide(struct gp_sched *sched)
{
	uint32_t i, next, last = sched->closed_last;

	for (i = sched->closed_first; i != GP_NONE; i = next) {
		next = i == last ? GP_NONE : sched->gangs[i].closed_next; /* not the gangs that this loop closes */
		if (sched->gangs[i].work_count)
			gang_decide_one(sched, i);
	}
}
