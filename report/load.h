/* SPDX-License-Identifier: MIT */
/* The files of a run, read into a store and facts. */
#ifndef GP_REPORT_LOAD_H
#define GP_REPORT_LOAD_H

#include "report/analysis.h"
#include "trace/readers.h"

struct gp_run {
	struct gp_store store;
	struct gp_facts facts;
};

int gp_run_init(struct gp_run *run, size_t memory_size, struct gp_error *error);
void gp_run_fini(struct gp_run *run);
int gp_run_load(struct gp_run *run, const char *path, const struct gp_read_progress *progress, struct gp_error *error);
/* What readers hand their events to, for those who call a reader themselves (after gp_store_file_add()). */
struct gp_sink gp_run_sink(struct gp_run *run);

#endif
