/* SPDX-License-Identifier: MIT */
/*
 * A hostile daemon: any bytes as messages to an agent with a few queues, behind a driver that agrees to everything.
 * Input: for each message one byte (bit 0: the header is made right, bit 1: with the page and the doorbell) and one of
 * length, times 8. Whatever comes, gates are what the driver was told, and the end of the connection opens them all.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "agent/agent.h"
#include "agent/fds.h"

#define QUEUES 5u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool truly_closed[GP_WIRE_QUEUE_MAX];
static int listener = -1;

static uint32_t driver_mechanisms(void)
{
	return 0x1c;
}

static void driver_change(uint32_t mechanism, struct gp_slot *const *slots, uint32_t count, bool open, int *results)
{
	if (mechanism < GP_MECHANISM_SELF || mechanism > GP_MECHANISM_LAST || count > GP_WIRE_QUEUE_MAX)
		abort();
	for (uint32_t i = 0; i < count; i++) {
		uint32_t slot = gp_slot_index(slots[i]);

		/* Never a change that is none, never one of a queue that is not there. */
		if (!slots[i]->used || slots[i]->dying || truly_closed[slot] != open)
			abort();
		results[i] = slot == 4u && !open ? -EIO : 0;
		if (!results[i])
			truly_closed[slot] = !open;
	}
}

static void driver_release(void)
{
}

static void driver_sample(struct gp_slot *const *slots, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		slots[i]->written++;
		slots[i]->completed = slots[i]->written - gp_slot_index(slots[i]) % 2u;
	}
}

static bool driver_describe(const struct gp_slot *slot, struct gp_wire_group *ret_group)
{
	*ret_group = (struct gp_wire_group){ .fd = 3, .group = slot->queue_id };
	return slot->queue_id % 2u;
}

static int driver_slice(struct gp_slot *slot, uint64_t slice_us)
{
	if (!slot->used || slot->dying || !slot->is_announced)
		abort();
	return slice_us > 1000u ? -EINVAL : 0;
}

static const struct gp_driver driver = { .mechanisms = driver_mechanisms,
					 .change = driver_change,
					 .release = driver_release,
					 .sample = driver_sample,
					 .describe = driver_describe,
					 .slice = driver_slice };

static void tidy_up(void)
{
	unlink(gp_agent.socket_path);
}

static void set_up(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(gp_agent.socket_path, sizeof(gp_agent.socket_path), "/tmp/fuzz-agent-%d.sock", (int)getpid());
	memcpy(address.sun_path, gp_agent.socket_path, sizeof(address.sun_path));
	unlink(address.sun_path);
	listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	if (listener < 0 || bind(listener, (void *)&address, sizeof(address)) < 0 || listen(listener, 4) < 0)
		abort();
	atexit(tidy_up);
	gp_agent.driver = &driver;
	gp_page_reserve();
	gp_fd_take(GP_FD_WAKE, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	for (uint32_t i = 0; i < QUEUES; i++) {
		struct gp_slot *slot = gp_slot_add(4096u * (i + 1u));

		slot->gpu_id = 1u + i % 2u;
		slot->queue_id = i;
		slot->seen = i % 2u;
	}
}

static void agree(void)
{
	for (uint32_t i = 0; i < QUEUES; i++)
		if (gp_slots[i].closed != truly_closed[i] || (gp_agent.link == GP_LINK_DOWN && truly_closed[i]))
			abort();
}

static int page_file(uint8_t kind)
{
	uint32_t head[4] = { GP_PAGE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_MAX, 0 };
	int fd = memfd_create("page", MFD_ALLOW_SEALING | MFD_CLOEXEC);

	if (ftruncate(fd, kind & 1u ? 4096 : (off_t)sizeof(struct gp_page)) < 0 ||
	    write(fd, head, kind & 2u ? 8 : 16) < 0)
		abort();
	if (!(kind & 4u))
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_Alignas(8) uint8_t message[4096], waste[4096];
	int peer;

	if (listener < 0)
		set_up();
	if (gp_link_connect() < 0)
		abort();
	peer = accept(listener, NULL, NULL);
	while (size >= 2u && gp_agent.link != GP_LINK_DOWN) {
		size_t length = data[1] * 8u < size - 2u ? data[1] * 8u : size - 2u;
		struct gp_wire_header header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, 0, (uint32_t)length, 7 };
		int fds[2] = { -1, -1 };
		uint8_t how = data[0];

		memcpy(message, data + 2, length);
		data += 2u + length;
		size -= 2u + length;
		if (how & 1u && length >= sizeof(header)) {
			memcpy(&header.type, message + 6, sizeof(header.type));
			header.type %= 64u;
			memcpy(message, &header, sizeof(header));
		}
		if (how & 2u) {
			fds[0] = page_file(how >> 2);
			fds[1] = eventfd(0, EFD_CLOEXEC);
		}
		if (gp_link_message(message, (uint32_t)length, fds, how & 2u ? 2 : 0) < 0)
			gp_link_down("refused");
		close(fds[0]);
		close(fds[1]);
		agree();
		gp_sample_round(UINT64_MAX / 2u);
		gp_gate_leases(how & 32u ? UINT64_MAX / 2u : 0);
		gp_link_flush();
		agree();
		while (recv(peer, waste, sizeof(waste), MSG_DONTWAIT) > 0)
			;
	}
	close(peer);
	gp_link_down("end");
	agree();
	return 0;
}
