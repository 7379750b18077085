/* SPDX-License-Identifier: MIT */
/* Whose a connection is if the process that made it has ended before the daemon accepts it, and another has the socket.
 * The other end is a child of this test. */
#include <errno.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/unit/daemon_world.h"

#define USER    12345u
#define REFUSED 249 /* exit status: the daemon refused the connection */
#define FAILED  250 /* … this cannot be made here */
#define SILENT  251 /* … the daemon said neither a sentence nor a ceiling */
#define PIDFD   77  /* SO_PEERPIDFD */

static struct world world;

static int begin(void **state)
{
	(void)state;
	if (getuid())
		return 0;
	world_begin(&world, "[ceiling]\ndefault = 40\nuser.12345 = 60\n");
	return chmod(world.folder, 0755);
}

static int end(void **state)
{
	(void)state;
	if (!getuid())
		world_end(&world);
	return 0;
}

/* A process of that user, in a PID namespace of root's or in the daemon's own. */
static void become(bool is_container)
{
	int status;
	pid_t child;

	if (setgroups(0, NULL) || (is_container && unshare(CLONE_NEWPID)))
		_exit(FAILED);
	child = is_container ? fork() : 0; /* only a child is in the new namespace */
	if (child) {
		waitpid(child, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : FAILED);
	}
	if (setresuid(USER, USER, USER))
		_exit(FAILED);
}

/* Asks on the connection of a process that has ended by then. Its parent has taken note of that, unless is_zombie.
 * Returns the ceiling that the connection has, REFUSED, FAILED or SILENT. */
static int ask(int ended, bool is_zombie)
{
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX];
	const struct gp_wire_header *header = (const void *)buffer;
	struct gp_control_request request = world_request(GP_CONTROL_PING);
	pid_t first = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
	siginfo_t info;
	const char *at;
	ssize_t size;

	if (!first)
		_exit(world_connect(&world));
	if (waitid(P_PID, (id_t)first, &info, WEXITED | (is_zombie ? WNOWAIT : 0)) || info.si_code != CLD_EXITED ||
	    send(info.si_status, &request, sizeof(request), 0) < 0 || write(ended, "", 1) != 1)
		return FAILED;
	/* If the daemon closed the connection with the packet unread, the kernel reports that before the sentence. */
	do {
		size = recv(info.si_status, buffer, sizeof(buffer) - 1, 0);
	} while (size < 0 && errno == ECONNRESET);
	if (size < (ssize_t)sizeof(*header))
		return SILENT;
	at = strstr(buffer + sizeof(struct gp_control_answer), "\"ceiling\":");
	return header->type == GP_WIRE_REFUSED ? REFUSED : at ? atoi(at + 10) : SILENT;
}

static int result_of(bool is_container, bool is_zombie)
{
	struct pollfd ended = { .events = POLLIN };
	int ends[2], status;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		alarm(60);
		become(is_container);
		_exit(ask(ends[1], is_zombie));
	}
	close(ends[1]);
	ended.fd = ends[0];
	assert_int_equal(poll(&ended, 1, 60000), 1); /* it has ended, or there is no such process here */
	while (!waitpid(child, &status, WNOHANG))
		world_wait(&world, 1);
	close(ends[0]);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* A process that has ended no longer shows which namespaces it was in. If its uid alone counted, a container could
 * choose the account, and the ceiling. */
static void test_gone(void **state)
{
	static const struct {
		bool is_container, is_zombie;
		int result;
	} cases[] = { { true, false, REFUSED }, { false, false, REFUSED }, { true, true, 40 }, { false, true, 60 } };

	(void)state;
	if (getuid())
		skip();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int got = result_of(cases[i].is_container, cases[i].is_zombie);

		if (got != FAILED && got != cases[i].result)
			fail_msg("case %zu: %d instead of %d", i, got, cases[i].result);
	}
}

/* From now on the kernel answers so if this process asks for the pidfd of a connection. */
static void fail_pidfd(int error)
{
	struct sock_filter lines[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsockopt, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PIDFD, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(lines) / sizeof(lines[0]), lines };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(FAILED);
}

/* If the kernel says that the process has ended, the daemon takes no other process with that number for it. The number
 * counts only where the kernel is too old to tell. The daemon is a child of this test, with such a kernel. */
static void test_by_number(void **state)
{
	static const struct {
		int error;
		bool is_let_in;
	} cases[] = { { ESRCH, false }, { EINVAL, false }, { ENODATA, false }, { ENOPROTOOPT, true } };

	(void)state;
	if (getuid())
		skip();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pid_t child = fork();
		int status, fd;

		if (!child) {
			fail_pidfd(cases[i].error);
			fd = world_connect(&world);
			world_step(&world);
			_exit(!world_is_closed(fd));
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		if (WEXITSTATUS(status) != FAILED)
			assert_int_equal(WEXITSTATUS(status), cases[i].is_let_in);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_gone, begin, end),
		cmocka_unit_test_setup_teardown(test_by_number, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
