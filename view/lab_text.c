/* SPDX-License-Identifier: MIT */
/* Owns the words of the lab: names of marks and verdicts, how a cell is written, and the tables on a terminal. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "view/lab.h"

#define TEXT_WIDTH 100u

const char *gp_lab_device(const struct gp_lab *lab)
{
	return lab->part_count == 1u ? gp_lab_part_device(lab, lab->parts[0]) : lab->device;
}

const char *gp_lab_part_device(const struct gp_lab *lab, const struct gp_lab_part *part)
{
	return part->devices ? part->devices : lab->device;
}

const char *gp_lab_measured_head(const struct gp_lab_table *table)
{
	return table->measured_head ? table->measured_head : "measured in the seed";
}

const char *gp_lab_mark_name(enum gp_lab_mark mark)
{
	switch (mark) {
	case GP_LAB_PREDICTED: return "predicted";
	case GP_LAB_CALIBRATED: return "calibrated";
	case GP_LAB_FITTED: return "fitted";
	case GP_LAB_COMPUTED: return "computed";
	case GP_LAB_NOT_MODELLED: return "not modelled";
	}
	return "";
}

const char *gp_lab_mark_words(enum gp_lab_mark mark)
{
	switch (mark) {
	case GP_LAB_PREDICTED: return "no parameter was fitted on this row";
	case GP_LAB_CALIBRATED: return "a parameter of the model was fitted on this row, so agreement proves nothing";
	case GP_LAB_FITTED: return "a line through the published points; no mechanism behind it";
	case GP_LAB_COMPUTED: return "arithmetic, or what the driver's source does; no parameter";
	case GP_LAB_NOT_MODELLED: return "no mechanism is known, so none is claimed";
	}
	return "";
}

const char *gp_lab_verdict_name(enum gp_lab_verdict verdict)
{
	switch (verdict) {
	case GP_LAB_UNSCORED: return "";
	case GP_LAB_INSIDE: return "inside";
	case GP_LAB_TOUCHES: return "spread touches";
	case GP_LAB_OUTSIDE: return "outside";
	case GP_LAB_NO_EFFECT: return "no effect";
	case GP_LAB_REFUTED: return "not reproduced";
	case GP_LAB_AGREES: return "agrees";
	}
	return "";
}

static size_t text_number(uint64_t milli, char *buffer, size_t buffer_size)
{
	int length;

	if (milli < 10000u && milli % 100u)
		length = snprintf(buffer, buffer_size, "%" PRIu64 ".%03" PRIu64, milli / 1000u, milli % 1000u);
	else
		length = snprintf(buffer, buffer_size, "%" PRIu64 ".%" PRIu64, (milli + 50u) / 1000u,
				  (milli + 50u) % 1000u / 100u);
	return length < 0 ? 0 : (size_t)length;
}

const char *gp_lab_format(const struct gp_lab_cell *cell, char *buffer, size_t buffer_size)
{
	char mid[32], low[32], high[32];

	if (!cell->has) {
		(void)snprintf(buffer, buffer_size, "–");
		return buffer;
	}
	if (cell->is_text) {
		(void)snprintf(buffer, buffer_size, "%s", cell->text);
		return buffer;
	}
	(void)text_number(cell->mid, mid, sizeof(mid));
	(void)text_number(cell->low, low, sizeof(low));
	(void)text_number(cell->high, high, sizeof(high));
	if (cell->low == cell->high || !strcmp(low, high))
		(void)snprintf(buffer, buffer_size, "%s", mid);
	else if (cell->mid == cell->low || cell->mid == cell->high || !strcmp(mid, low) || !strcmp(mid, high))
		(void)snprintf(buffer, buffer_size, "%s–%s", low, high);
	else
		(void)snprintf(buffer, buffer_size, "%s (%s–%s)", mid, low, high);
	return buffer;
}

/* Columns on a terminal: what is not a continuation byte. */
static uint32_t text_width(const char *text)
{
	uint32_t width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0u) != 0x80u;
	return width;
}

static void text_pad(FILE *stream, const char *text, uint32_t width)
{
	fputs(text, stream);
	for (uint32_t at = text_width(text); at < width; at++)
		fputc(' ', stream);
	fputs("  ", stream);
}

/* Words broken at blanks, each line indented. */
static void text_wrap(FILE *stream, const char *text, uint32_t indent)
{
	uint32_t at = 0;

	while (*text) {
		size_t size = strcspn(text, " \n");
		char word[512];

		(void)snprintf(word, sizeof(word), "%.*s", (int)(size < sizeof(word) ? size : sizeof(word) - 1u), text);
		if (at && at + 1u + text_width(word) > TEXT_WIDTH) {
			fputc('\n', stream);
			at = 0;
		}
		if (!at)
			fprintf(stream, "%*s", (int)indent, "");
		else
			fputc(' ', stream);
		at = (at ? at + 1u : indent) + text_width(word);
		fputs(word, stream);
		if (text[size] == '\n') {
			fputc('\n', stream);
			at = 0;
		}
		text += size + (text[size] ? 1u : 0);
	}
	if (at)
		fputc('\n', stream);
}

static uint32_t text_widest(const struct gp_lab_table *table, uint32_t column)
{
	const char *const heads[] = { "", gp_lab_measured_head(table), "expected by the seed", "the model", "mark" };
	uint32_t widest = text_width(heads[column]);
	char text[128];

	for (uint32_t i = 0; i < table->row_count; i++) {
		const struct gp_lab_row *row = &table->rows[i];
		const char *cell = column == 0 ? row->label :
				   column == 1 ? gp_lab_format(&row->measured, text, sizeof(text)) :
				   column == 2 ? gp_lab_format(&row->expected, text, sizeof(text)) :
				   column == 3 ? gp_lab_format(&row->predicted, text, sizeof(text)) :
						 gp_lab_mark_name(row->mark);
		uint32_t width = text_width(cell);

		widest = width > widest ? width : widest;
	}
	return widest;
}

static bool text_has_expected(const struct gp_lab_table *table)
{
	for (uint32_t i = 0; i < table->row_count; i++)
		if (table->rows[i].expected.has)
			return true;
	return false;
}

static void text_table(FILE *stream, const struct gp_lab_table *table)
{
	bool has_expected = text_has_expected(table);
	uint32_t widths[5];
	char text[128];

	for (uint32_t i = 0; i < 5u; i++)
		widths[i] = text_widest(table, i);
	fprintf(stream, "\n  %s%s%s\n\n  ", table->title, *table->unit ? ", " : "", table->unit);
	text_pad(stream, "", widths[0]);
	text_pad(stream, gp_lab_measured_head(table), widths[1]);
	if (has_expected)
		text_pad(stream, "expected by the seed", widths[2]);
	text_pad(stream, "the model", widths[3]);
	text_pad(stream, "mark", widths[4]);
	fputc('\n', stream);
	for (uint32_t i = 0; i < table->row_count; i++) {
		const struct gp_lab_row *row = &table->rows[i];

		fputs("  ", stream);
		text_pad(stream, row->label, widths[0]);
		text_pad(stream, gp_lab_format(&row->measured, text, sizeof(text)), widths[1]);
		if (has_expected)
			text_pad(stream, gp_lab_format(&row->expected, text, sizeof(text)), widths[2]);
		text_pad(stream, gp_lab_format(&row->predicted, text, sizeof(text)), widths[3]);
		text_pad(stream, gp_lab_mark_name(row->mark), widths[4]);
		fprintf(stream, "%s\n", gp_lab_verdict_name(row->verdict));
		if (row->note[0])
			text_wrap(stream, row->note, 6);
	}
	if (table->caption[0]) {
		fputc('\n', stream);
		text_wrap(stream, table->caption, 2);
	}
}

static void text_part(FILE *stream, const struct gp_lab *lab, const struct gp_lab_part *part)
{
	fprintf(stream, "%s: %s\n\n", part->name, part->question);
	text_wrap(stream, part->answer, 2);
	for (uint32_t i = 0; i < part->table_count; i++)
		text_table(stream, &part->tables[i]);
	if (part->falsify[0]) {
		fputs("\n  What would prove this wrong:\n", stream);
		text_wrap(stream, part->falsify, 4);
	}
	if (lab->part_count > 1u)
		fprintf(stream, "\n  Simulated on %s.\n", gp_lab_part_device(lab, part));
	fprintf(stream, "\n  again: %s\n\n", part->command);
}

static void text_params(FILE *stream, const struct gp_lab *lab)
{
	fputs("Fitted numbers (share/lab/fit.ini); everything else is from sources or assumed in the device description:\n",
	      stream);
	for (uint32_t i = 0; i < lab->param_count; i++)
		fprintf(stream, "  %-12s %-12s on %s\n", lab->params[i].name, lab->params[i].value,
			lab->params[i].fitted_on);
}

int gp_view_lab_text(FILE *stream, const struct gp_lab *lab)
{
	for (uint32_t i = 0; i < lab->part_count; i++)
		text_part(stream, lab, lab->parts[i]);
	if (lab->part_count == 1u)
		fprintf(stream, "Simulated on %s, not measured; the model's spread is over %" PRIu32 " random seeds.\n",
			gp_lab_device(lab), lab->seed_count);
	else
		fprintf(stream, "Simulated, not measured; the model's spread is over %" PRIu32 " random seeds.\n",
			lab->seed_count);
	for (int mark = GP_LAB_PREDICTED; mark <= (int)GP_LAB_NOT_MODELLED; mark++)
		fprintf(stream, "  %-12s %s\n", gp_lab_mark_name((enum gp_lab_mark)mark),
			gp_lab_mark_words((enum gp_lab_mark)mark));
	if (lab->param_count)
		text_params(stream, lab);
	return ferror(stream) ? -EIO : 0;
}
