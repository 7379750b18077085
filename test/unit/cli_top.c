/* SPDX-License-Identifier: MIT */
/* Shows the arithmetic of top between two looks: shares in device time, rates, restarts of program and daemon, order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "cli/top_sample.h"

#define TOP_DAEMON(pid, up) "\"daemon\": {\"pid\": " #pid ", \"uptime_real_ns\": " #up ", \"dilation\": 10}"
#define TOP_CLIENT(pid, priority, since, run, preemptions)                                   \
	"{\"pid\": " #pid ", \"priority\": " #priority ", \"connected_real_ns\": " #since    \
	", \"queues\": [{\"gate\": \"open\", \"pending\": 4, \"run_ns\": " #run              \
	", \"wait_ns\": 0, \"preemptions\": " #preemptions ", \"inversions\": " #preemptions \
	"}, {\"gate\": \"closed\", \"pending\": 1, \"run_ns\": null, \"wait_ns\": 20000000, \"preemptions\": 0, \"inversions\": null}]}"

static void top_look(struct gp_top *top, const char *text)
{
	struct gp_error error;
	struct gp_state state;

	assert_int_equal(gp_state_read(&state, text, strlen(text), &error), 0);
	assert_int_equal(gp_top_take(top, &state), 0);
}

static void top_has_rates_after_two_looks(void **state)
{
	static struct gp_top top;

	gp_top_init(&top);
	top_look(
		&top,
		"{\"schema\": 1, " TOP_DAEMON(1, 1000000000) ", \"devices\": [{\"gpu_id\": 7, \"stats\": {\"preemptions\": 10}}], \"clients\": [" TOP_CLIENT(
			5, 20, 1, 1000000, 10) "]}");
	assert_int_equal(top.rows[0].gpu_permille, GP_TOP_UNKNOWN);
	assert_int_equal(top.rows[0].pending, 5);
	assert_int_equal(top.rows[0].open, 1);
	assert_int_equal(top.devices[0].preemptions_milli, GP_TOP_UNKNOWN);
	/* Two seconds later: 100 ms of device time are 1 s of the host's, so half; 5 preemptions are 2.5 a second. */
	top_look(
		&top,
		"{\"schema\": 1, " TOP_DAEMON(1, 3000000000) ", \"devices\": [{\"gpu_id\": 7, \"stats\": {\"preemptions\": 13}}], \"clients\": [" TOP_CLIENT(
			5, 20, 1, 101000000, 15) ", " TOP_CLIENT(6, 80, 1, 7, 0) "]}");
	assert_int_equal(top.row_count, 2);
	assert_int_equal(top.rows[0].client->pid, 6);
	assert_int_equal(top.rows[0].gpu_permille, GP_TOP_UNKNOWN);
	assert_int_equal(top.rows[1].gpu_permille, 500);
	assert_int_equal(top.rows[1].wait_permille, 0);
	assert_int_equal(top.rows[1].preemptions_milli, 2500);
	assert_int_equal(top.rows[0].inversions_milli, GP_TOP_UNKNOWN);
	assert_int_equal(top.rows[1].inversions_milli, 2500);
	assert_int_equal(top.devices[0].preemptions_milli, 1500);
	assert_int_equal(top.devices[0].inversions_milli, GP_TOP_UNKNOWN);
	top.ascending = true;
	gp_top_sort(&top);
	assert_int_equal(top.rows[0].client->pid, 5);
	gp_top_fini(&top);
}

static void top_compares_nothing_across_restarts(void **state)
{
	static struct gp_top top;

	gp_top_init(&top);
	top_look(&top, "{\"schema\": 1, " TOP_DAEMON(1, 1000) ", \"clients\": [" TOP_CLIENT(5, 20, 9, 500, 1) "]}");
	/* The pid is another process now. */
	top_look(&top, "{\"schema\": 1, " TOP_DAEMON(1, 2000) ", \"clients\": [" TOP_CLIENT(5, 20, 2, 900, 1) "]}");
	assert_int_equal(top.rows[0].gpu_permille, GP_TOP_UNKNOWN);
	/* Its counter fell. */
	top_look(&top, "{\"schema\": 1, " TOP_DAEMON(1, 3000) ", \"clients\": [" TOP_CLIENT(5, 20, 2, 100, 1) "]}");
	assert_int_equal(top.rows[0].gpu_permille, GP_TOP_UNKNOWN);
	/* The daemon is another. */
	top_look(&top, "{\"schema\": 1, " TOP_DAEMON(2, 4000) ", \"clients\": [" TOP_CLIENT(5, 20, 2, 200, 1) "]}");
	assert_int_equal(top.rows[0].gpu_permille, GP_TOP_UNKNOWN);
	gp_top_fini(&top);
}

/* The daemon counts queues that run beside each other once; a program on two GPUs has a share of both. */
static void top_never_shows_more_than_all(void **state)
{
	static struct gp_top top;

	gp_top_init(&top);
	top_look(
		&top,
		"{\"schema\": 1, " TOP_DAEMON(
			1,
			1000000000) ", \"devices\": [], \"clients\": ["
				    "{\"pid\": 5, \"connected_real_ns\": 1, \"gpu_count\": 2, \"compute_ns\": 0, \"wait_ns\": 0, "
				    "\"queues\": [{\"run_ns\": 0, \"wait_ns\": 0}, {\"run_ns\": 0, \"wait_ns\": 0}]}]}");
	top_look(
		&top,
		"{\"schema\": 1, " TOP_DAEMON(
			1,
			2000000000) ", \"devices\": [], \"clients\": ["
				    "{\"pid\": 5, \"connected_real_ns\": 1, \"gpu_count\": 2, \"compute_ns\": 150000000, "
				    "\"wait_ns\": 50000000, \"queues\": [{\"run_ns\": 100000000, \"wait_ns\": 0}, "
				    "{\"run_ns\": 100000000, \"wait_ns\": 100000000}]}]}");
	assert_int_equal(top.rows[0].gpu_permille, 750);
	assert_int_equal(top.rows[0].wait_permille, 250);
	gp_top_fini(&top);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(top_has_rates_after_two_looks),
		cmocka_unit_test(top_never_shows_more_than_all),
		cmocka_unit_test(top_compares_nothing_across_restarts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
