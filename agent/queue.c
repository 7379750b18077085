/* SPDX-License-Identifier: MIT */
/* Slots, and the hash from a queue's address to its struct gp_doorbell. */
#include <string.h>
#include "agent/queue.h"

/* Open addressing, read without a lock. A lookup always finds a key that is present: removing leaves a tombstone, and
 * tombstones are cleared only at the end of a chain, so that no concurrent lookup ends too early. */
#define QUEUE_HASH_SIZE 4096u /* four times the slots: chains stay short */
#define QUEUE_TOMBSTONE 1u

struct gp_slot gp_slots[GP_WIRE_QUEUE_MAX];
struct gp_doorbell gp_doorbells[GP_WIRE_QUEUE_MAX];
static uint32_t queue_limit;
static bool queue_plain; /* new queues are not GP_DOORBELL_FENCED */
static struct {
	uint64_t key;
	struct gp_doorbell *doorbell;
} queue_hash[QUEUE_HASH_SIZE];

static uint32_t queue_hash_of(uint64_t key)
{
	/* Fibonacci hashing; amd_queue_t is at least 64-byte aligned. */
	return (uint32_t)((key >> 6) * 0x9e3779b97f4a7c15ull >> 52) % QUEUE_HASH_SIZE;
}

struct gp_doorbell *gp_doorbell_find(uint64_t key)
{
	uint32_t at = queue_hash_of(key);

	for (uint32_t i = 0; i < QUEUE_HASH_SIZE; i++, at = (at + 1u) % QUEUE_HASH_SIZE) {
		uint64_t found = __atomic_load_n(&queue_hash[at].key, __ATOMIC_ACQUIRE);

		if (found == key)
			return key > QUEUE_TOMBSTONE ? queue_hash[at].doorbell : NULL;
		if (!found)
			return NULL;
	}
	return NULL;
}

static void queue_hash_add(uint64_t key, struct gp_doorbell *doorbell)
{
	uint32_t at = queue_hash_of(key);

	while (queue_hash[at].key > QUEUE_TOMBSTONE)
		at = (at + 1u) % QUEUE_HASH_SIZE;
	queue_hash[at].doorbell = doorbell;
	__atomic_store_n(&queue_hash[at].key, key, __ATOMIC_RELEASE);
}

static void queue_hash_remove(uint64_t key, const struct gp_doorbell *doorbell)
{
	uint32_t at = queue_hash_of(key);

	while (queue_hash[at].key && (queue_hash[at].key != key || queue_hash[at].doorbell != doorbell))
		at = (at + 1u) % QUEUE_HASH_SIZE;
	if (!queue_hash[at].key)
		return;
	__atomic_store_n(&queue_hash[at].key, QUEUE_TOMBSTONE, __ATOMIC_RELEASE);
	if (queue_hash[(at + 1u) % QUEUE_HASH_SIZE].key)
		return;
	for (; queue_hash[at].key == QUEUE_TOMBSTONE; at = (at + QUEUE_HASH_SIZE - 1u) % QUEUE_HASH_SIZE)
		__atomic_store_n(&queue_hash[at].key, 0, __ATOMIC_RELEASE);
}

struct gp_slot *gp_slot_add(uint64_t key)
{
	struct gp_slot *slot = NULL;

	for (uint32_t i = 0; i < GP_WIRE_QUEUE_MAX && !slot; i++)
		if (!gp_slots[i].used)
			slot = &gp_slots[i];
	if (!slot)
		return NULL;
	*slot = (struct gp_slot){ .used = true, .generation = slot->generation + 1u };
	if (gp_slot_index(slot) >= queue_limit)
		queue_limit = gp_slot_index(slot) + 1u;
	*gp_slot_doorbell(slot) =
		(struct gp_doorbell){ .key = key,
				      .flags = GP_DOORBELL_UNSEEN | (queue_plain ? 0 : GP_DOORBELL_FENCED),
				      .slot = gp_slot_index(slot) };
	if (key > QUEUE_TOMBSTONE)
		queue_hash_add(key, gp_slot_doorbell(slot));
	return slot;
}

void gp_slot_free(struct gp_slot *slot)
{
	struct gp_doorbell *doorbell = gp_slot_doorbell(slot);

	if (doorbell->key > QUEUE_TOMBSTONE)
		queue_hash_remove(doorbell->key, doorbell);
	doorbell->key = 0;
	slot->used = false;
	while (queue_limit && !gp_slots[queue_limit - 1u].used)
		queue_limit--;
}

uint32_t gp_slot_index(const struct gp_slot *slot)
{
	return (uint32_t)(slot - gp_slots);
}

uint32_t gp_slot_limit(void)
{
	return queue_limit;
}

struct gp_slot *gp_slot_find(uint32_t file, uint32_t queue_id)
{
	struct gp_slot *other = NULL;

	for (uint32_t i = 0; i < queue_limit; i++) {
		struct gp_slot *slot = &gp_slots[i];

		if (!slot->used || slot->dying || slot->queue_id != queue_id)
			continue;
		if (slot->file == file)
			return slot;
		other = slot;
	}
	return other;
}

void gp_doorbells_fence(bool fenced)
{
	queue_plain = !fenced;
	for (uint32_t i = 0; i < GP_WIRE_QUEUE_MAX; i++)
		if (fenced)
			__atomic_fetch_or(&gp_doorbells[i].flags, GP_DOORBELL_FENCED, __ATOMIC_SEQ_CST);
		else
			__atomic_fetch_and(&gp_doorbells[i].flags, ~GP_DOORBELL_FENCED, __ATOMIC_SEQ_CST);
}

void gp_slots_reset(void)
{
	for (uint32_t i = 0; i < queue_limit; i++)
		if (gp_slots[i].used)
			gp_slot_free(&gp_slots[i]);
	queue_limit = 0;
	memset(queue_hash, 0, sizeof(queue_hash));
}
