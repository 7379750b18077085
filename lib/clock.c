/* SPDX-License-Identifier: MIT */
#include <time.h>
#include "lib/clock.h"

uint64_t gp_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

uint64_t gp_clock_ms(void)
{
	return gp_clock_ns() / 1000000u;
}
