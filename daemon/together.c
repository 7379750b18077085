/* SPDX-License-Identifier: MIT */
/*
 * Finds clients that belong together. If one of them is closed while another waits for it, that only wastes the GPU, so
 * the daemon makes their queues a gang.
 *
 * - Processes of one origin (origin.c) are one program or one job.
 * - Processes that share GPU memory or events (share.c) belong together, with all that belong to either.
 *
 * Programs that were started from one shell, script, session or service do not: nothing says that they wait for each
 * other. Nor do those of another user, or of another priority. What a process says of itself here affects only
 * processes of its own user.
 */
#include <stdio.h>
#include <string.h>
#include "daemon/daemon.h"
#include "daemon/origin.h"
#include "daemon/unmanaged.h"

static bool together_is_peer(const struct gp_client *a, const struct gp_client *b)
{
	return b && !b->dead && !b->is_unmanaged && b->owner == a->owner && b->uid == a->uid;
}

/* Other processes of its program may share something with further processes by now: it belongs to these too. */
static void together_follow(struct gp_daemon *daemon, struct gp_client *client)
{
	for (uint32_t i = 0; *client->origin && i < daemon->client_top; i++) {
		const struct gp_client *other = daemon->clients[i];

		if (other != client && together_is_peer(client, other) && !strcmp(client->origin, other->origin)) {
			memcpy(client->together, other->together, sizeof(client->together));
			return;
		}
	}
}

/* What belonged to the client before its origin was known belongs to its program, too. */
static void together_settle(struct gp_daemon *daemon, struct gp_client *client)
{
	if (!*client->together) {
		memcpy(client->together, client->origin, sizeof(client->together));
		together_follow(daemon, client);
		gp_together_update(daemon, client);
		return;
	}
	for (uint32_t i = 0; i < daemon->client_top; i++) {
		struct gp_client *other = daemon->clients[i];

		if (other != client && together_is_peer(client, other) && !strcmp(client->origin, other->origin))
			gp_together_join(daemon, client, other);
	}
}

/* Its queues join the gang of its program at once, as if the origin had been known before they came, though they had
 * another one until now (of their process, or of those that share something). That is once for each client. */
static void together_hurry(const struct gp_client *client)
{
	for (uint32_t i = 0; i < client->slot_count; i++)
		if (client->slots[i].queue)
			client->slots[i].queue->gang_ns = 0;
}

static void together_take(struct gp_daemon *daemon, struct gp_question *asked)
{
	const struct gp_origin *found = (const struct gp_origin *)asked;
	struct gp_client *client = gp_client_find(daemon, found->about);

	if (!client || client->dead || !*found->name)
		return;
	memcpy(client->origin, found->name, sizeof(client->origin));
	together_hurry(client);
	together_settle(daemon, client);
	gp_client_reapply(daemon, client);
	gp_unmanaged_joined(daemon, client);
}

/* Until the answer comes the client belongs to no other. */
void gp_together_find(struct gp_daemon *daemon, struct gp_client *client)
{
	const struct gp_origin origin = { .pid = client->device.pid, .uid = client->uid, .about = client->device.tag };

	client->mates = 1;
	gp_origin_ask(daemon, client->owner, &origin, together_take);
}

const struct gp_client *gp_together_client(const struct gp_daemon *daemon, uid_t uid, uint64_t account,
					   const char *origin)
{
	for (uint32_t i = 0; *origin && i < daemon->client_top; i++) {
		const struct gp_client *client = daemon->clients[i];

		if (client && !client->dead && !client->is_unmanaged && client->uid == uid &&
		    client->identity.account == account && !strcmp(client->origin, origin))
			return client;
	}
	return NULL;
}

static bool together_is_mate(const struct gp_client *a, const struct gp_client *b)
{
	return together_is_peer(a, b) && (a == b || a->device.pid != b->device.pid) &&
	       !strcmp(a->together, b->together);
}

void gp_together_update(struct gp_daemon *daemon, const struct gp_client *client)
{
	uint32_t counts[GP_PRIORITY_MAX + 1] = { 0 };

	if (!*client->together)
		return;
	gp_portion_use(daemon, 1 + daemon->client_top / 16);
	for (uint32_t i = 0; i < daemon->client_top; i++)
		if (together_is_mate(client, daemon->clients[i]))
			counts[daemon->clients[i]->attr.priority]++;
	for (uint32_t i = 0; i < daemon->client_top; i++) {
		struct gp_client *mate = daemon->clients[i];
		uint32_t count;

		if (!together_is_mate(client, mate))
			continue;
		count = counts[mate->attr.priority];
		if ((count > 1) != (mate->mates > 1)) {
			mate->mates = count;
			gp_client_reapply(daemon, mate);
		}
		mate->mates = count;
	}
}

void gp_together_join(struct gp_daemon *daemon, struct gp_client *client, struct gp_client *other)
{
	char from[GP_WIRE_NAME_SIZE];

	if (!daemon->config.auto_gang || !together_is_peer(client, other) ||
	    (*client->together && !strcmp(client->together, other->together)))
		return;
	/* Who belongs to nobody yet joins; those of a program keep their gang, which they could change again only
	 * later. */
	if (*client->together && !*other->together) {
		struct gp_client *newcomer = other;

		other = client;
		client = newcomer;
	}
	if (!*other->together)
		snprintf(other->together, sizeof(other->together), "process %d", (int)other->device.pid);
	memcpy(from, client->together, sizeof(from));
	memcpy(client->together, other->together, sizeof(client->together));
	client->mates = 1;
	for (uint32_t i = 0; i < daemon->client_top; i++) {
		struct gp_client *mate = daemon->clients[i];

		if (!together_is_peer(client, mate))
			continue;
		if (*from && !strcmp(mate->together, from))
			memcpy(mate->together, other->together, sizeof(mate->together));
		/* The gang is new or has a new name: with mates at 1, gp_together_update() applies it to all. */
		if (!strcmp(mate->together, other->together))
			mate->mates = 1;
	}
	gp_portion_use(daemon, 1 + daemon->client_top / 16);
	gp_together_update(daemon, client);
}
