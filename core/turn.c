/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Turns: only batch_max batch seats have their gates open at a time, for long turns. So the core has one client to stop
 * for the urgent queue, not many, and batch clients pay one save and restore per turn, not per hardware quantum. A
 * turn's length is time actually run: time that a more urgent queue takes does not count.
 *
 * Turns belong to users first, then to the clients of a user: in the line for turns the clients of one user stand one
 * place apart, those of different users beside each other (start-time fair queueing with a turn as the unit). Policies
 * that have an order of their own see how many of a user's clients have work.
 */
#include "core/calls.h"

/* Gives the seat a place in the line, behind the seats of its user that stand there; but no farther back than its user
 * has clients. */
static void turn_stand(struct gp_sched *sched, struct gp_seat *seat)
{
	const struct gp_device *device = &sched->devices[seat->device];
	struct gp_share *share = &sched->shares[seat->share];
	uint64_t most = device->turn_tag + share->seat_count;

	seat->turn_tag = share->turn_tag > device->turn_tag ? share->turn_tag : device->turn_tag;
	if (seat->turn_tag > most)
		seat->turn_tag = most;
	share->turn_tag = seat->turn_tag + 1;
}

void gp_turn_join(struct gp_sched *sched, uint32_t seat)
{
	turn_stand(sched, &sched->seats[seat]);
}

#define TURN_USER_SEATS_MAX 4096u /* so that no product in a policy overflows */

/* What the policy sees of the user. */
static void turn_view_user(const struct gp_sched *sched, struct gp_seat *seat)
{
	const struct gp_share *share = &sched->shares[seat->share];

	seat->view.present_ns = sched->now_ns - seat->joined_ns;
	seat->view.user_seats = !share->work_seats                      ? 1 :
				share->work_seats < TURN_USER_SEATS_MAX ? share->work_seats :
									  TURN_USER_SEATS_MAX;
}

/* Charges the seat for the time its queues ran since the last look. */
void gp_turn_account(struct gp_sched *sched, struct gp_seat *seat)
{
	const struct gp_policy *policy = sched->devices[seat->device].policy;
	uint64_t elapsed_ns = sched->now_ns - seat->mark_ns;

	if (!elapsed_ns)
		return;
	seat->mark_ns = sched->now_ns;
	if (seat->busy[GP_KIND_COMPUTE])
		seat->work_ns += elapsed_ns;
	if ((seat->busy[GP_KIND_COMPUTE] || seat->busy[GP_KIND_COPY]) && !seat->running[GP_KIND_COMPUTE] &&
	    !seat->running[GP_KIND_COPY])
		seat->wait_ns += elapsed_ns;
	if (!seat->running[GP_KIND_COMPUTE] && !seat->running[GP_KIND_COPY])
		return;
	seat->turn_used_ns += elapsed_ns;
	turn_view_user(sched, seat);
	if (seat->running[GP_KIND_COMPUTE]) {
		seat->view.compute_ns += elapsed_ns;
		if (policy->charge)
			policy->charge(&seat->view, GP_KIND_COMPUTE, elapsed_ns);
	}
	if (seat->running[GP_KIND_COPY]) {
		seat->view.copy_ns += elapsed_ns;
		if (policy->charge && !seat->running[GP_KIND_COMPUTE])
			policy->charge(&seat->view, GP_KIND_COPY, elapsed_ns);
	}
}

/* How many clients of one user run beside each other at the top (chosen). With more of them a user would get more of
 * the device, because the hardware knows no users. */
#define TURN_TOP_MAX 16u

/* Decides whether the seat is one of these, when its first work comes; that holds until its work begins again. Not for
 * gangs, whose members run together, nor for clients without a user. */
void gp_turn_enter(struct gp_sched *sched, uint32_t queue)
{
	const struct gp_queue *q = &sched->queues[queue];
	struct gp_seat *seat = &sched->seats[q->seat];
	struct gp_share *share = &sched->shares[seat->share];
	bool was_extra = seat->is_extra;
	uint32_t i;

	if (seat->work_count || !share->user || q->gang != GP_NONE || !sched->devices[seat->device].policy->is_batch ||
	    (q->is_batch && !was_extra))
		return;
	seat->is_top = share->top_seats < TURN_TOP_MAX;
	seat->is_extra = !seat->is_top;
	share->top_seats += seat->is_top;
	if (seat->is_extra == was_extra)
		return;
	for (i = seat->queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
		gp_work_rerank(sched, i);
	if (!seat->batch_count)
		gp_turn_take(sched, q->seat);
}

/* The seat's first queue got work, or its last one lost it. What the seat computed in between is one request. */
void gp_turn_work(struct gp_sched *sched, uint32_t queue, bool begins)
{
	struct gp_queue *q = &sched->queues[queue];
	struct gp_seat *seat = &sched->seats[q->seat];
	const struct gp_device *device = &sched->devices[seat->device];
	uint64_t ran_ns;

	gp_turn_account(sched, seat);
	sched->shares[seat->share].work_seats += begins ? 1u : -1u;
	if (begins) {
		/* A client that idled goes to the front of the line; several of one user go behind each other. */
		if (seat->turn_tag < device->turn_tag && !seat->has_turn)
			turn_stand(sched, seat);
		turn_view_user(sched, seat);
		seat->request_mark_ns = seat->view.compute_ns;
		if (device->policy->join)
			device->policy->join(&seat->view, gp_turn_floor(sched, device));
		seat->came_for_work = q->gang == GP_NONE && !seat->has_turn;
		gp_work_set_rank(sched, queue); /* the policy's join may have changed its order */
		return;
	}
	sched->shares[seat->share].top_seats -= seat->is_top;
	seat->is_top = seat->came_for_work = false;
	ran_ns = seat->view.compute_ns - seat->request_mark_ns;
	if (!ran_ns)
		return;
	if (ran_ns > device->param.turn_ns)
		ran_ns = device->param.turn_ns;
	/* request_ns begins as a whole turn, which is no measurement: the first shorter request replaces it. */
	seat->view.request_ns = seat->view.request_ns == device->param.turn_ns ?
					ran_ns :
					gp_learn_smooth(seat->view.request_ns, ran_ns);
}

/* The smallest key among seats that hold a turn or wait for one; a new seat starts there. */
uint64_t gp_turn_floor(struct gp_sched *sched, const struct gp_device *device)
{
	uint32_t waiting = gp_heap_top(device, GP_HEAP_TURN);
	uint64_t floor_key = GP_NEVER_NS;
	uint32_t i;

	if (waiting != GP_NONE)
		floor_key = sched->seats[sched->queues[waiting].seat].view.key;
	for (i = 0; i < device->turn_count; i++) {
		struct gp_seat *seat = &sched->seats[device->turn_seats[i]];

		gp_turn_account(sched, seat); /* brings the key up to date */
		if (seat->work_count && seat->view.key < floor_key)
			floor_key = seat->view.key;
	}
	return floor_key == GP_NEVER_NS ? 0 : floor_key;
}

void gp_turn_check(struct gp_sched *sched, uint32_t seat)
{
	struct gp_seat *s = &sched->seats[seat];
	struct gp_device *device = &sched->devices[s->device];

	device->dirty = true;
	if (s->check_gates)
		return;
	s->check_gates = true;
	s->check_next = device->check_first;
	device->check_first = seat;
}

bool gp_turn_has_to_close(const struct gp_sched *sched, const struct gp_device *device)
{
	uint32_t seat, i;

	for (seat = device->check_first; seat != GP_NONE; seat = sched->seats[seat].check_next)
		for (i = sched->seats[seat].queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
			if (sched->queues[i].gate == GP_GATE_OPEN && !gp_turn_allows(sched, &sched->queues[i]))
				return true;
	return false;
}

static void turn_refresh_queues(struct gp_sched *sched, struct gp_seat *seat)
{
	uint32_t i;

	for (i = seat->queue_first; i != GP_NONE; i = sched->queues[i].seat_next) {
		gp_work_rerank(sched, i);
		gp_work_refresh(sched, i);
		gp_inversion_changed(sched, i);
	}
}

void gp_turn_give(struct gp_sched *sched, uint32_t seat)
{
	struct gp_seat *s = &sched->seats[seat];
	struct gp_device *device = &sched->devices[s->device];

	if (s->has_turn || GP_NEVER(device->batch_max != GP_UNLIMITED && device->turn_count >= GP_BATCH_MAX))
		return;
	gp_turn_account(sched, s);
	s->has_turn = true;
	s->came_for_work = s->cut = false;
	s->turn_used_ns = 0;
	if (device->batch_max != GP_UNLIMITED) {
		device->turn_seats[device->turn_count++] = seat;
		if (s->turn_tag > device->turn_tag)
			device->turn_tag = s->turn_tag;
		device->stats.turns++;
		if (s->queue_first != GP_NONE)
			gp_trace(sched, GP_TRACE_TURN, s->queue_first, GP_WHY_TURN, 0);
	}
	turn_refresh_queues(sched, s);
}

void gp_turn_take(struct gp_sched *sched, uint32_t seat)
{
	struct gp_seat *s = &sched->seats[seat];
	struct gp_device *device = &sched->devices[s->device];
	uint32_t i;

	if (!s->has_turn || device->batch_max == GP_UNLIMITED)
		return;
	gp_turn_account(sched, s);
	s->has_turn = false;
	s->view.turn_count = ++device->turn_clock;
	turn_stand(sched, s);
	turn_view_user(sched, s);
	for (i = 0; i < device->turn_count && device->turn_seats[i] != seat; i++)
		;
	if (GP_NEVER(i == device->turn_count))
		return;
	device->turn_seats[i] = device->turn_seats[--device->turn_count];
	turn_refresh_queues(sched, s);
	for (i = s->queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
		if (sched->queues[i].gang != GP_NONE && sched->queues[i].is_batch)
			gp_gang_lose_turn(sched, sched->queues[i].gang, s->device);
	gp_turn_check(sched, seat);
}

/* Where each gate takes a transaction of its own, a turn begins with the last gate that its plan opens: else a short
 * turn would be over before that. Late answers of a client do not prolong it. */
void gp_turn_opened(struct gp_sched *sched, const struct gp_queue *queue)
{
	const struct gp_device *device = gp_device_of(sched, queue);
	struct gp_seat *seat = &sched->seats[queue->seat];
	uint64_t open_ns = device->attr.open_ns;

	if (device->attr.unit != GP_UNIT_QUEUE || !seat->has_turn || !queue->is_batch)
		return;
	gp_turn_account(sched, seat);
	if (seat->turn_seq == queue->order_seq)
		seat->turn_used_ns -= seat->turn_used_ns < open_ns ? seat->turn_used_ns : open_ns;
	seat->turn_seq = queue->order_seq;
}

/* The highest rank of the seat's batch queues with work; INT64_MIN: none, or an order of the seat is overdue. Any seat
 * may take its turn then: the core cannot tell whether the seat uses it. */
static int64_t turn_rank(const struct gp_sched *sched, const struct gp_seat *seat)
{
	int64_t best = INT64_MIN;
	uint32_t i;

	if (seat->overdue_count)
		return best;
	for (i = seat->queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
		if (gp_heap_has(&sched->queues[i], GP_HEAP_WORK) && sched->queues[i].is_batch &&
		    sched->queues[i].rank > best)
			best = sched->queues[i].rank;
	return best;
}

bool gp_turn_is_best(const struct gp_sched *sched, const struct gp_device *device, int64_t rank)
{
	uint32_t i;

	for (i = 0; i < device->turn_count; i++)
		if (turn_rank(sched, &sched->seats[device->turn_seats[i]]) > rank)
			return false;
	return true;
}

bool gp_turn_is_above(const struct gp_sched *sched, const struct gp_device *device, int64_t rank)
{
	uint32_t i, k;

	for (i = 0; i < device->turn_count; i++) {
		k = sched->seats[device->turn_seats[i]].queue_first;
		for (; k != GP_NONE; k = sched->queues[k].seat_next)
			if (sched->queues[k].is_batch && sched->queues[k].rank >= rank)
				return false;
	}
	return true;
}

/* The policy's order also decides between a holder whose turn is over and a waiting seat: a holder that is still first
 * goes on. */
static bool turn_goes_on(struct gp_sched *sched, struct gp_seat *holder, struct gp_seat *waiter)
{
	const struct gp_policy *policy = sched->devices[holder->device].policy;

	if (!policy->order)
		return false;
	turn_view_user(sched, holder);
	turn_view_user(sched, waiter);
	if (policy->order(&holder->view) >= policy->order(&waiter->view))
		return false;
	holder->turn_used_ns = 0;
	return true;
}

/* What it costs to take the turn away and to give it back: two pairs of a close and an open. */
#define TURN_CUT_PAIRS 2u

/* Where each gate costs a transaction, the core knows how many a change takes only if both clients have one queue:
 * others get work on further queues during the turn. */
static bool turn_is_dear(const struct gp_device *device, const struct gp_seat *holder, const struct gp_seat *waiter)
{
	return device->attr.unit == GP_UNIT_QUEUE && holder->queue_count + waiter->queue_count > 2;
}

static bool turn_is_gangs(const struct gp_sched *sched, const struct gp_seat *seat)
{
	uint32_t i;

	for (i = seat->queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
		if (sched->queues[i].gang != GP_NONE)
			return true;
	return false;
}

/* May a seat that has just got work end this turn early? Not the turn of a gang: it would end on all its devices. */
static bool turn_may_cut(struct gp_sched *sched, struct gp_seat *holder, const struct gp_seat *waiter)
{
	struct gp_device *device = &sched->devices[holder->device];
	uint64_t least_ns = TURN_CUT_PAIRS * (device->attr.close_ns + device->attr.open_ns), more_ns;

	if (!waiter->came_for_work || !device->policy->yield_ns || turn_is_gangs(sched, holder) ||
	    turn_is_dear(device, holder, waiter))
		return false;
	turn_view_user(sched, holder);
	holder->view.turn_used_ns = holder->turn_used_ns;
	more_ns = device->policy->yield_ns(&holder->view, &waiter->view);
	if (holder->turn_used_ns < least_ns && more_ns < least_ns - holder->turn_used_ns)
		more_ns = least_ns - holder->turn_used_ns;
	if (more_ns && (holder->running[GP_KIND_COMPUTE] || holder->running[GP_KIND_COPY])) /* else it stays so */
		gp_device_wake(device, sched->now_ns + more_ns);
	return !more_ns && gp_budget_can_pay(sched, device, TURN_CUT_PAIRS);
}

/* The seat has work, but its gangs are closed because of other devices. A request there is over soon, so the seat keeps
 * its turn for the length of a turn; then the turn is over, because the device would be idle. */
static bool turn_is_unused(struct gp_sched *sched, struct gp_seat *seat)
{
	struct gp_device *device = &sched->devices[seat->device];
	uint64_t over_ns = 0;
	uint32_t i, last = GP_NONE;
	bool is_away = true;

	for (i = seat->queue_first; i != GP_NONE; i = sched->queues[i].seat_next) {
		const struct gp_queue *q = &sched->queues[i];

		if (!gp_heap_has(q, GP_HEAP_WORK) || !q->is_batch || (q->gang != GP_NONE && q->gang == last))
			continue;
		if (q->gang == GP_NONE || sched->gangs[q->gang].want_open)
			return false;
		last = q->gang;
		if (sched->gangs[last].closed_ns + device->param.turn_ns > over_ns)
			over_ns = sched->gangs[last].closed_ns + device->param.turn_ns;
		is_away = is_away && over_ns <= sched->now_ns && gp_gang_is_away(sched, &sched->gangs[last]);
	}
	if (is_away && seat->turn_used_ns < device->param.turn_ns)
		seat->turn_used_ns = device->param.turn_ns;
	if (!is_away)
		gp_device_wake(device, over_ns > sched->now_ns ? over_ns : sched->now_ns + device->param.turn_ns);
	return is_away;
}

/* Which seat must give its turn to the waiter; GP_NONE: none yet, and the device is woken when that may change. */
static uint32_t turn_victim(struct gp_sched *sched, uint32_t waiter, int64_t rank)
{
	struct gp_device *device = &sched->devices[sched->seats[waiter].device];
	int64_t victim_rank = INT64_MAX;
	uint32_t i, victim = GP_NONE;

	for (i = 0; i < device->turn_count; i++) {
		struct gp_seat *seat = &sched->seats[device->turn_seats[i]];
		int64_t own = turn_rank(sched, seat);

		gp_turn_account(sched, seat);
		/* Gates of an aged turn stay open to its end: those of an equal would open beside them. */
		if (own > rank ||
		    (device->turn_seats[i] == device->aged_seat && (own == rank || device->attr.switch_ns)))
			continue;
		if (own == rank && !turn_is_unused(sched, seat) &&
		    (seat->turn_used_ns < device->param.turn_ns || turn_goes_on(sched, seat, &sched->seats[waiter])) &&
		    !turn_may_cut(sched, seat, &sched->seats[waiter])) {
			/* A turn is used up only while its seat runs; when the seat starts to run, the core looks
			 * again. */
			if (seat->running[GP_KIND_COMPUTE] || seat->running[GP_KIND_COPY])
				gp_device_wake(device, sched->now_ns + device->param.turn_ns - seat->turn_used_ns);
			continue;
		}
		if (own < victim_rank) {
			victim_rank = own;
			victim = device->turn_seats[i];
		}
	}
	return victim;
}

/* The budget pays only for turns that end early, not for those that end after their length or for a higher rank. */
static void turn_pay_cut(struct gp_sched *sched, struct gp_seat *victim, int64_t rank)
{
	struct gp_device *device = &sched->devices[victim->device];

	if (turn_rank(sched, victim) != rank || victim->turn_used_ns >= device->param.turn_ns)
		return;
	gp_budget_pay(device, TURN_CUT_PAIRS);
	victim->cut = true;
}

bool gp_turn_can_get(struct gp_sched *sched, uint32_t seat, int64_t rank)
{
	struct gp_device *device = &sched->devices[sched->seats[seat].device];

	return sched->seats[seat].has_turn || device->turn_count < device->batch_max ||
	       turn_victim(sched, seat, rank) != GP_NONE;
}

void gp_turn_get(struct gp_sched *sched, uint32_t seat, int64_t rank)
{
	struct gp_device *device = &sched->devices[sched->seats[seat].device];
	uint32_t victim = GP_NONE;
	uint64_t used_ns = 0;

	if (sched->seats[seat].has_turn)
		return;
	if (device->turn_count >= device->batch_max) {
		victim = turn_victim(sched, seat, rank);
		if (victim != GP_NONE) {
			turn_pay_cut(sched, &sched->seats[victim], rank);
			used_ns = sched->seats[victim].turn_used_ns;
		}
		/* Turns taken for the same gang on another device may have changed the order: the decision stands. */
		gp_turn_take(sched, victim != GP_NONE ? victim : device->turn_seats[0]);
	}
	gp_turn_give(sched, seat);
	if (victim != GP_NONE)
		gp_under_begin(sched, victim, seat, used_ns);
}

void gp_turn_force(struct gp_sched *sched, uint32_t seat)
{
	struct gp_device *device = &sched->devices[sched->seats[seat].device];

	if (sched->seats[seat].has_turn)
		return;
	if (device->turn_count >= device->batch_max)
		gp_turn_take(sched, device->turn_seats[0]);
	gp_turn_give(sched, seat);
}

/* In turns. Turns that have just begun on other devices end after one turn and a change of turns. With only that as the
 * limit, devices whose turns end far apart would stay so, and the gang would never open. */
#define TURN_KEPT 3u

/* Turns of several devices end at different times. If a gang is next on all of its devices, the holder here goes on
 * until the turns on the others are over, too; but not without end. A turn that a seat ends early is not kept: that
 * seat does not need it for long. */
bool gp_turn_is_kept(struct gp_sched *sched, const struct gp_queue *waiter)
{
	struct gp_device *device = gp_device_of(sched, waiter);
	uint64_t used_ns = 0, most_ns = TURN_KEPT * device->param.turn_ns;
	uint32_t i;

	if (device->turn_count < device->batch_max)
		return false;
	for (i = 0; i < device->turn_count; i++) {
		const struct gp_seat *seat = &sched->seats[device->turn_seats[i]];

		if (turn_rank(sched, seat) < waiter->rank)
			return false; /* this holder could not go on */
		if (seat->turn_used_ns > used_ns)
			used_ns = seat->turn_used_ns;
	}
	if (used_ns < device->param.turn_ns || used_ns >= most_ns || !gp_gang_is_before(sched, waiter))
		return false;
	gp_device_wake(device, sched->now_ns + most_ns - used_ns);
	return true;
}

/* A seat's share of the time falls while it waits, so orders from when each seat began to wait are too old to compare.
 * The core asks for all of them again, once a turn. */
static void turn_ask_again(struct gp_sched *sched, struct gp_device *device)
{
	uint32_t s, i;

	if (!device->policy->order_falls || device->reorder_ns > sched->now_ns ||
	    gp_heap_top(device, GP_HEAP_TURN) == GP_NONE)
		return;
	device->reorder_ns = sched->now_ns + device->param.turn_ns;
	for (s = device->seat_first; s != GP_NONE; s = sched->seats[s].device_next) {
		struct gp_seat *seat = &sched->seats[s];

		if (seat->has_turn || !seat->work_count)
			continue;
		turn_view_user(sched, seat);
		for (i = seat->queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
			gp_work_set_rank(sched, i);
	}
}

void gp_turn_assign(struct gp_sched *sched, struct gp_device *device)
{
	uint32_t waiter;

	turn_ask_again(sched, device);
	while ((waiter = gp_heap_top(device, GP_HEAP_TURN)) != GP_NONE) {
		const struct gp_queue *q = &sched->queues[waiter];

		/* A turn that its seat cannot use would only cost, unless the device puts the holder aside by
		 * itself. */
		if (q->rank < gp_device_hold_rank(sched, device) && !device->attr.switch_ns)
			break;
		if (!gp_turn_can_get(sched, q->seat, q->rank) || gp_turn_is_kept(sched, q))
			break;
		gp_turn_get(sched, q->seat, q->rank);
	}
}

/* The device's top priority changed, so other seats need turns now, or need none any more. */
void gp_turn_settle(struct gp_sched *sched, struct gp_device *device)
{
	uint32_t i;

	for (i = device->seat_first; i != GP_NONE; i = sched->seats[i].device_next) {
		turn_refresh_queues(sched, &sched->seats[i]);
		if (sched->seats[i].batch_count == 0)
			gp_turn_take(sched, i);
	}
	for (i = device->seat_first; i != GP_NONE; i = sched->seats[i].device_next)
		if (sched->seats[i].batch_count && sched->seats[i].work_count &&
		    device->turn_count < device->batch_max) {
			gp_turn_give(sched, i);
			gp_gang_share_turn(sched, i);
		}
	for (i = device->seat_first; i != GP_NONE;
	     i = sched->seats[i].device_next) /* turns that are left go to seats without work */
		if (sched->seats[i].batch_count && device->turn_count < device->batch_max)
			gp_turn_give(sched, i);
}

void gp_turn_forget(struct gp_sched *sched, uint32_t seat)
{
	struct gp_device *device = &sched->devices[sched->seats[seat].device];
	uint32_t *link = &device->check_first;

	gp_under_forget(sched, device, seat);
	gp_turn_take(sched, seat);
	while (sched->seats[seat].check_gates) {
		if (GP_NEVER(*link == GP_NONE))
			return;
		if (*link == seat) {
			*link = sched->seats[seat].check_next;
			sched->seats[seat].check_gates = false;
		} else {
			link = &sched->seats[*link].check_next;
		}
	}
}
