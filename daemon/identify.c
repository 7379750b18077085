/* SPDX-License-Identifier: MIT */
/* Asks which process it is (identity.c), for the thread that decides. */
#include <stdlib.h>
#include <unistd.h>
#include "daemon/identify.h"
#include "lib/aside.h"

static void identify_answer(struct gp_question *asked)
{
	struct gp_identify *question = (struct gp_identify *)asked;

	question->result =
		gp_identity_read(question->uid, question->pid, question->pidfd, question->blamed, &question->identity);
}

static void identify_drop(struct gp_question *asked)
{
	struct gp_identify *question = (struct gp_identify *)asked;

	gp_identity_fini(&question->identity);
	if (question->pidfd >= 0)
		close(question->pidfd);
	if (question->fd >= 0)
		close(question->fd);
}

bool gp_identify_ask(struct gp_daemon *daemon, struct gp_owner *owner, const struct gp_identify *about,
		     void (*take)(struct gp_daemon *daemon, struct gp_question *question))
{
	struct gp_identify *question = malloc(sizeof(*question));

	if (!question)
		return false;
	*question = *about;
	question->question.answer = identify_answer;
	question->question.take = take;
	question->question.drop = identify_drop;
	question->question.is_identity = true;
	if (!question->blamed)
		question->blamed = gp_owner_is_root(owner) ? GP_ASIDE_ROOT : owner->key;
	return gp_question_ask(daemon, &question->question, owner);
}
