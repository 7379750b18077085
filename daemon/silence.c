/* SPDX-License-Identifier: MIT */
/*
 * Clients whose agent should look at its counters and does not: stopped (SIGSTOP, a debugger), or starved. What the
 * page says of them is old, and an urgent one that has long finished would hold the others out. The daemon then reads
 * how far the device has come from the client's memory, as far as it may; what it reads is as little trusted as the
 * page.
 *
 * Such a read can take as long as the client likes (a page of a file system of its own). So a thread reads; one
 * that does not come back is left behind, another takes its place, and that user is not looked at any more until then.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "daemon/daemon.h"

#define SILENCE_NS        50000000ull   /* an agent that samples does so every few hundred us; chosen */
#define SILENCE_STUCK_NS  1000000000ull /* a read that takes longer is left behind; chosen */
#define SILENCE_STUCK_MAX 4u            /* threads left behind: then nobody is looked at */

struct look_queue {
	uint32_t slot, generation;
	uint64_t address, value;
	bool ok;
};

/* One look at one client. The thread's from when it is taken until it is done. */
struct look {
	struct look *next;
	uint64_t tag;
	uid_t uid;
	uint32_t owner; /* the account's id */
	pid_t pid;
	int pidfd;
	bool left_behind; /* lock */
	uint32_t count;
	struct look_queue queues[];
};

struct gp_silence {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct look *todo, **todo_tail, *done; /* lock */
	struct look *now;                      /* lock: what the thread is reading, since when */
	uint64_t now_ns;
	uint32_t thread_count; /* lock: also those left behind; the last frees this */
	uint32_t stuck_count;
	uint32_t stuck[SILENCE_STUCK_MAX]; /* lock: whose memory the ones left behind are at */
	bool stopping;                     /* lock: the daemon is gone */
	int inbox_fd;
};

ssize_t (*gp_silence_read)(int fd, void *into, size_t size, off_t at) = pread;

/* What is read is told to the client's user, and the client says where: so it must be memory that he may read anyway.
 * After its hello a process can become another, by executing a program that is set-user-ID or that only root may read;
 * the kernel then gives its file to root. Looked at after opening: what was opened stays the memory of that moment. */
static bool look_is_allowed(const struct look *look, const char *path)
{
	struct stat st;

	return !look->uid || (!stat(path, &st) && st.st_uid == look->uid);
}

/* Through the file and not by process_vm_readv(): it also reaches mappings of a driver's memory. */
static void look_read(struct look *look)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", look->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	/* The file is the right process's if that is still there. */
	if (fd >= 0 && (!look_is_allowed(look, path) ||
			(syscall(SYS_pidfd_send_signal, look->pidfd, 0, NULL, 0) && errno == ESRCH))) {
		close(fd);
		fd = -1;
	}
	for (uint32_t i = 0; fd >= 0 && i < look->count; i++)
		look->queues[i].ok = gp_silence_read(fd, &look->queues[i].value, sizeof(uint64_t),
						     (off_t)look->queues[i].address) == sizeof(uint64_t);
	if (fd >= 0)
		close(fd);
	close(look->pidfd);
}

static void silence_free_locked(struct gp_silence *silence)
{
	struct look *look;
	bool last = silence->stopping && !silence->thread_count;

	pthread_mutex_unlock(&silence->lock);
	if (!last)
		return;
	while ((look = silence->done)) {
		silence->done = look->next;
		free(look);
	}
	while ((look = silence->todo)) {
		silence->todo = look->next;
		close(look->pidfd);
		free(look);
	}
	pthread_cond_destroy(&silence->wake);
	pthread_mutex_destroy(&silence->lock);
	free(silence);
}

static void silence_back_locked(struct gp_silence *silence, uint32_t owner)
{
	for (uint32_t i = 0; i < silence->stuck_count; i++)
		if (silence->stuck[i] == owner) {
			silence->stuck[i] = silence->stuck[--silence->stuck_count];
			return;
		}
}

static void *silence_thread(void *context)
{
	struct gp_silence *silence = context;
	uint64_t one = 1;
	struct look *look;

	pthread_mutex_lock(&silence->lock);
	while (!silence->stopping) {
		look = silence->todo;
		if (!look) {
			pthread_cond_wait(&silence->wake, &silence->lock);
			continue;
		}
		silence->todo = look->next;
		if (!silence->todo)
			silence->todo_tail = &silence->todo;
		silence->now = look;
		silence->now_ns = gp_now_ns();
		pthread_mutex_unlock(&silence->lock);
		look_read(look);
		pthread_mutex_lock(&silence->lock);
		if (look->left_behind) {
			silence_back_locked(silence, look->owner);
			free(look);
			if (silence->thread_count - silence->stuck_count > 1)
				break; /* another does our work */
			continue;
		}
		silence->now = NULL;
		look->next = silence->done;
		__atomic_store_n(&silence->done, look, __ATOMIC_RELEASE);
		if (!silence->stopping && write(silence->inbox_fd, &one, sizeof(one)) < 0)
			continue; /* full is as good as written */
	}
	silence->thread_count--;
	silence_free_locked(silence);
	return NULL;
}

static bool silence_start_thread(struct gp_silence *silence)
{
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_mutex_lock(&silence->lock);
	r = pthread_create(&thread, &attr, silence_thread, silence);
	silence->thread_count += !r;
	pthread_mutex_unlock(&silence->lock);
	pthread_attr_destroy(&attr);
	return !r;
}

static struct gp_silence *silence_get(struct gp_daemon *daemon)
{
	struct gp_silence *silence = daemon->silence;

	if (silence)
		return silence;
	silence = calloc(1, sizeof(*silence));
	if (!silence)
		return NULL;
	pthread_mutex_init(&silence->lock, NULL);
	pthread_cond_init(&silence->wake, NULL);
	silence->todo_tail = &silence->todo;
	silence->inbox_fd = daemon->inbox_fd;
	if (!silence_start_thread(silence)) {
		free(silence);
		return NULL;
	}
	daemon->silence = silence;
	return silence;
}

void gp_silence_fini(struct gp_daemon *daemon)
{
	struct gp_silence *silence = daemon->silence;

	if (!silence)
		return;
	daemon->silence = NULL;
	pthread_mutex_lock(&silence->lock);
	silence->stopping = true;
	pthread_cond_broadcast(&silence->wake);
	silence_free_locked(silence);
}

static struct look *look_create(const struct gp_client *client)
{
	struct look *look = calloc(1, sizeof(*look) + client->queue_count * sizeof(look->queues[0]));

	if (!look)
		return NULL;
	look->tag = client->device.tag;
	look->uid = client->uid;
	look->owner = client->owner->id;
	look->pid = client->device.pid;
	look->pidfd = fcntl(client->device.pidfd, F_DUPFD_CLOEXEC, 3);
	for (uint32_t i = 0; i < client->slot_count && look->count < client->queue_count; i++) {
		const struct gp_queue_entry *queue = client->slots[i].queue;

		if (queue)
			look->queues[look->count++] = (struct look_queue){ .slot = queue->wire.slot,
									   .generation = queue->wire.generation,
									   .address = queue->wire.read_pointer };
	}
	if (look->pidfd < 0) {
		free(look);
		return NULL;
	}
	return look;
}

bool gp_silence_look(struct gp_daemon *daemon, struct gp_client *client)
{
	struct gp_silence *silence = silence_get(daemon);
	struct look *look;
	bool barred = !silence;

	if (client->looking)
		return true;
	if (silence) {
		pthread_mutex_lock(&silence->lock);
		barred = silence->stuck_count == SILENCE_STUCK_MAX;
		for (uint32_t i = 0; i < silence->stuck_count; i++)
			barred |= silence->stuck[i] == client->owner->id;
		pthread_mutex_unlock(&silence->lock);
	}
	look = barred ? NULL : look_create(client);
	if (!look) {
		client->counters = GP_COUNTERS_OLD;
		return false;
	}
	client->looking = true;
	pthread_mutex_lock(&silence->lock);
	*silence->todo_tail = look;
	silence->todo_tail = &look->next;
	pthread_cond_signal(&silence->wake);
	pthread_mutex_unlock(&silence->lock);
	return true;
}

/* AQL and SDMA count with 64 bits. A PM4 queue's read pointer is no counter and is not within what is expected. */
static void silence_take_in(struct gp_daemon *daemon, const struct look *look)
{
	struct gp_client *client = gp_client_find(daemon, look->tag);
	bool all = true;

	if (!client)
		return;
	client->looking = false;
	gp_client_synced(daemon, client);
	for (uint32_t i = 0; i < look->count; i++) {
		const struct look_queue *seen = &look->queues[i];
		struct gp_queue_entry *queue = gp_client_queue(client, seen->slot, seen->generation);

		if (!queue)
			continue;
		all &= seen->ok;
		if (seen->ok)
			queue->looked = seen->value;
		gp_queue_sample(daemon, queue);
	}
	client->counters = all ? GP_COUNTERS_DAEMON : GP_COUNTERS_OLD;
}

void gp_silence_take(struct gp_daemon *daemon)
{
	struct gp_silence *silence = daemon->silence;
	struct look *look, *next;

	if (!silence || !__atomic_load_n(&silence->done, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&silence->lock);
	look = silence->done;
	silence->done = NULL;
	pthread_mutex_unlock(&silence->lock);
	for (; look; look = next) {
		next = look->next;
		silence_take_in(daemon, look);
		free(look);
	}
}

/* Looks of that user that have not begun: they would keep one thread each. */
static struct look *silence_withdraw_locked(struct gp_silence *silence, uint32_t owner)
{
	struct look **at = &silence->todo, *look, *withdrawn = NULL;

	while ((look = *at)) {
		if (look->owner != owner) {
			at = &look->next;
			continue;
		}
		*at = look->next;
		look->next = withdrawn;
		withdrawn = look;
	}
	silence->todo_tail = at;
	return withdrawn;
}

static void silence_not_looked(struct gp_daemon *daemon, struct look *looks)
{
	struct gp_client *client;
	struct look *look;

	while ((look = looks)) {
		looks = look->next;
		client = gp_client_find(daemon, look->tag);
		if (client) {
			client->looking = false;
			client->counters = GP_COUNTERS_OLD;
		}
		close(look->pidfd);
		free(look);
	}
}

/* The thread does not come back from somebody's memory. */
static void silence_leave_behind(struct gp_daemon *daemon, uint64_t now_ns)
{
	struct gp_silence *silence = daemon->silence;
	struct gp_client *client = NULL;
	struct look *withdrawn = NULL;
	bool another = false;

	if (!silence)
		return;
	pthread_mutex_lock(&silence->lock);
	if (silence->now && now_ns > silence->now_ns + SILENCE_STUCK_NS) {
		silence->now->left_behind = true;
		silence->stuck[silence->stuck_count++] = silence->now->owner;
		client = gp_client_find(daemon, silence->now->tag);
		withdrawn = silence_withdraw_locked(silence, silence->now->owner);
		silence->now = NULL;
		another = silence->stuck_count < SILENCE_STUCK_MAX;
	}
	pthread_mutex_unlock(&silence->lock);
	if (another)
		silence_start_thread(silence);
	silence_not_looked(daemon, withdrawn);
	if (!client)
		return;
	client->looking = false;
	client->counters = GP_COUNTERS_OLD;
	gp_log_user(daemon, client->owner,
		    "process %d (%s): its memory cannot be read; its counters are old while it does not look itself",
		    client->device.pid, client->name);
}

uint64_t gp_silence_check(struct gp_daemon *daemon, struct gp_client *client, uint64_t now_ns)
{
	uint32_t rounds;

	/* One that is to look only now and then is waited for by nobody. */
	if (!client->page || !client->sample_ns || client->sample_ns > daemon->config.sample_ns || !client->busy) {
		client->watched = false;
		return UINT64_MAX;
	}
	rounds = __atomic_load_n(&client->page->rounds, __ATOMIC_RELAXED);
	if (!client->watched || rounds != client->rounds) {
		client->watched = true;
		client->rounds = rounds;
		client->rounds_ns = now_ns;
		client->counters = GP_COUNTERS_AGENT;
	} else if (now_ns - client->rounds_ns >= SILENCE_NS) {
		silence_leave_behind(daemon, now_ns);
		gp_silence_look(daemon, client);
		client->rounds_ns = now_ns;
	}
	return client->rounds_ns + SILENCE_NS;
}
