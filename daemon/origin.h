/* SPDX-License-Identifier: MIT */
/* The program or job that a process is part of. */
#ifndef GP_DAEMON_ORIGIN_H
#define GP_DAEMON_ORIGIN_H

#include "daemon/question.h"

struct gp_origin {
	struct gp_question question;
	pid_t pid;
	uid_t uid;
	uint64_t about;               /* the asker's */
	char name[GP_WIRE_NAME_SIZE]; /* the answer; empty: the kernel's files tell nothing */
};

/* Asks about a process of that owner; take gets a copy of `about` with the answer. With auto_gang off, without memory
 * or with too many open questions nothing is asked, and take is not called: false. */
bool gp_origin_ask(struct gp_daemon *daemon, struct gp_owner *owner, const struct gp_origin *about,
		   void (*take)(struct gp_daemon *daemon, struct gp_question *question));
void gp_origin_read(struct gp_question *origin); /* the answer; it may take as long as the process's user likes */

#endif
