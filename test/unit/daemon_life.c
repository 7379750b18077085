/* SPDX-License-Identifier: MIT */
/* Clients and queues that change after they came: doorbells seen late, global wave sync, a process that ends while
 * somebody else holds its socket or ours, a budget that is counted once. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/unit/daemon_world.h"

static struct world world;
static struct agent agent;

static int begin(void **state)
{
	(void)state;
	world_begin(&world, "[policy]\npolicy = edf\n");
	agent_connect(&world, &agent, 50);
	return 0;
}

static int end(void **state)
{
	(void)state;
	world_end_one(&world, &agent);
	return 0;
}

static void change_queue(uint32_t slot, uint32_t gpu_id, uint16_t type, uint32_t flags)
{
	struct gp_wire_queue queue = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, type, sizeof(queue), 0 },
		.slot = slot,
		.generation = agent.generation,
		.flags = flags,
		.gpu_id = gpu_id,
		.queue_id = slot,
		.hw_priority = 7,
	};

	world_send(agent.fd, &queue, sizeof(queue));
	agent_work(&world, &agent);
}

/* Who holds doorbells back must see them: such a queue is scheduled from its first doorbell on. */
static void test_seen_late(void **state)
{
	struct gp_client *client;

	(void)state;
	agent_add_queue(&world, &agent, 0, 0);
	client = world_queue(&world, &agent, 0)->client;
	gp_client_mechanism(&world.daemon, client, GP_MECHANISM_SUBMIT, "for this test");
	assert_false(world_queue(&world, &agent, 0)->in_core);
	change_queue(0, WORLD_GPU, GP_WIRE_QUEUE_CHANGE, GP_QUEUE_SEEN);
	assert_true(world_queue(&world, &agent, 0)->in_core);
}

/* A queue that gets global wave sync can no longer be suspended. */
static void test_gws_late(void **state)
{
	(void)state;
	agent_add_queue(&world, &agent, 0, GP_QUEUE_SEEN);
	assert_true(world_queue(&world, &agent, 0)->in_core);
	change_queue(0, WORLD_GPU, GP_WIRE_QUEUE_CHANGE, GP_QUEUE_SEEN | GP_QUEUE_GWS);
	assert_false(world_queue(&world, &agent, 0)->in_core);
	change_queue(0, WORLD_GPU, GP_WIRE_QUEUE_CHANGE, GP_QUEUE_SEEN);
	assert_true(world_queue(&world, &agent, 0)->in_core);
}

/* The same while its gate is closed: it is opened before it is left alone. */
static void test_gws_while_closed(void **state)
{
	struct agent urgent;

	(void)state;
	agent_add_queue(&world, &agent, 0, GP_QUEUE_SEEN);
	agent_doorbell(&world, &agent, 0, 1000);
	agent_connect(&world, &urgent, 90);
	agent_add_queue(&world, &urgent, 0, GP_QUEUE_SEEN);
	agent_doorbell(&world, &urgent, 0, 1);
	for (int i = 0; i < 1000 && !agent_is_closed(&agent, 0); i++) {
		world_wait(&world, 10);
		agent_work(&world, &agent);
	}
	assert_true(agent_is_closed(&agent, 0));
	change_queue(0, WORLD_GPU, GP_WIRE_QUEUE_CHANGE, GP_QUEUE_SEEN | GP_QUEUE_GWS);
	agent_work(&world, &agent);
	assert_false(agent_is_closed(&agent, 0));
	assert_false(world_queue(&world, &agent, 0)->closed);
	agent_leave(&world, &urgent);
}

/* A queue on a GPU that is not ours changes like any other: its agent cannot know. */
static void test_foreign_gpu(void **state)
{
	(void)state;
	agent.generation++;
	change_queue(3, 4711, GP_WIRE_QUEUE_ADD, 0);
	change_queue(3, 4711, GP_WIRE_QUEUE_CHANGE, GP_QUEUE_SEEN);
	assert_int_equal(world.daemon.counters.messages_refused, 0);
}

/* The budget of a process is counted once, whichever of its queues goes. */
static void test_budget(void **state)
{
	struct gp_wire_hello hello = world_hello(50);
	struct gp_wire_slot gone = { .header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_REMOVE, sizeof(gone),
						 0 },
				     .generation = 1 };
	struct agent due;
	uint64_t budget_ns = 0;

	(void)state;
	hello.attr.valid |= GP_ATTR_DEADLINE | GP_ATTR_BUDGET;
	hello.attr.deadline_ns = 8000000;
	hello.attr.budget_ns = 2000000;
	agent_hello(&world, &due, &hello);
	for (uint32_t slot = 0; slot < 6; slot++)
		agent_add_queue(&world, &due, slot, GP_QUEUE_SEEN);
	world_send(due.fd, &gone, sizeof(gone));
	agent_work(&world, &due);
	assert_null(world_queue(&world, &due, 0));
	for (uint32_t slot = 1; slot < 6; slot++) {
		assert_int_equal(world_queue(&world, &due, slot)->attr.deadline_ns, 8000000);
		budget_ns += world_queue(&world, &due, slot)->attr.budget_ns;
	}
	assert_int_equal(budget_ns, 2000000);
	agent_leave(&world, &due);
}

/* A process connects, leaves its socket to a child, and ends. */
static void test_process_ends(void **state)
{
	struct gp_wire_hello hello = world_hello(90);
	pid_t child, keeper = 0;
	int pipes[2], fd;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (!child) {
		fd = world_connect(&world);
		world_send(fd, &hello, sizeof(hello));
		keeper = fork();
		if (!keeper) {
			alarm(60);
			pause();
			_exit(0);
		}
		if (write(pipes[1], &keeper, sizeof(keeper)) < 0)
			_exit(1);
		pause();
	}
	assert_int_equal(read(pipes[0], &keeper, sizeof(keeper)), sizeof(keeper));
	for (int i = 0; i < 1000 && world.daemon.client_count < 2; i++)
		world_wait(&world, 10);
	assert_int_equal(world.daemon.client_count, 2);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	for (int i = 0; i < 1000 && world.daemon.client_count > 1; i++)
		world_wait(&world, 10);
	kill(keeper, SIGKILL);
	assert_int_equal(world.daemon.client_count, 1);
	close(pipes[0]);
	close(pipes[1]);
}

/* How many descriptors epoll watches, as the kernel says: one that was closed here but is open elsewhere counts. */
static uint32_t watched(void)
{
	char path[64], line[256];
	uint32_t count = 0;
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", world.daemon.loop.epoll_fd);
	stream = fopen(path, "re");
	assert_non_null(stream);
	while (fgets(line, sizeof(line), stream))
		count += !strncmp(line, "tfd:", 4);
	fclose(stream);
	return count;
}

/* A backend forks (the guard of a process that is set aside): for a moment the child has every descriptor of ours. A
 * connection that ends in that moment is not heard of again. */
static void test_child_has_connection(void **state)
{
	uint32_t before = watched();
	int pipes[2], fd;
	pid_t child;
	char byte;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	fd = world_connect(&world);
	world_step(&world);
	assert_int_equal(watched(), before + 1);
	child = fork();
	if (!child) {
		close(fd); /* the other end: it is another process's */
		if (write(pipes[1], "", 1) != 1)
			_exit(1);
		alarm(60);
		pause();
		_exit(0);
	}
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	close(fd);
	for (int i = 0; i < 1000 && world.daemon.peer_count > 1; i++)
		world_wait(&world, 10);
	assert_int_equal(world.daemon.peer_count, 1); /* the agent's */
	assert_int_equal(watched(), before);
	world_step(&world);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(pipes[0]);
	close(pipes[1]);
}

/* The doorbell is one file here and there: who was sent away may still ring. */
static void test_doorbell_afterwards(void **state)
{
	uint32_t before = watched();
	struct agent other;

	(void)state;
	agent_connect(&world, &other, 50);
	assert_true(watched() > before);
	world_send(other.fd, "nonsense", 8);
	world_step(&world);
	assert_true(world_is_closed(other.fd));
	assert_int_equal(world.daemon.client_count, 1);
	assert_int_equal(watched(), before);
	agent_ring(&other);
	world_step(&world);
	agent_leave(&world, &other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_seen_late, begin, end),
		cmocka_unit_test_setup_teardown(test_gws_late, begin, end),
		cmocka_unit_test_setup_teardown(test_gws_while_closed, begin, end),
		cmocka_unit_test_setup_teardown(test_foreign_gpu, begin, end),
		cmocka_unit_test_setup_teardown(test_budget, begin, end),
		cmocka_unit_test_setup_teardown(test_process_ends, begin, end),
		cmocka_unit_test_setup_teardown(test_child_has_connection, begin, end),
		cmocka_unit_test_setup_teardown(test_doorbell_afterwards, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
