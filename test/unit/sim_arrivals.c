/* SPDX-License-Identifier: MIT */
/* Request arrivals: the calendar, the real file, and every refusal. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "lib/paths.h"
#include "sim/arrivals.h"

#define HEADER "TIMESTAMP,ContextTokens,GeneratedTokens\n"

static struct gp_trace_arrivals arrivals;
static struct gp_error error;

static int parse(const char *text)
{
	return gp_trace_arrivals_parse(text, strlen(text), "a.csv", &arrivals, &error);
}

/* The distance of two timestamps in nanoseconds. */
static uint64_t between(const char *first, const char *second)
{
	char text[256];
	uint64_t ns;

	(void)snprintf(text, sizeof(text), HEADER "%s,1,2\n%s,3,4\n", first, second);
	assert_int_equal(parse(text), 0);
	assert_int_equal(arrivals.count, 2);
	assert_int_equal(arrivals.arrivals[0].offset_ns, 0);
	ns = arrivals.arrivals[1].offset_ns;
	gp_trace_arrivals_fini(&arrivals);
	return ns;
}

/* Fractions of one to nine digits, midnight, leap days of all kinds, a new year; a row that is earlier comes first. */
static void test_calendar(void **state)
{
	(void)state;
	assert_int_equal(between("2023-11-16 18:15:46.6805900", "2023-11-16 18:15:50.9951690"), 4314579000ull);
	assert_int_equal(between("2023-11-16 18:15:46", "2023-11-16T18:15:46.000000001"), 1);
	assert_int_equal(between("2023-11-16 23:59:59.9", "2023-11-17 00:00:00"), 100000000);
	assert_int_equal(between("2024-02-28 00:00:00", "2024-03-01 00:00:00"), 2 * 86400000000000ull);
	assert_int_equal(between("2023-02-28 00:00:00", "2023-03-01 00:00:00"), 86400000000000ull);
	assert_int_equal(between("2000-02-29 00:00:00", "2000-03-01 00:00:00"), 86400000000000ull);
	assert_int_equal(between("2100-02-28 00:00:00", "2100-03-01 00:00:00"), 86400000000000ull);
	assert_int_equal(between("2023-12-31 23:59:59", "2024-01-01 00:00:00"), 1000000000);
	assert_int_equal(between("2023-01-02 00:00:00", "2023-01-01 00:00:00"), 86400000000000ull);
}

/* Each malformed file is refused with its line, and nothing is returned. */
static void test_refuses(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "", "a.csv:1: the file is empty" },
		{ "a,b\n", "a.csv:1: not a list of arrivals" },
		{ HEADER, "no request" },
		{ HEADER "2023-11-16 18:15:46,1\n", "a.csv:2: the row has 2 columns" },
		{ HEADER "2023-11-16,1,2\n", "a.csv:2: the timestamp" },
		{ HEADER "2023-13-16 18:15:46,1,2\n", "timestamp" },
		{ HEADER "2023-02-29 18:15:46,1,2\n", "timestamp" },
		{ HEADER "2100-02-29 18:15:46,1,2\n", "timestamp" },
		{ HEADER "0000-01-01 18:15:46,1,2\n", "timestamp" },
		{ HEADER "2023-11-00 18:15:46,1,2\n", "timestamp" },
		{ HEADER "2023-11-16 24:15:46,1,2\n", "timestamp" },
		{ HEADER "2023-11-16 18:60:46,1,2\n", "timestamp" },
		{ HEADER "2023-11-16 18:15:60,1,2\n", "timestamp" },
		{ HEADER "2023-11-16 18:15:46.,1,2\n", "timestamp" },
		{ HEADER "2023-11-16 18:15:46.1234567890,1,2\n", "timestamp" },
		{ HEADER "2023-11-16 18:15:46Z,1,2\n", "timestamp" },
		{ HEADER "2023-11-16 18:15,1,2\n", "timestamp" },
		{ HEADER "2023/11/16 18:15:46,1,2\n", "timestamp" },
		{ HEADER "2023-11-16_18:15:46,1,2\n", "timestamp" },
		{ HEADER "2023-11-16 18:15:46,x,2\n", "a.csv:2: column 2" },
		{ HEADER "2023-11-16 18:15:46,1,-2\n", "a.csv:2: column 3" },
		{ HEADER "2023-11-16 18:15:46,1,99999999\n", "tokens" },
		{ HEADER "2023-11-16 18:15:46,1,2\n2026-01-01 00:00:00,1,2\n", "a.csv:3: the timestamp is more" },
		{ HEADER "2023-11-16 18:15:46,1,2\n2020-01-01 00:00:00,1,2\n", "more than a year" },
		{ HEADER "\"2023", "never ends" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		arrivals.count = 77;
		assert_true(parse(cases[i].text) < 0);
		if (!strstr(error.text, cases[i].says))
			fail_msg("\"%s\" does not say \"%s\"", error.text, cases[i].says);
		assert_int_equal(arrivals.count, 77);
	}
	assert_int_equal(gp_trace_arrivals_load("/nowhere.csv", &arrivals, &error), -ENOENT);
}

/* The file that comes with the program: 19,366 requests in a little less than an hour. */
static void test_shipped(void **state)
{
	char path[4096];

	(void)state;
	assert_int_equal(gp_paths_share("data/azure-llm/AzureLLMInferenceTrace_conv.csv", path, sizeof(path)), 0);
	assert_int_equal(gp_trace_arrivals_load(path, &arrivals, &error), 0);
	assert_int_equal(arrivals.count, 19366);
	assert_int_equal(arrivals.arrivals[0].context_tokens, 374);
	assert_int_equal(arrivals.arrivals[0].generated_tokens, 44);
	assert_int_equal(arrivals.arrivals[19365].offset_ns, 3501721937000ull);
	gp_trace_arrivals_fini(&arrivals);
	gp_trace_arrivals_fini(&arrivals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calendar),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_shipped),
	};

	return cmocka_run_group_tests_name("sim/arrivals", tests, NULL, NULL);
}
