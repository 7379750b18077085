/* SPDX-License-Identifier: MIT */
/* Every view on a stream whose N-th write fails, for N = 1, 2, 3, … until it succeeds: each failure is -EIO. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "test/unit/view_sample.h"

struct failing {
	uint32_t writes_left;
};

static ssize_t failing_write(void *cookie, const char *bytes, size_t size)
{
	struct failing *failing = cookie;

	(void)bytes;
	if (!failing->writes_left)
		return 0;
	failing->writes_left--;
	return (ssize_t)size;
}

static int view_table(FILE *stream, const struct gp_result *result)
{
	return gp_view_table(stream, result, true, 0);
}

/* Returns how many writes it took; the buffer is small, so that there are many. */
static uint32_t fail_each_write(int (*view)(FILE *, const struct gp_result *), const struct gp_result *result)
{
	for (uint32_t n = 0;; n++) {
		struct failing failing = { .writes_left = n };
		FILE *stream = fopencookie(&failing, "w", (cookie_io_functions_t){ .write = failing_write });
		char buffer[1024];
		int r;

		assert_non_null(stream);
		assert_int_equal(setvbuf(stream, buffer, _IOFBF, sizeof(buffer)), 0);
		r = view(stream, result);
		fclose(stream);
		if (r == 0)
			return n;
		assert_int_equal(r, -EIO);
		assert_true(n < 1000);
	}
}

static void test_each_write(void **state)
{
	struct gp_result *result = view_sample_create(1);

	(void)state;
	assert_true(fail_each_write(view_table, result) >= 1);
	assert_true(fail_each_write(gp_view_json, result) >= 3);
	assert_true(fail_each_write(gp_view_html, result) >= 20);
	assert_true(fail_each_write(gp_view_perfetto, result) >= 10);
	view_sample_destroy(result);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_each_write) };

	return cmocka_run_group_tests_name("view/stream", tests, NULL, NULL);
}
