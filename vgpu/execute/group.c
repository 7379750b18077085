/* SPDX-License-Identifier: MIT */
/* Workgroups as they are launched: what the descriptor says a wave finds in its registers. */
#include <stdlib.h>
#include <string.h>
#include "vgpu/kfd/event.h"
#include "vgpu/execute/execute.h"

#define GROUP_CLOCK_MHZ 1700u /* of s_memtime: the core clock of an MI210 by its data sheet */

/* Bits of the descriptor's properties: which values stand in the first scalar registers. */
enum {
	GROUP_PRIVATE_BUFFER = 1,
	GROUP_DISPATCH_PTR = 2,
	GROUP_QUEUE_PTR = 4,
	GROUP_KERNARG_PTR = 8,
	GROUP_DISPATCH_ID = 16,
	GROUP_FLAT_SCRATCH = 32,
	GROUP_PRIVATE_SIZE = 64,
};

static uint64_t group_clock(void *context, bool is_real)
{
	const struct gp_execution *execution = context;
	const struct gp_vnode *node = execution->queue->gpu->node;
	uint64_t device_ns = (gp_vnode_clock_ns() - node->origin_ns) / node->dilation;

	return is_real ? gp_vnode_ticks(node, device_ns) : device_ns * GROUP_CLOCK_MHZ / 1000u;
}

/* MSG_INTERRUPT: the event whose number is in M0. */
static void group_message(void *context, struct gp_isa_group *group, uint32_t message, uint32_t m0)
{
	struct gp_execution *execution = context;

	(void)group;
	if ((message & 15u) == 1u)
		gp_vevent_interrupt(execution->queue->process, m0 & 0xffffffu);
}

static void group_gws_release(struct gp_execution *execution)
{
	for (uint32_t i = 0; i < execution->live_count; i++) {
		struct gp_isa_group *group = &execution->live[i]->isa;

		for (uint32_t k = 0; k < group->wave_count; k++)
			if (group->waves[k]->state == GP_ISA_GWS)
				group->waves[k]->state = GP_ISA_RUNS;
	}
}

/* ds_gws_init says for how many waves a barrier is, ds_gws_barrier arrives at it. */
static bool group_gws(void *context, struct gp_isa_group *group, uint32_t op, uint32_t resource, uint32_t value)
{
	struct gp_execution *execution = context;
	struct gp_vqueue_gws *gws = &execution->queue->gws[resource % GP_VQUEUE_GWS];

	(void)group;
	if (op == 153u) {
		gws->limit = value + 1u;
		gws->arrived = 0;
		return true;
	}
	if (!gws->limit)
		gws->limit = value + 1u;
	if (++gws->arrived >= gws->limit) {
		gws->arrived = 0;
		gws->limit = value + 1u;
		group_gws_release(execution);
	}
	return true;
}

/* The first scalar registers, in the order of the ABI; returns how many were given. */
static uint32_t group_user_registers(const struct gp_execution *execution, struct gp_isa_wave *wave)
{
	uint32_t properties = execution->descriptor.properties, at = 0;
	const struct gp_vqueue *queue = execution->queue;

	if (properties & GROUP_PRIVATE_BUFFER) {
		memcpy(&wave->s[at], execution->scratch_resource, sizeof(execution->scratch_resource));
		at += 4u;
	}
	if (properties & GROUP_DISPATCH_PTR) {
		gp_isa_put64(wave, at, GP_EXECUTE_PACKET_VA);
		at += 2u;
	}
	if (properties & GROUP_QUEUE_PTR) {
		gp_isa_put64(wave, at, queue->rptr_va - GP_AMD_QUEUE_READ_OFFSET);
		at += 2u;
	}
	if (properties & GROUP_KERNARG_PTR) {
		gp_isa_put64(wave, at, execution->dispatch->kernel.kernarg);
		at += 2u;
	}
	if (properties & GROUP_DISPATCH_ID) {
		gp_isa_put64(wave, at, execution->dispatch->index);
		at += 2u;
	}
	if (properties & GROUP_FLAT_SCRATCH) {
		gp_isa_put64(wave, at, execution->scratch);
		at += 2u;
	}
	if (properties & GROUP_PRIVATE_SIZE)
		wave->s[at++] = execution->descriptor.private_size;
	return at;
}

/* gfx94x: arguments that the kernel wants in registers from the start. */
static int group_preload(struct gp_execution *execution, struct gp_isa_wave *wave, uint32_t at)
{
	uint32_t length = execution->descriptor.preload & 0x7fu, offset = execution->descriptor.preload >> 7;

	if (execution->target != GP_ISA_GFX940 || !length)
		return 0;
	if (at + length > 16u)
		length = 16u - at;
	if (gp_isa_bus_read(&execution->bus, execution->dispatch->kernel.kernarg + offset * 4ull, &wave->s[at],
			    length * 4u) < 0)
		return -1;
	wave->pc += 256u;
	return 0;
}

static void group_system_registers(const struct gp_execution *execution, struct gp_isa_wave *wave, const uint32_t id[3],
				   uint64_t scratch_offset)
{
	uint32_t rsrc2 = execution->descriptor.rsrc2, at = rsrc2 >> 1 & 31u;

	for (uint32_t i = 0; i < 3u; i++)
		if (rsrc2 >> (7u + i) & 1u)
			wave->s[at++] = id[i];
	if (rsrc2 >> 10 & 1u)
		wave->s[at++] = execution->wave_count;
	if (execution->target == GP_ISA_GFX940)
		wave->scratch = execution->scratch + scratch_offset;
	else if (rsrc2 & 1u)
		wave->s[at] = (uint32_t)scratch_offset;
}

/* Work items are numbered along x, then y, then z, inside what the grid leaves of the workgroup. */
static void group_items(const struct gp_execution *execution, struct gp_isa_wave *wave, uint32_t first,
			const uint32_t size[3])
{
	bool is_packed = execution->target >= GP_ISA_GFX90A;
	uint32_t ids = execution->descriptor.rsrc2 >> 11 & 3u;
	uint64_t exec = 0;

	for (uint32_t i = 0; i < GP_ISA_LANES; i++) {
		uint32_t item = first + i, x = item % size[0], y = item / size[0] % size[1],
			 z = item / size[0] / size[1];

		if (z >= size[2])
			break;
		exec |= 1ull << i;
		wave->v[0][i] = is_packed ? x | (ids >= 1u ? y << 10 : 0) | (ids >= 2u ? z << 20 : 0) : x;
		if (!is_packed && ids >= 1u)
			wave->v[1][i] = y;
		if (!is_packed && ids >= 2u)
			wave->v[2][i] = z;
	}
	gp_isa_put64(wave, GP_ISA_EXEC, exec);
	if (!exec)
		wave->state = GP_ISA_ENDED;
}

/* What the dispatcher leaves in the trap temporaries, for debuggers and for whoever restores the wave. */
static void group_identify(const struct gp_execution *execution, struct gp_isa_wave *wave, const uint32_t id[3],
			   uint32_t position)
{
	uint32_t *ttmp = &wave->s[GP_ISA_TTMP];

	ttmp[6] = (uint32_t)execution->dispatch->index & 0x1ffffffu;
	memcpy(&ttmp[8], id, 3u * sizeof(*id));
	ttmp[11] = position;
}

/* The mode register as the descriptor wants it. */
static uint32_t group_mode(const struct gp_kernel_descriptor *descriptor)
{
	return (descriptor->rsrc1 >> 12 & 0xffu) | (descriptor->rsrc1 >> 21 & 1u) << 8 |
	       (descriptor->rsrc1 >> 23 & 1u) << 9 | (descriptor->rsrc1 >> 26 & 1u) << 23;
}

struct gp_execute_group *gp_execute_group_create(struct gp_execution *execution, uint32_t index, uint32_t slot)
{
	struct gp_execute_group *group = calloc(1, sizeof(*group));

	if (!group)
		return NULL;
	group->index = index;
	group->slot = slot;
	group->isa = (struct gp_isa_group){ .bus = &execution->bus,
					    .code = execution->code,
					    .lds_size = execution->lds_size,
					    .wave_count = execution->wave_count,
					    .clock = group_clock,
					    .message = group_message,
					    .gws = group_gws,
					    .context = execution };
	group->lds = calloc(1, execution->lds_size + 64u);
	group->isa.lds = group->lds;
	for (uint32_t i = 0; i < execution->wave_count; i++) {
		group->isa.waves[i] = gp_isa_wave_create(execution->row_count);
		if (!group->isa.waves[i] || !group->lds) {
			gp_execute_group_destroy(group);
			return NULL;
		}
		group->isa.waves[i]->scratch_size = execution->scratch_lane_size;
	}
	return group;
}

struct gp_execute_group *gp_execute_launch(struct gp_execution *execution, uint32_t index, uint32_t slot)
{
	const struct gp_kernel_call *call = &execution->dispatch->kernel;
	uint32_t id[3] = { index % call->workgroups[0], index / call->workgroups[0] % call->workgroups[1],
			   index / call->workgroups[0] / call->workgroups[1] };
	struct gp_execute_group *group = gp_execute_group_create(execution, index, slot);
	uint32_t size[3];

	if (!group)
		return NULL;
	for (uint32_t i = 0; i < 3u; i++) {
		uint32_t left = call->grid_size[i] - id[i] * call->workgroup_size[i];

		size[i] = left < call->workgroup_size[i] ? left : call->workgroup_size[i];
	}
	for (uint32_t i = 0; i < execution->wave_count; i++) {
		struct gp_isa_wave *wave = group->isa.waves[i];

		wave->pc = execution->entry;
		wave->mode = group_mode(&execution->descriptor);
		if (group_preload(execution, wave, group_user_registers(execution, wave)) < 0) {
			group->isa.fault = (struct gp_isa_fault){ .kind = GP_ISA_FAULT_UNMAPPED, .va = call->kernarg };
			wave->state = GP_ISA_FAULTED;
		}
		group_system_registers(execution, wave, id,
				       execution->scratch_wave_size * (slot * (uint64_t)execution->wave_count + i));
		group_items(execution, wave, i * GP_ISA_LANES, size);
		group_identify(execution, wave, id, i);
	}
	return group;
}

void gp_execute_group_destroy(struct gp_execute_group *group)
{
	if (!group)
		return;
	for (uint32_t i = 0; i < group->isa.wave_count; i++)
		gp_isa_wave_destroy(group->isa.waves[i]);
	free(group->lds);
	free(group);
}
