/* SPDX-License-Identifier: MIT */
/* The binary logarithm in integers, the same on every machine. */
#ifndef GP_LIB_LOG2_H
#define GP_LIB_LOG2_H

#include <stdint.h>

/* log2(value) with 32 fractional bits, rounded down; value > 0. */
uint64_t gp_log2_q32(uint64_t value);

#endif
