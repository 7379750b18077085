/* SPDX-License-Identifier: MIT */
/* libgpreempt in a program without an agent: free, and says so. What is out of range is refused before that is asked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <gpreempt/gpreempt.h>
#include <string.h>

static void test_nobody(void **state)
{
	struct gpreempt_state now = { .size = sizeof(now), .priority = 12 };

	(void)state;
	assert_int_equal(gpreempt_set_priority(NULL, GPREEMPT_HIGH), -ENOTCONN);
	assert_int_equal(gpreempt_set_weight(NULL, 10000), -ENOTCONN);
	assert_int_equal(gpreempt_set_deadline(NULL, 1000000, 500000), -ENOTCONN);
	assert_int_equal(gpreempt_set_gang(NULL), -ENOTCONN);
	assert_int_equal(gpreempt_set_gang("ring"), -ENOTCONN);
	assert_int_equal(gpreempt_hint(NULL, 0), -ENOTCONN);
	assert_int_equal(gpreempt_get(&now), -ENOTCONN);
	assert_int_equal(now.priority, 12);
}

static void test_range(void **state)
{
	char name[65] = "";

	(void)state;
	memset(name, 'x', 64);
	assert_int_equal(gpreempt_set_priority(NULL, -1), -EINVAL);
	assert_int_equal(gpreempt_set_priority(NULL, 100), -EINVAL);
	assert_int_equal(gpreempt_set_weight(NULL, 0), -EINVAL);
	assert_int_equal(gpreempt_set_weight(NULL, 10001), -EINVAL);
	assert_int_equal(gpreempt_set_deadline(NULL, 5, 6), -EINVAL);
	assert_int_equal(gpreempt_set_deadline(NULL, 3600000000001ull, 0), -EINVAL);
	assert_int_equal(gpreempt_set_gang(name), -EINVAL);
	assert_int_equal(gpreempt_get(NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_nobody), cmocka_unit_test(test_range) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
