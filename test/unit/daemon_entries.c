/* SPDX-License-Identifier: MIT */
/* How often the queues of one user may enter the core: programs that start are scheduled at once; a user whose queues
 * come and go all the time makes the core close a few of them a second, and the others wait without harm. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "test/unit/daemon_world.h"

#define GREEDY_UID 12345u
#define START      264u /* entries that a user has at once */
#define CHURNS     1000u
#define CHURN_MS   2u

static struct world world;
static struct agent urgent, greedy;

static void begin_with(const char *costs)
{
	char config[256];

	snprintf(config, sizeof(config),
		 "[daemon]\nqueues_max = 4096\n[policy]\noverhead = 1000\nage_window = 1h\nmin_open = 1us\n%s", costs);
	world_begin(&world, config);
	agent_connect(&world, &urgent, 90);
	agent_add_queue(&world, &urgent, 0, GP_QUEUE_SEEN);
	agent_doorbell(&world, &urgent, 0, 1000000);
	agent_connect(&world, &greedy, 0);
	agent_add_queue(&world, &greedy, 1, GP_QUEUE_SEEN); /* by it the world finds the client */
	world_give(&world, world_queue(&world, &greedy, 1)->client, GREEDY_UID);
}

static int begin(void **state)
{
	(void)state;
	begin_with("");
	return 0;
}

static int end(void **state)
{
	(void)state;
	if (greedy.fd >= 0)
		agent_leave(&world, &greedy);
	assert_null(world.daemon.entry_lines);
	agent_leave(&world, &urgent);
	world_end(&world);
	return 0;
}

static void remove_queue(uint32_t slot)
{
	struct gp_wire_slot message = { { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_REMOVE, sizeof(message), 0 },
					slot,
					greedy.generation };

	world_send(greedy.fd, &message, sizeof(message));
	agent_work(&world, &greedy);
}

/* A queue comes with work, and goes. Returns the orders that this made. */
static uint32_t churn(uint32_t count)
{
	uint32_t before = greedy.order_count;

	greedy.page->queues[0].written = 1000000;
	for (uint32_t i = 0; i < count; i++) {
		agent_add_queue(&world, &greedy, 0, GP_QUEUE_SEEN);
		world_wait(&world, CHURN_MS);
		agent_work(&world, &greedy);
		remove_queue(0);
		greedy.page->queues[0].completed = 0;
	}
	return greedy.order_count - before;
}

/* Until one had to wait. */
static void spend_all(void)
{
	bool waits = false;

	for (uint32_t i = 0; i < 2 * START && !waits; i++) {
		agent_add_queue(&world, &greedy, 0, GP_QUEUE_SEEN);
		waits = !world_queue(&world, &greedy, 0)->in_core;
		remove_queue(0);
	}
	assert_true(waits);
}

static void test_start(void **state)
{
	(void)state;
	for (uint32_t slot = 2; slot < START; slot++) {
		agent_add_queue(&world, &greedy, slot, GP_QUEUE_SEEN);
		assert_true(world_queue(&world, &greedy, slot)->in_core);
	}
}

/* The first ones, and then twenty a second. */
static void test_churn(void **state)
{
	uint32_t orders;

	(void)state;
	orders = churn(CHURNS);
	assert_in_range(orders, START, START + 2 * CHURNS * CHURN_MS / 50);
	assert_true(world_queue(&world, &greedy, 1)->client->owner->noticed[GP_NOTICE_ENTRIES].logged_ns);
	assert_true(world.daemon.counters.away_work_max < 4096);
}

/* Where closes are dear, fewer: what they cost is a fiftieth of the device. */
static void test_churn_dear(void **state)
{
	uint32_t orders;

	(void)state;
	agent_leave(&world, &greedy);
	agent_leave(&world, &urgent);
	world_end(&world);
	begin_with("[null]\nclose_cost = 5ms\nopen_cost = 2500us\n");
	spend_all();
	world_wait(&world, 100);
	orders = churn(CHURNS);
	assert_in_range(orders, 1, 2 * CHURNS * CHURN_MS / 375 + 1);
}

static void test_root_is_not_limited(void **state)
{
	(void)state;
	world_give(&world, world_queue(&world, &greedy, 1)->client, 0);
	assert_in_range(churn(2 * START), 2 * START, 4 * START);
}

/* A queue that waits: status says why, its work is known, it enters when its time has come, and is closed then. */
static void test_waits(void **state)
{
	struct gp_control_request request = world_request(GP_CONTROL_STATUS);
	struct gp_queue_entry *queue;
	char *text;
	int result;

	(void)state;
	spend_all();
	agent_add_queue(&world, &greedy, 0, GP_QUEUE_SEEN);
	agent_add_queue(&world, &greedy, 2, GP_QUEUE_SEEN);
	agent_doorbell(&world, &greedy, 2, 1000000);
	queue = world_queue(&world, &greedy, 2);
	assert_false(queue->in_core);
	assert_true(queue->pending && queue->entry_line);
	text = world_ask(&world, &request, &result);
	assert_non_null(strstr(text, "\"scheduled\":false,\"unscheduled\":\"entries\""));
	free(text);
	for (int i = 0; i < 80 && !queue->in_core; i++) {
		/* In the order in which they came. */
		assert_false(queue->in_core && !world_queue(&world, &greedy, 0)->in_core);
		world_wait(&world, 1);
	}
	agent_work(&world, &greedy);
	assert_true(world_queue(&world, &greedy, 0)->in_core);
	world_wait(&world, 51);
	agent_work(&world, &greedy);
	assert_true(queue->in_core && queue->closed && !queue->entry_line);
	assert_null(world.daemon.entry_lines);
}

/* What goes before its turn was never there for the core; neither are the queues of a client that dies. */
static void test_goes_before(void **state)
{
	struct gp_stats before, after;
	uint64_t seen;

	(void)state;
	spend_all();
	seen = gp_events_end(&world.daemon);
	agent_add_queue(&world, &greedy, 0, GP_QUEUE_SEEN);
	remove_queue(0);
	assert_null(world.daemon.entry_lines);
	agent_add_queue(&world, &greedy, 0, GP_QUEUE_SEEN);
	agent_add_queue(&world, &greedy, 3, GP_QUEUE_SEEN);
	assert_non_null(world.daemon.entry_lines);
	assert_int_equal(gp_events_end(&world.daemon), seen);
	gp_sched_stats(world.daemon.sched, 0, &before);
	agent_leave(&world, &greedy);
	greedy.fd = -1;
	assert_null(world.daemon.entry_lines);
	world_wait(&world, 200);
	gp_sched_stats(world.daemon.sched, 0, &after);
	assert_int_equal(before.closes, after.closes);
}

/* Only the core opens gates: a queue of an earlier daemon that comes closed enters at once, and so does one that waits
 * and is found to be closed. */
static void test_closed(void **state)
{
	struct gp_queue_entry *queue;

	(void)state;
	spend_all();
	agent_add_queue(&world, &greedy, 0, GP_QUEUE_SEEN | GP_QUEUE_CLOSED);
	assert_true(world_queue(&world, &greedy, 0)->in_core);
	agent_add_queue(&world, &greedy, 2, GP_QUEUE_SEEN);
	queue = world_queue(&world, &greedy, 2);
	assert_false(queue->in_core);
	gp_queue_lost(&world.daemon, queue, GP_LOST_RUNTIME, false);
	assert_true(queue->in_core && !queue->entry_line);
	assert_null(world.daemon.entry_lines);
	agent_complete(&world, &urgent, 0, 1000000);
	agent_doorbell(&world, &greedy, 0, 5);
	agent_doorbell(&world, &greedy, 2, 5);
	assert_false(queue->closed);
	assert_false(world_queue(&world, &greedy, 0)->closed);
}

/* A new core has at once all that the old one had, and no others. */
static void test_reload(void **state)
{
	struct gp_error error;

	(void)state;
	agent_complete(&world, &urgent, 0, 1000000);
	agent_doorbell(&world, &greedy, 1, 5);
	spend_all();
	agent_add_queue(&world, &greedy, 0, GP_QUEUE_SEEN);
	assert_false(world_queue(&world, &greedy, 1)->closed);
	assert_int_equal(gp_device_build_core(&world.daemon, &error), 0);
	assert_true(world_queue(&world, &greedy, 1)->in_core);
	assert_false(world_queue(&world, &greedy, 0)->in_core);
	world_wait(&world, 60);
	assert_true(world_queue(&world, &greedy, 0)->in_core);
}

/* A queue that must not be gated waits no longer, one that may again waits its turn. */
static void test_changes(void **state)
{
	struct gp_wire_queue change = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_CHANGE, sizeof(change), 0 },
		.flags = GP_QUEUE_SEEN | GP_QUEUE_BLIND,
		.gpu_id = WORLD_GPU,
		.hw_priority = 7,
		.ring_size = 4096,
	};

	(void)state;
	spend_all();
	agent_add_queue(&world, &greedy, 0, GP_QUEUE_SEEN);
	change.generation = greedy.generation;
	world_send(greedy.fd, &change, sizeof(change));
	agent_work(&world, &greedy);
	assert_null(world.daemon.entry_lines);
	change.flags = GP_QUEUE_SEEN;
	world_send(greedy.fd, &change, sizeof(change));
	agent_work(&world, &greedy);
	assert_non_null(world.daemon.entry_lines);
	world_wait(&world, 60);
	assert_true(world_queue(&world, &greedy, 0)->in_core);
}

/* An agent that says again and again that its gate is open has as many closes as with queues that come and go. */
static void test_lost(void **state)
{
	uint32_t before;

	(void)state;
	agent_doorbell(&world, &greedy, 1, 1000000);
	before = greedy.order_count;
	for (uint32_t i = 0; i < CHURNS; i++) {
		agent_lost(&greedy, 1);
		world_wait(&world, CHURN_MS);
		agent_work(&world, &greedy);
	}
	assert_in_range(greedy.order_count - before, 100, START + 2 * CHURNS * CHURN_MS / 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_start, begin, end),
		cmocka_unit_test_setup_teardown(test_churn, begin, end),
		cmocka_unit_test_setup_teardown(test_churn_dear, begin, end),
		cmocka_unit_test_setup_teardown(test_root_is_not_limited, begin, end),
		cmocka_unit_test_setup_teardown(test_waits, begin, end),
		cmocka_unit_test_setup_teardown(test_goes_before, begin, end),
		cmocka_unit_test_setup_teardown(test_closed, begin, end),
		cmocka_unit_test_setup_teardown(test_reload, begin, end),
		cmocka_unit_test_setup_teardown(test_changes, begin, end),
		cmocka_unit_test_setup_teardown(test_lost, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
