/* SPDX-License-Identifier: MIT */
/* Unions of intervals against a bitmap, and medians against sorted values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "lib/rng.h"
#include "report/busy.h"
#include "report/stat.h"

#define TIME_MAX 4000u

/* The total, the time up to a point and the time between two points are those of a bitmap. */
static void test_union(void **state)
{
	struct gp_rng rng;

	(void)state;
	gp_rng_init(&rng, 1);
	for (int round = 0; round < 50; round++) {
		char bits[TIME_MAX + 200] = "";
		struct gp_busy busy;
		uint64_t start = 0;

		assert_int_equal(gp_busy_init_history(&busy), 0);
		for (;;) {
			uint64_t end, want = 0, between = 0, from;

			start += gp_rng_below(&rng, 60);
			end = start + gp_rng_below(&rng, 100);
			if (start >= TIME_MAX)
				break;
			memset(bits + start, 1, end - start);
			gp_busy_add(&busy, start, end);
			from = gp_rng_below(&rng, start + 1);
			for (uint64_t i = 0; i < sizeof(bits); i++) {
				want += (uint64_t)bits[i];
				between += i >= from && i < start ? (uint64_t)bits[i] : 0;
			}
			assert_int_equal(gp_busy_total(&busy), want);
			assert_int_equal(gp_busy_between(&busy, from, start), between);
			want = 0;
			for (uint64_t i = 0; i < start; i++)
				want += (uint64_t)bits[i];
			assert_int_equal(gp_busy_until(&busy, start), want);
		}
		gp_busy_fini(&busy);
	}
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void test_quantiles(void **state)
{
	static uint64_t values[1001];
	struct gp_spread *spread = calloc(1, sizeof(*spread));
	struct gp_rng rng;

	(void)state;
	assert_non_null(spread);
	gp_rng_init(&rng, 2);
	for (size_t i = 0; i < 1001; i++) {
		values[i] = gp_rng_below(&rng, 1ull << gp_rng_below(&rng, 44));
		gp_spread_add(spread, values[i]);
	}
	qsort(values, 1001, sizeof(values[0]), compare);
	for (uint32_t permille = 10; permille <= 1000; permille += 10) {
		uint64_t want = values[(1001u * permille + 999u) / 1000u - 1],
			 got = gp_spread_quantile(spread, permille);

		assert_true(got <= want + want / 25 && got + got / 25 >= want);
	}
	assert_true(spread->min_ns == values[0] && spread->max_ns == values[1000]);
	gp_spread_fini(spread);
	memset(spread, 0, sizeof(*spread));
	assert_int_equal(gp_spread_quantile(spread, 500), 0);
	gp_spread_add(spread, UINT64_MAX);
	assert_true(gp_spread_quantile(spread, 500) == UINT64_MAX);
	gp_spread_fini(spread);
	free(spread);
}

/* Names, layers and processes are told apart; beyond the maximum the last one takes the rest. */
static void test_stats(void **state)
{
	struct gp_report_stats stats;
	struct gp_stat *stat;

	(void)state;
	assert_int_equal(gp_stats_init(&stats), 0);
	stat = gp_stats_get(&stats, 1, 2, 3);
	assert_ptr_equal(gp_stats_get(&stats, 1, 2, 3), stat);
	assert_ptr_not_equal(gp_stats_get(&stats, 1, 2, 4), stat);
	assert_ptr_not_equal(gp_stats_get(&stats, 1, 3, 3), stat);
	assert_ptr_not_equal(gp_stats_get(&stats, 2, 2, 3), stat);
	for (uint32_t i = 0; i < GP_STAT_MAX + 100; i++)
		assert_non_null(gp_stats_get(&stats, i, 0, 0));
	assert_int_equal(stats.count, GP_STAT_MAX);
	assert_true(stats.folded >= 100);
	gp_stats_fini(&stats);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_union),
		cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_stats),
	};

	return cmocka_run_group_tests_name("report/busy", tests, NULL, NULL);
}
