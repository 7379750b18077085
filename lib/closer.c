/* SPDX-License-Identifier: MIT */
/*
 * close() of a file that somebody else made may take as long as he likes: a socket lingers, a file system of his own
 * never answers; and a Unix socket takes with it every file that lies unread in it. A thread that decides must not be
 * the one that waits there, so others close. There are as many as are held up, up to a limit: beyond it what is given
 * stays open until one of them comes back.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include "lib/closer.h"

#define CLOSER_THREADS_MAX 16u /* chosen */

struct closing {
	struct closing *next;
	int fd;
};

/* Of the process, as descriptors are. The threads never end. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct closing *first, **tail; /* lock, as all */
	uint32_t thread_count, pending;
} closer = { .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER };

static void *closer_thread(void *context)
{
	struct closing *closing;

	(void)context;
	pthread_mutex_lock(&closer.lock);
	for (;;) {
		closing = closer.first;
		if (!closing) {
			pthread_cond_wait(&closer.wake, &closer.lock);
			continue;
		}
		closer.first = closing->next;
		pthread_mutex_unlock(&closer.lock);
		close(closing->fd);
		free(closing);
		pthread_mutex_lock(&closer.lock);
		closer.pending--;
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

void gp_close_elsewhere(int fd)
{
	struct closing *closing = malloc(sizeof(*closing));

	if (!closing) {
		close(fd); /* no memory: late is better than never */
		return;
	}
	*closing = (struct closing){ .fd = fd };
	pthread_mutex_lock(&closer.lock);
	if (!closer.first)
		closer.tail = &closer.first;
	*closer.tail = closing;
	closer.tail = &closing->next;
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
