/* SPDX-License-Identifier: MIT */
/* A daemon on the null device and agents that do exactly what a test says, all in one process and one thread: a test
 * steps the daemon until it has nothing to do. Its time is the test's: it passes with steps and where a test waits,
 * however long the machine takes. */
#ifndef TEST_DAEMON_WORLD_H
#define TEST_DAEMON_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <gpreempt/control.h>
#include "daemon/daemon.h"

#define WORLD_GPU 1u /* the null device's first */

#define WORLD_SLOTS 8u /* of an agent, for what its device was told */

struct world {
	struct gp_daemon daemon;
	char folder[64];
	void (*look)(void *context); /* after each change of a gate or a slice, as a device would see it; or NULL */
	void *look_context;
};

/* A fake agent: a socket, and what WELCOME brought. */
struct agent {
	int fd, doorbell_fd;
	struct gp_page *page;
	struct gp_wire_welcome welcome;
	struct gp_wire_order order; /* the last one received, and its changes */
	struct gp_wire_change changes[GP_WIRE_ORDER_MAX];
	struct gp_wire_attr attr; /* the last ATTR_NOW */
	uint32_t order_count, mechanism, runtime_ok_count, sync_count;
	uint64_t sample_ns;
	uint32_t generation;
	bool shut[WORLD_SLOTS];         /* gates, as its device has them */
	uint64_t slice_us[WORLD_SLOTS]; /* 0: as the application has it */
	uint32_t slice_count;           /* SLICE messages */
	struct gp_wire_slice slice;     /* the last one */
	int slice_fail;                 /* result it answers them with */
	bool slice_silent;              /* does not */
	bool silent;                    /* does not answer orders and SYNC */
	int fail;                       /* result it answers closes with */
	uint64_t claim_ns;              /* that its orders took longer */
};

/* config: INI text over the defaults, or NULL. */
void world_begin(struct world *world, const char *config);
void world_end(struct world *world);
void world_step(struct world *world); /* until nothing happens any more; takes 50 us */
/* Lets that much of the daemon's time pass, and a millisecond at most of everybody else's: other threads, processes. */
void world_wait(struct world *world, uint32_t ms);
/* For the rest of this test each look at the clock takes that long. */
void world_tick(uint64_t ns);
/* The daemon stands still for so long just before its look at the clock after so many; 0: not any more. True: the last
 * such time is over, or there was none. */
bool world_stop(uint64_t looks, uint64_t ns);

int world_connect(const struct world *world);
void world_send(int fd, const void *message, size_t size);
bool world_is_closed(int fd);                            /* the daemon hung up */
size_t world_receive(int fd, void *buffer, size_t size); /* 0: nothing there */

struct gp_wire_hello world_hello(int32_t priority);
void agent_connect(struct world *world, struct agent *agent, int32_t priority);
/* A world with one agent that has one queue, whose doorbells are seen. */
void world_begin_one(struct world *world, struct agent *agent, const char *config, int32_t priority);
void world_end_one(struct world *world, struct agent *agent);
/* Two that are there, the first of which must not have noticed the other. */
void world_end_pair(struct world *world, struct agent *good, struct agent *bad);
void agent_hello(struct world *world, struct agent *agent, const struct gp_wire_hello *hello);
void agent_leave(struct world *world, struct agent *agent);
/* Reads all messages; orders are answered unless it is silent. */
void agent_work(struct world *world, struct agent *agent);
void agent_add_queue(struct world *world, struct agent *agent, uint32_t slot, uint32_t flags);
/* The agent says that it has opened that slot's gate by itself, because its lease is over. */
void agent_lost(const struct agent *agent, uint32_t slot);
void agent_ring(const struct agent *agent); /* wakes the daemon */
void agent_doorbell(struct world *world, struct agent *agent, uint32_t slot, uint64_t packets);
void agent_complete(struct world *world, struct agent *agent, uint32_t slot, uint64_t packets);
void agent_answer(struct world *world, struct agent *agent);
void agent_answer_slice(struct world *world, struct agent *agent);
bool agent_is_closed(const struct agent *agent, uint32_t slot); /* as ordered last */

/* A command's answer, whole; -errno in ret_result. The caller frees it. */
char *world_ask(struct world *world, const struct gp_control_request *request, int *ret_result);
struct gp_control_request world_request(uint32_t verb);
/* From now on the client and its connection are that user's. */
void world_give(struct world *world, struct gp_client *client, uid_t uid);
/* The queue as the daemon has it. */
struct gp_queue_entry *world_queue(struct world *world, const struct agent *agent, uint32_t slot);
enum gp_gate world_gate(struct world *world, const struct agent *agent, uint32_t slot);
struct gp_queue_info world_info(struct world *world, const struct agent *agent, uint32_t slot); /* the core's */

#endif
