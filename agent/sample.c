/* SPDX-License-Identifier: MIT */
/*
 * Looks at the counters of queues: decides when, and what follows from the values. The agent looks only at queues that
 * have work, whose doorbells it cannot observe, or that are blocked, and only when the daemon wants to know or a lease
 * needs it. An idle queue whose doorbells it observes wakes the thread by its next doorbell instead.
 */
#include "agent/agent.h"
#include "agent/edges.h"
#include "agent/fds.h"
#include "agent/sys.h"

#define SAMPLE_NS_MIN   20000u /* below that the agent's thread would do nothing else; chosen */
#define SAMPLE_IDLE_MAX 5u     /* if no queue has work: every 2^5 intervals */
#define SAMPLE_BUSY_MAX 2u     /* if no counter moved: every 2^2 */

/* The agent watches a queue whose doorbells it does not observe once the queue has been idle for so long; each time
 * that it was not idle, the agent waits twice as long. All chosen. */
#define SAMPLE_WATCH_NS     1000000000ull
#define SAMPLE_WATCH_NS_MAX 8000000000ull

#define SAMPLE_START_NS 10000000u /* 10 ms: how often the agent samples a starting queue; chosen */

static uint64_t sample_due_ns = UINT64_MAX;
static uint32_t sample_backoff;

static void sample_publish(struct gp_slot *slot)
{
	struct gp_page_queue *queue = &gp_page_now->queues[gp_slot_index(slot)];
	uint64_t announced, before = __atomic_load_n(&queue->written, __ATOMIC_RELAXED);
	bool tell;

	if (slot->unreadable) {
		slot->has_work = false;
		return;
	}
	__atomic_store_n(&queue->written, slot->written, __ATOMIC_RELEASE);
	if (slot->seen)
		gp_edge_raise(&queue->doorbell, slot->written);
	announced = slot->seen ? gp_page_announced(queue) : 0;
	slot->has_work = slot->written > slot->completed || announced > slot->completed;
	gp_page_slot_flags(slot);
	tell = gp_edge_completed(queue, slot->completed, !slot->has_work);
	/* The agent also reports work that came and went between two samples. */
	if (slot->has_work || slot->written > before) {
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		tell |= gp_edge_tell(&queue->armed, GP_ARMED_BUSY);
	}
	if (tell)
		gp_sys_wake(gp_fd_verified(GP_FD_DOORBELL));
}

/* Returns whether any counter moved. */
static bool sample_slots(struct gp_slot **slots, uint32_t count)
{
	bool moved = false;

	if (!count || !gp_agent.driver)
		return false;
	gp_agent.driver->sample(slots, count);
	for (uint32_t i = 0; i < count; i++) {
		struct gp_page_queue *queue = &gp_page_now->queues[gp_slot_index(slots[i])];

		moved |= slots[i]->completed != __atomic_load_n(&queue->completed, __ATOMIC_RELAXED) ||
			 slots[i]->written != __atomic_load_n(&queue->written, __ATOMIC_RELAXED);
		sample_publish(slots[i]);
	}
	return moved;
}

static struct gp_slot *sample_list[GP_WIRE_QUEUE_MAX];

void gp_sample_all(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < gp_slot_limit(); i++)
		if (gp_slots[i].used && !gp_slots[i].dying && !gp_slots[i].unreadable)
			sample_list[count++] = &gp_slots[i];
	gp_agent.look_all = true;
	sample_slots(sample_list, count);
	gp_agent.look_all = false;
}

static bool sample_wants(const struct gp_slot *slot)
{
	if (!slot->used || slot->dying || slot->unreadable)
		return false;
	return slot->has_work || !slot->seen;
}

static bool sample_sleeps(const struct gp_slot *slot)
{
	return slot->used && !slot->dying && slot->seen && !slot->has_work && (slot->closed || gp_agent.sample_ns);
}

/* Makes the doorbells of idle queues wake the thread. Partner: the fence of a doorbell, issued here unless doorbells
 * fence for themselves. */
static void sample_arm(void)
{
	bool any = false;

	for (uint32_t i = 0; i < gp_slot_limit(); i++)
		any |= sample_sleeps(&gp_slots[i]) &&
		       !(__atomic_fetch_or(&gp_doorbells[i].flags, GP_DOORBELL_WAKE, __ATOMIC_SEQ_CST) &
			 GP_DOORBELL_WAKE);
	if (any && !gp_fence_all()) {
		__atomic_store_n(&gp_agent.sync_due, true, __ATOMIC_RELEASE);
		gp_thread_wake();
	}
	for (uint32_t i = 0; i < gp_slot_limit(); i++)
		if (sample_sleeps(&gp_slots[i]) && gp_page_announced(&gp_page_now->queues[i]) > gp_slots[i].completed)
			gp_slots[i].has_work = true;
}

/* Not with mechanisms that withhold doorbells: the doorbells of a watched queue do not pass the agent. */
static bool sample_may_watch(const struct gp_slot *slot)
{
	return !gp_mechanism_has(gp_agent.mechanism, GP_NEEDS_DOORBELLS) && gp_agent.driver && gp_agent.driver->watch &&
	       gp_fence_is_registered() && slot->used && !slot->dying && !slot->unreadable && !slot->seen &&
	       !slot->blind && !slot->unwatchable;
}

static bool sample_watch_is_due(const struct gp_slot *slot, uint64_t now_ns)
{
	return sample_may_watch(slot) && slot->watch_ns && slot->watch_ns <= now_ns;
}

/* If the queue was idle since the last check, the agent watches it: its next work wakes the thread, which need not
 * sample it. */
static void sample_watch(struct gp_slot *slot, uint64_t now_ns)
{
	bool is_idle = !slot->has_work && slot->written == slot->watch_written;
	uint64_t wait_ns = is_idle ? SAMPLE_WATCH_NS : 2u * slot->watch_wait_ns;

	slot->watch_written = slot->written;
	slot->watch_wait_ns = wait_ns < SAMPLE_WATCH_NS_MAX ? wait_ns : SAMPLE_WATCH_NS_MAX;
	slot->watch_ns = now_ns + slot->watch_wait_ns;
	if (!is_idle)
		return;
	slot->unwatchable = !gp_agent.driver->watch(slot, true);
	if (slot->unwatchable)
		return;
	/* Work that came before the watch was set is in the counters by now. */
	gp_agent.driver->sample(&slot, 1);
	if (slot->unreadable || slot->written > slot->completed) {
		gp_agent.driver->watch(slot, false);
	} else {
		slot->seen = true;
		slot->change_due = true;
	}
	sample_publish(slot);
}

/* When to sample next for the agent's own sake, also if the daemon does not ask. */
static uint64_t sample_own_due_ns(uint64_t now_ns)
{
	uint64_t due_ns = UINT64_MAX;

	for (uint32_t i = 0; i < gp_slot_limit(); i++) {
		struct gp_slot *slot = &gp_slots[i];

		if (!slot->used || slot->dying || slot->unreadable)
			continue;
		if (sample_may_watch(slot) && !slot->watch_ns) {
			slot->watch_wait_ns = SAMPLE_WATCH_NS;
			slot->watch_ns = now_ns + SAMPLE_WATCH_NS;
			slot->watch_written = slot->written;
		}
		if (sample_may_watch(slot) && slot->watch_ns < due_ns)
			due_ns = slot->watch_ns;
		if (slot->starting && now_ns + SAMPLE_START_NS < due_ns)
			due_ns = now_ns + SAMPLE_START_NS;
		if (slot->help_ns && slot->help_ns < due_ns)
			due_ns = slot->help_ns;
	}
	return due_ns;
}

void gp_sample_settle(uint64_t now_ns)
{
	uint64_t interval = gp_agent.sample_ns < SAMPLE_NS_MIN ? SAMPLE_NS_MIN : gp_agent.sample_ns;
	bool any = false, work = false;
	uint32_t most;

	sample_due_ns = UINT64_MAX;
	if (gp_agent.link != GP_LINK_UP)
		return;
	sample_arm();
	sample_due_ns = sample_own_due_ns(now_ns);
	for (uint32_t i = 0; i < gp_slot_limit(); i++) {
		const struct gp_slot *slot = &gp_slots[i];

		if (!slot->used || slot->dying)
			continue;
		any |= sample_wants(slot);
		work |= slot->has_work;
	}
	if (!any || !gp_agent.sample_ns)
		return;
	most = work ? SAMPLE_BUSY_MAX : SAMPLE_IDLE_MAX;
	if (gp_agent.driver && gp_agent.driver->backoff_max)
		most = gp_agent.driver->backoff_max;
	if (sample_backoff > most)
		sample_backoff = most;
	if (now_ns + (interval << sample_backoff) < sample_due_ns)
		sample_due_ns = now_ns + (interval << sample_backoff);
}

uint64_t gp_sample_due_ns(void)
{
	return sample_due_ns;
}

void gp_sample_round(uint64_t now_ns)
{
	bool due = now_ns >= sample_due_ns;
	uint32_t count = 0;

	if (gp_agent.link != GP_LINK_UP)
		return;
	for (uint32_t i = 0; i < gp_slot_limit(); i++) {
		struct gp_slot *slot = &gp_slots[i];

		/* Closed queues in any case: their leases depend on it, and the thread comes here only when something
		 * happened. */
		if (slot->used && !slot->dying && !slot->unreadable &&
		    (gp_gate_is_closed(slot) || (due && sample_wants(slot)) || sample_watch_is_due(slot, now_ns)))
			sample_list[count++] = slot;
	}
	if (sample_slots(sample_list, count))
		sample_backoff = 0;
	else if (due)
		sample_backoff++;
	for (uint32_t i = 0; i < gp_slot_limit(); i++)
		if (sample_watch_is_due(&gp_slots[i], now_ns))
			sample_watch(&gp_slots[i], now_ns);
}

void gp_sample_after_wait(void)
{
	uint32_t limit = gp_slot_limit(), count = 0;
	bool any = false;

	if (!gp_page_now)
		return;
	for (uint32_t i = 0; i < limit && !any; i++)
		any = __atomic_load_n(&gp_page_now->queues[i].armed, __ATOMIC_RELAXED) & GP_ARMED_IDLE;
	if (!any)
		return;
	if (!gp_lock_try(&gp_agent.lock)) {
		/* Another thread holds the lock, perhaps to change a gate: the agent's thread samples afterwards. */
		__atomic_store_n(&gp_agent.sync_due, true, __ATOMIC_RELEASE);
		gp_thread_wake();
		return;
	}
	for (uint32_t i = 0; i < gp_slot_limit(); i++)
		if (gp_slots[i].used && !gp_slots[i].dying && !gp_slots[i].unreadable &&
		    __atomic_load_n(&gp_page_now->queues[i].armed, __ATOMIC_RELAXED) & GP_ARMED_IDLE)
			sample_list[count++] = &gp_slots[i];
	sample_slots(sample_list, count);
	gp_agent_unlock();
}
