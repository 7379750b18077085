/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Three levels on a device that switches by itself: clients that take no turns, a batch client in the middle, and a
 * lower one. When the one in the middle gets work it takes the turn. To close the lower one for it and to open it again
 * takes two calls, longer than most requests. So the lower one may stay open *under* it: it has the shortest slice, and
 * the one in the middle a longer one (mid_ns), because two short slices make no progress. The device visits the lower
 * one after each such slice, for nothing: two switches. The lower one stays as long as these visits cost less than the
 * two calls; then it closes as it would have without this (renting until buying would have been cheaper). When the one
 * in the middle is done, the lower one has its turn back, and goes on with what was left of it.
 */
#include "core/calls.h"

/* How long the visits cost less than a close and an open. */
static uint64_t under_most_ns(const struct gp_device *device)
{
	uint64_t visit_ns = 2 * device->attr.switch_ns;
	uint64_t visits = (device->attr.close_ns + device->attr.open_ns) / visit_ns + 1;

	return visits * (device->attr.mid_ns + visit_ns);
}

/* Whether the seat can be the one in the middle: its slices are known to be longer than the shortest. */
static bool under_is_middle(const struct gp_sched *sched, const struct gp_device *device, const struct gp_seat *seat)
{
	uint32_t i;

	for (i = seat->queue_first; i != GP_NONE; i = sched->queues[i].seat_next) {
		const struct gp_queue *q = &sched->queues[i];

		if (!q->is_batch || q->gang != GP_NONE ||
		    (q->attr.kind == GP_KIND_COMPUTE && !q->attr.fixed_slice && gp_slice_may_be_short(device, q)))
			return false;
	}
	return seat->has_turn && seat->work_count && !seat->is_behind && !seat->overdue_count;
}

/* Whether the seat can be the lower one: open with the shortest slice, in no gang, and below all queues of the
 * other. */
static bool under_is_lower(const struct gp_sched *sched, const struct gp_device *device, const struct gp_seat *seat,
			   const struct gp_seat *middle)
{
	int64_t above = INT64_MAX;
	uint32_t i;

	for (i = middle->queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
		if (sched->queues[i].rank < above)
			above = sched->queues[i].rank;
	for (i = seat->queue_first; i != GP_NONE; i = sched->queues[i].seat_next) {
		const struct gp_queue *q = &sched->queues[i];

		if (!q->is_batch || q->gang != GP_NONE || q->gate != GP_GATE_OPEN || q->slice_unknown || q->aged ||
		    q->rank >= above)
			return false;
		if (q->attr.kind == GP_KIND_COMPUTE && (q->attr.fixed_slice || q->slice_ns != device->attr.short_ns))
			return false;
	}
	return !seat->is_behind;
}

static bool under_can(const struct gp_sched *sched, const struct gp_device *device, uint32_t lower, uint32_t middle)
{
	return device->attr.mid_ns && device->attr.switch_ns && device->attr.short_ns && device->batch_max == 1 &&
	       !device->stopped && !gp_stay_holds(device) && device->aged_seat == GP_NONE &&
	       under_is_middle(sched, device, &sched->seats[middle]) &&
	       under_is_lower(sched, device, &sched->seats[lower], &sched->seats[middle]);
}

/* A client above them asks for latency: no client in the middle may have a long slice then. */
static bool under_is_forbidden(const struct gp_sched *sched, const struct gp_device *device)
{
	uint32_t seat, i;

	for (seat = device->seat_first; seat != GP_NONE; seat = sched->seats[seat].device_next)
		for (i = sched->seats[seat].queue_first; i != GP_NONE; i = sched->queues[i].seat_next) {
			const struct gp_queue *q = &sched->queues[i];
			enum gp_protect protect = q->attr.protect ? q->attr.protect : device->param.protect;

			if (!q->is_batch && protect == GP_PROTECT_LATENCY)
				return true;
		}
	return false;
}

/* The lower seat has just lost its turn to the one in the middle. */
void gp_under_begin(struct gp_sched *sched, uint32_t lower, uint32_t middle, uint64_t used_ns)
{
	struct gp_device *device = &sched->devices[sched->seats[lower].device];

	if (device->under_seat != GP_NONE || !under_can(sched, device, lower, middle) ||
	    under_is_forbidden(sched, device))
		return;
	device->under_seat = lower;
	device->under_by = middle;
	device->under_used_ns = used_ns;
	device->under_until_ns = sched->now_ns + under_most_ns(device);
	device->under_counts = true;
	gp_device_wake(device, device->under_until_ns);
	gp_slice_look(device);
}

/* The queue is in the middle, and its slice takes longer to end than a call to close it: the core closes it for urgent
 * work. */
bool gp_under_is_long(const struct gp_sched *sched, const struct gp_queue *queue)
{
	const struct gp_device *device = &sched->devices[queue->device];

	return device->under_seat != GP_NONE && device->under_by == queue->seat && queue->has_work &&
	       device->attr.mid_ns / 2 > device->attr.close_ns; /* half of a slice is left on average */
}

static void under_end(struct gp_sched *sched, struct gp_device *device)
{
	uint32_t lower = device->under_seat;

	device->under_seat = device->under_by = GP_NONE;
	gp_slice_look(device);
	gp_turn_check(sched, lower);
}

void gp_under_forget(struct gp_sched *sched, struct gp_device *device, uint32_t seat)
{
	if (device->under_seat != seat && device->under_by != seat)
		return;
	if (device->under_seat == seat) {
		device->under_seat = device->under_by = GP_NONE;
		gp_slice_look(device);
	} else {
		under_end(sched, device);
	}
}

void gp_under_update(struct gp_sched *sched, struct gp_device *device)
{
	uint32_t lower = device->under_seat, middle = device->under_by;

	if (under_can(sched, device, lower, middle) && sched->now_ns < device->under_until_ns) {
		gp_device_wake(device, device->under_until_ns);
		return;
	}
	under_end(sched, device);
	if (!sched->seats[middle].has_turn || sched->seats[middle].work_count || device->turn_count != 1 ||
	    !sched->seats[lower].batch_count || sched->seats[lower].open_count == 0)
		return;
	/* The one in the middle has no work: the lower one goes on with its turn. */
	gp_turn_take(sched, middle);
	gp_turn_give(sched, lower);
	sched->seats[lower].turn_used_ns = device->under_used_ns;
}
