/* SPDX-License-Identifier: MIT */
/* Owns the integer logarithm: the mantissa is squared 32 times, and each overflow past 2 is one bit of the result. */
#include <stdbool.h>
#include "lib/log2.h"

__extension__ typedef unsigned __int128 log2_u128;

uint64_t gp_log2_q32(uint64_t value)
{
	uint32_t top_bit = 63u - (uint32_t)__builtin_clzll(value);
	uint64_t mantissa = value << (63u - top_bit); /* 1.63 fixed point, in [1, 2) */
	uint64_t result = top_bit;

	for (int i = 0; i < 32; i++) {
		log2_u128 square = (log2_u128)mantissa * mantissa; /* 2.126, in [1, 4) */
		bool carry = square >> 127;

		result = result << 1 | carry;
		mantissa = (uint64_t)(square >> (carry ? 64 : 63));
	}
	return result;
}
