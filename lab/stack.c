/* SPDX-License-Identifier: MIT */
/* Owns the submission stack: see stack.h. What each function stands for is named beside it. */
#include <errno.h>
#include <string.h>
#include "lab/stack.h"

void lab_stack_init(struct lab_stack *stack, const struct lab_setup *setup)
{
	*stack = (struct lab_stack){ .setup = setup, .dqm = { .variant = setup->runlist } };
}

uint32_t lab_stack_hash_id(uint32_t pid, uint32_t place)
{
	uint32_t base = pid % (LAB_KFD_QUEUES / LAB_HASH_QUEUES) * LAB_HASH_QUEUES;

	if (place < LAB_HASH_QUEUES)
		return base + place;
	/* Its own range is full: the first free bit of the whole bitmap. */
	place -= LAB_HASH_QUEUES;
	return place < base ? place : place + LAB_HASH_QUEUES;
}

/* find_available_queue_slot(): the first free bit of the process's own bitmap, or seed 002's scheme. */
static uint32_t stack_queue_id(const struct lab_setup *setup, uint32_t process, uint32_t place)
{
	return setup->queue_ids == LAB_IDS_FIRST_FIT ? place : lab_stack_hash_id(LAB_PID_FIRST + process, place);
}

/* allocate_doorbell(): the first free bit of a bitmap per process and device, reserved ranges left out. */
static uint32_t stack_doorbell_id(uint32_t place)
{
	return place < LAB_DOORBELL_FIRST ? place : place + LAB_DOORBELL_LAST - LAB_DOORBELL_FIRST;
}

struct lab_queue_key lab_stack_key(const struct lab_setup *setup, uint32_t process, uint32_t place)
{
	struct lab_queue_key key = { .queue_id = stack_queue_id(setup, process, place) };
	uint64_t slice = 0;

	/* The driver: an 8 KiB slice per process (kfd_doorbell_process_slice()), ids independent of queue ids. As
	 * feared: one slice for all, and the queue id is the doorbell. */
	key.doorbell_id = setup->doorbells == LAB_DOORBELL_SLICE ? stack_doorbell_id(place) : key.queue_id;
	if (setup->doorbells == LAB_DOORBELL_SLICE)
		slice = (uint64_t)process * LAB_KFD_QUEUES * LAB_DOORBELL_SIZE;
	key.offset = slice + (uint64_t)key.doorbell_id * LAB_DOORBELL_SIZE;
	return key;
}

/* unmap_queues_cpsch(): the runlist is taken out, its IB released, the flag cleared. */
void lab_dqm_unmap(struct lab_dqm *dqm)
{
	dqm->active_runlist = dqm->ib_allocated = dqm->deferred = false;
	if (dqm->variant != LAB_RUNLIST_FEARED)
		dqm->mapped_count = 0;
}

/* map_queues_cpsch() and pm_send_runlist(): one IB with every active queue of every process. */
int lab_dqm_map(struct lab_dqm *dqm)
{
	if (dqm->active_runlist && dqm->variant == LAB_RUNLIST_QUEUED)
		dqm->deferred = true;
	if (dqm->active_runlist && dqm->variant != LAB_RUNLIST_REMOVED)
		return 0;
	/* pm_allocate_runlist_ib(): WARN_ON(pm->allocated). */
	if (dqm->ib_allocated)
		return -EINVAL;
	dqm->ib_allocated = dqm->active_runlist = true;
	dqm->mapped_count = dqm->queue_count;
	return 0;
}

bool lab_stack_create(struct lab_stack *stack, uint32_t process, uint32_t place)
{
	struct lab_dqm *dqm = &stack->dqm;

	stack->keys[process][place] = lab_stack_key(stack->setup, process, place);
	stack->queue_counts[process] = place + 1u;
	dqm->queue_count++;
	/* execute_queues_cpsch() is unmap, then map. As feared, the second process finds the flag set and is skipped.
	 */
	if (dqm->variant != LAB_RUNLIST_FEARED || !process)
		lab_dqm_unmap(dqm);
	(void)lab_dqm_map(dqm);
	return dqm->mapped_count == dqm->queue_count;
}

void lab_stack_ring(struct lab_stack *stack, struct gp_gpu *gpu, uint32_t process, uint32_t place, uint64_t now_ns)
{
	uint64_t offset = stack->keys[process][place].offset;

	/* The command processor knows a queue by its offset alone; the last one set up with it is the one it knows. */
	for (uint32_t i = stack->setup->process_count; i-- > 0;) {
		for (uint32_t k = 0; k < stack->queue_counts[i]; k++) {
			if (stack->keys[i][k].offset == offset) {
				(void)gp_gpu_doorbell(gpu, stack->gpu_queues[i][k], now_ns);
				return;
			}
		}
	}
}

uint32_t lab_stack_lost(const struct lab_stack *stack)
{
	uint32_t lost = 0;

	for (uint32_t i = 0; i < stack->setup->process_count; i++) {
		bool is_lost = false;

		for (uint32_t other = i + 1u; other < stack->setup->process_count; other++)
			for (uint32_t k = 0; k < stack->queue_counts[i]; k++)
				for (uint32_t n = 0; n < stack->queue_counts[other]; n++)
					is_lost |= stack->keys[i][k].offset == stack->keys[other][n].offset;
		lost += is_lost;
	}
	return lost;
}

static uint32_t stack_least_loaded(const struct lab_stack *stack, uint64_t now_ns)
{
	uint32_t best = 0;

	/* drm_sched_pick_best(): the lowest score, the first among equals. An idle one has none. */
	for (uint32_t i = 1; i < stack->setup->ring_count; i++) {
		uint64_t at = stack->free_ns[i] > now_ns ? stack->free_ns[i] : now_ns;
		uint64_t best_at = stack->free_ns[best] > now_ns ? stack->free_ns[best] : now_ns;

		if (at < best_at)
			best = i;
	}
	return best;
}

uint32_t lab_stack_pick(struct lab_stack *stack, uint32_t process, uint32_t entity, uint64_t now_ns)
{
	const struct lab_setup *setup = stack->setup;

	switch (setup->rings) {
	case LAB_RING_FIXED: return 0;
	case LAB_RING_HASH: return (process * setup->entity_count + entity) * 2654435761u % setup->ring_count;
	case LAB_RING_ROUND_ROBIN: return stack->turn++ % setup->ring_count;
	case LAB_RING_LEAST_LOADED: return stack_least_loaded(stack, now_ns);
	}
	return 0;
}

uint64_t lab_stack_job(struct lab_stack *stack, uint32_t process, uint32_t place, uint64_t now_ns)
{
	const struct lab_setup *setup = stack->setup;
	uint32_t entity = place % setup->entity_count, ring, server;

	/* Packets of one queue must stay in order: an entity with work keeps its ring, as drm_sched has it. */
	ring = setup->rings == LAB_RING_FIXED ? 0 :
	       setup->rings == LAB_RING_HASH  ? lab_stack_pick(stack, process, entity, now_ns) :
						(process * setup->entity_count + entity) % setup->ring_count;
	server = setup->workqueue == LAB_WORKQUEUE_ONE ? 0 : ring;
	stack->jobs[ring]++;
	stack->free_ns[server] = (stack->free_ns[server] > now_ns ? stack->free_ns[server] : now_ns) + setup->job_ns;
	return stack->free_ns[server];
}
