/* SPDX-License-Identifier: MIT */
/* Whether the agent can get into a program: what the dynamic loader will make of it. Reads files, runs nothing. */
#ifndef GP_CLI_RUN_TARGET_H
#define GP_CLI_RUN_TARGET_H

#include <stddef.h>
#include "lib/error.h"

/* The file that `command` means: itself if it has a slash, else the first executable of that name in $PATH. -ENOENT. */
int gp_run_target_find(const char *command, char *ret_path, size_t size);
/* 0: nothing speaks against it (as far as can be seen), or -ENOEXEC with a sentence why the agent will not be loaded: a
 * static program, one of another machine, one that changes its user. A script is judged by its interpreter. */
int gp_run_target_check(const char *path, struct gp_error *error);

#endif
