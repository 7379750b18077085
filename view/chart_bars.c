/* SPDX-License-Identifier: MIT */
/*
 * Owns the headline charts: the p99 of one row in each run, and the throughput of one. Bars from zero where they can
 * be compared by eye; where one run is many times slower than another, dots on a logarithmic axis, as a bar has no
 * honest beginning there. What is only a lower bound is an arrow.
 */
#include <inttypes.h>
#include <string.h>
#include "view/finding.h"
#include "view/format.h"
#include "view/row.h"
#include "view/svg.h"

#define BARS_WIDTH       450u
#define BARS_LABEL       76u  /* left of the bars */
#define BARS_VALUE       190u /* right of the longest one */
#define BARS_PLOT        (BARS_WIDTH - BARS_LABEL - BARS_VALUE)
#define BARS_STEP        30u
#define BARS_THICK       18u
#define BARS_AXIS        42u /* below */
#define BARS_RATIO_MAX   25u /* of the longest to the shortest bar */
#define BARS_MAX         16u
#define BARS_LABEL_WIDTH 11u /* columns */

struct bars_entry {
	uint32_t run;
	uint64_t value;
	bool is_bound;
	uint64_t most; /* what it could be at best; 0: not known */
	char text[2u * GP_ROW_TEXT_SIZE + 16u];
};

struct bars {
	FILE *stream;
	const struct gp_result *result;
	const char *title; /* of the axis */
	bool is_time;
	uint32_t count;
	uint64_t first, last; /* of the axis; first is 0 where it is linear */
	struct bars_entry entries[BARS_MAX];
};

/* Up to the longest bar; logarithmic where the shortest could not be seen beside it. */
static void bars_range(struct bars *chart)
{
	uint64_t shortest = UINT64_MAX, power = 1;

	chart->last = 1;
	for (uint32_t i = 0; i < chart->count; i++) {
		const struct bars_entry *entry = &chart->entries[i];

		shortest = entry->value < shortest ? entry->value : shortest;
		chart->last = entry->value > chart->last ? entry->value : chart->last;
		chart->last = entry->most > chart->last ? entry->most : chart->last;
	}
	if (!chart->is_time || !shortest || chart->last / BARS_RATIO_MAX < shortest)
		return;
	while (power * 10u <= shortest)
		power *= 10u;
	chart->first = power;
}

static uint32_t bars_x(const struct bars *chart, uint64_t value)
{
	return BARS_LABEL * 10u + (chart->first ? gp_svg_scale_log(value, chart->first, chart->last, BARS_PLOT * 10u) :
						  gp_svg_scale(value, 0, chart->last, BARS_PLOT * 10u));
}

/* To the right of what is drawn: it goes on. */
static void bars_arrow(const struct bars *chart, uint32_t colour, uint32_t x, uint32_t middle)
{
	fprintf(chart->stream,
		"<path class=\"bar r%" PRIu32 "\" transform=\"translate(%" PRIu32 ".%" PRIu32 " %" PRIu32 ".%" PRIu32
		")\" d=\"M-6-7h4l8 7-8 7h-4z\"/>\n",
		colour, x / 10u, x % 10u, middle / 10u, middle % 10u);
}

static void bars_row(const struct bars *chart, const struct bars_entry *entry, uint32_t row)
{
	uint32_t left = BARS_LABEL * 10u, y = (row * BARS_STEP + 6u) * 10u, middle = y + BARS_THICK * 5u;
	uint32_t end = bars_x(chart, entry->value), colour = gp_chart_run_colour(chart->result, entry->run);
	char classes[24], name[BARS_LABEL_WIDTH * 4u + 4u];

	(void)gp_format_cut(chart->result->runs[entry->run].policy, BARS_LABEL_WIDTH, name, sizeof(name));
	gp_svg_text(chart->stream, "l e", (struct gp_svg_point){ left - 90u, middle + 45u }, name);
	(void)snprintf(classes, sizeof(classes), "bar r%" PRIu32, colour);
	if (chart->first)
		gp_svg_line(chart->stream, "grid", (struct gp_svg_point){ left, middle },
			    (struct gp_svg_point){ end, middle });
	else
		gp_svg_rect(chart->stream, classes,
			    (struct gp_svg_box){ left, y, end - left > 15u ? end - left : 15u, BARS_THICK * 10u },
			    false);
	if (entry->is_bound)
		bars_arrow(chart, colour, end + (chart->first ? 0 : 70u), middle);
	else if (chart->first)
		gp_svg_rect(chart->stream, classes, (struct gp_svg_box){ end - 60u, middle - 60u, 120, 120 }, false);
	if (entry->most) {
		uint32_t x = bars_x(chart, entry->most);

		gp_svg_line(chart->stream, "most", (struct gp_svg_point){ x, y - 30u },
			    (struct gp_svg_point){ x, y + BARS_THICK * 10u + 30u });
		end = x > end ? x : end;
	}
	gp_svg_text(chart->stream, "v",
		    (struct gp_svg_point){ end + (entry->is_bound && !chart->first ? 170u : 110u), middle + 45u },
		    entry->text);
}

/* A line, and its value where that does not touch the one before, which ends at *label_end. */
static void bars_tick(const struct bars *chart, uint64_t value, uint32_t bottom, uint32_t *label_end)
{
	uint32_t x = bars_x(chart, value);
	char text[GP_FORMAT_TEXT_SIZE];

	gp_svg_line(chart->stream, "grid", (struct gp_svg_point){ x, 0 }, (struct gp_svg_point){ x, bottom });
	if (x < *label_end)
		return;
	if (chart->is_time)
		(void)gp_format_tick(value, text, sizeof(text));
	else if (value % 1000u)
		(void)gp_format_rate(value, text, sizeof(text));
	else
		(void)gp_format_count(value / 1000u, text, sizeof(text));
	gp_svg_text(chart->stream, "t m", (struct gp_svg_point){ x, bottom + 150u }, text);
	*label_end = x + 440u;
}

/* Powers of ten, or a few even steps. */
static void bars_axis(const struct bars *chart)
{
	uint32_t bottom = (chart->count * BARS_STEP + 4u) * 10u, label_end = 0;
	uint64_t step = chart->first ? 0 : gp_svg_step(chart->last, 4), value = chart->first;

	while (value <= chart->last) {
		bars_tick(chart, value, bottom, &label_end);
		if (step ? value > UINT64_MAX - step : value > UINT64_MAX / 10u)
			break;
		value = step ? value + step : value * 10u;
	}
	gp_svg_text(chart->stream, "a", (struct gp_svg_point){ BARS_LABEL * 10u, bottom + 330u }, chart->title);
}

static void bars_draw(struct bars *chart, const char *what, const char *row_name)
{
	char label[128];

	if (!chart->count)
		return;
	bars_range(chart);
	(void)snprintf(label, sizeof(label), "%s of %s in each run", what, row_name);
	gp_svg_begin(chart->stream, BARS_WIDTH, chart->count * BARS_STEP + 8u + BARS_AXIS, label);
	bars_axis(chart);
	for (uint32_t i = 0; i < chart->count; i++)
		bars_row(chart, &chart->entries[i], i);
	gp_svg_line(chart->stream, "axis", (struct gp_svg_point){ BARS_LABEL * 10u, 0 },
		    (struct gp_svg_point){ BARS_LABEL * 10u, (chart->count * BARS_STEP + 4u) * 10u });
	gp_svg_end(chart->stream);
}

void gp_chart_latency(FILE *stream, const struct gp_result *result, const char *row_name)
{
	struct bars chart = { .stream = stream, .result = result, .is_time = true };
	char p99[GP_ROW_TEXT_SIZE], times[GP_ROW_TEXT_SIZE];
	struct gp_row row;

	for (uint32_t i = 0; i < result->run_count && chart.count < BARS_MAX; i++) {
		struct bars_entry *entry = &chart.entries[chart.count];
		bool has_times;

		if (!gp_row_find(&row, &result->runs[i], row_name) || !gp_row_has_latency(&row))
			continue;
		chart.count++;
		*entry = (struct bars_entry){ .run = i,
					      .value = gp_hist_quantile(gp_row_latency(&row), 990),
					      .is_bound = gp_row_is_bound(&row, 990) };
		(void)gp_row_format_latency(&row, 990, p99, sizeof(p99));
		(void)gp_row_format_times(&row, result, times, sizeof(times));
		has_times = strcmp(times, "–") && result->runs[i].kind != GP_RESULT_ALONE;
		if (has_times)
			(void)snprintf(entry->text, sizeof(entry->text), "%s (%s alone)", p99, times);
		else
			(void)snprintf(entry->text, sizeof(entry->text), "%s", p99);
	}
	bars_range(&chart);
	chart.title = chart.first ? "p99 latency (logarithmic)" : "p99 latency";
	bars_draw(&chart, "p99 latency", row_name);
}

void gp_chart_throughput(FILE *stream, const struct gp_result *result, const char *row_name)
{
	struct bars chart = { .stream = stream, .result = result, .title = "iterations per second" };
	const struct gp_result_run *alone_run = gp_row_run(result, GP_RESULT_ALONE);
	struct gp_row alone, row;
	uint64_t alone_milli = 0;

	if (alone_run && gp_row_find(&alone, alone_run, row_name))
		alone_milli = alone.throughput_milli;
	for (uint32_t i = 0; i < result->run_count && chart.count < BARS_MAX; i++) {
		struct bars_entry *entry = &chart.entries[chart.count];
		char rate[GP_ROW_TEXT_SIZE], times[GP_FORMAT_TEXT_SIZE];
		bool has_times = alone_milli && &result->runs[i] != alone_run;
		uint64_t most = 0;

		if (!gp_row_find(&row, &result->runs[i], row_name))
			continue;
		chart.count++;
		if (has_times)
			(void)gp_finding_most(result, &result->runs[i], &row, &most);
		*entry = (struct bars_entry){ .run = i, .value = row.throughput_milli, .most = most };
		(void)gp_row_format_rate(&row, rate, sizeof(rate));
		if (has_times)
			(void)snprintf(entry->text, sizeof(entry->text), "%s (%s %s)", rate,
				       gp_format_times(row.throughput_milli, alone_milli, times, sizeof(times)),
				       row.count > 1 ? "one alone" : "alone");
		else
			(void)snprintf(entry->text, sizeof(entry->text), "%s", rate);
	}
	bars_draw(&chart, "throughput", row_name);
}
