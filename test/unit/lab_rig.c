/* SPDX-License-Identifier: MIT */
/* The rig: the same setup gives the same result, switches that must not matter do not, and those that must, do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "lab/keys.h"
#include "lab/lab.h"
#include "sim/mix.h"
#include "sim/mode.h"

static struct lab lab;

static int open_lab(void **state)
{
	struct gp_error error = { "" };

	(void)state;
	if (lab_init(&lab, NULL, &error))
		return -1;
	lab.base.duration_ns = 300000000;
	return 0;
}

static struct lab_rates run(const struct lab_setup *setup)
{
	struct lab_setup own = *setup;
	struct gp_error error = { "" };
	struct lab_rates rates;

	own.seed = own.seed ? own.seed : 1;
	assert_int_equal(lab_rig_run(&own, &rates, &error), 0);
	return rates;
}

static void test_deterministic(void **state)
{
	struct lab_setup setup = lab.base;
	struct lab_rates first = run(&setup), second = run(&setup);

	(void)state;
	assert_memory_equal(&first, &second, sizeof(first));
	setup.seed = 2;
	second = run(&setup);
	assert_int_not_equal(first.events, second.events);
}

/* Ids, doorbell slices, the flag and the rings of the kernel are not on the way of a dispatch. */
static void test_no_effect(void **state)
{
	struct lab_setup setup = lab.base;
	uint64_t before = run(&setup).qps_milli;

	(void)state;
	assert_true(before);
	setup.queue_ids = LAB_IDS_PID_HASH;
	setup.runlist = LAB_RUNLIST_QUEUED;
	setup.rings = LAB_RING_ROUND_ROBIN;
	setup.entity_count = 16;
	assert_int_equal(run(&setup).qps_milli, before);
	setup.doorbells = LAB_DOORBELL_SHARED;
	assert_int_equal(run(&setup).qps_milli, before);
}

/* What the seeds fear would not slow a process down but stop it. */
static void test_feared(void **state)
{
	struct lab_setup setup = lab.base;
	struct lab_rates rates;

	(void)state;
	setup.doorbells = LAB_DOORBELL_SHARED;
	rates = run(&setup);
	assert_int_equal(rates.lost, 1);
	assert_int_equal(rates.slowest_milli, 0);
	setup = lab.base;
	setup.runlist = LAB_RUNLIST_FEARED;
	rates = run(&setup);
	assert_int_equal(rates.unmapped, 4);
	assert_int_equal(rates.slowest_milli, 0);
}

/* The mechanism: four processes lose with held heads, and not when pipes rotate, with one queue each, or in turns. */
static void test_blocking(void **state)
{
	struct lab_setup setup = lab.base;
	uint64_t alone, together;

	(void)state;
	setup.process_count = 1;
	alone = run(&setup).qps_milli;
	setup.process_count = 4;
	together = run(&setup).qps_milli;
	assert_true(together * 10u < alone * 7u);
	setup.rotate = true;
	assert_true(run(&setup).qps_milli > alone);
	setup.rotate = false;
	setup.queue_count = 1;
	assert_true(run(&setup).qps_milli > alone);
	setup.queue_count = 4;
	setup.turn_ns = 40000000;
	assert_true(run(&setup).qps_milli * 10u > alone * 9u);
}

static void test_oversubscribed(void **state)
{
	struct lab_setup setup = lab.base;

	(void)state;
	setup.process_count = 6;
	assert_false(run(&setup).oversubscribed);
	setup.process_count = 7;
	assert_true(run(&setup).oversubscribed);
	setup.kcq_count = 0;
	assert_false(run(&setup).oversubscribed);
	setup.queue_count = 2;
	setup.kcq_count = 8;
	assert_false(run(&setup).oversubscribed);
}

/* A pipe per process: queues that wait for each other on one pipe lose a quantum each time. */
static void test_pipe_by_process(void **state)
{
	struct lab_setup setup = lab.base;
	uint64_t before = run(&setup).qps_milli;

	(void)state;
	setup.pipe_by_process = true;
	assert_true(run(&setup).qps_milli * 2u < before);
}

/* A client's hardware priority reaches the model: it refuses what hardware does not have. */
static void test_hw_priority(void **state)
{
	struct gp_mix_options options = { .desc = &lab.desc };
	struct gp_sim_config config = { .desc = &lab.desc,
					.device_count = 1,
					.duration_ns = 1000000,
					.seed = 1,
					.notice_ns = GP_SIM_DEFAULT_NS,
					.decide_ns = GP_SIM_DEFAULT_NS,
					.sample_ns = GP_SIM_DEFAULT_NS,
					.no_recording = true };
	struct gp_workload workload = { .client_count = 0 };
	struct gp_error error = { "" };
	struct gp_result_run run;

	(void)state;
	assert_int_equal(gp_mix_load("serve+train", &options, &workload, &error), 0);
	config.workload = &workload;
	workload.clients[0].hw_priority = 15;
	assert_int_equal(gp_mode_run(&config, "stock", NULL, &run, &error), 0);
	gp_sim_result_fini(&run);
	workload.clients[0].hw_priority = 16;
	assert_true(gp_mode_run(&config, "stock", NULL, &run, &error) < 0);
	gp_workload_fini(&workload);
}

static void test_keys(void **state)
{
	static const char *const bad[][2] = {
		{ "colour=red", "valid keys: processes, streams" },
		{ "queues=17", "1 to 16" },
		{ "quantum=1us", "50.0" },
		{ "blocked-head=spin", "hold, rotate" },
		{ "fork=101%", "0% to 100%" },
		{ "queues", "needs a value" },
	};
	const struct lab_experiment *experiment = lab_experiment_find("doorbell");
	struct gp_error error;

	(void)state;
	assert_non_null(experiment);
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_true(lab_key_set(&lab, experiment, bad[i][0], &error) < 0);
		assert_non_null(strstr(error.text, bad[i][1]));
	}
	/* The switch an experiment turns itself is not one of its keys. */
	assert_true(lab_key_set(&lab, experiment, "doorbells=shared", &error) < 0);
	assert_int_equal(lab_mark(&lab, "qps", "4"), GP_LAB_CALIBRATED);
	assert_int_equal(lab_key_set(&lab, experiment, "queues=2", &error), 0);
	assert_int_equal(lab.base.queue_count, 2);
	assert_int_equal(lab_mark(&lab, "qps", "4"), GP_LAB_CALIBRATED);
	assert_int_equal(lab_mark(&lab, "qps", "6"), GP_LAB_PREDICTED);
}

/* Ranks that wait for each other: none gets ahead, and all are as slow as the slowest would be alone. */
static void test_coupled(void **state)
{
	struct lab_setup setup = lab.base;
	struct lab_rates free_running, coupled;

	(void)state;
	setup.process_count = 3;
	setup.priority = 15;
	free_running = run(&setup);
	setup.is_coupled = true;
	coupled = run(&setup);
	assert_true(coupled.qps_milli && coupled.qps_milli < free_running.qps_milli);
	assert_true(coupled.slowest_milli * 3u * 11u / 10u > coupled.qps_milli);
	assert_true(free_running.slowest_milli * 3u * 11u / 10u < free_running.qps_milli);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deterministic),  cmocka_unit_test(test_no_effect),
		cmocka_unit_test(test_feared),         cmocka_unit_test(test_blocking),
		cmocka_unit_test(test_oversubscribed), cmocka_unit_test(test_pipe_by_process),
		cmocka_unit_test(test_hw_priority),    cmocka_unit_test(test_coupled),
		cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, open_lab, NULL);
}
