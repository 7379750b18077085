/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The preemption budget: a bucket of transaction time that fills at overhead_permille of device time. Each preempting
 * plan pays for closing and for opening again, so that the share of the device lost to preemption is bounded whatever
 * the arrivals do. */
#include "core/state.h"

static int64_t budget_cost_ns(const struct gp_device *device, uint32_t transaction_count)
{
	return (int64_t)((device->attr.close_ns + device->attr.open_ns) * transaction_count);
}

static void budget_fill(struct gp_sched *sched, struct gp_device *device)
{
	uint64_t elapsed_ns = sched->now_ns - device->tokens_mark_ns;
	uint64_t gain_ns;
	int64_t limit_ns = budget_cost_ns(device, device->param.burst);

	if (elapsed_ns > GP_DURATION_NS_MAX)
		elapsed_ns = GP_DURATION_NS_MAX;
	gain_ns = elapsed_ns * device->param.overhead_permille / 1000;
	/* Time too short for a whole nanosecond of gain is kept for the next look. */
	device->tokens_mark_ns = sched->now_ns - (elapsed_ns - gain_ns * 1000 / device->param.overhead_permille);
	device->tokens_ns += (int64_t)gain_ns;
	if (device->tokens_ns > limit_ns)
		device->tokens_ns = limit_ns;
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
	gp_device_wake(device, sched->now_ns + (uint64_t)missing_ns * 1000 / device->param.overhead_permille + 1);
	return false;
}

void gp_budget_pay(struct gp_device *device, uint32_t transaction_count)
{
	device->tokens_ns -= budget_cost_ns(device, transaction_count);
}
