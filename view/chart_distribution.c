/* SPDX-License-Identifier: MIT */
/* Owns the latency distribution of one client: a cumulative curve per run, time on a logarithmic axis. */
#include <inttypes.h>
#include "view/format.h"
#include "view/row.h"
#include "view/svg.h"

#define DISTRIBUTION_WIDTH  640u
#define DISTRIBUTION_HEIGHT 320u
#define DISTRIBUTION_POINTS 200u /* of a curve: one per half a percent */

/* The plot inside, in tenths. */
static const struct gp_svg_box distribution_plot = { .x = 520, .y = 140, .width = 5700, .height = 2520 };

struct distribution {
	FILE *stream;
	uint64_t first_ns, last_ns;
};

static uint32_t distribution_x(const struct distribution *chart, uint64_t ns)
{
	return distribution_plot.x +
	       gp_svg_scale_log(ns ? ns : 1, chart->first_ns, chart->last_ns, distribution_plot.width);
}

static uint32_t distribution_y(uint32_t permille)
{
	return distribution_plot.y + distribution_plot.height -
	       gp_svg_scale(permille, 0, 1000, distribution_plot.height);
}

/* From below the shortest to a little beyond the longest. One in a hundred may lie further left: a request that
 * arrived when the run ended is a nanosecond old, and would be most of a logarithmic axis. */
static bool distribution_range(struct distribution *chart, const struct gp_result *result, const char *name)
{
	uint64_t min_ns = UINT64_MAX, max_ns = 0, power = 1;
	struct gp_row row;

	for (uint32_t i = 0; i < result->run_count; i++) {
		uint64_t first_ns;

		if (!gp_row_find(&row, &result->runs[i], name) || !gp_row_has_latency(&row))
			continue;
		first_ns = gp_hist_quantile(gp_row_latency(&row), 10);
		min_ns = first_ns < min_ns ? first_ns : min_ns;
		max_ns = gp_row_latency(&row)->max > max_ns ? gp_row_latency(&row)->max : max_ns;
	}
	if (!max_ns)
		return false;
	while (power * 10u <= min_ns)
		power *= 10u;
	/* 1, 2 or 5 times that power, whichever is just below. */
	chart->first_ns = min_ns >= power * 5u ? power * 5u : min_ns >= power * 2u ? power * 2u : power;
	chart->last_ns = max_ns > UINT64_MAX / 2u ? UINT64_MAX : max_ns + max_ns / 8u + 1u;
	if (chart->last_ns < chart->first_ns * 2u)
		chart->last_ns = chart->first_ns * 2u;
	return true;
}

static void distribution_axes(const struct distribution *chart)
{
	static const uint32_t marks[] = { 0, 250, 500, 750, 900, 990 };
	uint32_t right = distribution_plot.x + distribution_plot.width,
		 bottom = distribution_plot.y + distribution_plot.height;
	uint32_t label_end = 0;
	char text[GP_FORMAT_TEXT_SIZE];

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		uint32_t y = distribution_y(marks[i]);

		gp_svg_line(chart->stream, marks[i] == 990 ? "grid p99" : "grid",
			    (struct gp_svg_point){ distribution_plot.x, y }, (struct gp_svg_point){ right, y });
		(void)snprintf(text, sizeof(text), "%" PRIu32 " %%", marks[i] / 10u);
		gp_svg_text(chart->stream, "t e", (struct gp_svg_point){ distribution_plot.x - 80u, y + 40u }, text);
	}
	for (uint64_t power = 1; power <= chart->last_ns; power *= 10u) {
		for (uint64_t factor = 1; factor <= 5; factor += factor == 1 ? 1 : 3) {
			uint64_t ns = power * factor;
			uint32_t x = distribution_x(chart, ns);

			if (ns < chart->first_ns || ns > chart->last_ns)
				continue;
			gp_svg_line(chart->stream, "grid", (struct gp_svg_point){ x, distribution_plot.y },
				    (struct gp_svg_point){ x, bottom });
			/* Labels that would touch are left out. */
			if (x < label_end)
				continue;
			gp_svg_text(chart->stream, "t m", (struct gp_svg_point){ x, bottom + 170u },
				    gp_format_tick(ns, text, sizeof(text)));
			label_end = x + 560u;
		}
		if (power > UINT64_MAX / 10u)
			break;
	}
	gp_svg_line(chart->stream, "axis", (struct gp_svg_point){ distribution_plot.x, bottom },
		    (struct gp_svg_point){ right, bottom });
	gp_svg_text(chart->stream, "a m",
		    (struct gp_svg_point){ distribution_plot.x + distribution_plot.width / 2u, bottom + 400u },
		    "latency, arrival to completion (logarithmic)");
}

static void distribution_point(const struct distribution *chart, uint32_t x, uint32_t y)
{
	fprintf(chart->stream, " %" PRIu32 ".%" PRIu32 ",%" PRIu32 ".%" PRIu32, x / 10u, x % 10u, y / 10u, y % 10u);
}

/* Straight from bucket to bucket, as samples are spread within one; where buckets are empty the curve stays level. */
static void distribution_curve(const struct distribution *chart, const struct gp_hist *hist, uint32_t colour)
{
	uint64_t last_ns = hist->min;
	uint32_t y = distribution_y(0);

	fprintf(chart->stream, "<polyline class=\"curve r%" PRIu32 "\" points=\"", colour);
	distribution_point(chart, distribution_x(chart, last_ns), y);
	for (uint32_t i = 1; i <= DISTRIBUTION_POINTS; i++) {
		uint32_t permille = i * 1000u / DISTRIBUTION_POINTS;
		uint64_t ns = gp_hist_quantile(hist, permille);

		/* Only the last of several points in one bucket: the share that lies at or below its end. */
		if (i < DISTRIBUTION_POINTS && gp_hist_quantile(hist, (i + 1u) * 1000u / DISTRIBUTION_POINTS) == ns)
			continue;
		if (ns - last_ns > 2u * (ns / GP_HIST_SUB))
			distribution_point(chart, distribution_x(chart, ns - ns / GP_HIST_SUB), y);
		y = distribution_y(permille);
		distribution_point(chart, distribution_x(chart, ns), y);
		last_ns = ns;
	}
	fputs("\"/>\n", chart->stream);
}

/* A dot where the curve crosses 99 %. */
static void distribution_dot(const struct distribution *chart, const struct gp_result_run *run,
			     const struct gp_row *row, uint32_t colour)
{
	uint32_t x = distribution_x(chart, gp_hist_quantile(gp_row_latency(row), 990)), y = distribution_y(990);
	char text[128], value[GP_ROW_TEXT_SIZE];

	fprintf(chart->stream,
		"<circle class=\"dot r%" PRIu32 "\" cx=\"%" PRIu32 ".%" PRIu32 "\" cy=\"%" PRIu32 ".%" PRIu32
		"\" r=\"4\">",
		colour, x / 10u, x % 10u, y / 10u, y % 10u);
	(void)snprintf(text, sizeof(text), "%s: p99 is %s", run->policy,
		       gp_row_format_latency(row, 990, value, sizeof(value)));
	gp_svg_title(chart->stream, "circle", text);
}

/* Where it is so, that a curve is only a bound. */
static void distribution_note(FILE *stream, const struct gp_result_run *run, const struct gp_row *row)
{
	char share[GP_FORMAT_TEXT_SIZE];
	uint64_t count = gp_row_latency(row)->count;
	uint64_t unfinished = row->unfinished < count ? row->unfinished : count;

	if (!gp_row_is_bound(row, 990))
		return;
	fputs("<p class=\"note\">", stream);
	gp_format_html(stream, run->policy);
	fprintf(stream,
		": %s of the requests were unfinished when the run ended and count with the time they had waited; the "
		"true curve lies further right.</p>\n",
		gp_format_share(gp_svg_scale(unfinished, 0, count, 1000000), share, sizeof(share)));
}

void gp_chart_distribution(FILE *stream, const struct gp_result *result, const char *row_name)
{
	struct distribution chart = { .stream = stream };
	struct gp_row row;
	char label[128];

	if (!distribution_range(&chart, result, row_name))
		return;
	(void)snprintf(label, sizeof(label), "Cumulative distribution of the latency of %s", row_name);
	gp_svg_begin(stream, DISTRIBUTION_WIDTH, DISTRIBUTION_HEIGHT, label);
	distribution_axes(&chart);
	for (uint32_t i = 0; i < result->run_count; i++)
		if (gp_row_find(&row, &result->runs[i], row_name) && gp_row_has_latency(&row))
			distribution_curve(&chart, gp_row_latency(&row), gp_chart_run_colour(result, i));
	for (uint32_t i = 0; i < result->run_count; i++)
		if (gp_row_find(&row, &result->runs[i], row_name) && gp_row_has_latency(&row))
			distribution_dot(&chart, &result->runs[i], &row, gp_chart_run_colour(result, i));
	gp_svg_end(stream);
	for (uint32_t i = 0; i < result->run_count; i++)
		if (gp_row_find(&row, &result->runs[i], row_name) && gp_row_has_latency(&row))
			distribution_note(stream, &result->runs[i], &row);
}
