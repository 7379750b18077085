/* SPDX-License-Identifier: MIT */
/* When the daemon wants to be woken: its files have timers, the loop has a heap of those that are set. */
#ifndef GP_DAEMON_TIMER_H
#define GP_DAEMON_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#define GP_TIMER_MAX 32u
#define GP_TIMER_NOW 1u /* a time that is over: something has changed */

struct gp_daemon;

struct gp_timer {
	uint64_t at_ns; /* 0: not set */
	uint32_t place; /* in the heap */
	/* gp_timers_run() calls it when the time has come; the timer is off by then. NULL: its file checks it by
	 * itself. */
	void (*due)(struct gp_daemon *daemon, uint64_t now_ns);
};

struct gp_timers {
	struct gp_timer *heap[GP_TIMER_MAX];
	uint32_t count;
};

void gp_timer_set(struct gp_daemon *daemon, struct gp_timer *timer, uint64_t at_ns);    /* 0: off */
void gp_timer_sooner(struct gp_daemon *daemon, struct gp_timer *timer, uint64_t at_ns); /* if that is earlier */
/* True: its time has come, and the timer is off now. */
bool gp_timer_expire(struct gp_daemon *daemon, struct gp_timer *timer, uint64_t now_ns);
void gp_timers_run(struct gp_daemon *daemon, uint64_t now_ns);
uint64_t gp_timers_next_ns(const struct gp_timers *timers); /* 0: none is set */

#endif
