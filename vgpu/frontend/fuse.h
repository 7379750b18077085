/* SPDX-License-Identifier: MIT */
/* Front end FUSE: /dev/kfd and the render nodes as files of a file system of ours, mapped through to the BAR. */
#ifndef GP_VGPU_FRONTEND_FUSE_H
#define GP_VGPU_FRONTEND_FUSE_H

#include "vgpu/node/node.h"

struct gp_fuse;

/* Mounts on dir, which must exist. */
int gp_fuse_create(struct gp_vnode *node, const char *dir, struct gp_fuse **ret_fuse, struct gp_error *error);
void gp_fuse_destroy(struct gp_fuse *fuse);
int gp_fuse_fd(const struct gp_fuse *fuse);
/* Answers every request that is there. -ENODEV: unmounted. */
int gp_fuse_serve(struct gp_fuse *fuse);

#endif
