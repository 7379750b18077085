/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* All policies. A new one: its file, a line here, a line in list.c. */
#ifndef GP_CORE_POLICY_LIST_H
#define GP_CORE_POLICY_LIST_H

#include <gpreempt/policy.h>

extern const struct gp_policy gp_policy_none, gp_policy_rr, gp_policy_hpf, gp_policy_wfq, gp_policy_edf, gp_policy_drf;

#endif
