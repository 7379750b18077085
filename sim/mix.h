/* SPDX-License-Identifier: MIT */
/* Mixes: workloads described in a small INI (docs/mixes.md), built in (share/mixes) or of one's own, and replayed
 * traces. */
#ifndef GP_SIM_MIX_H
#define GP_SIM_MIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "lib/error.h"
#include "sim/workload.h"

#define GP_MIX_SIZE_MAX    (1u << 20) /* bytes of one mix file */
#define GP_MIX_SETTING_MAX 32u

struct gp_mix_options {
	const struct gp_desc *desc; /* workgroups are resolved for this device */
	uint32_t device_count;      /* 0: as many as the mix asks for, or 1 */
	/* "name=value", each for a parameter the mix declares. */
	uint32_t setting_count;
	const char *settings[GP_MIX_SETTING_MAX];
	bool no_files; /* refuse mixes that name other files (fuzzing) */
};

/* name: one of the built-in mixes, or the path of a file (it has a '/' or ends in .ini). On failure nothing is
 * returned. The caller frees with gp_workload_fini(). -ESRCH: the name or a setting is not known; the sentence lists
 * those that are. */
int gp_mix_load(const char *name, const struct gp_mix_options *options, struct gp_workload *ret_workload,
		struct gp_error *error);
int gp_mix_parse(const char *text, size_t text_size, const char *file_name, const struct gp_mix_options *options,
		 struct gp_workload *ret_workload, struct gp_error *error);
/* Adds a client that replays a kernel_trace.csv: streams by Queue_Id, start times kept. */
int gp_mix_add_trace(struct gp_workload *workload, const char *path, const struct gp_desc *desc,
		     struct gp_error *error);
/* One line per built-in mix: its name, its title, its parameters. */
int gp_mix_list(FILE *stream, struct gp_error *error);

#endif
