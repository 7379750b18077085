/* SPDX-License-Identifier: MIT */
/*
 * close() of a file that another user made may take as long as that user likes: a socket lingers, a file system of the
 * user's own never answers. And closing a Unix socket closes every file that lies unread in it. A thread that decides
 * must not wait there, so worker threads close. There are as many as are held up, up to a limit; beyond it files stay
 * open until one of the threads comes back. One user can hold up only a few of the threads.
 *
 * Giving back shared memory takes the lock of its file, and a user who shares it can hold that lock for as long as he
 * likes (a write() whose buffer lies in a file system of his own). So other threads do that, too.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "lib/closer.h"
#include "lib/worker.h"

#define CLOSER_THREADS_MAX  16u /* chosen */
#define CLOSER_USER_THREADS 4u  /* of these for one user other than root */

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

/* For the process, like its descriptors; they never end. Files that are held up hold up no memory. */
enum closer_kind { CLOSER_FILES, CLOSER_MEMORY, CLOSER_KINDS };
static struct gp_worker *closers[CLOSER_KINDS];

static void closer_create_all(void)
{
	for (int i = 0; i < CLOSER_KINDS; i++)
		closers[i] = gp_worker_create(&(struct gp_worker_config){ .thread_max = CLOSER_THREADS_MAX,
									  .limited_max = CLOSER_THREADS_MAX,
									  .limited_owner_max = CLOSER_USER_THREADS,
									  .notify_fd = -1,
									  .run = closer_run,
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
	closer_give(CLOSER_FILES, &(struct closing){ .lane.owner = owner, .fd = fd });
}

void gp_unmap_elsewhere(void *memory, size_t size, uint32_t owner)
{
	closer_give(CLOSER_MEMORY, &(struct closing){ .lane.owner = owner, .fd = -1, .memory = memory, .size = size });
}

uint32_t gp_close_pending(void)
{
	return closer_pending(CLOSER_FILES, NULL);
}

uint32_t gp_close_pending_of(uint32_t owner)
{
	return closer_pending(CLOSER_FILES, &owner);
}

uint32_t gp_unmap_pending(void)
{
	return closer_pending(CLOSER_MEMORY, NULL);
}

uint32_t gp_unmap_pending_of(uint32_t owner)
{
	return closer_pending(CLOSER_MEMORY, &owner);
}
