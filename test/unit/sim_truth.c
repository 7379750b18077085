/* SPDX-License-Identifier: MIT */
#include "test/unit/sim_fixture.h"

static struct gp_desc desc;

static struct gp_result_run run_mix(const char *mix, const char *mode, uint64_t duration_ns)
{
	struct gp_workload workload;
	struct gp_sim_config config;
	struct gp_result_run run;
	struct gp_error error = { "" };

	fixture_mix(mix, &desc, &workload);
	config = fixture_config(&desc, &workload);
	config.duration_ns = duration_ns;
	if (gp_mode_run(&config, mode, NULL, &run, &error))
		fail_msg("%s", error.text);
	gp_workload_fini(&workload);
	return run;
}

/* One request at 15 ms behind a 20 ms kernel that started at 10 (creating queues at 0 stops the device for a
 * moment): stock makes it wait 15 ms, an inversion of that length between exactly these two, give or take the
 * microseconds a packet takes. */
static void test_inversion_length(void **state)
{
	struct gp_result_run run =
		run_mix("[client u]\nkind = service\npriority = 90\noffsets = 15ms\nstep = kernel full 1ms\n"
			"[client b]\nkind = service\npriority = 10\noffsets = 10ms\nstep = kernel full 20ms\n",
			"stock", 100 * MS);

	(void)state;
	assert_int_equal(run.inversion_count, 1);
	assert_int_equal(run.wait_count, 1);
	assert_int_equal(run.waits[0].client, 0);
	assert_int_equal(run.waits[0].other, 1);
	assert_int_equal(run.waits[0].total_ns, run.inversion_ns);
	assert_in_range(run.inversion_ns, 15 * MS, 15 * MS + 100 * US);
	assert_in_range(run.clients[0].latency_ns.max, 16 * MS, 16 * MS + 200 * US);
	gp_sim_result_fini(&run);
}

/* The same under hpf: the gate closes, the request runs, the kernel goes on where it stopped. */
static void test_preemption(void **state)
{
	struct gp_result_run run =
		run_mix("[client u]\nkind = service\npriority = 90\noffsets = 15ms\nstep = kernel full 1ms\n"
			"[client b]\nkind = service\npriority = 10\noffsets = 10ms\nstep = kernel full 20ms\n",
			"hpf", 100 * MS);

	(void)state;
	assert_int_equal(run.preemptions, 1);
	assert_int_equal(run.transactions, 2);
	/* Two transactions of 150 us, nothing else was going on. */
	assert_in_range(run.transaction_ns, 300 * US, 310 * US);
	assert_in_range(run.clients[0].latency_ns.max, 1 * MS + 150 * US, 1 * MS + 250 * US);
	assert_int_equal(run.clients[1].requests, 1);
	assert_true(run.clients[1].latency_ns.max < 30 * MS);
	gp_sim_result_fini(&run);
}

/* A batch client alone fills the device, and shares never sum to more than the whole. */
static void test_shares(void **state)
{
	static const char *const names[] = { "stock", "hpf", "rr", "sequential", "lv1" };
	struct gp_result_run run;
	uint64_t sum;
	uint32_t i, k;

	(void)state;
	run = run_mix("[client b]\nkind = batch\nstep = kernel full 5ms\n", "stock", 1 * S);
	assert_in_range(run.clients[0].gpu_share_ppm, 990000, 1000000);
	gp_sim_result_fini(&run);
	for (k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
		run = run_mix(fixture_mixed, names[k], 300 * MS);
		for (i = 0, sum = 0; i < run.client_count; i++)
			sum += run.clients[i].gpu_share_ppm;
		assert_true(sum <= 1000000);
		gp_sim_result_fini(&run);
	}
}

/* One at a time means one at a time: under sequential no lower work runs while an urgent job runs, so each waits its
 * turn. */
static void test_sequential(void **state)
{
	struct gp_result_run run =
		run_mix("[client u]\nkind = service\npriority = 90\noffsets = 11ms 12ms\nstep = kernel 10 1ms x2\n"
			"[client b]\nkind = service\npriority = 10\noffsets = 10ms\nstep = kernel 10 4ms x2\n",
			"sequential", 100 * MS);

	(void)state;
	/* b: 10-18 ms; first u: 18-20 (arrived at 11), second: 20-22 (at 12). */
	assert_in_range(run.clients[0].latency_ns.min, 9 * MS, 9 * MS + 200 * US);
	assert_in_range(run.clients[0].latency_ns.max, 10 * MS, 10 * MS + 200 * US);
	gp_sim_result_fini(&run);
}

/* A closed gate with work behind it is waiting time; without a core there is none. */
static void test_wait(void **state)
{
	struct gp_result_run run = run_mix(fixture_mixed, "hpf", 300 * MS),
			     stock = run_mix(fixture_mixed, "stock", 300 * MS);

	(void)state;
	assert_true(run.clients[1].wait_ns > 10 * MS);
	assert_int_equal(stock.clients[1].wait_ns, 0);
	gp_sim_result_fini(&run);
	gp_sim_result_fini(&stock);
}

/* Deadlines: two requests at once of 1 ms each, 1.5 ms allowed: the first meets it, the second does not. */
static void test_deadlines(void **state)
{
	struct gp_result_run run =
		run_mix("[client u]\nkind = service\ndeadline = 1.5ms\noffsets = 1ms 1ms\nstep = kernel full 1ms\n",
			"stock", 100 * MS);

	(void)state;
	assert_int_equal(run.clients[0].deadlines_met, 1);
	assert_int_equal(run.clients[0].deadlines_missed, 1);
	gp_sim_result_fini(&run);
}

/* The recorded window holds slices and marks inside its bounds, and decisions carry their reason. */
static void test_window(void **state)
{
	struct gp_result_run run = run_mix(fixture_mixed, "hpf", 1 * S);
	uint32_t i, closes = 0;

	(void)state;
	assert_true(run.slice_count > 0 && run.slice_count <= 20000);
	assert_true(run.window_end_ns - run.window_start_ns <= 200 * MS);
	for (i = 0; i < run.slice_count; i++) {
		assert_true(run.slices[i].start_ns < run.window_end_ns && run.slices[i].end_ns >= run.window_start_ns);
		assert_true(run.slices[i].client < run.client_count);
	}
	for (i = 0; i < run.mark_count; i++) {
		closes += run.marks[i].type == GP_MARK_CLOSE;
		assert_non_null(run.marks[i].why);
	}
	assert_true(closes > 0);
	gp_sim_result_fini(&run);
}

static int setup(void **state)
{
	(void)state;
	fixture_desc("mi300x", &desc);
	return 0;
}

/* Requests of a warm-up are in no figure of their client: the first is slow behind the other's kernel, and its rate and
 * share count from the end of the second (at 101 ms) to the end of the run (at 201). */
static void test_warm(void **state)
{
	static const char mix[] =
		"[client b]\nkind = service\noffsets = 10ms\nstep = kernel full 20ms\n"
		"[client u]\nkind = service\noffsets = 11ms 100ms 110ms 120ms 130ms 140ms\nstep = kernel full 1ms\n%s";
	char text[512];
	struct gp_result_run run;

	(void)state;
	(void)snprintf(text, sizeof(text), mix, "");
	run = run_mix(text, "stock", 201 * MS);
	assert_int_equal(run.clients[1].requests, 6);
	assert_true(run.clients[1].latency_ns.max > 19 * MS);
	gp_sim_result_fini(&run);
	(void)snprintf(text, sizeof(text), mix, "warm = 2\n");
	run = run_mix(text, "stock", 201 * MS);
	assert_int_equal(run.clients[0].requests, 1);
	assert_int_equal(run.clients[1].requests, 4);
	assert_int_equal(run.clients[1].latency_ns.count, 4);
	assert_true(run.clients[1].latency_ns.max < 2 * MS);
	assert_in_range(run.clients[1].throughput_milli, 39900, 40100);
	assert_in_range(run.clients[1].gpu_share_ppm, 39900, 40100);
	gp_sim_result_fini(&run);
	/* What never comes out of its warm-up has no figures. */
	(void)snprintf(text, sizeof(text), mix, "warm = 100\n");
	run = run_mix(text, "stock", 201 * MS);
	assert_int_equal(run.clients[1].requests + run.clients[1].throughput_milli + run.clients[1].latency_ns.count,
			 0);
	gp_sim_result_fini(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inversion_length),
		cmocka_unit_test(test_preemption),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_sequential),
		cmocka_unit_test(test_wait),
		cmocka_unit_test(test_deadlines),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_warm),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
