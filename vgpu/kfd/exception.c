/* SPDX-License-Identifier: MIT */
/*
 * Exceptions, as Linux 6.12 keeps them (kfd_debug.c, kfd_process_queue_manager.c): a status word per queue, device and
 * process; only what happens while a debugger is attached is noted, except that every queue begins as new; a byte goes
 * to the debugger's descriptor when one it asked for is raised.
 */
#include "vgpu/kfd/exception.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "vgpu/kfd/event.h"
#include "vgpu/node/memory.h"
#include "vgpu/node/reset.h"

/* The descriptor is the client's choice, and vgpud must not wait for it: a byte goes into a pipe or a socket that has
 * room, and into nothing else. */
static void exception_wake(const struct gp_vproc *process)
{
	struct pollfd room = { .fd = process->debug_fd, .events = POLLOUT };
	struct stat info;

	if (process->debug_fd < 0 || fstat(process->debug_fd, &info) < 0)
		return;
	if (S_ISSOCK(info.st_mode))
		(void)!send(process->debug_fd, ".", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	else if (S_ISFIFO(info.st_mode) && poll(&room, 1, 0) == 1 && room.revents & POLLOUT)
		(void)!write(process->debug_fd, ".", 1);
}

bool gp_exception_raise(struct gp_vproc *process, uint64_t mask, const struct gp_vdev *gpu, struct gp_vqueue *queue)
{
	if (!process->debug_enabled)
		return false;
	if (mask & GP_KFD_EC_DEVICE_ALL)
		process->devices[gpu->index].exception_status |= mask & GP_KFD_EC_DEVICE_ALL;
	else if (mask & GP_KFD_EC_PROCESS_ALL)
		process->exception_status |= mask & GP_KFD_EC_PROCESS_ALL;
	else if (queue)
		queue->exception_status |= mask;
	if (!(process->exception_mask & mask))
		return false;
	exception_wake(process);
	return true;
}

void gp_exception_clear(struct gp_vproc *process)
{
	process->exception_status = 0;
	for (uint32_t i = 0; i < GP_VNODE_GPU_MAX; i++)
		process->devices[i].exception_status = 0;
	for (uint32_t id = 0; id < GP_VPROC_QUEUE_MAX; id++)
		if (process->queues[id])
			process->queues[id]->exception_status = 0;
}

static uint64_t exception_of_packet(uint32_t error)
{
	switch (error) {
	case GP_AQL_ERROR_DIMENSION: return GP_KFD_EC_MASK(16);
	case GP_AQL_ERROR_GROUP_MEMORY: return GP_KFD_EC_MASK(17);
	case GP_AQL_ERROR_CODE: return GP_KFD_EC_MASK(18);
	case GP_AQL_ERROR_FORMAT: return GP_KFD_EC_MASK(20);
	case GP_AQL_ERROR_GROUP_SIZE: return GP_KFD_EC_MASK(21);
	case GP_AQL_ERROR_VGPRS: return GP_KFD_EC_MASK(22);
	case GP_AQL_ERROR_VENDOR: return GP_KFD_EC_MASK(23);
	default: return 0;
	}
}

/* kfd_send_exception_to_runtime(): a mask in memory that the runtime named, and its event. */
static void exception_tell_runtime(struct gp_vqueue *queue, uint64_t mask)
{
	struct gp_vproc *process = queue->process;
	uint64_t address = 0, payload = 0;
	uint32_t event = 0;

	if (!queue->cwsr ||
	    gp_client_read(process, queue->cwsr + GP_KFD_CSA_ERR_PAYLOAD_OFFSET, &address, sizeof(address)) < 0 ||
	    gp_client_read(process, queue->cwsr + GP_KFD_CSA_ERR_EVENT_ID_OFFSET, &event, sizeof(event)) < 0 ||
	    !address || gp_client_read(process, address, &payload, sizeof(payload)) < 0)
		return;
	payload |= mask;
	if (gp_client_write(process, address, &payload, sizeof(payload)) == 0)
		gp_vevent_set(process, event);
}

void gp_exception_of_packet(struct gp_vqueue *queue, uint32_t error)
{
	gp_exception_of_wave(queue, exception_of_packet(error));
}

void gp_exception_of_wave(struct gp_vqueue *queue, uint64_t mask)
{
	if (!gp_exception_raise(queue->process, mask, queue->gpu, queue) && queue->process->runtime_enabled)
		exception_tell_runtime(queue, mask);
}

void gp_exception_enable(struct gp_vproc *target, uint64_t mask)
{
	uint64_t found = target->exception_status;

	for (uint32_t i = 0; i < GP_VNODE_GPU_MAX; i++)
		found |= target->devices[i].exception_status;
	for (uint32_t id = 0; id < GP_VPROC_QUEUE_MAX; id++)
		if (target->queues[id])
			found |= target->queues[id]->exception_status;
	if (found & mask)
		exception_wake(target);
	target->exception_mask = mask;
}

/* The driver's list of queues has the newest in front; ids are given lowest first, so that order is by id here. */
int gp_exception_query(struct gp_vproc *target, struct gp_kfd_dbg_trap *args)
{
	uint64_t clear = args->query_event.exception_mask;

	args->query_event.exception_mask = 0;
	args->query_event.queue_id = args->query_event.gpu_id = 0;
	for (uint32_t id = 0; id < GP_VPROC_QUEUE_MAX; id++) {
		struct gp_vqueue *queue = target->queues[id];

		if (!queue || !(queue->exception_status & target->exception_mask))
			continue;
		args->query_event.exception_mask = queue->exception_status;
		args->query_event.queue_id = id;
		args->query_event.gpu_id = queue->gpu->gpu_id;
		queue->exception_status &= ~clear;
		return 0;
	}
	for (uint32_t i = 0; i < target->node->gpu_count; i++) {
		struct gp_vproc_device *device = &target->devices[i];

		if (!(device->exception_status & target->exception_mask))
			continue;
		args->query_event.exception_mask = device->exception_status;
		args->query_event.gpu_id = target->node->gpus[i].gpu_id;
		device->exception_status &= ~clear;
		return 0;
	}
	if (!(target->exception_status & target->exception_mask))
		return -EAGAIN;
	args->query_event.exception_mask = target->exception_status;
	target->exception_status &= ~clear;
	return 0;
}

/* Where the status is that has this exception; NULL: no such source. */
static uint64_t *exception_find(struct gp_vproc *target, uint64_t mask, uint32_t source)
{
	if (mask & GP_KFD_EC_QUEUE_ALL) {
		struct gp_vqueue *queue = gp_vqueue_find(target, source);

		return queue ? &queue->exception_status : NULL;
	}
	if (mask & GP_KFD_EC_DEVICE_ALL) {
		struct gp_vdev *gpu = gp_vnode_gpu(target->node, source);

		return gpu ? &target->devices[gpu->index].exception_status : NULL;
	}
	return mask & GP_KFD_EC_PROCESS_ALL ? &target->exception_status : NULL;
}

int gp_exception_info(struct gp_vproc *caller, struct gp_vproc *target, struct gp_kfd_dbg_trap *args)
{
	uint32_t code = args->exception_info.exception_code, room = args->exception_info.info_size;
	struct gp_kfd_runtime_info runtime = { target->runtime_r_debug, target->runtime_enabled, target->runtime_ttmp };
	uint64_t mask = code && code <= 64u ? GP_KFD_EC_MASK(code) : 0, *status;
	struct gp_vproc_device *device = NULL;
	const void *data = NULL;
	size_t size = 0;

	if (!args->exception_info.info_ptr)
		return -EINVAL;
	status = exception_find(target, mask, args->exception_info.source_id);
	if (!status)
		return -EINVAL;
	if (!(*status & mask))
		return -ENODATA;
	if (mask == GP_KFD_EC_DEVICE_MEMORY_VIOLATION) {
		device = &target->devices[gp_vnode_gpu(target->node, args->exception_info.source_id)->index];
		data = &device->fault;
		size = sizeof(device->fault);
	} else if (mask == GP_KFD_EC_PROCESS_RUNTIME) {
		data = &runtime;
		size = sizeof(runtime);
	}
	if (size && room && gp_client_write(caller, args->exception_info.info_ptr, data, size < room ? size : room) < 0)
		return -EFAULT;
	args->exception_info.info_size = (uint32_t)size;
	if (args->exception_info.clear_exception) {
		*status &= ~mask;
		if (device)
			device->has_fault = false;
	}
	return 0;
}

/* The debugger hands an exception on, or says that the runtime may go on. */
int gp_exception_to_runtime(struct gp_vproc *target, const struct gp_kfd_dbg_trap *args)
{
	uint64_t mask = args->send_runtime_event.exception_mask;

	if (mask & GP_KFD_EC_DEVICE_MEMORY_VIOLATION) {
		struct gp_vdev *gpu = gp_vnode_gpu(target->node, args->send_runtime_event.gpu_id);
		struct gp_vproc_device *device;

		if (!gpu)
			return -ENODEV;
		device = &target->devices[gpu->index];
		device->has_fault = false;
		gp_vproc_evict_gpu(target, gpu);
		gp_vevent_raise(target, KFD_IOC_EVENT_MEMORY, &device->fault, sizeof(device->fault));
	}
	if (mask & GP_KFD_EC_PROCESS_RUNTIME)
		target->runtime_leave++;
	mask &= ~(GP_KFD_EC_DEVICE_MEMORY_VIOLATION | GP_KFD_EC_PROCESS_RUNTIME);
	if (mask && !gp_vqueue_find(target, args->send_runtime_event.queue_id))
		return -EINVAL;
	if (mask)
		exception_tell_runtime(gp_vqueue_find(target, args->send_runtime_event.queue_id), mask);
	return 0;
}

int gp_exception_queues(struct gp_vproc *caller, struct gp_vproc *target, struct gp_kfd_dbg_trap *args)
{
	uint32_t room = args->queue_snapshot.num_queues, stride = args->queue_snapshot.entry_size, count = 0;
	size_t size = stride < sizeof(struct gp_kfd_queue_snapshot) ? stride : sizeof(struct gp_kfd_queue_snapshot);

	args->queue_snapshot.num_queues = 0;
	if (!stride)
		return -EINVAL;
	args->queue_snapshot.entry_size = (uint32_t)size;
	for (uint32_t id = 0; id < GP_VPROC_QUEUE_MAX; id++) {
		struct gp_vqueue *queue = target->queues[id];
		struct gp_kfd_queue_snapshot entry;

		if (!queue)
			continue;
		if (count++ >= room)
			continue;
		entry = (struct gp_kfd_queue_snapshot){
			.exception_status = queue->exception_status,
			.ring_base_address = queue->ring,
			.write_pointer_address = queue->wptr_va,
			.read_pointer_address = queue->rptr_va,
			.ctx_save_restore_address = queue->cwsr,
			.queue_id = queue->id,
			.gpu_id = queue->gpu->gpu_id,
			.ring_size = queue->ring_size,
			.queue_type = queue->type,
			.ctx_save_restore_area_size = queue->cwsr_size,
		};
		queue->exception_status &= ~args->queue_snapshot.exception_mask;
		if (gp_client_write(caller, args->queue_snapshot.snapshot_buf_ptr + (uint64_t)(count - 1u) * stride,
				    &entry, size) < 0)
			return -EFAULT;
	}
	args->queue_snapshot.num_queues = count;
	return 0;
}

static struct gp_kfd_device_snapshot exception_device(const struct gp_vdev *gpu)
{
	const struct gp_identity *identity = gpu->identity;

	/* Apertures as GET_PROCESS_APERTURES has them. */
	return (struct gp_kfd_device_snapshot){
		.lds_base = GP_VM_LDS_BASE,
		.lds_limit = GP_VM_LDS_BASE + UINT32_MAX,
		.scratch_base = GP_VM_SCRATCH_BASE,
		.scratch_limit = GP_VM_SCRATCH_BASE + UINT32_MAX,
		.gpuvm_base = GP_VM_BASE,
		.gpuvm_limit = GP_VM_END - 1u,
		.gpu_id = gpu->gpu_id,
		.location_id = (gpu->index + 1u) << 8,
		.vendor_id = 0x1002,
		.device_id = identity->device_id,
		.revision_id = identity->revision,
		.fw_version = identity->fw_version,
		.gfx_target_version = identity->gfx_version,
		.simd_count = (uint32_t)gp_desc_get(gpu->desc, GP_DESC_CU_COUNT) * identity->simd_per_cu,
		.max_waves_per_simd = identity->waves_per_simd,
		.array_count = identity->array_count,
		.simd_arrays_per_engine = 1,
		.num_xcc = (uint32_t)gp_desc_get(gpu->desc, GP_DESC_XCC_COUNT),
		.capability = (uint32_t)identity->capability,
		.debug_prop = (uint32_t)identity->debug_prop,
	};
}

int gp_exception_devices(struct gp_vproc *caller, struct gp_vproc *target, struct gp_kfd_dbg_trap *args)
{
	struct gp_vnode *node = target->node;
	uint32_t room = args->device_snapshot.num_devices, stride = args->device_snapshot.entry_size;
	size_t size = stride < sizeof(struct gp_kfd_device_snapshot) ? stride : sizeof(struct gp_kfd_device_snapshot);

	if (!args->device_snapshot.snapshot_buf_ptr)
		return -EINVAL;
	args->device_snapshot.num_devices = node->gpu_count;
	args->device_snapshot.entry_size = (uint32_t)size;
	for (uint32_t i = 0; i < node->gpu_count && i < room; i++) {
		struct gp_kfd_device_snapshot entry = exception_device(&node->gpus[i]);

		entry.exception_status = target->devices[i].exception_status;
		target->devices[i].exception_status &= ~args->device_snapshot.exception_mask;
		if (size && gp_client_write(caller, args->device_snapshot.snapshot_buf_ptr + (uint64_t)i * stride,
					    &entry, size) < 0)
			return -EFAULT;
	}
	return 0;
}
