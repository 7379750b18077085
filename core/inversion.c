/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Inversions: a queue has work while a queue of lower rank runs on the same device, unless the device puts that one
 * aside by itself. An inversion begins when both hold as far as the core knows; the core traces it with its length when
 * either ends. Only affected queues are touched.
 */
#include "core/calls.h"

/* On a self-switching device the batch client that has the turn yields to the top queues by itself. */
static bool inversion_is_exempt(const struct gp_sched *sched, const struct gp_device *device,
				const struct gp_queue *waiter, const struct gp_queue *runner)
{
	return device->attr.switch_ns && !waiter->is_batch && runner->is_batch && sched->seats[runner->seat].has_turn;
}

static uint32_t inversion_find(const struct gp_sched *sched, const struct gp_device *device,
			       const struct gp_queue *waiter)
{
	uint32_t place = 0, runner;

	if (!gp_heap_has_below(sched, device, GP_HEAP_RUNNING, waiter->rank))
		return GP_NONE;
	while ((runner = gp_heap_visit(sched, device, GP_HEAP_RUNNING, waiter->rank, &place)) != GP_NONE)
		if (!inversion_is_exempt(sched, device, waiter, &sched->queues[runner]))
			return runner;
	return GP_NONE;
}

static void inversion_begin(struct gp_sched *sched, uint32_t queue, uint32_t runner)
{
	struct gp_queue *q = &sched->queues[queue];
	struct gp_device *device = gp_device_of(sched, q);

	q->inverted = true;
	q->inverted_since_ns = sched->now_ns;
	q->inverted_by = runner;
	q->inverted_by_id = gp_queue_id_of(sched, runner);
	q->inverted_prev = GP_NONE;
	q->inverted_next = device->inverted_first;
	if (device->inverted_first != GP_NONE)
		sched->queues[device->inverted_first].inverted_prev = queue;
	device->inverted_first = queue;
}

static void inversion_end(struct gp_sched *sched, uint32_t queue, enum gp_why why)
{
	struct gp_queue *q = &sched->queues[queue];
	struct gp_device *device = gp_device_of(sched, q);
	uint64_t length_ns = sched->now_ns - q->inverted_since_ns;

	if (q->inverted_prev != GP_NONE)
		sched->queues[q->inverted_prev].inverted_next = q->inverted_next;
	else
		device->inverted_first = q->inverted_next;
	if (q->inverted_next != GP_NONE)
		sched->queues[q->inverted_next].inverted_prev = q->inverted_prev;
	q->inverted = false;
	if (!length_ns)
		return;
	q->inversions++;
	device->stats.inversions++;
	device->stats.inversion_ns += length_ns;
	if (length_ns > device->stats.inversion_ns_max)
		device->stats.inversion_ns_max = length_ns;
	gp_trace_pair(sched, GP_TRACE_INVERSION, queue, q->inverted_by_id, why, length_ns);
}

void gp_inversion_work(struct gp_sched *sched, uint32_t queue)
{
	struct gp_queue *q = &sched->queues[queue];
	struct gp_device *device = gp_device_of(sched, q);
	uint32_t runner = q->has_work && device->policy->gates ? inversion_find(sched, device, q) : GP_NONE;

	if (q->inverted && runner == GP_NONE)
		inversion_end(sched, queue, q->has_work ? GP_WHY_NONE : GP_WHY_WORK);
	else if (!q->inverted && runner != GP_NONE)
		inversion_begin(sched, queue, runner);
	else if (q->inverted)
		q->inverted_by = runner; /* after a change of rank the old runner may not be below it any more */
}

void gp_inversion_started(struct gp_sched *sched, uint32_t queue)
{
	const struct gp_queue *runner = &sched->queues[queue];
	struct gp_device *device = gp_device_of(sched, runner);
	uint32_t place = 0, waiter;

	if (!device->policy->gates)
		return;
	while ((waiter = gp_heap_visit(sched, device, GP_HEAP_WORK, runner->rank, &place)) != GP_NONE) {
		const struct gp_queue *q = &sched->queues[waiter];

		if (q->has_work && !q->inverted && !inversion_is_exempt(sched, device, q, runner))
			inversion_begin(sched, waiter, queue);
	}
}

/* The inversions' reason: why the core left the runner open, else why, which says how the runner stopped. */
void gp_inversion_stopped(struct gp_sched *sched, uint32_t queue, enum gp_why why)
{
	struct gp_device *device = gp_device_of(sched, &sched->queues[queue]);
	uint32_t waiter, next;

	if (sched->queues[queue].left_why != GP_WHY_NONE)
		why = sched->queues[queue].left_why;
	for (waiter = device->inverted_first; waiter != GP_NONE; waiter = next) {
		struct gp_queue *q = &sched->queues[waiter];
		uint32_t runner;

		next = q->inverted_next;
		if (q->inverted_by != queue)
			continue;
		runner = inversion_find(sched, device, q);
		if (runner == GP_NONE) {
			inversion_end(sched, waiter, why);
		} else { /* the same inversion goes on with another runner */
			q->inverted_by = runner;
		}
	}
}

/* Its turn began or ended, or it needs none any more: on a self-switching device others now wait for it, or do not. */
void gp_inversion_changed(struct gp_sched *sched, uint32_t queue)
{
	const struct gp_queue *q = &sched->queues[queue];

	if (!sched->devices[q->device].attr.switch_ns || !gp_heap_has(q, GP_HEAP_RUNNING))
		return;
	gp_inversion_stopped(sched, queue, GP_WHY_TURN);
	gp_inversion_started(sched, queue);
}
