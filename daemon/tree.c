/* SPDX-License-Identifier: MIT */
/*
 * Answers questions about trees of processes in threads, at most one thread for each user. So a user with many
 * processes, or with processes that cannot be read, keeps no other user waiting.
 */
#include <stddef.h>
#include <stdlib.h>
#include "daemon/process.h"
#include "daemon/scan.h"
#include "daemon/tree.h"
#include "lib/cleanup.h"
#include "lib/worker.h"

#define TREE_THREADS 4u

/* One question. It belongs to the thread from gp_worker_give() until the daemon collects it, except for peer, which is
 * the daemon's. */
struct tree_question {
	struct gp_lane lane;
	struct gp_tree tree;
	struct gp_peer *peer; /* NULL: the peer has gone */
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
		question->tree.is_listed = true;
		queue_count = ops->process_queues(room->pids[i], room->queues, GP_SCAN_PROCESS_QUEUE_MAX);
		question->tree.queues += queue_count > 0 ? (uint32_t)queue_count : 0;
	}
}

/* Without memory the answer is that nothing was found. */
static void tree_answer(void *context, struct gp_lane *lane, struct gp_worker_job *job)
{
	struct tree_question *question = (struct tree_question *)lane;
	GP_AUTO_FREE struct tree_room *room = calloc(1, sizeof(*room));

	(void)context, (void)job;
	for (uint32_t i = 0; room && i < question->client_count; i++)
		question->tree.agents += gp_process_descends(&room->ancestry, question->clients[i], question->pid);
	for (uint32_t i = 0; room && i < question->op_count; i++)
		tree_look(question, question->ops[i], room);
}

static void tree_free(void *context, struct gp_lane *lane)
{
	(void)context;
	free(lane);
}

static struct gp_worker *tree_worker(struct gp_daemon *daemon)
{
	if (!daemon->trees)
		daemon->trees = gp_worker_create(&(struct gp_worker_config){ .thread_min = 1,
									     .thread_max = TREE_THREADS,
									     .limited_max = TREE_THREADS,
									     .limited_owner_max = 1,
									     .collects = true,
									     .notify_fd = daemon->inbox.fd,
									     .run = tree_answer,
									     .idle = tree_free });
	return daemon->trees;
}

struct gp_tree *gp_tree_ask(struct gp_daemon *daemon, struct gp_peer *peer, pid_t pid, bool sees_drivers)
{
	struct gp_worker *worker = tree_worker(daemon);
	struct tree_question *question =
		worker ? calloc(1, sizeof(*question) + daemon->client_top * sizeof(question->clients[0])) : NULL;

	if (!question)
		return NULL;
	question->lane.owner = peer->owner->id + 1; /* not 0: root has the same limits */
	question->peer = peer;
	question->pid = pid;
	for (uint32_t i = 0; sees_drivers && i < daemon->driver_count; i++)
		question->ops[question->op_count++] = daemon->drivers[i].ops;
	for (uint32_t i = 0; i < daemon->client_top; i++) {
		const struct gp_client *client = daemon->clients[i];

		if (client && client->peer && (gp_access_is_admin(peer) || gp_access_is_same(peer, client)))
			question->clients[question->client_count++] = client->device.pid;
	}
	gp_worker_give(worker, &question->lane, NULL);
	return &question->tree;
}

void gp_tree_drop(struct gp_tree *tree)
{
	struct tree_question *question;

	if (!tree)
		return;
	question = (struct tree_question *)(void *)((char *)tree - offsetof(struct tree_question, tree));
	if (tree->is_answered)
		free(question);
	else
		question->peer = NULL; /* gp_trees_take() frees it */
}

void gp_trees_take(struct gp_daemon *daemon)
{
	struct gp_lane *lane, *next;

	for (lane = gp_worker_collect(daemon->trees); lane; lane = next) {
		struct tree_question *question = (struct tree_question *)lane;

		next = lane->next;
		if (!question->peer) {
			free(question);
			continue;
		}
		question->tree.is_answered = true;
		question->peer->wants_status = false;
		gp_fair_add(daemon, question->peer);
	}
}

void gp_trees_fini(struct gp_daemon *daemon)
{
	gp_worker_stop(daemon->trees, 0);
	daemon->trees = NULL;
}
