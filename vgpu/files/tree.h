/* SPDX-License-Identifier: MIT */
/* Plain files that the driver's sysfs tree would have: the topology. */
#ifndef GP_VGPU_TREE_H
#define GP_VGPU_TREE_H

#include "vgpu/node/node.h"

/* Writes topology/ below dir (…/kfd/kfd). */
int gp_tree_topology(const struct gp_vnode *node, const char *dir, struct gp_error *error);

#endif
