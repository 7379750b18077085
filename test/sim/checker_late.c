/* SPDX-License-Identifier: MIT */
/*
 * No late starters: while the core knows of work of a more urgent queue, no lower one starts a packet, unless the core
 * has had no chance yet (it waits for answers), has ordered it closed, cannot (failed orders, quarantine, a stopped
 * device) or says why not (aged, short, opened a moment ago, out of budget, the device switches by itself), and such an
 * excuse runs out.
 */
#include "test/sim/checker.h"
#include "test/sim/checker_known.h"
#include "test/sim/checker_truth.h"

struct late_state {
	uint64_t next_packet[TRUTH_QUEUE_MAX];
}; /* the first packet that has not started, per queue */

/* It has work, or another member of its gang has: then it is as urgent as that one. */
static bool late_is_active(const struct known *known, const struct known_queue *queue)
{
	uint32_t i;

	for (i = 0; queue->attr.gang && !queue->has_work && i < known->queue_end; i++)
		if (known->queues[i].used && known->queues[i].attr.gang == queue->attr.gang &&
		    known->queues[i].has_work)
			return true;
	return queue->has_work;
}

/* Idle gates are left alone while another lower queue is let finish: stopping the device for them would disturb it. */
static bool late_is_excused(const struct checker_run *run, const struct known_queue *low)
{
	int64_t top = INT64_MIN;
	const struct known_queue *q;
	uint32_t i;

	if (known_is_excused(run->known, low))
		return true;
	for (i = 0; i < run->known->queue_end; i++) {
		q = &run->known->queues[i];
		if (q->used && q->device == low->device && q->rank > top && late_is_active(run->known, q))
			top = q->rank;
	}
	for (i = 0; i < run->known->queue_end; i++) {
		q = &run->known->queues[i];
		if (q->used && q->device == low->device && q->has_work && q->rank < top &&
		    known_is_excused(run->known, q))
			return true;
	}
	return false;
}

static void late_start(struct checker_run *run, const struct check_event *event)
{
	struct known *known = run->known;
	const struct known_queue *low = known_find_tag(known, event->gpu_queue), *q;
	const struct known_device *device;
	uint32_t i;

	if (!low)
		return;
	device = &known->devices[low->device];
	if (!device->ranked || device->stopped || known_waits(known, low->device) || !device->quiet)
		return;
	if (run->truth->queues[event->gpu_queue].lost)
		return;
	known_refresh(known);
	/* The urgency of an idle queue with a deadline is that of work it does not have yet. */
	if ((low->attr.deadline_ns && !low->has_work) || low->vague || known_moves(low))
		return;
	for (i = 0; i < known->queue_end; i++) {
		q = &known->queues[i];
		if (!q->used || q->device != low->device || !q->has_work || q->vague || q->rank <= low->rank)
			continue;
		if (late_is_excused(run, low))
			continue;
		checker_fail(
			run, &checker_late,
			"at %llu ns: queue %u (rank %lld, gate %d) started packet %llu while queue %u (rank %lld) has work since %llu ns, "
			"and nothing excuses it",
			(unsigned long long)event->now_ns, event->gpu_queue, (long long)low->rank, low->gate,
			(unsigned long long)event->gpu_event->packet, (uint32_t)q->attr.tag, (long long)q->rank,
			(unsigned long long)q->busy_since_ns);
		return;
	}
}

static void late_event(struct checker_run *run, void *data, const struct check_event *event)
{
	struct late_state *state = data;

	if (event->type != CHECK_GPU || event->gpu_queue == CHECKER_NONE ||
	    event->gpu_event->type != GP_GPU_EVENT_START ||
	    event->gpu_event->packet < state->next_packet[event->gpu_queue])
		return;
	state->next_packet[event->gpu_queue] = event->gpu_event->packet + 1;
	late_start(run, event);
}

const struct checker checker_late = {
	.name = "late",
	.promise = "while an urgent queue has work no lower one starts",
	.state_size = sizeof(struct late_state),
	.event = late_event,
};
