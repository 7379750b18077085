/* SPDX-License-Identifier: MIT */
/* Questions that more than one view asks of a result. */
#ifndef GP_VIEW_COMPARE_H
#define GP_VIEW_COMPARE_H

#include "view/result.h"

/* The client of that name in a run, or NULL. */
const struct gp_result_client *gp_compare_client(const struct gp_result_run *run, const char *name);
/* It has requests with a latency to show. */
bool gp_compare_has_latency(const struct gp_result_client *client);

/* Who waited for whom is known: there are waits, or somebody watched and there was no inversion. */
bool gp_compare_has_waits(const struct gp_result_run *run);

/* Clients by name over all runs, in order of appearance, so that one client has one colour everywhere. */
#define GP_COMPARE_NAMES_MAX 256u
struct gp_compare_names {
	uint32_t count;
	const struct gp_result_client *clients[GP_COMPARE_NAMES_MAX];
};
void gp_compare_names_init(struct gp_compare_names *names, const struct gp_result *result);
/* Its number; names beyond the maximum share the last one. */
uint32_t gp_compare_names_find(const struct gp_compare_names *names, const char *name);

#endif
