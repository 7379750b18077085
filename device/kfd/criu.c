/* SPDX-License-Identifier: MIT */
/* Owns the guard process. The guard keeps no descriptor of the daemon's but standard streams, its socket and the pidfd:
 * connections must end when the daemon ends. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "device/kfd/criu.h"
#include "lib/aside.h"

const char *gp_kfd_criu_path = "/dev/kfd";

/* The process that a guard sets aside, and how. */
struct criu_charge {
	struct gp_kfd_process process;
	int number; /* the driver's descriptor in that process; -1: it has none */
	int socket;
	struct stat driver;
};

/* By device number or inode, not by name: the name depends on the mounts there. On a virtual node the file is no
 * device. */
static bool criu_is_driver(const struct stat *driver, const struct stat *file)
{
	if (S_ISCHR(driver->st_mode))
		return S_ISCHR(file->st_mode) && file->st_rdev == driver->st_rdev;
	return file->st_dev == driver->st_dev && file->st_ino == driver->st_ino;
}

/* In a helper. */
static void criu_find(void *data)
{
	struct criu_charge *charge = data;
	struct stat file;
	char path[64], name[320];
	struct dirent *entry;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", charge->process.pid);
	folder = opendir(path);
	while (folder && charge->number < 0 && (entry = readdir(folder))) {
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		if (!stat(name, &file) && criu_is_driver(&charge->driver, &file))
			charge->number = (int)strtol(entry->d_name, NULL, 10);
	}
	if (folder)
		closedir(folder);
}

/* The driver accepts this call only from the tracer of the process. A tracer that ends releases the process without
 * ever having stopped it. So each call is made by a process of its own. */
static int criu_call(const struct criu_charge *charge, uint32_t op)
{
	struct kfd_ioctl_criu_args args = { .op = op };
	struct stat file;
	int fd, status;
	pid_t child = fork();

	if (!child) {
		if (ptrace(PTRACE_SEIZE, charge->process.pid, NULL, NULL))
			_exit(errno);
		fd = (int)syscall(SYS_pidfd_getfd, charge->process.pidfd, charge->number, 0);
		if (fd < 0)
			_exit(errno);
		/* The process runs meanwhile, and may have put another file at this number. */
		if (fstat(fd, &file) || !criu_is_driver(&charge->driver, &file))
			_exit(EBADF);
		_exit(gp_kfd_call(fd, AMDKFD_IOC_CRIU_OP, &args) < 0 ? errno : 0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return -ECHILD;
	return -WEXITSTATUS(status);
}

/* Closes all others by number and moves none: that needs no free number. */
static void criu_close_others(int one, int other)
{
	unsigned int low = (unsigned int)(one < other ? one : other), high = (unsigned int)(one < other ? other : one);

	if (low > STDERR_FILENO + 1)
		syscall(SYS_close_range, STDERR_FILENO + 1, low - 1, 0);
	if (high > low + 1)
		syscall(SYS_close_range, low + 1, high - 1, 0);
	syscall(SYS_close_range, high + 1, ~0u, 0);
}

__attribute__((noreturn)) static void criu_guard(const struct criu_charge *charge)
{
	bool paused = false;
	sigset_t all;
	char open;
	int result;

	/* The guard must end after the daemon. A signal to all processes of the service (systemd's, when the watchdog
	 * expires) is meant for the daemon. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	criu_close_others(charge->socket, charge->process.pidfd);
	/* An earlier guard may have been killed while it held the process: the driver would count a second pause, and
	 * one unpause would not undo both. The driver refuses this call if nothing is paused. */
	criu_call(charge, KFD_CRIU_OP_UNPAUSE);
	while (read(charge->socket, &open, 1) == 1) {
		result = 0;
		/* Never pauses twice: the driver counts. */
		if (paused == (bool)open)
			result = criu_call(charge, open ? KFD_CRIU_OP_UNPAUSE : KFD_CRIU_OP_PROCESS_INFO);
		if (!result)
			paused = !open;
		if (write(charge->socket, &result, sizeof(result)) != sizeof(result))
			break;
	}
	if (paused)
		criu_call(charge, KFD_CRIU_OP_UNPAUSE);
	_exit(0);
}

int gp_kfd_criu_begin(const struct gp_kfd_process *process, struct gp_kfd_guard *ret_guard)
{
	struct criu_charge charge = { .process = *process, .number = -1 };
	int sockets[2], r;
	pid_t guard;

	if (stat(gp_kfd_criu_path, &charge.driver))
		return -errno;
	/* Should the number be another's by now, the guard's calls fail: the pidfd is not. */
	r = gp_aside_call(GP_ASIDE_CLIENT(process->owner), criu_find, &charge, sizeof(charge));
	if (r || charge.number < 0)
		return r ? r : -ENODEV;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	charge.socket = sockets[1];
	guard = fork();
	if (!guard)
		criu_guard(&charge);
	close(sockets[1]);
	if (guard < 0) {
		close(sockets[0]);
		return -EAGAIN;
	}
	*ret_guard = (struct gp_kfd_guard){ sockets[0], guard };
	return 0;
}

int gp_kfd_criu_change(const struct gp_kfd_guard *guard, bool open)
{
	char byte = open;
	int result;

	if (send(guard->fd, &byte, 1, MSG_NOSIGNAL) != 1 || read(guard->fd, &result, sizeof(result)) != sizeof(result))
		return -EPIPE;
	return result;
}

void gp_kfd_criu_end(struct gp_kfd_guard *guard)
{
	if (guard->fd < 0)
		return;
	close(guard->fd);
	waitpid(guard->pid, NULL, 0);
	guard->fd = -1;
}
