/* SPDX-License-Identifier: MIT */
/* Whether root's container engine made a PID namespace, or a sandbox that one user started. sandbox.c */
#ifndef GP_DAEMON_SANDBOX_H
#define GP_DAEMON_SANDBOX_H

#include <stdbool.h>
#include <sys/types.h>

struct gp_subuid;

enum gp_sandbox {
	GP_SANDBOX_CONTAINER, /* root's: its uids say nothing */
	GP_SANDBOX_USER,      /* the user's whose uid the process has */
	GP_SANDBOX_UNKNOWN,   /* too deep, it changed all the while, or the daemon cannot see it */
};

/* A process that is not uid 0, below the daemon in a PID namespace whose outermost is space. own: the daemon's. */
struct gp_sandbox_process {
	uid_t uid;
	pid_t pid;
	int pidfd;
	ino_t space, own;
};

/* A helper's (identity.c). subuid: NULL: there are no ranges. */
enum gp_sandbox gp_sandbox_find(struct gp_subuid *subuid, const struct gp_sandbox_process *process);
/* Whether one of the paths, as of gp_cgroup_read(), is in a user's session. */
bool gp_sandbox_is_session(const char *paths);

#endif
