/* SPDX-License-Identifier: MIT */
/* The lab's data files: what is refused, ranges over several sources, and which rows count as calibrated. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "lab/data.h"

#define HEAD "table,row,kind,value,source\n"

static int parse(const char *text, struct lab_data *data, struct gp_error *error)
{
	return lab_data_parse(text, strlen(text), "t.csv", data, error);
}

static void test_range(void **state)
{
	static struct lab_data data;
	struct gp_lab_cell cell = { .has = false };
	struct gp_error error;

	(void)state;
	assert_int_equal(
		parse(HEAD "qps,2,measured,85.0,a\nqps,2,measured,72,b\nqps,2,measured,99.75,c\nqps,2,expected,113,d\n",
		      &data, &error),
		0);
	lab_data_cell(&data, "qps", "2", false, &cell);
	assert_true(cell.has);
	assert_int_equal(cell.mid, 85000);
	assert_int_equal(cell.low, 72000);
	assert_int_equal(cell.high, 99750);
	cell.has = false;
	lab_data_cell(&data, "qps", "2", true, &cell);
	assert_int_equal(cell.mid, 113000);
	cell.has = false;
	lab_data_cell(&data, "qps", "4", false, &cell);
	assert_false(cell.has);
}

/* A figure without a source, of another kind, or that is none, is refused with its line. */
static void test_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"nonsense\n",
		HEAD "qps,2,measured,85.0,\n",
		HEAD "qps,2,guessed,85.0,a\n",
		HEAD "qps,2,measured,85.0.1,a\n",
		HEAD "qps,2,measured,-1,a\n",
		HEAD "qps,2,measured,85.1234,a\n",
		HEAD "qps,2,measured,99999999,a\n",
		HEAD "qps,2,measured,85\n",
		HEAD ",2,measured,85,a\n",
		HEAD "qps,2,measured,1e5,a\n",
	};
	static struct lab_data data;

	(void)state;
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct gp_error error = { "" };

		data.count = 77;
		assert_true(parse(bad[i], &data, &error) < 0);
		assert_int_equal(data.count, 77);
		assert_non_null(strstr(error.text, "t.csv"));
	}
}

#define FIT                                                                                                      \
	"[fit]\nkernel = 100000 | qps 1 | x\nstages = 70 | qps 2, qps 4 | x\nfork = 400000 | qps 2, qps 4 | x\n" \
	"wave = 300000 | cu-limit 1 70 | x\n"

static void test_fit(void **state)
{
	static const char good[] = FIT "slice-loss = 2000000 | qps 8 | well\n", missing[] = FIT,
			  large[] = FIT "slice-loss = 99000000 | qps 8 | well\n", bare[] = FIT "slice-loss = 2000000\n";
	struct gp_error error = { "" };
	struct lab_fit fit;

	(void)state;
	assert_int_equal(lab_fit_parse(good, strlen(good), "f.ini", &fit, &error), 0);
	assert_int_equal(fit.values[LAB_STAGES], 70);
	assert_string_equal(fit.rows[LAB_WAVE], "cu-limit 1 70");
	assert_string_equal(fit.determined[LAB_SLICE_LOSS], "well");
	assert_true(lab_fit_uses(&fit, "qps 4"));
	assert_true(lab_fit_uses(&fit, "cu-limit 1 70"));
	assert_false(lab_fit_uses(&fit, "qps 6"));
	assert_false(lab_fit_uses(&fit, "cu-limit 1 7"));
	assert_true(lab_fit_parse(missing, strlen(missing), "f.ini", &fit, &error) < 0);
	assert_non_null(strstr(error.text, "slice-loss"));
	assert_true(lab_fit_parse(large, strlen(large), "f.ini", &fit, &error) < 0);
	assert_true(lab_fit_parse(bare, strlen(bare), "f.ini", &fit, &error) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_range),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
