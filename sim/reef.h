/* SPDX-License-Identifier: MIT */
/*
 * Models as REEF measured them on an AMD MI50 (SJTU-IPADS/reef-artifacts, resource/NAME/): a model file with its
 * kernels in order (launch_params: grid x, y, z in workgroups, then workgroup x, y, z), LDS bytes by kernel name
 * (shared_memory), and a profile with microseconds by kernel name: total_latency for the launch alone, latency[n-1]
 * for n workgroups on every compute unit (so its length is how many fit one), and model_latency for the whole model,
 * which is less than the sum, as launches overlap.
 */
#ifndef GP_SIM_REEF_H
#define GP_SIM_REEF_H

#include "sim/kernels.h"

#define GP_REEF_KERNEL_MAX 16384u /* launches of one model */
#define GP_REEF_NAME_MAX   1024u  /* different kernels */

struct gp_reef {
	struct gp_trace_kernels kernels; /* in launch order, without times */
	uint64_t model_latency_ns;       /* measured, whole model */
};

/* A text and the name to call it by in a sentence. */
struct gp_reef_text {
	const char *text;
	size_t text_size;
	const char *file_name;
};

/* 0, or a negative errno with "file:line: …" and nothing returned. A kernel without a profile is refused. */
int gp_reef_load(const char *model_path, const char *profile_path, struct gp_reef *ret_reef, struct gp_error *error);
int gp_reef_parse(const struct gp_reef_text *model, const struct gp_reef_text *profile, struct gp_reef *ret_reef,
		  struct gp_error *error);
void gp_reef_fini(struct gp_reef *reef);

#endif
