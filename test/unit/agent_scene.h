/* SPDX-License-Identifier: MIT */
/* An agent whose driver and daemon are the test: a socket that it connects to, two queues, and a page. */
#ifndef TEST_AGENT_SCENE_H
#define TEST_AGENT_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "agent/agent.h"

#define SCENE_GPU   7u
#define SCENE_LEASE 200u

/* What the driver was told, and what it says. */
extern bool scene_closed[GP_WIRE_QUEUE_MAX];
extern uint32_t scene_calls, scene_releases;
extern uint64_t scene_slice_us;
extern int scene_result;
extern int scene_report; /* a descriptor that is told of opens ('o') and releases ('r'); -1: none */

extern int scene_peer; /* the daemon's end of the connection */

struct scene_files {
	int page, doorbell;
};

int scene_begin(void **state); /* connected, HELLO has come, nobody has answered */
int scene_end(void **state);
struct gp_wire_welcome scene_welcome(void);
struct scene_files scene_files(void); /* as a good daemon has them */
void scene_close(struct scene_files files);
void scene_up(void); /* WELCOME, mechanism update; both queues are told */
/* The next message of this type that the agent has sent; other ones are skipped. False: there is none. */
bool scene_said(uint16_t type, void *ret_message, uint32_t size);
/* An order for one gate; its result. */
int scene_order(uint64_t seq, const struct gp_wire_change *change, uint32_t gpu_id);

#endif
