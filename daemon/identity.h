/* SPDX-License-Identifier: MIT */
/* Which process it is, as far as the kernel's files tell: identity.c. */
#ifndef GP_DAEMON_IDENTITY_H
#define GP_DAEMON_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "daemon/subuid.h"

/* A process and its ancestors, the process itself first. */
struct gp_lineage {
	uint64_t start; /* of the process, as /proc/PID/stat has it */
	uint32_t count;
	pid_t pids[];
};

struct gp_process_identity {
	uint64_t account;           /* only processes of the same account have it; 0: root */
	uid_t uid;                  /* the account's, for the journal */
	uint32_t rights;            /* GP_RIGHT_… */
	ino_t pid_space;            /* its PID namespace; 0: not known */
	pid_t own_pid;              /* its number there */
	char *cgroups;              /* gp_cgroup_read(); NULL: none, or not known */
	struct gp_lineage *lineage; /* NULL: not known */
	uint64_t cost_ns;           /* processor time that reading it took */
};

/* Before the daemon has threads and helpers. */
void gp_identity_prepare(void);
/* Has a helper read it; the caller waits, a second at most. uid: as the kernel gave it. pidfd: of that process. blamed:
 * who holds the helper up if the files do not open (lib/aside.h). -ETIMEDOUT, -EBUSY: the files of the process, or of
 * an earlier one, do not open. */
int gp_identity_read(uid_t uid, pid_t pid, int pidfd, uint64_t blamed, struct gp_process_identity *ret_identity);
/* Of a process whose files do not open: it shares one account with all such processes. */
struct gp_process_identity gp_identity_nobody(uid_t uid);
void gp_identity_fini(struct gp_process_identity *identity);
struct gp_process_identity gp_identity_copy(const struct gp_process_identity *from);
struct gp_process_identity gp_identity_take(struct gp_process_identity *from); /* with what it points to */

/* The account of a uid alone, which is not 0, and the account's uid. subuid: NULL: there are no ranges. */
uint64_t gp_identity_of_uid(struct gp_subuid *subuid, uid_t uid, uid_t *ret_uid);
bool gp_identity_is_container(uint64_t account); /* of one that root's engine made: its uids mean nothing here */
ino_t gp_identity_own_pids(void);                /* the daemon's PID namespace */
/* A helper's: the outermost PID namespace of a process below own; 0: none. A negative errno: not known. */
int gp_identity_outermost_pids(pid_t pid, ino_t own, ino_t *ret_space);

#endif
