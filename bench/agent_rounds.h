/* SPDX-License-Identifier: MIT */
/*
 * A program that launches in bursts whenever it is told to, so that bench/agent-launches can let several of them take
 * turns. Each line on standard input asks for a round; the answer is ns per launch: the median burst by the clock, and
 * by the launching thread's CPU time. With bench/agent_toggle.c: first those of bursts with the agent's hooks, then
 * those of bursts without, which took turns.
 *
 * The launching thread has a core to itself where that is allowed, so that other work on the machine does not decide.
 */
#ifndef BENCH_AGENT_ROUNDS_H
#define BENCH_AGENT_ROUNDS_H

#include <dlfcn.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS_BURSTS 15

static inline uint64_t rounds_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline int rounds_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Threads that are there already stay where they are. */
static inline void rounds_settle(void)
{
	struct sched_param first = { .sched_priority = 1 };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)sysconf(_SC_NPROCESSORS_ONLN) - 1u, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
	(void)sched_setscheduler(0, SCHED_FIFO, &first);
}

struct rounds_figures {
	double wall[ROUNDS_BURSTS], cpu[ROUNDS_BURSTS];
};

static inline void rounds_burst(struct rounds_figures *figures, int at, void (*burst)(void), void (*drain)(void))
{
	uint64_t thread = rounds_ns(CLOCK_THREAD_CPUTIME_ID), start = rounds_ns(CLOCK_MONOTONIC);

	burst();
	figures->wall[at] = (double)(rounds_ns(CLOCK_MONOTONIC) - start);
	figures->cpu[at] = (double)(rounds_ns(CLOCK_THREAD_CPUTIME_ID) - thread);
	drain();
}

static inline void rounds_print(struct rounds_figures *figures, unsigned launches, char end)
{
	qsort(figures->wall, ROUNDS_BURSTS, sizeof(figures->wall[0]), rounds_compare);
	qsort(figures->cpu, ROUNDS_BURSTS, sizeof(figures->cpu[0]), rounds_compare);
	printf("%.2f %.2f%c", figures->wall[ROUNDS_BURSTS / 2] / launches, figures->cpu[ROUNDS_BURSTS / 2] / launches,
	       end);
}

/* burst() makes so many launches; drain() waits for them. */
static inline void rounds_serve(unsigned launches, void (*burst)(void), void (*drain)(void))
{
	static struct rounds_figures with, without;
	int (*hooks)(bool) = (int (*)(bool))dlsym(RTLD_DEFAULT, "gp_bench_hooks");
	char line[64];

	rounds_settle();
	if (hooks && hooks(true) != 4) {
		fprintf(stderr, "the agent has no hooks here\n");
		exit(1);
	}
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		for (int i = 0; i < 2 * ROUNDS_BURSTS; i++) {
			bool on = !hooks || (i ^ i >> 1) & 1;

			if (!hooks && i == ROUNDS_BURSTS)
				break;
			if (hooks)
				hooks(on);
			rounds_burst(on ? &with : &without, hooks ? i / 2 : i, burst, drain);
		}
		rounds_print(&with, launches, hooks ? ' ' : '\n');
		if (hooks)
			rounds_print(&without, launches, '\n');
		fflush(stdout);
	}
}

#endif
