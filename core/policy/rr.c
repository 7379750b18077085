/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* rr: round robin in long turns, whatever the priorities. All of it is the core's default. */
#include "core/policy/list.h"

const struct gp_policy gp_policy_rr = {
	.name = "rr",
	.summary = "equal turns for every client, whatever its priority",
	.gates = true,
};
