/* SPDX-License-Identifier: MIT */
/* What becomes of queues when hardware has to be reset, and of the processes that had them. */
#ifndef GP_VGPU_RESET_H
#define GP_VGPU_RESET_H

#include "vgpu/node/node.h"
#include "vgpu/kfd/queue.h"

/* One queue that could not be preempted; its process is told, and gets EACCES for every later UPDATE_QUEUE on this GPU.
 */
void gp_vqueue_reset(struct gp_vqueue *queue);
/* The whole GPU. Every process of the node stays evicted until it ends, on all GPUs. */
int gp_vdev_reset(struct gp_vdev *gpu);
/* All queues of the process off the GPUs (evict) or on again, counted: both in one transaction per GPU. trigger: a
 * KFD_QUEUE_EVICTION_… for the events of the driver's management interface. */
void gp_vproc_evict(struct gp_vproc *process, uint32_t trigger, struct gp_vcall *call);
void gp_vproc_restore(struct gp_vproc *process, struct gp_vcall *call);
/* Off one GPU, for good: after a memory fault. */
void gp_vproc_evict_gpu(struct gp_vproc *process, struct gp_vdev *gpu);

#endif
