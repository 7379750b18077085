/* SPDX-License-Identifier: MIT */
/* The daemon's only clock. It has a file of its own so that tests can link another clock, which they control. */
#include "daemon/daemon.h"
#include "lib/clock.h"

uint64_t gp_now_ns(void)
{
	return gp_clock_ns();
}
