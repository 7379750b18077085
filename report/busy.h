/* SPDX-License-Identifier: MIT */
/* The union of intervals that come in the order of their starts. Sums of overlapping intervals say nothing about time;
 * this is what takes their place everywhere. */
#ifndef GP_REPORT_BUSY_H
#define GP_REPORT_BUSY_H

#include <stdbool.h>
#include <stdint.h>

#define GP_BUSY_HISTORY 512u /* stretches that are remembered for gp_busy_between() */

struct busy_stretch {
	uint64_t start_ns, end_ns;
};

struct gp_busy {
	bool is_used;
	uint64_t closed_ns; /* total of the stretches that are over */
	uint64_t start_ns, end_ns;
	uint64_t first_ns;
	struct busy_stretch *history; /* NULL: none is kept */
	uint64_t stretch_count;       /* closed ones */
};

void gp_busy_init(struct gp_busy *busy);
int gp_busy_init_history(struct gp_busy *busy); /* -ENOMEM */
void gp_busy_fini(struct gp_busy *busy);
/* Starts never go back. Returns how much of the interval was new. */
uint64_t gp_busy_add(struct gp_busy *busy, uint64_t start_ns, uint64_t end_ns);
static inline uint64_t gp_busy_total(const struct gp_busy *busy)
{
	return busy->is_used ? busy->closed_ns + (busy->end_ns - busy->start_ns) : 0;
}
/* Busy time up to a point that is not before the start added last. */
static inline uint64_t gp_busy_until(const struct gp_busy *busy, uint64_t to_ns)
{
	uint64_t end_ns = to_ns < busy->end_ns ? to_ns : busy->end_ns;

	return !busy->is_used ? 0 : busy->closed_ns + (end_ns > busy->start_ns ? end_ns - busy->start_ns : 0);
}
/* Busy time between two points, the later of which is not behind the last start added. What lies further back than the
 * history counts as not busy, so this is a lower bound. Needs a history. */
uint64_t gp_busy_between(const struct gp_busy *busy, uint64_t from_ns, uint64_t to_ns);

#endif
