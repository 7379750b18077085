/* SPDX-License-Identifier: MIT */
/* Owns the comparison of runs: who is the same client. Never writes. */
#include <string.h>
#include "view/compare.h"

const struct gp_result_client *gp_compare_client(const struct gp_result_run *run, const char *name)
{
	for (uint32_t i = 0; i < run->client_count; i++)
		if (!strcmp(run->clients[i].name, name))
			return &run->clients[i];
	return NULL;
}

bool gp_compare_has_latency(const struct gp_result_client *client)
{
	return client->is_service && client->latency_ns.count;
}

bool gp_compare_has_waits(const struct gp_result_run *run)
{
	return run->wait_count || (!run->inversions_unknown && !run->inversion_count);
}

uint32_t gp_compare_names_find(const struct gp_compare_names *names, const char *name)
{
	for (uint32_t i = 0; i < names->count; i++)
		if (!strcmp(names->clients[i]->name, name))
			return i;
	return names->count ? names->count - 1 : 0;
}

void gp_compare_names_init(struct gp_compare_names *names, const struct gp_result *result)
{
	names->count = 0;
	for (uint32_t i = 0; i < result->run_count; i++)
		for (uint32_t j = 0; j < result->runs[i].client_count; j++) {
			const struct gp_result_client *client = &result->runs[i].clients[j];
			uint32_t known = gp_compare_names_find(names, client->name);

			if (names->count && !strcmp(names->clients[known]->name, client->name))
				continue;
			if (names->count < GP_COMPARE_NAMES_MAX)
				names->clients[names->count++] = client;
		}
}
