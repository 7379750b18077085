/* SPDX-License-Identifier: MIT */
/*
 * Resets and evictions, as Linux 6.12 has them: kfd_hws_hang(), kgd2kfd_pre_reset() and kgd2kfd_post_reset() (existing
 * processes are kept evicted, "wait the process to be terminated"), reset_queues_on_hws_hang(), kfd_dqm_evict_pasid().
 */
#include <errno.h>
#include "vgpu/kfd/event.h"
#include "vgpu/files/live.h"
#include "vgpu/node/process.h"
#include "vgpu/node/reset.h"
#include "vgpu/kfd/smi.h"
#include "vgpu/node/transaction.h"

static void reset_tell(struct gp_vproc *process, const struct gp_vdev *gpu)
{
	/* reset_type 0: the whole GPU as far as user space can tell; reset_cause 0: a hang. */
	struct kfd_hsa_hw_exception_data data = { .memory_lost = 1, .gpu_id = gpu->gpu_id };

	gp_vevent_raise(process, KFD_IOC_EVENT_HW_EXCEPTION, &data, sizeof(data));
}

void gp_vqueue_reset(struct gp_vqueue *queue)
{
	gp_vnode_log(queue->process->node, 0, "process %d: queue %u is reset", queue->process->pid, queue->id);
	queue->close_fails = false;
	queue->error = GP_VQUEUE_RESET;
	queue->process->devices[queue->gpu->index].has_reset = true;
	reset_tell(queue->process, queue->gpu);
}

/* The queues of a process, or (gpu) of a process on one GPU. */
static void reset_transact(struct gp_vproc *process, const struct gp_vdev *gpu, struct gp_vcall *call)
{
	static struct gp_vqueue *queues[GP_VPROC_QUEUE_MAX];
	uint32_t count = 0;

	for (uint32_t id = 0; id < GP_VPROC_QUEUE_MAX; id++)
		if (process->queues[id] && (!gpu || process->queues[id]->gpu == gpu))
			queues[count++] = process->queues[id];
	if (gp_vtransaction_change(queues, count, call) < 0)
		gp_vnode_log(process->node, 0, "out of memory: queues of process %d keep their state", process->pid);
}

void gp_vproc_evict(struct gp_vproc *process, uint32_t trigger, struct gp_vcall *call)
{
	for (uint32_t i = 0; i < process->node->gpu_count; i++)
		gp_smi_eviction(&process->node->gpus[i], process, trigger);
	if (!process->evicted++)
		process->evicted_since_ns = process->node->now_ns;
	if (process->evicted == 1u)
		reset_transact(process, NULL, call);
}

void gp_vproc_restore(struct gp_vproc *process, struct gp_vcall *call)
{
	for (uint32_t i = 0; i < process->node->gpu_count; i++)
		gp_smi_restore(&process->node->gpus[i], process);
	if (--process->evicted)
		return;
	gp_live_mark(process->node);
	process->evicted_ns += process->node->now_ns - process->evicted_since_ns;
	reset_transact(process, NULL, call);
}

void gp_vproc_evict_gpu(struct gp_vproc *process, struct gp_vdev *gpu)
{
	if (process->devices[gpu->index].evicted++)
		return;
	reset_transact(process, gpu, NULL);
}

int gp_vdev_reset(struct gp_vdev *gpu)
{
	struct gp_vnode *node = gpu->node;
	int r;

	gp_vnode_log(node, 0, "gpu %u: reset", gpu->index);
	gp_vdev_turn(gpu);
	gp_smi_reset(gpu, false);
	r = gp_gpu_reset(gpu->model, gp_vnode_device_ns(node));
	if (r < 0)
		return r;
	for (struct gp_vproc *process = node->processes; process; process = process->next) {
		for (uint32_t id = 0; id < GP_VPROC_QUEUE_MAX; id++) {
			struct gp_vqueue *queue = process->queues[id];

			if (!queue || queue->gpu != gpu)
				continue;
			process->devices[gpu->index].has_reset = true;
			gpu->by_model[queue->model] = NULL;
			queue->error = GP_VQUEUE_RESET;
			queue->model_gone = true;
		}
		gp_vproc_evict(process, GP_KFD_EVICTION_SUSPEND, NULL);
		reset_tell(process, gpu);
	}
	gp_vtransaction_drop(gpu, -EIO);
	gp_smi_reset(gpu, true);
	return 0;
}
