/* SPDX-License-Identifier: MIT */
/* Owns the threads that act as debugger, and what is to be done to each client, in order. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "device/kfd/criu.h"
#include "device/kfd/debugger.h"
#include "device/kfd/trap.h"

#define DEBUGGER_THREADS        32u /* as many as there is work for at once; beyond that calls to the driver that hang */
#define DEBUGGER_ATTACHING      16u  /* of them at most: a process in the middle of an exec can hold an attach up */
#define DEBUGGER_USER_ATTACHING 4u   /* of these for one user at most */
#define DEBUGGER_ORDERS_MAX     64u  /* of one client that wait; the core gives up on a client long before */
#define DEBUGGER_LEAVING_MAX    256u /* clients of one user that are gone and not yet let go: no more of his come */

uint64_t gp_kfd_debugger_late_ns = 1000000000ull, gp_kfd_debugger_end_ns = 2000000000ull;

enum debugger_kind { DEBUGGER_ATTACH, DEBUGGER_DETACH, DEBUGGER_NEW, DEBUGGER_APPLY };

struct debugger_job {
	struct debugger_job *next;
	enum debugger_kind kind;
	uint32_t fallback, gpu_id, count;
	bool tell; /* DETACH: the daemon waits for it; false: the client is gone, and this is its last job */
	uint64_t seq;
	struct gp_device_change changes[];
};

/* One client. Freed by the thread that has done its last job. */
struct debugger_target {
	struct debugger_target *next, *next_ready;
	uint64_t tag;
	pid_t pid;
	uint32_t owner;
	int pidfd;
	struct debugger_job *jobs, **jobs_tail; /* lock */
	uint64_t since_ns;                      /* lock: when a thread began its job; 0: none works on it */
	bool queued, gone;                      /* lock: in the ready list or being worked on; no more jobs come */
	bool enabled;                           /* only the thread that works on it */
	struct gp_kfd_guard guard;              /* the same: set aside by checkpoint, because it cannot be debugged */
};

struct debugger_thread {
	struct gp_kfd_debugger *debugger;
	pthread_t thread;
	uint64_t since_ns; /* lock: when it began what it does; 0: it waits */
	uint32_t gpu_id;   /* lock: that it does it for; 0: for no one in particular */
	bool attaching;    /* lock: to a process of this user */
	uint32_t owner;
};

struct gp_kfd_debugger {
	struct gp_backend *backend;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct debugger_target *targets, *ready, **ready_tail; /* lock */
	uint32_t ready_count, thread_count, waiting_count;     /* lock */
	bool stopping;                                         /* lock */
	struct debugger_thread threads[DEBUGGER_THREADS];
};

static uint64_t debugger_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static uint64_t debugger_late_ns(void)
{
	return __atomic_load_n(&gp_kfd_debugger_late_ns, __ATOMIC_RELAXED);
}

static struct timespec debugger_until(clockid_t clock, uint64_t ns)
{
	struct timespec until;

	clock_gettime(clock, &until);
	ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(ns / 1000000000ull);
	until.tv_nsec = (long)(ns % 1000000000ull);
	return until;
}

static void debugger_attach_job(struct gp_kfd_debugger *debugger, struct debugger_target *target,
				const struct debugger_job *job)
{
	const struct gp_device_host *host = &debugger->backend->host;
	char why[GP_DEVICE_TEXT_SIZE];
	int r = target->enabled ? 0 : gp_kfd_trap_enable(debugger->backend->fd, target->pid, target->pidfd);

	target->enabled |= !r;
	if (!r)
		r = gp_kfd_trap_clear_new(debugger->backend->fd, target->pid);
	if (!r) {
		host->mechanism(host->daemon, target->tag, GP_MECHANISM_DEBUGGER, "gpreemptd is its debugger");
		return;
	}
	if (r == -EOPNOTSUPP && job->fallback == GP_MECHANISM_NONE && debugger->backend->config.criu &&
	    !gp_kfd_criu_begin(target->pid, target->pidfd, &target->guard)) {
		host->mechanism(
			host->daemon, target->tag, GP_MECHANISM_DEBUGGER,
			"its runtime is not enabled: the whole process is set aside, by the checkpoint interface");
		return;
	}
	if (r == -EALREADY)
		snprintf(why, sizeof(why), "another debugger has it already (rocgdb?)");
	else if (r == -EOPNOTSUPP)
		snprintf(why, sizeof(why), "its runtime was not enabled before its first queue");
	else if (r == -EPERM)
		snprintf(why, sizeof(why),
			 "gpreemptd may not be its debugger: it is being traced, or CAP_SYS_PTRACE is missing");
	else
		snprintf(why, sizeof(why), "gpreemptd could not become its debugger: %s", strerror(-r));
	if (target->enabled)
		gp_kfd_trap_disable(debugger->backend->fd, target->pid);
	target->enabled = false;
	host->mechanism(host->daemon, target->tag, job->fallback, why);
}

/* Somebody may have killed the guard: another takes its place, or the process would never go on. */
static int debugger_guard_change(struct debugger_target *target, bool open)
{
	int r = gp_kfd_criu_change(&target->guard, open);

	if (r != -EPIPE)
		return r;
	gp_kfd_criu_end(&target->guard);
	r = gp_kfd_criu_begin(target->pid, target->pidfd, &target->guard);
	return r ? r : gp_kfd_criu_change(&target->guard, open);
}

static void debugger_let_go(struct gp_kfd_debugger *debugger, struct debugger_target *target)
{
	if (target->enabled)
		gp_kfd_trap_disable(debugger->backend->fd, target->pid);
	target->enabled = false;
	if (target->guard.fd >= 0)
		debugger_guard_change(target, true);
	gp_kfd_criu_end(&target->guard);
}

static void debugger_apply_job(struct gp_kfd_debugger *debugger, struct debugger_target *target,
			       struct debugger_job *job)
{
	const struct gp_device_host *host = &debugger->backend->host;
	struct gp_device_done done = { .seq = job->seq,
				       .gpu_id = job->gpu_id,
				       .count = job->count,
				       .changes = job->changes };
	char why[GP_DEVICE_TEXT_SIZE];
	int r = -ENOTCONN;

	done.issue_ns = debugger_now_ns();
	if (target->guard.fd >= 0) {
		r = debugger_guard_change(target, job->changes[0].open);
		for (uint32_t i = 0; i < job->count; i++)
			job->changes[i].result = r;
	}
	if (target->enabled)
		r = gp_kfd_trap_change(debugger->backend->fd, target->pid, job->changes, job->count,
				       debugger->backend->config.grace);
	done.done_ns = debugger_now_ns();
	for (uint32_t i = 0; i < job->count; i++) {
		if (r < 0)
			job->changes[i].result = r;
		if (job->changes[i].result != -EIO)
			continue;
		snprintf(why, sizeof(why), "the driver could not preempt queue %u of process %d",
			 job->changes[i].queue_id, target->pid);
		host->failed(host->daemon, job->gpu_id, why);
	}
	host->done(host->daemon, target->tag, &done);
}

static void debugger_do(struct gp_kfd_debugger *debugger, struct debugger_target *target, struct debugger_job *job)
{
	const struct gp_device_host *host = &debugger->backend->host;

	switch (job->kind) {
	case DEBUGGER_ATTACH: debugger_attach_job(debugger, target, job); break;
	case DEBUGGER_NEW:
		if (target->enabled)
			gp_kfd_trap_clear_new(debugger->backend->fd, target->pid);
		break;
	case DEBUGGER_APPLY: debugger_apply_job(debugger, target, job); break;
	case DEBUGGER_DETACH:
		debugger_let_go(debugger, target);
		if (job->tell)
			host->mechanism(host->daemon, target->tag, GP_MECHANISM_NONE, "its runtime is disabled");
		break;
	}
}

static void debugger_free(struct gp_kfd_debugger *debugger, struct debugger_target *target)
{
	struct debugger_target **at = &debugger->targets;
	struct debugger_job *job;

	while (*at != target)
		at = &(*at)->next;
	*at = target->next;
	while ((job = target->jobs)) {
		target->jobs = job->next;
		free(job);
	}
	close(target->pidfd);
	free(target);
}

static void *debugger_thread(void *context);

/* One that hangs in the driver must not keep the others: there is a thread for whatever is to be done. */
static void debugger_start_thread(struct gp_kfd_debugger *debugger)
{
	struct debugger_thread *thread = &debugger->threads[debugger->thread_count];

	if (debugger->thread_count == DEBUGGER_THREADS)
		return;
	thread->debugger = debugger;
	debugger->thread_count += !pthread_create(&thread->thread, NULL, debugger_thread, thread);
}

static void debugger_make_ready(struct gp_kfd_debugger *debugger, struct debugger_target *target)
{
	target->queued = true;
	target->next_ready = NULL;
	*debugger->ready_tail = target;
	debugger->ready_tail = &target->next_ready;
	if (++debugger->ready_count > debugger->waiting_count)
		debugger_start_thread(debugger);
	pthread_cond_signal(&debugger->wake);
}

/* A client that came back, or a new process of the same number: we are its debugger until its last job is done, and
 * would be refused as another one. A call that hangs is not waited for: better refused than never answered. */
static bool debugger_is_leaving(const struct gp_kfd_debugger *debugger, pid_t pid)
{
	for (const struct debugger_target *target = debugger->targets; target; target = target->next)
		if (target->gone && target->pid == pid &&
		    (!target->since_ns || debugger_now_ns() - target->since_ns < debugger_late_ns()))
			return true;
	return false;
}

/* Orders, and letting go, always find a thread: whoever makes attaching to himself hang keeps a few threads at most. */
static bool debugger_may_begin(const struct gp_kfd_debugger *debugger, const struct debugger_target *target)
{
	uint32_t all = 0, own = 0;

	/* One that is gone itself is not attached to any more. */
	if (target->jobs->kind != DEBUGGER_ATTACH || target->gone)
		return true;
	if (debugger_is_leaving(debugger, target->pid))
		return false;
	for (uint32_t i = 0; i < debugger->thread_count; i++) {
		const struct debugger_thread *thread = &debugger->threads[i];

		all += thread->attaching;
		own += thread->attaching && thread->owner == target->owner;
	}
	return all < DEBUGGER_ATTACHING && (own < DEBUGGER_USER_ATTACHING || !target->owner);
}

/* The first that may begin leaves the ready list. */
static struct debugger_target *debugger_take(struct gp_kfd_debugger *debugger)
{
	struct debugger_target **at = &debugger->ready, *target;

	while (*at && !debugger_may_begin(debugger, *at))
		at = &(*at)->next_ready;
	target = *at;
	if (!target)
		return NULL;
	*at = target->next_ready;
	if (!*at)
		debugger->ready_tail = at;
	debugger->ready_count--;
	return target;
}

/* Until somebody is ready; where one is that waits for another, also until that one is late. */
static void debugger_wait(struct gp_kfd_debugger *debugger)
{
	struct timespec until;

	if (!debugger->ready) {
		pthread_cond_wait(&debugger->wake, &debugger->lock);
		return;
	}
	until = debugger_until(CLOCK_MONOTONIC, debugger_late_ns());
	pthread_cond_clockwait(&debugger->wake, &debugger->lock, CLOCK_MONOTONIC, &until);
}

static void *debugger_thread(void *context)
{
	struct debugger_thread *thread = context;
	struct gp_kfd_debugger *debugger = thread->debugger;
	struct debugger_target *target;
	struct debugger_job *job;
	bool skip;

	pthread_mutex_lock(&debugger->lock);
	for (;;) {
		debugger->waiting_count++;
		while (!(target = debugger_take(debugger)) && !debugger->stopping)
			debugger_wait(debugger);
		debugger->waiting_count--;
		if (!target)
			break;
		if (debugger->ready) /* another watches what still waits */
			pthread_cond_signal(&debugger->wake);
		job = target->jobs;
		target->jobs = job->next;
		if (!target->jobs)
			target->jobs_tail = &target->jobs;
		skip = target->gone && job->kind == DEBUGGER_ATTACH;
		thread->since_ns = target->since_ns = debugger_now_ns();
		thread->gpu_id = job->gpu_id;
		thread->attaching = job->kind == DEBUGGER_ATTACH && !skip;
		thread->owner = target->owner;
		pthread_mutex_unlock(&debugger->lock);
		if (!skip)
			debugger_do(debugger, target, job);
		free(job);
		pthread_mutex_lock(&debugger->lock);
		thread->since_ns = target->since_ns = 0;
		if (thread->attaching) /* another may attach now */
			pthread_cond_broadcast(&debugger->wake);
		thread->attaching = false;
		target->queued = false;
		if (target->jobs)
			debugger_make_ready(debugger, target);
		else if (target->gone) {
			debugger_free(debugger, target);
			pthread_cond_broadcast(&debugger->wake); /* it may have come back */
		}
	}
	pthread_mutex_unlock(&debugger->lock);
	return NULL;
}

/* Attaches that wait and that letting go makes void: what waits for a client is bounded, however often it changes its
 * mind. */
static void debugger_drop_attaches_locked(struct debugger_target *target)
{
	struct debugger_job **at = &target->jobs, *job;

	while ((job = *at)) {
		if (job->kind != DEBUGGER_ATTACH) {
			at = &job->next;
			continue;
		}
		*at = job->next;
		free(job);
	}
	target->jobs_tail = at;
}

/* Whether a job like this waits already, and doing it once is enough: nothing after it undoes it. */
static bool debugger_is_merged_locked(struct debugger_target *target, const struct debugger_job *what)
{
	bool found = false;

	if (what->kind == DEBUGGER_DETACH)
		debugger_drop_attaches_locked(target);
	for (struct debugger_job *job = target->jobs; job && what->kind != DEBUGGER_APPLY; job = job->next) {
		if (job->kind == what->kind && job->tell == what->tell) {
			job->fallback = what->fallback;
			found = true;
		} else if (job->kind == DEBUGGER_ATTACH || job->kind == DEBUGGER_DETACH) {
			found = false;
		}
	}
	return found;
}

static uint32_t debugger_orders_locked(const struct debugger_target *target)
{
	uint32_t count = 0;

	for (const struct debugger_job *job = target->jobs; job; job = job->next)
		count += job->kind == DEBUGGER_APPLY;
	return count;
}

static void debugger_append_locked(struct gp_kfd_debugger *debugger, struct debugger_target *target,
				   struct debugger_job *job)
{
	/* Together with its last job: a thread that finds none left frees what is gone. */
	target->gone |= job->kind == DEBUGGER_DETACH && !job->tell;
	*target->jobs_tail = job;
	target->jobs_tail = &job->next;
	if (!target->queued)
		debugger_make_ready(debugger, target);
	else if (target->gone)
		pthread_cond_signal(&debugger->wake); /* its attach waits no longer */
}

static int debugger_push(struct gp_kfd_debugger *debugger, struct debugger_target *target,
			 const struct debugger_job *what, const struct gp_device_change *changes)
{
	struct debugger_job *job = malloc(sizeof(*job) + what->count * sizeof(job->changes[0]));
	int r = 0;

	if (!job)
		return -ENOMEM;
	*job = *what;
	job->next = NULL;
	if (changes)
		memcpy(job->changes, changes, what->count * sizeof(job->changes[0]));
	pthread_mutex_lock(&debugger->lock);
	if (what->kind == DEBUGGER_APPLY && debugger_orders_locked(target) >= DEBUGGER_ORDERS_MAX)
		r = -EBUSY;
	else if (!debugger_is_merged_locked(target, what)) {
		debugger_append_locked(debugger, target, job);
		job = NULL;
	}
	pthread_mutex_unlock(&debugger->lock);
	free(job);
	return r;
}

/* Those who are gone and wait to be let go: with a driver that hangs they would pile up, each with a descriptor. */
static bool debugger_is_crowded(struct gp_kfd_debugger *debugger, uint32_t owner)
{
	uint32_t count = 0;

	pthread_mutex_lock(&debugger->lock);
	for (const struct debugger_target *target = debugger->targets; target; target = target->next)
		count += target->gone && target->owner == owner;
	pthread_mutex_unlock(&debugger->lock);
	return count >= DEBUGGER_LEAVING_MAX;
}

void gp_kfd_debugger_attach(struct gp_kfd_debugger *debugger, struct gp_device_client *client, uint32_t fallback)
{
	const struct gp_device_host *host = &debugger->backend->host;
	struct debugger_target *target = client->backend;
	struct debugger_job job = { .kind = DEBUGGER_ATTACH, .fallback = fallback };

	if (!target && debugger_is_crowded(debugger, client->owner)) {
		host->mechanism(host->daemon, client->tag, fallback,
				"gpreemptd has yet to let go of too many earlier processes of its user");
		return;
	}
	if (!target) {
		target = calloc(1, sizeof(*target));
		if (target)
			target->pidfd = fcntl(client->pidfd, F_DUPFD_CLOEXEC, 3);
		if (!target || target->pidfd < 0) {
			free(target);
			host->mechanism(host->daemon, client->tag, fallback,
					"gpreemptd is out of memory or descriptors");
			return;
		}
		target->guard.fd = -1;
		target->tag = client->tag;
		target->pid = client->pid;
		target->owner = client->owner;
		target->jobs_tail = &target->jobs;
		pthread_mutex_lock(&debugger->lock);
		target->next = debugger->targets;
		debugger->targets = target;
		pthread_mutex_unlock(&debugger->lock);
		client->backend = target;
	}
	if (debugger_push(debugger, target, &job, NULL))
		host->mechanism(host->daemon, client->tag, fallback, "gpreemptd is out of memory");
}

void gp_kfd_debugger_detach(struct gp_kfd_debugger *debugger, struct gp_device_client *client, bool gone)
{
	struct debugger_target *target = client->backend;
	struct debugger_job job = { .kind = DEBUGGER_DETACH, .tell = !gone };

	if (gone)
		client->backend = NULL;
	debugger_push(debugger, target, &job, NULL);
}

void gp_kfd_debugger_queue_added(struct gp_kfd_debugger *debugger, struct gp_device_client *client)
{
	struct debugger_job job = { .kind = DEBUGGER_NEW };

	debugger_push(debugger, client->backend, &job, NULL);
}

int gp_kfd_debugger_apply(struct gp_kfd_debugger *debugger, struct gp_device_client *client, uint64_t seq,
			  uint32_t gpu_id, const struct gp_device_change *changes, uint32_t count)
{
	struct debugger_job job = { .kind = DEBUGGER_APPLY, .seq = seq, .gpu_id = gpu_id, .count = count };

	if (!client->backend)
		return -ENOTCONN;
	return debugger_push(debugger, client->backend, &job, changes);
}

int gp_kfd_debugger_create(struct gp_backend *backend, struct gp_kfd_debugger **ret_debugger, struct gp_error *error)
{
	struct gp_kfd_debugger *debugger = calloc(1, sizeof(*debugger));

	if (!debugger)
		return gp_error_set(error, -ENOMEM, "no memory for the debugger's threads");
	debugger->backend = backend;
	debugger->ready_tail = &debugger->ready;
	pthread_mutex_init(&debugger->lock, NULL);
	pthread_cond_init(&debugger->wake, NULL);
	pthread_mutex_lock(&debugger->lock);
	debugger_start_thread(debugger);
	pthread_mutex_unlock(&debugger->lock);
	if (!debugger->thread_count) {
		free(debugger);
		return gp_error_set(error, -EAGAIN, "cannot start a thread");
	}
	*ret_debugger = debugger;
	return 0;
}

uint32_t gp_kfd_debugger_stuck(struct gp_kfd_debugger *debugger, uint32_t gpu_id)
{
	uint64_t now_ns = debugger_now_ns();
	uint32_t count = 0;

	pthread_mutex_lock(&debugger->lock);
	for (uint32_t i = 0; i < debugger->thread_count; i++) {
		const struct debugger_thread *thread = &debugger->threads[i];

		count += thread->since_ns && now_ns > thread->since_ns + debugger_late_ns() &&
			 (!gpu_id || !thread->gpu_id || thread->gpu_id == gpu_id);
	}
	pthread_mutex_unlock(&debugger->lock);
	return count;
}

/* False: one hangs in the driver, and so would we. */
static bool debugger_join(struct gp_kfd_debugger *debugger)
{
	struct timespec until = debugger_until(CLOCK_REALTIME, gp_kfd_debugger_end_ns);

	for (uint32_t i = 0; i < debugger->thread_count; i++)
		if (pthread_timedjoin_np(debugger->threads[i].thread, NULL, &until))
			return false;
	return true;
}

/* Clients that are still there are let go as well: the kernel would do it at our exit, but a fini must not rely on it
 * unless the driver hangs. */
bool gp_kfd_debugger_destroy(struct gp_kfd_debugger *debugger)
{
	struct debugger_target *target;

	if (!debugger)
		return true;
	pthread_mutex_lock(&debugger->lock);
	debugger->stopping = true;
	pthread_cond_broadcast(&debugger->wake);
	pthread_mutex_unlock(&debugger->lock);
	if (!debugger_join(debugger))
		return false;
	while ((target = debugger->targets)) {
		debugger_let_go(debugger, target);
		debugger_free(debugger, target);
	}
	pthread_cond_destroy(&debugger->wake);
	pthread_mutex_destroy(&debugger->lock);
	free(debugger);
	return true;
}
