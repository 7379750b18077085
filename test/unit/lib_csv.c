/* SPDX-License-Identifier: MIT */
/* CSV as RFC 4180 has it, and what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "lib/csv.h"

static struct gp_csv csv;
static struct gp_error error;

/* Quotes, doubled quotes, commas and line ends inside quotes, CRLF, empty lines, a byte order mark, no last newline. */
static void test_reads(void **state)
{
	static const char text[] =
		"\xef\xbb\xbfName,Value\r\n\r\n\"a, \"\"b\"\"\",1\n\n\"two\nlines\",2\r\n,\nlast,18446744073709551615";
	uint64_t value = 0;

	(void)state;
	gp_csv_init(&csv, text, sizeof(text) - 1, "x.csv");
	assert_int_equal(gp_csv_next(&csv, &error), 1);
	assert_int_equal(gp_csv_column(&csv, "Name"), 0);
	assert_int_equal(gp_csv_column(&csv, "Value"), 1);
	assert_int_equal(gp_csv_column(&csv, "name"), -1);
	assert_int_equal(gp_csv_next(&csv, &error), 1);
	assert_int_equal(csv.line, 3);
	assert_string_equal(csv.fields[0], "a, \"b\"");
	assert_int_equal(gp_csv_next(&csv, &error), 1);
	assert_int_equal(csv.line, 5);
	assert_string_equal(csv.fields[0], "two\nlines");
	assert_int_equal(gp_csv_next(&csv, &error), 1);
	assert_int_equal(csv.line, 7);
	assert_int_equal(csv.field_count, 2);
	assert_string_equal(csv.fields[1], "");
	assert_int_equal(gp_csv_next(&csv, &error), 1);
	assert_int_equal(gp_csv_u64(&csv, 1, &value, &error), 0);
	assert_int_equal(value, UINT64_MAX);
	assert_int_equal(gp_csv_next(&csv, &error), 0);
	assert_int_equal(gp_csv_next(&csv, &error), 0);
}

static void refuse(const char *text, size_t size, const char *says)
{
	int r;

	gp_csv_init(&csv, text, size, "x.csv");
	while ((r = gp_csv_next(&csv, &error)) > 0)
		;
	assert_int_equal(r, -EINVAL);
	if (!strstr(error.text, says))
		fail_msg("\"%s\" does not say \"%s\"", error.text, says);
}

/* Each kind of damage is refused with the line it is in. */
static void test_refuses(void **state)
{
	(void)state;
	refuse("a\nb\n\"c", 6, "x.csv:3: a quoted field never ends");
	refuse("\"a\"b\n", 5, "x.csv:1: there is text behind a closing quote");
	refuse("ab\"c\n", 5, "x.csv:1: there is a quote inside");
	refuse("a\n\0\n", 4, "x.csv:2: there is a NUL");
	refuse("\"\0\"\n", 4, "x.csv:1: there is a NUL");
}

/* The limits: 64 columns and a row of 16383 bytes go, one more does not. */
static void test_limits(void **state)
{
	char *text = malloc(GP_CSV_ROW_SIZE + 8);

	(void)state;
	memset(text, ',', GP_CSV_FIELD_MAX);
	gp_csv_init(&csv, text, GP_CSV_FIELD_MAX - 1, "x.csv");
	assert_int_equal(gp_csv_next(&csv, &error), 1);
	assert_int_equal(csv.field_count, GP_CSV_FIELD_MAX);
	refuse(text, GP_CSV_FIELD_MAX, "x.csv:1: the row has too many columns");
	memset(text, 'a', GP_CSV_ROW_SIZE);
	gp_csv_init(&csv, text, GP_CSV_ROW_SIZE - 1, "x.csv");
	assert_int_equal(gp_csv_next(&csv, &error), 1);
	assert_int_equal(strlen(csv.fields[0]), GP_CSV_ROW_SIZE - 1);
	refuse(text, GP_CSV_ROW_SIZE, "x.csv:1: the row is too long");
	text[GP_CSV_ROW_SIZE - 2] = ',';
	refuse(text, GP_CSV_ROW_SIZE - 1, "x.csv:1: the row is too long");
	free(text);
}

/* A number that is not one is refused with file, line and column, and the value stays. */
static void test_numbers(void **state)
{
	uint64_t value = 77;

	(void)state;
	gp_csv_init(&csv, "1,x,,-3,1e3", 11, "x.csv");
	assert_int_equal(gp_csv_next(&csv, &error), 1);
	for (int i = 1; i < 5; i++)
		assert_int_equal(gp_csv_u64(&csv, i, &value, &error), -EINVAL);
	assert_int_equal(gp_csv_u64(&csv, 1, &value, &error), -EINVAL);
	assert_ptr_equal(strstr(error.text, "x.csv:1: column 2:"), error.text);
	assert_int_equal(gp_csv_u64(&csv, 5, &value, &error), -EINVAL);
	assert_non_null(strstr(error.text, "column 6 is missing"));
	assert_int_equal(gp_csv_u64(&csv, -1, &value, &error), -EINVAL);
	assert_int_equal(value, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_numbers),
	};

	return cmocka_run_group_tests_name("lib/csv", tests, NULL, NULL);
}
