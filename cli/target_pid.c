/* SPDX-License-Identifier: MIT */
/* Owns how a program or a device is named on the command line. */
#include <errno.h>
#include <string.h>
#include "cli/target_pid.h"
#include "lib/units.h"

int gp_target_pid(const char *text, int32_t *ret_pid, struct gp_error *error)
{
	uint64_t pid = 0;
	int r = gp_units_parse_count(text, "pid", 1, INT32_MAX, &pid, error);

	if (!r)
		*ret_pid = (int32_t)pid;
	return r;
}

int gp_target_gpu(const char *text, uint32_t *ret_gpu_id, struct gp_error *error)
{
	uint64_t gpu_id = 0;

	if (strcmp(text, "all") && gp_units_parse_count(text, "gpu_id", 1, UINT32_MAX - 1u, &gpu_id, error))
		return gp_error_set(error, -EINVAL,
				    "\"%.40s\" is not a gpu_id: give a number that gpreempt status shows, or all",
				    text);
	*ret_gpu_id = (uint32_t)gpu_id;
	return 0;
}

const struct gp_state_client *gp_target_client(const struct gp_state *state, int32_t pid)
{
	for (uint32_t i = 0; i < state->client_count; i++)
		if (state->clients[i].pid == (uint64_t)pid)
			return &state->clients[i];
	return NULL;
}
