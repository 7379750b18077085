/* SPDX-License-Identifier: MIT */
/* Owns the reading of request arrivals. The calendar is integer arithmetic: no time zone, no leap second, no C
 * library time. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "lib/cleanup.h"
#include "lib/csv.h"
#include "lib/file.h"
#include "sim/arrivals.h"
#include "sim/kernels.h"

#define ARRIVALS_SPAN_DAYS_MAX 366u /* the offsets of a trace that is longer help nobody */

struct arrivals_reader {
	struct gp_csv csv;
	int time, context, generated; /* columns */
	uint32_t header_count, count, room;
	struct gp_trace_arrival *arrivals; /* offset_ns counts from the year 1 until the end */
};

static int arrivals_refuse(const struct arrivals_reader *reader, struct gp_error *error, const char *what)
{
	return gp_error_set(error, -EINVAL, "%s:%u: %s", reader->csv.file_name, reader->csv.line, what);
}

/* Exactly `digits` digits; false if they are not there. */
static bool arrivals_number(const char **text, int digits, uint32_t *ret_value)
{
	uint32_t value = 0;

	for (int i = 0; i < digits; i++, (*text)++) {
		if (**text < '0' || **text > '9')
			return false;
		value = value * 10u + (uint32_t)(**text - '0');
	}
	*ret_value = value;
	return true;
}

static bool arrivals_char(const char **text, char c)
{
	if (**text != c)
		return false;
	(*text)++;
	return true;
}

static bool arrivals_is_leap(uint32_t year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* Days since 0001-01-01 in the Gregorian calendar; false if there is no such day. */
static bool arrivals_days(uint32_t year, uint32_t month, uint32_t day, uint64_t *ret_days)
{
	static const uint32_t before[] = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365 };
	uint32_t leap, length;

	if (year < 1 || month < 1 || month > 12)
		return false;
	leap = arrivals_is_leap(year);
	length = before[month] - before[month - 1] + (month == 2 ? leap : 0);
	if (day < 1 || day > length)
		return false;

	uint64_t years = year - 1;

	*ret_days = years * 365 + years / 4 - years / 100 + years / 400 + before[month - 1] + (month > 2 ? leap : 0) +
		    day - 1;
	return true;
}

static bool arrivals_fraction(const char **text, uint64_t *ret_ns)
{
	uint64_t value = 0, scale = 1000000000u;

	for (; **text >= '0' && **text <= '9' && scale > 1; (*text)++) {
		value = value * 10u + (uint64_t)(**text - '0');
		scale /= 10u;
	}
	*ret_ns = value * scale;
	return scale < 1000000000u;
}

/* "2023-11-16 18:15:46.6805900", with a blank or a T between; gives days and the nanosecond of the day. */
static bool arrivals_time(const char *text, uint64_t *ret_days, uint64_t *ret_ns)
{
	uint32_t year, month, day, hour, minute, second;
	uint64_t fraction_ns = 0;

	if (!arrivals_number(&text, 4, &year) || !arrivals_char(&text, '-') || !arrivals_number(&text, 2, &month) ||
	    !arrivals_char(&text, '-') || !arrivals_number(&text, 2, &day))
		return false;
	if (!arrivals_char(&text, ' ') && !arrivals_char(&text, 'T'))
		return false;
	if (!arrivals_number(&text, 2, &hour) || !arrivals_char(&text, ':') || !arrivals_number(&text, 2, &minute) ||
	    !arrivals_char(&text, ':') || !arrivals_number(&text, 2, &second))
		return false;
	if (arrivals_char(&text, '.') && !arrivals_fraction(&text, &fraction_ns))
		return false;
	if (*text || hour > 23 || minute > 59 || second > 59 || !arrivals_days(year, month, day, ret_days))
		return false;
	*ret_ns = ((uint64_t)hour * 3600u + minute * 60u + second) * 1000000000u + fraction_ns;
	return true;
}

static int arrivals_tokens(const struct arrivals_reader *reader, int column, uint32_t *ret_tokens,
			   struct gp_error *error)
{
	uint64_t value = 0;
	int r = gp_csv_u64(&reader->csv, column, &value, error);

	if (r < 0)
		return r;
	if (value > GP_TRACE_TOKENS_MAX)
		return arrivals_refuse(reader, error, "a request has more than 16777216 tokens");
	*ret_tokens = (uint32_t)value;
	return 0;
}

static int arrivals_row(struct arrivals_reader *reader, uint64_t *first_day, struct gp_error *error)
{
	struct gp_trace_arrival arrival = { 0 };
	uint64_t days = 0, ns = 0;
	int r;

	if (reader->csv.field_count != reader->header_count)
		return gp_error_set(error, -EINVAL,
				    "%s:%u: the row has %u columns and the header %u: the file is truncated or damaged",
				    reader->csv.file_name, reader->csv.line, reader->csv.field_count,
				    reader->header_count);
	if (!arrivals_time(reader->csv.fields[reader->time], &days, &ns))
		return arrivals_refuse(reader, error, "the timestamp is not like 2023-11-16 18:15:46.6805900");
	r = arrivals_tokens(reader, reader->context, &arrival.context_tokens, error);
	if (r < 0)
		return r;
	r = arrivals_tokens(reader, reader->generated, &arrival.generated_tokens, error);
	if (r < 0)
		return r;
	if (!reader->count)
		*first_day = days;
	/* Counted from a year before the first row, so that an earlier row is not negative. */
	if (days + ARRIVALS_SPAN_DAYS_MAX < *first_day || days > *first_day + ARRIVALS_SPAN_DAYS_MAX)
		return arrivals_refuse(reader, error, "the timestamp is more than a year away from the first");
	arrival.offset_ns = (days + ARRIVALS_SPAN_DAYS_MAX - *first_day) * 86400000000000ull + ns;

	if (reader->count == GP_TRACE_ARRIVALS_MAX)
		return arrivals_refuse(reader, error, "the file has more than 1048576 requests");
	if (reader->count == reader->room) {
		uint32_t larger = reader->room ? reader->room * 2 : 1024;
		struct gp_trace_arrival *moved = realloc(reader->arrivals, larger * sizeof(*moved));

		if (!moved)
			return arrivals_refuse(reader, error, "not enough memory");
		reader->arrivals = moved;
		reader->room = larger;
	}
	reader->arrivals[reader->count++] = arrival;
	return 0;
}

static int arrivals_read(struct arrivals_reader *reader, struct gp_error *error)
{
	uint64_t first_day = 0;
	int r = gp_csv_next(&reader->csv, error);

	if (r < 0)
		return r;
	if (r == 0)
		return gp_error_set(error, -EINVAL, "%s:1: the file is empty", reader->csv.file_name);
	reader->time = gp_csv_column(&reader->csv, "TIMESTAMP");
	reader->context = gp_csv_column(&reader->csv, "ContextTokens");
	reader->generated = gp_csv_column(&reader->csv, "GeneratedTokens");
	reader->header_count = reader->csv.field_count;
	if (reader->time < 0 || reader->context < 0 || reader->generated < 0)
		return arrivals_refuse(
			reader, error,
			"not a list of arrivals: the columns are TIMESTAMP,ContextTokens,GeneratedTokens");
	while ((r = gp_csv_next(&reader->csv, error)) > 0) {
		r = arrivals_row(reader, &first_day, error);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	return reader->count ? 0 : arrivals_refuse(reader, error, "there is no request behind the header");
}

static int arrivals_compare(const void *a, const void *b)
{
	const struct gp_trace_arrival *x = a, *y = b;

	if (x->offset_ns != y->offset_ns)
		return x->offset_ns < y->offset_ns ? -1 : 1;
	/* Requests of one instant have no order in the file worth keeping; the tokens make the result the same
	 * everywhere. */
	if (x->context_tokens != y->context_tokens)
		return x->context_tokens < y->context_tokens ? -1 : 1;
	return x->generated_tokens < y->generated_tokens ? -1 : x->generated_tokens > y->generated_tokens;
}

int gp_trace_arrivals_parse(const char *text, size_t text_size, const char *file_name,
			    struct gp_trace_arrivals *ret_arrivals, struct gp_error *error)
{
	GP_AUTO_FREE struct arrivals_reader *reader = calloc(1, sizeof(*reader));
	uint64_t first_ns;
	int r;

	if (!reader)
		return gp_error_set(error, -ENOMEM, "%s: not enough memory", file_name);
	gp_csv_init(&reader->csv, text, text_size, file_name);
	r = arrivals_read(reader, error);
	if (r < 0) {
		free(reader->arrivals);
		return r;
	}
	qsort(reader->arrivals, reader->count, sizeof(*reader->arrivals), arrivals_compare);
	first_ns = reader->arrivals[0].offset_ns;
	for (uint32_t i = 0; i < reader->count; i++)
		reader->arrivals[i].offset_ns -= first_ns;
	ret_arrivals->count = reader->count;
	ret_arrivals->arrivals = reader->arrivals;
	return 0;
}

int gp_trace_arrivals_load(const char *path, struct gp_trace_arrivals *ret_arrivals, struct gp_error *error)
{
	GP_AUTO_FREE char *text = NULL;
	size_t text_size = 0;
	int r = gp_file_read(path, GP_TRACE_FILE_SIZE_MAX, &text, &text_size, error);

	return r < 0 ? r : gp_trace_arrivals_parse(text, text_size, path, ret_arrivals, error);
}

void gp_trace_arrivals_fini(struct gp_trace_arrivals *arrivals)
{
	free(arrivals->arrivals);
	memset(arrivals, 0, sizeof(*arrivals));
}
