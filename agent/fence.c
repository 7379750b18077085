/* SPDX-License-Identifier: MIT */
/*
 * Which side issues the fence between a doorbell's store and the loads behind it (page.h). Usually not the doorbell:
 * the side that arms makes every thread of this process pass a fence, the daemon by membarrier's GLOBAL_EXPEDITED, the
 * agent's thread by PRIVATE_EXPEDITED. Both need the process to be registered. If a kernel or a filter refuses that, or
 * the daemon issues no barriers, doorbells fence for themselves (GP_DOORBELL_FENCED).
 *
 * A doorbell reads GP_DOORBELL_FENCED after its store and before it reads armed. So:
 *   to plain:  the agent sets page.plain before it clears the flag. A doorbell that sees the flag cleared also sees
 *              every armed that a daemon set before it saw plain.
 *   to fenced: the agent sets the flag, then makes every thread pass a fence. A doorbell that did not see the flag had
 *              stored before that fence, so the side that arms from then on sees its value.
 */
#include <linux/membarrier.h>
#include "agent/agent.h"
#include "agent/edges.h"
#include "agent/log.h"
#include "agent/sys.h"

static bool fence_registered; /* written by the guard, read by the agent's thread */
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

/* A daemon that issues no barriers reads only the shared word. */
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
	/* The application installed a filter after the registration. The agent may miss a doorbell that is under way
	 * now: the caller looks again later. */
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
