/* SPDX-License-Identifier: MIT */
/*
 * The page that an agent and the daemon share (a sealed memfd of the daemon's, one per client): edges and counters, so
 * that a doorbell costs a store and a load, and neither side wakes while nothing changes. Neither side trusts it.
 *
 * The protocol, per queue (checked by exhaustive interleaving in test/unit/page_edges.c):
 *   application thread, at a doorbell:  announced = packets;  fence;  if (armed & BUSY) clear BUSY, and no other
 *                                       flag, in armed; the thread that cleared it writes the eventfd
 *   daemon, believing the queue idle:   armed = BUSY;  fence;  read announced again: moved? then it is busy after all
 *   agent, seeing the queue drained:    completed = …;  fence;  if (armed & IDLE) the same with IDLE
 *   daemon, believing the queue busy:   armed = IDLE;  fence;  read the counters again
 * Either the writer sees the flag or the daemon sees the value, so no edge is lost; an edge that is reported twice is
 * harmless.
 *
 * Doorbells ring a million times for each time that the daemon arms a queue. So the daemon can issue the doorbell's
 * fence instead: after it has armed a queue, it makes every thread of the client pass a fence (membarrier), then reads
 * again. A daemon that does so sets barriers. An agent that relies on it sets plain, before its first doorbell without
 * a fence. Unless both are set, doorbells fence for themselves.
 *
 * Announced is the larger of two words: producers that share a queue ring out of order, and a smaller value written
 * last would hide work. One thread owns the word `owned`, which no other thread writes. All other threads share the
 * word `doorbell` and raise it with a locked operation. Where doorbells fence for themselves, the shared word alone
 * holds the largest value. docs/decisions/0015-who-makes-the-fence.md.
 */
#ifndef GPREEMPT_PAGE_H
#define GPREEMPT_PAGE_H

#include <stdint.h>
#include <gpreempt/wire.h>

#define GP_PAGE_MAGIC 0x67706167u
#define GP_ARMED_BUSY 1u /* the daemon wants to know when the queue gets work */
#define GP_ARMED_IDLE 2u /* the daemon wants to know when the queue has no work left */

#define GP_PAGE_BLOCKED 1u /* the packet at its head waits for a signal: the queue has packets but nothing to run */
#define GP_PAGE_CLOSED  2u /* the agent has closed its gate (for people; the agent acknowledges orders by message) */

struct gp_page_queue {
	_Alignas(64) uint64_t doorbell; /* application: packets announced by doorbells; any thread, only grows */
	uint64_t written;               /* agent: sampled write counter (packets; bytes on a copy queue) */
	uint64_t completed;             /* agent: sampled read counter, same unit */
	uint32_t flags;                 /* agent */
	uint32_t armed;                 /* GP_ARMED_*: the daemon sets them, application and agent clear them */
	uint64_t hint_ns;               /* application: work arrives so many ns after the write; see hint_count */
	uint32_t hint_count;            /* application: how many hints so far */
	uint32_t generation;            /* agent: of the queue that has this slot */
	uint32_t held;                  /* daemon: it has closed the gate itself, or is about to; the agent clears it */
	uint32_t reserved;
	uint64_t owned; /* application: as doorbell, written only by the thread that owns it */
};

struct gp_page {
	_Alignas(64) uint32_t magic;
	uint32_t version;
	uint32_t queue_count;             /* slots below: GP_WIRE_QUEUE_MAX */
	uint32_t renewals;                /* daemon: each change renews the leases */
	uint32_t armed;                   /* daemon: GP_ARMED_BUSY: it wants to know of hints */
	uint32_t rounds;                  /* agent: counts the rounds of its thread */
	uint64_t hint_ns;                 /* application: a hint for every compute queue of the process */
	uint32_t hint_count, hint_gpu_id; /* gpu_id 0: on every device the process has queues on */
	uint32_t barriers;                /* daemon: 1: it issues the doorbells' fences when it arms */
	uint32_t plain;                   /* agent: 1: its doorbells have no fence of their own */
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
