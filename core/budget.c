/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The preemption budget: a bucket of transaction time that fills at overhead_permille of device time. Each preempting
 * plan pays for closing and for opening again, so that the share of the device lost to preemption is bounded whatever
 * the arrivals do. Exact: what is too little for a whole nanosecond is kept. */
#include "core/state.h"

/* A look after longer than this counts as one after this, so that no product overflows. */
#define BUDGET_LOOK_NS_MAX GP_DURATION_NS_MAX
/* The fullest bucket there can be, and the deepest debt that is remembered. */
#define BUDGET_NS_MAX ((int64_t)(2 * GP_DURATION_NS_MAX * GP_BURST_MAX))

/* At most GP_QUEUE_MAX transactions. */
static int64_t budget_cost_ns(const struct gp_device *device, uint32_t transaction_count)
{
	return (int64_t)((device->attr.close_ns + device->attr.open_ns) * transaction_count);
}

/* In thousandths of a nanosecond, with what was left over. */
static uint64_t budget_gain(const struct gp_device *device, uint64_t elapsed_ns)
{
	if (elapsed_ns > BUDGET_LOOK_NS_MAX)
		elapsed_ns = BUDGET_LOOK_NS_MAX;
	return elapsed_ns * device->param.overhead_permille + device->tokens_part;
}

static void budget_fill(struct gp_sched *sched, struct gp_device *device)
{
	uint64_t gain = budget_gain(device, sched->now_ns - device->tokens_mark_ns);
	int64_t limit_ns = budget_cost_ns(device, device->param.burst);

	device->tokens_mark_ns = sched->now_ns;
	device->tokens_ns += (int64_t)(gain / 1000);
	device->tokens_part = (uint32_t)(gain % 1000);
	if (device->tokens_ns >= limit_ns) {
		device->tokens_ns = limit_ns;
		device->tokens_part = 0;
	}
}

/* How long it takes to gain so much; but after BUDGET_LOOK_NS_MAX somebody must look, or what is gained later is lost.
 */
static uint64_t budget_wait_ns(const struct gp_device *device, uint64_t missing_ns)
{
	uint32_t permille = device->param.overhead_permille;
	uint64_t wait_ns = BUDGET_LOOK_NS_MAX;

	if (missing_ns < BUDGET_LOOK_NS_MAX)
		wait_ns = (missing_ns * 1000 - device->tokens_part + permille - 1) / permille;
	return wait_ns < BUDGET_LOOK_NS_MAX ? wait_ns : BUDGET_LOOK_NS_MAX;
}

bool gp_budget_can_pay(struct gp_sched *sched, struct gp_device *device, uint32_t transaction_count)
{
	int64_t missing_ns;

	if (device->param.overhead_permille >= 1000)
		return true;
	budget_fill(sched, device);
	/* A plan dearer than the whole bucket may go into debt from a full bucket: it must be possible at all. */
	if (transaction_count > device->param.burst)
		transaction_count = device->param.burst;
	missing_ns = budget_cost_ns(device, transaction_count) - device->tokens_ns;
	if (missing_ns <= 0)
		return true;
	gp_device_wake(device, sched->now_ns + budget_wait_ns(device, (uint64_t)missing_ns));
	return false;
}

void gp_budget_pay(struct gp_device *device, uint32_t transaction_count)
{
	if (device->param.overhead_permille >= 1000)
		return; /* nothing fills it, and nobody asks */
	device->tokens_ns -= budget_cost_ns(device, transaction_count);
	if (device->tokens_ns < -BUDGET_NS_MAX)
		device->tokens_ns = -BUDGET_NS_MAX;
}
