/* SPDX-License-Identifier: MIT */
/*
 * The lanes: each operation of lanes.def as a loop over 64 of them, which the compiler turns into vector code. This
 * file is built once per kind of processor (ISA_VARIANT); all of them give the same bits. A result may lie in the row
 * an operand comes from: a lane reads only its own.
 */
#include "vgpu/isa/internal.h"
#include "vgpu/isa/lanes_help.h"

#ifndef ISA_VARIANT
#define ISA_VARIANT gp_isa_lanes_base
#endif

#if defined(__clang__)
#define LANES_LOOP _Pragma("clang loop vectorize(assume_safety)") ISA_EACH
#else
#define LANES_LOOP _Pragma("GCC ivdep") ISA_EACH
#endif

/* Operands in locals, so that nothing written through d can change them. */
#define LANES_BEGIN(name)                                                                           \
	static void lanes_##name(struct isa_alu *out)                                               \
	{                                                                                           \
		const struct isa_alu local = *out, *const alu = &local;                             \
		const uint32_t *const r0 = alu->r[0], *const r1 = alu->r[1], *const r2 = alu->r[2]; \
		const uint64_t *const q0 = alu->q[0], *const q1 = alu->q[1], *const q2 = alu->q[2]; \
		uint32_t *const d = alu->d;                                                         \
		uint64_t *const qd = alu->qd;                                                       \
		_Alignas(64) uint8_t flags[GP_ISA_LANES];                                           \
                                                                                                    \
		(void)r0, (void)r1, (void)r2, (void)q0, (void)q1, (void)q2, (void)d, (void)qd, (void)flags;
#define LANES_END }

#define LANES(name, ...)  \
	LANES_BEGIN(name) \
	LANES_LOOP{ __VA_ARGS__ } LANES_END
/* And a mask that comes out. */
#define LANES_MASK(name, ...)                                        \
	LANES_BEGIN(name)                                            \
	LANES_LOOP{ __VA_ARGS__ } out->mask_out = lanes_pack(flags); \
	LANES_END

#define CARRY uint32_t c = (uint32_t)(alu->mask_in >> i) & 1u;

static inline uint64_t lanes_pack(const uint8_t *flags)
{
	uint64_t mask = 0;

	for (uint32_t i = 0; i < 8u; i++) {
		uint64_t eight;

		memcpy(&eight, flags + i * 8u, 8);
		mask |= (eight * 0x0102040810204080ull >> 56) << i * 8u;
	}
	return mask;
}

#define KIND_U1(name, e)   LANES(name, uint32_t x = r0[i]; d[i] = (e);)
#define KIND_U2(name, e)   LANES(name, uint32_t x = r0[i]; uint32_t y = r1[i]; d[i] = (e);)
#define KIND_U3(name, e)   LANES(name, uint32_t x = r0[i]; uint32_t y = r1[i]; uint32_t z = r2[i]; d[i] = (e);)
#define KIND_UA(name, e)   KIND_U3(name, e)
#define KIND_DOTI(name, e) KIND_U3(name, e)
#define KIND_PACK(name, e) KIND_U2(name, e)
#define KIND_W2(name, e)   LANES(name, uint32_t x = r0[i] & 0xffffu; uint32_t y = r1[i] & 0xffffu; d[i] = (e);)
#define KIND_WK2(name, e)  KIND_W2(name, e)
#define KIND_W3(name, e)                                                                                      \
	LANES(name, uint32_t x = r0[i] & 0xffffu; uint32_t y = r1[i] & 0xffffu; uint32_t z = r2[i] & 0xffffu; \
	      d[i] = (e);)
#define KIND_WK3(name, e) KIND_W3(name, e)
#define KIND_WU3(name, e) \
	LANES(name, uint32_t x = r0[i] & 0xffffu; uint32_t y = r1[i] & 0xffffu; uint32_t z = r2[i]; d[i] = (e);)
#define KIND_F1(name, e) LANES(name, float x = isa_f32(r0[i]); d[i] = isa_bits(e);)
#define KIND_E1(name, e) KIND_F1(name, e)
#define KIND_F2(name, e) LANES(name, float x = isa_f32(r0[i]); float y = isa_f32(r1[i]); d[i] = isa_bits(e);)
#define KIND_F3(name, e) \
	LANES(name, float x = isa_f32(r0[i]); float y = isa_f32(r1[i]); float z = isa_f32(r2[i]); d[i] = isa_bits(e);)
#define KIND_FA(name, e) KIND_F3(name, e)
#define KIND_FDOT(name, e) \
	LANES(name, uint32_t x = r0[i]; uint32_t y = r1[i]; float z = isa_f32(r2[i]); d[i] = isa_bits(e);)
#define KIND_DOTF(name, e) KIND_FDOT(name, e)
#define KIND_FU1(name, e)  LANES(name, float x = isa_f32(r0[i]); d[i] = (e);)
#define KIND_FH1(name, e)  KIND_FU1(name, e)
#define KIND_UF1(name, e)  LANES(name, uint32_t x = r0[i]; d[i] = isa_bits(e);)
#define KIND_HF1(name, e)  LANES(name, float x = isa_f16(r0[i] & 0xffffu); d[i] = isa_bits(e);)
#define KIND_FFU2(name, e) LANES(name, float x = isa_f32(r0[i]); float y = isa_f32(r1[i]); d[i] = (e);)
#define KIND_FUF2(name, e) LANES(name, float x = isa_f32(r0[i]); uint32_t y = r1[i]; d[i] = isa_bits(e);)
#define KIND_FUU3(name, e) LANES(name, float x = isa_f32(r0[i]); uint32_t y = r1[i]; uint32_t z = r2[i]; d[i] = (e);)
#define KIND_H1(name, e)   LANES(name, float x = isa_f16(r0[i] & 0xffffu); d[i] = (e);)
#define KIND_HW1(name, e)  KIND_H1(name, e)
#define KIND_WH1(name, e)  LANES(name, uint32_t x = r0[i] & 0xffffu; d[i] = (e);)
#define KIND_H2(name, e) \
	LANES(name, float x = isa_f16(r0[i] & 0xffffu); float y = isa_f16(r1[i] & 0xffffu); d[i] = (e);)
#define KIND_HHU2(name, e) KIND_H2(name, e)
#define KIND_HWH2(name, e) LANES(name, float x = isa_f16(r0[i] & 0xffffu); uint32_t y = r1[i] & 0xffffu; d[i] = (e);)
#define KIND_H3(name, e)                                                                    \
	LANES(name, float x = isa_f16(r0[i] & 0xffffu); float y = isa_f16(r1[i] & 0xffffu); \
	      float z = isa_f16(r2[i] & 0xffffu); d[i] = (e);)
#define KIND_HA(name, e)  KIND_H3(name, e)
#define KIND_HK3(name, e) KIND_H3(name, e)
#define KIND_D1(name, e)  LANES(name, double x = isa_f64(q0[i]); qd[i] = isa_bits64(e);)
#define KIND_ED1(name, e) KIND_D1(name, e)
#define KIND_D2(name, e)  LANES(name, double x = isa_f64(q0[i]); double y = isa_f64(q1[i]); qd[i] = isa_bits64(e);)
#define KIND_D3(name, e)                                                                             \
	LANES(name, double x = isa_f64(q0[i]); double y = isa_f64(q1[i]); double z = isa_f64(q2[i]); \
	      qd[i] = isa_bits64(e);)
#define KIND_DA(name, e)   KIND_D3(name, e)
#define KIND_DU1(name, e)  LANES(name, double x = isa_f64(q0[i]); d[i] = (e);)
#define KIND_DF1(name, e)  LANES(name, double x = isa_f64(q0[i]); d[i] = isa_bits(e);)
#define KIND_UD1(name, e)  LANES(name, uint32_t x = r0[i]; qd[i] = isa_bits64(e);)
#define KIND_FD1(name, e)  LANES(name, float x = isa_f32(r0[i]); qd[i] = isa_bits64(e);)
#define KIND_DUD2(name, e) LANES(name, double x = isa_f64(q0[i]); uint32_t y = r1[i]; qd[i] = isa_bits64(e);)
#define KIND_Q1(name, e)   LANES(name, uint64_t x = q0[i]; qd[i] = (e);)
#define KIND_UQ2(name, e)  LANES(name, uint32_t x = r0[i]; uint64_t y = q1[i]; qd[i] = (e);)
#define KIND_QUQ3(name, e) LANES(name, uint64_t x = q0[i]; uint32_t y = r1[i]; uint64_t z = q2[i]; qd[i] = (e);)
#define KIND_SEL(name, e)  LANES(name, CARRY uint32_t x = r0[i]; uint32_t y = r1[i]; d[i] = (e);)
#define KIND_CARRY2(name, e)                                                                         \
	LANES_MASK(name, uint32_t x = r0[i]; uint32_t y = r1[i]; uint32_t r = (e); flags[i] = r < x; \
		   d[i] = alu->clamp && r < x ? ~0u : r;)
#define KIND_BORROW2(name, e)                                                      \
	LANES_MASK(name, uint32_t x = r0[i]; uint32_t y = r1[i]; flags[i] = x < y; \
		   d[i] = alu->clamp && x < y ? 0 : (e);)
#define KIND_BORROWREV2(name, e)                                                   \
	LANES_MASK(name, uint32_t x = r0[i]; uint32_t y = r1[i]; flags[i] = y < x; \
		   d[i] = alu->clamp && y < x ? 0 : (e);)
#define KIND_CARRY3(name, e)                                                                        \
	LANES_MASK(name, CARRY uint32_t x = r0[i]; uint32_t y = r1[i]; uint32_t r = (e), s = x + y; \
		   flags[i] = (s < x) | (r < s); d[i] = r;)
#define KIND_BORROW3(name, e)                                                              \
	LANES_MASK(name, CARRY uint32_t x = r0[i]; uint32_t y = r1[i]; uint32_t s = x - y; \
		   flags[i] = (uint8_t)((uint8_t)(x < y) | (uint8_t)(s < c)); d[i] = (e);)
#define KIND_BORROWREV3(name, e)                                                           \
	LANES_MASK(name, CARRY uint32_t x = r0[i]; uint32_t y = r1[i]; uint32_t s = y - x; \
		   flags[i] = (uint8_t)((uint8_t)(y < x) | (uint8_t)(s < c)); d[i] = (e);)
#define KIND_FC3(name, e)                                                                               \
	LANES(name, CARRY float x = isa_f32(r0[i]); float y = isa_f32(r1[i]); float z = isa_f32(r2[i]); \
	      d[i] = isa_bits(e);)
#define KIND_DC3(name, e)                                                                                  \
	LANES(name, CARRY double x = isa_f64(q0[i]); double y = isa_f64(q1[i]); double z = isa_f64(q2[i]); \
	      qd[i] = isa_bits64(e);)
#define KIND_FO3(name, e)                                                                                         \
	LANES_MASK(name, bool flag; float x = isa_f32(r0[i]); float y = isa_f32(r1[i]); float z = isa_f32(r2[i]); \
		   d[i] = isa_bits(e); flags[i] = flag;)
#define KIND_DO3(name, e)                                                                                            \
	LANES_MASK(name, bool flag; double x = isa_f64(q0[i]); double y = isa_f64(q1[i]); double z = isa_f64(q2[i]); \
		   qd[i] = isa_bits64(e); flags[i] = flag;)
#define KIND_MAD64(name, e)                                                                                  \
	LANES_MASK(name, uint32_t x = r0[i]; uint32_t y = r1[i]; uint64_t p = (e), z = q2[i]; qd[i] = p + z; \
		   flags[i] = p + z < z;)
/* Signed: the carry is that of the sum's sign, which nobody uses. */
#define KIND_MADI64(name, e) KIND_MAD64(name, e)

#define OP(encoding, number, kind, name, expression) KIND_##kind(name, expression)
#include "vgpu/isa/lanes.def"
#undef OP

static isa_lanes_run *const lanes_ops[] = {
#define OP(encoding, number, kind, name, expression) lanes_##name,
#include "vgpu/isa/lanes.def"
#undef OP
};

/* Compares: less 1, equal 2, greater 4, unordered 8. */
#define COMPARE(name, type, read)                                                                   \
	LANES_BEGIN(compare_##name)                                                                 \
	LANES_LOOP                                                                                  \
	{                                                                                           \
		type x = read(0), y = read(1);                                                      \
		uint32_t is = (uint32_t)(x < y) | (uint32_t)(x == y) << 1 | (uint32_t)(x > y) << 2; \
                                                                                                    \
		flags[i] = (((is ? is : 8u) & alu->relation) != 0);                                 \
	}                                                                                           \
	out->mask_out = lanes_pack(flags);                                                          \
	LANES_END
#define READ_F16(n) isa_f16(r##n[i] & 0xffffu)
#define READ_F32(n) isa_f32(r##n[i])
#define READ_F64(n) isa_f64(q##n[i])
#define READ_I16(n) (int16_t) r##n[i]
#define READ_U16(n) (uint16_t) r##n[i]
#define READ_I32(n) (int32_t) r##n[i]
#define READ_U32(n) r##n[i]
#define READ_I64(n) (int64_t) q##n[i]
#define READ_U64(n) q##n[i]
COMPARE(f16, float, READ_F16)
COMPARE(f32, float, READ_F32)
COMPARE(f64, double, READ_F64)
COMPARE(i16, int16_t, READ_I16)
COMPARE(u16, uint16_t, READ_U16)
COMPARE(i32, int32_t, READ_I32)
COMPARE(u32, uint32_t, READ_U32)
COMPARE(i64, int64_t, READ_I64)
COMPARE(u64, uint64_t, READ_U64)

/* Which of the ten classes a float is in: signalling NaN, quiet NaN, -infinity, -normal, -denormal, -0, +0, +denormal,
 * +normal, +infinity. */
static uint32_t lanes_class(bool sign, uint64_t exponent, uint64_t exponent_max, uint64_t mantissa, bool quiet)
{
	if (exponent == exponent_max)
		return mantissa ? quiet : sign ? 2u : 9u;
	if (exponent)
		return sign ? 3u : 8u;
	if (mantissa)
		return sign ? 4u : 7u;
	return sign ? 5u : 6u;
}

#define CLASS(name, read, sign, exponent_bits, mantissa_bits)                                                  \
	LANES_BEGIN(class_##name)                                                                              \
	ISA_EACH                                                                                               \
	{                                                                                                      \
		uint64_t x = read(0), mantissa = x & ((1ull << (mantissa_bits)) - 1u);                         \
		uint64_t exponent = x >> (mantissa_bits) & ((1u << (exponent_bits)) - 1u);                     \
		uint32_t class = lanes_class(x >> (sign)&1u, exponent, (1u << (exponent_bits)) - 1u, mantissa, \
					     x >> ((mantissa_bits)-1) & 1u);                                   \
                                                                                                               \
		flags[i] = (uint8_t)(r1[i] >> class & 1u);                                                     \
	}                                                                                                      \
	out->mask_out = lanes_pack(flags);                                                                     \
	LANES_END
CLASS(f16, READ_U16, 15, 5, 10)
CLASS(f32, READ_U32, 31, 8, 23)
CLASS(f64, READ_U64, 63, 11, 52)

static isa_lanes_run *const lanes_compares[ISA_COMPARE_COUNT] = {
	[ISA_COMPARE_F16] = lanes_compare_f16,     [ISA_COMPARE_F32] = lanes_compare_f32,
	[ISA_COMPARE_F64] = lanes_compare_f64,     [ISA_COMPARE_I16] = lanes_compare_i16,
	[ISA_COMPARE_U16] = lanes_compare_u16,     [ISA_COMPARE_I32] = lanes_compare_i32,
	[ISA_COMPARE_U32] = lanes_compare_u32,     [ISA_COMPARE_I64] = lanes_compare_i64,
	[ISA_COMPARE_U64] = lanes_compare_u64,     [ISA_COMPARE_CLASS_F16] = lanes_class_f16,
	[ISA_COMPARE_CLASS_F32] = lanes_class_f32, [ISA_COMPARE_CLASS_F64] = lanes_class_f64,
};

static void lanes_gather(uint32_t *to, const uint8_t *base, const uint32_t *at)
{
	ISA_EACH memcpy(&to[i], base + at[i], 4);
}

static void lanes_blend(uint32_t *to, const uint32_t *from, const uint32_t *mask)
{
	LANES_LOOP to[i] = (to[i] & ~mask[i]) | (from[i] & mask[i]);
}

/* The lowest and highest address of the lanes that are on; false: none is. */
static bool lanes_span(const uint64_t *va, const uint32_t *mask, uint64_t *ret_low, uint64_t *ret_high)
{
	uint64_t low = UINT64_MAX, high = 0, any = 0;

	ISA_EACH
	{
		uint64_t on = (uint64_t)(int64_t)(int32_t)mask[i], x = va[i] | ~on, y = va[i] & on;

		low = x < low ? x : low;
		high = y > high ? y : high;
		any |= on;
	}
	*ret_low = low;
	*ret_high = high;
	return any;
}

/* Lanes that are off look at the first. */
static void lanes_relative(uint32_t *to, const uint64_t *va, uint64_t low, const uint32_t *mask)
{
	LANES_LOOP to[i] = (uint32_t)(va[i] - low) & mask[i];
}

static void lanes_broadcast(uint32_t *to, uint32_t value)
{
	LANES_LOOP to[i] = value;
}

const struct isa_lanes ISA_VARIANT = {
	.ops = lanes_ops,
	.compares = lanes_compares,
	.gather = lanes_gather,
	.blend = lanes_blend,
	.span = lanes_span,
	.relative = lanes_relative,
	.broadcast = lanes_broadcast,
};
