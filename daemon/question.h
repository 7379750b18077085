/* SPDX-License-Identifier: MIT */
/* Questions about processes. How long their files in /proc take to open and to read is up to other users. So helper
 * processes read them (lib/aside.h), threads wait for the helpers, at most one for each user, and the daemon takes the
 * answers when they come. */
#ifndef GP_DAEMON_QUESTION_H
#define GP_DAEMON_QUESTION_H

#include "daemon/daemon.h"
#include "lib/worker.h"

/* The first member of a struct of the asker's, from malloc(); zero but for answer, take, drop and is_identity. */
struct gp_question {
	struct gp_lane lane;
	struct gp_owner *owner; /* question.c: whose question it is, with a reference */
	bool is_identity;       /* a new connection waits for it: it has threads of its own */
	/* A thread calls it. It sees nothing but the question, which belongs to the thread until take. */
	void (*answer)(struct gp_question *question);
	/* The daemon calls it, once, unless it ends before. It does not free the question. */
	void (*take)(struct gp_daemon *daemon, struct gp_question *question);
	/* Called last: gives back what the question holds, but not the question. May be NULL. */
	void (*drop)(struct gp_question *question);
};

/* False: there is no thread, or the user has too many open questions. Then the question has been freed, but not
 * dropped. */
bool gp_question_ask(struct gp_daemon *daemon, struct gp_question *question, struct gp_owner *owner);
/* Whom lib/aside.h blames if the question's files take too long: not who is blamed for a new connection's. */
uint64_t gp_question_blamed(const struct gp_question *question);
void gp_questions_take(struct gp_daemon *daemon); /* one portion */
void gp_questions_fini(struct gp_daemon *daemon);

#endif
