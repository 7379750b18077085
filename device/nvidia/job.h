/* SPDX-License-Identifier: MIT */
/*
 * What the threads that call RM have been given to do. Orders, and what ends something, come before looks at what
 * clients lend: of those anybody may want many, and each takes RM's time. One client has a bounded number of each.
 */
#ifndef GP_DEVICE_NVIDIA_JOB_H
#define GP_DEVICE_NVIDIA_JOB_H

#include <pthread.h>
#include "device/device.h"

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
	struct gp_nvidia_job *next;
	struct gp_nvidia_job *also; /* APPLY: of the same commit */
	enum gp_nvidia_job_kind kind;
	uint64_t tag, seq;
	uint32_t slot, count;
	int pidfd;
	uint32_t owner; /* GROUP: whose process that is */
	struct gp_wire_group group;
	struct gp_device_slice slice;
	struct gp_device_count counted;
	struct borrow_release *release;
	struct gp_device_change changes[];
};

struct gp_nvidia_job_list {
	struct gp_nvidia_job *first, **tail;
};

struct gp_nvidia_known; /* job.c's */

struct gp_nvidia_jobs {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct gp_nvidia_job_list urgent, looks; /* lock */
	struct gp_nvidia_known *known;           /* lock: clients of which a group was looked at, and not forgotten */
	bool knows_all;                          /* lock: memory was short: anybody may be one of them */
	bool stopping;                           /* lock */
};

void gp_nvidia_jobs_init(struct gp_nvidia_jobs *jobs);
void gp_nvidia_jobs_fini(struct gp_nvidia_jobs *jobs);
void gp_nvidia_jobs_push(struct gp_nvidia_jobs *jobs, struct gp_nvidia_job *job);
/* A GROUP: what is newer replaces what still waits. -EDQUOT: that many at once are not for good. The job is ours. */
int gp_nvidia_jobs_push_group(struct gp_nvidia_jobs *jobs, struct gp_nvidia_job *job);
/* Waits for the next one; NULL: none is left, and none will come. */
struct gp_nvidia_job *gp_nvidia_jobs_take(struct gp_nvidia_jobs *jobs);
void gp_nvidia_jobs_stop(struct gp_nvidia_jobs *jobs);
void gp_nvidia_job_free(struct gp_nvidia_job *job); /* and those of the same commit */

#endif
