/* SPDX-License-Identifier: MIT */
/*
 * The application's mappings of RM's memory, which the agent learns from MAP_MEMORY and the mmap() that follows it. The
 * agent reads them directly, under its lock: process_vm_readv cannot read them, and through a pipe the kernel would
 * read a register in video memory byte by byte. That is safe because the agent forgets a mapping before it goes:
 * munmap, mremap and an mmap over it pass the agent and wait for the lock, and so do UNMAP_MEMORY and RM_FREE.
 */
#include <stddef.h>
#include <sys/mman.h>
#include "agent/log.h"
#include "agent/nvidia/nvidia.h"

#define MAP_MAX         1024u /* a context has about 30, with pinned memory more; chosen */
#define MAP_PENDING_MAX 32u

static struct {
	uint64_t address; /* 0: free; read without the lock as well, hence written last and cleared first */
	uint64_t length;
	uint32_t client, device, memory;
	uint64_t offset; /* in the memory object */
} maps[MAP_MAX];
static uint32_t map_limit;
static struct {
	bool used;
	int32_t fd;
	struct gp_rm_map args;
} map_pending[MAP_PENDING_MAX];
static uint32_t map_pending_count;
static bool map_is_full;

static uint64_t map_at(uint32_t i)
{
	return __atomic_load_n(&maps[i].address, __ATOMIC_ACQUIRE);
}

static void map_forget(uint32_t i)
{
	__atomic_store_n(&maps[i].address, 0, __ATOMIC_RELEASE);
}

void gp_nvidia_map_expect(const struct gp_rm_map *args)
{
	uint32_t place = MAP_PENDING_MAX;

	for (uint32_t i = 0; i < MAP_PENDING_MAX; i++)
		if (!map_pending[i].used || map_pending[i].fd == args->fd) {
			place = i;
			if (map_pending[i].used)
				break;
		}
	if (place == MAP_PENDING_MAX)
		place = 0; /* the program calls MAP_MEMORY and no mmap(): overwrite the first entry */
	map_pending[place].used = true;
	map_pending[place].fd = args->fd;
	map_pending[place].args = *args;
	__atomic_store_n(&map_pending_count, 1, __ATOMIC_RELEASE);
}

bool gp_nvidia_map_is_expected(void)
{
	return __atomic_load_n(&map_pending_count, __ATOMIC_ACQUIRE);
}

void gp_nvidia_map_add(int fd, uint64_t address, uint64_t length)
{
	const struct gp_rm_map *args = NULL;
	uint32_t rest = 0, place = 0;

	for (uint32_t i = 0; i < MAP_PENDING_MAX; i++) {
		if (map_pending[i].used && map_pending[i].fd == fd) {
			map_pending[i].used = false;
			args = &map_pending[i].args;
		}
		rest |= map_pending[i].used;
	}
	__atomic_store_n(&map_pending_count, rest, __ATOMIC_RELEASE);
	if (!args || !address || !length)
		return;
	while (place < MAP_MAX && map_at(place))
		place++;
	if (place == MAP_MAX) {
		if (!map_is_full)
			gp_log("nvidia: more mappings than are kept: work of later contexts may not be seen");
		map_is_full = true;
		return;
	}
	maps[place].length = length < args->length ? length : args->length;
	maps[place].client = args->client;
	maps[place].device = args->device;
	maps[place].memory = args->memory;
	maps[place].offset = args->offset;
	__atomic_store_n(&maps[place].address, address, __ATOMIC_RELEASE);
	if (place >= map_limit)
		__atomic_store_n(&map_limit, place + 1u, __ATOMIC_RELEASE);
	gp_nvidia_look_again();
}

bool gp_nvidia_map_touches(uint64_t address, uint64_t length)
{
	uint32_t limit = __atomic_load_n(&map_limit, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < limit; i++) {
		uint64_t at = map_at(i);

		if (at && address < at + maps[i].length && at < address + length)
			return true;
	}
	return false;
}

void gp_nvidia_map_forget(uint64_t address, uint64_t length)
{
	for (uint32_t i = 0; i < map_limit; i++)
		if (maps[i].address && address < maps[i].address + maps[i].length && maps[i].address < address + length)
			map_forget(i);
}

void gp_nvidia_map_forget_memory(uint32_t client, uint32_t handle)
{
	/* Most freed objects are memory, which is not in the object table: then no search for devices is needed. */
	bool is_kept = gp_nvidia_object_find(client, handle) != NULL;

	for (uint32_t i = 0; i < map_limit; i++) {
		const struct gp_nvidia_object *device;

		if (!maps[i].address || maps[i].client != client)
			continue;
		device = is_kept ? gp_nvidia_object_find(client, maps[i].device) : NULL;
		if (maps[i].memory == handle || handle == client ||
		    (device && gp_nvidia_object_is_below(device, client, handle)))
			map_forget(i);
	}
}

void gp_nvidia_maps_reset(void)
{
	for (uint32_t i = 0; i < map_limit; i++)
		map_forget(i);
	for (uint32_t i = 0; i < MAP_PENDING_MAX; i++)
		map_pending[i].used = false;
	map_limit = map_pending_count = 0;
	map_is_full = false;
}

const volatile void *gp_nvidia_map_find(uint64_t address, uint64_t size, uint32_t *hint)
{
	for (uint32_t n = 0; n <= map_limit; n++) {
		uint32_t i = n ? n - 1u : *hint;

		if (i >= map_limit || !maps[i].address || address < maps[i].address ||
		    address - maps[i].address > maps[i].length || size > maps[i].length - (address - maps[i].address))
			continue;
		*hint = i;
		return (const volatile void *)(uintptr_t)address;
	}
	return NULL;
}

uint64_t gp_nvidia_map_of(uint32_t client, uint32_t memory, uint64_t offset, uint64_t size)
{
	for (uint32_t i = 0; i < map_limit; i++)
		if (maps[i].address && maps[i].client == client && maps[i].memory == memory &&
		    offset >= maps[i].offset && offset - maps[i].offset <= maps[i].length &&
		    size <= maps[i].length - (offset - maps[i].offset))
			return maps[i].address + (offset - maps[i].offset);
	return 0;
}
