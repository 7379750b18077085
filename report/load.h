/* SPDX-License-Identifier: MIT */
/* The files of a run, read into a store and facts. */
#ifndef GP_REPORT_LOAD_H
#define GP_REPORT_LOAD_H

#include "report/analysis.h"
#include "report/trace/readers.h"

#define GP_RUN_UNREAD_MAX 32u /* files of folders that are no traces: so many are named */

struct gp_run {
	struct gp_store store;
	struct gp_analysis_facts facts;
	uint64_t unread_count;
	char unread[GP_RUN_UNREAD_MAX][256];
};

int gp_run_init(struct gp_run *run, size_t memory_size, struct gp_error *error);
void gp_run_fini(struct gp_run *run);
int gp_run_load(struct gp_run *run, const char *path, const struct gp_read_progress *progress, struct gp_error *error);
/* folder.c */
bool gp_folder_is(const char *path);
int gp_folder_load(struct gp_run *run, const char *folder, const struct gp_read_progress *progress,
		   struct gp_error *error);
int gp_folder_warn(const struct gp_run *run, struct gp_report *report); /* names what was not read; -ENOMEM */
/* What readers hand their events to, for those who call a reader themselves (after gp_store_file_add()). */
struct gp_sink gp_run_sink(struct gp_run *run);

#endif
