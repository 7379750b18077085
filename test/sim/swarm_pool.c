/* SPDX-License-Identifier: MIT */
/* Owns the processes: items are dealt out in turn, and an item that kills its process takes no other with it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/sim/swarm.h"

struct pool_worker {
	pid_t pid;
	uint32_t item, failed;
}; /* item and failed: written by the worker, shared */

static int pool_start(const struct swarm_pool_job *job, struct pool_worker *workers, uint32_t index, uint32_t first)
{
	uint32_t item;
	pid_t pid;

	if (first >= job->item_count) {
		workers[index].pid = 0;
		return 0;
	}
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid > 0) {
		workers[index].pid = pid;
		return 0;
	}
	for (item = first; item < job->item_count; item += job->process_count) {
		workers[index].item = item;
		if (job->work(job->context, item))
			workers[index].failed++;
		fflush(stdout);
	}
	_exit(0);
}

static int pool_wait(const struct swarm_pool_job *job, struct pool_worker *workers)
{
	int status, ret;
	uint32_t i;
	pid_t pid;

	for (;;) {
		pid = waitpid(-1, &status, 0);
		if (pid < 0)
			return errno == ECHILD ? 0 : -errno;
		for (i = 0; i < job->process_count && workers[i].pid != pid; i++)
			;
		if (i == job->process_count || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
			continue;
		workers[i].failed++;
		job->crashed(job->context, workers[i].item, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
		ret = pool_start(job, workers, i, workers[i].item + job->process_count);
		if (ret)
			return ret;
	}
}

int swarm_pool_run(const struct swarm_pool_job *job, uint32_t *ret_failed)
{
	size_t size = job->process_count * sizeof(struct pool_worker);
	struct pool_worker *workers = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint32_t i, failed = 0;
	int ret = 0;

	if (workers == MAP_FAILED)
		return -errno;
	for (i = 0; i < job->process_count && !ret; i++)
		ret = pool_start(job, workers, i, i);
	if (!ret)
		ret = pool_wait(job, workers);
	for (i = 0; i < job->process_count; i++)
		failed += workers[i].failed;
	munmap(workers, size);
	*ret_failed = failed;
	return ret;
}
