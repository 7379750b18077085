/* SPDX-License-Identifier: MIT */
/*
 * Owns the pictures of the lab. Measured: a grey bar over the published range with a tick at the figure published
 * first. Expected by the seed: an outline. The model: a dot with a line over the random seeds; the dot is hollow where
 * no parameter was fitted on the row, so that agreement means something.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "view/format.h"
#include "view/lab.h"
#include "view/svg.h"

#define CURVE_WIDTH  720u
#define CURVE_HEIGHT 340u
#define CURVE_LEFT   52u
#define CURVE_RIGHT  24u
#define CURVE_TOP    14u
#define CURVE_BOTTOM 44u

#define ROWS_WIDTH  720u
#define ROWS_LEFT   14u
#define ROWS_RIGHT  40u
#define ROWS_STEP   46u /* a name above, figures below: it fits a phone */
#define ROWS_NAME   17u
#define ROWS_MIDDLE 34u
#define ROWS_AXIS   50u

struct chart {
	FILE *stream;
	const struct gp_lab_table *table;
	uint64_t last; /* end of the axis of figures */
	uint64_t x_first, x_last;
};

static bool chart_has(const struct gp_lab_cell *cell)
{
	return cell->has && !cell->is_text;
}

/* The axis ends a little above what was measured and what the model says; an expectation beyond that is an arrow. */
static uint64_t chart_last(const struct gp_lab_table *table)
{
	uint64_t last = 1, expected = 0;

	for (uint32_t i = 0; i < table->row_count; i++) {
		const struct gp_lab_row *row = &table->rows[i];

		if (chart_has(&row->measured) && row->measured.high > last)
			last = row->measured.high;
		if (chart_has(&row->predicted) && row->predicted.high > last)
			last = row->predicted.high;
		if (chart_has(&row->expected) && row->expected.high > expected)
			expected = row->expected.high;
	}
	if (expected > last && expected < last * 2u)
		last = expected;
	return last + last / 12u;
}

static uint32_t curve_y(const struct chart *chart, uint64_t value)
{
	uint32_t height = (CURVE_HEIGHT - CURVE_TOP - CURVE_BOTTOM) * 10u;

	return CURVE_TOP * 10u + height - gp_svg_scale(value, 0, chart->last, height);
}

static uint32_t curve_x(const struct chart *chart, uint32_t row)
{
	uint64_t value = strtoull(chart->table->rows[row].label, NULL, 10);
	uint32_t width = (CURVE_WIDTH - CURVE_LEFT - CURVE_RIGHT - 40u) * 10u;

	return (CURVE_LEFT + 20u) * 10u + gp_svg_scale(value, chart->x_first, chart->x_last, width);
}

static void curve_axes(const struct chart *chart)
{
	uint64_t step = gp_svg_step(chart->last, 6);
	char text[GP_FORMAT_TEXT_SIZE];

	for (uint64_t value = 0; value <= chart->last; value += step) {
		uint32_t y = curve_y(chart, value);

		gp_svg_line(chart->stream, "grid", (struct gp_svg_point){ CURVE_LEFT * 10u, y },
			    (struct gp_svg_point){ (CURVE_WIDTH - CURVE_RIGHT) * 10u, y });
		(void)snprintf(text, sizeof(text), "%" PRIu64, value / 1000u);
		gp_svg_text(chart->stream, "t e", (struct gp_svg_point){ (CURVE_LEFT - 8u) * 10u, y + 40u }, text);
	}
	for (uint32_t i = 0; i < chart->table->row_count; i++)
		gp_svg_text(chart->stream, "l m",
			    (struct gp_svg_point){ curve_x(chart, i), (CURVE_HEIGHT - CURVE_BOTTOM + 18u) * 10u },
			    chart->table->rows[i].label);
	gp_svg_text(chart->stream, "t m", (struct gp_svg_point){ CURVE_WIDTH * 5u, (CURVE_HEIGHT - 6u) * 10u },
		    chart->table->axis_title ? chart->table->axis_title : "");
}

/* The area between least and most over the random seeds, and the line of means. */
static void curve_model(const struct chart *chart)
{
	const struct gp_lab_table *table = chart->table;

	fputs("<polygon class=\"band\" points=\"", chart->stream);
	for (uint32_t i = 0; i < table->row_count; i++)
		fprintf(chart->stream, "%" PRIu32 ",%" PRIu32 " ", curve_x(chart, i) / 10u,
			curve_y(chart, table->rows[i].predicted.high) / 10u);
	for (uint32_t i = table->row_count; i-- > 0;)
		fprintf(chart->stream, "%" PRIu32 ",%" PRIu32 " ", curve_x(chart, i) / 10u,
			curve_y(chart, table->rows[i].predicted.low) / 10u);
	fputs("\"/>\n<polyline class=\"model\" points=\"", chart->stream);
	for (uint32_t i = 0; i < table->row_count; i++)
		fprintf(chart->stream, "%" PRIu32 ",%" PRIu32 " ", curve_x(chart, i) / 10u,
			curve_y(chart, table->rows[i].predicted.mid) / 10u);
	fputs("\"/>\n", chart->stream);
}

static const char *chart_tip(const struct gp_lab_table *table, const struct gp_lab_row *row, char *buffer, size_t size)
{
	char measured[128], expected[128], model[128];

	(void)snprintf(buffer, size, "%s: measured %s, expected %s, model %s %s (%s)", row->label,
		       gp_lab_format(&row->measured, measured, sizeof(measured)),
		       gp_lab_format(&row->expected, expected, sizeof(expected)),
		       gp_lab_format(&row->predicted, model, sizeof(model)), table->unit, gp_lab_mark_name(row->mark));
	return buffer;
}

static void chart_dot(const struct chart *chart, const struct gp_lab_row *row, uint32_t x, uint32_t y)
{
	char tip[640];

	fprintf(chart->stream,
		"<circle class=\"dotm%s\" cx=\"%" PRIu32 ".%" PRIu32 "\" cy=\"%" PRIu32 ".%" PRIu32 "\" r=\"5\">",
		row->mark == GP_LAB_PREDICTED ? " hollow" : "", x / 10u, x % 10u, y / 10u, y % 10u);
	gp_svg_title(chart->stream, "circle", chart_tip(chart->table, row, tip, sizeof(tip)));
}

static void curve_point(const struct chart *chart, uint32_t i)
{
	const struct gp_lab_row *row = &chart->table->rows[i];
	uint32_t x = curve_x(chart, i), top, bottom;

	if (chart_has(&row->measured)) {
		top = curve_y(chart, row->measured.high);
		bottom = curve_y(chart, row->measured.low);
		gp_svg_rect(chart->stream, "seen",
			    (struct gp_svg_box){ x - 110u, top, 100, bottom - top > 50u ? bottom - top : 50u }, false);
		gp_svg_line(chart->stream, "first",
			    (struct gp_svg_point){ x - 110u, curve_y(chart, row->measured.mid) },
			    (struct gp_svg_point){ x - 10u, curve_y(chart, row->measured.mid) });
	}
	if (chart_has(&row->expected)) {
		bool is_beyond = row->expected.mid > chart->last;
		char text[GP_FORMAT_TEXT_SIZE + 8u];

		top = is_beyond ? CURVE_TOP * 10u : curve_y(chart, row->expected.high);
		bottom = is_beyond ? top + 30u : curve_y(chart, row->expected.low);
		gp_svg_rect(chart->stream, "hoped",
			    (struct gp_svg_box){ x + 10u, top, 100, bottom - top > 50u ? bottom - top : 50u }, false);
		if (is_beyond) {
			(void)snprintf(text, sizeof(text), "↑ %" PRIu64, row->expected.mid / 1000u);
			gp_svg_text(chart->stream, "t", (struct gp_svg_point){ x + 140u, top + 80u }, text);
		}
	}
	if (chart_has(&row->predicted))
		chart_dot(chart, row, x, curve_y(chart, row->predicted.mid));
}

void gp_chart_lab_curve(FILE *stream, const struct gp_lab_table *table)
{
	struct chart chart = { .stream = stream, .table = table, .last = chart_last(table) };

	if (!table->row_count)
		return;
	chart.x_first = strtoull(table->rows[0].label, NULL, 10);
	chart.x_last = strtoull(table->rows[table->row_count - 1u].label, NULL, 10);
	gp_svg_begin(stream, CURVE_WIDTH, CURVE_HEIGHT, table->title);
	curve_axes(&chart);
	curve_model(&chart);
	for (uint32_t i = 0; i < table->row_count; i++)
		curve_point(&chart, i);
	gp_svg_end(stream);
}

static uint32_t rows_x(const struct chart *chart, uint64_t value)
{
	return ROWS_LEFT * 10u + gp_svg_scale(value, 0, chart->last, (ROWS_WIDTH - ROWS_LEFT - ROWS_RIGHT) * 10u);
}

static void rows_bar(const struct chart *chart, const char *classes, const struct gp_lab_cell *cell, uint32_t y,
		     uint32_t height)
{
	uint32_t low = rows_x(chart, cell->low), high = rows_x(chart, cell->high);

	if (high - low < 40u) {
		low = low > 20u ? low - 20u : 0;
		high = low + 40u;
	}
	gp_svg_rect(chart->stream, classes, (struct gp_svg_box){ low, y, high - low, height }, false);
}

static void rows_row(const struct chart *chart, const struct gp_lab_row *row, uint32_t at)
{
	uint32_t y = at * ROWS_STEP * 10u, middle = y + ROWS_MIDDLE * 10u;
	char name[280];

	gp_svg_text(chart->stream, "l", (struct gp_svg_point){ ROWS_LEFT * 10u, y + ROWS_NAME * 10u },
		    gp_format_cut(row->label, 64, name, sizeof(name)));
	gp_svg_line(chart->stream, "rule", (struct gp_svg_point){ ROWS_LEFT * 10u, middle },
		    (struct gp_svg_point){ (ROWS_WIDTH - ROWS_RIGHT) * 10u, middle });
	if (chart_has(&row->measured))
		rows_bar(chart, "seen", &row->measured, middle - 90u, 180);
	if (chart_has(&row->expected))
		rows_bar(chart, "hoped", &row->expected, middle - 60u, 120);
	if (!chart_has(&row->predicted))
		return;
	gp_svg_line(chart->stream, "spread", (struct gp_svg_point){ rows_x(chart, row->predicted.low), middle },
		    (struct gp_svg_point){ rows_x(chart, row->predicted.high), middle });
	chart_dot(chart, row, rows_x(chart, row->predicted.mid), middle);
}

void gp_chart_lab_rows(FILE *stream, const struct gp_lab_table *table)
{
	struct chart chart = { .stream = stream, .table = table, .last = chart_last(table) };
	uint32_t bottom = (table->row_count * ROWS_STEP + 4u) * 10u;
	uint64_t step = gp_svg_step(chart.last, 6);
	char text[GP_FORMAT_TEXT_SIZE];

	gp_svg_begin(stream, ROWS_WIDTH, table->row_count * ROWS_STEP + ROWS_AXIS, table->title);
	for (uint64_t value = 0; step && value <= chart.last; value += step) {
		uint32_t x = rows_x(&chart, value);

		gp_svg_line(stream, "grid", (struct gp_svg_point){ x, 0 }, (struct gp_svg_point){ x, bottom });
		if (step < 1000u)
			(void)snprintf(text, sizeof(text), "%" PRIu64 ".%02" PRIu64, value / 1000u,
				       value % 1000u / 10u);
		else
			(void)snprintf(text, sizeof(text), "%" PRIu64, value / 1000u);
		gp_svg_text(stream, "t m", (struct gp_svg_point){ x, bottom + 180u }, text);
	}
	gp_svg_text(stream, "t e", (struct gp_svg_point){ ROWS_WIDTH * 10u, bottom + 400u }, table->unit);
	for (uint32_t i = 0; i < table->row_count; i++)
		rows_row(&chart, &table->rows[i], i);
	gp_svg_end(stream);
}
