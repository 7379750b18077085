/* SPDX-License-Identifier: MIT */
/* Randomness from a seed: the same numbers on every machine and compiler. No floats. */
#ifndef GP_LIB_RNG_H
#define GP_LIB_RNG_H

#include <stdint.h>

struct gp_rng {
	uint64_t state[4];
};

void gp_rng_init(struct gp_rng *rng, uint64_t seed);
uint64_t gp_rng_next(struct gp_rng *rng);
uint64_t gp_rng_below(struct gp_rng *rng, uint64_t bound);      /* 0..bound-1, without bias; bound 0 gives 0 */
uint64_t gp_rng_exponential(struct gp_rng *rng, uint64_t mean); /* integer logarithm, error below 2^-30 of the mean */
uint64_t gp_rng_fork(struct gp_rng *rng);                       /* a seed for an independent stream */

#endif
