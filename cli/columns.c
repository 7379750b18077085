/* SPDX-License-Identifier: MIT */
/* Owns the widths of a text table. */
#include <stdlib.h>
#include <string.h>
#include "cli/columns.h"
#include "cli/state.h"
#include "lib/units.h"
#include "lib/utf8.h"
#include "view/format.h"

#define COLUMNS_LINE_SIZE 2048u
#define COLUMNS_UNKNOWN   "\xe2\x80\x93" /* – */

void gp_columns_init(struct gp_columns *columns, const char *const *heads, uint32_t column_count)
{
	memset(columns, 0, sizeof(*columns));
	columns->heads = heads;
	columns->column_count = column_count < GP_COLUMNS_MAX ? column_count : GP_COLUMNS_MAX;
	for (uint32_t i = 0; i < columns->column_count; i++) {
		columns->left[i] = heads[i][0] == '<';
		columns->widths[i] = gp_utf8_width(heads[i] + columns->left[i]);
	}
}

void gp_columns_fini(struct gp_columns *columns)
{
	for (size_t i = 0; i < (size_t)columns->row_count * columns->column_count + columns->filled; i++)
		free(columns->cells[i]);
	free(columns->cells);
	memset(columns, 0, sizeof(*columns));
}

void gp_columns_add(struct gp_columns *columns, const char *text)
{
	size_t used = (size_t)columns->row_count * columns->column_count + columns->filled;
	size_t width = gp_utf8_width(text);
	char **grown, *copy;

	if (used >= columns->room) {
		grown = realloc(columns->cells, (columns->room + 64u) * 2u * sizeof(*grown));
		columns->failed |= !grown;
		if (!grown)
			return;
		columns->cells = grown;
		columns->room = (columns->room + 64u) * 2u;
	}
	copy = strdup(text);
	columns->failed |= !copy;
	if (!copy)
		return;
	columns->cells[used] = copy;
	if (width > columns->widths[columns->filled])
		columns->widths[columns->filled] = width;
	if (++columns->filled == columns->column_count) {
		columns->filled = 0;
		columns->row_count++;
	}
}

void gp_columns_number(struct gp_columns *columns, uint64_t value)
{
	char text[GP_FORMAT_TEXT_SIZE];

	gp_columns_add(columns,
		       value == GP_STATE_UNKNOWN ? COLUMNS_UNKNOWN : gp_format_count(value, text, sizeof(text)));
}

void gp_columns_ns(struct gp_columns *columns, uint64_t ns)
{
	char text[GP_UNITS_TEXT_SIZE];

	gp_columns_add(columns, ns == GP_STATE_UNKNOWN ? COLUMNS_UNKNOWN : gp_units_format_ns(ns, text, sizeof(text)));
}

const char *gp_columns_line(const struct gp_columns *columns, uint32_t row, char *buffer, size_t buffer_size)
{
	size_t used = 0;

	buffer[0] = '\0';
	for (uint32_t i = 0; i < columns->column_count; i++) {
		const char *cell = row == UINT32_MAX ? columns->heads[i] + columns->left[i] :
						       columns->cells[(size_t)row * columns->column_count + i];
		size_t width = gp_utf8_width(cell), pad = columns->widths[i] > width ? columns->widths[i] - width : 0;
		bool is_last = i + 1 == columns->column_count;
		int wrote = snprintf(buffer + used, buffer_size - used, "%s%*s%s%*s", i ? "  " : "",
				     columns->left[i] ? 0 : (int)pad, "", cell,
				     columns->left[i] && !is_last ? (int)pad : 0, "");

		if (wrote < 0 || (size_t)wrote >= buffer_size - used)
			break;
		used += (size_t)wrote;
	}
	return buffer;
}

void gp_columns_print(const struct gp_columns *columns, FILE *stream, const char *indent)
{
	char line[COLUMNS_LINE_SIZE];

	fprintf(stream, "%s%s\n", indent, gp_columns_line(columns, UINT32_MAX, line, sizeof(line)));
	for (uint32_t row = 0; row < columns->row_count; row++)
		fprintf(stream, "%s%s\n", indent, gp_columns_line(columns, row, line, sizeof(line)));
}
