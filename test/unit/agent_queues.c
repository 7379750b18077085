/* SPDX-License-Identifier: MIT */
/* The table of queues: slots are reused with a new generation, and a doorbell finds its queue while others come and go.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "agent/agent.h"

#define KEY(n) (0x7f0000000000ull + (uint64_t)(n)*4096u)

static void test_slots(void **state)
{
	struct gp_slot *slots[GP_WIRE_QUEUE_MAX], *again;

	(void)state;
	for (uint32_t i = 0; i < GP_WIRE_QUEUE_MAX; i++) {
		slots[i] = gp_slot_add(KEY(i));
		assert_non_null(slots[i]);
		slots[i]->queue_id = i;
		slots[i]->file = i % 2u;
	}
	assert_null(gp_slot_add(KEY(5000)));
	for (uint32_t i = 0; i < GP_WIRE_QUEUE_MAX; i++)
		assert_ptr_equal(gp_doorbell_find(KEY(i)), gp_slot_doorbell(slots[i]));
	assert_null(gp_doorbell_find(KEY(5000)));
	/* By file and id; by id alone where the file is another; not while dying. */
	assert_ptr_equal(gp_slot_find(1, 7), slots[7]);
	assert_ptr_equal(gp_slot_find(0, 7), slots[7]);
	slots[7]->dying = true;
	assert_null(gp_slot_find(1, 7));
	gp_slot_free(slots[7]);
	assert_null(gp_doorbell_find(KEY(7)));
	again = gp_slot_add(KEY(7));
	assert_ptr_equal(again, slots[7]);
	assert_int_equal(again->generation, 2);
	slots[8]->queue_id = 7;
	again->queue_id = 7;
	again->file = 1;
	assert_ptr_equal(gp_slot_find(1, 7), again);
	assert_ptr_equal(gp_slot_find(0, 7), slots[8]);
	/* What is no queue's address is none, though empty and removed places have such keys. */
	for (uint32_t i = 0; i < GP_WIRE_QUEUE_MAX; i += 3u)
		gp_slot_free(slots[i]);
	for (uint32_t i = 0; i < GP_WIRE_QUEUE_MAX - 1u; i++) {
		gp_slot_free(slots[i]);
		assert_null(gp_doorbell_find(0));
		assert_null(gp_doorbell_find(1));
	}
	gp_slots_reset();
	assert_int_equal(gp_slot_limit(), 0);
	assert_null(gp_doorbell_find(KEY(3)));
}

static bool reader_stop;
static uint64_t reader_misses;

static void *reader(void *data)
{
	(void)data;
	while (!__atomic_load_n(&reader_stop, __ATOMIC_RELAXED))
		for (uint32_t i = 0; i < 8u; i++)
			reader_misses += !gp_doorbell_find(KEY(i));
	return NULL;
}

/* While queues come and go by the thousand, those that stay are found at every moment. */
static void test_churn(void **state)
{
	struct gp_slot *others[600] = { 0 };
	uint32_t seed = 1;
	pthread_t thread;

	(void)state;
	for (uint32_t i = 0; i < 8u; i++)
		assert_non_null(gp_slot_add(KEY(i)));
	assert_int_equal(pthread_create(&thread, NULL, reader, NULL), 0);
	for (uint32_t round = 0; round < 300000u; round++) {
		uint32_t at;

		seed = seed * 1664525u + 1013904223u;
		at = (seed >> 8) % 600u;
		if (others[at])
			gp_slot_free(others[at]);
		others[at] = others[at] ? NULL : gp_slot_add(KEY(1000u + at + (seed >> 20) % 3u * 1000u));
	}
	__atomic_store_n(&reader_stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(reader_misses, 0);
	gp_slots_reset();
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_slots), cmocka_unit_test(test_churn) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
