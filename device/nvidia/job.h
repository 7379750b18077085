/* SPDX-License-Identifier: MIT */
/*
 * The jobs of the worker that calls RM. Orders, and jobs that end something, come before jobs that look at clients'
 * groups: any client may cause many of those, and each takes RM's time. One client has a bounded number of each kind.
 */
#ifndef GP_DEVICE_NVIDIA_JOB_H
#define GP_DEVICE_NVIDIA_JOB_H

#include "device/device.h"
#include "lib/worker.h"

enum gp_nvidia_job_kind {
	GP_NVIDIA_JOB_GROUP,
	GP_NVIDIA_JOB_REMOVE,
	GP_NVIDIA_JOB_FORGET,
	GP_NVIDIA_JOB_APPLY,
	GP_NVIDIA_JOB_SLICE,
	GP_NVIDIA_JOB_COUNT,
	GP_NVIDIA_JOB_RELEASE
};

struct borrow_release; /* borrow.c's */

struct gp_nvidia_job {
	struct gp_worker_job base;
	struct gp_nvidia_job *also; /* APPLY: the next job of the same commit */
	enum gp_nvidia_job_kind kind;
	uint64_t tag, seq;
	uint32_t slot, count;
	pid_t pid; /* GROUP */
	int pidfd;
	uint32_t owner; /* GROUP: the user of that process */
	struct gp_wire_group group;
	struct gp_device_slice slice;
	struct gp_device_count counted;
	struct borrow_release *release;
	struct gp_device_change changes[];
};

struct gp_nvidia_known; /* job.c's */

/* The jobs of one GPU. */
struct gp_nvidia_jobs {
	struct gp_lane lane;
	struct gp_worker *worker;
	struct gp_nvidia_known *known; /* lock: clients of which a group was looked at, until FORGET or RELEASE */
	bool knows_all;                /* lock: memory was short: any client may belong to known */
};

void gp_nvidia_jobs_fini(struct gp_nvidia_jobs *jobs);
void gp_nvidia_jobs_push(struct gp_nvidia_jobs *jobs, struct gp_nvidia_job *job);
/* A GROUP job: replaces one for the same queue that still waits. -EDQUOT: too many of this client wait. Takes the job
 * over in any case. */
int gp_nvidia_jobs_push_group(struct gp_nvidia_jobs *jobs, struct gp_nvidia_job *job);
/* Locked: a thread has taken the job. */
void gp_nvidia_jobs_taken(struct gp_nvidia_jobs *jobs, const struct gp_nvidia_job *job);
void gp_nvidia_job_free(struct gp_nvidia_job *job); /* and the other jobs of the same commit */

#endif
