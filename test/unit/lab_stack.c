/* SPDX-License-Identifier: MIT */
/* The lab's submission stack: ids, doorbells, the state behind active_runlist, the choice of rings. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "lab/stack.h"

/* The three processes whose ids seed 002 logged. */
static void test_hash_ids(void **state)
{
	(void)state;
	assert_int_equal(lab_stack_hash_id(3935030, 0), 216);
	assert_int_equal(lab_stack_hash_id(3935030, 3), 219);
	assert_int_equal(lab_stack_hash_id(3935031, 0), 220);
	assert_int_equal(lab_stack_hash_id(3933841, 0), 580);
	/* Its range is full: the first free bit, which is never one of its own range again. */
	assert_int_equal(lab_stack_hash_id(3935030, 4), 0);
	assert_int_equal(lab_stack_hash_id(256, 4), 4);
	assert_int_equal(lab_stack_hash_id(257, 8), 8);
}

/* Equal ids in two processes: doorbells apart with a slice each, the same with one for all. */
static void test_doorbells(void **state)
{
	struct lab_setup setup = { .process_count = 2 };

	(void)state;
	assert_int_equal(lab_stack_key(&setup, 0, 3).doorbell_id, lab_stack_key(&setup, 1, 3).doorbell_id);
	assert_int_equal(lab_stack_key(&setup, 1, 3).offset - lab_stack_key(&setup, 0, 3).offset, 8192);
	setup.doorbells = LAB_DOORBELL_SHARED;
	assert_int_equal(lab_stack_key(&setup, 0, 3).offset, lab_stack_key(&setup, 1, 3).offset);
	setup.queue_ids = LAB_IDS_PID_HASH;
	assert_int_not_equal(lab_stack_key(&setup, 0, 3).offset, lab_stack_key(&setup, 1, 3).offset);
}

static uint32_t lost(enum lab_doorbells doorbells, enum lab_queue_ids ids)
{
	struct lab_setup setup = { .process_count = 3, .doorbells = doorbells, .queue_ids = ids };
	struct lab_stack stack;

	lab_stack_init(&stack, &setup);
	for (uint32_t process = 0; process < 3; process++)
		for (uint32_t place = 0; place < 4; place++)
			(void)lab_stack_create(&stack, process, place);
	return lab_stack_lost(&stack);
}

static void test_lost(void **state)
{
	(void)state;
	assert_int_equal(lost(LAB_DOORBELL_SLICE, LAB_IDS_FIRST_FIT), 0);
	assert_int_equal(lost(LAB_DOORBELL_SHARED, LAB_IDS_PID_HASH), 0);
	assert_int_equal(lost(LAB_DOORBELL_SHARED, LAB_IDS_FIRST_FIT), 2);
}

/* Queues of a second process are mapped in every variant but the one the seed fears; a second map is refused only where
 * the check was removed. */
static void test_runlist(void **state)
{
	static const struct {
		enum lab_runlist variant;
		uint32_t mapped;
		int second;
		bool deferred;
	} cases[] = {
		{ LAB_RUNLIST_STOCK, 4, 0, false },
		{ LAB_RUNLIST_REMOVED, 4, -EINVAL, false },
		{ LAB_RUNLIST_QUEUED, 4, 0, true },
		{ LAB_RUNLIST_FEARED, 2, 0, false },
	};

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		struct lab_setup setup = { .process_count = 2, .runlist = cases[i].variant };
		struct lab_stack stack;

		lab_stack_init(&stack, &setup);
		for (uint32_t process = 0; process < 2; process++)
			for (uint32_t place = 0; place < 2; place++)
				assert_int_equal(lab_stack_create(&stack, process, place),
						 !process || cases[i].variant != LAB_RUNLIST_FEARED);
		assert_int_equal(stack.dqm.mapped_count, cases[i].mapped);
		assert_int_equal(lab_dqm_map(&stack.dqm), cases[i].second);
		assert_int_equal(stack.dqm.deferred, cases[i].deferred);
	}
}

/* Idle rings: the least loaded is always the first. A busy one is passed over. */
static void test_rings(void **state)
{
	struct lab_setup setup = { .process_count = 1,
				   .ring_count = 4,
				   .entity_count = 1,
				   .rings = LAB_RING_LEAST_LOADED };
	struct lab_stack stack;

	(void)state;
	lab_stack_init(&stack, &setup);
	assert_int_equal(lab_stack_pick(&stack, 0, 0, 100), 0);
	stack.free_ns[0] = 200;
	assert_int_equal(lab_stack_pick(&stack, 0, 0, 100), 1);
	assert_int_equal(lab_stack_pick(&stack, 0, 0, 200), 0);
	setup.rings = LAB_RING_ROUND_ROBIN;
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(lab_stack_pick(&stack, 0, 0, 100), i % 4);
	setup.rings = LAB_RING_FIXED;
	assert_int_equal(lab_stack_pick(&stack, 3, 2, 100), 0);
}

/* One ordered workqueue runs jobs of all rings one after the other; one per ring only those of its own. */
static void test_workqueues(void **state)
{
	struct lab_setup setup = { .process_count = 2,
				   .ring_count = 2,
				   .entity_count = 1,
				   .rings = LAB_RING_ROUND_ROBIN,
				   .workqueue = LAB_WORKQUEUE_ONE,
				   .job_ns = 10 };
	struct lab_stack stack;

	(void)state;
	lab_stack_init(&stack, &setup);
	assert_int_equal(lab_stack_job(&stack, 0, 0, 100), 110);
	assert_int_equal(lab_stack_job(&stack, 1, 0, 100), 120);
	setup.workqueue = LAB_WORKQUEUE_PER_RING;
	lab_stack_init(&stack, &setup);
	assert_int_equal(lab_stack_job(&stack, 0, 0, 100), 110);
	assert_int_equal(lab_stack_job(&stack, 1, 0, 100), 110);
	assert_int_equal(lab_stack_job(&stack, 1, 0, 100), 120);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hash_ids), cmocka_unit_test(test_doorbells), cmocka_unit_test(test_lost),
		cmocka_unit_test(test_runlist),  cmocka_unit_test(test_rings),     cmocka_unit_test(test_workqueues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
