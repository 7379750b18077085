/* SPDX-License-Identifier: MIT */
/* Agents that do not answer: they are given up on, the others go on, and one that answers again is taken up again.
 * Those that do not look at their counters: the daemon reads them from their memory, which may hold nobody up. */
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "test/unit/daemon_world.h"

static struct world world;
static struct agent urgent, batch, stuck;

static int begin(void **state)
{
	(void)state;
	/* Short enough to be waited for, long enough for those that do answer. */
	world_begin(&world, "[daemon]\nanswer_timeout = 1s\n"
			    "[policy]\nmin_open = 1us\nlinger_max = 1us\nage_window = 1h\nbatch_clients = 8\n");
	agent_connect(&world, &urgent, 80);
	agent_connect(&world, &batch, 20);
	agent_connect(&world, &stuck, 20);
	agent_add_queue(&world, &urgent, 0, GP_QUEUE_SEEN);
	agent_add_queue(&world, &batch, 0, GP_QUEUE_SEEN);
	agent_add_queue(&world, &stuck, 0, GP_QUEUE_SEEN);
	agent_doorbell(&world, &stuck, 0, 100);
	return 0;
}

static int end(void **state)
{
	(void)state;
	agent_leave(&world, &urgent);
	agent_leave(&world, &batch);
	agent_leave(&world, &stuck);
	world_end(&world);
	return 0;
}

static void settle(void)
{
	for (int i = 0; i < 4; i++) {
		agent_work(&world, &batch);
		agent_work(&world, &urgent);
		agent_work(&world, &stuck);
	}
}

static void wait_gate(struct agent *agent, enum gp_gate gate)
{
	while (world_gate(&world, agent, 0) != gate) {
		world_wait(&world, 10);
		settle();
	}
}

static void test_is_given_up_on(void **state)
{
	int result;
	struct gp_control_request request = world_request(GP_CONTROL_STATUS);
	char *text;

	(void)state;
	stuck.silent = true;
	agent_doorbell(&world, &urgent, 0, 1);
	wait_gate(&stuck, GP_GATE_QUARANTINED);
	/* STATUS does not wait for it either. */
	text = world_ask(&world, &request, &result);
	assert_int_equal(result, 0);
	assert_non_null(strstr(text, "\"answers\":false"));
	assert_non_null(strstr(text, "\"gate\":\"quarantined\""));
	free(text);
}

/* It comes back: its late answer is believed, and it is scheduled as before. */
static void test_comes_back(void **state)
{
	(void)state;
	stuck.silent = true;
	agent_doorbell(&world, &urgent, 0, 1);
	wait_gate(&stuck, GP_GATE_QUARANTINED);
	stuck.silent = false;
	agent_answer(&world, &stuck);
	assert_int_not_equal(world_gate(&world, &stuck, 0), GP_GATE_QUARANTINED);
	wait_gate(&stuck, GP_GATE_CLOSED);
}

static void give_up(void)
{
	agent_complete(&world, &urgent, 0, urgent.page->queues[0].written);
	wait_gate(&stuck, GP_GATE_OPEN);
	stuck.silent = true;
	agent_doorbell(&world, &urgent, 0, urgent.page->queues[0].written + 1);
	wait_gate(&stuck, GP_GATE_QUARANTINED);
}

/* The daemon stands still for a minute, and a few times for less than an answer may take: nobody is late for that. Once
 * it runs, the same client is given up on after the time that it has. */
static void test_daemon_stood_still(void **state)
{
	const struct gp_queue_entry *queue = world_queue(&world, &stuck, 0);

	(void)state;
	stuck.silent = true;
	agent_doorbell(&world, &urgent, 0, 1);
	settle();
	assert_true(queue->is_ordered);
	for (int i = 0; i < 5; i++) {
		assert_in_range(world.daemon.core.pulse.at_ns, 1, gp_now_ns() + 125000000ull);
		world_wait(&world, 900);
		settle();
	}
	world_wait(&world, 60000);
	settle();
	assert_true(queue->client->answers);
	assert_int_equal(world_gate(&world, &stuck, 0), GP_GATE_CLOSING);
	stuck.silent = false;
	agent_answer(&world, &stuck);
	assert_int_equal(world_gate(&world, &stuck, 0), GP_GATE_CLOSED);
	give_up();
	assert_false(queue->client->answers);
	for (int i = 0; i < 20; i++)
		world_wait(&world, 20);
	assert_int_equal(world.daemon.core.pulse.at_ns, 0); /* nobody is waited for any more */
}

/* Given up on, and answers: how long it stays in quarantine, of the daemon's time. */
static uint64_t stay_ns(void)
{
	uint64_t from_ns;

	give_up();
	stuck.silent = false;
	from_ns = gp_now_ns();
	agent_answer(&world, &stuck);
	while (world_gate(&world, &stuck, 0) == GP_GATE_QUARANTINED)
		world_wait(&world, 10);
	from_ns = gp_now_ns() - from_ns;
	wait_gate(&stuck, GP_GATE_CLOSED);
	return from_ns;
}

/* Each time costs the others some time: it is left alone for longer each time, unless it has answered for long. */
static void test_again_and_again(void **state)
{
	const uint64_t second = 1000000000ull, moment = 20000000ull;
	uint64_t last_ns = 0;

	(void)state;
	assert_in_range(stay_ns(), 0, moment);
	for (uint64_t least_ns = second; least_ns <= 8 * second; least_ns *= 2) {
		last_ns = stay_ns();
		assert_in_range(last_ns, least_ns, least_ns + moment);
	}
	for (int i = 0; i < 8; i++)
		last_ns = stay_ns();
	assert_in_range(last_ns, 20 * second, 60 * second + moment);
	for (int i = 0; i < 1000; i++) {
		world_wait(&world, 1000);
		settle();
	}
	assert_in_range(stay_ns(), 0, moment);
}

/* New queues of one that is left alone are left alone with it; they are scheduled when it is back. */
static void test_no_way_round(void **state)
{
	(void)state;
	stay_ns(); /* the first time it is back at once */
	give_up();
	agent_add_queue(&world, &stuck, 1, GP_QUEUE_SEEN);
	assert_false(world_queue(&world, &stuck, 1)->in_core);
	stuck.silent = false;
	agent_answer(&world, &stuck);
	agent_add_queue(&world, &stuck, 2, GP_QUEUE_SEEN);
	assert_false(world_queue(&world, &stuck, 1)->in_core || world_queue(&world, &stuck, 2)->in_core);
	assert_in_range(world.daemon.loop.armed_ns, 1,
			world.daemon.quarantine_timer.at_ns); /* and there is somebody who wakes */
	while (!world_queue(&world, &stuck, 1)->in_core || !world_queue(&world, &stuck, 2)->in_core)
		world_wait(&world, 10);
	assert_int_not_equal(world_gate(&world, &stuck, 0), GP_GATE_QUARANTINED);
}

static void remove_queue(struct agent *agent, uint32_t slot, uint32_t generation)
{
	struct gp_wire_slot gone = { { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_REMOVE, sizeof(gone), 0 },
				     slot,
				     generation };

	world_send(agent->fd, &gone, sizeof(gone));
	agent_work(&world, agent);
}

/* Nor does it help to be rid of what is in quarantine before it answers: for the new ones it waits as long. */
static void test_no_way_round_by_new_queues(void **state)
{
	uint64_t from_ns;

	(void)state;
	stay_ns();
	give_up();
	remove_queue(&stuck, 0, stuck.generation);
	agent_add_queue(&world, &stuck, 0, GP_QUEUE_SEEN);
	stuck.silent = false;
	from_ns = gp_now_ns();
	agent_answer(&world, &stuck);
	assert_false(world_queue(&world, &stuck, 0)->in_core);
	while (!world_queue(&world, &stuck, 0)->in_core)
		world_wait(&world, 10);
	assert_in_range(gp_now_ns() - from_ns, 1000000000ull, 1020000000ull);
	/* What went with an answer is not held against it later. */
	agent_doorbell(&world, &stuck, 0, 100);
	wait_gate(&stuck, GP_GATE_CLOSED);
	assert_false(world_queue(&world, &stuck, 0)->client->left_silent);
}

/* Nor to have its runtime disabled and enabled: the means are those that it does not answer to. */
static void test_no_way_round_by_its_runtime(void **state)
{
	struct gp_wire_runtime runtime = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_RUNTIME, sizeof(runtime), 9 },
	};

	(void)state;
	stay_ns();
	give_up();
	world_send(stuck.fd, &runtime, sizeof(runtime));
	runtime.enable = 1;
	world_send(stuck.fd, &runtime, sizeof(runtime));
	settle();
	assert_int_equal(stuck.mechanism, GP_MECHANISM_SELF);
	assert_false(world_queue(&world, &stuck, 0)->in_core);
	stuck.silent = false;
	agent_answer(&world, &stuck);
	assert_false(world_queue(&world, &stuck, 0)->in_core);
	while (!world_queue(&world, &stuck, 0)->in_core)
		world_wait(&world, 10);
	wait_gate(&stuck, GP_GATE_CLOSED);
}

/* By means that do not need its answer it is scheduled again at once. */
static void test_other_means(void **state)
{
	(void)state;
	stay_ns();
	give_up();
	gp_client_mechanism(&world.daemon, world_queue(&world, &stuck, 0)->client, GP_MECHANISM_UPDATE, "a test");
	assert_true(world_queue(&world, &stuck, 0)->in_core);
	assert_int_not_equal(world_gate(&world, &stuck, 0), GP_GATE_QUARANTINED);
	agent_add_queue(&world, &stuck, 1, GP_QUEUE_SEEN);
	assert_true(world_queue(&world, &stuck, 1)->in_core);
}

/* It does not even read: sending to it fails at once and blocks nobody. */
static void test_full_socket(void **state)
{
	struct gp_wire_attr_message attr = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_ATTR, sizeof(attr), 0 },
		.attr = { .valid = GP_ATTR_WEIGHT, .weight = 5 },
	};
	struct gp_wire_queue queue;

	(void)state;
	/* Each ATTR is answered by ATTR_NOW, which nobody takes. */
	for (int i = 0; i < 2000; i++) {
		world_send(stuck.fd, &attr, sizeof(attr));
		gp_daemon_step(&world.daemon, 0);
	}
	stuck.silent = true;
	agent_doorbell(&world, &urgent, 0, 1);
	while (world_gate(&world, &stuck, 0) != GP_GATE_QUARANTINED) {
		world_wait(&world, 10);
		agent_work(&world, &urgent);
		agent_work(&world, &batch);
	}
	agent_doorbell(&world, &batch, 0, 7);
	while (world_gate(&world, &batch, 0) != GP_GATE_CLOSED) {
		world_wait(&world, 10);
		agent_work(&world, &batch);
	}
	/* Nothing was sent to it, so it has nothing to answer: what it has now is ordered, and shows when it reads
	 * again. */
	assert_int_equal(world_queue(&world, &stuck, 0)->client->orders_open, 0);
	queue = world_queue(&world, &stuck, 0)->wire;
	queue.slot = queue.queue_id = 1;
	world_send(stuck.fd, &queue, sizeof(queue));
	world_step(&world);
	assert_true(world_queue(&world, &stuck, 1)->in_core);
	stuck.silent = false;
	while (world_gate(&world, &stuck, 0) != GP_GATE_CLOSED || world_gate(&world, &stuck, 1) != GP_GATE_CLOSED) {
		world_wait(&world, 10);
		settle();
	}
}

/* Two of a user do not answer, one after the other: nobody waits for what is his any more, nor for what he brings then;
 * he pays for the second as if it were the first's second time. His neighbour pays nothing, and he is forgiven. */
static void test_penalty_is_the_users(void **state)
{
	const uid_t uid = 4711;
	struct gp_client *client;
	struct agent more;

	(void)state;
	world_give(&world, world_queue(&world, &stuck, 0)->client, uid);
	give_up();
	assert_false(world_queue(&world, &stuck, 0)->client->is_distrusted); /* once may happen to anybody */
	agent_leave(&world, &stuck);
	agent_connect(&world, &stuck, 20);
	world_give(&world, world.daemon.clients[world.daemon.client_top - 1], uid);
	agent_add_queue(&world, &stuck, 0, GP_QUEUE_SEEN);
	agent_doorbell(&world, &stuck, 0, 100);
	give_up();
	client = world_queue(&world, &stuck, 0)->client;
	assert_int_equal(client->uid, uid);
	assert_true(client->is_distrusted);
	assert_in_range(client->owed_ns, 500000000ull, 1000000000ull);
	agent_connect(&world, &more, 20);
	world_give(&world, world.daemon.clients[world.daemon.client_top - 1], uid);
	agent_add_queue(&world, &more, 0, GP_QUEUE_SEEN);
	assert_true(world_queue(&world, &more, 0)->client->is_distrusted);
	assert_true(world_queue(&world, &more, 0)->in_core); /* it may answer */
	assert_false(world_queue(&world, &batch, 0)->client->is_distrusted);
	for (int i = 0; i < 600; i++) {
		world_wait(&world, 1000);
		settle();
		agent_work(&world, &more);
	}
	assert_false(world_queue(&world, &more, 0)->client->is_distrusted);
	agent_leave(&world, &more);
}

/* A close fails after its plan was given up: its agent, who would be the one to open it, does not take it for held. */
static void test_late_failure(void **state)
{
	const struct gp_queue_entry *queue = world_queue(&world, &stuck, 0);
	struct gp_device_entry *device = &world.daemon.devices[0];

	(void)state;
	device->info.hands_over = true;
	stuck.silent = true;
	agent_doorbell(&world, &urgent, 0, 1);
	settle();
	assert_true(queue->is_ordered && stuck.page->queues[0].held);
	while (queue->client->answers)
		world_wait(&world, 10);
	assert_true(queue->is_ordered); /* its answer counts yet */
	assert_true(stuck.page->queues[0].held);
	stuck.fail = -EIO;
	agent_answer(&world, &stuck);
	assert_false(queue->is_ordered); /* nothing was ordered anew */
	assert_false(queue->closed || stuck.page->queues[0].held);
	assert_int_equal(device->order_failures, 0); /* of plans that were waited for */
	stuck.fail = 0;
	stuck.silent = false;
	wait_gate(&stuck, GP_GATE_CLOSED);
	assert_true(stuck.page->queues[0].held);
}

/* Its only queue has its read pointer in this process's memory and one packet; the agent is never heard of again. */
static void stop_with_work(struct agent *agent, const volatile void *read_pointer)
{
	struct gp_wire_queue queue = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_ADD, sizeof(queue), 0 },
		.slot = 1,
		.generation = ++agent->generation,
		.flags = GP_QUEUE_SEEN,
		.gpu_id = WORLD_GPU,
		.queue_id = 1,
		.hw_priority = 7,
		.ring_size = 4096,
		.read_pointer = (uintptr_t)read_pointer,
	};

	remove_queue(agent, 0, 1);
	world_send(agent->fd, &queue, sizeof(queue));
	agent_work(&world, agent);
	agent_doorbell(&world, agent, 1, 1);
	settle();
}

static struct gp_client *client_of(const struct agent *agent)
{
	return world_queue(&world, agent, 1)->client;
}

static void test_is_looked_at(void **state)
{
	static volatile uint64_t completed;

	(void)state;
	stop_with_work(&urgent, &completed);
	while (client_of(&urgent)->counters != GP_COUNTERS_DAEMON)
		world_wait(&world, 10);
	assert_true(world_queue(&world, &urgent, 1)->pending);
	completed = 7; /* more than was ever written: not believed */
	for (int i = 0; i < 5; i++)
		world_wait(&world, 60);
	assert_true(world_queue(&world, &urgent, 1)->pending);
	completed = 1;
	while (world_queue(&world, &urgent, 1)->pending)
		world_wait(&world, 10);
	wait_gate(&stuck, GP_GATE_OPEN);
}

/* Memory behind which a file system of the client's own sits: reading it takes as long as that one likes. */
static uint64_t held;
static sem_t let_go;

static ssize_t read_held(int fd, void *into, size_t size, off_t at)
{
	if ((uintptr_t)at == (uintptr_t)&held)
		sem_wait(&let_go);
	return pread(fd, into, size, at);
}

static void test_memory_that_holds(void **state)
{
	static volatile uint64_t completed = 1;

	(void)state;
	while (!sem_trywait(&let_go)) {}
	stop_with_work(&urgent, &held);
	while (client_of(&urgent)->counters != GP_COUNTERS_OLD)
		world_wait(&world, 10);
	/* Another of the same user has to wait, too; the daemon goes on. */
	stop_with_work(&batch, &completed);
	while (client_of(&batch)->counters != GP_COUNTERS_OLD)
		world_wait(&world, 10);
	for (int i = 0; i < 1000; i++)
		sem_post(&let_go);
	while (client_of(&batch)->counters != GP_COUNTERS_DAEMON)
		world_wait(&world, 10);
	assert_false(world_queue(&world, &batch, 1)->pending);
}

/* As many clients of one user as there are threads: one is kept, and the other users are still looked at. */
static void test_memory_of_one_user(void **state)
{
	struct agent holders[4];

	(void)state;
	for (int i = 0; i < 4; i++) {
		agent_connect(&world, &holders[i], 20);
		agent_add_queue(&world, &holders[i], 0, GP_QUEUE_SEEN);
	}
	for (int i = 0; i < 4; i++)
		stop_with_work(&holders[i], &held);
	for (int i = 0; i < 4; i++)
		while (client_of(&holders[i])->counters != GP_COUNTERS_OLD)
			world_wait(&world, 10);
	world_give(&world, world_queue(&world, &batch, 0)->client, getuid() + 1);
	assert_true(gp_silence_look(&world.daemon, world_queue(&world, &batch, 0)->client));
	for (int i = 0; i < 1000; i++)
		sem_post(&let_go);
	while (world_queue(&world, &batch, 0)->client->looking)
		world_wait(&world, 10);
	for (int i = 0; i < 4; i++)
		agent_leave(&world, &holders[i]);
}

/* A client whose process has become another user's: its memory is not read to him. */
static void test_memory_of_another(void **state)
{
	static volatile uint64_t secret = 1;

	(void)state;
	world_queue(&world, &urgent, 0)->client->uid = getuid() + 1;
	stop_with_work(&urgent, &secret);
	while (client_of(&urgent)->counters == GP_COUNTERS_AGENT)
		world_wait(&world, 10);
	assert_int_equal(client_of(&urgent)->counters, GP_COUNTERS_OLD);
	assert_int_equal(world_queue(&world, &urgent, 1)->looked, 0);
	assert_true(world_queue(&world, &urgent, 1)->pending);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_is_given_up_on, begin, end),
		cmocka_unit_test_setup_teardown(test_daemon_stood_still, begin, end),
		cmocka_unit_test_setup_teardown(test_comes_back, begin, end),
		cmocka_unit_test_setup_teardown(test_again_and_again, begin, end),
		cmocka_unit_test_setup_teardown(test_no_way_round, begin, end),
		cmocka_unit_test_setup_teardown(test_no_way_round_by_new_queues, begin, end),
		cmocka_unit_test_setup_teardown(test_no_way_round_by_its_runtime, begin, end),
		cmocka_unit_test_setup_teardown(test_other_means, begin, end),
		cmocka_unit_test_setup_teardown(test_full_socket, begin, end),
		cmocka_unit_test_setup_teardown(test_penalty_is_the_users, begin, end),
		cmocka_unit_test_setup_teardown(test_late_failure, begin, end),
		cmocka_unit_test_setup_teardown(test_is_looked_at, begin, end),
		cmocka_unit_test_setup_teardown(test_memory_of_another, begin, end),
		cmocka_unit_test_setup_teardown(test_memory_of_one_user, begin, end),
		cmocka_unit_test_setup_teardown(test_memory_that_holds, begin, end),
	};

	sem_init(&let_go, 0, 0);
	gp_silence_read = read_held;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
