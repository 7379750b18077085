/* SPDX-License-Identifier: MIT */
/* Owns the log-linear histogram: bucket numbers, counts, quantiles. Never allocates, never uses floats. */
#include <string.h>
#include "lib/hist.h"

#define HIST_SUB_SHIFT 6u /* GP_HIST_SUB = 1 << 6 */

_Static_assert(GP_HIST_SUB == 1u << HIST_SUB_SHIFT, "sub-buckets are a power of two");

/* Values below 2 * GP_HIST_SUB have a bucket each; above, a bucket is 2^shift wide, with 64 of them per power of
 * two. */
static uint32_t hist_bucket(uint64_t value)
{
	if (value < 2u * GP_HIST_SUB)
		return (uint32_t)value;

	uint32_t top_bit = 63u - (uint32_t)__builtin_clzll(value);
	uint32_t shift = top_bit - HIST_SUB_SHIFT;
	uint64_t bucket = (uint64_t)shift * GP_HIST_SUB + (value >> shift);

	return bucket < GP_HIST_BUCKETS ? (uint32_t)bucket : GP_HIST_BUCKETS - 1u;
}

static uint64_t hist_bucket_end(uint32_t bucket)
{
	if (bucket < 2u * GP_HIST_SUB)
		return bucket;

	uint32_t shift = bucket / GP_HIST_SUB - 1u;
	uint64_t mantissa = bucket - (uint64_t)shift * GP_HIST_SUB;

	return ((mantissa + 1u) << shift) - 1u;
}

/* Saturates: four billion samples in one bucket move a quantile no further. */
static uint32_t hist_sum_u32(uint32_t a, uint32_t b)
{
	return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

void gp_hist_init(struct gp_hist *hist)
{
	memset(hist, 0, sizeof(*hist));
}

void gp_hist_add(struct gp_hist *hist, uint64_t value)
{
	uint32_t bucket = hist_bucket(value);

	if (!hist->count || value < hist->min)
		hist->min = value;
	if (value > hist->max)
		hist->max = value;
	hist->count++;
	hist->sum = hist->sum > UINT64_MAX - value ? UINT64_MAX : hist->sum + value;
	hist->buckets[bucket] = hist_sum_u32(hist->buckets[bucket], 1u);
}

void gp_hist_merge(struct gp_hist *hist, const struct gp_hist *other)
{
	if (!other->count)
		return;
	if (!hist->count || other->min < hist->min)
		hist->min = other->min;
	if (other->max > hist->max)
		hist->max = other->max;
	hist->count += other->count;
	hist->sum = hist->sum > UINT64_MAX - other->sum ? UINT64_MAX : hist->sum + other->sum;
	for (uint32_t i = 0; i < GP_HIST_BUCKETS; i++)
		hist->buckets[i] = hist_sum_u32(hist->buckets[i], other->buckets[i]);
}

uint64_t gp_hist_quantile(const struct gp_hist *hist, uint32_t permille)
{
	if (!hist->count)
		return 0;
	if (permille >= 1000u)
		return hist->max;

	/* The smallest rank (from 1) that covers the share, without overflow for any count. */
	uint64_t rank = hist->count / 1000u * permille + (hist->count % 1000u * permille + 999u) / 1000u;
	uint64_t seen = 0;

	if (!rank)
		rank = 1;
	for (uint32_t i = 0; i < GP_HIST_BUCKETS - 1u; i++) {
		seen += hist->buckets[i];
		if (seen >= rank)
			return hist_bucket_end(i) < hist->max ? hist_bucket_end(i) : hist->max;
	}
	return hist->max;
}
