/* SPDX-License-Identifier: MIT */
/*
 * A hostile application on NVIDIA's driver: any sequence of RM calls, mappings and memory contents, between orders of a
 * daemon. Input: a byte that says what happens, then 8 of parameters, again and again; what is left over fills the
 * memory that rings and commands are in. The driver agrees to everything, or refuses what it is told to. Whatever
 * comes, channels that are closed are those of closed gates, and with the last client all is gone.
 */
#include <fcntl.h>
#include <gpreempt/rm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "agent/nvidia/nvidia.h"

#define MEMORY      ((uint8_t *)0x20000000) /* of 40 bits, as rings have them, and where a sanitizer allows it */
#define MEMORY_SIZE 0x10000u
#define HANDLES     16u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __wrap_gp_next_ioctl(int fd, unsigned long request, void *arg);
int __wrap_gp_next_own_ioctl(int fd, unsigned long request, void *arg);

static int ctl = -1;
static uint8_t refuse; /* of the next call's bits: the ioctl fails, RM refuses */
static char folder[64], path[96];

static void tidy_up(void)
{
	unlink(path);
	rmdir(folder);
}

static void set_up(void)
{
	snprintf(folder, sizeof(folder), "/tmp/fuzz-rm-%d", (int)getpid());
	snprintf(path, sizeof(path), "%s/nvidiactl", folder);
	mkdir(folder, 0700);
	ctl = open(path, O_RDWR | O_CREAT, 0600);
	atexit(tidy_up);
	if (ctl < 0 ||
	    mmap(MEMORY, MEMORY_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MEMORY)
		abort();
	gp_page_reserve();
}

/* The driver. Its answer is at the end of each structure but for those of a mapping. */
int __wrap_gp_next_ioctl(int fd, unsigned long request, void *arg)
{
	struct gp_rm_xfer *xfer = arg;
	uint32_t number = request & 0xffu, size = request >> 16 & 0x3fffu, status = refuse & 2u ? GP_RM_ERR_STATE : 0;
	uint8_t *body = arg;

	(void)fd;
	if (refuse & 1u)
		return -1;
	if (number == GP_RM_XFER) {
		number = xfer->number;
		size = xfer->size;
		body = (uint8_t *)(uintptr_t)xfer->params;
	}
	if (size % 4u) /* none of RM's structures is of such a size */
		return -1;
	if (number == GP_RM_ALLOC)
		memcpy(body + (size == sizeof(struct gp_rm_alloc) ? offsetof(struct gp_rm_alloc, status) :
								    offsetof(struct gp_rm_alloc_rights, status)),
		       &status, 4);
	else if (number == GP_RM_FREE)
		memcpy(body + offsetof(struct gp_rm_free, status), &status, 4);
	else if (number == GP_RM_CONTROL)
		memcpy(body + offsetof(struct gp_rm_control, status), &status, 4);
	else if (number == GP_RM_DUP)
		memcpy(body + offsetof(struct gp_rm_dup, status), &status, 4);
	else if (number == GP_RM_MAP)
		memcpy(body + offsetof(struct gp_rm_map, status), &status, 4);
	return 0;
}

/* The agent's own calls are always well-formed. */
int __wrap_gp_next_own_ioctl(int fd, unsigned long request, void *arg)
{
	struct gp_rm_control *control = arg;
	const struct gp_rm_disable *disable = (const void *)(uintptr_t)control->params;

	if (fd < 0 || request != (GP_RM_REQUEST(GP_RM_CONTROL) | sizeof(*control) << 16))
		abort();
	control->status = refuse & 4u ? GP_RM_ERR_BUSY : GP_RM_OK;
	switch (control->command) {
	case GP_RM_SLICE_GET: memcpy((void *)(uintptr_t)control->params, &(uint64_t){ 2048 }, 8); break;
	case GP_RM_GROUP_INFO:
	case GP_RM_GPU_ID: memcpy((void *)(uintptr_t)control->params, &(uint32_t){ 6 }, 4); break;
	case GP_RM_CTXSW_MODES: ((struct gp_rm_ctxsw_modes *)(uintptr_t)control->params)->compute = 2; break;
	case GP_RM_SLICE_SET: break;
	case GP_RM_DISABLE_CHANNELS:
		if (disable->count > GP_RM_DISABLE_MAX || disable->event || disable->disable > 1u)
			abort();
		break;
	default: abort();
	}
	return 0;
}

static uint32_t handle(uint8_t byte)
{
	return byte % HANDLES ? 0x5c000000u + byte % HANDLES : 0;
}

static const uint32_t classes[] = {
	GP_RM_CLASS_CLIENT, GP_RM_CLASS_DEVICE, GP_RM_CLASS_SUBDEVICE, GP_RM_CLASS_GROUP, 0xc86f, 0xcbc0, 0x40,
	GP_RM_CLASS_MIG
};

static void call(uint32_t number, void *body, uint32_t size, uint8_t how)
{
	struct gp_rm_xfer xfer = { number, size, (uintptr_t)body };

	refuse = how & 7u;
	/* Now and then of a size, or at an address, that is not so. */
	if ((how & 0x70u) == 0x70u)
		gp_nvidia_ioctl(ctl, GP_RM_REQUEST(number) | (unsigned long)(size + 1u) << 16, body);
	else if ((how & 0x70u) == 0x60u)
		gp_nvidia_ioctl(ctl, GP_RM_REQUEST(GP_RM_XFER) | sizeof(xfer) << 16, &xfer);
	else
		gp_nvidia_ioctl(ctl, GP_RM_REQUEST(number) | (unsigned long)size << 16, body);
	refuse = 0;
}

static void alloc(const uint8_t *p, uint8_t how)
{
	uint8_t params[512] = { 0 };
	struct gp_rm_alloc_rights args = { handle(p[0]), handle(p[1]), handle(p[2]), classes[p[3] % 8u],
					   (uintptr_t)params };
	struct gp_rm_alloc plain;

	memcpy(params + GP_RM_CHANNEL_RING, &(uint64_t){ (uintptr_t)MEMORY + p[4] * 0x100u }, 8);
	memcpy(params + GP_RM_CHANNEL_ENTRIES, &(uint32_t){ 1u << p[5] % 12u }, 4);
	memcpy(params + GP_RM_CHANNEL_USERD, &(uint32_t){ handle(p[6]) }, 4);
	memcpy(params + GP_RM_CHANNEL_USERD_OFF, &(uint64_t){ p[7] * 0x100u }, 8);
	args.params_size = p[7] % 4u ? 0 : p[6] * 2u;
	if (p[7] == 255u)
		args.params = 16;
	plain = (struct gp_rm_alloc){
		args.client, args.parent, args.object, args.class_id, args.params, args.params_size, 0
	};
	if (how & 8u)
		call(GP_RM_ALLOC, &plain, sizeof(plain), how);
	else
		call(GP_RM_ALLOC, &args, sizeof(args), how);
}

static void control(const uint8_t *p, uint8_t how)
{
	static const uint32_t commands[] = { GP_RM_SLICE_SET,        GP_RM_SLICE_GET,        GP_RM_GROUP_SCHEDULE,
					     GP_RM_CHANNEL_SCHEDULE, GP_RM_DISABLE_CHANNELS, GP_RM_GPU_ID };
	struct gp_rm_disable params = { .disable = p[3] & 1u, .count = p[4] };
	struct gp_rm_control args = { handle(p[0]), handle(p[1]), commands[p[2] % 6u], 0, (uintptr_t)&params, 0, 0 };

	args.params_size = args.command == GP_RM_DISABLE_CHANNELS ? sizeof(params) : p[2] > 200u ? 3 : 8;
	for (uint32_t i = 0; i < GP_RM_DISABLE_MAX; i++) {
		params.clients[i] = handle(p[5]);
		params.channels[i] = handle((uint8_t)(p[6] + i));
	}
	call(GP_RM_CONTROL, &args, sizeof(args), how);
}

static void memory(const uint8_t *p, uint8_t how)
{
	struct gp_rm_map args = {
		handle(p[0]), handle(p[1]), handle(p[2]), 0, p[3] * 0x100u, MEMORY_SIZE, 0, 0, 0, 5, 0
	};
	struct gp_rm_unmap unmap = { args.client, args.device, args.memory, 0, (uintptr_t)MEMORY, 0, 0 };

	if (p[4] % 4u == 3u) {
		call(GP_RM_UNMAP, &unmap, sizeof(unmap), how);
		return;
	}
	call(GP_RM_MAP, &args, sizeof(args), how);
	if (p[4] % 4u == 2u)
		return;
	gp_agent_lock();
	gp_nvidia_map_add(5, (uintptr_t)MEMORY, p[4] % 4u ? MEMORY_SIZE : p[5] * 0x100u);
	gp_agent_unlock();
}

/* What the daemon would have done. */
static void order(const uint8_t *p, uint8_t how)
{
	struct gp_slot *slot = &gp_slots[p[0] % 4u];
	int result = 0;

	if (!slot->used || slot->dying)
		return;
	refuse = how & 4u;
	gp_agent_lock();
	if (p[1] & 1u) {
		gp_nvidia_slice(slot, p[2]);
	} else if (p[1] & 2u) {
		gp_nvidia_sample(&slot, 1);
		if (slot->completed > slot->written)
			abort();
	} else if (slot->closed != !(p[2] & 1u)) {
		gp_nvidia_change(GP_MECHANISM_CHANNEL, &slot, 1, p[2] & 1u, &result);
		if (!result)
			slot->closed = !(p[2] & 1u);
		slot->closed_by = GP_MECHANISM_CHANNEL;
	}
	gp_agent_unlock();
	refuse = 0;
}

static void end(void)
{
	struct gp_rm_free args = { 0 };

	for (uint32_t i = 0; i < HANDLES; i++) {
		args = (struct gp_rm_free){ 0x5c000000u + i, 0, 0x5c000000u + i, 0 };
		call(GP_RM_FREE, &args, sizeof(args), 0);
	}
	if (gp_slot_limit() || gp_nvidia_object_limit())
		abort();
	for (uint32_t i = 0; i < GP_FD_FILE_MAX; i++)
		if (gp_fd(GP_NVIDIA_FD + i) >= 0)
			abort();
	gp_agent_lock();
	gp_nvidia_map_forget(0, UINT64_MAX);
	gp_agent_unlock();
	gp_nvidia.refused = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t steps = size / 2u / 9u, rest = size - steps * 9u;
	struct gp_rm_free gone;
	struct gp_rm_dup twice;

	if (ctl < 0)
		set_up();
	gp_agent.mechanism = GP_MECHANISM_CHANNEL;
	gp_agent.thread_started = true; /* no thread: we are it */
	for (size_t at = 0; at < MEMORY_SIZE && rest; at += rest)
		memcpy(MEMORY + at, data + steps * 9u, rest < MEMORY_SIZE - at ? rest : MEMORY_SIZE - at);
	for (; steps--; data += 9) {
		const uint8_t *p = data + 1;

		switch (data[0] & 7u) {
		case 0:
		case 1:
		case 2: alloc(p, data[0] >> 3 << 3 | (p[7] & 7u & p[6] & p[5])); break;
		case 3: memory(p, p[7] & p[6]); break;
		case 4: control(p, p[7]); break;
		case 5:
			gone = (struct gp_rm_free){ handle(p[0]), handle(p[1]), handle(p[2]), 0 };
			twice = (struct gp_rm_dup){
				handle(p[0]), handle(p[1]), handle(p[2]), handle(p[3]), handle(p[4]), 0, 0
			};
			if (p[6] % 4u)
				call(GP_RM_FREE, &gone, sizeof(gone), p[7]);
			else
				call(GP_RM_DUP, &twice, sizeof(twice), p[7]);
			break;
		default: order(p, p[7]);
		}
	}
	end();
	return 0;
}
