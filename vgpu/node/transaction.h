/* SPDX-License-Identifier: MIT */
/* Transactions under way: what the driver asked of a GPU's scheduler, and the call that waits for it. */
#ifndef GP_VGPU_TRANSACTION_H
#define GP_VGPU_TRANSACTION_H

#include "vgpu/node/node.h"
#include "vgpu/kfd/queue.h"

/* All of these return how many transactions the call now waits for (call may be NULL: nobody waits), or a negative
 * errno. */

/* Brings gates, priorities and masks of these queues (of any processes and GPUs, at most GP_VPROC_QUEUE_MAX) in the
 * model to what they should be, one transaction per GPU. Costs a halt whether or not anything changes, as on CPSCH. */
int gp_vtransaction_change(struct gp_vqueue **queues, uint32_t queue_count, struct gp_vcall *call);
/* Nothing of its own: over when everything asked of the GPU before is. */
int gp_vtransaction_mark(struct gp_vdev *gpu, struct gp_vcall *call);
/* KFD's debug_refresh_runlist(): all queues off and on again, if any is on. */
int gp_vtransaction_refresh(struct gp_vdev *gpu, struct gp_vcall *call);

void gp_vtransaction_end(struct gp_vdev *gpu, const struct gp_gpu_event *event);
void gp_vtransaction_forget(const struct gp_vproc *process); /* it is gone */
/* The GPU was reset: whoever waits gets result, whoever caused it -ETIME. */
void gp_vtransaction_drop(struct gp_vdev *gpu, int result);
void gp_vtransaction_free_all(struct gp_vnode *node);
/* A preemption that did not end in queue_preemption_timeout_ms resets its GPU. */
void gp_vtransaction_turn(struct gp_vnode *node);
uint64_t gp_vtransaction_deadline_ns(const struct gp_vnode *node);

#endif
