/* SPDX-License-Identifier: MIT */
/* Owns what checkers ask of the record of what the core was told (checker_known.c). Nothing here changes it. */
#include "test/sim/checker_known.h"

struct known_queue *known_find(struct known *known, struct gp_queue_id id)
{
	if (id.index >= KNOWN_QUEUE_MAX || !known->queues[id.index].used ||
	    known->queues[id.index].generation != id.generation)
		return NULL;
	return &known->queues[id.index];
}

struct known_queue *known_find_tag(struct known *known, uint32_t gpu_queue)
{
	uint32_t i;

	for (i = 0; i < known->queue_end; i++) {
		if (known->queues[i].used && known->queues[i].attr.tag == gpu_queue)
			return &known->queues[i];
	}
	return NULL;
}

bool known_has_slot(const struct known *known, uint32_t device)
{
	const struct known_queue *q;
	uint32_t i, taken = 0, slots = known->devices[device].attr.slot_count;

	for (i = 0; i < known->queue_end; i++) {
		q = &known->queues[i];
		/* On a self-switching device it is a lower context beside the turn holder, for ever: neither gets
		 * anywhere. A clock that jumps makes a plan time out there, too. */
		if (q->used && q->device == device && known->devices[device].attr.switch_ns &&
		    q->gate == GP_GATE_QUARANTINED)
			return false;
		taken += q->used && q->device == device && q->attr.kind == GP_KIND_COMPUTE &&
			 q->gate != GP_GATE_CLOSED &&
			 (q->attr.unseen || q->attr.gang || q->gate == GP_GATE_QUARANTINED);
	}
	return !slots || taken < slots;
}

uint64_t known_user(const struct known *known, const struct known_queue *queue)
{
	uint64_t user = queue->client.index < KNOWN_CLIENT_MAX ? known->users[queue->client.index] : 0;

	return user ? user : KNOWN_OWN_USER | queue->client.index;
}

uint32_t known_clients_of(const struct known *known, uint64_t user, uint32_t device)
{
	uint64_t seen[KNOWN_CLIENT_MAX / 64];
	uint32_t i, count = 0;

	if (user & KNOWN_OWN_USER)
		return 1;
	memset(seen, 0, sizeof(seen));
	for (i = 0; i < known->queue_end; i++) {
		const struct known_queue *q = &known->queues[i];
		uint32_t client = q->client.index % KNOWN_CLIENT_MAX;

		if (!q->used || q->device != device || known_user(known, q) != user)
			continue;
		count += !(seen[client / 64] >> client % 64 & 1);
		seen[client / 64] |= 1ull << client % 64;
	}
	return count;
}

bool known_keeps_gang(const struct known *known, const struct known_queue *queue)
{
	return queue->used && queue->attr.gang && queue->stuck &&
	       (queue->client.index >= KNOWN_CLIENT_MAX || !known->is_alone[queue->client.index]);
}

bool known_is_sliced(const struct known *known, const struct known_queue *queue)
{
	uint64_t timeout_ns = known->devices[queue->device].attr.ack_timeout_ns;

	return (queue->slice_seq && known->core_ns < queue->slice_ns + timeout_ns) ||
	       (queue->slice_failed_ns && known->core_ns < queue->slice_failed_ns + 18 * timeout_ns);
}

bool known_waits(const struct known *known, uint32_t device)
{
	const struct known_queue *q;
	uint32_t i;

	for (i = 0; i < known->queue_end && known->moving[device]; i++) {
		q = &known->queues[i];
		if (q->used && q->device == device && known_moves(q) && q->is_awaited &&
		    known->core_ns < q->prompt_until_ns)
			return true;
	}
	return false;
}
