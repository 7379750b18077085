/* SPDX-License-Identifier: MIT */
/* The context-save area that comes with a compute queue: how large it must be, as the driver reckons it. */
#ifndef GP_VGPU_SAVE_AREA_H
#define GP_VGPU_SAVE_AREA_H

#include "vgpu/node/node.h"

struct gp_save_area {
	uint32_t control_stack_size, size; /* of one XCC; size: both together */
	uint32_t debug_size, xcc_count;
};

void gp_save_area_of(const struct gp_vdev *gpu, struct gp_save_area *ret_area);
/* -EINVAL: what the driver refuses. */
int gp_save_area_check(struct gp_vproc *process, const struct gp_vdev *gpu,
		       const struct kfd_ioctl_create_queue_args *args);

#endif
