/* SPDX-License-Identifier: MIT */
/*
 * Gangs: members open only after all closes on all their devices are acknowledged, their orders share a move number,
 * and whenever nothing is under way all members' gates are the same on the devices themselves.
 */
#include "test/sim/checker.h"
#include "test/sim/checker_known.h"
#include "test/sim/checker_truth.h"

#define GANG_MAX 16u

struct gang_state {
	uint64_t version;
	uint32_t forced[GANG_MAX],
		forced_count; /* opened because a member could not be closed, whatever was under way */
};

static bool gang_is_forced(const struct gang_state *state, uint32_t gang)
{
	uint32_t i;

	for (i = 0; i < state->forced_count && state->forced[i] != gang; i++)
		;
	return i < state->forced_count;
}

static bool gang_is_kept(const struct known *known, uint32_t gang)
{
	uint32_t i;

	for (i = 0; i < known->queue_end; i++)
		if (known->queues[i].attr.gang == gang && known_keeps_gang(known, &known->queues[i]))
			return true;
	return false;
}

/* It is ordered closed, and nobody keeps it open any more: the next time it opens by the rules. */
static void gang_end_forced(struct gang_state *state, struct known *known, const struct gp_plan *plan)
{
	uint32_t i, k;

	for (i = 0; i < plan->close_count; i++) {
		const struct known_queue *queue = known_find(known, plan->close[i].queue);

		for (k = 0; queue && k < state->forced_count; k++)
			if (state->forced[k] == queue->attr.gang && !gang_is_kept(known, queue->attr.gang))
				state->forced[k--] = state->forced[--state->forced_count];
	}
}

/* Until all its members are open, or it is closed. */
static void gang_note_forced(struct gang_state *state, const struct known *known)
{
	uint32_t i, k;

	if (!state->forced_count && !known->stuck_count)
		return;
	for (k = 0; k < state->forced_count; k++) {
		for (i = 0; i < known->queue_end; i++)
			if (known->queues[i].used && known->queues[i].attr.gang == state->forced[k] &&
			    known->queues[i].gate != GP_GATE_OPEN)
				break;
		if (i == known->queue_end)
			state->forced[k--] = state->forced[--state->forced_count];
	}
	for (i = 0; i < known->queue_end; i++)
		if (known_keeps_gang(known, &known->queues[i]) && !gang_is_forced(state, known->queues[i].attr.gang) &&
		    state->forced_count < GANG_MAX)
			state->forced[state->forced_count++] = known->queues[i].attr.gang;
}

/* Has a member on this device that is to open too; not one that is open already, in quarantine for example. */
static bool gang_waits(const struct known *known, uint32_t gang, uint32_t device)
{
	const struct known_queue *q;
	uint32_t i;

	for (i = 0; i < known->queue_end; i++) {
		q = &known->queues[i];
		if (q->used && q->attr.gang == gang && q->device == device &&
		    (q->gate == GP_GATE_CLOSED || q->gate == GP_GATE_OPENING))
			return true;
	}
	return false;
}

/* The member on this device that the gang's own opening has just ordered open; NULL: none. */
static const struct known_queue *gang_opening(const struct known *known, uint32_t gang, uint32_t device)
{
	const struct known_queue *q;
	uint32_t i;

	for (i = 0; i < known->queue_end; i++) {
		q = &known->queues[i];
		if (q->used && q->attr.gang == gang && q->device == device && q->gate == GP_GATE_OPENING &&
		    q->order_why == GP_WHY_GANG)
			return q;
	}
	return NULL;
}

static bool gang_has_begun(const struct known *known, uint32_t gang, uint32_t device)
{
	uint32_t i;

	for (i = 0; i < known->device_count; i++) {
		if (i != device && gang_opening(known, gang, i))
			return true;
	}
	return false;
}

static void gang_open(struct checker_run *run, const struct gang_state *state, const struct gp_plan *plan,
		      const struct gp_order *order)
{
	const struct known_queue *queue = known_find(run->known, order->queue);
	const struct known_device *device;
	const struct known_queue *other;
	uint32_t i, gang;

	if (!queue || !queue->attr.gang || queue->gate != GP_GATE_CLOSED || order->why != GP_WHY_GANG)
		return;
	gang = queue->attr.gang;
	for (i = 0; i < run->known->device_count && !gang_is_forced(state, gang); i++) {
		device = &run->known->devices[i];
		if (i == plan->device || !known_waits(run->known, i) || device->stopped ||
		    !gang_waits(run->known, gang, i))
			continue;
		other = gang_opening(run->known, gang, i);
		if (other && other->order_move == order->move)
			continue;
		if (other)
			checker_fail(
				run, &checker_gang,
				"at %llu ns: gang %u opens with move %llu on device %u and with move %llu on device %u",
				(unsigned long long)run->now_ns, gang, (unsigned long long)order->move, plan->device,
				(unsigned long long)other->order_move, i);
		/* A plan another device made after the gang's opening began does not concern it. */
		else if (device->close_count && !gang_has_begun(run->known, gang, plan->device))
			checker_fail(
				run, &checker_gang,
				"at %llu ns: gang %u opens on device %u with plan %llu while closes of plan %llu are under way on device %u",
				(unsigned long long)run->now_ns, gang, plan->device, (unsigned long long)plan->seq,
				(unsigned long long)device->seq, i);
	}
}

/* In quarantine, without the others: these are the same among themselves. */
static bool gang_is_alone(const struct known *known, const struct known_queue *queue)
{
	return queue->stuck && !known_keeps_gang(known, queue);
}

static bool gang_is_steady(const struct known *known, uint32_t gang, const bool *waits)
{
	const struct known_queue *q;
	uint32_t i;

	for (i = 0; i < known->queue_end; i++) {
		q = &known->queues[i];
		if (!q->used || q->attr.gang != gang || gang_is_alone(known, q))
			continue;
		if (waits[q->device] || known->devices[q->device].stopped || !known->devices[q->device].gates ||
		    (q->gate != GP_GATE_OPEN && q->gate != GP_GATE_CLOSED) || known_is_excused(known, q))
			return false;
	}
	return true;
}

static void gang_look(struct checker_run *run, const struct known_queue *first)
{
	const struct known *known = run->known;
	const struct known_queue *q;
	const struct truth_queue *a = &run->truth->queues[first->attr.tag], *b;
	uint32_t i;

	if (gang_is_alone(known, first))
		return;
	for (i = 0; i < known->queue_end; i++) {
		q = &known->queues[i];
		if (!q->used || q->attr.gang != first->attr.gang || q->attr.tag >= TRUTH_QUEUE_MAX ||
		    gang_is_alone(known, q))
			continue;
		b = &run->truth->queues[q->attr.tag];
		/* The core may know of a gate that its owner opens before the device has carried that out. */
		if (a->used && b->used && !a->lost && !b->lost && !a->opening && !b->opening && a->closed != b->closed)
			checker_fail(
				run, &checker_gang,
				"at %llu ns: nothing is under way, and of gang %u queue %u is %s while queue %u is %s",
				(unsigned long long)run->now_ns, first->attr.gang, (uint32_t)first->attr.tag,
				a->closed ? "closed" : "open", (uint32_t)q->attr.tag, b->closed ? "closed" : "open");
	}
}

/* Each gang is steady or not as a whole. */
static void gang_look_all(struct checker_run *run)
{
	const struct known *known = run->known;
	uint32_t i, k, gangs[GANG_MAX], count = 0;
	bool waits[KNOWN_DEVICE_MAX], steady[GANG_MAX];

	for (i = 0; i < known->device_count; i++)
		waits[i] = known_waits(known, i);
	for (i = 0; i < known->queue_end; i++) {
		const struct known_queue *q = &known->queues[i];

		if (!q->used || !q->attr.gang || q->attr.tag >= TRUTH_QUEUE_MAX)
			continue;
		for (k = 0; k < count && gangs[k] != q->attr.gang; k++)
			;
		if (k == count) {
			k = count < GANG_MAX ? count++ : GANG_MAX - 1;
			gangs[k] = q->attr.gang;
			steady[k] = gang_is_steady(known, q->attr.gang, waits);
		}
		if (steady[k])
			gang_look(run, q);
	}
}

static void gang_event(struct checker_run *run, void *data, const struct check_event *event)
{
	struct gang_state *state = data;
	uint32_t i;

	gang_note_forced(state, run->known);
	if (event->type == CHECK_PLAN) {
		gang_end_forced(state, run->known, event->plan);
		for (i = 0; i < event->plan->open_count; i++)
			gang_open(run, state, event->plan, &event->plan->open[i]);
	}
	if (event->type != CHECK_QUIET || run->known->version == state->version)
		return;
	state->version = run->known->version;
	gang_look_all(run);
}

const struct checker checker_gang = {
	.name = "gang",
	.promise = "the members of a gang open and close together",
	.state_size = sizeof(struct gang_state),
	.event = gang_event,
};
