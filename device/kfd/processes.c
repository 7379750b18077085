/* SPDX-License-Identifier: MIT */
/* The driver's list of processes and their queues, /sys/class/kfd/kfd/proc. The kernel writes these files, but a
 * process may end while the daemon reads. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "device/kfd/kfd.h"

static bool processes_number(const char *text, uint32_t *ret_number)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (!isdigit((unsigned char)*text) || *end || number > INT32_MAX)
		return false;
	*ret_number = (uint32_t)number;
	return true;
}

int gp_kfd_processes(pid_t *pids, uint32_t max)
{
	DIR *folder = opendir(GP_KFD_SYSFS "/proc");
	struct dirent *entry;
	uint32_t count = 0, number;

	if (!folder)
		return -errno;
	while (count < max && (entry = readdir(folder)))
		if (processes_number(entry->d_name, &number))
			pids[count++] = (pid_t)number;
	closedir(folder);
	return (int)count;
}

static bool processes_queue_file(pid_t pid, uint32_t id, const char *name, uint64_t *ret_value)
{
	char path[160];

	snprintf(path, sizeof(path), GP_KFD_SYSFS "/proc/%d/queues/%u/%s", pid, id, name);
	return !gp_kfd_read_number(path, ret_value);
}

int gp_kfd_process_queues(pid_t pid, struct gp_device_queue *queues, uint32_t max)
{
	char path[160];
	struct dirent *entry;
	uint32_t count = 0, id;
	uint64_t gpu_id, type;
	DIR *folder;

	snprintf(path, sizeof(path), GP_KFD_SYSFS "/proc/%d/queues", pid);
	folder = opendir(path);
	if (!folder)
		return -errno;
	while (count < max && (entry = readdir(folder)))
		if (processes_number(entry->d_name, &id) && processes_queue_file(pid, id, "gpuid", &gpu_id) &&
		    processes_queue_file(pid, id, "type", &type))
			queues[count++] =
				(struct gp_device_queue){ id, (uint32_t)gpu_id, gp_kfd_is_compute((uint32_t)type) };
	closedir(folder);
	return (int)count;
}
