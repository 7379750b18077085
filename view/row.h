/* SPDX-License-Identifier: MIT */
/*
 * One row of a table or chart: a client, or clients in a row that differ in nothing but their number. Its cells are
 * spelled here, so that every view says the same. JSON lists clients one by one and needs none of this.
 */
#ifndef GP_VIEW_ROW_H
#define GP_VIEW_ROW_H

#include "view/result.h"

#define GP_ROW_BATCH_MIN   4u /* so many batch clients alike become one row */
#define GP_ROW_SERVICE_MIN 9u /* services: their latencies are worth more lines */
#define GP_ROW_NAME_SIZE   64u
#define GP_ROW_TEXT_SIZE   48u /* suffices for every cell */

struct gp_row {
	const struct gp_result_client *client; /* the first */
	uint32_t count;
	char name[GP_ROW_NAME_SIZE]; /* "train", or "train ×15" */
	/* In the run "alone" the clients of a group never met: rate and share are the mean of one, not the sum. */
	bool is_mean;
	uint64_t requests, unfinished, throughput_milli, gpu_share_ppm;
	uint64_t deadlines_met, deadlines_missed;
	struct gp_hist merged; /* of a group; see gp_row_latency() */
};

/* The row that begins with the index-th client; the next one begins row->count further. */
void gp_row_init(struct gp_row *row, const struct gp_result_run *run, uint32_t index);
/* The row of that name in a run. */
bool gp_row_find(struct gp_row *row, const struct gp_result_run *run, const char *name);
/* The first run of that kind, or NULL. */
const struct gp_result_run *gp_row_run(const struct gp_result *result, enum gp_result_kind kind);
/* The same row in the run "alone"; false where it has no p99 to compare with. */
bool gp_row_find_alone(struct gp_row *row, const struct gp_result *result, const char *name);

const struct gp_hist *gp_row_latency(const struct gp_row *row);
bool gp_row_has_latency(const struct gp_row *row);
/* Enough requests were unfinished at the end that this quantile is only a lower bound. */
bool gp_row_is_bound(const struct gp_row *row, uint32_t permille);
/* Of a run, of the clients whose p99 is a lower bound for it; 0 where so few are left that they change nothing. */
uint64_t gp_row_unfinished(const struct gp_result_run *run);

/* Cells; they return buffer: "5.90 ms" or "> 9.53 s", "1.03×" or "> 1671×", "86.2" or "each 99.8", "–" for none. */
const char *gp_row_format_latency(const struct gp_row *row, uint32_t permille, char *buffer, size_t buffer_size);
const char *gp_row_format_times(const struct gp_row *row, const struct gp_result *result, char *buffer,
				size_t buffer_size);
const char *gp_row_format_rate(const struct gp_row *row, char *buffer, size_t buffer_size);
/* "9,812 of 10,000" deadlines met, "–" for a row that has none. */
const char *gp_row_format_deadlines(const struct gp_row *row, char *buffer, size_t buffer_size);
/* Some client of some run has deadlines. */
bool gp_row_has_deadlines(const struct gp_result *result);
const char *gp_row_format_share(const struct gp_row *row, char *buffer, size_t buffer_size);

#endif
