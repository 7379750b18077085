/* SPDX-License-Identifier: MIT */
/* What root has granted to cgroups and processes: grant.c, and its file: grant_file.c. */
#ifndef GP_DAEMON_GRANT_H
#define GP_DAEMON_GRANT_H

#include <gpreempt/control.h>
#include "daemon/identity.h"
#include "daemon/peer.h"
#include "daemon/terms.h"

#define GP_GRANT_MAX  1024u
#define GP_GRANT_PIDS 256u /* of them for processes: each holds a descriptor */

struct gp_grant {
	struct gp_grant *next;
	struct gp_source source; /* for a process: it has ended */
	pid_t pid;               /* 0: a cgroup's */
	int pidfd;
	uint64_t start;    /* of the process, as /proc/PID/stat has it: tells it from a later one with that pid */
	uint64_t until_ns; /* 0: for ever */
	struct gp_terms terms;
	char cgroup[GP_GRANT_CGROUP];
};

/* A process that gets a grant. */
struct gp_grant_process {
	int pidfd;      /* -1: a grant has taken it */
	uint64_t start; /* struct gp_grant */
};

void gp_grant_request(struct gp_daemon *daemon, struct gp_peer *peer, const void *data);
/* Overlays terms with what is granted to those cgroups. */
void gp_grant_overlay(const struct gp_daemon *daemon, const char *cgroups, struct gp_terms *terms);
/* What is granted to the process, or to its nearest ancestor that has a grant. */
void gp_grant_of_process(struct gp_daemon *daemon, const struct gp_lineage *lineage, struct gp_terms *ret_terms);
/* Keeps what root set for a process, which may connect again. -ENOSPC: not kept. */
int gp_grant_keep_set(struct gp_daemon *daemon, pid_t pid, struct gp_grant_process *process,
		      const struct gp_wire_attr *attr);
void gp_grant_write(const struct gp_daemon *daemon, const struct gp_grant *grant, struct gp_text *text);
/* Once in each round: removes grants whose time is over, and saves what has changed. */
void gp_grant_due(struct gp_daemon *daemon, uint64_t now_ns);
const char *gp_grant_why(int error); /* why there is none, as part of a sentence */
void gp_grant_fini(struct gp_daemon *daemon);
/* Adds a grant, or replaces that of the same cgroup or process. request is an ADD that was checked. process: NULL if it
 * has a grant already. -E…: why it was not added. */
int gp_grant_add(struct gp_daemon *daemon, const struct gp_control_grant *request, struct gp_grant_process *process,
		 struct gp_grant **ret_grant);
void gp_grant_remove(struct gp_daemon *daemon, struct gp_grant *grant);

/* grant_process.c */
/* Finds a process that is to get a grant, while the caller waits, a second at most: -ESRCH: there is none. */
int gp_grant_process_find(pid_t pid, uint64_t blamed, struct gp_grant_process *ret_process);
void gp_grant_process_drop(struct gp_grant_process *process);
/* Finds it for a command. The peer's other commands wait until found() was called, unless the peer leaves before.
 * False: no memory, or no thread. */
bool gp_grant_process_ask(struct gp_daemon *daemon, struct gp_peer *peer, pid_t pid, const void *request, size_t size,
			  void (*found)(struct gp_daemon *daemon, struct gp_peer *peer, const void *request, int result,
					struct gp_grant_process *process));
void gp_grant_process_forget(struct gp_grant_question *question); /* the peer leaves; NULL: does nothing */

/* grant_file.c */
void gp_grant_load(struct gp_daemon *daemon);
void gp_grant_save(struct gp_daemon *daemon);
/* Reads the file's text, which must be of that boot. -ESTALE: it is of another. -EINVAL and a sentence: what comes
 * before the error is taken. */
int gp_grant_parse(struct gp_daemon *daemon, const char *text, size_t size, const char *boot, struct gp_error *error);

#endif
