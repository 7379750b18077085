/* SPDX-License-Identifier: MIT */
/* Answers questions about trees of processes, in threads (question.c) and helpers (lib/aside.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "daemon/identity.h"
#include "daemon/process.h"
#include "daemon/question.h"
#include "daemon/scan.h"
#include "daemon/tree.h"
#include "lib/aside.h"
#include "lib/cleanup.h"

/* What a helper looks for, without pointers but to functions. */
struct tree_flat {
	pid_t pid;
	uid_t uid; /* of the process, if drivers are to be asked */
	bool is_admin, asks_drivers;
	struct gp_tree answer;
	const struct gp_backend_ops *ops[GP_BACKEND_MAX];
	uint32_t op_count, client_count;
	pid_t clients[];
};

struct tree_question {
	struct gp_question question;
	struct gp_tree *tree; /* the peer's; NULL: the peer has gone */
	struct gp_peer *peer;
	uint64_t account; /* the peer's */
	struct tree_flat flat;
};

#define TREE_CLIENT_MAX ((GP_ASIDE_SIZE_MAX - sizeof(struct tree_flat)) / sizeof(pid_t))

/* What a helper needs for an answer. */
struct tree_room {
	struct gp_ancestry ancestry;
	pid_t pids[GP_SCAN_LIST_MAX];
	struct gp_device_queue queues[GP_SCAN_PROCESS_QUEUE_MAX];
};

static void tree_look(struct tree_flat *flat, const struct gp_backend_ops *ops, struct tree_room *room)
{
	int count = ops->processes ? ops->processes(room->pids, GP_SCAN_LIST_MAX) : 0;

	for (int i = 0; i < count; i++) {
		int queue_count;

		if (!gp_process_descends(&room->ancestry, room->pids[i], flat->pid))
			continue;
		flat->answer.is_listed = true;
		queue_count = ops->process_queues(room->pids[i], room->queues, GP_SCAN_PROCESS_QUEUE_MAX);
		flat->answer.queues += queue_count > 0 ? (uint32_t)queue_count : 0;
	}
}

static bool tree_is_users(const struct tree_flat *flat)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", flat->pid);
	return !stat(path, &st) && st.st_uid == flat->uid;
}

/* A helper calls it. Without memory the answer is that nothing was found. */
static void tree_read(void *data)
{
	struct tree_flat *flat = data;
	GP_AUTO_FREE struct tree_room *room = calloc(1, sizeof(*room));
	bool asks_drivers = flat->is_admin || (flat->asks_drivers && tree_is_users(flat));

	for (uint32_t i = 0; room && i < flat->client_count; i++)
		flat->answer.agents += gp_process_descends(&room->ancestry, flat->clients[i], flat->pid);
	for (uint32_t i = 0; room && asks_drivers && i < flat->op_count; i++)
		tree_look(flat, flat->ops[i], room);
}

/* Whether the process has the account of the user who asks. */
static bool tree_is_own(const struct tree_question *question)
{
	struct gp_process_identity identity = { .account = UINT64_MAX };
	int pidfd = (int)syscall(SYS_pidfd_open, question->flat.pid, 0), r = -ESRCH;

	if (pidfd >= 0) {
		r = gp_identity_read(question->flat.uid, question->flat.pid, pidfd,
				     gp_question_blamed(&question->question), &identity);
		close(pidfd);
	}
	gp_identity_fini(&identity);
	return !r && identity.account == question->account;
}

static void tree_answer(struct gp_question *asked)
{
	struct tree_question *question = (struct tree_question *)asked;
	struct tree_flat *flat = &question->flat;

	flat->asks_drivers = flat->is_admin || tree_is_own(question);
	if (gp_aside_call(gp_question_blamed(asked), tree_read, flat,
			  sizeof(*flat) + flat->client_count * sizeof(flat->clients[0])))
		flat->answer.is_unknown = true;
}

static void tree_take(struct gp_daemon *daemon, struct gp_question *asked)
{
	struct tree_question *question = (struct tree_question *)asked;

	if (!question->tree)
		return;
	*question->tree = question->flat.answer;
	question->peer->wants_status = false;
	gp_fair_add(daemon, question->peer);
}

static bool tree_may_see(const struct gp_peer *peer, const struct gp_client *client)
{
	return client && client->peer && (gp_access_is_admin(peer) || gp_access_is_same(peer, client));
}

struct gp_tree *gp_tree_ask(struct gp_daemon *daemon, struct gp_peer *peer, pid_t pid)
{
	struct tree_question *question =
		calloc(1, sizeof(*question) + daemon->client_top * sizeof(question->flat.clients[0]));
	struct gp_tree *tree = question ? calloc(1, sizeof(*tree)) : NULL;
	struct tree_flat *flat = &question->flat;

	if (!tree) {
		free(question);
		return NULL;
	}
	question->question.answer = tree_answer;
	question->question.take = tree_take;
	question->tree = tree;
	question->peer = peer;
	question->account = peer->identity.account;
	tree->question = question;
	flat->pid = pid;
	flat->uid = peer->uid;
	flat->is_admin = gp_access_is_admin(peer);
	for (uint32_t i = 0; i < daemon->driver_count; i++)
		flat->ops[flat->op_count++] = daemon->drivers[i].ops;
	for (uint32_t i = 0; i < daemon->client_top && flat->client_count < TREE_CLIENT_MAX; i++)
		if (tree_may_see(peer, daemon->clients[i]))
			flat->clients[flat->client_count++] = daemon->clients[i]->device.pid;
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
