/* SPDX-License-Identifier: MIT */
/*
 * A wave's state as the driver's trap handler for gfx9 leaves it in a queue's save area (cwsr_trap_handler_gfx9.asm),
 * and as AMD's debugger library reads it: vector registers, scalar registers, hardware registers, trap temporaries, LDS
 * behind the first wave of a workgroup, 64 bytes that nobody uses. What is read back is the client's to change.
 */
#include <errno.h>
#include "vgpu/isa/internal.h"

#define SAVE_SGPRS      112u /* seven blocks of 16: 102, and what the names above them stand for */
#define SAVE_HW_COUNT   16u
#define SAVE_TTMP_COUNT 16u
#define SAVE_TAIL       64u

/* Words of the hardware registers' block. */
enum {
	SAVE_M0,
	SAVE_PC,
	SAVE_EXEC = SAVE_PC + 2,
	SAVE_STATUS = SAVE_EXEC + 2,
	SAVE_TRAPSTS,
	SAVE_XNACK,
	SAVE_MODE = SAVE_XNACK + 2,
	SAVE_OWN, /* the handler leaves it alone; here: waits at a device-wide barrier */
};

/* Bits of the status and mode registers. */
#define SAVE_STATUS_SCC     (1u << 0)
#define SAVE_STATUS_BARRIER (1u << 12)
#define SAVE_STATUS_HALT    (1u << 13)
#define SAVE_STATUS_VALID   (1u << 16)
#define SAVE_MODE_GPR_INDEX (1u << 27)

uint32_t gp_isa_record_size(uint32_t row_count, uint32_t lds_size)
{
	return row_count * (uint32_t)sizeof(isa_row) + (SAVE_SGPRS + SAVE_HW_COUNT + SAVE_TTMP_COUNT) * 4u + lds_size +
	       SAVE_TAIL;
}

uint32_t gp_isa_record_lds(uint32_t row_count)
{
	return row_count * (uint32_t)sizeof(isa_row) + (SAVE_SGPRS + SAVE_HW_COUNT + SAVE_TTMP_COUNT) * 4u;
}

void gp_isa_wave_save(const struct gp_isa_wave *wave, uint8_t *to)
{
	uint32_t hw[SAVE_HW_COUNT] = { 0 }, sgprs[SAVE_SGPRS];
	uint64_t exec = isa_exec(wave), vcc = gp_isa_get64(wave, GP_ISA_VCC);

	memcpy(sgprs, wave->s, sizeof(sgprs));
	/* The trap temporaries have a block of their own. */
	memset(&sgprs[GP_ISA_TTMP], 0, (SAVE_SGPRS - GP_ISA_TTMP) * 4u);
	if (wave->scratch)
		memcpy(&sgprs[GP_ISA_FLAT_SCRATCH], &wave->scratch, 8);
	hw[SAVE_M0] = wave->s[GP_ISA_M0];
	memcpy(&hw[SAVE_PC], &wave->pc, 8);
	memcpy(&hw[SAVE_EXEC], &exec, 8);
	hw[SAVE_STATUS] = SAVE_STATUS_VALID | (wave->scc ? SAVE_STATUS_SCC : 0) | (uint32_t)!exec << 9 |
			  (uint32_t)!vcc << 10 | (wave->state == GP_ISA_BARRIER ? SAVE_STATUS_BARRIER : 0) |
			  (wave->state == GP_ISA_HALTED ? SAVE_STATUS_HALT : 0);
	hw[SAVE_TRAPSTS] = wave->trapsts;
	memcpy(&hw[SAVE_XNACK], &wave->s[GP_ISA_XNACK_MASK], 8);
	hw[SAVE_MODE] = wave->mode | (wave->gpr_index ? SAVE_MODE_GPR_INDEX : 0);
	hw[SAVE_OWN] = wave->state == GP_ISA_GWS;
	memcpy(to, wave->v, wave->row_count * sizeof(isa_row));
	to += wave->row_count * sizeof(isa_row);
	memcpy(to, sgprs, sizeof(sgprs));
	memcpy(to + sizeof(sgprs), hw, sizeof(hw));
	memcpy(to + sizeof(sgprs) + sizeof(hw), &wave->s[GP_ISA_TTMP], SAVE_TTMP_COUNT * 4u);
}

int gp_isa_wave_restore(struct gp_isa_wave *wave, const uint8_t *from, bool has_scratch)
{
	uint32_t hw[SAVE_HW_COUNT];

	memcpy(wave->v, from, wave->row_count * sizeof(isa_row));
	from += wave->row_count * sizeof(isa_row);
	memcpy(wave->s, from, SAVE_SGPRS * 4u);
	memcpy(hw, from + SAVE_SGPRS * 4u, sizeof(hw));
	memcpy(&wave->s[GP_ISA_TTMP], from + SAVE_SGPRS * 4u + sizeof(hw), SAVE_TTMP_COUNT * 4u);
	if (!(hw[SAVE_STATUS] & SAVE_STATUS_VALID))
		return -EINVAL;
	wave->scratch = has_scratch ? gp_isa_get64(wave, GP_ISA_FLAT_SCRATCH) : 0;
	wave->s[GP_ISA_M0] = hw[SAVE_M0];
	wave->s[GP_ISA_M0 + 1u] = 0;
	memcpy(&wave->pc, &hw[SAVE_PC], 8);
	memcpy(&wave->s[GP_ISA_EXEC], &hw[SAVE_EXEC], 8);
	memcpy(&wave->s[GP_ISA_XNACK_MASK], &hw[SAVE_XNACK], 8);
	wave->scc = hw[SAVE_STATUS] & SAVE_STATUS_SCC;
	wave->trapsts = hw[SAVE_TRAPSTS];
	wave->mode = hw[SAVE_MODE] & ~SAVE_MODE_GPR_INDEX;
	wave->gpr_index = hw[SAVE_MODE] & SAVE_MODE_GPR_INDEX;
	wave->state = hw[SAVE_STATUS] & SAVE_STATUS_BARRIER ? GP_ISA_BARRIER :
		      hw[SAVE_STATUS] & SAVE_STATUS_HALT    ? GP_ISA_HALTED :
		      hw[SAVE_OWN] & 1u                     ? GP_ISA_GWS :
							      GP_ISA_RUNS;
	/* Spread anew when it is next needed. */
	wave->mask_exec = 0;
	memset(wave->lane_mask, 0, sizeof(wave->lane_mask));
	return 0;
}
