/* SPDX-License-Identifier: MIT */
/*
 * The page an agent and the daemon share (a sealed memfd of the daemon's, one per client): edges and counters, so that
 * a doorbell costs a store and a load, and nobody wakes while nothing changes. Not trusted by either side.
 *
 * The protocol, per queue (checked by exhaustive interleaving in test/unit/page_edges.c):
 *   application thread, at a doorbell:  announced = packets;  fence;  if (armed & BUSY) clear BUSY, and no other
 *                                       flag, in armed; whoever cleared it writes the eventfd
 *   daemon, believing the queue idle:   armed = BUSY;  fence;  read announced again: moved? then it is busy after all
 *   agent, seeing the queue drained:    completed = …;  fence;  if (armed & IDLE) the same with IDLE
 *   daemon, believing the queue busy:   armed = IDLE;  fence;  read the counters again
 * Either the writer sees the flag or the daemon sees the value, so no edge is lost; one that is reported twice is
 * harmless.
 *
 * A doorbell is rung a million times for each time a queue is armed, so the doorbell's fence can be made by whoever
 * arms: it has every thread of the client pass one (membarrier) before it reads again. A daemon that does so says so
 * (barriers); an agent that relies on it says so (plain), before the first doorbell without a fence. Without either,
 * doorbells fence for themselves.
 *
 * Announced is the larger of two words: producers that share a queue ring out of order, and a smaller value written
 * last would hide work. One thread has a word (owned) that nobody else writes; all others share the other (doorbell),
 * and raise it with a locked operation. Where doorbells fence for themselves, the shared word alone has everything.
 * docs/decisions/0015-who-makes-the-fence.md.
 */
#ifndef GPREEMPT_PAGE_H
#define GPREEMPT_PAGE_H

#include <stdint.h>
#include <gpreempt/wire.h>

#define GP_PAGE_MAGIC 0x67706167u
#define GP_ARMED_BUSY 1u /* tell me when it gets work */
#define GP_ARMED_IDLE 2u /* tell me when it has none left */

#define GP_PAGE_BLOCKED 1u /* the packet at its head waits for a signal: it has packets but nothing to run */
#define GP_PAGE_CLOSED  2u /* the agent has closed it (for people; orders are acknowledged by message) */

struct gp_page_queue {
	_Alignas(64) uint64_t doorbell; /* packets announced by seen doorbells; any thread, only grows */
	uint64_t written;               /* agent: sampled write counter (packets; bytes on a copy queue) */
	uint64_t completed;             /* agent: sampled read counter, same unit */
	uint32_t flags;                 /* agent */
	uint32_t armed;                 /* daemon sets, writers clear */
	uint64_t hint_ns;               /* application: work arrives so many ns after it was written; see hint_count */
	uint32_t hint_count;            /* application: how many hints so far */
	uint32_t generation;            /* agent: whose slot this is */
	uint32_t held;                  /* daemon: it has closed it itself, or is about to; the agent clears it */
	uint32_t reserved;
	uint64_t owned; /* as doorbell, by the one thread that owns it */
};

struct gp_page {
	_Alignas(64) uint32_t magic;
	uint32_t version;
	uint32_t queue_count;             /* slots that follow: GP_WIRE_QUEUE_MAX */
	uint32_t renewals;                /* daemon: leases are renewed each time this changes */
	uint32_t armed;                   /* daemon: GP_ARMED_BUSY: tell me of hints */
	uint32_t rounds;                  /* agent's thread: counts its rounds */
	uint64_t hint_ns;                 /* for every compute queue of the process */
	uint32_t hint_count, hint_gpu_id; /* gpu_id 0: on every device the process has queues on */
	uint32_t barriers;                /* daemon: 1: it makes the doorbells' fences when it arms */
	uint32_t plain;                   /* agent: 1: its doorbells have none of their own */
	_Alignas(64) struct gp_page_queue queues[GP_WIRE_QUEUE_MAX];
};

/* How many packets doorbells have announced. */
static inline uint64_t gp_page_announced(const struct gp_page_queue *queue)
{
	uint64_t shared = __atomic_load_n(&queue->doorbell, __ATOMIC_ACQUIRE);
	uint64_t owned = __atomic_load_n(&queue->owned, __ATOMIC_ACQUIRE);

	return owned > shared ? owned : shared;
}

_Static_assert(sizeof(struct gp_page_queue) == 64, "one cache line a queue");
_Static_assert(sizeof(struct gp_page) == 64 + 64 * GP_WIRE_QUEUE_MAX, "no holes");

#endif
