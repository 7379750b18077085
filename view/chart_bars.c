/* SPDX-License-Identifier: MIT */
/*
 * Owns the headline chart: the p99 of one client in each run. Bars from zero where they can be compared by eye; where
 * one run is many times slower than another, dots on a logarithmic axis, as a bar has no honest beginning there.
 */
#include <inttypes.h>
#include <string.h>
#include "view/format.h"
#include "view/svg.h"

#define BARS_WIDTH     760u
#define BARS_LABEL     110u /* left of the bars */
#define BARS_VALUE     170u /* right of the longest one */
#define BARS_STEP      34u
#define BARS_THICK     20u
#define BARS_AXIS      44u /* below, logarithmic only */
#define BARS_RATIO_MAX 25u /* of the longest to the shortest bar */

struct bars {
	FILE *stream;
	const struct gp_result *result;
	const struct gp_result_client *alone;
	uint32_t count;
	uint64_t first_ns, last_ns; /* of the axis; first_ns is 0 where it is linear */
};

static uint64_t bars_p99(const struct gp_result_client *client)
{
	return gp_hist_quantile(&client->latency_ns, 990);
}

/* The client in that run, if there is something to draw. */
static const struct gp_result_client *bars_client(const struct bars *chart, uint32_t run, const char *name)
{
	const struct gp_result_client *client = gp_compare_client(&chart->result->runs[run], name);

	return client && gp_compare_has_latency(client) ? client : NULL;
}

static void bars_range(struct bars *chart, const char *name)
{
	uint64_t shortest_ns = UINT64_MAX, power = 1;

	chart->last_ns = 1;
	for (uint32_t i = 0; i < chart->result->run_count; i++) {
		const struct gp_result_client *client = bars_client(chart, i, name);

		if (!client)
			continue;
		chart->count++;
		shortest_ns = bars_p99(client) < shortest_ns ? bars_p99(client) : shortest_ns;
		chart->last_ns = bars_p99(client) > chart->last_ns ? bars_p99(client) : chart->last_ns;
	}
	if (!shortest_ns || chart->last_ns / BARS_RATIO_MAX < shortest_ns)
		return;
	while (power * 10u <= shortest_ns)
		power *= 10u;
	chart->first_ns = power;
}

static uint32_t bars_length(const struct bars *chart, uint64_t ns)
{
	uint32_t width = (BARS_WIDTH - BARS_LABEL - BARS_VALUE) * 10u;

	return chart->first_ns ? gp_svg_scale_log(ns, chart->first_ns, chart->last_ns, width) :
				 gp_svg_scale(ns, 0, chart->last_ns, width);
}

static void bars_value(const struct bars *chart, const struct gp_result_client *client, struct gp_svg_point at)
{
	char text[96], value[GP_FORMAT_TEXT_SIZE], times[GP_FORMAT_TEXT_SIZE];

	(void)gp_format_tick(bars_p99(client), value, sizeof(value));
	if (chart->alone && chart->alone != client)
		(void)snprintf(text, sizeof(text), "%s  (%s alone)", value,
			       gp_format_times(bars_p99(client), bars_p99(chart->alone), times, sizeof(times)));
	else
		(void)snprintf(text, sizeof(text), "%s", value);
	gp_svg_text(chart->stream, "v", at, text);
}

static void bars_row(const struct bars *chart, uint32_t run, const struct gp_result_client *client, uint32_t row)
{
	uint32_t left = BARS_LABEL * 10u, y = (row * BARS_STEP + 6u) * 10u, middle = y + BARS_THICK * 5u;
	uint32_t length = bars_length(chart, bars_p99(client)), colour = gp_chart_run_colour(chart->result, run);
	char classes[24];

	gp_svg_text(chart->stream, "l e", (struct gp_svg_point){ left - 100u, middle + 45u },
		    chart->result->runs[run].policy);
	(void)snprintf(classes, sizeof(classes), "bar r%" PRIu32, colour);
	if (chart->first_ns) {
		gp_svg_line(chart->stream, "grid", (struct gp_svg_point){ left, middle },
			    (struct gp_svg_point){ left + length, middle });
		gp_svg_rect(chart->stream, classes, (struct gp_svg_box){ left + length - 60u, middle - 60u, 120, 120 },
			    false);
	} else {
		gp_svg_rect(chart->stream, classes,
			    (struct gp_svg_box){ left, y, length > 15u ? length : 15u, BARS_THICK * 10u }, false);
	}
	bars_value(chart, client, (struct gp_svg_point){ left + length + 120u, middle + 45u });
}

/* Powers of ten; only where the axis is logarithmic. */
static void bars_axis(const struct bars *chart)
{
	uint32_t bottom = (chart->count * BARS_STEP + 4u) * 10u;
	char text[GP_FORMAT_TEXT_SIZE];

	for (uint64_t ns = chart->first_ns; ns <= chart->last_ns; ns *= 10u) {
		uint32_t x = BARS_LABEL * 10u + bars_length(chart, ns);

		gp_svg_line(chart->stream, "grid", (struct gp_svg_point){ x, 0 }, (struct gp_svg_point){ x, bottom });
		gp_svg_text(chart->stream, "t m", (struct gp_svg_point){ x, bottom + 150u },
			    gp_format_tick(ns, text, sizeof(text)));
		if (ns > UINT64_MAX / 10u)
			break;
	}
	gp_svg_text(chart->stream, "a", (struct gp_svg_point){ BARS_LABEL * 10u, bottom + 340u },
		    "p99 latency (logarithmic)");
}

void gp_chart_bars(FILE *stream, const struct gp_result *result, const struct gp_result_client *client)
{
	struct bars chart = { .stream = stream, .result = result, .alone = gp_compare_alone(result, client) };
	uint32_t row = 0;
	char label[128];

	bars_range(&chart, client->name);
	(void)snprintf(label, sizeof(label), "p99 latency of %s in each run", client->name);
	gp_svg_begin(stream, BARS_WIDTH, chart.count * BARS_STEP + 8u + (chart.first_ns ? BARS_AXIS : 0), label);
	if (chart.first_ns)
		bars_axis(&chart);
	for (uint32_t i = 0; i < result->run_count; i++) {
		const struct gp_result_client *other = bars_client(&chart, i, client->name);

		if (other)
			bars_row(&chart, i, other, row++);
	}
	gp_svg_line(stream, "axis", (struct gp_svg_point){ BARS_LABEL * 10u, 0 },
		    (struct gp_svg_point){ BARS_LABEL * 10u, (chart.count * BARS_STEP + 4u) * 10u });
	gp_svg_end(stream);
}
