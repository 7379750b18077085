/* SPDX-License-Identifier: MIT */
/* `gpreempt top` on a terminal. */
#ifndef GP_CLI_TOP_SCREEN_H
#define GP_CLI_TOP_SCREEN_H

#include "cli/top_sample.h"

struct gp_top_options {
	uint32_t interval_ms;
	bool with_queues, colour;
	uint64_t iterations; /* 0: for ever */
	enum gp_top_sort sort;
	bool ascending;
};
/* Until the user leaves, or so many looks. Exit status. */
int gp_top_screen(const struct gp_top_options *options);

#endif
