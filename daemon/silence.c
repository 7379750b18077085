/* SPDX-License-Identifier: MIT */
/*
 * Clients whose agent should look at its counters and does not: stopped (SIGSTOP, a debugger), or starved. What the
 * page says of them is old, and an urgent one that has long finished would hold the others out. The daemon then reads
 * how far the device has come from the client's memory, as far as it may; what it reads is as little trusted as the
 * page.
 */
#include <fcntl.h>
#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "daemon/daemon.h"

#define SILENCE_NS 50000000ull /* an agent that samples does so every few hundred us; chosen */

/* Through the file and not by process_vm_readv(): it also reaches mappings of a driver's memory. The file stays with
 * the memory it was opened for, whatever becomes of the number. */
static int silence_open(struct gp_client *client)
{
	char path[64];
	int fd;

	if (client->memory_fd >= 0)
		return client->memory_fd;
	snprintf(path, sizeof(path), "/proc/%d/mem", client->device.pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (syscall(SYS_pidfd_send_signal, client->device.pidfd, 0, NULL, 0) && errno == ESRCH) {
		close(fd);
		return -ESRCH;
	}
	client->memory_fd = fd;
	return fd;
}

static void silence_end(struct gp_client *client)
{
	if (client->memory_fd >= 0)
		close(client->memory_fd);
	client->memory_fd = -1;
	client->counters = GP_COUNTERS_AGENT;
}

void gp_silence_forget(struct gp_client *client)
{
	silence_end(client);
	client->watched = false;
}

/* AQL and SDMA count with 64 bits. A PM4 queue's read pointer is no counter and is not within what is expected. */
void gp_silence_look(struct gp_daemon *daemon, struct gp_client *client)
{
	int fd = silence_open(client);
	bool all = fd >= 0;
	uint64_t value;

	for (uint32_t i = 0; fd >= 0 && i < client->slot_count; i++) {
		struct gp_queue_entry *queue = client->slots[i].queue;

		if (!queue)
			continue;
		if (pread(fd, &value, sizeof(value), (off_t)queue->wire.read_pointer) == sizeof(value))
			queue->looked = value;
		else
			all = false;
		gp_queue_sample(daemon, queue);
	}
	client->counters = all ? GP_COUNTERS_DAEMON : GP_COUNTERS_OLD;
}

uint64_t gp_silence_check(struct gp_daemon *daemon, struct gp_client *client, uint64_t now_ns)
{
	uint32_t beats;

	if (!client->page || !client->sample_ns || !client->busy) {
		gp_silence_forget(client);
		return UINT64_MAX;
	}
	beats = __atomic_load_n(&client->page->beats, __ATOMIC_RELAXED);
	if (!client->watched || beats != client->beats) {
		silence_end(client);
		client->watched = true;
		client->beats = beats;
		client->beats_ns = now_ns;
	} else if (now_ns - client->beats_ns >= SILENCE_NS) {
		gp_silence_look(daemon, client);
		client->beats_ns = now_ns;
	}
	return client->beats_ns + SILENCE_NS;
}
