/* SPDX-License-Identifier: MIT */
/*
 * close() of a file that another user made may take as long as that user likes: a socket lingers, a file system of the
 * user's own never answers. And closing a Unix socket closes every file that lies unread in it. A thread that decides
 * must not wait there, so worker threads close. There are as many as are held up, up to a limit; beyond it files stay
 * open until one of the threads comes back. One user can hold up only a few of the threads.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include "lib/closer.h"
#include "lib/worker.h"

#define CLOSER_THREADS_MAX  16u /* chosen */
#define CLOSER_USER_THREADS 4u  /* of these for one user other than root */

struct closing {
	struct gp_lane lane;
	int fd;
};

static void closer_run(void *context, struct gp_lane *lane, struct gp_worker_job *job)
{
	(void)context, (void)job;
	close(((struct closing *)lane)->fd);
}

static void closer_idle(void *context, struct gp_lane *lane)
{
	(void)context;
	free(lane);
}

static struct gp_worker *closer; /* one for the process, like its descriptors; it never ends */

static void closer_create(void)
{
	closer = gp_worker_create(&(struct gp_worker_config){ .thread_max = CLOSER_THREADS_MAX,
							      .limited_max = CLOSER_THREADS_MAX,
							      .limited_owner_max = CLOSER_USER_THREADS,
							      .notify_fd = -1,
							      .run = closer_run,
							      .idle = closer_idle });
}

static struct gp_worker *closer_get(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, closer_create);
	return closer;
}

void gp_close_elsewhere(int fd, uint32_t owner)
{
	struct closing *closing = closer_get() ? calloc(1, sizeof(*closing)) : NULL;

	if (!closing) {
		close(fd); /* no memory: closing late is better than never */
		return;
	}
	closing->fd = fd;
	closing->lane.owner = owner;
	gp_worker_give(closer, &closing->lane, NULL);
}

static uint32_t closer_pending(const uint32_t *owner)
{
	struct gp_worker_use use = closer_get() ? gp_worker_use(closer, owner) : (struct gp_worker_use){ 0 };

	return use.waiting + use.running;
}

uint32_t gp_close_pending(void)
{
	return closer_pending(NULL);
}

uint32_t gp_close_pending_of(uint32_t owner)
{
	return closer_pending(&owner);
}
