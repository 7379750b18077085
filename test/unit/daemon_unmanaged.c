/* SPDX-License-Identifier: MIT */
/* Processes that the driver lists and that have not said hello: their agent may be about to. The driver is this test;
 * the process is a child of it, which belongs to the same program as the client. */
#include <errno.h>
#include <linux/sched.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/process.h"
#include "daemon/scan.h"
#include "daemon/unmanaged.h"
#include "lib/aside.h"
#include "test/unit/daemon_world.h"

#define CROWD       16      /* as many as the daemon takes in after one look */
#define CROWD_FIRST 5000000 /* no process has such a number */

static struct world world;
static struct agent agent;
static struct gp_backend_ops ops;
static pid_t child;
static bool is_listed; /* atomic */
static int crowd;      /* atomic: of somebody who starts sixteen others for each look; 0: nobody does */
static int journal[2], stderr_fd;
static bool in_container; /* the child, from its beginning on */
static bool is_locked;    /* atomic: nobody can open the child's folder in /proc */
static bool is_unlisted;  /* the driver does not list the child yet when the test begins */

int __real_gp_aside_call(uint64_t owner, void (*function)(void *data), void *data, size_t size);
int __wrap_gp_aside_call(uint64_t owner, void (*function)(void *data), void *data, size_t size);

int __wrap_gp_aside_call(uint64_t owner, void (*function)(void *data), void *data, size_t size)
{
	bool is_scan = owner == GP_ASIDE_DRIVER(0) || size == sizeof(struct gp_scan_process);

	return __atomic_load_n(&is_locked, __ATOMIC_SEQ_CST) && !is_scan ?
		       -EBUSY :
		       __real_gp_aside_call(owner, function, data, size);
}

static int list_processes(pid_t *pids, uint32_t max)
{
	int first = __atomic_load_n(&crowd, __ATOMIC_SEQ_CST);

	assert_true(max > CROWD);
	for (int i = 0; first && i < CROWD; i++)
		pids[i] = first + i;
	if (first)
		return CROWD;
	pids[0] = child;
	return __atomic_load_n(&is_listed, __ATOMIC_SEQ_CST);
}

static int list_queues(pid_t pid, struct gp_device_queue *queues, uint32_t max)
{
	assert_true((pid == child || pid >= CROWD_FIRST) && max > 0);
	queues[0] = (struct gp_device_queue){ .queue_id = 3, .gpu_id = WORLD_GPU, .is_compute = true };
	return 1;
}

/* So much time passes; then the list is read, if it is time. */
static void settle(uint32_t ms)
{
	world_wait(&world, ms);
	while (gp_unmanaged_is_read(&world.daemon))
		world_wait(&world, 0);
}

/* What the journal got since. */
static const char *said(void)
{
	static char lines[4096];
	ssize_t size;

	fflush(stderr);
	size = read(journal[0], lines, sizeof(lines) - 1);
	lines[size > 0 ? size : 0] = '\0';
	return lines;
}

static int begin_with(const char *config)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (in_container && unshare(CLONE_NEWUSER))
			_exit(1);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	assert_true(child > 0);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		skip();
	close(ready[0]);
	world_begin(&world, config);
	ops = *world.daemon.drivers[0].ops;
	ops.processes = list_processes;
	ops.process_queues = list_queues;
	world.daemon.drivers[0].ops = &ops;
	__atomic_store_n(&is_listed, false, __ATOMIC_SEQ_CST);
	assert_int_equal(pipe2(journal, O_NONBLOCK), 0);
	stderr_fd = dup(STDERR_FILENO);
	dup2(journal[1], STDERR_FILENO);
	agent_connect(&world, &agent, 50);
	agent_add_queue(&world, &agent, 0, GP_QUEUE_SEEN);
	settle(100);
	said();
	if (is_unlisted)
		return 0;
	__atomic_store_n(&is_listed, true, __ATOMIC_SEQ_CST);
	gp_unmanaged_want(&world.daemon);
	settle(100);
	return 0;
}

static int begin(void **state)
{
	(void)state;
	return begin_with(NULL);
}

static int begin_container(void **state)
{
	int r;

	(void)state;
	in_container = true;
	r = begin_with(NULL);
	in_container = false;
	return r;
}

static int begin_unlisted(void **state)
{
	int r;

	(void)state;
	is_unlisted = true;
	r = begin_with(NULL);
	is_unlisted = false;
	return r;
}

static int begin_pause(void **state)
{
	(void)state;
	return begin_with("[unmanaged]\naction = pause\nscan = 100ms\n");
}

static int begin_pause_unlisted(void **state)
{
	int r;

	is_unlisted = true;
	r = begin_pause(state);
	is_unlisted = false;
	return r;
}

static int end(void **state)
{
	(void)state;
	agent_leave(&world, &agent);
	world_end(&world);
	fflush(stderr);
	dup2(stderr_fd, STDERR_FILENO);
	close(stderr_fd);
	close(journal[0]);
	close(journal[1]);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	return 0;
}

/* It counts against the slots at once. That it has no agent is said when it has had time to say hello, though nobody
 * asks; then nobody looks any more. */
static void test_rank(void **state)
{
	(void)state;
	assert_int_equal(world.daemon.devices[0].other_processes, 1);
	assert_string_equal(said(), "");
	for (int i = 0; i < 10; i++)
		settle(100);
	assert_string_equal(said(), "");
	for (int i = 0; i < 30; i++)
		settle(100);
	assert_non_null(strstr(said(), "and has no agent"));
	assert_int_equal(world.daemon.scan.timer.at_ns, 0);
}

static bool is_written(const char *words)
{
	struct gp_text text = { 0 };
	bool written;

	gp_text_open(&text, NULL, '{');
	gp_unmanaged_write(&world.daemon, NULL, &text);
	gp_text_close(&text, '}');
	written = strstr(text.bytes, words);
	gp_text_fini(&text);
	return written;
}

static bool is_named(void)
{
	return is_written("\"rank_of\":\"process ");
}

/* Without a step of the daemon. */
static void pass(uint64_t ms)
{
	world_tick(ms * 1000000);
	gp_now_ns();
	world_tick(0);
}

/* The scan that finds it; the answer to the question about its origin is not taken yet. */
static void find(void)
{
	__atomic_store_n(&is_listed, true, __ATOMIC_SEQ_CST);
	pass(1000);
	gp_unmanaged_refresh(&world.daemon);
	while (!world.daemon.questions.open_count)
		gp_unmanaged_take(&world.daemon);
}

/* The first STATUS waits until the program is known that a new process belongs to, and names it. */
static void test_status_names_the_program(void **state)
{
	(void)state;
	find();
	assert_true(gp_unmanaged_is_read(&world.daemon));
	assert_false(is_named());
	settle(0);
	assert_int_equal(world.daemon.questions.open_count, 0);
	assert_true(is_named());
	assert_true(is_written("\"agent_awaited\":true"));
	assert_string_equal(said(), "");
	pass(2000);
	assert_true(is_written("\"agent_awaited\":false"));
}

/* But STATUS does not wait for a process whose origin takes long to read. */
static void test_status_does_not_wait_for_ever(void **state)
{
	(void)state;
	find();
	pass(51);
	assert_int_equal(world.daemon.questions.open_count, 1);
	assert_false(gp_unmanaged_is_read(&world.daemon));
}

/* The client's own origin is known last. */
static void test_the_program_is_known_last(void **state)
{
	struct gp_client *client = world.daemon.clients[0];
	char origin[GP_WIRE_NAME_SIZE];

	(void)state;
	memcpy(origin, client->origin, sizeof(origin));
	memset(client->origin, 0, sizeof(client->origin));
	find();
	settle(0);
	assert_false(is_named());
	gp_together_find(&world.daemon, client);
	while (world.daemon.questions.open_count)
		world_wait(&world, 0);
	assert_string_equal(client->origin, origin);
	assert_true(is_named());
}

/* One that ends, or says hello, before that is not named. */
static void test_gone(void **state)
{
	(void)state;
	assert_int_equal(world.daemon.devices[0].other_processes, 1);
	__atomic_store_n(&is_listed, false, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 40; i++)
		settle(100);
	assert_int_equal(world.daemon.devices[0].other_processes, 0);
	assert_string_equal(said(), "");
}

/* Nor is it set aside as one that has no agent. */
static void test_pause(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		settle(100);
	assert_string_equal(said(), "");
	assert_int_equal(world.daemon.client_count, 1);
	for (int i = 0; i < 30; i++)
		settle(100);
	assert_non_null(strstr(said(), "has no agent: it is set aside"));
	assert_int_equal(world.daemon.client_count, 2);
}

static const struct gp_client *unmanaged_client(void)
{
	for (uint32_t i = 0; i < world.daemon.client_top; i++)
		if (world.daemon.clients[i] && world.daemon.clients[i]->is_unmanaged)
			return world.daemon.clients[i];
	return NULL;
}

/* Holding its own folder in /proc does not save a process from being set aside; and when the folder opens, the process
 * belongs to its user again. */
static void test_pause_hidden(void **state)
{
	(void)state;
	__atomic_store_n(&is_locked, true, __ATOMIC_SEQ_CST);
	__atomic_store_n(&is_listed, true, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 40; i++)
		settle(100);
	assert_non_null(unmanaged_client());
	assert_true(gp_identity_is_container(unmanaged_client()->identity.account));
	__atomic_store_n(&is_locked, false, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 40; i++)
		settle(100);
	assert_non_null(unmanaged_client());
	assert_int_equal(unmanaged_client()->identity.account, world.daemon.clients[0]->identity.account);
	assert_int_equal(world.daemon.client_count, 2);
}

/* One whose queues are there at every second look only is set aside when it has had the same time. */
static void test_pause_now_and_then(void **state)
{
	(void)state;
	for (int i = 0; i < 15; i++) {
		__atomic_store_n(&is_listed, i % 2, __ATOMIC_SEQ_CST);
		settle(100);
	}
	assert_int_equal(world.daemon.client_count, 1);
	for (int i = 0; i < 31; i++) {
		__atomic_store_n(&is_listed, i % 2, __ATOMIC_SEQ_CST);
		settle(100);
		if (!(i % 2))
			assert_int_equal(world.daemon.client_count, 1); /* it has no queue */
	}
	__atomic_store_n(&is_listed, true, __ATOMIC_SEQ_CST);
	settle(200);
	assert_int_equal(world.daemon.client_count, 2);
}

/* A process that gets the number of one that has ended is another one, and has its own time. */
static void test_pause_another(void **state)
{
	struct clone_args args = { .set_tid = (uintptr_t)&child, .set_tid_size = 1, .exit_signal = SIGCHLD };
	struct gp_process_stat first, second;
	long again;

	(void)state;
	for (int i = 0; i < 15; i++)
		settle(100);
	assert_int_equal(world.daemon.client_count, 1);
	assert_int_equal(gp_process_stat(child, &first), 0);
	do { /* until the kernel's clock, by which it says when a process was started, has gone on */
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, NULL, 0), child);
		again = syscall(SYS_clone3, &args, sizeof(args));
		if (!again) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pause();
			_exit(0);
		}
	} while (again > 0 && !gp_process_stat(child, &second) && second.start == first.start);
	if (again < 0) { /* only root may choose the number, and somebody may have it */
		child = fork();
		if (!child)
			_exit(0);
		skip();
	}
	for (int i = 0; i < 15; i++)
		settle(100);
	assert_int_equal(world.daemon.client_count, 1);
	for (int i = 0; i < 15; i++)
		settle(100);
	assert_int_equal(world.daemon.client_count, 2);
}

/* Somebody starts processes all the time that end soon: they are remembered, but another one has its place. */
static void test_pause_in_a_crowd(void **state)
{
	(void)state;
	for (int i = 0; i < 1024 / CROWD + 2; i++) {
		__atomic_store_n(&crowd, CROWD_FIRST + i * CROWD, __ATOMIC_SEQ_CST);
		gp_unmanaged_want(&world.daemon);
		settle(30);
	}
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	__atomic_store_n(&crowd, 0, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 30; i++)
		settle(100);
	assert_int_equal(world.daemon.client_count, 2);
}

/* On a GPU that another daemon has it may be that one's client: nothing is said of it, and it is not set aside. */
static void test_left(void **state)
{
	(void)state;
	world.daemon.devices[0].claim.is_left = true;
	for (int i = 0; i < 40; i++)
		settle(100);
	assert_string_equal(said(), "");
	assert_int_equal(world.daemon.client_count, 1);
	world.daemon.devices[0].claim.is_left = false;
}

/* What is read of a container's process is the container's, whatever uid it has: a process that takes long to read
 * keeps neither root's questions waiting nor those of the user with that uid. */
static void test_a_containers_question(void **state)
{
	int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	struct gp_process_identity identity;
	struct gp_owner *owner;

	(void)state;
	assert_int_equal(gp_identity_read(getuid(), child, pidfd, 0, &identity), 0);
	gp_identity_fini(&identity);
	assert_true(gp_identity_is_container(identity.account));
	owner = gp_owner_of(&world.daemon, identity.account, identity.uid);
	while (world.daemon.questions.open_count)
		world_wait(&world, 1);
	assert_int_not_equal(owner->spent_ns, 0);
	gp_owner_put(owner);
	close(pidfd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_containers_question, begin_container, end),
		cmocka_unit_test_setup_teardown(test_rank, begin, end),
		cmocka_unit_test_setup_teardown(test_status_names_the_program, begin_unlisted, end),
		cmocka_unit_test_setup_teardown(test_status_does_not_wait_for_ever, begin_unlisted, end),
		cmocka_unit_test_setup_teardown(test_the_program_is_known_last, begin_unlisted, end),
		cmocka_unit_test_setup_teardown(test_gone, begin, end),
		cmocka_unit_test_setup_teardown(test_pause, begin_pause, end),
		cmocka_unit_test_setup_teardown(test_pause_hidden, begin_pause_unlisted, end),
		cmocka_unit_test_setup_teardown(test_pause_now_and_then, begin_pause, end),
		cmocka_unit_test_setup_teardown(test_pause_another, begin_pause, end),
		cmocka_unit_test_setup_teardown(test_pause_in_a_crowd, begin_pause, end),
		cmocka_unit_test_setup_teardown(test_left, begin_pause, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
