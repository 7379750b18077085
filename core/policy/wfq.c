/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* wfq: weighted fair device time. Each seat has a virtual time that advances by the time it ran over its weight; the
 * smallest is next. */
#include "core/policy/list.h"

static uint64_t wfq_order(const struct gp_policy_seat *seat)
{
	return seat->key;
}

static void wfq_charge(struct gp_policy_seat *seat, enum gp_kind kind, uint64_t ran_ns)
{
	if (kind == GP_KIND_COMPUTE)
		seat->key += ran_ns * GP_WEIGHT_DEFAULT / seat->weight;
}

/* Idling earns no credit: whoever comes back starts with the least served of those present. */
static void wfq_join(struct gp_policy_seat *seat, uint64_t floor_key)
{
	if (seat->key < floor_key)
		seat->key = floor_key;
}

const struct gp_policy gp_policy_wfq = {
	.name = "wfq",
	.summary = "device time in proportion to weights",
	.gates = true,
	.order = wfq_order,
	.charge = wfq_charge,
	.join = wfq_join,
};
