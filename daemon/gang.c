/* SPDX-License-Identifier: MIT */
/*
 * Gangs: turns the names that users give to gangs into the core's numbers, and makes gangs of processes on several
 * devices.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/daemon.h"

#define GANG_KEPT 64u /* gangs for root alone; chosen */
#define GANG_WORK 2u  /* units of work: a search of the whole table */

struct gp_gang_name {
	uint32_t users; /* 0: free */
	uid_t uid;
	uint32_t owner; /* the account's id */
	char name[GP_WIRE_NAME_SIZE];
};

uint32_t gp_gang_name_get(struct gp_daemon *daemon, const struct gp_owner *owner, uid_t uid, const char *name)
{
	uint32_t i, place = daemon->gangs.max, own = 0, used = 0;

	if (!daemon->gangs.names)
		daemon->gangs.names = calloc(daemon->gangs.max, sizeof(*daemon->gangs.names));
	/* One queue after the other of a process asks for the same gang. */
	i = daemon->gangs.last;
	if (daemon->gangs.names && daemon->gangs.names[i].users && daemon->gangs.names[i].uid == uid &&
	    daemon->gangs.names[i].owner == owner->id && !strcmp(daemon->gangs.names[i].name, name)) {
		daemon->gangs.names[i].users++;
		return i + 1;
	}
	gp_portion_use(daemon, GANG_WORK);
	for (i = 0; daemon->gangs.names && i < daemon->gangs.max; i++) {
		if (!daemon->gangs.names[i].users) {
			place = place == daemon->gangs.max ? i : place;
			continue;
		}
		if (daemon->gangs.names[i].uid == uid && daemon->gangs.names[i].owner == owner->id &&
		    !strcmp(daemon->gangs.names[i].name, name)) {
			daemon->gangs.names[i].users++;
			daemon->gangs.last = i;
			return i + 1;
		}
		own += daemon->gangs.names[i].owner == owner->id;
		used++;
	}
	/* One user leaves room for the others. */
	if (!daemon->gangs.names || place == daemon->gangs.max ||
	    !gp_owner_may_take(owner, daemon->gangs.max, GANG_KEPT, used, own))
		return 0;
	daemon->gangs.last = place;
	daemon->gangs.names[place].users = 1;
	daemon->gangs.names[place].uid = uid;
	daemon->gangs.names[place].owner = owner->id;
	snprintf(daemon->gangs.names[place].name, sizeof(daemon->gangs.names[place].name), "%s", name);
	return place + 1;
}

void gp_gang_name_hold(struct gp_daemon *daemon, uint32_t gang)
{
	if (gang && gang <= daemon->gangs.max && daemon->gangs.names)
		daemon->gangs.names[gang - 1].users++;
}

void gp_gang_name_put(struct gp_daemon *daemon, uint32_t gang)
{
	if (gang && gang <= daemon->gangs.max && daemon->gangs.names && daemon->gangs.names[gang - 1].users)
		daemon->gangs.names[gang - 1].users--;
}

/* Queues of one process on several devices, and of processes that are one program or job, open and close together
 * unless the program names a gang: a collective that runs on one device only waits for the others. */
uint32_t gp_gang_name_of(struct gp_daemon *daemon, const struct gp_queue_entry *queue, const char *name)
{
	const struct gp_client *client = queue->client;
	char own[GP_WIRE_NAME_SIZE];
	uint32_t here = client->device_queue_count[queue->device];

	if (*name)
		return gp_gang_name_get(daemon, client->owner, client->uid, name);
	if (!daemon->config.auto_gang || client->is_unmanaged)
		return 0;
	if (client->mates > 1) {
		snprintf(own, sizeof(own), "\2%d %.*s", client->attr.priority, (int)sizeof(own) - 8, client->together);
		return gp_gang_name_get(daemon, client->owner, client->uid, own);
	}
	if (client->queue_count == here)
		return 0;
	snprintf(own, sizeof(own), "\1%llx", (unsigned long long)client->device.tag);
	return gp_gang_name_get(daemon, client->owner, client->uid, own);
}
