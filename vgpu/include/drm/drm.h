/* SPDX-License-Identifier: MIT */
/* Debian's <linux/kfd_ioctl.h> asks for <drm/drm.h>, which Debian ships as <drm.h> in libdrm-dev. */
#ifndef GP_VGPU_INCLUDE_DRM_H
#define GP_VGPU_INCLUDE_DRM_H
#include <drm.h>
#endif
