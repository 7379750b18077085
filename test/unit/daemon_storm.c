/* SPDX-License-Identifier: MIT */
/* A thousand clients come and go, at once and in turn; nothing of them stays. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "test/unit/daemon_world.h"

#define STORM_CLIENTS 1000u

static struct world world;
static struct agent agents[STORM_CLIENTS];

static int begin(void **state)
{
	struct rlimit limit;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	world_begin(&world, "[daemon]\nclients_max = 2000\nqueues_max = 8000\nconnections_per_user = 2000\n");
	return 0;
}

static int end(void **state)
{
	(void)state;
	world_end(&world);
	return 0;
}

static int lowest_free_fd(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

/* The daemon has its descriptors closed by a thread of its own: hanging here is the failure. */
static void wait_for_closed(int before)
{
	while (lowest_free_fd() != before)
		usleep(1000);
}

static void test_all_at_once(void **state)
{
	struct rlimit limit;
	int before = lowest_free_fd();

	(void)state;
	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < 8 * STORM_CLIENTS)
		skip();
	for (uint32_t i = 0; i < STORM_CLIENTS; i++) {
		agent_connect(&world, &agents[i], (int32_t)(i % 100));
		agent_add_queue(&world, &agents[i], 0, GP_QUEUE_SEEN);
	}
	assert_int_equal(world.daemon.client_count, STORM_CLIENTS);
	for (uint32_t i = 0; i < STORM_CLIENTS; i += 7)
		agent_doorbell(&world, &agents[i], 0, 5);
	for (uint32_t i = 0; i < STORM_CLIENTS; i++)
		agent_work(&world, &agents[i]);
	/* They leave in another order than they came, some without a word in the middle of an order. */
	for (uint32_t i = 0; i < STORM_CLIENTS; i++)
		agent_leave(&world, &agents[(i * 337u) % STORM_CLIENTS]);
	assert_int_equal(world.daemon.client_count, 0);
	assert_int_equal(world.daemon.client_top, 0);
	assert_int_equal(world.daemon.peer_count, 0);
	assert_int_equal(world.daemon.devices[0].queue_count, 0);
	assert_null(world.daemon.devices[0].queues);
	assert_int_equal(world.daemon.counters.messages_refused, 0);
	wait_for_closed(before);
}

/* Connections that end before they say anything, after HELLO, after a queue. */
static void test_at_every_step(void **state)
{
	struct gp_wire_hello hello = world_hello(50);
	struct agent agent;
	int before = lowest_free_fd(), fd;

	(void)state;
	for (int i = 0; i < 300; i++) {
		fd = world_connect(&world);
		if (i % 3)
			world_send(fd, &hello, i % 2 ? sizeof(hello) : 20);
		close(fd);
		if (i % 5 == 0)
			world_step(&world);
		agent_connect(&world, &agent, 50);
		if (i % 2)
			agent_add_queue(&world, &agent, (uint32_t)i, GP_QUEUE_SEEN);
		agent_leave(&world, &agent);
	}
	assert_int_equal(world.daemon.client_count, 0);
	assert_int_equal(world.daemon.peer_count, 0);
	wait_for_closed(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_at_once, begin, end),
		cmocka_unit_test_setup_teardown(test_at_every_step, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
