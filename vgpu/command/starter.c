/* SPDX-License-Identifier: MIT */
/* Owns the command line of a vgpud and what it inherits. Only `vgpu` uses it: it prints. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "vgpu/command/starter.h"

#define STARTER_READY_FD   3 /* where vgpud says how its start went */
#define STARTER_READY_TEXT "3"

/* Starting vgpud: it says "ready" or, on standard error, why not. */

static void starter_exec(const struct gp_starter *options, const char *front, bool keep, int ready)
{
	const char *arguments[24];
	char self[PATH_MAX], path[PATH_MAX + 16];
	ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1u);
	int count = 0;

	self[size > 0 ? size : 0] = 0;
	if (strrchr(self, '/'))
		*strrchr(self, '/') = 0;
	snprintf(path, sizeof(path), "%s/vgpud", self);
	/* Nothing else of the caller's goes along: a node may outlive it by far, and would keep its pipes and locks. */
	if (ready != STARTER_READY_FD)
		dup2(ready, STARTER_READY_FD);
	close_range(STARTER_READY_FD + 1u, ~0u, 0);
	fcntl(STARTER_READY_FD, F_SETFD, 0);
	arguments[count++] = "vgpud";
	arguments[count++] = "--name";
	arguments[count++] = options->name;
	arguments[count++] = "--ready-fd";
	arguments[count++] = STARTER_READY_TEXT;
	arguments[count++] = "--front";
	arguments[count++] = front;
	if (keep)
		arguments[count++] = "--keep";
	for (int i = 0; i < options->verbose && i < 2; i++)
		arguments[count++] = "-v";
	if (options->device) {
		arguments[count++] = "-d";
		arguments[count++] = options->device;
	}
	if (options->gpus) {
		arguments[count++] = "-n";
		arguments[count++] = options->gpus;
	}
	if (options->dilation) {
		arguments[count++] = "--dilate";
		arguments[count++] = options->dilation;
	}
	if (options->kernels) {
		arguments[count++] = "--kernels";
		arguments[count++] = options->kernels;
	}
	if (options->params) {
		arguments[count++] = "--param";
		arguments[count++] = options->params;
	}
	arguments[count] = NULL;
	execv(path, (char **)(size_t)arguments);
	fprintf(stderr, "vgpu: cannot start %s: %s\n", path, strerror(errno));
	_exit(GP_STARTER_FAILED);
}

/* 0: it runs; -EEXIST: somebody else has just started one of this name; -EOPNOTSUPP: this front end cannot be had;
 * otherwise, and then too, it has said why not. */
static int starter_start_with(const struct gp_starter *options, const char *front, bool keep)
{
	char text[16] = "";
	int ready[2], status;
	pid_t child;

	if (pipe2(ready, O_CLOEXEC) < 0) {
		fprintf(stderr, "vgpu: cannot make a pipe: %s\n", strerror(errno));
		return -ECHILD;
	}
	child = fork();
	if (child == 0) {
		setsid();
		/* Once more: vgpud is then no child of ours, and no zombie if we outlive it. */
		child = fork();
		if (child)
			_exit(child < 0);
		starter_exec(options, front, keep, ready[1]);
	}
	close(ready[1]);
	if (child > 0)
		waitpid(child, &status, 0);
	(void)!read(ready[0], text, sizeof(text) - 1u);
	close(ready[0]);
	if (!strcmp(text, "taken\n"))
		return -EEXIST;
	if (!strcmp(text, "nofuse\n"))
		return -EOPNOTSUPP;
	if (!*text)
		fprintf(stderr, "vgpu: vgpud ended before it was ready\n");
	return strcmp(text, "ready\n") ? -ECHILD : 0;
}

int gp_starter_start(const struct gp_starter *options, bool keep)
{
	bool fuse = options->front ? !strcmp(options->front, "fuse") : geteuid() == 0;
	int r = fuse ? starter_start_with(options, "fuse", keep) : -EOPNOTSUPP;

	if (r != -EOPNOTSUPP || (options->front && fuse))
		return r;
	if (!options->front)
		fprintf(stderr, "vgpu: %s: the front end is seccomp\n",
			fuse ? "FUSE cannot be had" : "without root there is no FUSE");
	return starter_start_with(options, "seccomp", keep);
}
