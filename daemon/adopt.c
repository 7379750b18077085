/* SPDX-License-Identifier: MIT */
/*
 * Schedules unmanaged processes as clients without an agent, if root has chosen that. No agent counts their packets,
 * so their queues count as busy for as long as they exist. The daemon, as their debugger, puts them aside while
 * something more urgent has work.
 */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "daemon/unmanaged.h"

struct gp_client *gp_adopt(struct gp_daemon *daemon, struct gp_driver_entry *driver, pid_t pid, uid_t uid,
			   const char *name, const struct gp_process_identity *identity)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct gp_client *client;
	struct gp_owner *owner;
	int r;

	if (pidfd < 0)
		return NULL;
	owner = gp_owner_of(daemon, identity->account, identity->uid);
	r = gp_client_create(daemon, owner, &client);
	gp_owner_put(owner);
	if (r) {
		close(pidfd);
		return NULL;
	}
	client->is_unmanaged = true;
	client->driver = driver;
	client->uid = uid;
	client->identity = gp_identity_copy(identity);
	client->device.pid = pid;
	client->device.uid = uid;
	client->device.owner = client->owner->id;
	client->device.pidfd = pidfd;
	client->device.flags = GP_HELLO_RUNTIME; /* assumed: attaching shows whether it is true */
	snprintf(client->name, sizeof(client->name), "%s", name);
	gp_client_adopted(daemon, client);
	gp_log("process %d (%s, uid %u) has no agent: it is set aside while more urgent work is there", pid,
	       client->name, uid);
	driver->ops->attach(driver->backend, &client->device);
	gp_timer_set(daemon, &daemon->scan.timer, GP_TIMER_NOW); /* the scan finds its queues */
	return client;
}

void gp_adopt_begin(struct gp_client *client)
{
	for (uint32_t i = 0; i < client->slot_count; i++)
		if (client->slots[i].queue)
			client->slots[i].queue->adopted = false;
}

void gp_adopt_queue(struct gp_daemon *daemon, struct gp_client *client, uint32_t queue_id, uint32_t gpu_id,
		    bool compute)
{
	struct gp_wire_queue wire = { .slot = GP_WIRE_QUEUE_MAX,
				      .kind = compute ? GP_WIRE_COMPUTE : GP_WIRE_COPY,
				      .gpu_id = gpu_id,
				      .queue_id = queue_id,
				      .hw_priority = 7 };
	struct gp_queue_entry *queue;

	for (uint32_t i = 0; i < client->slot_count; i++) {
		queue = client->slots[i].queue;
		if (queue && queue->wire.queue_id == queue_id && queue->wire.gpu_id == gpu_id) {
			queue->adopted = true;
			return;
		}
		if (!queue && i < wire.slot)
			wire.slot = i;
	}
	if (wire.slot == GP_WIRE_QUEUE_MAX)
		wire.slot = client->slot_count;
	if (wire.slot >= GP_WIRE_QUEUE_MAX)
		return;
	wire.generation = wire.slot < client->slot_count ? client->slots[wire.slot].generation + 1 : 1;
	if (gp_queue_add(daemon, client, &wire))
		return;
	queue = client->slots[wire.slot].queue;
	queue->adopted = true;
	gp_queue_set_pending(daemon, queue, true);
	if (client->driver->ops->queue_added)
		client->driver->ops->queue_added(client->driver->backend, &client->device, gpu_id, queue_id);
	if (client->device.mechanism != GP_MECHANISM_NONE)
		gp_queue_enter(daemon, queue);
}

void gp_adopt_end(struct gp_daemon *daemon, struct gp_client *client)
{
	for (uint32_t i = 0; i < client->slot_count; i++)
		if (client->slots[i].queue && !client->slots[i].queue->adopted)
			gp_queue_remove(daemon, client->slots[i].queue);
}

bool gp_adopt_is_paused(const struct gp_client *client)
{
	for (uint32_t i = 0; i < client->slot_count; i++)
		if (client->slots[i].queue && client->slots[i].queue->closed)
			return true;
	return false;
}
