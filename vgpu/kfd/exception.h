/* SPDX-License-Identifier: MIT */
/* Exceptions of queues, devices and processes, and what a debugger may ask about them. */
#ifndef GP_VGPU_EXCEPTION_H
#define GP_VGPU_EXCEPTION_H

#include "vgpu/node/node.h"
#include "vgpu/kfd/queue.h"

/* Notes it for the debugger of process, if it has one, and wakes it if it asked for this one; true if it did. gpu and
 * queue as the exception has them. */
bool gp_exception_raise(struct gp_vproc *process, uint64_t mask, const struct gp_vdev *gpu, struct gp_vqueue *queue);
void gp_exception_clear(struct gp_vproc *process); /* all of them: debugging is over */
/* The packet processor's error (GP_AQL_ERROR_…): to the debugger if it asked, otherwise to the runtime if that is
 * enabled. */
void gp_exception_of_packet(struct gp_vqueue *queue, uint32_t error);
void gp_exception_of_wave(struct gp_vqueue *queue, uint64_t mask);

/* DBG_TRAP operations. */
void gp_exception_enable(struct gp_vproc *target, uint64_t mask);
int gp_exception_query(struct gp_vproc *target, struct gp_kfd_dbg_trap *args);
int gp_exception_info(struct gp_vproc *caller, struct gp_vproc *target, struct gp_kfd_dbg_trap *args);
int gp_exception_to_runtime(struct gp_vproc *target, const struct gp_kfd_dbg_trap *args);
int gp_exception_queues(struct gp_vproc *caller, struct gp_vproc *target, struct gp_kfd_dbg_trap *args);
int gp_exception_devices(struct gp_vproc *caller, struct gp_vproc *target, struct gp_kfd_dbg_trap *args);

#endif
