/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Programs that launch ahead, on devices that switch by themselves. The host of such an urgent program is slower than
 * the device: it launches piece by piece and does not wait for each. Switching for each piece serves nobody, so the
 * limit of switches makes slices longer (budget.c) and what is launched gathers. But now and then the program waits for
 * a result (a token), and then each slice below it is time lost. So:
 *   - while it launches, batch clients have long slices (param.gather_ns): few switches;
 *   - when it has launched nothing for a while though its work is not done, it waits: batch clients are held out until
 *     that work is done, and a moment longer, because a second wait often follows the first.
 * It is told from one that only paused: what was waited for is done before it launches again. After a pause taken for a
 * wait it must be quiet for twice as long the next time.
 */
#include "core/state.h"

#define GATHER_QUIET_NS     500000ull  /* two looks of an agent, at gpreemptd's 250 us (chosen) … */
#define GATHER_QUIET_NS_MAX 4000000ull /* … and at most: then a slice is over anyway */
#define GATHER_AFTER        2u         /* switches: how long after its work is done it is still waited for */

bool gp_gather_is(const struct gp_device *device)
{
	return device->param.gather_ns && device->slowed && device->stay.gathers;
}

static uint64_t gather_quiet_ns(const struct gp_gather *gather)
{
	return gather->quiet_ns ? gather->quiet_ns : GATHER_QUIET_NS;
}

static void gather_begin(struct gp_sched *sched, struct gp_gather *gather, uint32_t queue)
{
	gather->holds = true;
	gather->queue = queue;
	gather->written = sched->queues[queue].written;
	gather->until_ns = GP_NEVER_NS;
}

/* It was a wait: the next one may be told sooner again. Batch clients are not open for long enough to be counted at, so
 * this is what says that the limit of switches is still needed. */
static void gather_waited(struct gp_sched *sched, struct gp_device *device, struct gp_gather *gather)
{
	uint64_t quiet_ns = gather_quiet_ns(gather);

	gp_budget_confirm(sched, device);
	gather->quiet_ns = quiet_ns - (quiet_ns - GATHER_QUIET_NS) / 8;
	gather->until_ns = sched->now_ns + GATHER_AFTER * device->attr.switch_ns;
}

static void gather_paused(struct gp_gather *gather)
{
	uint64_t quiet_ns = 2 * gather_quiet_ns(gather);

	gather->quiet_ns = quiet_ns < GATHER_QUIET_NS_MAX ? quiet_ns : GATHER_QUIET_NS_MAX;
	gather->holds = false;
}

/* Batch clients are held out: what became of that wait? */
static void gather_go_on(struct gp_sched *sched, struct gp_device *device, uint32_t top)
{
	struct gp_gather *gather = &device->gather;
	const struct gp_queue *q = &sched->queues[gather->queue];

	if (top != gather->queue) {
		gather->holds = false;
		return;
	}
	if (gather->until_ns == GP_NEVER_NS) {
		if (q->completed >= gather->written)
			gather_waited(sched, device, gather);
		else if (q->written != gather->written)
			gather_paused(gather);
		return;
	}
	if (gather->until_ns <= sched->now_ns)
		gather->holds = false;
}

/* Whether it has launched nothing for so long; wakes the device when that will be so. */
static bool gather_is_quiet(struct gp_sched *sched, struct gp_device *device, const struct gp_queue *q)
{
	uint64_t quiet_ns = q->written_ns + gather_quiet_ns(&device->gather);

	if (!q->has_work || q->written == q->completed)
		return false;
	if (quiet_ns > sched->now_ns)
		gp_device_wake(device, quiet_ns);
	return quiet_ns <= sched->now_ns;
}

bool gp_gather_plan(struct gp_sched *sched, struct gp_device *device, uint32_t top)
{
	struct gp_gather *gather = &device->gather;

	/* Also before it is known: it takes looks to learn that it launches ahead. */
	if (device->param.gather_ns && device->slowed && top != GP_NONE && sched->queues[top].has_work)
		gp_device_wake(device, sched->now_ns + GATHER_QUIET_NS);
	if (!gp_gather_is(device) || top == GP_NONE) {
		gather->holds = false;
		return false;
	}
	if (gather->holds)
		gather_go_on(sched, device, top);
	if ((!gather->holds || gather->until_ns != GP_NEVER_NS) && gather_is_quiet(sched, device, &sched->queues[top]))
		gather_begin(sched, gather, top);
	if (gather->holds) /* to look again: nobody tells that more was launched */
		gp_device_wake(device,
			       gather->until_ns != GP_NEVER_NS ? gather->until_ns : sched->now_ns + GATHER_QUIET_NS);
	return gather->holds;
}
