/* SPDX-License-Identifier: MIT */
/*
 * close() of a file that another user made may take as long as that user likes: a socket lingers, a file system of the
 * user's own never answers. And closing a Unix socket closes every file that lies unread in it. A thread that decides
 * must not wait there, so worker threads close. There are as many as are held up, up to a limit; beyond it files stay
 * open until one of the threads comes back. One user can hold up only a few of the threads.
 *
 * Files that wait hold descriptors. So those of a user who has many waiting, and of anybody once all users have many,
 * are closed by the end of a thread: the kernel lets no socket linger then. Why not all of them: each takes a thread
 * of its own, which nobody waits for, and a copy of the table of descriptors.
 *
 * Giving back shared memory takes the lock of its file, and a user who shares it can hold that lock for as long as he
 * likes (a write() whose buffer lies in a file system of his own). So other threads do that, too.
 */
#include <linux/close_range.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "lib/closer.h"
#include "lib/worker.h"

#define CLOSER_THREADS_MAX  16u  /* chosen */
#define CLOSER_USER_THREADS 4u   /* of these for one user other than root */
#define CLOSER_ALL_WAITING  512u /* files that wait for a thread; chosen, half of where listen.c stops accepting */
#define CLOSER_STACK        65536u

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
	int fd;
	sem_t is_alone, go_on;
	bool failed;
};

/* Takes a table of descriptors of its own, and ends with it. It closes none of them before: another thread may just
 * have closed one that lingers, and this would be the last. */
static void *closer_end_thread(void *context)
{
	struct closer_end *end = context;
	unsigned int fd = (unsigned int)end->fd;

	end->failed = close_range(fd + 1, ~0u, CLOSE_RANGE_UNSHARE) && unshare(CLONE_FILES);
	sem_post(&end->is_alone);
	while (sem_wait(&end->go_on)) {}
	sem_destroy(&end->is_alone);
	sem_destroy(&end->go_on);
	free(end);
	return NULL;
}

static bool closer_end_begin(struct closer_end *end)
{
	pthread_attr_t attr;
	pthread_t thread;
	bool began;

	sem_init(&end->is_alone, 0, 0);
	sem_init(&end->go_on, 0, 0);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, CLOSER_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	began = !pthread_create(&thread, &attr, closer_end_thread, end);
	pthread_attr_destroy(&attr);
	return began;
}

/* False: nothing has changed. */
static bool closer_end_with_thread(int fd)
{
	struct closer_end *end = calloc(1, sizeof(*end));
	bool failed;

	if (!end)
		return false;
	end->fd = fd;
	if (!closer_end_begin(end)) {
		free(end);
		return false;
	}
	while (sem_wait(&end->is_alone)) {}
	failed = end->failed;
	if (!failed)
		close(fd); /* the thread has it, too */
	sem_post(&end->go_on);
	return !failed;
}

static void closer_end_run(void *context, struct gp_lane *lane, struct gp_worker_job *job)
{
	if (!closer_end_with_thread(((struct closing *)lane)->fd))
		closer_run(context, lane, job);
}

/* For the process, like its descriptors; they never end. Files that are held up hold up no memory. */
enum closer_kind { CLOSER_FILES, CLOSER_ENDS, CLOSER_MEMORY, CLOSER_KINDS };
static struct gp_worker *closers[CLOSER_KINDS];

static void closer_create_all(void)
{
	for (int i = 0; i < CLOSER_KINDS; i++)
		closers[i] = gp_worker_create(
			&(struct gp_worker_config){ .thread_max = i == CLOSER_ENDS ? 1 : CLOSER_THREADS_MAX,
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
