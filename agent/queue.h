/* SPDX-License-Identifier: MIT */
/*
 * The queues of this process: slots (what the agent knows of each; under the agent's lock) and their doorbell side
 * (what a doorbell touches; no lock).
 */
#ifndef GP_AGENT_QUEUE_H
#define GP_AGENT_QUEUE_H

#include <gpreempt/wire.h>
#include <stdbool.h>
#include <stdint.h>

enum gp_queue_format { GP_QUEUE_AQL, GP_QUEUE_PM4, GP_QUEUE_SDMA, GP_QUEUE_GROUP };

struct gp_slot {
	bool used;
	bool dying;        /* its DESTROY is under way: no order touches it, lookups do not find it */
	bool is_announced; /* the daemon has its QUEUE_ADD */
	bool change_due;   /* QUEUE_CHANGE is to be sent */
	bool remove_due;   /* QUEUE_REMOVE is to be sent, then the slot is free */
	bool group_due;    /* GROUP is to be sent, after the ADD */
	bool gws, seen;
	bool at_fetch;       /* completed counts what the device has fetched */
	bool blind;          /* it is not to be gated: whether it has work cannot be seen, or it is starting */
	bool starting;       /* its program sets it up: looked at until that is over, whether or not anybody asks */
	bool unacknowledged; /* EC_QUEUE_NEW not yet cleared */
	bool closed;
	bool has_work, blocked, unreadable; /* as sampled last */
	uint8_t closed_by;                  /* enum gp_mechanism */
	enum gp_queue_format format;
	int32_t group_fd; /* as GROUP has told it */
	uint32_t generation;
	uint32_t file;              /* which of our descriptors of the driver */
	uint32_t drm_fd, drm_minor; /* user queues of DRM: the descriptor they were made on + 1 (0: closed), its node */
	uint32_t gpu_id, queue_id;
	uint32_t percent;     /* as the runtime wants it; bits 8..15 are its target XCC */
	uint32_t hw_priority; /* as the runtime wants it */
	uint32_t ring_size;
	uint64_t ring, write_pointer, read_pointer;
	uint64_t written, completed;           /* as sampled last */
	uint64_t valid_head;                   /* the last head seen to be a packet: its index + 1 */
	uint64_t work_ns;                      /* closed and with work since; 0: not so */
	uint64_t help_ns;                      /* open, and it does not get on: when it is opened again; 0: it does */
	bool watched;                          /* seen by a trap at its doorbell, while it is idle */
	bool unwatchable;                      /* such a trap cannot be had */
	uint64_t doorbell_ptr;                 /* while watched: where its doorbell really is */
	uint64_t watch_ns;                     /* when it is looked at whether it is worth one; 0: to be chosen */
	uint64_t watch_wait_ns, watch_written; /* how long that was, and what was written then */
	struct gp_wire_attr api;               /* by the API */
};

#define GP_DOORBELL_WAKE     1u /* the agent's thread wants to know of the next doorbell */
#define GP_DOORBELL_WITHHELD 2u /* mechanism submit: closed, doorbells are kept */
#define GP_DOORBELL_UNSEEN   4u /* no doorbell was seen yet */
#define GP_DOORBELL_FENCED   8u /* doorbells fence for themselves: nobody makes it for them (fence.c) */

struct gp_doorbell {
	_Alignas(64) uint64_t key; /* the queue's address in the runtime (amd_queue_t); 0: none */
	uint32_t flags;
	uint32_t slot;
	uint64_t withheld; /* doorbell value + 1; 0: none */
	uint64_t handle;   /* of its doorbell signal, once seen */
	uint64_t owner;    /* thread pointer: whose word of the page `owned` is; 0: nobody's yet */
};

extern struct gp_slot gp_slots[GP_WIRE_QUEUE_MAX];
extern struct gp_doorbell gp_doorbells[GP_WIRE_QUEUE_MAX];

/* Caller holds the lock. NULL: the table is full. */
struct gp_slot *gp_slot_add(uint64_t key);
void gp_slot_hide(struct gp_slot *slot); /* doorbells no longer lead to it */
void gp_slot_free(struct gp_slot *slot);
uint32_t gp_slot_index(const struct gp_slot *slot);
uint32_t gp_slot_limit(void); /* all used slots are below */
/* An id alone is enough while it is unique: several open files of one process share its queues. */
struct gp_slot *gp_slot_find(uint32_t file, uint32_t queue_id);
void gp_slots_reset(void);            /* forked child */
void gp_doorbells_fence(bool fenced); /* GP_DOORBELL_FENCED of all there are and will be; of a new process: set */

/* No lock. NULL: not one of ours. */
struct gp_doorbell *gp_doorbell_find(uint64_t key);

static inline struct gp_doorbell *gp_slot_doorbell(const struct gp_slot *slot)
{
	return &gp_doorbells[slot - gp_slots];
}

#endif
