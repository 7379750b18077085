/* SPDX-License-Identifier: MIT */
/* The guard that sets a process aside by checkpoint: the driver counts pauses, so it is paused once, let go once, and
 * let go when we are not there any more. The driver is this test; its calls are made by children of the guard. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "device/kfd/criu.h"
#include "device/kfd/kfd.h"

static volatile int *paused; /* how often, as the driver counts; shared with the guard and its children */

int __wrap_gp_kfd_call(int fd, unsigned long request, void *args);
int __wrap_gp_kfd_call(int fd, unsigned long request, void *args)
{
	uint32_t op = ((const struct kfd_ioctl_criu_args *)args)->op;

	(void)fd;
	if (request != AMDKFD_IOC_CRIU_OP)
		return -EINVAL;
	if (op == KFD_CRIU_OP_PROCESS_INFO)
		++*paused;
	else if (op == KFD_CRIU_OP_UNPAUSE && *paused)
		--*paused;
	return 0;
}

static pid_t child;
static int pidfd;
static char path[] = "/tmp/gpreempt-guard-XXXXXX";

static int begin(void **state)
{
	int fd, pipes[2];
	char byte;

	(void)state;
	strcpy(path, "/tmp/gpreempt-guard-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	gp_kfd_criu_path = path;
	paused = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(paused, MAP_FAILED);
	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (!child) {
		alarm(60);                       /* should the test die */
		if (write(pipes[1], "", 1) != 1) /* it has the driver's file open from us */
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	close(pipes[0]);
	close(pipes[1]);
	close(fd);
	pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	return pidfd < 0;
}

static int end(void **state)
{
	(void)state;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(pidfd);
	unlink(path);
	return munmap((void *)(uintptr_t)paused, 4096);
}

static void begin_guard(struct gp_kfd_guard *guard)
{
	assert_int_equal(gp_kfd_criu_begin(&(struct gp_kfd_process){ child, pidfd, 0 }, guard), 0);
	if (gp_kfd_criu_change(guard, true) == -EPERM) {
		gp_kfd_criu_end(guard);
		skip(); /* nobody may be traced here */
	}
}

static void test_once(void **state)
{
	struct gp_kfd_guard guard;

	(void)state;
	begin_guard(&guard);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(gp_kfd_criu_change(&guard, false), 0);
		assert_int_equal(*paused, 1);
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(gp_kfd_criu_change(&guard, true), 0);
		assert_int_equal(*paused, 0);
	}
	gp_kfd_criu_end(&guard);
	assert_int_equal(*paused, 0);
}

/* We end while it is set aside. */
static void test_ends(void **state)
{
	struct gp_kfd_guard guard;

	(void)state;
	begin_guard(&guard);
	assert_int_equal(gp_kfd_criu_change(&guard, false), 0);
	assert_int_equal(*paused, 1);
	gp_kfd_criu_end(&guard);
	assert_int_equal(*paused, 0);
}

/* A guard that was killed had set it aside: the next one lets it go before anything else. */
static void test_killed(void **state)
{
	struct gp_kfd_guard guard, next;

	(void)state;
	begin_guard(&guard);
	assert_int_equal(gp_kfd_criu_change(&guard, false), 0);
	kill(guard.pid, SIGKILL);
	gp_kfd_criu_end(&guard);
	assert_int_equal(*paused, 1);
	begin_guard(&next);
	assert_int_equal(*paused, 0);
	assert_int_equal(gp_kfd_criu_change(&next, false), 0);
	assert_int_equal(*paused, 1);
	gp_kfd_criu_end(&next);
	assert_int_equal(*paused, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_once, begin, end),
		cmocka_unit_test_setup_teardown(test_ends, begin, end),
		cmocka_unit_test_setup_teardown(test_killed, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
