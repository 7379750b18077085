/* SPDX-License-Identifier: MIT */
/* The debugger's calls on one process. They block while the driver works. */
#ifndef GP_DEVICE_KFD_TRAP_H
#define GP_DEVICE_KFD_TRAP_H

#include "device/kfd/kfd.h"

/* Becomes the debugger of pid, if pidfd is still that process. Being its tracer is needed for the length of one call
 * only. */
int gp_kfd_trap_enable(int fd, pid_t pid, int pidfd);
int gp_kfd_trap_disable(int fd, pid_t pid);
/* Clears EC_QUEUE_NEW of all its queues: a queue nobody has looked at cannot be suspended. */
int gp_kfd_trap_clear_new(int fd, pid_t pid);
/* Suspends or resumes a set in one call and fills the results. 0, or -errno: the call itself failed, as do all of them.
 */
int gp_kfd_trap_change(int fd, pid_t pid, struct gp_device_change *changes, uint32_t count, uint32_t grace);

#endif
