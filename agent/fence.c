/* SPDX-License-Identifier: MIT */
/*
 * Who makes the fence between a doorbell's store and the loads behind it (page.h). Usually not the doorbell: whoever
 * arms has every thread of this process pass one, the daemon by membarrier's GLOBAL_EXPEDITED, the agent's thread by
 * PRIVATE_EXPEDITED. Both need the process to be registered. A kernel or a filter that refuses, or a daemon that makes
 * no barriers: doorbells fence for themselves (GP_DOORBELL_FENCED).
 *
 * A doorbell looks at GP_DOORBELL_FENCED behind its store and before it looks at armed. So:
 *   to plain:  page.plain is set before the flag goes. Who sees the flag gone sees every armed that was set by a daemon
 *              that did not see plain.
 *   to fenced: the flag is set, then every thread passes a fence. Who did not see the flag had stored before it, and
 *              what it stored is seen by whoever arms from then on.
 */
#include <linux/membarrier.h>
#include "agent/agent.h"
#include "agent/edges.h"
#include "agent/log.h"
#include "agent/sys.h"

static bool fence_registered; /* by the guard; read by the thread */
static bool fence_plain;

void gp_fence_register(void)
{
	long mine = gp_sys(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
	long all = mine ? mine : gp_sys(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);

	if (all)
		gp_log1("fence: doorbells make their own; membarrier", all);
	__atomic_store_n(&fence_registered, !all, __ATOMIC_RELEASE);
	gp_thread_wake();
}

bool gp_fence_is_registered(void)
{
	return __atomic_load_n(&fence_registered, __ATOMIC_ACQUIRE);
}

/* A daemon that makes no barriers reads the shared word alone. */
static void fence_fold(void)
{
	for (uint32_t i = 0; i < gp_slot_limit(); i++)
		if (gp_slots[i].used)
			gp_edge_raise(&gp_page_now->queues[i].doorbell, gp_page_announced(&gp_page_now->queues[i]));
}

void gp_fence_settle(void)
{
	bool plain = __atomic_load_n(&fence_registered, __ATOMIC_ACQUIRE) && !gp_agent.arms_without_barrier;

	if (plain && gp_page_now)
		__atomic_store_n(&gp_page_now->plain, 1, __ATOMIC_SEQ_CST);
	if (plain == fence_plain)
		return;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	gp_doorbells_fence(!plain);
	if (!plain) {
		gp_fence_all();
		if (gp_page_now)
			fence_fold();
	}
	fence_plain = plain;
	gp_log1("fence: doorbells without", plain);
}

bool gp_fence_all(void)
{
	if (!fence_plain || !gp_sys(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		return true;
	/* A filter that came after we were registered. A doorbell that is under way now may be missed: the caller looks
	 * again in a while. */
	gp_log("fence: membarrier is refused now; doorbells make their own");
	__atomic_store_n(&fence_registered, false, __ATOMIC_RELEASE);
	gp_doorbells_fence(true);
	fence_plain = false;
	return false;
}

void gp_fence_forget(void)
{
	fence_registered = fence_plain = false;
	gp_doorbells_fence(true);
}
