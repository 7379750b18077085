/* SPDX-License-Identifier: MIT */
/* Resets of a GPU, as the driver's management events tell them: one thread that sleeps until there is one. */
#ifndef GP_DEVICE_KFD_RESET_H
#define GP_DEVICE_KFD_RESET_H

#include "device/kfd/kfd.h"

struct gp_kfd_reset;

/* 0, or -errno: resets will not be seen (an old driver); the caller says so. */
int gp_kfd_reset_create(struct gp_backend *backend, const struct gp_device_info *infos, uint32_t count,
			struct gp_kfd_reset **ret_reset);
void gp_kfd_reset_destroy(struct gp_kfd_reset *reset); /* NULL is fine */
/* Does this text of the driver ("3 1\n", event numbers in hex, one a line) tell of a reset? */
bool gp_kfd_reset_is_told(const char *text, size_t size);

#endif
