/* SPDX-License-Identifier: MIT */
/*
 * User queues of DRM, as far as they are looked at or emulated: include/uapi/drm/amdgpu_drm.h of Linux 6.16. Debian
 * 12's headers do not have them. Numbers and sizes are the kernel's.
 */
#ifndef GPREEMPT_USERQ_H
#define GPREEMPT_USERQ_H

#include <stdint.h>

#define GP_DRM_NR_VERSION 0x00u
#define GP_DRM_NR_USERQ   0x56u /* DRM_COMMAND_BASE + DRM_AMDGPU_USERQ */

enum gp_drm_userq_op { GP_DRM_USERQ_CREATE = 1, GP_DRM_USERQ_FREE = 2 };
enum gp_drm_ip { GP_DRM_IP_GFX, GP_DRM_IP_COMPUTE, GP_DRM_IP_DMA };

#define GP_DRM_USERQ_PRIORITY 3u /* flags: four levels, for life */
#define GP_DRM_USERQ_SECURE   4u
#define GP_DRM_USERQ_AQL      8u    /* not in Linux 6.16: ROCr over DRM asks for it */
#define GP_DRM_DOORBELL       0x40u /* AMDGPU_GEM_DOMAIN_DOORBELL */

struct gp_drm_userq_in {
	uint32_t op, queue_id;
	uint32_t ip_type;
	uint32_t doorbell_handle, doorbell_offset; /* the offset counts doorbells of 8 bytes */
	uint32_t flags;
	uint64_t queue_va, queue_size, rptr_va, wptr_va;
	uint64_t mqd, mqd_size;
};

union gp_drm_userq {
	struct gp_drm_userq_in in;
	struct {
		uint32_t queue_id, pad;
	} out;
};

struct gp_drm_version {
	int32_t version[3];
	uint64_t name_len, name, date_len, date, desc_len, desc;
};

#define GP_DRM_IOC_VERSION _IOWR('d', GP_DRM_NR_VERSION, struct gp_drm_version)
#define GP_DRM_IOC_USERQ   _IOWR('d', GP_DRM_NR_USERQ, union gp_drm_userq)

_Static_assert(sizeof(struct gp_drm_userq_in) == 72 && sizeof(struct gp_drm_version) == 64, "as in Linux 6.16");

#endif
