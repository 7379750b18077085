/* SPDX-License-Identifier: MIT */
/*
 * The files RM's clients were made on. RM takes a control only on the very open file of its client, and the application
 * may close or reuse its number at any time, so the agent keeps a duplicate for each client that has channel groups.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "agent/nvidia/nvidia.h"
#include "agent/sys.h"

/* By its name as well: a container may give the device files other numbers, and the tests' are no devices. */
static bool file_name_is_rm(const char *name)
{
	if (strncmp(name, "nvidia", 6) != 0)
		return false;
	if (strcmp(name + 6, "ctl") == 0)
		return true;
	return name[6] && strspn(name + 6, "0123456789") == strlen(name + 6);
}

bool gp_nvidia_file_is_rm(int fd)
{
	char link[32] = "/proc/self/fd/", name[256], *last;
	uint32_t at = (uint32_t)strlen(link);
	char digits[12];
	uint32_t count = 0;
	long length;

	if (fd < 0)
		return false;
	for (unsigned rest = (unsigned)fd; rest || !count; rest /= 10u)
		digits[count++] = (char)('0' + rest % 10u);
	while (count)
		link[at++] = digits[--count];
	length = gp_sys(SYS_readlinkat, AT_FDCWD, (long)link, (long)name, sizeof(name) - 1u);
	if (length <= 0)
		return false;
	name[length] = 0;
	last = strrchr(name, '/');
	return last && file_name_is_rm(last + 1);
}

uint32_t gp_nvidia_file_add(int fd, uint32_t client)
{
	uint32_t file = GP_NVIDIA_NONE;

	for (uint32_t i = 0; i < GP_FD_RM_MAX; i++) {
		if (gp_fd(GP_FD_RM + i) >= 0 && gp_nvidia.file_clients[i] == client) {
			gp_nvidia.file_counts[i]++;
			return i;
		}
		if (gp_fd(GP_FD_RM + i) < 0 && file == GP_NVIDIA_NONE)
			file = i;
	}
	if (file != GP_NVIDIA_NONE) {
		long own = gp_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3);

		if (own < 0 || gp_fd_take(GP_FD_RM + file, (int)own) < 0)
			return GP_NVIDIA_NONE;
		gp_nvidia.file_clients[file] = client;
		gp_nvidia.file_counts[file] = 1;
	}
	return file;
}

void gp_nvidia_file_release(uint32_t file)
{
	if (file != GP_NVIDIA_NONE && --gp_nvidia.file_counts[file] == 0)
		gp_fd_drop(GP_FD_RM + file);
}
