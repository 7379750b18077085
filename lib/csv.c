/* SPDX-License-Identifier: MIT */
/* Owns the splitting of CSV text into rows and fields. Never allocates, never guesses a separator. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include "lib/csv.h"
#include "lib/units.h"

void gp_csv_init(struct gp_csv *csv, const char *text, size_t text_size, const char *file_name)
{
	csv->text = text;
	csv->file_name = file_name;
	csv->text_size = text_size;
	csv->offset = text_size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
	csv->line = 0;
	csv->line_next = 1;
	csv->field_count = 0;
}

static int csv_refuse(const struct gp_csv *csv, struct gp_error *error, const char *what)
{
	return gp_error_set(error, -EINVAL, "%s:%u: %s", csv->file_name, csv->line_next, what);
}

static bool csv_at_end(const struct gp_csv *csv)
{
	return csv->offset >= csv->text_size;
}

/* Bytes of the line end at the offset: 1, 2 (CRLF), or 0 if there is none. A lone CR is data. */
static size_t csv_line_end(const struct gp_csv *csv)
{
	const char *at = csv->text + csv->offset;

	if (csv_at_end(csv))
		return 0;
	if (*at == '\n')
		return 1;
	return csv->text_size - csv->offset >= 2 && at[0] == '\r' && at[1] == '\n' ? 2 : 0;
}

static int csv_put(struct gp_csv *csv, size_t *used, char c, struct gp_error *error)
{
	if (!c)
		return csv_refuse(csv, error, "there is a NUL byte in the row");
	/* One byte stays free for the NUL of the last field. */
	if (*used + 1 >= sizeof(csv->row))
		return csv_refuse(csv, error, "the row is too long (at most 16383 bytes)");
	csv->row[(*used)++] = c;
	return 0;
}

/* From behind the opening quote to behind the closing one. */
static int csv_quoted(struct gp_csv *csv, size_t *used, uint32_t *lines, struct gp_error *error)
{
	int r;

	while (!csv_at_end(csv)) {
		char c = csv->text[csv->offset];

		if (c == '"') {
			csv->offset++;
			if (csv_at_end(csv) || csv->text[csv->offset] != '"')
				return 0;
		}
		*lines += c == '\n';
		r = csv_put(csv, used, c, error);
		if (r < 0)
			return r;
		csv->offset++;
	}
	return csv_refuse(csv, error, "a quoted field never ends: the file is truncated or a quote is missing");
}

static int csv_field(struct gp_csv *csv, size_t *used, uint32_t *lines, struct gp_error *error)
{
	int r;

	if (!csv_at_end(csv) && csv->text[csv->offset] == '"') {
		csv->offset++;
		r = csv_quoted(csv, used, lines, error);
		if (r < 0)
			return r;
		if (!csv_at_end(csv) && csv->text[csv->offset] != ',' && !csv_line_end(csv))
			return csv_refuse(csv, error, "there is text behind a closing quote");
		return 0;
	}
	while (!csv_at_end(csv) && csv->text[csv->offset] != ',' && !csv_line_end(csv)) {
		if (csv->text[csv->offset] == '"')
			return csv_refuse(csv, error, "there is a quote inside a field that does not begin with one");
		r = csv_put(csv, used, csv->text[csv->offset], error);
		if (r < 0)
			return r;
		csv->offset++;
	}
	return 0;
}

int gp_csv_next(struct gp_csv *csv, struct gp_error *error)
{
	size_t used = 0, end;
	uint32_t lines = 1;

	while ((end = csv_line_end(csv))) {
		csv->offset += end;
		csv->line_next++;
	}
	if (csv_at_end(csv))
		return 0;

	csv->field_count = 0;
	for (;;) {
		int r;

		if (csv->field_count == GP_CSV_FIELD_MAX)
			return csv_refuse(csv, error, "the row has too many columns (at most 64)");
		csv->fields[csv->field_count++] = csv->row + used;
		r = csv_field(csv, &used, &lines, error);
		if (r < 0)
			return r;
		csv->row[used++] = '\0';
		if (csv_at_end(csv) || csv->text[csv->offset] != ',')
			break;
		if (used + 1 >= sizeof(csv->row))
			return csv_refuse(csv, error, "the row is too long (at most 16383 bytes)");
		csv->offset++;
	}
	csv->offset += csv_line_end(csv);
	csv->line = csv->line_next;
	csv->line_next += lines;
	return 1;
}

int gp_csv_column(const struct gp_csv *csv, const char *name)
{
	for (uint32_t i = 0; i < csv->field_count; i++)
		if (!strcmp(csv->fields[i], name))
			return (int)i;
	return -1;
}

int gp_csv_u64(const struct gp_csv *csv, int column, uint64_t *ret_value, struct gp_error *error)
{
	char what[32] = "the value";
	struct gp_error said;

	if (column < 0 || (uint32_t)column >= csv->field_count)
		return gp_error_set(error, -EINVAL, "%s:%u: column %d is missing: the row has %u columns",
				    csv->file_name, csv->line, column + 1, csv->field_count);
	if (gp_units_parse_count(csv->fields[column], what, 0, UINT64_MAX, ret_value, &said) < 0)
		return gp_error_set(error, -EINVAL, "%s:%u: column %d: %s", csv->file_name, csv->line, column + 1,
				    said.text);
	return 0;
}
