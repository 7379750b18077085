/* SPDX-License-Identifier: MIT */
/* Finds processes that root grants something: each is told from a later one with its number by its start, which is in
 * /proc/PID. A helper reads it (lib/aside.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "daemon/grant.h"
#include "daemon/process.h"
#include "daemon/question.h"
#include "lib/aside.h"

struct gp_grant_question {
	struct gp_question question;
	struct gp_peer *peer; /* NULL: it has left */
	void (*found)(struct gp_daemon *daemon, struct gp_peer *peer, const void *request, int result,
		      struct gp_grant_process *process);
	pid_t pid;
	int result;
	struct gp_grant_process process;
	_Alignas(8) char request[];
};

struct start_flat {
	pid_t pid;
	int result;
	uint64_t start;
};

/* A helper calls it. */
static void start_read(void *data)
{
	struct start_flat *flat = data;
	struct gp_process_stat stat;

	flat->result = gp_process_stat(flat->pid, &stat);
	flat->start = flat->result ? 0 : stat.start;
}

/* Opens the pidfd before the start is read: if the process is still there afterwards, the start is its own. */
int gp_grant_process_find(pid_t pid, uint64_t blamed, struct gp_grant_process *ret_process)
{
	struct gp_grant_process process = { .pidfd = (int)syscall(SYS_pidfd_open, pid, 0) };
	struct start_flat flat = { .pid = pid };
	int r;

	if (process.pidfd < 0)
		return errno == EINVAL ? -ESRCH : -errno;
	r = gp_aside_call(blamed, start_read, &flat, sizeof(flat));
	if (!r)
		r = flat.result;
	if (!r && !gp_process_is_there(process.pidfd))
		r = -ESRCH;
	process.start = flat.start;
	if (r)
		gp_grant_process_drop(&process);
	else
		*ret_process = process;
	return r;
}

void gp_grant_process_drop(struct gp_grant_process *process)
{
	if (process->pidfd >= 0)
		close(process->pidfd);
	process->pidfd = -1;
}

static void start_answer(struct gp_question *asked)
{
	struct gp_grant_question *question = (struct gp_grant_question *)asked;

	question->result = gp_grant_process_find(question->pid, GP_ASIDE_GRANT(question->pid), &question->process);
}

static void start_drop(struct gp_question *asked)
{
	gp_grant_process_drop(&((struct gp_grant_question *)asked)->process);
}

static void start_take(struct gp_daemon *daemon, struct gp_question *asked)
{
	struct gp_grant_question *question = (struct gp_grant_question *)asked;
	struct gp_peer *peer = question->peer;

	if (!peer)
		return;
	gp_control_end(peer);
	peer->wants_status = false;
	question->found(daemon, peer, question->request, question->result, &question->process);
	if (!peer->closed)
		gp_fair_add(daemon, peer);
}

bool gp_grant_process_ask(struct gp_daemon *daemon, struct gp_peer *peer, pid_t pid, const void *request, size_t size,
			  void (*found)(struct gp_daemon *daemon, struct gp_peer *peer, const void *request, int result,
					struct gp_grant_process *process))
{
	struct gp_grant_question *question = calloc(1, sizeof(*question) + size);

	if (!question)
		return false;
	question->question.answer = start_answer;
	question->question.take = start_take;
	question->question.drop = start_drop;
	question->question.is_identity = true;
	question->peer = peer;
	question->found = found;
	question->pid = pid;
	question->process.pidfd = -1;
	memcpy(question->request, request, size);
	if (!gp_question_ask(daemon, &question->question, peer->owner))
		return false;
	peer->job = (struct gp_job){ .kind = GP_JOB_GRANT, .grant = question };
	peer->wants_status = true;
	return true;
}

void gp_grant_process_forget(struct gp_grant_question *question)
{
	if (question)
		question->peer = NULL;
}
