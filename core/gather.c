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
 *
 * Pieces come closely: two in the time of one switch. Where work comes less often each piece may be a request of its
 * own, which somebody waits for, though the next is there before it is done.
 *
 * Protection latency: none of this. Throughput: long slices, but nobody is held out.
 */
#include "core/state.h"

#define GATHER_QUIET_NS     500000ull  /* two looks of an agent, at gpreemptd's 250 us (chosen) … */
#define GATHER_QUIET_NS_MAX 4000000ull /* … and at most: then a slice is over anyway */
#define GATHER_AFTER        2u         /* switches: how long after its work is done it is still waited for */
#define GATHER_DENSE        4u         /* switches: pieces are counted over so long at least (chosen) */

uint64_t gp_gather_ns(const struct gp_device *device)
{
	return device->param.gather_ns == GP_GATHER_OFF || device->stay.protect == GP_PROTECT_LATENCY ?
		       0 :
		       device->param.gather_ns;
}

bool gp_gather_is(const struct gp_device *device)
{
	return gp_gather_ns(device) && device->slowed && device->stay.gathers;
}

/* Seen when it happens: the next plan may have to wait for an answer. */
static void gather_look_wait(const struct gp_sched *sched, struct gp_gather *gather, uint64_t written,
			     uint64_t completed)
{
	if (gather->done_ns || gather->is_pause)
		return;
	if (completed >= gather->written)
		gather->done_ns = sched->now_ns;
	else
		gather->is_pause = written != gather->written;
}

void gp_gather_look(struct gp_sched *sched, struct gp_queue *queue, uint64_t written, uint64_t completed)
{
	struct gp_device *device = gp_device_of(sched, queue);
	uint64_t since_ns = sched->now_ns - queue->dense_ns, count = written - queue->dense_written;

	if (device->gather.waits && &sched->queues[device->gather.queue] == queue)
		gather_look_wait(sched, &device->gather, written, completed);
	if (written == queue->written || since_ns < GATHER_DENSE * device->attr.switch_ns)
		return;
	queue->dense -= queue->dense / 16;
	if (since_ns / count <= device->attr.switch_ns / 2)
		queue->dense += 1000 / 16;
	queue->dense_ns = sched->now_ns;
	queue->dense_written = written;
}

static uint64_t gather_quiet_ns(const struct gp_gather *gather)
{
	return gather->quiet_ns ? gather->quiet_ns : GATHER_QUIET_NS;
}

static void gather_begin(struct gp_sched *sched, struct gp_gather *gather, uint32_t queue)
{
	gather->waits = true;
	gather->queue = queue;
	gather->written = sched->queues[queue].written;
	gather->until_ns = GP_NEVER_NS;
	gather->done_ns = 0;
	gather->is_pause = false;
}

/* It was a wait: the next one may be told sooner again. Batch clients are not open for long enough to be counted at, so
 * this is what says that the limit of switches is still needed. */
static void gather_waited(struct gp_sched *sched, struct gp_device *device, struct gp_gather *gather)
{
	uint64_t quiet_ns = gather_quiet_ns(gather);

	gp_budget_confirm(sched, device);
	gather->quiet_ns = quiet_ns - (quiet_ns - GATHER_QUIET_NS) / 8;
	gather->until_ns = gather->done_ns + GATHER_AFTER * device->attr.switch_ns;
}

static void gather_paused(struct gp_gather *gather)
{
	uint64_t quiet_ns = 2 * gather_quiet_ns(gather);

	gather->quiet_ns = quiet_ns < GATHER_QUIET_NS_MAX ? quiet_ns : GATHER_QUIET_NS_MAX;
	gather->waits = false;
}

/* Batch clients are held out: what became of that wait? */
static void gather_go_on(struct gp_sched *sched, struct gp_device *device, uint32_t top)
{
	struct gp_gather *gather = &device->gather;

	if (top != gather->queue) {
		gather->waits = false;
		return;
	}
	if (gather->until_ns == GP_NEVER_NS) {
		if (gather->done_ns)
			gather_waited(sched, device, gather);
		else if (gather->is_pause)
			gather_paused(gather);
	}
	if (gather->until_ns <= sched->now_ns)
		gather->waits = false;
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

void gp_gather_plan(struct gp_sched *sched, struct gp_device *device, uint32_t top)
{
	struct gp_gather *gather = &device->gather;

	/* Also before it is known: it takes looks to learn that it launches ahead. */
	if (gp_gather_ns(device) && device->slowed && top != GP_NONE && sched->queues[top].has_work)
		gp_device_wake(device, sched->now_ns + GATHER_QUIET_NS);
	if (!gp_gather_is(device) || top == GP_NONE) {
		gather->waits = false;
		return;
	}
	if (gather->waits)
		gather_go_on(sched, device, top);
	if ((!gather->waits || gather->until_ns != GP_NEVER_NS) && gather_is_quiet(sched, device, &sched->queues[top]))
		gather_begin(sched, gather, top);
	if (gather->waits) /* to look again: nobody tells that more was launched */
		gp_device_wake(device,
			       gather->until_ns != GP_NEVER_NS ? gather->until_ns : sched->now_ns + GATHER_QUIET_NS);
}
