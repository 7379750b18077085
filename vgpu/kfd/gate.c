/* SPDX-License-Identifier: MIT */
/*
 * AMDKFD_IOC_SCHED by the rules of kernel/patches: gates of queues of any processes, one transaction for all of them.
 * The node is a patched driver whose own scheduler is off, or (vgpu_kfd_sched=2) claims to schedule, and then refuses
 * gates; a stock driver (the default) refuses the number.
 */
#include <errno.h>
#include <gpreempt/kfd.h>
#include <stdlib.h>
#include "lib/cleanup.h"
#include "vgpu/kfd/call.h"
#include "vgpu/kfd/debug.h"
#include "vgpu/kfd/gate.h"
#include "vgpu/node/memory.h"
#include "vgpu/node/process.h"
#include "vgpu/node/transaction.h"

#define GATE_CAP_SYS_NICE 23

#define GATE_CHANGED 1 /* result, until the transaction is over */

/* The transaction is over, or there was none: the caller learns what became of each gate. The call itself succeeds,
 * whatever became of the runlist: its error is the result of each gate that depended on it, and their new state stays.
 */
static void gate_done(struct gp_vcall *call)
{
	for (uint32_t i = 0; i < call->queue_count; i++)
		if (call->gates[i].result == GATE_CHANGED)
			call->gates[i].result = call->result;
	call->result = 0;
	if (call->process && gp_client_write(call->process, call->queue_array, call->gates,
					     call->queue_count * sizeof(call->gates[0])) < 0)
		call->result = -EFAULT;
}

/* Which queues change; what is as wanted already costs nothing. Returns how many. */
static uint32_t gate_collect(struct gp_vcall *call, struct gp_vdev *gpu, struct gp_vqueue **queues)
{
	bool has_hws = call->process->node->params.values[GP_PARAM_SCHED_POLICY] != 2;
	uint32_t count = 0;

	for (uint32_t i = 0; i < call->queue_count; i++) {
		struct gp_kfd_sched_gate *gate = &call->gates[i];
		struct gp_vproc *process = gp_pidns_find(call->process, (pid_t)gate->pid);
		struct gp_vqueue *queue = process ? gp_vqueue_find(process, gate->queue_id) : NULL;
		bool is_closed;

		gate->result = !has_hws ? -EOPNOTSUPP : queue && queue->gpu == gpu && !queue->is_user ? 0 : -ESRCH;
		if (gate->result)
			continue;
		is_closed = queue->gate_owner;
		if (is_closed != !gate->open) {
			gate->result = GATE_CHANGED;
			queues[count++] = queue;
		}
		queue->gate_owner = gate->open ? NULL : call->process;
	}
	return count;
}

static int gate_change(struct gp_vcall **call_slot, const struct gp_kfd_sched *args)
{
	struct gp_vqueue *queues[GP_KFD_SCHED_GATE_MAX];
	struct gp_vcall *call = *call_slot;
	struct gp_vnode *node = call->process->node;
	struct gp_vdev *gpu = gp_vnode_gpu(node, args->gpu_id);
	GP_AUTO_FREE struct gp_kfd_sched_gate *gates = NULL;
	int r;

	if (!gp_debug_is_admin(call->thread))
		return -EPERM;
	if (!args->gate_count || args->gate_count > GP_KFD_SCHED_GATE_MAX || !gpu)
		return -EINVAL;
	gates = calloc(args->gate_count, sizeof(*gates));
	if (!gates)
		return -ENOMEM;
	if (gp_client_read(call->process, args->gates_ptr, gates, args->gate_count * sizeof(*gates)) < 0)
		return -EFAULT;
	for (uint32_t i = 0; i < args->gate_count; i++)
		if (gates[i].open > 1)
			return -EINVAL;
	if (node->params.values[GP_PARAM_KFD_SCHED] == GP_PARAM_KFD_SCHED_BUSY)
		return -EBUSY;
	call->gates = GP_TAKE(gates);
	call->queue_count = args->gate_count;
	call->queue_array = args->gates_ptr;
	call->result = 0;
	r = gp_vtransaction_change(queues, gate_collect(call, gpu, queues), call);
	if (r < 0)
		call->result = r;
	if (call->outstanding) {
		call->done = gate_done;
		gp_vcall_keep(node, call_slot, GP_VCALL_TRANSACTION);
		return GP_VCALL_LATER;
	}
	gate_done(call);
	return call->result;
}

static int gate_set_process(const struct gp_vcall *call, const struct gp_kfd_sched *args)
{
	bool may = gp_debug_status_field(call->thread, "CapEff:", 16) >> GATE_CAP_SYS_NICE & 1u;

	if (args->priority > GP_KFD_SCHED_MAX || args->weight > GP_KFD_SCHED_WEIGHT_MAX)
		return -EINVAL;
	return args->priority > GP_KFD_SCHED_NORMAL && !may ? -EACCES :
							      0; /* the driver's scheduler is off: no effect */
}

int gp_gate_ioctl(struct gp_vcall **call)
{
	const struct gp_kfd_sched *args = (const void *)(*call)->arg;

	if (!(*call)->process->node->params.values[GP_PARAM_KFD_SCHED] || args->pad)
		return -EINVAL;
	switch (args->op) {
	case GP_KFD_SCHED_GATE: return gate_change(call, args);
	case GP_KFD_SCHED_SET_PROCESS: return gate_set_process(*call, args);
	default: return -EINVAL;
	}
}

void gp_gate_release(struct gp_vproc *owner)
{
	for (struct gp_vproc *process = owner->node->processes; process; process = process->next) {
		static struct gp_vqueue *queues[GP_VPROC_QUEUE_MAX];
		uint32_t count = 0;

		for (uint32_t id = 0; process->queue_count && id < GP_VPROC_QUEUE_MAX; id++) {
			struct gp_vqueue *queue = process->queues[id];

			if (!queue || queue->gate_owner != owner)
				continue;
			queue->gate_owner = NULL;
			queues[count++] = queue;
		}
		gp_vtransaction_change(queues, count, NULL);
	}
}
