/* SPDX-License-Identifier: MIT */
/* Calls: an ioctl from the front end to its answer, which may come later. */
#ifndef GP_VGPU_CALL_H
#define GP_VGPU_CALL_H

#include "vgpu/node/node.h"

#define GP_VCALL_LATER 1

enum gp_vfile { GP_VFILE_KFD, GP_VFILE_RENDER }; /* then the render nodes of the other GPUs */

/* Decides a call. 0 or positive: done, the answer is in call->arg; negative: errno; GP_VCALL_LATER: the node keeps
 * *call (which becomes NULL) and will answer through node->complete. */
int gp_vcall_ioctl(struct gp_vcall **call, enum gp_vfile file);
int gp_vcall_drm(struct gp_vcall **call, struct gp_vdev *gpu);
void gp_vcall_keep(struct gp_vnode *node, struct gp_vcall **call, enum gp_vcall_kind kind);
void gp_vcall_free(struct gp_vcall *call);
/* A signal arrived at the caller: waits end with -EINTR (user space repeats them); what already changes the device goes
 * on. */
void gp_vcall_interrupt(struct gp_vnode *node, uint64_t token);
void gp_vcall_turn(struct gp_vnode *node); /* answers waits that are over */
uint64_t gp_vcall_deadline_ns(const struct gp_vnode *node);

#endif
