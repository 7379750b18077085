/* SPDX-License-Identifier: MIT */
/* Faults on demand, for tests. */
#ifndef GP_VGPU_FAULT_H
#define GP_VGPU_FAULT_H

#include "vgpu/node/node.h"

/* "KIND[=VALUE] [PID QUEUE]": vm, hang, close-fails, close-hangs (these four of a queue), reset=GPU, ioctl=N (the N-th
 * from now fails with EIO), slow=K (a new dilation). */
int gp_fault_inject(struct gp_vnode *node, const char *text, struct gp_error *error);
/* True once, for the call that is to fail. */
bool gp_fault_ioctl(struct gp_vnode *node);
extern const char gp_fault_kinds[];

#endif
