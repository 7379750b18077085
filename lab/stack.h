/* SPDX-License-Identifier: MIT */
/*
 * The way work takes from a process to the engine, as the driver has it and as the seeds describe it, switchable:
 *
 *   compute      process → stream → pool of HIP queues → KFD queue (id) → doorbell (offset in the BAR) → HQD
 *   kernel jobs  process → context → entity → ring → scheduler (a work item per job) → engine
 *
 * Owns ids, doorbell offsets, the state behind active_runlist, rings and their work items. Never touches the GPU but
 * for ringing a doorbell.
 */
#ifndef GP_LAB_STACK_H
#define GP_LAB_STACK_H

#include "lab/rig.h"
#include "lib/rng.h"

#define LAB_KFD_QUEUES     1024u /* ids of one process: KFD_MAX_NUM_OF_QUEUES_PER_PROCESS */
#define LAB_DOORBELL_SIZE  8u
#define LAB_DOORBELL_FIRST 0x100u /* reserved for engines that are no command processor, */
#define LAB_DOORBELL_LAST  0x1e8u /* and the same 512 further up (gfx9.4.3) */
#define LAB_RING_MAX       16u
#define LAB_HASH_QUEUES    4u
#define LAB_PID_FIRST      3935030u /* of seed 002 */

struct lab_queue_key {
	uint32_t queue_id, doorbell_id;
	uint64_t offset; /* of its doorbell in the BAR, bytes */
};

/* What KFD keeps per device about the one runlist (kfd_device_queue_manager.c, kfd_packet_manager.c). */
struct lab_dqm {
	enum lab_runlist variant;
	bool active_runlist, ib_allocated, deferred;
	uint32_t queue_count, mapped_count;
};

struct lab_stack {
	const struct lab_setup *setup;
	struct lab_queue_key keys[LAB_PROCESS_MAX][LAB_QUEUE_MAX];
	uint32_t gpu_queues[LAB_PROCESS_MAX][LAB_QUEUE_MAX]; /* the model's numbers; its creator's */
	uint32_t queue_counts[LAB_PROCESS_MAX];
	struct lab_dqm dqm;
	/* Kernel schedulers: when each is free again. One workqueue for all: the first. */
	uint64_t free_ns[LAB_RING_MAX];
	uint64_t jobs[LAB_RING_MAX];
	uint32_t turn;
};

void lab_stack_init(struct lab_stack *stack, const struct lab_setup *setup);
/* Seed 002's ids: four from (PID mod 256) × 4 on; beyond those the first that is free. */
uint32_t lab_stack_hash_id(uint32_t pid, uint32_t place);
/* Id and doorbell of the place-th queue of a process. */
struct lab_queue_key lab_stack_key(const struct lab_setup *setup, uint32_t process, uint32_t place);
/* A queue comes: what KFD does to the runlist. False: the queue is never mapped. */
bool lab_stack_create(struct lab_stack *stack, uint32_t process, uint32_t place);
/* Rings the doorbell of a process's queue: whoever is registered at that offset hears it. */
void lab_stack_ring(struct lab_stack *stack, struct gp_gpu *gpu, uint32_t process, uint32_t place, uint64_t now_ns);
/* Processes with a queue whose doorbell rings another one. */
uint32_t lab_stack_lost(const struct lab_stack *stack);
/* A job of an entity: which ring it goes to and when its work item has run. */
uint32_t lab_stack_pick(struct lab_stack *stack, uint32_t process, uint32_t entity, uint64_t now_ns);
uint64_t lab_stack_job(struct lab_stack *stack, uint32_t process, uint32_t place, uint64_t now_ns);

int lab_dqm_map(struct lab_dqm *dqm); /* a second map without an unmap: 0 or -EINVAL */
void lab_dqm_unmap(struct lab_dqm *dqm);

#endif
