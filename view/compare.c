/* SPDX-License-Identifier: MIT */
/* Owns the comparison of runs: who is the same client, and what it has alone. Never writes. */
#include <inttypes.h>
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

const struct gp_result_client *gp_compare_alone(const struct gp_result *result, const struct gp_result_client *client)
{
	for (uint32_t i = 0; i < result->run_count; i++) {
		const struct gp_result_client *alone;

		if (strcmp(result->runs[i].policy, "alone"))
			continue;
		alone = gp_compare_client(&result->runs[i], client->name);
		if (alone && gp_compare_has_latency(alone) && gp_hist_quantile(&alone->latency_ns, 990))
			return alone;
	}
	return NULL;
}

/* Length of the name without the digits at its end. */
static size_t compare_stem(const char *name)
{
	size_t length = strlen(name);

	while (length && name[length - 1] >= '0' && name[length - 1] <= '9')
		length--;
	return length;
}

static bool compare_is_alike(const struct gp_result_client *a, const struct gp_result_client *b)
{
	size_t stem = compare_stem(a->name);

	return !a->is_service && !b->is_service && a->priority == b->priority && stem &&
	       compare_stem(b->name) == stem && !memcmp(a->name, b->name, stem);
}

void gp_compare_row_init(struct gp_compare_row *row, const struct gp_result_run *run, uint32_t index)
{
	const struct gp_result_client *client = &run->clients[index];
	uint32_t count = 1;

	while (index + count < run->client_count && compare_is_alike(client, &run->clients[index + count]))
		count++;
	if (count < GP_COMPARE_GROUP_MIN)
		count = 1;
	*row = (struct gp_compare_row){ .client = client, .count = count };
	for (uint32_t i = 0; i < count; i++) {
		row->requests += client[i].requests;
		row->throughput_milli += client[i].throughput_milli;
		row->gpu_share_ppm += client[i].gpu_share_ppm;
	}
	if (count == 1)
		(void)snprintf(row->name, sizeof(row->name), "%s", client->name);
	else
		(void)snprintf(row->name, sizeof(row->name), "%.*s ×%" PRIu32, (int)compare_stem(client->name),
			       client->name, count);
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
