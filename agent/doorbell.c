/* SPDX-License-Identifier: MIT */
/*
 * What happens at a doorbell, in the application's thread. The usual way is one store and four loads, without a fence:
 * page.h says which side issues the fence.
 */
#include "agent/agent.h"
#include "agent/edges.h"
#include "agent/fds.h"
#include "agent/log.h"
#include "agent/sys.h"

void (*gp_doorbell_store)(uint64_t handle, int64_t value);

/* The first doorbell of a queue that went through the runtime's table: from now on the agent observes its doorbells. */
static void doorbell_seen(struct gp_doorbell *doorbell, uint64_t handle)
{
	struct gp_slot *slot = &gp_slots[doorbell->slot];

	gp_agent_lock();
	if (slot->used && !slot->dying && slot->watched)
		gp_agent.driver->watch(slot, false);
	if (slot->used && !slot->dying && !slot->seen) {
		__atomic_store_n(&doorbell->handle, handle, __ATOMIC_RELEASE);
		slot->seen = true;
		slot->change_due = true;
		gp_link_flush();
		gp_thread_wake();
	}
	gp_agent_unlock();
}

/* Mechanism submit. Either the thread that opens the gate sees the withheld value, or this thread sees that the gate is
 * open and rings itself (partner: gate.c, gp_gate_deliver). */
static bool doorbell_withhold(struct gp_doorbell *doorbell, uint64_t handle, uint64_t value)
{
	uint64_t kept;

	gp_edge_raise(&doorbell->withheld, value + 1u);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&doorbell->flags, __ATOMIC_SEQ_CST) & GP_DOORBELL_WITHHELD)
		return false;
	kept = __atomic_exchange_n(&doorbell->withheld, 0, __ATOMIC_SEQ_CST);
	if (kept)
		gp_doorbell_store(handle, (int64_t)(kept - 1u));
	return false;
}

/* The gate may be closed, and the agent's thread, which would open it, sleeps for ever: the application has closed the
 * descriptor that wakes it. So this thread opens all gates. */
static void doorbell_alone(void)
{
	gp_agent_lock();
	gp_link_down("doorbell: our descriptors are gone");
	gp_agent_unlock();
	gp_gate_deliver();
}

static __attribute__((noinline, cold)) bool doorbell_flags(struct gp_doorbell *doorbell, uint64_t handle,
							   uint64_t value, uint32_t flags)
{
	if (flags & GP_DOORBELL_WAKE &&
	    __atomic_fetch_and(&doorbell->flags, ~GP_DOORBELL_WAKE, __ATOMIC_SEQ_CST) & GP_DOORBELL_WAKE &&
	    !gp_thread_wake())
		doorbell_alone();
	if (flags & GP_DOORBELL_UNSEEN &&
	    __atomic_fetch_and(&doorbell->flags, ~GP_DOORBELL_UNSEEN, __ATOMIC_SEQ_CST) & GP_DOORBELL_UNSEEN)
		doorbell_seen(doorbell, handle);
	if (__atomic_load_n(&doorbell->flags, __ATOMIC_SEQ_CST) & GP_DOORBELL_WITHHELD)
		return doorbell_withhold(doorbell, handle, value);
	return true;
}

static __attribute__((noinline, cold)) void doorbell_tell(void)
{
	gp_sys_wake(gp_fd_verified(GP_FD_DOORBELL));
}

/* With a fence of its own: it raises the shared word, which every reader uses. */
static __attribute__((noinline)) bool doorbell_fenced(struct gp_doorbell *doorbell, uint64_t handle, uint64_t value,
						      uint64_t packets)
{
	uint32_t flags;

	if (gp_edge_busy(&gp_page_now->queues[doorbell->slot], packets))
		doorbell_tell();
	flags = __atomic_load_n(&doorbell->flags, __ATOMIC_SEQ_CST) & ~GP_DOORBELL_FENCED;
	return __builtin_expect(!flags, 1) ? true : doorbell_flags(doorbell, handle, value, flags);
}

/* The daemon or the agent's thread waits for this doorbell, or the doorbell fences for itself. Out of line, like
 * doorbell_fenced() and doorbell_shared(): else the usual way saves and restores all the registers that only these
 * need. */
static __attribute__((noinline)) bool doorbell_slow(struct gp_doorbell *doorbell, uint64_t handle, uint64_t value,
						    uint64_t packets)
{
	uint32_t flags = __atomic_load_n(&doorbell->flags, __ATOMIC_SEQ_CST);

	if (flags & GP_DOORBELL_FENCED)
		return doorbell_fenced(doorbell, handle, value, packets);
	if (gp_edge_tell(&gp_page_now->queues[doorbell->slot].armed, GP_ARMED_BUSY))
		doorbell_tell();
	return doorbell_flags(doorbell, handle, value, flags);
}

/* The first thread that rings a queue becomes the owner of its word `owned`; it uses that word from its next doorbell
 * on. A new thread with a dead thread's value (gp_sys_thread()) inherits its word too. */
static __attribute__((noinline)) bool doorbell_shared(struct gp_doorbell *doorbell, uint64_t handle, uint64_t value,
						      uint64_t packets)
{
	uint64_t nobody = 0;

	if (!__atomic_load_n(&doorbell->owner, __ATOMIC_RELAXED))
		__atomic_compare_exchange_n(&doorbell->owner, &nobody, gp_sys_thread(), false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED);
	return doorbell_fenced(doorbell, handle, value, packets);
}

bool gp_doorbell_ring(struct gp_doorbell *doorbell, uint64_t handle, uint64_t value, uint64_t written)
{
	/* The value is the last packet's index; an index beyond the reserved packets is not a packet. */
	uint64_t packets = value < written ? value + 1u : written, thread = gp_sys_thread();
	struct gp_page_queue *queue = &gp_page_now->queues[doorbell->slot];
	uint32_t flags, armed;

	if (__builtin_expect(__atomic_load_n(&doorbell->owner, __ATOMIC_RELAXED) != thread, 0))
		return doorbell_shared(doorbell, handle, value, packets);
	gp_edge_own(&queue->owned, packets);
	/* flags before armed: fence.c says why. */
	flags = __atomic_load_n(&doorbell->flags, __ATOMIC_ACQUIRE);
	armed = __atomic_load_n(&queue->armed, __ATOMIC_ACQUIRE) & GP_ARMED_BUSY;
	return __builtin_expect(!(flags | armed), 1) ? true : doorbell_slow(doorbell, handle, value, packets);
}

void gp_doorbell_announce_copy(uint64_t size)
{
	/* The kernel after a copy starts when the copy is done: 16 bytes a nanosecond, about a PCIe 4 x16 link; chosen.
	 */
	if (gp_agent.copy_hint && __atomic_load_n(&gp_agent.link, __ATOMIC_ACQUIRE) == GP_LINK_UP && gp_page_now &&
	    gp_edge_hint(&gp_page_now->hint_ns, &gp_page_now->hint_count, &gp_page_now->armed, size / 16u))
		gp_sys_wake(gp_fd_verified(GP_FD_DOORBELL));
}
