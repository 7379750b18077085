/* SPDX-License-Identifier: MIT */
/* Plain files that the driver's sysfs tree would have: topology, and what is under proc/ for each process. */
#ifndef GP_VGPU_TREE_H
#define GP_VGPU_TREE_H

#include "vgpu/node.h"
#include "vgpu/queue.h"

/* Writes topology/ below dir (…/kfd/kfd). */
int gp_tree_topology(const struct gp_vnode *node, const char *dir, struct gp_error *error);
/* Below node->proc_dir, when there is one; a file that cannot be written is only missing. */
void gp_tree_process_add(const struct gp_vproc *process);
void gp_tree_process_remove(const struct gp_vproc *process);
void gp_tree_queue_add(const struct gp_vqueue *queue);
void gp_tree_queue_remove(const struct gp_vqueue *queue);

#endif
