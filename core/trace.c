/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The ring of trace events: what happened, what the core decided, and why. The ring is bounded: new events overwrite
 * the oldest, and the reader learns how many it lost. */
#include "core/calls.h"

static struct gp_trace_event *trace_next(struct gp_sched *sched)
{
	return &sched->trace[sched->trace_count++ & (sched->limits.trace_count - 1)];
}

void gp_trace_pair(struct gp_sched *sched, enum gp_trace_type type, uint32_t queue, struct gp_queue_id other,
		   enum gp_why why, uint64_t value)
{
	const struct gp_queue *q = &sched->queues[queue];

	*trace_next(sched) = (struct gp_trace_event){ .time_ns = sched->now_ns,
						      .value = value,
						      .queue = { queue, q->generation },
						      .other = other,
						      .tag = q->attr.tag,
						      .type = (uint16_t)type,
						      .why = (uint16_t)why,
						      .device = q->device };
}

void gp_trace(struct gp_sched *sched, enum gp_trace_type type, uint32_t queue, enum gp_why why, uint64_t value)
{
	gp_trace_pair(sched, type, queue, (struct gp_queue_id){ GP_NONE, 0 }, why, value);
}

void gp_trace_device(struct gp_sched *sched, enum gp_trace_type type, uint32_t device, enum gp_why why, uint64_t value)
{
	*trace_next(sched) = (struct gp_trace_event){ .time_ns = sched->now_ns,
						      .value = value,
						      .queue = { GP_NONE, 0 },
						      .other = { GP_NONE, 0 },
						      .type = (uint16_t)type,
						      .why = (uint16_t)why,
						      .device = device };
}

void gp_trace_plan(struct gp_sched *sched, const struct gp_plan *plan)
{
	*trace_next(sched) = (struct gp_trace_event){ .time_ns = sched->now_ns,
						      .value = plan->seq,
						      .queue = { GP_NONE, 0 },
						      .other = { plan->close_count + plan->open_count, 0 },
						      .type = GP_TRACE_PLAN,
						      .why = GP_WHY_NONE,
						      .device = plan->device };
}

uint32_t gp_sched_trace_read(const struct gp_sched *sched, uint64_t *cursor, struct gp_trace_event *events,
			     uint32_t event_count, uint64_t *ret_lost)
{
	uint64_t lost = 0;
	uint32_t count = 0;

	if (*cursor > sched->trace_count)
		*cursor = sched->trace_count;
	if (sched->trace_count - *cursor > sched->limits.trace_count) {
		lost = sched->trace_count - sched->limits.trace_count - *cursor;
		*cursor += lost;
	}
	while (count < event_count && *cursor < sched->trace_count)
		events[count++] = sched->trace[(*cursor)++ & (sched->limits.trace_count - 1)];
	if (ret_lost)
		*ret_lost = lost;
	return count;
}

const char *gp_why_name(enum gp_why why)
{
	static const char *const names[GP_WHY_COUNT] = {
		[GP_WHY_NONE] = "no reason",
		[GP_WHY_PRIORITY] = "a more urgent queue has work",
		[GP_WHY_LINGER] = "a more urgent queue is expected back",
		[GP_WHY_HINT] = "a more urgent queue announced work",
		[GP_WHY_TURN] = "its turn began or ended",
		[GP_WHY_SLOTS] = "more queues than hardware slots",
		[GP_WHY_WORK] = "it has work, and no rule keeps it closed",
		[GP_WHY_AGED] = "it waited longer than the ageing window",
		[GP_WHY_GANG] = "another member of its gang has work",
		[GP_WHY_SHORT] = "its remaining work is shorter than a transaction",
		[GP_WHY_MIN_OPEN] = "it was opened a moment ago",
		[GP_WHY_RATE] = "the preemption budget is used up",
		[GP_WHY_QUARANTINE] = "it, or another member of its gang, cannot be preempted",
		[GP_WHY_SELF] = "the device puts it aside by itself",
		[GP_WHY_TIMEOUT] = "the order was not acknowledged",
		[GP_WHY_FAILED] = "the order failed",
		[GP_WHY_STOPPED] = "the device was paused, by hand or after a fault",
		[GP_WHY_IDLE] = "idle, closed so that it cannot start late",
		[GP_WHY_COMPANY] = "its client changes gates anyway, so this one is free",
		[GP_WHY_LOST] = "the gate changed without an order",
		[GP_WHY_YIELD] = "another queue waited too long and made no progress beside it",
		[GP_WHY_REST] = "the device is idle, and the agent cannot see the doorbells of this queue",
		[GP_WHY_VAIN] = "it had the device to itself and completed nothing",
		[GP_WHY_STAY] = "the requests of a more urgent queue come in pieces",
		[GP_WHY_SHARE] = "a program that is owed more GPU time has work",
		[GP_WHY_FLOOR] = "it had less than its guaranteed share",
		[GP_WHY_WAITS] = "a more urgent program waits for a result",
	};

	return (unsigned int)why < GP_WHY_COUNT ? names[why] : "unknown reason";
}
