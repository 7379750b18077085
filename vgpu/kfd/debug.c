/* SPDX-License-Identifier: MIT */
/*
 * Runtime enable and the debugger's calls, by the rules of Linux 6.12 (kfd_chardev.c, kfd_debug.c,
 * kfd_device_queue_manager.c): who may, when, and with which errno. Suspending is one transaction per GPU for the whole
 * set; attaching and detaching refresh the runlist of every GPU.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/cleanup.h"
#include "vgpu/kfd/call.h"
#include "vgpu/kfd/debug.h"
#include "vgpu/kfd/exception.h"
#include "vgpu/node/memory.h"
#include "vgpu/node/process.h"
#include "vgpu/kfd/queue.h"
#include "vgpu/node/transaction.h"

#define DEBUG_CAP_SYS_ADMIN 21
/* What leaving the debug state costs beyond the resume: kfd_dbg_trap_deactivate() refreshes the runlist of each GPU for
 * the wave launch mode, for the flags, and once more at the end. */
#define DEBUG_REFRESHES 3u

uint64_t gp_debug_status_field(pid_t pid, const char *name, int base)
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
	pid_t tracer = (pid_t)gp_debug_status_field(process->pid, "TracerPid:", 10);

	return tracer && tracer == thread;
}

bool gp_debug_is_admin(pid_t thread)
{
	return gp_debug_status_field(thread, "CapEff:", 16) >> DEBUG_CAP_SYS_ADMIN & 1u;
}

static void debug_refresh(struct gp_vproc *process, uint32_t times, struct gp_vcall *call)
{
	for (uint32_t i = 0; i < times; i++)
		for (uint32_t g = 0; g < process->node->gpu_count; g++)
			gp_vtransaction_refresh(&process->node->gpus[g], call);
}

/* Everything runs again. */
static void debug_deactivate(struct gp_vproc *target, struct gp_vcall *call)
{
	static struct gp_vqueue *queues[GP_VPROC_QUEUE_MAX];
	uint32_t count = 0;

	for (uint32_t id = 0; id < GP_VPROC_QUEUE_MAX; id++)
		if (target->queues[id]) {
			target->queues[id]->suspended = false;
			queues[count++] = target->queues[id];
		}
	gp_vtransaction_change(queues, count, call);
	debug_refresh(target, DEBUG_REFRESHES, call);
}

static void debug_disable(struct gp_vproc *target, struct gp_vcall *call)
{
	if (target->runtime_enabled)
		debug_deactivate(target, call);
	if (target->debug_fd >= 0)
		close(target->debug_fd);
	target->debug_fd = -1;
	target->debugger = NULL;
	target->debug_enabled = false;
	target->exception_mask = 0;
	gp_exception_clear(target);
}

void gp_debug_process_gone(struct gp_vproc *process)
{
	/* The kernel's own safety net: when a debugging process dies, everything it suspended runs again. */
	for (struct gp_vproc *target = process->node->processes; target; target = target->next)
		if (target != process && target->debugger == process)
			debug_disable(target, NULL);
}

/* Waits for what is outstanding, if anything is. */
static int debug_keep(struct gp_vcall **call_slot)
{
	if (!(*call_slot)->outstanding)
		return (*call_slot)->result;
	gp_vcall_keep((*call_slot)->process->node, call_slot, GP_VCALL_TRANSACTION);
	return GP_VCALL_LATER;
}

/* Runtime. */

static int debug_runtime_wait(struct gp_vcall **call_slot)
{
	struct gp_vcall *call = *call_slot;

	if (!call->process->runtime_retry)
		gp_exception_raise(call->process, GP_KFD_EC_PROCESS_RUNTIME, NULL, NULL);
	gp_vcall_keep(call->process->node, call_slot, GP_VCALL_RUNTIME);
	return GP_VCALL_LATER;
}

static int debug_runtime_enable(struct gp_vcall **call_slot, const struct gp_kfd_runtime_enable *args)
{
	struct gp_vproc *process = (*call_slot)->process;

	if (!process->runtime_retry) {
		if (process->runtime_enabled)
			return -EBUSY;
		if (process->queue_count)
			return -EEXIST;
		process->runtime_enabled = true;
		process->runtime_r_debug = args->r_debug;
		process->runtime_ttmp = args->mode_mask & GP_KFD_RUNTIME_MODE_TTMP;
	}
	if (!process->debug_enabled) {
		process->runtime_retry = false;
		return 0;
	}
	if (!process->runtime_retry)
		debug_refresh(process, 1, NULL);
	return debug_runtime_wait(call_slot);
}

int gp_debug_runtime(struct gp_vcall **call)
{
	struct gp_vproc *process = (*call)->process;
	struct gp_kfd_runtime_enable *args = (void *)(*call)->arg;
	bool was = process->runtime_enabled;

	(*call)->result = 0;
	if (args->mode_mask & GP_KFD_RUNTIME_MODE_ENABLE)
		return debug_runtime_enable(call, args);
	process->runtime_enabled = false;
	process->runtime_r_debug = 0;
	/* The debugger must have seen it before the runtime may go on. */
	if (process->debug_enabled) {
		if (was)
			debug_deactivate(process, NULL);
		return debug_runtime_wait(call);
	}
	process->runtime_retry = false;
	debug_refresh(process, 1, *call);
	return debug_keep(call);
}

bool gp_debug_runtime_over(struct gp_vcall *call)
{
	const struct gp_kfd_runtime_enable *args = (const void *)call->arg;
	struct gp_vproc *process = call->process;

	/* A semaphore in the driver: leave that was given before is remembered, and detaching gives none. */
	if (!process->runtime_leave)
		return false;
	process->runtime_leave--;
	process->runtime_retry = false;
	if (args->mode_mask & GP_KFD_RUNTIME_MODE_ENABLE)
		return true;
	debug_refresh(process, 1, call);
	call->kind = GP_VCALL_TRANSACTION;
	return !call->outstanding;
}

/* DBG_TRAP. */

static int debug_enable(struct gp_vcall **call, struct gp_vproc *target, struct gp_kfd_dbg_trap *args)
{
	struct gp_vproc *caller = (*call)->process;
	struct gp_kfd_runtime_info info = { target->runtime_r_debug, target->runtime_enabled, target->runtime_ttmp };
	uint32_t size = args->enable.rinfo_size < sizeof(info) ? args->enable.rinfo_size : sizeof(info);
	int fd;

	/* Before anything is checked, as the driver has it: who comes second is refused, and is the debugger. */
	if (target != caller)
		target->debugger = caller;
	if (target->debug_enabled)
		return -EALREADY;
	fd = gp_vproc_getfd(caller, (int)args->enable.dbg_fd);
	if (fd < 0)
		return errno == EPERM ? -EPERM : -EBADF;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (size && gp_client_write(caller, args->enable.rinfo_ptr, &info, size) < 0) {
		close(fd);
		return -EFAULT;
	}
	args->enable.rinfo_size = sizeof(info);
	target->debug_enabled = true;
	target->debug_fd = fd;
	target->exception_mask = args->enable.exception_mask;
	if (target->runtime_enabled)
		debug_refresh(target, 1, *call);
	return debug_keep(call);
}

static int debug_read_ids(struct gp_vcall *call, uint64_t address, uint32_t count)
{
	GP_AUTO_FREE uint32_t *ids = NULL;

	if (!address ? count : count > GP_VPROC_QUEUE_MAX)
		return -EINVAL;
	ids = calloc(count ? count : 1u, sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	if (count && gp_client_read(call->process, address, ids, count * sizeof(*ids)) < 0)
		return -EFAULT;
	/* Invalid until found to be otherwise. */
	for (uint32_t i = 0; i < count; i++)
		ids[i] |= GP_KFD_QUEUE_INVALID;
	call->queue_ids = GP_TAKE(ids);
	call->queue_count = count;
	call->queue_array = address;
	return 0;
}

/* Where the client named the queue; a second mention stays invalid. NULL: not at all. */
static uint32_t *debug_find_id(struct gp_vcall *call, uint32_t id)
{
	for (uint32_t i = 0; i < call->queue_count; i++)
		if ((call->queue_ids[i] & ~GP_KFD_QUEUE_INVALID) == id)
			return &call->queue_ids[i];
	return NULL;
}

/* After the transactions: what failed on a GPU failed for all its queues that were named, and is not counted. */
static void debug_change_done(struct gp_vcall *call)
{
	int total = 0;

	for (uint32_t id = 0; call->target && call->queue_ids && id < GP_VPROC_QUEUE_MAX; id++) {
		struct gp_vqueue *queue = call->target->queues[id];
		uint32_t *entry = queue && call->changed[queue->gpu->index] ? debug_find_id(call, id) : NULL;

		if (!entry)
			continue;
		if (call->failed & 1u << queue->gpu->index)
			*entry |= GP_KFD_QUEUE_ERROR;
		else
			queue->exception_status &= ~call->clear_mask;
	}
	for (uint32_t g = 0; g < GP_VNODE_GPU_MAX; g++)
		if (!(call->failed & 1u << g))
			total += (int)call->changed[g];
	call->result = total;
	/* A result that cannot be written changes nothing for the driver either. */
	if (call->process && call->queue_ids && call->queue_count)
		(void)!gp_client_write(call->process, call->queue_array, call->queue_ids,
				       call->queue_count * sizeof(call->queue_ids[0]));
}

static int debug_change(struct gp_vcall **call_slot, struct gp_vproc *target, struct gp_vqueue **queues, uint32_t count)
{
	struct gp_vcall *call = *call_slot;
	int r;

	call->target = target;
	call->done = debug_change_done;
	r = gp_vtransaction_change(queues, count, call);
	if (r < 0)
		return r;
	if (!call->outstanding)
		debug_change_done(call);
	return debug_keep(call_slot);
}

/* Queues that are suspended already count, and cost, as those that are not. */
static int debug_suspend(struct gp_vcall **call_slot, struct gp_vproc *target, const struct gp_kfd_dbg_trap *args)
{
	static struct gp_vqueue *queues[GP_VPROC_QUEUE_MAX];
	struct gp_vcall *call = *call_slot;
	uint32_t count = 0;
	int r = debug_read_ids(call, args->suspend.queue_array_ptr, args->suspend.num_queues);

	if (r < 0)
		return r;
	call->clear_mask = args->suspend.exception_mask;
	for (uint32_t id = 0; id < GP_VPROC_QUEUE_MAX; id++) {
		struct gp_vqueue *queue = target->queues[id];
		uint32_t *entry = queue && !queue->is_user ? debug_find_id(call, id) : NULL;

		if (!entry)
			continue;
		if (!queue->suspended && (queue->exception_status & GP_KFD_EC_QUEUE_NEW || queue->being_destroyed))
			continue;
		queue->suspended = true;
		*entry &= ~GP_KFD_QUEUE_INVALID;
		call->changed[queue->gpu->index]++;
		queues[count++] = queue;
	}
	return debug_change(call_slot, target, queues, count);
}

static int debug_resume(struct gp_vcall **call_slot, struct gp_vproc *target, const struct gp_kfd_dbg_trap *args)
{
	static struct gp_vqueue *queues[GP_VPROC_QUEUE_MAX];
	struct gp_vcall *call = *call_slot;
	uint32_t count = 0;
	int r = args->resume.queue_array_ptr ?
			debug_read_ids(call, args->resume.queue_array_ptr, args->resume.num_queues) :
			0;

	if (r < 0)
		return r;
	for (uint32_t id = 0; id < GP_VPROC_QUEUE_MAX; id++) {
		struct gp_vqueue *queue = target->queues[id];
		uint32_t *entry = queue && call->queue_ids ? debug_find_id(call, id) : NULL;

		/* Without an array all queues are meant. */
		if (!queue || queue->is_user || (call->queue_ids && !entry))
			continue;
		queue->suspended = false;
		if (entry)
			*entry &= ~GP_KFD_QUEUE_INVALID;
		call->changed[queue->gpu->index]++;
		queues[count++] = queue;
	}
	return debug_change(call_slot, target, queues, count);
}

/* Waves cannot be looked at here: the normal mode and no flags are all there is, at the price of a refresh. */
static int debug_normal(struct gp_vcall **call, struct gp_vproc *target, uint32_t wanted)
{
	if (wanted)
		return -EINVAL;
	debug_refresh(target, 1, *call);
	return debug_keep(call);
}

static bool debug_needs_runtime(uint32_t op)
{
	return op >= GP_KFD_DBG_SET_WAVE_LAUNCH_OVERRIDE && op <= GP_KFD_DBG_SET_FLAGS;
}

/* Finds the target and says whether the caller may. */
static int debug_target(struct gp_vcall *call, const struct gp_kfd_dbg_trap *args, struct gp_vproc **ret_target)
{
	struct gp_vproc *caller = call->process, *target = gp_pidns_find_thread(caller, (pid_t)args->pid);

	if (!target && args->op == GP_KFD_DBG_ENABLE && args->pid && (int32_t)args->pid > 0 &&
	    (pid_t)gp_debug_status_field((pid_t)args->pid, "TracerPid:", 10) == call->thread) {
		/* A tracer may debug a process that has not opened the device yet. It stays known until it exits. */
		if (gp_vproc_open(caller->node, (pid_t)args->pid, &target) < 0)
			return -ESRCH;
	}
	if (!target)
		return -ESRCH;
	if (target != caller && target->debugger != caller && !gp_debug_is_tracer(target, call->thread))
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
	struct gp_vproc *caller = (*call)->process, *target;
	int r;

	/* Before anything else is looked at: "Debugging does not support sched_policy 2". */
	if (caller->node->params.values[GP_PARAM_SCHED_POLICY] == 2)
		return -EINVAL;
	r = debug_target(*call, args, &target);
	if (r < 0)
		return r;
	(*call)->result = 0;
	switch (args->op) {
	case GP_KFD_DBG_ENABLE: return debug_enable(call, target, args);
	case GP_KFD_DBG_DISABLE: debug_disable(target, *call); return debug_keep(call);
	case GP_KFD_DBG_SEND_RUNTIME_EVENT: return gp_exception_to_runtime(target, args);
	case GP_KFD_DBG_SET_EXCEPTIONS_ENABLED:
		gp_exception_enable(target, args->set_exceptions_enabled.exception_mask);
		return 0;
	case GP_KFD_DBG_SET_WAVE_LAUNCH_MODE: return debug_normal(call, target, args->launch_mode.launch_mode);
	case GP_KFD_DBG_SUSPEND_QUEUES: return debug_suspend(call, target, args);
	case GP_KFD_DBG_RESUME_QUEUES: return debug_resume(call, target, args);
	case GP_KFD_DBG_SET_FLAGS: return debug_normal(call, target, args->set_flags.flags);
	case GP_KFD_DBG_QUERY_DEBUG_EVENT: return gp_exception_query(target, args);
	case GP_KFD_DBG_QUERY_EXCEPTION_INFO: return gp_exception_info(caller, target, args);
	case GP_KFD_DBG_GET_QUEUE_SNAPSHOT: return gp_exception_queues(caller, target, args);
	case GP_KFD_DBG_GET_DEVICE_SNAPSHOT: return gp_exception_devices(caller, target, args);
	default:
		/* Wave launch override, address watch. */
		return -EINVAL;
	}
}
