/* SPDX-License-Identifier: MIT */
/* What a process wants, as the environment says it; what the runtime's priorities mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "agent/attr.h"

/* Numbers in range are taken; anything else is left out, not cut. */
static void test_environment(void **state)
{
	struct gp_wire_attr attr;

	(void)state;
	setenv("GPREEMPT_PRIORITY", "99", 1);
	setenv("GPREEMPT_WEIGHT", "10000", 1);
	setenv("GPREEMPT_PROTECT", "3", 1);
	setenv("GPREEMPT_DEADLINE_NS", "3600000000000", 1);
	setenv("GPREEMPT_BUDGET_NS", "1", 1);
	setenv("GPREEMPT_GANG", "0123456789012345678901234567890123456789012345678901234567890123456789", 1);
	gp_attr_from_environment(&attr);
	assert_int_equal(attr.valid, 31 | GP_ATTR_PROTECT);
	assert_int_equal(attr.protect, 3);
	assert_int_equal(attr.priority, 99);
	assert_int_equal(attr.weight, 10000);
	assert_true(attr.deadline_ns == GP_WIRE_TIME_MAX && attr.budget_ns == 1);
	assert_int_equal(strlen(attr.gang), GP_WIRE_NAME_SIZE - 1u);
	setenv("GPREEMPT_PRIORITY", "100", 1);
	setenv("GPREEMPT_WEIGHT", "0", 1);
	setenv("GPREEMPT_PROTECT", "4", 1);
	setenv("GPREEMPT_DEADLINE_NS", "3600000000001", 1);
	setenv("GPREEMPT_BUDGET_NS", "5ms", 1);
	unsetenv("GPREEMPT_GANG");
	gp_attr_from_environment(&attr);
	assert_int_equal(attr.valid, 0);
}

/* A map is taken whole or not at all. */
static void test_map(void **state)
{
	static const char *const wrong[] = { "",         "low",    "low=",     "low=+",  "low=100", "low=-10,low=5",
					     "middle=3", "low=1x", "low=-10,", ",low=1", "low==1" };
	struct gp_stream_map map = { 0 }, before;
	int32_t priority = -1;

	(void)state;
	assert_int_equal(gp_stream_map_parse(&map, GP_STREAM_MAP_DEFAULT), 0);
	assert_true(gp_stream_priority(&map, 0, 50, &priority) && priority == 40);
	assert_false(gp_stream_priority(&map, 7, 50, &priority));
	assert_true(gp_stream_priority(&map, 11, 50, &priority) && priority == 60);
	assert_true(gp_stream_priority(&map, 15, 95, &priority) && priority == 99);
	assert_true(gp_stream_priority(&map, 6, 3, &priority) && priority == 0);
	assert_int_equal(gp_stream_map_parse(&map, "high=90"), 0);
	assert_true(gp_stream_priority(&map, 15, 10, &priority) && priority == 90);
	assert_true(gp_stream_priority(&map, 0, 50, &priority) && priority == 40);
	assert_int_equal(gp_stream_map_parse(&map, "normal=20,low=0"), 0);
	assert_true(gp_stream_priority(&map, 10, 50, &priority) && priority == 20);
	assert_true(gp_stream_priority(&map, 3, 50, &priority) && priority == 0);
	before = map;
	for (uint32_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(gp_stream_map_parse(&map, wrong[i]), -EINVAL);
		assert_memory_equal(&map, &before, sizeof(map));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_environment), cmocka_unit_test(test_map) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
