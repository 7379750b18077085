/* SPDX-License-Identifier: MIT */
/* A log-linear histogram of durations: exact below 128 ns, then 64 buckets per power of two (error below 1.6 %).
 * Fixed size, no allocation. Written by hand because HdrHistogram is not in Debian and this is all we need of it. */
#ifndef GP_LIB_HIST_H
#define GP_LIB_HIST_H

#include <stdint.h>

#define GP_HIST_SUB     64u
#define GP_HIST_BUCKETS (GP_HIST_SUB * 40u) /* up to 2^45 ns, about 9 hours; longer values go into the last one */

struct gp_hist {
	uint64_t count, sum, min, max;
	uint32_t buckets[GP_HIST_BUCKETS];
};

void gp_hist_init(struct gp_hist *hist);
void gp_hist_add(struct gp_hist *hist, uint64_t value);
void gp_hist_merge(struct gp_hist *hist, const struct gp_hist *other);
/* The value below or at which permille/1000 of the samples lie (the bucket's upper end, never above max). 0 if
 * empty. */
uint64_t gp_hist_quantile(const struct gp_hist *hist, uint32_t permille);

#endif
