/* SPDX-License-Identifier: MIT */
/* Text for terminals without UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/plain.h"

/* One character for one character, wherever the text was cut; what is no UTF-8 does no harm. */
static void test_text(void **state)
{
	static const char text[] = "12.3 µs × 2 – é ✓ \xff\x80 \xe2\x80";
	char whole[sizeof(text)] = "", pieces[sizeof(text)] = "";
	struct gp_plain plain = { .count = 0 };
	size_t used = 0;

	(void)state;
	whole[gp_plain_text(&plain, text, sizeof(text) - 1, whole)] = '\0';
	assert_string_equal(whole, "12.3 us x 2 - ? + ? ");
	plain = (struct gp_plain){ .count = 0 };
	for (size_t i = 0; i + 1 < sizeof(text); i++)
		used += gp_plain_text(&plain, text + i, 1, pieces + used);
	assert_string_equal(pieces, whole);
}

static void test_locale(void **state)
{
	(void)state;
	assert_int_equal(setenv("LC_ALL", "C", 1), 0);
	assert_true(gp_plain_is_needed());
	assert_int_equal(setenv("LC_ALL", "C.UTF-8", 1), 0);
	assert_false(gp_plain_is_needed());
	assert_int_equal(setenv("LC_ALL", "xx_YY.UTF-8", 1), 0);
	assert_false(gp_plain_is_needed());
	assert_int_equal(setenv("LC_ALL", "xx_YY.ISO-8859-1", 1), 0);
	assert_true(gp_plain_is_needed());
}

/* COLUMNS counts where it makes sense. */
static void test_width(void **state)
{
	static const struct {
		const char *text;
		uint32_t want;
	} cases[] = { { "80", 80 }, { "39", 7 }, { "-1", 7 }, { "wide", 7 }, { "99999999999999999999", 7 } };

	(void)state;
	if (isatty(STDOUT_FILENO))
		skip();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(setenv("COLUMNS", cases[i].text, 1), 0);
		assert_int_equal(gp_plain_width(7), cases[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_locale),
		cmocka_unit_test(test_width),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
