/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Rest: a priority at which no queue has had work for a while does not count as the device's top any more, so no client
 * is held out for it. Clients below it then need no turns and run as the device lets them; the first work above them
 * brings turns back. The top falls only while a client with work is held out: else no client would gain by it.
 */
#include "core/calls.h"

#define REST_GAPS 2u /* a priority rests after so many times what nine of ten gaps in its work last … */
#define REST_MOST 8u /* … but at most so many times rest_ns (both chosen) */

static uint64_t rest_length_ns(const struct gp_device *device, const struct gp_queue *q)
{
	uint64_t least_ns = device->param.rest_ns, most_ns = REST_MOST * least_ns, gap_ns = gp_learn_gap_ns(q);

	/* A queue whose gaps are mostly longer would find its priority at rest however long the others were held
	 * out. */
	if (gap_ns > most_ns || REST_GAPS * gap_ns < least_ns)
		return least_ns;
	return REST_GAPS * gap_ns < most_ns ? REST_GAPS * gap_ns : most_ns;
}

static void rest_awake(struct gp_level *level, uint64_t until_ns)
{
	if (until_ns > level->awake_until_ns)
		level->awake_until_ns = until_ns;
}

/* Adds the queue to the levels that its attributes name, or removes it; a new queue counts as if it had just had
 * work. */
void gp_rest_count(struct gp_sched *sched, uint32_t queue, bool in)
{
	const struct gp_queue *q = &sched->queues[queue];
	struct gp_device *device = gp_device_of(sched, q);
	struct gp_level *levels[] = { &device->levels[q->attr.priority],
				      q->attr.deadline_ns ? &device->levels[GP_LEVEL_DEADLINE] : NULL };
	uint32_t i;

	for (i = 0; i < 2 && levels[i]; i++) {
		GP_ASSERT(in || levels[i]->queue_count);
		levels[i]->queue_count += in ? 1u : -1u;
		levels[i]->active_count += !q->is_awake ? 0 : in ? 1u : -1u;
		if (in)
			rest_awake(levels[i], sched->now_ns + rest_length_ns(device, q));
		else if (!levels[i]->queue_count)
			levels[i]->awake_until_ns = 0;
	}
	if (in && q->attr.priority > device->priority_highest)
		device->priority_highest = q->attr.priority;
	while (device->priority_highest > 0 && !device->levels[device->priority_highest].queue_count)
		device->priority_highest--;
}

void gp_rest_work(struct gp_sched *sched, uint32_t queue, bool active)
{
	struct gp_queue *q = &sched->queues[queue];
	struct gp_device *device = gp_device_of(sched, q);
	struct gp_level *levels[] = { &device->levels[q->attr.priority],
				      q->attr.deadline_ns ? &device->levels[GP_LEVEL_DEADLINE] : NULL };
	uint32_t i;

	q->is_awake = active;
	for (i = 0; i < 2 && levels[i]; i++) {
		levels[i]->active_count += active ? 1u : -1u;
		if (!active)
			rest_awake(levels[i], sched->now_ns + rest_length_ns(device, q));
	}
}

static bool rest_is_awake(const struct gp_sched *sched, const struct gp_level *level)
{
	return level->queue_count && (level->active_count || level->awake_until_ns > sched->now_ns);
}

/* A client has work and waits for a turn, or has a turn and waits for the budget. */
static bool rest_holds_out(struct gp_sched *sched, struct gp_device *device)
{
	uint32_t i, ready = gp_heap_top(device, GP_HEAP_READY);

	if (gp_heap_top(device, GP_HEAP_TURN) != GP_NONE ||
	    (ready != GP_NONE && gp_budget_holds_back(sched, &sched->queues[ready])))
		return true;
	for (i = sched->closed_first; i != GP_NONE; i = sched->gangs[i].closed_next)
		if (sched->gangs[i].work_count && sched->gangs[i].device_mask >> (device - sched->devices) & 1)
			return true;
	return false;
}

/* The highest priority that does not rest. */
static int32_t rest_top(const struct gp_sched *sched, const struct gp_device *device)
{
	int32_t top = device->priority_highest;

	while (top > 0 && !rest_is_awake(sched, &device->levels[top]))
		top--;
	return top;
}

/* Sets the top; true: it changed. */
static bool rest_changes(struct gp_sched *sched, struct gp_device *device, int32_t top, uint32_t deadline_queue_count)
{
	if (device->priority_top == top && !device->deadline_queue_count == !deadline_queue_count) {
		device->deadline_queue_count = deadline_queue_count;
		return false;
	}
	device->priority_top = top;
	device->deadline_queue_count = deadline_queue_count;
	gp_trace_device(sched, GP_TRACE_TOP, (uint32_t)(device - sched->devices), GP_WHY_NONE,
			(uint64_t)top | (deadline_queue_count ? GP_TRACE_TOP_DEADLINE : 0));
	return true;
}

bool gp_rest_update(struct gp_sched *sched, struct gp_device *device)
{
	const struct gp_level *deadlines = &device->levels[GP_LEVEL_DEADLINE];
	int32_t all = device->priority_highest, awake = rest_top(sched, device), top = device->priority_top;
	bool is_deadline = rest_is_awake(sched, deadlines), was_deadline = device->deadline_queue_count;
	uint64_t until_ns;

	/* The top rises at once, and falls if its queues are gone; else it falls only while a client is held out. */
	if (top > all)
		top = all;
	if (top < awake)
		top = awake;
	if (rest_holds_out(sched, device)) {
		top = awake; /* and look again when this priority rests, too */
		until_ns = device->levels[top].active_count ? 0 : device->levels[top].awake_until_ns;
		if (until_ns > sched->now_ns)
			gp_device_wake(device, until_ns);
		if (is_deadline && !deadlines->active_count)
			gp_device_wake(device, deadlines->awake_until_ns);
	} else {
		is_deadline |= was_deadline;
	}
	return rest_changes(sched, device, top, is_deadline ? deadlines->queue_count : 0);
}
