/* SPDX-License-Identifier: MIT */
/* Owns the reading of /proc/PID. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "daemon/process.h"
#include "lib/living.h"

#define PROCESS_STAT_SIZE 2048u
#define PROCESS_PLACES    64u /* that are tried for one pid; chosen */

/* Fields of /proc/PID/stat, as proc(5) counts them; the second is the name. */
enum { PROCESS_FIELD_NAME = 2, PROCESS_FIELD_PARENT = 4, PROCESS_FIELD_START = 22, PROCESS_FIELD_STACK = 28 };

static size_t process_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t at = 0;
	ssize_t got;

	if (fd < 0)
		return 0;
	while (at < size - 1 && ((got = read(fd, text + at, size - 1 - at)) > 0 || (got < 0 && errno == EINTR)))
		at += got > 0 ? (size_t)got : 0;
	close(fd);
	text[at] = '\0';
	return at;
}

size_t gp_process_read_living(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, gp_living_thread(pid), name);
	return process_read(path, text, size);
}

/* What shows its memory (environ, cmdline) is empty once its first thread has ended, though others go on. */
size_t gp_process_read(pid_t pid, const char *name, char *text, size_t size)
{
	size_t got;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	got = process_read(path, text, size);
	return got ? got : gp_process_read_living(pid, name, text, size);
}

bool gp_process_is_there(int pidfd)
{
	return !(syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) && errno == ESRCH);
}

int gp_process_stat_parse(const char *text, struct gp_process_stat *ret_stat)
{
	uint64_t fields[PROCESS_FIELD_STACK + 1] = { 0 };
	const char *at = strrchr(text, ')'); /* the name may contain anything, also a ')' */
	int field = PROCESS_FIELD_NAME;

	while (at && field < PROCESS_FIELD_STACK && (at = strchr(at + 1, ' ')) && at[1])
		fields[++field] = strtoull(at + 1, NULL, 10);
	if (field < PROCESS_FIELD_START || fields[PROCESS_FIELD_PARENT] > INT32_MAX)
		return -EINVAL;
	*ret_stat = (struct gp_process_stat){ (pid_t)fields[PROCESS_FIELD_PARENT], fields[PROCESS_FIELD_START],
					      fields[PROCESS_FIELD_STACK] };
	return 0;
}

int gp_process_stat(pid_t pid, struct gp_process_stat *ret_stat)
{
	char text[PROCESS_STAT_SIZE];

	return gp_process_read(pid, "stat", text, sizeof(text)) ? gp_process_stat_parse(text, ret_stat) : -ESRCH;
}

pid_t gp_process_parent(pid_t pid)
{
	struct gp_process_stat process;

	return gp_process_stat(pid, &process) ? 0 : process.parent;
}

/* Reads each process of a tree once, however many of its descendants are asked about. Pids that fall on the same place
 * take the next ones. What was read stays the answer until the end, even if the process has gone. */
static pid_t process_known_parent(struct gp_ancestry *ancestry, pid_t pid)
{
	uint32_t place = (uint32_t)pid % GP_ANCESTRY_SIZE, i = 0;

	while (i < PROCESS_PLACES && ancestry->pids[place] && ancestry->pids[place] != pid) {
		place = (place + 1) % GP_ANCESTRY_SIZE;
		i++;
	}
	if (i == PROCESS_PLACES)
		return gp_process_parent(pid); /* not kept */
	if (!ancestry->pids[place]) {
		ancestry->parents[place] = gp_process_parent(pid);
		ancestry->pids[place] = pid;
	}
	return ancestry->parents[place];
}

bool gp_process_descends(struct gp_ancestry *ancestry, pid_t pid, pid_t ancestor)
{
	for (int i = 0; i < GP_PROCESS_DEPTH && pid > 0; i++) {
		if (pid == ancestor)
			return true;
		pid = process_known_parent(ancestry, pid);
	}
	return false;
}
