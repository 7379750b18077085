/* SPDX-License-Identifier: MIT */
/* Memory that several processes have. */
#ifndef GP_VGPU_SHARE_H
#define GP_VGPU_SHARE_H

#include "vgpu/node/node.h"

struct gp_vshare *gp_vshare_create(struct gp_vnode *node, const struct gp_vbo *bo); /* bo has it; NULL: no memory */
struct gp_vshare *gp_vshare_by_key(struct gp_vnode *node, const uint32_t key[4]);   /* NULL: there is none */
/* One piece less has it. True: it is gone, and the caller gives the memory back. */
bool gp_vshare_put(struct gp_vnode *node, struct gp_vshare *share);
void gp_vshare_sweep(struct gp_vnode *node);    /* gives back what only descriptors had that are closed now */
void gp_vshare_free_all(struct gp_vnode *node); /* with the node */
/* As a descriptor of the caller; -EOPNOTSUPP: this front end cannot. */
int gp_vshare_give(struct gp_vcall *call, struct gp_vshare *share, uint32_t *ret_fd);
/* From a descriptor of the process; -EBADF, -EINVAL: it is none of ours. */
int gp_vshare_take(struct gp_vproc *process, uint32_t fd, struct gp_vshare **ret_share);

#endif
