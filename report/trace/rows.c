/* SPDX-License-Identifier: MIT */
/* Owns the splitting of rows in a window. Never allocates; a row that never ends is refused with its line. */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include "report/trace/rows.h"

#define ROWS_LOOK_SIZE 65536u /* bytes that are fetched at once */

void gp_rows_init(struct gp_rows *rows, struct gp_input *input)
{
	rows->input = input;
	rows->line = 0;
	rows->line_next = 1;
	rows->field_count = 0;
}

static int rows_refuse(const struct gp_rows *rows, struct gp_error *error, const char *what)
{
	return gp_error_set(error, -EINVAL, "%s:%llu: %s", rows->input->file_name, (unsigned long long)rows->line_next,
			    what);
}

static size_t rows_quotes(const char *text, size_t text_size)
{
	size_t count = 0;

	for (size_t i = 0; i < text_size; i++)
		count += text[i] == '"';
	return count;
}

/* Finds the end of the row at hand: the offset of its '\n', or of the end of the file. Fetches more as needed. */
static int rows_find_end(struct gp_rows *rows, size_t *ret_size, uint64_t *ret_lines, struct gp_error *error)
{
	struct gp_input *input = rows->input;
	size_t at = 0;
	uint64_t lines = 0;
	bool is_quoted = false;

	for (;;) {
		const char *text = gp_input_at(input);
		size_t size = gp_input_size(input);

		for (; at < size; at++, lines++) {
			const char *newline = memchr(text + at, '\n', size - at);
			size_t line_size = newline ? (size_t)(newline - text) - at : size - at;

			is_quoted ^= rows_quotes(text + at, line_size) & 1;
			at += line_size;
			if (!newline || !is_quoted)
				break;
		}
		if (at < size || input->at_end)
			break;
		int r = gp_input_fill(input, size + ROWS_LOOK_SIZE, error);

		if (r)
			return r == -EFBIG ? rows_refuse(rows, error, "the row is too long (is a quote missing?)") : r;
	}
	if (is_quoted)
		return rows_refuse(rows, error,
				   "a quoted field never ends: the file is truncated or a quote is missing");
	*ret_size = at;
	*ret_lines = lines + 1;
	return 0;
}

/* From behind an opening quote: moves the text over the quotes. Returns behind the closing one, or NULL. */
static char *rows_unquote(char *at, const char *end, char **ret_to)
{
	char *to = memchr(at, '"', (size_t)(end - at));

	if (!to)
		return NULL;
	/* Up to the first quote everything is where it belongs. */
	for (at = to; at < end; at++) {
		if (*at == '"') {
			if (at + 1 >= end || at[1] != '"')
				break;
			at++;
		}
		*to++ = *at;
	}
	if (at >= end)
		return NULL;
	*ret_to = to;
	return at + 1;
}

static int rows_split(struct gp_rows *rows, char *at, char *end, struct gp_error *error)
{
	rows->field_count = 0;
	for (;;) {
		char *from = at, *to;

		if (rows->field_count == GP_ROWS_FIELD_MAX)
			return rows_refuse(rows, error, "the row has too many columns (at most 512)");
		if (at < end && *at == '"') {
			from = at + 1;
			at = rows_unquote(at + 1, end, &to);
			if (!at || (at < end && *at != ','))
				return rows_refuse(rows, error, "there is text behind a closing quote");
		} else {
			to = memchr(at, ',', (size_t)(end - at));
			to = to ? to : end;
			at = to;
			if (memchr(from, '"', (size_t)(to - from)))
				return rows_refuse(rows, error,
						   "there is a quote inside a field that does not begin with one");
		}
		rows->fields[rows->field_count] = from;
		rows->sizes[rows->field_count++] = (uint32_t)(to - from);
		if (at >= end) {
			*to = '\0';
			return 0;
		}
		*to = '\0';
		at++;
	}
}

int gp_rows_next(struct gp_rows *rows, struct gp_error *error)
{
	struct gp_input *input = rows->input;

	for (;;) {
		uint64_t lines = 0;
		size_t size = 0, past;
		char *at;
		int r = gp_input_fill(input, 1, error);

		if (r)
			return r;
		if (!gp_input_size(input))
			return 0;
		r = rows_find_end(rows, &size, &lines, error);
		if (r)
			return r;
		/* One byte behind the row for a NUL: the '\n', or room that is asked for. */
		past = size < gp_input_size(input) ? size + 1 : size;
		if (past == size && input->end == input->room) {
			input->at_end = false;
			r = gp_input_fill(input, size + 1, error);
			if (r)
				return r;
		}
		at = gp_input_at(input);
		input->start += past;
		if (memchr(at, '\0', size))
			return rows_refuse(rows, error, "there is a NUL byte in the row: this is not text");
		if (rows->line_next == 1 && size >= 3 && !memcmp(at, "\xef\xbb\xbf", 3)) {
			at += 3;
			size -= 3;
		}
		if (size && at[size - 1] == '\r')
			size--;
		if (!size) {
			rows->line_next += lines;
			continue;
		}
		r = rows_split(rows, at, at + size, error);
		rows->line = rows->line_next;
		rows->line_next += lines;
		return r ? r : 1;
	}
}

static bool rows_name_is(const char *field, const char *name)
{
	for (; *field && *name; field++, name++) {
		int a = *field == '-' ? '_' : tolower((unsigned char)*field);
		int b = *name == '-' ? '_' : tolower((unsigned char)*name);

		if (a != b)
			return false;
	}
	return !*field && !*name;
}

int gp_rows_column(const struct gp_rows *rows, const char *const *names)
{
	for (; *names; names++)
		for (uint32_t i = 0; i < rows->field_count; i++)
			if (rows_name_is(rows->fields[i], *names))
				return (int)i;
	return -1;
}

bool gp_rows_u64(const char *text, size_t text_size, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (!text_size)
		return false;
	for (size_t i = 0; i < text_size; i++) {
		unsigned int digit = (unsigned int)(text[i] - '0');

		if (digit > 9)
			return false;
		/* 19 digits always fit. */
		if (i < 19) {
			value = value * 10u + digit;
			continue;
		}
		if (__builtin_mul_overflow(value, 10u, &value) || __builtin_add_overflow(value, digit, &value))
			return false;
	}
	*ret_value = value;
	return true;
}
