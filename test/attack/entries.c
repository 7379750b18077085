/* SPDX-License-Identifier: MIT */
/* Queues that enter the core again and again with an open gate, and work below what is urgent. */
#include <unistd.h>
#include "test/attack/attack.h"

#define CHURN_NS 5000000ull

/* One queue that goes and comes again with work, so that the core has it closed again and again; orders are answered.
 */
void attack_churn(void)
{
	const struct client *client = &attack.clients[0];

	attack_hello(&attack.clients[0], 0);
	for (uint32_t generation = 1; attack_now_ns() < attack.end_ns && client->fd >= 0; generation++) {
		struct gp_wire_slot removed = { { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_REMOVE, sizeof(removed),
						  0 },
						0,
						generation };

		client->page->queues[0].written = client->page->queues[0].completed + 5000;
		attack_add_queue(client, 0, generation);
		for (uint64_t until_ns = attack_now_ns() + CHURN_NS; attack_now_ns() < until_ns;) {
			attack_listen_all(0, 50000);
			usleep(200);
		}
		while (client->fd >= 0 && !attack_say(client->fd, &removed, sizeof(removed)) &&
		       attack_now_ns() < attack.end_ns)
			usleep(200);
	}
}

/* One queue of which its client says again and again that its gate opened by itself. */
void attack_lost(void)
{
	struct {
		struct gp_wire_lost head;
		struct gp_wire_change change;
	} lost = { { { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_LOST, sizeof(lost), 0 }, GP_LOST_RUNTIME, 1 },
		   { 0, 1, 1, 0 } };
	struct client *client = &attack.clients[0];

	if (attack_hello(client, 0))
		attack_add_queue(client, 0, 1);
	while (attack_now_ns() < attack.end_ns && client->fd >= 0) {
		client->page->queues[0].written = client->page->queues[0].completed + 5000;
		attack_say(client->fd, &lost, sizeof(lost));
		attack_listen_all(0, 50000);
		usleep(2000);
	}
}
