/* SPDX-License-Identifier: MIT */
/* What a process may do to others: rights.c. */
#ifndef GP_DAEMON_RIGHTS_H
#define GP_DAEMON_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define GP_RIGHT_NICE  1u /* CAP_SYS_NICE: above the ceilings */
#define GP_RIGHT_ADMIN 2u /* CAP_SYS_ADMIN: pause, grants, other people's clients */

#define GP_RIGHTS_TEXT 16384u /* bytes of /proc/PID/status, which has two pages at most */

/* A helper's (identity.c): the rights of the process behind pidfd, which had this uid when it connected. own: the
 * daemon's user namespace. None if they cannot be read. */
uint32_t gp_rights_read(uid_t uid, pid_t pid, int pidfd, ino_t own);
/* The same of a text as in /proc/PID/status, whatever its namespace. */
uint32_t gp_rights_parse(const char *status, uid_t uid);

#endif
