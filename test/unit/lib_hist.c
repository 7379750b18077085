/* SPDX-License-Identifier: MIT */
/* The histogram: exact below 128, within 1.6 % above, quantiles as documented. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "lib/hist.h"

static struct gp_hist hist, other;

/* Small values have a bucket each: every quantile of 1..100 is the value itself. */
static void test_exact_when_small(void **state)
{
	(void)state;
	gp_hist_init(&hist);
	for (uint64_t i = 1; i <= 100; i++)
		gp_hist_add(&hist, i);
	assert_int_equal(gp_hist_quantile(&hist, 500), 50);
	assert_int_equal(gp_hist_quantile(&hist, 900), 90);
	assert_int_equal(gp_hist_quantile(&hist, 990), 99);
	assert_int_equal(gp_hist_quantile(&hist, 991), 100);
	assert_int_equal(gp_hist_quantile(&hist, 0), 1);
	assert_int_equal(gp_hist_quantile(&hist, 1000), 100);
	assert_int_equal(gp_hist_quantile(&hist, 5000), 100);
	assert_int_equal(hist.sum, 5050);
}

/* A single value at every magnitude: the quantile below max is never less than the value and never 1/64 above it. */
static void test_error_bound(void **state)
{
	(void)state;
	for (uint64_t value = 1; value < 1ull << 45; value += value / 7 + 1) {
		uint64_t quantile;

		gp_hist_init(&hist);
		gp_hist_add(&hist, value);
		gp_hist_add(&hist, UINT64_MAX);
		quantile = gp_hist_quantile(&hist, 500);
		assert_true(quantile >= value);
		assert_true(quantile - value <= value / GP_HIST_SUB);
	}
}

/* Bucket ends are never shown above the largest sample, and values beyond the range end in the last bucket. */
static void test_never_above_max(void **state)
{
	(void)state;
	gp_hist_init(&hist);
	gp_hist_add(&hist, 1000001);
	assert_int_equal(gp_hist_quantile(&hist, 500), 1000001);
	gp_hist_init(&hist);
	gp_hist_add(&hist, UINT64_MAX);
	gp_hist_add(&hist, UINT64_MAX - 1);
	assert_int_equal(gp_hist_quantile(&hist, 10), UINT64_MAX);
	assert_int_equal(hist.sum, UINT64_MAX);
	assert_int_equal(hist.min, UINT64_MAX - 1);
}

/* An empty histogram says 0. */
static void test_empty(void **state)
{
	(void)state;
	gp_hist_init(&hist);
	assert_int_equal(gp_hist_quantile(&hist, 990), 0);
	gp_hist_init(&other);
	gp_hist_merge(&hist, &other);
	assert_int_equal(hist.count, 0);
}

/* Merging two halves gives the same as adding everything to one, also with the smaller half first and into an empty
 * one. */
static void test_merge(void **state)
{
	static struct gp_hist whole;

	(void)state;
	gp_hist_init(&hist);
	gp_hist_init(&other);
	gp_hist_init(&whole);
	for (uint64_t i = 0; i < 1000; i++) {
		gp_hist_add(i % 3 ? &hist : &other, i * i * 1000);
		gp_hist_add(&whole, i * i * 1000);
	}
	gp_hist_merge(&hist, &other);
	assert_memory_equal(&hist, &whole, sizeof(hist));
	gp_hist_init(&other);
	gp_hist_merge(&other, &whole);
	assert_memory_equal(&other, &whole, sizeof(hist));
}

/* A bucket that is full stays full instead of beginning again at 0. */
static void test_saturates(void **state)
{
	(void)state;
	gp_hist_init(&hist);
	gp_hist_init(&other);
	gp_hist_add(&hist, 5);
	gp_hist_add(&other, 5);
	hist.buckets[5] = UINT32_MAX;
	gp_hist_add(&hist, 5);
	gp_hist_merge(&hist, &other);
	assert_int_equal(hist.buckets[5], UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact_when_small),
		cmocka_unit_test(test_error_bound),
		cmocka_unit_test(test_never_above_max),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_saturates),
	};

	return cmocka_run_group_tests_name("lib/hist", tests, NULL, NULL);
}
