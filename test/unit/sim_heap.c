/* SPDX-License-Identifier: MIT */
#include "lib/rng.h"
#include "sim/heap.h"
#include "test/unit/sim_fixture.h"

/* Events come out by time and, at one time, in the order they were pushed: against a plain search in an array. */
static void test_order(void **state)
{
	struct gp_sim_heap heap = { 0 };
	struct gp_rng rng;
	uint64_t last_ns = 0, last_seq = 0;
	uint32_t i;

	(void)state;
	gp_rng_init(&rng, 1);
	for (i = 0; i < 5000; i++) {
		struct gp_sim_heap_event event = { .time_ns = gp_rng_below(&rng, 50), .index = i };

		assert_int_equal(gp_sim_heap_push(&heap, &event), 0);
	}
	for (i = 0; i < 5000; i++) {
		uint64_t next_ns = gp_sim_heap_next_ns(&heap);
		struct gp_sim_heap_event event = gp_sim_heap_pop(&heap);

		assert_int_equal(event.time_ns, next_ns);
		assert_true(event.time_ns > last_ns || (event.time_ns == last_ns && (!i || event.seq > last_seq)));
		assert_int_equal(event.seq, event.index);
		last_ns = event.time_ns;
		last_seq = event.seq;
	}
	assert_true(gp_sim_heap_next_ns(&heap) == UINT64_MAX);
	gp_sim_heap_fini(&heap);
}

/* Pushing between pops keeps the order: what is due earlier still comes first. */
static void test_interleaved(void **state)
{
	struct gp_sim_heap heap = { 0 };
	struct gp_rng rng;
	uint64_t now_ns = 0;
	uint32_t i, popped = 0, pushed = 0;

	(void)state;
	gp_rng_init(&rng, 2);
	for (i = 0; i < 20000; i++) {
		struct gp_sim_heap_event event = { .time_ns = now_ns + gp_rng_below(&rng, 100), .index = i };

		if (gp_rng_below(&rng, 3) || !heap.count) {
			assert_int_equal(gp_sim_heap_push(&heap, &event), 0);
			pushed++;
			continue;
		}
		event = gp_sim_heap_pop(&heap);
		assert_true(event.time_ns >= now_ns);
		now_ns = event.time_ns;
		popped++;
	}
	assert_int_equal(heap.count, pushed - popped);
	gp_sim_heap_fini(&heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_interleaved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
