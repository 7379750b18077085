/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Admission: keeps open compute gates within the device's slots and, where closing a whole client frees its place, open
 * clients within its process places. The queue that closes for another is the longest idle one, then the lowest, then
 * an equal that has had its time. The core lets queues that must not be parked in beyond the limit rather than starve
 * them. */
#include "core/plan.h"

static bool slots_can_park(const struct gp_queue *q)
{
	return q->attr.kind == GP_KIND_COMPUTE && !q->attr.unseen && q->gang == GP_NONE && !q->aged;
}

/* Changing all slots one after the other must take no more than half of the time: else a device with short turns would
 * only change gates. */
#define SLOTS_TURN_PAIRS 2u

static uint64_t slots_turn_ns(const struct gp_device *device)
{
	uint64_t slots = device->attr.slot_count < device->queue_count ? device->attr.slot_count : device->queue_count;
	uint64_t changes = device->attr.unit == GP_UNIT_DEVICE ? 1 : slots;
	uint64_t least_ns = SLOTS_TURN_PAIRS * changes * (device->attr.close_ns + device->attr.open_ns);

	if (least_ns > GP_DURATION_NS_MAX)
		least_ns = GP_DURATION_NS_MAX;
	return device->param.turn_ns > least_ns ? device->param.turn_ns : least_ns;
}

/* When an open queue with work has had its time. The time began when the queue was opened, or when its work came if it
 * was open then. */
static uint64_t slots_turn_end_ns(const struct gp_plan_builder *b, const struct gp_queue *q)
{
	return (q->opened_ns > q->busy_since_ns ? q->opened_ns : q->busy_since_ns) + slots_turn_ns(b->device);
}

/* What queues or processes outside the core leave of so many; at least one, or no queue of the core's would ever
 * run. */
static uint32_t slots_left(uint32_t count, uint32_t others)
{
	return count > others ? count - others : count > 0;
}

/* The even part of the slots that each user has, whatever other users hold and do not give back (gates that they do not
 * close when ordered, or that cannot be parked). 0: there are more users than slots. */
static uint32_t slots_even(const struct gp_plan_builder *b)
{
	const struct gp_device *device = b->device;

	return slots_left(device->attr.slot_count, device->other_queue_count) / device->share_count;
}

/* Whether the opening queue may take the victim's slot, between equals: only from a user who holds more slots than its
 * own, or from its own user, whose queues take turns. NULL: from any queue. */
static bool slots_may_take(const struct gp_sched *sched, const struct gp_queue *opening, const struct gp_queue *victim)
{
	return !opening || gp_share_of(sched, opening) == gp_share_of(sched, victim) ||
	       gp_share_of(sched, victim)->open_compute > gp_share_of(sched, opening)->open_compute;
}

/* The longest idle queue of the user with the most open gates. Where no queue needs the slot (is_needed false) only a
 * queue that is surely idle. It looks at one more queue than there are slots: users that hold few slots cannot have so
 * many. */
static uint32_t slots_idle_victim(const struct gp_plan_builder *b, bool is_needed)
{
	const struct gp_sched *sched = b->sched;
	uint32_t i, n = 0, victim = GP_NONE;

	for (i = b->device->idle_first; i != GP_NONE && n <= b->device->attr.slot_count;
	     i = sched->queues[i].idle_next) {
		if (!is_needed && sched->queues[i].tail_ns)
			continue;
		n++;
		if (victim == GP_NONE || gp_share_of(sched, &sched->queues[i])->open_compute >
						 gp_share_of(sched, &sched->queues[victim])->open_compute)
			victim = i;
	}
	return victim;
}

/* Of two queues of one rank whose time is over, whether q closes before the other. */
static bool slots_goes_first(const struct gp_plan_builder *b, const struct gp_queue *q, const struct gp_queue *other)
{
	uint32_t own = gp_share_of(b->sched, q)->open_compute, others = gp_share_of(b->sched, other)->open_compute;

	return own != others ? own > others : slots_turn_end_ns(b, q) < slots_turn_end_ns(b, other);
}

/* The open queue that gives its slot to the opening one: an idle queue, else the lowest below it, else an equal whose
 * turn is over. NULL: too many are open, so a queue of a user who has more than the even part closes. GP_NONE: none
 * yet. */
static uint32_t slots_victim(struct gp_plan_builder *b, const struct gp_queue *opening)
{
	struct gp_sched *sched = b->sched;
	const struct gp_heap *open = &b->device->heaps[GP_HEAP_OPEN];
	const struct gp_queue *equal = opening && !opening->aged ? opening : NULL;
	int64_t rank = equal ? equal->rank : INT64_MAX;
	uint32_t i, victim = slots_idle_victim(b, true), even = opening ? 0 : slots_even(b);

	if (victim != GP_NONE && gp_share_of(sched, &sched->queues[victim])->open_compute > even)
		return victim;
	victim = GP_NONE;
	for (i = 0; i < open->count; i++) {
		const struct gp_queue *q = &sched->queues[open->slots[i]];

		if (!slots_can_park(q) || q->rank > rank || q->hold_until_ns > sched->now_ns ||
		    gp_share_of(sched, q)->open_compute <= even)
			continue;
		if (q->rank == rank && !slots_may_take(sched, equal, q))
			continue;
		if (q->rank == rank && slots_turn_end_ns(b, q) > sched->now_ns) {
			gp_device_wake(b->device, slots_turn_end_ns(b, q));
			continue;
		}
		if (victim == GP_NONE || q->rank < sched->queues[victim].rank ||
		    (q->rank == sched->queues[victim].rank && slots_goes_first(b, q, &sched->queues[victim])))
			victim = open->slots[i];
	}
	return victim;
}

/* slots_may_take() for places of processes. */
static bool slots_may_take_place(const struct gp_sched *sched, const struct gp_queue *opening,
				 const struct gp_seat *victim)
{
	const struct gp_share *share = &sched->shares[victim->share];

	return !opening || gp_share_of(sched, opening) == share ||
	       share->open_seats > gp_share_of(sched, opening)->open_seats;
}

/* May all gates of the seat close for the opening queue? NULL: for any. ret_rank: the highest rank of its queues with
 * work; INT64_MIN: none has. */
static bool slots_seat_can_go(struct gp_plan_builder *b, const struct gp_seat *seat, const struct gp_queue *opening,
			      int64_t *ret_rank)
{
	struct gp_sched *sched = b->sched;
	int64_t rank = opening ? opening->rank : INT64_MAX;
	uint32_t i;

	*ret_rank = INT64_MIN;
	for (i = seat->queue_first; i != GP_NONE; i = sched->queues[i].seat_next) {
		const struct gp_queue *q = &sched->queues[i];

		if (q->gate == GP_GATE_CLOSED)
			continue;
		if (q->gate != GP_GATE_OPEN || !slots_can_park(q) || q->hold_until_ns > sched->now_ns)
			return false;
		if (!q->has_work)
			continue;
		if (q->rank >= rank && !slots_may_take_place(sched, opening, seat))
			return false;
		if (q->rank >= rank && slots_turn_end_ns(b, q) > sched->now_ns) {
			gp_device_wake(b->device, slots_turn_end_ns(b, q));
			return false;
		}
		if (q->rank > *ret_rank)
			*ret_rank = q->rank;
	}
	return *ret_rank <= rank;
}

/* Closes all gates of the lowest seat that can go, so that its process place is free for the opening queue; of equals,
 * a seat of the user with the most open seats. NULL: too many are open, so any seat may go. */
static bool slots_park_process(struct gp_plan_builder *b, const struct gp_queue *opening)
{
	struct gp_sched *sched = b->sched;
	const struct gp_heap *open = &b->device->heaps[GP_HEAP_OPEN];
	int64_t own, victim_rank = INT64_MAX;
	uint64_t stamp = ++sched->stamp;
	uint32_t i, victim = GP_NONE;

	/* Through the open gates, of which there are few; of seats there may be thousands. */
	for (i = 0; i < open->count; i++) {
		uint32_t seat = sched->queues[open->slots[i]].seat;

		if (sched->seats[seat].stamp == stamp)
			continue;
		sched->seats[seat].stamp = stamp;
		if (slots_seat_can_go(b, &sched->seats[seat], opening, &own) &&
		    (victim == GP_NONE || own < victim_rank ||
		     (own == victim_rank && sched->shares[sched->seats[seat].share].open_seats >
						    sched->shares[sched->seats[victim].share].open_seats))) {
			victim_rank = own;
			victim = seat;
		}
	}
	if (victim == GP_NONE || b->plan->close_count + sched->seats[victim].open_count > GP_PLAN_MAX)
		return false;
	for (i = sched->seats[victim].queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
		if (sched->queues[i].gate == GP_GATE_OPEN)
			gp_plan_close(b, i, GP_WHY_SLOTS);
	b->closing_seats++;
	return true;
}

/* How many open seats have a gate that the core never parks. Looks at all queues, but only where processes are parked
 * and no place is left. */
static uint32_t slots_fixed_seats(const struct gp_plan_builder *b)
{
	const struct gp_sched *sched = b->sched;
	uint32_t seat, i, count = 0;

	for (seat = b->device->seat_first; seat != GP_NONE; seat = sched->seats[seat].device_next)
		for (i = sched->seats[seat].queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
			if (sched->queues[i].gate != GP_GATE_CLOSED &&
			    (sched->queues[i].gate == GP_GATE_QUARANTINED || !slots_can_park(&sched->queues[i]))) {
				count++;
				break;
			}
	return count;
}

/* Whether more seats can be open; only where closing all gates of a client frees its process place. */
static bool slots_has_process(const struct gp_plan_builder *b, uint32_t more)
{
	const struct gp_device *device = b->device;

	return !device->attr.process_parking || !device->attr.process_count_max ||
	       device->open_seat_count - b->closing_seats + more <=
		       slots_left(device->attr.process_count_max, device->other_process_count);
}

/* As with slots, clients that are never parked do not starve the others: the core lets one more in. */
static bool slots_is_fixed(const struct gp_plan_builder *b, uint32_t more)
{
	return b->device->open_seat_count - b->closing_seats + more <= slots_fixed_seats(b) + 1;
}

/* How many compute gates may be open at once. Where gates that are never parked fill the slots, the core lets one more
 * in: an oversubscribed device is better than a starved queue. With more processes than the firmware keeps at once the
 * firmware slices anyway, and parking would cost without curing that. */
static uint32_t slots_limit(const struct gp_plan_builder *b)
{
	uint32_t slots = slots_left(b->device->attr.slot_count, b->device->other_queue_count);

	if (b->device->oversubscribed && !b->device->attr.process_parking)
		return GP_UNLIMITED;
	return !slots || b->device->open_fixed_count < slots ? slots : b->device->open_fixed_count + 1;
}

/* How long a queue must be idle before it gives its slot back, where parking does not free places of processes (chosen:
 * as long as a device takes to rest). */
#define SLOTS_IDLE_NS  1000000000ull
#define SLOTS_LOOK_MAX 256u /* clients with idle queues to look at for one that is idle as a whole (chosen) */

/* When the idle queue may be parked; GP_NEVER_NS: never. */
static uint64_t slots_idle_due_ns(const struct gp_queue *q)
{
	uint64_t since_ns = q->idle_since_ns ? q->idle_since_ns : q->mark_ns;

	/* Where counters move at fetch the queue is only presumed idle: one packet may run for longer than that. A
	 * closed gate would stop it, and nothing would open the gate again. */
	if (!q->in_idle_list || q->tail_ns)
		return GP_NEVER_NS;
	since_ns = (q->opened_ns > since_ns ? q->opened_ns : since_ns) + SLOTS_IDLE_NS;
	return since_ns > q->hold_until_ns ? since_ns : q->hold_until_ns;
}

/* When all open compute gates of the seat may be parked; GP_NEVER_NS: one may never be. */
static uint64_t slots_seat_due_ns(const struct gp_sched *sched, const struct gp_seat *seat)
{
	uint64_t due_ns = 0, own_ns;
	uint32_t i;

	for (i = seat->queue_first; i != GP_NONE; i = sched->queues[i].seat_next) {
		const struct gp_queue *q = &sched->queues[i];

		if (q->attr.kind != GP_KIND_COMPUTE || q->gate == GP_GATE_CLOSED || q->gate == GP_GATE_CLOSING)
			continue;
		own_ns = slots_idle_due_ns(q);
		due_ns = own_ns > due_ns ? own_ns : due_ns;
	}
	return due_ns;
}

/* How many seats have an open compute gate. Firmware that passes over empty processes needs a place for each of
 * these. */
static uint32_t slots_compute_seats(struct gp_plan_builder *b)
{
	struct gp_sched *sched = b->sched;
	const struct gp_heap *open = &b->device->heaps[GP_HEAP_OPEN];
	uint64_t stamp = ++sched->stamp;
	uint32_t i, count = 0;

	for (i = 0; i < open->count; i++) {
		const struct gp_queue *q = &sched->queues[open->slots[i]];

		if (q->attr.kind != GP_KIND_COMPUTE || sched->seats[q->seat].stamp == stamp)
			continue;
		sched->seats[q->seat].stamp = stamp;
		count++;
	}
	return count;
}

/* Closes the seat of the longest idle queue whose seat is idle as a whole; false: there is none yet. */
static bool slots_close_idle_seat(struct gp_plan_builder *b)
{
	struct gp_sched *sched = b->sched;
	uint64_t due_ns, stamp = ++sched->stamp;
	uint32_t i, n, seat;

	for (i = b->device->idle_first, n = 0; i != GP_NONE && n < SLOTS_LOOK_MAX; i = sched->queues[i].idle_next) {
		seat = sched->queues[i].seat;
		if (sched->seats[seat].stamp == stamp)
			continue; /* once for each client, however many queues it has */
		sched->seats[seat].stamp = stamp;
		n++;
		due_ns = slots_seat_due_ns(sched, &sched->seats[seat]);
		if (due_ns > sched->now_ns) {
			if (due_ns != GP_NEVER_NS)
				gp_device_wake(b->device, due_ns);
			continue;
		}
		if (b->plan->close_count + sched->seats[seat].open_count > GP_PLAN_MAX)
			return false;
		for (i = sched->seats[seat].queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
			if (sched->queues[i].attr.kind == GP_KIND_COMPUTE && sched->queues[i].gate == GP_GATE_OPEN)
				gp_plan_close(b, i, GP_WHY_SLOTS);
		return true;
	}
	return false;
}

/* With more processes than the firmware keeps at once the core does not park queues with work: slots_limit(). It parks
 * queues that have been idle for a while, until the open queues fit the slots and their processes fit the places: each
 * open queue makes the runlist longer, and the next work of a parked queue opens it at once. */
static void slots_close_idle(struct gp_plan_builder *b)
{
	struct gp_sched *sched = b->sched;
	uint32_t victim, slots = slots_left(b->device->attr.slot_count, b->device->other_queue_count);
	uint32_t seats = slots_compute_seats(b),
		 places = slots_left(b->device->attr.process_count_max, b->device->other_process_count);

	while (seats > places && !gp_plan_is_full(b) && slots_close_idle_seat(b))
		seats--;
	while (slots && b->device->open_compute_count - b->closing_compute > slots && !gp_plan_is_full(b) &&
	       (victim = slots_idle_victim(b, false)) != GP_NONE) {
		uint64_t due_ns = slots_idle_due_ns(&sched->queues[victim]);

		if (due_ns > sched->now_ns) {
			gp_device_wake(b->device, due_ns);
			return;
		}
		gp_plan_close(b, victim, GP_WHY_SLOTS);
	}
}

void gp_slots_close_overflow(struct gp_plan_builder *b)
{
	uint32_t slots = slots_limit(b);

	if (slots == GP_UNLIMITED)
		slots_close_idle(b);
	while (!slots_has_process(b, 0) && !slots_is_fixed(b, 0) && slots_park_process(b, NULL))
		;
	while (slots && b->device->open_compute_count - b->closing_compute > slots && !gp_plan_is_full(b)) {
		uint32_t victim = slots_victim(b, NULL);

		if (victim == GP_NONE)
			return;
		gp_plan_close(b, victim, GP_WHY_SLOTS);
	}
}

bool gp_slots_has(const struct gp_plan_builder *b)
{
	return !b->device->attr.slot_count || b->device->open_compute_count - b->closing_compute < slots_limit(b);
}

bool gp_slots_is_free(const struct gp_plan_builder *b, const struct gp_queue *opening)
{
	const struct gp_device *device = b->device;

	/* Not slots_limit(): the one more that it lets in is for queues with work. */
	return (b->sched->seats[opening->seat].open_count || slots_has_process(b, 1)) &&
	       (opening->attr.kind != GP_KIND_COMPUTE || !device->attr.slot_count ||
		device->open_compute_count - b->closing_compute <
			slots_left(device->attr.slot_count, device->other_queue_count));
}

/* A gang holds its slots together: closes a gang without work, else one below this rank; INT64_MAX: any gang. */
static bool slots_park_gang(struct gp_plan_builder *b, int64_t rank)
{
	struct gp_sched *sched = b->sched;
	const struct gp_heap *open = &b->device->heaps[GP_HEAP_OPEN];
	uint32_t i, found = GP_NONE, device = (uint32_t)(b->device - sched->devices);

	for (i = 0; i < open->count; i++) {
		const struct gp_queue *q = &sched->queues[open->slots[i]];

		if (q->gang == GP_NONE || q->attr.kind != GP_KIND_COMPUTE || q->aged ||
		    q->hold_until_ns > sched->now_ns)
			continue;
		if (!sched->gangs[q->gang].work_count) {
			found = open->slots[i];
			break;
		}
		if (q->rank >= rank)
			continue;
		if (slots_turn_end_ns(b, q) >
		    sched->now_ns) /* else two gangs could take each other's slots for ever, and neither would run */
			gp_device_wake(b->device, slots_turn_end_ns(b, q));
		else if (found == GP_NONE || q->rank < sched->queues[found].rank)
			found = open->slots[i];
	}
	if (found == GP_NONE)
		return false;
	gp_gang_close(sched, sched->queues[found].gang, GP_WHY_SLOTS);
	for (i = sched->gangs[sched->queues[found].gang].first; i != GP_NONE && !gp_plan_is_full(b);
	     i = sched->queues[i].gang_next)
		if (sched->queues[i].device == device && sched->queues[i].gate == GP_GATE_OPEN)
			gp_plan_close(b, i, GP_WHY_SLOTS);
	return gp_slots_has(b);
}

bool gp_slots_make_room(struct gp_plan_builder *b, const struct gp_queue *opening)
{
	uint32_t victim;

	if (!b->sched->seats[opening->seat].open_count && !slots_has_process(b, 1) &&
	    !slots_park_process(b, opening->aged ? NULL : opening) && !slots_is_fixed(b, 1))
		return false;
	if (opening->attr.kind != GP_KIND_COMPUTE || gp_slots_has(b))
		return true;
	victim = slots_victim(b, opening);
	if (gp_plan_is_full(b))
		return false;
	if (victim == GP_NONE)
		return slots_park_gang(b, opening->aged ? INT64_MAX : opening->rank) ||
		       (gp_share_of(b->sched, opening)->open_compute < slots_even(b) &&
			slots_victim(b, NULL) == GP_NONE); /* users who hold more than their part never give it back */
	/* If slots changed hands at every doorbell, that would cost more than it gives: beyond the budget the waiting
	 * queues collect work. Among equals half of the budget is left for preempting. */
	if (!opening->aged) {
		bool above = b->sched->queues[victim].rank < opening->rank;

		if (!gp_budget_can_pay(b->sched, b->device, above ? 1 : 1 + b->device->param.burst / 2))
			return false;
		gp_budget_pay(b->device, 1);
		gp_plan_close(b, victim, GP_WHY_SLOTS);
		return above || gp_slots_has(b); /* if too many are open, no equal opens for the one that closes */
	}
	gp_plan_close(b, victim, GP_WHY_SLOTS);
	return true;
}
