/* SPDX-License-Identifier: MIT */
/* Owns the worker that acts as debugger, with a lane for each client. */
#include <errno.h>
#include <fcntl.h>
#include <gp_deps.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "device/kfd/criu.h"
#include "device/kfd/debugger.h"
#include "device/kfd/trap.h"
#include "lib/clock.h"
#include "lib/worker.h"

#define DEBUGGER_THREADS        32u  /* at most, as jobs need them; all are busy only if calls hang in the driver */
#define DEBUGGER_ATTACHING      16u  /* threads that attach, at most: a process in an exec can hold an attach up */
#define DEBUGGER_USER_ATTACHING 4u   /* of these for one user, at most */
#define DEBUGGER_ORDERS_MAX     64u  /* orders of one client that wait; the core gives up on a client long before */
#define DEBUGGER_REMOVED_MAX    64u  /* queues of one client that left and wait to be opened; more: open them all */
#define DEBUGGER_LEAVING_MAX    256u /* ended clients of a user, not yet released: more of his are not debugged */

uint64_t gp_kfd_debugger_late_ns = 1000000000ull, gp_kfd_debugger_end_ns = 2000000000ull;

enum debugger_kind { DEBUGGER_ATTACH, DEBUGGER_DETACH, DEBUGGER_NEW, DEBUGGER_APPLY, DEBUGGER_REMOVED };

struct debugger_job {
	struct gp_worker_job base;
	enum debugger_kind kind;
	uint32_t fallback, gpu_id, count;
	bool tell;  /* DETACH: the daemon waits for the report; false: the client has ended, this is its last job */
	bool again; /* DETACH: ATTACH follows */
	uint64_t seq;
	struct gp_device_change changes[];
};

/* One client. Freed after its last job. */
struct debugger_target {
	struct gp_lane lane;
	struct debugger_target *next; /* lock */
	uint64_t tag;
	struct gp_kfd_process process;
	uint32_t fallback;         /* of its last ATTACH; the caller's */
	bool gone;                 /* lock: no more jobs come */
	bool is_wanted;            /* lock: the newest of its ATTACH and DETACH is an ATTACH, which did not fail */
	bool enabled;              /* used only by the thread that works on it */
	struct gp_kfd_guard guard; /* the same: sets the process aside if it cannot be debugged */
};

struct gp_kfd_debugger {
	struct gp_backend *backend;
	struct gp_worker *worker;
	struct debugger_target *targets; /* lock */
};

static struct debugger_job *debugger_job(struct gp_worker_job *job)
{
	return (struct debugger_job *)job;
}

static uint32_t debugger_count_locked(const struct debugger_target *target, enum debugger_kind kind)
{
	uint32_t count = 0;

	for (struct gp_worker_job *job = target->lane.jobs; job; job = job->next)
		count += debugger_job(job)->kind == kind;
	return count;
}

/* Another ATTACH may wait by now: that one is to be tried. */
static void debugger_attach_failed(struct gp_kfd_debugger *debugger, struct debugger_target *target)
{
	gp_worker_lock(debugger->worker);
	target->is_wanted = debugger_count_locked(target, DEBUGGER_ATTACH);
	gp_worker_unlock(debugger->worker);
}

static void debugger_attach_job(struct gp_kfd_debugger *debugger, struct debugger_target *target,
				const struct debugger_job *job)
{
	const struct gp_device_host *host = &debugger->backend->host;
	char why[GP_DEVICE_TEXT_SIZE];
	int r = target->enabled ? 0 : gp_kfd_trap_enable(debugger->backend->fd, &target->process);

	target->enabled |= !r;
	if (!r)
		r = gp_kfd_trap_clear_new(debugger->backend->fd, &target->process);
	if (!r) {
		host->mechanism(host->daemon, target->tag, GP_MECHANISM_DEBUGGER, "gpreemptd is its debugger");
		return;
	}
	if (r == -EOPNOTSUPP && job->fallback == GP_MECHANISM_NONE && debugger->backend->config.criu &&
	    !gp_kfd_criu_begin(&target->process, &target->guard)) {
		host->mechanism(
			host->daemon, target->tag, GP_MECHANISM_DEBUGGER,
			"its runtime is not enabled: the whole process is set aside, by the checkpoint interface");
		return;
	}
	if (r == -EALREADY)
		snprintf(why, sizeof(why), "another debugger has it already (rocgdb?)");
	else if (r == -EOPNOTSUPP)
		snprintf(why, sizeof(why), "its runtime was not enabled before its first queue");
	else if (r == -ECHILD)
		snprintf(why, sizeof(why), "gpreemptd cannot be its debugger: its first thread has ended");
	else if (r == -EPERM)
		snprintf(why, sizeof(why),
			 "gpreemptd may not be its debugger: it is being traced, or CAP_SYS_PTRACE is missing");
	else
		snprintf(why, sizeof(why), "gpreemptd could not become its debugger: %s", strerror(-r));
	if (target->enabled)
		gp_kfd_trap_disable(debugger->backend->fd, &target->process);
	target->enabled = false;
	debugger_attach_failed(debugger, target);
	host->mechanism(host->daemon, target->tag, job->fallback, why);
}

/* If the guard was killed, a new guard takes its place; otherwise the process would never go on. */
static int debugger_guard_change(struct debugger_target *target, bool open)
{
	int r = gp_kfd_criu_change(&target->guard, open);

	if (r != -EPIPE)
		return r;
	gp_kfd_criu_end(&target->guard);
	r = gp_kfd_criu_begin(&target->process, &target->guard);
	return r ? r : gp_kfd_criu_change(&target->guard, open);
}

static void debugger_let_go(struct gp_kfd_debugger *debugger, struct debugger_target *target)
{
	if (target->enabled)
		gp_kfd_trap_disable(debugger->backend->fd, &target->process);
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

	GP_ASSERT(job->count); /* its first change says whether gates open or close */
	done.issue_ns = gp_clock_ns();
	if (target->guard.fd >= 0) {
		r = debugger_guard_change(target, job->changes[0].open);
		for (uint32_t i = 0; i < job->count; i++)
			job->changes[i].result = r;
	}
	if (target->enabled)
		r = gp_kfd_trap_change(debugger->backend->fd, &target->process, job->changes, job->count,
				       debugger->backend->config.own[GP_KFD_GRACE].count);
	done.done_ns = gp_clock_ns();
	for (uint32_t i = 0; i < job->count; i++) {
		if (r < 0)
			job->changes[i].result = r;
		if (job->changes[i].result != -EIO)
			continue;
		snprintf(why, sizeof(why), "the driver could not preempt queue %u of process %d",
			 job->changes[i].queue_id, target->process.pid);
		host->failed(host->daemon, job->gpu_id, why);
	}
	host->done(host->daemon, target->tag, &done);
}

static void debugger_run(void *context, struct gp_lane *lane, struct gp_worker_job *base)
{
	struct gp_kfd_debugger *debugger = context;
	struct debugger_target *target = (struct debugger_target *)lane;
	struct debugger_job *job = debugger_job(base);
	const struct gp_device_host *host = &debugger->backend->host;

	switch (job->kind) {
	case DEBUGGER_ATTACH: debugger_attach_job(debugger, target, job); break;
	case DEBUGGER_NEW:
		if (target->enabled)
			gp_kfd_trap_clear_new(debugger->backend->fd, &target->process);
		break;
	case DEBUGGER_APPLY: debugger_apply_job(debugger, target, job); break;
	case DEBUGGER_REMOVED:
		/* If the whole process is set aside, it stays so because of its other queues. */
		if (target->enabled)
			gp_kfd_trap_change(debugger->backend->fd, &target->process, job->changes, job->count, 0);
		break;
	case DEBUGGER_DETACH:
		debugger_let_go(debugger, target);
		if (job->tell)
			host->mechanism(host->daemon, target->tag, GP_MECHANISM_NONE,
					job->again ? "too many of its queues left at once: all were opened" :
						     "its runtime is disabled");
		break;
	}
	free(job);
}

static void debugger_free(struct gp_kfd_debugger *debugger, struct debugger_target *target)
{
	struct debugger_target **at = &debugger->targets;
	struct gp_worker_job *job;

	for (; *at != target; at = &(*at)->next)
		GP_ASSERT(*at);
	*at = target->next;
	while ((job = target->lane.jobs)) {
		target->lane.jobs = job->next;
		free(job);
	}
	close(target->process.pidfd);
	free(target);
}

static void debugger_idle(void *context, struct gp_lane *lane)
{
	struct debugger_target *target = (struct debugger_target *)lane;

	if (target->gone)
		debugger_free(context, target);
}

/* A client that came back, or a new process of the same pid: the daemon is debugger of that pid until the old target's
 * last job is done, and the driver would refuse a second attach. The new target does not wait for a call that hangs: a
 * refusal is better than no answer. */
static bool debugger_is_leaving(const struct gp_kfd_debugger *debugger, pid_t pid)
{
	for (struct debugger_target *target = debugger->targets; target; target = target->next)
		if (target->gone && target->process.pid == pid &&
		    !gp_worker_is_late_locked(debugger->worker, &target->lane))
			return true;
	return false;
}

/* Only attaches are limited, so that orders and releases always find a thread: a process that makes attaching to itself
 * hang holds up a few threads at most. */
static bool debugger_is_limited(const struct gp_lane *lane)
{
	return debugger_job(lane->jobs)->kind == DEBUGGER_ATTACH;
}

static bool debugger_may_begin(void *context, const struct gp_lane *lane)
{
	return !debugger_is_limited(lane) ||
	       !debugger_is_leaving(context, ((const struct debugger_target *)lane)->process.pid);
}

static void debugger_taken(void *context, struct gp_lane *lane, struct gp_worker_job *job)
{
	(void)context;
	lane->about = debugger_job(job)->gpu_id;
}

/* Drops waiting attaches, which a detach makes void, and waiting jobs of queues that left: a detach opens every queue.
 * So the jobs of a client stay bounded, however often it changes its mind. */
static void debugger_drop_void_locked(struct debugger_target *target)
{
	struct gp_worker_job **at = &target->lane.jobs, *job;

	while ((job = *at)) {
		enum debugger_kind kind = debugger_job(job)->kind;

		if (kind != DEBUGGER_ATTACH && kind != DEBUGGER_REMOVED) {
			at = &job->next;
			continue;
		}
		*at = job->next;
		free(job);
	}
}

/* Whether the same job waits already and no job after it undoes it: then doing it once is enough. */
static bool debugger_is_merged_locked(struct debugger_target *target, const struct debugger_job *what)
{
	bool found = false;

	if (what->kind == DEBUGGER_DETACH)
		debugger_drop_void_locked(target);
	for (struct gp_worker_job *at = target->lane.jobs; at && !what->count; at = at->next) {
		struct debugger_job *job = debugger_job(at);

		if (job->kind == what->kind && job->tell == what->tell) {
			job->fallback = what->fallback;
			job->again = what->again;
			found = true;
		} else if (job->kind == DEBUGGER_ATTACH || job->kind == DEBUGGER_DETACH) {
			found = false;
		}
	}
	return found;
}

/* Whether a queue that left needs no job of its own: a detach that waits opens it, and no attach follows. */
static bool debugger_is_opened_locked(const struct debugger_target *target)
{
	bool found = false;

	for (struct gp_worker_job *at = target->lane.jobs; at; at = at->next) {
		enum debugger_kind kind = debugger_job(at)->kind;

		found = kind == DEBUGGER_DETACH || (found && kind != DEBUGGER_ATTACH);
	}
	return found;
}

static int debugger_push(struct gp_kfd_debugger *debugger, struct debugger_target *target,
			 const struct debugger_job *what, const struct gp_device_change *changes)
{
	struct debugger_job *job = malloc(sizeof(*job) + what->count * sizeof(job->changes[0]));
	int r = 0;

	if (!job)
		return -ENOMEM;
	*job = *what;
	if (changes)
		memcpy(job->changes, changes, what->count * sizeof(job->changes[0]));
	gp_worker_lock(debugger->worker);
	if (what->kind == DEBUGGER_APPLY && debugger_count_locked(target, DEBUGGER_APPLY) >= DEBUGGER_ORDERS_MAX)
		r = -EBUSY;
	else if (what->kind == DEBUGGER_REMOVED &&
		 debugger_count_locked(target, DEBUGGER_REMOVED) >= DEBUGGER_REMOVED_MAX)
		r = -EBUSY;
	else if (!(what->kind == DEBUGGER_REMOVED && debugger_is_opened_locked(target)) &&
		 !debugger_is_merged_locked(target, what)) {
		/* Set together with its last job: an ended target is freed when no job is left. */
		target->gone |= job->kind == DEBUGGER_DETACH && !job->tell;
		gp_worker_give_locked(debugger->worker, &target->lane, &job->base);
		job = NULL;
	}
	if (what->kind == DEBUGGER_ATTACH || what->kind == DEBUGGER_DETACH)
		target->is_wanted = what->kind == DEBUGGER_ATTACH;
	gp_worker_unlock(debugger->worker);
	free(job);
	return r;
}

static bool debugger_is_wanted(struct gp_kfd_debugger *debugger, const struct debugger_target *target)
{
	bool is_wanted;

	gp_worker_lock(debugger->worker);
	is_wanted = target->is_wanted;
	gp_worker_unlock(debugger->worker);
	return is_wanted;
}

/* Ended clients that wait to be released: with a driver that hangs they would pile up, each with a descriptor. */
static bool debugger_is_crowded(struct gp_kfd_debugger *debugger, uint32_t owner)
{
	uint32_t count = 0;

	gp_worker_lock(debugger->worker);
	for (const struct debugger_target *target = debugger->targets; target; target = target->next)
		count += target->gone && target->lane.owner == owner;
	gp_worker_unlock(debugger->worker);
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
			target->process.pidfd = fcntl(client->pidfd, F_DUPFD_CLOEXEC, 3);
		if (!target || target->process.pidfd < 0) {
			free(target);
			host->mechanism(host->daemon, client->tag, fallback,
					"gpreemptd is out of memory or descriptors");
			return;
		}
		target->guard.fd = -1;
		target->tag = client->tag;
		target->process.pid = client->pid;
		target->process.owner = target->lane.owner = client->owner;
		gp_worker_lock(debugger->worker);
		target->next = debugger->targets;
		debugger->targets = target;
		gp_worker_unlock(debugger->worker);
		client->backend = target;
	}
	target->fallback = fallback;
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

/* An agent says which of its queues are closed when they come, so orders do not bound the number of these jobs. If too
 * many wait, the daemon lets the process go and attaches again: then every queue is open, and the daemon knows it. A
 * process that the daemon is letting go, or could not attach to, has no queue that the daemon keeps closed. */
void gp_kfd_debugger_queue_removed(struct gp_kfd_debugger *debugger, struct gp_device_client *client,
				   const struct gp_device_change *open)
{
	struct debugger_target *target = client->backend;
	struct debugger_job job = { .kind = DEBUGGER_REMOVED, .gpu_id = open->gpu_id, .count = 1 };
	struct debugger_job detach = { .kind = DEBUGGER_DETACH, .tell = true, .again = true };
	struct debugger_job attach = { .kind = DEBUGGER_ATTACH, .fallback = target->fallback };

	if (debugger_push(debugger, target, &job, open) != -EBUSY || !debugger_is_wanted(debugger, target))
		return;
	if (!debugger_push(debugger, target, &detach, NULL))
		debugger_push(debugger, target, &attach, NULL);
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
	debugger->worker = gp_worker_create(&(struct gp_worker_config){ .context = debugger,
									.thread_min = 1,
									.thread_max = DEBUGGER_THREADS,
									.limited_max = DEBUGGER_ATTACHING,
									.limited_owner_max = DEBUGGER_USER_ATTACHING,
									.late_ns = &gp_kfd_debugger_late_ns,
									.finishes = true,
									.notify_fd = -1,
									.run = debugger_run,
									.may_begin = debugger_may_begin,
									.is_limited = debugger_is_limited,
									.taken = debugger_taken,
									.idle = debugger_idle });
	if (!debugger->worker) {
		free(debugger);
		return gp_error_set(error, -EAGAIN, "cannot start a thread");
	}
	*ret_debugger = debugger;
	return 0;
}

uint32_t gp_kfd_debugger_stuck(struct gp_kfd_debugger *debugger, uint32_t gpu_id)
{
	return gp_worker_late(debugger->worker, gpu_id);
}

/* Also releases clients that still exist: the kernel would do so at the daemon's exit, but fini relies on that only if
 * the driver hangs. */
bool gp_kfd_debugger_destroy(struct gp_kfd_debugger *debugger)
{
	struct debugger_target *target;

	if (!debugger)
		return true;
	if (!gp_worker_stop(debugger->worker, gp_kfd_debugger_end_ns))
		return false;
	while ((target = debugger->targets)) {
		debugger_let_go(debugger, target);
		debugger_free(debugger, target);
	}
	free(debugger);
	return true;
}
