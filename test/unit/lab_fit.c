/* SPDX-License-Identifier: MIT */
/* The fit: from figures that the rig itself made it finds the numbers they were made with, as far as it says it can;
 * figures no load can have are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "lab/fit.h"

static struct lab lab;

static int open_lab(void **state)
{
	struct gp_error error = { "" };

	(void)state;
	memset(&lab, 0, sizeof(lab));
	if (lab_init(&lab, NULL, &error))
		return -1;
	lab.seeds = 6; /* each draws its own load, so these, not the length, are what is needed */
	lab.base.duration_ns = 300000000;
	return 0;
}

/* The only figure published of a row. */
static void publish(const char *table, const char *row, uint64_t milli)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < lab.data.count; i++)
		if (strcmp(lab.data.items[i].table, table) || strcmp(lab.data.items[i].row, row) ||
		    lab.data.items[i].is_expected)
			lab.data.items[kept++] = lab.data.items[i];
	lab.data.items[kept] = (struct lab_datum){ .source = "planted", .milli = milli };
	strcpy(lab.data.items[kept].table, table);
	strcpy(lab.data.items[kept].row, row);
	lab.data.count = kept + 1;
}

static uint64_t measure(const struct lab_setup *setup, uint32_t processes, uint32_t cu_count)
{
	struct lab_setup own = *setup;
	struct gp_error error = { "" };
	struct gp_lab_cell cell;

	own.process_count = processes;
	own.cu_count = cu_count ? cu_count : own.cu_count;
	assert_int_equal(lab_measure(&lab, &own, &cell, NULL, &error), 0);
	return cell.mid;
}

static void assert_near(uint64_t value, uint64_t planted, uint64_t percent)
{
	if (value * 100u < planted * (100u - percent) || value * 100u > planted * (100u + percent))
		fail_msg("%lu instead of %lu", (unsigned long)value, (unsigned long)planted);
}

static void test_planted(void **state)
{
	static const struct {
		uint32_t processes;
		const char *row;
	} rows[] = { { 1, "1" }, { 2, "2" }, { 4, "4" }, { 8, "8" } };
	struct lab_setup setup = lab.base;
	struct gp_error error = { "" };

	(void)state;
	setup.load.kernel_ns = 60000;
	setup.load.stages = 100;
	setup.load.fork_ppm = 400000;
	setup.load.wave_ppm = 250000;
	setup.load.slice_loss_ns = 1500000;
	for (uint32_t i = 0; i < 4; i++)
		publish("qps", rows[i].row, measure(&setup, rows[i].processes, 0));
	publish("cu-limit", "1 70", measure(&setup, 1, 70) * 100000u / measure(&setup, 1, 0));
	if (lab_fit_run(&lab, &error))
		fail_msg("%s", error.text);
	/* One process sees only how long a query is; the others, how it is divided, and that not well: docs/lab.md says
	 * how far each can be trusted, and this is where that comes from. */
	assert_near(lab.fit.values[LAB_KERNEL] * lab.fit.values[LAB_STAGES], 6000000, 10);
	assert_in_range(lab.fit.values[LAB_STAGES], 50, 200);
	assert_in_range(lab.fit.values[LAB_WAVE], 150000, 350000);
	assert_near(lab.fit.values[LAB_SLICE_LOSS], 1500000, 10);
	/* The truth is on the grid, so some of it keeps the rows in range. */
	assert_null(strstr(lab.fit.determined[LAB_STAGES], "no value"));
	assert_null(strstr(lab.fit.determined[LAB_FORK], "no value"));
}

static void test_refused(void **state)
{
	static const uint64_t beyond[] = { 1, 999, 10000001, 1000000000 };

	(void)state;
	for (uint32_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
		struct gp_error error = { "" };

		publish("qps", "1", beyond[i]);
		assert_true(lab_fit_run(&lab, &error) < 0);
		assert_non_null(strstr(error.text, "\"qps,1\""));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_planted, open_lab),
		cmocka_unit_test_setup(test_refused, open_lab),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
