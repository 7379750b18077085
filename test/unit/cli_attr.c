/* SPDX-License-Identifier: MIT */
/* Shows how priorities are read from the command line, and which are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "cli/attr.h"

static void attr_reads_names_and_numbers(void **state)
{
	static const struct {
		const char *text;
		int32_t priority;
	} good[] = { { "0", 0 },       { "99", 99 },   { "idle", 0 },     { "low", 20 },
		     { "normal", 50 }, { "high", 80 }, { "realtime", 99 } };
	static const char *const bad[] = {
		"", "100", "-1", "High", "12x", " 3", "0x10", "1e1", "99999999999999999999"
	};
	struct gp_error error;
	int32_t priority = -7;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(gp_attr_priority(good[i].text, &priority, &error), 0);
		assert_int_equal(priority, good[i].priority);
	}
	priority = -7;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_true(gp_attr_priority(bad[i], &priority, &error) < 0);
		assert_int_equal(priority, -7);
		assert_non_null(strstr(error.text, "99 = most urgent"));
	}
}

static void attr_shows_names(void **state)
{
	char text[24];

	assert_string_equal(gp_attr_priority_text(80, text, sizeof(text)), "80 (high)");
	assert_string_equal(gp_attr_priority_text(81, text, sizeof(text)), "81");
}

static void attr_takes_options(void **state)
{
	struct gp_wire_attr attr = { 0 };
	struct gp_error error;
	char name[80];

	assert_int_equal(gp_attr_take(&attr, GP_ATTR_OPTION_WEIGHT, "10000", &error), 0);
	assert_true(gp_attr_take(&attr, GP_ATTR_OPTION_WEIGHT, "10001", &error) < 0);
	assert_int_equal(attr.weight, 10000);
	assert_true(gp_attr_take(&attr, GP_ATTR_OPTION_DEADLINE, "5", &error) < 0);
	assert_int_equal(attr.valid, GP_ATTR_WEIGHT);
	assert_int_equal(gp_attr_take(&attr, GP_ATTR_OPTION_DEADLINE, "5ms", &error), 0);
	assert_int_equal(attr.deadline_ns, 5000000);
	memset(name, 'x', sizeof(name));
	name[63] = '\0';
	assert_int_equal(gp_attr_take(&attr, GP_ATTR_OPTION_GANG, name, &error), 0);
	name[63] = 'x';
	name[64] = '\0';
	assert_true(gp_attr_take(&attr, GP_ATTR_OPTION_GANG, name, &error) < 0);
	assert_true(gp_attr_take(&attr, GP_ATTR_OPTION_GANG, "a\tb", &error) < 0);
	assert_int_equal(attr.valid, GP_ATTR_WEIGHT | GP_ATTR_DEADLINE | GP_ATTR_GANG);
	assert_true(gp_attr_take(&attr, GP_ATTR_OPTION_PROTECT, "speed", &error) < 0);
	assert_int_equal(gp_attr_take(&attr, GP_ATTR_OPTION_PROTECT, "latency", &error), 0);
	assert_true(attr.protect == 1 && attr.valid & GP_ATTR_PROTECT);
	assert_true(gp_attr_take(&attr, 'x', "", &error) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attr_reads_names_and_numbers),
		cmocka_unit_test(attr_shows_names),
		cmocka_unit_test(attr_takes_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
