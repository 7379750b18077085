/* SPDX-License-Identifier: MIT */
/* Slots and processes within limits: whenever the core has nothing to order, no more compute gates are open than the
 * device has slots if one of them could be parked, and no more batch clients than may be open at once. */
#include "test/sim/checker.h"
#include "test/sim/checker_known.h"

struct limits_state {
	uint64_t version;
	/* Of a queue that its owner opened when it was due: its aged turn is over by then, core time. */
	uint64_t turn_until_ns[KNOWN_QUEUE_MAX];
};

/* It was opened because the device rests, and no queue of the device has had work since. */
static bool limits_rests(const struct known *known, const struct known_queue *queue)
{
	uint32_t i;

	for (i = 0; i < known->queue_end; i++)
		if (known->queues[i].used && known->queues[i].device == queue->device && known->queues[i].has_work)
			return false;
	return queue->order_why == GP_WHY_REST || queue->order_why == GP_WHY_COMPANY;
}

/* It has waited for as long as a queue may before its client has an aged turn. If its owner opened it, the core had
 * closed it at its last order. A queue that the core has opened does not wait. */
static bool limits_is_due(const struct known *known, const struct known_queue *queue)
{
	uint64_t since_ns = queue->is_own ? queue->order_ns : queue->opened_ns;

	if (since_ns < queue->busy_since_ns)
		since_ns = queue->busy_since_ns;
	return queue->has_work && (queue->is_own || queue->gate != GP_GATE_OPEN) &&
	       known->core_ns - since_ns >= known->devices[queue->device].param.age_window_ns;
}

/* The owner opened a gate. If the queue was due it may have an aged turn that waits for the budget. With no gate left
 * to open the turn begins when the core plans next, and it goes on to its end though the work is done sooner. */
static void limits_opened(struct limits_state *state, struct known *known, const struct check_event *event)
{
	const struct known_queue *q, *queue = known_find(known, event->queue);
	const struct known_device *device;
	uint64_t from_ns = known->core_ns;
	uint32_t i;

	if (!queue || !queue->is_own || queue->gate != GP_GATE_OPEN || queue->opened_ns != known->core_ns)
		return;
	device = &known->devices[queue->device];
	for (i = 0; i < known->queue_end; i++) { /* no plan while the core waits for answers */
		q = &known->queues[i];
		if (q->used && q->device == queue->device && known_moves(q) && q->is_awaited &&
		    q->prompt_until_ns > from_ns)
			from_ns = q->prompt_until_ns;
	}
	state->turn_until_ns[event->queue.index] =
		limits_is_due(known, queue) ? from_ns + device->param.age_turn_ns + 2 * device->attr.open_ns : 0;
}

/* Its gate is open for a reason that stands above the limits. A gang ages as a whole. A client's queues have its aged
 * turn from when the core decides on it. If the owner opens a gate before the turn's first order, no order of the core
 * names the reason for that gate; and while the turn waits for the budget, none for the client's other gates. */
static bool limits_is_exempt(const struct limits_state *state, const struct known *known,
			     const struct known_queue *queue)
{
	uint32_t i;

	if (queue->gate != GP_GATE_OPEN || known_is_excused(known, queue) || queue->aged || limits_rests(known, queue))
		return true;
	for (i = 0; i < known->queue_end; i++) {
		const struct known_queue *q = &known->queues[i];

		if (!q->used)
			continue;
		if (q->aged && queue->attr.gang && q->attr.gang == queue->attr.gang)
			return true;
		if (queue->is_own && q->device == queue->device && q->client.index == queue->client.index &&
		    (q->aged || limits_is_due(known, q) || (q->is_own && known->core_ns < state->turn_until_ns[i])))
			return true;
	}
	return false;
}

/* More processes than the firmware keeps at once: it slices them anyway, and parking queues would cost without curing
 * that. */
static bool limits_is_sliced(const struct known *known, uint32_t device)
{
	const struct gp_device_attr *attr = &known->devices[device].attr;
	uint32_t i, k, count = 0;

	for (i = 0; i < known->queue_end; i++) {
		if (!known->queues[i].used || known->queues[i].device != device)
			continue;
		for (k = 0; k < i && !(known->queues[k].used && known->queues[k].device == device &&
				       known->queues[k].client.index == known->queues[i].client.index);
		     k++)
			;
		count += k == i;
	}
	return attr->process_count_max && count > attr->process_count_max && !attr->process_parking;
}

/* Its user has more open than an even part of the slots. With more users than slots nobody has a part. What the core
 * has just ordered open counts from its answer: the core looks at the parts before it opens, and again when it hears of
 * it. */
static bool limits_is_beyond(const struct known *known, const struct known_queue *queue)
{
	uint64_t users[64], own = known_user(known, queue);
	uint32_t i, k, count = 0, open = 0;

	for (i = 0; i < known->queue_end; i++) {
		const struct known_queue *q = &known->queues[i];

		if (!q->used || q->device != queue->device)
			continue;
		for (k = 0; k < count && users[k] != known_user(known, q); k++)
			;
		if (k == count && count < 64)
			users[count++] = known_user(known, q);
		open += known_user(known, q) == own && q->attr.kind == GP_KIND_COMPUTE && q->gate != GP_GATE_CLOSED &&
			q->gate != GP_GATE_CLOSING && q->gate != GP_GATE_OPENING;
	}
	return open > known->devices[queue->device].attr.slot_count / count;
}

/* Queues that are never parked may fill the slots; one more is let in then, and of each user an even part. */
static void limits_slots(struct checker_run *run, const struct limits_state *state, uint32_t device)
{
	const struct known *known = run->known;
	const struct known_queue *q;
	uint32_t i, open = 0, fixed = 0, spare = CHECKER_NONE, slots = known->devices[device].attr.slot_count;

	for (i = 0; i < known->queue_end; i++) {
		q = &known->queues[i];
		if (!q->used || q->device != device || q->attr.kind != GP_KIND_COMPUTE || q->gate == GP_GATE_CLOSED ||
		    q->gate == GP_GATE_CLOSING)
			continue;
		open++;
		fixed += q->attr.unseen || q->gate == GP_GATE_QUARANTINED;
	}
	if (!slots || open <= (fixed < slots ? slots : fixed + 1) || limits_is_sliced(known, device))
		return;
	for (i = 0; i < known->queue_end; i++) {
		q = &known->queues[i];
		if (!q->used || q->device != device || q->attr.kind != GP_KIND_COMPUTE || q->gate == GP_GATE_CLOSED ||
		    q->gate == GP_GATE_CLOSING)
			continue;
		if (!q->attr.unseen && !q->attr.gang && !limits_is_exempt(state, known, q) &&
		    limits_is_beyond(known, q))
			spare = i;
	}
	if (spare != CHECKER_NONE)
		checker_fail(
			run, &checker_limits,
			"at %llu ns: device %u has %u slots and %u open compute queues, of which queue %u could be parked",
			(unsigned long long)run->now_ns, device, slots, open, (uint32_t)known->queues[spare].attr.tag);
}

/* Members of one gang share a turn. */
static bool limits_same(const struct known_queue *a, const struct known_queue *b)
{
	return (a->attr.gang && a->attr.gang == b->attr.gang) || a->client.index == b->client.index;
}

static void limits_batch(struct checker_run *run, const struct limits_state *state, uint32_t device)
{
	const struct known *known = run->known;
	const struct known_queue *found[64], *q;
	uint32_t i, k, count = 0, limit = known_batch_max(&known->devices[device]);

	for (i = 0; i < known->queue_end && count < 64; i++) {
		q = &known->queues[i];
		if (!q->used || q->device != device || !q->is_batch || limits_is_exempt(state, known, q))
			continue;
		for (k = 0; k < count && !limits_same(found[k], q); k++)
			;
		if (k == count)
			found[count++] = q;
	}
	if (count > limit)
		checker_fail(
			run, &checker_limits,
			"at %llu ns: device %u has batch queues of %u clients open (%u and %u among them), %u may be",
			(unsigned long long)run->now_ns, device, count, (uint32_t)found[0]->attr.tag,
			(uint32_t)found[count - 1]->attr.tag, limit);
}

static void limits_event(struct checker_run *run, void *data, const struct check_event *event)
{
	struct limits_state *state = data;
	uint32_t i;

	if (event->type == CHECK_GATE_LOST)
		limits_opened(state, run->known, event);
	if (event->type != CHECK_QUIET || run->known->version == state->version)
		return;
	state->version = run->known->version;
	known_refresh(run->known);
	for (i = 0; i < run->known->device_count; i++) {
		if (!run->known->devices[i].gates || known_waits(run->known, i) || run->known->devices[i].stopped)
			continue;
		limits_slots(run, state, i);
		limits_batch(run, state, i);
	}
}

const struct checker checker_limits = {
	.name = "limits",
	.promise = "slots and processes stay within limits",
	.state_size = sizeof(struct limits_state),
	.event = limits_event,
};
