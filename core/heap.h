/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The heaps of a device: what each holds and how each is ordered. heap.c does the work; O(log n), no allocation. */
#ifndef GP_CORE_HEAP_H
#define GP_CORE_HEAP_H

#include <gp_deps.h>

struct gp_sched;
struct gp_device;

/* A queue can be in several heaps at once. The top is what a decision looks at first. */
enum gp_heap_name {
	GP_HEAP_WORK,    /* has work, or announced work, or is in a gang that has: highest rank on top */
	GP_HEAP_LINGER,  /* drained a moment ago, holds lower gates closed: highest rank on top */
	GP_HEAP_OPEN,    /* GP_GATE_OPEN, so the core may close it: lowest rank on top */
	GP_HEAP_RUNNING, /* has work and its gate lets it through: lowest rank on top */
	GP_HEAP_READY,   /* waits behind a closed gate, and needs no turn or has it: highest rank, then order */
	GP_HEAP_TURN,    /* waits behind a closed gate for its seat's turn: highest rank, then order */
	GP_HEAP_TIMER,   /* has a timer at timer_ns: earliest on top */
	GP_HEAP_AGE,     /* the queue of each user whose aged turn is next: earliest age_key_ns on top */
	GP_HEAP_COUNT
};

struct gp_heap {
	uint32_t *slots; /* queue indices; capacity: the device's queue_max */
	uint32_t count;
};

void gp_heap_add(struct gp_sched *sched, struct gp_device *device, enum gp_heap_name name, uint32_t queue);
void gp_heap_remove(struct gp_sched *sched, struct gp_device *device, enum gp_heap_name name, uint32_t queue);
/* Sets the queue's timer and its place in GP_HEAP_TIMER; GP_NEVER_NS: no timer. */
void gp_heap_set_timer(struct gp_sched *sched, struct gp_device *device, uint32_t queue, uint64_t when_ns);
/* Visits, in no particular order, the queues whose rank is below the bound (OPEN, RUNNING) or above it (WORK). The
 * caller starts with place 0; each call moves place past the queue that it returns; GP_NONE: no more. The heap must not
 * change between the calls. */
uint32_t gp_heap_visit(const struct gp_sched *sched, const struct gp_device *device, enum gp_heap_name name,
		       int64_t bound, uint32_t *place);
bool gp_heap_is_ordered(const struct gp_sched *sched, const struct gp_device *device, enum gp_heap_name name);

#endif
