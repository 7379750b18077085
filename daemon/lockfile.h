/* SPDX-License-Identifier: MIT */
/* Files by which daemons notice each other: a daemon keeps its file locked for as long as it runs. */
#ifndef GP_DAEMON_LOCKFILE_H
#define GP_DAEMON_LOCKFILE_H

#include <stdbool.h>
#include <sys/types.h>

/* Opens the file, creates it if it is missing, and locks it until the descriptor is closed. -EBUSY: another process has
 * it locked (holder 0: it is in another PID namespace). After other errors the caller cannot tell. */
int gp_lockfile_take(const char *path, pid_t *ret_holder);
/* Whether path still leads to the file: it may have been removed, and a lock on a removed file is worth nothing. */
bool gp_lockfile_is_there(const char *path, int fd);
bool gp_lockfile_is_gone(const char *path, int fd); /* Both are false if the daemon cannot look. */

#define GP_LOCKFILE_WHO 32u
/* A name of the process that has it, for people. */
void gp_lockfile_who(pid_t holder, char who[GP_LOCKFILE_WHO]);

#endif
