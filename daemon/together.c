/* SPDX-License-Identifier: MIT */
/*
 * Finds processes that are one program or one job, as far as the kernel's files tell. If one of them is closed while
 * another waits for it, that only wastes the GPU, so the daemon makes their queues a gang.
 *
 * - A process that was forked and has not executed another program since, and a worker of Python's multiprocessing,
 *   belong to their parent: all that have the same first parent are one program.
 * - Tasks of one Slurm step and ranks of one MPI or torch job belong together, as their environment says at the start.
 * - Processes that share GPU memory or events (share.c) belong together, with all that belong to either.
 *
 * Programs that were started from one shell, script, session or service do not: nothing says that they wait for each
 * other. Nor do those of another user, or of another priority. What a process says of itself here affects only
 * processes of its own user.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/daemon.h"
#include "daemon/process.h"

#define TOGETHER_DEPTH 8u     /* generations; chosen */
#define TOGETHER_SIZE  65536u /* bytes of one file that are read */

struct together_process {
	pid_t pid;
	struct gp_process_stat stat;
};

static int together_look(pid_t pid, struct together_process *ret_process)
{
	ret_process->pid = pid;
	return gp_process_stat(pid, &ret_process->stat);
}

static bool together_is_worker(pid_t pid, char *buffer)
{
	size_t size = gp_process_read(pid, "cmdline", buffer, TOGETHER_SIZE);

	for (size_t i = 0; i < size; i++)
		if (!buffer[i])
			buffer[i] = ' ';
	return size && strstr(buffer, "--multiprocessing-fork");
}

static bool together_is_users(pid_t pid, uid_t uid)
{
	char path[64];
	struct stat status;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return !stat(path, &status) && status.st_uid == uid;
}

/* Finds the first process of the program that pid is part of. */
static int together_first(struct gp_daemon *daemon, pid_t pid, uid_t uid, char *buffer,
			  struct together_process *ret_first)
{
	struct together_process now, parent;

	if (together_look(pid, &now))
		return -ESRCH;
	for (uint32_t i = 0; i < TOGETHER_DEPTH; i++) {
		gp_portion_use(daemon, 3 * GP_PORTION_PROC);
		if (now.stat.parent <= 1 || !together_is_users(now.stat.parent, uid) ||
		    together_look(now.stat.parent, &parent) || parent.stat.start > now.stat.start)
			break;
		if ((!now.stat.stack || now.stat.stack != parent.stat.stack) && !together_is_worker(now.pid, buffer))
			break;
		now = parent;
	}
	*ret_first = now;
	return 0;
}

/* NULL: not set. */
static const char *together_env(const char *environment, size_t size, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = environment; at < environment + size; at += strlen(at) + 1)
		if (!strncmp(at, name, length) && at[length] == '=')
			return at + length + 1;
	return NULL;
}

static bool together_is_several(const char *count)
{
	return count && isdigit((unsigned char)*count) && strtoul(count, NULL, 10) > 1;
}

/* The name of the job that the environment names; false: there is none. */
static bool together_job(const char *environment, size_t size, char *name, size_t name_size)
{
	const char *job = together_env(environment, size, "SLURM_JOB_ID"),
		   *step = together_env(environment, size, "SLURM_STEP_ID");

	if (job && step && together_is_several(together_env(environment, size, "SLURM_STEP_NUM_TASKS"))) {
		snprintf(name, name_size, "Slurm step %.20s.%.20s", job, step);
		return true;
	}
	job = together_env(environment, size, "PMIX_NAMESPACE");
	if (job && together_is_several(together_env(environment, size, "OMPI_COMM_WORLD_SIZE"))) {
		snprintf(name, name_size, "MPI job %.40s", job);
		return true;
	}
	job = together_env(environment, size, "MASTER_ADDR");
	step = together_env(environment, size, "MASTER_PORT");
	if (job && step && together_is_several(together_env(environment, size, "WORLD_SIZE"))) {
		snprintf(name, name_size, "torch job %.32s:%.8s", job, step);
		return true;
	}
	return false;
}

static bool together_is_peer(const struct gp_client *a, const struct gp_client *b)
{
	return b && !b->dead && !b->is_unmanaged && b->owner == a->owner && b->uid == a->uid;
}

/* Other processes of its program may share something with further processes by now: it belongs to these too. */
static void together_follow(struct gp_daemon *daemon, struct gp_client *client)
{
	for (uint32_t i = 0; *client->origin && i < daemon->client_top; i++) {
		const struct gp_client *other = daemon->clients[i];

		if (other != client && together_is_peer(client, other) && !strcmp(client->origin, other->origin)) {
			memcpy(client->together, other->together, sizeof(client->together));
			return;
		}
	}
}

void gp_together_origin(struct gp_daemon *daemon, pid_t pid, uid_t uid, char name[GP_WIRE_NAME_SIZE])
{
	struct together_process first;
	char *buffer = malloc(TOGETHER_SIZE);
	size_t size;

	name[0] = '\0';
	if (!buffer || !daemon->config.auto_gang || pid <= 0) {
		free(buffer);
		return;
	}
	gp_portion_use(daemon, 2 * GP_PORTION_PROC);
	size = gp_process_read(pid, "environ", buffer, TOGETHER_SIZE);
	if (size && together_job(buffer, size, name, GP_WIRE_NAME_SIZE))
		for (char *at = name; *at; at++)
			*at = isprint((unsigned char)*at) ? *at : '?';
	else if (!together_first(daemon, pid, uid, buffer, &first))
		snprintf(name, GP_WIRE_NAME_SIZE, "process %d at %" PRIu64, (int)first.pid, first.stat.start);
	free(buffer);
}

void gp_together_find(struct gp_daemon *daemon, struct gp_client *client)
{
	client->mates = 1;
	gp_together_origin(daemon, client->device.pid, client->uid, client->together);
	memcpy(client->origin, client->together, sizeof(client->origin));
	together_follow(daemon, client);
}

const struct gp_client *gp_together_client(const struct gp_daemon *daemon, uid_t uid, uint64_t account,
					   const char *origin)
{
	for (uint32_t i = 0; *origin && i < daemon->client_top; i++) {
		const struct gp_client *client = daemon->clients[i];

		if (client && !client->dead && !client->is_unmanaged && client->uid == uid &&
		    client->account == account && !strcmp(client->origin, origin))
			return client;
	}
	return NULL;
}

static bool together_is_mate(const struct gp_client *a, const struct gp_client *b)
{
	return together_is_peer(a, b) && (a == b || a->device.pid != b->device.pid) &&
	       !strcmp(a->together, b->together);
}

void gp_together_update(struct gp_daemon *daemon, const struct gp_client *client)
{
	uint32_t counts[GP_PRIORITY_MAX + 1] = { 0 };

	if (!*client->together)
		return;
	gp_portion_use(daemon, 1 + daemon->client_top / 16);
	for (uint32_t i = 0; i < daemon->client_top; i++)
		if (together_is_mate(client, daemon->clients[i]))
			counts[daemon->clients[i]->attr.priority]++;
	for (uint32_t i = 0; i < daemon->client_top; i++) {
		struct gp_client *mate = daemon->clients[i];
		uint32_t count;

		if (!together_is_mate(client, mate))
			continue;
		count = counts[mate->attr.priority];
		if ((count > 1) != (mate->mates > 1)) {
			mate->mates = count;
			gp_client_reapply(daemon, mate);
		}
		mate->mates = count;
	}
}

void gp_together_join(struct gp_daemon *daemon, struct gp_client *client, struct gp_client *other)
{
	char from[GP_WIRE_NAME_SIZE];

	if (!daemon->config.auto_gang || !together_is_peer(client, other) ||
	    (*client->together && !strcmp(client->together, other->together)))
		return;
	if (!*other->together)
		snprintf(other->together, sizeof(other->together), "process %d", (int)other->device.pid);
	memcpy(from, client->together, sizeof(from));
	memcpy(client->together, other->together, sizeof(client->together));
	client->mates = 1;
	for (uint32_t i = 0; i < daemon->client_top; i++) {
		struct gp_client *mate = daemon->clients[i];

		if (!together_is_peer(client, mate))
			continue;
		if (*from && !strcmp(mate->together, from))
			memcpy(mate->together, other->together, sizeof(mate->together));
		/* The gang is new or has a new name: with mates at 1, gp_together_update() applies it to all. */
		if (!strcmp(mate->together, other->together))
			mate->mates = 1;
	}
	gp_portion_use(daemon, 1 + daemon->client_top / 16);
	gp_together_update(daemon, client);
}
