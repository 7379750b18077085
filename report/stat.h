/* SPDX-License-Identifier: MIT */
/* Calls or kernels of one name: how many, how long, and how they spread. A small histogram (16 buckets per power of
 * two: medians are within 4 %), because a trace may have thousands of names. */
#ifndef GP_REPORT_STAT_H
#define GP_REPORT_STAT_H

#include <stdbool.h>
#include <stdint.h>

#define GP_STAT_SUB     16u
#define GP_STAT_BUCKETS (GP_STAT_SUB * 41u) /* up to 2^45 ns; longer values share the last one */

struct gp_spread {
	uint64_t count, sum_ns, min_ns, max_ns;
	uint32_t buckets[GP_STAT_BUCKETS];
};
void gp_spread_add(struct gp_spread *spread, uint64_t value_ns); /* a spread begins as zeroes */
/* The middle of the bucket in which that share of the values ends, within min and max; exact below 32 ns and for one
 * value. 0 if empty. */
uint64_t gp_spread_quantile(const struct gp_spread *spread, uint32_t permille);

/* Sum of the values up to a limit, within 4 %. */
uint64_t gp_spread_sum_below(const struct gp_spread *spread, uint64_t limit_ns);

/* Found by a key of three numbers. */
struct gp_stat {
	uint32_t name, layer, process;
	struct gp_spread spread;
	uint64_t self_ns;
	/* The outermost calls only: what a first call cost, against the later ones. */
	uint64_t outer_count, first_ns, first_engine_ns, first_silent_ns;
	bool first_has_setup; /* something that happens once was called inside */
	uint32_t first_row, first_file;
	struct gp_spread *later; /* without engine time; made with the second call */
	/* kernels and copies */
	uint64_t size, sized_count, wait_count, wait_ns;
};

#define GP_STAT_MAX 16384u /* what comes beyond is not told apart */

struct gp_stats {
	uint32_t count;
	uint64_t folded; /* events beyond the maximum */
	struct gp_stat **stats;
	uint32_t *slots;
};
int gp_stats_init(struct gp_stats *stats); /* -ENOMEM */
void gp_stats_fini(struct gp_stats *stats);
/* NULL if there is no memory. */
struct gp_stat *gp_stats_get(struct gp_stats *stats, uint32_t name, uint32_t layer, uint32_t process);

#endif
