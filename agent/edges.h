/* SPDX-License-Identifier: MIT */
/*
 * The client's side of the edges of page.h. Inline, because a doorbell pays for each instruction. Each function that
 * returns a bool returns whether the caller must write the daemon's eventfd.
 *
 * gp_edge_raise: the locked exchange is both the store and the fence of the protocol (partner: the daemon's fence
 * between setting armed and reading the counters). It is a maximum, not a plain store: producers that share a queue
 * ring out of order, and a smaller value written last would hide work (test/unit/page_edges.c shows it).
 *
 * gp_edge_own: a word that only the calling thread writes, without a fence: the side that arms issues it (fence.c,
 * daemon/queue.c).
 */
#ifndef GP_AGENT_EDGES_H
#define GP_AGENT_EDGES_H

#include <gpreempt/page.h>
#include <stdbool.h>

static inline void gp_edge_raise(uint64_t *counter, uint64_t value)
{
	uint64_t now = __atomic_load_n(counter, __ATOMIC_RELAXED);

	while (value > now)
		if (__atomic_compare_exchange_n(counter, &now, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			return;
	/* Not raised: another thread has stored a larger value, and its exchange was the fence. */
}

static inline void gp_edge_own(uint64_t *word, uint64_t value)
{
	if (value > __atomic_load_n(word, __ATOMIC_RELAXED))
		__atomic_store_n(word, value, __ATOMIC_RELEASE);
	/* Only the compiler must keep the order; the processor need not. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline bool gp_edge_tell(uint32_t *armed, uint32_t flag)
{
	if (__builtin_expect(!(__atomic_load_n(armed, __ATOMIC_SEQ_CST) & flag), 1))
		return false;
	/* Clears this flag only: the daemon may have learned of this edge in another way, and armed for the other edge
	 * since the load above. */
	return __atomic_fetch_and(armed, ~flag, __ATOMIC_SEQ_CST) & flag;
}

/* By an application thread before it rings the doorbell: so many packets have been announced in all. With a fence of
 * its own. */
static inline bool gp_edge_busy(struct gp_page_queue *queue, uint64_t packets)
{
	gp_edge_raise(&queue->doorbell, packets);
	return gp_edge_tell(&queue->armed, GP_ARMED_BUSY);
}

/* By the thread that has read the counters: so much is completed. drained: nothing is left. */
static inline bool gp_edge_completed(struct gp_page_queue *queue, uint64_t completed, bool drained)
{
	gp_edge_raise(&queue->completed, completed);
	if (!drained)
		return false;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return gp_edge_tell(&queue->armed, GP_ARMED_IDLE);
}

/* A hint. armed: the page's, for all hints of the process. */
static inline bool gp_edge_hint(uint64_t *hint_ns, uint32_t *hint_count, uint32_t *armed, uint64_t in_ns)
{
	__atomic_store_n(hint_ns, in_ns, __ATOMIC_RELEASE);
	__atomic_fetch_add(hint_count, 1, __ATOMIC_SEQ_CST);
	return gp_edge_tell(armed, GP_ARMED_BUSY);
}

#endif
