/* SPDX-License-Identifier: MIT */
/* Durations, sizes, rates and counts: exact when read, short when written, refused with a sentence. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "lib/units.h"

static uint64_t ns(const char *text)
{
	uint64_t value = 0;
	struct gp_error error;

	assert_int_equal(gp_units_parse_ns(text, "--duration", 0, UINT64_MAX, &value, &error), 0);
	return value;
}

/* Every unit, with and without a blank and a fraction; both spellings of µ; 0 needs none. */
static void test_durations(void **state)
{
	(void)state;
	assert_int_equal(ns("0"), 0);
	assert_int_equal(ns("17ns"), 17);
	assert_int_equal(ns("150us"), 150000);
	assert_int_equal(ns("150 \xc2\xb5s"), 150000);
	assert_int_equal(ns("150\xce\xbcs"), 150000);
	assert_int_equal(ns("2.5ms"), 2500000);
	assert_int_equal(ns("10s"), 10000000000ull);
	assert_int_equal(ns("1.000000001s"), 1000000001ull);
	assert_int_equal(ns("0.500000000000000000000h"), 1800000000000ull);
	assert_int_equal(ns("3min"), 180000000000ull);
}

/* What is refused says why and leaves the value alone. */
static void test_duration_refusals(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *says;
	} cases[] = {
		{ "150", -EINVAL, "no unit" },
		{ "0.0", -EINVAL, "no unit" },
		{ "", -EINVAL, "not a number" },
		{ "-1s", -EINVAL, "not a number with a unit; write it like 150us or 90s" },
		{ "1.s", -EINVAL, "no digit" },
		{ "1.5ns", -EINVAL, "finer than 1 ns" },
		{ "0.0000000001s", -EINVAL, "finer" },
		{ "0.0000000000000000000001h", -EINVAL, "finer" },
		{ "3 parsecs", -EINVAL, "unknown unit" },
		{ "99999999999999999999s", -ERANGE, "too large" },
		{ "18446744073709551615s", -ERANGE, "too large" },
		{ "1us", -ERANGE, "from 10.0 µs to 1.00 s" },
		{ "2s", -ERANGE, "outside the limits" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t value = 77;
		struct gp_error error;

		assert_int_equal(gp_units_parse_ns(cases[i].text, "--x", 10000, 1000000000, &value, &error),
				 cases[i].code);
		assert_non_null(strstr(error.text, cases[i].says));
		assert_ptr_equal(strstr(error.text, "--x"), error.text);
		assert_int_equal(value, 77);
	}
	assert_int_equal(gp_units_parse_ns("x", "--x", 0, 1, &(uint64_t){ 0 }, NULL), -EINVAL);
}

/* Sizes and rates, powers of ten and of two. */
static void test_sizes_and_rates(void **state)
{
	struct gp_error error;
	uint64_t value = 0;

	(void)state;
	assert_int_equal(gp_units_parse_size("64KiB", "x", UINT64_MAX, &value, &error), 0);
	assert_int_equal(value, 65536);
	assert_int_equal(gp_units_parse_size("1.5GB", "x", UINT64_MAX, &value, &error), 0);
	assert_int_equal(value, 1500000000);
	assert_int_equal(gp_units_parse_size("192 GiB", "x", UINT64_MAX, &value, &error), 0);
	assert_int_equal(value, 192ull << 30);
	assert_int_equal(gp_units_parse_rate("5.3TB/s", "x", UINT64_MAX, &value, &error), 0);
	assert_int_equal(value, 5300000000000ull);
	assert_int_equal(gp_units_parse_rate("5.3TB", "x", UINT64_MAX, &value, &error), -EINVAL);
	assert_int_equal(gp_units_parse_size("1025B", "x", 1024, &value, &error), -ERANGE);
	assert_non_null(strstr(error.text, "1.00 KiB"));
	assert_int_equal(gp_units_parse_rate("2MiB/s", "x", 1024, &value, &error), -ERANGE);
	assert_non_null(strstr(error.text, "1.00 KiB/s"));
}

/* Counts are digits and nothing else. */
static void test_counts(void **state)
{
	static const char *const bad[] = { "", "-1", "+1", "1x", " 1", "0x10", "1.0", "18446744073709551616", "11" };
	struct gp_error error;
	uint64_t value = 0;

	(void)state;
	assert_int_equal(gp_units_parse_count("10", "x", 0, 10, &value, &error), 0);
	assert_int_equal(value, 10);
	assert_int_equal(gp_units_parse_count("18446744073709551615", "x", 0, UINT64_MAX, &value, &error), 0);
	assert_int_equal(value, UINT64_MAX);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_true(gp_units_parse_count(bad[i], "x", 0, 10, &value, &error) < 0);
}

/* Three digits, rounded, with the carry into the next unit. */
static void test_formats(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} times[] = {
		{ 0, "0 ns" },
		{ 999, "999 ns" },
		{ 1000, "1.00 µs" },
		{ 12345, "12.3 µs" },
		{ 9994, "9.99 µs" },
		{ 9995, "10.0 µs" },
		{ 99949, "99.9 µs" },
		{ 99950, "100 µs" },
		{ 999499, "999 µs" },
		{ 999500, "1.00 ms" },
		{ 2500000, "2.50 ms" },
		{ 999999999, "1.00 s" },
		{ 3600000000000ull, "3600 s" },
		{ UINT64_MAX, "18446744074 s" },
	};
	static const struct {
		uint64_t size;
		const char *text;
	} sizes[] = {
		{ 0, "0 B" },
		{ 1023, "1023 B" },
		{ 1024, "1.00 KiB" },
		{ 1048575, "1.00 MiB" },
		{ 64ull << 20, "64.0 MiB" },
		{ 192ull << 30, "192 GiB" },
		{ UINT64_MAX, "16777216 TiB" },
	};
	char buffer[GP_UNITS_TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		assert_string_equal(gp_units_format_ns(times[i].ns, buffer, sizeof(buffer)), times[i].text);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		assert_string_equal(gp_units_format_size(sizes[i].size, buffer, sizeof(buffer)), sizes[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_durations),       cmocka_unit_test(test_duration_refusals),
		cmocka_unit_test(test_sizes_and_rates), cmocka_unit_test(test_counts),
		cmocka_unit_test(test_formats),
	};

	return cmocka_run_group_tests_name("lib/units", tests, NULL, NULL);
}
