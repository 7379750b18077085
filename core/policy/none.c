/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* none: never closes a gate. With it a program runs as it would without the core. */
#include "core/policy/list.h"

const struct gp_policy gp_policy_none = {
	.name = "none",
	.summary = "does nothing: the same as running without gpreempt",
	.gates = false,
};
