/* SPDX-License-Identifier: MIT */
/* The functions that libgpreempt calls: the process tells the agent what it wants. They never wait for the daemon. */
#include <errno.h>
#include <gpreempt/agent_table.h>
#include <string.h>
#include "agent/agent.h"
#include "agent/edges.h"
#include "agent/export.h"
#include "agent/fds.h"
#include "agent/sys.h"

static bool api_is_up(void)
{
	return __atomic_load_n(&gp_agent.pid, __ATOMIC_ACQUIRE) &&
	       __atomic_load_n(&gp_agent.link, __ATOMIC_ACQUIRE) == GP_LINK_UP;
}

static void api_merge(struct gp_wire_attr *into, const struct gp_wire_attr *from)
{
	if (from->valid & GP_ATTR_PRIORITY)
		into->priority = from->priority;
	if (from->valid & GP_ATTR_WEIGHT)
		into->weight = from->weight;
	if (from->valid & GP_ATTR_SHARE)
		into->share = from->share;
	if (from->valid & GP_ATTR_DEADLINE)
		into->deadline_ns = from->deadline_ns;
	if (from->valid & GP_ATTR_BUDGET)
		into->budget_ns = from->budget_ns;
	if (from->valid & GP_ATTR_PROTECT)
		into->protect = from->protect;
	if (from->valid & GP_ATTR_GANG)
		memcpy(into->gang, from->gang, sizeof(into->gang));
	into->valid |= from->valid;
}

/* The agent remembers what the whole process wants: HELLO tells it to a daemon that comes later. */
static int api_set(const void *queue, const struct gp_wire_attr *attr)
{
	struct gp_doorbell *doorbell;
	int r = 0;

	/* The daemon would end the connection. */
	if ((attr->valid & GP_ATTR_DEADLINE && attr->deadline_ns > GP_WIRE_TIME_MAX) ||
	    (attr->valid & GP_ATTR_BUDGET && attr->budget_ns > GP_WIRE_TIME_MAX))
		return -EINVAL;
	if (!gp_agent_ready())
		return -ENOTCONN;
	gp_agent_lock();
	doorbell = queue ? gp_doorbell_find((uintptr_t)queue) : NULL;
	if (!queue) {
		api_merge(&gp_agent.wanted, attr);
		gp_agent.attr_due = gp_agent.link == GP_LINK_UP;
	} else if (doorbell && gp_slots[doorbell->slot].used) {
		api_merge(&gp_slots[doorbell->slot].api, attr);
		gp_slots[doorbell->slot].change_due = gp_slots[doorbell->slot].is_announced;
	} else {
		r = -ENOENT;
	}
	gp_link_flush();
	gp_thread_wake();
	gp_agent_unlock();
	return r;
}

static int api_hint(const void *queue, uint64_t in_ns)
{
	struct gp_page *page = gp_page_now;
	struct gp_doorbell *doorbell;
	uint32_t mechanism;
	bool tell;

	if (!api_is_up() || !page)
		return -ENOTCONN;
	if (!queue) {
		tell = gp_edge_hint(&page->hint_ns, &page->hint_count, &page->armed, in_ns);
	} else {
		doorbell = gp_doorbell_find((uintptr_t)queue);
		if (!doorbell)
			return -ENOENT;
		tell = gp_edge_hint(&page->queues[doorbell->slot].hint_ns, &page->queues[doorbell->slot].hint_count,
				    &page->armed, in_ns);
	}
	if (tell)
		gp_sys_wake(gp_fd_verified(GP_FD_DOORBELL));
	mechanism = __atomic_load_n(&gp_agent.mechanism, __ATOMIC_RELAXED);
	return gp_mechanism_has(mechanism, GP_BRINGS_CONTEXT_IN) ? GP_AGENT_BRING_IN : 0;
}

static int api_get(struct gpreempt_state *ret_state)
{
	uint32_t size = ret_state->size;
	struct gpreempt_state state = { .size = sizeof(state) };

	if (size < sizeof(uint32_t) * 2u || size > 4096u)
		return -EINVAL;
	if (!__atomic_load_n(&gp_agent.pid, __ATOMIC_ACQUIRE))
		return -ENOTCONN;
	gp_agent_lock();
	state.connected = gp_agent.link == GP_LINK_UP;
	state.priority = gp_agent.now.priority;
	state.weight = gp_agent.now.weight;
	state.deadline_ns = gp_agent.now.deadline_ns;
	state.budget_ns = gp_agent.now.budget_ns;
	state.mechanism = gp_agent.mechanism;
	for (uint32_t i = 0; i < gp_slot_limit(); i++)
		state.queue_count += gp_slots[i].used && !gp_slots[i].dying;
	state.closed_count = gp_gate_closed_count();
	gp_agent_unlock();
	if (!state.connected)
		return -ENOTCONN;
	/* A caller built against another version gets the fields it has room for; fields unknown to the agent are zero.
	 */
	state.size = size;
	memset(ret_state, 0, size);
	memcpy(ret_state, &state, size < sizeof(state) ? size : sizeof(state));
	return 0;
}

GP_EXPORT extern const struct gp_agent_table gpreempt_agent_table;
const struct gp_agent_table gpreempt_agent_table = {
	.version = GP_AGENT_TABLE_VERSION,
	.size = sizeof(struct gp_agent_table),
	.set = api_set,
	.hint = api_hint,
	.get = api_get,
};
