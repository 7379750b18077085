/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * edf: earliest deadline first. A queue with a deadline ranks by arrival + deadline, above all queues without one;
 * those rank by priority and take turns. Admission: the budgets over their deadlines may add up to 90 % of the device
 * (the rest is for preempting); the policy refuses a queue beyond that.
 */
#include "core/policy/list.h"

#define EDF_ADMIT_PPM 900000u

static int64_t edf_rank(const struct gp_policy_queue *queue)
{
	if (!queue->deadline_ns)
		return queue->priority;
	return (int64_t)(GP_NS_MAX + GP_NS_MAX / 2 - (queue->arrival_ns + queue->deadline_ns));
}

static bool edf_is_batch(const struct gp_policy_queue *queue)
{
	return !queue->deadline_ns && (queue->deadline_queue_count > 0 || queue->priority < queue->priority_top);
}

static int edf_admit(const struct gp_queue_attr *attr, uint64_t used_ppm)
{
	if (!attr->deadline_ns || !attr->budget_ns)
		return 0;
	return used_ppm + attr->budget_ns * 1000000 / attr->deadline_ns > EDF_ADMIT_PPM ? -EDQUOT : 0;
}

const struct gp_policy gp_policy_edf = {
	.name = "edf",
	.summary = "earliest deadline first, with an admission test",
	.gates = true,
	.rank = edf_rank,
	.is_batch = edf_is_batch,
	.admit = edf_admit,
};
