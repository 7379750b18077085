/* SPDX-License-Identifier: MIT */
/* CRIU_OP, as far as it stops work: PROCESS_INFO pauses a process on all its GPUs, UNPAUSE lets it go on. Nothing is
 * dumped. */
#include <errno.h>
#include "vgpu/kfd/call.h"
#include "vgpu/kfd/debug.h"
#include "vgpu/node/process.h"
#include "vgpu/node/reset.h"

#define CHECKPOINT_CAP_RESTORE 40

static bool checkpoint_may(pid_t thread)
{
	return gp_debug_is_admin(thread) || gp_debug_status_field(thread, "CapEff:", 16) >> CHECKPOINT_CAP_RESTORE & 1u;
}

int gp_debug_criu(struct gp_vcall **call_slot)
{
	struct gp_vcall *call = *call_slot;
	struct gp_vproc *process = call->process;
	struct kfd_ioctl_criu_args *args = (void *)call->arg;

	if (!checkpoint_may(call->thread))
		return -EPERM;
	call->result = 0;
	if (args->op == KFD_CRIU_OP_PROCESS_INFO) {
		/* Counted, as the driver counts evictions: two pauses need two restores, and UNPAUSE gives one. */
		process->criu_paused = true;
		args->pid = (uint32_t)process->pid;
		args->num_devices = process->node->gpu_count;
		args->num_bos = process->bo_count;
		args->num_objects = process->queue_count;
		args->priv_data_size = 0;
		gp_vproc_evict(process, GP_KFD_EVICTION_CRIU_CHECKPOINT, call);
	} else if (args->op == KFD_CRIU_OP_UNPAUSE) {
		if (!process->criu_paused)
			return -EINVAL;
		process->criu_paused = false;
		gp_vproc_restore(process, call);
	} else {
		return -EINVAL;
	}
	if (!call->outstanding)
		return 0;
	gp_vcall_keep(process->node, call_slot, GP_VCALL_TRANSACTION);
	return GP_VCALL_LATER;
}
