/* SPDX-License-Identifier: MIT */
/*
 * LDS: loads, stores, atomics, and the moves between lanes that go through its crossbar. In the table a is the bytes
 * (of atomics the operation), b the flags. An address outside the workgroup's LDS is a fault, as the trap handler sees
 * it.
 */
#include <errno.h>
#include "vgpu/isa/internal.h"

enum { DS_SIGNED = 1, DS_LOW = 2, DS_HIGH = 4, DS_WIDE = 8, DS_RETURNS = 16, DS_FAR = 32, DS_TWO = 64 };

static enum isa_result ds_fail(struct gp_isa_group *group, enum gp_isa_fault_kind kind, uint64_t at)
{
	group->bus->fault = kind;
	group->bus->fault_va = (uint64_t)GP_ISA_SHARED_APERTURE << 32 | (uint32_t)at;
	return ISA_FAULT;
}

static const uint32_t *ds_addresses(const struct gp_isa_wave *wave, const struct isa_instruction *in)
{
	return wave->v[in->source[0] - ISA_VECTOR];
}

/* Offsets of the one or two places an instruction touches. */
static uint32_t ds_offset(const struct isa_instruction *in, uint32_t part)
{
	uint32_t offset = (uint32_t)in->offset, step = in->op->a * (in->op->b & DS_FAR ? 64u : 1u);

	if (!(in->op->b & DS_TWO))
		return offset;
	return (part ? offset >> 8 : offset & 0xffu) * step;
}

static uint32_t ds_parts(const struct isa_instruction *in)
{
	return in->op->b & DS_TWO ? 2u : 1u;
}

/* Where the lanes of one part look; addresses wrap as words do. Lanes that are off look at 0. False: one that is on
 * lies outside. */
static bool ds_relative(struct gp_isa_group *group, struct gp_isa_wave *wave, const struct isa_instruction *in,
			uint32_t part, uint32_t *ret_relative)
{
	const uint32_t *at = ds_addresses(wave, in), *mask = gp_isa_lane_mask(wave);
	uint32_t top = 0, offset = ds_offset(in, part);

	ISA_EACH
	{
		ret_relative[i] = (at[i] + offset) & mask[i];
		top = ret_relative[i] > top ? ret_relative[i] : top;
	}
	if ((uint64_t)top + in->op->a <= group->lds_size)
		return true;
	ds_fail(group, GP_ISA_FAULT_APERTURE, top);
	return false;
}

static enum isa_result ds_load(struct gp_isa_group *group, struct gp_isa_wave *wave, const struct isa_instruction *in)
{
	_Alignas(64) isa_row relative, rows[4];
	uint32_t words = in->op->a / 4u;

	if (!isa_exec(wave))
		return ISA_NEXT;
	for (uint32_t part = 0; part < ds_parts(in); part++) {
		if (!ds_relative(group, wave, in, part, relative))
			return ISA_FAULT;
		for (uint32_t k = 0; k < words; k++)
			gp_isa_lanes->gather(rows[part * words + k], group->lds + k * 4u, relative);
	}
	/* The address may be among the results. */
	for (uint32_t k = 0; k < words * ds_parts(in); k++)
		gp_isa_put(wave, in->vdst + k, rows[k]);
	return ISA_NEXT;
}

static enum isa_result ds_load_small(struct gp_isa_group *group, struct gp_isa_wave *wave,
				     const struct isa_instruction *in)
{
	_Alignas(64) isa_row relative;
	uint32_t *to = wave->v[in->vdst], flags = in->op->b;
	uint64_t exec = isa_exec(wave);

	if (!exec)
		return ISA_NEXT;
	if (!ds_relative(group, wave, in, 0, relative))
		return ISA_FAULT;
	for (uint32_t i = 0; i < GP_ISA_LANES; i++) {
		uint32_t value = 0;

		if (!(exec >> i & 1u))
			continue;
		memcpy(&value, group->lds + relative[i], in->op->a);
		if (flags & DS_SIGNED)
			value = in->op->a == 1u ? (uint32_t)(int32_t)(int8_t)value : (uint32_t)(int32_t)(int16_t)value;
		to[i] = flags & DS_LOW  ? (to[i] & 0xffff0000u) | (value & 0xffffu) :
			flags & DS_HIGH ? (to[i] & 0xffffu) | value << 16 :
					  value;
	}
	return ISA_NEXT;
}

static enum isa_result ds_store(struct gp_isa_group *group, struct gp_isa_wave *wave, const struct isa_instruction *in)
{
	_Alignas(64) isa_row relative;
	uint64_t exec = isa_exec(wave);
	uint32_t step = in->op->a < 4u ? in->op->a : 4u, words = (in->op->a + 3u) / 4u;

	if (!exec)
		return ISA_NEXT;
	for (uint32_t part = 0; part < ds_parts(in); part++) {
		if (!ds_relative(group, wave, in, part, relative))
			return ISA_FAULT;
		for (uint32_t k = 0; k < words; k++) {
			const uint32_t *from = wave->v[in->source[part ? 2 : 1] - ISA_VECTOR + k];
			uint8_t *base = group->lds + k * 4u;

			for (uint32_t i = 0; i < GP_ISA_LANES; i++) {
				uint32_t value = from[i] >> (in->op->b & DS_HIGH ? 16 : 0);

				if (exec >> i & 1u)
					memcpy(base + relative[i], &value, step);
			}
		}
	}
	return ISA_NEXT;
}

static enum isa_result ds_atomic(struct gp_isa_group *group, struct gp_isa_wave *wave, const struct isa_instruction *in)
{
	const uint32_t *at = ds_addresses(wave, in);
	bool is_wide = in->op->b & DS_WIDE;
	uint32_t size = is_wide ? 8u : 4u, (*x)[GP_ISA_LANES] = wave->v + (in->source[1] - ISA_VECTOR);
	bool has_second = in->op->a == ISA_CMPSWAP || in->op->a == ISA_CMPSWAP_F || in->op->a == ISA_MSKOR;
	uint32_t(*y)[GP_ISA_LANES] = has_second ? wave->v + (in->source[2] - ISA_VECTOR) : x;
	uint64_t exec = isa_exec(wave);

	for (uint32_t i = 0; i < GP_ISA_LANES; i++) {
		uint64_t place = at[i] + (uint32_t)in->offset, first, second, old;

		if (!(exec >> i & 1u))
			continue;
		if (place + size > group->lds_size)
			return ds_fail(group, GP_ISA_FAULT_APERTURE, place);
		if (place % size)
			return ds_fail(group, GP_ISA_FAULT_MISALIGNED, place);
		first = x[0][i] | (is_wide ? (uint64_t)x[1][i] << 32 : 0);
		second = y[0][i] | (is_wide ? (uint64_t)y[1][i] << 32 : 0);
		/* ds_cmpst has the value to compare with first. */
		if (in->op->a == ISA_CMPSWAP || in->op->a == ISA_CMPSWAP_F)
			old = gp_isa_atomic(group->lds + place, in->op->a, is_wide, second, first);
		else
			old = gp_isa_atomic(group->lds + place, in->op->a, is_wide, first, second);
		if (!(in->op->b & DS_RETURNS))
			continue;
		wave->v[in->vdst][i] = (uint32_t)old;
		if (is_wide)
			wave->v[in->vdst + 1u][i] = (uint32_t)(old >> 32);
	}
	return ISA_NEXT;
}

/* Two exchanges at once. */
static enum isa_result ds_exchange2(struct gp_isa_group *group, struct gp_isa_wave *wave,
				    const struct isa_instruction *in)
{
	_Alignas(64) isa_row relative[2];
	uint64_t exec = isa_exec(wave);
	uint32_t words = in->op->a / 4u;

	if (!exec)
		return ISA_NEXT;
	if (!ds_relative(group, wave, in, 0, relative[0]) || !ds_relative(group, wave, in, 1, relative[1]))
		return ISA_FAULT;
	for (uint32_t i = 0; i < GP_ISA_LANES; i++)
		for (uint32_t k = 0; exec >> i & 1u && k < words * 2u; k++) {
			uint32_t part = k / words,
				 value = wave->v[in->source[part ? 2 : 1] - ISA_VECTOR + k % words][i];
			uint8_t *p = group->lds + relative[part][i] + k % words * 4u;
			uint32_t old;

			memcpy(&old, p, 4);
			memcpy(p, &value, 4);
			wave->v[in->vdst + k][i] = old;
		}
	return ISA_NEXT;
}

static enum isa_result ds_swizzle(struct gp_isa_group *group, struct gp_isa_wave *wave,
				  const struct isa_instruction *in)
{
	const uint32_t *from = ds_addresses(wave, in);
	uint32_t control = (uint32_t)in->offset & 0xffffu;
	uint64_t exec = isa_exec(wave);
	isa_row result;

	for (uint32_t i = 0; i < GP_ISA_LANES; i++) {
		uint32_t lane;

		if (control >= 0xe000u) {
			/* FFT: lanes of 32 in reversed order of bits, after masking; only the plain order is used. */
			return ISA_ILLEGAL;
		} else if (control >= 0xc000u) {
			uint32_t by = control >> 5 & 31u, keep = control & 31u;
			uint32_t moved = control >> 10 & 1u ? i - by : i + by;

			lane = (i & keep) | (moved & ~keep & 31u) | (i & 32u);
		} else if (control & 0x8000u) {
			lane = (i & ~3u) | (control >> (i & 3u) * 2u & 3u);
		} else {
			lane = (((i & control & 31u) | (control >> 5 & 31u)) ^ (control >> 10 & 31u)) | (i & 32u);
		}
		result[i] = exec >> lane & 1u ? from[lane] : 0;
	}
	gp_isa_put(wave, in->vdst, result);
	return ISA_NEXT;
}

static enum isa_result ds_permute(struct gp_isa_group *group, struct gp_isa_wave *wave,
				  const struct isa_instruction *in)
{
	const uint32_t *at = ds_addresses(wave, in), *from = wave->v[in->source[1] - ISA_VECTOR];
	uint64_t exec = isa_exec(wave);
	isa_row result = { 0 };

	for (uint32_t i = 0; i < GP_ISA_LANES; i++)
		if (exec >> i & 1u)
			result[(at[i] + (uint32_t)in->offset) / 4u & 63u] = from[i];
	gp_isa_put(wave, in->vdst, result);
	return ISA_NEXT;
}

static enum isa_result ds_bpermute(struct gp_isa_group *group, struct gp_isa_wave *wave,
				   const struct isa_instruction *in)
{
	const uint32_t *at = ds_addresses(wave, in), *from = wave->v[in->source[1] - ISA_VECTOR];
	uint64_t exec = isa_exec(wave);
	isa_row result;

	ISA_EACH
	{
		uint32_t lane = (at[i] + (uint32_t)in->offset) / 4u & 63u;

		result[i] = exec >> lane & 1u ? from[lane] : 0;
	}
	gp_isa_put(wave, in->vdst, result);
	return ISA_NEXT;
}

static enum isa_result ds_nop(struct gp_isa_group *group, struct gp_isa_wave *wave, const struct isa_instruction *in)
{
	return ISA_NEXT;
}

/* A wave's lanes count once: M0 has where. */
static enum isa_result ds_count(struct gp_isa_group *group, struct gp_isa_wave *wave, const struct isa_instruction *in)
{
	uint32_t at = (wave->s[GP_ISA_M0] >> 16) + (uint32_t)in->offset, old;
	uint32_t lanes = (uint32_t)__builtin_popcountll(isa_exec(wave));
	isa_row result;

	if ((uint64_t)at + 4u > group->lds_size)
		return ds_fail(group, GP_ISA_FAULT_APERTURE, at);
	if (at % 4u)
		return ds_fail(group, GP_ISA_FAULT_MISALIGNED, at);
	old = (uint32_t)gp_isa_atomic(group->lds + at, in->op->number == 190u ? ISA_ADD : ISA_SUB, false, lanes, 0);
	ISA_EACH result[i] = old;
	gp_isa_put(wave, in->vdst, result);
	return ISA_NEXT;
}

/* Device-wide barriers: the caller keeps the counters. */
static enum isa_result ds_gws(struct gp_isa_group *group, struct gp_isa_wave *wave, const struct isa_instruction *in)
{
	uint64_t exec = isa_exec(wave);
	uint32_t value = ds_addresses(wave, in)[exec ? __builtin_ctzll(exec) : 0];
	uint32_t resource = ((wave->s[GP_ISA_M0] >> 16 & 0x3fu) + (uint32_t)in->offset) & 0x3fu;

	if (!group->gws)
		return ISA_ILLEGAL;
	if (in->op->number == 157u) {
		/* Twice: once to arrive, again when everybody has. */
		wave->state = GP_ISA_GWS;
		return group->gws(group->context, group, in->op->number, resource, value) ? ISA_WAIT : ISA_ILLEGAL;
	}
	return group->gws(group->context, group, in->op->number, resource, value) ? ISA_NEXT : ISA_ILLEGAL;
}

struct isa_extent gp_isa_ds_extent(const struct isa_op *op)
{
	uint8_t words = (uint8_t)((op->a + 3u) / 4u), atomic = op->b & DS_WIDE ? 2u : 1u;
	uint8_t parts = op->b & DS_TWO ? 2u : 1u;

	if (op->run == ds_load || op->run == ds_load_small)
		return (struct isa_extent){ 1, 0, (uint8_t)(words * parts) };
	if (op->run == ds_store)
		return (struct isa_extent){ 1, (uint8_t)(words | (parts == 2u ? words << 4 : 0)), 0 };
	if (op->run == ds_exchange2)
		return (struct isa_extent){ 1, (uint8_t)(words | words << 4), (uint8_t)(words * 2u) };
	if (op->run == ds_atomic) {
		bool has_second = op->a == ISA_CMPSWAP || op->a == ISA_CMPSWAP_F || op->a == ISA_MSKOR;

		return (struct isa_extent){ 1, (uint8_t)(atomic | (has_second ? atomic << 4 : 0)),
					    op->b & DS_RETURNS ? atomic : 0 };
	}
	if (op->run == ds_permute || op->run == ds_bpermute)
		return (struct isa_extent){ 1, 1, 1 };
	if (op->run == ds_swizzle)
		return (struct isa_extent){ 1, 0, 1 };
	if (op->run == ds_gws)
		return (struct isa_extent){ 1, 0, 0 };
	return (struct isa_extent){ 0, 0, op->run == ds_count ? 1 : 0 };
}

/* clang-format off */
#define ATOMIC(number, name, op)                                                                            \
	{ "ds_" name "_u32", ds_atomic, number, op, 0 }, { "ds_" name "_rtn_u32", ds_atomic, number + 32, op, DS_RETURNS }, \
	{ "ds_" name "_u64", ds_atomic, number + 64, op, DS_WIDE }, { "ds_" name "_rtn_u64", ds_atomic, number + 96, op, DS_WIDE | DS_RETURNS }
#define ATOMIC_AS(number, name, type, op)                                                                       \
	{ "ds_" name "_" type "32", ds_atomic, number, op, 0 }, { "ds_" name "_rtn_" type "32", ds_atomic, number + 32, op, DS_RETURNS }, \
	{ "ds_" name "_" type "64", ds_atomic, number + 64, op, DS_WIDE }, { "ds_" name "_rtn_" type "64", ds_atomic, number + 96, op, DS_WIDE | DS_RETURNS }
const struct isa_op gp_isa_ds[] = {
	ATOMIC(0, "add", ISA_ADD), ATOMIC(1, "sub", ISA_SUB), ATOMIC(2, "rsub", ISA_RSUB), ATOMIC(3, "inc", ISA_INC), ATOMIC(4, "dec", ISA_DEC),
	ATOMIC_AS(5, "min", "i", ISA_SMIN), ATOMIC_AS(6, "max", "i", ISA_SMAX), ATOMIC(7, "min", ISA_UMIN), ATOMIC(8, "max", ISA_UMAX),
	ATOMIC_AS(9, "and", "b", ISA_AND), ATOMIC_AS(10, "or", "b", ISA_OR), ATOMIC_AS(11, "xor", "b", ISA_XOR), ATOMIC_AS(12, "mskor", "b", ISA_MSKOR),
	ATOMIC_AS(16, "cmpst", "b", ISA_CMPSWAP), ATOMIC_AS(17, "cmpst", "f", ISA_CMPSWAP_F),
	{ "ds_min_f32", ds_atomic, 18, ISA_MIN_F32, 0 }, { "ds_max_f32", ds_atomic, 19, ISA_MAX_F32, 0 }, { "ds_nop", ds_nop, 20, 0, 0 },
	{ "ds_add_f32", ds_atomic, 21, ISA_ADD_F32, 0 }, { "ds_pk_add_f16", ds_atomic, 23, ISA_PK_ADD_F16, 0 },
	{ "ds_pk_add_bf16", ds_atomic, 24, ISA_PK_ADD_BF16, 0 },
	{ "ds_wrxchg_rtn_b32", ds_atomic, 45, ISA_SWAP, DS_RETURNS }, { "ds_wrxchg_rtn_b64", ds_atomic, 109, ISA_SWAP, DS_WIDE | DS_RETURNS },
	{ "ds_wrxchg2_rtn_b32", ds_exchange2, 46, 4, DS_TWO }, { "ds_wrxchg2st64_rtn_b32", ds_exchange2, 47, 4, DS_TWO | DS_FAR },
	{ "ds_wrxchg2_rtn_b64", ds_exchange2, 110, 8, DS_TWO }, { "ds_wrxchg2st64_rtn_b64", ds_exchange2, 111, 8, DS_TWO | DS_FAR },
	{ "ds_min_rtn_f32", ds_atomic, 50, ISA_MIN_F32, DS_RETURNS }, { "ds_max_rtn_f32", ds_atomic, 51, ISA_MAX_F32, DS_RETURNS },
	{ "ds_add_rtn_f32", ds_atomic, 53, ISA_ADD_F32, DS_RETURNS },
	{ "ds_min_f64", ds_atomic, 82, ISA_MIN_F64, DS_WIDE }, { "ds_max_f64", ds_atomic, 83, ISA_MAX_F64, DS_WIDE }, { "ds_add_f64", ds_atomic, 92, ISA_ADD_F64, DS_WIDE },
	{ "ds_min_rtn_f64", ds_atomic, 114, ISA_MIN_F64, DS_WIDE | DS_RETURNS }, { "ds_max_rtn_f64", ds_atomic, 115, ISA_MAX_F64, DS_WIDE | DS_RETURNS },
	{ "ds_add_rtn_f64", ds_atomic, 124, ISA_ADD_F64, DS_WIDE | DS_RETURNS },
	{ "ds_write_b32", ds_store, 13, 4, 0 }, { "ds_write2_b32", ds_store, 14, 4, DS_TWO }, { "ds_write2st64_b32", ds_store, 15, 4, DS_TWO | DS_FAR },
	{ "ds_write_b8", ds_store, 30, 1, 0 }, { "ds_write_b16", ds_store, 31, 2, 0 }, { "ds_write_b64", ds_store, 77, 8, 0 },
	{ "ds_write2_b64", ds_store, 78, 8, DS_TWO }, { "ds_write2st64_b64", ds_store, 79, 8, DS_TWO | DS_FAR },
	{ "ds_write_b8_d16_hi", ds_store, 84, 1, DS_HIGH }, { "ds_write_b16_d16_hi", ds_store, 85, 2, DS_HIGH },
	{ "ds_write_b96", ds_store, 222, 12, 0 }, { "ds_write_b128", ds_store, 223, 16, 0 },
	{ "ds_read_b32", ds_load, 54, 4, 0 }, { "ds_read2_b32", ds_load, 55, 4, DS_TWO }, { "ds_read2st64_b32", ds_load, 56, 4, DS_TWO | DS_FAR },
	{ "ds_read_i8", ds_load_small, 57, 1, DS_SIGNED }, { "ds_read_u8", ds_load_small, 58, 1, 0 }, { "ds_read_i16", ds_load_small, 59, 2, DS_SIGNED },
	{ "ds_read_u16", ds_load_small, 60, 2, 0 }, { "ds_swizzle_b32", ds_swizzle, 61, 0, 0 }, { "ds_permute_b32", ds_permute, 62, 0, 0 },
	{ "ds_bpermute_b32", ds_bpermute, 63, 0, 0 }, { "ds_read_u8_d16", ds_load_small, 86, 1, DS_LOW }, { "ds_read_u8_d16_hi", ds_load_small, 87, 1, DS_HIGH },
	{ "ds_read_i8_d16", ds_load_small, 88, 1, DS_SIGNED | DS_LOW }, { "ds_read_i8_d16_hi", ds_load_small, 89, 1, DS_SIGNED | DS_HIGH },
	{ "ds_read_u16_d16", ds_load_small, 90, 2, DS_LOW }, { "ds_read_u16_d16_hi", ds_load_small, 91, 2, DS_HIGH },
	{ "ds_read_b64", ds_load, 118, 8, 0 }, { "ds_read2_b64", ds_load, 119, 8, DS_TWO }, { "ds_read2st64_b64", ds_load, 120, 8, DS_TWO | DS_FAR },
	{ "ds_gws_init", ds_gws, 153, 0, 0 }, { "ds_gws_barrier", ds_gws, 157, 0, 0 },
	{ "ds_consume", ds_count, 189, 0, 0 }, { "ds_append", ds_count, 190, 0, 0 },
	{ "ds_read_b96", ds_load, 254, 12, 0 }, { "ds_read_b128", ds_load, 255, 16, 0 }, { 0 },
};
/* clang-format on */
