/* SPDX-License-Identifier: MIT */
/*
 * Open files of the driver. Queues belong to the file they were created on; an application may use several, and may
 * duplicate or close its descriptors at any time, so the agent keeps one of its own for each file that has queues.
 */
#include <fcntl.h>
#include "agent/fds.h"
#include "agent/kfd/kfd.h"
#include "agent/sys.h"

#define FILE_KCMP_FILE 0 /* KCMP_FILE */

_Static_assert(GP_FD_FILE_MAX == sizeof(gp_kfd.queue_counts) / sizeof(gp_kfd.queue_counts[0]), "one count a file");

static bool file_is_same(int fd, int own)
{
	long pid = gp_sys(SYS_getpid, 0), r = gp_sys(SYS_kcmp, pid, pid, FILE_KCMP_FILE, fd, own);

	/* Where the kernel does not say, they are taken for one: KFD keeps one set of queues per process anyway. */
	return r <= 0;
}

uint32_t gp_kfd_file_find(int fd)
{
	for (uint32_t i = 0; i < GP_FD_FILE_MAX; i++)
		if (gp_fd(GP_FD_FILE + i) >= 0 && file_is_same(fd, gp_fd(GP_FD_FILE + i)))
			return i;
	return GP_KFD_NONE;
}

uint32_t gp_kfd_file_add(int fd)
{
	uint32_t file = gp_kfd_file_find(fd);

	for (uint32_t i = 0; i < GP_FD_FILE_MAX && file == GP_KFD_NONE; i++)
		if (gp_fd(GP_FD_FILE + i) < 0 && !gp_kfd.queue_counts[i]) {
			long own = gp_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3);

			if (own < 0 || gp_fd_take(GP_FD_FILE + i, (int)own) < 0)
				return GP_KFD_NONE;
			file = i;
			gp_kfd.queue_counts[i] = 0;
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
	/* With the last descriptor goes the means to stop being debugger, and RUNTIME_DISABLE would wait for us. */
	if (!rest)
		gp_kfd_self_release();
	if (!gp_kfd.queue_counts[file])
		gp_fd_drop(GP_FD_FILE + file);
}

int gp_kfd_file_fd(uint32_t file)
{
	int fd = gp_fd_verified(GP_FD_FILE + file);
	long own;

	if (fd >= 0)
		return fd;
	/* Closed behind our back: any open file of the process reaches its queues, and gates must be opened. */
	own = gp_sys(SYS_openat, AT_FDCWD, (long)"/dev/kfd", O_RDWR | O_CLOEXEC);
	return own < 0 || gp_fd_take(GP_FD_FILE + file, (int)own) < 0 ? -1 : gp_fd(GP_FD_FILE + file);
}

int gp_kfd_file_any(void)
{
	for (uint32_t i = 0; i < GP_FD_FILE_MAX; i++)
		if (gp_fd_verified(GP_FD_FILE + i) >= 0 || gp_kfd.queue_counts[i])
			return gp_kfd_file_fd(i);
	return -1;
}
