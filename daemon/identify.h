/* SPDX-License-Identifier: MIT */
/* Asking which process it is: identify.c. */
#ifndef GP_DAEMON_IDENTIFY_H
#define GP_DAEMON_IDENTIFY_H

#include "daemon/identity.h"
#include "daemon/question.h"

/* A question about a process; the answer owns what identity points to, and the two files, unless they are taken out. */
struct gp_identify {
	struct gp_question question;
	uid_t uid; /* as the kernel gave it; likewise gid */
	gid_t gid;
	pid_t pid;
	int pidfd;      /* of that process */
	int fd;         /* the asker's; -1: none */
	uint64_t about; /* the asker's */
	uint64_t
		blamed; /* identity.c: who holds up the helper if the process's files do not open; 0: that uid's user */
	/* The answer. */
	int result; /* 0; -ETIMEDOUT, -EBUSY: the files of the process, or of an earlier one, do not open */
	struct gp_process_identity identity;
};

/* owner: of that uid. False: the question was not asked. The caller still has its files. */
bool gp_identify_ask(struct gp_daemon *daemon, struct gp_owner *owner, const struct gp_identify *about,
		     void (*take)(struct gp_daemon *daemon, struct gp_question *question));
#endif
