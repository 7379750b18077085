/* SPDX-License-Identifier: MIT */
/* KFD queues: creation, gates, destruction, and the model's events back to them. What a packet means is in aql.c and
 * sdma.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "vgpu/call.h"
#include "vgpu/event.h"
#include "vgpu/memory.h"
#include "vgpu/process.h"
#include "vgpu/queue.h"
#include "vgpu/tree.h"

#define QUEUE_RING_SIZE_MAX (64u << 20)
#define QUEUE_SDMA_DOORBELL \
	0x100u /* doorbell layout of gfx9.4.3: engine e begins at 0x100 + 10 e, odd queues 512 further */

bool gp_vqueue_is_sdma(const struct gp_vqueue *queue)
{
	return queue->type != KFD_IOC_QUEUE_TYPE_COMPUTE && queue->type != KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
}

bool gp_vqueue_is_active(const struct gp_vqueue *queue)
{
	return queue->ring && queue->ring_size && queue->percent && !queue->suspended && !queue->process->evicted;
}

struct gp_vqueue *gp_vqueue_find(struct gp_vproc *process, uint32_t id)
{
	return id < GP_VPROC_QUEUE_MAX ? process->queues[id] : NULL;
}

/* Doorbells. */

static int queue_doorbell_take(struct gp_vqueue *queue)
{
	uint32_t *used = queue->process->devices[queue->gpu->index].doorbell_used;

	if (gp_vqueue_is_sdma(queue)) {
		uint32_t engine = queue->sdma_id / 8u, number = queue->sdma_id % 8u;

		queue->doorbell_id =
			(QUEUE_SDMA_DOORBELL + 10u * engine + number / 2u + number % 2u * 512u) % GP_VDOORBELL_COUNT;
		return 0;
	}
	for (uint32_t id = 0; id < GP_VDOORBELL_COUNT; id++) {
		/* The range of the copy and video engines and its mirror belong to nobody's compute queue. */
		if ((id % 512u) >= QUEUE_SDMA_DOORBELL && (id % 512u) < 0x1f8u)
			continue;
		if (!(used[id / 32u] & 1u << id % 32u)) {
			used[id / 32u] |= 1u << id % 32u;
			queue->doorbell_id = id;
			return 0;
		}
	}
	return -EBUSY;
}

static void queue_doorbell_give(struct gp_vqueue *queue)
{
	uint32_t *used = queue->process->devices[queue->gpu->index].doorbell_used;

	if (!gp_vqueue_is_sdma(queue))
		used[queue->doorbell_id / 32u] &= ~(1u << queue->doorbell_id % 32u);
}

/* SDMA queues are the device's, not the process's: so many per engine, shared by all. */
static int queue_sdma_take(struct gp_vqueue *queue, const struct gp_kfd_create_queue *args)
{
	struct gp_vdev *gpu = queue->gpu;
	uint32_t engines = (uint32_t)gp_desc_get(gpu->desc, GP_DESC_COPY_ENGINE_COUNT);
	uint32_t per_engine = (uint32_t)gp_desc_get(gpu->desc, GP_DESC_COPY_QUEUE_COUNT), begin = 0,
		 end = engines * per_engine;

	if (queue->type == GP_KFD_QUEUE_TYPE_SDMA_BY_ENG_ID) {
		if (args->sdma_engine_id >= engines + gpu->identity->xgmi_engine_count)
			return -EINVAL;
		begin = args->sdma_engine_id * per_engine;
		end = begin + per_engine;
	} else if (queue->type == KFD_IOC_QUEUE_TYPE_SDMA_XGMI) {
		begin = end;
		end += gpu->identity->xgmi_engine_count * per_engine;
	}
	for (uint32_t id = begin; id < end && id < GP_VSDMA_QUEUE_MAX; id++)
		if (!(gpu->sdma_used[id / 32u] & 1u << id % 32u)) {
			gpu->sdma_used[id / 32u] |= 1u << id % 32u;
			queue->sdma_id = id;
			return 0;
		}
	return -ENOMEM;
}

static void queue_sdma_give(struct gp_vqueue *queue)
{
	if (gp_vqueue_is_sdma(queue))
		queue->gpu->sdma_used[queue->sdma_id / 32u] &= ~(1u << queue->sdma_id % 32u);
}

/* The model's side. */

static int queue_model_add(struct gp_vqueue *queue)
{
	struct gp_vdev *gpu = queue->gpu;
	struct gp_gpu_queue_attr attr = {
		.kind = gp_vqueue_is_sdma(queue) ? GP_GPU_COPY : GP_GPU_COMPUTE,
		.ring_size = GP_VQUEUE_WINDOW,
		/* The model reads 0 as normal; the hardware has nothing below 0 either, and 1 is in the same class. */
		.priority = queue->priority ? queue->priority : 1u,
		.cu_count = queue->cu_count,
	};
	uint64_t now_ns = gp_vnode_device_ns(gpu->node);
	int r;

	/* Events of a queue that had this id before must not reach this one. */
	gp_vdev_turn(gpu);
	r = gp_gpu_queue_add(gpu->model, queue->process->devices[gpu->index].model, &attr, now_ns, &queue->model);
	if (r < 0)
		return r;
	gpu->by_model[queue->model] = queue;
	queue->model_open = true;
	queue->model_stale = false;
	return 0;
}

static void queue_model_remove(struct gp_vqueue *queue)
{
	struct gp_vdev *gpu = queue->gpu;

	if (queue->model_gone)
		return;
	gp_gpu_queue_remove(gpu->model, queue->model, gp_vnode_device_ns(gpu->node));
	gpu->by_model[queue->model] = NULL;
}

/* The model fixes priority and CU mask at creation: an empty queue is taken out and put in again, another later. */
static int queue_model_renew(struct gp_vqueue *queue)
{
	int r;

	queue->model_stale = true;
	/* A transaction under way knows the queue by the id it has now. */
	if (queue->in_flight || queue->error || queue->process->node->transactions)
		return 0;
	queue_model_remove(queue);
	r = queue_model_add(queue);
	if (r == 0 && !gp_vqueue_is_active(queue))
		r = gp_vqueue_transact(&queue, 1, NULL);
	return r < 0 ? r : 0;
}

int gp_vqueue_transact(struct gp_vqueue **queues, uint32_t queue_count, struct gp_vcall *call)
{
	static struct gp_gpu_change changes[GP_VPROC_QUEUE_MAX];
	struct gp_vnode *node = queue_count ? queues[0]->process->node : NULL;
	int count = 0;

	for (uint32_t g = 0; queue_count && g < node->gpu_count; g++) {
		struct gp_vtransaction *transaction;
		uint32_t change_count = 0;

		for (uint32_t i = 0; i < queue_count; i++)
			if (queues[i]->gpu->index == g && !queues[i]->model_gone)
				changes[change_count++] =
					(struct gp_gpu_change){ queues[i]->model, gp_vqueue_is_active(queues[i]) };
		if (!change_count)
			continue;
		transaction = calloc(1, sizeof(*transaction));
		if (!transaction)
			return -ENOMEM;
		transaction->seq = ++node->seq;
		transaction->call = call;
		transaction->next = node->transactions;
		if (gp_gpu_transact(node->gpus[g].model, changes, change_count, transaction->seq,
				    gp_vnode_device_ns(node)) < 0) {
			free(transaction);
			return -ENOMEM;
		}
		node->transactions = transaction;
		for (uint32_t i = 0; i < queue_count; i++)
			if (queues[i]->gpu->index == g)
				queues[i]->model_open = gp_vqueue_is_active(queues[i]);
		count++;
	}
	if (call)
		call->outstanding += (uint32_t)count;
	return count;
}

/* Life. */

static int queue_check(struct gp_vproc *process, const struct gp_kfd_create_queue *full)
{
	const struct kfd_ioctl_create_queue_args *args = &full->base;

	if (args->queue_percentage > 0xffffu || (args->queue_percentage & 0xffu) > KFD_MAX_QUEUE_PERCENTAGE ||
	    args->queue_priority > KFD_MAX_QUEUE_PRIORITY || args->queue_type > GP_KFD_QUEUE_TYPE_SDMA_BY_ENG_ID)
		return -EINVAL;
	if (args->ring_base_address &&
	    (!args->ring_size || (args->ring_size & (args->ring_size - 1u)) || args->ring_size > QUEUE_RING_SIZE_MAX ||
	     args->ring_size < KFD_MIN_QUEUE_RING_SIZE))
		return -EINVAL;
	if (!args->ring_base_address && args->ring_size)
		return -EINVAL;
	/* PM4 rings are never written by ROCm's user space on these devices, and the packets are not interpreted here.
	 */
	if (args->queue_type == KFD_IOC_QUEUE_TYPE_COMPUTE)
		return -EINVAL;
	if (!gp_vm_find(process, args->read_pointer_address) || !gp_vm_find(process, args->write_pointer_address))
		return -EFAULT;
	if (args->ring_base_address && (!gp_vm_find(process, args->ring_base_address) ||
					!gp_vm_find(process, args->ring_base_address + args->ring_size - 1u)))
		return -EINVAL;
	return 0;
}

static uint32_t queue_id_take(const struct gp_vproc *process)
{
	uint32_t id = 0;

	while (id < GP_VPROC_QUEUE_MAX && process->queues[id])
		id++;
	return id;
}

static void queue_fill(struct gp_vqueue *queue, const struct kfd_ioctl_create_queue_args *args)
{
	queue->type = args->queue_type;
	queue->ring = args->ring_base_address;
	queue->ring_size = args->ring_size;
	queue->rptr_va = args->read_pointer_address;
	queue->wptr_va = args->write_pointer_address;
	queue->percent = args->queue_percentage & 0xffu;
	queue->priority = args->queue_priority;
	queue->eop = args->eop_buffer_address;
	queue->eop_size = args->eop_buffer_size;
	queue->cwsr = args->ctx_save_restore_address;
	queue->cwsr_size = args->ctx_save_restore_size;
	queue->ctl_stack_size = args->ctl_stack_size;
	queue->is_new = true;
}

int gp_vqueue_create(struct gp_vproc *process, struct gp_kfd_create_queue *args)
{
	struct gp_vdev *gpu = gp_vnode_gpu(process->node, args->base.gpu_id);
	struct gp_vproc_device *device;
	struct gp_vqueue *queue;
	uint64_t zero = 0;
	int r;

	if (!gpu)
		return -EINVAL;
	r = queue_check(process, args);
	if (r < 0)
		return r;
	device = &process->devices[gpu->index];
	r = gp_vproc_bind(process, gpu);
	if (r < 0)
		return r;
	if (device->queue_count >= GP_VGPU_QUEUE_MAX || queue_id_take(process) == GP_VPROC_QUEUE_MAX)
		return -ENOSPC;
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return -ENOMEM;
	queue->process = process;
	queue->gpu = gpu;
	queue_fill(queue, &args->base);
	queue->window = calloc(GP_VQUEUE_WINDOW, sizeof(*queue->window));
	if (!queue->window)
		goto err_free;
	r = gp_vqueue_is_sdma(queue) ? queue_sdma_take(queue, args) : 0;
	if (r < 0)
		goto err_free;
	r = queue_doorbell_take(queue);
	if (r < 0)
		goto err_sdma;
	r = queue_model_add(queue);
	if (r < 0)
		goto err_doorbell;
	queue->id = queue_id_take(process);
	queue->doorbell = (volatile uint64_t *)(void *)(device->doorbells + queue->doorbell_id * 8u);
	queue->doorbell_seen = gp_vqueue_is_sdma(queue) ? 0 : UINT64_MAX;
	*queue->doorbell = queue->doorbell_seen;
	process->queues[queue->id] = queue;
	process->queue_count++;
	device->queue_count++;
	process->node->counters.queues_created++;
	if (!gp_vqueue_is_active(queue))
		gp_vqueue_transact(&queue, 1, NULL);
	gp_vm_write(process, queue->rptr_va, &zero, sizeof(zero));
	args->base.queue_id = queue->id;
	args->base.doorbell_offset = GP_BAR_DOORBELL +
				     ((uint64_t)process->slot * GP_VNODE_GPU_MAX + gpu->index) * GP_BAR_DOORBELL_STEP +
				     queue->doorbell_id * 8u;
	gp_tree_queue_add(queue);
	gp_vnode_log(process->node, 1, "process %d: queue %u on gpu %u type %u priority %u %u %%", process->pid,
		     queue->id, gpu->index, queue->type, queue->priority, queue->percent);
	return 0;

err_doorbell:
	queue_doorbell_give(queue);
err_sdma:
	queue_sdma_give(queue);
err_free:
	r = r < 0 ? r : -ENOMEM;
	free(queue->window);
	free(queue);
	return r;
}

void gp_vqueue_free(struct gp_vqueue *queue)
{
	struct gp_vproc *process = queue->process;

	gp_vnode_log(process->node, 1, "process %d: queue %u destroyed after %llu packets, %llu workgroups",
		     process->pid, queue->id, (unsigned long long)queue->packets,
		     (unsigned long long)queue->workgroups);
	gp_aql_drop(queue);
	queue_model_remove(queue);
	gp_tree_queue_remove(queue);
	queue_doorbell_give(queue);
	queue_sdma_give(queue);
	process->queues[queue->id] = NULL;
	process->queue_count--;
	process->devices[queue->gpu->index].queue_count--;
	process->node->counters.queues_destroyed++;
	free(queue->window);
	free(queue);
}

void gp_vqueue_destroy_all(struct gp_vproc *process)
{
	for (uint32_t id = 0; id < GP_VPROC_QUEUE_MAX && process->queue_count; id++)
		if (process->queues[id])
			gp_vqueue_free(process->queues[id]);
}

int gp_vqueue_destroy(struct gp_vcall **call, uint32_t id)
{
	struct gp_vproc *process = (*call)->process;
	struct gp_vqueue *queue = gp_vqueue_find(process, id);

	if (!queue)
		return -EINVAL;
	/* KFD lets a debugger look at a suspended queue as long as it likes: the destruction waits for the resume. */
	if (queue->suspended) {
		queue->being_destroyed = true;
		(*call)->queue_id = id;
		gp_vcall_keep(process->node, call, GP_VCALL_DESTROY_QUEUE);
		return GP_VCALL_LATER;
	}
	gp_vqueue_free(queue);
	return 0;
}

int gp_vqueue_update(struct gp_vcall **call_slot, const struct kfd_ioctl_update_queue_args *args)
{
	struct gp_vcall *call = *call_slot;
	struct gp_vqueue *queue = gp_vqueue_find(call->process, args->queue_id);
	uint32_t percent = args->queue_percentage & 0xffu, priority;
	int r;

	if (percent > KFD_MAX_QUEUE_PERCENTAGE || args->queue_percentage > 0xffffu ||
	    args->queue_priority > KFD_MAX_QUEUE_PRIORITY)
		return -EINVAL;
	if (args->ring_base_address && (!args->ring_size || (args->ring_size & (args->ring_size - 1u))))
		return -EINVAL;
	if (!queue)
		return -EFAULT;
	if (queue->error == GP_VQUEUE_RESET)
		return -EACCES;
	/* A ring that moves has to be memory of the process; ROCr always sends the one it has. */
	if (args->ring_base_address &&
	    (args->ring_base_address != queue->ring || args->ring_size != queue->ring_size)) {
		if (args->ring_size > QUEUE_RING_SIZE_MAX || args->ring_size < KFD_MIN_QUEUE_RING_SIZE ||
		    queue->in_flight || !gp_vm_find(call->process, args->ring_base_address) ||
		    !gp_vm_find(call->process, args->ring_base_address + args->ring_size - 1u))
			return -EFAULT;
	}
	priority = queue->priority;
	queue->ring = args->ring_base_address;
	queue->ring_size = args->ring_size;
	queue->percent = percent;
	queue->priority = args->queue_priority;
	gp_vnode_log(call->process->node, 1, "process %d: queue %u updated: priority %u, %u %%", call->process->pid,
		     queue->id, queue->priority, queue->percent);
	if (priority != queue->priority) {
		r = queue_model_renew(queue);
		if (r < 0)
			return r;
	}
	/* Whatever changed, or nothing: on CPSCH every update unmaps and maps the whole device. */
	r = gp_vqueue_transact(&queue, 1, call);
	if (r < 0)
		return r;
	call->result = 0;
	gp_vcall_keep(call->process->node, call_slot, GP_VCALL_TRANSACTION);
	return GP_VCALL_LATER;
}

int gp_vqueue_set_cu_mask(struct gp_vproc *process, const struct kfd_ioctl_set_cu_mask_args *args)
{
	struct gp_vqueue *queue = gp_vqueue_find(process, args->queue_id);
	uint32_t words[64], cu_count = 0;

	if (!args->num_cu_mask || args->num_cu_mask % 32u || args->num_cu_mask / 32u > 64u)
		return -EINVAL;
	if (gp_client_read(process, args->cu_mask_ptr, words, args->num_cu_mask / 8u) < 0)
		return -EFAULT;
	if (!queue)
		return -EFAULT;
	for (uint32_t i = 0; i < args->num_cu_mask / 32u; i++)
		cu_count += (uint32_t)__builtin_popcount(words[i]);
	if (!cu_count)
		return -EINVAL;
	if (cu_count > (uint32_t)gp_desc_get(queue->gpu->desc, GP_DESC_CU_COUNT))
		cu_count = (uint32_t)gp_desc_get(queue->gpu->desc, GP_DESC_CU_COUNT);
	queue->cu_count = cu_count;
	return queue_model_renew(queue);
}

/* Errors. */

void gp_vqueue_fail(struct gp_vqueue *queue, uint32_t error)
{
	uint64_t inactive = 0;
	struct gp_amd_signal signal;
	int64_t value = error;

	queue->error = error;
	queue->process->node->counters.queue_errors++;
	gp_vnode_log(queue->process->node, 0, "process %d: queue %u stopped, error %u at packet %llu",
		     queue->process->pid, queue->id, error, (unsigned long long)queue->submitted);
	if (gp_vqueue_is_sdma(queue))
		return;
	if (gp_vm_read(queue->process, queue->rptr_va - GP_AMD_QUEUE_READ_OFFSET + GP_AMD_QUEUE_INACTIVE_OFFSET,
		       &inactive, 8) < 0 ||
	    !inactive || gp_vm_read(queue->process, inactive, &signal, sizeof(signal)) < 0)
		return;
	gp_vm_write(queue->process, inactive + offsetof(struct gp_amd_signal, value), &value, 8);
	gp_vevent_interrupt(queue->process, signal.event_id);
}

void gp_vqueue_fault(struct gp_vqueue *queue, uint64_t va)
{
	struct kfd_hsa_memory_exception_data data = { .failure.NotPresent = 1,
						      .va = va & ~4095ull,
						      .gpu_id = queue->gpu->gpu_id };

	gp_vnode_log(queue->process->node, 0, "process %d: queue %u: memory access fault at 0x%llx",
		     queue->process->pid, queue->id, (unsigned long long)va);
	queue->error = GP_VQUEUE_FAULTED;
	gp_vevent_raise(queue->process, KFD_IOC_EVENT_MEMORY, &data, sizeof(data));
}

/* The model's events. */

static void queue_transaction_end(struct gp_vnode *node, const struct gp_gpu_event *event)
{
	struct gp_vtransaction **link = &node->transactions, *transaction;
	struct gp_vcall *call;

	while (*link && (*link)->seq != event->value)
		link = &(*link)->next;
	transaction = *link;
	if (!transaction)
		return;
	*link = transaction->next;
	call = transaction->call;
	free(transaction);
	if (!call)
		return;
	if (event->error)
		call->result = event->error;
	call->outstanding--;
}

static void queue_event(struct gp_vdev *gpu, const struct gp_gpu_event *event)
{
	struct gp_vqueue *queue = event->queue < GP_GPU_QUEUE_MAX ? gpu->by_model[event->queue] : NULL;

	switch (event->type) {
	case GP_GPU_EVENT_TRANSACTION: queue_transaction_end(gpu->node, event); return;
	case GP_GPU_EVENT_RUN:
		gpu->halt_count++;
		gpu->halt_ns += event->value;
		return;
	case GP_GPU_EVENT_START:
		if (queue && !gp_vqueue_is_sdma(queue))
			gp_aql_start(queue, event);
		return;
	case GP_GPU_EVENT_STOP:
		if (queue && !gp_vqueue_is_sdma(queue))
			gp_aql_progress(queue, event);
		return;
	case GP_GPU_EVENT_END:
		if (queue && gp_vqueue_is_sdma(queue))
			gp_sdma_end(queue, event);
		else if (queue)
			gp_aql_end(queue, event);
		return;
	default: return;
	}
}

void gp_vdev_turn(struct gp_vdev *gpu)
{
	struct gp_gpu_event event;

	gp_gpu_advance(gpu->model, gp_vnode_device_ns(gpu->node));
	while (gp_gpu_poll(gpu->model, &event)) {
		gpu->node->busy_ns = gpu->node->now_ns;
		queue_event(gpu, &event);
	}
}

bool gp_vqueue_turn(struct gp_vqueue *queue)
{
	if (queue->error || queue->hung)
		return false;
	if (queue->model_stale && !queue->in_flight)
		queue_model_renew(queue);
	return gp_vqueue_is_sdma(queue) ? gp_sdma_turn(queue) : gp_aql_turn(queue);
}

bool gp_vqueue_has_work(const struct gp_vqueue *queue)
{
	return !queue->error && queue->read < queue->limit && queue->model_open;
}
