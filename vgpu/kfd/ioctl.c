/* SPDX-License-Identifier: MIT */
/*
 * The KFD ioctls: dispatch on the number alone, because sizes grow from version to version (a shorter argument is
 * extended by zeros, as the driver does it), and the calls whose answer comes later.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "vgpu/kfd/call.h"
#include "vgpu/kfd/debug.h"
#include "vgpu/kfd/event.h"
#include "vgpu/kfd/gate.h"
#include "vgpu/execute/execute.h"
#include "vgpu/node/fault.h"
#include "vgpu/node/memory.h"
#include "vgpu/node/process.h"
#include "vgpu/kfd/queue.h"
#include "vgpu/kfd/smi.h"
#include "vgpu/packet/work.h"

#define IOCTL_CLOCK_TRIES 8u
#define IOCTL_CLOCK_TICKS 200u /* 2 us */

static int ioctl_version(struct gp_vcall **call)
{
	struct kfd_ioctl_get_version_args *args = (void *)(*call)->arg;

	args->major_version = GP_KFD_MAJOR;
	args->minor_version =
		(*call)->process->node->params.values[GP_PARAM_KFD_SCHED] ? GP_KFD_SCHED_MINOR : GP_KFD_MINOR;
	return 0;
}

static int ioctl_create_queue(struct gp_vcall **call)
{
	return gp_vqueue_create(call, (void *)(*call)->arg);
}

static int ioctl_destroy_queue(struct gp_vcall **call)
{
	return gp_vqueue_destroy(call, ((struct kfd_ioctl_destroy_queue_args *)(void *)(*call)->arg)->queue_id, false);
}

static int ioctl_update_queue(struct gp_vcall **call)
{
	return gp_vqueue_update(call, (void *)(*call)->arg);
}

static int ioctl_set_cu_mask(struct gp_vcall **call)
{
	return gp_vqueue_set_cu_mask(call, (void *)(*call)->arg);
}

static int ioctl_set_gws(struct gp_vcall **call)
{
	return gp_vqueue_set_gws(call, (void *)(*call)->arg);
}

static int ioctl_smi(struct gp_vcall **call)
{
	struct kfd_ioctl_smi_events_args *args = (void *)(*call)->arg;

	return gp_smi_open(*call, args->gpuid, &args->anon_fd);
}

static int ioctl_memory_policy(struct gp_vcall **call)
{
	struct kfd_ioctl_set_memory_policy_args *args = (void *)(*call)->arg;

	if (args->default_policy > KFD_IOC_CACHE_POLICY_NONCOHERENT ||
	    args->alternate_policy > KFD_IOC_CACHE_POLICY_NONCOHERENT)
		return -EINVAL;
	return gp_vnode_gpu((*call)->process->node, args->gpu_id) ? 0 : -EINVAL;
}

static uint64_t ioctl_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* User space fits one clock to another through these: they are read again if something came between. */
static int ioctl_clocks(struct gp_vcall **call)
{
	struct kfd_ioctl_get_clock_counters_args *args = (void *)(*call)->arg;
	struct gp_vnode *node = (*call)->process->node;

	for (uint32_t i = 0; i < IOCTL_CLOCK_TRIES; i++) {
		uint64_t ticks = gp_vnode_ticks_now();

		args->system_clock_counter = ioctl_clock_ns(CLOCK_BOOTTIME);
		args->cpu_clock_counter = ioctl_clock_ns(CLOCK_MONOTONIC_RAW);
		args->gpu_clock_counter = gp_vnode_gpu(node, args->gpu_id) ? ticks : 0;
		if (gp_vnode_ticks_now() - ticks <= IOCTL_CLOCK_TICKS)
			break;
	}
	args->system_clock_freq = 1000000000u;
	return 0;
}

static void ioctl_aperture(const struct gp_vdev *gpu, struct kfd_process_device_apertures *ret_aperture)
{
	/* As gfx9 has them. */
	*ret_aperture = (struct kfd_process_device_apertures){
		.lds_base = GP_VM_LDS_BASE,
		.lds_limit = GP_VM_LDS_BASE + UINT32_MAX,
		.scratch_base = GP_VM_SCRATCH_BASE,
		.scratch_limit = GP_VM_SCRATCH_BASE + UINT32_MAX,
		.gpuvm_base = GP_VM_BASE,
		.gpuvm_limit = GP_VM_END - 1u,
		.gpu_id = gpu->gpu_id,
	};
}

static int ioctl_apertures(struct gp_vcall **call)
{
	struct kfd_ioctl_get_process_apertures_args *args = (void *)(*call)->arg;
	struct gp_vnode *node = (*call)->process->node;

	args->num_of_nodes = node->gpu_count < NUM_OF_SUPPORTED_GPUS ? node->gpu_count : NUM_OF_SUPPORTED_GPUS;
	for (uint32_t i = 0; i < args->num_of_nodes; i++)
		ioctl_aperture(&node->gpus[i], &args->process_apertures[i]);
	return 0;
}

static int ioctl_apertures_new(struct gp_vcall **call)
{
	struct kfd_ioctl_get_process_apertures_new_args *args = (void *)(*call)->arg;
	struct gp_vproc *process = (*call)->process;
	struct kfd_process_device_apertures apertures[GP_VNODE_GPU_MAX];

	if (!args->num_of_nodes) {
		args->num_of_nodes = process->node->gpu_count;
		return 0;
	}
	if (args->num_of_nodes > process->node->gpu_count)
		args->num_of_nodes = process->node->gpu_count;
	for (uint32_t i = 0; i < args->num_of_nodes; i++)
		ioctl_aperture(&process->node->gpus[i], &apertures[i]);
	return gp_client_write(process, args->kfd_process_device_apertures_ptr, apertures,
			       args->num_of_nodes * sizeof(apertures[0]));
}

static int ioctl_create_event(struct gp_vcall **call)
{
	return gp_vevent_create((*call)->process, (void *)(*call)->arg);
}

static int ioctl_destroy_event(struct gp_vcall **call)
{
	return gp_vevent_destroy((*call)->process,
				 ((struct kfd_ioctl_destroy_event_args *)(void *)(*call)->arg)->event_id);
}

static int ioctl_set_event(struct gp_vcall **call)
{
	return gp_vevent_set((*call)->process, ((struct kfd_ioctl_set_event_args *)(void *)(*call)->arg)->event_id);
}

static int ioctl_reset_event(struct gp_vcall **call)
{
	return gp_vevent_reset((*call)->process, ((struct kfd_ioctl_reset_event_args *)(void *)(*call)->arg)->event_id);
}

static int ioctl_gpu_only(struct gp_vcall **call, uint32_t gpu_id)
{
	return gp_vnode_gpu((*call)->process->node, gpu_id) ? 0 : -EINVAL;
}

static int ioctl_scratch(struct gp_vcall **call)
{
	return ioctl_gpu_only(call, ((struct kfd_ioctl_set_scratch_backing_va_args *)(void *)(*call)->arg)->gpu_id);
}

static int ioctl_trap_handler(struct gp_vcall **call)
{
	return ioctl_gpu_only(call, ((struct kfd_ioctl_set_trap_handler_args *)(void *)(*call)->arg)->gpu_id);
}

static int ioctl_tile_config(struct gp_vcall **call)
{
	struct kfd_ioctl_get_tile_config_args *args = (void *)(*call)->arg;

	args->num_tile_configs = args->num_macro_tile_configs = 0;
	args->gb_addr_config = 2;
	args->num_banks = args->num_ranks = 0;
	return ioctl_gpu_only(call, args->gpu_id);
}

static int ioctl_acquire_vm(struct gp_vcall **call)
{
	struct kfd_ioctl_acquire_vm_args *args = (void *)(*call)->arg;
	struct gp_vdev *gpu = gp_vnode_gpu((*call)->process->node, args->gpu_id);

	if (!gpu)
		return -EINVAL;
	(*call)->process->devices[gpu->index].vm = true;
	return 0;
}

static int ioctl_alloc(struct gp_vcall **call)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args *args = (void *)(*call)->arg;
	int r = gp_vbo_alloc((*call)->process, args);

	gp_vnode_log((*call)->process->node, 2, "process %d: alloc va 0x%llx size 0x%llx flags 0x%x: %d",
		     (*call)->process->pid, (unsigned long long)args->va_addr, (unsigned long long)args->size,
		     args->flags, r);
	return r;
}

static int ioctl_ipc_import(struct gp_vcall **call)
{
	return gp_vbo_import((*call)->process, (void *)(*call)->arg);
}

static int ioctl_ipc_export(struct gp_vcall **call)
{
	return gp_vbo_export((*call)->process, (void *)(*call)->arg);
}

static int ioctl_export_dmabuf(struct gp_vcall **call)
{
	return gp_vbo_export_dmabuf(*call, (void *)(*call)->arg);
}

static int ioctl_import_dmabuf(struct gp_vcall **call)
{
	return gp_vbo_import_dmabuf((*call)->process, (void *)(*call)->arg);
}

static int ioctl_dmabuf_info(struct gp_vcall **call)
{
	return gp_vbo_dmabuf_info((*call)->process, (void *)(*call)->arg);
}

static int ioctl_free(struct gp_vcall **call)
{
	return gp_vbo_free((*call)->process,
			   ((struct kfd_ioctl_free_memory_of_gpu_args *)(void *)(*call)->arg)->handle);
}

static int ioctl_map(struct gp_vcall **call)
{
	struct kfd_ioctl_map_memory_to_gpu_args *args = (void *)(*call)->arg;

	return gp_vbo_map((*call)->process, args->handle, args->device_ids_array_ptr, args->n_devices, true,
			  &args->n_success);
}

static int ioctl_unmap(struct gp_vcall **call)
{
	struct kfd_ioctl_unmap_memory_from_gpu_args *args = (void *)(*call)->arg;

	return gp_vbo_map((*call)->process, args->handle, args->device_ids_array_ptr, args->n_devices, false,
			  &args->n_success);
}

static int ioctl_xnack(struct gp_vcall **call)
{
	struct kfd_ioctl_set_xnack_mode_args *args = (void *)(*call)->arg;

	/* No recoverable faults on this node: asking is answered, wanting them is refused. */
	if (args->xnack_enabled > 0)
		return -EPERM;
	args->xnack_enabled = 0;
	return 0;
}

static int ioctl_available(struct gp_vcall **call)
{
	struct kfd_ioctl_get_available_memory_args *args = (void *)(*call)->arg;
	struct gp_vdev *gpu = gp_vnode_gpu((*call)->process->node, args->gpu_id);

	if (!gpu)
		return -EINVAL;
	args->available = gp_range_free_size(&gpu->vram);
	return 0;
}

static int ioctl_wave_state(struct gp_vcall **call)
{
	return gp_execute_wave_state((*call)->process, (void *)(*call)->arg);
}

static int ioctl_runtime_enable(struct gp_vcall **call)
{
	return gp_debug_runtime(call);
}

static int ioctl_dbg_trap(struct gp_vcall **call)
{
	return gp_debug_trap(call);
}

static int ioctl_criu(struct gp_vcall **call)
{
	return gp_debug_criu(call);
}

typedef int (*ioctl_handler)(struct gp_vcall **call);

/* What is not here (SVM, the debug calls before 1.13) is refused with EINVAL. */
static const struct {
	ioctl_handler handler;
	size_t size_min;
} ioctl_table[] = {
	[0x01] = { ioctl_version, sizeof(struct kfd_ioctl_get_version_args) },
	[0x02] = { ioctl_create_queue, sizeof(struct kfd_ioctl_create_queue_args) },
	[0x03] = { ioctl_destroy_queue, sizeof(struct kfd_ioctl_destroy_queue_args) },
	[0x04] = { ioctl_memory_policy, sizeof(struct kfd_ioctl_set_memory_policy_args) },
	[0x05] = { ioctl_clocks, sizeof(struct kfd_ioctl_get_clock_counters_args) },
	[0x06] = { ioctl_apertures, sizeof(struct kfd_ioctl_get_process_apertures_args) },
	[0x07] = { ioctl_update_queue, sizeof(struct kfd_ioctl_update_queue_args) },
	[0x08] = { ioctl_create_event, sizeof(struct kfd_ioctl_create_event_args) },
	[0x09] = { ioctl_destroy_event, sizeof(struct kfd_ioctl_destroy_event_args) },
	[0x0a] = { ioctl_set_event, sizeof(struct kfd_ioctl_set_event_args) },
	[0x0b] = { ioctl_reset_event, sizeof(struct kfd_ioctl_reset_event_args) },
	[0x0c] = { gp_vevent_wait, sizeof(struct kfd_ioctl_wait_events_args) },
	[0x11] = { ioctl_scratch, sizeof(struct kfd_ioctl_set_scratch_backing_va_args) },
	[0x12] = { ioctl_tile_config, sizeof(struct kfd_ioctl_get_tile_config_args) },
	[0x13] = { ioctl_trap_handler, sizeof(struct kfd_ioctl_set_trap_handler_args) },
	[0x14] = { ioctl_apertures_new, sizeof(struct kfd_ioctl_get_process_apertures_new_args) },
	[0x15] = { ioctl_acquire_vm, sizeof(struct kfd_ioctl_acquire_vm_args) },
	[0x16] = { ioctl_alloc, sizeof(struct kfd_ioctl_alloc_memory_of_gpu_args) },
	[0x17] = { ioctl_free, sizeof(struct kfd_ioctl_free_memory_of_gpu_args) },
	[0x18] = { ioctl_map, sizeof(struct kfd_ioctl_map_memory_to_gpu_args) },
	[0x19] = { ioctl_unmap, sizeof(struct kfd_ioctl_unmap_memory_from_gpu_args) },
	[0x1a] = { ioctl_set_cu_mask, sizeof(struct kfd_ioctl_set_cu_mask_args) },
	[0x1b] = { ioctl_wave_state, sizeof(struct kfd_ioctl_get_queue_wave_state_args) },
	[0x1c] = { ioctl_dmabuf_info, sizeof(struct kfd_ioctl_get_dmabuf_info_args) },
	[0x1d] = { ioctl_import_dmabuf, sizeof(struct kfd_ioctl_import_dmabuf_args) },
	[0x1e] = { ioctl_set_gws, sizeof(struct kfd_ioctl_alloc_queue_gws_args) },
	[0x1f] = { ioctl_smi, sizeof(struct kfd_ioctl_smi_events_args) },
	[0x21] = { ioctl_xnack, sizeof(struct kfd_ioctl_set_xnack_mode_args) },
	[0x22] = { ioctl_criu, sizeof(struct kfd_ioctl_criu_args) },
	[0x23] = { ioctl_available, sizeof(struct kfd_ioctl_get_available_memory_args) },
	[GP_KFD_NR_EXPORT_DMABUF] = { ioctl_export_dmabuf, sizeof(struct gp_kfd_export_dmabuf) },
	[GP_KFD_NR_RUNTIME_ENABLE] = { ioctl_runtime_enable, sizeof(struct gp_kfd_runtime_enable) },
	[GP_KFD_NR_IPC_IMPORT] = { ioctl_ipc_import, sizeof(struct gp_kfd_ipc_import) },
	[GP_KFD_NR_IPC_EXPORT] = { ioctl_ipc_export, sizeof(struct gp_kfd_ipc_export) },
	[GP_KFD_NR_DBG_TRAP] = { ioctl_dbg_trap, sizeof(struct gp_kfd_dbg_trap) },
	[GP_KFD_NR_SCHED] = { gp_gate_ioctl, sizeof(struct gp_kfd_sched) },
};

/* The descriptor belongs to the process that opened it; a tracer may use it for checkpointing only. */
static bool ioctl_may(const struct gp_vcall *call)
{
	return gp_vproc_has_thread(call->process, call->thread) ||
	       (_IOC_NR(call->command) == 0x22u && gp_debug_is_tracer(call->process, call->thread));
}

int gp_vcall_ioctl(struct gp_vcall **call_slot, enum gp_vfile file)
{
	struct gp_vcall *call = *call_slot;
	struct gp_vnode *node = call->process->node;
	uint32_t number = _IOC_NR(call->command), type = _IOC_TYPE(call->command);
	int r;

	node->counters.ioctls++;
	node->busy_ns = node->now_ns;
	memset(call->arg + call->arg_size, 0, sizeof(call->arg) - call->arg_size);
	if (file >= GP_VFILE_RENDER) {
		r = type == 'd' ? gp_vcall_drm(call_slot, &node->gpus[file - GP_VFILE_RENDER]) : -ENOTTY;
	} else if (type != 'K') {
		r = -ENOTTY;
	} else if (number >= sizeof(ioctl_table) / sizeof(ioctl_table[0]) || !ioctl_table[number].handler) {
		r = -EINVAL;
	} else if (gp_fault_ioctl(node)) {
		r = -EIO;
	} else if (!ioctl_may(call)) {
		r = -EBADF;
	} else {
		r = ioctl_table[number].handler(call_slot);
	}
	if (r < 0)
		gp_vnode_log(node, 2, "ioctl %c/%02x size %u: %d", (char)type, number, _IOC_SIZE(call->command), r);
	return r;
}

/* Calls whose answer comes later. */

void gp_vcall_free(struct gp_vcall *call)
{
	free(call->event_ids);
	free(call->event_ages);
	free(call->event_marks);
	free(call->queue_ids);
	free(call->gates);
	free(call);
}

void gp_vcall_keep(struct gp_vnode *node, struct gp_vcall **call_slot, enum gp_vcall_kind kind)
{
	struct gp_vcall *call = *call_slot;

	*call_slot = NULL;
	call->kind = kind;
	if (kind != GP_VCALL_WAIT_EVENTS)
		call->deadline_ns = UINT64_MAX;
	call->next = node->calls;
	node->calls = call;
}

void gp_vcall_finish(struct gp_vnode *node, struct gp_vcall *call, int result)
{
	struct gp_vcall **link = &node->calls;

	while (*link && *link != call)
		link = &(*link)->next;
	if (*link)
		*link = call->next;
	node->complete(node, call, result);
	gp_vcall_free(call);
}

void gp_vcall_interrupt(struct gp_vnode *node, uint64_t token)
{
	for (struct gp_vcall *call = node->calls; call; call = call->next)
		if (call->token == token) {
			if (call->kind == GP_VCALL_TRANSACTION)
				return;
			if (call->kind == GP_VCALL_DESTROY_QUEUE && call->process) {
				struct gp_vqueue *queue = gp_vqueue_find(call->process, call->queue_id);

				if (queue)
					queue->being_destroyed = false;
			}
			if (call->kind == GP_VCALL_RUNTIME && call->process)
				call->process->runtime_retry = true;
			if (call->kind == GP_VCALL_WAIT_EVENTS)
				gp_vevent_wait_undo(call);
			gp_vcall_finish(node, call, -EINTR);
			return;
		}
}

static bool call_is_over(struct gp_vcall *call, uint64_t now_ns)
{
	struct gp_vqueue *queue;

	if (!call->process && call->kind != GP_VCALL_TRANSACTION)
		return true;
	switch (call->kind) {
	case GP_VCALL_WAIT_EVENTS: return gp_vevent_wait_done(call, now_ns);
	case GP_VCALL_TRANSACTION:
		/* Stopped work stands still: what it did until then is there for the caller to see. */
		if (call->outstanding || (call->target && gp_work_is_behind(call->target)) ||
		    (call->process && gp_work_is_behind(call->process)))
			return false;
		if (call->done)
			call->done(call);
		return true;
	case GP_VCALL_DESTROY_QUEUE:
		queue = gp_vqueue_find(call->process, call->queue_id);
		if (queue && queue->suspended)
			return false;
		if (!queue || gp_vqueue_destroy_begin(call, queue) == 0)
			return true;
		call->kind = GP_VCALL_TRANSACTION;
		return false;
	case GP_VCALL_RUNTIME: return gp_debug_runtime_over(call);
	}
	return true;
}

void gp_vcall_turn(struct gp_vnode *node)
{
	struct gp_vcall *call = node->calls;

	while (call) {
		/* Deciding one may change others, never take them out of the list. */
		struct gp_vcall *next = call->next;

		if (call_is_over(call, node->now_ns))
			gp_vcall_finish(node, call, call->result);
		call = next;
	}
}

uint64_t gp_vcall_deadline_ns(const struct gp_vnode *node)
{
	uint64_t deadline_ns = UINT64_MAX;

	for (const struct gp_vcall *call = node->calls; call; call = call->next)
		if (call->deadline_ns < deadline_ns)
			deadline_ns = call->deadline_ns;
	return deadline_ns;
}
