/* SPDX-License-Identifier: MIT */
/* What the doorbells of one user cost the decision thread: a bounded amount of work for each, and the user's share of
 * the thread's time for all of them. */
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "test/unit/daemon_world.h"

#define GREEDY_UID 12345u
#define QUEUES     GP_WIRE_QUEUE_MAX

static struct world world;
static struct agent greedy, other;

static int begin(void **state)
{
	(void)state;
	world_begin(&world,
		    "[daemon]\nqueues_max = 4096\n[policy]\noverhead = 1000\nage_window = 1h\nmin_open = 1us\n");
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

		greedy.page->queues[slot].generation = queue.generation;
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

static void come(void)
{
	agent_connect(&world, &greedy, 0);
	add_queues(GP_QUEUE_SEEN);
	world_give(&world, world_queue(&world, &greedy, 0)->client, GREEDY_UID);
	greedy.page->plain = 1;
}

static struct gp_owner *owner(void)
{
	return world_queue(&world, &greedy, 0)->client->owner;
}

/* All queues have so many packets, of which so many are done. */
static void claim_all(uint64_t packets, uint64_t completed)
{
	for (uint32_t slot = 0; slot < QUEUES; slot++) {
		greedy.page->queues[slot].doorbell = greedy.page->queues[slot].written = packets;
		greedy.page->queues[slot].completed = completed;
	}
}

static uint32_t count_pending(void)
{
	uint32_t count = 0;

	for (uint32_t slot = 0; slot < QUEUES; slot++)
		count += world_queue(&world, &greedy, slot)->pending;
	return count;
}

/* A thousand idle queues are to be armed again at once: for all of them the daemon makes one barrier, and arms all. */
static void test_plain(void **state)
{
	uint64_t before;

	(void)state;
	come();
	before = world.daemon.barrier_count;
	for (uint32_t slot = 0; slot < QUEUES; slot++)
		greedy.page->queues[slot].armed = 0;
	agent_ring(&greedy);
	gp_daemon_step(&world.daemon, 0);
	assert_int_equal(world.daemon.barrier_count - before, 1);
	for (uint32_t slot = 0; slot < QUEUES; slot++)
		assert_int_equal(greedy.page->queues[slot].armed, GP_ARMED_BUSY);
}

/* The agents answer their orders until there are no more, so that the core has plans to make. */
static void answer_all(void)
{
	for (uint32_t before = greedy.order_count - 1; before != greedy.order_count;) {
		before = greedy.order_count;
		agent_work(&world, &other);
		agent_work(&world, &greedy);
	}
}

/* The same where the work of all ends unnoticed, and the daemon finds that before a plan for another user. */
static void test_plain_plan(void **state)
{
	uint64_t before;

	(void)state;
	come();
	claim_all(5, 0);
	agent_ring(&greedy);
	answer_all();
	assert_int_equal(count_pending(), QUEUES);
	claim_all(5, 5);
	before = world.daemon.barrier_count;
	agent_doorbell(&world, &other, 0, 5);
	assert_int_equal(count_pending(), 0);
	assert_in_range(world.daemon.barrier_count - before, 1, 3);
	assert_true(world.daemon.counters.away_work_max > QUEUES);
}

/* A user with a thousand busy queues pays for all but the first of them when the daemon reads them before a plan, and
 * while the user owes, only the first are read. */
static void test_reading_before_a_plan(void **state)
{
	struct gp_owner *user;

	(void)state;
	come();
	user = owner();
	claim_all(5, 0);
	agent_ring(&greedy);
	answer_all();
	user->debt_ns = 0;
	world_tick(1000);
	agent_doorbell(&world, &other, 0, 5);
	world_tick(0);
	assert_true(user->debt_ns > 100000);
	answer_all();
	user->debt_ns = 1000000000;
	user->spent_ns = gp_now_ns();
	claim_all(5, 5);
	agent_complete(&world, &other, 0, 5);
	assert_in_range(count_pending(), QUEUES / 2, QUEUES - 1);
	for (int i = 0; i < 400; i++)
		world_wait(&world, 50); /* at once it would be a pause, in which nobody's debt shrinks */
	agent_doorbell(&world, &other, 0, 6);
	assert_int_equal(count_pending(), 0);
}

/* Honest ringing is free: a thousand rings at once, two thousand a second. Rings beyond that are charged in full. */
static void test_cheap_rings(void **state)
{
	struct gp_owner *user = gp_owner_of_uid(&world.daemon, GREEDY_UID);
	uint64_t now_ns = gp_now_ns();

	(void)state;
	agent_connect(&world, &greedy, 0);
	for (int i = 0; i < 1000; i++)
		gp_fair_charge_ring(user, 19000, now_ns);
	for (int i = 0; i < 2000; i++)
		gp_fair_charge_ring(user, 19000, now_ns += 500000);
	assert_int_equal(user->debt_ns, 0);
	for (int i = 0; i < 100; i++)
		gp_fair_charge_ring(user, 1000, now_ns);
	assert_in_range(user->debt_ns, 100000, 2000000);
	gp_owner_put(user);
}

/* What takes long is charged as long as it took; but the machine may have stood still. */
static void test_dear_rings(void **state)
{
	struct gp_owner *user = gp_owner_of_uid(&world.daemon, GREEDY_UID);

	(void)state;
	agent_connect(&world, &greedy, 0);
	gp_fair_charge_ring(user, 10000000, gp_now_ns());
	assert_in_range(user->debt_ns, 9900000, 10000000);
	gp_fair_charge_ring(user, 5000000000, gp_now_ns());
	assert_in_range(user->debt_ns, 10000000, 50000000);
	gp_owner_put(user);
}

/* While a user owes, a doorbell that rings again does not wake the thread. What rang is known when it is served. */
static void test_deaf(void **state)
{
	struct pollfd wakes = { .fd = world.daemon.loop.epoll_fd, .events = POLLIN };

	(void)state;
	agent_connect(&world, &greedy, 0);
	agent_add_queue(&world, &greedy, 0, GP_QUEUE_SEEN);
	world_give(&world, world_queue(&world, &greedy, 0)->client, GREEDY_UID);
	owner()->debt_ns = 1000000000;
	owner()->spent_ns = gp_now_ns();
	for (int i = 0; i < 3; i++) {
		agent_ring(&greedy);
		gp_daemon_step(&world.daemon, 0);
	}
	greedy.page->queues[0].written = 5;
	agent_ring(&greedy);
	assert_int_equal(poll(&wakes, 1, 0), 0);
	assert_false(world_queue(&world, &greedy, 0)->pending);
	world_wait(&world, 20000);
	world_step(&world);
	assert_true(world_queue(&world, &greedy, 0)->pending);
	greedy.page->queues[0].completed = 5;
	agent_ring(&greedy);
	agent_work(&world, &greedy);
	assert_false(world_queue(&world, &greedy, 0)->pending);
}

/* Makes the doorbell's counter overflow. A process cannot write so much, but the kernel can on its behalf. */
static void overflow(void)
{
	uint64_t most = UINT64_MAX - 1, byte;
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct iocb call = { .aio_lio_opcode = IOCB_CMD_PREAD,
			     .aio_fildes = (uint32_t)zero,
			     .aio_buf = (uintptr_t)&byte,
			     .aio_nbytes = 1,
			     .aio_flags = IOCB_FLAG_RESFD,
			     .aio_resfd = (uint32_t)greedy.doorbell_fd };
	struct iocb *calls[] = { &call };
	aio_context_t context = 0;

	if (zero < 0 || syscall(SYS_io_setup, 1, &context))
		skip(); /* a kernel without asynchronous calls */
	assert_int_equal(write(greedy.doorbell_fd, &most, sizeof(most)), sizeof(most));
	assert_int_equal(syscall(SYS_io_submit, context, 1, calls), 1);
	syscall(SYS_io_destroy, context);
	close(zero);
}

/* The kernel reports an overflow whether or not the daemon wants to hear of it: that must not keep the thread awake. */
static void test_deaf_to_overflow(void **state)
{
	struct pollfd wakes = { .fd = world.daemon.loop.epoll_fd, .events = POLLIN };

	(void)state;
	agent_connect(&world, &greedy, 0);
	agent_add_queue(&world, &greedy, 0, GP_QUEUE_SEEN);
	world_give(&world, world_queue(&world, &greedy, 0)->client, GREEDY_UID);
	owner()->debt_ns = 1000000000;
	owner()->spent_ns = gp_now_ns();
	overflow();
	for (int i = 0; i < 3; i++)
		gp_daemon_step(&world.daemon, 0);
	assert_true(world_queue(&world, &greedy, 0)->client->is_deaf);
	assert_int_equal(poll(&wakes, 1, 0), 0);
}

/* A user who owed is heard again: what rang meanwhile is answered when the kernel reports it, not before as well. */
static void test_answered_once(void **state)
{
	struct gp_client *client;

	(void)state;
	agent_connect(&world, &greedy, 0);
	agent_add_queue(&world, &greedy, 0, GP_QUEUE_SEEN);
	client = world_queue(&world, &greedy, 0)->client;
	world_give(&world, client, GREEDY_UID);
	owner()->debt_ns = 1000000000;
	owner()->spent_ns = gp_now_ns();
	agent_ring(&greedy);
	gp_daemon_step(&world.daemon, 0);
	assert_true(client->is_deaf);
	greedy.page->queues[0].doorbell = greedy.page->queues[0].written = 5;
	owner()->debt_ns = 0;
	gp_fair_answer_rings(&world.daemon);
	assert_false(client->is_deaf);
	assert_false(world_queue(&world, &greedy, 0)->pending);
	gp_daemon_step(&world.daemon, 0);
	assert_true(world_queue(&world, &greedy, 0)->pending);
}

/* A user who owed is heard again: his doorbell is answered once for each time that it rang, and his messages too. */
static void test_heard_again(void **state)
{
	struct agent second = { 0 };
	const struct gp_client *client;

	(void)state;
	agent_connect(&world, &greedy, 0);
	add_queues(GP_QUEUE_SEEN);
	agent_connect(&world, &second, 0);
	agent_add_queue(&world, &second, 0, GP_QUEUE_SEEN);
	client = world_queue(&world, &greedy, 0)->client;
	world_give(&world, world_queue(&world, &greedy, 0)->client, GREEDY_UID);
	world_give(&world, world_queue(&world, &second, 0)->client, GREEDY_UID);
	world_tick(50000); /* an answer takes longer than what is free */
	owner()->debt_ns = 51000000;
	owner()->spent_ns = gp_now_ns();
	agent_ring(&greedy);
	gp_daemon_step(&world.daemon, 0);
	assert_true(client->is_deaf);
	agent_add_queue(&world, &second, 1, GP_QUEUE_SEEN);
	for (int i = 0; i < 1000 && (client->is_rung || client->is_deaf || !world_queue(&world, &second, 1)); i++)
		world_wait(&world, 1);
	world_tick(0);
	assert_false(client->is_rung || client->is_deaf);
	assert_non_null(world_queue(&world, &second, 1));
	agent_leave(&world, &second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_unseen, begin, end),
		cmocka_unit_test_setup_teardown(test_plain, begin, end),
		cmocka_unit_test_setup_teardown(test_plain_plan, begin, end),
		cmocka_unit_test_setup_teardown(test_reading_before_a_plan, begin, end),
		cmocka_unit_test_setup_teardown(test_cheap_rings, begin, end),
		cmocka_unit_test_setup_teardown(test_dear_rings, begin, end),
		cmocka_unit_test_setup_teardown(test_deaf, begin, end),
		cmocka_unit_test_setup_teardown(test_deaf_to_overflow, begin, end),
		cmocka_unit_test_setup_teardown(test_answered_once, begin, end),
		cmocka_unit_test_setup_teardown(test_heard_again, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
