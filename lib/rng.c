/* SPDX-License-Identifier: MIT */
/*
 * Owns the random numbers: xoshiro256** (Blackman and Vigna, 2018), its state filled by splitmix64, as its authors
 * advise. Integers only, so that the same seed gives the same bytes on every compiler and machine.
 */
#include "lib/log2.h"
#include "lib/rng.h"

__extension__ typedef unsigned __int128 rng_u128;

#define RNG_LN2_Q32 2977044472ull /* ln 2 * 2^32, rounded */

static uint64_t rng_splitmix(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static uint64_t rng_rotate(uint64_t value, unsigned int bits)
{
	return value << bits | value >> (64u - bits);
}

void gp_rng_init(struct gp_rng *rng, uint64_t seed)
{
	/* splitmix64 is a bijection of a counter, so the four words are never all zero. */
	for (int i = 0; i < 4; i++)
		rng->state[i] = rng_splitmix(&seed);
}

uint64_t gp_rng_next(struct gp_rng *rng)
{
	uint64_t *s = rng->state;
	uint64_t result = rng_rotate(s[1] * 5u, 7) * 9u;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rng_rotate(s[3], 45);
	return result;
}

uint64_t gp_rng_below(struct gp_rng *rng, uint64_t bound)
{
	if (!bound)
		return 0;

	/* 2^64 mod bound values at the bottom would make the low results more likely: draw again. */
	uint64_t threshold = -bound % bound, value;

	do {
		value = gp_rng_next(rng);
	} while (value < threshold);
	return value % bound;
}

uint64_t gp_rng_exponential(struct gp_rng *rng, uint64_t mean)
{
	uint64_t uniform;

	do {
		uniform = gp_rng_next(rng);
	} while (!uniform);

	/* -ln(uniform / 2^64) = (64 - log2(uniform)) ln 2: at most 38 bits with Q32, 54 after the product in Q48. */
	uint64_t minus_log2_q32 = (64ull << 32) - gp_log2_q32(uniform);
	uint64_t minus_ln_q48 = (uint64_t)((rng_u128)minus_log2_q32 * RNG_LN2_Q32 >> 16);
	rng_u128 value = (rng_u128)minus_ln_q48 * mean >> 48;

	return value > UINT64_MAX ? UINT64_MAX : (uint64_t)value;
}

uint64_t gp_rng_fork(struct gp_rng *rng)
{
	return gp_rng_next(rng);
}
