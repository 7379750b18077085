/* SPDX-License-Identifier: MIT */
/* Owns the lists of what the threads that call RM are to do. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "device/nvidia/job.h"

#define BORROW_GROUPS 32u /* of one client that wait to be looked at: looking takes RM's time, which others need */

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
	bool ends; /* a job that forgets it waits */
};

/* With the lock. Where its client stands in the list, or the list's end. */
static struct gp_nvidia_known **job_known(struct gp_nvidia_jobs *jobs, uint64_t tag)
{
	struct gp_nvidia_known **at = &jobs->known;

	while (*at && (*at)->tag != tag)
		at = &(*at)->next;
	return at;
}

/* With the lock: this job is done now. */
static void job_note(struct gp_nvidia_jobs *jobs, const struct gp_nvidia_job *job)
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

/* What is not there any more is not looked at. With the lock. */
static void job_spare_looks(struct gp_nvidia_jobs *jobs, uint64_t tag, bool all, uint32_t slot)
{
	struct gp_nvidia_job **at = &jobs->looks.first, *job;

	while ((job = *at)) {
		uint32_t own = job->kind == GP_NVIDIA_JOB_GROUP ? job->group.slot : job->counted.slot;

		if (job->tag != tag || (!all && own != slot)) {
			at = &job->next;
			continue;
		}
		*at = job->next;
		if (!*at)
			jobs->looks.tail = at;
		gp_nvidia_job_free(job);
	}
}

/* With the lock. Of a client of which nothing was looked at there is nothing to end; and it is forgotten once. So those
 * who come and go while the driver's calls take long leave nothing behind. */
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

/* With the lock: the slot is emptied already, and what came for it since was not looked at yet. */
static bool job_is_removed(const struct gp_nvidia_jobs *jobs, uint64_t tag, uint32_t slot)
{
	for (const struct gp_nvidia_job *job = jobs->urgent.first; job; job = job->next)
		if (job->kind == GP_NVIDIA_JOB_REMOVE && job->tag == tag && job->slot == slot)
			return true;
	return false;
}

void gp_nvidia_jobs_push(struct gp_nvidia_jobs *jobs, struct gp_nvidia_job *job)
{
	struct gp_nvidia_job_list *list =
		job->kind == GP_NVIDIA_JOB_GROUP || job->kind == GP_NVIDIA_JOB_COUNT ? &jobs->looks : &jobs->urgent;
	bool twice;

	job->next = NULL;
	pthread_mutex_lock(&jobs->lock);
	if (job->kind == GP_NVIDIA_JOB_REMOVE || job->kind == GP_NVIDIA_JOB_FORGET ||
	    job->kind == GP_NVIDIA_JOB_RELEASE)
		job_spare_looks(jobs, job->tag, job->kind != GP_NVIDIA_JOB_REMOVE, job->slot);
	/* So a client has no more of these than it has slots, however often it fills and empties them. */
	twice = job->kind == GP_NVIDIA_JOB_REMOVE && job_is_removed(jobs, job->tag, job->slot);
	if (!twice)
		twice = job_is_void(jobs, job);
	if (!twice) {
		*list->tail = job;
		list->tail = &job->next;
		pthread_cond_signal(&jobs->wake);
	}
	pthread_mutex_unlock(&jobs->lock);
	if (twice)
		gp_nvidia_job_free(job);
}

int gp_nvidia_jobs_push_group(struct gp_nvidia_jobs *jobs, struct gp_nvidia_job *job)
{
	struct gp_nvidia_job *other;
	uint32_t count = 0;
	bool replaced = false;

	pthread_mutex_lock(&jobs->lock);
	for (other = jobs->looks.first; other && !replaced; other = other->next) {
		if (other->kind != GP_NVIDIA_JOB_GROUP || other->tag != job->tag)
			continue;
		count++;
		replaced = other->group.slot == job->group.slot && other->group.generation == job->group.generation;
		if (replaced)
			other->group = job->group;
	}
	pthread_mutex_unlock(&jobs->lock);
	if (!replaced && count < BORROW_GROUPS) {
		gp_nvidia_jobs_push(jobs, job);
		return 0;
	}
	close(job->pidfd);
	free(job);
	return replaced ? 0 : -EDQUOT;
}

/* With the lock. NULL: nothing waits. */
static struct gp_nvidia_job *job_take(struct gp_nvidia_jobs *jobs)
{
	struct gp_nvidia_job_list *list = jobs->urgent.first ? &jobs->urgent : &jobs->looks;
	struct gp_nvidia_job *job = list->first;

	if (!job)
		return NULL;
	list->first = job->next;
	if (!list->first)
		list->tail = &list->first;
	job_note(jobs, job);
	return job;
}

struct gp_nvidia_job *gp_nvidia_jobs_take(struct gp_nvidia_jobs *jobs)
{
	struct gp_nvidia_job *job;

	pthread_mutex_lock(&jobs->lock);
	while (!(job = job_take(jobs)) && !jobs->stopping)
		pthread_cond_wait(&jobs->wake, &jobs->lock);
	pthread_mutex_unlock(&jobs->lock);
	return job;
}

void gp_nvidia_jobs_stop(struct gp_nvidia_jobs *jobs)
{
	pthread_mutex_lock(&jobs->lock);
	jobs->stopping = true;
	pthread_cond_broadcast(&jobs->wake);
	pthread_mutex_unlock(&jobs->lock);
}

void gp_nvidia_jobs_init(struct gp_nvidia_jobs *jobs)
{
	jobs->urgent.tail = &jobs->urgent.first;
	jobs->looks.tail = &jobs->looks.first;
	pthread_mutex_init(&jobs->lock, NULL);
	pthread_cond_init(&jobs->wake, NULL);
}

void gp_nvidia_jobs_fini(struct gp_nvidia_jobs *jobs)
{
	struct gp_nvidia_known *next;

	for (; jobs->known; jobs->known = next) {
		next = jobs->known->next;
		free(jobs->known);
	}
	pthread_cond_destroy(&jobs->wake);
	pthread_mutex_destroy(&jobs->lock);
}
