/* SPDX-License-Identifier: MIT */
/*
 * What ageing costs those above. An aged turn disturbs a device from the order that opens its gates, or that makes
 * others yield, until they are ordered back; the checker's own leaking bucket holds that to age_permille and one turn,
 * and the whole to gp_sched_age_cost_bound_ns(). A user begins one aged turn in a window, however many clients he has.
 * A queue that had the device to itself and completed nothing begins its next aged turn after twice its window, then
 * after four times, and so on. As with starvation, each fault starts the count anew.
 */
#include "test/sim/checker.h"
#include "test/sim/checker_known.h"

#define AGE_USER_MAX  64u
#define AGE_CUT_PAIRS 2u /* of transactions: what a turn that ends early may cost */

struct age_queue {
	uint32_t generation;
	bool aged;   /* ordered open because it waited too long, not ordered back since */
	bool yields; /* ordered closed because another one did */
	bool alone;  /* in this aged turn nobody else was open with work, as far as the core can know */
	bool opened; /* its gate opened in this turn */
	bool shares; /* others' work was let through when the core was last done: it may not know yet that this is over
		      */
	uint32_t vain;    /* such turns in which it completed nothing, one after the other … */
	uint64_t vain_ns; /* … and when the last of them began */
	uint64_t from_ns, completed;
};

struct age_user {
	uint64_t user, from_ns; /* his last aged turn began; 0: none that counts */
	uint64_t seq;           /* of the plan that ordered its first gate open */
	uint32_t device;
	struct gp_client_id client;
};

struct age_device {
	uint64_t level, total_ns; /* level: in thousandths of ns */
	uint64_t answer_ns_max;   /* the longest that an order of an aged turn was under way */
	uint64_t yield_ns;        /* others were told to yield, and no aged gate was ordered open since; 0: no */
	bool disturbed, has_turn; /* somebody waits for an aged turn; there is one */
	int64_t budget;           /* of preempting there is at least so much, in thousandths of ns … */
	uint64_t budget_ns;       /* … at that time; 0: not known yet */
};

struct age_state {
	uint64_t mark_ns, begin_ns, offset_ns, disturbed_ns;
	struct age_device devices[KNOWN_DEVICE_MAX];
	struct age_queue queues[KNOWN_QUEUE_MAX];
	struct age_user users[AGE_USER_MAX];
	uint32_t user_count;
	bool is_noted; /* what the core was told last, and who has a turn since, is in answer_ns_max and the budgets */
};

static void age_reset(const struct known *known, struct age_state *state)
{
	uint32_t i;

	state->begin_ns = state->mark_ns = known->core_ns;
	state->user_count = 0;
	for (i = 0; i < KNOWN_DEVICE_MAX; i++)
		state->devices[i] = (struct age_device){ .answer_ns_max = state->devices[i].answer_ns_max,
							 .yield_ns = state->devices[i].yield_ns,
							 .budget = state->devices[i].budget,
							 .budget_ns = state->devices[i].budget_ns };
	for (i = 0; i < known->queue_end; i++) {
		state->queues[i].vain = 0;
		state->queues[i].aged = state->queues[i].alone = false;
	}
}

static struct age_queue *age_queue(struct age_state *state, const struct known *known, uint32_t index)
{
	struct age_queue *own = &state->queues[index];

	if (own->generation != known->queues[index].generation)
		*own = (struct age_queue){ .generation = known->queues[index].generation };
	return own;
}

/* How long an aged turn may take by itself, with the plans it needs. */
static uint64_t age_turn_ns(const struct checker_run *run, uint32_t device)
{
	const struct known_device *d = &run->known->devices[device];

	return d->param.age_turn_ns + 8 * (d->attr.close_ns + d->attr.open_ns) + 8 * run->latency_ns;
}

static int64_t age_price(const struct known_device *device, uint32_t pairs)
{
	return (int64_t)((device->attr.close_ns + device->attr.open_ns) * pairs * 1000);
}

/* It fills at overhead_permille, up to a burst by the present costs. */
static void age_fill(const struct known *known, struct age_device *own, const struct known_device *device)
{
	int64_t most = age_price(device, device->param.burst);

	if (!own->budget_ns)
		own->budget = most;
	else
		own->budget += (int64_t)((known->core_ns - own->budget_ns) * device->param.overhead_permille);
	own->budget_ns = known->core_ns;
	if (own->budget > most)
		own->budget = most;
}

/* What a plan may have cost at most: each gate that closes, and a turn that it ended early. */
static void age_pay(struct age_device *own, const struct known_device *device, const struct gp_plan *plan)
{
	uint32_t i, pairs = plan->close_count;

	for (i = 0; i < plan->open_count; i++)
		pairs += plan->open[i].why == GP_WHY_TURN ? AGE_CUT_PAIRS : 0;
	own->budget -= age_price(device, pairs);
}

/* The core says that the budget is used up, and that may be so: it cannot pay for closing all that is open. It does
 * nothing else while it waits for answers. */
static bool age_is_left(const struct known *known, const struct age_state *state, const struct known_queue *queue)
{
	const struct known_device *device = &known->devices[queue->device];
	uint32_t i, pairs = 0;

	for (i = 0; i < known->queue_end; i++)
		pairs += known->queues[i].used && known->queues[i].device == queue->device &&
			 known->queues[i].gate != GP_GATE_CLOSED;
	if (pairs > device->param.burst)
		pairs = device->param.burst;
	return queue->left_why == GP_WHY_RATE &&
	       (known_waits(known, queue->device) || state->devices[queue->device].budget < age_price(device, pairs));
}

/* Gates of its client were opened by an earlier plan, and are open still: the turn began there. */
static bool age_is_under_way(const struct known *known, const struct known_queue *queue)
{
	uint32_t i;

	for (i = 0; i < known->queue_end; i++) {
		const struct known_queue *q = &known->queues[i];

		if (q->used && q != queue && q->device == queue->device && q->client.index == queue->client.index &&
		    q->aged && q->order_seq != queue->order_seq)
			return true;
	}
	return false;
}

/* A gate that the turn's first plan opened was answered late, and others of the turn wait for that answer: there is no
 * other plan before it. The turn runs from there. */
static bool age_is_turn_of(const struct checker_run *run, const struct age_user *own, const struct known_queue *queue)
{
	const struct known *known = run->known;
	uint32_t i;

	for (i = 0; i < known->queue_end; i++) {
		const struct known_queue *q = &known->queues[i];

		if (q->used && q->device == queue->device && q->client.index == queue->client.index && q->aged &&
		    q->order_seq == own->seq && q->gate == GP_GATE_OPEN &&
		    known->core_ns - q->opened_ns <= age_turn_ns(run, queue->device))
			return true;
	}
	return false;
}

/* The turn begins when others are told to yield, or else when its gate is ordered open. */
static void age_begin_user(struct checker_run *run, struct age_state *state, const struct gp_plan *plan,
			   const struct known_queue *queue)
{
	const struct known_device *device = &run->known->devices[queue->device];
	uint64_t user = known_user(run->known, queue), core_ns = run->known->core_ns;
	uint64_t *yield_ns = &state->devices[queue->device].yield_ns, from_ns = *yield_ns ? *yield_ns : core_ns;
	uint64_t same_ns = 2 * age_turn_ns(run, queue->device);
	struct age_user *own = NULL;
	uint32_t i;

	*yield_ns = 0; /* it was for this one, whether it counts or not */
	if (same_ns >= device->param.age_window_ns)
		same_ns = device->param.age_window_ns - 1;
	for (i = 0; i < state->user_count; i++) {
		if (state->users[i].user == user && state->users[i].device == queue->device)
			own = &state->users[i];
	}
	if (!own && state->user_count < AGE_USER_MAX) {
		own = &state->users[state->user_count++];
		*own = (struct age_user){ .user = user, .device = queue->device };
	}
	if (!own)
		return;
	/* What began before a fault counts from nowhere. */
	if (!own->from_ns && age_is_under_way(run->known, queue))
		return;
	/* The same client shortly after: another gate in the same turn, which answers that are late may make twice as
	 * long. Where that is longer than the window, the next turn may begin meanwhile. */
	if (own->from_ns && own->client.index == queue->client.index &&
	    (core_ns - own->from_ns <= same_ns || age_is_turn_of(run, own, queue)))
		return;
	if (own->from_ns && from_ns - own->from_ns < device->param.age_window_ns)
		checker_fail(
			run, &checker_age,
			"at %llu ns: user %llu has two aged turns on device %u within %llu ns, the window is %llu ns",
			(unsigned long long)run->now_ns, (unsigned long long)user, queue->device,
			(unsigned long long)(from_ns - own->from_ns), (unsigned long long)device->param.age_window_ns);
	own->from_ns = from_ns;
	own->seq = plan->seq;
	own->client = queue->client;
}

/* Is nobody else's work let through, apart from what the plan closes? NULL: none. */
static bool age_is_alone(const struct known *known, const struct gp_plan *plan, const struct known_queue *queue)
{
	const struct known_queue *q;
	uint32_t i, k;

	for (i = 0; i < known->queue_end; i++) {
		q = &known->queues[i];
		if (!q->used || q->device != queue->device || q->client.index == queue->client.index || !q->has_work ||
		    !known_lets_through(q))
			continue;
		for (k = 0; plan && k < plan->close_count && plan->close[k].queue.index != i; k++)
			;
		if (!plan || k == plan->close_count)
			return false;
	}
	return true;
}

static void age_begin_queue(struct checker_run *run, struct age_state *state, const struct gp_plan *plan,
			    const struct known_queue *queue, uint32_t index)
{
	struct age_queue *own = age_queue(state, run->known, index);
	uint64_t core_ns = run->known->core_ns, wait_ns,
		 window_ns = run->known->devices[queue->device].param.age_window_ns;
	uint32_t i;

	/* It may come along with a sibling that it waits for. */
	for (i = 0; i < plan->open_count; i++) {
		if (plan->open[i].why == GP_WHY_AGED && plan->open[i].queue.index != index &&
		    plan->open[i].client.index == queue->client.index)
			return;
	}
	for (i = 0; i < run->known->queue_end; i++) {
		if (i != index && run->known->queues[i].used && state->queues[i].aged &&
		    run->known->queues[i].client.index == queue->client.index &&
		    run->known->queues[i].device == queue->device)
			return;
	}
	/* From the last turn in vain: after one that says nothing, as it was answered too late, its wait goes on. */
	wait_ns = window_ns << (own->vain < 6 ? own->vain : 6);
	if (own->vain && core_ns - own->vain_ns < wait_ns)
		checker_fail(
			run, &checker_age,
			"at %llu ns: queue %u had %u aged turns to itself and completed nothing, and has the next after %llu "
			"ns, before %llu ns",
			(unsigned long long)run->now_ns, (uint32_t)queue->attr.tag, own->vain,
			(unsigned long long)(core_ns - own->vain_ns), (unsigned long long)wait_ns);
	own->aged = true;
	own->opened = false;
	own->from_ns = core_ns;
	own->completed = queue->completed;
	own->alone = age_is_alone(run->known, plan, queue);
	for (i = 0; i < plan->close_count && own->alone; i++)
		if (plan->close[i].why == GP_WHY_YIELD)
			return;
	own->alone = false; /* nobody had to yield for it: what it got is not told */
}

/* It is ordered back, or those who yielded are: was the turn in vain? One that was cut short had no turn to speak of,
 * and what it is open for beside orders to open others was not to itself, however late these are answered. */
static void age_judge_queue(struct checker_run *run, struct age_queue *own, const struct known_queue *queue)
{
	const struct gp_param *param = &run->known->devices[queue->device].param;

	if (own->aged && own->alone && own->opened && !own->shares && age_is_alone(run->known, NULL, queue) &&
	    queue->completed == own->completed && queue->has_work && queue->written != queue->completed &&
	    run->known->core_ns - queue->opened_ns >= param->age_turn_ns) {
		own->vain++;
		own->vain_ns = own->from_ns;
	}
	own->alone = false;
}

static void age_end_queue(struct checker_run *run, struct age_queue *own, const struct known_queue *queue)
{
	age_judge_queue(run, own, queue);
	own->aged = false;
}

/* While others yield nobody opens by rank or turn: when one does the turn is over. One that had it may stay open among
 * equals, and who yielded may have to wait for a slot. */
static bool age_is_return(enum gp_why why)
{
	return why == GP_WHY_WORK || why == GP_WHY_TURN || why == GP_WHY_FLOOR;
}

static void age_end_yield(struct checker_run *run, struct age_state *state, uint32_t device)
{
	const struct known *known = run->known;
	uint32_t i;

	state->devices[device].yield_ns = 0;
	for (i = 0; i < known->queue_end; i++) {
		if (!known->queues[i].used || known->queues[i].device != device)
			continue;
		age_judge_queue(run, age_queue(state, known, i), &known->queues[i]);
		state->queues[i].yields = false;
	}
}

static void age_plan(struct checker_run *run, struct age_state *state, const struct gp_plan *plan)
{
	const struct known_queue *queue;
	struct age_queue *own;
	uint32_t i;

	for (i = 0; i < plan->close_count; i++) {
		queue = known_find(run->known, plan->close[i].queue);
		if (!queue)
			continue;
		own = age_queue(state, run->known, plan->close[i].queue.index);
		age_end_queue(run, own, queue);
		own->yields = plan->close[i].why == GP_WHY_YIELD;
		if (own->yields && !state->devices[plan->device].yield_ns)
			state->devices[plan->device].yield_ns = run->known->core_ns;
	}
	for (i = 0; i < plan->open_count; i++) {
		queue = known_find(run->known, plan->open[i].queue);
		if (!queue)
			continue;
		own = age_queue(state, run->known, plan->open[i].queue.index);
		if (own->yields && plan->open[i].why != GP_WHY_AGED)
			state->devices[plan->device].yield_ns = 0; /* back, and the turn did not come to anything */
		own->yields = false;
		if (age_is_return(plan->open[i].why))
			age_end_yield(run, state, plan->device);
		if (plan->open[i].why != GP_WHY_AGED || queue->attr.gang)
			continue;
		age_begin_user(run, state, plan, queue);
		age_begin_queue(run, state, plan, queue, plan->open[i].queue.index);
	}
}

static bool age_waits_above(const struct known *known, const struct known_queue *low)
{
	const struct known_queue *q;
	uint32_t i;

	for (i = 0; i < known->queue_end; i++) {
		q = &known->queues[i];
		/* How urgent the core takes presumed work for is its own affair. */
		if (q->used && q->device == low->device && q->has_work && q->client.index != low->client.index &&
		    q->rank > low->rank && !q->vague && !low->vague)
			return true;
	}
	return false;
}

/* Its gate may be open, and its turn goes on. One that its client does not say is open is over in its time all the
 * same: nobody can order it closed before its answer. No plan comes between the order and that time, so nothing is
 * allowed for plans. */
static bool age_is_open(const struct checker_run *run, const struct known_queue *queue)
{
	const struct known_device *device = &run->known->devices[queue->device];

	return queue->gate == GP_GATE_OPEN ||
	       (queue->gate == GP_GATE_OPENING &&
		run->known->core_ns - queue->order_ns <= device->param.age_turn_ns + 2 * device->attr.open_ns);
}

/* Whether another client's gate could open beside those that are open: a slot is free, and, where the core parks
 * processes, a place. */
static bool age_has_slot(const struct known *known, uint32_t device)
{
	const struct gp_device_attr *attr = &known->devices[device].attr;
	bool is_open[KNOWN_CLIENT_MAX] = { false };
	uint32_t i, open = 0, clients = 0;

	for (i = 0; i < known->queue_end; i++) {
		const struct known_queue *q = &known->queues[i];

		if (!q->used || q->device != device || q->gate == GP_GATE_CLOSED)
			continue;
		open += q->attr.kind == GP_KIND_COMPUTE;
		clients += !is_open[q->client.index];
		is_open[q->client.index] = true;
	}
	return (!attr->slot_count || open < attr->slot_count) &&
	       (!attr->process_parking || !attr->process_count_max || clients < attr->process_count_max);
}

/* It yielded to an aged turn, and waits for that. When the turn is over one that ranks as high keeps its slot in its
 * own right, as long as any other of its rank would; and one that the budget cannot pay to close is left open. */
static bool age_yields(const struct known *known, const struct age_state *state, const struct known_queue *queue)
{
	uint32_t i;

	if (!state->devices[queue->device].has_turn)
		return false;
	for (i = 0; i < known->queue_end; i++) {
		const struct known_queue *q = &known->queues[i];

		if (!q->used || q->device != queue->device || state->queues[i].generation != q->generation ||
		    !state->queues[i].aged || (q->gate != GP_GATE_OPEN && q->gate != GP_GATE_OPENING) ||
		    age_is_left(known, state, q))
			continue;
		if (q->gate == GP_GATE_OPENING || q->rank < queue->rank ||
		    (q->rank == queue->rank && age_has_slot(known, q->device)) ||
		    known->core_ns < q->opened_ns + known->devices[q->device].param.age_turn_ns)
			return true;
	}
	return false;
}

/* It is open for its aged turn, not for a reason of its own. */
static bool age_counts(const struct known *known, const struct age_state *state, const struct known_queue *queue)
{
	return queue->left_why == GP_WHY_NONE || queue->left_why == GP_WHY_AGED ||
	       (queue->left_why == GP_WHY_RATE && !age_is_left(known, state, queue));
}

/* Whether somebody waits now for what ageing does. */
static void age_look(struct checker_run *run, struct age_state *state)
{
	struct known *known = run->known;
	struct age_queue *own;
	uint32_t i;

	known_refresh(known);
	for (i = 0; i < known->device_count; i++)
		state->devices[i].disturbed = state->devices[i].has_turn = false;
	for (i = 0; i < known->queue_end; i++) {
		const struct known_queue *q = &known->queues[i];

		if (!q->used || !known->devices[q->device].gates || known->devices[q->device].stopped)
			continue;
		own = age_queue(state, known, i);
		own->opened |= own->aged && q->gate == GP_GATE_OPEN;
		own->shares = own->aged && !age_is_alone(known, NULL, q);
		if (q->completed != own->completed || !q->has_work || q->presumed)
			own->vain = 0;
		if (q->gate == GP_GATE_UNKNOWN || q->gate == GP_GATE_QUARANTINED)
			own->aged = own->yields = own->alone = false;
		if (own->aged && q->has_work && age_counts(known, state, q) && age_is_open(run, q) &&
		    age_waits_above(known, q))
			state->devices[q->device].disturbed = true;
		state->devices[q->device].has_turn |=
			own->aged && (q->gate == GP_GATE_OPEN || q->gate == GP_GATE_OPENING);
	}
	for (i = 0; i < known->queue_end; i++) {
		const struct known_queue *q = &known->queues[i];

		/* After the turn it is closed for other reasons. */
		if (q->used && state->queues[i].generation == q->generation && state->queues[i].yields && q->has_work &&
		    (q->gate == GP_GATE_CLOSED || q->gate == GP_GATE_CLOSING))
			state->devices[q->device].disturbed |= age_yields(known, state, q);
	}
}

static bool age_has_gang(const struct known *known, uint32_t device)
{
	uint32_t i;

	for (i = 0; i < known->queue_end; i++)
		if (known->queues[i].used && known->queues[i].device == device && known->queues[i].attr.gang)
			return true;
	return false;
}

static void age_account(struct checker_run *run, struct age_state *state)
{
	uint64_t core_ns = run->known->core_ns, elapsed_ns = core_ns - state->mark_ns, limit_ns, leak;
	uint32_t i;

	state->mark_ns = core_ns;
	for (i = 0; i < run->known->device_count; i++) {
		struct age_device *own = &state->devices[i];
		const struct known_device *device = &run->known->devices[i];

		leak = elapsed_ns * device->param.age_permille;
		own->level += own->disturbed ? elapsed_ns * 1000 : 0;
		own->level = own->level > leak ? own->level - leak : 0;
		own->total_ns += own->disturbed ? elapsed_ns : 0;
		/* One turn, and the plans at both its ends; of gangs one may begin on each device. */
		limit_ns = device->param.age_turn_ns + 2 * device->attr.open_ns + 2 * own->answer_ns_max +
			   8 * run->latency_ns;
		limit_ns *= age_has_gang(run->known, i) ? run->known->device_count : 1;
		if (!own->disturbed || device->param.age_permille == 1000)
			continue;
		if (own->total_ns >
		    gp_sched_age_cost_bound_ns(run->core, i, core_ns - state->begin_ns) + 8 * run->latency_ns)
			checker_fail(run, &checker_age,
				     "at %llu ns: aged turns took %llu ns of device %u since %llu ns",
				     (unsigned long long)run->now_ns, (unsigned long long)own->total_ns, i,
				     (unsigned long long)state->begin_ns);
		if (own->level > limit_ns * 1000)
			checker_fail(
				run, &checker_age,
				"at %llu ns: aged turns took %llu ns more of device %u than %u per mille, and one is %llu ns",
				(unsigned long long)run->now_ns, (unsigned long long)(own->level / 1000), i,
				device->param.age_permille, (unsigned long long)limit_ns);
	}
}

/* How long its order is under way, or was. What others leave unanswered makes no aged turn longer, but for the patience
 * that its plan states: there is no other plan before that is over. */
static void age_answer(const struct known *known, struct age_state *state, const struct known_queue *queue,
		       bool answered)
{
	struct age_device *device = &state->devices[queue->device];
	bool is_own = queue->order_why == GP_WHY_AGED || queue->order_why == GP_WHY_YIELD || queue->aged;
	uint64_t until_ns = known->core_ns;

	if (!queue->used || !(answered || known_moves(queue)))
		return;
	if (!is_own && queue->prompt_until_ns < until_ns)
		until_ns = queue->prompt_until_ns;
	if ((is_own || (queue->is_awaited && device->has_turn)) && until_ns - queue->order_ns > device->answer_ns_max)
		device->answer_ns_max = until_ns - queue->order_ns;
}

static void age_answers(const struct known *known, struct age_state *state, const struct check_event *event)
{
	uint32_t i;

	if (event->type == CHECK_ACK && event->queue.index < known->queue_end)
		age_answer(known, state, &known->queues[event->queue.index], true);
	for (i = 0; i < known->queue_end && known->moving_count; i++)
		age_answer(known, state, &known->queues[i], false);
}

static void age_event(struct checker_run *run, void *data, const struct check_event *event)
{
	struct age_state *state = data;
	uint64_t latest_ns = 0;
	uint32_t i;

	/* Between two calls of the core neither its time nor what it was told changes: once more says nothing new. */
	if (!run->core || (event->type >= CHECK_GPU_ADD && state->is_noted))
		return;
	for (i = 0; i < run->known->device_count; i++)
		latest_ns = run->known->devices[i].disturbed_ns > latest_ns ? run->known->devices[i].disturbed_ns :
									      latest_ns;
	if ((event->type == CHECK_SETTLED || event->type == CHECK_PLAN) &&
	    event->core_ns - event->now_ns != state->offset_ns) {
		state->offset_ns = event->core_ns - event->now_ns; /* the core's clock jumped */
		age_reset(run->known, state);
	}
	if (latest_ns != state->disturbed_ns || event->type == CHECK_QUEUE_ADD || event->type == CHECK_ATTR) {
		state->disturbed_ns = latest_ns;
		age_reset(run->known, state);
	}
	age_answers(run->known, state, event);
	if (event->type == CHECK_PLAN || event->type == CHECK_SETTLED)
		age_account(run, state);
	for (i = 0; i < run->known->device_count; i++)
		age_fill(run->known, &state->devices[i], &run->known->devices[i]);
	if (event->type == CHECK_PLAN) {
		age_pay(&state->devices[event->plan->device], &run->known->devices[event->plan->device], event->plan);
		age_plan(run, state, event->plan);
	}
	if (event->type == CHECK_SETTLED)
		age_look(run, state);
	state->is_noted = event->type != CHECK_PLAN && event->type != CHECK_SETTLED;
}

const struct checker checker_age = {
	.name = "age",
	.promise = "ageing is shared by user, earned, and costs no more than is stated",
	.state_size = sizeof(struct age_state),
	.event = age_event,
};
