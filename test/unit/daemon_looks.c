/* SPDX-License-Identifier: MIT */
/* What the daemon reads of a client's memory: only that of the very process, and only what its user may read anyway. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/aside.h"
#include "lib/living.h"
#include "test/attack/hold.h"
#include "test/unit/daemon_world.h"

static struct world world;
static struct agent agent;
static volatile uint64_t completed;

static int begin(void **state)
{
	struct gp_wire_queue queue = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_ADD, sizeof(queue), 0 },
		.slot = 1,
		.generation = 1,
		.flags = GP_QUEUE_SEEN,
		.gpu_id = WORLD_GPU,
		.read_pointer = (uintptr_t)&completed,
	};

	(void)state;
	completed = 3;
	world_begin(&world, NULL);
	agent_connect(&world, &agent, 50);
	world_send(agent.fd, &queue, sizeof(queue));
	agent_work(&world, &agent);
	agent_doorbell(&world, &agent, 1, 5);
	return 0;
}

static int end(void **state)
{
	(void)state;
	world_end_one(&world, &agent);
	return 0;
}

/* What became known of the queue. */
static uint64_t look(struct gp_client *client)
{
	assert_true(gp_silence_look(&world.daemon, client));
	while (client->looking)
		world_wait(&world, 1);
	return world_queue(&world, &agent, 1)->looked;
}

static void test_own(void **state)
{
	struct gp_client *client = world_queue(&world, &agent, 1)->client;

	(void)state;
	assert_int_equal(look(client), 3);
	assert_int_equal(client->counters, GP_COUNTERS_DAEMON);
}

/* What its memory says is as little trusted as its page: more than was ever written is not believed. */
static void test_nonsense(void **state)
{
	struct gp_queue_entry *queue = world_queue(&world, &agent, 1);

	(void)state;
	assert_true(queue->pending);
	completed = 7;
	assert_int_equal(look(queue->client), 7);
	assert_true(queue->pending);
	completed = 5;
	look(queue->client);
	assert_false(queue->pending);
}

/* The process has become another user's (it executed a set-user-ID program): its memory is not told to the first. */
static void test_of_another_user(void **state)
{
	struct gp_client *client = world_queue(&world, &agent, 1)->client;

	(void)state;
	client->uid = getuid() + 1;
	assert_int_equal(look(client), 0);
	assert_int_equal(client->counters, GP_COUNTERS_OLD);
}

/* The process has gone, and its number is another's by now: that one's memory is not read. */
static void test_of_another_process(void **state)
{
	struct gp_client *client = world_queue(&world, &agent, 1)->client;
	int own = client->device.pidfd, gone;
	pid_t child = fork();

	(void)state;
	if (!child)
		_exit(0);
	gone = (int)syscall(SYS_pidfd_open, child, 0);
	assert_true(gone >= 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	client->device.pidfd = gone;
	assert_int_equal(look(client), 0);
	assert_int_equal(client->counters, GP_COUNTERS_OLD);
	client->device.pidfd = own;
	close(gone);
}

static void *go_on(void *first)
{
	pthread_join(*(pthread_t *)first, NULL);
	for (;;)
		pause();
	return NULL;
}

/* Its first thread has ended, and the others go on: its memory is still there. */
static void test_first_thread_ended(void **state)
{
	struct gp_client *client = world_queue(&world, &agent, 1)->client;
	int own = client->device.pidfd, own_pid = client->device.pid;
	static pthread_t first;
	pthread_t other;
	pid_t child = fork();

	(void)state;
	if (!child) {
		alarm(60); /* it does not outlive a test that fails */
		first = pthread_self();
		pthread_create(&other, NULL, go_on, &first);
		pthread_exit(NULL);
	}
	while (gp_living_thread(child) == child)
		usleep(1000);
	client->device.pid = child;
	client->device.pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	assert_int_equal(look(client), 3);
	assert_int_equal(client->counters, GP_COUNTERS_DAEMON);
	close(client->device.pidfd);
	client->device.pidfd = own;
	client->device.pid = own_pid;
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* Its user holds the lock of its folder in /proc: only a helper hangs. It goes on when the lock is released. */
static void test_locked(void **state)
{
	struct gp_client *client = world_queue(&world, &agent, 1)->client;
	int own = client->device.pidfd;
	pid_t own_pid = client->device.pid, child;
	const char *why = hold_start();

	(void)state;
	if (why) {
		print_message("no folder can be locked here: %s\n", why);
		skip();
	}
	child = fork();
	if (!child) {
		alarm(60);
		pause();
		_exit(0);
	}
	hold_lock(0, child);
	for (int i = 0; i < 10000 && !hold_is_locked(0); i++)
		usleep(1000);
	assert_true(hold_is_locked(0));
	client->device.pid = child;
	client->device.pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	assert_int_equal(look(client), 0);
	assert_int_equal(client->counters, GP_COUNTERS_OLD);
	assert_int_equal(gp_aside_left(), 1);
	hold_stop();
	while (gp_aside_left())
		usleep(1000);
	close(client->device.pidfd);
	client->device.pidfd = own;
	client->device.pid = own_pid;
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_own, begin, end),
		cmocka_unit_test_setup_teardown(test_nonsense, begin, end),
		cmocka_unit_test_setup_teardown(test_of_another_user, begin, end),
		cmocka_unit_test_setup_teardown(test_of_another_process, begin, end),
		cmocka_unit_test_setup_teardown(test_first_thread_ended, begin, end),
		cmocka_unit_test_setup_teardown(test_locked, begin, end),
	};
	int r;

	if (gp_aside_start())
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	gp_aside_stop();
	return r;
}
