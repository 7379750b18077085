/* SPDX-License-Identifier: MIT */
/* Steps of divisions and of the reduction of angles, as AMD's ISA documents have them. */
#include "vgpu/isa/float.h"

static int32_t divide_exponent(float value)
{
	return (int32_t)(isa_bits(value) >> 23 & 0xffu);
}

static int32_t divide_exponent64(double value)
{
	return (int32_t)(isa_bits64(value) >> 52 & 0x7ffu);
}

static bool divide_is_denormal(float value)
{
	return fpclassify(value) == FP_SUBNORMAL;
}

static bool divide_is_denormal64(double value)
{
	return fpclassify(value) == FP_SUBNORMAL;
}

/* Scales numerator s2 or denominator s1, whichever s0 is, so that no step of the division leaves the range. */
float gp_isa_div_scale(float s0, float s1, float s2, bool *ret_flag)
{
	bool is_denominator = isa_bits(s0) == isa_bits(s1), is_numerator = isa_bits(s0) == isa_bits(s2);

	*ret_flag = false;
	if (s2 == 0 || s1 == 0)
		return NAN;
	if (divide_exponent(s2) - divide_exponent(s1) >= 96) {
		*ret_flag = true;
		return is_denominator ? ldexpf(s0, 64) : s0;
	}
	if (divide_is_denormal(s1))
		return ldexpf(s0, 64);
	if (divide_is_denormal((float)(1.0 / (double)s1)) && divide_is_denormal((float)((double)s2 / (double)s1))) {
		*ret_flag = true;
		return is_denominator ? ldexpf(s0, 64) : s0;
	}
	if (divide_is_denormal((float)(1.0 / (double)s1)))
		return ldexpf(s0, -64);
	if (divide_is_denormal((float)((double)s2 / (double)s1))) {
		*ret_flag = true;
		return is_numerator ? ldexpf(s0, 64) : s0;
	}
	return divide_exponent(s2) <= 23 ? ldexpf(s0, 64) : s0;
}

double gp_isa_div_scale64(double s0, double s1, double s2, bool *ret_flag)
{
	bool is_denominator = isa_bits64(s0) == isa_bits64(s1), is_numerator = isa_bits64(s0) == isa_bits64(s2);

	*ret_flag = false;
	if (s2 == 0 || s1 == 0)
		return (double)NAN;
	if (divide_exponent64(s2) - divide_exponent64(s1) >= 768) {
		*ret_flag = true;
		return is_denominator ? ldexp(s0, 128) : s0;
	}
	if (divide_is_denormal64(s1))
		return ldexp(s0, 128);
	if (divide_is_denormal64(1.0 / s1) && divide_is_denormal64(s2 / s1)) {
		*ret_flag = true;
		return is_denominator ? ldexp(s0, 128) : s0;
	}
	if (divide_is_denormal64(1.0 / s1))
		return ldexp(s0, -128);
	if (divide_is_denormal64(s2 / s1)) {
		*ret_flag = true;
		return is_numerator ? ldexp(s0, 128) : s0;
	}
	return divide_exponent64(s2) <= 53 ? ldexp(s0, 128) : s0;
}

/* The quotient s0 of numerator s2 by denominator s1, with the cases that the steps cannot do. */
double gp_isa_div_fixup64(double s0, double s1, double s2)
{
	bool negative = signbit(s1) != signbit(s2);

	if (s2 != s2)
		return isa_f64(isa_bits64(s2) | 1ull << 51);
	if (s1 != s1)
		return isa_f64(isa_bits64(s1) | 1ull << 51);
	if ((s1 == 0 && s2 == 0) || (isinf(s1) && isinf(s2)))
		return isa_f64(0xfff8000000000000ull);
	if (s1 == 0 || isinf(s2))
		return negative ? -(double)INFINITY : (double)INFINITY;
	if (isinf(s1) || s2 == 0)
		return negative ? -0.0 : 0.0;
	if (divide_exponent64(s2) - divide_exponent64(s1) < -1075)
		return negative ? -0.0 : 0.0;
	/* A quotient beyond the range, on the way to which infinities met. */
	if (s0 != s0)
		return negative ? -(double)INFINITY : (double)INFINITY;
	return negative ? -fabs(s0) : fabs(s0);
}

float gp_isa_div_fixup(float s0, float s1, float s2)
{
	bool negative = signbit(s1) != signbit(s2);

	if (s2 != s2)
		return isa_f32(isa_bits(s2) | 0x400000u);
	if (s1 != s1)
		return isa_f32(isa_bits(s1) | 0x400000u);
	if ((s1 == 0 && s2 == 0) || (isinf(s1) && isinf(s2)))
		return isa_f32(0xffc00000u);
	if (s1 == 0 || isinf(s2))
		return negative ? -INFINITY : INFINITY;
	if (isinf(s1) || s2 == 0 || divide_exponent(s2) - divide_exponent(s1) < -150)
		return negative ? -0.0f : 0.0f;
	if (s0 != s0)
		return negative ? -INFINITY : INFINITY;
	return negative ? -fabsf(s0) : fabsf(s0);
}

/* The binary digits of 2/pi after the point. */
static const uint64_t divide_two_over_pi[20] = {
	0xa2f9836e4e441529ull, 0xfc2757d1f534ddc0ull, 0xdb6295993c439041ull, 0xfe5163abdebbc561ull,
	0xb7246e3a424dd2e0ull, 0x06492eea09d1921cull, 0xfe1deb1cb129a73eull, 0xe88235f52ebb4484ull,
	0xe99c7026b45f7e41ull, 0x3991d639835339f4ull, 0x9c845f8bbdf9283bull, 0x1ff897ffde05980full,
	0xef2f118b5a0a6d1full, 0x6d367ecf27cb09b7ull, 0x4f463f669e5fea2dull, 0x7527bac7ebe5f17bull,
	0x3d0739f78a5292eaull, 0x6bfb5fb11f8d5d08ull, 0x56033046fc7b6babull, 0xf0cfbc209af4361dull,
};

/* 53 digits of 2/pi, from where the exponent of x and the segment say, as a number of that weight. */
double gp_isa_trig_preop(double x, uint32_t segment)
{
	int32_t exponent = divide_exponent64(x);
	uint32_t shift = (segment & 31u) * 53u + (exponent > 1077 ? (uint32_t)exponent - 1077u : 0), word = shift / 64u;
	uint64_t high = word < 20u ? divide_two_over_pi[word] : 0;
	uint64_t low = word < 19u ? divide_two_over_pi[word + 1u] : 0;
	uint64_t digits = shift % 64u ? high << shift % 64u | low >> (64u - shift % 64u) : high;

	return ldexp((double)(digits >> 11), -53 - (int32_t)shift + (exponent >= 1968 ? 128 : 0));
}
