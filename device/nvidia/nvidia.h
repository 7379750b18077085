/* SPDX-License-Identifier: MIT */
/* What the files of the nvidia backend share. */
#ifndef GP_DEVICE_NVIDIA_NVIDIA_H
#define GP_DEVICE_NVIDIA_NVIDIA_H

#include "device/device.h"
#include "lib/nvidia.h"

struct gp_nvidia_borrow;

struct gp_backend {
	struct gp_device_host host;
	struct gp_device_config config;
	char root[256];
	struct gp_nvidia_driver driver;
	uint32_t usable; /* GP_MECHANISM_BITs of the mechanisms that work, by the probe */
	struct gp_nvidia_borrow *borrow;
};

/* probe.c: what this driver, this machine and the daemon's rights allow; the findings say why. */
void gp_nvidia_probe_driver(struct gp_backend *backend, const struct gp_nvidia_gpu *gpus, struct gp_device_info *infos,
			    uint32_t count);

#endif
