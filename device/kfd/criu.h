/* SPDX-License-Identifier: MIT */
/* The driver's checkpoint interface: sets a whole process aside, on all its GPUs, whether or not its runtime is
 * enabled. The driver does not undo that when the daemon dies. So a small guard process makes the calls, and undoes
 * them when the daemon's end of its socket closes. */
#ifndef GP_DEVICE_KFD_CRIU_H
#define GP_DEVICE_KFD_CRIU_H

#include "device/kfd/kfd.h"

struct gp_kfd_guard {
	int fd; /* -1: none */
	pid_t pid;
};

int gp_kfd_criu_begin(const struct gp_kfd_process *process, struct gp_kfd_guard *ret_guard); /* 0 or -errno */
int gp_kfd_criu_change(const struct gp_kfd_guard *guard, bool open); /* blocks while the driver works */
void gp_kfd_criu_end(struct gp_kfd_guard *guard);                    /* the process runs again */

extern const char *gp_kfd_criu_path; /* of the driver; tests set another */

#endif
