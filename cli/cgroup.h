/* SPDX-License-Identifier: MIT */
/* Whether a cgroup exists, by its path as in /proc/PID/cgroup of the daemon's cgroup namespace. */
#ifndef GP_CLI_CGROUP_H
#define GP_CLI_CGROUP_H

#include <stdbool.h>
#include <sys/types.h>

/* True only if it surely does not exist: the daemon's cgroup namespace is this process's, and no hierarchy that is
 * mounted here has it. */
bool gp_cgroup_is_missing(pid_t daemon, const char *path);

/* The same by a text as in /proc/self/mountinfo. */
bool gp_cgroup_is_in_no_mount(const char *mounts, const char *path);

#endif
