/* SPDX-License-Identifier: MIT */
/* Which processes have an open file of the fake resource manager, as the kernel's /proc tells it. */
#include "test/nvidia/fake_rm.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Other fakes on this machine number their files alike: one is told from the others by its inode. */
static bool opens_is_ours(const char *path)
{
	struct stat ours, other;
	char own[4200];

	snprintf(own, sizeof(own), "%s/nvidiactl", getenv(FAKE_RM_ENV));
	return !stat(own, &ours) && !stat(path, &other) && other.st_dev == ours.st_dev && other.st_ino == ours.st_ino;
}

/* The number in the position of a descriptor of that process; 0: none of nvidiactl's. */
static uint32_t opens_file_of(const char *pid, const char *fd)
{
	char path[600], text[256] = "";
	unsigned long at = 0;
	ssize_t length;
	int info;

	snprintf(path, sizeof(path), "/proc/%s/fd/%s", pid, fd);
	length = readlink(path, text, sizeof(text) - 1u);
	if (length < 10 || strcmp(text + length - 10, "/nvidiactl") != 0 || !opens_is_ours(path))
		return 0;
	snprintf(path, sizeof(path), "/proc/%s/fdinfo/%s", pid, fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	length = info < 0 ? 0 : read(info, text, sizeof(text) - 1u);
	if (info >= 0)
		syscall(SYS_close, info);
	text[length > 0 ? length : 0] = 0;
	return sscanf(text, "pos: %lu", &at) == 1 ? (uint32_t)at : 0;
}

/* How many descriptors of one process refer to an open file. */
static uint32_t opens_of(const char *pid, uint32_t file)
{
	const struct dirent *entry;
	char path[300];
	uint32_t count = 0;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	folder = opendir(path);
	while (folder && (entry = readdir(folder)))
		count += entry->d_name[0] != '.' && opens_file_of(pid, entry->d_name) == file;
	if (folder)
		closedir(folder);
	return count;
}

/* The same for all processes. One that was killed has none any more. */
uint32_t fake_rm_opens(uint32_t file)
{
	const struct dirent *entry;
	uint32_t count = 0;
	DIR *folder = opendir("/proc");

	while (folder && (entry = readdir(folder)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			count += opens_of(entry->d_name, file);
	if (folder)
		closedir(folder);
	return count;
}
