/* SPDX-License-Identifier: MIT */
/* What `gpreempt run` changes in the environment of the program it becomes, and where it finds the agent. */
#ifndef GP_CLI_RUN_ENV_H
#define GP_CLI_RUN_ENV_H

#include <gpreempt/wire.h>
#include <stddef.h>
#include "lib/error.h"

struct gp_run_env {
	const char *agent_path; /* absolute; NULL: no agent */
	const struct gp_wire_attr *attr;
	const char *stream_map;  /* NULL: not given */
	unsigned long hw_queues; /* 0: not given */
};

/* $GPREEMPT_AGENT_PATH, the library folder beside the installed program, the build tree. Refused with a sentence: not
 * there; it or its folder may be written by everybody or belongs to another user; a name that the loader would split.
 */
int gp_run_env_agent(char *ret_path, size_t size, struct gp_error *error);
/* Changes the environment of this process. What was in LD_PRELOAD and HSA_TOOLS_LIB stays, before the agent. */
int gp_run_env_apply(const struct gp_run_env *env, struct gp_error *error);

#endif
