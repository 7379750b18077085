/* SPDX-License-Identifier: MIT */
/* The daemon's only clock. A file of its own: tests have another one, which goes as they say. */
#include <time.h>
#include "daemon/daemon.h"

uint64_t gp_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}
