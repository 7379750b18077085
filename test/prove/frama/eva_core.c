/* SPDX-License-Identifier: MIT */
/* Frama-C EVA: the real budget and learning arithmetic, over every value that the interface lets in, as intervals. Its
 * alarms are compared with a kept list (eva.expected): each of them is an imprecision of intervals, with the reason
 * beside it; a new one fails. */
#include "core/calls.h"
#include "core/budget.c"
#include "core/learn.c"
#include <__fc_builtin.h>

#define U64 Frama_C_unsigned_long_long_interval
#define U32 Frama_C_unsigned_int_interval

static struct gp_queue queue;
static struct gp_sched sched;
static struct gp_device device;

static void eva_learn(void)
{
	uint32_t i;

	for (i = 0; i < GP_GAP_BUCKETS; i++)
		queue.gaps[i] = (uint16_t)U32(0, 1024);
	queue.packet_ns = U64(0, GP_NS_MAX);
	queue.busy_ns = U64(0, GP_NS_MAX);
	queue.last_done_ns = U64(0, GP_NS_MAX);
	queue.busy_since_ns = U64(0, GP_NS_MAX);
	queue.written = U64(0, UINT64_MAX);
	queue.completed = U64(0, UINT64_MAX);
	queue.gate = (enum gp_gate)U32(0, 5);
	gp_learn_gap(&queue, U64(0, GP_NS_MAX));
	(void)gp_learn_linger_ns(&queue, U64(0, 3 * GP_DURATION_NS_MAX), U64(0, GP_DURATION_NS_MAX));
	gp_learn_done(&queue, U64(1, UINT64_MAX), U64(0, GP_NS_MAX));
	gp_learn_busy(&queue, U64(0, GP_NS_MAX));
	(void)gp_learn_rest_ns(&queue, U64(0, GP_NS_MAX));
}

static void eva_budget(void)
{
	sched.now_ns = U64(0, GP_NS_MAX - 1);
	device.attr.close_ns = U64(0, GP_DURATION_NS_MAX);
	device.attr.open_ns = U64(0, GP_DURATION_NS_MAX);
	device.param.burst = U32(1, GP_BURST_MAX);
	device.param.overhead_permille = U32(1, 1000);
	device.tokens_ns = Frama_C_long_long_interval(-BUDGET_NS_MAX, BUDGET_NS_MAX);
	device.tokens_part = U32(0, 999);
	device.tokens_mark_ns = U64(0, GP_NS_MAX - 1);
	device.wake_ns = GP_NEVER_NS;
	(void)gp_budget_can_pay(&sched, &device, U32(0, GP_QUEUE_MAX));
	gp_budget_pay(&device, U32(0, GP_QUEUE_MAX));
}

int main(void)
{
	eva_learn();
	eva_budget();
	return 0;
}
