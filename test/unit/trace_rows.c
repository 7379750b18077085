/* SPDX-License-Identifier: MIT */
/* Rows through a window: the same rows whatever the window holds, and every refusal with its line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "report/trace/rows.h"

static struct gp_input input;
static struct gp_rows rows;
static struct gp_error error;

static void begin(const char *text, size_t size)
{
	assert_int_equal(gp_input_open_memory(&input, text, size, "t.csv", &error), 0);
	gp_rows_init(&rows, &input);
}

/* Quotes, doubled quotes, commas and line ends inside, CRLF, empty lines, a missing last line end, a BOM. */
static void test_fields(void **state)
{
	static const char text[] = "\xef\xbb\xbf"
				   "a,\"b,c\",\"d\"\"e\"\r\n\n\"x\ny\",,z\n1,2,3";

	(void)state;
	begin(text, sizeof(text) - 1);
	assert_int_equal(gp_rows_next(&rows, &error), 1);
	assert_int_equal(rows.field_count, 3);
	assert_string_equal(rows.fields[0], "a");
	assert_string_equal(rows.fields[1], "b,c");
	assert_string_equal(rows.fields[2], "d\"e");
	assert_int_equal(gp_rows_next(&rows, &error), 1);
	assert_int_equal(rows.line, 3);
	assert_string_equal(rows.fields[0], "x\ny");
	assert_string_equal(rows.fields[1], "");
	assert_int_equal(gp_rows_next(&rows, &error), 1);
	assert_int_equal(rows.line, 5);
	assert_string_equal(rows.fields[2], "3");
	assert_int_equal(rows.sizes[2], 1);
	assert_int_equal(gp_rows_next(&rows, &error), 0);
	gp_input_close(&input);
}

/* Columns are found whatever their case, by any of their names, '-' like '_'. */
static void test_columns(void **state)
{
	static const char *const names[] = { "Queue_Id", "queue", NULL }, *const none[] = { "pid", NULL };

	(void)state;
	begin("gpu-id,queue-id\n", 16);
	assert_int_equal(gp_rows_next(&rows, &error), 1);
	assert_int_equal(gp_rows_column(&rows, names), 1);
	assert_int_equal(gp_rows_column(&rows, none), -1);
	gp_input_close(&input);
}

/* More rows than any window holds, with lengths that make rows lie across its edges. */
static void test_many(void **state)
{
	size_t size = 0, count = 200000;
	char *text = malloc(count * 40);
	uint64_t value = 0;

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < count; i++)
		size += (size_t)sprintf(text + size, "%zu,\"%.*s\"\n", i, (int)(i % 20), "aaaaaaaaaaaaaaaaaaaa");
	begin(text, size);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(gp_rows_next(&rows, &error), 1);
		assert_true(gp_rows_u64(rows.fields[0], rows.sizes[0], &value) && value == i);
		assert_int_equal(rows.sizes[1], i % 20);
		assert_int_equal(rows.line, i + 1);
	}
	assert_int_equal(gp_rows_next(&rows, &error), 0);
	gp_input_close(&input);
	free(text);
}

static void test_numbers(void **state)
{
	uint64_t value = 0;

	(void)state;
	assert_true(gp_rows_u64("18446744073709551615", 20, &value));
	assert_true(value == UINT64_MAX);
	assert_false(gp_rows_u64("18446744073709551616", 20, &value));
	assert_false(gp_rows_u64("99999999999999999999", 20, &value));
	assert_false(gp_rows_u64("-1", 2, &value));
	assert_false(gp_rows_u64("1.5", 3, &value));
	assert_false(gp_rows_u64("", 0, &value));
}

static void test_refuses(void **state)
{
	static const struct {
		const char *text;
		size_t size;
		const char *says;
	} cases[] = {
		{ "a\n\"b", 4, "t.csv:2: a quoted field never ends" },
		{ "a\nb\"c,d\"\n", 9, "t.csv:2: there is a quote inside" },
		{ "\"a\"b\n", 5, "t.csv:1: there is text behind" },
		{ "a\0b\n", 4, "t.csv:1: there is a NUL" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int r;

		begin(cases[i].text, cases[i].size);
		while ((r = gp_rows_next(&rows, &error)) > 0)
			continue;
		assert_true(r < 0);
		if (!strstr(error.text, cases[i].says))
			fail_msg("\"%s\" does not say \"%s\"", error.text, cases[i].says);
		gp_input_close(&input);
	}
}

/* A row that never ends does not fill the memory. */
static void test_endless(void **state)
{
	size_t size = 9u << 20;
	char *text = malloc(size);

	(void)state;
	assert_non_null(text);
	memset(text, 'a', size);
	text[0] = '"';
	begin(text, size);
	assert_true(gp_rows_next(&rows, &error) < 0);
	assert_non_null(strstr(error.text, "t.csv:1: the row is too long"));
	gp_input_close(&input);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),  cmocka_unit_test(test_columns), cmocka_unit_test(test_many),
		cmocka_unit_test(test_numbers), cmocka_unit_test(test_refuses), cmocka_unit_test(test_endless),
	};

	return cmocka_run_group_tests_name("report/trace/rows", tests, NULL, NULL);
}
