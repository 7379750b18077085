/* SPDX-License-Identifier: MIT */
/* What happens at a doorbell, in the application's thread. The usual way is one locked exchange and two loads. */
#include "agent/agent.h"
#include "agent/edges.h"
#include "agent/fds.h"
#include "agent/log.h"
#include "agent/sys.h"

void (*gp_doorbell_store)(uint64_t handle, int64_t value);

/* The first doorbell of a queue that went through the runtime's table: from now on its doorbells are known to be seen.
 */
static void doorbell_seen(struct gp_hot *hot, uint64_t handle)
{
	struct gp_slot *slot = &gp_slots[hot->slot];

	gp_agent_lock();
	if (slot->used && !slot->dying && !slot->seen) {
		__atomic_store_n(&hot->handle, handle, __ATOMIC_RELEASE);
		slot->seen = true;
		slot->change_due = true;
		gp_link_flush();
		gp_thread_wake();
	}
	gp_agent_unlock();
}

/* Mechanism submit. Either the opener sees what we keep, or we see that it is open (partner: gate.c, gp_gate_deliver).
 */
static bool doorbell_withhold(struct gp_hot *hot, uint64_t handle, uint64_t value)
{
	uint64_t kept;

	gp_edge_raise(&hot->withheld, value + 1u);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&hot->flags, __ATOMIC_SEQ_CST) & GP_HOT_WITHHELD)
		return false;
	kept = __atomic_exchange_n(&hot->withheld, 0, __ATOMIC_SEQ_CST);
	if (kept)
		gp_doorbell_store(handle, (int64_t)(kept - 1u));
	return false;
}

/* Out of line, like the next one: else the usual way saves and restores all the registers that only this one needs. */
static __attribute__((noinline, cold)) bool doorbell_slow(struct gp_hot *hot, uint64_t handle, uint64_t value,
							  uint32_t flags)
{
	if (flags & GP_HOT_WAKE && __atomic_fetch_and(&hot->flags, ~GP_HOT_WAKE, __ATOMIC_SEQ_CST) & GP_HOT_WAKE)
		gp_thread_wake();
	if (flags & GP_HOT_UNSEEN && __atomic_fetch_and(&hot->flags, ~GP_HOT_UNSEEN, __ATOMIC_SEQ_CST) & GP_HOT_UNSEEN)
		doorbell_seen(hot, handle);
	if (__atomic_load_n(&hot->flags, __ATOMIC_SEQ_CST) & GP_HOT_WITHHELD)
		return doorbell_withhold(hot, handle, value);
	return true;
}

static __attribute__((noinline, cold)) void doorbell_tell(void)
{
	gp_sys_wake(gp_fd(GP_FD_DOORBELL));
}

bool gp_doorbell_ring(struct gp_hot *hot, uint64_t handle, uint64_t value, uint64_t written)
{
	/* The value is the last packet's index; one beyond what was reserved is not a packet. */
	uint64_t packets = value < written ? value + 1u : written;
	uint32_t flags;

	if (gp_edge_busy(&gp_page_now->queues[hot->slot], packets))
		doorbell_tell();
	flags = __atomic_load_n(&hot->flags, __ATOMIC_SEQ_CST);
	return __builtin_expect(!flags, 1) ? true : doorbell_slow(hot, handle, value, flags);
}

void gp_doorbell_announce_copy(uint64_t size)
{
	/* The kernel behind a copy starts when the copy is through: 16 bytes a nanosecond, about a PCIe 4 x16 link;
	 * chosen. */
	if (gp_agent.copy_hint && __atomic_load_n(&gp_agent.link, __ATOMIC_ACQUIRE) == GP_LINK_UP && gp_page_now &&
	    gp_edge_hint(&gp_page_now->hint_ns, &gp_page_now->hint_count, &gp_page_now->armed, size / 16u))
		gp_sys_wake(gp_fd(GP_FD_DOORBELL));
}
