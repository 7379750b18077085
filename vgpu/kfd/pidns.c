/* SPDX-License-Identifier: MIT */
/* Numbers of processes as a client in a PID namespace of its own says them: the driver looks them up in the caller's.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "vgpu/node/process.h"

#define PIDNS_DEPTH_MAX 33u /* the kernel's MAX_PID_NS_LEVEL + 1 */

/* The process's numbers, ours first, in each namespace down to its own. Returns how many; 0: it is gone. */
static uint32_t pidns_numbers(pid_t pid, pid_t numbers[PIDNS_DEPTH_MAX])
{
	char path[64], line[512], *at, *end;
	uint32_t count = 0;
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	stream = fopen(path, "re");
	while (stream && !count && fgets(line, sizeof(line), stream)) {
		if (strncmp(line, "NSpid:", 6) != 0)
			continue;
		for (at = line + 6; count < PIDNS_DEPTH_MAX; at = end) {
			long number = strtol(at, &end, 10);

			if (end == at)
				break;
			numbers[count++] = (pid_t)number;
		}
	}
	if (stream)
		fclose(stream);
	return count;
}

/* Which namespace: the one so many levels above the process's own. */
static bool pidns_identity(pid_t pid, uint32_t levels, struct stat *ret_status)
{
	char path[64];
	int fd, parent;
	bool good;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	for (; fd >= 0 && levels; levels--) {
		parent = ioctl(fd, NS_GET_PARENT);
		close(fd);
		fd = parent;
	}
	good = fd >= 0 && !fstat(fd, ret_status);
	if (fd >= 0)
		close(fd);
	return good;
}

struct gp_vproc *gp_pidns_find(struct gp_vproc *caller, pid_t pid)
{
	pid_t numbers[PIDNS_DEPTH_MAX];
	uint32_t depth, count;
	struct stat own, other;

	/* A process is born into its namespace and stays there. */
	if (!caller->pid_depth)
		caller->pid_depth = pidns_numbers(caller->pid, numbers);
	depth = caller->pid_depth;
	if (depth <= 1)
		return gp_vproc_find(caller->node, pid);
	if (!pidns_identity(gp_vproc_living_thread(caller), 0, &own))
		return NULL;
	for (struct gp_vproc *process = caller->node->processes; process; process = process->next) {
		count = pidns_numbers(process->pid, numbers);
		if (count < depth || numbers[depth - 1] != pid)
			continue;
		if (pidns_identity(gp_vproc_living_thread(process), count - depth, &other) &&
		    other.st_ino == own.st_ino && other.st_dev == own.st_dev)
			return process;
	}
	return NULL;
}

/* Our number of the process's thread that has this one so many levels down; 0: it has none. */
static pid_t pidns_thread(const struct gp_vproc *process, uint32_t depth, pid_t number)
{
	pid_t numbers[PIDNS_DEPTH_MAX], found = 0;
	const struct dirent *entry;
	char path[64];
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/task", process->pid);
	folder = opendir(path);
	while (folder && !found && (entry = readdir(folder))) {
		pid_t thread = *entry->d_name == '.' ? 0 : atoi(entry->d_name);

		if (thread && pidns_numbers(thread, numbers) >= depth && numbers[depth - 1] == number)
			found = thread;
	}
	if (folder)
		closedir(folder);
	return found;
}

struct gp_vproc *gp_pidns_find_thread(struct gp_vproc *caller, pid_t number)
{
	struct gp_vproc *process = gp_pidns_find(caller, number);
	pid_t thread = process ? process->pid : 0;

	if (!process && caller->pid_depth <= 1) {
		process = gp_vproc_find(caller->node, gp_vproc_thread_group(number));
		thread = process ? number : 0;
	} else if (!process) {
		/* Its own are the only ones that a process in a namespace has a reason to name. */
		process = caller;
		thread = pidns_thread(caller, caller->pid_depth, number);
	}
	return thread && gp_vproc_is_thread_alive(thread) ? process : NULL;
}
