/* SPDX-License-Identifier: MIT */
/*
 * Executes dispatches. Workgroups are launched in order and run in turn: few at once as long as they end, twice as many
 * after each round in which none did, up to what the device holds, since they may be waiting for one another. The last
 * ones stop part-way until the model says that the kernel has ended: results come no earlier than their time, and a
 * preemption finds waves to save.
 *
 * Never decides when: work.c gives the slices, aql.c says what the model has come to.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "vgpu/execute/execute.h"
#include "vgpu/node/memory.h"

#define EXECUTE_TURN       16384u         /* wave instructions of a workgroup before the next one's turn */
#define EXECUTE_SLICE      131072u        /* of one slice at most, however fast they go */
#define EXECUTE_STEP       2048u          /* between two looks at the clock */
#define EXECUTE_HELD       2u             /* workgroups that wait for the model's end */
#define EXECUTE_HELD_AFTER 40u            /* wave instructions they have done by then */
#define EXECUTE_STATE_MAX  (256ull << 20) /* bytes of registers and LDS of one dispatch: chosen */
#define EXECUTE_CODES      65u            /* decoded code of a process per target, by the first accumulation register */

struct gp_execute_codes {
	struct gp_isa_code *codes[4][EXECUTE_CODES];
};

void gp_execute_forget(struct gp_vproc *process)
{
	if (!process->codes)
		return;
	for (uint32_t t = 0; t < 4u; t++)
		for (uint32_t i = 0; i < EXECUTE_CODES; i++)
			gp_isa_code_destroy(process->codes->codes[t][i]);
	free(process->codes);
	process->codes = NULL;
}

static struct gp_isa_code *execute_code(struct gp_vproc *process, enum gp_isa_target target, uint32_t accum_offset)
{
	struct gp_isa_code **code;

	if (!process->codes) {
		process->codes = calloc(1, sizeof(*process->codes));
		if (!process->codes)
			return NULL;
		gp_isa_select(gp_isa_best());
	}
	code = &process->codes->codes[target][accum_offset / 4u % EXECUTE_CODES];
	if (!*code)
		*code = gp_isa_code_create(target, accum_offset);
	return *code;
}

/* Which instruction set it is: the head of the ELF file that the code was loaded from says so, if it was loaded with
 * it; a runtime older than the device brings code for another one. Else the device's own. */
static enum gp_isa_target execute_target(struct gp_vproc *process, const struct gp_vdev *gpu, uint64_t kernel_object)
{
	static const struct {
		uint8_t machine;
		enum gp_isa_target target;
	} machines[] = { { 0x2f, GP_ISA_GFX906 }, { 0x30, GP_ISA_GFX908 }, { 0x3f, GP_ISA_GFX90A },
			 { 0x40, GP_ISA_GFX940 }, { 0x4b, GP_ISA_GFX940 }, { 0x4c, GP_ISA_GFX940 } };
	const struct gp_vbo *bo = gp_vm_find(process, gpu, kernel_object);
	uint8_t head[64] = { 0 };

	if (bo && gp_vm_read(process, gpu, bo->va, head, sizeof(head)) == 0 && !memcmp(head, "\177ELF", 4))
		for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
			if (machines[i].machine == head[48])
				return machines[i].target;
	switch (gpu->identity->gfx_version) {
	case 90006: return GP_ISA_GFX906;
	case 90010: return GP_ISA_GFX90A;
	default: return GP_ISA_GFX940;
	}
}

/* Registers of a wave. Up to gfx908 accumulation registers are as many more, in a file of their own; then one file,
 * whose second part begins where the descriptor says. */
static int execute_registers(struct gp_execution *execution)
{
	uint32_t granules = (execution->descriptor.rsrc1 & 0x3fu) + 1u;

	if (execution->target >= GP_ISA_GFX90A) {
		execution->row_count = granules * 8u;
		execution->accum_offset = ((execution->descriptor.rsrc3 & 0x3fu) + 1u) * 4u;
	} else {
		execution->accum_offset = granules * 4u;
		execution->row_count = execution->accum_offset * (execution->target == GP_ISA_GFX908 ? 2u : 1u);
	}
	/* Work items' numbers need up to three. */
	return execution->row_count > GP_ISA_ROW_MAX || execution->row_count < 3u ? -EINVAL : 0;
}

static void execute_scratch(struct gp_execution *execution)
{
	struct gp_vqueue *queue = execution->queue;
	uint64_t control = queue->rptr_va - GP_AMD_QUEUE_READ_OFFSET;
	struct {
		uint32_t resource[4];
		uint64_t base, size;
		uint32_t lane_size;
	} scratch = { 0 };
	uint64_t slots;

	if (gp_vm_read(queue->process, queue->gpu, control + GP_AMD_QUEUE_RESOURCE_OFFSET, &scratch, 36) < 0 ||
	    !scratch.lane_size || scratch.lane_size > 1u << 20)
		return;
	execution->scratch = scratch.base;
	execution->scratch_lane_size = scratch.lane_size;
	execution->scratch_wave_size = (uint64_t)scratch.lane_size * GP_ISA_LANES;
	memcpy(execution->scratch_resource, scratch.resource, sizeof(scratch.resource));
	slots = scratch.size / execution->scratch_wave_size / execution->wave_count;
	if (execution->dispatch->packet.kernel.private_size && slots < execution->live_max)
		execution->live_max = slots ? (uint32_t)slots : 1u;
}

static uint32_t execute_live_max(const struct gp_execution *execution, const struct gp_gpu_kernel *kernel)
{
	uint64_t state = execution->lds_size + execution->wave_count * (execution->row_count * 256ull + 1024u);
	uint64_t fit = EXECUTE_STATE_MAX / state, capacity = gp_gpu_capacity(execution->queue->gpu->desc, kernel);

	fit = fit < capacity ? fit : capacity;
	return fit < 1u ? 1u : fit > kernel->workgroups ? kernel->workgroups : (uint32_t)fit;
}

static int execute_read(struct gp_execution *execution, const struct gp_gpu_kernel *kernel)
{
	const struct gp_aql_kernel *packet = &execution->dispatch->packet.kernel;
	struct gp_vproc *process = execution->queue->process;
	const struct gp_vdev *gpu = execution->queue->gpu;

	if (gp_vm_read(process, gpu, packet->kernel_object, &execution->descriptor, sizeof(execution->descriptor)) < 0)
		return -EFAULT;
	execution->entry = packet->kernel_object + (uint64_t)execution->descriptor.entry_offset;
	execution->target = execute_target(process, gpu, packet->kernel_object);
	if (execute_registers(execution) < 0)
		return -EINVAL;
	/* LDS comes in pieces of 128 words. */
	execution->lds_size = (packet->group_size + 511u) & ~511u;
	execution->wave_count = kernel->waves;
	if (!execution->wave_count || execution->wave_count > GP_ISA_WAVE_MAX)
		return -EINVAL;
	execution->live_max = execute_live_max(execution, kernel);
	if (gp_execute_save_room(execution) < execution->live_max)
		execution->live_max = gp_execute_save_room(execution) ? gp_execute_save_room(execution) : 1u;
	execute_scratch(execution);
	execution->code = execute_code(process, execution->target, execution->accum_offset);
	execution->live = calloc(execution->live_max, sizeof(struct gp_execute_group *));
	return execution->code && execution->live ? 0 : -ENOMEM;
}

int gp_execute_create(struct gp_vqueue *queue, struct gp_vdispatch *dispatch, const struct gp_gpu_kernel *kernel,
		      struct gp_execution **ret_execution)
{
	struct gp_execution *execution = calloc(1, sizeof(*execution));
	int r;

	if (!execution)
		return -ENOMEM;
	execution->queue = queue;
	execution->dispatch = dispatch;
	execution->bus.find = gp_execute_find;
	execution->bus.context = execution;
	execution->live_target = 1;
	r = execute_read(execution, kernel);
	if (r < 0) {
		gp_execute_destroy(execution);
		return r;
	}
	*ret_execution = execution;
	return 0;
}

void gp_execute_destroy(struct gp_execution *execution)
{
	if (!execution)
		return;
	for (uint32_t i = 0; i < execution->live_count; i++)
		gp_execute_group_destroy(execution->live[i]);
	if (execution->saved_count)
		execution->queue->save.holders--;
	free(execution->saved);
	free(execution->live);
	free(execution);
}

bool gp_execute_is_over(const struct gp_execution *execution)
{
	return execution->done == execution->dispatch->workgroups;
}

static uint32_t execute_slot(const struct gp_execution *execution)
{
	uint32_t slot = 0;

	for (bool taken = true; taken; slot++) {
		taken = false;
		for (uint32_t i = 0; i < execution->live_count; i++)
			taken |= execution->live[i]->slot == slot;
		if (!taken)
			break;
	}
	return slot;
}

static int execute_fill(struct gp_execution *execution)
{
	while (execution->live_count < execution->live_target && execution->live_count < execution->live_max &&
	       execution->next < execution->dispatch->workgroups) {
		struct gp_execute_group *group = gp_execute_launch(execution, execution->next, execute_slot(execution));

		if (!group)
			return -ENOMEM;
		execution->live[execution->live_count++] = group;
		execution->next++;
	}
	return 0;
}

static void execute_retire(struct gp_execution *execution, uint32_t at)
{
	struct gp_vnode_counters *counters = &execution->queue->gpu->node->counters;

	counters->wave_instructions += execution->live[at]->isa.executed;
	gp_execute_group_destroy(execution->live[at]);
	execution->live_count--;
	memmove(&execution->live[at], &execution->live[at + 1u],
		(execution->live_count - at) * sizeof(struct gp_execute_group *));
	execution->done++;
	execution->dispatch->workgroups_run = execution->done;
	execution->queue->workgroups++;
	counters->workgroups++;
	counters->workgroups_executed++;
	execution->idle = 0;
}

/* One of the last, part-way, while the model still runs the kernel. */
static bool execute_is_held(const struct gp_execution *execution, const struct gp_execute_group *group)
{
	return !execution->dispatch->ended && group->index + EXECUTE_HELD >= execution->dispatch->workgroups &&
	       group->total >= EXECUTE_HELD_AFTER;
}

/* Lets one workgroup run a step. Returns what it came to. */
static enum gp_isa_state execute_step(struct gp_execution *execution, struct gp_execute_group *group)
{
	uint64_t budget = EXECUTE_TURN - group->spent, used = 0;
	enum gp_isa_state state;

	budget = budget < EXECUTE_STEP ? budget : EXECUTE_STEP;
	if (!execution->dispatch->ended && group->index + EXECUTE_HELD >= execution->dispatch->workgroups &&
	    group->total + budget > EXECUTE_HELD_AFTER)
		budget = EXECUTE_HELD_AFTER - group->total;
	state = gp_isa_group_run(&group->isa, budget, &used);
	group->spent += used;
	group->total += used;
	return state;
}

enum execute_round { EXECUTE_GOES_ON, EXECUTE_WAITS, EXECUTE_FAULTED };

/* One workgroup's turn, or a part of it. */
static enum execute_round execute_turn(struct gp_execution *execution, uint32_t *ret_held)
{
	struct gp_execute_group *group;
	enum gp_isa_state state;

	if (execution->at >= execution->live_count)
		execution->at = 0;
	group = execution->live[execution->at];
	if (execute_is_held(execution, group)) {
		execution->at++;
		(*ret_held)++;
		return EXECUTE_GOES_ON;
	}
	*ret_held = 0;
	state = execute_step(execution, group);
	if (state == GP_ISA_FAULTED) {
		gp_execute_fault(execution, group);
		return EXECUTE_FAULTED;
	}
	if (state == GP_ISA_ENDED) {
		execute_retire(execution, execution->at);
		return EXECUTE_GOES_ON;
	}
	if (state == GP_ISA_RUNS && group->spent < EXECUTE_TURN)
		return EXECUTE_GOES_ON;
	group->spent = 0;
	execution->at++;
	/* After a round without an end there may be somebody they wait for. */
	if (++execution->idle >= execution->live_count) {
		execution->idle = 0;
		execution->live_target = execution->live_target * 2u < execution->live_max ?
						 execution->live_target * 2u :
						 execution->live_max;
		return state == GP_ISA_RUNS ? EXECUTE_GOES_ON : EXECUTE_WAITS;
	}
	return EXECUTE_GOES_ON;
}

void gp_execute_begin_one(struct gp_execution *execution)
{
	struct gp_execute_group *group;
	enum gp_isa_state state;
	uint64_t used = 0;

	if (execution->live_count || !execution->done || gp_execute_memory_is_open())
		return;
	gp_execute_memory_begin(execution);
	if (execute_fill(execution) == 0 && execution->live_count) {
		group = execution->live[0];
		state = gp_isa_group_run(&group->isa, EXECUTE_HELD_AFTER, &used);
		group->total = group->spent = used;
		if (state == GP_ISA_FAULTED)
			gp_execute_fault(execution, group);
		else if (state == GP_ISA_ENDED)
			execute_retire(execution, 0);
	}
	if (gp_execute_memory_end(execution) < 0 && !execution->queue->error)
		gp_vqueue_fault(execution->queue, execution->queue->process->fault_va);
}

bool gp_execute_run(struct gp_execution *execution, uint64_t deadline_ns)
{
	enum execute_round round = EXECUTE_GOES_ON;
	uint32_t held = 0, steps = 0;
	bool is_out = false;

	if (execution->is_stopped)
		return true;
	gp_execute_memory_begin(execution);
	if (!execution->is_fresh) {
		gp_isa_code_refresh(execution->code, &execution->bus);
		execution->is_fresh = true;
	}
	while (round == EXECUTE_GOES_ON && !is_out) {
		if (execute_fill(execution) < 0 || !execution->live_count || held >= execution->live_count)
			break;
		round = execute_turn(execution, &held);
		is_out = gp_vnode_clock_ns() >= deadline_ns || ++steps >= EXECUTE_SLICE / EXECUTE_STEP;
	}
	if (gp_execute_memory_end(execution) < 0 && round != EXECUTE_FAULTED) {
		gp_vqueue_fault(execution->queue, execution->queue->process->fault_va);
		return true;
	}
	return round == EXECUTE_FAULTED || gp_execute_is_over(execution) || execution->is_stopped ||
	       (execution->live_count && held >= execution->live_count);
}
