/* SPDX-License-Identifier: MIT */
/*
 * Tells root's containers from sandboxes that are set-user-ID root (firejail, old bubblewrap). Both are PID namespaces
 * that belong to the initial user namespace. But a user may start as many sandboxes as he likes, with his own uid in
 * each: they are no accounts of their own. A sandbox is a process in a user's session, or one that descends from a
 * process outside its namespace with a real uid of the same user (subuid.h), or whose namespace has init itself as its
 * parent. An engine's container descends from the engine, or from a process of the engine's that stays
 * (containerd-shim, conmon).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/cgroup.h"
#include "daemon/identity.h"
#include "daemon/process.h"
#include "daemon/sandbox.h"
#include "daemon/subuid.h"

#define SANDBOX_SESSIONS "/user.slice/"
#define SANDBOX_TRIES    2
#define SANDBOX_STEPS    32 /* ancestors that are looked at; chosen */
#define SANDBOX_STATUS   4096u

enum sandbox_says {
	SANDBOX_NOTHING,
	SANDBOX_USER,
	SANDBOX_TOP,     /* no ancestor is the user's */
	SANDBOX_HIDDEN,  /* there are too many ancestors, or the daemon does not see the first */
	SANDBOX_CHANGED, /* one has gone, or was not shown */
};

/* Only the first part counts: whoever has a subtree may give the groups in it any name. Below a cgroup namespace of the
 * daemon's the first parts are "..". */
bool gp_sandbox_is_session(const char *paths)
{
	for (const char *at = paths; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		const char *first = at;

		while (!strncmp(first, "/../", 4))
			first += 3;
		if (!strncmp(first, SANDBOX_SESSIONS, strlen(SANDBOX_SESSIONS)))
			return true;
	}
	return false;
}

static bool sandbox_real_uid(pid_t pid, uid_t *ret_uid)
{
	char text[SANDBOX_STATUS];
	const char *line;

	/* The first line is the process's name, which has no line ends. */
	if (!gp_process_read(pid, "status", text, sizeof(text)) || !(line = strstr(text, "\nUid:")))
		return false;
	*ret_uid = (uid_t)strtoul(line + 5, NULL, 10);
	return true;
}

/* The user whose uid it is, or whose range it is in (as identity.c has it). */
static uint64_t sandbox_user(struct gp_subuid *subuid, uid_t uid)
{
	const struct gp_subuid_range *range = subuid && uid >= GP_SUBUID_FIRST ? gp_subuid_find(subuid, uid) : NULL;

	if (!range)
		return uid;
	return range->is_user ? range->uid : 1ull << 32 | range->uid;
}

struct sandbox_walk {
	struct gp_subuid *subuid;
	const struct gp_sandbox_process *process;
	uint64_t user;
	bool outside; /* an ancestor was outside the namespace */
};

/* What the next ancestor says. SANDBOX_NOTHING: ask its parent. */
static enum sandbox_says sandbox_ask(struct sandbox_walk *walk, pid_t ancestor)
{
	ino_t space;
	uid_t real;

	if (!walk->outside) {
		if (gp_identity_outermost_pids(ancestor, walk->process->own, &space))
			return SANDBOX_CHANGED;
		if (space == walk->process->space)
			return SANDBOX_NOTHING;
		walk->outside = true;
		if (ancestor == 1)
			return SANDBOX_USER;
	}
	if (!sandbox_real_uid(ancestor, &real))
		return SANDBOX_CHANGED;
	return sandbox_user(walk->subuid, real) == walk->user ? SANDBOX_USER : SANDBOX_NOTHING;
}

/* One walk up from the process. What an ancestor says holds if it is still the parent of the one before afterwards:
 * then its number meant it all the while. */
static enum sandbox_says sandbox_climb(struct sandbox_walk *walk)
{
	struct gp_process_stat process, ancestor, again;
	pid_t pid = walk->process->pid;

	if (gp_process_stat(pid, &process))
		return SANDBOX_CHANGED;
	for (int i = 0; i < SANDBOX_STEPS; i++) {
		enum sandbox_says says;

		if (process.parent <= 0)
			return walk->outside && pid == 1 ? SANDBOX_TOP : SANDBOX_HIDDEN;
		says = gp_process_stat(process.parent, &ancestor) ? SANDBOX_CHANGED : sandbox_ask(walk, process.parent);
		if (gp_process_stat(pid, &again) || again.parent != process.parent || again.start != process.start)
			return SANDBOX_CHANGED;
		if (says != SANDBOX_NOTHING)
			return says;
		pid = process.parent;
		process = ancestor;
	}
	return SANDBOX_HIDDEN;
}

enum gp_sandbox gp_sandbox_find(struct gp_subuid *subuid, const struct gp_sandbox_process *process)
{
	uint64_t user = sandbox_user(subuid, process->uid);
	enum sandbox_says says = SANDBOX_CHANGED;
	char paths[GP_CGROUP_TEXT];

	gp_cgroup_read(process->pid, process->pidfd, paths, sizeof(paths));
	if (gp_sandbox_is_session(paths))
		return GP_SANDBOX_USER;
	/* Ancestors may end meanwhile: then the walk is made again. */
	for (int i = 0; i < SANDBOX_TRIES && says == SANDBOX_CHANGED; i++)
		says = sandbox_climb(&(struct sandbox_walk){ subuid, process, user, false });
	/* If the process has not ended, its pid meant the same process all the time. */
	if (says == SANDBOX_CHANGED || says == SANDBOX_HIDDEN || !gp_process_is_there(process->pidfd))
		return GP_SANDBOX_UNKNOWN;
	return says == SANDBOX_TOP ? GP_SANDBOX_CONTAINER : GP_SANDBOX_USER;
}
