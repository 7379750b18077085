/* SPDX-License-Identifier: MIT */
/*
 * Clients whose agent should sample its counters and does not: the process is stopped (SIGSTOP, a debugger) or starved.
 * The page then has old figures, and an urgent client that has long finished would hold the others out. So the daemon
 * reads from the client's memory how far the device has come, as far as it may. It trusts what it reads as little as
 * the page.
 *
 * Such a read can take as long as the client likes (a page of a file system of its own; the lock of its folder in
 * /proc). So a helper process reads, and a worker thread waits for it. While the helper does not come back, the daemon
 * reads less of that user's memory, or none.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/daemon.h"
#include "daemon/process.h"
#include "lib/aside.h"
#include "lib/living.h"
#include "lib/worker.h"

#define SILENCE_NS      50000000ull /* an agent that samples does so every few hundred us; chosen */
#define SILENCE_THREADS 4u          /* at most one for each user; when all are left behind, no memory is read */

struct look_queue {
	uint32_t slot, generation;
	uint64_t address, value;
	bool ok;
};

/* A thread that takes longer is left behind: without helpers it may hang itself. Chosen. */
static const uint64_t silence_stuck_ns = 1000000000ull;

_Static_assert(sizeof(struct look_queue) * (GP_WIRE_QUEUE_MAX + 1) <= GP_ASIDE_SIZE_MAX, "a helper takes them");

/* What the helper is told and says. */
struct look_data {
	uid_t uid;
	pid_t pid;
	uint32_t count;
	struct look_queue queues[GP_WIRE_QUEUE_MAX];
};

/* One read of one client's memory. It belongs to the thread from gp_worker_give() until the daemon collects it. */
struct look {
	struct gp_lane lane;
	uint64_t tag;
	uint32_t owner;
	int pidfd, result;
	struct look_data data; /* the last member: only the queues there are have memory */
};

ssize_t (*gp_silence_read)(int fd, void *into, size_t size, off_t at) = pread;

/* The daemon tells the client's user what it reads, and the client says where: so it must be memory that the user may
 * read anyway. After HELLO a process can execute a program that is set-user-ID or that only root may read; the kernel
 * then gives the file to root. The daemon checks this after opening: what it opened stays the memory of that moment. */
static bool look_is_allowed(const struct look_data *look, const char *path)
{
	struct stat st;

	return !look->uid || (!stat(path, &st) && st.st_uid == look->uid);
}

/* In a helper. Reads through the file and not by process_vm_readv(): the file also reaches mappings of a driver's
 * memory. */
static void look_aside(void *data)
{
	struct look_data *look = data;
	bool allowed;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/mem", look->pid, gp_living_thread(look->pid));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	allowed = look_is_allowed(look, path);
	for (uint32_t i = 0; i < look->count && allowed; i++)
		look->queues[i].ok = gp_silence_read(fd, &look->queues[i].value, sizeof(uint64_t),
						     (off_t)look->queues[i].address) == sizeof(uint64_t);
	close(fd);
}

static size_t look_size(uint32_t count)
{
	return offsetof(struct look_data, queues) + count * sizeof(struct look_queue);
}

static void look_read(void *context, struct gp_lane *lane, struct gp_worker_job *job)
{
	struct look *look = (struct look *)lane;

	(void)context, (void)job;
	look->result =
		gp_aside_call(GP_ASIDE_CLIENT(look->owner), look_aside, &look->data, look_size(look->data.count));
	/* If the process has not ended, all this time the number was its own. */
	for (uint32_t i = 0; i < look->data.count && !gp_process_is_there(look->pidfd); i++)
		look->data.queues[i].ok = false;
}

static void look_free(void *context, struct gp_lane *lane)
{
	(void)context;
	close(((struct look *)lane)->pidfd);
	free(lane);
}

static struct gp_worker *silence_get(struct gp_daemon *daemon)
{
	if (!daemon->silence)
		daemon->silence = gp_worker_create(&(struct gp_worker_config){ .thread_min = 1,
									       .thread_max = SILENCE_THREADS,
									       .limited_max = SILENCE_THREADS,
									       .limited_owner_max = 1,
									       .late_ns = &silence_stuck_ns,
									       .now_ns = gp_now_ns,
									       .collects = true,
									       .notify_fd = daemon->inbox.fd,
									       .run = look_read,
									       .idle = look_free });
	return daemon->silence;
}

void gp_silence_fini(struct gp_daemon *daemon)
{
	gp_worker_stop(daemon->silence, 0);
	daemon->silence = NULL;
}

/* Not 0, which the worker does not limit: root's clients have the same limits as others. */
static uint32_t silence_owner(const struct gp_client *client)
{
	return client->owner->id + 1;
}

/* A read of that user's memory does not come back, or no thread is left. */
static bool silence_is_barred(struct gp_worker *worker, const struct gp_client *client)
{
	uint32_t owner = silence_owner(client);

	return !worker || gp_worker_use(worker, &owner).left || gp_worker_use(worker, NULL).left == SILENCE_THREADS;
}

static struct look *look_create(const struct gp_client *client)
{
	struct look *look = calloc(1, offsetof(struct look, data) + look_size(client->queue_count));

	if (!look)
		return NULL;
	look->tag = client->device.tag;
	look->owner = client->device.owner;
	look->data.uid = client->uid;
	look->data.pid = client->device.pid;
	look->lane.owner = silence_owner(client);
	look->pidfd = fcntl(client->device.pidfd, F_DUPFD_CLOEXEC, 3);
	for (uint32_t i = 0; i < client->slot_count && look->data.count < client->queue_count; i++) {
		const struct gp_queue_entry *queue = client->slots[i].queue;

		if (queue)
			look->data.queues[look->data.count++] =
				(struct look_queue){ .slot = queue->wire.slot,
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
	struct gp_worker *worker = silence_get(daemon);
	struct look *look;

	if (client->looking)
		return true;
	look = silence_is_barred(worker, client) ? NULL : look_create(client);
	if (!look) {
		client->counters = GP_COUNTERS_OLD;
		return false;
	}
	client->looking = true;
	gp_worker_give(worker, &look->lane, NULL);
	return true;
}

static void silence_say(struct gp_daemon *daemon, const struct gp_client *client)
{
	gp_log_user(daemon, client->owner,
		    "process %d (%s): its memory cannot be read; its counters are old while it does not look itself",
		    client->device.pid, client->name);
}

/* AQL and SDMA count with 64 bits. The read pointer of a PM4 queue is no counter; page.c ignores what is not between
 * completed and written. */
static void silence_take_in(struct gp_daemon *daemon, const struct look *look)
{
	struct gp_client *client = gp_client_find(daemon, look->tag);
	bool all = true;

	if (!client)
		return;
	client->looking = false;
	gp_client_synced(daemon, client);
	if (look->result == -ETIMEDOUT)
		silence_say(daemon, client);
	for (uint32_t i = 0; i < look->data.count; i++) {
		const struct look_queue *seen = &look->data.queues[i];
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
	struct gp_lane *lane, *next;

	for (lane = gp_worker_collect(daemon->silence); lane; lane = next) {
		next = lane->next;
		silence_take_in(daemon, (struct look *)lane);
		look_free(NULL, lane);
	}
}

static struct gp_client *silence_not_looked(struct gp_daemon *daemon, const struct look *look)
{
	struct gp_client *client = gp_client_find(daemon, look->tag);

	if (client) {
		client->looking = false;
		client->counters = GP_COUNTERS_OLD;
	}
	return client;
}

/* If a thread does not come back from a client's memory, leaves it behind and takes the user's waiting reads back. */
static void silence_leave_behind(struct gp_daemon *daemon)
{
	struct gp_client *client = NULL;
	struct gp_lane *left, *lane = NULL, *next;

	if (!daemon->silence)
		return;
	gp_worker_lock(daemon->silence);
	left = gp_worker_leave_locked(daemon->silence, NULL);
	if (left) {
		client = silence_not_looked(daemon, (struct look *)left);
		lane = gp_worker_withdraw_locked(daemon->silence, left->owner);
	}
	gp_worker_unlock(daemon->silence);
	for (; lane; lane = next) {
		next = lane->next;
		silence_not_looked(daemon, (struct look *)lane);
		look_free(NULL, lane);
	}
	if (client)
		silence_say(daemon, client);
}

uint64_t gp_silence_check(struct gp_daemon *daemon, struct gp_client *client, uint64_t now_ns)
{
	uint32_t rounds;

	/* No decision waits for an agent that samples rarely: it does not count as silent. */
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
		silence_leave_behind(daemon);
		gp_silence_look(daemon, client);
		client->rounds_ns = now_ns;
	}
	return client->rounds_ns + SILENCE_NS;
}
