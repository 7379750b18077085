/* SPDX-License-Identifier: MIT */
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
#include "agent/fds.h"
#include "test/unit/agent_scene.h"

bool scene_closed[GP_WIRE_QUEUE_MAX];
uint32_t scene_calls, scene_releases;
uint64_t scene_slice_us;
int scene_result;
int scene_peer = -1, scene_report = -1;

static int scene_listener = -1;
static char scene_folder[64];

static uint32_t driver_mechanisms(void)
{
	return GP_MECHANISM_BIT(GP_MECHANISM_UPDATE);
}

static void driver_report(char what)
{
	if (scene_report >= 0)
		assert_int_equal(write(scene_report, &what, 1), 1);
}

static void driver_change(uint32_t mechanism, struct gp_slot *const *slots, uint32_t count, bool open, int *results)
{
	(void)mechanism;
	scene_calls++;
	if (open)
		driver_report('o');
	for (uint32_t i = 0; i < count; i++) {
		results[i] = scene_result;
		if (!scene_result)
			scene_closed[gp_slot_index(slots[i])] = !open;
	}
}

static void driver_release(void)
{
	scene_releases++;
	driver_report('r');
}

static void driver_sample(struct gp_slot *const *slots, uint32_t count)
{
	(void)slots;
	(void)count;
}

static int driver_slice(struct gp_slot *slot, uint64_t slice_us)
{
	(void)slot;
	scene_slice_us = slice_us;
	return 0;
}

static const struct gp_driver driver = { .mechanisms = driver_mechanisms,
					 .change = driver_change,
					 .release = driver_release,
					 .sample = driver_sample,
					 .slice = driver_slice };

static void scene_listen(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(scene_folder, sizeof(scene_folder), "/tmp/agent-scene-XXXXXX");
	assert_non_null(mkdtemp(scene_folder));
	snprintf(gp_agent.socket_path, sizeof(gp_agent.socket_path), "%s/s", scene_folder);
	memcpy(address.sun_path, gp_agent.socket_path, sizeof(address.sun_path));
	scene_listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(scene_listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(scene_listener, 4), 0);
}

int scene_begin(void **state)
{
	struct gp_wire_hello hello;

	(void)state;
	scene_listen();
	gp_slots_reset();
	memset(scene_closed, 0, sizeof(scene_closed));
	scene_calls = scene_releases = 0;
	scene_slice_us = 0;
	scene_result = 0;
	gp_agent.driver = &driver;
	gp_agent.exiting = false;
	gp_agent.order_count = 0;
	assert_int_equal(gp_page_reserve(), 0);
	assert_int_equal(gp_fd_take(GP_FD_WAKE, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), 0);
	for (uint32_t i = 0; i < 2u; i++) {
		struct gp_slot *slot = gp_slot_add(4096u * (i + 1u));

		assert_non_null(slot);
		slot->gpu_id = SCENE_GPU;
		slot->queue_id = i;
		slot->seen = true;
	}
	assert_int_equal(gp_link_connect(), 0);
	scene_peer = accept4(scene_listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	assert_true(scene_peer >= 0);
	assert_true(scene_said(GP_WIRE_HELLO, &hello, sizeof(hello)));
	return 0;
}

int scene_end(void **state)
{
	(void)state;
	gp_link_down("end");
	close(scene_peer);
	close(scene_listener);
	unlink(gp_agent.socket_path);
	return rmdir(scene_folder);
}

struct gp_wire_welcome scene_welcome(void)
{
	return (struct gp_wire_welcome){
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_WELCOME, sizeof(struct gp_wire_welcome), 0 },
		.version = GP_WIRE_VERSION,
		.mechanism = GP_MECHANISM_UPDATE,
		.lease_ms = SCENE_LEASE,
		.page_size = sizeof(struct gp_page),
	};
}

struct scene_files scene_files(void)
{
	const uint32_t head[4] = { GP_PAGE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_MAX, 0 };
	struct scene_files files = { memfd_create("page", MFD_ALLOW_SEALING | MFD_CLOEXEC), eventfd(0, EFD_CLOEXEC) };

	assert_int_equal(ftruncate(files.page, sizeof(struct gp_page)), 0);
	assert_int_equal(pwrite(files.page, head, sizeof(head), 0), sizeof(head));
	assert_int_equal(fcntl(files.page, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	return files;
}

void scene_close(struct scene_files files)
{
	close(files.page);
	close(files.doorbell);
}

void scene_up(void)
{
	struct gp_wire_welcome welcome = scene_welcome();
	struct scene_files files = scene_files();

	assert_int_equal(gp_link_message(&welcome, sizeof(welcome), (int[]){ files.page, files.doorbell }, 2), 0);
	scene_close(files);
	assert_int_equal(gp_agent.link, GP_LINK_UP);
	assert_true(gp_slots[0].is_announced && gp_slots[1].is_announced);
}

bool scene_said(uint16_t type, void *ret_message, uint32_t size)
{
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX];
	const struct gp_wire_header *header = (const void *)buffer;
	ssize_t got;

	while ((got = recv(scene_peer, buffer, sizeof(buffer), MSG_DONTWAIT)) > 0)
		if (header->type == type) {
			memcpy(ret_message, buffer, (size_t)got < size ? (size_t)got : size);
			return true;
		}
	return false;
}

int scene_order(uint64_t seq, const struct gp_wire_change *change, uint32_t gpu_id)
{
	struct {
		struct gp_wire_order head;
		struct gp_wire_change change;
	} order = { .head = { .header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_ORDER, sizeof(order), 0 },
			      .seq = seq,
			      .gpu_id = gpu_id,
			      .count = 1 },
		    .change = *change };
	struct {
		struct gp_wire_applied head;
		struct gp_wire_change change;
	} applied = { 0 };

	assert_int_equal(gp_link_message(&order, sizeof(order), NULL, 0), 0);
	assert_true(scene_said(GP_WIRE_APPLIED, &applied, sizeof(applied)));
	assert_int_equal(applied.head.count, 1);
	return applied.change.result;
}
