/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* drf: dominant resource fairness over compute time, copy time and memory: the seat whose largest share (over its
 * weight) is smallest is next. Memory is accounted, never gated. The clients of one user share one weight: a user who
 * starts more clients gets no more. */
#include "core/policy/list.h"

#define DRF_SHARE_MAX 1000000000ull /* so that no product overflows: a thousand devices */

static uint64_t drf_share_ppm(uint64_t used_ns, uint64_t present_ns)
{
	uint64_t unit = present_ns / 1000000;

	return unit ? used_ns / unit : 0;
}

static uint64_t drf_order(const struct gp_policy_seat *seat)
{
	uint64_t share = drf_share_ppm(seat->compute_ns, seat->present_ns);
	uint64_t copy = drf_share_ppm(seat->copy_ns, seat->present_ns);

	if (copy > share)
		share = copy;
	if (seat->memory_ppm > share)
		share = seat->memory_ppm;
	if (share > DRF_SHARE_MAX)
		share = DRF_SHARE_MAX;
	return share * GP_WEIGHT_DEFAULT * seat->user_seats / seat->weight;
}

const struct gp_policy gp_policy_drf = {
	.name = "drf",
	.summary = "smallest dominant share of compute, copy and memory first",
	.gates = true,
	.order = drf_order,
	.order_falls = true,
};
