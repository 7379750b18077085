/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The whole state of the core, and the questions that need more than one queue or device to answer. No file outside
 * core/ includes this, but for tests that look inside. The caller serialises all calls, so nothing here is shared.
 */
#ifndef GP_CORE_STATE_H
#define GP_CORE_STATE_H

#include "core/device.h"
#include "core/queue.h"
#include "core/seat.h"

struct gp_sched {
	struct gp_limits limits;
	uint64_t now_ns, seq, stamp; /* stamp: each pass that counts seats once takes a new one */
	uint32_t device_count, client_count, queue_reserved;
	uint32_t client_free, queue_free, seat_free; /* free lists through seat_first, seat_next, client_next */
	uint32_t share_free;
	uint32_t gang_count;                /* in use */
	uint64_t gang_move;                 /* the last number given to a move */
	uint32_t closed_first, closed_last; /* list: gangs that are to be closed, the longest closed first */
	uint32_t given_first, given_last;   /* list: queues with an order that the core gave up */
	uint32_t plan_next;                 /* the device that the next plan looks at first, for fairness */
	uint64_t trace_count;               /* events ever written */
	struct gp_device *devices;
	struct gp_core_client *clients;
	struct gp_queue *queues;
	struct gp_seat *seats;
	struct gp_share *shares;
	uint32_t *share_hash; /* as many buckets as shares: the first share of each */
	struct gp_gang *gangs;
	struct gp_trace_event *trace;
	uint32_t *heap_slots;
};

static inline struct gp_device *gp_device_of(struct gp_sched *sched, const struct gp_queue *queue)
{
	return &sched->devices[queue->device];
}

static inline struct gp_queue_id gp_queue_id_of(const struct gp_sched *sched, uint32_t queue)
{
	return (struct gp_queue_id){ queue, sched->queues[queue].generation };
}

static inline struct gp_share *gp_share_of(const struct gp_sched *sched, const struct gp_queue *queue)
{
	return &sched->shares[sched->seats[queue->seat].share];
}

/* NULL: there is no such queue, or not any more. */
static inline struct gp_queue *gp_queue_find(const struct gp_sched *sched, struct gp_queue_id id)
{
	if (id.index >= sched->limits.queue_count || !sched->queues[id.index].used ||
	    sched->queues[id.index].generation != id.generation)
		return NULL;
	return &sched->queues[id.index];
}

/* The core's time never runs backwards, and the core ignores an absurd time. */
static inline void gp_clock(struct gp_sched *sched, uint64_t now_ns)
{
	if (now_ns > sched->now_ns && now_ns < GP_NS_MAX)
		sched->now_ns = now_ns;
}

/* The device gets no other plan until the awaited orders of its last plan are answered, or patience ends. */
static inline bool gp_device_waits(const struct gp_sched *sched, const struct gp_device *device)
{
	return device->awaited_first != GP_NONE && sched->now_ns < device->patient_until_ns;
}

/* A member of the queue's gang is in quarantine and keeps the gang open. */
static inline bool gp_gang_is_stuck(const struct gp_sched *sched, const struct gp_queue *queue)
{
	return queue->gang != GP_NONE && sched->gangs[queue->gang].stuck_count;
}

/* The queue's seat lost its turn to a higher seat and stays open below it. */
static inline bool gp_under_is(const struct gp_sched *sched, const struct gp_queue *queue)
{
	const struct gp_device *device = &sched->devices[queue->device];

	return device->under_seat == queue->seat && !gp_stay_holds(device);
}

/* The queue has work, or announced it, or is in a gang that has. */
static inline bool gp_work_is_active(const struct gp_sched *sched, const struct gp_queue *queue)
{
	return queue->has_work || queue->hinted || (queue->gang != GP_NONE && sched->gangs[queue->gang].work_count > 0);
}

/* The queue waits for the core to open it. While an order of its seat is overdue the core gives the seat no other. */
static inline bool gp_work_waits(const struct gp_sched *sched, const struct gp_queue *queue, bool active)
{
	return active && queue->gate == GP_GATE_CLOSED && queue->gang == GP_NONE &&
	       !sched->seats[queue->seat].overdue_count;
}

/* Batch seats need a turn; all others may run beside their equals. */
static inline bool gp_turn_allows(const struct gp_sched *sched, const struct gp_queue *queue)
{
	return !queue->is_batch || sched->seats[queue->seat].has_turn;
}

/* Whether the heap (OPEN, RUNNING) has a queue below this rank. */
static inline bool gp_heap_has_below(const struct gp_sched *sched, const struct gp_device *device,
				     enum gp_heap_name name, int64_t rank)
{
	uint32_t top = gp_heap_top(device, name);

	return top != GP_NONE && sched->queues[top].rank < rank;
}

/* The highest rank that has work: the core closes gates below it. INT64_MIN: no queue has work. */
static inline int64_t gp_device_close_rank(const struct gp_sched *sched, const struct gp_device *device)
{
	uint32_t top = gp_heap_top(device, GP_HEAP_WORK);

	return top == GP_NONE ? INT64_MIN : sched->queues[top].rank;
}

/* The same with the queues that drained a moment ago: the core opens no gate below it. */
static inline int64_t gp_device_hold_rank(const struct gp_sched *sched, const struct gp_device *device)
{
	uint32_t top = gp_heap_top(device, GP_HEAP_LINGER);
	int64_t work = gp_device_close_rank(sched, device);

	return top == GP_NONE || sched->queues[top].rank < work ? work : sched->queues[top].rank;
}

#endif
