/* SPDX-License-Identifier: MIT */
/* The simulator's own future: events by time and, at one time, by the order they were pushed in. */
#ifndef GP_SIM_HEAP_H
#define GP_SIM_HEAP_H

#include <stdint.h>

struct gp_sim_heap_event {
	uint64_t time_ns, seq; /* seq: set by push */
	uint32_t type, index;  /* meaning: the pusher's */
	uint64_t value;
};

struct gp_sim_heap {
	struct gp_sim_heap_event *events;
	uint32_t count, capacity;
	uint64_t next_seq;
};

int gp_sim_heap_push(struct gp_sim_heap *heap, const struct gp_sim_heap_event *event); /* 0 or -ENOMEM */
uint64_t gp_sim_heap_next_ns(const struct gp_sim_heap *heap);                          /* UINT64_MAX: empty */
struct gp_sim_heap_event gp_sim_heap_pop(struct gp_sim_heap *heap);                    /* not to be called when empty */
void gp_sim_heap_fini(struct gp_sim_heap *heap);

#endif
