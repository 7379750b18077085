/* SPDX-License-Identifier: MIT */
/* Numbers and text as the views write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "lib/utf8.h"
#include "lib/json_writer.h"
#include "view/format.h"
#include "view/svg.h"

static char *written;
static size_t written_size;

#define WRITE(call)                                                     \
	do {                                                            \
		FILE *stream = open_memstream(&written, &written_size); \
		call;                                                   \
		fclose(stream);                                         \
	} while (0)
#define EXPECT(text)                                \
	do {                                        \
		assert_string_equal(written, text); \
		free(written);                      \
	} while (0)

/* Markup is escaped, what is not UTF-8 and control characters are replaced. */
static void test_html(void **state)
{
	(void)state;
	WRITE(gp_format_html(stream, "a<b>&\"'µ\xff\x01\n\xc2\x85"));
	EXPECT("a&lt;b&gt;&amp;&quot;&#39;µ\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

/* A JSON string: quotes, backslashes, control characters, bad bytes. */
static void test_json_string(void **state)
{
	struct gp_json_writer writer;

	(void)state;
	WRITE(gp_json_writer_init(&writer, stream); gp_json_writer_string(&writer, NULL, "a\"b\\c\n\x7fµ\xff"));
	EXPECT("\"a\\\"b\\\\c\\n\\u007fµ\xef\xbf\xbd\"");
}

static void write_some(FILE *stream)
{
	struct gp_json_writer writer;

	gp_json_writer_init_line(&writer, stream);
	gp_json_writer_begin(&writer, NULL, '{');
	gp_json_writer_begin(&writer, "none", '[');
	gp_json_writer_end(&writer, ']');
	gp_json_writer_begin(&writer, "some", '[');
	gp_json_writer_u64(&writer, NULL, 1);
	gp_json_writer_string(&writer, NULL, "a\nb");
	gp_json_writer_end(&writer, ']');
	gp_json_writer_known(&writer, "known", true, 7);
	gp_json_writer_known(&writer, "unknown", false, 7);
	gp_json_writer_end(&writer, '}');
}

/* One line for one object, whatever is in it. */
static void test_json_line(void **state)
{
	(void)state;
	WRITE(write_some(stream));
	EXPECT("{\"none\": [], \"some\": [1, \"a\\nb\"], \"known\": 7, \"unknown\": null}\n");
}

/* All decimals are written, also the zeros, also of the largest value. */
static void test_decimal(void **state)
{
	(void)state;
	WRITE(gp_format_decimal(stream, 123456, 3));
	EXPECT("123.456");
	WRITE(gp_format_decimal(stream, 1002, 3));
	EXPECT("1.002");
	WRITE(gp_format_decimal(stream, 0, 6));
	EXPECT("0.000000");
	WRITE(gp_format_decimal(stream, 17, 0));
	EXPECT("17");
	WRITE(gp_format_decimal(stream, UINT64_MAX, 9));
	EXPECT("18446744073.709551615");
}

/* Counts, rates, shares, ratios and ticks. */
static void test_numbers(void **state)
{
	char buffer[GP_FORMAT_TEXT_SIZE];

	(void)state;
	assert_string_equal(gp_format_count(0, buffer, sizeof(buffer)), "0");
	assert_string_equal(gp_format_count(999, buffer, sizeof(buffer)), "999");
	assert_string_equal(gp_format_count(1234567, buffer, sizeof(buffer)), "1,234,567");
	assert_string_equal(gp_format_count(UINT64_MAX, buffer, sizeof(buffer)), "18,446,744,073,709,551,615");
	assert_string_equal(gp_format_rate(512, buffer, sizeof(buffer)), "0.51");
	assert_string_equal(gp_format_rate(9994, buffer, sizeof(buffer)), "9.99");
	assert_string_equal(gp_format_rate(9996, buffer, sizeof(buffer)), "10.0");
	assert_string_equal(gp_format_rate(99960, buffer, sizeof(buffer)), "100");
	assert_string_equal(gp_format_rate(1234500, buffer, sizeof(buffer)), "1,235");
	assert_string_equal(gp_format_share(205000, buffer, sizeof(buffer)), "20.5 %");
	assert_string_equal(gp_format_share(1000000, buffer, sizeof(buffer)), "100.0 %");
	assert_string_equal(gp_format_times(105, 100, buffer, sizeof(buffer)), "1.05×");
	assert_string_equal(gp_format_times(1999, 1000, buffer, sizeof(buffer)), "2.00×");
	assert_string_equal(gp_format_times(12345, 1000, buffer, sizeof(buffer)), "12.3×");
	assert_string_equal(gp_format_times(UINT64_MAX, 1, buffer, sizeof(buffer)), "18446744073709551615×");
	assert_string_equal(gp_format_times(UINT64_MAX - 1, UINT64_MAX, buffer, sizeof(buffer)), "1.00×");
	assert_string_equal(gp_format_tick(0, buffer, sizeof(buffer)), "0");
	assert_string_equal(gp_format_tick(2000000, buffer, sizeof(buffer)), "2 ms");
	assert_string_equal(gp_format_tick(2500000, buffer, sizeof(buffer)), "2.5 ms");
	assert_string_equal(gp_format_tick(100000000000ull, buffer, sizeof(buffer)), "100 s");
}

/* A name is cut to columns, not bytes. */
static void test_cut(void **state)
{
	char buffer[80];

	(void)state;
	assert_string_equal(gp_format_cut("serve", 10, buffer, sizeof(buffer)), "serve");
	assert_string_equal(gp_format_cut("a-long-name", 6, buffer, sizeof(buffer)), "a-lon…");
	assert_string_equal(gp_format_cut("漢字漢字", 5, buffer, sizeof(buffer)), "漢字…");
	assert_string_equal(gp_format_cut("a\x1b[31m\xff", 10, buffer, sizeof(buffer)), "a?[31m?");
	assert_true(gp_utf8_width(gp_format_cut("漢字漢字漢字", 8, buffer, sizeof(buffer))) <= 8);
}

/* Axis steps are 1, 2 or 5 times a power of ten; scales clamp, in both kinds. */
static void test_scales(void **state)
{
	(void)state;
	assert_int_equal(gp_svg_step(200000000, 10), 20000000);
	assert_int_equal(gp_svg_step(100, 10), 10);
	assert_int_equal(gp_svg_step(0, 10), 1);
	assert_true(gp_svg_step(UINT64_MAX, 10) >= UINT64_MAX / 11);
	assert_int_equal(gp_svg_scale(15, 10, 20, 1000), 500);
	assert_int_equal(gp_svg_scale(5, 10, 20, 1000), 0);
	assert_int_equal(gp_svg_scale(25, 10, 20, 1000), 1000);
	assert_int_equal(gp_svg_scale(5, 20, 20, 1000), 0);
	assert_int_equal(gp_svg_scale(UINT64_MAX / 2, 0, UINT64_MAX, 1000), 499);
	assert_in_range(gp_svg_scale_log(1000, 10, 100000, 1000), 499, 500);
	assert_int_equal(gp_svg_scale_log(1, 10, 100000, 1000), 0);
	assert_int_equal(gp_chart_client_colour(0), 0);
	assert_int_equal(gp_chart_client_colour(8), 1);
}

/* A run that every report has keeps its colour whatever else is compared; others differ from it. */
static void test_run_colours(void **state)
{
	struct gp_result_run runs[] = { { .policy = "rr", .kind = GP_RESULT_POLICY },
					{ .policy = "hpf", .kind = GP_RESULT_DEFAULT },
					{ .policy = "alone", .kind = GP_RESULT_ALONE },
					{ .policy = "wfq", .kind = GP_RESULT_POLICY },
					{ .policy = "stock", .kind = GP_RESULT_STOCK } };
	struct gp_result result = { .run_count = 5, .runs = runs };

	(void)state;
	assert_int_equal(gp_chart_run_colour(&result, 0), 3);
	assert_int_equal(gp_chart_run_colour(&result, 1), 2);
	assert_int_equal(gp_chart_run_colour(&result, 2), 0);
	assert_int_equal(gp_chart_run_colour(&result, 3), 4);
	assert_int_equal(gp_chart_run_colour(&result, 4), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_html),    cmocka_unit_test(test_json_string), cmocka_unit_test(test_json_line),
		cmocka_unit_test(test_decimal), cmocka_unit_test(test_numbers),     cmocka_unit_test(test_cut),
		cmocka_unit_test(test_scales),  cmocka_unit_test(test_run_colours),
	};

	return cmocka_run_group_tests_name("view/format", tests, NULL, NULL);
}
