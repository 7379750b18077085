/* SPDX-License-Identifier: MIT */
/* Owns the headline chart: the p99 of one client, one bar per run, from zero. */
#include <inttypes.h>
#include <string.h>
#include "view/format.h"
#include "view/svg.h"

#define BARS_WIDTH 760u
#define BARS_LABEL 110u                 /* left of the bars */
#define BARS_VALUE 170u                 /* right of the longest one */
#define BARS_STEP 34u
#define BARS_THICK 20u

static void bars_value(FILE *stream, const struct gp_result_client *client, const struct gp_result_client *alone, struct gp_svg_point at)
{
	char text[96], value[GP_FORMAT_TEXT_SIZE], times[GP_FORMAT_TEXT_SIZE];
	uint64_t p99_ns = gp_hist_quantile(&client->latency_ns, 990);

	(void)gp_format_tick(p99_ns, value, sizeof(value));
	if (alone && alone != client)
		(void)snprintf(text, sizeof(text), "%s  (%s alone)", value,
			       gp_format_times(p99_ns, gp_hist_quantile(&alone->latency_ns, 990), times, sizeof(times)));
	else
		(void)snprintf(text, sizeof(text), "%s", value);
	gp_svg_text(stream, "v", at, text);
}

void gp_chart_bars(FILE *stream, const struct gp_result *result, const struct gp_result_client *client)
{
	const struct gp_result_client *alone = gp_compare_alone(result, client);
	uint64_t longest_ns = 1;
	uint32_t count = 0, row = 0;
	char label[128];

	for (uint32_t i = 0; i < result->run_count; i++) {
		const struct gp_result_client *other = gp_compare_client(&result->runs[i], client->name);

		if (!other || !gp_compare_has_latency(other))
			continue;
		count++;
		if (gp_hist_quantile(&other->latency_ns, 990) > longest_ns)
			longest_ns = gp_hist_quantile(&other->latency_ns, 990);
	}
	(void)snprintf(label, sizeof(label), "p99 latency of %s in each run", client->name);
	gp_svg_begin(stream, BARS_WIDTH, count * BARS_STEP + 8u, label);
	for (uint32_t i = 0; i < result->run_count; i++) {
		const struct gp_result_client *other = gp_compare_client(&result->runs[i], client->name);
		uint32_t width, y = row * BARS_STEP + 6u;
		char classes[24];

		if (!other || !gp_compare_has_latency(other))
			continue;
		width = gp_svg_scale(gp_hist_quantile(&other->latency_ns, 990), 0, longest_ns,
				     (BARS_WIDTH - BARS_LABEL - BARS_VALUE) * 10u);
		(void)snprintf(classes, sizeof(classes), "bar r%" PRIu32, gp_chart_run_colour(result, i));
		gp_svg_text(stream, "l e", (struct gp_svg_point){ (BARS_LABEL - 10u) * 10u, (y + 15u) * 10u }, result->runs[i].policy);
		gp_svg_rect(stream, classes, (struct gp_svg_box){ BARS_LABEL * 10u, y * 10u, width > 15u ? width : 15u, BARS_THICK * 10u },
			    false);
		bars_value(stream, other, alone, (struct gp_svg_point){ BARS_LABEL * 10u + width + 80u, (y + 15u) * 10u });
		row++;
	}
	gp_svg_line(stream, "axis", (struct gp_svg_point){ BARS_LABEL * 10u, 0 },
		    (struct gp_svg_point){ BARS_LABEL * 10u, (count * BARS_STEP + 4u) * 10u });
	gp_svg_end(stream);
}
