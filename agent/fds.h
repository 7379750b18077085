/* SPDX-License-Identifier: MIT */
/*
 * The agent's own descriptors. An application may close or overwrite numbers it never opened (closefrom, close_range,
 * loops before exec). The agent keeps its own out of reach: they have high numbers, the hooks of close and dup answer
 * as if they were not open, and dup2 onto one of them moves it first. No lock: signal handlers may call these
 * functions.
 */
#ifndef GP_AGENT_FDS_H
#define GP_AGENT_FDS_H

#include <stdbool.h>
#include "agent/driver.h"

enum gp_fd_use {
	GP_FD_SOCKET,
	/* The daemon's eventfd; the agent keeps the number between daemons, so that no doorbell writes to another file.
	 */
	GP_FD_DOORBELL,
	GP_FD_WAKE, /* eventfd: the agent's thread has something to do */
	GP_FD_INOTIFY,
	GP_FD_READ_OUT,
	GP_FD_READ_IN,
	GP_FD_DEBUG_OUT,
	GP_FD_DEBUG_IN,
	GP_FD_TRAP,  /* userfaultfd: readable when a program's thread rings a watched queue */
	GP_FD_GUARD, /* pidfd of the guard: readable when that thread has ended */
	GP_FD_LOG,
	GP_FD_FILES, /* from here on duplicates of the application's files: GP_FD_FILE_MAX for each driver */
};
#define GP_FD_FILE_MAX 16u
#define GP_FD_COUNT    (GP_FD_FILES + (unsigned)GP_DRIVER_COUNT * GP_FD_FILE_MAX)
/* The first of a driver's duplicates; name as in GP_DRIVER_LIST. No two drivers have one in common. */
#define GP_FD_FIRST(name) (GP_FD_FILES + (unsigned)GP_DRIVER_##name * GP_FD_FILE_MAX)

int gp_fd(unsigned use); /* -1: none */
/* The same, but checks first whether the number is still the agent's (one more system call). If the application has
 * closed it by a system call of its own, the number may be the application's by now: -1, and the agent neither reads,
 * writes nor closes it. */
int gp_fd_verified(unsigned use);
/* While trusted, the numbers of what a driver needs to open gates count as the agent's and no other does:
 * gp_fd_verified() makes no system call. For the calling thread alone: the program's threads must still not close the
 * agent's. */
void gp_fds_trust(bool trust);
bool gp_fds_are_trusted(void);
bool gp_fd_is_like(unsigned use, int fd); /* whether fd is the same kind of file as that of use: an eventfd, say */

/* Takes fd over: moves it to a high number and closes the old one. 0 or -errno (fd is then closed as well). */
int gp_fd_take(unsigned use, int fd);
/* As take, but the number of use stays the same: fd's file atomically replaces the old one there. */
int gp_fd_replace(unsigned use, int fd);
void gp_fd_drop(unsigned use);
void gp_fd_forget(unsigned use); /* its number is another file's */
void gp_fds_drop_all(void);      /* in a forked child */

bool gp_fd_is_own(int fd);
/* Whether enough descriptors are left to the program: an agent that took the last ones would break it. The agent asks
 * before it takes a descriptor that it keeps for more than a moment; while it has none yet, it asks for all that it
 * needs to begin. */
bool gp_fds_are_enough(void);
/* The use has no descriptor: notes fd's file, so that a descriptor of that file may be taken later. */
void gp_fd_note(unsigned use, int fd);

#endif
