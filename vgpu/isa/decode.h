/* SPDX-License-Identifier: MIT */
/* What the two files of the decoder share. */
#ifndef GP_VGPU_ISA_DECODE_H
#define GP_VGPU_ISA_DECODE_H

#include "vgpu/isa/internal.h"

struct isa_decode {
	enum gp_isa_target target;
	uint32_t accum_offset, w0, w1;
	struct isa_instruction *in;
};

/* The line of a table that has this number; NULL: none. */
const struct isa_op *gp_isa_decode_find(const struct isa_op *table, uint32_t number);
bool gp_isa_decode_op(struct isa_decode *d, const struct isa_op *op);
/* The row of a vector register, counted as touched. */
uint32_t gp_isa_decode_row(struct isa_decode *d, uint32_t number, bool is_acc, uint32_t words);
void gp_isa_decode_touch(struct isa_decode *d, uint32_t row, uint32_t words);
/* An operand of nine bits; false: none that exists. */
bool gp_isa_decode_source(struct isa_decode *d, uint32_t which, uint32_t code, uint8_t type);
bool gp_isa_decode_scalar_to(struct isa_decode *d, uint32_t number, uint32_t words);
bool gp_isa_decode_smem(struct isa_decode *d);
bool gp_isa_decode_ds(struct isa_decode *d);
bool gp_isa_decode_flat(struct isa_decode *d);
bool gp_isa_decode_mubuf(struct isa_decode *d);

#endif
