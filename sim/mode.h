/* SPDX-License-Identifier: MIT */
/* Runs one mix under a mode by name: alone, stock, sequential, lv1, reset, or any policy of the core. */
#ifndef GP_SIM_MODE_H
#define GP_SIM_MODE_H

#include "sim/engine.h"

/* Told how far a run is, for a progress bar. NULL: nobody asks. */
struct gp_mode_progress {
	void *context;
	void (*update)(void *context, uint64_t done, uint64_t total);
};

#define GP_MODE_DEFAULT "hpf" /* where nobody names a policy */

bool gp_mode_is_name(const char *name);
/* "alone, stock, …" for "valid names are: …"; returns buffer. */
const char *gp_mode_names(char *buffer, size_t buffer_size);
/* config's mode, policy and only_client are set here. */
int gp_mode_run(const struct gp_sim_config *config, const char *name, const struct gp_mode_progress *progress,
		struct gp_result_run *ret_run, struct gp_error *error);

#endif
