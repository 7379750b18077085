/* SPDX-License-Identifier: MIT */
/*
 * libgpreempt: what a program may tell the scheduler about itself. Everything is optional and free: without an agent
 * (the program was not started by `gpreempt run`) each call returns -ENOTCONN at once and changes nothing. With an
 * agent, a set call returns 0 even without a daemon: the agent remembers the value and tells it to a daemon that comes
 * later. gpreempt_hint() and gpreempt_get() need a daemon (-ENOTCONN). Thread-safe; never blocks, never exits, never
 * prints. Not to be called from signal handlers.
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

/* 0..99, higher is more urgent. The daemon may cut it down to the user's ceiling: gpreempt_get() returns the priority
 * in force. */
int gpreempt_set_priority(const void *queue, int priority);
int gpreempt_set_weight(const void *queue, unsigned weight); /* share among equals under wfq: 1..10000 */
/* Policy edf: work is due deadline_ns after it arrives and needs budget_ns of the device (budget 0: the policy does not
 * test that). Deadline 0: none. Neither may exceed an hour. */
int gpreempt_set_deadline(const void *queue, uint64_t deadline_ns, uint64_t budget_ns);
/* Queues of one gang open and close together on all devices. NULL or "": none. At most 63 bytes. */
int gpreempt_set_gang(const char *name);

/* Work arrives on this queue in so many nanoseconds: the scheduler puts less urgent work aside before that. 0: now. On
 * CUDA: call it 250 to 800 us ahead, from a thread with the context current, or from a thread without a context if the
 * process uses one primary context; the first call in a context takes milliseconds. */
int gpreempt_hint(const void *queue, uint64_t in_ns);

struct gpreempt_state {
	uint32_t size; /* set by the caller to sizeof(struct gpreempt_state) */
	int32_t priority;
	uint32_t weight;
	uint32_t connected; /* 1: a daemon schedules this process */
	uint32_t mechanism; /* enum gp_mechanism of mechanism.h */
	uint32_t queue_count, closed_count;
	uint32_t reserved;
	uint64_t deadline_ns, budget_ns;
};
int gpreempt_get(struct gpreempt_state *ret_state);

#ifdef __cplusplus
}
#endif

#endif
