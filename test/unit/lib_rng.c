/* SPDX-License-Identifier: MIT */
/* Random numbers: the same everywhere, without bias, and exponential as the mathematics says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "lib/log2.h"
#include "lib/rng.h"

#define SAMPLES 200000u

/* The first numbers of seed 0 and 7, computed independently (splitmix64 into xoshiro256**): a change would change
 * every simulation. */
static void test_known_numbers(void **state)
{
	struct gp_rng rng;

	(void)state;
	gp_rng_init(&rng, 0);
	assert_int_equal(rng.state[0], 0xe220a8397b1dcdafull);
	assert_int_equal(rng.state[1], 0x6e789e6aa1b965f4ull);
	assert_int_equal(rng.state[2], 0x06c45d188009454full);
	assert_int_equal(rng.state[3], 0xf88bb8a8724c81ecull);
	assert_int_equal(gp_rng_next(&rng), 0x99ec5f36cb75f2b4ull);
	assert_int_equal(gp_rng_next(&rng), 0xbf6e1f784956452aull);
	gp_rng_init(&rng, 7);
	assert_int_equal(gp_rng_next(&rng), 0xb358faf74ef9765aull);
}

/* Every residue of a bound that does not divide 2^64 comes equally often, within five standard deviations. */
static void test_below_has_no_bias(void **state)
{
	uint32_t counts[7] = { 0 };
	struct gp_rng rng;

	(void)state;
	gp_rng_init(&rng, 42);
	for (uint32_t i = 0; i < 700000; i++) {
		uint64_t value = gp_rng_below(&rng, 7);

		assert_true(value < 7);
		counts[value]++;
	}
	for (int i = 0; i < 7; i++)
		assert_in_range(counts[i], 100000 - 1500, 100000 + 1500);
	assert_int_equal(gp_rng_below(&rng, 0), 0);
	assert_int_equal(gp_rng_below(&rng, 1), 0);
	/* A bound just above half of the range is drawn again about every second time and still stays below. */
	for (int i = 0; i < 100; i++)
		assert_true(gp_rng_below(&rng, (1ull << 63) + 1) <= 1ull << 63);
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Mean m; half lie below m ln 2, nine tenths below m ln 10, 99 of 100 below m ln 100. */
static void test_exponential(void **state)
{
	uint64_t *samples = malloc(SAMPLES * sizeof(*samples)), sum = 0;
	struct gp_rng rng;

	(void)state;
	assert_non_null(samples);
	gp_rng_init(&rng, 1);
	for (uint32_t i = 0; i < SAMPLES; i++) {
		samples[i] = gp_rng_exponential(&rng, 1000000);
		sum += samples[i];
	}
	qsort(samples, SAMPLES, sizeof(*samples), compare_u64);
	assert_in_range(sum / SAMPLES, 990000, 1010000);
	assert_in_range(samples[SAMPLES / 2], 693147 - 9000, 693147 + 9000);
	assert_in_range(samples[SAMPLES / 10 * 9], 2302585 - 25000, 2302585 + 25000);
	assert_in_range(samples[SAMPLES / 100 * 99], 4605170 - 100000, 4605170 + 100000);
	free(samples);
}

/* The ends: a mean of 0 gives 0, the largest mean does not wrap around. */
static void test_exponential_ends(void **state)
{
	struct gp_rng rng;
	bool has_saturated = false;

	(void)state;
	gp_rng_init(&rng, 3);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(gp_rng_exponential(&rng, 0), 0);
		has_saturated |= gp_rng_exponential(&rng, UINT64_MAX) == UINT64_MAX;
	}
	assert_true(has_saturated);
}

/* The logarithm at powers of two is exact, elsewhere as in a table (log2 3, log2 10, log2 1000003, in Q32, rounded
 * down). */
static void test_log2(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 64; i++)
		assert_int_equal(gp_log2_q32(1ull << i), i << 32);
	assert_int_equal(gp_log2_q32(3), 6807362105ull);
	assert_int_equal(gp_log2_q32(10), 14267572527ull);
	assert_true(gp_log2_q32(UINT64_MAX) < 64ull << 32);
	assert_true(gp_log2_q32(UINT64_MAX) >= (64ull << 32) - 1);
}

/* A forked stream differs from its parent and is the same each time. */
static void test_fork(void **state)
{
	struct gp_rng a, b, child;
	uint64_t seed;

	(void)state;
	gp_rng_init(&a, 5);
	gp_rng_init(&b, 5);
	seed = gp_rng_fork(&a);
	assert_int_equal(seed, gp_rng_fork(&b));
	gp_rng_init(&child, seed);
	assert_int_not_equal(gp_rng_next(&child), gp_rng_next(&a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_numbers), cmocka_unit_test(test_below_has_no_bias),
		cmocka_unit_test(test_exponential),   cmocka_unit_test(test_exponential_ends),
		cmocka_unit_test(test_log2),          cmocka_unit_test(test_fork),
	};

	return cmocka_run_group_tests_name("lib/rng", tests, NULL, NULL);
}
