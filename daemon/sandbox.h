/* SPDX-License-Identifier: MIT */
/* Whether root's container engine made a PID namespace, or a sandbox that one user started. sandbox.c */
#ifndef GP_DAEMON_SANDBOX_H
#define GP_DAEMON_SANDBOX_H

#include <stdbool.h>
#include <sys/types.h>

enum gp_sandbox {
	GP_SANDBOX_CONTAINER, /* root's: its uids say nothing */
	GP_SANDBOX_USER,      /* the user's whose uid the process has */
	GP_SANDBOX_UNKNOWN,   /* too deep, or it changed all the while */
};

/* pid: a process that is not uid 0, below the daemon in a PID namespace whose outermost is space. own: the daemon's. */
enum gp_sandbox gp_sandbox_find(uid_t uid, pid_t pid, int pidfd, ino_t space, ino_t own);
/* Whether one of the paths, as of gp_cgroup_read(), is in a user's session. */
bool gp_sandbox_is_session(const char *paths);

#endif
