/* SPDX-License-Identifier: MIT */
/*
 * Finds processes that share GPU memory or events, as their agents report. One such process waits for the other, so
 * they belong together (together.c). A name counts only among the processes of one user, so that a false name moves
 * no other user's processes. If a process shares much, the daemon forgets its oldest names; processes that were
 * found to share stay together.
 */
#include <stdlib.h>
#include "daemon/daemon.h"

#define SHARE_MAX 64u /* names of a client that are kept; chosen: twice what an agent keeps */

static bool share_is_same(const struct gp_wire_share *a, const struct gp_wire_share *b)
{
	return a->kind == b->kind && a->key[0] == b->key[0] && a->key[1] == b->key[1];
}

/* A pid means a process only within its PID namespace. */
static bool share_is_known(const struct gp_client *client, const struct gp_client *other,
			   const struct gp_wire_share *share)
{
	return share->kind != GP_SHARE_PROCESS ||
	       (client->identity.pid_space && client->identity.pid_space == other->identity.pid_space);
}

static bool share_has(const struct gp_client *client, const struct gp_wire_share *share)
{
	uint32_t count = client->share_count < SHARE_MAX ? client->share_count : SHARE_MAX;

	for (uint32_t i = 0; i < count; i++)
		if (share_is_same(&client->shares[i], share))
			return true;
	return false;
}

void gp_share_take(struct gp_daemon *daemon, struct gp_client *client, const struct gp_wire_share *share)
{
	uint32_t looks = 0;

	if (share_has(client, share))
		return;
	if (!client->shares)
		client->shares = calloc(SHARE_MAX, sizeof(*client->shares));
	if (!client->shares)
		return;
	client->shares[client->share_count % SHARE_MAX] = *share;
	/* After two rounds of the ring the count goes back to one round, so that it never overflows. */
	if (++client->share_count == 2 * SHARE_MAX)
		client->share_count = SHARE_MAX;
	for (uint32_t i = 0; i < daemon->client_top; i++) {
		struct gp_client *other = daemon->clients[i];

		if (!other || other == client || other->dead || !other->shares || other->owner != client->owner ||
		    other->uid != client->uid || other->device.pid == client->device.pid)
			continue;
		looks++;
		if (share_is_known(client, other, share) && share_has(other, share))
			gp_together_join(daemon, client, other);
	}
	gp_portion_use(daemon, 1 + daemon->client_top / 16 + looks);
}
