/* SPDX-License-Identifier: MIT */
/*
 * The queues of this process: slots (what the agent knows of each queue; under the agent's lock) and their doorbells
 * (what an application thread touches when it rings; no lock).
 */
#ifndef GP_AGENT_QUEUE_H
#define GP_AGENT_QUEUE_H

#include <gpreempt/wire.h>
#include <stdbool.h>
#include <stdint.h>

struct gp_slot {
	bool used;
	bool dying;        /* the driver is destroying it: no order touches it, lookups do not find it */
	bool is_announced; /* the agent has sent its QUEUE_ADD */
	bool change_due;   /* the agent must send QUEUE_CHANGE */
	bool group_due;    /* the agent must send GROUP, after the ADD */
	bool gws, seen;
	bool at_fetch;       /* completed counts fetched, not finished work */
	bool blind;          /* not to be gated: the agent cannot observe its work, or it is starting */
	bool starting;       /* its program sets it up: the agent samples it until that is over, asked or not */
	bool unacknowledged; /* the exception bit EC_QUEUE_NEW is not cleared yet */
	bool closed;
	bool has_work, blocked, unreadable; /* as sampled last */
	uint8_t closed_by;                  /* enum gp_mechanism */
	uint8_t format;                     /* of its packets, as the driver's code numbers formats */
	bool is_copy;                       /* it copies memory and runs no kernels */
	uint32_t group_use;                 /* of the descriptor that GROUP names (fds.h); 0: it has no GROUP */
	int32_t group_fd;                   /* as in the last GROUP */
	uint32_t generation;
	uint32_t file; /* which of the agent's descriptors of the driver */
	uint32_t gpu_id, queue_id;
	uint32_t percent;     /* what the runtime asked for; bits 8..15 are the target XCC */
	uint32_t hw_priority; /* what the runtime asked for */
	uint32_t ring_size;
	uint64_t ring, write_pointer, read_pointer;
	uint64_t written, completed;           /* as sampled last */
	uint64_t valid_head;                   /* index + 1 of the last head that was a valid packet */
	uint64_t work_ns;                      /* since when it is closed and has work; 0: it is not or has none */
	uint64_t help_ns;                      /* open without progress: when the agent opens it again; 0: none due */
	bool watched;                          /* a trap at its doorbell is set, while it is idle (driver->watch) */
	bool unwatchable;                      /* no trap can be set at its doorbell */
	uint64_t doorbell_ptr;                 /* while watched: the address of its real doorbell */
	uint64_t watch_ns;                     /* when to decide whether to watch it; 0: not chosen yet */
	uint64_t watch_wait_ns, watch_written; /* the wait until then, and the value of written at its start */
	struct gp_wire_attr api;               /* set through the API */
};

#define GP_DOORBELL_WAKE     1u /* the next doorbell must wake the agent's thread */
#define GP_DOORBELL_WITHHELD 2u /* mechanism submit: the gate is closed, doorbells are withheld */
#define GP_DOORBELL_UNSEEN   4u /* the agent has observed no doorbell yet */
#define GP_DOORBELL_FENCED   8u /* doorbells fence for themselves (fence.c) */

struct gp_doorbell {
	_Alignas(64) uint64_t key; /* the queue's address in the runtime (amd_queue_t); 0: none */
	uint32_t flags;
	uint32_t slot;
	uint64_t withheld; /* doorbell value + 1; 0: none */
	uint64_t handle;   /* of its doorbell signal, once the agent has observed a doorbell */
	uint64_t owner;    /* thread pointer of the owner of the page's word `owned`; 0: no thread yet */
};

extern struct gp_slot gp_slots[GP_WIRE_QUEUE_MAX];
extern struct gp_doorbell gp_doorbells[GP_WIRE_QUEUE_MAX];

/* Caller holds the lock. NULL: the table is full. */
struct gp_slot *gp_slot_add(uint64_t key);
void gp_slot_free(struct gp_slot *slot);
uint32_t gp_slot_index(const struct gp_slot *slot);
uint32_t gp_slot_limit(void); /* all used slots are below */
/* The queue of this file, else any queue with this id: several open files of one process share its queues. */
struct gp_slot *gp_slot_find(uint32_t file, uint32_t queue_id);
void gp_slots_reset(void);            /* forked child */
void gp_doorbells_fence(bool fenced); /* GP_DOORBELL_FENCED of all present and future queues; set in a new process */

/* No lock. NULL: the agent does not know the queue. */
struct gp_doorbell *gp_doorbell_find(uint64_t key);

static inline struct gp_doorbell *gp_slot_doorbell(const struct gp_slot *slot)
{
	return &gp_doorbells[slot - gp_slots];
}

#endif
