/* SPDX-License-Identifier: MIT */
/* Control groups as names: where a process is, and what a path or a pattern covers. cgroup.c */
#ifndef GP_DAEMON_CGROUP_H
#define GP_DAEMON_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/error.h"

#define GP_CGROUP_TEXT 8192u /* bytes of a process's paths together; more are left out */

/* The process's paths, each once, one a line, the unified hierarchy's first; without those that are the root. Empty if
 * there are none, or the process has gone. pidfd: of the same process. */
void gp_cgroup_read(pid_t pid, int pidfd, char *paths, size_t size);
/* The same of a text as in /proc/PID/cgroup. */
void gp_cgroup_parse(const char *text, char *paths, size_t size);
/* Whether one of the paths is path or below it. */
bool gp_cgroup_is_within(const char *paths, const char *path);
/* Whether one of them is in a cgroup that the pattern names (fnmatch(3) for each part), or below one. ret_name: the
 * last part of that cgroup's path, its end if it is too long. */
bool gp_cgroup_matches(const char *paths, const char *pattern, char *ret_name, size_t size);
/* 0, or -EINVAL and a sentence: an absolute path without empty parts, . and .., which is not the root. */
int gp_cgroup_check(const char *path, struct gp_error *error);
/* "/a/b*", or "a-b.slice", which is /a.slice/a-b.slice. -EINVAL and a sentence. ret_depth: how many parts it has. */
int gp_cgroup_pattern(const char *text, char *ret_pattern, size_t size, uint32_t *ret_depth, struct gp_error *error);

#endif
