/* SPDX-License-Identifier: MIT */
/*
 * What one client owes delays nobody else, but for the patience that a plan states and that has a bound: no plan may
 * wait longer, nobody waits for a client that was late and has not been prompt since, and when patience is over and the
 * core has nothing (more) to order, the most urgent queue with work is not behind a closed gate because somebody else
 * leaves an order unanswered.
 */
#include "test/sim/checker.h"
#include "test/sim/checker_known.h"

#define OWED_CLIENT_MAX 4096u
#define OWED_PROMPT     8u /* as sched.h says */

struct owed_state {
	uint64_t version;
	uint32_t missing[OWED_CLIENT_MAX]; /* prompt answers, since one was late */
	uint32_t generation[OWED_CLIENT_MAX];
	uint64_t noted_seq[KNOWN_QUEUE_MAX]; /* the order that was last noted as late, of each queue */
};

static uint32_t *owed_missing(struct owed_state *state, struct gp_client_id client)
{
	if (state->generation[client.index % OWED_CLIENT_MAX] != client.generation) {
		state->generation[client.index % OWED_CLIENT_MAX] = client.generation;
		state->missing[client.index % OWED_CLIENT_MAX] = 0;
	}
	return &state->missing[client.index % OWED_CLIENT_MAX];
}

static uint64_t owed_patience_ns(const struct known_device *device, const struct gp_plan *plan)
{
	uint64_t closes = known_transactions(device, plan->close, plan->close_count);
	uint64_t opens = known_transactions(device, plan->open, plan->open_count);
	uint64_t most_ns = device->attr.ack_timeout_ns / 4 + 1, least_ns = device->attr.ack_timeout_ns / 64 + 1;
	uint64_t expected_ns = 4 * (closes * device->attr.close_ns + opens * device->attr.open_ns);

	return expected_ns > most_ns ? most_ns : expected_ns < least_ns ? least_ns : expected_ns;
}

static void owed_plan(struct checker_run *run, struct owed_state *state, const struct gp_plan *plan)
{
	const struct known_device *device = &run->known->devices[plan->device];
	uint64_t most_ns;
	uint32_t i;

	if (!(plan->close_count + plan->open_count) || plan->device >= run->known->device_count)
		return;
	most_ns = owed_patience_ns(device, plan);
	if (plan->patience_ns > most_ns)
		checker_fail(run, &checker_owed, "at %llu ns: plan %llu waits %llu ns for answers, %llu would do",
			     (unsigned long long)run->now_ns, (unsigned long long)plan->seq,
			     (unsigned long long)plan->patience_ns, (unsigned long long)most_ns);
	for (i = 0; i < plan->close_count + plan->open_count; i++) {
		const struct gp_order *order =
			i < plan->close_count ? &plan->close[i] : &plan->open[i - plan->close_count];

		if (order->is_awaited && *owed_missing(state, order->client))
			checker_fail(run, &checker_owed,
				     "at %llu ns: plan %llu waits for client %u, which was late a moment ago",
				     (unsigned long long)run->now_ns, (unsigned long long)plan->seq,
				     order->client.index);
	}
}

static void owed_note(struct checker_run *run, struct owed_state *state)
{
	const struct known_queue *q;
	uint32_t i;

	for (i = 0; i < run->known->queue_end; i++) {
		q = &run->known->queues[i];
		if (!q->used || !known_moves(q) || !q->is_awaited || run->known->core_ns < q->prompt_until_ns ||
		    state->noted_seq[i] == q->order_seq)
			continue;
		state->noted_seq[i] = q->order_seq;
		*owed_missing(state, q->client) = OWED_PROMPT;
	}
}

static void owed_ack(struct checker_run *run, struct owed_state *state, const struct known_queue *queue)
{
	uint32_t *missing;

	if (!queue || state->noted_seq[queue - run->known->queues] == queue->order_seq)
		return;
	missing = owed_missing(state, queue->client);
	/* One that nobody waited for was late when its time was up, not now: it may have been prompt eight times since.
	 */
	if (run->known->core_ns > queue->prompt_until_ns)
		*missing = queue->is_awaited ? OWED_PROMPT : *missing;
	else
		*missing -= *missing > 0;
}

/* It had an aged turn and got nowhere since, up to the present one if it has one. */
static bool owed_is_vain(const struct known_queue *queue)
{
	if (queue->aged)
		return queue->aged_again;
	return queue->has_work && queue->aged_ns && queue->completed == queue->aged_completed;
}

/* The client has an aged turn for which others yield, even if none of them had to close for it. */
static bool owed_is_alone(const struct known *known, const struct known_queue *aged)
{
	uint32_t i;

	for (i = 0; i < known->queue_end; i++) {
		const struct known_queue *q = &known->queues[i];

		if (q->used && q->device == aged->device && q->client.index == aged->client.index && owed_is_vain(q))
			return true;
	}
	return false;
}

/* Others yield to an aged turn: until it is over nobody else opens there, nor one that only now became urgent. */
static bool owed_yields(const struct known *known, uint32_t device)
{
	const struct known_device *d = &known->devices[device];
	uint64_t most_ns =
		2 * d->param.age_turn_ns + 8 * (d->attr.close_ns + d->attr.open_ns) + d->attr.ack_timeout_ns / 2;
	uint32_t i;

	for (i = 0; i < known->queue_end; i++) {
		const struct known_queue *q = &known->queues[i];

		if (!q->used || q->device != device)
			continue;
		if (q->order_why == GP_WHY_YIELD && known->core_ns <= q->order_ns + most_ns)
			return true;
		if (q->aged && known->core_ns <= q->aged_ns + most_ns && owed_is_alone(known, q))
			return true;
	}
	return false;
}

/* The one with work that nobody else on the device, with work or without, is more urgent than: such a one may have
 * announced work, or be expected back. NULL: none, or not one of which the checkers can say so. */
static const struct known_queue *owed_urgent(const struct known *known, uint32_t device)
{
	const struct known_queue *q, *top = NULL;
	uint32_t i;

	for (i = 0; i < known->queue_end; i++) {
		q = &known->queues[i];
		if (!q->used || q->device != device)
			continue;
		if (q->vague)
			return NULL;
		if (!top || q->rank > top->rank || (q->rank == top->rank && q->has_work && !top->has_work))
			top = q;
	}
	return top && top->has_work && !top->attr.gang && !top->is_batch && !owed_yields(known, device) ? top : NULL;
}

/* A client that owes something on the device. */
static bool owed_by(const struct known *known, uint32_t device, struct gp_client_id client, bool is_client,
		    struct gp_client_id *ret_client)
{
	const struct known_queue *q;
	uint32_t i;

	for (i = 0; i < known->queue_end; i++) {
		q = &known->queues[i];
		if (q->used && q->device == device && known_moves(q) &&
		    (q->client.index == client.index) == is_client) {
			*ret_client = q->client;
			return true;
		}
	}
	return false;
}

static bool owed_has_room(const struct known *known, uint32_t device)
{
	const struct known_device *d = &known->devices[device];
	const struct known_queue *q;
	uint32_t i, open = 0;

	if (!d->attr.slot_count && !(d->attr.process_count_max && d->attr.process_parking))
		return true;
	for (i = 0; i < known->queue_end; i++) {
		q = &known->queues[i];
		open += q->used && q->device == device && q->gate != GP_GATE_CLOSED;
	}
	return (!d->attr.slot_count || open < d->attr.slot_count) &&
	       (!d->attr.process_count_max || !d->attr.process_parking || open < d->attr.process_count_max);
}

static void owed_look(struct checker_run *run, uint32_t device)
{
	const struct known_queue *top;
	struct gp_client_id other;

	known_refresh(run->known);
	top = owed_urgent(run->known, device);
	if (!top || top->gate != GP_GATE_CLOSED || owed_by(run->known, device, top->client, true, &other) ||
	    !owed_by(run->known, device, top->client, false, &other) || !owed_has_room(run->known, device))
		return;
	if (known_is_sliced(run->known, top))
		return;
	checker_fail(
		run, &checker_owed,
		"at %llu ns: queue %u is the most urgent with work and closed, while client %u leaves an order unanswered",
		(unsigned long long)run->now_ns, (uint32_t)top->attr.tag, other.index);
}

static void owed_event(struct checker_run *run, void *data, const struct check_event *event)
{
	struct owed_state *state = data;
	uint32_t i;

	if (event->type == CHECK_PLAN)
		owed_plan(run, state, event->plan);
	if (event->type == CHECK_ACK)
		owed_ack(run, state, known_find(run->known, event->queue));
	if (event->type == CHECK_QUIET)
		owed_note(run, state);
	if (event->type != CHECK_QUIET || run->known->version == state->version)
		return;
	state->version = run->known->version;
	for (i = 0; i < run->known->device_count; i++) {
		if (run->known->devices[i].ranked && !run->known->devices[i].stopped && !known_waits(run->known, i) &&
		    run->known->devices[i].quiet)
			owed_look(run, i);
	}
}

const struct checker checker_owed = {
	.name = "owed",
	.promise = "what one client owes delays no other beyond a stated patience",
	.state_size = sizeof(struct owed_state),
	.event = owed_event,
};
