/* SPDX-License-Identifier: MIT */
/* The daemon's only clock. A file of its own: tests have another one, which goes as they say. */
#include "daemon/daemon.h"
#include "lib/clock.h"

uint64_t gp_now_ns(void)
{
	return gp_clock_ns();
}
