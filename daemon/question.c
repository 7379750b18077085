/* SPDX-License-Identifier: MIT */
/* Owns the threads that answer questions about processes, and how many questions of one user may be open. */
#include <stdlib.h>
#include "daemon/question.h"
#include "lib/aside.h"

#define QUESTION_THREADS 8u /* for new connections, and as many for all else; they wait for helpers */
#define QUESTION_USER_MAX                                                                        \
	1024u /* open ones of one user, but for new connections, which listen.c limits: a client \
	       * that has gone leaves its own; chosen */

static void question_answer(void *context, struct gp_lane *lane, struct gp_worker_job *job)
{
	struct gp_question *question = (struct gp_question *)lane;

	(void)context, (void)job;
	question->answer(question);
}

static void question_free(struct gp_question *question)
{
	if (question->drop)
		question->drop(question);
	free(question);
}

/* Called at the daemon's end only. */
static void question_idle(void *context, struct gp_lane *lane)
{
	(void)context;
	question_free((struct gp_question *)lane);
}

static struct gp_worker *question_worker(struct gp_daemon *daemon, bool is_identity)
{
	struct gp_worker **worker = is_identity ? &daemon->questions.identities : &daemon->questions.worker;

	if (!*worker)
		*worker = gp_worker_create(&(struct gp_worker_config){ .thread_min = 1,
								       .thread_max = QUESTION_THREADS,
								       .limited_max = QUESTION_THREADS,
								       .limited_owner_max = 1,
								       .collects = true,
								       .notify_fd = daemon->inbox.fd,
								       .run = question_answer,
								       .idle = question_idle });
	return *worker;
}

bool gp_question_ask(struct gp_daemon *daemon, struct gp_question *question, struct gp_owner *owner)
{
	struct gp_worker *worker = question_worker(daemon, question->is_identity);

	if (!worker || (!question->is_identity && owner->question_count >= QUESTION_USER_MAX)) {
		free(question);
		return false;
	}
	question->owner = gp_owner_hold(owner);
	question->lane.owner = owner->id + 1; /* not 0: root has the same limits */
	owner->question_count++;
	daemon->questions.open_count++;
	daemon->questions.identity_count += question->is_identity;
	gp_worker_give(worker, &question->lane, NULL);
	return true;
}

uint64_t gp_question_blamed(const struct gp_question *question)
{
	return GP_ASIDE_QUESTION(question->owner->key);
}

/* The answers that have come, the oldest first. */
static void question_collect(struct gp_questions *questions, struct gp_worker *worker)
{
	struct gp_lane *lane, *next, **end = &questions->answered, *first;

	while (*end)
		end = &(*end)->next;
	first = *end;
	for (lane = gp_worker_collect(worker); lane; lane = next) {
		next = lane->next;
		lane->next = first;
		first = lane;
	}
	*end = first;
}

void gp_questions_take(struct gp_daemon *daemon)
{
	struct gp_lane *lane;

	question_collect(&daemon->questions, daemon->questions.identities);
	question_collect(&daemon->questions, daemon->questions.worker);
	gp_portion_begin(daemon);
	while ((lane = daemon->questions.answered) && !gp_portion_is_over(daemon)) {
		struct gp_question *question = (struct gp_question *)lane;
		uint64_t begin_ns = gp_now_ns();

		daemon->questions.answered = lane->next;
		GP_ASSERT(question->owner->question_count && daemon->questions.open_count);
		question->owner->question_count--;
		daemon->questions.open_count--;
		daemon->questions.identity_count -= question->is_identity;
		gp_portion_use(daemon, 1);
		question->take(daemon, question);
		/* listen.c charges for new connections: the uid alone may be a container's. */
		if (!question->is_identity)
			gp_fair_charge(question->owner, gp_now_ns() - begin_ns, gp_now_ns());
		gp_owner_put(question->owner);
		question_free(question);
	}
}

void gp_questions_fini(struct gp_daemon *daemon)
{
	struct gp_lane *lane;

	gp_worker_stop(daemon->questions.identities, 0);
	gp_worker_stop(daemon->questions.worker, 0);
	daemon->questions.identities = daemon->questions.worker = NULL;
	while ((lane = daemon->questions.answered)) {
		daemon->questions.answered = lane->next;
		question_free((struct gp_question *)lane);
	}
}
