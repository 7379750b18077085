/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Programs that launch ahead, on devices that switch by themselves. The host of such an urgent program is slower than
 * the device: it launches piece by piece and does not wait for each. A switch for each piece helps no program, so the
 * limit of switches makes slices longer (budget.c), and launched work gathers. But now and then the program waits for a
 * result (a token), and then each slice below it is time lost. So:
 *   - while it launches, batch clients have long slices (param.gather_ns): few switches;
 *   - when it has launched nothing for a while though its work is not done, it waits: batch clients are held out until
 *     that work is done, and a moment longer, because a second wait often follows the first.
 * The core tells a wait from a pause: after a wait the work is done before the program launches again. After a pause
 * taken for a wait the program must be quiet for twice as long the next time.
 *
 * Pieces come closely: two in the time of one switch. Where work comes less often, each piece may be a request of its
 * own, for whose result a user waits, though the next piece is there before it is done.
 *
 * With protection latency none of this happens. With throughput slices are long, but no client is held out.
 */
#include "core/calls.h"

#define GATHER_QUIET_NS     500000ull  /* two samples of an agent, at gpreemptd's 250 us (chosen) … */
#define GATHER_QUIET_NS_MAX 4000000ull /* … and at most: a slice is over by then anyway */
#define GATHER_AFTER        2u         /* switches: how long batch clients stay held out after the work is done */
#define GATHER_DENSE        4u         /* switches: pieces are counted over at least so long (chosen) */

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

/* Records this with the sample, because the next plan may have to wait for an answer. */
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

/* It was a wait, so the core may recognise the next one sooner. Batch clients are not open for long enough to count
 * switches, so this confirms that the limit of switches is still needed. */
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

/* Batch clients are held out for a wait: is it over, or was it a pause? */
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

/* Whether the queue has launched nothing for the quiet time; else wakes the device when that is over. */
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

	/* Also before the core knows that the program launches ahead: it takes samples to learn that. */
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
	if (gather->waits) /* to look again: no event reports further launches */
		gp_device_wake(device,
			       gather->until_ns != GP_NEVER_NS ? gather->until_ns : sched->now_ns + GATHER_QUIET_NS);
}
