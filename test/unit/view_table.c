/* SPDX-License-Identifier: MIT */
/* The table: aligned, narrow enough, understandable, and safe whatever the names are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "lib/utf8.h"
#include "test/unit/view_sample.h"

static char *table_in(const struct gp_result *result, bool colour, uint32_t width)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	assert_int_equal(gp_view_table(stream, result, colour, width), 0);
	fclose(stream);
	return text;
}

static char *table(const struct gp_result *result, bool colour)
{
	return table_in(result, colour, 0);
}

/* No line is longer than 110 columns, and the rows of clients are all as long as the head. */
static void check_shape(char *text)
{
	size_t head = 0, rows = 0;

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		assert_true(gp_utf8_width(line) <= 110);
		if (!strncmp(line, "run ", 4))
			head = gp_utf8_width(line);
		if (head && line[strlen(line) - 1] == '%') {
			assert_int_equal(gp_utf8_width(line), head);
			rows++;
		}
	}
	assert_true(head > 0);
	assert_int_equal(rows, 6);
}

/* Deadlines have a column where somebody has one, and only there; the mix's title comes first. */
static void test_deadlines(void **state)
{
	struct gp_result *result = view_sample_create(1);
	char *text = table(result, false);

	(void)state;
	assert_null(strstr(text, "in time"));
	free(text);
	result->runs[2].clients[0].deadlines_met = 9812;
	result->runs[2].clients[0].deadlines_missed = 188;
	strcpy(result->mix_title, "a service beside a trainer");
	text = table(result, false);
	assert_non_null(strstr(text, "9,812 of 10,000"));
	assert_int_equal(strncmp(text, "a service beside a trainer\n", 27), 0);
	check_shape(text);
	free(text);
	view_sample_destroy(result);
}

/* The sample: the figures a newcomer looks for, the legend, and no escape sequence. */
static void test_sample(void **state)
{
	static const char *const needed[] = { "serve+train on AMD Instinct MI300X",
					      "simulated, not measured",
					      "99 = most urgent",
					      "1.00×",
					      "10,000",
					      "803 preemptions, 803 inversions (130 ms in all, longest 190 µs)",
					      "left alone",
					      "seed 7",
					      "gate per process at 150 µs",
					      "\nBeside train, the p99 of serve is " };
	struct gp_result *result = view_sample_create(1);
	char *text = table(result, false);

	(void)state;
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!strstr(text, needed[i]))
			fail_msg("\"%s\" is missing", needed[i]);
	assert_null(strchr(text, '\033'));
	check_shape(text);
	free(text);
	text = table(result, true);
	assert_non_null(strstr(text, "\033[1m"));
	free(text);
	view_sample_destroy(result);
}

/* Requests that pile up: counted below the run, explained in the legend, and what they measure is a lower bound. */
static void test_unfinished(void **state)
{
	static const char *const needed[] = { "> 22.3 ms", "6,000 requests unfinished at the end",
					      "unfinished: still waiting when the run ended", "(p99 > 22.3 ms)" };
	struct gp_result *result = view_sample_create(1);
	char *text = table(result, false);

	(void)state;
	assert_null(strstr(text, "unfinished"));
	assert_null(strstr(text, "> "));
	free(text);
	result->runs[1].clients[0].requests = 4000;
	result->runs[1].clients[0].unfinished = 6000;
	text = table(result, false);
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!strstr(text, needed[i]))
			fail_msg("\"%s\" is missing", needed[i]);
	check_shape(text);
	free(text);
	view_sample_destroy(result);
}

/* The sentence is there only where there is an alone and a stock run. */
static void test_finding(void **state)
{
	struct gp_result *result = view_sample_create(1);
	char *text;

	(void)state;
	strcpy(result->runs[1].policy, "rr");
	result->runs[1].kind = GP_RESULT_POLICY;
	text = table(result, false);
	assert_null(strstr(text, "Beside"));
	free(text);
	view_sample_destroy(result);
}

/* A group is one row; alone, its rate and share are those of one client. */
static void test_group(void **state)
{
	struct gp_result *result = view_sample_create(15);
	char *text = table(result, false);

	(void)state;
	assert_non_null(strstr(text, "train ×15"));
	assert_non_null(strstr(text, "each 2.54"));
	assert_non_null(strstr(text, "each 1.3 %"));
	check_shape(text);
	free(text);
	view_sample_destroy(result);
}

/* Names that are long, wide, or hold control characters change neither the width nor the alignment. */
static void test_hostile_names(void **state)
{
	struct gp_result *result = view_sample_create(1);
	char *text;

	(void)state;
	memset(result->mix, 'm', sizeof(result->mix) - 1);
	memset(result->device_title, '\033', sizeof(result->device_title) - 1);
	result->runs[2].turns = result->runs[2].limited = result->runs[2].aged = 1234567;
	result->runs[2].killed_ns = 1234567890;
	for (uint32_t i = 0; i < result->run_count; i++) {
		strcpy(result->runs[i].clients[0].name, "漢字漢字漢字漢字漢字漢字漢字");
		memset(result->runs[i].clients[1].name, '\033', sizeof(result->runs[i].clients[1].name) - 1);
		strcpy(result->runs[i].policy, "a-policy-of-23-letters-");
		result->runs[i].clients[0].requests = 9999999;
		result->runs[i].clients[0].unfinished = 9000;
		result->runs[i].clients[1].throughput_milli = 999999999;
	}
	text = table(result, false);
	assert_null(strchr(text, '\033'));
	check_shape(text);
	free(text);
	view_sample_destroy(result);
}

/* Without runs, and with a client without requests: no crash, no invented number. */
static void test_empty(void **state)
{
	struct gp_result *result = view_sample_create(0);
	uint32_t run_count = result->run_count;
	char *text;

	(void)state;
	gp_hist_init(&result->runs[0].clients[0].latency_ns);
	text = table(result, false);
	assert_non_null(strstr(text, "–"));
	assert_null(strstr(text, "1.00×"));
	free(text);
	result->run_count = 0;
	free(table(result, false));
	result->run_count = run_count;
	view_sample_destroy(result);
}

/* Programs on a virtual node: said so, and inversions that nobody counted are not shown as none. */
static void test_emulated(void **state)
{
	struct gp_result *result = view_sample_create(1);
	char *text;

	(void)state;
	result->is_emulated = true;
	for (uint32_t i = 0; i < result->run_count; i++)
		result->runs[i].inversions_unknown = true;
	text = table(result, false);
	assert_non_null(strstr(text, "virtual node, not measured on a GPU"));
	assert_null(strstr(text, "simulated"));
	assert_null(strstr(text, " inversions"));
	free(text);
	view_sample_destroy(result);
}

/* A narrow terminal loses columns, not digits: every row fits, and p99 is the last to go. */
static void test_narrow(void **state)
{
	struct gp_result *result = view_sample_create(1);
	char *text;

	(void)state;
	text = table_in(result, false, 60);
	assert_null(strstr(text, "requests   "));
	assert_non_null(strstr(text, "p99"));
	assert_null(strstr(text, " max "));
	/* What explains the columns fits as well. */
	for (char *line = strstr(text, "prio: 99"), *end; line && *line; line = end) {
		end = line + strcspn(line, "\n");
		end += *end == '\n';
		assert_true(end - line <= 61);
	}
	free(text);
	view_sample_destroy(result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deadlines),     cmocka_unit_test(test_sample),  cmocka_unit_test(test_emulated),
		cmocka_unit_test(test_unfinished),    cmocka_unit_test(test_finding), cmocka_unit_test(test_group),
		cmocka_unit_test(test_hostile_names), cmocka_unit_test(test_empty),   cmocka_unit_test(test_narrow),
	};

	return cmocka_run_group_tests_name("view/table", tests, NULL, NULL);
}
