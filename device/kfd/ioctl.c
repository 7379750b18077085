/* SPDX-License-Identifier: MIT */
/* The driver's calls, as the daemon uses them. */
#include <errno.h>
#include <sys/ioctl.h>
#include "device/kfd/kfd.h"

int gp_kfd_call(int fd, unsigned long request, void *args)
{
	int r;

	do {
		r = ioctl(fd, request, args);
	} while (r < 0 && (errno == EINTR || errno == EAGAIN));
	return r < 0 ? -errno : r;
}

int gp_kfd_dbg_trap(int fd, struct gp_kfd_dbg_trap *args)
{
	return gp_kfd_call(fd, _IOWR(AMDKFD_IOCTL_BASE, GP_KFD_NR_DBG_TRAP, struct gp_kfd_dbg_trap), args);
}

int gp_kfd_runtime_enable(int fd, bool enable)
{
	struct gp_kfd_runtime_enable args = { .mode_mask = enable ? GP_KFD_RUNTIME_MODE_ENABLE : 0 };

	return gp_kfd_call(fd, _IOWR(AMDKFD_IOCTL_BASE, GP_KFD_NR_RUNTIME_ENABLE, struct gp_kfd_runtime_enable), &args);
}
