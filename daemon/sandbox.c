/* SPDX-License-Identifier: MIT */
/*
 * Tells root's containers from sandboxes that are set-user-ID root (firejail, old bubblewrap). Both are PID namespaces
 * that belong to the initial user namespace. But a user may start as many sandboxes as he likes, with his own uid in
 * each: they are no accounts of their own. A sandbox is a process in a user's session, or one that descends from a
 * process outside its namespace with the same real uid, or whose namespace has init itself as its parent. An engine's
 * container descends from the engine, or from a process of the engine's that stays (containerd-shim, conmon).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/cgroup.h"
#include "daemon/owner.h"
#include "daemon/process.h"
#include "daemon/sandbox.h"

#define SANDBOX_SESSIONS "/user.slice/"
#define SANDBOX_TRIES    3
#define SANDBOX_STATUS   4096u

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

/* One walk up from the process. Its ancestors may end meanwhile: then the walk is made again. */
static enum gp_sandbox sandbox_walk(uid_t uid, pid_t pid, ino_t space, ino_t own)
{
	bool outside = false;

	for (int i = 0; i < GP_PROCESS_DEPTH; i++) {
		pid_t parent = gp_process_parent(pid);
		uid_t real;

		if (parent <= 0)
			return outside && pid == 1 ? GP_SANDBOX_CONTAINER : GP_SANDBOX_UNKNOWN;
		if (!outside && gp_owner_outermost_pids(parent, own) != space) {
			outside = true;
			if (parent == 1)
				return GP_SANDBOX_USER;
		}
		if (outside && !sandbox_real_uid(parent, &real))
			return GP_SANDBOX_UNKNOWN;
		if (outside && real == uid)
			return GP_SANDBOX_USER;
		if (gp_process_parent(pid) != parent) /* its number may mean another process by now */
			return GP_SANDBOX_UNKNOWN;
		pid = parent;
	}
	return GP_SANDBOX_UNKNOWN;
}

enum gp_sandbox gp_sandbox_find(uid_t uid, pid_t pid, int pidfd, ino_t space, ino_t own)
{
	enum gp_sandbox found = GP_SANDBOX_UNKNOWN;
	char paths[GP_CGROUP_TEXT];

	gp_cgroup_read(pid, pidfd, paths, sizeof(paths));
	if (gp_sandbox_is_session(paths))
		return GP_SANDBOX_USER;
	for (int i = 0; i < SANDBOX_TRIES && found == GP_SANDBOX_UNKNOWN; i++)
		found = sandbox_walk(uid, pid, space, own);
	return found;
}
