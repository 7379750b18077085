/* SPDX-License-Identifier: MIT */
/*
 * How libgpreempt finds the agent in its own process: the agent exports this table, the library looks it up by name
 * with dlsym(). Neither links the other. Entries are only appended; size says how many there are.
 */
#ifndef GPREEMPT_AGENT_TABLE_H
#define GPREEMPT_AGENT_TABLE_H

#include <gpreempt/gpreempt.h>
#include <gpreempt/wire.h>
#include <stdint.h>

#define GP_AGENT_TABLE_NAME    "gpreempt_agent_table"
#define GP_AGENT_TABLE_VERSION 1u
/* Result of hint: the device switches contexts by itself, and the library should bring its context in now. */
#define GP_AGENT_BRING_IN 1

struct gp_agent_table {
	uint32_t version, size; /* size of this structure, in bytes */
	/* The valid fields of attr, for the queue or (NULL) for the process. */
	int (*set)(const void *queue, const struct gp_wire_attr *attr);
	int (*hint)(const void *queue, uint64_t in_ns); /* GP_AGENT_BRING_IN, 0 or a negative errno */
	int (*get)(struct gpreempt_state *ret_state);
};

#endif
