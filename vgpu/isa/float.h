/* SPDX-License-Identifier: MIT */
/* Floats as the lanes compute with them: bits and values, halves, what the vector ALU does at the edges. Everything is
 * inline and without branches where it can be, so that loops over lanes become vector code. */
#ifndef GP_VGPU_ISA_FLOAT_H
#define GP_VGPU_ISA_FLOAT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Of the mode register. */
enum { ISA_ROUND_EVEN, ISA_ROUND_UP, ISA_ROUND_DOWN, ISA_ROUND_ZERO };

static inline float isa_f32(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, 4);
	return value;
}

static inline uint32_t isa_bits(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, 4);
	return bits;
}

static inline double isa_f64(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, 8);
	return value;
}

static inline uint64_t isa_bits64(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, 8);
	return bits;
}

/* A half as a float; exact. A signalling NaN becomes quiet. */
static inline float isa_f16(uint32_t half)
{
	uint32_t sign = (half & 0x8000u) << 16, rest = half & 0x7fffu;
	uint32_t normal = (rest << 13) + (112u << 23), special = rest << 13 | 0x7f800000u | (rest > 0x7c00u) << 22;
	uint32_t small = isa_bits((float)(int32_t)rest * 0x1p-24f);

	return isa_f32(sign | (rest >= 0x7c00u ? special : rest >= 0x400u ? normal : small));
}

/* A float as a half, rounded as the mode says. */
static inline uint32_t isa_half(float value, uint32_t round)
{
	uint32_t bits = isa_bits(value), sign = bits >> 16 & 0x8000u, a = bits & 0x7fffffffu, e = a >> 23;
	bool is_small = e < 113u, up, away;
	uint32_t m = is_small ? (e ? (a & 0x7fffffu) | 0x800000u : a) : a - 0x38000000u;
	uint32_t shift = is_small ? (e < 96u ? 30u : 126u - e) : 13u;
	uint32_t q = m >> shift, rest = m & ((1u << shift) - 1u), middle = 1u << (shift - 1u);

	away = (round == ISA_ROUND_UP && !sign) || (round == ISA_ROUND_DOWN && sign);
	up = round == ISA_ROUND_EVEN ? rest > middle || (rest == middle && (q & 1u)) : away && rest;
	q += up;
	q = q < 0x7c00u ? q : round == ISA_ROUND_EVEN || away ? 0x7c00u : 0x7bffu;
	q = a == 0x7f800000u ? 0x7c00u : q;
	q = a > 0x7f800000u ? 0x7e00u | (a >> 13 & 0x3ffu) : q;
	return sign | q;
}

/* A double as a half: through a float that keeps in its last bit whether anything was lost, so that rounding twice
 * gives what rounding once would. */
static inline uint32_t isa_half64(double value, uint32_t round)
{
	uint64_t bits = isa_bits64(value), mantissa = bits & 0xfffffffffffffull;
	int32_t e = (int32_t)(bits >> 52 & 0x7ffu) - 1023;
	uint32_t sign = (uint32_t)(bits >> 32) & 0x80000000u, narrow;

	if (value != value)
		return isa_half(isa_f32(sign | 0x7fc00000u | (uint32_t)(mantissa >> 29)), round);
	if (value == 0 || e > 1000)
		return isa_half((float)value, round);
	narrow = (uint32_t)(mantissa >> 29) | ((mantissa & 0x1fffffffu) != 0);
	if (e > 60) {
		e = 60;
	} else if (e < -60) {
		e = -60;
		narrow |= 1u;
	}
	return isa_half(isa_f32(sign | (uint32_t)(e + 127) << 23 | narrow), round);
}

/* x * y + z of halves, rounded once. The product is exact in a double; of the sum the lost part is kept in the last
 * bit. */
static inline uint32_t isa_half_fma(float x, float y, float z, uint32_t round)
{
	double p = (double)x * (double)y, s = p + (double)z, back = s - p;
	double lost = (p - (s - back)) + ((double)z - back);
	uint64_t bits = isa_bits64(s);

	if (isfinite(s) && lost != 0 && !(bits & 1u))
		bits = (lost > 0) == (s > 0) ? bits | 1u : bits - 1u;
	return isa_half64(isa_f64(bits), round);
}

static inline bool isa_is_snan(uint32_t bits)
{
	return (bits & 0x7fffffffu) > 0x7f800000u && !(bits & 0x400000u);
}

static inline bool isa_is_snan64(uint64_t bits)
{
	return (bits & 0x7fffffffffffffffull) > 0x7ff0000000000000ull && !(bits >> 51 & 1u);
}

/* The smaller, a number before a NaN, -0 before +0; a signalling NaN wins and becomes quiet. */
static inline float isa_min(float x, float y)
{
	uint32_t a = isa_bits(x), b = isa_bits(y);
	float r = y != y || x < y || (x == y && a >> 31) ? x : y;

	return isa_is_snan(a) ? isa_f32(a | 0x400000u) : isa_is_snan(b) ? isa_f32(b | 0x400000u) : r;
}

static inline float isa_max(float x, float y)
{
	uint32_t a = isa_bits(x), b = isa_bits(y);
	float r = y != y || x > y || (x == y && b >> 31) ? x : y;

	return isa_is_snan(a) ? isa_f32(a | 0x400000u) : isa_is_snan(b) ? isa_f32(b | 0x400000u) : r;
}

static inline double isa_min64(double x, double y)
{
	uint64_t a = isa_bits64(x), b = isa_bits64(y);
	double r = y != y || x < y || (x == y && a >> 63) ? x : y;

	return isa_is_snan64(a) ? isa_f64(a | 1ull << 51) : isa_is_snan64(b) ? isa_f64(b | 1ull << 51) : r;
}

static inline double isa_max64(double x, double y)
{
	uint64_t a = isa_bits64(x), b = isa_bits64(y);
	double r = y != y || x > y || (x == y && b >> 63) ? x : y;

	return isa_is_snan64(a) ? isa_f64(a | 1ull << 51) : isa_is_snan64(b) ? isa_f64(b | 1ull << 51) : r;
}

/* The one in the middle; with a NaN the smallest of the others. */
static inline float isa_med3(float x, float y, float z)
{
	float low = isa_min(isa_min(x, y), z), high = isa_max(isa_max(x, y), z);

	if (x != x || y != y || z != z)
		return low;
	return high == x ? isa_max(y, z) : high == y ? isa_max(x, z) : isa_max(x, y);
}

/* Conversions saturate, and NaN is 0. */
static inline uint32_t isa_to_i32(double value)
{
	return value != value         ? 0 :
	       value <= -2147483648.0 ? 0x80000000u :
	       value >= 2147483647.0  ? 0x7fffffffu :
					(uint32_t)(int32_t)value;
}

static inline uint32_t isa_to_u32(double value)
{
	return value != value || value <= 0 ? 0 : value >= 4294967295.0 ? ~0u : (uint32_t)(int64_t)value;
}

static inline uint32_t isa_to_i16(float value)
{
	return value != value     ? 0 :
	       value <= -32768.0f ? 0x8000u :
	       value >= 32767.0f  ? 0x7fffu :
				    (uint32_t)(int32_t)value & 0xffffu;
}

static inline uint32_t isa_to_u16(float value)
{
	return value != value || value <= 0 ? 0 : value >= 65535.0f ? 0xffffu : (uint32_t)(int32_t)value;
}

/* From revolutions; beyond 256 of them the hardware gives up. */
static inline float isa_sin(float turns)
{
	double part = (double)turns - rint((double)turns);

	return !isfinite(turns)      ? NAN :
	       fabsf(turns) > 256.0f ? 0.0f :
	       turns == 0            ? turns :
				       (float)sin(part * 6.283185307179586476925);
}

static inline float isa_cos(float turns)
{
	double part = (double)turns - rint((double)turns);

	return !isfinite(turns) ? NAN : fabsf(turns) > 256.0f ? 1.0f : (float)cos(part * 6.283185307179586476925);
}

static inline float isa_fract(float x)
{
	float r = x - floorf(x);

	return r != r ? r : r < 0x1.fffffep-1f ? r : 0x1.fffffep-1f;
}

static inline double isa_fract64(double x)
{
	double r = x - floor(x);

	return r != r ? r : r < 0x1.fffffffffffffp-1 ? r : 0x1.fffffffffffffp-1;
}

static inline float isa_ldexp(float x, int32_t e)
{
	e = e < -400 ? -400 : e > 400 ? 400 : e;
	return ldexpf(x, e);
}

static inline double isa_ldexp64(double x, int32_t e)
{
	e = e < -3000 ? -3000 : e > 3000 ? 3000 : e;
	return ldexp(x, e);
}

static inline int32_t isa_frexp_exp(double x)
{
	return x == 0 || !isfinite(x) ? 0 : ilogb(x) + 1;
}

static inline double isa_frexp_mant(double x)
{
	return x == 0 || !isfinite(x) ? x : isa_ldexp64(x, -(ilogb(x) + 1));
}

float gp_isa_div_scale(float s0, float s1, float s2, bool *ret_flag);
double gp_isa_div_scale64(double s0, double s1, double s2, bool *ret_flag);
float gp_isa_div_fixup(float s0, float s1, float s2);
double gp_isa_div_fixup64(double s0, double s1, double s2);
double gp_isa_trig_preop(double x, uint32_t segment);

#endif
