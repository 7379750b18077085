/* SPDX-License-Identifier: MIT */
/* Questions that more than one view asks of a result. */
#ifndef GP_VIEW_COMPARE_H
#define GP_VIEW_COMPARE_H

#include "view/result.h"

/* The client of that name in a run, or NULL. */
const struct gp_result_client *gp_compare_client(const struct gp_result_run *run, const char *name);
/* The same client in the run "alone", with a latency to compare with; NULL if there is none. */
const struct gp_result_client *gp_compare_alone(const struct gp_result *result, const struct gp_result_client *client);
/* It has requests with a latency to show. */
bool gp_compare_has_latency(const struct gp_result_client *client);

/* One row of a table: a client, or batch clients in a row that differ in nothing but their number. JSON lists them
 * all. */
#define GP_COMPARE_GROUP_MIN 4u
struct gp_compare_row {
	const struct gp_result_client *client; /* the first */
	uint32_t count;
	char name[64];                                      /* "train", or "train ×15" */
	uint64_t requests, throughput_milli, gpu_share_ppm; /* of all of them */
};
/* The row that begins with the index-th client; the next one begins count further. */
void gp_compare_row_init(struct gp_compare_row *row, const struct gp_result_run *run, uint32_t index);

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
