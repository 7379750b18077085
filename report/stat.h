/* SPDX-License-Identifier: MIT */
/* Calls or kernels of one name: how many, how long, and how they spread. The first values are kept, so that quantiles
 * of few are exact; beyond, a small histogram (16 buckets per power of two: within 4 %), because a trace may have
 * thousands of names. */
#ifndef GP_REPORT_STAT_H
#define GP_REPORT_STAT_H

#include <stdbool.h>
#include <stdint.h>

#define GP_STAT_SUB     16u
#define GP_STAT_BUCKETS (GP_STAT_SUB * 41u) /* up to 2^45 ns; longer values share the last one */

#define GP_SPREAD_EXACT 256u

struct gp_spread {
	uint64_t count, sum_ns, min_ns, max_ns;
	uint64_t *values;               /* all of them, while there are few */
	uint32_t value_room, exact_max; /* exact_max: how many few are; 0: GP_SPREAD_EXACT */
	uint32_t buckets[GP_STAT_BUCKETS];
};
void gp_spread_add(struct gp_spread *spread, uint64_t value_ns); /* a spread begins as zeroes */
void gp_spread_fini(struct gp_spread *spread);
bool gp_spread_is_exact(const struct gp_spread *spread);
/* The smallest value that this share of all does not exceed, if they are kept; otherwise the middle of the bucket in
 * which that share ends, within min and max. 0 if empty. */
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
	bool first_is_blind;     /* it may have waited for work from before the trace */
	struct gp_spread *later; /* without engine time; made with the second call */
	/* kernels and copies */
	uint64_t size, sized_count, wait_count, wait_ns;
};

#define GP_STAT_MAX 16384u /* what comes beyond is not told apart */

struct gp_report_stats {
	uint32_t count;
	uint64_t folded; /* events beyond the maximum */
	struct gp_stat **stats;
	uint32_t *slots;
};
int gp_stats_init(struct gp_report_stats *stats); /* -ENOMEM */
void gp_stats_fini(struct gp_report_stats *stats);
/* NULL if there is no memory. */
struct gp_stat *gp_stats_get(struct gp_report_stats *stats, uint32_t name, uint32_t layer, uint32_t process);

#endif
