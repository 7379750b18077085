/* SPDX-License-Identifier: MIT */
/*
 * What the worker that calls RM has been given to do. Orders, and what ends something, come before looks at what
 * clients lend: of those anybody may want many, and each takes RM's time. One client has a bounded number of each.
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

struct gp_nvidia_known; /* job.c's */

/* Those of one GPU. */
struct gp_nvidia_jobs {
	struct gp_lane lane;
	struct gp_worker *worker;
	struct gp_nvidia_known *known; /* lock: clients of which a group was looked at, and not forgotten */
	bool knows_all;                /* lock: memory was short: anybody may be one of them */
};

void gp_nvidia_jobs_fini(struct gp_nvidia_jobs *jobs);
void gp_nvidia_jobs_push(struct gp_nvidia_jobs *jobs, struct gp_nvidia_job *job);
/* A GROUP: what is newer replaces what still waits. -EDQUOT: that many at once are not for good. The job is ours. */
int gp_nvidia_jobs_push_group(struct gp_nvidia_jobs *jobs, struct gp_nvidia_job *job);
void gp_nvidia_jobs_taken(struct gp_nvidia_jobs *jobs, const struct gp_nvidia_job *job); /* locked: it is being done */
void gp_nvidia_job_free(struct gp_nvidia_job *job); /* and those of the same commit */

#endif
