/* SPDX-License-Identifier: MIT */
/* Threads and descriptors of a process whose first thread has ended, and that others are not taken for it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/living.h"

static pid_t child;
static int pidfd, number;

static void *go_on(void *first)
{
	pthread_join(*(pthread_t *)first, NULL);
	(void)!write(number, "1", 1);
	for (;;)
		pause();
	return NULL;
}

static int begin(void **state)
{
	static pthread_t first;
	pthread_t other;
	int ends[2];
	char byte;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	number = ends[1];
	child = fork();
	if (!child) {
		alarm(60); /* it does not outlive a test that fails */
		first = pthread_self();
		pthread_create(&other, NULL, go_on, &first);
		pthread_exit(NULL);
	}
	pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	assert_true(pidfd >= 0);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	return 0;
}

static int end(void **state)
{
	(void)state;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(pidfd);
	return close(number);
}

static void test_thread(void **state)
{
	pid_t thread;

	(void)state;
	assert_int_equal(gp_living_thread(getpid()), getpid());
	while ((thread = gp_living_thread(child)) == child)
		usleep(1000); /* it is just ending */
	assert_true(thread > 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(gp_living_thread(child), 0);
}

#define DEAD 70

static void *end_after_byte(void *ends)
{
	char byte;

	(void)!read(*(int *)ends, &byte, 1);
	return NULL;
}

static void *go_on_alone(void *unused)
{
	for (;;)
		pause();
	return unused;
}

/* The threads of the child but the first, in the order of their creation; how many. */
static uint32_t list_threads(pid_t *threads)
{
	const struct dirent *entry;
	uint32_t count = 0;
	char path[64];
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/task", child);
	folder = opendir(path);
	assert_non_null(folder);
	while (count <= DEAD && (entry = readdir(folder))) {
		threads[count] = atoi(entry->d_name);
		count += threads[count] && threads[count] != child;
	}
	closedir(folder);
	return count;
}

static bool is_zombie(pid_t thread)
{
	char path[64], line[256] = "";
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", child, thread);
	stream = fopen(path, "re");
	assert_non_null(stream);
	assert_non_null(fgets(line, sizeof(line), stream));
	fclose(stream);
	return strstr(line, ") Z");
}

/* Threads that have ended, and that their tracer does not collect, stand before the one that goes on. There may be
 * thousands of them: the search ends before that. */
static void test_crowd(void **state)
{
	pid_t threads[DEAD + 1];
	int ends[2];
	long traced = 0;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	child = fork();
	if (!child) {
		pthread_t thread;

		alarm(60);
		for (int i = 0; i < DEAD; i++)
			pthread_create(&thread, NULL, end_after_byte, &ends[0]);
		pthread_create(&thread, NULL, go_on_alone, NULL);
		pthread_exit(NULL);
	}
	while (list_threads(threads) <= DEAD || !is_zombie(child))
		usleep(1000);
	assert_int_equal(gp_living_thread(child), threads[0]);
	for (int i = 0; i < DEAD && !traced; i++)
		traced = ptrace(PTRACE_SEIZE, threads[i], NULL, NULL);
	for (int i = 0; i < DEAD; i++)
		(void)!write(ends[1], "1", 1);
	for (int i = 0; i < DEAD && !traced; i++)
		while (!is_zombie(threads[i]))
			usleep(1000);
	if (!traced)
		assert_int_equal(gp_living_thread(child), 0);
	kill(child, SIGKILL);
	while (waitpid(-1, NULL, __WALL) > 0)
		;
	close(ends[0]);
	close(ends[1]);
	if (traced)
		skip(); /* this process may trace no other */
}

static void test_getfd(void **state)
{
	int fd;

	(void)state;
	while (gp_living_thread(child) == child)
		usleep(1000); /* it is just ending */
	fd = gp_living_getfd(0, child, pidfd, number);
	if (fd == -EOPNOTSUPP)
		skip(); /* before Linux 6.9 */
	assert_true(fd >= 0);
	assert_int_equal(syscall(SYS_kcmp, getpid(), getpid(), 0, fd, number), 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	assert_int_equal(gp_living_getfd(0, child, pidfd, 4000), -EBADF);
}

/* The process has ended, and another one that has its number is not asked. */
static void test_stranger(void **state)
{
	pid_t gone = fork();
	int gone_fd;

	(void)state;
	if (!gone)
		_exit(0);
	gone_fd = (int)syscall(SYS_pidfd_open, gone, 0);
	waitpid(gone, NULL, 0);
	assert_int_equal(gp_living_getfd(0, child, gone_fd, number), -ESRCH);
	close(gone_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_thread, begin, end),
		cmocka_unit_test(test_crowd),
		cmocka_unit_test_setup_teardown(test_getfd, begin, end),
		cmocka_unit_test_setup_teardown(test_stranger, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
