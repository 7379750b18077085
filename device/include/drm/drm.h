/* SPDX-License-Identifier: MIT */
/* Stands in for the system's <drm/drm.h>, which <linux/kfd_ioctl.h> includes only to get these. */
#ifndef GP_DEVICE_INCLUDE_DRM_H
#define GP_DEVICE_INCLUDE_DRM_H

#include <linux/types.h>
#include <asm/ioctl.h>

#endif
