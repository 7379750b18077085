/* SPDX-License-Identifier: MIT */
/* What clients got is still known when they have ended: times, preemptions, whose events they were; for whom it is
 * told, and that nobody pushes everybody else's out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "test/unit/daemon_world.h"

#define SOMEONE 4001u

static struct world world;

static int begin(void **state)
{
	(void)state;
	world_begin(&world, NULL);
	return 0;
}

static int end(void **state)
{
	(void)state;
	world_end(&world);
	return 0;
}

static char *ask(uint32_t verb, uint32_t flags)
{
	struct gp_control_request request = world_request(verb);
	int result;
	char *text;

	request.flags = flags;
	text = world_ask(&world, &request, &result);
	assert_int_equal(result, 0);
	return text;
}

static struct gp_client *client_of(const struct agent *agent)
{
	return world_queue(&world, agent, 0)->client;
}

/* Runs for so many milliseconds of device time. */
static void run(struct agent *agent, uint32_t ms, uint64_t packets)
{
	agent_doorbell(&world, agent, 0, packets);
	world_wait(&world, ms);
	agent_complete(&world, agent, 0, packets);
}

static const struct gp_ended *last(void)
{
	const struct gp_ended *ended = NULL, *next;

	for (uint64_t serial = 0; (next = gp_account_ended(&world.daemon, serial)); serial = next->serial + 1)
		ended = next;
	return ended;
}

/* Times of queues that went and came, of a client that left the device and came back, and over a change of policy. */
static void test_sums(void **state)
{
	const struct gp_ended *ended;
	struct agent agent;

	(void)state;
	agent_connect(&world, &agent, 50);
	agent_add_queue(&world, &agent, 0, GP_QUEUE_SEEN);
	snprintf(client_of(&agent)->terms.tag, GP_WIRE_NAME_SIZE, "job");
	run(&agent, 100, 1);
	gp_account_rebuild(&world.daemon);
	assert_in_range(client_of(&agent)->spent.compute_ns, 100000000, 110000000);
	gp_device_build_core(&world.daemon, NULL);
	run(&agent, 30, 2);
	gp_queue_leave(&world.daemon, world_queue(&world, &agent, 0));
	gp_queue_enter(&world.daemon, world_queue(&world, &agent, 0));
	run(&agent, 20, 3);
	agent_leave(&world, &agent);
	ended = last();
	assert_non_null(ended);
	assert_string_equal(ended->name, "fake");
	assert_string_equal(ended->tag, "job");
	assert_in_range(ended->spent.compute_ns, 250000000,
			270000000); /* the first 100 ms twice: counted, then built anew */
	assert_true(ended->ended_real_ns > ended->started_real_ns);
}

/* One that was held back: it waited, and was preempted. Its events keep its name. */
static void test_preempted(void **state)
{
	const struct gp_ended *ended;
	struct agent low, high;
	char *text;

	(void)state;
	agent_connect(&world, &low, 10);
	agent_add_queue(&world, &low, 0, GP_QUEUE_SEEN);
	agent_doorbell(&world, &low, 0, 1000);
	world_wait(&world, 50);
	agent_connect(&world, &high, 90);
	agent_add_queue(&world, &high, 0, GP_QUEUE_SEEN);
	agent_doorbell(&world, &high, 0, 1);
	for (int i = 0; i < 1000 && !agent_is_closed(&low, 0); i++) {
		world_wait(&world, 1);
		agent_work(&world, &low);
	}
	world_wait(&world, 40);
	agent_leave(&world, &low);
	ended = last();
	assert_true(ended->spent.wait_ns >= 40000000);
	assert_true(ended->spent.preemptions >= 1);
	text = ask(GP_CONTROL_EVENTS, GP_CONTROL_EVENTS_PAST);
	assert_non_null(strstr(text, "\"event\":\"queue-remove\",\"why\":null,\"pid\":"));
	assert_null(strstr(text, "\"event\":\"queue-remove\",\"why\":null,\"pid\":null"));
	assert_null(strstr(text, "\"event\":\"busy\",\"why\":null,\"pid\":null"));
	assert_non_null(strstr(text, "\"event\":\"ended\""));
	free(text);
	agent_leave(&world, &high);
}

/* Who may not see a client while it is there does not see what it got. */
static void test_seen(void **state)
{
	struct gp_peer other = { .uid = SOMEONE, .identity.account = SOMEONE },
		       root = { .identity.rights = GP_RIGHT_ADMIN };
	struct gp_job own = { .kind = GP_JOB_ACCOUNT }, all = { .kind = GP_JOB_ACCOUNT };
	struct agent mine, his, lives;

	(void)state;
	agent_connect(&world, &mine, 50);
	agent_add_queue(&world, &mine, 0, GP_QUEUE_SEEN);
	agent_connect(&world, &his, 50);
	agent_add_queue(&world, &his, 0, GP_QUEUE_SEEN);
	agent_connect(&world, &lives, 50);
	agent_add_queue(&world, &lives, 0, GP_QUEUE_SEEN);
	snprintf(client_of(&mine)->name, GP_WIRE_NAME_SIZE, "mine");
	snprintf(client_of(&his)->name, GP_WIRE_NAME_SIZE, "his");
	snprintf(client_of(&lives)->name, GP_WIRE_NAME_SIZE, "lives");
	world_give(&world, client_of(&his), SOMEONE);
	agent_leave(&world, &mine);
	agent_leave(&world, &his);
	while (!gp_account_part(&world.daemon, &other, &own)) {}
	while (!gp_account_part(&world.daemon, &root, &all)) {}
	assert_null(strstr(own.text.bytes, "\"mine\""));
	assert_null(strstr(own.text.bytes, "\"lives\""));
	assert_null(strstr(own.text.bytes, "\"tags\""));
	assert_non_null(strstr(own.text.bytes, "\"his\""));
	assert_non_null(strstr(all.text.bytes, "\"mine\""));
	assert_non_null(strstr(all.text.bytes, "\"lives\""));
	gp_text_fini(&own.text);
	gp_text_fini(&all.text);
	agent_leave(&world, &lives);
}

static void end_one(uint64_t account, const char *tag)
{
	struct gp_client client = { .identity.account = account, .uid = (uid_t)account, .had_queues = true };

	client.owner = gp_owner_of_uid(&world.daemon, (uid_t)account);
	snprintf(client.terms.tag, sizeof(client.terms.tag), "%s", tag);
	client.spent.compute_ns = 1;
	gp_account_end(&world.daemon, &client);
	gp_owner_put(client.owner);
}

static uint32_t count_of(uint64_t account)
{
	const struct gp_ended *ended;
	uint32_t count = 0;

	for (uint64_t serial = 0; (ended = gp_account_ended(&world.daemon, serial)); serial = ended->serial + 1)
		count += ended->account == account;
	return count;
}

/* Ten thousand short clients of one user leave half of the table to others; tags that nobody used for longest go. */
static void test_bounds(void **state)
{
	char tag[32], *text;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		end_one(SOMEONE, "kept");
	for (uint32_t i = 0; i < 10000; i++)
		end_one(SOMEONE + 1, "");
	assert_int_equal(count_of(SOMEONE), 1000);
	assert_int_equal(count_of(SOMEONE + 1), GP_ACCOUNT_MAX - 1000);
	for (uint32_t i = 0; i < GP_ACCOUNT_TAGS; i++) {
		snprintf(tag, sizeof(tag), "t%u", i);
		end_one(SOMEONE + 2, tag);
	}
	text = ask(GP_CONTROL_ACCOUNT, 0);
	assert_null(strstr(text, "\"tag\":\"kept\",\"ended_clients\""));
	assert_non_null(strstr(text, "\"tag\":\"t0\",\"ended_clients\":1,\"compute_ns\":1"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sums, begin, end),
		cmocka_unit_test_setup_teardown(test_preempted, begin, end),
		cmocka_unit_test_setup_teardown(test_seen, begin, end),
		cmocka_unit_test_setup_teardown(test_bounds, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
