/* SPDX-License-Identifier: MIT */
/* What becomes of a wave that cannot go on: as on hardware, the queue stops, and the runtime hears why. */
#include <inttypes.h>
#include <stdio.h>
#include "vgpu/kfd/exception.h"
#include "vgpu/execute/execute.h"
#include "vgpu/node/process.h"

/* What ROCr's trap handler adds to the inactive signal (amd_aql_queue.cpp), and the driver's exception codes. */
#define FAULT_SIGNAL_APERTURE 0x20000000u
#define FAULT_SIGNAL_ILLEGAL  0x40000000u

static void fault_log(const struct gp_execution *execution, const struct gp_isa_fault *fault)
{
	const struct gp_vnode *node = execution->queue->gpu->node;
	bool is_before = fault->pc < execution->entry; /* in a function of its object */
	uint64_t pc = is_before ? execution->entry - fault->pc : fault->pc - execution->entry;
	char side = is_before ? '-' : '+';
	const char *kernel = execution->dispatch->kernel.name;
	int pid = execution->queue->process->pid;

	switch (fault->kind) {
	case GP_ISA_FAULT_ILLEGAL:
		gp_vnode_log(node, 0,
			     "process %d: kernel %s: the instruction %08x %08x at 0x%" PRIx64 " (entry %c 0x%" PRIx64
			     ") is not one that vgpud executes",
			     pid, kernel, fault->words[0], fault->words[1], fault->pc, side, pc);
		return;
	case GP_ISA_FAULT_TRAP:
		gp_vnode_log(node, 0, "process %d: kernel %s: s_trap %u at entry %c 0x%" PRIx64, pid, kernel,
			     fault->trap_id, side, pc);
		return;
	default:
		gp_vnode_log(node, 0,
			     "process %d: kernel %s: %s at 0x%" PRIx64 " by the instruction at entry %c 0x%" PRIx64,
			     pid, kernel,
			     fault->kind == GP_ISA_FAULT_READ_ONLY  ? "write to memory that is read-only" :
			     fault->kind == GP_ISA_FAULT_APERTURE   ? "access outside LDS or private memory" :
			     fault->kind == GP_ISA_FAULT_MISALIGNED ? "misaligned atomic" :
								      "access to memory that is not mapped",
			     fault->va, side, pc);
	}
}

void gp_execute_fault(struct gp_execution *execution, const struct gp_execute_group *group)
{
	const struct gp_isa_fault *fault = &group->isa.fault;
	struct gp_vqueue *queue = execution->queue;

	fault_log(execution, fault);
	switch (fault->kind) {
	case GP_ISA_FAULT_ILLEGAL:
		gp_vproc_note_kernel(queue->process, execution->dispatch->kernel.fingerprint, GP_VPROC_REFUSED);
		gp_vqueue_wave_error(queue, GP_KFD_EC_MASK(4), FAULT_SIGNAL_ILLEGAL);
		return;
	case GP_ISA_FAULT_TRAP: gp_vqueue_wave_error(queue, GP_KFD_EC_MASK(1), GP_EXECUTE_SIGNAL_TRAP); return;
	case GP_ISA_FAULT_APERTURE:
	case GP_ISA_FAULT_MISALIGNED: gp_vqueue_wave_error(queue, GP_KFD_EC_MASK(6), FAULT_SIGNAL_APERTURE); return;
	default:
		queue->process->fault_is_write = fault->kind == GP_ISA_FAULT_READ_ONLY;
		gp_vqueue_fault(queue, fault->va);
		queue->process->fault_is_write = false;
	}
}
