/* SPDX-License-Identifier: MIT */
/* SOPP: branches, barriers, ends, and what only hints. */
#include "vgpu/isa/internal.h"

#define RUN(name)                                                                                   \
	static enum isa_result control_##name(struct gp_isa_group *group, struct gp_isa_wave *wave, \
					      const struct isa_instruction *in)

static enum isa_result control_branch_if(struct gp_isa_wave *wave, const struct isa_instruction *in, bool is_taken)
{
	if (!is_taken)
		return ISA_NEXT;
	wave->pc += 4u + (uint64_t)((int64_t)in->offset * 4);
	return ISA_STAY;
}

RUN(nop)
{
	return ISA_NEXT;
}

RUN(endpgm)
{
	wave->state = GP_ISA_ENDED;
	return ISA_WAIT;
}

RUN(branch)
{
	return control_branch_if(wave, in, true);
}

RUN(cbranch_scc0)
{
	return control_branch_if(wave, in, !wave->scc);
}

RUN(cbranch_scc1)
{
	return control_branch_if(wave, in, wave->scc);
}

RUN(cbranch_vccz)
{
	return control_branch_if(wave, in, !gp_isa_get64(wave, GP_ISA_VCC));
}

RUN(cbranch_vccnz)
{
	return control_branch_if(wave, in, gp_isa_get64(wave, GP_ISA_VCC) != 0);
}

RUN(cbranch_execz)
{
	return control_branch_if(wave, in, !isa_exec(wave));
}

RUN(cbranch_execnz)
{
	return control_branch_if(wave, in, isa_exec(wave) != 0);
}

RUN(barrier)
{
	wave->state = GP_ISA_BARRIER;
	return ISA_WAIT;
}

RUN(sleep)
{
	wave->state = GP_ISA_SLEEPS;
	return ISA_WAIT;
}

RUN(sethalt)
{
	if (in->offset & 1)
		wave->state = GP_ISA_HALTED;
	return ISA_WAIT;
}

RUN(sendmsg)
{
	if (group->message)
		group->message(group->context, group, (uint32_t)in->offset & 0xffffu, wave->s[GP_ISA_M0]);
	return ISA_NEXT;
}

/* The trap handler is the node's: it ends the wave and tells the runtime. */
RUN(trap)
{
	group->fault.trap_id = (uint32_t)in->offset & 0xffu;
	group->bus->fault = GP_ISA_FAULT_TRAP;
	group->bus->fault_va = wave->pc;
	return ISA_FAULT;
}

RUN(set_gpr_idx_off)
{
	wave->gpr_index = false;
	return ISA_NEXT;
}

RUN(set_gpr_idx_mode)
{
	wave->s[GP_ISA_M0] = (wave->s[GP_ISA_M0] & ~0xf000u) | ((uint32_t)in->offset & 15u) << 12;
	return ISA_NEXT;
}

/* clang-format off */
#define R(number, name) { "s_" #name, control_##name, number, 0, 0 }
#define HINT(number, name) { "s_" #name, control_nop, number, 0, 0 }
const struct isa_op gp_isa_sopp[] = {
	R(0, nop), R(1, endpgm), R(2, branch), HINT(3, wakeup), R(4, cbranch_scc0), R(5, cbranch_scc1), R(6, cbranch_vccz),
	R(7, cbranch_vccnz), R(8, cbranch_execz), R(9, cbranch_execnz), R(10, barrier), HINT(12, waitcnt), R(13, sethalt),
	R(14, sleep), HINT(15, setprio), R(16, sendmsg), R(18, trap), HINT(19, icache_inv), HINT(20, incperflevel),
	HINT(21, decperflevel), HINT(22, ttracedata), R(28, set_gpr_idx_off), R(29, set_gpr_idx_mode), { 0 },
};
/* clang-format on */
