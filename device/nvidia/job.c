/* SPDX-License-Identifier: MIT */
/* Owns the order of the jobs of one GPU, and how many of them may wait for one client. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "device/nvidia/job.h"

#define BORROW_GROUPS 32u /* groups of one client that wait for a look: looking takes RM's time, which others need */

void gp_nvidia_job_free(struct gp_nvidia_job *job)
{
	struct gp_nvidia_job *also;

	for (; job; job = also) {
		also = job->also;
		if (job->pidfd >= 0)
			close(job->pidfd);
		free(job);
	}
}

struct gp_nvidia_known {
	struct gp_nvidia_known *next;
	uint64_t tag;
	bool ends; /* a FORGET job for it waits */
};

/* With the lock. The place of the client in the list, or the list's end. */
static struct gp_nvidia_known **job_known(struct gp_nvidia_jobs *jobs, uint64_t tag)
{
	struct gp_nvidia_known **at = &jobs->known;

	while (*at && (*at)->tag != tag)
		at = &(*at)->next;
	return at;
}

void gp_nvidia_jobs_taken(struct gp_nvidia_jobs *jobs, const struct gp_nvidia_job *job)
{
	struct gp_nvidia_known **at = job_known(jobs, job->tag), *known = *at;

	if (job->kind == GP_NVIDIA_JOB_GROUP && !known) {
		known = *at = calloc(1, sizeof(*known));
		if (known)
			known->tag = job->tag;
		else
			jobs->knows_all = true;
	} else if ((job->kind == GP_NVIDIA_JOB_FORGET || job->kind == GP_NVIDIA_JOB_RELEASE) && known) {
		*at = known->next;
		free(known);
	}
}

static struct gp_nvidia_job *job_of(struct gp_worker_job *base)
{
	return (struct gp_nvidia_job *)base;
}

static bool job_is_look(const struct gp_nvidia_job *job)
{
	return job->kind == GP_NVIDIA_JOB_GROUP || job->kind == GP_NVIDIA_JOB_COUNT;
}

/* With the lock. Drops waiting looks at queues that end or are released: of the whole client, or of one slot. */
static void job_spare_looks(struct gp_nvidia_jobs *jobs, uint64_t tag, bool all, uint32_t slot)
{
	struct gp_worker_job **at = &jobs->lane.jobs;

	while (*at) {
		struct gp_nvidia_job *job = job_of(*at);
		uint32_t own = job->kind == GP_NVIDIA_JOB_GROUP ? job->group.slot : job->counted.slot;

		if (!job_is_look(job) || job->tag != tag || (!all && own != slot)) {
			at = &job->base.next;
			continue;
		}
		*at = job->base.next;
		gp_nvidia_job_free(job);
	}
}

/* With the lock. Whether a REMOVE or FORGET job has no effect: no group of the client was looked at, or a FORGET for it
 * waits already. So clients that come and go while the driver's calls take long leave no jobs behind. */
static bool job_is_void(struct gp_nvidia_jobs *jobs, const struct gp_nvidia_job *job)
{
	struct gp_nvidia_known *known = *job_known(jobs, job->tag);
	bool was = known && known->ends;

	if ((job->kind != GP_NVIDIA_JOB_REMOVE && job->kind != GP_NVIDIA_JOB_FORGET) || jobs->knows_all)
		return false;
	if (known && job->kind == GP_NVIDIA_JOB_FORGET)
		known->ends = true;
	return !known || was;
}

/* With the lock: a REMOVE for this slot waits already; later looks at the slot were dropped. */
static bool job_is_removed(const struct gp_nvidia_jobs *jobs, uint64_t tag, uint32_t slot)
{
	for (struct gp_worker_job *at = jobs->lane.jobs; at; at = at->next)
		if (job_of(at)->kind == GP_NVIDIA_JOB_REMOVE && job_of(at)->tag == tag && job_of(at)->slot == slot)
			return true;
	return false;
}

void gp_nvidia_jobs_push(struct gp_nvidia_jobs *jobs, struct gp_nvidia_job *job)
{
	struct gp_worker_job **at = &jobs->lane.jobs;
	bool twice;

	gp_worker_lock(jobs->worker);
	if (job->kind == GP_NVIDIA_JOB_REMOVE || job->kind == GP_NVIDIA_JOB_FORGET ||
	    job->kind == GP_NVIDIA_JOB_RELEASE)
		job_spare_looks(jobs, job->tag, job->kind != GP_NVIDIA_JOB_REMOVE, job->slot);
	/* So no more REMOVE jobs wait for a client than it has slots, however often it fills and empties them. */
	twice = job->kind == GP_NVIDIA_JOB_REMOVE && job_is_removed(jobs, job->tag, job->slot);
	if (!twice)
		twice = job_is_void(jobs, job);
	while (*at && (job_is_look(job) || !job_is_look(job_of(*at))))
		at = &(*at)->next;
	if (!twice)
		gp_worker_insert_locked(jobs->worker, &jobs->lane, at, &job->base);
	gp_worker_unlock(jobs->worker);
	if (twice)
		gp_nvidia_job_free(job);
}

int gp_nvidia_jobs_push_group(struct gp_nvidia_jobs *jobs, struct gp_nvidia_job *job)
{
	uint32_t count = 0;
	bool replaced = false;

	gp_worker_lock(jobs->worker);
	for (struct gp_worker_job *at = jobs->lane.jobs; at && !replaced; at = at->next) {
		struct gp_nvidia_job *other = job_of(at);

		if (other->kind != GP_NVIDIA_JOB_GROUP || other->tag != job->tag)
			continue;
		count++;
		replaced = other->group.slot == job->group.slot && other->group.generation == job->group.generation;
		if (replaced)
			other->group = job->group;
	}
	gp_worker_unlock(jobs->worker);
	if (!replaced && count < BORROW_GROUPS) {
		gp_nvidia_jobs_push(jobs, job);
		return 0;
	}
	close(job->pidfd);
	free(job);
	return replaced ? 0 : -EDQUOT;
}

void gp_nvidia_jobs_fini(struct gp_nvidia_jobs *jobs)
{
	struct gp_nvidia_known *next;

	for (; jobs->known; jobs->known = next) {
		next = jobs->known->next;
		free(jobs->known);
	}
}
