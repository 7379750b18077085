/* SPDX-License-Identifier: MIT */
/* <linux/kfd_ioctl.h> asks for <drm/drm.h>, which Debian does not ship there, and needs no more of it than this. */
#ifndef GP_AGENT_INCLUDE_DRM_H
#define GP_AGENT_INCLUDE_DRM_H
#include <linux/ioctl.h>
#include <linux/types.h>
#endif
