/* SPDX-License-Identifier: MIT */
/*
 * What the agent adds to a doorbell and to a wait, in the application's thread: a table of the runtime's shape whose
 * functions do nothing, called with and without the agent's hooks, in turns. The figure is the median of the
 * differences. What an edge costs (the eventfd is written) is shown apart, as it happens once per idle period.
 */
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "agent/agent.h"
#include "agent/fds.h"
#include "agent/kfd/hsa.h"

#define ROUNDS 301u
#define CALLS  100000u
#define EDGES  1000u

bool OnLoad(struct gp_hsa_root *root, uint64_t version, uint64_t failed_count, const char *const *failed);

struct signal {
	int64_t kind, value;
	uint64_t words[4], queue;
};
static union {
	struct gp_hsa_table table;
	uint64_t words[2 + 125];
} core;
static union {
	struct gp_hsa_table table;
	uint64_t words[2 + 60];
} ext;
static _Alignas(64) uint64_t queue[512];
static struct signal doorbell = { .kind = -1, .queue = (uintptr_t)queue };
static volatile int64_t sink;

static void real_store(uint64_t signal, int64_t value)
{
	(void)signal;
	sink = value; /* as the runtime: one store to the device */
}

static int64_t real_wait(uint64_t signal, uint32_t condition, int64_t value, uint64_t timeout, uint32_t state)
{
	(void)condition;
	(void)timeout;
	(void)state;
	return value + (int64_t)signal;
}

static uint32_t real_info(uint32_t attribute, uint16_t *ret_value)
{
	*ret_value = 1;
	return attribute > 1u;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

typedef void (*store_t)(uint64_t, int64_t);
typedef int64_t (*wait_t)(uint64_t, uint32_t, int64_t, uint64_t, uint32_t);

/* The write index moves as a producer moves it, so that each doorbell announces one packet more. */
static double stores(store_t store)
{
	uint64_t start = now_ns();

	for (uint32_t i = 0; i < CALLS; i++) {
		queue[7]++;
		store((uintptr_t)&doorbell, (int64_t)(queue[7] - 1u));
	}
	return (double)(now_ns() - start) / CALLS;
}

static double waits(wait_t wait)
{
	uint64_t start = now_ns();

	for (uint32_t i = 0; i < CALLS; i++)
		sink = wait(0, 0, (int64_t)i, 0, 0);
	return (double)(now_ns() - start) / CALLS;
}

static double edges(store_t store)
{
	struct gp_page_queue *page = &gp_page_now->queues[0];
	uint64_t start = now_ns();

	for (uint32_t i = 0; i < EDGES; i++) {
		__atomic_store_n(&page->armed, GP_ARMED_BUSY, __ATOMIC_SEQ_CST);
		queue[7]++;
		store((uintptr_t)&doorbell, (int64_t)(queue[7] - 1u));
	}
	return (double)(now_ns() - start) / EDGES;
}

static double least(const double *values)
{
	double best = values[0];

	for (uint32_t i = 1; i < ROUNDS; i++)
		best = values[i] < best ? values[i] : best;
	return best;
}

int main(void)
{
	static struct gp_hsa_root root = { { 2, sizeof(root), 0, 0 }, &core.table, &ext.table };
	double bare[ROUNDS], with[ROUNDS], wait_bare[ROUNDS], wait_with[ROUNDS], edge[ROUNDS], fenced[ROUNDS];
	/* Not known to the compiler: the runtime's function is called through a table too. */
	store_t volatile direct = real_store;
	wait_t volatile direct_wait = real_wait;
	store_t store;
	wait_t wait;

	core.table = (struct gp_hsa_table){ .major = 2, .minor = sizeof(core) };
	ext.table = (struct gp_hsa_table){ .major = 2, .minor = sizeof(ext) };
	core.table.functions[2] = real_info;
	core.table.functions[41] = core.table.functions[42] = real_store;
	core.table.functions[43] = core.table.functions[44] = real_wait;
	OnLoad(&root, 1, 0, NULL);
	memcpy(&store, &core.table.functions[42], sizeof(store));
	memcpy(&wait, &core.table.functions[44], sizeof(wait));
	if (gp_page_reserve() < 0 || !gp_slot_add((uintptr_t)queue) ||
	    gp_fd_take(GP_FD_DOORBELL, eventfd(0, EFD_NONBLOCK)) < 0 ||
	    gp_fd_take(GP_FD_WAKE, eventfd(0, EFD_NONBLOCK)) < 0)
		return 1;
	stores(store); /* seen from now on; warm */
	for (uint32_t i = 0; i < ROUNDS; i++)
		fenced[i] = stores(store);
	gp_fence_register();
	gp_fence_settle();
	for (uint32_t i = 0; i < ROUNDS; i++) {
		bare[i] = stores(direct);
		with[i] = stores(store);
		wait_bare[i] = waits(direct_wait);
		wait_with[i] = waits(wait);
		edge[i] = edges(store);
	}
	printf("doorbell: %.1f ns without the agent, %.1f ns with it: %.1f ns added (aim: 20)\n", least(bare),
	       least(with), least(with) - least(bare));
	printf("doorbell with a fence of its own (no membarrier, or an older daemon): %.1f ns added\n",
	       least(fenced) - least(bare));
	printf("wait, nobody armed: %.1f ns added\n", least(wait_with) - least(wait_bare));
	printf("doorbell that is an edge (eventfd written): %.0f ns\n", least(edge));
	return 0;
}
