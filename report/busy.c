/* SPDX-License-Identifier: MIT */
/* Owns unions of intervals. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "report/busy.h"

void gp_busy_init(struct gp_busy *busy)
{
	memset(busy, 0, sizeof(*busy));
}

int gp_busy_init_history(struct gp_busy *busy)
{
	gp_busy_init(busy);
	busy->history = malloc(GP_BUSY_HISTORY * sizeof(*busy->history));
	return busy->history ? 0 : -ENOMEM;
}

void gp_busy_fini(struct gp_busy *busy)
{
	free(busy->history);
	memset(busy, 0, sizeof(*busy));
}

uint64_t gp_busy_add(struct gp_busy *busy, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t before = gp_busy_total(busy);

	if (!busy->is_used) {
		busy->is_used = true;
		busy->first_ns = busy->start_ns = start_ns;
		busy->end_ns = end_ns;
	} else if (start_ns <= busy->end_ns) {
		busy->end_ns = end_ns > busy->end_ns ? end_ns : busy->end_ns;
	} else {
		if (busy->history)
			busy->history[busy->stretch_count % GP_BUSY_HISTORY] =
				(struct busy_stretch){ busy->start_ns, busy->end_ns };
		busy->stretch_count++;
		busy->closed_ns += busy->end_ns - busy->start_ns;
		busy->start_ns = start_ns;
		busy->end_ns = end_ns;
	}
	return gp_busy_total(busy) - before;
}

static uint64_t busy_overlap(uint64_t a_start, uint64_t a_end, uint64_t b_start, uint64_t b_end)
{
	uint64_t start = a_start > b_start ? a_start : b_start, end = a_end < b_end ? a_end : b_end;

	return end > start ? end - start : 0;
}

uint64_t gp_busy_between(const struct gp_busy *busy, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t sum;

	if (!busy->is_used || to_ns <= from_ns)
		return 0;
	sum = busy_overlap(busy->start_ns, busy->end_ns, from_ns, to_ns);
	for (uint64_t i = 0; i < GP_BUSY_HISTORY && i < busy->stretch_count; i++) {
		const struct busy_stretch *stretch = &busy->history[(busy->stretch_count - 1 - i) % GP_BUSY_HISTORY];

		if (stretch->end_ns <= from_ns)
			break;
		sum += busy_overlap(stretch->start_ns, stretch->end_ns, from_ns, to_ns);
	}
	return sum;
}
