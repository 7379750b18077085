/* SPDX-License-Identifier: MIT */
/* The allocator of the virtual node's memory: what is taken is nobody else's, what is given back is whole again. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "vgpu/node/bar.h"

#define BEGIN 0x200000u
#define END   0x40200000u

/* Taking everything in pieces and giving it back in another order leaves one extent: coalescing works on both sides. */
static void test_coalesces(void **state)
{
	struct gp_range range;
	uint64_t places[64];

	(void)state;
	assert_int_equal(gp_range_init(&range, BEGIN, END), 0);
	for (uint32_t i = 0; i < 64u; i++)
		assert_int_equal(gp_range_take(&range, (END - BEGIN) / 64u, 4096, &places[i]), 0);
	assert_int_equal(gp_range_take(&range, 4096, 4096, &(uint64_t){ 0 }), -ENOSPC);
	assert_int_equal(gp_range_free_size(&range), 0);
	for (uint32_t i = 0; i < 64u; i += 2u)
		gp_range_give(&range, places[i], (END - BEGIN) / 64u);
	for (uint32_t i = 63; i < 64u; i -= 2u)
		gp_range_give(&range, places[i], (END - BEGIN) / 64u);
	assert_int_equal(range.free_count, 1);
	assert_int_equal(gp_range_free_size(&range), END - BEGIN);
	gp_range_fini(&range);
}

/* Aligned pieces are aligned, and the gap before them stays usable. */
static void test_aligns(void **state)
{
	struct gp_range range;
	uint64_t small, large, gap;

	(void)state;
	assert_int_equal(gp_range_init(&range, BEGIN, END), 0);
	assert_int_equal(gp_range_take(&range, 4096, 4096, &small), 0);
	assert_int_equal(gp_range_take(&range, 0x200000, 0x200000, &large), 0);
	assert_int_equal(large % 0x200000u, 0);
	assert_int_equal(gp_range_take(&range, 4096, 4096, &gap), 0);
	assert_int_equal(gap, small + 4096u);
	gp_range_fini(&range);
}

/* Random takes and gives, against a map of pages kept apart: no page is ever given out twice. */
static void test_never_twice(void **state)
{
	static uint8_t owned[(END - BEGIN) / 4096u];
	static struct {
		uint64_t begin, size;
	} pieces[512];
	struct gp_range range;
	uint64_t seed = 7;

	(void)state;
	assert_int_equal(gp_range_init(&range, BEGIN, END), 0);
	for (uint32_t i = 0; i < 20000u; i++) {
		uint32_t at;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		at = seed >> 33 & 511u;
		if (pieces[at].size) {
			for (uint64_t page = 0; page < pieces[at].size / 4096u; page++)
				owned[(pieces[at].begin - BEGIN) / 4096u + page] = 0;
			gp_range_give(&range, pieces[at].begin, pieces[at].size);
			pieces[at].size = 0;
			continue;
		}
		pieces[at].size = ((seed >> 45 & 1023u) + 1u) * 4096u;
		if (gp_range_take(&range, pieces[at].size, seed & 1u ? 4096u : 0x200000u, &pieces[at].begin) < 0) {
			pieces[at].size = 0;
			continue;
		}
		for (uint64_t page = 0; page < pieces[at].size / 4096u; page++) {
			assert_int_equal(owned[(pieces[at].begin - BEGIN) / 4096u + page], 0);
			owned[(pieces[at].begin - BEGIN) / 4096u + page] = 1;
		}
	}
	for (uint32_t i = 0; i < 512u; i++)
		if (pieces[i].size)
			gp_range_give(&range, pieces[i].begin, pieces[i].size);
	assert_int_equal(range.free_count, 1);
	gp_range_fini(&range);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_coalesces),
		cmocka_unit_test(test_aligns),
		cmocka_unit_test(test_never_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
