/* SPDX-License-Identifier: MIT */
/*
 * close() of a file that somebody else made may take as long as he likes: a socket lingers, a file system of his own
 * never answers; and a Unix socket takes with it every file that lies unread in it. A thread that decides must not be
 * the one that waits there, so others close. There are as many as are held up, up to a limit: beyond it what is given
 * stays open until one of them comes back. One user holds a few of them up at most.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include "lib/closer.h"

#define CLOSER_THREADS_MAX  16u /* chosen */
#define CLOSER_USER_THREADS 4u  /* of these for one user who is not root */

struct closing {
	struct closing *next;
	int fd;
	uint32_t owner;
};

/* Of the process, as descriptors are. The threads never end. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct closing *waiting, **waiting_end; /* lock, as all; in the order they came */
	struct closing *begun;                  /* as many as threads at most */
	uint32_t thread_count, pending;
} closer = { .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .waiting_end = &closer.waiting };

static uint32_t closer_count(const struct closing *closing, uint32_t owner)
{
	uint32_t count = 0;

	for (; closing; closing = closing->next)
		count += closing->owner == owner;
	return count;
}

/* The first that waits and whose user may have another one under way, which it is from now on; NULL: there is none. */
static struct closing *closer_begin_locked(void)
{
	struct closing **at = &closer.waiting, *closing;

	while (*at && (*at)->owner && closer_count(closer.begun, (*at)->owner) >= CLOSER_USER_THREADS)
		at = &(*at)->next;
	closing = *at;
	if (!closing)
		return NULL;
	*at = closing->next;
	if (!*at)
		closer.waiting_end = at;
	closing->next = closer.begun;
	closer.begun = closing;
	return closing;
}

static void closer_end_locked(struct closing *closing)
{
	struct closing **at = &closer.begun;

	while (*at != closing)
		at = &(*at)->next;
	*at = closing->next;
	closer.pending--;
	free(closing);
}

static void *closer_thread(void *context)
{
	struct closing *closing;

	(void)context;
	pthread_mutex_lock(&closer.lock);
	for (;;) {
		closing = closer_begin_locked();
		if (!closing) {
			pthread_cond_wait(&closer.wake, &closer.lock);
			continue;
		}
		pthread_mutex_unlock(&closer.lock);
		close(closing->fd);
		pthread_mutex_lock(&closer.lock);
		closer_end_locked(closing);
	}
	return NULL;
}

static void closer_start_locked(void)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;

	if (pthread_attr_init(&attr))
		return;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (!pthread_create(&thread, &attr, closer_thread, NULL))
		closer.thread_count++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
}

void gp_close_elsewhere(int fd, uint32_t owner)
{
	struct closing *closing = malloc(sizeof(*closing));

	if (!closing) {
		close(fd); /* no memory: late is better than never */
		return;
	}
	*closing = (struct closing){ .fd = fd, .owner = owner };
	pthread_mutex_lock(&closer.lock);
	*closer.waiting_end = closing;
	closer.waiting_end = &closing->next;
	closer.pending++;
	/* Without a thread it waits for the next call. */
	if (closer.thread_count < closer.pending && closer.thread_count < CLOSER_THREADS_MAX)
		closer_start_locked();
	pthread_cond_signal(&closer.wake);
	pthread_mutex_unlock(&closer.lock);
}

uint32_t gp_close_pending(void)
{
	uint32_t pending;

	pthread_mutex_lock(&closer.lock);
	pending = closer.pending;
	pthread_mutex_unlock(&closer.lock);
	return pending;
}

uint32_t gp_close_pending_of(uint32_t owner)
{
	uint32_t count;

	pthread_mutex_lock(&closer.lock);
	count = closer_count(closer.waiting, owner) + closer_count(closer.begun, owner);
	pthread_mutex_unlock(&closer.lock);
	return count;
}
