/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* hpf: highest priority first. Queues at the top run beside each other; all below take turns among equals, so that the
 * core has one client to stop for the top. The core's ageing keeps strict priority from starving any queue. */
#include "core/policy/list.h"

static int64_t hpf_rank(const struct gp_policy_queue *queue)
{
	return queue->priority;
}

static bool hpf_is_batch(const struct gp_policy_queue *queue)
{
	return queue->priority < queue->priority_top;
}

const struct gp_policy gp_policy_hpf = {
	.name = "hpf",
	.summary = "highest priority first, with ageing",
	.gates = true,
	.rank = hpf_rank,
	.is_batch = hpf_is_batch,
};
