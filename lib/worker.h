/* SPDX-License-Identifier: MIT */
/*
 * Calls that may take as long as somebody else likes, or for ever, are made by the threads of a worker: the thread that
 * decides never waits for one. A worker has as many threads as there is work for, up to a limit. Work is given in
 * lanes: the jobs of one lane are done in the order they were given, and lanes do not wait for each other unless every
 * thread hangs. Of the threads one user keeps a few at most.
 *
 * What is done is collected (gp_worker_collect()), or nobody wants to know (config.idle). Functions ending in _locked
 * are called between gp_worker_lock() and gp_worker_unlock(), as are the callbacks that say so.
 */
#ifndef GP_LIB_WORKER_H
#define GP_LIB_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* First in a job of its giver's. */
struct gp_worker_job {
	struct gp_worker_job *next;
};

/* First in something of its giver's, who sets owner; all else is the worker's, from zero on. */
struct gp_lane {
	struct gp_lane *next; /* in the list that it is in */
	uint32_t owner;       /* whose it is; 0: root, who may keep any number of threads */
	uint32_t about;       /* lock: the device its call is for; 0: none in particular. Set by its giver or taken */
	struct gp_worker_job *jobs; /* lock: those that wait */
	bool runs_once;             /* lock: it was given without a job */
	bool is_busy;               /* lock: it waits for a thread or has one */
	bool is_limited, is_left;   /* lock: what its thread does counts; see gp_worker_leave_locked() */
	uint64_t since_ns;          /* lock: when a thread began its job; 0: none works on it */
};

struct gp_worker_config {
	void *context;
	uint32_t thread_min, thread_max; /* thread_min: started at once */
	/* Threads that may do what is limited, and of these for one user; limited_max 0: nothing is limited. */
	uint32_t limited_max, limited_owner_max;
	const uint64_t *late_ns;  /* a call that takes longer hangs */
	uint64_t (*now_ns)(void); /* NULL: gp_clock_ns() */
	bool finishes;            /* what waits at the end is done; else it is forgotten */
	bool collects;            /* what is done waits for gp_worker_collect() */
	int notify_fd;            /* an eventfd that becomes readable then; -1: none */

	/* By a thread. job: the callee's from now on; NULL: the lane was given without one. */
	void (*run)(void *context, struct gp_lane *lane, struct gp_worker_job *job);
	/* Locked: whether the lane's first job may begin; asked again whenever another is done and after each late_ns.
	 * NULL: always. */
	bool (*may_begin)(void *context, const struct gp_lane *lane);
	bool (*is_limited)(const struct gp_lane *lane); /* Locked: whether its first job is. NULL: all are. */
	void (*taken)(void *context, struct gp_lane *lane,
		      struct gp_worker_job *job); /* Locked: run follows. Or NULL. */
	/* By a thread: the lane was left (gp_worker_leave_locked()), and its call has come back. May be NULL. */
	void (*back)(void *context, struct gp_lane *lane);
	/* Locked: the lane has no work, and nobody collects it: it may be freed. May be NULL. */
	void (*idle)(void *context, struct gp_lane *lane);
};

struct gp_worker;

struct gp_worker *gp_worker_create(const struct gp_worker_config *config); /* NULL: no memory, or no thread */
/* Waits for the threads for that long. True: they have ended, and the worker is gone. False: a call hangs; its thread
 * goes on when it comes back, and the last thread frees the worker. NULL is fine. */
bool gp_worker_stop(struct gp_worker *worker, uint64_t wait_ns);

void gp_worker_give(struct gp_worker *worker, struct gp_lane *lane, struct gp_worker_job *job);
/* Lanes that have done what they were given, newest first, the caller's again; NULL: there is none. */
struct gp_lane *gp_worker_collect(struct gp_worker *worker);

void gp_worker_lock(struct gp_worker *worker);
void gp_worker_unlock(struct gp_worker *worker);
/* job NULL: the lane runs once without one, after all its jobs. The second puts it before what is at that place. */
void gp_worker_give_locked(struct gp_worker *worker, struct gp_lane *lane, struct gp_worker_job *job);
void gp_worker_insert_locked(struct gp_worker *worker, struct gp_lane *lane, struct gp_worker_job **at,
			     struct gp_worker_job *job);
/* A lane whose call hangs and that was not left yet: from now on nobody waits for it, and nobody collects it. which:
 * that one only; NULL: any. */
struct gp_lane *gp_worker_leave_locked(struct gp_worker *worker, const struct gp_lane *which);
/* The lanes of that user that wait for a thread, the caller's again. */
struct gp_lane *gp_worker_withdraw_locked(struct gp_worker *worker, uint32_t owner);

/* By run: the call that it makes now is another than before. */
void gp_worker_next_call(struct gp_worker *worker, struct gp_lane *lane);
uint32_t gp_worker_late(struct gp_worker *worker, uint32_t about); /* calls for that device that hang; 0: for any */

struct gp_worker_use {
	uint32_t waiting, running, left; /* lanes; left is among those that run */
};
struct gp_worker_use gp_worker_use(struct gp_worker *worker, const uint32_t *owner); /* NULL: of all */

#endif
