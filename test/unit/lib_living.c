/* SPDX-License-Identifier: MIT */
/* Threads and descriptors of a process whose first thread has ended, and that others are not taken for it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

static void test_getfd(void **state)
{
	int fd = gp_living_getfd(child, pidfd, number);

	(void)state;
	if (fd == -EOPNOTSUPP)
		skip(); /* before Linux 6.9 */
	assert_true(fd >= 0);
	assert_int_equal(syscall(SYS_kcmp, getpid(), getpid(), 0, fd, number), 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	assert_int_equal(gp_living_getfd(child, pidfd, 4000), -EBADF);
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
	assert_int_equal(gp_living_getfd(child, gone_fd, number), -ESRCH);
	close(gone_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_thread, begin, end),
		cmocka_unit_test_setup_teardown(test_getfd, begin, end),
		cmocka_unit_test_setup_teardown(test_stranger, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
