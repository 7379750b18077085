/* SPDX-License-Identifier: MIT */
/*
 * Changes to a queue that is there: UPDATE_QUEUE, SET_CU_MASK, ALLOC_QUEUE_GWS. All three end in the driver's
 * update_queue() (Linux 6.12, kfd_device_queue_manager.c): on CPSCH everybody is unmapped and mapped again, whatever
 * changed or not, and a process one of whose queues was reset gets EACCES after that.
 */
#include <errno.h>
#include <string.h>
#include "vgpu/kfd/call.h"
#include "vgpu/node/memory.h"
#include "vgpu/node/process.h"
#include "vgpu/kfd/queue.h"
#include "vgpu/node/transaction.h"

#define UPDATE_CU_MAX 1024u /* bits of a mask; the driver drops what is beyond */

static void update_done(struct gp_vcall *call)
{
	struct gp_vqueue *queue = call->process ? gp_vqueue_find(call->process, call->queue_id) : NULL;

	if (queue && call->process->devices[queue->gpu->index].has_reset)
		call->result = -EACCES;
}

static int update_queue(struct gp_vcall **call_slot, struct gp_vqueue *queue)
{
	struct gp_vcall *call = *call_slot;
	int r;

	call->result = 0;
	call->queue_id = queue->id;
	call->done = update_done;
	r = gp_vtransaction_change(&queue, 1, call);
	if (r < 0)
		return r;
	if (r == 0) {
		update_done(call);
		return call->result;
	}
	gp_vcall_keep(call->process->node, call_slot, GP_VCALL_TRANSACTION);
	return GP_VCALL_LATER;
}

/* One that is on its way out is no longer found: the driver holds the process's lock until it is gone. */
static struct gp_vqueue *update_find(struct gp_vproc *process, uint32_t id)
{
	struct gp_vqueue *queue = gp_vqueue_find(process, id);

	return queue && !queue->leaving && !queue->is_user ? queue : NULL;
}

int gp_vqueue_update(struct gp_vcall **call, const struct kfd_ioctl_update_queue_args *args)
{
	struct gp_vproc *process = (*call)->process;
	struct gp_vqueue *queue = update_find(process, args->queue_id);
	/* Bits 8 to 15 choose an XCC for PM4 packets. */
	uint32_t percent = args->queue_percentage & 0xffu, ring_size = args->ring_size;

	if (percent > KFD_MAX_QUEUE_PERCENTAGE || args->queue_priority > KFD_MAX_QUEUE_PRIORITY)
		return -EINVAL;
	if (args->ring_base_address >= GP_VM_END)
		return -EFAULT;
	if (ring_size & (ring_size - 1u))
		return -EINVAL;
	if (ring_size < KFD_MIN_QUEUE_RING_SIZE)
		ring_size = KFD_MIN_QUEUE_RING_SIZE;
	/* No ring at all turns the queue off; another one must be memory of the process, on this GPU. */
	if (!queue ||
	    (args->ring_base_address && !gp_vqueue_owns(process, queue->gpu, args->ring_base_address, ring_size)))
		return -EFAULT;
	queue->ring = args->ring_base_address;
	queue->ring_size = ring_size;
	queue->percent = percent;
	queue->priority = args->queue_priority;
	gp_vnode_log(process->node, 1, "process %d: queue %u updated: priority %u, %u %%", process->pid, queue->id,
		     queue->priority, queue->percent);
	return update_queue(call, queue);
}

int gp_vqueue_set_cu_mask(struct gp_vcall **call, const struct kfd_ioctl_set_cu_mask_args *args)
{
	struct gp_vproc *process = (*call)->process;
	struct gp_vqueue *queue = update_find(process, args->queue_id);
	uint32_t words[UPDATE_CU_MAX / 32u], bits = args->num_cu_mask, cu_count = 0, all;

	if (!bits || bits % 32u)
		return -EINVAL;
	if (bits > UPDATE_CU_MAX)
		bits = UPDATE_CU_MAX;
	if (gp_client_read(process, args->cu_mask_ptr, words, bits / 8u) < 0 || !queue)
		return -EFAULT;
	all = (uint32_t)gp_desc_get(queue->gpu->desc, GP_DESC_CU_COUNT);
	for (uint32_t i = 0; i < bits && i < all; i++)
		cu_count += words[i / 32u] >> i % 32u & 1u;
	/* No bit of a CU that is there: the driver takes it, and nothing of the queue can start. */
	queue->masked_out = !cu_count;
	queue->cu_count = cu_count;
	return update_queue(call, queue);
}

int gp_vqueue_set_gws(struct gp_vcall **call, struct kfd_ioctl_alloc_queue_gws_args *args)
{
	struct gp_vproc *process = (*call)->process;
	struct gp_vqueue *queue = update_find(process, args->queue_id);
	struct gp_vproc_device *device;

	if (!queue)
		return -EINVAL;
	device = &process->devices[queue->gpu->index];
	/* One queue of a process on a GPU; these GPUs can be debugged all the same (kfd_dbg_has_gws_support()). */
	if (args->num_gws && device->gws)
		return -EBUSY;
	if (!args->num_gws && !device->gws)
		return -EINVAL;
	device->gws = args->num_gws ? queue : NULL;
	args->first_gws = 0;
	return update_queue(call, queue);
}
