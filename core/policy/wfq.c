/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * wfq: weighted fair device time. Each seat has a virtual time that advances by the time it ran over its weight. The
 * next seat is the one whose request would be over first if it ran from there. A seat that gets work, has had no more
 * than the holder of the turn, and whose request would be over first, ends that turn at once. So a short request, or a
 * large weight, does not wait for a turn to end, and no seat gets more than its share by pausing.
 */
#include "core/policy/list.h"

#define WFQ_KEY_MAX (UINT64_MAX / 2) /* the sum does not overflow, however many clients a user has */

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
	/* A holder that runs longer than its requests used to has begun its next one. */
	uint64_t rest_ns = holder->request_ns - holder->turn_used_ns % holder->request_ns;

	if (waiter->key > holder->key) { /* the waiter has had more: the core asks again when they are level */
		uint64_t lead_ns = waiter->key - holder->key;

		if (lead_ns > GP_DURATION_NS_MAX)
			lead_ns = GP_DURATION_NS_MAX;
		return lead_ns * holder->weight / GP_WEIGHT_DEFAULT / holder->user_seats + 1;
	}
	return wfq_order(waiter) < holder->key + wfq_virtual_ns(holder, rest_ns) ? 0 : rest_ns;
}

/* Copies are charged too: a client that only copies holds the turn as others do, and would keep it if it were never
 * charged. */
static void wfq_charge(struct gp_policy_seat *seat, enum gp_kind kind, uint64_t ran_ns)
{
	uint64_t more = wfq_virtual_ns(seat, ran_ns);

	seat->key = seat->key < WFQ_KEY_MAX - more ? seat->key + more : WFQ_KEY_MAX;
}

/* Idling earns no credit: a seat that comes back starts with the least served of those present. */
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
