/* SPDX-License-Identifier: MIT */
/*
 * Channel groups: the handles of a queue, which its agent describes and the backend checks, where the backend needs
 * them to change the queue's gate itself. If the backend does not find a group, the queue may just be ending. If it is
 * still there after a while, the client falls back to a mechanism of its agent. If the backend cannot check a group
 * yet, the daemon asks again until it can, less and less often.
 */
#include <stdio.h>
#include "daemon/daemon.h"

/* An agent sends QUEUE_REMOVE before the queue ends: after so long the daemon has read it, unless messages of the
 * client wait for their user's share of the thread. For those the daemon waits a little longer. Chosen. */
#define CHANNEL_GROUP_DOUBT_NS     100000000ull
#define CHANNEL_GROUP_DOUBT_MAX_NS 5000000000ull
#define CHANNEL_GROUP_RETRY_NS     1000000000ull /* until the daemon falls back or asks again; then twice as long … */
#define CHANNEL_GROUP_RETRY_MAX_NS 32000000000ull /* … each time it asks, up to this; chosen */
/* Groups of one client that the backend checks, when the daemon asks again; fewer than the backend lets wait. */
#define CHANNEL_GROUP_ASKED_MAX 16u
#define CHANNEL_GROUP_WORK      64u /* queues that the daemon looks at for a unit of work */

static void channel_group_ask(struct gp_queue_entry *queue)
{
	struct gp_client *client = queue->client;

	queue->group.is_asked = true;
	queue->group.again_ns = 0;
	client->driver->ops->group(client->driver->backend, &client->device, queue->wire.gpu_id,
				   &queue->group.described);
}

void gp_channel_group_described(struct gp_daemon *daemon, struct gp_client *client, const struct gp_wire_group *group)
{
	struct gp_queue_entry *queue = gp_client_queue(client, group->slot, group->generation);

	if (!queue)
		return; /* left out, or just removed */
	gp_slicing_set_app(daemon, queue, group->slice_us);
	queue->group.described = *group;
	queue->group.wait_ns = 0;
	if (client->driver->ops->group)
		channel_group_ask(queue);
}

void gp_channel_group_found(struct gp_daemon *daemon, struct gp_client *client, const struct gp_device_grouped *grouped)
{
	struct gp_queue_entry *queue = gp_client_queue(client, grouped->slot, grouped->generation);

	if (!queue)
		return;
	queue->group.is_found = true;
	queue->group.is_asked = false;
	queue->group.doubt_ns = queue->group.wait_ns = 0;
	/* If the backend could not change the gate or the slice of the new group, the gate is open and the slice is not
	 * known. Answers to what the daemon asked meanwhile are still to come. */
	if (grouped->gate)
		gp_queue_lost(daemon, queue, GP_LOST_RUNTIME, true);
	if (grouped->slice)
		gp_slicing_not_set_again(daemon, queue, grouped->slice);
	gp_queue_reconsider(daemon, queue);
}

/* What keeps the backend waiting may never end: files of the client's user that do not close. */
static void channel_group_wait(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	uint64_t wait_ns = queue->group.wait_ns ? 2 * queue->group.wait_ns : CHANNEL_GROUP_RETRY_NS;

	queue->group.wait_ns = wait_ns < CHANNEL_GROUP_RETRY_MAX_NS ? wait_ns : CHANNEL_GROUP_RETRY_MAX_NS;
	queue->group.again_ns = gp_now_ns() + queue->group.wait_ns;
	gp_timer_sooner(daemon, &daemon->channel_group_timer, queue->group.again_ns);
}

void gp_channel_group_missing(struct gp_daemon *daemon, struct gp_client *client,
			      const struct gp_device_grouped *grouped, const char *why)
{
	struct gp_queue_entry *queue = gp_client_queue(client, grouped->slot, grouped->generation);

	if (!queue)
		return; /* just removed: nothing is wrong */
	queue->group.is_asked = false;
	if (grouped->is_early) {
		channel_group_wait(daemon, queue);
		return;
	}
	snprintf(client->doubt_why, sizeof(client->doubt_why), "%s", why);
	/* Since the first time: a client whose agent describes missing groups again and again would never be scheduled.
	 */
	if (!queue->group.doubt_ns) {
		queue->group.doubt_ns = gp_now_ns() + CHANNEL_GROUP_DOUBT_NS;
		queue->group.doubt_end_ns = gp_now_ns() + CHANNEL_GROUP_DOUBT_MAX_NS;
	}
	gp_timer_sooner(daemon, &daemon->channel_group_timer, queue->group.doubt_ns);
}

/* The queue still exists, but the backend does not find its channel group. The client's agent may reach it, so the
 * client falls back to a mechanism of its agent. */
static void channel_group_doubt(struct gp_daemon *daemon, struct gp_queue_entry *queue, uint64_t now_ns)
{
	struct gp_client *client = queue->client;

	if (!gp_mechanism_has(client->device.mechanism, GP_NEEDS_GROUP))
		queue->group.doubt_ns = 0; /* the client has another mechanism by now */
	if (!queue->group.doubt_ns)
		return;
	if (now_ns >= queue->group.doubt_ns && client->peer && client->peer->in_fair &&
	    now_ns < queue->group.doubt_end_ns)
		queue->group.doubt_ns = now_ns + CHANNEL_GROUP_DOUBT_NS;
	if (now_ns >= queue->group.doubt_ns) {
		queue->group.doubt_ns = now_ns + CHANNEL_GROUP_RETRY_NS;
		client->driver->ops->fall_back(client->driver->backend, &client->device, client->doubt_why);
	}
	gp_timer_sooner(daemon, &daemon->channel_group_timer, queue->group.doubt_ns);
}

/* Finds how many groups of each client the backend checks. */
static void channel_groups_count_asked(struct gp_daemon *daemon)
{
	uint32_t looks = 0;

	for (uint32_t i = 0; i < daemon->device_count; i++)
		for (struct gp_queue_entry *queue = daemon->devices[i].queues; queue; queue = queue->device_next)
			queue->client->groups_asked = 0;
	for (uint32_t i = 0; i < daemon->device_count; i++)
		for (struct gp_queue_entry *queue = daemon->devices[i].queues; queue;
		     queue = queue->device_next, looks++)
			queue->client->groups_asked += queue->group.is_asked;
	gp_portion_use(daemon, 1 + looks / CHANNEL_GROUP_WORK);
}

static void channel_group_again(struct gp_daemon *daemon, struct gp_queue_entry *queue, uint64_t now_ns)
{
	struct gp_client *client = queue->client;

	if (!gp_mechanism_has(client->device.mechanism, GP_NEEDS_GROUP) && !client->device.is_handed_over)
		queue->group.again_ns = 0; /* the client has another mechanism by now */
	if (!queue->group.again_ns)
		return;
	if (now_ns >= queue->group.again_ns) {
		if (client->groups_asked < CHANNEL_GROUP_ASKED_MAX) {
			channel_group_ask(queue);
			client->groups_asked++;
			return;
		}
		queue->group.again_ns = now_ns + CHANNEL_GROUP_DOUBT_NS;
	}
	gp_timer_sooner(daemon, &daemon->channel_group_timer, queue->group.again_ns);
}

/* Looks at the queues there are, and not at the slots of clients, of which most may be empty. */
void gp_channel_group_due(struct gp_daemon *daemon, uint64_t now_ns)
{
	channel_groups_count_asked(daemon);
	for (uint32_t i = 0; i < daemon->device_count; i++)
		for (struct gp_queue_entry *queue = daemon->devices[i].queues; queue; queue = queue->device_next) {
			channel_group_doubt(daemon, queue, now_ns);
			channel_group_again(daemon, queue, now_ns);
		}
}
