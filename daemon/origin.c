/* SPDX-License-Identifier: MIT */
/*
 * Finds the program or job that a process is part of, as far as the kernel's files tell.
 *
 * - A process that was forked and has not executed another program since, and a worker of Python's multiprocessing,
 *   belong to their parent: all that have the same first parent are one program.
 * - Tasks of one Slurm step and ranks of one MPI or torch job belong together, as their environment says at the start.
 *
 * The kernel takes the lock of a process's memory to read its environment or its command line. A process can hold that
 * lock for seconds, and any user can hold up whoever opens these files. So a helper process reads them (lib/aside.h).
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "daemon/origin.h"
#include "daemon/process.h"
#include "lib/aside.h"
#include "lib/cleanup.h"

#define ORIGIN_DEPTH 8u     /* generations; chosen */
#define ORIGIN_SIZE  65536u /* bytes of one file that are read */

struct origin_process {
	pid_t pid;
	struct gp_process_stat stat;
};

static int origin_look(pid_t pid, struct origin_process *ret_process)
{
	ret_process->pid = pid;
	return gp_process_stat(pid, &ret_process->stat);
}

static bool origin_is_worker(pid_t pid, char *buffer)
{
	size_t size = gp_process_read(pid, "cmdline", buffer, ORIGIN_SIZE);

	for (size_t i = 0; i < size; i++)
		if (!buffer[i])
			buffer[i] = ' ';
	return size && strstr(buffer, "--multiprocessing-fork");
}

static bool origin_is_users(pid_t pid, uid_t uid)
{
	char path[64];
	struct stat status;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return !stat(path, &status) && status.st_uid == uid;
}

/* Finds the first process of the program that pid is part of. */
static int origin_first(pid_t pid, uid_t uid, char *buffer, struct origin_process *ret_first)
{
	struct origin_process now, parent;

	if (origin_look(pid, &now))
		return -ESRCH;
	for (uint32_t i = 0; i < ORIGIN_DEPTH; i++) {
		if (now.stat.parent <= 1 || !origin_is_users(now.stat.parent, uid) ||
		    origin_look(now.stat.parent, &parent) || parent.stat.start > now.stat.start)
			break;
		if ((!now.stat.stack || now.stat.stack != parent.stat.stack) && !origin_is_worker(now.pid, buffer))
			break;
		now = parent;
	}
	*ret_first = now;
	return 0;
}

/* NULL: not set. */
static const char *origin_env(const char *environment, size_t size, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = environment; at < environment + size; at += strlen(at) + 1)
		if (!strncmp(at, name, length) && at[length] == '=')
			return at + length + 1;
	return NULL;
}

static bool origin_is_several(const char *count)
{
	return count && isdigit((unsigned char)*count) && strtoul(count, NULL, 10) > 1;
}

/* The name of the job that the environment names; false: there is none. */
static bool origin_job(const char *environment, size_t size, char *name, size_t name_size)
{
	const char *job = origin_env(environment, size, "SLURM_JOB_ID"),
		   *step = origin_env(environment, size, "SLURM_STEP_ID");

	if (job && step && origin_is_several(origin_env(environment, size, "SLURM_STEP_NUM_TASKS"))) {
		snprintf(name, name_size, "Slurm step %.20s.%.20s", job, step);
		return true;
	}
	job = origin_env(environment, size, "PMIX_NAMESPACE");
	if (job && origin_is_several(origin_env(environment, size, "OMPI_COMM_WORLD_SIZE"))) {
		snprintf(name, name_size, "MPI job %.40s", job);
		return true;
	}
	job = origin_env(environment, size, "MASTER_ADDR");
	step = origin_env(environment, size, "MASTER_PORT");
	if (job && step && origin_is_several(origin_env(environment, size, "WORLD_SIZE"))) {
		snprintf(name, name_size, "torch job %.32s:%.8s", job, step);
		return true;
	}
	return false;
}

/* What a helper reads. */
struct origin_flat {
	pid_t pid;
	uid_t uid;
	char name[GP_WIRE_NAME_SIZE];
};

/* A helper calls it. */
static void origin_read(void *data)
{
	struct origin_flat *flat = data;
	GP_AUTO_FREE char *buffer = malloc(ORIGIN_SIZE);
	struct origin_process first;
	size_t size;

	if (!buffer || flat->pid <= 0)
		return;
	size = gp_process_read(flat->pid, "environ", buffer, ORIGIN_SIZE);
	if (size && origin_job(buffer, size, flat->name, sizeof(flat->name)))
		for (char *at = flat->name; *at; at++)
			*at = isprint((unsigned char)*at) ? *at : '?';
	else if (!origin_first(flat->pid, flat->uid, buffer, &first))
		snprintf(flat->name, sizeof(flat->name), "process %d at %" PRIu64, (int)first.pid, first.stat.start);
}

void gp_origin_read(struct gp_question *question)
{
	struct gp_origin *origin = (struct gp_origin *)question;
	struct origin_flat flat = { .pid = origin->pid, .uid = origin->uid };

	gp_aside_call(gp_question_blamed(question), origin_read, &flat, sizeof(flat));
	memcpy(origin->name, flat.name, sizeof(origin->name));
}

bool gp_origin_ask(struct gp_daemon *daemon, struct gp_owner *owner, const struct gp_origin *about,
		   void (*take)(struct gp_daemon *daemon, struct gp_question *question))
{
	struct gp_origin *origin = daemon->config.auto_gang ? malloc(sizeof(*origin)) : NULL;

	if (!origin)
		return false;
	*origin = *about;
	origin->question.answer = gp_origin_read;
	origin->question.take = take;
	return gp_question_ask(daemon, &origin->question, owner);
}
