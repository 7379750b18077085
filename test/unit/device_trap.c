/* SPDX-License-Identifier: MIT */
/*
 * Becoming the debugger of a process that does not let us: one of its threads executes another program and waits for
 * the other to end, which a tracer of its own keeps from it. Until then nobody else's PTRACE_SEIZE comes back.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "device/kfd/trap.h"

static void *wait_for_end(void *context)
{
	for (;;)
		pause();
	return context;
}

__attribute__((noreturn)) static void execute(void)
{
	pthread_t thread;

	alarm(120); /* should the test die */
	raise(SIGSTOP);
	pthread_create(&thread, NULL, wait_for_end, NULL);
	execl("/bin/true", "true", (char *)NULL);
	_exit(1);
}

/* Lets the child and its threads run until the second is about to end. */
static pid_t keep_from_ending(pid_t child)
{
	int status;
	pid_t who;

	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_int_equal(ptrace(PTRACE_SEIZE, child, NULL, PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXIT), 0);
	kill(child, SIGCONT);
	for (;;) {
		who = waitpid(-1, &status, __WALL);
		assert_true(who > 0);
		if (status >> 16 == PTRACE_EVENT_EXIT)
			return who;
		assert_true(WIFSTOPPED(status));
		ptrace(PTRACE_CONT, who, NULL, NULL);
	}
}

static void test_in_exec(void **state)
{
	pid_t child = fork(), thread;
	int pidfd, status;

	(void)state;
	if (!child)
		execute();
	thread = keep_from_ending(child);
	pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	alarm(60); /* it comes back, or this test ends */
	assert_int_equal(gp_kfd_trap_enable(-1, &(struct gp_kfd_process){ child, pidfd, 0 }), -ETIMEDOUT);
	close(pidfd);
	ptrace(PTRACE_CONT, thread, NULL, NULL);
	kill(child, SIGKILL);
	while ((thread = waitpid(-1, &status, __WALL)) > 0)
		if (WIFSTOPPED(status))
			ptrace(PTRACE_CONT, thread, NULL, NULL);
	alarm(0);
}

/* It does what it should where nobody is in the way: up to the driver, which there is none of. */
static void test_plain(void **state)
{
	pid_t child = fork();
	int pidfd;

	(void)state;
	if (!child) {
		alarm(60);
		pause();
		_exit(0);
	}
	pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	assert_int_equal(gp_kfd_trap_enable(-1, &(struct gp_kfd_process){ child, pidfd, 0 }), -EBADF);
	close(pidfd);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_plain), cmocka_unit_test(test_in_exec) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
