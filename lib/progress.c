/* SPDX-License-Identifier: MIT */
/* Owns the progress bar. Never reads a clock, and writes only to a terminal. */
#include <string.h>
#include <unistd.h>
#include "lib/progress.h"

#define PROGRESS_QUIET_MS    1000u /* a run that ends by then needs no bar */
#define PROGRESS_INTERVAL_MS 100u
#define PROGRESS_CELLS       30u

void gp_progress_init(struct gp_progress *progress, FILE *stream, const char *label)
{
	memset(progress, 0, sizeof(*progress));
	if (stream && fileno(stream) >= 0 && isatty(fileno(stream)))
		progress->stream = stream;
	(void)snprintf(progress->label, sizeof(progress->label), "%s", label);
}

/* Seconds left if the rest goes as fast as what is done. */
static uint64_t progress_left_s(uint64_t permille, uint64_t elapsed_ms)
{
	return permille ? (elapsed_ms * (1000u - permille) / permille + 999u) / 1000u : 0;
}

void gp_progress_update(struct gp_progress *progress, uint64_t done, uint64_t total, uint64_t elapsed_ms)
{
	char bar[PROGRESS_CELLS * 3 + 1] = "";
	uint64_t permille, cells;

	if (!progress->stream || elapsed_ms < PROGRESS_QUIET_MS || !total)
		return;
	if (progress->is_drawn && elapsed_ms - progress->drawn_ms < PROGRESS_INTERVAL_MS)
		return;

	if (done > total)
		done = total;
	permille = total > UINT64_MAX / 1000u ? done / (total / 1000u) : done * 1000u / total;
	if (permille > 1000u)
		permille = 1000u;
	cells = permille * PROGRESS_CELLS / 1000u;
	for (uint64_t i = 0; i < PROGRESS_CELLS; i++)
		strcat(bar, i < cells ? "█" : "░");
	fprintf(progress->stream, "\r%s %s %3u %%", progress->label, bar, (unsigned int)(permille / 10u));
	if (permille)
		fprintf(progress->stream, "  %llu s left", (unsigned long long)progress_left_s(permille, elapsed_ms));
	fputs("\033[K", progress->stream);
	fflush(progress->stream);
	progress->drawn_ms = elapsed_ms;
	progress->is_drawn = true;
}

void gp_progress_clear(struct gp_progress *progress)
{
	if (!progress->stream || !progress->is_drawn)
		return;
	fputs("\r\033[K", progress->stream);
	fflush(progress->stream);
	progress->is_drawn = false;
}
