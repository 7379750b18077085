/* SPDX-License-Identifier: MIT */
/* The driver's management events: which lines tell of a reset. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "device/kfd/reset.h"

static bool told(const char *text)
{
	return gp_kfd_reset_is_told(text, strlen(text));
}

static void test_lines(void **state)
{
	(void)state;
	assert_true(told("3 1\n"));
	assert_true(told("9 123 -456 0\n4 1\n"));
	assert_false(told("9 3 4\n"));
	assert_false(told("13 1\n34 2\n"));
	assert_false(told(""));
	assert_false(told("\n\n 3 1\n"));
	assert_false(told("x3 1\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_lines) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
