/* SPDX-License-Identifier: MIT */
/* KFD events: created, signalled, waited for. */
#ifndef GP_VGPU_EVENT_H
#define GP_VGPU_EVENT_H

#include "vgpu/packet/abi.h"
#include "vgpu/node/node.h"

int gp_vevent_create(struct gp_vproc *process, struct kfd_ioctl_create_event_args *args);
int gp_vevent_destroy(struct gp_vproc *process, uint32_t id);
int gp_vevent_set(struct gp_vproc *process, uint32_t id);
int gp_vevent_reset(struct gp_vproc *process, uint32_t id);
/* 0, a negative errno, or GP_VCALL_LATER: the call has been taken over. */
int gp_vevent_wait(struct gp_vcall **call);
/* The GPU's interrupt: a mailbox was written, this event is meant. An id that is not one is ignored. */
void gp_vevent_interrupt(struct gp_vproc *process, uint32_t id);
/* To every event of this type (KFD_IOC_EVENT_MEMORY, KFD_IOC_EVENT_HW_EXCEPTION), with its data. */
void gp_vevent_raise(struct gp_vproc *process, uint32_t type, const void *data, size_t data_size);
/* The wait was interrupted: what it had taken is signalled again. */
void gp_vevent_wait_undo(struct gp_vcall *call);
bool gp_vevent_wait_done(struct gp_vcall *call, uint64_t now_ns); /* fills the answer */

#endif
