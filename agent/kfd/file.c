/* SPDX-License-Identifier: MIT */
/*
 * Open files of the driver. A queue belongs to the file it was created on. An application may use several files, and
 * may duplicate or close its descriptors at any time, so the agent keeps a duplicate of its own for each file that has
 * queues. But KFD keeps one set of queues per process: if the program has no descriptor to spare, the agent uses
 * another file.
 */
#include <fcntl.h>
#include "agent/file.h"
#include "agent/kfd/kfd.h"
#include "agent/sys.h"

static bool file_is_same(int fd, int own)
{
	/* If the kernel does not answer, they count as the same file: KFD keeps one set of queues per process anyway.
	 */
	return gp_sys_file_compare(fd, own) <= 0;
}

uint32_t gp_kfd_file_find(int fd)
{
	for (uint32_t i = 0; i < GP_FD_FILE_MAX; i++)
		if (gp_fd(GP_KFD_FD + i) >= 0 && file_is_same(fd, gp_fd(GP_KFD_FD + i)))
			return i;
	return GP_KFD_NONE;
}

uint32_t gp_kfd_file_add(int fd)
{
	uint32_t file = gp_kfd_file_find(fd);

	if (file == GP_KFD_NONE && !gp_fds_are_enough())
		file = 0;
	for (uint32_t i = 0; i < GP_FD_FILE_MAX && file == GP_KFD_NONE; i++)
		if (gp_fd(GP_KFD_FD + i) < 0 && !gp_kfd.queue_counts[i]) {
			long own = gp_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3);

			if (own < 0 || gp_fd_take(GP_KFD_FD + i, (int)own) < 0)
				return GP_KFD_NONE;
			file = i;
		}
	if (file != GP_KFD_NONE)
		gp_kfd.queue_counts[file]++;
	return file;
}

void gp_kfd_file_release(uint32_t file)
{
	uint32_t rest = 0;

	gp_kfd.queue_counts[file]--;
	for (uint32_t i = 0; i < GP_FD_FILE_MAX; i++)
		rest += gp_kfd.queue_counts[i];
	/* Without a descriptor the agent could not stop being debugger, and RUNTIME_DISABLE would wait for it. */
	if (!rest)
		gp_kfd_self_release();
	if (!gp_kfd.queue_counts[file])
		gp_fd_drop(GP_KFD_FD + file);
}

int gp_kfd_file_fd(uint32_t file)
{
	int fd = gp_fd_verified(GP_KFD_FD + file);
	long own;

	for (uint32_t i = 0; i < GP_FD_FILE_MAX && fd < 0; i++)
		fd = gp_fd_verified(GP_KFD_FD + i);
	if (fd >= 0)
		return fd;
	/* The agent could spare no descriptor, or the application has closed the agent's: if gates must be opened, the
	 * agent takes one, however few are left. */
	if (!gp_gate_closed_count() && !gp_kfd.debugging && !gp_fds_are_enough())
		return -1;
	own = gp_sys(SYS_openat, AT_FDCWD, (long)"/dev/kfd", O_RDWR | O_CLOEXEC);
	return own < 0 || gp_fd_take(GP_KFD_FD + file, (int)own) < 0 ? -1 : gp_fd(GP_KFD_FD + file);
}

int gp_kfd_file_any(void)
{
	for (uint32_t i = 0; i < GP_FD_FILE_MAX; i++)
		if (gp_fd_verified(GP_KFD_FD + i) >= 0 || gp_kfd.queue_counts[i])
			return gp_kfd_file_fd(i);
	return -1;
}
