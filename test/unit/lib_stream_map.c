/* SPDX-License-Identifier: MIT */
/* A stream map that the agent could not read is refused where it is given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "lib/stream_map.h"

static void stream_map_is_checked(void **state)
{
	static const char *const good[] = { "low=-10,normal=+0,high=+10", "high=99", "low=0", "low=-99,high=+99" };
	static const char *const bad[] = { "",       "high",         "high=", "high=100", "high=1,high=2", "medium=1",
					   "low=1,", "low=1;high=2", "=1",    "low=+",    "low=1.5" };
	struct gp_error error;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(gp_stream_map_check(good[i], &error), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_true(gp_stream_map_check(bad[i], &error) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stream_map_is_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
