/* SPDX-License-Identifier: MIT */
/*
 * Nobody is held out for a priority that rests, and none counts as at rest before its time. The core says below which
 * priority queues take turns; whoever is above that must have had no work for rest_ns. And whenever the core has
 * nothing to order, no gate is closed on work if for eight times as long nobody above it had any: unless there is no
 * slot, its last order failed, or somebody has an aged turn.
 */
#include "test/sim/checker.h"
#include "test/sim/checker_known.h"

#define REST_MOST     8u
#define REST_DEADLINE (GP_PRIORITY_MAX + 1) /* the level of those with a deadline */

struct rest_state {
	uint64_t version;
	uint32_t generation[KNOWN_QUEUE_MAX];
	uint64_t active_ns[KNOWN_QUEUE_MAX]; /* known to have counted as at work up to here */
	uint64_t hint_ns[KNOWN_QUEUE_MAX];   /* may count as at work until then */
	/* The same of anybody who was at that priority then: one that has left it since counts, too. */
	uint64_t level_ns[KNOWN_DEVICE_MAX][REST_DEADLINE + 1];
	bool waits[KNOWN_DEVICE_MAX]; /* the core awaits answers there */
	uint64_t wait_begin_ns[KNOWN_DEVICE_MAX];
	uint64_t offset_ns, jump_ns; /* of the core's clock to the run's; core time when that changed */
};

static void rest_active(struct rest_state *state, struct gp_queue_id id, uint64_t until_ns)
{
	if (id.index >= KNOWN_QUEUE_MAX)
		return;
	if (state->generation[id.index] != id.generation)
		state->active_ns[id.index] = state->hint_ns[id.index] = 0;
	state->generation[id.index] = id.generation;
	if (until_ns > state->active_ns[id.index])
		state->active_ns[id.index] = until_ns;
}

/* Until when it had work: now, if it has; between two events nobody is asked. */
static uint64_t rest_until_ns(const struct known *known, const struct known_queue *queue)
{
	return queue->has_work ? known->core_ns : queue->idle_since_ns;
}

static uint64_t rest_gang_until_ns(const struct known *known, uint32_t gang)
{
	uint64_t last_ns = 0;
	uint32_t i;

	for (i = 0; gang && i < known->queue_end; i++)
		if (known->queues[i].used && known->queues[i].attr.gang == gang &&
		    rest_until_ns(known, &known->queues[i]) > last_ns)
			last_ns = rest_until_ns(known, &known->queues[i]);
	return last_ns;
}

static void rest_level(struct rest_state *state, const struct known_queue *queue, uint64_t until_ns)
{
	uint64_t *levels = state->level_ns[queue->device];

	if (until_ns > levels[queue->attr.priority])
		levels[queue->attr.priority] = until_ns;
	if (queue->attr.deadline_ns && until_ns > levels[REST_DEADLINE])
		levels[REST_DEADLINE] = until_ns;
}

/* Until when somebody had work at its priority, or with a deadline as it has one. */
static uint64_t rest_level_ns(const struct rest_state *state, const struct known_queue *queue)
{
	const uint64_t *levels = state->level_ns[queue->device];
	uint64_t last_ns = levels[queue->attr.priority];

	return queue->attr.deadline_ns && levels[REST_DEADLINE] > last_ns ? levels[REST_DEADLINE] : last_ns;
}

/* Who has work, or is in a gang that has, is at work now; a newcomer counts as such. */
static void rest_note(const struct known *known, struct rest_state *state)
{
	uint64_t gang_until_ns = 0;
	uint32_t i, gang = 0;

	for (i = 0; i < known->queue_end && i < KNOWN_QUEUE_MAX; i++) {
		const struct known_queue *q = &known->queues[i];

		struct gp_queue_id id = { i, q->generation };

		if (!q->used)
			continue;
		if (state->generation[i] != q->generation)
			rest_active(state, id, known->core_ns);
		rest_active(state, id, rest_until_ns(known, q));
		if (q->attr.gang != gang)
			gang_until_ns = rest_gang_until_ns(known, q->attr.gang);
		gang = q->attr.gang;
		rest_active(state, id, gang_until_ns);
		rest_level(state, q, state->active_ns[i]);
	}
}

/* While the core awaits answers on a device it looks at no timer there: what was announced and ran out meanwhile counts
 * until the wait is over, or until the next plan, before which the core looks. */
static void rest_wait(const struct known *known, struct rest_state *state, const struct check_event *event)
{
	uint32_t d, i;

	for (d = 0; d < known->device_count; d++) {
		bool waits = known_waits(known, d), is_planned = event->type == CHECK_PLAN && event->plan->device == d;

		for (i = 0; state->waits[d] && i < known->queue_end; i++)
			if (known->queues[i].device == d && state->hint_ns[i] > state->wait_begin_ns[d] &&
			    state->hint_ns[i] < known->core_ns)
				state->hint_ns[i] = known->core_ns;
		if (waits && (!state->waits[d] || is_planned))
			state->wait_begin_ns[d] = known->core_ns;
		state->waits[d] = waits;
	}
}

static bool rest_is_above(const struct known *known, const struct known_queue *a, const struct known_queue *b)
{
	const struct known_device *device = &known->devices[a->device];

	if (known_is_behind(known, a)) /* its guaranteed share: it goes before every priority and deadline */
		return true;
	if (device->is_edf && (a->attr.deadline_ns || b->attr.deadline_ns))
		return a->attr.deadline_ns && a != b; /* among those with deadlines it depends on when they got work */
	/* A gang, or a sibling with work, may lend it more. */
	return a->attr.priority > b->attr.priority || a->rank > b->rank || a->vague;
}

static void rest_claim(struct checker_run *run, struct rest_state *state, const struct gp_trace_event *claim)
{
	const struct known *known = run->known;
	int32_t top = (int32_t)(claim->value & (GP_TRACE_TOP_DEADLINE - 1));
	bool deadlines = claim->value & GP_TRACE_TOP_DEADLINE;
	uint32_t i;

	for (i = 0; i < known->queue_end; i++) {
		const struct known_queue *q = &known->queues[i];

		if (!q->used || q->device != claim->device ||
		    (q->attr.priority <= top && (!q->attr.deadline_ns || deadlines)))
			continue;
		if (state->active_ns[i] + known->devices[q->device].param.rest_ns > known->core_ns)
			checker_fail(
				run, &checker_rest,
				"at %llu ns: priority %d of device %u counts as at rest; queue %u had work at %llu ns",
				(unsigned long long)known->core_ns, q->attr.priority, q->device, (uint32_t)q->attr.tag,
				(unsigned long long)state->active_ns[i]);
	}
}

/* Somebody on the device has an aged turn, or its client still owes an answer: also about the slice of another queue,
 * before which none of the same client opens. */
static bool rest_is_excused(const struct known *known, const struct known_queue *queue)
{
	const struct gp_device_attr *attr = &known->devices[queue->device].attr;
	uint32_t i, open = 0, clients = 0;

	if (queue->hold_ns >= known->core_ns)
		return true;
	for (i = 0; i < known->queue_end; i++) {
		const struct known_queue *q = &known->queues[i];

		if (!q->used || q->device != queue->device)
			continue;
		if (q->aged ||
		    ((known_moves(q) || known_is_sliced(known, q)) && q->client.index == queue->client.index))
			return true;
		/* Where slices are set one closes first, and then the next one opens. */
		if (attr->short_ns && q->gate == GP_GATE_CLOSING)
			return true;
		open += q->gate != GP_GATE_CLOSED && q->attr.kind == GP_KIND_COMPUTE;
		clients++;
	}
	return (attr->slot_count && open >= attr->slot_count) ||
	       (attr->process_count_max && clients >= attr->process_count_max);
}

static void rest_look(struct checker_run *run, const struct rest_state *state, const struct known_queue *queue)
{
	const struct known *known = run->known;
	const struct known_device *device = &known->devices[queue->device];
	uint64_t last_ns = state->jump_ns; /* what is over since a jump of the clock the core learns only now */
	uint32_t i;

	for (i = 0; i < known->queue_end; i++) {
		const struct known_queue *q = &known->queues[i];

		if (!q->used || q->device != queue->device || !rest_is_above(known, q, queue))
			continue;
		if (state->active_ns[i] > last_ns)
			last_ns = state->active_ns[i];
		if (rest_level_ns(state, q) > last_ns)
			last_ns = rest_level_ns(state, q);
		if (state->hint_ns[i] > last_ns)
			last_ns = state->hint_ns[i];
	}
	if (last_ns + REST_MOST * device->param.rest_ns + device->param.linger_max_ns >= known->core_ns ||
	    rest_is_excused(known, queue))
		return;
	checker_fail(
		run, &checker_rest,
		"at %llu ns: the gate of queue %u is closed on work, and nobody above it has had any since %llu ns",
		(unsigned long long)known->core_ns, (uint32_t)queue->attr.tag, (unsigned long long)last_ns);
}

static void rest_event(struct checker_run *run, void *data, const struct check_event *event)
{
	struct rest_state *state = data;
	struct known *known = run->known;
	uint32_t i;

	if (event->type >= CHECK_GPU_ADD)
		return; /* nothing was said to the core or by it since the last look */
	if ((event->type == CHECK_PLAN || event->type == CHECK_QUIET || event->type == CHECK_SETTLED) &&
	    event->core_ns >= known->core_ns && event->core_ns - event->now_ns != state->offset_ns) {
		state->offset_ns = event->core_ns - event->now_ns;
		state->jump_ns = event->core_ns;
	}
	if (event->type == CHECK_ATTR)
		rest_active(state, event->queue, known->core_ns);
	if (event->type == CHECK_TRACE && event->trace->type == GP_TRACE_HINT && known_find(known, event->trace->queue))
		state->hint_ns[event->trace->queue.index] =
			event->trace->value +
			known->devices[known_find(known, event->trace->queue)->device].param.hint_grace_ns;
	if (event->type == CHECK_TRACE && event->trace->type == GP_TRACE_TOP)
		rest_claim(run, state, event->trace);
	if (event->type <= CHECK_TRACE)
		rest_note(known, state);
	rest_wait(known, state, event);
	if (event->type != CHECK_QUIET || known->version == state->version)
		return;
	state->version = known->version;
	/* New costs come without a time, so the last change may be older than this moment: who has work has it now. */
	rest_note(known, state);
	known_refresh(known);
	for (i = 0; i < known->queue_end; i++) {
		const struct known_queue *q = &known->queues[i];

		if (q->used && q->has_work && !q->presumed && !q->vague && !q->attr.gang && q->gate == GP_GATE_CLOSED &&
		    known->devices[q->device].ranked && !known->devices[q->device].stopped &&
		    !known_waits(known, q->device))
			rest_look(run, state, q);
	}
}

const struct checker checker_rest = {
	.name = "rest",
	.promise = "nobody is held out for those who have had no work for long",
	.state_size = sizeof(struct rest_state),
	.event = rest_event,
};
