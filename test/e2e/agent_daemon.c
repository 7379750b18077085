/* SPDX-License-Identifier: MIT */
/* The fake daemon of the agent's tests. */
#include "test/e2e/agent_daemon.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

bool fake_listen(struct fake *fake, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	fake->socket = -1;
	snprintf(fake->path, sizeof(fake->path), "%s", path);
	if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s.new", path) >= sizeof(address.sun_path))
		return false;
	unlink(path);
	unlink(address.sun_path);
	fake->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	/* Under its name only once somebody listens: however long we pause here, the agent finds nobody or us. */
	return fake->listener >= 0 && bind(fake->listener, (void *)&address, sizeof(address)) == 0 &&
	       listen(fake->listener, 8) == 0 && rename(address.sun_path, path) == 0;
}

static void fake_forget(struct fake *fake)
{
	memset(fake->queues, 0, sizeof(fake->queues));
	fake->queue_count = 0;
	if (fake->page)
		munmap(fake->page, sizeof(*fake->page));
	fake->page = NULL;
}

void fake_stop(struct fake *fake)
{
	close(fake->listener);
	if (fake->socket >= 0)
		close(fake->socket);
	unlink(fake->path);
	fake->listener = fake->socket = -1;
	fake_forget(fake);
}

static bool fake_readable(int fd, int wait_ms)
{
	struct pollfd poll_fd = { fd, POLLIN, 0 };

	return poll(&poll_fd, 1, wait_ms) == 1;
}

bool fake_accept(struct fake *fake)
{
	if (!fake_readable(fake->listener, AGENT_WAIT_MS))
		return false;
	fake->socket = accept4(fake->listener, NULL, NULL, SOCK_CLOEXEC);
	fake_forget(fake);
	if (fake->socket < 0 || fake_receive(fake, AGENT_WAIT_MS) != GP_WIRE_HELLO)
		return false;
	memcpy(&fake->hello, fake->message, sizeof(fake->hello));
	return fake->hello.version_max >= GP_WIRE_VERSION;
}

static uint16_t fake_version(const struct fake *fake)
{
	return fake->version ? fake->version : GP_WIRE_VERSION;
}

bool fake_send(struct fake *fake, uint32_t type, const void *body, uint32_t body_size)
{
	struct gp_wire_header header = { GP_WIRE_MAGIC, fake_version(fake), (uint16_t)type,
					 (uint32_t)sizeof(header) + body_size, 1 };
	struct iovec parts[2] = { { &header, sizeof(header) }, { (void *)(uintptr_t)body, body_size } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };

	return sendmsg(fake->socket, &message, MSG_NOSIGNAL) == (ssize_t)header.size;
}

bool fake_welcome(struct fake *fake, uint32_t mechanism, uint32_t lease_ms)
{
	struct gp_wire_welcome welcome = { { GP_WIRE_MAGIC, fake_version(fake), GP_WIRE_WELCOME, sizeof(welcome), 0 },
					   fake_version(fake),
					   mechanism,
					   lease_ms,
					   sizeof(struct gp_page),
					   "" };
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(2 * sizeof(int))] = { 0 };
	struct iovec part = { &welcome, sizeof(welcome) };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
	int fds[2] = { memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING),
		       fake->bell ? fake->bell : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	bool good;

	if (fds[0] < 0 || fds[1] < 0 || ftruncate(fds[0], sizeof(struct gp_page)) < 0)
		return false;
	fcntl(fds[0], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
	fake->page = mmap(NULL, sizeof(struct gp_page), PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	fake->page->magic = GP_PAGE_MAGIC;
	fake->page->version = fake_version(fake);
	fake->page->queue_count = GP_WIRE_QUEUE_MAX;
	fake->page->barriers = fake->barriers;
	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(rights), fds, sizeof(fds));
	good = sendmsg(fake->socket, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(welcome);
	close(fds[0]);
	fake->doorbell = fds[1];
	return good;
}

static void fake_note(struct fake *fake, uint32_t type)
{
	struct gp_wire_queue queue;
	struct gp_wire_slot slot;
	struct gp_wire_group group;

	if (type == GP_WIRE_QUEUE_ADD || type == GP_WIRE_QUEUE_CHANGE) {
		memcpy(&queue, fake->message, sizeof(queue));
		if (queue.slot >= GP_WIRE_QUEUE_MAX)
			return;
		fake->queue_count += !fake->queues[queue.slot].used;
		if (type == GP_WIRE_QUEUE_ADD)
			fake->queues[queue.slot].group_count = 0;
		fake->queues[queue.slot].used = true;
		fake->queues[queue.slot].said = queue;
	} else if (type == GP_WIRE_GROUP) {
		memcpy(&group, fake->message, sizeof(group));
		if (group.slot >= GP_WIRE_QUEUE_MAX || !fake->queues[group.slot].used)
			return;
		fake->queues[group.slot].group_count++;
		fake->queues[group.slot].group = group;
	} else if (type == GP_WIRE_QUEUE_REMOVE) {
		memcpy(&slot, fake->message, sizeof(slot));
		if (slot.slot >= GP_WIRE_QUEUE_MAX)
			return;
		fake->queue_count -= fake->queues[slot.slot].used;
		fake->queues[slot.slot].used = false;
	}
}

int fake_receive(struct fake *fake, int wait_ms)
{
	struct gp_wire_header header;
	ssize_t size;

	if (!fake_readable(fake->socket, wait_ms))
		return 0;
	size = recv(fake->socket, fake->message, sizeof(fake->message), 0);
	if (size <= 0)
		return -1;
	memcpy(&header, fake->message, sizeof(header));
	if ((size_t)size < sizeof(header) || header.magic != GP_WIRE_MAGIC || header.size != (uint32_t)size ||
	    header.type >= 64u) {
		printf("# a malformed message from the agent: type %u, %zd bytes\n", header.type, size);
		return -1;
	}
	fake->counts[header.type]++;
	fake_note(fake, header.type);
	return header.type;
}

bool fake_until(struct fake *fake, uint32_t type)
{
	int got;

	do
		got = fake_receive(fake, AGENT_WAIT_MS);
	while (got > 0 && got != (int)type);
	return got == (int)type;
}

bool fake_until_queues(struct fake *fake, uint32_t count)
{
	while (fake->queue_count != count)
		if (fake_receive(fake, AGENT_WAIT_MS) <= 0)
			return false;
	return true;
}

struct fake_queue *fake_queue(struct fake *fake, uint32_t index)
{
	struct fake_queue *best = NULL;
	uint32_t above = 0;

	for (uint32_t n = 0; n <= index; n++) {
		best = NULL;
		for (uint32_t i = 0; i < GP_WIRE_QUEUE_MAX; i++) {
			struct fake_queue *queue = &fake->queues[i];

			if (queue->used && queue->said.kind == GP_WIRE_COMPUTE && queue->said.queue_id + 1u > above &&
			    (!best || queue->said.queue_id < best->said.queue_id))
				best = queue;
		}
		if (!best)
			return NULL;
		above = best->said.queue_id + 1u;
	}
	return best;
}

bool fake_order(struct fake *fake, struct fake_queue **queues, const bool *open, uint32_t count, int *ret_results)
{
	struct {
		uint64_t seq;
		uint32_t gpu_id, count;
		struct gp_wire_change changes[32];
	} body = { .seq = ++fake->seq, .gpu_id = queues[0]->said.gpu_id, .count = count };
	struct gp_wire_applied *applied = (void *)fake->message;

	for (uint32_t i = 0; i < count; i++)
		body.changes[i] =
			(struct gp_wire_change){ queues[i]->said.slot, queues[i]->said.generation, open[i], 0 };
	if (!fake_send(fake, GP_WIRE_ORDER, &body, (uint32_t)(16u + count * sizeof(body.changes[0]))) ||
	    !fake_until(fake, GP_WIRE_APPLIED) || applied->seq != body.seq || applied->count != count ||
	    applied->done_ns < applied->issue_ns)
		return false;
	for (uint32_t i = 0; i < count; i++)
		ret_results[i] = applied->changes[i].result;
	return true;
}

int fake_order_one(struct fake *fake, struct fake_queue *queue, bool open)
{
	int result = 1;

	return queue && fake_order(fake, &queue, &open, 1, &result) ? result : 1;
}

bool fake_sync(struct fake *fake)
{
	return fake_send(fake, GP_WIRE_SYNC, NULL, 0) && fake_until(fake, GP_WIRE_SYNCED);
}
