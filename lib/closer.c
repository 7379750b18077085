/* SPDX-License-Identifier: MIT */
/*
 * close() of a file that another user made may take as long as that user likes: a socket lingers, a file system of the
 * user's own never answers. And closing a Unix socket closes every file that lies unread in it. A thread that decides
 * must not wait there, so worker threads close. There are as many as are held up, up to a limit; beyond it files stay
 * open until one of the threads comes back. One user can hold up only a few of the threads.
 *
 * Files that wait hold descriptors. So those of a user who has many waiting, and of anybody once all users have many,
 * are closed by the end of a thread: the kernel lets no socket linger then. Such a thread has a table of descriptors of
 * its own with that file in it, and nothing else of the process's: what ends first may hang, and would keep the rest
 * open. It takes the file from the process as another process would, and its table is a copy of a keeper's, which began
 * before there was anything of others to copy. A worker thread waits for its end, so that it counts until it is gone.
 *
 * Giving back shared memory takes the lock of its file, and a user who shares it can hold that lock for as long as he
 * likes (a write() whose buffer lies in a file system of his own). So other threads do that, too.
 */
#include <errno.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "lib/closer.h"
#include "lib/worker.h"

#define CLOSER_THREADS_MAX  16u  /* chosen */
#define CLOSER_USER_THREADS 4u   /* of these for one user other than root */
#define CLOSER_ALL_WAITING  512u /* files that wait for a thread; chosen, half of where listen.c stops accepting */
#define CLOSER_STACK        65536u
#define CLOSER_LOOK_NS      50000u /* until the first look whether a thread has gone; then twice as long each time … */
#define CLOSER_LOOK_MAX_NS  8000000u /* … up to this; both chosen */

struct closing {
	struct gp_lane lane;
	int fd;       /* -1: it is memory */
	void *memory; /* which this process maps, shared */
	size_t size;
};

static void closer_run(void *context, struct gp_lane *lane, struct gp_worker_job *job)
{
	const struct closing *closing = (const struct closing *)lane;

	(void)context, (void)job;
	if (closing->fd >= 0) {
		close(closing->fd);
		return;
	}
	/* The user may map it for ever, and what this process touched counts as this process's memory until then. */
	madvise(closing->memory, closing->size, MADV_REMOVE);
	munmap(closing->memory, closing->size);
}

static void closer_idle(void *context, struct gp_lane *lane)
{
	(void)context;
	free(lane);
}

struct closer_end {
	struct closer_end *next; /* that the keeper has yet to begin */
	int fd;
	pid_t thread; /* 0: there is none */
	sem_t is_begun, go_on;
};

/* pidfd: of this process, in the keeper's table alone; -1: no thread ends to close a file. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t given;
	struct closer_end *ends; /* lock */
	bool began;              /* before the process had a file of another user */
	int pidfd;
	sem_t is_ready;
} keeper = { .lock = PTHREAD_MUTEX_INITIALIZER, .given = PTHREAD_COND_INITIALIZER, .pidfd = -1 };

static bool closer_create_thread(void *(*run)(void *context), void *context)
{
	pthread_attr_t attr;
	sigset_t all, before;
	pthread_t thread;
	bool began;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, CLOSER_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	began = !pthread_create(&thread, &attr, run, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return began;
}

/* Begins with the keeper's table, and ends with one of its own in which the file is. It does not free end: a worker
 * thread waits for it. */
static void *closer_end_thread(void *context)
{
	struct closer_end *end = context;

	/* If this fails, a worker thread closes the file. */
	if (!unshare(CLONE_FILES))
		syscall(SYS_pidfd_getfd, keeper.pidfd, end->fd, 0);
	end->thread = (pid_t)syscall(SYS_gettid);
	sem_post(&end->is_begun);
	while (sem_wait(&end->go_on)) {}
	return NULL;
}

/* Has a table without any file of the process. Its threads begin with that one. */
static void *closer_keeper_thread(void *context)
{
	(void)context;
	if (!close_range(0, ~0u, CLOSE_RANGE_UNSHARE))
		keeper.pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	sem_post(&keeper.is_ready);
	if (keeper.pidfd < 0)
		return NULL;
	pthread_mutex_lock(&keeper.lock);
	for (;;) {
		struct closer_end *end = keeper.ends;

		if (!end) {
			pthread_cond_wait(&keeper.given, &keeper.lock);
			continue;
		}
		keeper.ends = end->next;
		pthread_mutex_unlock(&keeper.lock);
		if (!closer_create_thread(closer_end_thread, end))
			sem_post(&end->is_begun);
		pthread_mutex_lock(&keeper.lock);
	}
	return NULL;
}

static void closer_keeper_begin(void)
{
	sem_init(&keeper.is_ready, 0, 0);
	if (closer_create_thread(closer_keeper_thread, NULL))
		while (sem_wait(&keeper.is_ready)) {}
	keeper.began = keeper.pidfd >= 0;
}

void gp_close_prepare(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, closer_keeper_begin);
}

/* pthread_join() would come back earlier: a thread's stack is given back before its files are closed. */
static void closer_wait_until_gone(pid_t thread)
{
	struct timespec pause = { .tv_nsec = CLOSER_LOOK_NS };

	while (!syscall(SYS_tgkill, getpid(), thread, 0) || errno != ESRCH) {
		nanosleep(&pause, NULL);
		pause.tv_nsec = 2 * pause.tv_nsec < (long)CLOSER_LOOK_MAX_NS ? 2 * pause.tv_nsec : CLOSER_LOOK_MAX_NS;
	}
}

/* A worker thread: what hangs here keeps one of the few of its owner. */
static void closer_end_run(void *context, struct gp_lane *lane, struct gp_worker_job *job)
{
	struct closer_end end = { .fd = ((const struct closing *)lane)->fd };

	if (!keeper.began) {
		closer_run(context, lane, job);
		return;
	}
	sem_init(&end.is_begun, 0, 0);
	sem_init(&end.go_on, 0, 0);
	pthread_mutex_lock(&keeper.lock);
	end.next = keeper.ends;
	keeper.ends = &end;
	pthread_cond_signal(&keeper.given);
	pthread_mutex_unlock(&keeper.lock);
	while (sem_wait(&end.is_begun)) {}
	closer_run(context, lane, job); /* the thread has the file, too */
	sem_post(&end.go_on);
	if (end.thread)
		closer_wait_until_gone(end.thread);
	sem_destroy(&end.is_begun);
	sem_destroy(&end.go_on);
}

/* For the process, like its descriptors; they never end. Files that are held up hold up no memory. */
enum closer_kind { CLOSER_FILES, CLOSER_ENDS, CLOSER_MEMORY, CLOSER_KINDS };
static struct gp_worker *closers[CLOSER_KINDS];

static void closer_create_all(void)
{
	for (int i = 0; i < CLOSER_KINDS; i++)
		closers[i] = gp_worker_create(
			&(struct gp_worker_config){ .thread_max = CLOSER_THREADS_MAX,
						    .limited_max = CLOSER_THREADS_MAX,
						    .limited_owner_max = CLOSER_USER_THREADS,
						    .notify_fd = -1,
						    .run = i == CLOSER_ENDS ? closer_end_run : closer_run,
						    .idle = closer_idle });
}

static struct gp_worker *closer_get(enum closer_kind kind)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, closer_create_all);
	return closers[kind];
}

static uint32_t closer_pending(enum closer_kind kind, const uint32_t *owner)
{
	struct gp_worker *closer = closer_get(kind);
	struct gp_worker_use use = closer ? gp_worker_use(closer, owner) : (struct gp_worker_use){ 0 };

	return use.waiting + use.running;
}

static void closer_give(enum closer_kind kind, const struct closing *what)
{
	struct gp_worker *closer = closer_get(kind);
	struct closing *closing = closer ? calloc(1, sizeof(*closing)) : NULL;

	if (!closing) { /* no memory: closing late is better than never */
		struct closing now = *what;

		closer_run(NULL, &now.lane, NULL);
		return;
	}
	*closing = *what;
	gp_worker_give(closer, &closing->lane, NULL);
}

void gp_close_elsewhere(int fd, uint32_t owner)
{
	bool many = closer_pending(CLOSER_FILES, &owner) >= GP_CLOSE_USER_MAX ||
		    closer_pending(CLOSER_FILES, NULL) >= CLOSER_ALL_WAITING;

	closer_give(many ? CLOSER_ENDS : CLOSER_FILES, &(struct closing){ .lane.owner = owner, .fd = fd });
}

void gp_unmap_elsewhere(void *memory, size_t size, uint32_t owner)
{
	closer_give(CLOSER_MEMORY, &(struct closing){ .lane.owner = owner, .fd = -1, .memory = memory, .size = size });
}

uint32_t gp_close_pending(void)
{
	return closer_pending(CLOSER_FILES, NULL) + closer_pending(CLOSER_ENDS, NULL);
}

uint32_t gp_close_pending_of(uint32_t owner)
{
	return closer_pending(CLOSER_FILES, &owner) + closer_pending(CLOSER_ENDS, &owner);
}

uint32_t gp_unmap_pending(void)
{
	return closer_pending(CLOSER_MEMORY, NULL);
}

uint32_t gp_unmap_pending_of(uint32_t owner)
{
	return closer_pending(CLOSER_MEMORY, &owner);
}
