/* SPDX-License-Identifier: MIT */
#ifndef GP_LIB_CLOCK_H
#define GP_LIB_CLOCK_H

#include <stdint.h>

uint64_t gp_clock_ns(void); /* CLOCK_MONOTONIC */
uint64_t gp_clock_ms(void);

#endif
