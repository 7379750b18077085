/* SPDX-License-Identifier: MIT */
/* What is read of a process's line in /proc: its name is the user's, and may look like the fields behind it. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "daemon/cgroup.h"
#include "daemon/process.h"
#include "lib/living.h"

/* state, parent, fields 5 to 21, start (22), 23 to 27, stack (28), more. */
#define TAIL "S 77 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 2200 23 24 25 26 27 2800 29 30\n"

static void test_names(void **state)
{
	static const char *const names[] = { "a", "a b", ")", "a) R 1 2 3 4", "a) R 1 (b", "", "\n" };
	struct gp_process_stat process;
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(text, sizeof(text), "12 (%s) " TAIL, names[i]);
		assert_int_equal(gp_process_stat_parse(text, &process), 0);
		assert_int_equal(process.parent, 77);
		assert_int_equal(process.start, 2200);
		assert_int_equal(process.stack, 2800);
	}
}

/* Cut anywhere it is refused, or has what was there: never what was not. */
static void test_cut(void **state)
{
	static const char whole[] = "12 (a) " TAIL;
	const char *start = strstr(whole, "2200"), *stack = strstr(whole, "2800");
	char text[256];

	(void)state;
	for (size_t size = 0; size < sizeof(whole); size++) {
		struct gp_process_stat process = { -1, 1, 1 };
		int r;

		snprintf(text, sizeof(text), "%.*s", (int)size, whole);
		r = gp_process_stat_parse(text, &process);
		assert_int_equal(r, size > (size_t)(start - whole) ? 0 : -EINVAL);
		if (r)
			assert_int_equal(process.parent, -1);
		else if (size <= (size_t)(stack - whole))
			assert_int_equal(process.stack, 0);
	}
	assert_int_equal(gp_process_stat_parse("12 (a) S 99999999999 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22",
					       &(struct gp_process_stat){ 0 }),
			 -EINVAL);
}

static void *go_on(void *unused)
{
	for (;;)
		pause();
	return unused;
}

/* Its first thread has ended, and with it what /proc/PID shows of its memory: another thread's is read. So are its
 * cgroups, which are this process's: of the ended thread Linux says "/" in hierarchies of version 1. */
static void test_first_thread_ended(void **state)
{
	char text[4096], own[GP_CGROUP_TEXT], paths[GP_CGROUP_TEXT];
	pid_t child = fork();
	pthread_t other;
	int pidfd;

	(void)state;
	if (!child) {
		alarm(60); /* it does not outlive a test that fails */
		pthread_create(&other, NULL, go_on, NULL);
		pthread_exit(NULL);
	}
	while (gp_living_thread(child) == child)
		usleep(1000);
	assert_int_not_equal(gp_process_read(child, "cmdline", text, sizeof(text)), 0);
	assert_int_not_equal(gp_process_read(child, "environ", text, sizeof(text)), 0);
	pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	gp_cgroup_read(child, pidfd, paths, sizeof(paths));
	close(pidfd);
	pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	gp_cgroup_read(getpid(), pidfd, own, sizeof(own));
	close(pidfd);
	assert_string_equal(paths, own);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(gp_process_read(child, "environ", text, sizeof(text)), 0);
}

static void test_own(void **state)
{
	static struct gp_ancestry ancestry;
	struct gp_process_stat process;
	pid_t child = fork();

	(void)state;
	if (!child) {
		alarm(60);
		for (;;)
			pause();
	}
	assert_int_equal(gp_process_parent(child), getpid());
	assert_true(gp_process_descends(&ancestry, child, getpid()));
	assert_true(gp_process_descends(&ancestry, child, getppid()));
	assert_false(gp_process_descends(&ancestry, getpid(), child));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(gp_process_stat(child, &process), -ESRCH);
	assert_int_equal(gp_process_parent(child), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_names), cmocka_unit_test(test_cut),
					    cmocka_unit_test(test_first_thread_ended), cmocka_unit_test(test_own) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
