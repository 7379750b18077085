/* SPDX-License-Identifier: MIT */
/*
 * The starvation bound: no gate is closed on work for longer than gp_sched_queue_starvation_bound_ns(), and nobody goes
 * without an aged turn's worth of open time for longer than twice that. Gates are the device's own, not what the
 * core believes. The bound allows for one lost acknowledgement, not for a storm of them, so each fault, and each change
 * of who is there, starts the count anew.
 */
#include "test/sim/checker.h"
#include "test/sim/checker_known.h"
#include "test/sim/checker_truth.h"

#define STARVATION_CLIENT_MAX 12u   /* of a world */
#define STARVATION_START_NS   2000u /* a transaction of the model takes so much longer than the core was told */

struct starvation_queue {
	uint32_t generation;
	uint64_t start_ns, open_ns; /* since when it has not been given an aged turn's worth, and what it was given */
	uint64_t closed_ns;         /* closed since */
	uint64_t bound_ns;          /* the longest that was stated since then */
	uint64_t bound_call;        /* the core's call after which that was asked for */
};

/* How many clients its user has on its device, when `known` had counted so many changes. */
struct starvation_clients {
	uint32_t count;
	uint64_t members;
};

/* What was computed, and when `run` had counted so many calls of the core: the same until the next one. */
struct starvation_bound {
	uint64_t ns, calls;
};

struct starvation_slot {
	bool has_slot;
	uint64_t calls;
};

struct starvation_state {
	struct starvation_bound device_bounds[KNOWN_DEVICE_MAX], bounds[KNOWN_QUEUE_MAX];
	struct starvation_slot slots[KNOWN_DEVICE_MAX];
	uint64_t mark_ns, offset_ns, disturbed_ns;
	uint64_t calls; /* of the core: between two of them the bound stays the same */
	struct starvation_queue queues[KNOWN_QUEUE_MAX];
	struct starvation_clients clients[KNOWN_QUEUE_MAX];
};

/* Of the places that a queue ever had: one that gets its first queue comes here with that. */
static void starvation_reset(const struct checker_run *run, struct starvation_state *state)
{
	uint32_t i;

	for (i = 0; i < run->known->queue_end; i++) {
		state->queues[i].start_ns = state->queues[i].closed_ns = run->now_ns;
		state->queues[i].open_ns = state->queues[i].bound_ns = 0;
	}
}

static void starvation_disturb(struct checker_run *run, struct starvation_state *state)
{
	uint64_t latest_ns = 0;
	uint32_t i;

	for (i = 0; i < run->known->device_count; i++) {
		if (run->known->devices[i].disturbed_ns > latest_ns)
			latest_ns = run->known->devices[i].disturbed_ns;
	}
	if (latest_ns == state->disturbed_ns)
		return;
	state->disturbed_ns = latest_ns;
	starvation_reset(run, state);
}

static uint64_t starvation_device_bound_ns(const struct checker_run *run, struct starvation_state *state,
					   uint32_t index)
{
	struct starvation_bound *bound = &state->device_bounds[index];

	if (bound->calls != run->calls)
		*bound = (struct starvation_bound){ gp_sched_starvation_bound_ns(run->core, index), run->calls };
	return bound->ns;
}

static bool starvation_has_slot(const struct checker_run *run, struct starvation_state *state, uint32_t index)
{
	struct starvation_slot *slot = &state->slots[index];

	if (slot->calls != run->calls)
		*slot = (struct starvation_slot){ known_has_slot(run->known, index), run->calls };
	return slot->has_slot;
}

/* A gang waits for all its devices, in the worst case for one after the other. Each aged turn is an open and a close,
 * and the driver's own latency comes on top of what these cost. */
static uint64_t starvation_bound_ns(const struct checker_run *run, struct starvation_state *state, uint32_t index)
{
	struct starvation_clients *clients = &state->clients[index];
	struct starvation_bound *bound = &state->bounds[index];
	const struct known_queue *queue = &run->known->queues[index];
	struct gp_queue_id id = { index, queue->generation };
	uint64_t latency_ns = 4 * STARVATION_CLIENT_MAX * (run->latency_ns + STARVATION_START_NS);
	uint32_t i;

	if (bound->calls == run->calls)
		return bound->ns;
	if (clients->members != run->known->members) {
		clients->count = known_clients_of(run->known, known_user(run->known, queue), queue->device);
		clients->members = run->known->members;
	}
	/* As often as the others of its user are before it. */
	bound->ns = gp_sched_queue_starvation_bound_ns(run->core, id) + latency_ns * clients->count;
	for (i = 0; i < run->known->device_count; i++) {
		if (i != queue->device && queue->attr.gang)
			bound->ns += starvation_device_bound_ns(run, state, i) + latency_ns;
	}
	bound->calls = run->calls;
	return bound->ns;
}

/* Nothing of it waits for its gate. Work the core only presumes (counters at fetch) waits for nothing. */
static bool starvation_is_idle(const struct checker_run *run, struct starvation_state *state,
			       const struct known_queue *q, bool closed)
{
	struct gp_sim_queue_info info;

	if (!q->has_work || run->known->devices[q->device].stopped || q->gate == GP_GATE_QUARANTINED)
		return true;
	gp_sim_queue(run->sim, (uint32_t)q->attr.tag, &info);
	return info.written == info.completed ||
	       (closed && q->attr.kind == GP_KIND_COMPUTE && !starvation_has_slot(run, state, q->device));
}

static void starvation_queue_step(struct checker_run *run, struct starvation_state *state, uint32_t index,
				  uint64_t elapsed_ns)
{
	const struct known_queue *q = &run->known->queues[index];
	const struct known_device *device = &run->known->devices[q->device];
	struct starvation_queue *own = &state->queues[index];
	uint64_t bound_ns, more_ns;
	bool closed = q->attr.tag < TRUTH_QUEUE_MAX && run->truth->queues[q->attr.tag].closed;

	if (own->generation != q->generation || starvation_is_idle(run, state, q, closed))
		*own = (struct starvation_queue){ .generation = q->generation,
						  .start_ns = run->now_ns,
						  .closed_ns = run->now_ns };
	if (!closed) {
		own->open_ns += elapsed_ns;
		own->closed_ns = run->now_ns;
	}
	if (own->open_ns >= device->param.age_turn_ns) {
		own->start_ns = run->now_ns;
		own->open_ns = own->bound_ns = 0;
	}
	if (!closed)
		return;
	if (!own->bound_ns || own->bound_call != state->calls) {
		bound_ns = starvation_bound_ns(run, state, index);
		own->bound_ns = bound_ns > own->bound_ns ? bound_ns : own->bound_ns;
		own->bound_call = state->calls;
	}
	if (run->now_ns - own->closed_ns > own->bound_ns)
		checker_fail(
			run, &checker_starvation,
			"at %llu ns: queue %u has work, its gate is closed since %llu ns, and the bound is %llu ns",
			(unsigned long long)run->now_ns, (uint32_t)q->attr.tag, (unsigned long long)own->closed_ns,
			(unsigned long long)own->bound_ns);
	/* What it was given may lie at the beginning of one wait and at the end of the next. */
	more_ns = own->open_ns ? own->bound_ns + device->param.age_turn_ns : 0;
	if (run->now_ns - own->start_ns > own->bound_ns + more_ns)
		checker_fail(
			run, &checker_starvation,
			"at %llu ns: queue %u has work, was open for %llu ns since %llu ns, and the bound is %llu ns",
			(unsigned long long)run->now_ns, (uint32_t)q->attr.tag, (unsigned long long)own->open_ns,
			(unsigned long long)own->start_ns, (unsigned long long)(own->bound_ns + more_ns));
}

static void starvation_step(struct checker_run *run, struct starvation_state *state)
{
	uint64_t elapsed_ns = run->now_ns - state->mark_ns;
	uint32_t i;

	state->mark_ns = run->now_ns;
	for (i = 0; i < run->known->queue_end; i++) {
		if (run->known->queues[i].used && run->known->devices[run->known->queues[i].device].gates)
			starvation_queue_step(run, state, i, elapsed_ns);
	}
}

static void starvation_event(struct checker_run *run, void *data, const struct check_event *event)
{
	struct starvation_state *state = data;

	state->calls += event->type == CHECK_SETTLED;
	if (event->type == CHECK_SETTLED && event->core_ns - event->now_ns != state->offset_ns) {
		state->offset_ns = event->core_ns - event->now_ns; /* the core's clock jumped */
		starvation_reset(run, state);
	}
	if (event->type == CHECK_CALM || event->type == CHECK_ATTR || event->type == CHECK_QUEUE_ADD)
		starvation_reset(run, state);
	if (event->type != CHECK_STEP || !run->core)
		return;
	starvation_disturb(run, state);
	if (run->now_ns != state->mark_ns)
		starvation_step(run, state);
}

const struct checker checker_starvation = {
	.name = "starvation",
	.promise = "no queue with work waits longer than the stated bound",
	.state_size = sizeof(struct starvation_state),
	.event = starvation_event,
};
