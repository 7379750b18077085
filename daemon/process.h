/* SPDX-License-Identifier: MIT */
/* What /proc says of a process. The kernel reuses pids: to know whether a pid still means the same process, hold a
 * pidfd and call gp_process_is_there() afterwards. */
#ifndef GP_DAEMON_PROCESS_H
#define GP_DAEMON_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define GP_PROCESS_DEPTH 128 /* ancestors that are looked at */

struct gp_process_stat {
	pid_t parent;   /* 0: it has none */
	uint64_t start; /* when it was started; tells the process from a later one with its pid */
	uint64_t stack; /* where it begins, chosen anew by each execve(); 0: not told */
};

/* The beginning of a file of /proc/PID, as a string; its size, 0 if there is none. */
size_t gp_process_read(pid_t pid, const char *name, char *text, size_t size);
/* The same of a thread that has not ended: its first one, or another. */
size_t gp_process_read_living(pid_t pid, const char *name, char *text, size_t size);
bool gp_process_is_there(int pidfd); /* it has not ended */

/* -ESRCH: it has gone; -EINVAL: makes no sense. */
int gp_process_stat(pid_t pid, struct gp_process_stat *ret_stat);
int gp_process_stat_parse(const char *text, struct gp_process_stat *ret_stat);
pid_t gp_process_parent(pid_t pid); /* 0: it has none, or has gone */

/* Parents that were read, for one question about many processes. */
#define GP_ANCESTRY_SIZE 4096u
struct gp_ancestry {
	pid_t pids[GP_ANCESTRY_SIZE], parents[GP_ANCESTRY_SIZE];
};
/* Is pid the process ancestor or one that descends from it? */
bool gp_process_descends(struct gp_ancestry *ancestry, pid_t pid, pid_t ancestor);

#endif
