/* SPDX-License-Identifier: MIT */
/* The daemon's state in words and tables. */
#ifndef GP_CLI_STATUS_SHOW_H
#define GP_CLI_STATUS_SHOW_H

#include <stdio.h>
#include "cli/columns.h"
#include "cli/hqd.h"
#include "cli/state.h"

void gp_status_show(FILE *stream, const struct gp_state *state, bool with_queues);
void gp_status_show_client(FILE *stream, const struct gp_state *state, const struct gp_state_client *client);
void gp_status_show_hqd(FILE *stream, const struct gp_hqd *hqd);
void gp_status_json_hqd(FILE *stream, const struct gp_hqd *hqd);

/* Of a client: totals over its queues. */
struct gp_status_total {
	uint32_t queues, open;
	uint64_t pending, run_ns, wait_ns, preemptions, inversions;
};
void gp_status_sum(const struct gp_state *state, const struct gp_state_client *client,
		   struct gp_status_total *ret_total);

#endif
