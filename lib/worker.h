/* SPDX-License-Identifier: MIT */
/*
 * A worker's threads make calls that may take as long as another process likes, or for ever: the thread that decides
 * never waits for one. A worker has as many threads as there is work for, up to a limit. Work is given in lanes: the
 * jobs of one lane are done in the order in which they were given, and lanes do not wait for each other unless every
 * thread hangs. One user can keep only a few of the threads.
 *
 * The caller collects what is done (gp_worker_collect()), or is not told (config.idle). Functions ending in _locked are
 * called between gp_worker_lock() and gp_worker_unlock(). The worker calls the callbacks marked "Locked" with its lock
 * held.
 */
#ifndef GP_LIB_WORKER_H
#define GP_LIB_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first member of a job of the caller's. */
struct gp_worker_job {
	struct gp_worker_job *next;
};

/* The first member of a struct of the caller's. The caller sets owner; all else belongs to the worker and begins at
 * zero. */
struct gp_lane {
	struct gp_lane *next; /* in the list that it is in */
	uint32_t owner;       /* its user; 0: root, who may keep any number of threads */
	uint32_t about;       /* lock: the device of its call; 0: none in particular. The caller or taken() sets it */
	struct gp_worker_job *jobs; /* lock: those that wait */
	bool runs_once;             /* lock: the caller gave it without a job */
	bool is_busy;               /* lock: it waits for a thread or has one */
	bool is_limited, is_left;   /* lock: its thread counts as limited; see gp_worker_leave_locked() */
	uint64_t since_ns;          /* lock: when a thread began its job; 0: none works on it */
};

struct gp_worker_config {
	void *context;
	uint32_t thread_min, thread_max; /* thread_min: started at once */
	/* Threads that may do limited jobs, and how many of these for one user; limited_max 0: no job is limited. */
	uint32_t limited_max, limited_owner_max;
	const uint64_t *late_ns;  /* a call that takes longer counts as hanging */
	uint64_t (*now_ns)(void); /* NULL: gp_clock_ns() */
	bool finishes;            /* gp_worker_stop() lets waiting jobs run; else they are dropped */
	bool collects;            /* lanes that are done wait for gp_worker_collect() */
	int notify_fd;            /* an eventfd that becomes readable then; -1: none */

	/* Called by a thread. job belongs to the callee from now on; NULL: the lane was given without one. */
	void (*run)(void *context, struct gp_lane *lane, struct gp_worker_job *job);
	/* Locked: whether the lane's first job may begin. The worker asks again whenever another job is done and after
	 * each late_ns. NULL: always. */
	bool (*may_begin)(void *context, const struct gp_lane *lane);
	bool (*is_limited)(const struct gp_lane *lane); /* Locked: whether its first job is limited. NULL: all are. */
	void (*taken)(void *context, struct gp_lane *lane,
		      struct gp_worker_job *job); /* Locked: run follows. Or NULL. */
	/* Called by a thread: the lane was left (gp_worker_leave_locked()), and its call has come back. May be NULL. */
	void (*back)(void *context, struct gp_lane *lane);
	/* Locked: the lane has no work and will not be collected: it may be freed. May be NULL. */
	void (*idle)(void *context, struct gp_lane *lane);
};

struct gp_worker;

struct gp_worker *gp_worker_create(const struct gp_worker_config *config); /* NULL: no memory, or no thread */
/* Waits up to wait_ns for the threads. True: they have ended, and the worker is gone. False: a call hangs; its thread
 * goes on when it comes back, and the last thread frees the worker. worker may be NULL. */
bool gp_worker_stop(struct gp_worker *worker, uint64_t wait_ns);

void gp_worker_give(struct gp_worker *worker, struct gp_lane *lane, struct gp_worker_job *job);
/* Takes the lanes that are done, newest first; they belong to the caller again. NULL: there is none. */
struct gp_lane *gp_worker_collect(struct gp_worker *worker);

void gp_worker_lock(struct gp_worker *worker);
void gp_worker_unlock(struct gp_worker *worker);
/* job NULL: the lane runs once without one, after all its jobs. The second function puts the job before the one at that
 * place. */
void gp_worker_give_locked(struct gp_worker *worker, struct gp_lane *lane, struct gp_worker_job *job);
void gp_worker_insert_locked(struct gp_worker *worker, struct gp_lane *lane, struct gp_worker_job **at,
			     struct gp_worker_job *job);
/* Leaves behind a lane whose call hangs and that was not left yet: from now on no caller waits for it or collects it.
 * which: only that lane; NULL: any. */
struct gp_lane *gp_worker_leave_locked(struct gp_worker *worker, const struct gp_lane *which);
/* Takes back the lanes of that user that wait for a thread; they belong to the caller again. */
struct gp_lane *gp_worker_withdraw_locked(struct gp_worker *worker, uint32_t owner);

/* The whole process, or the thread that asks its workers, stood still for so long: no call of any worker of this
 * process hangs because of that time. */
void gp_worker_paused(uint64_t ns);

/* Called by run: it begins another call now, whose time counts anew. */
void gp_worker_next_call(struct gp_worker *worker, struct gp_lane *lane);
bool gp_worker_is_late_locked(struct gp_worker *worker, struct gp_lane *lane); /* whether its call hangs */
uint32_t gp_worker_late(struct gp_worker *worker, uint32_t about); /* hanging calls for that device; 0: for any */

struct gp_worker_use {
	uint32_t waiting, running, left; /* lanes; left ones also count as running */
};
struct gp_worker_use gp_worker_use(struct gp_worker *worker, const uint32_t *owner); /* NULL: of all */

#endif
