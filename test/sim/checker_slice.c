/* SPDX-License-Identifier: MIT */
/*
 * Slices: on a self-switching device no two contexts with short slices have open queues with work beside each other for
 * longer than it takes to notice and to close one; the core opens none beside another by an order of its own; and a
 * slice is short only where the queue takes turns below somebody who does not, and goes back soon when that is over.
 * Slices are as the model was told; gates and work are the device's.
 */
#include <string.h>
#include "test/sim/checker.h"
#include "test/sim/checker_known.h"
#include "test/sim/checker_truth.h"

#define SLICE_CONTEXT_MAX 256u
#define SLICE_PAIRS       10u /* a close, an open and a slice, so many times: to notice, and to act */
#define SLICE_RETRY       18u /* times ack_timeout_ns: twice the longest, until it is tried again */
#define SLICE_RETRY_SHIFT 4u  /* ack_timeout_ns is doubled so often for that, once for each failure in a row */
#define SLICE_ACT_NS      10000000ull

struct slice_context {
	uint64_t slice_ns;       /* 0: the device's own */
	uint64_t wrong_since_ns; /* short though it should not be, + 1; 0: it is not */
};

struct slice_order {
	uint32_t device;
	uint64_t seq, slice_ns;
	bool is_short; /* as last acknowledged */
	bool is_under_way;
	uint64_t failed_ns; /* by the core's word; 0: never */
	uint32_t fails;     /* so often in a row */
};

struct slice_state {
	struct slice_context contexts[KNOWN_DEVICE_MAX][SLICE_CONTEXT_MAX];
	uint32_t set_count[KNOWN_DEVICE_MAX];      /* contexts that have another slice than the device's own */
	uint64_t twins_since_ns[KNOWN_DEVICE_MAX]; /* + 1; 0: there are none */
	struct slice_order orders[KNOWN_QUEUE_MAX];
	uint64_t upper_calls[KNOWN_DEVICE_MAX]; /* when `run` had counted so many calls of the core … */
	bool has_upper[KNOWN_DEVICE_MAX];       /* … slice_has_upper() said this */
};

static uint64_t slice_own_ns(const struct checker_run *run)
{
	return (uint64_t)gp_desc_get(run->desc, GP_DESC_TIMESLICE_NS);
}

static bool slice_is_short(const struct checker_run *run, uint64_t slice_ns)
{
	return slice_ns && slice_ns < slice_own_ns(run);
}

/* Two like this make no progress; one beside one that has the slice in the middle does. */
static bool slice_is_twin(const struct checker_run *run, uint32_t device, uint64_t slice_ns)
{
	return slice_is_short(run, slice_ns) && slice_ns != run->known->devices[device].attr.mid_ns;
}

static uint64_t slice_pairs_ns(const struct known_device *device)
{
	return SLICE_PAIRS * (device->attr.close_ns + device->attr.open_ns + device->attr.slice_ns);
}

/* Faults make the core wait: for an answer that does not come, and once more. */
static uint64_t slice_slack_ns(const struct checker_run *run, const struct known_device *device)
{
	return SLICE_ACT_NS + 8 * run->latency_ns + 2 * device->attr.ack_timeout_ns;
}

static struct slice_context *slice_context(struct slice_state *state, const struct gp_sim_queue_info *info)
{
	return &state->contexts[info->device][info->gpu_process % SLICE_CONTEXT_MAX];
}

/* The model's queue is open, has work, and its context has a short slice. */
static bool slice_runs_short(const struct checker_run *run, struct slice_state *state, uint32_t index,
			     struct gp_sim_queue_info *ret_info)
{
	if (index >= run->truth->queue_end || run->truth->queues[index].closed)
		return false;
	gp_sim_queue(run->sim, index, ret_info);
	return ret_info->alive && ret_info->kind == GP_GPU_COMPUTE && ret_info->written != ret_info->completed &&
	       slice_is_twin(run, ret_info->device, slice_context(state, ret_info)->slice_ns);
}

/* How many contexts with a short slice have an open queue with work. */
static uint32_t slice_twins(struct checker_run *run, struct slice_state *state, uint32_t device)
{
	bool seen[SLICE_CONTEXT_MAX] = { false };
	struct gp_sim_queue_info info;
	uint32_t i, count = 0, end = gp_sim_queue_count(run->sim);

	if (state->set_count[device] < 2)
		return state->set_count[device]; /* not more than that, which is all that matters */
	for (i = 0; i < end && i < run->truth->queue_end; i++) {
		if (!slice_runs_short(run, state, i, &info) || info.device != device ||
		    seen[info.gpu_process % SLICE_CONTEXT_MAX])
			continue;
		seen[info.gpu_process % SLICE_CONTEXT_MAX] = true;
		count++;
	}
	return count;
}

/*
 * Whether the core could part the short ones before now. It could not if one of them is in quarantine, so that it stays
 * open, and the last order for the slice of each failed: the core repeats it only after ack_timeout_ns, or after twice
 * as long for each time that it failed before. (Seen with a client that answers nothing any more and one that answers
 * each call after that time. If one slice was set when it was last ordered, or no twin is in quarantine, the bound is
 * as without failures.)
 */
static bool slice_can_part(const struct checker_run *run, struct slice_state *state, uint32_t device)
{
	const struct known_device *known_device = &run->known->devices[device];
	uint64_t timeout_ns = known_device->attr.ack_timeout_ns;
	bool is_stuck = false;
	uint32_t i;

	for (i = 0; i < run->known->queue_end; i++) {
		const struct known_queue *q = &run->known->queues[i];
		const struct slice_order *order = &state->orders[i];
		uint32_t shift = order->fails < SLICE_RETRY_SHIFT + 1 ? order->fails : SLICE_RETRY_SHIFT + 1;
		struct gp_sim_queue_info info;

		if (!q->used || q->device != device || !slice_runs_short(run, state, (uint32_t)q->attr.tag, &info))
			continue;
		if (!shift || run->now_ns - (order->failed_ns - 1) >
				      (timeout_ns << (shift - 1)) + slice_slack_ns(run, known_device))
			return true;
		is_stuck |= q->gate == GP_GATE_QUARANTINED;
	}
	return !is_stuck;
}

static bool slice_has_upper(const struct known *known, uint32_t device)
{
	uint32_t i;

	for (i = 0; i < known->queue_end && known->devices[device].gates && !known->devices[device].stopped; i++)
		if (known->queues[i].used && known->queues[i].device == device && !known->queues[i].is_batch)
			return true;
	return false;
}

/* One that failed is tried again later and later. */
static bool slice_has_failed(const struct checker_run *run, const struct slice_order *order,
			     const struct known_device *device)
{
	return order->failed_ns &&
	       run->now_ns - order->failed_ns < SLICE_ACT_NS + SLICE_RETRY * device->attr.ack_timeout_ns;
}

/* Each context of the device that the core knows. At the end only what is under way is still excused. */
static void slice_given_back(struct checker_run *run, struct slice_state *state, uint32_t device, bool is_end)
{
	const struct known_device *known_device = &run->known->devices[device];
	uint32_t i;

	if (state->upper_calls[device] != run->calls)
		state->has_upper[device] = slice_has_upper(run->known, device);
	state->upper_calls[device] = run->calls;
	for (i = 0; i < run->known->queue_end; i++) {
		const struct known_queue *q = &run->known->queues[i];
		struct gp_sim_queue_info info;
		struct slice_context *context;

		if (!q->used || q->device != device || q->attr.kind != GP_KIND_COMPUTE)
			continue;
		gp_sim_queue(run->sim, (uint32_t)q->attr.tag, &info);
		if (!info.alive)
			continue;
		context = slice_context(state, &info);
		if (slice_has_failed(run, &state->orders[i], known_device))
			context->wrong_since_ns = 0;
		else if (!slice_is_short(run, context->slice_ns) || (state->has_upper[device] && q->is_batch))
			context->wrong_since_ns = 0;
		else if (!context->wrong_since_ns)
			context->wrong_since_ns = run->now_ns + 1;
		else if (is_end ? !state->orders[i].is_under_way :
				  run->now_ns - (context->wrong_since_ns - 1) > slice_slack_ns(run, known_device))
			checker_fail(
				run, &checker_slice,
				"at %llu ns: queue %u of device %u has had a short slice since %llu ns, and nobody is above it",
				(unsigned long long)run->now_ns, (uint32_t)q->attr.tag, device,
				(unsigned long long)(context->wrong_since_ns - 1));
	}
}

static void slice_step(struct checker_run *run, struct slice_state *state, bool is_end)
{
	uint32_t i;

	known_refresh(run->known);
	for (i = 0; i < run->known->device_count; i++) {
		const struct known_device *device = &run->known->devices[i];

		if (!device->attr.short_ns)
			continue;
		slice_given_back(run, state, i, is_end);
		/* With counters at fetch the core presumes when the last packet is done: it cannot know who has work.
		 */
		if (device->attr.fetch_counters || slice_twins(run, state, i) < 2)
			state->twins_since_ns[i] = 0;
		else if (!state->twins_since_ns[i])
			state->twins_since_ns[i] = run->now_ns + 1;
		else if (run->now_ns - (state->twins_since_ns[i] - 1) >
				 slice_pairs_ns(device) + slice_slack_ns(run, device) &&
			 slice_can_part(run, state, i))
			checker_fail(run, &checker_slice,
				     "at %llu ns: two short slices have been open with work on device %u since %llu ns",
				     (unsigned long long)run->now_ns, i,
				     (unsigned long long)(state->twins_since_ns[i] - 1));
	}
}

static bool slice_same(const struct known_queue *a, const struct known_queue *b)
{
	return a->device == b->device && a->client.index == b->client.index;
}

/* An order to open: no other short one is open with work, for all that the core was told. */
static void slice_opens(struct checker_run *run, struct slice_state *state, const struct gp_plan *plan,
			const struct gp_order *order)
{
	const struct known_queue *own = known_find(run->known, order->queue), *q;
	uint32_t i;

	if (!own || own->gate != GP_GATE_CLOSED || own->attr.kind != GP_KIND_COMPUTE ||
	    !state->orders[order->queue.index].is_short || !own->is_batch || !slice_has_upper(run->known, plan->device))
		return;
	for (i = 0; i < run->known->queue_end; i++) {
		q = &run->known->queues[i];
		if (q->used && q->device == plan->device && !slice_same(own, q) && q->has_work &&
		    q->gate != GP_GATE_CLOSED && q->attr.kind == GP_KIND_COMPUTE && state->orders[i].is_short)
			checker_fail(
				run, &checker_slice,
				"at %llu ns: plan %llu opens queue %u, which is short, beside queue %u, which is, too",
				(unsigned long long)run->now_ns, (unsigned long long)plan->seq, (uint32_t)own->attr.tag,
				(uint32_t)q->attr.tag);
	}
}

static void slice_plan(struct checker_run *run, struct slice_state *state, const struct gp_plan *plan)
{
	uint32_t i;

	if (plan->device >= run->known->device_count || !run->known->devices[plan->device].attr.short_ns) {
		if (plan->slice_count)
			checker_fail(run, &checker_slice, "plan %llu sets slices where there are none",
				     (unsigned long long)plan->seq);
		return;
	}
	known_refresh(run->known);
	for (i = 0; i < plan->open_count; i++)
		slice_opens(run, state, plan, &plan->open[i]);
	for (i = 0; i < plan->slice_count; i++) {
		struct slice_order *order = &state->orders[plan->slice[i].queue.index];
		const struct known_queue *q = known_find(run->known, plan->slice[i].queue);

		if (!q || q->device != plan->device || plan->slice_count > GP_PLAN_SLICE_MAX) {
			checker_fail(run, &checker_slice, "plan %llu sets the slice of a queue that is not there",
				     (unsigned long long)plan->seq);
			return;
		}
		order->device = plan->device;
		order->seq = plan->seq;
		order->slice_ns = plan->slice[i].slice_ns;
		order->is_under_way = true;
		if (slice_is_twin(run, plan->device, order->slice_ns))
			order->is_short = true; /* it may be from now on */
	}
}

static void slice_set(struct slice_state *state, const struct check_event *event, uint64_t slice_ns)
{
	struct slice_context *context = &state->contexts[event->device][event->process % SLICE_CONTEXT_MAX];

	state->set_count[event->device] += (slice_ns != 0) - (context->slice_ns != 0);
	context->slice_ns = slice_ns;
}

static void slice_event(struct checker_run *run, void *data, const struct check_event *event)
{
	struct slice_state *state = data;
	struct slice_order *order = &state->orders[event->queue.index % KNOWN_QUEUE_MAX];

	switch (event->type) {
	case CHECK_PLAN: slice_plan(run, state, event->plan); break;
	case CHECK_SLICED:
		order->is_under_way &= order->seq != event->seq;
		if (order->seq == event->seq && !event->result) {
			order->is_short = slice_is_twin(run, order->device, order->slice_ns);
			order->fails = 0;
		}
		break;
	case CHECK_TRACE:
		if (event->trace->type != GP_TRACE_SLICE_FAILED || event->trace->queue.index >= KNOWN_QUEUE_MAX)
			break;
		order = &state->orders[event->trace->queue.index];
		order->failed_ns = run->now_ns + 1;
		order->fails++;
		break;
	case CHECK_QUEUE_ADD: *order = (struct slice_order){ 0 }; break;
	case CHECK_SLICE: slice_set(state, event, event->slice_ns); break;
	case CHECK_GPU_ADD: /* a context begins with the device's own; its further queues come before it is changed */
		slice_set(state, event, 0);
		state->contexts[event->device][event->process % SLICE_CONTEXT_MAX] = (struct slice_context){ 0 };
		break;
	case CHECK_STEP:
	case CHECK_END: slice_step(run, state, event->type == CHECK_END); break;
	default: break;
	}
}

const struct checker checker_slice = {
	.name = "slice",
	.promise = "no two short slices are open beside each other, and each goes back",
	.state_size = sizeof(struct slice_state),
	.event = slice_event,
};
