/* SPDX-License-Identifier: MIT */
/* The plain files beside the device files, below the root of the node's mount namespace or in a folder that stands for
 * it. Both front ends show the same. */
#ifndef GP_VGPU_STATIC_FILES_H
#define GP_VGPU_STATIC_FILES_H

#include "vgpu/node/node.h"

#define GP_STATIC_KFD "/sys/devices/virtual/kfd/kfd"

/* Topology, class, module, and where /sys/class/kfd/kfd/proc will be kept, below root ("": the root itself). */
int gp_static_files_write(struct gp_vnode *node, const char *root, struct gp_error *error);
/* Programs that must stand before the system's in PATH, into dir, which is made. */
int gp_static_programs_write(const char *dir);

#endif
