/* SPDX-License-Identifier: MIT */
/*
 * The agent's own descriptors. An application may close or overwrite numbers it never opened (closefrom, close_range,
 * loops before exec); ours are kept away from it: they sit high, the hooks of close and dup answer for them as if they
 * were not open, and one that is wanted by dup2 is moved. No lock: those functions may be called in signal handlers.
 */
#ifndef GP_AGENT_FDS_H
#define GP_AGENT_FDS_H

#include <stdbool.h>

enum gp_fd_use {
	GP_FD_SOCKET,
	GP_FD_DOORBELL, /* the daemon's eventfd; the number stays ours between daemons, so that no doorbell writes
			   elsewhere */
	GP_FD_WAKE,     /* eventfd: the agent's thread has something to do */
	GP_FD_INOTIFY,
	GP_FD_READ_OUT,
	GP_FD_READ_IN,
	GP_FD_DEBUG_OUT,
	GP_FD_DEBUG_IN,
	GP_FD_TRAP, /* of the driver: readable when a queue that is watched gets work */
	GP_FD_LOG,
	GP_FD_FILE, /* the first of GP_FD_FILE_MAX: duplicates of the application's /dev/kfd */
};
#define GP_FD_FILE_MAX 16u
#define GP_FD_RM       (GP_FD_FILE + GP_FD_FILE_MAX) /* the first of GP_FD_RM_MAX: duplicates of /dev/nvidiactl */
#define GP_FD_RM_MAX   16u
#define GP_FD_COUNT    (GP_FD_RM + GP_FD_RM_MAX)

int gp_fd(unsigned use); /* -1: none */
/* The same, after a look whether the number is still ours: one that was closed by a system call of the application's
 * may be its own by now, and is neither written, read nor closed. A call more. */
int gp_fd_verified(unsigned use);
bool gp_fd_is_like(unsigned use, int fd); /* whether fd is of the same kind: an eventfd as that one is */

/* Takes fd over: moves it to a high number, closes the old one. 0 or -errno (fd is closed then as well). */
int gp_fd_take(unsigned use, int fd);
/* As take, but the number of use stays what it is: what it was is replaced at once. */
int gp_fd_replace(unsigned use, int fd);
void gp_fd_drop(unsigned use);
void gp_fds_drop_all(void); /* in a forked child */

bool gp_fd_is_own(int fd);
/* Whether the program's limit leaves it some besides ours: who takes its last ones breaks it. */
bool gp_fds_are_enough(void);

#endif
