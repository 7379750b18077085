/* SPDX-License-Identifier: MIT */
/*
 * Runs vector operations: brings the operands together (modifiers, halves, SDWA, DPP, indexed registers), lets the
 * lanes compute, and writes the result where EXEC allows. What an operation computes is in lanes.def.
 */
#include <fenv.h>
#include "vgpu/isa/float.h"
#include "vgpu/isa/internal.h"

#define VECTOR_MODE_PLAIN 0xf0u /* round to even, denormals as they are */

struct vector_work {
	struct isa_alu alu;
	struct gp_isa_wave *wave;
	const struct isa_instruction *in;
	uint64_t exec;
	_Alignas(64) isa_row rows[3], result;
	_Alignas(64) isa_row64 wide[3], wide_result;
};

static bool vector_is_wide(uint8_t type)
{
	return type == ISA_U64 || type == ISA_F64;
}

static bool vector_is_float(uint8_t type)
{
	return type >= ISA_F16;
}

/* DPP: which lane a lane reads; -1: none. */
static int32_t vector_dpp_lane(uint32_t control, uint32_t lane)
{
	int32_t i = (int32_t)lane, row = i & ~15, at = i & 15, by = (int32_t)(control & 15u);

	if (control < 0x100u)
		return (i & ~3) + (int32_t)(control >> (lane & 3u) * 2u & 3u);
	switch (control & 0x1f0u) {
	case 0x100: return at + by < 16 ? i + by : -1;
	case 0x110: return at >= by ? i - by : -1;
	case 0x120: return row + ((at - by) & 15);
	case 0x150: return row + by;
	}
	switch (control) {
	case 0x130: return i < 63 ? i + 1 : -1;
	case 0x134: return (i + 1) & 63;
	case 0x138: return i - 1;
	case 0x13c: return (i - 1) & 63;
	case 0x140: return row + 15 - at;
	case 0x141: return (i & ~7) + 7 - (i & 7);
	case 0x142: return row ? row - 1 : -1;
	case 0x143: return i >= 32 ? 31 : -1;
	default: return -1;
	}
}

/* Moves the lanes of the first source, and leaves out those that read nothing. */
static void vector_dpp(struct vector_work *work, const uint32_t *row, const uint64_t *wide)
{
	const struct isa_instruction *in = work->in;
	uint64_t exec = work->exec, on = 0;
	isa_row moved;
	isa_row64 moved_wide;

	for (uint32_t i = 0; i < GP_ISA_LANES; i++) {
		int32_t from = vector_dpp_lane(in->control, i);
		bool is_valid = from >= 0 && exec >> from & 1u;
		bool is_in = in->dpp_mask >> 4 >> (i >> 4) & 1u && in->dpp_mask >> (i >> 2 & 3u) & 1u;

		if (is_in && (is_valid || in->bound_zero))
			on |= 1ull << i;
		if (wide)
			moved_wide[i] = is_valid ? wide[from] : 0;
		else
			moved[i] = is_valid ? row[from] : 0;
	}
	if (wide)
		memcpy(work->wide[0], moved_wide, sizeof(moved_wide));
	else
		memcpy(work->rows[0], moved, sizeof(moved));
	work->exec &= on;
}

/* SDWA: a byte or a half of each word. */
static void vector_pick(uint32_t *row, uint32_t select, bool is_signed)
{
	uint32_t shift = select < 4u ? select * 8u : select == 5u ? 16u : 0;

	if (select >= 6u)
		return;
	if (select < 4u)
		ISA_EACH row[i] = is_signed ? (uint32_t)(int32_t)(int8_t)(row[i] >> shift) : row[i] >> shift & 0xffu;
	else
		ISA_EACH row[i] = is_signed ? (uint32_t)(int32_t)(int16_t)(row[i] >> shift) : row[i] >> shift & 0xffffu;
}

/* Whether the mode wants inputs (bit 1 of its two bits says allow) of that type flushed. */
static uint32_t vector_denormals(const struct gp_isa_wave *wave, uint8_t type)
{
	return type == ISA_F32 ? wave->mode >> 4 & 3u : wave->mode >> 6 & 3u;
}

static void vector_flush(uint32_t *row, uint8_t type)
{
	if (type == ISA_F32)
		ISA_EACH row[i] = row[i] & 0x7f800000u ? row[i] : row[i] & 0x80000000u;
	else
		ISA_EACH row[i] = row[i] & 0x7c00u ? row[i] : row[i] & ~0x7fffu;
}

static void vector_flush_wide(uint64_t *row)
{
	ISA_EACH row[i] = row[i] & 0x7ff0000000000000ull ? row[i] : row[i] & 1ull << 63;
}

static void vector_source_wide(struct vector_work *work, uint32_t n, uint8_t type)
{
	const struct isa_instruction *in = work->in;
	uint64_t *row = work->wide[n];

	gp_isa_row64(work->wave, in, n, row);
	if (in->is_dpp && n == 0)
		vector_dpp(work, NULL, row);
	if (type == ISA_F64 && in->abs >> n & 1u)
		ISA_EACH row[i] &= ~(1ull << 63);
	if (type == ISA_F64 && in->neg >> n & 1u)
		ISA_EACH row[i] ^= 1ull << 63;
	if (type == ISA_F64 && !(vector_denormals(work->wave, type) & 1u))
		vector_flush_wide(row);
	work->alu.q[n] = row;
}

static void vector_source(struct vector_work *work, uint32_t n, uint8_t type)
{
	const struct isa_instruction *in = work->in;
	uint32_t *buffer = work->rows[n], sign = type == ISA_F16 ? 0x8000u : 0x80000000u;
	const uint32_t *row = gp_isa_row(work->wave, in, n, buffer);
	bool abs = vector_is_float(type) && in->abs >> n & 1u, neg = vector_is_float(type) && in->neg >> n & 1u;
	bool is_half = type == ISA_F16 || type == ISA_U16, high = is_half && in->opsel >> n & 1u;
	bool flush = vector_is_float(type) && !(vector_denormals(work->wave, type) & 1u);

	if (in->is_dpp && n == 0) {
		vector_dpp(work, row, NULL);
		row = buffer;
	}
	if ((abs || neg || high || flush || in->is_sdwa) && row != buffer) {
		memcpy(buffer, row, sizeof(isa_row));
		row = buffer;
	}
	if (in->is_sdwa && n < 2u)
		vector_pick(buffer, in->sdwa_source[n], in->sdwa_sext[n]);
	if (high)
		ISA_EACH buffer[i] >>= 16;
	if (abs)
		ISA_EACH buffer[i] &= ~sign;
	if (neg)
		ISA_EACH buffer[i] ^= sign;
	if (flush)
		vector_flush(buffer, type);
	work->alu.r[n] = row;
}

static float vector_scale(uint32_t omod)
{
	static const float scales[4] = { 1.0f, 2.0f, 4.0f, 0.5f };

	return scales[omod & 3u];
}

/* Output modifiers of floats. */
static void vector_finish(const struct vector_work *work, uint32_t *row, uint64_t *wide, uint8_t type)
{
	const struct isa_instruction *in = work->in;
	float scale = vector_scale(in->omod);

	if (type == ISA_F64) {
		ISA_EACH
		{
			double x = isa_f64(wide[i]) * (double)scale;

			wide[i] = isa_bits64(!in->clamp ? x : x > 0 ? (x < 1 ? x : 1.0) : 0.0);
		}
		return;
	}
	ISA_EACH
	{
		float x = (type == ISA_F16 ? isa_f16(row[i] & 0xffffu) : isa_f32(row[i])) * scale;

		if (in->clamp)
			x = x > 0 ? (x < 1 ? x : 1.0f) : 0.0f;
		row[i] = type == ISA_F16 ? isa_half(x, ISA_ROUND_EVEN) : isa_bits(x);
	}
}

/* Results of SDWA and of halves go into a part of the register. */
static void vector_place(const struct vector_work *work, uint32_t *row, const struct isa_kind *kind)
{
	const struct isa_instruction *in = work->in;
	const uint32_t *old = work->wave->v[in->vdst];

	if (in->is_sdwa && in->sdwa_dst < 6u) {
		uint32_t select = in->sdwa_dst, shift = select < 4u ? select * 8u : select == 5u ? 16u : 0;
		uint32_t part = select < 4u ? 0xffu : 0xffffu, mask = part << shift, top = (part >> 1) + 1u;

		ISA_EACH
		{
			uint32_t x = row[i] & part, high = x & top ? ~(mask | ((1u << shift) - 1u)) : 0;

			row[i] = in->sdwa_unused == 2u ? (old[i] & ~mask) | x << shift :
				 in->sdwa_unused == 1u ? x << shift | high :
							 x << shift;
		}
	} else if (kind && kind->keeps_half) {
		if (in->opsel & 8u)
			ISA_EACH row[i] = (old[i] & 0xffffu) | row[i] << 16;
		else
			ISA_EACH row[i] = (old[i] & 0xffff0000u) | (row[i] & 0xffffu);
	}
}

static void vector_write(struct vector_work *work, uint32_t row, const uint32_t *from)
{
	struct gp_isa_wave *wave = work->wave;

	if (work->exec == isa_exec(wave)) {
		gp_isa_put(wave, row, from);
		return;
	}
	for (uint32_t i = 0; i < GP_ISA_LANES; i++)
		if (work->exec >> i & 1u)
			wave->v[row][i] = from[i];
}

static void vector_write_wide(struct vector_work *work, uint32_t row, const uint64_t *from)
{
	struct gp_isa_wave *wave = work->wave;

	if (work->exec == isa_exec(wave)) {
		gp_isa_put_wide(wave, row, from);
		return;
	}
	for (uint32_t i = 0; i < GP_ISA_LANES; i++)
		if (work->exec >> i & 1u) {
			wave->v[row][i] = (uint32_t)from[i];
			wave->v[row + 1u][i] = (uint32_t)(from[i] >> 32);
		}
}

/* Registers moved by M0 (s_set_gpr_idx): bits 12 to 15 say which. False: out of the wave's registers. */
static bool vector_index(const struct gp_isa_wave *wave, const struct isa_instruction *in,
			 struct isa_instruction *ret_moved)
{
	uint32_t m0 = wave->s[GP_ISA_M0], by = m0 & 0xffu;

	*ret_moved = *in;
	for (uint32_t n = 0; n < 3u; n++)
		if (m0 >> 12 >> n & 1u && n < in->source_count && in->source[n] >= ISA_VECTOR)
			ret_moved->source[n] = (uint16_t)(in->source[n] + by);
	if (m0 >> 15 & 1u)
		ret_moved->vdst = (uint16_t)(in->vdst + by);
	/* Pairs included, no operation reaches further than one more. */
	for (uint32_t n = 0; n < in->source_count; n++)
		if (ret_moved->source[n] >= ISA_VECTOR && ret_moved->source[n] - ISA_VECTOR + 2u > wave->row_count &&
		    in->source[n] != ret_moved->source[n])
			return false;
	return in->vdst == ret_moved->vdst || ret_moved->vdst + 2u <= wave->row_count;
}

static const int vector_fenv[4] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };

static void vector_compute(struct vector_work *work, isa_lanes_run *run, uint8_t result, bool ignores_round)
{
	uint32_t narrow = work->wave->mode & 3u, other = work->wave->mode >> 2 & 3u;
	uint32_t host = result == ISA_F32 ? narrow : result == ISA_F64 ? other : 0;

	work->alu.round = result == ISA_F16 ? other : narrow;
	if (!host || ignores_round) {
		run(&work->alu);
		return;
	}
	fesetround(vector_fenv[host]);
	run(&work->alu);
	fesetround(FE_TONEAREST);
}

static enum isa_result vector_run(struct gp_isa_wave *wave, const struct isa_instruction *in)
{
	const struct isa_kind *kind = in->lanes->kind;
	isa_lanes_run *run = gp_isa_lanes->ops[in->lanes->index];
	struct vector_work work;
	uint32_t *to = work.result;
	bool is_wide = vector_is_wide(kind->result), is_float = vector_is_float(kind->result);

	work.wave = wave;
	work.in = in;
	work.exec = isa_exec(wave);
	work.alu.clamp = in->clamp;
	for (uint32_t n = 0; n < kind->source_count; n++)
		if (vector_is_wide(kind->source[n]))
			vector_source_wide(&work, n, kind->source[n]);
		else
			vector_source(&work, n, kind->source[n]);
	if (kind->mask_in)
		work.alu.mask_in =
			kind->source_count == 2u ? gp_isa_scalar64(wave, in, 2) : gp_isa_get64(wave, GP_ISA_VCC);
	work.alu.d = to;
	work.alu.qd = work.wide_result;
	vector_compute(&work, run, kind->result, gp_isa_ignores_round(in->lanes));
	if (is_float && (in->omod || in->clamp))
		vector_finish(&work, to, work.wide_result, kind->result);
	if (is_float && !(vector_denormals(wave, kind->result) & 2u)) {
		if (is_wide)
			vector_flush_wide(work.wide_result);
		else
			vector_flush(to, kind->result);
	}
	if (kind->mask_out)
		gp_isa_put64(wave, in->sdst, work.alu.mask_out & work.exec);
	if (is_wide) {
		vector_write_wide(&work, in->vdst, work.wide_result);
		return ISA_NEXT;
	}
	vector_place(&work, to, kind);
	vector_write(&work, in->vdst, to);
	return ISA_NEXT;
}

/* Nothing but registers and constants of 32 bits: most instructions. */
static void vector_run_plain(struct gp_isa_wave *wave, const struct isa_instruction *in)
{
	_Alignas(64) isa_row buffers[3], result;
	bool is_full = isa_exec(wave) == UINT64_MAX;
	struct isa_alu alu;

	for (uint32_t n = 0; n < in->source_count; n++)
		alu.r[n] = gp_isa_row(wave, in, n, buffers[n]);
	alu.clamp = false;
	alu.round = ISA_ROUND_EVEN;
	alu.d = is_full ? wave->v[in->vdst] : result;
	gp_isa_lanes->ops[in->lanes->index](&alu);
	if (!is_full)
		gp_isa_lanes->blend(wave->v[in->vdst], result, gp_isa_lane_mask(wave));
}

enum isa_result gp_isa_run_lanes(struct gp_isa_group *group, struct gp_isa_wave *wave, const struct isa_instruction *in)
{
	struct isa_instruction moved;

	if (wave->gpr_index && wave->s[GP_ISA_M0] >> 12 & 15u) {
		if (!vector_index(wave, in, &moved))
			return ISA_ILLEGAL;
		return vector_run(wave, &moved);
	}
	if (in->is_plain && (wave->mode & 0xffu) == VECTOR_MODE_PLAIN) {
		vector_run_plain(wave, in);
		return ISA_NEXT;
	}
	return vector_run(wave, in);
}

static const struct isa_kind vector_compare_kinds[ISA_COMPARE_COUNT] = {
	[ISA_COMPARE_F16] = { 2, { ISA_F16, ISA_F16 } },       [ISA_COMPARE_F32] = { 2, { ISA_F32, ISA_F32 } },
	[ISA_COMPARE_F64] = { 2, { ISA_F64, ISA_F64 } },       [ISA_COMPARE_I16] = { 2, { ISA_U16, ISA_U16 } },
	[ISA_COMPARE_U16] = { 2, { ISA_U16, ISA_U16 } },       [ISA_COMPARE_I32] = { 2, { ISA_U32, ISA_U32 } },
	[ISA_COMPARE_U32] = { 2, { ISA_U32, ISA_U32 } },       [ISA_COMPARE_I64] = { 2, { ISA_U64, ISA_U64 } },
	[ISA_COMPARE_U64] = { 2, { ISA_U64, ISA_U64 } },       [ISA_COMPARE_CLASS_F16] = { 2, { ISA_F16, ISA_U32 } },
	[ISA_COMPARE_CLASS_F32] = { 2, { ISA_F32, ISA_U32 } }, [ISA_COMPARE_CLASS_F64] = { 2, { ISA_F64, ISA_U32 } },
};

const struct isa_kind *gp_isa_compare_kind(uint32_t compare)
{
	return &vector_compare_kinds[compare];
}

enum isa_result gp_isa_run_compare(struct gp_isa_group *group, struct gp_isa_wave *wave,
				   const struct isa_instruction *in)
{
	const struct isa_kind *kind = &vector_compare_kinds[in->compare];
	struct isa_instruction moved;
	struct vector_work work;
	uint64_t mask;

	if (wave->gpr_index && wave->s[GP_ISA_M0] >> 12 & 15u) {
		if (!vector_index(wave, in, &moved))
			return ISA_ILLEGAL;
		in = &moved;
	}
	work.wave = wave;
	work.in = in;
	work.exec = isa_exec(wave);
	work.alu.relation = in->relation;
	for (uint32_t n = 0; n < 2u; n++)
		if (vector_is_wide(kind->source[n]))
			vector_source_wide(&work, n, kind->source[n]);
		else
			vector_source(&work, n, kind->source[n]);
	gp_isa_lanes->compares[in->compare](&work.alu);
	mask = work.alu.mask_out & work.exec;
	gp_isa_put64(wave, in->sdst, mask);
	if (in->writes_exec)
		gp_isa_put64(wave, GP_ISA_EXEC, mask);
	return ISA_NEXT;
}

/* Operations on single lanes, and those that are no arithmetic. */

#define RUN(name)                                                                                  \
	static enum isa_result vector_##name(struct gp_isa_group *group, struct gp_isa_wave *wave, \
					     const struct isa_instruction *in)

RUN(nop)
{
	return ISA_NEXT;
}

RUN(readfirstlane_b32)
{
	uint64_t exec = isa_exec(wave);
	isa_row buffer;

	wave->s[in->sdst] = gp_isa_row(wave, in, 0, buffer)[exec ? __builtin_ctzll(exec) : 0];
	return ISA_NEXT;
}

RUN(readlane_b32)
{
	isa_row buffer;

	wave->s[in->sdst] = gp_isa_row(wave, in, 0, buffer)[gp_isa_scalar(wave, in, 1) & 63u];
	return ISA_NEXT;
}

RUN(writelane_b32)
{
	wave->v[in->vdst][gp_isa_scalar(wave, in, 1) & 63u] = gp_isa_scalar(wave, in, 0);
	return ISA_NEXT;
}

RUN(swap_b32)
{
	uint32_t other = in->source[0] - ISA_VECTOR;
	isa_row kept;

	memcpy(kept, wave->v[in->vdst], sizeof(kept));
	gp_isa_put(wave, in->vdst, wave->v[other]);
	gp_isa_put(wave, other, kept);
	return ISA_NEXT;
}

RUN(accvgpr_mov_b32)
{
	isa_row kept;

	memcpy(kept, wave->v[in->source[0] - ISA_VECTOR], sizeof(kept));
	gp_isa_put(wave, in->vdst, kept);
	return ISA_NEXT;
}

/* a: what the operands are, for decode.c. */
const struct isa_op gp_isa_vop_special[] = {
	{ "v_nop", vector_nop, 0, ISA_OPERANDS_NONE, ISA_VOP1 },
	{ "v_readfirstlane_b32", vector_readfirstlane_b32, 2, ISA_OPERANDS_TO_SCALAR, ISA_VOP1 },
	{ "v_clrexcp", vector_nop, 53, ISA_OPERANDS_NONE, ISA_VOP1 },
	{ "v_swap_b32", vector_swap_b32, 81, ISA_OPERANDS_ROWS, ISA_VOP1 },
	{ "v_accvgpr_mov_b32", vector_accvgpr_mov_b32, 82, ISA_OPERANDS_ACC, ISA_VOP1 },
	{ "v_readlane_b32", vector_readlane_b32, 649, ISA_OPERANDS_TO_SCALAR, ISA_VOP3 },
	{ "v_writelane_b32", vector_writelane_b32, 650, ISA_OPERANDS_SCALAR, ISA_VOP3 },
	{ 0 },
};
