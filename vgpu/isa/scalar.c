/* SPDX-License-Identifier: MIT */
/* Scalar operations: SOP1, SOP2, SOPC, SOPK. In the tables a is the words of the result, b those of the sources (two
 * bits each); decode.c judges register numbers by them. */
#include "vgpu/isa/internal.h"

#define RUN(name)                                                                                  \
	static enum isa_result scalar_##name(struct gp_isa_group *group, struct gp_isa_wave *wave, \
					     const struct isa_instruction *in)
/* 32 bits: a and b in, r out. */
#define WORD(name, ...)                                                                                      \
	RUN(name)                                                                                            \
	{                                                                                                    \
		uint32_t a = gp_isa_scalar(wave, in, 0), b = gp_isa_scalar(wave, in, 1), r, scc = wave->scc; \
                                                                                                             \
		(void)b;                                                                                     \
		__VA_ARGS__;                                                                                 \
		wave->s[in->sdst] = r;                                                                       \
		wave->scc = scc;                                                                             \
		return ISA_NEXT;                                                                             \
	}
#define PAIR(name, ...)                                                                         \
	RUN(name)                                                                               \
	{                                                                                       \
		uint64_t a = gp_isa_scalar64(wave, in, 0), b = gp_isa_scalar64(wave, in, 1), r; \
		uint32_t scc = wave->scc;                                                       \
                                                                                                \
		(void)b;                                                                        \
		__VA_ARGS__;                                                                    \
		gp_isa_put64(wave, in->sdst, r);                                                \
		wave->scc = scc;                                                                \
		return ISA_NEXT;                                                                \
	}
/* 64 bits by a 32-bit amount. */
#define PAIR_BY(name, ...)                                                \
	RUN(name)                                                         \
	{                                                                 \
		uint64_t a = gp_isa_scalar64(wave, in, 0), r;             \
		uint32_t b = gp_isa_scalar(wave, in, 1), scc = wave->scc; \
                                                                          \
		__VA_ARGS__;                                              \
		gp_isa_put64(wave, in->sdst, r);                          \
		wave->scc = scc;                                          \
		return ISA_NEXT;                                          \
	}
/* 32 bits made of 64. */
#define NARROW(name, ...)                                  \
	RUN(name)                                          \
	{                                                  \
		uint64_t a = gp_isa_scalar64(wave, in, 0); \
		uint32_t r, scc = wave->scc;               \
                                                           \
		__VA_ARGS__;                               \
		wave->s[in->sdst] = r;                     \
		wave->scc = scc;                           \
		return ISA_NEXT;                           \
	}

/* Bits of a field, whose offset and width are in b. */
static uint64_t scalar_field(uint64_t a, uint32_t b, uint32_t bits, bool is_signed)
{
	uint32_t offset = b & (bits - 1u), width = b >> 16 & 0x7fu;
	uint64_t value;

	if (!width)
		return 0;
	if (width > bits - offset)
		width = bits - offset;
	value = a >> offset;
	if (width < 64u)
		value &= (1ull << width) - 1u;
	if (is_signed && value >> (width - 1u) & 1u && width < 64u)
		value |= ~0ull << width;
	return value;
}

static uint64_t scalar_reverse(uint64_t x)
{
	uint64_t r = 0;

	for (uint32_t i = 0; i < 64u; i++)
		r |= (x >> i & 1u) << (63u - i);
	return r;
}

/* Each group of four bits: set where any of it is. */
static uint64_t scalar_wqm(uint64_t x)
{
	uint64_t any = (x | x >> 1 | x >> 2 | x >> 3) & 0x1111111111111111ull;

	return any * 15u;
}

static uint64_t scalar_quads(uint64_t x)
{
	uint64_t r = 0;

	for (uint32_t i = 0; i < 16u; i++)
		r |= (uint64_t)((x >> i * 4u & 15u) != 0) << i;
	return r;
}

WORD(add_u32, r = a + b; scc = r < a)
WORD(sub_u32, r = a - b; scc = a < b)
WORD(add_i32, r = a + b; scc = ((a ^ r) & (b ^ r)) >> 31)
WORD(sub_i32, r = a - b; scc = ((a ^ b) & (a ^ r)) >> 31)
WORD(addc_u32, uint64_t t = (uint64_t)a + b + scc; r = (uint32_t)t; scc = (uint32_t)(t >> 32))
WORD(subb_u32, uint64_t t = (uint64_t)b + scc; r = a - (uint32_t)t; scc = a < t)
WORD(min_i32, scc = (int32_t)a < (int32_t)b; r = scc ? a : b)
WORD(min_u32, scc = a < b; r = scc ? a : b)
WORD(max_i32, scc = (int32_t)a > (int32_t)b; r = scc ? a : b)
WORD(max_u32, scc = a > b; r = scc ? a : b)
WORD(cselect_b32, r = scc ? a : b)
PAIR(cselect_b64, r = scc ? a : b)
WORD(and_b32, r = a & b; scc = r != 0)
PAIR(and_b64, r = a & b; scc = r != 0)
WORD(or_b32, r = a | b; scc = r != 0)
PAIR(or_b64, r = a | b; scc = r != 0)
WORD(xor_b32, r = a ^ b; scc = r != 0)
PAIR(xor_b64, r = a ^ b; scc = r != 0)
WORD(andn2_b32, r = a & ~b; scc = r != 0)
PAIR(andn2_b64, r = a & ~b; scc = r != 0)
WORD(orn2_b32, r = a | ~b; scc = r != 0)
PAIR(orn2_b64, r = a | ~b; scc = r != 0)
WORD(nand_b32, r = ~(a & b); scc = r != 0)
PAIR(nand_b64, r = ~(a & b); scc = r != 0)
WORD(nor_b32, r = ~(a | b); scc = r != 0)
PAIR(nor_b64, r = ~(a | b); scc = r != 0)
WORD(xnor_b32, r = ~(a ^ b); scc = r != 0)
PAIR(xnor_b64, r = ~(a ^ b); scc = r != 0)
WORD(lshl_b32, r = a << (b & 31u); scc = r != 0)
PAIR_BY(lshl_b64, r = a << (b & 63u); scc = r != 0)
WORD(lshr_b32, r = a >> (b & 31u); scc = r != 0)
PAIR_BY(lshr_b64, r = a >> (b & 63u); scc = r != 0)
WORD(ashr_i32, r = (uint32_t)((int32_t)a >> (b & 31u)); scc = r != 0)
PAIR_BY(ashr_i64, r = (uint64_t)((int64_t)a >> (b & 63u)); scc = r != 0)
WORD(bfm_b32, r = ((1u << (a & 31u)) - 1u) << (b & 31u))
WORD(mul_i32, r = a * b)
WORD(bfe_u32, r = (uint32_t)scalar_field(a, b, 32, false); scc = r != 0)
WORD(bfe_i32, r = (uint32_t)scalar_field(a, b, 32, true); scc = r != 0)
PAIR_BY(bfe_u64, r = scalar_field(a, b, 64, false); scc = r != 0)
PAIR_BY(bfe_i64, r = scalar_field(a, b, 64, true); scc = r != 0)
WORD(absdiff_i32, r = a - b; r = (int32_t)r < 0 ? 0u - r : r; scc = r != 0)
WORD(mul_hi_u32, r = (uint32_t)((uint64_t)a * b >> 32))
WORD(mul_hi_i32, r = (uint32_t)((int64_t)(int32_t)a * (int32_t)b >> 32))
WORD(lshl1_add_u32, uint64_t t = ((uint64_t)a << 1) + b; r = (uint32_t)t; scc = t >> 32 != 0)
WORD(lshl2_add_u32, uint64_t t = ((uint64_t)a << 2) + b; r = (uint32_t)t; scc = t >> 32 != 0)
WORD(lshl3_add_u32, uint64_t t = ((uint64_t)a << 3) + b; r = (uint32_t)t; scc = t >> 32 != 0)
WORD(lshl4_add_u32, uint64_t t = ((uint64_t)a << 4) + b; r = (uint32_t)t; scc = t >> 32 != 0)
WORD(pack_ll_b32_b16, r = (a & 0xffffu) | b << 16)
WORD(pack_lh_b32_b16, r = (a & 0xffffu) | (b & 0xffff0000u))
WORD(pack_hh_b32_b16, r = a >> 16 | (b & 0xffff0000u))

RUN(bfm_b64)
{
	uint32_t a = gp_isa_scalar(wave, in, 0), b = gp_isa_scalar(wave, in, 1);

	gp_isa_put64(wave, in->sdst, ((1ull << (a & 63u)) - 1u) << (b & 63u));
	return ISA_NEXT;
}

WORD(mov_b32, r = a)
PAIR(mov_b64, r = a)
WORD(cmov_b32, r = scc ? a : wave->s[in->sdst])
PAIR(cmov_b64, r = scc ? a : gp_isa_get64(wave, in->sdst))
WORD(not_b32, r = ~a; scc = r != 0)
PAIR(not_b64, r = ~a; scc = r != 0)
WORD(wqm_b32, r = (uint32_t)scalar_wqm(a); scc = r != 0)
PAIR(wqm_b64, r = scalar_wqm(a); scc = r != 0)
WORD(brev_b32, r = (uint32_t)(scalar_reverse(a) >> 32))
PAIR(brev_b64, r = scalar_reverse(a))
WORD(bcnt0_i32_b32, r = 32u - (uint32_t)__builtin_popcount(a); scc = r != 0)
NARROW(bcnt0_i32_b64, r = 64u - (uint32_t)__builtin_popcountll(a); scc = r != 0)
WORD(bcnt1_i32_b32, r = (uint32_t)__builtin_popcount(a); scc = r != 0)
NARROW(bcnt1_i32_b64, r = (uint32_t)__builtin_popcountll(a); scc = r != 0)
WORD(ff0_i32_b32, r = ~a ? (uint32_t)__builtin_ctz(~a) : ~0u)
NARROW(ff0_i32_b64, r = ~a ? (uint32_t)__builtin_ctzll(~a) : ~0u)
WORD(ff1_i32_b32, r = a ? (uint32_t)__builtin_ctz(a) : ~0u)
NARROW(ff1_i32_b64, r = a ? (uint32_t)__builtin_ctzll(a) : ~0u)
WORD(flbit_i32_b32, r = a ? (uint32_t)__builtin_clz(a) : ~0u)
NARROW(flbit_i32_b64, r = a ? (uint32_t)__builtin_clzll(a) : ~0u)
WORD(flbit_i32, uint32_t t = a >> 31 ? ~a : a; r = t ? (uint32_t)__builtin_clz(t) : ~0u)
NARROW(flbit_i32_i64, uint64_t t = a >> 63 ? ~a : a; r = t ? (uint32_t)__builtin_clzll(t) : ~0u)
WORD(sext_i32_i8, r = (uint32_t)(int32_t)(int8_t)a)
WORD(sext_i32_i16, r = (uint32_t)(int32_t)(int16_t)a)
WORD(bitset0_b32, r = wave->s[in->sdst] & ~(1u << (a & 31u)))
WORD(bitset1_b32, r = wave->s[in->sdst] | 1u << (a & 31u))
WORD(quadmask_b32, r = (uint32_t)scalar_quads(a); scc = r != 0)
PAIR(quadmask_b64, r = scalar_quads(a); scc = r != 0)
WORD(abs_i32, r = (int32_t)a < 0 ? 0u - a : a; scc = r != 0)

RUN(bitset0_b64)
{
	uint64_t bit = 1ull << (gp_isa_scalar(wave, in, 0) & 63u);

	gp_isa_put64(wave, in->sdst, gp_isa_get64(wave, in->sdst) & ~bit);
	return ISA_NEXT;
}

RUN(bitset1_b64)
{
	uint64_t bit = 1ull << (gp_isa_scalar(wave, in, 0) & 63u);

	gp_isa_put64(wave, in->sdst, gp_isa_get64(wave, in->sdst) | bit);
	return ISA_NEXT;
}

RUN(bitreplicate_b64_b32)
{
	uint32_t a = gp_isa_scalar(wave, in, 0);
	uint64_t r = 0;

	for (uint32_t i = 0; i < 32u; i++)
		r |= (uint64_t)(a >> i & 1u) * 3u << i * 2u;
	gp_isa_put64(wave, in->sdst, r);
	return ISA_NEXT;
}

RUN(getpc_b64)
{
	gp_isa_put64(wave, in->sdst, wave->pc + 4u);
	return ISA_NEXT;
}

RUN(setpc_b64)
{
	wave->pc = gp_isa_scalar64(wave, in, 0);
	return ISA_STAY;
}

RUN(swappc_b64)
{
	uint64_t to = gp_isa_scalar64(wave, in, 0);

	gp_isa_put64(wave, in->sdst, wave->pc + 4u);
	wave->pc = to;
	return ISA_STAY;
}

#define SAVEEXEC(name, expression)                                                                  \
	RUN(name)                                                                                   \
	{                                                                                           \
		uint64_t a = gp_isa_scalar64(wave, in, 0), exec = isa_exec(wave), r = (expression); \
                                                                                                    \
		gp_isa_put64(wave, in->sdst, exec);                                                 \
		gp_isa_put64(wave, GP_ISA_EXEC, r);                                                 \
		wave->scc = r != 0;                                                                 \
		return ISA_NEXT;                                                                    \
	}
SAVEEXEC(and_saveexec_b64, a &exec)
SAVEEXEC(or_saveexec_b64, a | exec)
SAVEEXEC(xor_saveexec_b64, a ^ exec)
SAVEEXEC(andn2_saveexec_b64, a & ~exec)
SAVEEXEC(orn2_saveexec_b64, a | ~exec)
SAVEEXEC(nand_saveexec_b64, ~(a &exec))
SAVEEXEC(nor_saveexec_b64, ~(a | exec))
SAVEEXEC(xnor_saveexec_b64, ~(a ^ exec))
SAVEEXEC(andn1_saveexec_b64, ~a &exec)
SAVEEXEC(orn1_saveexec_b64, ~a | exec)

#define WREXEC(name, expression)                                                                    \
	RUN(name)                                                                                   \
	{                                                                                           \
		uint64_t a = gp_isa_scalar64(wave, in, 0), exec = isa_exec(wave), r = (expression); \
                                                                                                    \
		gp_isa_put64(wave, GP_ISA_EXEC, r);                                                 \
		gp_isa_put64(wave, in->sdst, r);                                                    \
		wave->scc = r != 0;                                                                 \
		return ISA_NEXT;                                                                    \
	}
WREXEC(andn1_wrexec_b64, ~a &exec)
WREXEC(andn2_wrexec_b64, a & ~exec)

/* Registers by number, from M0: one that is none reads as 0 and takes nothing. */
RUN(movrels_b32)
{
	uint32_t from = in->source[0] + wave->s[GP_ISA_M0];

	wave->s[in->sdst] = from < GP_ISA_FLAT_SCRATCH ? wave->s[from] : 0;
	return ISA_NEXT;
}

RUN(movrels_b64)
{
	uint32_t from = in->source[0] + wave->s[GP_ISA_M0];

	gp_isa_put64(wave, in->sdst, from < GP_ISA_FLAT_SCRATCH ? gp_isa_get64(wave, from) : 0);
	return ISA_NEXT;
}

RUN(movreld_b32)
{
	uint32_t to = in->sdst + wave->s[GP_ISA_M0];

	if (to < GP_ISA_FLAT_SCRATCH)
		wave->s[to] = gp_isa_scalar(wave, in, 0);
	return ISA_NEXT;
}

RUN(movreld_b64)
{
	uint32_t to = in->sdst + wave->s[GP_ISA_M0];

	if (to < GP_ISA_FLAT_SCRATCH)
		gp_isa_put64(wave, to, gp_isa_scalar64(wave, in, 0));
	return ISA_NEXT;
}

/* M0 keeps which operands are indexed: bits 12 to 15. */
RUN(set_gpr_idx_idx)
{
	wave->s[GP_ISA_M0] = (wave->s[GP_ISA_M0] & ~0xffu) | (gp_isa_scalar(wave, in, 0) & 0xffu);
	return ISA_NEXT;
}

RUN(set_gpr_idx_on)
{
	uint32_t index = gp_isa_scalar(wave, in, 0) & 0xffu, which = in->words[0] >> 8 & 15u;

	wave->s[GP_ISA_M0] = (wave->s[GP_ISA_M0] & ~0xf0ffu) | index | which << 12;
	wave->gpr_index = true;
	return ISA_NEXT;
}

#define TEST(name, expression)                                                           \
	RUN(name)                                                                        \
	{                                                                                \
		uint32_t a = gp_isa_scalar(wave, in, 0), b = gp_isa_scalar(wave, in, 1); \
                                                                                         \
		wave->scc = (expression);                                                \
		return ISA_NEXT;                                                         \
	}
#define TEST64(name, expression)                                                             \
	RUN(name)                                                                            \
	{                                                                                    \
		uint64_t a = gp_isa_scalar64(wave, in, 0), b = gp_isa_scalar64(wave, in, 1); \
                                                                                             \
		wave->scc = (expression);                                                    \
		return ISA_NEXT;                                                             \
	}
#define TEST_BIT64(name, expression)                       \
	RUN(name)                                          \
	{                                                  \
		uint64_t a = gp_isa_scalar64(wave, in, 0); \
		uint32_t b = gp_isa_scalar(wave, in, 1);   \
                                                           \
		wave->scc = (expression);                  \
		return ISA_NEXT;                           \
	}
TEST(cmp_eq_i32, a == b)
TEST(cmp_lg_i32, a != b)
TEST(cmp_gt_i32, (int32_t)a > (int32_t)b)
TEST(cmp_ge_i32, (int32_t)a >= (int32_t)b)
TEST(cmp_lt_i32, (int32_t)a < (int32_t)b)
TEST(cmp_le_i32, (int32_t)a <= (int32_t)b)
TEST(cmp_gt_u32, a > b)
TEST(cmp_ge_u32, a >= b)
TEST(cmp_lt_u32, a < b)
TEST(cmp_le_u32, a <= b)
TEST(bitcmp0_b32, !(a >> (b & 31u) & 1u))
TEST(bitcmp1_b32, a >> (b & 31u) & 1u)
TEST_BIT64(bitcmp0_b64, !(a >> (b & 63u) & 1u))
TEST_BIT64(bitcmp1_b64, a >> (b & 63u) & 1u)
TEST64(cmp_eq_u64, a == b)
TEST64(cmp_lg_u64, a != b)

/* k is the immediate. */
#define IMMEDIATE(name, ...)                                            \
	RUN(name)                                                       \
	{                                                               \
		uint32_t a = wave->s[in->sdst], scc = wave->scc, r = a; \
		int32_t k = in->offset;                                 \
                                                                        \
		__VA_ARGS__;                                            \
		wave->s[in->sdst] = r;                                  \
		wave->scc = scc;                                        \
		return ISA_NEXT;                                        \
	}
IMMEDIATE(movk_i32, r = (uint32_t)k)
IMMEDIATE(cmovk_i32, r = scc ? (uint32_t)k : a)
IMMEDIATE(cmpk_eq_i32, scc = (int32_t)a == k)
IMMEDIATE(cmpk_lg_i32, scc = (int32_t)a != k)
IMMEDIATE(cmpk_gt_i32, scc = (int32_t)a > k)
IMMEDIATE(cmpk_ge_i32, scc = (int32_t)a >= k)
IMMEDIATE(cmpk_lt_i32, scc = (int32_t)a < k)
IMMEDIATE(cmpk_le_i32, scc = (int32_t)a <= k)
IMMEDIATE(cmpk_eq_u32, scc = a == (uint16_t)k)
IMMEDIATE(cmpk_lg_u32, scc = a != (uint16_t)k)
IMMEDIATE(cmpk_gt_u32, scc = a > (uint16_t)k)
IMMEDIATE(cmpk_ge_u32, scc = a >= (uint16_t)k)
IMMEDIATE(cmpk_lt_u32, scc = a < (uint16_t)k)
IMMEDIATE(cmpk_le_u32, scc = a <= (uint16_t)k)
IMMEDIATE(addk_i32, r = a + (uint32_t)k; scc = ((a ^ r) & ((uint32_t)k ^ r)) >> 31)
IMMEDIATE(mulk_i32, r = a * (uint32_t)k)

RUN(call_b64)
{
	gp_isa_put64(wave, in->sdst, wave->pc + 4u);
	wave->pc += 4u + (uint64_t)((int64_t)in->offset * 4);
	return ISA_STAY;
}

/* Hardware registers: mode, status as far as a program may know it, the trap status, the apertures. */
static uint32_t scalar_hardware(const struct gp_isa_wave *wave, uint32_t id)
{
	switch (id) {
	case 1: return wave->mode;
	case 2:
		return wave->scc | (uint32_t)(isa_exec(wave) == 0) << 9 |
		       (uint32_t)(gp_isa_get64(wave, GP_ISA_VCC) == 0) << 10;
	case 3: return wave->trapsts;
	case 15: return GP_ISA_PRIVATE_APERTURE >> 16 | GP_ISA_SHARED_APERTURE >> 16 << 16;
	default: return 0;
	}
}

static uint32_t scalar_mask(const struct isa_instruction *in)
{
	uint32_t width = ((uint32_t)in->offset >> 11 & 31u) + 1u;

	return width == 32u ? ~0u : (1u << width) - 1u;
}

RUN(getreg_b32)
{
	uint32_t value = scalar_hardware(wave, (uint32_t)in->offset & 63u);

	wave->s[in->sdst] = value >> ((uint32_t)in->offset >> 6 & 31u) & scalar_mask(in);
	return ISA_NEXT;
}

static enum isa_result scalar_setreg(struct gp_isa_wave *wave, const struct isa_instruction *in, uint32_t value)
{
	uint32_t shift = (uint32_t)in->offset >> 6 & 31u, mask = scalar_mask(in) << shift;
	uint32_t id = (uint32_t)in->offset & 63u;

	/* Of the others nothing may be written by a program that has no privilege. */
	if (id == 1u)
		wave->mode = (wave->mode & ~mask) | (value << shift & mask);
	else if (id == 3u)
		wave->trapsts = (wave->trapsts & ~mask) | (value << shift & mask);
	return ISA_NEXT;
}

RUN(setreg_b32)
{
	return scalar_setreg(wave, in, wave->s[in->sdst]);
}

RUN(setreg_imm32_b32)
{
	return scalar_setreg(wave, in, in->words[1]);
}

/* clang-format off */
#define R(number, name, to, from0, from1) { "s_" #name, scalar_##name, number, to, (from0) | (from1) << 2 }
const struct isa_op gp_isa_sop2[] = {
	R(0, add_u32, 1, 1, 1), R(1, sub_u32, 1, 1, 1), R(2, add_i32, 1, 1, 1), R(3, sub_i32, 1, 1, 1),
	R(4, addc_u32, 1, 1, 1), R(5, subb_u32, 1, 1, 1), R(6, min_i32, 1, 1, 1), R(7, min_u32, 1, 1, 1),
	R(8, max_i32, 1, 1, 1), R(9, max_u32, 1, 1, 1), R(10, cselect_b32, 1, 1, 1), R(11, cselect_b64, 2, 2, 2),
	R(12, and_b32, 1, 1, 1), R(13, and_b64, 2, 2, 2), R(14, or_b32, 1, 1, 1), R(15, or_b64, 2, 2, 2),
	R(16, xor_b32, 1, 1, 1), R(17, xor_b64, 2, 2, 2), R(18, andn2_b32, 1, 1, 1), R(19, andn2_b64, 2, 2, 2),
	R(20, orn2_b32, 1, 1, 1), R(21, orn2_b64, 2, 2, 2), R(22, nand_b32, 1, 1, 1), R(23, nand_b64, 2, 2, 2),
	R(24, nor_b32, 1, 1, 1), R(25, nor_b64, 2, 2, 2), R(26, xnor_b32, 1, 1, 1), R(27, xnor_b64, 2, 2, 2),
	R(28, lshl_b32, 1, 1, 1), R(29, lshl_b64, 2, 2, 1), R(30, lshr_b32, 1, 1, 1), R(31, lshr_b64, 2, 2, 1),
	R(32, ashr_i32, 1, 1, 1), R(33, ashr_i64, 2, 2, 1), R(34, bfm_b32, 1, 1, 1), R(35, bfm_b64, 2, 1, 1),
	R(36, mul_i32, 1, 1, 1), R(37, bfe_u32, 1, 1, 1), R(38, bfe_i32, 1, 1, 1), R(39, bfe_u64, 2, 2, 1),
	R(40, bfe_i64, 2, 2, 1), R(42, absdiff_i32, 1, 1, 1), R(44, mul_hi_u32, 1, 1, 1), R(45, mul_hi_i32, 1, 1, 1),
	R(46, lshl1_add_u32, 1, 1, 1), R(47, lshl2_add_u32, 1, 1, 1), R(48, lshl3_add_u32, 1, 1, 1),
	R(49, lshl4_add_u32, 1, 1, 1), R(50, pack_ll_b32_b16, 1, 1, 1), R(51, pack_lh_b32_b16, 1, 1, 1),
	R(52, pack_hh_b32_b16, 1, 1, 1), { 0 },
};
const struct isa_op gp_isa_sop1[] = {
	R(0, mov_b32, 1, 1, 0), R(1, mov_b64, 2, 2, 0), R(2, cmov_b32, 1, 1, 0), R(3, cmov_b64, 2, 2, 0),
	R(4, not_b32, 1, 1, 0), R(5, not_b64, 2, 2, 0), R(6, wqm_b32, 1, 1, 0), R(7, wqm_b64, 2, 2, 0),
	R(8, brev_b32, 1, 1, 0), R(9, brev_b64, 2, 2, 0), R(10, bcnt0_i32_b32, 1, 1, 0), R(11, bcnt0_i32_b64, 1, 2, 0),
	R(12, bcnt1_i32_b32, 1, 1, 0), R(13, bcnt1_i32_b64, 1, 2, 0), R(14, ff0_i32_b32, 1, 1, 0), R(15, ff0_i32_b64, 1, 2, 0),
	R(16, ff1_i32_b32, 1, 1, 0), R(17, ff1_i32_b64, 1, 2, 0), R(18, flbit_i32_b32, 1, 1, 0), R(19, flbit_i32_b64, 1, 2, 0),
	R(20, flbit_i32, 1, 1, 0), R(21, flbit_i32_i64, 1, 2, 0), R(22, sext_i32_i8, 1, 1, 0), R(23, sext_i32_i16, 1, 1, 0),
	R(24, bitset0_b32, 1, 1, 0), R(25, bitset0_b64, 2, 1, 0), R(26, bitset1_b32, 1, 1, 0), R(27, bitset1_b64, 2, 1, 0),
	R(28, getpc_b64, 2, 0, 0), R(29, setpc_b64, 0, 2, 0), R(30, swappc_b64, 2, 2, 0),
	R(32, and_saveexec_b64, 2, 2, 0), R(33, or_saveexec_b64, 2, 2, 0), R(34, xor_saveexec_b64, 2, 2, 0),
	R(35, andn2_saveexec_b64, 2, 2, 0), R(36, orn2_saveexec_b64, 2, 2, 0), R(37, nand_saveexec_b64, 2, 2, 0),
	R(38, nor_saveexec_b64, 2, 2, 0), R(39, xnor_saveexec_b64, 2, 2, 0), R(40, quadmask_b32, 1, 1, 0),
	R(41, quadmask_b64, 2, 2, 0), R(42, movrels_b32, 1, 1, 0), R(43, movrels_b64, 2, 2, 0), R(44, movreld_b32, 1, 1, 0),
	R(45, movreld_b64, 2, 2, 0), R(48, abs_i32, 1, 1, 0), R(50, set_gpr_idx_idx, 0, 1, 0),
	R(51, andn1_saveexec_b64, 2, 2, 0), R(52, orn1_saveexec_b64, 2, 2, 0), R(53, andn1_wrexec_b64, 2, 2, 0),
	R(54, andn2_wrexec_b64, 2, 2, 0), R(55, bitreplicate_b64_b32, 2, 1, 0), { 0 },
};
#define EQ(number, name, as) { "s_" #name, scalar_##as, number, 0, 5 }
const struct isa_op gp_isa_sopc[] = {
	R(0, cmp_eq_i32, 0, 1, 1), R(1, cmp_lg_i32, 0, 1, 1), R(2, cmp_gt_i32, 0, 1, 1), R(3, cmp_ge_i32, 0, 1, 1),
	R(4, cmp_lt_i32, 0, 1, 1), R(5, cmp_le_i32, 0, 1, 1), EQ(6, cmp_eq_u32, cmp_eq_i32), EQ(7, cmp_lg_u32, cmp_lg_i32),
	R(8, cmp_gt_u32, 0, 1, 1), R(9, cmp_ge_u32, 0, 1, 1), R(10, cmp_lt_u32, 0, 1, 1), R(11, cmp_le_u32, 0, 1, 1),
	R(12, bitcmp0_b32, 0, 1, 1), R(13, bitcmp1_b32, 0, 1, 1), R(14, bitcmp0_b64, 0, 2, 1), R(15, bitcmp1_b64, 0, 2, 1),
	R(17, set_gpr_idx_on, 0, 1, 0), R(18, cmp_eq_u64, 0, 2, 2), R(19, cmp_lg_u64, 0, 2, 2), { 0 },
};
const struct isa_op gp_isa_sopk[] = {
	R(0, movk_i32, 1, 0, 0), R(1, cmovk_i32, 1, 0, 0), R(2, cmpk_eq_i32, 1, 0, 0), R(3, cmpk_lg_i32, 1, 0, 0),
	R(4, cmpk_gt_i32, 1, 0, 0), R(5, cmpk_ge_i32, 1, 0, 0), R(6, cmpk_lt_i32, 1, 0, 0), R(7, cmpk_le_i32, 1, 0, 0),
	R(8, cmpk_eq_u32, 1, 0, 0), R(9, cmpk_lg_u32, 1, 0, 0), R(10, cmpk_gt_u32, 1, 0, 0), R(11, cmpk_ge_u32, 1, 0, 0),
	R(12, cmpk_lt_u32, 1, 0, 0), R(13, cmpk_le_u32, 1, 0, 0), R(14, addk_i32, 1, 0, 0), R(15, mulk_i32, 1, 0, 0),
	R(17, getreg_b32, 1, 0, 0), R(18, setreg_b32, 1, 0, 0), R(20, setreg_imm32_b32, 0, 0, 0), R(21, call_b64, 2, 0, 0), { 0 },
};
/* clang-format on */
