/* SPDX-License-Identifier: MIT */
/* The command line of `gpreempt sim`, as data. */
#ifndef GP_SIM_OPTIONS_H
#define GP_SIM_OPTIONS_H

#include "sim/engine.h"
#include "sim/mix.h"

#define GP_OPTIONS_RUN_MAX 16u

struct gp_options {
	const char *mix, *device, *trace; /* as given; NULL: not */
	uint32_t run_count;
	char runs[GP_OPTIONS_RUN_MAX][24]; /* names of modes, in order */
	bool has_gate, has_duration;
	bool list, describe, help, version;
	bool json;
	const char *json_path, *perfetto_path, *html_path; /* "-": standard output */
	struct gp_sim_config config;                       /* all but workload and description */
	struct gp_mix_options mix_options;                 /* all but the description */
	char setting_texts[GP_MIX_SETTING_MAX][96];
	uint32_t override_count;
	const char *overrides[GP_MIX_SETTING_MAX]; /* of the device's description */
	char command[512];                         /* the options that decide the result, in a fixed order of words */
};

/* 0, or -EINVAL with what is wrong with which option. argv must outlive options. */
int gp_options_parse(int argc, char **argv, struct gp_options *ret_options, struct gp_error *error);
extern const char gp_options_help[];
extern const char *const gp_gate_names[]; /* by enum gp_unit; NULL-terminated */

#endif
