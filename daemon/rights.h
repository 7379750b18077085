/* SPDX-License-Identifier: MIT */
/* What a process may do to others: rights.c. */
#ifndef GP_DAEMON_RIGHTS_H
#define GP_DAEMON_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define GP_RIGHT_NICE  1u /* CAP_SYS_NICE: above the ceilings */
#define GP_RIGHT_ADMIN 2u /* CAP_SYS_ADMIN: pause, grants, other people's clients */

/* Of the process behind pidfd, whose uid was this one when it connected. None where it cannot be told. */
uint32_t gp_rights_read(uid_t uid, pid_t pid, int pidfd);
/* The same of a text as in /proc/PID/status, whatever its namespace. */
uint32_t gp_rights_parse(const char *status, uid_t uid);
bool gp_process_is_there(int pidfd); /* it has not ended */
/* The beginning of a file of /proc/PID, as a string; its size, 0 if there is none. */
size_t gp_process_read(pid_t pid, const char *name, char *text, size_t size);

#endif
