/* SPDX-License-Identifier: MIT */
/*
 * Owns the timeline of a run's recorded window: a lane per hardware queue, above them a row per kind of mark (requests,
 * decisions, inversions) that there is, stops of the device shaded behind. What is narrower than a pixel is merged, so
 * that a report stays a few thousand shapes.
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
#define TIMELINE_ROW      17u  /* of marks of one kind */
#define TIMELINE_AXIS     34u
#define TIMELINE_LANE_MAX 48u   /* lanes drawn; the rest is counted in a note */
#define TIMELINE_RECT_MAX 3000u /* slices drawn per run, about */
#define TIMELINE_MARK_MAX 600u  /* marks drawn per row, about */

struct timeline {
	FILE *stream;
	const struct gp_result_run *run;
	const struct gp_compare_names *names;
	uint32_t lane_count, lane_height, top, height; /* whole units */
	uint64_t merge_ns; /* slices closer than this, one of them shorter than it, become one */
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
	return (chart->top + lane * (chart->lane_height + 4u)) * 10u;
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

	uint32_t cut;

	if (end < x + 6u)
		end = x + 6u;
	/* The red end of a preempted slice never hides what ran. */
	cut = (end - x) / 2u < 25u ? (end - x) / 2u : 25u;
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
		gp_svg_rect(chart->stream, "cut", (struct gp_svg_box){ end - cut, y, cut, chart->lane_height * 10u },
			    false);
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

	(void)gp_format_cut(gp_marks_client(chart->run, slice->client), has_devices ? 9 : 14, name, sizeof(name));
	if (has_devices)
		(void)snprintf(text, sizeof(text), "%s · GPU %" PRIu32 " q%" PRIu32, name, slice->device, slice->queue);
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

		gp_svg_line(chart->stream, "grid", (struct gp_svg_point){ x, 40 },
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
		gp_svg_rect(chart->stream, "halt",
			    (struct gp_svg_box){ x, chart->top * 10u - 20u, end - x, bottom - chart->top * 10u + 20u },
			    true);
		gp_svg_title(chart->stream, "rect", gp_marks_text(chart->run, mark, text, sizeof(text)));
		drawn_end = end;
	}
}

/* A row above the lanes. An arrival is a tick; closed points down, opened up, left open is a ring, a turn a diamond, a
 * fault a cross. */
static const struct {
	enum gp_result_mark_type type;
	const char *label, *classes, *path; /* path: around 0,0; NULL: a bar as long as the mark */
} timeline_rows[] = {
	{ GP_MARK_ARRIVAL, "requests arrive", "arrival", "M-.5-5h1v10h-1z" },
	{ GP_MARK_CLOSE, "gates closed", "mark close", "M-4.5-3.5h9L0 4.5z" },
	{ GP_MARK_OPEN, "gates opened", "mark open", "M-4.5 3.5h9L0-4.5z" },
	{ GP_MARK_LEFT_OPEN, "left open", "mark left", "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z" },
	{ GP_MARK_TURN, "turns", "mark turn", "M0-5l4 5-4 5-4-5z" },
	{ GP_MARK_FAULT, "faults", "mark fault", "M-4-4L4 4M4-4L-4 4" },
	{ GP_MARK_INVERSION, "inversions", "inversion", NULL },
};
#define TIMELINE_ROW_COUNT (sizeof(timeline_rows) / sizeof(timeline_rows[0]))

static void timeline_shape(const struct timeline *chart, size_t kind, const struct gp_result_mark *mark,
			   struct gp_svg_point point)
{
	char text[GP_MARKS_TEXT_SIZE + GP_FORMAT_TEXT_SIZE], at[GP_FORMAT_TEXT_SIZE];
	size_t used;

	fprintf(chart->stream,
		"<path class=\"%s\" transform=\"translate(%" PRIu32 ".%" PRIu32 " %" PRIu32 ".%" PRIu32 ")\" d=\"%s\">",
		timeline_rows[kind].classes, point.x / 10u, point.x % 10u, point.y / 10u, point.y % 10u,
		timeline_rows[kind].path);
	(void)gp_marks_text(chart->run, mark, text, GP_MARKS_TEXT_SIZE);
	used = strlen(text);
	(void)snprintf(text + used, sizeof(text) - used, " (at %s)",
		       gp_format_tick(mark->start_ns > chart->run->window_start_ns ?
					      mark->start_ns - chart->run->window_start_ns :
					      0,
				      at, sizeof(at)));
	gp_svg_title(chart->stream, "path", text);
}

static bool timeline_has_kind(const struct timeline *chart, size_t kind)
{
	for (uint32_t i = 0; i < chart->run->mark_count; i++)
		if (chart->run->marks[i].type == timeline_rows[kind].type &&
		    timeline_is_inside(chart, &chart->run->marks[i]))
			return true;
	return false;
}

/* Marks of one kind. Those that would hide each other are left out. */
static void timeline_mark_row(const struct timeline *chart, size_t kind, uint32_t row)
{
	uint32_t y = (row * TIMELINE_ROW + TIMELINE_ROW / 2u + 2u) * 10u,
		 near = TIMELINE_PLOT * 10u / TIMELINE_MARK_MAX;
	uint32_t drawn_x = 0, drawn_end = 0;
	char text[GP_MARKS_TEXT_SIZE];

	gp_svg_text(chart->stream, "t e", (struct gp_svg_point){ (TIMELINE_LABEL - 10u) * 10u, y + 40u },
		    timeline_rows[kind].label);
	for (uint32_t i = 0; i < chart->run->mark_count; i++) {
		const struct gp_result_mark *mark = &chart->run->marks[i];
		uint32_t x = timeline_x(chart, mark->start_ns), end = timeline_x(chart, mark->end_ns);

		if (mark->type != timeline_rows[kind].type || !timeline_is_inside(chart, mark))
			continue;
		if (timeline_rows[kind].path && (!drawn_x || x >= drawn_x + near)) {
			timeline_shape(chart, kind, mark, (struct gp_svg_point){ x, y });
			drawn_x = x;
		} else if (!timeline_rows[kind].path && (!drawn_end || end > drawn_end + 5u)) {
			gp_svg_rect(chart->stream, timeline_rows[kind].classes,
				    (struct gp_svg_box){ x, y - 55u, end > x + 15u ? end - x : 15u, 110 }, true);
			gp_svg_title(chart->stream, "rect", gp_marks_text(chart->run, mark, text, sizeof(text)));
			drawn_end = end;
		}
	}
}

static void timeline_marks(const struct timeline *chart)
{
	uint32_t row = 0;

	for (size_t kind = 0; kind < TIMELINE_ROW_COUNT; kind++)
		if (timeline_has_kind(chart, kind))
			timeline_mark_row(chart, kind, row++);
}

static uint32_t timeline_count_rows(const struct timeline *chart)
{
	uint32_t count = 0;

	for (size_t kind = 0; kind < TIMELINE_ROW_COUNT; kind++)
		count += timeline_has_kind(chart, kind);
	return count;
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
	chart.top = timeline_count_rows(&chart) * TIMELINE_ROW + 8u;
	chart.height = chart.top + chart.lane_count * (chart.lane_height + 4u) + TIMELINE_AXIS;
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
