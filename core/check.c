/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The whole-state invariant check: recomputes from each queue's fields what heaps, lists and counts must say. For tests
 * and debug builds. */
#include "core/calls.h"

/* Recomputed from the queues themselves, not from the heap the inversions are found with. */
static bool check_is_inverted(const struct gp_sched *sched, const struct gp_queue *q)
{
	const struct gp_device *device = &sched->devices[q->device];
	uint32_t seat, i;

	if (!q->has_work || !device->policy->gates)
		return false;
	for (seat = device->seat_first; seat != GP_NONE; seat = sched->seats[seat].device_next)
		for (i = sched->seats[seat].queue_first; i != GP_NONE; i = sched->queues[i].seat_next) {
			const struct gp_queue *other = &sched->queues[i];

			if (other->has_work && gp_gate_lets_through(other->gate) && other->rank < q->rank &&
			    !(device->attr.switch_ns && !q->is_batch && other->is_batch && sched->seats[seat].has_turn))
				return true;
		}
	return false;
}

static const char *check_queue(const struct gp_sched *sched, const struct gp_queue *q)
{
	bool active = gp_work_is_active(sched, q);
	bool running = q->has_work && gp_gate_lets_through(q->gate);
	bool waits = gp_work_waits(sched, q, active);
	bool allowed = gp_turn_allows(sched, q);

	if (q->device >= sched->device_count || !sched->seats[q->seat].used ||
	    sched->seats[q->seat].device != q->device || sched->seats[q->seat].client != q->client)
		return "a queue sits on a seat that is not its client's";
	if (gp_heap_has(q, GP_HEAP_WORK) != active)
		return "the work heap disagrees with a queue's work";
	if (gp_heap_has(q, GP_HEAP_LINGER) != (q->linger_until_ns && !active))
		return "the linger heap disagrees with a queue";
	if (gp_heap_has(q, GP_HEAP_OPEN) != (q->gate == GP_GATE_OPEN))
		return "the open heap disagrees with a gate";
	if (gp_heap_has(q, GP_HEAP_RUNNING) != running)
		return "the running heap disagrees with a queue";
	if (gp_heap_has(q, GP_HEAP_READY) != (waits && allowed))
		return "the ready heap disagrees with a queue";
	if (gp_heap_has(q, GP_HEAP_TURN) != (waits && !allowed))
		return "the turn heap disagrees with a queue";
	if (gp_heap_has(q, GP_HEAP_TIMER) != (q->timer_ns != GP_NEVER_NS))
		return "the timer heap disagrees with a queue";
	if (q->gang == GP_NONE && (q->rank < q->own_rank || (q->rank > q->own_rank && !sched->seats[q->seat].mixed)))
		return "a queue without a gang has a rank that nobody lent it";
	if (q->completed > q->written)
		return "a queue completed more than was written";
	if (q->inverted && !q->has_work)
		return "a queue without work is inverted";
	if (q->inverted != check_is_inverted(sched, q))
		return "a queue's inversion began or ended unnoticed";
	return NULL;
}

/* An order is under way exactly while its gate moves. It is either prompt or overdue. Only prompt orders of the
 * device's last plan are awaited. */
static const char *check_order(const struct gp_sched *sched, const struct gp_queue *q)
{
	const struct gp_device *device = &sched->devices[q->device];

	if (gp_gate_moves(q->gate) != (q->order_due_ns != 0))
		return "a gate moves without an order, or an order is under way and its gate does not move";
	if (q->is_overdue ? !gp_gate_moves(q->gate) || q->prompt_until_ns :
			    (q->order_due_ns != 0) != (q->prompt_until_ns != 0))
		return "an order is neither prompt nor overdue";
	if (q->prompt_until_ns > q->order_due_ns)
		return "an order is given up before it is overdue";
	if (q->is_awaited && q->prompt_until_ns != device->patient_until_ns)
		return "an order is awaited that is not of the last plan";
	if (q->order_seq > sched->seq || q->given_seq > sched->seq)
		return "an order is of a plan that was never made";
	return NULL;
}

static const char *check_given_up(const struct gp_sched *sched)
{
	uint32_t i, prev = GP_NONE, listed = 0, given = 0;

	for (i = 0; i < sched->limits.queue_count; i++)
		given += sched->queues[i].used && sched->queues[i].given_seq;
	for (i = sched->given_first; i != GP_NONE && listed <= given; i = sched->queues[i].given_next) {
		if (!sched->queues[i].used || !sched->queues[i].given_seq || sched->queues[i].given_prev != prev)
			return "the list of orders that were given up is wrong";
		prev = i;
		listed++;
	}
	return listed == given && prev == sched->given_last ? NULL : "an order was given up and nobody is told";
}

static const char *check_seat(const struct gp_sched *sched, const struct gp_device *device, const struct gp_seat *seat)
{
	uint32_t i, count = 0, work = 0, open = 0, batch = 0, overdue = 0, running[2] = { 0 }, busy[2] = { 0 };

	for (i = seat->queue_first; i != GP_NONE; i = sched->queues[i].seat_next) {
		const struct gp_queue *q = &sched->queues[i];

		if (!q->used || &sched->seats[q->seat] != seat)
			return "a seat lists a queue that is not its own";
		count++;
		work += gp_heap_has(q, GP_HEAP_WORK);
		running[q->attr.kind] += gp_heap_has(q, GP_HEAP_RUNNING);
		open += q->gate != GP_GATE_CLOSED;
		batch += q->is_batch;
		busy[q->attr.kind] += q->has_work;
		overdue += q->is_overdue;
	}
	if (count != seat->queue_count || !count)
		return "a seat's queue count is wrong";
	if (work != seat->work_count || open != seat->open_count || batch != seat->batch_count ||
	    running[0] != seat->running[0] || running[1] != seat->running[1] || overdue != seat->overdue_count ||
	    busy[0] != seat->busy[0] || busy[1] != seat->busy[1])
		return "a seat's counts are wrong";
	if (device->batch_max == GP_UNLIMITED && !seat->has_turn)
		return "a seat without a turn where none is needed";
	if (device->batch_max != GP_UNLIMITED && seat->has_turn && !seat->batch_count)
		return "a seat has a turn and needs none";
	return NULL;
}

/* The open gates of all users are the open gates of the device. */
static const char *check_shares(const struct gp_sched *sched, const struct gp_device *device)
{
	uint32_t i, compute = 0, seats = 0, work = 0, top = 0, seen = 0;

	for (i = 0; i < sched->limits.queue_count && seen < device->share_count; i++)
		if (sched->shares[i].seat_count && &sched->devices[sched->shares[i].device] == device) {
			seen++;
			compute += sched->shares[i].open_compute;
			seats += sched->shares[i].open_seats;
			work += sched->shares[i].work_seats;
			top += sched->shares[i].top_seats;
		}
	for (i = device->seat_first; i != GP_NONE; i = sched->seats[i].device_next) {
		work -= sched->seats[i].work_count > 0;
		top -= sched->seats[i].is_top;
		if (sched->seats[i].is_top && (!sched->seats[i].work_count || sched->seats[i].is_extra))
			return "a seat has a place at the top and does not use it";
	}
	return compute == device->open_compute_count && seats == device->open_seat_count && !work && !top ?
		       NULL :
		       "the counts of a user are wrong";
}

static const char *check_ages(const struct gp_sched *sched, const struct gp_device *device)
{
	uint32_t i, k, waits = 0, heads = 0, listed = 0;

	for (i = device->seat_first; i != GP_NONE; i = sched->seats[i].device_next) {
		const struct gp_share *share = &sched->shares[sched->seats[i].share];

		if (&sched->devices[share->device] != device || !share->seat_count ||
		    (share->user && share->user != sched->clients[sched->seats[i].client].attr.user))
			return "a seat has the share of another user";
		for (k = sched->seats[i].queue_first; k != GP_NONE; k = sched->queues[k].seat_next) {
			const struct gp_queue *q = &sched->queues[k];

			waits += q->age_waits;
			heads += share->head == k;
			if (gp_heap_has(q, GP_HEAP_AGE) != (share->head == k) || (share->head == k && !q->age_waits))
				return "the heap of aged queues disagrees with a share";
			if (q->age_waits && !q->has_work)
				return "a queue without work waits for an aged turn";
			listed += share->first == k;
			listed += q->age_waits && q->age_next != GP_NONE;
			if (q->age_waits && q->age_next != GP_NONE && sched->queues[q->age_next].age_prev != k)
				return "a list of aged queues is broken";
		}
	}
	if (waits != listed || heads != device->heaps[GP_HEAP_AGE].count)
		return "the count of aged queues is wrong";
	return NULL;
}

static const char *check_device(const struct gp_sched *sched, const struct gp_device *device)
{
	uint32_t i, seats = 0, queues = 0, turns = 0, compute = 0, fixed = 0, open_seats = 0, unknown = 0, blind = 0;
	uint32_t awaited = 0, closing = 0;
	const char *wrong = NULL;
	int32_t highest = 0;

	for (i = 0; i < GP_HEAP_COUNT; i++)
		if (!gp_heap_is_ordered(sched, device, (enum gp_heap_name)i))
			return "a heap is out of order";
	for (i = device->seat_first; i != GP_NONE && !wrong; i = sched->seats[i].device_next) {
		const struct gp_seat *seat = &sched->seats[i];
		uint32_t j;

		seats++;
		queues += seat->queue_count;
		turns += seat->has_turn;
		open_seats += seat->open_count > 0;
		wrong = check_seat(sched, device, seat);
		for (j = seat->queue_first; j != GP_NONE && !wrong; j = sched->queues[j].seat_next) {
			const struct gp_queue *q = &sched->queues[j];

			compute += q->attr.kind == GP_KIND_COMPUTE && q->gate != GP_GATE_CLOSED;
			fixed += gp_gate_is_fixed(q);
			blind += gp_gate_is_blind(q);
			unknown += q->gate == GP_GATE_UNKNOWN;
			highest = q->attr.priority > highest ? q->attr.priority : highest;
			awaited += q->is_awaited;
			closing += gp_gate_is_closing(q);
			wrong = check_order(sched, q);
			if (!wrong)
				wrong = check_queue(sched, q);
		}
	}
	if (wrong)
		return wrong;
	for (i = device->awaited_first; i != GP_NONE && awaited != GP_NONE; i = sched->queues[i].awaited_next)
		awaited -= sched->queues[i].is_awaited || !awaited;
	if (awaited || closing != device->closing_compute_count)
		return "a device's counts of orders are wrong";
	if (seats != device->seat_count || queues != device->queue_count || highest != device->priority_highest)
		return "a device's counts of seats and queues are wrong";
	if (compute != device->open_compute_count || fixed != device->open_fixed_count ||
	    open_seats != device->open_seat_count || unknown != device->unknown_count ||
	    blind != device->closed_unseen_count)
		return "a device's counts of gates are wrong";
	wrong = check_shares(sched, device);
	if (!wrong)
		wrong = check_ages(sched, device);
	if (!wrong)
		wrong = gp_slice_check(sched, device);
	if (!wrong)
		wrong = gp_floor_check(sched, device);
	if (wrong)
		return wrong;
	if (device->batch_max != GP_UNLIMITED &&
	    (turns != device->turn_count || (turns > device->batch_max && !sched->gang_count)))
		return "a device's turns are wrong";
	return NULL;
}

static const char *check_gang(const struct gp_sched *sched, uint32_t index)
{
	const struct gp_gang *gang = &sched->gangs[index];
	uint32_t i, members = 0, work = 0, stuck = 0;

	for (i = gang->first; i != GP_NONE; i = sched->queues[i].gang_next) {
		const struct gp_queue *q = &sched->queues[i];

		if (!q->used || q->gang != index)
			return "a gang lists a queue that is not its member";
		if (gang->stuck_count && sched->devices[q->device].policy->gates &&
		    (q->gate == GP_GATE_OPEN || q->gate == GP_GATE_CLOSED))
			return "a member of a gang that cannot be put aside may be closed, or stays so";
		if (q->is_stuck && q->gate != GP_GATE_QUARANTINED)
			return "a queue cannot be put aside and is not in quarantine";
		if (q->gate == GP_GATE_QUARANTINED && !q->is_stuck && !gang->stuck_count)
			return "a queue is in quarantine for nobody";
		if (q->keeps_gang != (q->is_stuck && !sched->clients[q->client].attr.is_stuck_alone))
			return "a queue keeps its gang open, or does not, against what its client is told";
		members++;
		work += q->has_work;
		stuck += q->keeps_gang;
	}
	if (stuck != gang->stuck_count || (stuck && !gang->want_open))
		return "a gang does not know which of its members cannot be put aside";
	return members == gang->member_count && work == gang->work_count ? NULL : "a gang's counts are wrong";
}

const char *gp_sched_check(const struct gp_sched *sched)
{
	const char *wrong = NULL;
	uint32_t i, gangs = 0, closed = 0;

	for (i = 0; i < sched->device_count && !wrong; i++)
		wrong = check_device(sched, &sched->devices[i]);
	for (i = 0; i < sched->limits.gang_count && !wrong; i++)
		if (sched->gangs[i].used) {
			gangs++;
			closed += !sched->gangs[i].want_open;
			wrong = check_gang(sched, i);
		}
	if (!wrong)
		wrong = check_given_up(sched);
	if (!wrong && gangs != sched->gang_count)
		wrong = "the count of gangs is wrong";
	for (i = sched->closed_first; i != GP_NONE && closed != GP_NONE; i = sched->gangs[i].closed_next)
		closed = sched->gangs[i].used && !sched->gangs[i].want_open ? closed - 1 : GP_NONE;
	if (!wrong && closed)
		wrong = "the list of closed gangs is wrong";
	return wrong;
}
