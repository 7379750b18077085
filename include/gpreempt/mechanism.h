/* SPDX-License-Identifier: MIT */
/*
 * Mechanisms: the ways in which a gate is changed. One table says of each mechanism its name, which process acts, how
 * much one call changes, and what that means for users; the numbers are those of the protocol. Code that depends on a
 * mechanism asks for a trait; only the folders that implement a mechanism name it.
 */
#ifndef GP_MECHANISM_H
#define GP_MECHANISM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Traits: which process changes the gate, and what follows from that. */
#define GP_BY_DAEMON         1u   /* the daemon calls the driver itself, whether or not the agent answers */
#define GP_BY_AGENT          2u   /* the daemon sends orders to the agent, which carries them out */
#define GP_AGENT_OPENS       4u   /* the agent can open gates that the daemon closed; the page says which are held */
#define GP_NEEDS_GROUP       8u   /* the daemon gates a queue only once its agent has described it (GROUP) */
#define GP_NEEDS_DOORBELLS   16u  /* queues whose doorbells the agent does not observe cannot be gated */
#define GP_IS_SECOND_BEST    32u  /* if the agent does not answer, the daemon tries a better mechanism again */
#define GP_BRINGS_CONTEXT_IN 64u  /* after a hint libgpreempt brings the program's context back onto the GPU */
#define GP_STOPS_NOTHING     128u /* running work goes on: at most new work is held back */

/* X(NAME, number, name, traits, unit of one call, what it means to a user). */
/* clang-format off */
#define GP_MECHANISM_TABLE(X)                                                                                          \
	X(NONE, 0, "none", GP_STOPS_NOTHING, DEVICE, "NOTHING IS SCHEDULED on this device")                            \
	X(DEBUGGER, 1, "debugger", GP_BY_DAEMON, PROCESS, "the daemon suspends queues as a debugger")                  \
	X(SELF, 2, "self", GP_BY_AGENT, PROCESS, "each program's agent suspends its own queues as a debugger")         \
	X(UPDATE, 3, "update", GP_BY_AGENT | GP_IS_SECOND_BEST, QUEUE,                                                 \
	  "each program's agent disables its queues one by one (UPDATE_QUEUE)")                                        \
	X(SUBMIT, 4, "submit", GP_BY_AGENT | GP_IS_SECOND_BEST | GP_NEEDS_DOORBELLS | GP_STOPS_NOTHING, QUEUE,         \
	  "NOTHING THAT RUNS IS STOPPED: only new submissions are held back")                                          \
	X(BORROW, 5, "borrow", GP_BY_DAEMON | GP_AGENT_OPENS | GP_NEEDS_GROUP | GP_BRINGS_CONTEXT_IN, DEVICE,          \
	  "the daemon disables the channels of programs, on their own files")                                          \
	X(CHANNEL, 6, "channel", GP_BY_AGENT | GP_BRINGS_CONTEXT_IN, PROCESS,                                          \
	  "each program's agent disables its own channels")                                                            \
	X(KERNEL, 7, "kernel", GP_BY_DAEMON, DEVICE, "the driver changes the gates of all programs in one call")       \
	X(USERQ, 8, "userq", GP_BY_AGENT | GP_NEEDS_DOORBELLS | GP_STOPS_NOTHING, QUEUE,                                \
	  "its queues are user queues of DRM: NOTHING THAT RUNS IS STOPPED, only new submissions are held back")
/* clang-format on */

#define GP_MECHANISM_ENUM(symbol, number, name, traits, unit, sentence) GP_MECHANISM_##symbol = number,
enum gp_mechanism { GP_MECHANISM_TABLE(GP_MECHANISM_ENUM) GP_MECHANISM_COUNT };
#undef GP_MECHANISM_ENUM
#define GP_MECHANISM_BIT(m) (1u << (m))

/* How much one call to the driver changes at once. */
enum gp_mechanism_unit { GP_MECHANISM_UNIT_DEVICE, GP_MECHANISM_UNIT_PROCESS, GP_MECHANISM_UNIT_QUEUE };

struct gp_mechanism_info {
	const char *name;
	uint32_t traits;
	enum gp_mechanism_unit unit;
	const char *sentence;
};

/* NULL: there is no such mechanism. */
static inline const struct gp_mechanism_info *gp_mechanism_info(uint32_t mechanism)
{
#define GP_MECHANISM_ROW(symbol, number, name, traits, unit, sentence) \
	[number] = { name, traits, GP_MECHANISM_UNIT_##unit, sentence },
	static const struct gp_mechanism_info table[] = { GP_MECHANISM_TABLE(GP_MECHANISM_ROW) };
#undef GP_MECHANISM_ROW

	return mechanism < GP_MECHANISM_COUNT ? &table[mechanism] : NULL;
}

static inline bool gp_mechanism_has(uint32_t mechanism, uint32_t traits)
{
	const struct gp_mechanism_info *info = gp_mechanism_info(mechanism);

	return info && info->traits & traits;
}

static inline const char *gp_mechanism_name(uint32_t mechanism)
{
	const struct gp_mechanism_info *info = gp_mechanism_info(mechanism);

	return info ? info->name : "unknown";
}

#endif
