/* SPDX-License-Identifier: MIT */
/* Furnishing: the plain files beside the device files, below the root of the node's mount namespace or in a folder that
 * stands for it. Both front ends show the same. */
#ifndef GP_VGPU_FURNISH_H
#define GP_VGPU_FURNISH_H

#include "vgpu/node.h"

#define GP_FURNISH_KFD "/sys/devices/virtual/kfd/kfd"

/* Topology, class, module, and where /sys/class/kfd/kfd/proc will be kept, below root ("": the root itself). */
int gp_furnish(struct gp_vnode *node, const char *root, struct gp_error *error);
/* Programs that must stand before the system's in PATH, into dir, which is made. */
int gp_furnish_programs(const char *dir);

#endif
