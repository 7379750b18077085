/* SPDX-License-Identifier: MIT */
/* A daemon for the agent's tests: it speaks wire.h, decides nothing, and says what it was told. Shares no code with the
 * agent. Whatever does not happen within AGENT_WAIT_MS has failed. */
#ifndef GP_TEST_E2E_AGENT_DAEMON_H
#define GP_TEST_E2E_AGENT_DAEMON_H

#include <gpreempt/page.h>
#include <stdbool.h>
#include <stdint.h>

#define AGENT_WAIT_MS 20000

struct fake_queue {
	bool used;
	uint32_t group_count; /* GROUPs that came for it */
	struct gp_wire_queue said;
	struct gp_wire_group group;
};

struct fake {
	int listener, socket, doorbell, memfd;
	int bell;         /* sent in place of an eventfd; 0: an eventfd is */
	bool barriers;    /* says that it makes the doorbells' fences */
	uint16_t version; /* spoken; 0: the newest */
	char path[108];
	struct gp_page *page;
	struct gp_wire_hello hello;
	struct fake_queue queues[GP_WIRE_QUEUE_MAX];
	uint32_t queue_count;
	uint64_t seq;
	/* The last message, and how many of each type came. */
	_Alignas(8) uint8_t message[GP_WIRE_SIZE_MAX];
	uint32_t counts[64];
};

bool fake_listen(struct fake *fake, const char *path);
void fake_stop(struct fake *fake);   /* no listener, no socket */
bool fake_accept(struct fake *fake); /* one agent, up to and including its HELLO */
bool fake_welcome(struct fake *fake, uint32_t mechanism, uint32_t lease_ms);
/* Takes in one message; 0: the type GP_WIRE_NONE, at most wait_ms. -1: the agent hung up. */
int fake_receive(struct fake *fake, int wait_ms);
bool fake_until(struct fake *fake, uint32_t type);                /* skips others */
bool fake_until_queues(struct fake *fake, uint32_t count);        /* so many queues are known */
struct fake_queue *fake_queue(struct fake *fake, uint32_t index); /* of kind compute, in the order of their ids */
/* Orders and waits for the answer; results[i] for queues[i]. */
bool fake_order(struct fake *fake, struct fake_queue **queues, const bool *open, uint32_t count, int *ret_results);
int fake_order_one(struct fake *fake, struct fake_queue *queue, bool open); /* result, or 1: no answer */
bool fake_send(struct fake *fake, uint32_t type, const void *body, uint32_t body_size);
bool fake_sync(struct fake *fake); /* all counters are fresh afterwards */

#endif
