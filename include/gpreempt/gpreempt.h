/* SPDX-License-Identifier: MIT */
/*
 * libgpreempt: what a program may tell the scheduler about itself. Everything is optional and free: without an agent
 * (the program was not started by `gpreempt run`) each call returns -ENOTCONN at once and changes nothing. With an
 * agent, what is set is remembered and told to a daemon that comes later (0); a hint, and what holds now, need one
 * (-ENOTCONN). Thread-safe; never blocks, never exits, never prints. Not to be called from signal handlers.
 *
 * A queue is named by its hsa_queue_t pointer (or a HIP stream's, as the runtime gives it); NULL means the whole
 * process. Every function returns 0 or a negative errno: -ENOTCONN (no agent or no daemon), -EINVAL (out of range),
 * -ENOENT (no such queue).
 */
#ifndef GPREEMPT_H
#define GPREEMPT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPREEMPT_IDLE     0
#define GPREEMPT_LOW      20
#define GPREEMPT_NORMAL   50
#define GPREEMPT_HIGH     80
#define GPREEMPT_REALTIME 99

/* 0..99, higher is more urgent. The daemon may cut it down to the user's ceiling: gpreempt_get() tells what holds. */
int gpreempt_set_priority(const void *queue, int priority);
int gpreempt_set_weight(const void *queue, unsigned weight); /* share among equals under wfq: 1..10000 */
/* Policy edf: work is due deadline_ns after it arrives and needs budget_ns of the device (0: not tested). 0: none.
 * Neither may exceed an hour. */
int gpreempt_set_deadline(const void *queue, uint64_t deadline_ns, uint64_t budget_ns);
/* Queues of one gang open and close together on all devices. NULL or "": none. At most 63 bytes. */
int gpreempt_set_gang(const char *name);

/* Work arrives on this queue in so many nanoseconds: what is less urgent is put aside before that. 0: now. On CUDA: to
 * be called 250 to 800 us ahead, by a thread that has the context current, or by one that has none where the process
 * uses one primary context; the first call in a context takes milliseconds. */
int gpreempt_hint(const void *queue, uint64_t in_ns);

struct gpreempt_state {
	uint32_t size; /* set by the caller to sizeof(struct gpreempt_state) */
	int32_t priority;
	uint32_t weight;
	uint32_t connected; /* 1: a daemon schedules this process */
	uint32_t mechanism; /* enum gp_mechanism of wire.h */
	uint32_t queue_count, closed_count;
	uint32_t reserved;
	uint64_t deadline_ns, budget_ns;
};
int gpreempt_get(struct gpreempt_state *ret_state);

#ifdef __cplusplus
}
#endif

#endif
