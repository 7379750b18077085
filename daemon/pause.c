/* SPDX-License-Identifier: MIT */
/*
 * Owns the time in which the daemon stood still: it was stopped (SIGSTOP, a debugger), or the machine did not run it.
 * The clock goes on meanwhile, but the daemon's own threads and perhaps the programs do not: nobody is late because of
 * such a time. So it is missing in the core's time, and no call into a driver counts as hanging for it. A little of
 * each pause counts: on a machine that hardly runs the daemon, who does not answer must still be given up on.
 *
 * The decision thread finds it between two looks at the clock, unless it sleeps. A sleep ends when the loop's timer is
 * due. While orders are under way the pulse lets no sleep be long.
 */
#include "daemon/daemon.h"
#include "lib/worker.h"

#define PAUSE_PART 8u /* of answer_timeout: a shorter time is no pause … */
/* … and neither is this: several portions of the daemon's work (fair.c). Each longer time than the second one is: an
 * eighth of the second after which a call into a driver counts as hanging. All chosen. */
#define PAUSE_LEAST_NS 2500000ull
#define PAUSE_MOST_NS  125000000ull
#define PAUSE_COUNTED  4u   /* this part of the shortest pause counts of any: the core's time never stops; chosen */
#define PAUSE_KEPT     256u /* the last pauses, for the times of past events; chosen */

/* Only the decision thread's, of which a process has one. */
static uint64_t pause_seen_ns, pause_sum_ns, pause_count, pause_end_ns;
static struct pause {
	uint64_t at_ns, ns; /* when, by gp_running_ns(); how much of it is missing */
} pause_last[PAUSE_KEPT];

static uint64_t pause_part_ns(const struct gp_daemon *daemon)
{
	uint64_t part_ns = daemon->config.answer_ns / PAUSE_PART;

	if (part_ns > PAUSE_MOST_NS)
		return PAUSE_MOST_NS;
	return part_ns > PAUSE_LEAST_NS ? part_ns : PAUSE_LEAST_NS;
}

static void pause_look(const struct gp_daemon *daemon, uint64_t now_ns)
{
	uint64_t gap_ns = now_ns - pause_seen_ns, part_ns = pause_part_ns(daemon);

	if (pause_seen_ns && gap_ns > part_ns) {
		gap_ns -= part_ns / PAUSE_COUNTED;
		pause_last[pause_count++ % PAUSE_KEPT] = (struct pause){ pause_seen_ns - pause_sum_ns, gap_ns };
		pause_sum_ns += gap_ns;
		pause_end_ns = now_ns;
		gp_worker_paused(gap_ns);
	}
	pause_seen_ns = now_ns;
}

void gp_pause_slept(const struct gp_daemon *daemon)
{
	uint64_t now_ns = gp_now_ns(), due_ns = daemon->loop.armed_ns;

	if (!due_ns || due_ns > now_ns)
		pause_seen_ns = now_ns;
	else if (due_ns > pause_seen_ns)
		pause_seen_ns = due_ns;
	pause_look(daemon, now_ns);
}

uint64_t gp_running_ns(const struct gp_daemon *daemon)
{
	uint64_t now_ns = gp_now_ns();

	pause_look(daemon, now_ns);
	return now_ns - pause_sum_ns;
}

uint64_t gp_running_at_ns(uint64_t running_ns)
{
	return running_ns + pause_sum_ns;
}

uint64_t gp_running_was_ns(uint64_t running_ns)
{
	uint64_t sum_ns = pause_sum_ns;

	for (uint64_t i = pause_count; i && i + PAUSE_KEPT > pause_count; i--) {
		const struct pause *pause = &pause_last[(i - 1) % PAUSE_KEPT];

		if (pause->at_ns < running_ns)
			break;
		sum_ns -= pause->ns;
	}
	return running_ns + sum_ns;
}

bool gp_pause_since(uint64_t real_ns)
{
	return pause_end_ns > real_ns;
}

void gp_pause_ordered(struct gp_daemon *daemon)
{
	gp_timer_sooner(daemon, &daemon->core.pulse, gp_now_ns() + pause_part_ns(daemon));
}

/* Orders that the core gave up do not count: their clients may never answer. */
void gp_pause_pulse(struct gp_daemon *daemon, uint64_t now_ns)
{
	(void)now_ns;
	for (uint32_t i = 0; i < daemon->device_count; i++)
		for (const struct gp_queue_entry *q = daemon->devices[i].queues; q; q = q->device_next)
			if (q->is_ordered && q->plan_seq && q->plan_seq == q->order_seq) {
				gp_pause_ordered(daemon);
				return;
			}
}
