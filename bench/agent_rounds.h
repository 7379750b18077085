/* SPDX-License-Identifier: MIT */
/*
 * A program that launches in bursts whenever it is told to, so that bench/agent-launches can let several of them take
 * turns. Each line on standard input asks for a round; the answer is ns per launch: the median burst by the clock, and
 * by the launching thread's CPU time.
 *
 * The launching thread has a core to itself where that is allowed, so that other work on the machine does not decide.
 */
#ifndef BENCH_AGENT_ROUNDS_H
#define BENCH_AGENT_ROUNDS_H

#include <sched.h>
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

/* burst() makes so many launches; drain() waits for them. */
static inline void rounds_serve(unsigned launches, void (*burst)(void), void (*drain)(void))
{
	static double wall[ROUNDS_BURSTS], cpu[ROUNDS_BURSTS];
	char line[64];

	rounds_settle();
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		for (int i = 0; i < ROUNDS_BURSTS; i++) {
			uint64_t thread = rounds_ns(CLOCK_THREAD_CPUTIME_ID), start = rounds_ns(CLOCK_MONOTONIC);

			burst();
			wall[i] = (double)(rounds_ns(CLOCK_MONOTONIC) - start) / launches;
			cpu[i] = (double)(rounds_ns(CLOCK_THREAD_CPUTIME_ID) - thread) / launches;
			drain();
		}
		qsort(wall, ROUNDS_BURSTS, sizeof(wall[0]), rounds_compare);
		qsort(cpu, ROUNDS_BURSTS, sizeof(cpu[0]), rounds_compare);
		printf("%.2f %.2f\n", wall[ROUNDS_BURSTS / 2], cpu[ROUNDS_BURSTS / 2]);
		fflush(stdout);
	}
}

#endif
