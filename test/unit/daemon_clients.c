/* SPDX-License-Identifier: MIT */
/* Clients that do what no agent does, one at a time: what they say is about their own queues as they are now, and what
 * is theirs ends with them. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/closer.h"
#include "test/unit/daemon_world.h"
#include "test/unit/welcome.h"

static struct world world;
static struct agent agent;
static int begin(void **state)
{
	(void)state;
	world_begin_one(&world, &agent, NULL, 50);
	return 0;
}

static int end(void **state)
{
	(void)state;
	world_end_one(&world, &agent);
	return 0;
}

/* What a thread says later of a client that has gone is not said of the one in its place. */
static void test_tag(void **state)
{
	struct agent first, second;
	struct gp_client *client;
	uint64_t tag;

	(void)state;
	agent_connect(&world, &first, 50);
	agent_add_queue(&world, &first, 0, GP_QUEUE_SEEN);
	client = world_queue(&world, &first, 0)->client;
	tag = client->device.tag;
	assert_ptr_equal(gp_client_find(&world.daemon, tag), client);
	agent_leave(&world, &first);
	world.daemon.client_hint = (uint32_t)tag >> 10; /* the same place once more */
	agent_connect(&world, &second, 50);
	agent_add_queue(&world, &second, 0, GP_QUEUE_SEEN);
	assert_int_equal((uint32_t)world_queue(&world, &second, 0)->client->device.tag, (uint32_t)tag);
	assert_null(gp_client_find(&world.daemon, tag));
	assert_null(gp_client_find(&world.daemon, tag | UINT32_MAX));
	agent_leave(&world, &second);
}

/* Its means are not known yet: nothing of it is heard. */
static void test_before_welcome(void **state)
{
	struct gp_wire_header synced = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_SYNCED, sizeof(synced), 0 };
	struct agent early;

	(void)state;
	agent_connect(&world, &early, 50);
	agent_add_queue(&world, &early, 0, GP_QUEUE_SEEN);
	world_queue(&world, &early, 0)->client->welcomed = false;
	world_send(early.fd, &synced, sizeof(synced));
	world_step(&world);
	assert_true(world_is_closed(early.fd));
	agent_leave(&world, &early);
}

static void add(uint32_t slot, uint32_t generation)
{
	struct gp_wire_queue queue = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_ADD, sizeof(queue), 0 },
		.slot = slot,
		.generation = generation,
		.flags = GP_QUEUE_SEEN | GP_QUEUE_CLOSED,
		.gpu_id = WORLD_GPU,
		.queue_id = generation,
	};

	world_send(agent.fd, &queue, sizeof(queue));
	world_step(&world);
}

static void take_away(uint32_t slot, uint32_t generation)
{
	struct gp_wire_slot gone = { { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_REMOVE, sizeof(gone), 0 },
				     slot,
				     generation };

	world_send(agent.fd, &gone, sizeof(gone));
	world_step(&world);
}

/* What is said of a queue that has gone does not reach the one that is in its slot now. */
static void test_generation(void **state)
{
	struct {
		struct gp_wire_lost head;
		struct gp_wire_change change;
	} lost = { .head = { .header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_LOST, sizeof(lost), 0 },
			     .why = GP_LOST_RUNTIME,
			     .count = 1 },
		   .change = { .slot = 3, .generation = 10, .open = 1 } };

	(void)state;
	agent.silent = true; /* the gate stays as it came */
	add(3, 10);
	take_away(3, 10);
	add(3, 11);
	assert_int_equal(world_queue(&world, &agent, 3)->wire.generation, 11);
	assert_true(world_queue(&world, &agent, 3)->closed);
	world_send(agent.fd, &lost, sizeof(lost));
	world_step(&world);
	assert_true(world_queue(&world, &agent, 3)->closed);
	take_away(3, 10);
	assert_non_null(world_queue(&world, &agent, 3));
	lost.change.generation = 11;
	world_send(agent.fd, &lost, sizeof(lost));
	world_step(&world);
	assert_false(world_queue(&world, &agent, 3)->closed);
	take_away(3, 11);
	assert_null(world_queue(&world, &agent, 3));
}

/* What a user's queues took of his share comes back with each. */
static void test_queues_come_back(void **state)
{
	const struct gp_owner *owner = world_queue(&world, &agent, 0)->client->owner;
	uint32_t all = owner->queue_count, here = owner->device_queue_count[0];

	(void)state;
	for (uint32_t i = 1; i < 5; i++) {
		add(3, i);
		assert_int_equal(owner->queue_count, all + 1);
		assert_int_equal(owner->device_queue_count[0], here + 1);
		take_away(3, i);
		assert_int_equal(owner->queue_count, all);
		assert_int_equal(owner->device_queue_count[0], here);
	}
}

/* A second queue in a slot ends the connection: the first could not be named any more. */
static void test_slot_in_use(void **state)
{
	struct agent other;

	(void)state;
	add(3, 10);
	add(3, 11);
	assert_true(world_is_closed(agent.fd));
	assert_int_equal(world.daemon.client_count, 0);
	assert_int_equal(world.daemon.devices[0].queue_count, 0);
	agent_connect(&world, &other, 50);
	agent_leave(&world, &other);
}

/* Its process ends and its doorbell rings in the same moment: its memory is not looked at any more. */
static void test_rings_as_it_ends(void **state)
{
	struct gp_wire_hello hello = world_hello(50);
	struct gp_client *client = NULL;
	int pipes[2], fd;
	char byte;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (!child) {
		alarm(60);
		fd = world_connect(&world);
		if (send(fd, &hello, sizeof(hello), 0) != sizeof(hello) || write(pipes[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	world_step(&world);
	for (uint32_t i = 0; i < world.daemon.client_top; i++)
		if (world.daemon.clients[i] && world.daemon.clients[i]->device.pid == child)
			client = world.daemon.clients[i];
	assert_non_null(client);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(write(client->doorbell_fd, &(uint64_t){ 1 }, 8), 8);
	gp_daemon_step(&world.daemon, 0);
	world_step(&world);
	assert_int_equal(world.daemon.client_count, 1);
	close(pipes[0]);
	close(pipes[1]);
}

/* A queue of an NVIDIA device whose group the daemon has not taken cannot be closed by it: it is not ordered. */
static void test_group_comes_first(void **state)
{
	struct gp_client *client = world_queue(&world, &agent, 0)->client;
	uint32_t mechanism = client->device.mechanism;
	struct gp_queue_entry *queue;

	(void)state;
	client->device.mechanism = GP_MECHANISM_BORROW;
	add(3, 10);
	queue = world_queue(&world, &agent, 3);
	assert_false(queue->in_core);
	queue->group.is_found = true;
	gp_queue_reconsider(&world.daemon, queue);
	assert_true(queue->in_core);
	client->device.mechanism = mechanism;
}

/* One whose work nobody sees would wait closed for ever: it is not ordered, from the first or from when that is said.
 */
static void test_blind(void **state)
{
	struct gp_wire_queue change = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_CHANGE, sizeof(change), 0 },
		.slot = 3,
		.generation = 10,
		.flags = GP_QUEUE_SEEN | GP_QUEUE_BLIND,
		.gpu_id = WORLD_GPU,
	};

	(void)state;
	add(3, 10);
	assert_true(world_queue(&world, &agent, 3)->in_core);
	world_send(agent.fd, &change, sizeof(change));
	world_step(&world);
	assert_false(world_queue(&world, &agent, 3)->in_core);
	agent_add_queue(&world, &agent, 4, GP_QUEUE_SEEN | GP_QUEUE_BLIND);
	assert_false(world_queue(&world, &agent, 4)->in_core);
}

/* A program of one vendor's driver names a GPU of another's: nobody could carry out orders there. */
static void test_other_vendor(void **state)
{
	struct gp_driver_entry other = world.daemon.drivers[0];
	struct gp_driver_entry *usual = world.daemon.devices[0].driver;
	struct gp_client *client;

	(void)state;
	add(3, 10);
	client = world_queue(&world, &agent, 3)->client;
	world.daemon.devices[0].driver = &other;
	add(4, 11);
	world.daemon.devices[0].driver = usual;
	assert_null(gp_client_queue(client, 4, 11));
	assert_int_equal(client->left_out, 1);
	assert_false(world_is_closed(agent.fd));
}

/* An agent that can do nothing has not said whose it is: its first queue does. */
static void test_of_no_vendor(void **state)
{
	struct gp_driver_entry other = world.daemon.drivers[0];
	struct gp_driver_entry *usual = world.daemon.devices[0].driver;
	struct gp_wire_hello hello = world_hello(50);
	struct agent idle;
	struct gp_client *client;

	(void)state;
	hello.mechanisms = 0;
	world.daemon.devices[0].driver = &other;
	agent_hello(&world, &idle, &hello);
	agent_add_queue(&world, &idle, 0, GP_QUEUE_SEEN);
	client = world_queue(&world, &idle, 0)->client;
	assert_ptr_equal(client->driver, &other);
	client->driver = world.daemon.devices[0].driver = usual;
	agent_leave(&world, &idle);
}

/* An agent that speaks version 1 does not know what came with version 2, and says none of it. */
static void test_version_1(void **state)
{
	struct gp_wire_slice sliced = { .header = { GP_WIRE_MAGIC, 1, GP_WIRE_SLICED, sizeof(sliced), 0 } };
	struct gp_wire_hello hello = world_hello(50);
	struct agent old;

	(void)state;
	hello.header.version = 1;
	hello.version_min = hello.version_max = 1;
	agent_hello(&world, &old, &hello);
	assert_int_equal(old.welcome.version, 1);
	world_send(old.fd, &sliced, sizeof(sliced));
	world_step(&world);
	assert_true(world_is_closed(old.fd));
	agent_leave(&world, &old);
}

/* The same name from two users is two gangs. */
static void test_gangs_of_two_users(void **state)
{
	struct gp_owner *root = gp_owner_of_uid(&world.daemon, 0);
	uint32_t first = gp_gang_name_get(&world.daemon, root, 1000, "ring");

	(void)state;
	assert_int_not_equal(first, 0);
	assert_int_equal(gp_gang_name_get(&world.daemon, root, 1000, "ring"), first);
	assert_int_not_equal(gp_gang_name_get(&world.daemon, root, 1001, "ring"), first);
	gp_owner_put(root);
}

/* Closed by an urgent one that has something to do; the agent has not answered. */
static void order_a_close(struct agent *urgent)
{
	agent_doorbell(&world, &agent, 0, 5);
	agent.silent = true;
	agent_connect(&world, urgent, 90);
	agent_add_queue(&world, urgent, 0, GP_QUEUE_SEEN);
	agent_doorbell(&world, urgent, 0, 1);
	agent_work(&world, &agent);
	assert_int_equal(agent.order.count, 1);
}

static void answer(uint64_t seq, uint64_t took_ns)
{
	struct {
		struct gp_wire_applied head;
		struct gp_wire_change change;
	} applied = { .head = { .header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_APPLIED, sizeof(applied), 0 },
				.seq = seq,
				.gpu_id = WORLD_GPU,
				.count = 1,
				.issue_ns = 1,
				.done_ns = 1 + took_ns },
		      .change = agent.changes[0] };

	world_send(agent.fd, &applied, sizeof(applied));
	world_step(&world);
}

/* An order has one answer, which is to that very order; more of them say nothing. */
static void test_one_answer(void **state)
{
	const struct gp_hist *hist = &world.daemon.devices[0].close_hist;
	struct agent urgent;

	(void)state;
	order_a_close(&urgent);
	answer(agent.order.seq - 1, 50000);
	answer(agent.order.seq + 1, 50000);
	assert_int_equal(world_gate(&world, &agent, 0), GP_GATE_CLOSING);
	assert_int_equal(hist->count, 0);
	answer(agent.order.seq, 50000);
	assert_int_equal(world_gate(&world, &agent, 0), GP_GATE_CLOSED);
	for (int i = 0; i < 10; i++)
		answer(agent.order.seq, 50000);
	assert_int_equal(hist->count, 1);
	agent_leave(&world, &urgent);
}

/* However long it says it took, and however late it answers: the orders of all clients are weighed against that. */
static void test_cost(void **state)
{
	const struct gp_hist *hist = &world.daemon.devices[0].close_hist;
	struct agent urgent;

	(void)state;
	order_a_close(&urgent);
	for (int i = 0; i < 30; i++)
		world_wait(&world, 100); /* the daemon runs: it is no pause of its own */
	world_step(&world);
	answer(agent.order.seq, UINT64_MAX / 2);
	assert_int_equal(hist->count, 1);
	assert_true(gp_hist_quantile(hist, 1000) <= 20000000);
	agent_leave(&world, &urgent);
}

/* Who connects and says nothing does not keep his place. */
static void test_says_nothing(void **state)
{
	int fd = world_connect(&world);

	(void)state;
	world_step(&world);
	world_wait(&world, 9000);
	assert_false(world_is_closed(fd));
	world_wait(&world, 2000);
	world_step(&world);
	assert_true(world_is_closed(fd));
	assert_false(world_is_closed(agent.fd));
	close(fd);
}

/* A connection that began as a command's stays one. */
static void test_command_is_no_agent(void **state)
{
	struct gp_control_request ping = world_request(GP_CONTROL_PING);
	struct gp_wire_hello hello = world_hello(50);
	uint32_t before = world.daemon.client_count;
	int fd = world_connect(&world);

	(void)state;
	world_send(fd, &ping, sizeof(ping));
	world_step(&world);
	world_send(fd, &hello, sizeof(hello));
	world_step(&world);
	assert_true(world_is_closed(fd));
	assert_int_equal(world.daemon.client_count, before);
	close(fd);
}

/* Another daemon on the same socket is refused; the socket's mode is as the configuration says. */
static void test_socket(void **state)
{
	struct gp_error error;
	struct stat st;
	pid_t second;
	int status;

	(void)state;
	assert_int_equal(stat(world.daemon.config.socket, &st), 0);
	assert_int_equal(st.st_mode & 0777, world.daemon.config.socket_mode);
	second = fork();
	if (!second)
		_exit(gp_peer_listen(&world.daemon, &error) != -EBUSY || !strstr(error.text, "another gpreemptd"));
	assert_int_equal(waitpid(second, &status, 0), second);
	assert_int_equal(status, 0);
}

/* Who connects and sends nothing is turned away; one whose message waits for the daemon's time is served. */
static void test_silent_newcomers(void **state)
{
	struct gp_control_request request = world_request(GP_CONTROL_PING);
	static _Alignas(8) char answer[GP_WIRE_SIZE_MAX];
	struct gp_peer *waits;
	int silent, asks;

	(void)state;
	silent = world_connect(&world);
	world_step(&world);
	asks = world_connect(&world);
	world_step(&world);
	waits = world.daemon.peers;
	assert_int_equal(waits->kind, GP_PEER_NEW);
	world_send(asks, &request, sizeof(request));
	gp_fair_add(&world.daemon, waits);
	gp_peer_expire(&world.daemon, waits->connected_ns + 10000000001ull);
	world_step(&world);
	assert_true(world_is_closed(silent));
	assert_true(world_receive(asks, answer, sizeof(answer)) > sizeof(struct gp_control_answer));
	close(silent);
	close(asks);
	world_step(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_silent_newcomers, begin, end),
		cmocka_unit_test_setup_teardown(test_tag, begin, end),
		cmocka_unit_test_setup_teardown(test_before_welcome, begin, end),
		cmocka_unit_test_setup_teardown(test_generation, begin, end),
		cmocka_unit_test_setup_teardown(test_queues_come_back, begin, end),
		cmocka_unit_test_setup_teardown(test_slot_in_use, begin, end),
		cmocka_unit_test_setup_teardown(test_rings_as_it_ends, begin, end),
		cmocka_unit_test_setup_teardown(test_group_comes_first, begin, end),
		cmocka_unit_test_setup_teardown(test_blind, begin, end),
		cmocka_unit_test_setup_teardown(test_other_vendor, begin, end),
		cmocka_unit_test_setup_teardown(test_of_no_vendor, begin, end),
		cmocka_unit_test_setup_teardown(test_version_1, begin, end),
		cmocka_unit_test_setup_teardown(test_gangs_of_two_users, begin, end),
		cmocka_unit_test_setup_teardown(test_one_answer, begin, end),
		cmocka_unit_test_setup_teardown(test_cost, begin, end),
		cmocka_unit_test_setup_teardown(test_says_nothing, begin, end),
		cmocka_unit_test_setup_teardown(test_command_is_no_agent, begin, end),
		cmocka_unit_test_setup_teardown(test_socket, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
