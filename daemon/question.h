/* SPDX-License-Identifier: MIT */
/* Questions about processes. How long their files in /proc take to read is up to their users: the kernel waits for
 * locks that a process can hold for seconds. So threads read them, at most one for each user, and the daemon takes the
 * answers when they come. */
#ifndef GP_DAEMON_QUESTION_H
#define GP_DAEMON_QUESTION_H

#include "daemon/daemon.h"
#include "lib/worker.h"

/* The first member of a struct of the asker's, from malloc(); zero but for answer and take. */
struct gp_question {
	struct gp_lane lane;
	struct gp_owner *owner; /* question.c: whose question it is, with a reference */
	/* A thread calls it. It sees nothing but the question, which belongs to the thread until take. */
	void (*answer)(struct gp_question *question);
	/* The daemon calls it, once, unless it ends before. What the question holds is the callee's; it does not free
	 * it. */
	void (*take)(struct gp_daemon *daemon, struct gp_question *question);
};

/* False: there is no thread, or the user has too many open questions. Then the question has been freed. */
bool gp_question_ask(struct gp_daemon *daemon, struct gp_question *question, struct gp_owner *owner);
void gp_questions_take(struct gp_daemon *daemon); /* one portion */
void gp_questions_fini(struct gp_daemon *daemon);

#endif
