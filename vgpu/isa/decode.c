/* SPDX-License-Identifier: MIT */
/*
 * From words to instructions. Register numbers are judged here, once: what comes out touches scalar registers below
 * GP_ISA_SGPR_MAX and rows below row_end, which the wave must have (wave.c). Anything else is an instruction that is
 * not executed here.
 */
#include "vgpu/isa/decode.h"

static const struct isa_lane_op *decode_by_vop1[256], *decode_by_vop2[64], *decode_by_vop3[1024], *decode_by_vop3p[128];
static char decode_compare_names[256][28];
static const struct isa_lane_op *decode_mad, *decode_fma, *decode_half_mad, *decode_mul_legacy;

const struct isa_op *gp_isa_decode_find(const struct isa_op *table, uint32_t number)
{
	for (; table->name; table++)
		if (table->number == number)
			return table;
	return NULL;
}

/* Compares have a regular number: two bits say the type, then the relation. */
static bool decode_compare(uint32_t number, uint8_t *ret_compare, uint8_t *ret_relation, bool *ret_exec)
{
	static const uint8_t classes[3] = { ISA_COMPARE_CLASS_F32, ISA_COMPARE_CLASS_F64, ISA_COMPARE_CLASS_F16 };

	*ret_relation = number & 15u;
	*ret_exec = number >> 4 & 1u;
	if (number >= 0x10u && number < 0x16u) {
		*ret_compare = classes[(number - 0x10u) / 2u];
		*ret_exec = number & 1u;
		return true;
	}
	if (number >= 0x20u && number < 0x80u) {
		*ret_compare = (uint8_t)(ISA_COMPARE_F16 + (number - 0x20u) / 0x20u);
		return true;
	}
	if (number < 0xa0u || number > 0xffu)
		return false;
	*ret_compare = (uint8_t)(ISA_COMPARE_I16 + (number - 0xa0u) / 0x20u * 2u + (number >> 3 & 1u));
	*ret_relation &= 7u;
	return true;
}

static void decode_name_compares(void)
{
	static const char *const floats[16] = { "f", "lt",  "eq",  "le",  "gt",  "lg",  "ge",  "o",
						"u", "nge", "nlg", "ngt", "nle", "neq", "nlt", "tru" };
	static const char *const integers[8] = { "f", "lt", "eq", "le", "gt", "ne", "ge", "t" };
	static const char *const types[ISA_COMPARE_COUNT] = { "f16", "f32", "f64", "i16", "u16", "i32",
							      "u32", "i64", "u64", "f16", "f32", "f64" };

	for (uint32_t number = 0; number < 256u; number++) {
		uint8_t compare, relation;
		bool exec;
		char *name = decode_compare_names[number];

		if (!decode_compare(number, &compare, &relation, &exec))
			continue;
		strcpy(name, exec ? "v_cmpx_" : "v_cmp_");
		strcat(name, compare >= ISA_COMPARE_CLASS_F16 ? "class" :
			     compare <= ISA_COMPARE_F64       ? floats[relation] :
								integers[relation]);
		strcat(name, "_");
		strcat(name, types[compare]);
	}
}

static void decode_build(void)
{
	static bool is_built;

	if (is_built)
		return;
	is_built = true;
	decode_name_compares();
	for (uint32_t i = 0; i < gp_isa_lane_op_count; i++) {
		const struct isa_lane_op *op = &gp_isa_lane_ops[i];

		switch (op->encoding) {
		case ISA_VOP1: decode_by_vop1[op->number] = decode_by_vop3[320u + op->number] = op; break;
		case ISA_VOP2: decode_by_vop2[op->number] = decode_by_vop3[256u + op->number] = op; break;
		case ISA_VOP3: decode_by_vop3[op->number] = op; break;
		default: decode_by_vop3p[op->number] = op; break;
		}
	}
	decode_mad = decode_by_vop3[449];
	decode_fma = decode_by_vop3[459];
	decode_half_mad = decode_by_vop3[490];
	decode_mul_legacy = decode_by_vop3[673];
}

/* The rows an operand of so many words takes. */
void gp_isa_decode_touch(struct isa_decode *d, uint32_t row, uint32_t words)
{
	if (row + words > d->in->row_end)
		d->in->row_end = (uint16_t)(row + words);
}

uint32_t gp_isa_decode_row(struct isa_decode *d, uint32_t number, bool is_acc, uint32_t words)
{
	uint32_t row = is_acc ? d->accum_offset + number : number;

	gp_isa_decode_touch(d, row, words);
	return row;
}

static uint32_t decode_words(uint8_t type)
{
	return type == ISA_U64 || type == ISA_F64 ? 2u : 1u;
}

/* An operand of nine bits; false: none that exists. */
bool gp_isa_decode_source(struct isa_decode *d, uint32_t which, uint32_t code, uint8_t type)
{
	struct isa_instruction *in = d->in;

	if (code >= 256u) {
		in->source[which] =
			(uint16_t)(ISA_VECTOR + gp_isa_decode_row(d, code - 256u, false, decode_words(type)));
		return true;
	}
	if (code < GP_ISA_SGPR_MAX) {
		in->source[which] = (uint16_t)code;
		return code + decode_words(type) <= GP_ISA_SGPR_MAX;
	}
	if (gp_isa_constant(code, d->w1, type, &in->value[which])) {
		in->source[which] = ISA_CONSTANT;
		return true;
	}
	in->source[which] = (uint16_t)code;
	return (code >= 235u && code <= 238u) || (code >= 251u && code <= 253u);
}

bool gp_isa_decode_scalar_to(struct isa_decode *d, uint32_t number, uint32_t words)
{
	d->in->sdst = (uint16_t)number;
	return number + words <= GP_ISA_SGPR_MAX;
}

static uint8_t decode_scalar_type(uint32_t words)
{
	return words == 2u ? ISA_U64 : ISA_U32;
}

bool gp_isa_decode_op(struct isa_decode *d, const struct isa_op *op)
{
	if (!op)
		return false;
	d->in->op = op;
	d->in->run = op->run;
	d->in->name = op->name;
	return true;
}

/* Scalar instructions. */

static bool decode_sop(struct isa_decode *d)
{
	uint32_t s0 = d->w0 & 0xffu, s1 = d->w0 >> 8 & 0xffu, to = d->w0 >> 16 & 0x7fu, top = d->w0 >> 23;
	struct isa_instruction *in = d->in;
	const struct isa_op *op;
	uint32_t from;

	in->offset = (int16_t)d->w0;
	if (top == 0x17f)
		return gp_isa_decode_op(d, gp_isa_decode_find(gp_isa_sopp, to));
	if (top >> 5 == 0xb && top < 0x17d) {
		op = gp_isa_decode_find(gp_isa_sopk, d->w0 >> 23 & 0x1fu);
		if (op && op->number == 20u)
			in->size = 8;
		return gp_isa_decode_op(d, op) && gp_isa_decode_scalar_to(d, to, op->a);
	}
	if (top == 0x17d)
		op = gp_isa_decode_find(gp_isa_sop1, s1);
	else
		op = gp_isa_decode_find(top == 0x17e ? gp_isa_sopc : gp_isa_sop2,
					top == 0x17e ? to : d->w0 >> 23 & 0x7fu);
	if (!gp_isa_decode_op(d, op) || !gp_isa_decode_scalar_to(d, to, op->a))
		return false;
	from = op->b & 3u;
	if (from && !gp_isa_decode_source(d, 0, s0, decode_scalar_type(from)))
		return false;
	from = op->b >> 2 & 3u;
	if (from && !gp_isa_decode_source(d, 1, s1, decode_scalar_type(from)))
		return false;
	/* Registers by number: a register must be named. */
	if (top == 0x17d && (s1 == 42u || s1 == 43u) && in->source[0] >= GP_ISA_FLAT_SCRATCH)
		return false;
	if (!from)
		in->source[1] = in->source[0];
	in->value[1] = from ? in->value[1] : in->value[0];
	if (((op->b & 3u) && s0 == 255u) || (from && s1 == 255u))
		in->size = 8;
	return true;
}

/* Vector arithmetic. */

static void decode_plain(struct isa_instruction *in)
{
	const struct isa_kind *kind = in->lanes->kind;

	in->is_plain = !in->neg && !in->abs && !in->omod && !in->clamp && !in->opsel && !in->is_dpp && !in->is_sdwa &&
		       !kind->mask_in && !kind->mask_out && !kind->keeps_half && decode_words(kind->result) == 1u;
	for (uint32_t n = 0; n < kind->source_count; n++)
		in->is_plain &= decode_words(kind->source[n]) == 1u;
}

static bool decode_lanes(struct isa_decode *d, const struct isa_lane_op *op, const uint32_t sources[3])
{
	struct isa_instruction *in = d->in;
	uint32_t row = in->vdst;

	if (!op)
		return false;
	in->lanes = op;
	in->run = gp_isa_run_lanes;
	in->name = op->name;
	in->source_count = op->kind->source_count;
	for (uint32_t n = 0; n < op->kind->source_count; n++) {
		bool is_old = op->kind->accumulates && n == op->kind->source_count - 1u;

		if (!gp_isa_decode_source(d, n, is_old ? 256u + row : sources[n], op->kind->source[n]))
			return false;
	}
	/* The mask that goes in stands where a third source would. */
	if (op->kind->mask_in && op->kind->source_count == 2u &&
	    (sources[2] >= 256u || !gp_isa_decode_source(d, 2, sources[2], ISA_U64)))
		return false;
	gp_isa_decode_touch(d, row, decode_words(op->kind->result));
	if (op->kind->mask_out && in->sdst + 2u > GP_ISA_SGPR_MAX)
		return false;
	decode_plain(in);
	return true;
}

static bool decode_compared(struct isa_decode *d, uint32_t number, const uint32_t sources[2])
{
	struct isa_instruction *in = d->in;
	const struct isa_kind *kind;

	if (!decode_compare(number, &in->compare, &in->relation, &in->writes_exec))
		return false;
	kind = gp_isa_compare_kind(in->compare);
	in->run = gp_isa_run_compare;
	in->name = decode_compare_names[number];
	in->source_count = 2;
	return in->sdst + 2u <= GP_ISA_SGPR_MAX && gp_isa_decode_source(d, 0, sources[0], kind->source[0]) &&
	       gp_isa_decode_source(d, 1, sources[1], kind->source[1]);
}

static bool decode_special(struct isa_decode *d, const struct isa_op *op, const uint32_t sources[2])
{
	struct isa_instruction *in = d->in;

	if (!gp_isa_decode_op(d, op))
		return false;
	in->source_count = 0;
	switch (op->a) {
	case ISA_OPERANDS_NONE: return true;
	case ISA_OPERANDS_TO_SCALAR:
		in->sdst = in->vdst;
		if (in->sdst >= GP_ISA_SGPR_MAX || !gp_isa_decode_source(d, 0, sources[0], ISA_U32))
			return false;
		return op->b == ISA_VOP1 || (sources[1] < 256u && gp_isa_decode_source(d, 1, sources[1], ISA_U32));
	case ISA_OPERANDS_SCALAR:
		gp_isa_decode_touch(d, in->vdst, 1);
		return sources[0] < 256u && sources[1] < 256u && gp_isa_decode_source(d, 0, sources[0], ISA_U32) &&
		       gp_isa_decode_source(d, 1, sources[1], ISA_U32);
	default:
		if (sources[0] < 256u)
			return false;
		in->source[0] =
			(uint16_t)(ISA_VECTOR + gp_isa_decode_row(d, sources[0] - 256u, op->a == ISA_OPERANDS_ACC, 1));
		in->vdst = (uint16_t)gp_isa_decode_row(d, in->vdst, op->a == ISA_OPERANDS_ACC, 1);
		return true;
	}
}

static const struct isa_op *decode_find_special(uint32_t number, uint8_t encoding)
{
	for (const struct isa_op *op = gp_isa_vop_special; op->name; op++)
		if (op->number == number && op->b == encoding)
			return op;
	return NULL;
}

/* The word after the instruction says how the first source's lanes move. */
static bool decode_dpp(struct isa_decode *d)
{
	struct isa_instruction *in = d->in;
	uint32_t w = d->w1;

	in->size = 8;
	in->is_dpp = true;
	in->control = w >> 8 & 0x1ffu;
	in->bound_zero = w >> 19 & 1u;
	in->neg = (uint8_t)((w >> 20 & 1u) | (w >> 22 & 1u) << 1);
	in->abs = (uint8_t)((w >> 21 & 1u) | (w >> 23 & 1u) << 1);
	in->dpp_mask = (uint8_t)(w >> 24);
	return true;
}

static void decode_sdwa(struct isa_decode *d, bool is_compare, uint32_t sources[3])
{
	struct isa_instruction *in = d->in;
	uint32_t w = d->w1;

	in->size = 8;
	in->is_sdwa = true;
	sources[0] = (w & 0xffu) + (w >> 23 & 1u ? 0 : 256u);
	if (w >> 31)
		sources[1] -= 256u;
	in->sdwa_source[0] = w >> 16 & 7u;
	in->sdwa_sext[0] = w >> 19 & 1u;
	in->sdwa_source[1] = w >> 24 & 7u;
	in->sdwa_sext[1] = w >> 27 & 1u;
	in->neg = (uint8_t)((w >> 20 & 1u) | (w >> 28 & 1u) << 1);
	in->abs = (uint8_t)((w >> 21 & 1u) | (w >> 29 & 1u) << 1);
	in->sdwa_dst = 6;
	if (is_compare) {
		in->sdst = w >> 15 & 1u ? w >> 8 & 0x7fu : GP_ISA_VCC;
		return;
	}
	in->sdwa_dst = w >> 8 & 7u;
	in->sdwa_unused = w >> 11 & 3u;
	in->clamp = w >> 13 & 1u;
	in->omod = w >> 14 & 3u;
}

/* v_madmk, v_madak: a literal is one of three sources. */
static bool decode_literal_mad(struct isa_decode *d, uint32_t number, uint32_t sources[3])
{
	const struct isa_lane_op *op = number >= 36u              ? decode_half_mad :
				       d->target == GP_ISA_GFX940 ? decode_fma :
								    decode_mad;
	bool is_middle = number == 23u || number == 36u;

	d->in->size = 8;
	sources[2] = is_middle ? sources[1] : 255u;
	sources[1] = is_middle ? 255u : sources[1];
	if (!decode_lanes(d, op, sources))
		return false;
	d->in->name = number == 23u ? (op == decode_fma ? "v_fmamk_f32" : "v_madmk_f32") :
		      number == 24u ? (op == decode_fma ? "v_fmaak_f32" : "v_madak_f32") :
		      number == 36u ? "v_madmk_f16" :
				      "v_madak_f16";
	return true;
}

static bool decode_vop12c(struct isa_decode *d)
{
	uint32_t top = d->w0 >> 25, sources[3] = { d->w0 & 0x1ffu, 256u + (d->w0 >> 9 & 0xffu), GP_ISA_VCC };
	struct isa_instruction *in = d->in;
	bool is_compare = top == 0x3e;
	const struct isa_op *special;

	in->counts_lanes = true;
	in->vdst = d->w0 >> 17 & 0xffu;
	in->sdst = GP_ISA_VCC;
	if (sources[0] == 255u)
		in->size = 8;
	if (sources[0] == 250u) {
		decode_dpp(d);
		sources[0] = 256u + (d->w1 & 0xffu);
	} else if (sources[0] == 249u) {
		decode_sdwa(d, is_compare, sources);
	}
	if (is_compare)
		return decode_compared(d, d->w0 >> 17 & 0xffu, sources);
	if (top == 0x3f) {
		special = decode_find_special(d->w0 >> 9 & 0xffu, ISA_VOP1);
		if (special)
			return !in->is_dpp && !in->is_sdwa && decode_special(d, special, sources);
		return decode_lanes(d, decode_by_vop1[d->w0 >> 9 & 0xffu], sources);
	}
	if (top == 23u || top == 24u || top == 36u || top == 37u)
		return !in->is_dpp && !in->is_sdwa && sources[0] != 255u && decode_literal_mad(d, top, sources);
	if (top == 4u && d->target < GP_ISA_GFX90A)
		return decode_lanes(d, decode_mul_legacy, sources);
	return decode_lanes(d, decode_by_vop2[top], sources);
}

static bool decode_vop3(struct isa_decode *d)
{
	uint32_t number = d->w0 >> 16 & 0x3ffu;
	uint32_t sources[3] = { d->w1 & 0x1ffu, d->w1 >> 9 & 0x1ffu, d->w1 >> 18 & 0x1ffu };
	const struct isa_lane_op *op = decode_by_vop3[number];
	struct isa_instruction *in = d->in;
	const struct isa_op *special;

	in->counts_lanes = true;
	in->vdst = d->w0 & 0xffu;
	in->abs = d->w0 >> 8 & 7u;
	in->opsel = d->w0 >> 11 & 15u;
	in->clamp = d->w0 >> 15 & 1u;
	in->omod = d->w1 >> 27 & 3u;
	in->neg = (uint8_t)(d->w1 >> 29);
	for (uint32_t n = 0; n < 3u; n++)
		if (sources[n] == 255u || sources[n] == 249u || sources[n] == 250u)
			return false;
	if (number < 256u) {
		in->sdst = in->vdst;
		return decode_compared(d, number, sources);
	}
	special = decode_find_special(number >= 320u && number < 448u ? number - 320u : number,
				      number >= 320u && number < 448u ? ISA_VOP1 : ISA_VOP3);
	if (special)
		return decode_special(d, special, sources);
	if (number == 260u && d->target < GP_ISA_GFX90A)
		op = decode_mul_legacy;
	if (op && op->kind->mask_out) {
		in->sdst = d->w0 >> 8 & 0x7fu;
		in->abs = in->opsel = 0;
	}
	return decode_lanes(d, op, sources);
}

/* Packed and matrix operations. */

static bool decode_mfma(struct isa_decode *d, const struct isa_op *op, const uint32_t sources[3])
{
	struct isa_instruction *in = d->in;
	bool acc[3] = { d->w1 >> 27 & 1u, d->w1 >> 28 & 1u, d->w0 >> 15 & 1u };

	/* gfx908 keeps the sums in accumulation registers, and says so by nothing. */
	if (d->target == GP_ISA_GFX908)
		acc[2] = true;
	in->vdst = (uint16_t)gp_isa_decode_row(d, d->w0 & 0xffu, acc[2], gp_isa_mfma_extent(op).result);
	for (uint32_t n = 0; n < 3u; n++) {
		uint32_t words = n == 2u ? gp_isa_mfma_extent(op).result :
				 n == 1u ? gp_isa_mfma_extent(op).data :
					   gp_isa_mfma_extent(op).address;

		if (sources[n] >= 256u)
			in->source[n] = (uint16_t)(ISA_VECTOR + gp_isa_decode_row(d, sources[n] - 256u, acc[n], words));
		else if (n < 2u || !gp_isa_decode_source(d, n, sources[n], op->b == ISA_F64 ? ISA_F64 : ISA_U32) ||
			 in->source[n] != ISA_CONSTANT)
			return false;
	}
	/* cbsz, abid: broadcast of A's blocks; blgp: moves of B. */
	in->abs = d->w0 >> 8 & 7u;
	in->opsel = d->w0 >> 11 & 15u;
	in->neg = (uint8_t)(d->w1 >> 29);
	return true;
}

/* gfx94x has other numbers for bf16, and uses the old ones for sparse matrices, which are not executed here. */
static bool decode_has_matrix(enum gp_isa_target target, uint32_t number)
{
	if (target == GP_ISA_GFX940)
		return number < 0x62u;
	return target != GP_ISA_GFX906 && !(number >= 0x5du && number <= 0x61u) && number != 0x56u && number != 0x57u;
}

static bool decode_vop3p_any(struct isa_decode *d)
{
	uint32_t number = d->w0 >> 16 & 0x7fu;
	uint32_t sources[3] = { d->w1 & 0x1ffu, d->w1 >> 9 & 0x1ffu, d->w1 >> 18 & 0x1ffu };
	const struct isa_op *op = gp_isa_decode_find(gp_isa_vop3p, number),
			    *matrix = gp_isa_decode_find(gp_isa_mfma, number);
	struct isa_instruction *in = d->in;

	in->counts_lanes = true;
	for (uint32_t n = 0; n < 3u; n++)
		if (sources[n] == 255u || sources[n] == 249u || sources[n] == 250u)
			return false;
	if (matrix)
		return decode_has_matrix(d->target, number) && gp_isa_decode_op(d, matrix) &&
		       decode_mfma(d, matrix, sources);
	in->vdst = d->w0 & 0xffu;
	in->neg = (uint8_t)(d->w1 >> 29);
	in->abs = d->w0 >> 8 & 7u; /* neg_hi */
	in->opsel = d->w0 >> 11 & 7u;
	in->opsel_hi = (uint8_t)((d->w1 >> 27 & 3u) | (d->w0 >> 14 & 1u) << 2);
	in->clamp = d->w0 >> 15 & 1u;
	if (decode_by_vop3p[number]) {
		/* Dot products: halves are taken as they stand. */
		in->neg = in->abs = in->opsel = 0;
		return decode_lanes(d, decode_by_vop3p[number], sources);
	}
	if (!gp_isa_decode_op(d, op))
		return false;
	in->source_count = op->a & 3u;
	if (op->b == ISA_PACKED_ACC_READ || op->b == ISA_PACKED_ACC_WRITE) {
		bool reads = op->b == ISA_PACKED_ACC_READ;

		if (reads && sources[0] < 256u)
			return false;
		in->vdst = (uint16_t)gp_isa_decode_row(d, in->vdst, !reads, 1);
		if (!reads)
			return gp_isa_decode_source(d, 0, sources[0], ISA_U32);
		in->source[0] = (uint16_t)(ISA_VECTOR + gp_isa_decode_row(d, sources[0] - 256u, true, 1));
		return true;
	}
	gp_isa_decode_touch(d, in->vdst, op->b == ISA_PACKED_F32 ? 2u : 1u);
	for (uint32_t n = 0; n < in->source_count; n++)
		if (!gp_isa_decode_source(d, n, sources[n],
					  op->b == ISA_PACKED_F32 ? ISA_U64 :
					  op->b == ISA_PACKED_MIX ? ISA_F32 :
								    ISA_F16))
			return false;
	/* Floats in pairs: an inline constant is one float. */
	for (uint32_t n = 0; op->b == ISA_PACKED_F32 && n < in->source_count; n++)
		if (in->source[n] == ISA_CONSTANT)
			gp_isa_constant(sources[n], 0, ISA_U32, &in->value[n]);
	return true;
}

static bool decode_any(struct isa_decode *d)
{
	if (!(d->w0 >> 31))
		return decode_vop12c(d);
	if (d->w0 >> 30 == 2u)
		return decode_sop(d);
	d->in->size = 8;
	switch (d->w0 >> 26) {
	case 0x30: return gp_isa_decode_smem(d);
	case 0x34: return d->w0 >> 23 == 0x1a7u ? decode_vop3p_any(d) : decode_vop3(d);
	case 0x36: return gp_isa_decode_ds(d);
	case 0x37: return gp_isa_decode_flat(d);
	case 0x38: return gp_isa_decode_mubuf(d);
	default: return false;
	}
}

static enum isa_result decode_illegal(struct gp_isa_group *group, struct gp_isa_wave *wave,
				      const struct isa_instruction *in)
{
	return ISA_ILLEGAL;
}

void gp_isa_decode(enum gp_isa_target target, uint32_t accum_offset, const uint32_t words[2],
		   struct isa_instruction *ret_instruction)
{
	struct isa_decode d = { target, accum_offset, words[0], words[1], ret_instruction };

	decode_build();
	*ret_instruction = (struct isa_instruction){ .words = { words[0], words[1] }, .size = 4 };
	if (!decode_any(&d)) {
		*ret_instruction =
			(struct isa_instruction){ .words = { words[0], words[1] }, .size = 4, .run = decode_illegal };
	}
}

const char *gp_isa_name(enum gp_isa_target target, const uint32_t words[2], uint32_t *ret_size)
{
	struct isa_instruction in;

	gp_isa_decode(target, 0, words, &in);
	*ret_size = in.size;
	return in.name;
}

const char *gp_isa_name_at(uint32_t index)
{
	static const struct isa_op *const tables[] = { gp_isa_sop1, gp_isa_sop2, gp_isa_sopc,        gp_isa_sopk,
						       gp_isa_sopp, gp_isa_smem, gp_isa_vop_special, gp_isa_vop3p,
						       gp_isa_ds,   gp_isa_flat, gp_isa_mubuf,       gp_isa_mfma };
	static const char *const literals[] = { "v_madmk_f32", "v_madak_f32", "v_fmamk_f32",
						"v_fmaak_f32", "v_madmk_f16", "v_madak_f16" };

	decode_build();
	if (index < gp_isa_lane_op_count)
		return gp_isa_lane_ops[index].name;
	index -= gp_isa_lane_op_count;
	for (uint32_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
		for (const struct isa_op *op = tables[t]; op->name; op++)
			if (index-- == 0)
				return op->name;
	for (uint32_t number = 0; number < 256u; number++)
		if (decode_compare_names[number][0] && index-- == 0)
			return decode_compare_names[number];
	return index < sizeof(literals) / sizeof(literals[0]) ? literals[index] : NULL;
}
