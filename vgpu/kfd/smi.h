/* SPDX-License-Identifier: MIT */
/* Events of the driver's management interface (AMDKFD_IOC_SMI_EVENTS): lines of text on a descriptor. */
#ifndef GP_VGPU_SMI_H
#define GP_VGPU_SMI_H

#include "vgpu/node/node.h"

/* Gives the caller a descriptor, through the front end. -EOPNOTSUPP: the front end cannot (FUSE). */
int gp_smi_open(struct gp_vcall *call, uint32_t gpu_id, uint32_t *ret_fd);
void gp_smi_close_all(struct gp_vnode *node);

void gp_smi_vm_fault(struct gp_vdev *gpu, const struct gp_vproc *process);
void gp_smi_reset(struct gp_vdev *gpu, bool after);
void gp_smi_eviction(struct gp_vdev *gpu, const struct gp_vproc *process, uint32_t trigger);
void gp_smi_restore(struct gp_vdev *gpu, const struct gp_vproc *process);

#endif
