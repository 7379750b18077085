/* SPDX-License-Identifier: MIT */
/*
 * What the fence of a doorbell is for, on this processor: two threads, one rings and one arms at the same time, over
 * and over; how often neither the one saw the flag nor the other the value. With nobody making a fence that happens;
 * with the barrier of whoever arms, and with the doorbell's own, it must not.
 */
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "agent/edges.h"

#define ROUNDS 200000u
#define SPINS  20000u /* then the other is not running: let it */

enum way { WAY_NONE, WAY_BARRIER, WAY_LOCKED };

static struct {
	_Alignas(64) struct gp_page_queue queue;
	_Alignas(64) uint32_t ringer, armer; /* rounds begun */
	_Alignas(64) uint32_t told;
	enum way way;
} edges;

static void meet(uint32_t *mine, const uint32_t *other, uint32_t round)
{
	__atomic_store_n(mine, round, __ATOMIC_SEQ_CST);
	for (uint32_t spins = 0; __atomic_load_n(other, __ATOMIC_SEQ_CST) < round; spins++)
		if (spins % SPINS == SPINS - 1u)
			sched_yield();
}

/* The two do not begin at quite the same moment: now the one is ahead, now the other. */
static void wait_a_little(uint32_t round, uint32_t by)
{
	for (volatile uint32_t i = round / by % 16u; i; i--)
		;
}

static void *ring(void *unused)
{
	(void)unused;
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		bool tell;

		meet(&edges.ringer, &edges.armer, 2u * i);
		wait_a_little(i, 1);
		if (edges.way == WAY_LOCKED) {
			tell = gp_edge_busy(&edges.queue, i);
		} else {
			gp_edge_own(&edges.queue.owned, i);
			tell = gp_edge_tell(&edges.queue.armed, GP_ARMED_BUSY);
		}
		__atomic_store_n(&edges.told, tell, __ATOMIC_SEQ_CST);
		meet(&edges.ringer, &edges.armer, 2u * i + 1u);
	}
	return NULL;
}

static uint32_t lost(enum way way)
{
	uint32_t count = 0;
	pthread_t thread;

	edges.queue = (struct gp_page_queue){ 0 };
	edges.ringer = edges.armer = 0;
	edges.way = way;
	if (pthread_create(&thread, NULL, ring, NULL))
		return UINT32_MAX;
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		uint64_t looked;

		__atomic_store_n(&edges.queue.armed, 0, __ATOMIC_SEQ_CST);
		meet(&edges.armer, &edges.ringer, 2u * i);
		wait_a_little(i, 16);
		__atomic_store_n(&edges.queue.armed, GP_ARMED_BUSY, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (way == WAY_BARRIER)
			syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
		looked = gp_page_announced(&edges.queue);
		meet(&edges.armer, &edges.ringer, 2u * i + 1u);
		count += looked < i && !__atomic_load_n(&edges.told, __ATOMIC_SEQ_CST);
	}
	pthread_join(thread, NULL);
	return count;
}

static double barrier_ns(int command)
{
	struct timespec from, to;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (uint32_t i = 0; i < 10000u; i++)
		syscall(SYS_membarrier, command, 0, 0);
	clock_gettime(CLOCK_MONOTONIC, &to);
	return ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / 1e4;
}

int main(void)
{
	printf("edges lost in %u rounds: %u with no fence at the doorbell, %u with its own\n", ROUNDS, lost(WAY_NONE),
	       lost(WAY_LOCKED));
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) ||
	    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0)) {
		printf("membarrier is refused here\n");
		return 0;
	}
	printf("  %u with the barrier of whoever arms\n", lost(WAY_BARRIER));
	printf("a barrier: %.0f ns of the own process, %.0f ns of all that are registered\n",
	       barrier_ns(MEMBARRIER_CMD_PRIVATE_EXPEDITED), barrier_ns(MEMBARRIER_CMD_GLOBAL_EXPEDITED));
	return 0;
}
