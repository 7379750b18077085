/* SPDX-License-Identifier: MIT */
/* A few SVG shapes and axes. Coordinates are in tenths of a unit, as integers; colours are classes of the page's
 * style sheet. */
#ifndef GP_VIEW_SVG_H
#define GP_VIEW_SVG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "view/compare.h"
#include "view/result.h"

#define GP_SVG_COLOURS 8u /* classes c0…c7 for clients, r0…r7 for runs */

struct gp_svg_box {
	uint32_t x, y, width, height;
}; /* tenths */
struct gp_svg_point {
	uint32_t x, y;
};

void gp_svg_begin(FILE *stream, uint32_t width, uint32_t height, const char *label); /* whole units */
void gp_svg_end(FILE *stream);
/* With a title the shape stays open for one more call of gp_svg_title(); without it is complete. */
void gp_svg_rect(FILE *stream, const char *classes, struct gp_svg_box box, bool has_title);
void gp_svg_title(FILE *stream, const char *element, const char *text);
void gp_svg_line(FILE *stream, const char *classes, struct gp_svg_point from, struct gp_svg_point to);
void gp_svg_text(FILE *stream, const char *classes, struct gp_svg_point at, const char *text);

/* Steps of 1, 2 or 5 times a power of ten that divide `span` into at most count_max parts. */
uint64_t gp_svg_step(uint64_t span, uint32_t count_max);
/* Where value lies between first and last on `width` tenths; outside it is clamped. */
uint32_t gp_svg_scale(uint64_t value, uint64_t first, uint64_t last, uint32_t width);
uint32_t gp_svg_scale_log(uint64_t value, uint64_t first, uint64_t last, uint32_t width); /* all > 0 */

/* The charts of a report, each a complete <svg>. */
void gp_chart_latency(FILE *stream, const struct gp_result *result, const char *row_name);
void gp_chart_throughput(FILE *stream, const struct gp_result *result, const char *row_name);
void gp_chart_distribution(FILE *stream, const struct gp_result *result, const char *row_name);
/* -ENOMEM, or 0 */
int gp_chart_timeline(FILE *stream, const struct gp_result *result, const struct gp_result_run *run,
		      const struct gp_compare_names *names);

/* The colour of the index-th client; only the first has the first colour, however many there are. */
uint32_t gp_chart_client_colour(uint32_t index);
/* The colour of a run: the same in every report for alone (0, grey), stock and hpf; the others count on. */
uint32_t gp_chart_run_colour(const struct gp_result *result, uint32_t run);

#endif
