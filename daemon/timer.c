/* SPDX-License-Identifier: MIT */
/* Owns the heap of timers. A timer belongs to the noun that sets it. */
#include "daemon/daemon.h"

static void timer_put(struct gp_timers *timers, uint32_t place, struct gp_timer *timer)
{
	timers->heap[place] = timer;
	timer->place = place;
}

static void timer_up(struct gp_timers *timers, uint32_t place, struct gp_timer *timer)
{
	for (; place && timers->heap[(place - 1) / 2]->at_ns > timer->at_ns; place = (place - 1) / 2)
		timer_put(timers, place, timers->heap[(place - 1) / 2]);
	timer_put(timers, place, timer);
}

static void timer_down(struct gp_timers *timers, uint32_t place, struct gp_timer *timer)
{
	for (uint32_t child = 2 * place + 1; child < timers->count; child = 2 * place + 1) {
		child += child + 1 < timers->count && timers->heap[child + 1]->at_ns < timers->heap[child]->at_ns;
		if (timers->heap[child]->at_ns >= timer->at_ns)
			break;
		timer_put(timers, place, timers->heap[child]);
		place = child;
	}
	timer_up(timers, place, timer);
}

void gp_timer_set(struct gp_daemon *daemon, struct gp_timer *timer, uint64_t at_ns)
{
	struct gp_timers *timers = &daemon->loop.timers;
	struct gp_timer *last;

	if (timer->at_ns == at_ns)
		return;
	if (!timer->at_ns) {
		GP_ASSERT(timers->count < GP_TIMER_MAX); /* there are fewer timers */
		timer->at_ns = at_ns;
		timer_up(timers, timers->count++, timer);
		return;
	}
	GP_ASSERT(timers->heap[timer->place] == timer);
	timer->at_ns = at_ns;
	if (at_ns) {
		timer_down(timers, timer->place, timer);
		return;
	}
	last = timers->heap[--timers->count];
	if (last != timer)
		timer_down(timers, timer->place, last);
}

void gp_timer_sooner(struct gp_daemon *daemon, struct gp_timer *timer, uint64_t at_ns)
{
	if (!timer->at_ns || at_ns < timer->at_ns)
		gp_timer_set(daemon, timer, at_ns);
}

bool gp_timer_expire(struct gp_daemon *daemon, struct gp_timer *timer, uint64_t now_ns)
{
	if (!timer->at_ns || now_ns < timer->at_ns)
		return false;
	gp_timer_set(daemon, timer, 0);
	return true;
}

/* Runs each timer that is due once. A timer that is set again meanwhile runs the next time. */
void gp_timers_run(struct gp_daemon *daemon, uint64_t now_ns)
{
	struct gp_timer *due[GP_TIMER_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; i < daemon->loop.timers.count; i++)
		if (daemon->loop.timers.heap[i]->due && daemon->loop.timers.heap[i]->at_ns <= now_ns)
			due[count++] = daemon->loop.timers.heap[i];
	for (uint32_t i = 0; i < count; i++)
		if (gp_timer_expire(daemon, due[i], now_ns))
			due[i]->due(daemon, now_ns);
}

uint64_t gp_timers_next_ns(const struct gp_timers *timers)
{
	return timers->count ? timers->heap[0]->at_ns : 0;
}
