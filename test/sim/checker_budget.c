/* SPDX-License-Identifier: MIT */
/*
 * The preemption budget: over any window the transactions that preempt cost at most overhead_permille of it and a
 * burst. A leaking bucket of its own: each preempting plan pours in the price of closing and opening again, and it must
 * never run over.
 */
#include "test/sim/checker.h"
#include "test/sim/checker_known.h"

struct budget_device {
	uint64_t level, mark_ns, pair_ns_max; /* level: in thousandths of ns */
};
struct budget_state {
	struct budget_device devices[KNOWN_DEVICE_MAX];
};

/* A gang closes on all its devices when one of them asks, and is paid for there. */
static bool budget_preempts(struct known *known, const struct gp_order *order)
{
	const struct known_queue *queue = known_find(known, order->queue);

	return queue && !queue->attr.gang &&
	       (order->why == GP_WHY_PRIORITY || order->why == GP_WHY_HINT || order->why == GP_WHY_IDLE ||
		order->why == GP_WHY_SHARE);
}

static void budget_plan(struct checker_run *run, struct budget_state *state, const struct gp_plan *plan)
{
	const struct known_device *device = &run->known->devices[plan->device];
	struct budget_device *own = &state->devices[plan->device];
	struct gp_order orders[GP_PLAN_MAX];
	uint64_t leak, limit_ns, cost_ns, pair_ns = device->attr.close_ns + device->attr.open_ns;
	uint32_t i, count = 0;

	for (i = 0; i < plan->close_count; i++) {
		if (budget_preempts(run->known, &plan->close[i]))
			orders[count++] = plan->close[i];
	}
	if (!count || device->param.overhead_permille >= 1000)
		return;
	if (pair_ns > own->pair_ns_max)
		own->pair_ns_max = pair_ns;
	leak = (run->known->core_ns - own->mark_ns) * device->param.overhead_permille;
	own->mark_ns = run->known->core_ns;
	own->level = own->level > leak ? own->level - leak : 0;
	cost_ns = pair_ns * known_transactions(device, orders, count);
	limit_ns = own->pair_ns_max * device->param.burst;
	/* A plan dearer than the whole burst must be possible at all. */
	if (cost_ns > pair_ns * device->param.burst)
		limit_ns += cost_ns - pair_ns * device->param.burst;
	own->level += cost_ns * 1000;
	if (own->level > limit_ns * 1000)
		checker_fail(
			run, &checker_budget,
			"at %llu ns: device %u: preempting plans cost %llu ns more than %u per mille of the time, and a burst of %u is %llu ns",
			(unsigned long long)run->now_ns, plan->device, (unsigned long long)(own->level / 1000),
			device->param.overhead_permille, device->param.burst, (unsigned long long)limit_ns);
}

static void budget_event(struct checker_run *run, void *data, const struct check_event *event)
{
	if (event->type == CHECK_COST) {
		struct budget_device *own = &((struct budget_state *)data)->devices[event->device];

		if (event->close_ns + event->open_ns > own->pair_ns_max)
			own->pair_ns_max = event->close_ns + event->open_ns;
	}
	if (event->type == CHECK_PLAN && event->plan->device < KNOWN_DEVICE_MAX)
		budget_plan(run, data, event->plan);
}

const struct checker checker_budget = {
	.name = "budget",
	.promise = "preempting costs no more than the budget and a burst",
	.state_size = sizeof(struct budget_state),
	.event = budget_event,
};
