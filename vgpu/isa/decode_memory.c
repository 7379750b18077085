/* SPDX-License-Identifier: MIT */
/* Decodes what reaches memory: SMEM, DS, FLAT and MUBUF. Judges registers as decode.c does. */
#include "vgpu/isa/decode.h"

bool gp_isa_decode_smem(struct isa_decode *d)
{
	const struct isa_op *op = gp_isa_decode_find(gp_isa_smem, d->w0 >> 18 & 0xffu);
	struct isa_instruction *in = d->in;
	uint32_t base = (d->w0 & 0x3fu) * 2u, words;
	bool immediate = d->w0 >> 17 & 1u, both = d->w0 >> 14 & 1u;

	if (!gp_isa_decode_op(d, op))
		return false;
	words = op->number >= 8u && op->number < 16u ? 4u : op->number >= 24u && op->number < 32u ? 4u : 2u;
	in->source[0] = (uint16_t)base;
	in->offset = (int32_t)(d->w1 << 11) >> 11;
	in->control = (uint16_t)((immediate ? 1u : 0) | (!immediate || both ? 2u : 0));
	/* With both, the register is in the last bits; else where the immediate would be. */
	if (in->control & 2u && !gp_isa_decode_source(d, 1, immediate ? d->w1 >> 25 : d->w1 & 0x7fu, ISA_U32))
		return false;
	return base + words <= GP_ISA_SGPR_MAX && gp_isa_decode_scalar_to(d, d->w0 >> 6 & 0x7fu, op->a);
}

bool gp_isa_decode_ds(struct isa_decode *d)
{
	const struct isa_op *op = gp_isa_decode_find(gp_isa_ds, d->w0 >> 17 & 0xffu);
	bool is_acc = d->w0 >> 25 & 1u && d->target >= GP_ISA_GFX90A;
	struct isa_instruction *in = d->in;
	struct isa_extent extent;

	in->counts_lanes = true;
	if (!gp_isa_decode_op(d, op))
		return false;
	extent = gp_isa_ds_extent(op);
	in->offset = (int32_t)(d->w0 & 0xffffu);
	in->control = d->w0 >> 16 & 1u; /* gds */
	if (extent.address)
		in->source[0] = (uint16_t)(ISA_VECTOR + gp_isa_decode_row(d, d->w1 & 0xffu, false, 1));
	if (extent.data & 15u)
		in->source[1] =
			(uint16_t)(ISA_VECTOR + gp_isa_decode_row(d, d->w1 >> 8 & 0xffu, is_acc, extent.data & 15u));
	if (extent.data >> 4)
		in->source[2] =
			(uint16_t)(ISA_VECTOR + gp_isa_decode_row(d, d->w1 >> 16 & 0xffu, is_acc, extent.data >> 4));
	if (extent.result)
		in->vdst = (uint16_t)gp_isa_decode_row(d, d->w1 >> 24, is_acc, extent.result);
	return true;
}

bool gp_isa_decode_flat(struct isa_decode *d)
{
	const struct isa_op *op = gp_isa_decode_find(gp_isa_flat, d->w0 >> 18 & 0x7fu);
	uint32_t segment = d->w0 >> 14 & 3u, saddr = d->w1 >> 16 & 0x7fu;
	bool is_acc = d->w1 >> 23 & 1u && d->target >= GP_ISA_GFX90A, has_saddr = saddr != 0x7fu;
	struct isa_instruction *in = d->in;
	struct isa_extent extent;

	in->counts_lanes = true;
	if (!gp_isa_decode_op(d, op) || segment == 3u)
		return false;
	/* Scratch takes no atomics; flat knows no scalar address. */
	if (segment == 1u && op->number >= 64u)
		return false;
	extent = gp_isa_flat_extent(op);
	in->offset = segment ? (int32_t)(d->w0 << 19) >> 19 : (int32_t)(d->w0 & 0xfffu);
	/* control: segment; 4 returns the old value; 8 has a scalar address; 16 has a vector address. */
	in->control = (uint16_t)(segment | (d->w0 >> 16 & 1u) << 2);
	if (segment && has_saddr) {
		if (saddr + 2u > GP_ISA_SGPR_MAX)
			return false;
		in->sdst = (uint16_t)saddr;
		in->control |= 8u;
	}
	if (segment != 1u || (d->target == GP_ISA_GFX940 ? d->w0 >> 13 & 1u : !has_saddr)) {
		uint32_t words = segment == 1u || (segment == 2u && has_saddr) ? 1u : 2u;

		in->source[0] = (uint16_t)(ISA_VECTOR + gp_isa_decode_row(d, d->w1 & 0xffu, false, words));
		in->control |= 16u;
	}
	if (extent.data)
		in->source[1] = (uint16_t)(ISA_VECTOR + gp_isa_decode_row(d, d->w1 >> 8 & 0xffu, is_acc, extent.data));
	if (extent.result && (op->number < 64u || in->control & 4u))
		in->vdst = (uint16_t)gp_isa_decode_row(d, d->w1 >> 24, is_acc, extent.result);
	return true;
}

bool gp_isa_decode_mubuf(struct isa_decode *d)
{
	const struct isa_op *op = gp_isa_decode_find(gp_isa_mubuf, d->w0 >> 18 & 0x7fu);
	bool is_acc = d->w1 >> 23 & 1u && d->target >= GP_ISA_GFX90A;
	struct isa_instruction *in = d->in;
	uint32_t resource = (d->w1 >> 16 & 0x1fu) * 4u, words;
	struct isa_extent extent;

	in->counts_lanes = true;
	if (!gp_isa_decode_op(d, op))
		return false;
	/* Cache maintenance has no operands. */
	if (!op->b)
		return true;
	extent = gp_isa_flat_extent(op);
	in->offset = (int32_t)(d->w0 & 0xfffu);
	/* control: 1 offen, 2 idxen, 4 returns the old value, 8 into LDS. */
	in->control = (uint16_t)((d->w0 >> 12 & 3u) | (d->w0 >> 14 & 1u) << 2 | (d->w0 >> 16 & 1u) << 3);
	if (resource + 4u > GP_ISA_SGPR_MAX || in->control & 8u)
		return false;
	in->sdst = (uint16_t)resource;
	if (!gp_isa_decode_source(d, 2, d->w1 >> 24, ISA_U32))
		return false;
	if (in->control & 3u)
		in->source[0] = (uint16_t)(ISA_VECTOR + gp_isa_decode_row(d, d->w1 & 0xffu, false,
									  (in->control & 3u) == 3u ? 2u : 1u));
	words = extent.data > extent.result ? extent.data : extent.result;
	in->vdst = (uint16_t)gp_isa_decode_row(d, d->w1 >> 8 & 0xffu, is_acc, words);
	in->source[1] = (uint16_t)(ISA_VECTOR + in->vdst);
	return true;
}
