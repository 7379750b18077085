/* SPDX-License-Identifier: MIT */
/*
 * Resets of a GPU, as the driver's management events tell them, and of single queues, which only the kernel's log tells
 * (a debugger's suspend succeeds when the queue that would not stop was reset): one thread that sleeps until then.
 */
#ifndef GP_DEVICE_KFD_RESET_H
#define GP_DEVICE_KFD_RESET_H

#include "device/kfd/kfd.h"

struct gp_kfd_reset;

/* 0 or -errno. What cannot be seen (an old driver, no right to the log) is among the findings. */
int gp_kfd_reset_create(struct gp_backend *backend, struct gp_device_info *infos, uint32_t count,
			struct gp_kfd_reset **ret_reset);
void gp_kfd_reset_destroy(struct gp_kfd_reset *reset); /* NULL is fine */
/* Does this text of the driver ("3 1\n", event numbers in hex, one a line) tell of a reset? */
bool gp_kfd_reset_is_told(const char *text, size_t size);
/* Does this record of the kernel's log (/dev/kmsg) tell that a queue of the GPU could not be preempted? Only the kernel
 * itself is believed. bdf: "0000:03:00.0". */
bool gp_kfd_reset_is_logged(const char *record, size_t size, const char *bdf);

#endif
