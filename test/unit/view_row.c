/* SPDX-License-Identifier: MIT */
/* Rows: who shares one, what it adds up to, and when a latency is only a lower bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "test/unit/view_sample.h"
#include "view/row.h"

static struct gp_result_client clients[12];
static struct gp_row row;

static struct gp_result_run run_of(uint32_t count, const char *format, bool is_service)
{
	struct gp_result_run run = { .client_count = count, .clients = clients, .policy = "hpf" };

	memset(clients, 0, sizeof(clients));
	for (uint32_t i = 0; i < count; i++) {
		/* The formats are this file's own, each with one number. */
		(void)snprintf(clients[i].name, sizeof(clients[i].name), "%s%u", format, i);
		clients[i].is_service = is_service;
		clients[i].requests = 10;
		clients[i].throughput_milli = 1000;
		clients[i].gpu_share_ppm = 990000;
		clients[i].priority = 20;
	}
	return run;
}

/* Batch clients that differ only in their number become one row, from four on, without what joins the number. */
static void test_batch(void **state)
{
	struct gp_result_run run = run_of(6, "batch-", false);

	(void)state;
	clients[5].priority = 30;
	gp_row_init(&row, &run, 0);
	assert_int_equal(row.count, 5);
	assert_int_equal(row.requests, 50);
	assert_int_equal(row.throughput_milli, 5000);
	assert_string_equal(row.name, "batch ×5");
	gp_row_init(&row, &run, 2);
	assert_int_equal(row.count, 1);
	assert_string_equal(row.name, "batch-2");
	clients[1].is_service = true;
	gp_row_init(&row, &run, 0);
	assert_int_equal(row.count, 1);
	run = run_of(4, "train", false);
	gp_row_init(&row, &run, 0);
	assert_string_equal(row.name, "train ×4");
	/* Numbers alone are no name to share. */
	run = run_of(4, "", false);
	gp_row_init(&row, &run, 0);
	assert_int_equal(row.count, 1);
}

/* Services share a row when there are more than eight, with their latencies together. */
static void test_services(void **state)
{
	struct gp_result_run run = run_of(8, "small-", true);
	char text[GP_ROW_TEXT_SIZE];

	(void)state;
	gp_row_init(&row, &run, 0);
	assert_int_equal(row.count, 1);
	run = run_of(12, "small-", true);
	for (uint32_t i = 0; i < 12; i++)
		gp_hist_add(&clients[i].latency_ns, 100 + i);
	gp_row_init(&row, &run, 0);
	assert_int_equal(row.count, 12);
	assert_string_equal(row.name, "small ×12");
	assert_int_equal(gp_row_latency(&row)->count, 12);
	assert_string_equal(gp_row_format_latency(&row, 1000, text, sizeof(text)), "111 ns");
	assert_true(gp_row_find(&row, &run, "small ×12"));
	assert_false(gp_row_find(&row, &run, "small-1"));
}

/* Alone, clients of a group never met: rate and share are the mean of one, and say so. */
static void test_mean(void **state)
{
	struct gp_result_run run = run_of(4, "batch-", false);
	char text[GP_ROW_TEXT_SIZE];

	(void)state;
	strcpy(run.policy, "alone");
	run.kind = GP_RESULT_ALONE;
	gp_row_init(&row, &run, 0);
	assert_string_equal(gp_row_format_rate(&row, text, sizeof(text)), "each 1.00");
	assert_string_equal(gp_row_format_share(&row, text, sizeof(text)), "each 99.0 %");
	strcpy(run.policy, "stock");
	run.kind = GP_RESULT_STOCK;
	gp_row_init(&row, &run, 0);
	assert_string_equal(gp_row_format_rate(&row, text, sizeof(text)), "4.00");
}

/* A quantile is a lower bound as soon as more requests are unfinished than may lie beyond it. */
static void test_bounds(void **state)
{
	static const struct {
		uint64_t unfinished;
		bool p50, p90, p99, max;
	} cases[] = {
		{ 0, false, false, false, false }, { 10, false, false, false, false },
		{ 11, false, false, true, true },  { 100, false, false, true, true },
		{ 101, false, true, true, true },  { 500, false, true, true, true },
		{ 501, true, true, true, true },   { UINT64_MAX, true, true, true, true },
	};
	struct gp_result_run run = run_of(1, "serve", true);
	char text[GP_ROW_TEXT_SIZE];

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		gp_hist_add(&clients[0].latency_ns, 5);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		clients[0].unfinished = cases[i].unfinished;
		gp_row_init(&row, &run, 0);
		assert_int_equal(gp_row_is_bound(&row, 500), cases[i].p50);
		assert_int_equal(gp_row_is_bound(&row, 900), cases[i].p90);
		assert_int_equal(gp_row_is_bound(&row, 990), cases[i].p99);
		assert_int_equal(gp_row_is_bound(&row, 1000), cases[i].max);
		assert_int_equal(gp_row_unfinished(&run), cases[i].p99 ? cases[i].unfinished : 0);
	}
	assert_string_equal(gp_row_format_latency(&row, 990, text, sizeof(text)), "> 5 ns");
	clients[0].latency_ns.count = UINT64_MAX;
	clients[0].unfinished = UINT64_MAX / 2;
	gp_row_init(&row, &run, 0);
	assert_true(gp_row_is_bound(&row, 900));
	assert_false(gp_row_is_bound(&row, 500));
}

/* Against alone: a ratio, a bound, or nothing where alone is itself only a bound. */
static void test_times(void **state)
{
	struct gp_result *result = view_sample_create(1);
	char text[GP_ROW_TEXT_SIZE];

	(void)state;
	gp_row_init(&row, &result->runs[0], 0);
	assert_string_equal(gp_row_format_times(&row, result, text, sizeof(text)), "1.00×");
	result->runs[2].clients[0].unfinished = 5000;
	gp_row_init(&row, &result->runs[2], 0);
	assert_string_equal(gp_row_format_times(&row, result, text, sizeof(text)), "> 1.06×");
	result->runs[0].clients[0].unfinished = 5000;
	assert_string_equal(gp_row_format_times(&row, result, text, sizeof(text)), "–");
	view_sample_destroy(result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_batch),  cmocka_unit_test(test_services), cmocka_unit_test(test_mean),
		cmocka_unit_test(test_bounds), cmocka_unit_test(test_times),
	};

	return cmocka_run_group_tests_name("view/row", tests, NULL, NULL);
}
