/* SPDX-License-Identifier: MIT */
/* Owns the worker that calls RM, with a lane for each GPU, and the groups borrowed there. */
#include <errno.h>
#include <fcntl.h>
#include <gp_deps.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "device/nvidia/borrow.h"
#include "device/nvidia/group.h"
#include "device/nvidia/job.h"
#include "lib/clock.h"

uint64_t gp_nvidia_hang_ns = 1000000000ull, gp_nvidia_end_ns = 2000000000ull;

/* A client is released on all GPUs before the daemon is told. */
struct borrow_release {
	uint32_t waiting; /* GPUs that have not released it; atomic */
	uint64_t tag;
	char why[GP_DEVICE_TEXT_SIZE];
};

struct borrow_gpu {
	struct gp_nvidia_jobs jobs;
	struct gp_nvidia_borrow *borrow;
	uint32_t gpu_id;
	uint64_t newest;                /* atomic: seq of the newest plan */
	struct gp_nvidia_job *batch;    /* decision thread: applied and not committed */
	struct gp_borrow_group *groups; /* only the lane's thread */
};

struct gp_nvidia_borrow {
	struct gp_device_host own;
	/* Held during each report to the host, so that the host exists until the report is done. */
	pthread_mutex_t telling;
	/* Guarded by telling: own, or gp_nvidia_no_host once the daemon has ended while a call was under way. */
	const struct gp_device_host *host;
	struct gp_worker *worker;
	bool by_name;
	uint32_t gpu_count, fallback;
	struct borrow_gpu gpus[];
};

/* The host to report to, until borrow_end_telling(). Asked again after each call into the driver, which may end after
 * the daemon. */
static const struct gp_device_host *borrow_begin_telling(struct gp_nvidia_borrow *borrow)
{
	pthread_mutex_lock(&borrow->telling);
	return borrow->host;
}

static void borrow_end_telling(struct gp_nvidia_borrow *borrow)
{
	pthread_mutex_unlock(&borrow->telling);
}

/* Waits for a report that is under way. From now on the threads left behind report to no host. */
static void borrow_tell_nobody(struct gp_nvidia_borrow *borrow)
{
	pthread_mutex_lock(&borrow->telling);
	borrow->host = &gp_nvidia_no_host;
	pthread_mutex_unlock(&borrow->telling);
}

static void borrow_tell_mechanism(struct gp_nvidia_borrow *borrow, uint64_t tag, const char *why)
{
	const struct gp_device_host *host = borrow_begin_telling(borrow);

	host->mechanism(host->daemon, tag, borrow->fallback, why);
	borrow_end_telling(borrow);
}

static void borrow_tell_failed(const struct borrow_gpu *gpu, const char *why)
{
	const struct gp_device_host *host = borrow_begin_telling(gpu->borrow);

	host->failed(host->daemon, gpu->gpu_id, why);
	borrow_end_telling(gpu->borrow);
}

static struct gp_borrow_group **borrow_find(struct borrow_gpu *gpu, uint64_t tag, uint32_t slot)
{
	struct gp_borrow_group **at = &gpu->groups;

	while (*at && ((*at)->tag != tag || (*at)->slot != slot))
		at = &(*at)->next;
	return at;
}

static struct gp_borrow_group *borrow_known(struct borrow_gpu *gpu, uint64_t tag, uint32_t slot, uint32_t generation)
{
	struct gp_borrow_group *group = *borrow_find(gpu, tag, slot);

	return group && group->generation == generation ? group : NULL;
}

static void borrow_drop(struct gp_borrow_group **at)
{
	struct gp_borrow_group *group = *at;

	*at = group->next;
	gp_nvidia_group_free(group);
}

/* Opens the groups of one client, or of all, and restores their slices. */
static void borrow_restore(struct borrow_gpu *gpu, uint64_t tag, bool all)
{
	for (struct gp_borrow_group *group = gpu->groups; group; group = group->next)
		if (all || group->tag == tag)
			gp_nvidia_group_restore(group);
}

static void borrow_forget(struct borrow_gpu *gpu, uint64_t tag, bool all)
{
	struct gp_borrow_group **at = &gpu->groups;

	borrow_restore(gpu, tag, all);
	while (*at) {
		if (all || (*at)->tag == tag)
			borrow_drop(at);
		else
			at = &(*at)->next;
	}
}

/* One more GPU has released the client; the last one tells the daemon. */
static void borrow_released(struct gp_nvidia_borrow *borrow, struct borrow_release *release)
{
	uint32_t waited = __atomic_fetch_sub(&release->waiting, 1, __ATOMIC_ACQ_REL);

	GP_ASSERT(waited); /* each GPU releases a client once */
	if (waited > 1)
		return;
	borrow_tell_mechanism(borrow, release->tag, release->why);
	free(release);
}

static void borrow_let_go(struct gp_nvidia_borrow *borrow, uint64_t tag, const char *why)
{
	struct borrow_release *release = calloc(1, sizeof(*release));

	if (!release) {
		borrow_tell_mechanism(borrow, tag, why);
		return;
	}
	release->waiting = borrow->gpu_count;
	release->tag = tag;
	snprintf(release->why, sizeof(release->why), "%s", why);
	for (uint32_t i = 0; i < borrow->gpu_count; i++) {
		struct gp_nvidia_job *job = calloc(1, sizeof(*job));

		if (!job) {
			/* Counts as released on that GPU: the agent opens the gates there. */
			borrow_released(borrow, release);
			continue;
		}
		job->kind = GP_NVIDIA_JOB_RELEASE;
		job->tag = tag;
		job->pidfd = -1;
		job->release = release;
		gp_nvidia_jobs_push(&borrow->gpus[i].jobs, job);
	}
}

static void borrow_release_job(struct borrow_gpu *gpu, const struct gp_nvidia_job *job)
{
	borrow_forget(gpu, job->tag, false);
	borrow_released(gpu->borrow, job->release);
}

/* RM may allow the client a call that it refuses to the daemon: the client falls back. */
static void borrow_refused(struct borrow_gpu *gpu, uint64_t tag, int result)
{
	char why[GP_DEVICE_TEXT_SIZE];

	if (result != -EPERM && result != -EINVAL && result != -EOPNOTSUPP && result != -EPROTO && result != -ECANCELED)
		return;
	snprintf(why, sizeof(why), "the driver refuses the call to gpreemptd (%s)", strerror(-result));
	borrow_let_go(gpu->borrow, tag, why);
}

/* The GPU did not carry out a change: the daemon stops scheduling it. */
static void borrow_failed(struct borrow_gpu *gpu, uint32_t group, int result)
{
	char why[GP_DEVICE_TEXT_SIZE];

	if (result != -EIO)
		return;
	snprintf(why, sizeof(why), "the driver could not change group %#x", group);
	borrow_tell_failed(gpu, why);
}

/* An agent reports a group's end before RM does it, but this thread may look at the group in between. The daemon reads
 * the agent's messages, so it knows whether the queue still exists. Errors that have nothing to do with that are final,
 * except that files of the user are still to be closed, as after a large program of his was killed. */
static void borrow_untaken(struct borrow_gpu *gpu, const struct gp_nvidia_job *job, int result, const char *why)
{
	struct gp_device_grouped grouped = { .slot = job->group.slot,
					     .generation = job->group.generation,
					     .is_early = result == -EBUSY };
	bool is_final = result == -EPERM || result == -ENOMEM;

	if (!is_final) {
		const struct gp_device_host *host = borrow_begin_telling(gpu->borrow);

		is_final = host->ungrouped(host->daemon, job->tag, &grouped, why) != 0;
		borrow_end_telling(gpu->borrow);
	}
	if (is_final)
		borrow_let_go(gpu->borrow, job->tag, why);
}

static void borrow_group_job(struct borrow_gpu *gpu, const struct gp_nvidia_job *job)
{
	const struct gp_device_host *host;
	struct gp_borrow_group **at = borrow_find(gpu, job->tag, job->group.slot), *group;
	struct gp_device_grouped grouped = { .slot = job->group.slot, .generation = job->group.generation };
	struct gp_nvidia_lender lender = { job->pid, job->pidfd, job->owner, gpu->gpu_id, gpu->borrow->by_name };
	char why[GP_DEVICE_TEXT_SIZE];
	int r = gp_nvidia_group_take(&job->group, &lender, &group, why, sizeof(why));

	if (r) {
		borrow_untaken(gpu, job, r, why);
		return;
	}
	group->tag = job->tag;
	/* Closes channels that came while the group was closed; below, sets the short slice again over one that the
	 * program set. */
	if (*at && (*at)->generation == group->generation)
		grouped.gate = gp_nvidia_group_follow(group, *at);
	if (*at)
		borrow_drop(at);
	group->next = gpu->groups;
	gpu->groups = group;
	if (group->is_short)
		grouped.slice = gp_nvidia_group_slice(group, group->short_us);
	host = borrow_begin_telling(gpu->borrow);
	host->grouped(host->daemon, job->tag, &grouped);
	borrow_end_telling(gpu->borrow);
	borrow_failed(gpu, job->group.group, grouped.gate);
	borrow_refused(gpu, job->tag, grouped.gate ? grouped.gate : grouped.slice);
}

/* The groups of one commit, all together. Changes of an older plan are not carried out any more, unless they are final.
 */
static void borrow_apply_job(struct borrow_gpu *gpu, struct gp_nvidia_job *first)
{
	const struct gp_device_host *host;
	bool is_old = first->seq != __atomic_load_n(&gpu->newest, __ATOMIC_RELAXED);
	struct gp_borrow_group *groups[GP_PLAN_MAX];
	struct gp_device_change *changes[GP_PLAN_MAX];
	int results[GP_PLAN_MAX];
	const char *found = NULL;
	uint64_t issue_ns, done_ns;
	uint32_t count = 0;

	GP_ASSERT(first->count); /* its first change says whether gates open or close */
	for (struct gp_nvidia_job *job = first; job; job = job->also)
		for (uint32_t i = 0; i < job->count; i++) {
			struct gp_borrow_group *group =
				borrow_known(gpu, job->tag, job->changes[i].slot, job->changes[i].generation);
			bool stale = is_old && !job->changes[i].is_final;

			job->changes[i].result = stale ? -ESTALE : -ESRCH;
			if (!group || stale || count == GP_PLAN_MAX || job->changes[i].open != first->changes[0].open)
				continue;
			job->changes[i].result = first->changes[0].open ? 0 : gp_nvidia_group_probe(group, &found);
			if (job->changes[i].result)
				continue;
			groups[count] = group;
			changes[count++] = &job->changes[i];
		}
	issue_ns = gp_clock_ns();
	gp_nvidia_groups_change(groups, count, first->changes[0].open, results);
	done_ns = gp_clock_ns();
	for (uint32_t i = 0; i < count; i++) {
		changes[i]->result = results[i];
		borrow_failed(gpu, changes[i]->queue_id, results[i]);
	}
	for (struct gp_nvidia_job *job = first; job; job = job->also) {
		struct gp_device_done done = { .seq = job->seq,
					       .gpu_id = gpu->gpu_id,
					       .count = job->count,
					       .issue_ns = issue_ns,
					       .done_ns = done_ns,
					       .changes = job->changes,
					       .found = found };

		host = borrow_begin_telling(gpu->borrow);
		host->done(host->daemon, job->tag, &done);
		borrow_end_telling(gpu->borrow);
		for (uint32_t i = 0, refused = 0; !refused && i < job->count; i++) {
			refused = job->changes[i].result && !job->changes[i].open;
			borrow_refused(gpu, job->tag, refused ? job->changes[i].result : 0);
		}
	}
}

static void borrow_slice_job(struct borrow_gpu *gpu, struct gp_nvidia_job *job)
{
	const struct gp_device_host *host;
	struct gp_borrow_group *group = borrow_known(gpu, job->tag, job->slice.slot, job->slice.generation);

	job->slice.result = group ? gp_nvidia_group_slice(group, job->slice.slice_us) : -ESRCH;
	host = borrow_begin_telling(gpu->borrow);
	host->sliced(host->daemon, job->tag, &job->slice);
	borrow_end_telling(gpu->borrow);
	borrow_refused(gpu, job->tag, job->slice.result);
}

/* Nothing else depends on the count: if the driver does not support the call, the daemon only stops asking. */
static void borrow_count_job(struct borrow_gpu *gpu, struct gp_nvidia_job *job)
{
	const struct gp_device_host *host;
	struct gp_borrow_group *group = borrow_known(gpu, job->tag, job->counted.slot, job->counted.generation);

	job->counted.result = group ? gp_nvidia_group_saves(group, &job->counted.saves) : -ESRCH;
	job->counted.at_ns = gp_clock_ns();
	host = borrow_begin_telling(gpu->borrow);
	host->counted(host->daemon, job->tag, &job->counted);
	borrow_end_telling(gpu->borrow);
}

/* Without a job: the backend ends. */
static void borrow_run(void *context, struct gp_lane *lane, struct gp_worker_job *base)
{
	struct borrow_gpu *gpu = (struct borrow_gpu *)lane;
	struct gp_nvidia_job *job = (struct gp_nvidia_job *)base;
	struct gp_borrow_group **at;

	(void)context;
	if (!job) {
		borrow_forget(gpu, 0, true);
		return;
	}
	switch (job->kind) {
	case GP_NVIDIA_JOB_GROUP: borrow_group_job(gpu, job); break;
	case GP_NVIDIA_JOB_REMOVE:
		at = borrow_find(gpu, job->tag, job->slot);
		/* The agent opened the group and restored its slice before it sent QUEUE_REMOVE, but perhaps before
		 * this thread's last call. The group may live on as another queue. If it has ended, these calls do no
		 * harm. */
		if (*at)
			gp_nvidia_group_restore(*at);
		if (*at)
			borrow_drop(at);
		break;
	case GP_NVIDIA_JOB_FORGET: borrow_forget(gpu, job->tag, false); break;
	case GP_NVIDIA_JOB_APPLY: borrow_apply_job(gpu, job); break;
	case GP_NVIDIA_JOB_SLICE: borrow_slice_job(gpu, job); break;
	case GP_NVIDIA_JOB_COUNT: borrow_count_job(gpu, job); break;
	case GP_NVIDIA_JOB_RELEASE: borrow_release_job(gpu, job); break;
	}
	gp_nvidia_job_free(job);
}

static void borrow_taken(void *context, struct gp_lane *lane, struct gp_worker_job *job)
{
	(void)context;
	if (job)
		gp_nvidia_jobs_taken((struct gp_nvidia_jobs *)lane, (struct gp_nvidia_job *)job);
}

/* A call that was given up has returned. The daemon has opened the gates by other means meanwhile; this thread undoes
 * everything that it had changed. Then the daemon may schedule the GPU again: the driver was only slow, as when it ends
 * the objects of a large program that was killed. */
static void borrow_back(void *context, struct gp_lane *lane)
{
	struct borrow_gpu *gpu = (struct borrow_gpu *)lane;
	const struct gp_device_host *host;

	(void)context;
	borrow_restore(gpu, 0, true);
	host = borrow_begin_telling(gpu->borrow);
	host->hangs(host->daemon, gpu->gpu_id, false);
	borrow_end_telling(gpu->borrow);
}

static struct borrow_gpu *borrow_gpu(struct gp_nvidia_borrow *borrow, uint32_t gpu_id)
{
	for (uint32_t i = 0; i < borrow->gpu_count; i++)
		if (borrow->gpus[i].gpu_id == gpu_id)
			return &borrow->gpus[i];
	return NULL;
}

/* Whether the GPU's thread hangs. While it hangs it gets no more jobs. Each call reports it, because a person may have
 * resumed the GPU since the last report. The report cannot come after that of borrow_back(), which waits for the
 * telling. */
static bool borrow_hangs(struct borrow_gpu *gpu)
{
	const struct gp_device_host *host = borrow_begin_telling(gpu->borrow);
	bool hangs;

	gp_worker_lock(gpu->borrow->worker);
	gp_worker_leave_locked(gpu->borrow->worker, &gpu->jobs.lane);
	hangs = gpu->jobs.lane.is_left;
	gp_worker_unlock(gpu->borrow->worker);
	if (hangs)
		host->hangs(host->daemon, gpu->gpu_id, true);
	borrow_end_telling(gpu->borrow);
	return hangs;
}

void gp_nvidia_borrow_group(struct gp_nvidia_borrow *borrow, const struct gp_device_client *client, uint32_t gpu_id,
			    const struct gp_wire_group *group)
{
	struct borrow_gpu *gpu = borrow_gpu(borrow, gpu_id);
	struct gp_nvidia_job *job = gpu ? calloc(1, sizeof(*job)) : NULL;

	if (!gpu)
		return;
	if (job)
		job->pidfd = fcntl(client->pidfd, F_DUPFD_CLOEXEC, 3);
	if (!job || job->pidfd < 0) {
		free(job);
		borrow_let_go(borrow, client->tag, "gpreemptd is out of memory or descriptors");
		return;
	}
	job->kind = GP_NVIDIA_JOB_GROUP;
	job->tag = client->tag;
	job->owner = client->owner;
	job->pid = client->pid;
	job->group = *group;
	if (gp_nvidia_jobs_push_group(&gpu->jobs, job))
		borrow_let_go(borrow, client->tag, "it has too many contexts at once for gpreemptd to look at");
}

void gp_nvidia_borrow_fall_back(struct gp_nvidia_borrow *borrow, uint64_t tag, const char *why)
{
	borrow_let_go(borrow, tag, why);
}

static void borrow_tell(struct borrow_gpu *gpu, enum gp_nvidia_job_kind kind, uint64_t tag, uint32_t slot)
{
	struct gp_nvidia_job *job = calloc(1, sizeof(*job));

	if (!job)
		return; /* one descriptor too many stays open until the daemon ends */
	job->kind = kind;
	job->tag = tag;
	job->slot = slot;
	job->pidfd = -1;
	gp_nvidia_jobs_push(&gpu->jobs, job);
}

void gp_nvidia_borrow_remove(struct gp_nvidia_borrow *borrow, uint64_t tag, uint32_t gpu_id, uint32_t slot)
{
	struct borrow_gpu *gpu = borrow_gpu(borrow, gpu_id);

	if (gpu)
		borrow_tell(gpu, GP_NVIDIA_JOB_REMOVE, tag, slot);
}

void gp_nvidia_borrow_forget(struct gp_nvidia_borrow *borrow, uint64_t tag)
{
	for (uint32_t i = 0; i < borrow->gpu_count; i++)
		borrow_tell(&borrow->gpus[i], GP_NVIDIA_JOB_FORGET, tag, 0);
}

int gp_nvidia_borrow_apply(struct gp_nvidia_borrow *borrow, uint64_t tag, uint64_t seq, uint32_t gpu_id,
			   const struct gp_device_change *changes, uint32_t count)
{
	struct borrow_gpu *gpu = borrow_gpu(borrow, gpu_id);
	struct gp_nvidia_job *job, **at;

	if (!gpu || !count)
		return -ENODEV;
	if (borrow_hangs(gpu))
		return -EIO;
	job = calloc(1, sizeof(*job) + count * sizeof(job->changes[0]));
	if (!job)
		return -ENOMEM;
	job->kind = GP_NVIDIA_JOB_APPLY;
	job->tag = tag;
	job->seq = seq;
	job->pidfd = -1;
	job->count = count;
	memcpy(job->changes, changes, count * sizeof(job->changes[0]));
	__atomic_store_n(&gpu->newest, seq, __ATOMIC_RELAXED);
	for (at = &gpu->batch; *at; at = &(*at)->also) {}
	*at = job;
	return 0;
}

void gp_nvidia_borrow_commit(struct gp_nvidia_borrow *borrow, uint32_t gpu_id)
{
	struct borrow_gpu *gpu = borrow_gpu(borrow, gpu_id);

	if (!gpu || !gpu->batch)
		return;
	gp_nvidia_jobs_push(&gpu->jobs, gpu->batch);
	gpu->batch = NULL;
}

/* Gives the GPU's thread a job for one client. */
static int borrow_give(struct gp_nvidia_borrow *borrow, uint32_t gpu_id, const struct gp_nvidia_job *what)
{
	struct borrow_gpu *gpu = borrow_gpu(borrow, gpu_id);
	struct gp_nvidia_job *job;

	if (!gpu)
		return -ENODEV;
	if (borrow_hangs(gpu))
		return -EIO;
	job = malloc(sizeof(*job));
	if (!job)
		return -ENOMEM;
	*job = *what;
	gp_nvidia_jobs_push(&gpu->jobs, job);
	return 0;
}

int gp_nvidia_borrow_slice(struct gp_nvidia_borrow *borrow, uint64_t tag, const struct gp_device_slice *slice)
{
	return borrow_give(
		borrow, slice->gpu_id,
		&(struct gp_nvidia_job){ .kind = GP_NVIDIA_JOB_SLICE, .tag = tag, .pidfd = -1, .slice = *slice });
}

int gp_nvidia_borrow_count(struct gp_nvidia_borrow *borrow, uint64_t tag, const struct gp_device_count *count)
{
	return borrow_give(
		borrow, count->gpu_id,
		&(struct gp_nvidia_job){ .kind = GP_NVIDIA_JOB_COUNT, .tag = tag, .pidfd = -1, .counted = *count });
}

int gp_nvidia_borrow_create(const struct gp_nvidia_borrow_config *config, struct gp_nvidia_borrow **ret_borrow,
			    struct gp_error *error)
{
	struct gp_nvidia_borrow *borrow = calloc(1, sizeof(*borrow) + config->gpu_count * sizeof(borrow->gpus[0]));

	if (!borrow)
		return gp_error_set(error, -ENOMEM, "no memory for the threads of the NVIDIA device");
	borrow->own = *config->host;
	borrow->host = &borrow->own;
	pthread_mutex_init(&borrow->telling, NULL);
	borrow->by_name = config->by_name;
	borrow->fallback = config->fallback;
	borrow->gpu_count = config->gpu_count;
	borrow->worker = gp_worker_create(&(struct gp_worker_config){ .thread_min = borrow->gpu_count,
								      .thread_max = borrow->gpu_count,
								      .late_ns = &gp_nvidia_hang_ns,
								      .finishes = true,
								      .notify_fd = -1,
								      .run = borrow_run,
								      .taken = borrow_taken,
								      .back = borrow_back });
	if (!borrow->worker) {
		pthread_mutex_destroy(&borrow->telling);
		free(borrow);
		return gp_error_set(error, -EAGAIN, "cannot start a thread");
	}
	for (uint32_t i = 0; i < borrow->gpu_count; i++) {
		borrow->gpus[i].borrow = borrow;
		borrow->gpus[i].gpu_id = config->gpu_ids[i];
		borrow->gpus[i].jobs.worker = borrow->worker;
	}
	*ret_borrow = borrow;
	return 0;
}

void gp_nvidia_borrow_destroy(struct gp_nvidia_borrow *borrow)
{
	if (!borrow)
		return;
	for (uint32_t i = 0; i < borrow->gpu_count; i++)
		gp_worker_give(borrow->worker, &borrow->gpus[i].jobs.lane, NULL);
	if (!gp_worker_stop(borrow->worker, gp_nvidia_end_ns)) {
		borrow_tell_nobody(borrow); /* the thread left behind keeps using borrow */
		return;
	}
	for (uint32_t i = 0; i < borrow->gpu_count; i++) {
		gp_nvidia_job_free(borrow->gpus[i].batch);
		gp_nvidia_jobs_fini(&borrow->gpus[i].jobs);
	}
	pthread_mutex_destroy(&borrow->telling);
	free(borrow);
}
