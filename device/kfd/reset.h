/* SPDX-License-Identifier: MIT */
/*
 * One thread that sleeps until there is a reset. The driver's management events report resets of a GPU. Only the
 * kernel's log reports resets of single queues (a debugger's suspend succeeds after the driver has reset a queue that
 * would not stop).
 */
#ifndef GP_DEVICE_KFD_RESET_H
#define GP_DEVICE_KFD_RESET_H

#include "device/kfd/kfd.h"

struct gp_kfd_reset;

/* 0 or -errno. The findings say what cannot be detected (an old driver, no right to the log). */
int gp_kfd_reset_create(struct gp_backend *backend, struct gp_device_info *infos, uint32_t count,
			struct gp_kfd_reset **ret_reset);
void gp_kfd_reset_destroy(struct gp_kfd_reset *reset); /* NULL is fine */
/* Whether this text of the driver ("3 1\n", event numbers in hex, one a line) reports a reset. */
bool gp_kfd_reset_is_reported(const char *text, size_t size);
/* Whether this record of the kernel's log (/dev/kmsg) says that the driver could not preempt a queue of the GPU. Only
 * records of the kernel itself count. bdf: "0000:03:00.0". */
bool gp_kfd_reset_is_logged(const char *record, size_t size, const char *bdf);

#endif
