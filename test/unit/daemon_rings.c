/* SPDX-License-Identifier: MIT */
/* What the doorbells of one user cost the decision thread: a bounded amount of work for each, and the user's share of
 * the thread's time for all of them. */
#include "test/unit/daemon_world.h"

#define GREEDY_UID 12345u
#define QUEUES     GP_WIRE_QUEUE_MAX

static struct world world;
static struct agent greedy, other;

static int begin(void **state)
{
	(void)state;
	world_begin(&world, "[daemon]\nqueues_max = 4096\n");
	agent_connect(&world, &other, 50);
	agent_add_queue(&world, &other, 0, GP_QUEUE_SEEN);
	return 0;
}

static int end(void **state)
{
	(void)state;
	agent_leave(&world, &greedy);
	agent_leave(&world, &other);
	world_end(&world);
	return 0;
}

static void add_queues(uint32_t flags)
{
	for (uint32_t slot = 0; slot < QUEUES; slot++) {
		struct gp_wire_queue queue = {
			.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_ADD, sizeof(queue), 0 },
			.slot = slot,
			.generation = 1,
			.flags = flags,
			.gpu_id = WORLD_GPU,
			.queue_id = slot,
			.hw_priority = 7,
			.ring_size = 4096,
		};

		world_send(greedy.fd, &queue, sizeof(queue));
		gp_daemon_step(&world.daemon, 0);
	}
	agent_work(&world, &greedy);
}

/* The daemon cannot see the doorbells of a thousand queues, and one of them gets work: which agents are to sample is
 * decided in work that grows with the queues, not with their square. */
static void test_unseen(void **state)
{
	struct gp_wire_hello hello = world_hello(0);

	(void)state;
	hello.flags &= ~GP_HELLO_DOORBELLS;
	agent_hello(&world, &greedy, &hello);
	add_queues(0);
	agent_work(&world, &greedy);
	world.daemon.counters.away_work_max = 0;
	for (uint64_t i = 1; i <= 8; i++) {
		greedy.page->queues[5].written = i;
		greedy.page->queues[5].completed = i - i % 2;
		agent_ring(&greedy);
		agent_work(&world, &greedy);
	}
	assert_in_range(world.daemon.counters.away_work_max, QUEUES, 3 * QUEUES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_unseen, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
