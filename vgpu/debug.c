/* SPDX-License-Identifier: MIT */
/*
 * Runtime enable, the debugger's calls and the checkpoint pause, by the rules of Linux 6.12 (kfd_chardev.c,
 * kfd_debug.c, kfd_device_queue_manager.c): who may, when, and with which errno. Suspending is one transaction per GPU
 * for the whole set.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/cleanup.h"
#include "vgpu/call.h"
#include "vgpu/debug.h"
#include "vgpu/memory.h"
#include "vgpu/process.h"
#include "vgpu/queue.h"

#define DEBUG_CAP_SYS_ADMIN          21
#define DEBUG_CAP_CHECKPOINT_RESTORE 40
#define DEBUG_RUNTIME_STATE_ENABLED  1u

static uint64_t debug_status_field(pid_t pid, const char *name, int base)
{
	char path[64], line[256];
	uint64_t value = 0;
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	stream = fopen(path, "re");
	if (!stream)
		return 0;
	while (fgets(line, sizeof(line), stream))
		if (!strncmp(line, name, strlen(name))) {
			value = strtoull(line + strlen(name), NULL, base);
			break;
		}
	fclose(stream);
	return value;
}

bool gp_debug_is_tracer(const struct gp_vproc *process, pid_t thread)
{
	pid_t tracer = (pid_t)debug_status_field(process->pid, "TracerPid:", 10);

	return tracer && tracer == thread;
}

/* Runtime. */

int gp_debug_runtime(struct gp_vcall **call)
{
	struct gp_vproc *process = (*call)->process;
	struct gp_kfd_runtime_enable *args = (void *)(*call)->arg;

	if (args->mode_mask & GP_KFD_RUNTIME_MODE_ENABLE) {
		if (process->runtime_enabled)
			return -EBUSY;
		if (process->queue_count)
			return -EEXIST;
		process->runtime_enabled = true;
		process->runtime_r_debug = args->r_debug;
		args->capabilities_mask = 0;
		return 0;
	}
	if (!process->runtime_enabled)
		return 0;
	process->runtime_enabled = false;
	if (!process->debug_enabled)
		return 0;
	/* The debugger must have seen it before the runtime may go on. */
	(*call)->result = 0;
	gp_vcall_keep(process->node, call, GP_VCALL_RUNTIME_DISABLE);
	return GP_VCALL_LATER;
}

/* All queues of a process whose gate is not what it should be. */
static int debug_transact_all(struct gp_vproc *process, struct gp_vcall *call)
{
	static struct gp_vqueue *queues[GP_VPROC_QUEUE_MAX];
	uint32_t count = 0;

	for (uint32_t id = 0; id < GP_VPROC_QUEUE_MAX; id++)
		if (process->queues[id])
			queues[count++] = process->queues[id];
	return gp_vqueue_transact(queues, count, call);
}

static void debug_deactivate(struct gp_vproc *target)
{
	bool any = false;

	for (uint32_t id = 0; id < GP_VPROC_QUEUE_MAX; id++)
		if (target->queues[id] && target->queues[id]->suspended) {
			target->queues[id]->suspended = false;
			any = true;
		}
	if (any)
		debug_transact_all(target, NULL);
	target->debug_enabled = false;
	target->debugger = NULL;
	target->exception_mask = 0;
}

void gp_debug_process_gone(struct gp_vproc *process)
{
	/* The kernel's own safety net: when a debugging process dies, everything it suspended runs again. */
	for (struct gp_vproc *target = process->node->processes; target; target = target->next)
		if (target != process && target->debugger == process)
			debug_deactivate(target);
}

/* DBG_TRAP. */

static int debug_enable(struct gp_vproc *caller, struct gp_vproc *target, struct gp_kfd_dbg_trap *args)
{
	struct gp_kfd_runtime_info info = { target->runtime_r_debug,
					    target->runtime_enabled ? DEBUG_RUNTIME_STATE_ENABLED : 0, 0 };
	uint32_t size = args->enable.rinfo_size < sizeof(info) ? args->enable.rinfo_size : sizeof(info);

	if (target->debug_enabled)
		return -EALREADY;
	if (size && gp_client_write(caller, args->enable.rinfo_ptr, &info, size) < 0)
		return -EFAULT;
	args->enable.rinfo_size = sizeof(info);
	target->debug_enabled = true;
	target->debugger = target == caller ? NULL : caller;
	target->exception_mask = args->enable.exception_mask;
	return 0;
}

/* A queue the debugger has not acknowledged (EC_QUEUE_NEW) cannot be suspended, whatever mask the call clears. */
static bool debug_suspend_one(struct gp_vqueue *queue)
{
	if (!queue || queue->is_new || queue->being_destroyed || queue->gws)
		return false;
	queue->suspended = true;
	return true;
}

static int debug_read_ids(struct gp_vproc *caller, uint64_t address, uint32_t count, uint32_t **ret_ids)
{
	GP_AUTO_FREE uint32_t *ids = NULL;

	if (count > GP_VPROC_QUEUE_MAX)
		return -EINVAL;
	ids = calloc(count ? count : 1u, sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	if (count && gp_client_read(caller, address, ids, count * sizeof(*ids)) < 0)
		return -EFAULT;
	*ret_ids = GP_TAKE(ids);
	return 0;
}

/* A whole set changes in one transaction per GPU; the answer comes when the last of them is through. */
static int debug_change(struct gp_vcall **call_slot, struct gp_vproc *target, struct gp_vqueue **queues,
			uint32_t changed)
{
	struct gp_vcall *call = *call_slot;
	struct gp_vnode *node = call->process->node;
	int r;

	call->target = target;
	call->result = (int)changed;
	if (!changed) {
		gp_debug_answer(call);
		return (int)changed;
	}
	r = gp_vqueue_transact(queues, changed, call);
	if (r < 0)
		return r;
	gp_vcall_keep(node, call_slot, GP_VCALL_TRANSACTION);
	return GP_VCALL_LATER;
}

static int debug_suspend(struct gp_vcall **call_slot, struct gp_vproc *target, const struct gp_kfd_dbg_trap *args)
{
	static struct gp_vqueue *queues[GP_VPROC_QUEUE_MAX];
	struct gp_vcall *call = *call_slot;
	uint32_t changed = 0;
	int r = debug_read_ids(call->process, args->suspend.queue_array_ptr, args->suspend.num_queues,
			       &call->queue_ids);

	if (r < 0)
		return r;
	call->queue_count = args->suspend.num_queues;
	call->queue_array = args->suspend.queue_array_ptr;
	for (uint32_t i = 0; i < call->queue_count; i++) {
		struct gp_vqueue *queue = gp_vqueue_find(target, call->queue_ids[i]);

		/* A queue named twice is changed once. */
		if (queue && queue->suspended && !queue->is_new)
			continue;
		if (debug_suspend_one(queue))
			queues[changed++] = queue;
		else
			call->queue_ids[i] |= GP_KFD_QUEUE_INVALID;
	}
	return debug_change(call_slot, target, queues, changed);
}

static int debug_resume(struct gp_vcall **call_slot, struct gp_vproc *target, const struct gp_kfd_dbg_trap *args)
{
	static struct gp_vqueue *queues[GP_VPROC_QUEUE_MAX];
	struct gp_vcall *call = *call_slot;
	uint32_t changed = 0;
	int r;

	if (!args->resume.num_queues || !args->resume.queue_array_ptr) {
		for (uint32_t id = 0; id < GP_VPROC_QUEUE_MAX; id++)
			if (target->queues[id] && target->queues[id]->suspended)
				queues[changed++] = target->queues[id];
	} else {
		r = debug_read_ids(call->process, args->resume.queue_array_ptr, args->resume.num_queues,
				   &call->queue_ids);
		if (r < 0)
			return r;
		call->queue_count = args->resume.num_queues;
		call->queue_array = args->resume.queue_array_ptr;
		for (uint32_t i = 0; i < call->queue_count; i++) {
			struct gp_vqueue *queue = gp_vqueue_find(target, call->queue_ids[i]);
			bool again = false;

			for (uint32_t j = 0; j < changed; j++)
				again |= queues[j] == queue;
			if (again)
				continue;
			if (queue && queue->suspended)
				queues[changed++] = queue;
			else if (!queue)
				call->queue_ids[i] |= GP_KFD_QUEUE_INVALID;
		}
	}
	for (uint32_t i = 0; i < changed; i++)
		queues[i]->suspended = false;
	return debug_change(call_slot, target, queues, changed);
}

void gp_debug_answer(struct gp_vcall *call)
{
	if (!call->queue_ids || !call->process)
		return;
	/* The device could not stop: every queue that was to change carries the error bit, and runs on. */
	if (call->result < 0) {
		for (uint32_t i = 0; i < call->queue_count; i++) {
			struct gp_vqueue *queue =
				call->target ? gp_vqueue_find(call->target, call->queue_ids[i]) : NULL;

			if (queue) {
				queue->suspended = false;
				call->queue_ids[i] |= GP_KFD_QUEUE_ERROR;
			}
		}
		call->result = 0;
	}
	if (gp_client_write(call->process, call->queue_array, call->queue_ids,
			    call->queue_count * sizeof(call->queue_ids[0])) < 0)
		call->result = -EFAULT;
}

static int debug_snapshot(struct gp_vproc *caller, struct gp_vproc *target, struct gp_kfd_dbg_trap *args)
{
	uint32_t room = args->queue_snapshot.num_queues, size = args->queue_snapshot.entry_size, written = 0;

	if (!size)
		return -EINVAL;
	if (size > sizeof(struct gp_kfd_queue_snapshot))
		size = sizeof(struct gp_kfd_queue_snapshot);
	for (uint32_t id = 0; id < GP_VPROC_QUEUE_MAX && written < room; id++) {
		struct gp_vqueue *queue = target->queues[id];
		struct gp_kfd_queue_snapshot entry;

		if (!queue)
			continue;
		entry = (struct gp_kfd_queue_snapshot){
			.exception_status = queue->is_new ? GP_KFD_EC_QUEUE_NEW : 0,
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
		if (gp_client_write(caller,
				    args->queue_snapshot.snapshot_buf_ptr +
					    (uint64_t)written * args->queue_snapshot.entry_size,
				    &entry, size) < 0)
			return -EFAULT;
		if (args->queue_snapshot.exception_mask & GP_KFD_EC_QUEUE_NEW)
			queue->is_new = false;
		written++;
	}
	args->queue_snapshot.num_queues = target->queue_count;
	args->queue_snapshot.entry_size = size;
	return 0;
}

static int debug_query_event(struct gp_vproc *target, struct gp_kfd_dbg_trap *args)
{
	for (uint32_t id = 0; id < GP_VPROC_QUEUE_MAX; id++) {
		struct gp_vqueue *queue = target->queues[id];

		if (!queue || !queue->is_new || !(target->exception_mask & GP_KFD_EC_QUEUE_NEW))
			continue;
		if (args->query_event.exception_mask & GP_KFD_EC_QUEUE_NEW)
			queue->is_new = false;
		args->query_event.exception_mask = GP_KFD_EC_QUEUE_NEW;
		args->query_event.queue_id = id;
		args->query_event.gpu_id = queue->gpu->gpu_id;
		return 0;
	}
	return -EAGAIN;
}

static int debug_send_runtime_event(struct gp_vproc *target, const struct gp_kfd_dbg_trap *args)
{
	struct gp_vnode *node = target->node;

	if (!(args->send_runtime_event.exception_mask & GP_KFD_EC_PROCESS_RUNTIME))
		return 0;
	for (struct gp_vcall *call = node->calls; call; call = call->next)
		if (call->kind == GP_VCALL_RUNTIME_DISABLE && call->process == target) {
			gp_vcall_finish(node, call, 0);
			return 0;
		}
	return 0;
}

static bool debug_needs_runtime(uint32_t op)
{
	return op >= GP_KFD_DBG_SET_WAVE_LAUNCH_OVERRIDE && op <= GP_KFD_DBG_SET_FLAGS;
}

/* Finds the target and says whether the caller may. */
static int debug_target(struct gp_vcall *call, const struct gp_kfd_dbg_trap *args, struct gp_vproc **ret_target)
{
	struct gp_vproc *caller = call->process, *target = gp_vproc_find(caller->node, (pid_t)args->pid);
	bool traced;

	if (!target && args->op == GP_KFD_DBG_ENABLE && args->pid && (int32_t)args->pid > 0 &&
	    (pid_t)debug_status_field((pid_t)args->pid, "TracerPid:", 10) == call->thread) {
		/* A tracer may debug a process that has not opened the device yet. It stays known until it exits. */
		if (gp_vproc_open(caller->node, (pid_t)args->pid, &target) < 0)
			return -ESRCH;
	}
	if (!target)
		return -ESRCH;
	traced = target == caller || gp_debug_is_tracer(target, call->thread);
	if (args->op == GP_KFD_DBG_ENABLE ? !traced : !traced && target->debugger != caller)
		return -EPERM;
	if (args->op != GP_KFD_DBG_ENABLE && !target->debug_enabled)
		return -EINVAL;
	if (!target->runtime_enabled && debug_needs_runtime(args->op))
		return -EPERM;
	*ret_target = target;
	return 0;
}

int gp_debug_trap(struct gp_vcall **call)
{
	struct gp_kfd_dbg_trap *args = (void *)(*call)->arg;
	struct gp_vproc *target;
	int r = debug_target(*call, args, &target);

	if (r < 0)
		return r;
	switch (args->op) {
	case GP_KFD_DBG_ENABLE: return debug_enable((*call)->process, target, args);
	case GP_KFD_DBG_DISABLE: debug_deactivate(target); return 0;
	case GP_KFD_DBG_SEND_RUNTIME_EVENT: return debug_send_runtime_event(target, args);
	case GP_KFD_DBG_SET_EXCEPTIONS_ENABLED:
		target->exception_mask = args->set_exceptions_enabled.exception_mask;
		return 0;
	case GP_KFD_DBG_SUSPEND_QUEUES: return debug_suspend(call, target, args);
	case GP_KFD_DBG_RESUME_QUEUES: return debug_resume(call, target, args);
	case GP_KFD_DBG_QUERY_DEBUG_EVENT: return debug_query_event(target, args);
	case GP_KFD_DBG_GET_QUEUE_SNAPSHOT: return debug_snapshot((*call)->process, target, args);
	default:
		/* Wave launch, address watch, flags, device snapshot: there are no waves to look at. */
		return -EINVAL;
	}
}

/* CRIU_OP: PROCESS_INFO pauses, UNPAUSE lets go. */

static bool debug_may_checkpoint(pid_t thread)
{
	uint64_t capabilities = debug_status_field(thread, "CapEff:", 16);

	return capabilities >> DEBUG_CAP_SYS_ADMIN & 1u || capabilities >> DEBUG_CAP_CHECKPOINT_RESTORE & 1u;
}

int gp_debug_criu(struct gp_vcall **call_slot)
{
	struct gp_vcall *call = *call_slot;
	struct gp_vproc *process = call->process;
	struct kfd_ioctl_criu_args *args = (void *)call->arg;
	int r;

	if (!debug_may_checkpoint(call->thread))
		return -EPERM;
	if (args->op == KFD_CRIU_OP_PROCESS_INFO) {
		/* Counted, as the driver counts evictions: two pauses need two restores, and UNPAUSE gives one. */
		process->evicted++;
		process->criu_paused = true;
		args->pid = (uint32_t)process->pid;
		args->num_devices = process->node->gpu_count;
		args->num_bos = process->bo_count;
		args->num_objects = process->queue_count;
		args->priv_data_size = 0;
	} else if (args->op == KFD_CRIU_OP_UNPAUSE) {
		if (!process->criu_paused)
			return -EINVAL;
		process->criu_paused = false;
		process->evicted--;
	} else {
		return -EINVAL;
	}
	call->result = 0;
	r = debug_transact_all(process, call);
	if (r <= 0)
		return r;
	gp_vcall_keep(process->node, call_slot, GP_VCALL_TRANSACTION);
	return GP_VCALL_LATER;
}
