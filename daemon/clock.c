/* SPDX-License-Identifier: MIT */
/* The daemon's only clocks. They have a file of its own so that tests can link others, which they control. */
#include <time.h>
#include "daemon/daemon.h"
#include "lib/clock.h"

uint64_t gp_now_ns(void)
{
	return gp_clock_ns();
}

uint64_t gp_used_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000ull + (uint64_t)used.tv_nsec;
}
