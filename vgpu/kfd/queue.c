/* SPDX-License-Identifier: MIT */
/* KFD queues: creation, gates, destruction, and the model's events back to them. What a packet means is in aql.c and
 * sdma.c. */
#include <errno.h>
#include <gp_deps.h>
#include <stdlib.h>
#include <string.h>
#include "vgpu/kfd/call.h"
#include "vgpu/kfd/event.h"
#include "vgpu/kfd/exception.h"
#include "vgpu/node/memory.h"
#include "vgpu/node/process.h"
#include "vgpu/kfd/queue.h"
#include "vgpu/node/reset.h"
#include "vgpu/kfd/save_area.h"
#include "vgpu/kfd/smi.h"
#include "vgpu/node/transaction.h"
#include "vgpu/files/live.h"

#define QUEUE_ANY_DOORBELL UINT32_MAX
#define QUEUE_SDMA_DOORBELL \
	0x100u /* doorbell layout of gfx9.4.3: engine e begins at 0x100 + 10 e, odd queues 512 further */

bool gp_vqueue_is_sdma(const struct gp_vqueue *queue)
{
	return queue->type != KFD_IOC_QUEUE_TYPE_COMPUTE && queue->type != KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
}

bool gp_vqueue_is_active(const struct gp_vqueue *queue)
{
	return queue->ring && queue->ring_size && queue->percent && !queue->suspended && !queue->gate_owner &&
	       !queue->process->evicted && !queue->process->devices[queue->gpu->index].evicted && !queue->leaving &&
	       queue->error != GP_VQUEUE_RESET;
}

bool gp_vqueue_runs(const struct gp_vqueue *queue)
{
	return gp_vqueue_is_active(queue) && !queue->masked_out;
}

void gp_vqueue_count(struct gp_vqueue *queue)
{
	bool counts = !gp_vqueue_is_sdma(queue) && gp_vqueue_is_active(queue);

	GP_ASSERT(!queue->counted || queue->gpu->active_count);
	if (counts != queue->counted)
		queue->gpu->active_count += counts ? 1u : UINT32_MAX;
	queue->taken_off += queue->counted && !counts && !queue->leaving;
	queue->counted = counts;
}

/* The model reads 0 as normal; the hardware has nothing below 0 either, and 1 is in the same class. */
uint32_t gp_vqueue_model_priority(uint32_t priority)
{
	return priority ? priority : 1u;
}

struct gp_vqueue *gp_vqueue_find(struct gp_vproc *process, uint32_t id)
{
	return id < GP_VPROC_QUEUE_MAX ? process->queues[id] : NULL;
}

/* Doorbells. */

static bool queue_doorbell_is_reserved(uint32_t id)
{
	/* The range of the copy and video engines and its mirror belong to nobody's compute queue. */
	return (id % 512u) >= QUEUE_SDMA_DOORBELL && (id % 512u) < 0x1f8u;
}

static int queue_doorbell_take(struct gp_vqueue *queue, uint32_t wanted)
{
	uint32_t *used = queue->process->devices[queue->gpu->index].doorbell_used;

	if (wanted != QUEUE_ANY_DOORBELL) {
		if (wanted >= GP_VDOORBELL_COUNT || queue_doorbell_is_reserved(wanted) ||
		    used[wanted / 32u] & 1u << wanted % 32u)
			return -EINVAL;
		used[wanted / 32u] |= 1u << wanted % 32u;
		queue->doorbell_id = wanted;
		queue->is_user = true;
		return 0;
	}
	if (gp_vqueue_is_sdma(queue)) {
		uint32_t engine = queue->sdma_id / 8u, number = queue->sdma_id % 8u;

		queue->doorbell_id =
			(QUEUE_SDMA_DOORBELL + 10u * engine + number / 2u + number % 2u * 512u) % GP_VDOORBELL_COUNT;
		return 0;
	}
	for (uint32_t id = 0; id < GP_VDOORBELL_COUNT; id++) {
		if (!queue_doorbell_is_reserved(id) && !(used[id / 32u] & 1u << id % 32u)) {
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

	if (gp_vqueue_is_sdma(queue))
		return;
	GP_ASSERT(used[queue->doorbell_id / 32u] & 1u << queue->doorbell_id % 32u); /* given back once */
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
		.priority = gp_vqueue_model_priority(queue->priority),
		.closed = !gp_vqueue_is_active(queue),
	};
	uint64_t now_ns = gp_vnode_device_ns(gpu->node);
	int r;

	/* Events of a queue that had this id before must not reach this one. */
	gp_vdev_turn(gpu);
	r = gp_gpu_queue_add(gpu->model, queue->process->devices[gpu->index].model, &attr, now_ns, &queue->model);
	if (r < 0)
		return r;
	gpu->by_model[queue->model] = queue;
	queue->model_open = !attr.closed;
	queue->model_priority = queue->priority;
	return 0;
}

static void queue_model_remove(struct gp_vqueue *queue)
{
	struct gp_vdev *gpu = queue->gpu;

	if (queue->model_gone)
		return;
	GP_ASSERT(gpu->by_model[queue->model] == queue);
	gp_gpu_queue_remove(gpu->model, queue->model, gp_vnode_device_ns(gpu->node));
	gpu->by_model[queue->model] = NULL;
}

/* Life. */

bool gp_vqueue_owns(struct gp_vproc *process, const struct gp_vdev *gpu, uint64_t va, uint64_t size)
{
	const struct gp_vbo *bo = gp_vm_find(process, gpu, va);

	/* Of less than a page only the beginning is compared. */
	return bo && bo->va == (va & ~4095ull) && (size < 4096u || bo->size == (size & ~4095ull));
}

/* As set_queue_properties_from_user() and kfd_queue_acquire_buffers() do. A ring smaller than the smallest counts as
 * that. */
static int queue_check(struct gp_vproc *process, const struct gp_vdev *gpu, struct kfd_ioctl_create_queue_args *args)
{
	if ((args->queue_percentage & 0xffu) > KFD_MAX_QUEUE_PERCENTAGE ||
	    args->queue_priority > KFD_MAX_QUEUE_PRIORITY)
		return -EINVAL;
	if (args->ring_base_address >= GP_VM_END || args->read_pointer_address >= GP_VM_END ||
	    args->write_pointer_address >= GP_VM_END || args->eop_buffer_address >= GP_VM_END ||
	    args->ctx_save_restore_address >= GP_VM_END)
		return -EFAULT;
	if (args->ring_size & (args->ring_size - 1u))
		return -EINVAL;
	if (args->ring_size < KFD_MIN_QUEUE_RING_SIZE)
		args->ring_size = KFD_MIN_QUEUE_RING_SIZE;
	if (args->queue_type > GP_KFD_QUEUE_TYPE_SDMA_BY_ENG_ID)
		return -524; /* the driver's ENOTSUPP, which is no errno of user space */
	/* PM4 rings are never written by ROCm's user space on these devices, and the packets are not interpreted here.
	 */
	if (!gpu || args->queue_type == KFD_IOC_QUEUE_TYPE_COMPUTE)
		return -EINVAL;
	if (!process->devices[gpu->index].vm)
		return -ESRCH;
	if (!gp_vqueue_owns(process, gpu, args->write_pointer_address, 4096) ||
	    !gp_vqueue_owns(process, gpu, args->read_pointer_address, 4096) ||
	    !gp_vqueue_owns(process, gpu, args->ring_base_address, args->ring_size))
		return -EINVAL;
	return args->queue_type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL ? gp_save_area_check(process, gpu, args) : 0;
}

static uint32_t queue_process_count(const struct gp_vdev *gpu)
{
	uint32_t count = 0;

	for (const struct gp_vproc *process = gpu->node->processes; process; process = process->next)
		count += process->devices[gpu->index].queue_count != 0;
	return count;
}

/* Whether there is room for one more, by the limits of the process, the device and the module's parameters. */
static int queue_check_room(const struct gp_vproc *process, const struct gp_vdev *gpu, uint32_t type)
{
	const int64_t *params = process->node->params.values;

	/* HWS counts to 127, except on gfx9.4.3 and 9.4.4 (pqm_create_queue()). */
	if (process->devices[gpu->index].queue_count >= (gpu->identity->gfx_version == 90402u ? 255u : 127u))
		return -ENOSPC;
	/* Without HWS the driver gives out VMIDs (allocate_vmid()) and slots (allocate_hqd()) itself. */
	if (params[GP_PARAM_SCHED_POLICY] && type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL) {
		bool with_hws = params[GP_PARAM_SCHED_POLICY] == 1;

		if (queue_process_count(gpu) + !process->devices[gpu->index].queue_count >
		    (uint64_t)gp_desc_get(gpu->desc, GP_DESC_PROCESS_COUNT))
			return with_hws ? -EPERM : -ENOSPC;
		if (gpu->active_count >= (uint64_t)gp_desc_get(gpu->desc, GP_DESC_SLOT_COUNT))
			return with_hws ? -EPERM : -EBUSY;
	}
	return gpu->queue_count >= params[GP_PARAM_MAX_QUEUES] ? -EPERM : 0;
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
	queue->cwsr = args->ctx_save_restore_address;
	queue->cwsr_size = args->ctx_save_restore_size;
	queue->ctl_stack_size = args->ctl_stack_size;
	queue->exception_status = GP_KFD_EC_QUEUE_NEW;
}

struct queue_request {
	struct gp_vproc *process;
	struct gp_vdev *gpu;
	const struct gp_kfd_create_queue *args;
	uint32_t doorbell_id;
};

static int queue_make(const struct queue_request *request, struct gp_vqueue **ret_queue)
{
	struct gp_vqueue *queue = calloc(1, sizeof(*queue));
	int r = -ENOMEM;

	if (!queue)
		return r;
	queue->process = request->process;
	queue->gpu = request->gpu;
	queue_fill(queue, &request->args->base);
	queue->window = calloc(GP_VQUEUE_WINDOW, sizeof(*queue->window));
	if (!queue->window)
		goto err_free;
	r = gp_vqueue_is_sdma(queue) ? queue_sdma_take(queue, request->args) : 0;
	if (r < 0)
		goto err_free;
	r = queue_doorbell_take(queue, request->doorbell_id);
	if (r < 0)
		goto err_sdma;
	r = queue_model_add(queue);
	if (r < 0)
		goto err_doorbell;
	*ret_queue = queue;
	return 0;

err_doorbell:
	queue_doorbell_give(queue);
err_sdma:
	queue_sdma_give(queue);
err_free:
	free(queue->window);
	free(queue);
	return r;
}

static void queue_add(struct gp_vqueue *queue)
{
	struct gp_vproc *process = queue->process;
	struct gp_vproc_device *device = &process->devices[queue->gpu->index];
	uint64_t zero = 0;

	queue->id = queue_id_take(process);
	queue->doorbell = (volatile uint64_t *)(void *)(device->doorbells + queue->doorbell_id * 8u);
	queue->doorbell_seen = gp_vqueue_is_sdma(queue) ? 0 : UINT64_MAX;
	*queue->doorbell = queue->doorbell_seen;
	process->queues[queue->id] = queue;
	process->queue_count++;
	device->queue_count++;
	queue->gpu->queue_count++;
	gp_vqueue_count(queue);
	process->node->counters.queues_created++;
	gp_vm_write(process, queue->gpu, queue->rptr_va, &zero, sizeof(zero));
	if (!queue->is_user)
		gp_live_queue_add(queue);
	gp_live_mark(process->node);
	gp_vnode_log(process->node, 1, "process %d: queue %u on gpu %u type %u priority %u %u %%", process->pid,
		     queue->id, queue->gpu->index, queue->type, queue->priority, queue->percent);
}

/* Its halt is over: the queue is there, or the device failed and it is not. */
static void queue_create_done(struct gp_vcall *call)
{
	struct gp_vqueue *queue = call->process ? gp_vqueue_find(call->process, call->queue_id) : NULL;

	if (!queue)
		return;
	if (call->result < 0)
		gp_vqueue_free(queue);
	else if (!queue->is_user)
		gp_exception_raise(call->process, GP_KFD_EC_QUEUE_NEW, queue->gpu, queue);
}

uint64_t gp_vqueue_doorbells(const struct gp_vproc *process, const struct gp_vdev *gpu)
{
	return GP_BAR_DOORBELL + ((uint64_t)process->slot * GP_VNODE_GPU_MAX + gpu->index) * GP_BAR_DOORBELL_STEP;
}

int gp_vqueue_create(struct gp_vcall **call_slot, struct gp_kfd_create_queue *args)
{
	return gp_vqueue_create_user(call_slot, args, QUEUE_ANY_DOORBELL);
}

int gp_vqueue_create_user(struct gp_vcall **call_slot, struct gp_kfd_create_queue *args, uint32_t doorbell_id)
{
	struct gp_vcall *call = *call_slot;
	struct gp_vproc *process = call->process;
	struct gp_vdev *gpu = gp_vnode_gpu(process->node, args->base.gpu_id);
	struct gp_vqueue *queue = NULL;
	int r = queue_check(process, gpu, &args->base);

	if (r < 0)
		return r;
	r = gp_vproc_bind(process, gpu);
	if (r == 0)
		r = queue_check_room(process, gpu, args->base.queue_type);
	if (r == 0 && queue_id_take(process) == GP_VPROC_QUEUE_MAX)
		r = -ENOMEM;
	if (r == 0)
		r = queue_make(&(struct queue_request){ process, gpu, args, doorbell_id }, &queue);
	if (r < 0)
		return r;
	queue_add(queue);
	args->base.queue_id = queue->id;
	args->base.doorbell_offset = gp_vqueue_doorbells(process, gpu) + queue->doorbell_id * 8u;
	call->queue_id = queue->id;
	call->done = queue_create_done;
	/* A queue that is not active is not put on the runlist, and nobody is stopped for it. */
	if (queue->model_open && gp_vtransaction_mark(gpu, call) > 0) {
		gp_vcall_keep(process->node, call_slot, GP_VCALL_TRANSACTION);
		return GP_VCALL_LATER;
	}
	queue_create_done(call);
	return 0;
}

void gp_vqueue_free(struct gp_vqueue *queue)
{
	struct gp_vproc *process = queue->process;
	struct gp_vproc_device *device = &process->devices[queue->gpu->index];
	struct gp_gpu_counters counters;

	gp_vnode_log(process->node, 1, "process %d: queue %u destroyed after %llu packets, %llu workgroups",
		     process->pid, queue->id, (unsigned long long)queue->packets,
		     (unsigned long long)queue->workgroups);
	gp_live_mark(process->node);
	if (gp_vqueue_is_sdma(queue) && !queue->model_gone &&
	    gp_gpu_counters(queue->gpu->model, queue->model, &counters) == 0)
		device->sdma_ns += counters.busy_ns;
	gp_aql_drop(queue);
	queue_model_remove(queue);
	if (!queue->is_user)
		gp_live_queue_remove(queue);
	queue_doorbell_give(queue);
	queue_sdma_give(queue);
	if (device->gws == queue)
		device->gws = NULL;
	process->queues[queue->id] = NULL;
	process->queue_count--;
	device->queue_count--;
	queue->gpu->queue_count--;
	queue->gpu->active_count -= queue->counted;
	process->node->counters.queues_destroyed++;
	free(queue->save.stack);
	free(queue->window);
	free(queue);
}

void gp_vqueue_destroy_all(struct gp_vproc *process)
{
	for (uint32_t id = 0; id < GP_VPROC_QUEUE_MAX && process->queue_count; id++)
		if (process->queues[id])
			gp_vqueue_free(process->queues[id]);
}

/* A timeout or an error does not keep the queue alive (pqm_destroy_queue()). */
static void queue_destroy_done(struct gp_vcall *call)
{
	struct gp_vqueue *queue = call->process ? gp_vqueue_find(call->process, call->queue_id) : NULL;
	struct gp_vdev *gpu;

	if (!queue)
		return;
	gpu = queue->gpu;
	gp_vqueue_free(queue);
	gp_exception_raise(call->process, GP_KFD_EC_DEVICE_QUEUE_DELETE, gpu, NULL);
}

int gp_vqueue_destroy_begin(struct gp_vcall *call, struct gp_vqueue *queue)
{
	bool halts = gp_vqueue_is_active(queue) && !queue->model_gone;

	call->result = 0;
	call->queue_id = queue->id;
	call->done = queue_destroy_done;
	queue->leaving = true;
	gp_vqueue_count(queue);
	/* Off the runlist first, with the halt that costs; then it is gone without another. */
	if (halts && gp_vtransaction_change(&queue, 1, call) > 0)
		return GP_VCALL_LATER;
	queue_destroy_done(call);
	return 0;
}

int gp_vqueue_destroy(struct gp_vcall **call, uint32_t id, bool is_user)
{
	struct gp_vproc *process = (*call)->process;
	struct gp_vqueue *queue = gp_vqueue_find(process, id);

	if (!queue || queue->leaving || queue->is_user != is_user)
		return -EINVAL;
	if (queue->being_destroyed)
		return -EBUSY;
	queue->being_destroyed = true;
	(*call)->queue_id = id;
	/* KFD lets a debugger look at a suspended queue as long as it likes: the destruction waits for the resume. */
	if (queue->suspended && process->debug_enabled) {
		gp_vcall_keep(process->node, call, GP_VCALL_DESTROY_QUEUE);
		return GP_VCALL_LATER;
	}
	if (gp_vqueue_destroy_begin(*call, queue) == 0)
		return 0;
	gp_vcall_keep(process->node, call, GP_VCALL_TRANSACTION);
	return GP_VCALL_LATER;
}

/* Errors. */

void gp_vqueue_tell(struct gp_vqueue *queue, uint32_t error)
{
	uint64_t inactive = 0;
	struct gp_amd_signal signal;
	int64_t value = error;

	if (gp_vm_read(queue->process, queue->gpu,
		       queue->rptr_va - GP_AMD_QUEUE_READ_OFFSET + GP_AMD_QUEUE_INACTIVE_OFFSET, &inactive, 8) < 0 ||
	    !inactive || gp_vm_read(queue->process, queue->gpu, inactive, &signal, sizeof(signal)) < 0)
		return;
	gp_vm_write(queue->process, queue->gpu, inactive + offsetof(struct gp_amd_signal, value), &value, 8);
	gp_vevent_interrupt(queue->process, signal.event_id);
}

void gp_vqueue_fail(struct gp_vqueue *queue, uint32_t error)
{
	queue->error = error;
	queue->process->node->counters.queue_errors++;
	gp_vnode_log(queue->process->node, 0, "process %d: queue %u stopped, error %u at packet %llu",
		     queue->process->pid, queue->id, error, (unsigned long long)queue->submitted);
	if (gp_vqueue_is_sdma(queue))
		return;
	gp_exception_of_packet(queue, error);
	gp_vqueue_tell(queue, error);
}

void gp_vqueue_wave_error(struct gp_vqueue *queue, uint64_t exception, uint32_t signal)
{
	queue->error = GP_VQUEUE_FAULTED;
	queue->process->node->counters.queue_errors++;
	gp_exception_of_wave(queue, exception);
	gp_vqueue_tell(queue, signal);
}

void gp_vqueue_fault(struct gp_vqueue *queue, uint64_t va)
{
	struct gp_vproc_device *device = &queue->process->devices[queue->gpu->index];
	bool is_write = queue->process->fault_is_write;
	struct kfd_hsa_memory_exception_data data = { .failure.NotPresent = !is_write,
						      .failure.ReadOnly = is_write,
						      .va = va & ~4095ull,
						      .gpu_id = queue->gpu->gpu_id };

	gp_vnode_log(queue->process->node, 0, "process %d: queue %u: memory access fault at 0x%llx",
		     queue->process->pid, queue->id, (unsigned long long)va);
	queue->error = GP_VQUEUE_FAULTED;
	gp_smi_vm_fault(queue->gpu, queue->process);
	if (!device->has_fault)
		device->fault = data;
	/* A debugger that asked for it decides what becomes of it. */
	if (gp_exception_raise(queue->process, GP_KFD_EC_DEVICE_MEMORY_VIOLATION, queue->gpu, NULL)) {
		device->has_fault = true;
		return;
	}
	gp_vproc_evict_gpu(queue->process, queue->gpu);
	gp_vevent_raise(queue->process, KFD_IOC_EVENT_MEMORY, &data, sizeof(data));
}

/* The model's events. */

static void queue_event(struct gp_vdev *gpu, const struct gp_gpu_event *event)
{
	struct gp_vqueue *queue = event->queue < GP_GPU_QUEUE_MAX ? gpu->by_model[event->queue] : NULL;

	switch (event->type) {
	case GP_GPU_EVENT_TRANSACTION: gp_vtransaction_end(gpu, event); return;
	case GP_GPU_EVENT_RUN:
		gp_live_mark(gpu->node);
		gpu->halt_count++;
		gpu->halt_ns += event->value;
		return;
	case GP_GPU_EVENT_START:
		gp_live_mark(gpu->node);
		if (queue && !gp_vqueue_is_sdma(queue))
			gp_aql_start(queue, event);
		return;
	case GP_GPU_EVENT_STOP:
		if (queue && !gp_vqueue_is_sdma(queue))
			gp_aql_progress(queue, event);
		return;
	case GP_GPU_EVENT_END:
		gp_live_mark(gpu->node);
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
	return gp_vqueue_is_sdma(queue) ? gp_sdma_turn(queue) : gp_aql_turn(queue);
}
