/* SPDX-License-Identifier: MIT */
/* A progress bar on standard error, for a person: only on a terminal, only for runs longer than a second. */
#ifndef GP_LIB_PROGRESS_H
#define GP_LIB_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct gp_progress {
	FILE *stream; /* NULL: silent */
	char label[48];
	uint64_t drawn_ms; /* elapsed when last drawn */
	bool is_drawn;
};

/* Silent unless stream is a terminal. */
void gp_progress_init(struct gp_progress *progress, FILE *stream, const char *label);
/* done of total, elapsed_ms of wall time since the start. The caller reads the clock, so that simulations never do.
 * Draws at most ten times a second. */
void gp_progress_update(struct gp_progress *progress, uint64_t done, uint64_t total, uint64_t elapsed_ms);
/* Wipes the bar, so that nothing of it stays above the result. */
void gp_progress_clear(struct gp_progress *progress);

#endif
