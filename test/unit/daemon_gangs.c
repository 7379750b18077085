/* SPDX-License-Identifier: MIT */
/* A rank that cannot be put aside keeps its gang open: for a moment, once. A user who does it on purpose gets nothing
 * by it, whoever is urgent beside him; the other ranks are held responsible for nothing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "test/unit/daemon_world.h"

#define RANK_UID 4711u

static struct world world;
static struct agent urgent, mate, rank;

static void join(struct agent *agent, uid_t uid)
{
	struct gp_wire_attr_message attr = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_ATTR, sizeof(attr), 0 },
		.attr = { .valid = GP_ATTR_GANG, .gang = "ring" },
	};

	agent_connect(&world, agent, 20);
	for (uint32_t i = 0; i < world.daemon.client_top; i++) /* before the core knows whose it is */
		if (world.daemon.clients[i] && !world.daemon.clients[i]->queue_count)
			world_give(&world, world.daemon.clients[i], uid);
	agent_add_queue(&world, agent, 0, GP_QUEUE_SEEN);
	world_send(agent->fd, &attr, sizeof(attr));
	world_step(&world);
	assert_int_not_equal(world_queue(&world, agent, 0)->core_gang, 0);
	agent_doorbell(&world, agent, 0, 1000000);
}

static int begin(void **state)
{
	(void)state;
	world_begin(&world, "[daemon]\nanswer_timeout = 100ms\n"
			    "[policy]\nmin_open = 1us\nlinger_max = 1us\nage_window = 1h\nbatch_clients = 8\n");
	agent_connect(&world, &urgent, 80);
	agent_add_queue(&world, &urgent, 0, GP_QUEUE_SEEN);
	join(&mate, RANK_UID);
	join(&rank, RANK_UID);
	assert_int_equal(world_queue(&world, &mate, 0)->core_gang, world_queue(&world, &rank, 0)->core_gang);
	return 0;
}

static int end(void **state)
{
	(void)state;
	agent_leave(&world, &urgent);
	agent_leave(&world, &mate);
	agent_leave(&world, &rank);
	world_end(&world);
	return 0;
}

static void wait_ms(uint32_t ms)
{
	for (uint32_t i = 0; i < ms; i += 10) {
		world_wait(&world, 10);
		for (int k = 0; k < 4; k++) {
			agent_work(&world, &urgent);
			agent_work(&world, &mate);
			agent_work(&world, &rank);
		}
	}
}

static void wait_gate(struct agent *agent, enum gp_gate gate)
{
	for (int i = 0; i < 1000 && world_gate(&world, agent, 0) != gate; i++)
		wait_ms(10);
	assert_int_equal(world_gate(&world, agent, 0), gate);
}

static struct gp_client *client_of(struct agent *agent)
{
	return world_queue(&world, agent, 0)->client;
}

/* Urgent work comes, and the rank does not answer to it. How long the other one's gate was open meanwhile. */
static uint32_t open_until_stuck_ms(void)
{
	uint32_t ms = 0;

	agent_doorbell(&world, &urgent, 0, urgent.page->queues[0].written + 1);
	for (int i = 0; i < 1000 && world_gate(&world, &rank, 0) != GP_GATE_QUARANTINED; i++) {
		wait_ms(10);
		ms += agent_is_closed(&mate, 0) ? 0 : 10;
	}
	assert_int_equal(world_gate(&world, &rank, 0), GP_GATE_QUARANTINED);
	return ms;
}

static void calm(void)
{
	agent_complete(&world, &urgent, 0, urgent.page->queues[0].written);
	wait_gate(&mate, GP_GATE_OPEN);
	wait_gate(&rank, GP_GATE_OPEN);
}

/* The first time: the gang stays open with it for a second, and is then put aside without it. */
static void test_for_a_second(void **state)
{
	(void)state;
	rank.silent = true;
	open_until_stuck_ms();
	wait_gate(&mate, GP_GATE_QUARANTINED);
	assert_false(client_of(&rank)->is_stuck_alone);
	wait_ms(500);
	assert_false(agent_is_closed(&mate, 0));
	wait_ms(700);
	assert_true(client_of(&rank)->is_stuck_alone);
	assert_true(agent_is_closed(&mate, 0));
	assert_int_equal(world_gate(&world, &rank, 0), GP_GATE_QUARANTINED);
	/* Its turn comes back without the other. */
	agent_complete(&world, &urgent, 0, urgent.page->queues[0].written);
	wait_gate(&mate, GP_GATE_OPEN);
	assert_false(agent_is_closed(&mate, 0));
}

/* A rank that hangs for a moment, the first time: all is as before afterwards. */
static void test_short_hang(void **state)
{
	(void)state;
	rank.silent = true;
	open_until_stuck_ms();
	wait_gate(&mate, GP_GATE_QUARANTINED);
	rank.silent = false;
	agent_answer(&world, &rank);
	wait_gate(&rank, GP_GATE_CLOSED);
	wait_gate(&mate, GP_GATE_CLOSED);
	wait_ms(2000);
	assert_int_equal(client_of(&rank)->stuck_ns, 0);
	assert_false(client_of(&rank)->is_stuck_alone || client_of(&mate)->is_stuck_alone);
	calm();
}

/* The others are responsible for nothing: no penalty, no quarantine is counted for them, they are waited for; and the
 * status tells them from the one that is stuck. */
static void test_followers(void **state)
{
	struct gp_control_request request = world_request(GP_CONTROL_STATUS);
	const struct gp_client *follower = client_of(&mate);
	struct gp_stats stats;
	char *text;
	int result;

	(void)state;
	rank.silent = true;
	open_until_stuck_ms();
	wait_gate(&mate, GP_GATE_QUARANTINED);
	assert_true(follower->answers && !follower->is_distrusted && !follower->stuck_ns);
	assert_int_equal(follower->owed_ns, 0);
	assert_int_equal(follower->penalty.penalty_ns, 0);
	gp_sched_stats(world.daemon.sched, world.daemon.devices[0].core, &stats);
	assert_int_equal(stats.quarantines, 1);
	text = world_ask(&world, &request, &result);
	assert_non_null(strstr(text, "\"quarantine\":\"stuck\""));
	assert_non_null(strstr(text, "\"quarantine\":\"gang\""));
	assert_non_null(strstr(text, "\"quarantine\":null"));
	free(text);
}

/* Again, after he has connected anew: nobody is opened for it, not for a moment, nor for another process of his. Other
 * users' gangs are kept as always, and in the end he is forgiven. */
static void test_user_pays(void **state)
{
	struct agent other;

	(void)state;
	rank.silent = true;
	open_until_stuck_ms();
	agent_leave(&world, &rank);
	join(&rank, RANK_UID);
	rank.silent = false;
	calm();
	rank.silent = true;
	open_until_stuck_ms();
	assert_true(client_of(&rank)->is_stuck_alone && client_of(&mate)->is_stuck_alone);
	agent_leave(&world, &rank);
	join(&rank, RANK_UID);
	assert_true(client_of(&rank)->is_stuck_alone);
	rank.silent = false;
	calm();
	rank.silent = true;
	assert_in_range(open_until_stuck_ms(), 0, 10);
	assert_true(agent_is_closed(&mate, 0));
	wait_ms(3000);
	assert_true(agent_is_closed(&mate, 0));
	join(&other, RANK_UID + 1);
	assert_false(client_of(&other)->is_stuck_alone);
	agent_leave(&world, &other);
	agent_leave(&world, &rank);
	for (int i = 0; i < 600; i++)
		world_wait(&world, 1000);
	join(&rank, RANK_UID);
	rank.silent = false;
	assert_false(client_of(&rank)->is_stuck_alone || client_of(&mate)->is_stuck_alone);
}

/* It answers, and says of each close that it failed: the same. */
static void test_fails_instead(void **state)
{
	(void)state;
	rank.fail = -EBUSY;
	open_until_stuck_ms();
	assert_true(client_of(&rank)->answers);
	wait_gate(&mate, GP_GATE_QUARANTINED);
	wait_ms(1200);
	assert_true(agent_is_closed(&mate, 0));
	agent_leave(&world, &rank);
	join(&rank, RANK_UID);
	rank.fail = 0;
	calm();
	rank.fail = -EBUSY;
	open_until_stuck_ms();
	assert_true(client_of(&mate)->is_stuck_alone);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_for_a_second, begin, end),
		cmocka_unit_test_setup_teardown(test_short_hang, begin, end),
		cmocka_unit_test_setup_teardown(test_followers, begin, end),
		cmocka_unit_test_setup_teardown(test_user_pays, begin, end),
		cmocka_unit_test_setup_teardown(test_fails_instead, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
