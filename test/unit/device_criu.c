/* SPDX-License-Identifier: MIT */
/* Setting a process aside by checkpoint: the call is made on the driver's file and on no other, whatever the process
 * has put in its place meanwhile. The driver is a file that knows no such call, and says so. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "device/kfd/criu.h"

#define NUMBER 77 /* of the driver's file in the process */

/* One file at that place, and nowhere else. */
static bool put(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	return fd >= 0 && dup2(fd, NUMBER) == NUMBER && !close(fd);
}

/* Has the driver open, and puts another file in its place when it is told to. */
__attribute__((noreturn)) static void process(int socket, const char *other)
{
	char byte;

	alarm(120); /* should the test die */
	if (!put(gp_kfd_criu_path) || write(socket, "", 1) != 1 || read(socket, &byte, 1) != 1 || !put(other) ||
	    write(socket, "", 1) != 1)
		_exit(1);
	pause();
	_exit(0);
}

static void try_with(const char *path, const char *other)
{
	struct gp_kfd_guard guard;
	int sockets[2], pidfd, r;
	pid_t child;
	char byte;

	gp_kfd_criu_path = path;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	child = fork();
	if (!child)
		process(sockets[1], other);
	close(sockets[1]);
	assert_int_equal(read(sockets[0], &byte, 1), 1);
	pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	assert_int_equal(gp_kfd_criu_begin(&(struct gp_kfd_process){ child, pidfd, 0 }, &guard), 0);
	r = gp_kfd_criu_change(&guard, false);
	if (r != -EPERM) {
		assert_int_equal(r, -ENOTTY);
		assert_int_equal(write(sockets[0], "", 1), 1);
		assert_int_equal(read(sockets[0], &byte, 1), 1);
		assert_int_equal(gp_kfd_criu_change(&guard, false), -EBADF);
	}
	gp_kfd_criu_end(&guard);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(pidfd);
	close(sockets[0]);
	if (r == -EPERM)
		skip(); /* nobody may be traced here */
}

/* As on a machine with the driver: a device. */
static void test_device(void **state)
{
	(void)state;
	try_with("/dev/full", "/dev/zero");
}

/* As on a virtual node. */
static void test_file(void **state)
{
	char path[] = "/tmp/gpreempt-test-XXXXXX", other[] = "/tmp/gpreempt-test-XXXXXX";
	int fds[] = { mkstemp(path), mkstemp(other) };

	(void)state;
	assert_true(fds[0] >= 0 && fds[1] >= 0);
	close(fds[0]);
	close(fds[1]);
	try_with(path, other);
	unlink(path);
	unlink(other);
}

static void test_none(void **state)
{
	struct gp_kfd_guard guard;

	(void)state;
	gp_kfd_criu_path = "/nonexistent/kfd";
	assert_int_equal(gp_kfd_criu_begin(&(struct gp_kfd_process){ getpid(), -1, 0 }, &guard), -ENOENT);
	gp_kfd_criu_path = "/dev/full";
	assert_int_equal(gp_kfd_criu_begin(&(struct gp_kfd_process){ getpid(), -1, 0 }, &guard), -ENODEV);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_device), cmocka_unit_test(test_file),
					    cmocka_unit_test(test_none) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
