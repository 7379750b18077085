/* SPDX-License-Identifier: MIT */
/* The batch gate: AMDKFD_IOC_SCHED as kernel/patches adds it to the driver. */
#ifndef GP_VGPU_GATE_H
#define GP_VGPU_GATE_H

#include "vgpu/node/node.h"

int gp_gate_ioctl(struct gp_vcall **call);
void gp_gate_release(struct gp_vproc *owner); /* it closed a file: what it had put aside runs again */

#endif
