/* SPDX-License-Identifier: MIT */
/* Somebody asks about a tree of processes, and the driver's list takes as long as it likes: nothing else waits for
 * that, neither decisions nor the questions of other users. The driver is this test. */
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/process.h"
#include "daemon/unmanaged.h"
#include "test/unit/daemon_world.h"

static struct world world;
static struct gp_backend_ops ops;
static sem_t hung, let_go;
static int hanging; /* atomic: the next questions that hang */

static int list_processes(pid_t *pids, uint32_t max)
{
	(void)max;
	if (__atomic_fetch_sub(&hanging, 1, __ATOMIC_SEQ_CST) > 0) {
		sem_post(&hung);
		sem_wait(&let_go);
	}
	pids[0] = getpid();
	return 1;
}

static int list_queues(pid_t pid, struct gp_device_queue *queues, uint32_t max)
{
	(void)pid, (void)max;
	memset(queues, 0, 2 * sizeof(*queues));
	return 2;
}

static int begin(void **state)
{
	(void)state;
	world_begin(&world, "");
	sem_init(&hung, 0, 0);
	sem_init(&let_go, 0, 0);
	ops = *world.daemon.drivers[0].ops;
	ops.processes = list_processes;
	ops.process_queues = list_queues;
	world.daemon.drivers[0].ops = &ops;
	/* The daemon looks for processes without an agent when it starts: that is over before a test begins. */
	do
		world_wait(&world, 100);
	while (world.daemon.scan.timer.at_ns || gp_unmanaged_is_read(&world.daemon));
	return 0;
}

static int end(void **state)
{
	(void)state;
	world_end(&world);
	return 0;
}

/* The kernel notes who connects as he is at that moment. */
static int ask_as(uid_t uid)
{
	struct gp_control_request request = world_request(GP_CONTROL_SUMMARY);
	uid_t before = geteuid();
	int fd;

	assert_int_equal(seteuid(uid), 0);
	fd = world_connect(&world);
	assert_int_equal(seteuid(before), 0);
	world_send(fd, &request, sizeof(request));
	for (int i = 0; i < 3; i++)
		world_step(&world);
	return fd;
}

static int ask(void)
{
	return ask_as(geteuid());
}

static bool is_answered(int fd, char *text, size_t size)
{
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX];
	const struct gp_control_answer *answer = (const void *)buffer;
	size_t got = world_receive(fd, buffer, sizeof(buffer));

	if (got < sizeof(*answer))
		return false;
	assert_int_equal(answer->result, 0);
	snprintf(text, size, "%.*s", (int)(got - sizeof(*answer)), answer->text);
	return true;
}

static void expect_answer(int fd, const char *part)
{
	char text[512];

	while (!is_answered(fd, text, sizeof(text)))
		world_wait(&world, 1);
	assert_non_null(strstr(text, part));
	close(fd);
	world_step(&world);
}

/* A client comes, works and is counted, while the list is being read. */
static void test_hangs(void **state)
{
	struct agent agent;
	char text[512];
	int fd, other;

	(void)state;
	__atomic_store_n(&hanging, 1, __ATOMIC_SEQ_CST);
	fd = ask();
	sem_wait(&hung);
	agent_connect(&world, &agent, 50);
	agent_add_queue(&world, &agent, 0, GP_QUEUE_SEEN);
	agent_doorbell(&world, &agent, 0, 3);
	agent_work(&world, &agent);
	assert_int_equal(world_gate(&world, &agent, 0), GP_GATE_OPEN);
	assert_false(is_answered(fd, text, sizeof(text)));
	if (!getuid()) { /* somebody else's is answered meanwhile */
		assert_int_equal(chmod(world.folder, 0755), 0);
		other = ask_as(12345);
		expect_answer(other, "\"agents\":0,\"opened_gpu\":false,\"queues\":0");
		assert_false(is_answered(fd, text, sizeof(text)));
	}
	sem_post(&let_go);
	expect_answer(fd, "\"agents\":0,\"opened_gpu\":true,\"queues\":2");
	fd = ask();
	expect_answer(fd, "\"agents\":1,\"opened_gpu\":true,\"queues\":2");
	agent_leave(&world, &agent);
}

/* Who asks and goes, or asks when the daemon ends, leaves nothing behind. */
static void test_gone(void **state)
{
	int fds[3];

	(void)state;
	__atomic_store_n(&hanging, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 3; i++)
		fds[i] = ask();
	sem_wait(&hung);
	close(fds[0]);
	close(fds[1]);
	world_step(&world);
	sem_post(&let_go);
	expect_answer(fds[2], "\"queues\":2");
	__atomic_store_n(&hanging, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 3; i++)
		fds[i] = ask();
	sem_wait(&hung);
	world_end(&world);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	sem_post(&let_go); /* the thread that was left behind frees what it has */
	world_begin(&world, "");
}

/* Numbers that fall on one place of the table: none is forgotten for another. */
static void test_tree_places(void **state)
{
	static struct gp_ancestry ancestry;
	const pid_t own = getpid(),
		    gone[] = { own + (pid_t)GP_ANCESTRY_SIZE * 1024, own + (pid_t)GP_ANCESTRY_SIZE * 2048 };

	(void)state;
	/* Beyond the highest number the kernel gives: only what the table says counts. */
	ancestry.pids[(uint32_t)own % GP_ANCESTRY_SIZE] = gone[0];
	ancestry.parents[(uint32_t)own % GP_ANCESTRY_SIZE] = own;
	assert_true(gp_process_descends(&ancestry, own, getppid()));
	assert_true(gp_process_descends(&ancestry, gone[0], own));
	assert_false(gp_process_descends(&ancestry, gone[1], own));
	assert_true(gp_process_descends(&ancestry, gone[0], getppid()));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_hangs, begin, end),
		cmocka_unit_test_setup_teardown(test_gone, begin, end),
		cmocka_unit_test(test_tree_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
