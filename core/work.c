/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * A queue's work comes and goes. This file owns the queue's place in the heaps, its accounts and its timer. Every other
 * file changes a field and then calls gp_work_refresh(), so that heaps, counts and accounts always agree with the
 * fields.
 */
#include "core/calls.h"

#define WORK_DOUBT_NS 1000000000ull /* the core takes a packet that had so much time as done (chosen) */
#define WORK_TRUST_NS 100000000ull  /* after so much time a queue in doubt does not hold others up any more (chosen) */

void gp_work_account(struct gp_sched *sched, uint32_t queue)
{
	struct gp_queue *q = &sched->queues[queue];
	uint64_t elapsed_ns = sched->now_ns - q->mark_ns;

	q->mark_ns = sched->now_ns;
	if (!q->has_work)
		return;
	if (gp_gate_lets_through(q->gate))
		q->run_ns += elapsed_ns;
	else
		q->wait_ns += elapsed_ns;
	gp_age_account(q, elapsed_ns);
}

static void work_idle_list(struct gp_sched *sched, struct gp_queue *q, uint32_t queue, bool member)
{
	struct gp_device *device = gp_device_of(sched, q);

	if (q->in_idle_list == member)
		return;
	q->in_idle_list = member;
	if (member) {
		q->idle_prev = device->idle_last;
		q->idle_next = GP_NONE;
		if (device->idle_last != GP_NONE)
			sched->queues[device->idle_last].idle_next = queue;
		else
			device->idle_first = queue;
		device->idle_last = queue;
		return;
	}
	if (q->idle_prev != GP_NONE)
		sched->queues[q->idle_prev].idle_next = q->idle_next;
	else
		device->idle_first = q->idle_next;
	if (q->idle_next != GP_NONE)
		sched->queues[q->idle_next].idle_prev = q->idle_prev;
	else
		device->idle_last = q->idle_prev;
}

#define WORK_BIT(name) (1u << (name))
/* The heaps whose members follow from work, gate and turn; all of them are ordered by rank. */
#define WORK_HEAPS                                                                                                \
	(WORK_BIT(GP_HEAP_WORK) | WORK_BIT(GP_HEAP_LINGER) | WORK_BIT(GP_HEAP_OPEN) | WORK_BIT(GP_HEAP_RUNNING) | \
	 WORK_BIT(GP_HEAP_READY) | WORK_BIT(GP_HEAP_TURN))

/* Makes the queue a member of those WORK_HEAPS whose bits are set, and of no other. Few change at a time. */
static void work_put(struct gp_sched *sched, struct gp_device *device, uint32_t queue, uint32_t heaps)
{
	uint32_t changes = (sched->queues[queue].heaps ^ heaps) & WORK_HEAPS;

	for (; changes; changes &= changes - 1) {
		enum gp_heap_name name = (enum gp_heap_name)__builtin_ctz(changes);

		if (heaps >> name & 1)
			gp_heap_add(sched, device, name, queue);
		else
			gp_heap_remove(sched, device, name, queue);
	}
}

/* Changes rank and order, which are keys: takes the queue out of every heap that depends on them, and puts it back. */
static void work_reorder(struct gp_sched *sched, uint32_t queue, int64_t rank)
{
	struct gp_queue *q = &sched->queues[queue];
	struct gp_device *device = gp_device_of(sched, q);
	const struct gp_seat *seat = &sched->seats[q->seat];
	uint64_t order = !q->is_batch          ? q->wait_since_ns :
			 device->policy->order ? device->policy->order(&seat->view) :
						 seat->turn_tag;
	uint64_t order_then = q->is_batch && !device->policy->order ? seat->view.turn_count : 0;
	uint32_t was = q->heaps;

	if (q->rank == rank && q->order == order && q->order_then == order_then)
		return;
	work_put(sched, device, queue, 0);
	q->rank = rank;
	q->order = order;
	q->order_then = order_then;
	work_put(sched, device, queue, was);
	device->dirty = true;
	/* The change of rank may begin or end inversions on both sides. */
	if (gp_heap_has(q, GP_HEAP_RUNNING)) {
		gp_inversion_stopped(sched, queue, GP_WHY_NONE);
		gp_inversion_started(sched, queue);
	}
	gp_inversion_work(sched, queue);
}

static int64_t work_base_rank(const struct gp_sched *sched, const struct gp_queue *q)
{
	return q->gang != GP_NONE ? sched->gangs[q->gang].rank : q->own_rank;
}

void gp_work_set_rank(struct gp_sched *sched, uint32_t queue)
{
	const struct gp_queue *q = &sched->queues[queue];
	const struct gp_seat *seat = &sched->seats[q->seat];
	int64_t rank = work_base_rank(sched, q);

	work_reorder(sched, queue, q->gang == GP_NONE && seat->mixed && seat->rank > rank ? seat->rank : rank);
}

/* Queues of one process may wait for each other, so a queue with work lends its rank to its siblings. If the core
 * closed a queue that another one waits for, both would stand still until ageing opens it. */
static void work_lend_rank(struct gp_sched *sched, struct gp_seat *seat)
{
	int64_t rank = INT64_MIN;
	uint32_t i;

	if (!seat->mixed)
		return;
	for (i = seat->queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
		if (gp_work_is_active(sched, &sched->queues[i]) && work_base_rank(sched, &sched->queues[i]) > rank)
			rank = work_base_rank(sched, &sched->queues[i]);
	if (rank == seat->rank)
		return;
	seat->rank = rank;
	for (i = seat->queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
		gp_work_set_rank(sched, i);
}

/* The queue's work has just begun or ended: does that change the highest rank of its seat? A client may have a thousand
 * queues that get work at once, so this searches them only when a queue at the top loses its work, its neighbours
 * first. */
static bool work_changes_rank(const struct gp_sched *sched, const struct gp_seat *seat, const struct gp_queue *q)
{
	int64_t rank = work_base_rank(sched, q);
	uint32_t next = q->seat_next, prev = q->seat_prev;

	if (!seat->mixed || rank < seat->rank)
		return false;
	if (rank > seat->rank || gp_work_is_active(sched, q))
		return rank > seat->rank;
	while (next != GP_NONE || prev != GP_NONE) {
		uint32_t i = next != GP_NONE ? next : prev;

		if (gp_work_is_active(sched, &sched->queues[i]) && work_base_rank(sched, &sched->queues[i]) == rank)
			return false;
		if (next != GP_NONE)
			next = sched->queues[i].seat_next;
		else
			prev = sched->queues[i].seat_prev;
	}
	return true;
}

static uint32_t work_heaps(const struct gp_sched *sched, const struct gp_queue *q, bool active, bool running)
{
	uint32_t heaps = (active ? WORK_BIT(GP_HEAP_WORK) : 0) | (running ? WORK_BIT(GP_HEAP_RUNNING) : 0);

	if (q->linger_until_ns && !active)
		heaps |= WORK_BIT(GP_HEAP_LINGER);
	if (q->gate == GP_GATE_OPEN)
		heaps |= WORK_BIT(GP_HEAP_OPEN);
	if (gp_work_waits(sched, q, active))
		heaps |= gp_turn_allows(sched, q) ? WORK_BIT(GP_HEAP_READY) : WORK_BIT(GP_HEAP_TURN);
	return heaps;
}

void gp_work_refresh(struct gp_sched *sched, uint32_t queue)
{
	struct gp_queue *q = &sched->queues[queue];
	struct gp_device *device = gp_device_of(sched, q);
	struct gp_seat *seat = &sched->seats[q->seat];
	bool active = gp_work_is_active(sched, q);
	bool running = q->has_work && gp_gate_lets_through(q->gate);
	bool was_active = gp_heap_has(q, GP_HEAP_WORK);
	bool was_running = gp_heap_has(q, GP_HEAP_RUNNING);

	GP_ASSERT(q->used && (!was_active || seat->work_count));
	if (q->is_awake != active)
		gp_rest_work(sched, queue, active);
	if (was_active != active) {
		if (seat->work_count == (active ? 0 : 1))
			gp_turn_work(sched, queue, active);
		seat->work_count += active ? 1u : -1u;
	}
	if ((q->is_busy != q->has_work || was_running != running) && seat->mark_ns != sched->now_ns)
		gp_turn_account(sched, seat);
	if (q->is_busy != q->has_work) {
		q->is_busy = q->has_work;
		seat->busy[q->attr.kind] += q->is_busy ? 1u : -1u;
	}
	if (was_running != running) {
		seat->running[q->attr.kind] += running ? 1u : -1u;
		gp_floor_runs(sched, q, running);
	}
	work_put(sched, device, queue, work_heaps(sched, q, active, running));
	work_idle_list(sched, q, queue,
		       q->gate == GP_GATE_OPEN && !active && q->attr.kind == GP_KIND_COMPUTE && !q->attr.unseen &&
			       q->gang == GP_NONE);
	gp_age_update(sched, queue);
	gp_work_timer(sched, queue);
	device->dirty = true;
	if (q->is_batch)
		gp_slice_look(device);
	if (was_active != active && work_changes_rank(sched, seat, q))
		work_lend_rank(sched, seat);
	if (!q->is_batch && was_active != active && device->attr.switch_ns)
		gp_stay_look(sched, device);
	if (q->inverted || gp_heap_has_below(sched, device, GP_HEAP_RUNNING, q->rank))
		gp_inversion_work(sched, queue);
	if (!was_running && running && gp_device_close_rank(sched, device) > q->rank)
		gp_inversion_started(sched, queue);
	else if (was_running && !running && device->inverted_first != GP_NONE)
		gp_inversion_stopped(sched, queue, q->has_work ? GP_WHY_PRIORITY : GP_WHY_WORK);
}

/* Asks the policy again. Where both are due, call this before gp_work_refresh(). */
void gp_work_rerank(struct gp_sched *sched, uint32_t queue)
{
	struct gp_queue *q = &sched->queues[queue];
	struct gp_device *device = gp_device_of(sched, q);
	struct gp_seat *seat = &sched->seats[q->seat];
	const struct gp_policy_queue view = {
		.priority = q->attr.priority,
		.weight = q->attr.weight,
		.kind = q->attr.kind,
		.deadline_ns = q->attr.deadline_ns,
		.budget_ns = q->attr.budget_ns,
		.arrival_ns = q->has_work ? q->busy_since_ns : sched->now_ns,
		.priority_top = device->priority_top,
		.deadline_queue_count = device->deadline_queue_count,
	};
	bool is_behind = seat->is_behind && q->gang == GP_NONE;
	bool is_batch = device->policy->gates && !is_behind &&
			(!device->policy->is_batch || device->policy->is_batch(&view) || seat->is_extra);
	bool was_mixed = seat->mixed;
	int64_t before;
	uint32_t other;

	if (q->is_batch != is_batch) {
		if (gp_heap_has(q, GP_HEAP_RUNNING))
			gp_floor_runs(sched, q, false);
		q->is_batch = is_batch;
		if (gp_heap_has(q, GP_HEAP_RUNNING))
			gp_floor_runs(sched, q, true);
		seat->batch_count += is_batch ? 1u : -1u;
		gp_turn_check(sched, q->seat);
		gp_inversion_changed(sched, queue);
		gp_slice_look(device);
	}
	before = work_base_rank(sched, q);
	q->policy_rank = device->policy->rank ? device->policy->rank(&view) : 0;
	if (is_behind)
		q->policy_rank = INT64_MAX - (int64_t)seat->floor_serial;
	q->own_rank = q->has_work && q->in_doubt && q->tail_ns > WORK_TRUST_NS ? GP_RANK_DOUBT : q->policy_rank;
	other = seat->queue_first == queue ? q->seat_next : seat->queue_first;
	seat->mixed |= other != GP_NONE &&
		       (sched->queues[other].own_rank != q->own_rank || q->gang != sched->queues[other].gang);
	if (q->gang != GP_NONE)
		gp_gang_rank(sched, q->gang);
	gp_work_set_rank(sched, queue);
	if (was_mixed != seat->mixed || before != work_base_rank(sched, q))
		work_lend_rank(sched, seat);
}

/* Sets the queue's place among the queues that wait for a slot. The waiting queues of one user stand a turn apart, so
 * that a user with many queues does not keep others out; but no queue stands farther back than its user has queues. */
static void work_stand(struct gp_sched *sched, struct gp_queue *q)
{
	struct gp_share *share = gp_share_of(sched, q);
	uint64_t turn_ns = gp_device_of(sched, q)->param.turn_ns;
	uint64_t most_ns = sched->now_ns + share->queue_count * turn_ns;

	q->wait_since_ns = sched->now_ns;
	if (q->gate != GP_GATE_CLOSED || !gp_work_is_active(sched, q))
		return;
	if (share->ready_ns > q->wait_since_ns)
		q->wait_since_ns = share->ready_ns < most_ns ? share->ready_ns : most_ns;
	share->ready_ns = q->wait_since_ns + turn_ns;
}

void gp_work_begin(struct gp_sched *sched, uint32_t queue)
{
	struct gp_queue *q = &sched->queues[queue];

	gp_turn_enter(sched, queue);
	gp_work_account(sched, queue);
	if (q->idle_since_ns)
		gp_learn_gap(q, sched->now_ns - q->idle_since_ns);
	q->has_work = true;
	q->hinted = false;
	q->hint_from_ns = q->hint_at_ns = 0;
	q->linger_until_ns = 0;
	q->tail_until_ns = 0;
	q->busy_since_ns = q->last_done_ns = sched->now_ns;
	work_stand(sched, q);
	q->short_tried = false;
	gp_trace(sched, GP_TRACE_BUSY, queue, GP_WHY_NONE, 0);
	gp_work_rerank(sched, queue);
	if (q->gang != GP_NONE)
		gp_gang_work(sched, q->gang, true);
	gp_work_refresh(sched, queue);
	if (q->gate == GP_GATE_OPEN && !gp_turn_allows(sched, q))
		gp_turn_check(sched, q->seat); /* it stayed open without the turn while it was idle */
}

void gp_work_end(struct gp_sched *sched, uint32_t queue)
{
	struct gp_queue *q = &sched->queues[queue];
	struct gp_device *device = gp_device_of(sched, q);
	uint64_t linger_ns;

	gp_work_account(sched, queue);
	gp_age_completed(sched, queue);
	gp_learn_busy(q, sched->now_ns - q->busy_since_ns);
	q->has_work = false;
	if (q->in_doubt)
		gp_work_rerank(sched, queue);
	q->tail_until_ns = 0;
	q->idle_since_ns = sched->now_ns;
	/* A cycle costs the device a close and an open, and it costs the urgent queue a close: so the close counts
	 * twice. */
	linger_ns = device->policy->gates ? gp_learn_linger_ns(q, 2 * device->attr.close_ns + device->attr.open_ns,
							       device->param.linger_max_ns) :
					    0;
	linger_ns = gp_stay_linger_ns(device, q, linger_ns);
	q->linger_until_ns = linger_ns ? sched->now_ns + linger_ns : 0;
	gp_trace(sched, GP_TRACE_IDLE, queue, linger_ns ? GP_WHY_LINGER : GP_WHY_NONE,
		 sched->now_ns - q->busy_since_ns);
	if (q->gang != GP_NONE)
		gp_gang_work(sched, q->gang, false);
	gp_work_refresh(sched, queue);
	q->left_why = GP_WHY_NONE; /* only now: gp_work_refresh() has traced the inversions that it explains */
}

/*
 * Where counters move at fetch, the core only presumes that a queue is idle: one long packet may still run, and the
 * program may ring its doorbell again only after that packet. Time behind a closed gate does not count for the packet.
 * When the gate closes on such a queue, the queue counts as work again, so that its gate reopens, for twice as long
 * each time, until the packet must be done. After WORK_TRUST_NS the queue ranks below all others, so that a doubt
 * delays no other queue: it opens when the device has nothing else to do, or when it has aged.
 */
static void work_tail_gate(struct gp_sched *sched, uint32_t queue, enum gp_gate gate)
{
	struct gp_queue *q = &sched->queues[queue];

	if (!q->tail_ns)
		return;
	if (gate == GP_GATE_OPEN || gate == GP_GATE_QUARANTINED) {
		if (q->tail_until_ns == GP_NEVER_NS)
			q->tail_until_ns = sched->now_ns + q->tail_left_ns;
	} else if (gate == GP_GATE_CLOSED && q->has_work && q->tail_until_ns != GP_NEVER_NS) {
		q->tail_left_ns = q->tail_until_ns > sched->now_ns ? q->tail_until_ns - sched->now_ns : 1;
		q->tail_until_ns = GP_NEVER_NS;
	} else if (gate == GP_GATE_CLOSED && !q->has_work &&
		   (q->tail_ns < WORK_DOUBT_NS || q->tail_ns / 4 < q->packet_ns)) {
		q->tail_left_ns = q->tail_ns *= 2;
		q->tail_until_ns = GP_NEVER_NS;
		q->has_work = q->in_doubt = true;
		q->busy_since_ns = sched->now_ns;
		gp_trace(sched, GP_TRACE_BUSY, queue, GP_WHY_NONE, 0);
		gp_work_rerank(sched, queue);
		if (q->gang != GP_NONE)
			gp_gang_work(sched, q->gang, true);
	}
}

/* The queue's order is not under way any more, whether it was answered or not. */
static void work_order_over(struct gp_sched *sched, struct gp_queue *q)
{
	struct gp_seat *seat = &sched->seats[q->seat];
	bool was_overdue = q->is_overdue;
	uint32_t i;

	if (q->is_awaited)
		gp_apply_not_awaited(sched, q);
	gp_device_of(sched, q)->closing_compute_count -= gp_gate_is_closing(q);
	seat->overdue_count -= was_overdue;
	q->is_overdue = false;
	q->order_due_ns = q->prompt_until_ns = 0;
	for (i = seat->queue_first; was_overdue && !seat->overdue_count && i != GP_NONE; i = sched->queues[i].seat_next)
		gp_work_refresh(sched, i);
}

/* The queue's gate leaves GP_GATE_CLOSED, or enters it. */
static void work_count_open(struct gp_sched *sched, const struct gp_queue *q, bool opens)
{
	struct gp_device *device = gp_device_of(sched, q);
	struct gp_seat *seat = &sched->seats[q->seat];
	struct gp_share *share = &sched->shares[seat->share];
	uint32_t more = opens ? 1u : -1u;

	GP_ASSERT(opens || seat->open_count);
	if (q->attr.kind == GP_KIND_COMPUTE) {
		device->open_compute_count += more;
		share->open_compute += more;
	}
	seat->open_count += more;
	if (seat->open_count == opens) { /* it is the seat's first open gate, or was its last */
		device->open_seat_count += more;
		share->open_seats += more;
	}
}

/* Whether work_count_rare() has anything to count. It rarely has: the agent sees most queues' doorbells, and few gates
 * are lost or in quarantine. */
static bool work_is_rare(const struct gp_queue *q, enum gp_gate gate)
{
	return q->attr.unseen || gate == GP_GATE_UNKNOWN || gate == GP_GATE_QUARANTINED;
}

static void work_count_rare(struct gp_device *device, const struct gp_queue *q, bool in)
{
	uint32_t more = in ? 1u : -1u;

	GP_ASSERT(in || q->gate != GP_GATE_UNKNOWN || device->unknown_count);
	device->unknown_count += q->gate == GP_GATE_UNKNOWN ? more : 0;
	device->open_fixed_count += gp_gate_is_fixed(q) ? more : 0;
	device->closed_unseen_count += gp_gate_is_blind(q) ? more : 0;
}

/* Only this function changes a gate's state; it updates the counts. */
void gp_work_gate(struct gp_sched *sched, uint32_t queue, enum gp_gate gate)
{
	struct gp_queue *q = &sched->queues[queue];
	struct gp_device *device = gp_device_of(sched, q);
	bool was = q->gate != GP_GATE_CLOSED, is = gate != GP_GATE_CLOSED;

	GP_ASSERT(q->used);
	gp_work_account(sched, queue);
	if (gp_gate_moves(q->gate))
		work_order_over(sched, q);
	if (is != was)
		work_count_open(sched, q, is);
	if (gate == GP_GATE_OPEN && q->gate != GP_GATE_OPEN && q->gate != GP_GATE_CLOSING) {
		q->opened_ns = q->last_done_ns = sched->now_ns;
		q->left_why = GP_WHY_NONE; /* the next plan that leaves it open traces the reason again */
	}
	if (!is)
		q->left_why = GP_WHY_NONE;
	if (work_is_rare(q, q->gate))
		work_count_rare(device, q, false);
	q->gate = gate;
	if (work_is_rare(q, gate))
		work_count_rare(device, q, true);
	work_tail_gate(sched, queue, gate);
	if (gate == GP_GATE_CLOSED) { /* queues that wait for a slot open in the order in which they began to wait */
		work_stand(sched, q);
		gp_work_set_rank(sched, queue);
	}
	gp_work_refresh(sched, queue);
	if (gate == GP_GATE_OPEN && !gp_turn_allows(sched, q))
		gp_turn_check(sched, q->seat); /* it opened outside its turn: new, repaired, or without an order */
}

/* The earlier of the two; 0 stands for no time. */
static uint64_t work_earliest(uint64_t when_ns, uint64_t candidate_ns)
{
	return candidate_ns - 1 < when_ns - 1 ? candidate_ns : when_ns;
}

void gp_work_timer(struct gp_sched *sched, uint32_t queue)
{
	struct gp_queue *q = &sched->queues[queue];
	struct gp_device *device = gp_device_of(sched, q);
	uint64_t when_ns = GP_NEVER_NS;

	if (device->policy->gates) {
		when_ns = work_earliest(when_ns, q->linger_until_ns);
		when_ns = work_earliest(when_ns,
					q->hinted ? q->hint_at_ns + device->param.hint_grace_ns : q->hint_from_ns);
		when_ns = work_earliest(when_ns, gp_age_timer_ns(q));
	}
	when_ns = work_earliest(when_ns, q->tail_until_ns);
	when_ns = work_earliest(when_ns, q->hold_until_ns);
	when_ns = work_earliest(when_ns, q->is_awaited ? 0 : q->prompt_until_ns ? q->prompt_until_ns : q->order_due_ns);
	when_ns = work_earliest(when_ns, gp_slice_timer_ns(q));
	if (when_ns != q->timer_ns)
		gp_heap_set_timer(sched, device, queue, when_ns);
}

void gp_work_due(struct gp_sched *sched, uint32_t queue)
{
	struct gp_queue *q = &sched->queues[queue];
	struct gp_device *device = gp_device_of(sched, q);
	uint64_t now_ns = sched->now_ns;
	bool was_hinted = q->hinted;

	gp_apply_due(sched, queue);
	gp_slice_due(sched, queue);
	if (q->linger_until_ns && q->linger_until_ns <= now_ns)
		q->linger_until_ns = 0;
	if (q->hold_until_ns && q->hold_until_ns <= now_ns)
		q->hold_until_ns = 0;
	if (q->hinted && q->hint_at_ns + device->param.hint_grace_ns <= now_ns) {
		q->hinted = false;
		q->hint_from_ns = q->hint_at_ns = 0;
		device->stats.hints_missed++;
		gp_trace(sched, GP_TRACE_HINT_MISSED, queue, GP_WHY_NONE, 0);
	} else if (!q->hinted && q->hint_from_ns && q->hint_from_ns <= now_ns) {
		gp_turn_enter(sched, queue);
		q->hinted = true;
		if (device->attr.switch_ns)
			device->announce = queue;
	}
	if (q->hinted != was_hinted && q->gang != GP_NONE)
		gp_work_rerank(sched, queue); /* announced work changes the gang's rank */
	if (q->tail_until_ns && q->tail_until_ns <= now_ns)
		gp_work_end(sched, queue);
	else
		gp_age_due(sched, queue);
	if (q->is_batch && !gp_turn_allows(sched, q) && q->gate == GP_GATE_OPEN)
		gp_turn_check(sched, q->seat); /* hold_until_ns may have delayed its close */
	gp_work_refresh(sched, queue);
}
