/* SPDX-License-Identifier: MIT */
/* The program a command is about: a pid, or a device. */
#ifndef GP_CLI_TARGET_PID_H
#define GP_CLI_TARGET_PID_H

#include <stdint.h>
#include "cli/state.h"
#include "lib/error.h"

int gp_target_pid(const char *text, int32_t *ret_pid, struct gp_error *error);
/* "51966": a gpu_id as status shows it; "all": 0. */
int gp_target_gpu(const char *text, uint32_t *ret_gpu_id, struct gp_error *error);
const struct gp_state_client *gp_target_client(const struct gp_state *state, int32_t pid); /* NULL: not there */

#endif
