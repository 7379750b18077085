/* SPDX-License-Identifier: MIT */
/*
 * Owns the timeline of a run's recorded window: a lane per hardware queue, a row of decisions and one of inversions
 * above them, stops of the device shaded behind. What is narrower than a pixel is merged, so that a report stays a
 * few thousand shapes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "lib/cleanup.h"
#include "view/format.h"
#include "view/marks.h"
#include "view/svg.h"

#define TIMELINE_WIDTH    1080u
#define TIMELINE_LABEL    150u
#define TIMELINE_PLOT     900u /* wide */
#define TIMELINE_TOP      60u  /* rows of decisions and inversions */
#define TIMELINE_AXIS     34u
#define TIMELINE_LANE_MAX 48u   /* lanes drawn; the rest is counted in a note */
#define TIMELINE_RECT_MAX 3000u /* slices drawn per run, about */
#define TIMELINE_MARK_MAX 600u  /* marks drawn per row, about */

struct timeline {
	FILE *stream;
	const struct gp_result_run *run;
	const struct gp_compare_names *names;
	uint32_t lane_count, lane_height, height; /* whole units */
	uint64_t merge_ns;                        /* slices closer than this, one of them shorter than it, become one */
};

/* Slices merged into one rectangle. */
struct timeline_span {
	uint64_t start_ns, end_ns;
	uint32_t client, queue, count, preempted;
	bool ends_preempted;
};

static uint32_t timeline_x(const struct timeline *chart, uint64_t ns)
{
	return TIMELINE_LABEL * 10u +
	       gp_svg_scale(ns, chart->run->window_start_ns, chart->run->window_end_ns, TIMELINE_PLOT * 10u);
}

static uint32_t timeline_lane_y(const struct timeline *chart, uint32_t lane)
{
	return (TIMELINE_TOP + lane * (chart->lane_height + 4u)) * 10u;
}

static uint32_t timeline_colour(const struct timeline *chart, uint32_t client)
{
	return gp_chart_client_colour(gp_compare_names_find(chart->names, gp_marks_client(chart->run, client)));
}

static void timeline_span(const struct timeline *chart, uint32_t lane, const struct timeline_span *span)
{
	uint32_t x = timeline_x(chart, span->start_ns), end = timeline_x(chart, span->end_ns),
		 y = timeline_lane_y(chart, lane);
	char classes[24], text[320], at[GP_FORMAT_TEXT_SIZE], length[GP_FORMAT_TEXT_SIZE];

	if (end < x + 6u)
		end = x + 6u;
	(void)snprintf(classes, sizeof(classes), "s c%" PRIu32, timeline_colour(chart, span->client));
	gp_svg_rect(chart->stream, classes, (struct gp_svg_box){ x, y, end - x, chart->lane_height * 10u }, true);
	(void)gp_format_tick(
		span->start_ns > chart->run->window_start_ns ? span->start_ns - chart->run->window_start_ns : 0, at,
		sizeof(at));
	(void)gp_format_tick(span->end_ns - span->start_ns, length, sizeof(length));
	if (span->count == 1)
		(void)snprintf(text, sizeof(text), "%s, queue %" PRIu32 ": runs for %s from %s on, %s",
			       gp_marks_client(chart->run, span->client), span->queue, length, at,
			       span->preempted ? "then preempted (saved, to be resumed)" : "to its end");
	else
		(void)snprintf(text, sizeof(text),
			       "%s, queue %" PRIu32 ": %" PRIu32 " stretches within %s from %s on, %" PRIu32
			       " preempted",
			       gp_marks_client(chart->run, span->client), span->queue, span->count, length, at,
			       span->preempted);
	gp_svg_title(chart->stream, "rect", text);
	if (span->ends_preempted)
		gp_svg_rect(chart->stream, "cut",
			    (struct gp_svg_box){ end > 25u ? end - 25u : 0, y, 25, chart->lane_height * 10u }, false);
}

static bool timeline_span_take(const struct timeline *chart, struct timeline_span *span,
			       const struct gp_result_slice *slice)
{
	bool is_near = slice->start_ns < span->end_ns + chart->merge_ns;
	bool is_short =
		slice->end_ns - slice->start_ns < chart->merge_ns || span->end_ns - span->start_ns < chart->merge_ns;

	if (!is_near || !is_short)
		return false;
	if (slice->end_ns > span->end_ns)
		span->end_ns = slice->end_ns;
	span->count++;
	span->preempted += slice->preempted;
	span->ends_preempted = slice->preempted;
	return true;
}

/* The label of a lane: its client, its device where there are several, its queue. */
static void timeline_lane_label(const struct timeline *chart, uint32_t lane, const struct gp_result_slice *slice,
				bool has_devices)
{
	uint32_t y = timeline_lane_y(chart, lane) + (chart->lane_height / 2u + 4u) * 10u;
	char text[128], name[80];

	(void)gp_format_cut(gp_marks_client(chart->run, slice->client), has_devices ? 12 : 14, name, sizeof(name));
	if (has_devices)
		(void)snprintf(text, sizeof(text), "%s · %" PRIu32 ":q%" PRIu32, name, slice->device, slice->queue);
	else
		(void)snprintf(text, sizeof(text), "%s · q%" PRIu32, name, slice->queue);
	gp_svg_text(chart->stream, "l e", (struct gp_svg_point){ (TIMELINE_LABEL - 10u) * 10u, y }, text);
	gp_svg_rect(chart->stream, "lane",
		    (struct gp_svg_box){ TIMELINE_LABEL * 10u, timeline_lane_y(chart, lane), TIMELINE_PLOT * 10u,
					 chart->lane_height * 10u },
		    false);
}

static bool timeline_is_same_lane(const struct gp_result_slice *a, const struct gp_result_slice *b)
{
	return a->device == b->device && a->queue == b->queue;
}

static uint32_t timeline_count_lanes(const struct gp_result_run *run, const uint32_t *order)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < run->slice_count; i++)
		count += !i || !timeline_is_same_lane(&run->slices[order[i]], &run->slices[order[i - 1]]);
	return count;
}

static void timeline_lanes(const struct timeline *chart, const uint32_t *order, bool has_devices)
{
	const struct gp_result_run *run = chart->run;
	struct timeline_span span = { 0 };
	uint32_t lane = 0;

	for (uint32_t i = 0; i < run->slice_count; i++) {
		const struct gp_result_slice *slice = &run->slices[order[i]];
		bool is_new = !i || !timeline_is_same_lane(slice, &run->slices[order[i - 1]]);

		if (!is_new && timeline_span_take(chart, &span, slice))
			continue;
		if (i)
			timeline_span(chart, lane, &span);
		lane += i && is_new;
		if (lane == chart->lane_count)
			return;
		if (is_new)
			timeline_lane_label(chart, lane, slice, has_devices);
		span = (struct timeline_span){ .start_ns = slice->start_ns,
					       .end_ns = slice->end_ns,
					       .client = slice->client,
					       .queue = slice->queue,
					       .count = 1,
					       .preempted = slice->preempted,
					       .ends_preempted = slice->preempted };
	}
	timeline_span(chart, lane, &span);
}

static void timeline_axis(const struct timeline *chart)
{
	const struct gp_result_run *run = chart->run;
	uint64_t step = gp_svg_step(run->window_end_ns - run->window_start_ns, 10);
	uint32_t bottom = (chart->height - TIMELINE_AXIS) * 10u;
	char text[GP_FORMAT_TEXT_SIZE];

	for (uint64_t ns = run->window_start_ns; ns <= run->window_end_ns; ns += step) {
		uint32_t x = timeline_x(chart, ns);

		gp_svg_line(chart->stream, "grid", (struct gp_svg_point){ x, 240 },
			    (struct gp_svg_point){ x, bottom + 50u });
		gp_svg_text(chart->stream, "t m", (struct gp_svg_point){ x, bottom + 190u },
			    gp_format_tick(ns - run->window_start_ns, text, sizeof(text)));
	}
}

static bool timeline_is_inside(const struct timeline *chart, const struct gp_result_mark *mark)
{
	return mark->start_ns <= chart->run->window_end_ns && mark->end_ns >= chart->run->window_start_ns;
}

static void timeline_halts(const struct timeline *chart)
{
	uint32_t bottom = (chart->height - TIMELINE_AXIS) * 10u, drawn_end = 0;
	char text[GP_MARKS_TEXT_SIZE];

	for (uint32_t i = 0; i < chart->run->mark_count; i++) {
		const struct gp_result_mark *mark = &chart->run->marks[i];
		uint32_t x = timeline_x(chart, mark->start_ns), end = timeline_x(chart, mark->end_ns);

		if (mark->type != GP_MARK_HALT || !timeline_is_inside(chart, mark))
			continue;
		if (drawn_end && x < drawn_end + TIMELINE_PLOT * 10u / TIMELINE_MARK_MAX && end <= drawn_end + 10u)
			continue;
		if (end < x + 8u)
			end = x + 8u;
		gp_svg_rect(
			chart->stream, "halt",
			(struct gp_svg_box){ x, TIMELINE_TOP * 10u - 30u, end - x, bottom - TIMELINE_TOP * 10u + 30u },
			true);
		gp_svg_title(chart->stream, "rect", gp_marks_text(chart->run, mark, text, sizeof(text)));
		drawn_end = end;
	}
}

/* A small shape per kind: closed points down, opened up, left open is a ring, a turn a diamond, a fault a cross. */
static void timeline_shape(const struct timeline *chart, const struct gp_result_mark *mark, uint32_t x)
{
	static const char *const paths[] = {
		[GP_MARK_CLOSE] = "M-4.5-3.5h9L0 4.5z",
		[GP_MARK_OPEN] = "M-4.5 3.5h9L0-4.5z",
		[GP_MARK_LEFT_OPEN] = "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z",
		[GP_MARK_TURN] = "M0-5l4 5-4 5-4-5z",
		[GP_MARK_FAULT] = "M-4-4L4 4M4-4L-4 4",
	};
	static const char *const classes[] = { [GP_MARK_CLOSE] = "close",
					       [GP_MARK_OPEN] = "open",
					       [GP_MARK_LEFT_OPEN] = "left",
					       [GP_MARK_TURN] = "turn",
					       [GP_MARK_FAULT] = "fault" };
	char text[GP_MARKS_TEXT_SIZE + GP_FORMAT_TEXT_SIZE], at[GP_FORMAT_TEXT_SIZE];
	size_t used;

	fprintf(chart->stream, "<path class=\"mark %s\" transform=\"translate(%" PRIu32 ".%" PRIu32 " 16)\" d=\"%s\">",
		classes[mark->type], x / 10u, x % 10u, paths[mark->type]);
	(void)gp_marks_text(chart->run, mark, text, GP_MARKS_TEXT_SIZE);
	used = strlen(text);
	(void)snprintf(text + used, sizeof(text) - used, " (at %s)",
		       gp_format_tick(mark->start_ns > chart->run->window_start_ns ?
					      mark->start_ns - chart->run->window_start_ns :
					      0,
				      at, sizeof(at)));
	gp_svg_title(chart->stream, "path", text);
}

static bool timeline_is_decision(enum gp_result_mark_type type)
{
	return type == GP_MARK_CLOSE || type == GP_MARK_OPEN || type == GP_MARK_LEFT_OPEN || type == GP_MARK_TURN ||
	       type == GP_MARK_FAULT;
}

static void timeline_marks(const struct timeline *chart)
{
	uint32_t drawn_x[GP_MARK_FAULT + 1] = { 0 }, inversion_end = 0, near = TIMELINE_PLOT * 10u / TIMELINE_MARK_MAX;
	char text[GP_MARKS_TEXT_SIZE];

	gp_svg_text(chart->stream, "t e", (struct gp_svg_point){ (TIMELINE_LABEL - 10u) * 10u, 200 }, "decisions");
	gp_svg_text(chart->stream, "t e", (struct gp_svg_point){ (TIMELINE_LABEL - 10u) * 10u, 430 }, "inversions");
	for (uint32_t i = 0; i < chart->run->mark_count; i++) {
		const struct gp_result_mark *mark = &chart->run->marks[i];
		uint32_t x = timeline_x(chart, mark->start_ns), end = timeline_x(chart, mark->end_ns);

		if (!timeline_is_inside(chart, mark))
			continue;
		if (timeline_is_decision(mark->type) && (!drawn_x[mark->type] || x >= drawn_x[mark->type] + near)) {
			timeline_shape(chart, mark, x);
			drawn_x[mark->type] = x;
		}
		if (mark->type == GP_MARK_INVERSION && (!inversion_end || end > inversion_end + 5u)) {
			gp_svg_rect(chart->stream, "inversion",
				    (struct gp_svg_box){ x, 330, end > x + 15u ? end - x : 15u, 140 }, true);
			gp_svg_title(chart->stream, "rect", gp_marks_text(chart->run, mark, text, sizeof(text)));
			inversion_end = end;
		}
	}
}

int gp_chart_timeline(FILE *stream, const struct gp_result *result, const struct gp_result_run *run,
		      const struct gp_compare_names *names)
{
	GP_AUTO_FREE uint32_t *order = gp_marks_slice_order(run);
	struct timeline chart = { .stream = stream, .run = run, .names = names };
	uint32_t lane_total, merges;
	char label[96], note[64];

	if (!run->slice_count || run->window_end_ns <= run->window_start_ns)
		return 0;
	if (!order)
		return -ENOMEM;
	lane_total = timeline_count_lanes(run, order);
	chart.lane_count = lane_total < TIMELINE_LANE_MAX ? lane_total : TIMELINE_LANE_MAX;
	chart.lane_height = chart.lane_count > 24u ? 10u : chart.lane_count > 8u ? 16u : 26u;
	chart.height = TIMELINE_TOP + chart.lane_count * (chart.lane_height + 4u) + TIMELINE_AXIS;
	merges = TIMELINE_RECT_MAX / chart.lane_count < TIMELINE_PLOT ? TIMELINE_RECT_MAX / chart.lane_count :
									TIMELINE_PLOT;
	chart.merge_ns = (run->window_end_ns - run->window_start_ns) / merges + 1u;

	(void)snprintf(label, sizeof(label), "Timeline of the hardware queues under %s", run->policy);
	gp_svg_begin(stream, TIMELINE_WIDTH, chart.height, label);
	timeline_axis(&chart);
	timeline_lanes(&chart, order, result->device_count > 1);
	timeline_halts(&chart);
	timeline_marks(&chart);
	gp_svg_end(stream);
	if (lane_total > chart.lane_count) {
		(void)snprintf(note, sizeof(note), "%" PRIu32 " more queues are not drawn.",
			       lane_total - chart.lane_count);
		fprintf(stream, "<p class=\"note\">%s</p>\n", note);
	}
	return 0;
}
