/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The policies by name. */
#include "core/policy/list.h"

static const struct gp_policy *const list_policies[] = {
	&gp_policy_none, &gp_policy_rr, &gp_policy_hpf, &gp_policy_wfq, &gp_policy_edf, &gp_policy_drf,
};

const char *const gp_policy_names[] = { "none", "rr", "hpf", "wfq", "edf", "drf", NULL };

static bool list_is_equal(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

const struct gp_policy *gp_policy_find(const char *name)
{
	uint32_t i;

	for (i = 0; i < sizeof(list_policies) / sizeof(list_policies[0]); i++)
		if (list_is_equal(list_policies[i]->name, name))
			return list_policies[i];
	return NULL;
}
