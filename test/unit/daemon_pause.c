/* SPDX-License-Identifier: MIT */
/* A daemon that stood still, or that the machine hardly runs: nobody is late because of that, and who does not answer
 * is given up on all the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "test/unit/daemon_world.h"

#define ANSWER_MS 200u /* answer_timeout: the default */
#define MINUTE_MS 60000u

static struct world world;
static struct agent urgent, batch;

static void scene_begin_with(const char *answer)
{
	char config[256];

	snprintf(config, sizeof(config),
		 "[daemon]\nanswer_timeout = %s\n[policy]\nmin_open = 1us\nlinger_max = 1us\nage_window = 1h\n",
		 answer);
	world_begin(&world, config);
	agent_connect(&world, &urgent, 80);
	agent_connect(&world, &batch, 20);
	agent_add_queue(&world, &urgent, 0, GP_QUEUE_SEEN);
	agent_add_queue(&world, &batch, 0, GP_QUEUE_SEEN);
	agent_doorbell(&world, &batch, 0, 100);
}

/* Urgent work comes, and the batch client is asked to close its gate, which it does not. */
static void scene_begin(void)
{
	scene_begin_with("200ms");
	batch.silent = true;
	agent_doorbell(&world, &urgent, 0, 1);
	agent_work(&world, &batch);
	agent_work(&world, &urgent);
	assert_true(world_queue(&world, &batch, 0)->is_ordered);
}

static void scene_end(void)
{
	world_tick(0);
	agent_leave(&world, &urgent);
	agent_leave(&world, &batch);
	world_end(&world);
}

/* Wherever in its loop the daemon is stopped: before each of the looks at the clock that a few rounds take. */
static void test_stopped_anywhere(void **state)
{
	bool is_over = true;
	uint64_t core_ns;

	(void)state;
	for (uint64_t look = 1; is_over; look++) {
		scene_begin();
		core_ns = gp_daemon_now_ns(&world.daemon);
		world_stop(look, MINUTE_MS * 1000000ull);
		for (int i = 0; i < 3; i++)
			world_wait(&world, 1);
		is_over = world_stop(0, 0);
		if (!world_queue(&world, &batch, 0)->client->answers)
			fail_msg("stopped before look %llu", (unsigned long long)look);
		assert_in_range(gp_daemon_now_ns(&world.daemon) - core_ns, 1000000, ANSWER_MS * 1000000);
		batch.silent = false;
		agent_answer(&world, &batch);
		assert_int_equal(world_gate(&world, &batch, 0), GP_GATE_CLOSED);
		scene_end();
	}
}

/* Each piece of the daemon's work takes longer than what counts as a pause: programs that keep the processors busy
 * cannot stop the core's time. */
static void test_never_runs_for_long(void **state)
{
	const struct gp_client *client;
	int i;

	(void)state;
	scene_begin();
	client = world_queue(&world, &batch, 0)->client;
	world_tick((ANSWER_MS / 8 + 1) * 1000000ull);
	for (i = 0; i < 100 && client->answers; i++)
		gp_daemon_step(&world.daemon, 0);
	assert_false(client->answers);
	scene_end();
}

/* The shortest answer_timeout: work that takes a tenth of a portion between two looks is no pause. */
static void test_work_is_no_pause(void **state)
{
	uint64_t before_ns, core_ns;

	(void)state;
	scene_begin_with("1ms");
	before_ns = gp_now_ns(), core_ns = gp_daemon_now_ns(&world.daemon);
	for (int i = 0; i < 100; i++) {
		world_tick(100000);
		gp_daemon_step(&world.daemon, 0);
	}
	world_tick(0);
	assert_int_equal(gp_daemon_now_ns(&world.daemon) - core_ns, gp_now_ns() - before_ns);
	scene_end();
}

/* A long answer_timeout: a stop after which calls into the driver would count as hanging is a pause all the same. */
static void test_long_timeout(void **state)
{
	uint64_t core_ns;

	(void)state;
	scene_begin_with("1min");
	core_ns = gp_daemon_now_ns(&world.daemon);
	world_stop(1, 1200000000);
	assert_in_range(gp_daemon_now_ns(&world.daemon) - core_ns, 1, 100000000);
	scene_end();
}

/* A minute in which the daemon stood still is no cost of a transaction. */
static void test_pause_is_no_cost(void **state)
{
	const struct gp_hist *closes;
	uint64_t count;

	(void)state;
	scene_begin();
	closes = &world.daemon.devices[0].close_hist;
	count = closes->count;
	world_wait(&world, MINUTE_MS);
	batch.silent = false;
	agent_answer(&world, &batch);
	assert_int_equal(world_gate(&world, &batch, 0), GP_GATE_CLOSED);
	assert_int_equal(closes->count, count);
	/* The next one counts. */
	agent_complete(&world, &urgent, 0, 1);
	agent_work(&world, &batch);
	world_wait(&world, 1);
	agent_doorbell(&world, &urgent, 0, 2);
	agent_work(&world, &batch);
	assert_int_equal(world_gate(&world, &batch, 0), GP_GATE_CLOSED);
	assert_int_equal(closes->count, count + 1);
	scene_end();
}

/* The batch client's next close; if the daemon stops, it is then. Either way the agent says that its lease ran out. */
static void close_loses_lease(bool stops)
{
	agent_work(&world, &batch);
	while (world_gate(&world, &batch, 0) != GP_GATE_CLOSING) {
		assert_int_not_equal(world_gate(&world, &batch, 0), GP_GATE_QUARANTINED);
		if (world_queue(&world, &batch, 0)->is_ordered)
			agent_answer(&world, &batch);
		world_wait(&world, 10);
		agent_work(&world, &batch);
	}
	if (stops)
		world_wait(&world, MINUTE_MS);
	agent_lost(&batch, 0);
	world_step(&world);
	agent_answer(&world, &batch);
}

/* A stop in which a lease runs out is no failure of the close that was under way. If there was no stop, it is one. */
static void test_leases_run_out_in_pauses(void **state)
{
	(void)state;
	scene_begin();
	for (int i = 0; i < 8; i++) {
		close_loses_lease(true);
		assert_int_not_equal(world_gate(&world, &batch, 0), GP_GATE_QUARANTINED);
	}
	assert_int_equal(world_queue(&world, &batch, 0)->client->leases_lost, 8);
	for (int i = 0; i < 3; i++)
		close_loses_lease(false);
	while (!world_queue(&world, &batch, 0)->is_ordered)
		world_wait(&world, 10);
	agent_work(&world, &batch);
	agent_answer(&world, &batch);
	assert_int_equal(world_gate(&world, &batch, 0), GP_GATE_QUARANTINED);
	scene_end();
}

static uint64_t real_of(const char *text, const char *event)
{
	const char *at = strstr(text, event);

	assert_non_null(at);
	while (at > text && at[-1] != '\n')
		at--;
	at = strstr(at, "\"real_ns\":");
	assert_non_null(at);
	return strtoull(at + strlen("\"real_ns\":"), NULL, 10);
}

/* What `gpreempt events --past` says of when something happened does not move with a later pause. */
static void test_past_events_stay(void **state)
{
	struct gp_control_request past = world_request(GP_CONTROL_EVENTS);
	uint64_t before_ns, after_ns;
	char *text;
	int result;

	(void)state;
	scene_begin();
	batch.silent = false;
	agent_answer(&world, &batch);
	past.flags = GP_CONTROL_EVENTS_PAST;
	text = world_ask(&world, &past, &result);
	before_ns = real_of(text, "\"event\":\"closed\"");
	free(text);
	for (int i = 0; i < 3; i++) {
		batch.silent = true;
		agent_complete(&world, &urgent, 0, urgent.page->queues[0].written);
		agent_doorbell(&world, &urgent, 0, urgent.page->queues[0].written + 1);
		world_wait(&world, MINUTE_MS);
		batch.silent = false;
		agent_answer(&world, &batch);
		agent_work(&world, &urgent);
		agent_work(&world, &batch);
	}
	text = world_ask(&world, &past, &result);
	after_ns = real_of(text, "\"event\":\"closed\"");
	free(text);
	/* The test's clock is not that of the machine: the minutes are missing in it, and in what is said. */
	assert_in_range(before_ns - after_ns, 3ull * (MINUTE_MS - 1000) * 1000000, 3ull * (MINUTE_MS + 1000) * 1000000);
	scene_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stopped_anywhere),        cmocka_unit_test(test_never_runs_for_long),
		cmocka_unit_test(test_work_is_no_pause),        cmocka_unit_test(test_long_timeout),
		cmocka_unit_test(test_pause_is_no_cost),        cmocka_unit_test(test_past_events_stay),
		cmocka_unit_test(test_leases_run_out_in_pauses)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
