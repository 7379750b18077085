/* SPDX-License-Identifier: MIT */
/* Answers questions about trees of processes, in threads (question.c). */
#include <stdlib.h>
#include "daemon/process.h"
#include "daemon/question.h"
#include "daemon/scan.h"
#include "daemon/tree.h"
#include "lib/cleanup.h"

struct tree_question {
	struct gp_question question;
	struct gp_tree answer; /* the thread's */
	struct gp_tree *tree;  /* the peer's; NULL: the peer has gone */
	struct gp_peer *peer;
	pid_t pid;
	const struct gp_backend_ops *ops[GP_BACKEND_MAX];
	uint32_t op_count, client_count;
	pid_t clients[];
};

/* What a thread needs for an answer. */
struct tree_room {
	struct gp_ancestry ancestry;
	pid_t pids[GP_SCAN_LIST_MAX];
	struct gp_device_queue queues[GP_SCAN_PROCESS_QUEUE_MAX];
};

static void tree_look(struct tree_question *question, const struct gp_backend_ops *ops, struct tree_room *room)
{
	int count = ops->processes ? ops->processes(room->pids, GP_SCAN_LIST_MAX) : 0;

	for (int i = 0; i < count; i++) {
		int queue_count;

		if (!gp_process_descends(&room->ancestry, room->pids[i], question->pid))
			continue;
		question->answer.is_listed = true;
		queue_count = ops->process_queues(room->pids[i], room->queues, GP_SCAN_PROCESS_QUEUE_MAX);
		question->answer.queues += queue_count > 0 ? (uint32_t)queue_count : 0;
	}
}

/* Without memory the answer is that nothing was found. */
static void tree_answer(struct gp_question *asked)
{
	struct tree_question *question = (struct tree_question *)asked;
	GP_AUTO_FREE struct tree_room *room = calloc(1, sizeof(*room));

	for (uint32_t i = 0; room && i < question->client_count; i++)
		question->answer.agents += gp_process_descends(&room->ancestry, question->clients[i], question->pid);
	for (uint32_t i = 0; room && i < question->op_count; i++)
		tree_look(question, question->ops[i], room);
}

static void tree_take(struct gp_daemon *daemon, struct gp_question *asked)
{
	struct tree_question *question = (struct tree_question *)asked;

	if (!question->tree)
		return;
	*question->tree = question->answer;
	question->peer->wants_status = false;
	gp_fair_add(daemon, question->peer);
}

struct gp_tree *gp_tree_ask(struct gp_daemon *daemon, struct gp_peer *peer, pid_t pid, bool sees_drivers)
{
	struct tree_question *question =
		calloc(1, sizeof(*question) + daemon->client_top * sizeof(question->clients[0]));
	struct gp_tree *tree = question ? calloc(1, sizeof(*tree)) : NULL;

	if (!tree) {
		free(question);
		return NULL;
	}
	question->question.answer = tree_answer;
	question->question.take = tree_take;
	question->tree = tree;
	question->peer = peer;
	question->pid = pid;
	tree->question = question;
	for (uint32_t i = 0; sees_drivers && i < daemon->driver_count; i++)
		question->ops[question->op_count++] = daemon->drivers[i].ops;
	for (uint32_t i = 0; i < daemon->client_top; i++) {
		const struct gp_client *client = daemon->clients[i];

		if (client && client->peer && (gp_access_is_admin(peer) || gp_access_is_same(peer, client)))
			question->clients[question->client_count++] = client->device.pid;
	}
	if (!gp_question_ask(daemon, &question->question, peer->owner)) {
		free(tree);
		tree = NULL;
	}
	return tree;
}

void gp_tree_drop(struct gp_tree *tree)
{
	if (tree && tree->question)
		tree->question->tree = NULL;
	free(tree);
}
