/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/aside.h"
#include "lib/living.h"

#define LIVING_PIDFD_THREAD O_EXCL /* PIDFD_THREAD, which Debian 12 does not know */
/* Threads that have ended and are still listed have a tracer that does not collect them. There may be thousands, and
 * the caller has no time for them. Chosen. */
#define LIVING_LOOKS_MAX 64u
#define LIVING_PATH_SIZE 512

static bool living_is(const char *root, pid_t pid, pid_t thread)
{
	char path[LIVING_PATH_SIZE], text[512], *state;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "%s/proc/%d/task/%d/stat", root, pid, thread);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	state = strrchr(text, ')'); /* the name may contain anything */
	return state && state[1] == ' ' && state[2] && !strchr("ZX", state[2]);
}

/* Any but the first. */
static pid_t living_other(const char *root, pid_t pid)
{
	const struct dirent *entry;
	uint32_t looks = 0;
	pid_t found = 0;
	char path[LIVING_PATH_SIZE];
	DIR *folder;

	snprintf(path, sizeof(path), "%s/proc/%d/task", root, pid);
	folder = opendir(path);
	while (folder && !found && looks < LIVING_LOOKS_MAX && (entry = readdir(folder))) {
		pid_t thread = *entry->d_name == '.' ? 0 : atoi(entry->d_name);

		if (!thread || thread == pid)
			continue;
		looks++;
		found = living_is(root, pid, thread) ? thread : 0;
	}
	if (folder)
		closedir(folder);
	return found;
}

pid_t gp_living_thread_under(const char *root, pid_t pid)
{
	return living_is(root, pid, pid) ? pid : living_other(root, pid);
}

pid_t gp_living_thread(pid_t pid)
{
	return gp_living_thread_under("", pid);
}

static bool living_is_there(int pidfd)
{
	return !syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) || errno != ESRCH;
}

struct living_look {
	pid_t pid, thread; /* thread: one that may go on; 0: any but the first */
	bool is_first, is_thread;
};

static void living_look(void *data)
{
	struct living_look *look = data;

	look->is_first = living_is("", look->pid, look->pid);
	if (!look->thread)
		look->thread = living_other("", look->pid);
	look->is_thread = look->thread && living_is("", look->pid, look->thread);
}

int gp_living_getfd(uint64_t owner, pid_t pid, int pidfd, int number)
{
	struct living_look look = { .pid = pid };
	int fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0), r, living, why = fd < 0 ? -errno : 0;

	/* -ESRCH: it has ended, or is just about to. Before Linux 6.9 it is one without that descriptor then. */
	if (why != -ESRCH && why != -EBADF)
		return why ? why : fd;
	if (gp_aside_call(owner, living_look, &look, sizeof(look)))
		return -ETIMEDOUT;
	if ((why == -EBADF && look.is_first) || !look.thread)
		return why;
	living = (int)syscall(SYS_pidfd_open, look.thread, LIVING_PIDFD_THREAD);
	if (living < 0)
		return errno == EINVAL ? -EOPNOTSUPP : -errno;
	/* A stranger may have got either number before it was opened, but not while what had it is still there. */
	r = gp_aside_call(owner, living_look, &look, sizeof(look)) ? -ETIMEDOUT : -ESRCH;
	if (r == -ESRCH && look.is_thread && living_is_there(living) && living_is_there(pidfd)) {
		fd = (int)syscall(SYS_pidfd_getfd, living, number, 0);
		r = fd < 0 ? -errno : fd;
	}
	close(living);
	return r;
}
