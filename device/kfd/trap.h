/* SPDX-License-Identifier: MIT */
/* The debugger's calls on one process. They block while the driver works. */
#ifndef GP_DEVICE_KFD_TRAP_H
#define GP_DEVICE_KFD_TRAP_H

#include "device/kfd/kfd.h"

/* Becomes the debugger of the process, if the pidfd is still the pid's. The daemon is its tracer for the length of one
 * call only. -ECHILD: its first thread has ended, so that no process can trace it. */
int gp_kfd_trap_enable(int fd, const struct gp_kfd_process *process);
int gp_kfd_trap_disable(int fd, const struct gp_kfd_process *process);
/* Clears EC_QUEUE_NEW of all its queues: the driver does not suspend a queue with that bit. */
int gp_kfd_trap_clear_new(int fd, const struct gp_kfd_process *process);
/* Suspends or resumes a set in one call and fills in the results. 0, or -errno: the call itself failed, and with it
 * every change. */
int gp_kfd_trap_change(int fd, const struct gp_kfd_process *process, struct gp_device_change *changes, uint32_t count,
		       uint32_t grace);

#endif
