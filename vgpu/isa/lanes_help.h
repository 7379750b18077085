/* SPDX-License-Identifier: MIT */
/* What single lanes do where an expression would be too long for lanes.def. */
#ifndef GP_VGPU_ISA_LANES_HELP_H
#define GP_VGPU_ISA_LANES_HELP_H

#include "vgpu/isa/float.h"

static inline float isa_rndne(float x)
{
	return rintf(x);
}

static inline double isa_rndne64(double x)
{
	return rint(x);
}

static inline int32_t isa_s24(uint32_t x)
{
	return (int32_t)(x << 8) >> 8;
}

static inline uint32_t isa_u24(uint32_t x)
{
	return x & 0xffffffu;
}

static inline uint32_t isa_min_u32(uint32_t x, uint32_t y)
{
	return x < y ? x : y;
}

static inline uint32_t isa_max_u32(uint32_t x, uint32_t y)
{
	return x > y ? x : y;
}

static inline uint32_t isa_min_i32(uint32_t x, uint32_t y)
{
	return (int32_t)x < (int32_t)y ? x : y;
}

static inline uint32_t isa_max_i32(uint32_t x, uint32_t y)
{
	return (int32_t)x > (int32_t)y ? x : y;
}

static inline uint32_t isa_min_i16(uint32_t x, uint32_t y)
{
	return (int16_t)x < (int16_t)y ? x : y;
}

static inline uint32_t isa_max_i16(uint32_t x, uint32_t y)
{
	return (int16_t)x > (int16_t)y ? x : y;
}

static inline uint32_t isa_sat_i16(uint32_t x)
{
	int32_t value = (int32_t)x;

	return (uint32_t)(value < -32768 ? -32768 : value > 32767 ? 32767 : value) & 0xffffu;
}

static inline uint32_t isa_sat_i32(int64_t value)
{
	return (uint32_t)(value < INT32_MIN ? INT32_MIN : value > INT32_MAX ? INT32_MAX : value);
}

static inline uint32_t isa_sat_u8(int32_t value)
{
	return (uint32_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static inline uint32_t isa_sat_f8(float value)
{
	return value != value || value <= 0 ? 0 : value >= 255.0f ? 255u : (uint32_t)(int32_t)rintf(value);
}

static inline uint32_t isa_norm_i16(float value)
{
	float x = value != value ? 0 : value < -1.0f ? -1.0f : value > 1.0f ? 1.0f : value;

	return (uint32_t)(int32_t)rintf(x * 32767.0f) & 0xffffu;
}

static inline uint32_t isa_norm_u16(float value)
{
	float x = value != value || value < 0 ? 0 : value > 1.0f ? 1.0f : value;

	return (uint32_t)(int32_t)rintf(x * 65535.0f);
}

static inline uint32_t isa_reverse(uint32_t x)
{
	x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
	x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
	x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
	return x >> 24 | (x >> 8 & 0xff00u) | (x & 0xff00u) << 8 | x << 24;
}

/* How many bits from the top are the sign's; ~0: all of them. */
static inline uint32_t isa_sign_bits(uint32_t x)
{
	uint32_t y = x >> 31 ? ~x : x;

	return y ? (uint32_t)__builtin_clz(y) : ~0u;
}

static inline uint32_t isa_bfe(uint32_t x, uint32_t offset, uint32_t width)
{
	uint32_t value = width ? x >> offset & ((1u << width) - 1u) : 0, sign = width ? 1u << (width - 1u) : 0;

	/* Bits beyond the word are copies of its sign. */
	if (width && offset + width > 32u)
		return (uint32_t)((int32_t)x >> offset);
	return (value ^ sign) - sign;
}

/* mad and mac know no denormals. */
static inline float isa_flush(float x)
{
	uint32_t bits = isa_bits(x);

	return (bits & 0x7f800000u) ? x : isa_f32(bits & 0x80000000u);
}

static inline float isa_mad(float x, float y, float z)
{
	return isa_flush(isa_flush(isa_flush(x) * isa_flush(y)) + isa_flush(z));
}

static inline float isa_mad_legacy(float x, float y, float z)
{
	return x == 0 || y == 0 ? z : isa_mad(x, y, z);
}

static inline uint32_t isa_half_mad(float x, float y, float z, uint32_t round)
{
	return isa_half64((double)isa_f16(isa_half64((double)x * (double)y, round)) + (double)z, round);
}

static inline uint32_t isa_pk_fma(uint32_t x, uint32_t y, uint32_t z, uint32_t round)
{
	uint32_t low = isa_half_fma(isa_f16(x & 0xffffu), isa_f16(y & 0xffffu), isa_f16(z & 0xffffu), round);

	return low | isa_half_fma(isa_f16(x >> 16), isa_f16(y >> 16), isa_f16(z >> 16), round) << 16;
}

/* The last step of a division: takes back what div_scale did to one of its sides, up or down by the quotient's size. */
static inline float isa_div_fmas(float x, float y, float z, bool is_scaled)
{
	float r = fmaf(x, y, z);
	bool is_large = (isa_bits(z) >> 23 & 0xffu) > 127u;

	return !is_scaled ? r : is_large ? r * 0x1p64f : r * 0x1p-64f;
}

static inline double isa_div_fmas64(double x, double y, double z, bool is_scaled)
{
	double r = fma(x, y, z);
	bool is_large = (isa_bits64(z) >> 52 & 0x7ffu) > 1023u;

	return !is_scaled ? r : is_large ? r * 0x1p128 : r * 0x1p-128;
}

static inline uint32_t isa_lerp(uint32_t x, uint32_t y, uint32_t z)
{
	uint32_t r = 0;

	for (uint32_t k = 0; k < 32u; k += 8u)
		r |= (((x >> k & 255u) + (y >> k & 255u) + (z >> k & 1u)) >> 1 & 255u) << k;
	return r;
}

static inline uint32_t isa_sad_u8(uint32_t x, uint32_t y)
{
	uint32_t sum = 0;

	for (uint32_t k = 0; k < 32u; k += 8u) {
		int32_t d = (int32_t)(x >> k & 255u) - (int32_t)(y >> k & 255u);

		sum += (uint32_t)(d < 0 ? -d : d);
	}
	return sum;
}

/* Bytes of y that are 0 do not count. */
static inline uint32_t isa_msad_u8(uint32_t x, uint32_t y)
{
	uint32_t sum = 0;

	for (uint32_t k = 0; k < 32u; k += 8u) {
		int32_t d = (int32_t)(x >> k & 255u) - (int32_t)(y >> k & 255u);

		sum += (y >> k & 255u) ? (uint32_t)(d < 0 ? -d : d) : 0;
	}
	return sum;
}

static inline uint32_t isa_sad_u16(uint32_t x, uint32_t y)
{
	int32_t low = (int32_t)(x & 0xffffu) - (int32_t)(y & 0xffffu), high = (int32_t)(x >> 16) - (int32_t)(y >> 16);

	return (uint32_t)(low < 0 ? -low : low) + (uint32_t)(high < 0 ? -high : high);
}

/* Bytes picked from eight, the first operand's above the second's; 8 to 11: a sign repeated; 12: 0; above: 255. */
static inline uint32_t isa_perm(uint64_t from, uint32_t select)
{
	uint32_t r = 0;

	for (uint32_t k = 0; k < 32u; k += 8u) {
		uint32_t s = select >> k & 255u, byte;

		if (s < 8u)
			byte = (uint32_t)(from >> s * 8u) & 255u;
		else if (s < 12u)
			byte = from >> ((s - 8u) * 16u + 15u) & 1u ? 255u : 0;
		else
			byte = s == 12u ? 0 : 255u;
		r |= byte << k;
	}
	return r;
}

static inline float isa_dot2(uint32_t x, uint32_t y, float z)
{
	float r = fmaf(isa_f16(x & 0xffffu), isa_f16(y & 0xffffu), z);

	return fmaf(isa_f16(x >> 16), isa_f16(y >> 16), r);
}

static inline int32_t isa_dot2i(uint32_t x, uint32_t y)
{
	return (int32_t)((uint32_t)((int16_t)x * (int16_t)y) + (uint32_t)((int16_t)(x >> 16) * (int16_t)(y >> 16)));
}

static inline int32_t isa_dot4i(uint32_t x, uint32_t y)
{
	int32_t sum = 0;

	for (uint32_t k = 0; k < 32u; k += 8u)
		sum += (int8_t)(x >> k) * (int8_t)(y >> k);
	return sum;
}

static inline uint32_t isa_dot4u(uint32_t x, uint32_t y)
{
	uint32_t sum = 0;

	for (uint32_t k = 0; k < 32u; k += 8u)
		sum += (x >> k & 255u) * (y >> k & 255u);
	return sum;
}

static inline int32_t isa_dot8i(uint32_t x, uint32_t y)
{
	int32_t sum = 0;

	for (uint32_t k = 0; k < 32u; k += 4u)
		sum += ((int32_t)(x >> k << 28) >> 28) * ((int32_t)(y >> k << 28) >> 28);
	return sum;
}

static inline uint32_t isa_dot8u(uint32_t x, uint32_t y)
{
	uint32_t sum = 0;

	for (uint32_t k = 0; k < 32u; k += 4u)
		sum += (x >> k & 15u) * (y >> k & 15u);
	return sum;
}

#endif
