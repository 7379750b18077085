/* SPDX-License-Identifier: MIT */
/* Waves and workgroups: whose turn it is, barriers, and what becomes of an instruction that cannot be executed. */
#include <stdlib.h>
#include "vgpu/isa/internal.h"

#define WAVE_SLICE 4096u /* wave instructions before the next wave of the workgroup has its turn */

struct gp_isa_wave *gp_isa_wave_create(uint32_t row_count)
{
	struct gp_isa_wave *wave;
	size_t rows = (size_t)row_count * sizeof(isa_row), head = (sizeof(*wave) + 63u) & ~(size_t)63u;

	wave = aligned_alloc(64, head + rows);
	if (!wave)
		return NULL;
	memset(wave, 0, head + rows);
	wave->row_count = row_count;
	wave->v = (uint32_t(*)[GP_ISA_LANES])(void *)((uint8_t *)wave + head);
	return wave;
}

void gp_isa_wave_destroy(struct gp_isa_wave *wave)
{
	free(wave);
}

static void wave_fault(struct gp_isa_group *group, struct gp_isa_wave *wave, const struct isa_instruction *in,
		       bool is_illegal)
{
	group->fault.kind = is_illegal ? GP_ISA_FAULT_ILLEGAL : group->bus->fault;
	group->fault.va = is_illegal ? wave->pc : group->bus->fault_va;
	group->fault.pc = wave->pc;
	group->fault.words[0] = in ? in->words[0] : 0;
	group->fault.words[1] = in ? in->words[1] : 0;
	wave->state = GP_ISA_FAULTED;
}

/* Up to `budget` instructions. Returns how many. */
static uint64_t wave_run(struct gp_isa_group *group, struct gp_isa_wave *wave, uint64_t budget)
{
	uint64_t used = 0, lanes = 0;

	while (used < budget && wave->state == GP_ISA_RUNS) {
		const struct isa_instruction *in =
			wave->pc % 4u ? NULL : gp_isa_fetch(group->code, group->bus, wave->pc);
		enum isa_result result;

		used++;
		if (!in) {
			wave_fault(group, wave, NULL, wave->pc % 4u);
			break;
		}
		if (in->row_end > wave->row_count) {
			wave_fault(group, wave, in, true);
			break;
		}
		if (in->counts_lanes)
			lanes += (uint64_t)__builtin_popcountll(isa_exec(wave));
		result = in->run(group, wave, in);
		if (result == ISA_NEXT || result == ISA_WAIT) {
			wave->pc += in->size;
		} else if (result == ISA_FAULT || result == ISA_ILLEGAL) {
			wave_fault(group, wave, in, result == ISA_ILLEGAL);
			break;
		}
	}
	wave->executed += used;
	group->executed += used;
	group->lanes_executed += lanes;
	return used;
}

/* Everybody who has not ended is at the barrier: on. */
static bool wave_release(struct gp_isa_group *group)
{
	uint32_t waiting = 0;

	for (uint32_t i = 0; i < group->wave_count; i++) {
		enum gp_isa_state state = group->waves[i]->state;

		if (state != GP_ISA_BARRIER && state != GP_ISA_ENDED)
			return false;
		waiting += state == GP_ISA_BARRIER;
	}
	for (uint32_t i = 0; i < group->wave_count; i++)
		if (group->waves[i]->state == GP_ISA_BARRIER)
			group->waves[i]->state = GP_ISA_RUNS;
	return waiting;
}

/* What the workgroup as a whole does, when none of its waves can run. */
static enum gp_isa_state wave_summary(const struct gp_isa_group *group)
{
	bool sleeps = false, gws = false, halted = false;

	for (uint32_t i = 0; i < group->wave_count; i++) {
		sleeps |= group->waves[i]->state == GP_ISA_SLEEPS;
		gws |= group->waves[i]->state == GP_ISA_GWS;
		halted |= group->waves[i]->state == GP_ISA_HALTED;
	}
	return sleeps ? GP_ISA_SLEEPS : gws ? GP_ISA_GWS : halted ? GP_ISA_HALTED : GP_ISA_ENDED;
}

enum gp_isa_state gp_isa_group_run(struct gp_isa_group *group, uint64_t budget, uint64_t *ret_used)
{
	uint64_t left = budget;
	enum gp_isa_state state = GP_ISA_RUNS;

	for (uint32_t i = 0; i < group->wave_count; i++)
		if (group->waves[i]->state == GP_ISA_SLEEPS)
			group->waves[i]->state = GP_ISA_RUNS;
	while (left && state == GP_ISA_RUNS) {
		bool any = false;

		for (uint32_t n = 0; n < group->wave_count && left; n++) {
			struct gp_isa_wave *wave = group->waves[group->at % group->wave_count];
			uint64_t slice = left < WAVE_SLICE ? left : WAVE_SLICE;

			if (wave->state == GP_ISA_RUNS) {
				left -= wave_run(group, wave, slice);
				any = true;
			}
			if (wave->state == GP_ISA_FAULTED) {
				state = GP_ISA_FAULTED;
				break;
			}
			group->at = (group->at + 1u) % group->wave_count;
		}
		if (state == GP_ISA_RUNS && !any && !wave_release(group))
			state = wave_summary(group);
	}
	*ret_used = budget - left;
	return state;
}
