/* SPDX-License-Identifier: MIT */
/* Whether this kernel lets the daemon be a debugger, tried on a child of the daemon's. Owns no state. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <errno.h>
#include "device/kfd/debugger.h"
#include "device/kfd/trap.h"

#define DRY_RUN_MS 20000 /* so that the daemon does not wait for ever for a child that does nothing */

/* The child of the dry run: a process that may be debugged, and nothing more. */
__attribute__((noreturn)) static void dry_run_child(int ready, int end)
{
	int fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	char result = fd < 0 || gp_kfd_runtime_enable(fd, true) < 0 ? 'n' : 'y';
	char byte;

	if (write(ready, &result, 1) == 1 && read(end, &byte, 1) < 0)
		_exit(1);
	_exit(0);
}

static const char *dry_run_debug(struct gp_backend *backend, pid_t child, int ready)
{
	struct pollfd wait = { .fd = ready, .events = POLLIN };
	const struct gp_kfd_process process = { .pid = child, .pidfd = (int)syscall(SYS_pidfd_open, child, 0) };
	int r;
	char result = 'n';

	if (process.pidfd < 0)
		return "this kernel has no pidfd_open";
	if (poll(&wait, 1, DRY_RUN_MS) != 1 || read(ready, &result, 1) != 1 || result != 'y') {
		close(process.pidfd);
		return "a child of ours could not enable its runtime";
	}
	r = gp_kfd_trap_enable(backend->fd, &process);
	close(process.pidfd);
	if (r == -EPERM)
		return "not permitted: CAP_SYS_PTRACE is missing, or a security module forbids it";
	if (r)
		return "the driver refuses a debugger here";
	/* Older kernels accept every call from the tracer only: the daemon would have to stay tracer, and hold the
	 * process stopped. */
	r = gp_kfd_trap_clear_new(backend->fd, &process);
	if (gp_kfd_trap_disable(backend->fd, &process) || r)
		return "this kernel lets only the tracing thread act (Linux 6.12 or newer is needed)";
	return NULL;
}

bool gp_kfd_debugger_try(struct gp_backend *backend, char *why, size_t why_size)
{
	int ready[2], end[2];
	const char *problem = "cannot start a child process";
	pid_t child;

	if (pipe2(ready, O_CLOEXEC))
		return false;
	if (pipe2(end, O_CLOEXEC)) {
		close(ready[0]);
		close(ready[1]);
		return false;
	}
	child = fork();
	if (!child) {
		close(end[1]);
		dry_run_child(ready[1], end[0]);
	}
	close(ready[1]);
	close(end[0]);
	if (child > 0)
		problem = dry_run_debug(backend, child, ready[0]);
	close(end[1]);
	close(ready[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
	if (problem)
		snprintf(why, why_size, "%s", problem);
	return !problem;
}
