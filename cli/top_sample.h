/* SPDX-License-Identifier: MIT */
/* What changed between two looks at the daemon's state: rates, shares, and the rows of `gpreempt top` in their order.
 * No terminal here. */
#ifndef GP_CLI_TOP_SAMPLE_H
#define GP_CLI_TOP_SAMPLE_H

#include "cli/columns.h"
#include "cli/state.h"

enum gp_top_sort {
	GP_TOP_PID,
	GP_TOP_PRIORITY,
	GP_TOP_GPU,
	GP_TOP_WAIT,
	GP_TOP_PENDING,
	GP_TOP_PREEMPTIONS,
	GP_TOP_INVERSIONS,
	GP_TOP_SORT_COUNT
};
extern const char *const gp_top_sort_names[GP_TOP_SORT_COUNT];

#define GP_TOP_UNKNOWN UINT64_MAX

/* Rates are per 1000 s, shares in thousandths of the device's time; GP_TOP_UNKNOWN before there are two looks. */
struct gp_top_row {
	const struct gp_state_client *client;
	uint32_t open, queues;
	uint64_t pending, gpu_permille, wait_permille, preemptions_milli, inversions_milli;
};
struct gp_top_device {
	const struct gp_state_device *device;
	uint64_t preemptions_milli, inversions_milli, transactions_milli;
};
struct gp_top {
	struct gp_state before, now; /* before.schema 0: there was none */
	bool has_before;
	uint64_t passed_ns; /* real time between them */
	uint32_t row_count;
	struct gp_top_row *rows; /* sorted */
	struct gp_top_device devices[GP_STATE_DEVICE_MAX];
	enum gp_top_sort sort;
	bool ascending;
};

void gp_top_init(struct gp_top *top);
void gp_top_fini(struct gp_top *top);
/* Takes the state over (also on failure). -ENOMEM. */
int gp_top_take(struct gp_top *top, struct gp_state *state);
void gp_top_sort(struct gp_top *top); /* again, after sort or ascending changed */

/* The clients as a table; with_queues: a line per queue below each. */
void gp_top_columns(const struct gp_top *top, bool with_queues, struct gp_columns *ret_columns);
/* One device in a line; returns buffer. */
const char *gp_top_device_line(const struct gp_top_device *device, char *buffer, size_t buffer_size);
const char *gp_top_head_line(const struct gp_top *top, char *buffer, size_t buffer_size);
void gp_top_print(const struct gp_top *top, FILE *stream, bool with_queues);
void gp_top_json(const struct gp_top *top, FILE *stream); /* one line */

#endif
