/* SPDX-License-Identifier: MIT */
/* Stands in for the system's <drm/drm.h>, which <linux/kfd_ioctl.h> includes and Debian does not ship there. It needs
 * no more than this. */
#ifndef GP_AGENT_INCLUDE_DRM_H
#define GP_AGENT_INCLUDE_DRM_H
#include <linux/ioctl.h>
#include <linux/types.h>
#endif
