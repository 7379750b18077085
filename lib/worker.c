/* SPDX-License-Identifier: MIT */
/* Owns the threads, the lanes that wait for a thread and those that have one. Waits for a call only in
 * gp_worker_stop(). */
#include <gp_deps.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "lib/clock.h"
#include "lib/worker.h"

struct gp_worker {
	struct gp_worker_config config;
	pthread_mutex_t lock;
	pthread_cond_t wake, ended;
	struct gp_lane *ready, **ready_tail, *running, *done; /* lock, as all below; done also atomic */
	uint32_t ready_count, thread_count, waiting_count;
	bool stopping, is_orphan; /* is_orphan: the last thread frees this */
};

static uint64_t worker_paused_ns; /* atomic */

void gp_worker_paused(uint64_t ns)
{
	__atomic_fetch_add(&worker_paused_ns, ns, __ATOMIC_RELAXED);
}

/* The pauses are read first: a time that is a little late never lies before an earlier one. */
static uint64_t worker_now_ns(const struct gp_worker *worker)
{
	uint64_t paused_ns = __atomic_load_n(&worker_paused_ns, __ATOMIC_RELAXED);

	return (worker->config.now_ns ? worker->config.now_ns() : gp_clock_ns()) - paused_ns;
}

static bool worker_is_late(const struct gp_worker *worker, struct gp_lane *lane)
{
	uint64_t now_ns = worker_now_ns(worker);

	if (!lane->since_ns || !worker->config.late_ns)
		return false;
	/* The job began when a pause was over and not known yet. */
	if (lane->since_ns > now_ns)
		lane->since_ns = now_ns;
	return now_ns - lane->since_ns >= __atomic_load_n(worker->config.late_ns, __ATOMIC_RELAXED);
}

static bool worker_has_work(const struct gp_lane *lane)
{
	return lane->jobs || lane->runs_once;
}

static bool worker_may_begin(const struct gp_worker *worker, struct gp_lane *lane)
{
	const struct gp_worker_config *config = &worker->config;
	uint32_t all = 0, own = 0;

	if (config->may_begin && !config->may_begin(config->context, lane))
		return false;
	lane->is_limited = config->limited_max && (!config->is_limited || config->is_limited(lane));
	if (!lane->is_limited)
		return true;
	for (const struct gp_lane *other = worker->running; other; other = other->next) {
		all += other->is_limited;
		own += other->is_limited && other->owner == lane->owner;
	}
	return all < config->limited_max && (own < config->limited_owner_max || !lane->owner);
}

/* Gives the calling thread to the first lane that may begin. NULL: none may. */
static struct gp_lane *worker_begin(struct gp_worker *worker)
{
	struct gp_lane **at = &worker->ready, *lane;

	if (worker->stopping && !worker->config.finishes)
		return NULL;
	while (*at && !worker_may_begin(worker, *at))
		at = &(*at)->next;
	lane = *at;
	if (!lane)
		return NULL;
	*at = lane->next;
	if (!*at)
		worker->ready_tail = at;
	worker->ready_count--;
	lane->next = worker->running;
	worker->running = lane;
	lane->since_ns = worker_now_ns(worker);
	return lane;
}

static void worker_make_ready(struct gp_worker *worker, struct gp_lane *lane)
{
	lane->is_busy = true;
	lane->next = NULL;
	*worker->ready_tail = lane;
	worker->ready_tail = &lane->next;
	worker->ready_count++;
}

static void worker_end(struct gp_worker *worker, struct gp_lane *lane)
{
	const struct gp_worker_config *config = &worker->config;
	struct gp_lane **at = &worker->running;
	bool is_left = lane->is_left;

	for (; *at != lane; at = &(*at)->next)
		GP_ASSERT(*at); /* a lane that ends is running */
	*at = lane->next;
	lane->since_ns = 0;
	lane->is_busy = lane->is_left = lane->is_limited = false;
	if (worker_has_work(lane)) {
		worker_make_ready(worker, lane);
	} else if (config->collects && !is_left && !worker->stopping) {
		lane->next = worker->done;
		__atomic_store_n(&worker->done, lane, __ATOMIC_RELEASE);
		/* A full eventfd wakes the reader too. */
		if (config->notify_fd >= 0 && write(config->notify_fd, &(uint64_t){ 1 }, sizeof(uint64_t)) < 0)
			(void)0;
	} else if (config->idle) {
		config->idle(config->context, lane);
	}
	if (worker->ready && (config->limited_max || config->may_begin)) /* another lane may begin now */
		pthread_cond_broadcast(&worker->wake);
}

/* Waits until there is work. If a lane may not begin yet, waits only until what it waits for is late. */
static void worker_wait(struct gp_worker *worker)
{
	struct timespec until;
	uint64_t ns;

	if (!worker->ready || !worker->config.may_begin) {
		pthread_cond_wait(&worker->wake, &worker->lock);
		return;
	}
	ns = gp_clock_ns() + __atomic_load_n(worker->config.late_ns, __ATOMIC_RELAXED);
	until = (struct timespec){ (time_t)(ns / 1000000000ull), (long)(ns % 1000000000ull) };
	pthread_cond_clockwait(&worker->wake, &worker->lock, CLOCK_MONOTONIC, &until);
}

/* Runs one job of a lane on the calling thread. */
static void worker_run(struct gp_worker *worker, struct gp_lane *lane)
{
	const struct gp_worker_config *config = &worker->config;
	struct gp_worker_job *job = lane->jobs;

	if (job)
		lane->jobs = job->next;
	else
		lane->runs_once = false;
	if (config->taken)
		config->taken(config->context, lane, job);
	pthread_mutex_unlock(&worker->lock);
	config->run(config->context, lane, job);
	pthread_mutex_lock(&worker->lock);
	while (lane->is_left && config->back) {
		lane->is_left = false;
		lane->since_ns = worker_now_ns(worker);
		pthread_mutex_unlock(&worker->lock);
		config->back(config->context, lane);
		pthread_mutex_lock(&worker->lock);
	}
	worker_end(worker, lane);
}

static void worker_free(struct gp_worker *worker)
{
	struct gp_lane *lists[] = { worker->ready, worker->done }, *lane, *next;

	for (uint32_t i = 0; worker->config.idle && i < 2; i++)
		for (lane = lists[i]; lane; lane = next) {
			next = lane->next;
			worker->config.idle(worker->config.context, lane);
		}
	pthread_cond_destroy(&worker->ended);
	pthread_cond_destroy(&worker->wake);
	pthread_mutex_destroy(&worker->lock);
	free(worker);
}

static void *worker_thread(void *context)
{
	struct gp_worker *worker = context;
	struct gp_lane *lane;
	bool is_last;

	pthread_mutex_lock(&worker->lock);
	for (;;) {
		worker->waiting_count++;
		while (!(lane = worker_begin(worker)) && !worker->stopping)
			worker_wait(worker);
		worker->waiting_count--;
		if (!lane)
			break;
		if (worker->ready) /* another thread shall watch the lanes that wait */
			pthread_cond_signal(&worker->wake);
		worker_run(worker, lane);
	}
	is_last = !--worker->thread_count && worker->is_orphan;
	pthread_cond_signal(&worker->ended);
	pthread_mutex_unlock(&worker->lock);
	if (is_last)
		worker_free(worker);
	return NULL;
}

/* The thread blocks all signals: they are for the decision thread. */
static bool worker_start_thread(struct gp_worker *worker)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	if (pthread_attr_init(&attr))
		return false;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, &attr, worker_thread, worker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	worker->thread_count += !r;
	return !r;
}

struct gp_worker *gp_worker_create(const struct gp_worker_config *config)
{
	struct gp_worker *worker = calloc(1, sizeof(*worker));
	bool started = true;

	if (!worker)
		return NULL;
	worker->config = *config;
	worker->ready_tail = &worker->ready;
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->wake, NULL);
	pthread_cond_init(&worker->ended, NULL);
	pthread_mutex_lock(&worker->lock);
	while (started && worker->thread_count < config->thread_min)
		started = worker_start_thread(worker);
	pthread_mutex_unlock(&worker->lock);
	if (started)
		return worker;
	gp_worker_stop(worker, 0);
	return NULL;
}

bool gp_worker_stop(struct gp_worker *worker, uint64_t wait_ns)
{
	struct timespec until;
	bool is_late = !wait_ns, has_ended;

	if (!worker)
		return true;
	clock_gettime(CLOCK_MONOTONIC, &until); /* CLOCK_REALTIME may be set back meanwhile */
	wait_ns += (uint64_t)until.tv_nsec;
	until = (struct timespec){ until.tv_sec + (time_t)(wait_ns / 1000000000ull), (long)(wait_ns % 1000000000ull) };
	pthread_mutex_lock(&worker->lock);
	worker->stopping = true;
	pthread_cond_broadcast(&worker->wake);
	while (worker->thread_count && !is_late)
		is_late = pthread_cond_clockwait(&worker->ended, &worker->lock, CLOCK_MONOTONIC, &until) != 0;
	has_ended = !worker->thread_count;
	worker->is_orphan = !has_ended;
	pthread_mutex_unlock(&worker->lock);
	if (has_ended)
		worker_free(worker);
	return has_ended;
}

void gp_worker_lock(struct gp_worker *worker)
{
	pthread_mutex_lock(&worker->lock);
}

void gp_worker_unlock(struct gp_worker *worker)
{
	pthread_mutex_unlock(&worker->lock);
}

void gp_worker_give_locked(struct gp_worker *worker, struct gp_lane *lane, struct gp_worker_job *job)
{
	struct gp_worker_job **at = &lane->jobs;

	while (*at && job)
		at = &(*at)->next;
	gp_worker_insert_locked(worker, lane, at, job);
}

void gp_worker_insert_locked(struct gp_worker *worker, struct gp_lane *lane, struct gp_worker_job **at,
			     struct gp_worker_job *job)
{
	if (job) {
		job->next = *at;
		*at = job;
	} else {
		lane->runs_once = true;
	}
	if (!lane->is_busy) {
		worker_make_ready(worker, lane);
		if (worker->ready_count > worker->waiting_count && worker->thread_count < worker->config.thread_max)
			worker_start_thread(worker);
	}
	pthread_cond_signal(&worker->wake);
}

void gp_worker_give(struct gp_worker *worker, struct gp_lane *lane, struct gp_worker_job *job)
{
	pthread_mutex_lock(&worker->lock);
	gp_worker_give_locked(worker, lane, job);
	pthread_mutex_unlock(&worker->lock);
}

struct gp_lane *gp_worker_collect(struct gp_worker *worker)
{
	struct gp_lane *done;

	if (!worker || !__atomic_load_n(&worker->done, __ATOMIC_ACQUIRE))
		return NULL;
	pthread_mutex_lock(&worker->lock);
	done = worker->done;
	__atomic_store_n(&worker->done, NULL, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&worker->lock);
	return done;
}

struct gp_lane *gp_worker_leave_locked(struct gp_worker *worker, const struct gp_lane *which)
{
	struct gp_lane *lane = worker->running;

	while (lane && ((which && lane != which) || lane->is_left || !worker_is_late(worker, lane)))
		lane = lane->next;
	if (lane)
		lane->is_left = true;
	return lane;
}

struct gp_lane *gp_worker_withdraw_locked(struct gp_worker *worker, uint32_t owner)
{
	struct gp_lane **at = &worker->ready, *lane, *withdrawn = NULL;

	while ((lane = *at)) {
		if (lane->owner != owner) {
			at = &lane->next;
			continue;
		}
		*at = lane->next;
		lane->next = withdrawn;
		withdrawn = lane;
		lane->is_busy = false;
		worker->ready_count--;
	}
	worker->ready_tail = at;
	return withdrawn;
}

struct gp_worker_use gp_worker_use(struct gp_worker *worker, const uint32_t *owner)
{
	struct gp_worker_use use = { 0 };
	const struct gp_lane *lane;

	pthread_mutex_lock(&worker->lock);
	for (lane = worker->ready; lane; lane = lane->next)
		use.waiting += !owner || lane->owner == *owner;
	for (lane = worker->running; lane; lane = lane->next) {
		if (owner && lane->owner != *owner)
			continue;
		use.running++;
		use.left += lane->is_left;
	}
	pthread_mutex_unlock(&worker->lock);
	return use;
}

bool gp_worker_is_late_locked(struct gp_worker *worker, struct gp_lane *lane)
{
	return worker_is_late(worker, lane);
}

uint32_t gp_worker_late(struct gp_worker *worker, uint32_t about)
{
	uint32_t count = 0;

	pthread_mutex_lock(&worker->lock);
	for (struct gp_lane *lane = worker->running; lane; lane = lane->next)
		count += worker_is_late(worker, lane) && (!about || !lane->about || lane->about == about);
	pthread_mutex_unlock(&worker->lock);
	return count;
}

void gp_worker_next_call(struct gp_worker *worker, struct gp_lane *lane)
{
	pthread_mutex_lock(&worker->lock);
	lane->since_ns = worker_now_ns(worker);
	pthread_mutex_unlock(&worker->lock);
}
