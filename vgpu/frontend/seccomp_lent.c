/* SPDX-License-Identifier: MIT */
/*
 * Memory that is lent. Where the host keeps processes of one user from each other's memory (Yama, some containers),
 * vgpud may not read its clients'; `vgpu run` may, being their ancestor. It opens the memory of a process when asked
 * and passes the descriptor on; until then the process's call is put off.
 */
#include <errno.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "vgpu/node/process.h"
#include "vgpu/frontend/seccomp_internal.h"

struct gp_seccomp_postponed {
	struct gp_seccomp_postponed *next;
	uint32_t listener;
	uint64_t generation;
	pid_t pid;
	struct seccomp_notif notification;
};

bool gp_seccomp_lent_is_needed(void)
{
	FILE *stream = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	char from = 0, to = 0;
	struct iovec local = { &to, 1 }, remote = { &from, 1 };
	int scope = 0;

	if (stream) {
		if (fscanf(stream, "%d", &scope) != 1)
			scope = 0;
		fclose(stream);
	}
	return (scope && geteuid() != 0) || process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != 1;
}

static struct gp_seccomp_lent *lent_find(struct gp_seccomp *seccomp, pid_t pid)
{
	for (size_t i = 0; i < GP_SECCOMP_LENT_MAX; i++)
		if (seccomp->lent[i].pid == pid)
			return &seccomp->lent[i];
	return NULL;
}

static void lent_drop(struct gp_seccomp_lent *lent)
{
	if (lent->fd >= 0)
		close(lent->fd);
	*lent = (struct gp_seccomp_lent){ .fd = -1 };
}

int gp_seccomp_lent_fd(struct gp_seccomp *seccomp, pid_t thread)
{
	const struct gp_seccomp_lent *lent = lent_find(seccomp, gp_vproc_thread_group(thread));

	return lent ? lent->fd : -1;
}

/* The oldest gives way; one that is asked for, and whose calls are put off, does not. */
static struct gp_seccomp_lent *lent_new(struct gp_seccomp *seccomp, pid_t pid)
{
	for (size_t i = 0; i < GP_SECCOMP_LENT_MAX; i++) {
		struct gp_seccomp_lent *lent = &seccomp->lent[seccomp->lent_next++ % GP_SECCOMP_LENT_MAX];

		if (lent->pid && lent->asked)
			continue;
		if (lent->pid)
			lent_drop(lent);
		*lent = (struct gp_seccomp_lent){ .pid = pid, .fd = -1 };
		return lent;
	}
	return NULL;
}

static uint32_t lent_asked_count(const struct gp_seccomp *seccomp)
{
	uint32_t count = 0;

	for (size_t i = 0; i < GP_SECCOMP_LENT_MAX; i++)
		count += seccomp->lent[i].pid && seccomp->lent[i].asked;
	return count;
}

/* 1: asked; 0: nobody is there to ask; EAGAIN: not now, but when an answer to another has come. */
static int lent_ask(struct gp_seccomp *seccomp, uint32_t listener, pid_t pid)
{
	int lender = seccomp->listeners[listener].lender;
	struct gp_seccomp_lent *lent;
	char text[32];
	int size = snprintf(text, sizeof(text), "memory %d\n", pid);

	if (lender < 0)
		return 0;
	lent = lent_new(seccomp, pid);
	if (!lent)
		return -EAGAIN;
	if (send(lender, text, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT) == size) {
		lent->asked = true;
		lent->lender = lender;
		return 1;
	}
	lent_drop(lent);
	/* Full of questions, or broken; where none is open no answer will come. */
	return errno == EAGAIN && lent_asked_count(seccomp) ? -EAGAIN : 0;
}

static void lent_postpone(const struct gp_seccomp_ask *ask, pid_t pid)
{
	struct gp_seccomp *seccomp = ask->seccomp;
	struct gp_seccomp_postponed *postponed = malloc(sizeof(*postponed)), **link = &seccomp->postponed;

	if (!postponed) {
		gp_seccomp_answer(ask, -ENOMEM);
		return;
	}
	*postponed = (struct gp_seccomp_postponed){ .listener = ask->listener,
						    .generation = seccomp->listeners[ask->listener].generation,
						    .pid = pid,
						    .notification = *seccomp->notification };
	while (*link)
		link = &(*link)->next;
	*link = postponed;
}

bool gp_seccomp_lent_is_ready(const struct gp_seccomp_ask *ask)
{
	struct gp_seccomp *seccomp = ask->seccomp;
	pid_t pid = gp_vproc_thread_group(ask->thread);
	struct gp_seccomp_lent *lent = lent_find(seccomp, pid);
	char byte;

	/* Of a program before an exec, or of an earlier process of this number: it has no memory any more. */
	if (lent && lent->fd >= 0 && pread(lent->fd, &byte, 1, 0) == 0) {
		lent_drop(lent);
		lent = NULL;
	}
	if (lent ? !lent->asked : !lent_ask(seccomp, ask->listener, pid))
		return true;
	lent_postpone(ask, pid);
	return false;
}

bool gp_seccomp_is_sharing(pid_t pid)
{
	char path[64], line[256];
	pid_t parent = 0;
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	stream = fopen(path, "re");
	while (stream && fgets(line, sizeof(line), stream))
		if (sscanf(line, "PPid: %d", &parent) == 1)
			break;
	if (stream)
		fclose(stream);
	return syscall(SYS_kcmp, pid, parent, KCMP_VM, 0, 0) == 0;
}

/* Takes it out of the list, and decides it. */
static void lent_decide(struct gp_seccomp *seccomp, struct gp_seccomp_postponed **link)
{
	struct gp_seccomp_postponed *postponed = *link;

	*link = postponed->next;
	if (seccomp->listeners[postponed->listener].generation == postponed->generation)
		gp_seccomp_dispatch(seccomp, postponed->listener, &postponed->notification);
	free(postponed);
}

/* Those for which nobody could be asked yet. */
static void lent_ask_more(struct gp_seccomp *seccomp)
{
	struct gp_seccomp_postponed **link = &seccomp->postponed;

	while (*link) {
		int r = lent_find(seccomp, (*link)->pid) ? 1 : lent_ask(seccomp, (*link)->listener, (*link)->pid);

		if (r < 0)
			return;
		if (r == 0)
			lent_decide(seccomp, link);
		else
			link = &(*link)->next;
	}
}

void gp_seccomp_lent_take(struct gp_seccomp *seccomp, pid_t pid, int fd)
{
	struct gp_seccomp_lent *lent = lent_find(seccomp, pid);
	struct gp_seccomp_postponed **link = &seccomp->postponed;
	/* Refused is not for ever, nor is what is another's. Seen before the call is answered, while it stands still.
	 */
	bool keep = fd >= 0 && !gp_seccomp_is_sharing(pid);

	if (!lent || !lent->asked) {
		if (fd >= 0)
			close(fd);
		return;
	}
	lent->asked = false;
	lent->fd = fd;
	while (*link)
		if ((*link)->pid == pid)
			lent_decide(seccomp, link);
		else
			link = &(*link)->next;
	lent = lent_find(seccomp, pid);
	if (lent && !keep)
		lent_drop(lent);
	lent_ask_more(seccomp);
}

void gp_seccomp_lender_gone(struct gp_seccomp *seccomp, int lender)
{
	for (uint32_t i = 0; i < GP_SECCOMP_LISTENER_MAX; i++)
		if (seccomp->listeners[i].lender == lender)
			seccomp->listeners[i].lender = -1;
	/* What it was asked for goes on without. */
	for (size_t i = 0; i < GP_SECCOMP_LENT_MAX; i++)
		if (seccomp->lent[i].pid && seccomp->lent[i].asked && seccomp->lent[i].lender == lender)
			gp_seccomp_lent_take(seccomp, seccomp->lent[i].pid, -1);
	lent_ask_more(seccomp);
}

void gp_seccomp_lent_fini(struct gp_seccomp *seccomp)
{
	while (seccomp->postponed) {
		struct gp_seccomp_postponed *postponed = seccomp->postponed;

		seccomp->postponed = postponed->next;
		free(postponed);
	}
	for (size_t i = 0; i < GP_SECCOMP_LENT_MAX; i++)
		lent_drop(&seccomp->lent[i]);
}
