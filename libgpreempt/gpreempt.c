/* SPDX-License-Identifier: MIT */
/* libgpreempt: finds the agent in this process, if there is one, and passes the call on to it. cuda.c does what a hint
 * needs on CUDA. */
#include <dlfcn.h>
#include <errno.h>
#include <gpreempt/agent_table.h>
#include <gpreempt/gpreempt.h>
#include <stdbool.h>
#include <string.h>
#include "libgpreempt/cuda.h"

#define EXPORT __attribute__((visibility("default")))

static const struct gp_agent_table none;

static const struct gp_agent_table *table_find(void)
{
	static const struct gp_agent_table *found;
	const struct gp_agent_table *table = __atomic_load_n(&found, __ATOMIC_ACQUIRE);

	if (table)
		return table;
	/* The agent is preloaded or not there at all: looking once is enough. */
	table = dlsym(RTLD_DEFAULT, GP_AGENT_TABLE_NAME);
	if (!table || table->version != GP_AGENT_TABLE_VERSION || table->size < sizeof(*table))
		table = &none;
	__atomic_store_n(&found, table, __ATOMIC_RELEASE);
	return table;
}

static int table_set(const void *queue, const struct gp_wire_attr *attr)
{
	const struct gp_agent_table *table = table_find();

	return table->set ? table->set(queue, attr) : -ENOTCONN;
}

EXPORT int gpreempt_set_priority(const void *queue, int priority)
{
	struct gp_wire_attr attr = { .valid = GP_ATTR_PRIORITY, .priority = priority };

	return priority < 0 || priority > 99 ? -EINVAL : table_set(queue, &attr);
}

EXPORT int gpreempt_set_weight(const void *queue, unsigned weight)
{
	struct gp_wire_attr attr = { .valid = GP_ATTR_WEIGHT, .weight = weight };

	return weight < 1u || weight > 10000u ? -EINVAL : table_set(queue, &attr);
}

EXPORT int gpreempt_set_deadline(const void *queue, uint64_t deadline_ns, uint64_t budget_ns)
{
	struct gp_wire_attr attr = { .valid = GP_ATTR_DEADLINE | GP_ATTR_BUDGET,
				     .deadline_ns = deadline_ns,
				     .budget_ns = budget_ns };

	if (deadline_ns > GP_WIRE_TIME_MAX || budget_ns > GP_WIRE_TIME_MAX || (deadline_ns && budget_ns > deadline_ns))
		return -EINVAL;
	return table_set(queue, &attr);
}

EXPORT int gpreempt_set_gang(const char *name)
{
	struct gp_wire_attr attr = { .valid = GP_ATTR_GANG };
	size_t length = name ? strlen(name) : 0;

	if (length >= sizeof(attr.gang))
		return -EINVAL;
	if (length)
		memcpy(attr.gang, name, length);
	return table_set(NULL, &attr);
}

EXPORT int gpreempt_hint(const void *queue, uint64_t in_ns)
{
	const struct gp_agent_table *table = table_find();

	int r = table->hint ? table->hint(queue, in_ns) : -ENOTCONN;

	if (r != GP_AGENT_BRING_IN)
		return r;
	gp_cuda_bring_in(in_ns);
	return 0;
}

EXPORT int gpreempt_get(struct gpreempt_state *ret_state)
{
	const struct gp_agent_table *table = table_find();

	if (!ret_state)
		return -EINVAL;
	return table->get ? table->get(ret_state) : -ENOTCONN;
}
