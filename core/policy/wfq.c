/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * wfq: weighted fair device time. Each seat has a virtual time that advances by the time it ran over its weight; the
 * next is the one whose request would be over first if it ran from there. One that gets work and has had no more than
 * the one that runs ends that one's turn at once, if its request would be over first: so a short request, or a large
 * weight, waits for nobody's turn, and nobody gets more than its share by pausing.
 */
#include "core/policy/list.h"

#define WFQ_KEY_MAX (UINT64_MAX / 2) /* it does not run over, however many clients a user has */

/* The clients of one user share one weight. */
static uint64_t wfq_virtual_ns(const struct gp_policy_seat *seat, uint64_t ran_ns)
{
	if (ran_ns > GP_DURATION_NS_MAX)
		ran_ns = GP_DURATION_NS_MAX;
	return ran_ns * GP_WEIGHT_DEFAULT * seat->user_seats / seat->weight;
}

static uint64_t wfq_order(const struct gp_policy_seat *seat)
{
	return seat->key + wfq_virtual_ns(seat, seat->request_ns);
}

static uint64_t wfq_yield_ns(const struct gp_policy_seat *holder, const struct gp_policy_seat *waiter)
{
	/* What runs longer than its requests used to is making its next one. */
	uint64_t rest_ns = holder->request_ns - holder->turn_used_ns % holder->request_ns;

	if (waiter->key > holder->key) { /* it had more; when they are level it is asked again */
		uint64_t lead_ns = waiter->key - holder->key;

		if (lead_ns > GP_DURATION_NS_MAX)
			lead_ns = GP_DURATION_NS_MAX;
		return lead_ns * holder->weight / GP_WEIGHT_DEFAULT / holder->user_seats + 1;
	}
	return wfq_order(waiter) < holder->key + wfq_virtual_ns(holder, rest_ns) ? 0 : rest_ns;
}

/* Copies too: who only copies has the turn as others have it, and one that is never charged would keep it. */
static void wfq_charge(struct gp_policy_seat *seat, enum gp_kind kind, uint64_t ran_ns)
{
	uint64_t more = wfq_virtual_ns(seat, ran_ns);

	seat->key = seat->key < WFQ_KEY_MAX - more ? seat->key + more : WFQ_KEY_MAX;
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
	.yield_ns = wfq_yield_ns,
	.charge = wfq_charge,
	.join = wfq_join,
};
