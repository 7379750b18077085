/* SPDX-License-Identifier: MIT */
/*
 * Owns the worker that calls AMDKFD_IOC_SCHED, with a lane for each GPU, and the list of gates closed there. All
 * waiting jobs go into one call: one runlist update for all processes. The call names a process by its pid, which
 * another process may have by the time the driver looks. So if a process has ended by the end of the call, the worker
 * opens its gates again.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "device/kfd/gate.h"
#include "lib/clock.h"
#include "lib/worker.h"

#define GATE_ORDERS_MAX 64u /* orders of one client that wait; the core gives up on a client long before */

uint64_t gp_kfd_gate_end_ns = 2000000000ull;
static const uint64_t gate_late_ns = 1000000000ull;

/* One client. The client and each job hold a reference. */
struct gate_target {
	uint32_t refs;    /* atomic */
	uint32_t waiting; /* atomic: jobs that are not done */
	uint64_t tag;
	pid_t pid;
	int pidfd;
	bool ordered;             /* decision thread: a gate of it may be closed */
	struct gate_job *forgets; /* decision thread: one job for each GPU, so that detach needs no memory */
};

struct gate_job {
	struct gate_job *next;
	struct gate_target *target;
	bool forget; /* the client ends: opens its closed gates and reports nothing */
	uint64_t seq;
	uint32_t count;
	struct gp_device_change changes[];
};

struct gate_closed {
	struct gate_closed *next;
	uint64_t tag;
	pid_t pid;
	uint32_t queue_id;
};

struct gate_gpu {
	struct gp_lane lane;
	struct gp_kfd_gate *gate;
	uint32_t gpu_id;
	struct gate_job *jobs, **jobs_tail;   /* lock */
	bool ends;                            /* lock: after these jobs the lane opens every gate */
	struct gate_job *batch, **batch_tail; /* decision thread: applied and not committed */
	struct gate_closed *closed;           /* only the lane's thread */
};

struct gp_kfd_gate {
	struct gp_backend *backend;
	struct gp_worker *worker;
	uint32_t gpu_count;
	struct gate_gpu gpus[];
};

static int gate_call(const struct gp_backend *backend, uint32_t gpu_id, struct gp_kfd_sched_gate *gates, uint32_t count)
{
	struct gp_kfd_sched args = { .op = GP_KFD_SCHED_GATE,
				     .gpu_id = gpu_id,
				     .gates_ptr = (uintptr_t)gates,
				     .gate_count = count };

	return gp_kfd_call(backend->fd, _IOWR(AMDKFD_IOCTL_BASE, GP_KFD_NR_SCHED, struct gp_kfd_sched), &args);
}

/* Asks for the gate of a queue of the daemon's own that cannot exist: nothing changes, and the answer shows whether the
 * driver has the call. The file is checked first, because other drivers use the number for something else. */
bool gp_kfd_gate_try(const struct gp_backend *backend, uint32_t gpu_id, char *why, size_t why_size)
{
	struct gp_kfd_sched_gate gate = { .pid = (uint32_t)getpid(), .queue_id = UINT32_MAX, .open = 1 };
	int r;

	if (access(GP_KFD_SCHED_FILE, F_OK)) {
		snprintf(why, why_size, "this kernel has no batch gate; kernel/patches adds it (docs/kernel.md)");
		return false;
	}
	r = gate_call(backend, gpu_id, &gate, 1);
	if (r == -EBUSY) {
		snprintf(
			why, why_size,
			"the kernel schedules this GPU itself; boot with amdgpu.kfd_sched_policy=off to let gpreemptd");
		return false;
	}
	/* The driver reports an error of the device in the result of each gate, not of the call. */
	r = r ? r : gate.result;
	if (r == -ESRCH)
		snprintf(why, why_size, "one call of the driver changes the gates of all processes");
	else if (r == -EPERM)
		snprintf(why, why_size, "not permitted: CAP_SYS_ADMIN is missing");
	else
		snprintf(why, why_size, "the driver's batch gate does not work here: %s",
			 strerror(r < 0 ? -r : EPROTO));
	return r == -ESRCH;
}

/* A call by the GPU's thread. The worker times each call by itself: many short calls are not one that hangs. */
static int gate_call_watched(struct gate_gpu *gpu, struct gp_kfd_sched_gate *gates, uint32_t count)
{
	int r;

	gp_worker_next_call(gpu->gate->worker, &gpu->lane);
	r = gate_call(gpu->gate->backend, gpu->gpu_id, gates, count);
	gp_worker_next_call(gpu->gate->worker, &gpu->lane); /* before the daemon is told */
	return r;
}

static void gate_put(struct gate_target *target)
{
	if (__atomic_sub_fetch(&target->refs, 1, __ATOMIC_ACQ_REL))
		return;
	while (target->forgets) {
		struct gate_job *job = target->forgets;

		target->forgets = job->next;
		free(job);
	}
	if (target->pidfd >= 0)
		close(target->pidfd);
	free(target);
}

static bool gate_has_ended(const struct gate_target *target)
{
	struct pollfd end = { .fd = target->pidfd, .events = POLLIN };

	return poll(&end, 1, 0) > 0;
}

/* 0, or -ENOMEM: the gate was closed, and the list has no room to remember it. */
static int gate_remember(struct gate_gpu *gpu, const struct gate_target *target, const struct gp_device_change *change)
{
	struct gate_closed **at = &gpu->closed, *closed;

	while (*at && ((*at)->tag != target->tag || (*at)->queue_id != change->queue_id))
		at = &(*at)->next;
	closed = *at;
	if (change->open == !closed)
		return 0;
	if (closed) {
		*at = closed->next;
		free(closed);
		return 0;
	}
	closed = calloc(1, sizeof(*closed));
	if (!closed)
		return -ENOMEM;
	*closed = (struct gate_closed){ NULL, target->tag, target->pid, change->queue_id };
	*at = closed;
	return 0;
}

static void gate_open(struct gate_gpu *gpu, pid_t pid, uint32_t queue_id)
{
	struct gp_kfd_sched_gate gate = { .pid = (uint32_t)pid, .queue_id = queue_id, .open = 1 };

	gate_call_watched(gpu, &gate, 1);
}

/* Opens all closed gates of one client, or of all. */
static void gate_open_closed(struct gate_gpu *gpu, uint64_t tag, bool all)
{
	struct gate_closed **at = &gpu->closed;

	while (*at) {
		struct gate_closed *closed = *at;

		if (!all && closed->tag != tag) {
			at = &closed->next;
			continue;
		}
		gate_open(gpu, closed->pid, closed->queue_id);
		*at = closed->next;
		free(closed);
	}
}

static void gate_tell(struct gate_gpu *gpu, struct gate_job *job, uint64_t issue_ns, uint64_t done_ns)
{
	const struct gp_device_host *host = &gpu->gate->backend->host;
	struct gp_device_done done = { .seq = job->seq,
				       .gpu_id = gpu->gpu_id,
				       .count = job->count,
				       .issue_ns = issue_ns,
				       .done_ns = done_ns,
				       .changes = job->changes };
	char why[GP_DEVICE_TEXT_SIZE];

	for (uint32_t i = 0; i < job->count; i++) {
		if (!job->changes[i].result && gate_remember(gpu, job->target, &job->changes[i])) {
			gate_open(gpu, job->target->pid, job->changes[i].queue_id);
			job->changes[i].result = -ENOMEM;
		}
		if (job->changes[i].result != -EIO && job->changes[i].result != -ETIME)
			continue;
		snprintf(why, sizeof(why), "the driver could not preempt queue %u of process %d",
			 job->changes[i].queue_id, job->target->pid);
		host->failed(host->daemon, gpu->gpu_id, why);
	}
	__atomic_sub_fetch(&job->target->waiting, 1, __ATOMIC_RELAXED);
	host->done(host->daemon, job->target->tag, &done);
	if (gate_has_ended(job->target))
		gate_open_closed(gpu, job->target->tag, false);
}

/* Fills one call with as many jobs as fit, from the first on. Returns how many. */
static uint32_t gate_fill(const struct gate_job *job, struct gp_kfd_sched_gate *gates, uint32_t *ret_count)
{
	uint32_t jobs = 0, count = 0;

	for (; job && !job->forget && count + job->count <= GP_KFD_SCHED_GATE_MAX; job = job->next, jobs++)
		for (uint32_t i = 0; i < job->count; i++)
			gates[count++] = (struct gp_kfd_sched_gate){ .pid = (uint32_t)job->target->pid,
								     .queue_id = job->changes[i].queue_id,
								     .open = job->changes[i].open };
	*ret_count = count;
	return jobs;
}

/* Does the first job of a list, and those after it that fit into the same call; returns the rest. */
static struct gate_job *gate_do(struct gate_gpu *gpu, struct gate_job *jobs)
{
	struct gp_kfd_sched_gate gates[GP_KFD_SCHED_GATE_MAX];
	uint64_t issue_ns = gp_clock_ns(), done_ns;
	uint32_t count, at = 0, ready = gate_fill(jobs, gates, &count);
	int r = 0;

	if (jobs->forget) {
		gate_open_closed(gpu, jobs->target->tag, false);
		ready = 1;
	} else {
		r = gate_call_watched(gpu, gates, count);
	}
	done_ns = gp_clock_ns();
	while (ready--) {
		struct gate_job *job = jobs;

		for (uint32_t i = 0; i < job->count; i++, at++)
			job->changes[i].result = r < 0 ? r : gates[at].result;
		if (!job->forget)
			gate_tell(gpu, job, issue_ns, done_ns);
		jobs = job->next;
		gate_put(job->target);
		free(job);
	}
	return jobs;
}

static void gate_run(void *context, struct gp_lane *lane, struct gp_worker_job *job)
{
	struct gp_kfd_gate *gate = context;
	struct gate_gpu *gpu = (struct gate_gpu *)lane;
	struct gate_job *jobs;
	bool ends;

	(void)job;
	gp_worker_lock(gate->worker);
	jobs = gpu->jobs;
	ends = gpu->ends;
	gpu->jobs = NULL;
	gpu->jobs_tail = &gpu->jobs;
	gp_worker_unlock(gate->worker);
	while (jobs)
		jobs = gate_do(gpu, jobs);
	if (ends)
		gate_open_closed(gpu, 0, true);
}

static struct gate_gpu *gate_find(struct gp_kfd_gate *gate, uint32_t gpu_id)
{
	for (uint32_t i = 0; i < gate->gpu_count; i++)
		if (gate->gpus[i].gpu_id == gpu_id)
			return &gate->gpus[i];
	return NULL;
}

static struct gate_job *gate_job_create(struct gate_target *target, uint32_t count)
{
	struct gate_job *job = calloc(1, sizeof(*job) + count * sizeof(job->changes[0]));

	if (!job)
		return NULL;
	job->target = target;
	job->count = count;
	return job;
}

int gp_kfd_gate_attach(struct gp_kfd_gate *gate, struct gp_device_client *client)
{
	struct gate_target *target;
	uint32_t count = 0;

	if (client->backend)
		return 0;
	target = calloc(1, sizeof(*target));
	if (!target)
		return -ENOMEM;
	target->refs = 1;
	target->tag = client->tag;
	target->pid = client->pid;
	target->pidfd = fcntl(client->pidfd, F_DUPFD_CLOEXEC, 3);
	for (; count < gate->gpu_count; count++) {
		struct gate_job *job = gate_job_create(target, 0);

		if (!job)
			break;
		job->forget = true;
		job->next = target->forgets;
		target->forgets = job;
	}
	if (target->pidfd < 0 || count < gate->gpu_count) {
		gate_put(target);
		return -ENOMEM;
	}
	client->backend = target;
	return 0;
}

/* Adds a job to the batch, in order. */
static void gate_add(struct gate_gpu *gpu, struct gate_job *job)
{
	__atomic_add_fetch(&job->target->refs, 1, __ATOMIC_RELAXED);
	job->next = NULL;
	*gpu->batch_tail = job;
	gpu->batch_tail = &job->next;
}

int gp_kfd_gate_apply(struct gp_kfd_gate *gate, struct gp_device_client *client, uint64_t seq, uint32_t gpu_id,
		      const struct gp_device_change *changes, uint32_t count)
{
	struct gate_target *target = client->backend;
	struct gate_gpu *gpu = gate_find(gate, gpu_id);
	struct gate_job *job;

	if (!target || !gpu)
		return -ENOTCONN;
	if (!count || count > GP_KFD_SCHED_GATE_MAX)
		return -EINVAL;
	if (__atomic_load_n(&target->waiting, __ATOMIC_RELAXED) >= GATE_ORDERS_MAX)
		return -EBUSY;
	job = gate_job_create(target, count);
	if (!job)
		return -ENOMEM;
	__atomic_add_fetch(&target->waiting, 1, __ATOMIC_RELAXED);
	target->ordered = true;
	job->seq = seq;
	memcpy(job->changes, changes, count * sizeof(*changes));
	gate_add(gpu, job);
	return 0;
}

void gp_kfd_gate_commit(struct gp_kfd_gate *gate, uint32_t gpu_id)
{
	struct gate_gpu *gpu = gate_find(gate, gpu_id);

	if (!gpu || !gpu->batch)
		return;
	gp_worker_lock(gate->worker);
	*gpu->jobs_tail = gpu->batch;
	gpu->jobs_tail = gpu->batch_tail;
	gp_worker_give_locked(gate->worker, &gpu->lane, NULL);
	gp_worker_unlock(gate->worker);
	gpu->batch = NULL;
	gpu->batch_tail = &gpu->batch;
}

void gp_kfd_gate_detach(struct gp_kfd_gate *gate, struct gp_device_client *client)
{
	struct gate_target *target = client->backend;

	client->backend = NULL;
	for (uint32_t i = 0; target && target->ordered && i < gate->gpu_count; i++) {
		struct gate_job *job = target->forgets;

		target->forgets = job->next;
		gate_add(&gate->gpus[i], job);
		gp_kfd_gate_commit(gate, gate->gpus[i].gpu_id);
	}
	if (target)
		gate_put(target);
}

uint32_t gp_kfd_gate_stuck(struct gp_kfd_gate *gate, uint32_t gpu_id)
{
	return gp_worker_late(gate->worker, gpu_id);
}

int gp_kfd_gate_create(struct gp_backend *backend, const struct gp_device_info *infos, uint32_t count,
		       struct gp_kfd_gate **ret_gate, struct gp_error *error)
{
	struct gp_kfd_gate *gate = calloc(1, sizeof(*gate) + count * sizeof(gate->gpus[0]));

	if (!gate)
		return gp_error_set(error, -ENOMEM, "no memory for the threads of the batch gate");
	gate->backend = backend;
	gate->gpu_count = count;
	for (uint32_t i = 0; i < count; i++) {
		gate->gpus[i].gate = gate;
		gate->gpus[i].gpu_id = gate->gpus[i].lane.about = infos[i].gpu_id;
		gate->gpus[i].jobs_tail = &gate->gpus[i].jobs;
		gate->gpus[i].batch_tail = &gate->gpus[i].batch;
	}
	gate->worker = gp_worker_create(&(struct gp_worker_config){ .context = gate,
								    .thread_min = count,
								    .thread_max = count,
								    .late_ns = &gate_late_ns,
								    .finishes = true,
								    .notify_fd = -1,
								    .run = gate_run });
	if (!gate->worker) {
		free(gate);
		return gp_error_set(error, -EAGAIN, "cannot start a thread");
	}
	*ret_gate = gate;
	return 0;
}

bool gp_kfd_gate_destroy(struct gp_kfd_gate *gate)
{
	if (!gate)
		return true;
	gp_worker_lock(gate->worker);
	for (uint32_t i = 0; i < gate->gpu_count; i++) {
		gate->gpus[i].ends = true;
		gp_worker_give_locked(gate->worker, &gate->gpus[i].lane, NULL);
	}
	gp_worker_unlock(gate->worker);
	if (!gp_worker_stop(gate->worker, gp_kfd_gate_end_ns))
		return false;
	free(gate);
	return true;
}
