/* SPDX-License-Identifier: MIT */
/* Sends orders to agents and handles their answers, or that an agent does not answer. Whatever an agent says is about
 * its own process only. */
#include <errno.h>
#include "daemon/daemon.h"

#define ORDER_LATE_NS 100000000ull /* the journal mentions answers later than this; chosen */
#define ORDER_SAY_NS  10000000000ull

/* Logs at most every ten seconds: a client that is slow rather than dead would fill the journal. */
void gp_client_answers(struct gp_daemon *daemon, struct gp_client *client, bool answers)
{
	uint64_t now_ns = gp_now_ns();

	if (!answers)
		client->silent_by = client->device.mechanism;
	if (client->answers == answers)
		return;
	client->answers = answers;
	if (!answers)
		gp_quarantine_silent(daemon, client);
	if (client->answer_logged_ns && now_ns - client->answer_logged_ns < ORDER_SAY_NS)
		return;
	client->answer_logged_ns = now_ns;
	/* If the daemon changes the gates itself, it waits for the driver and not for the program. */
	gp_log_user(daemon, client->owner, "process %d (%s): %s %s", client->device.pid, client->name,
		    gp_mechanism_has(client->device.mechanism, GP_BY_DAEMON) ? "the driver" : "its agent",
		    answers ? "answers again" : "does not answer; its gates are left as they are");
}

/* Tries to become the client's debugger, so that the daemon can change the gates instead of the agent. That may have
 * been impossible when the client connected (another process traced it). It stays impossible where the agent is its own
 * debugger. */
void gp_client_escalate(struct gp_daemon *daemon, struct gp_client *client)
{
	uint64_t now_ns = gp_now_ns();

	if (!client->peer || !(client->device.flags & GP_HELLO_RUNTIME) ||
	    !gp_mechanism_has(client->device.mechanism, GP_IS_SECOND_BEST) ||
	    (client->escalated_ns && now_ns - client->escalated_ns < ORDER_SAY_NS))
		return;
	client->escalated_ns = now_ns;
	client->driver->ops->attach(client->driver->backend, &client->device);
}

void gp_client_answered(struct gp_daemon *daemon, struct gp_client *client)
{
	if (client->answers)
		return;
	gp_client_answers(daemon, client, true);
	gp_quarantine_answered(daemon, client);
}

void gp_client_applied(struct gp_daemon *daemon, struct gp_client *client, const struct gp_wire_applied *applied)
{
	struct gp_device_entry *device = gp_device_find(daemon, applied->gpu_id);
	uint64_t ns = 0, real_ns = gp_now_ns(), now_ns = gp_daemon_now_ns(daemon);
	uint32_t opens = 0, good = 0;
	bool is_paused = false; /* the daemon stood still meanwhile: the time says nothing */

	if (!device)
		return;
	for (uint32_t i = 0; i < applied->count; i++) {
		const struct gp_wire_change *change = &applied->changes[i];
		struct gp_queue_entry *queue = gp_client_queue(client, change->slot, change->generation);

		/* Each order has one answer: the daemon ignores further ones and learns no cost from them. */
		if (!queue || queue->device != (uint32_t)(device - daemon->devices) ||
		    queue->order_seq != applied->seq || !queue->is_ordered)
			continue;
		opens += change->open;
		good += !change->result;
		ns = real_ns - queue->ordered_ns; /* the daemon's clock; times that the agent states decide nothing */
		is_paused |= gp_pause_since(queue->ordered_ns);
		/* EACCES: the driver has reset a queue of this process; it will never be suspended again. */
		gp_carry_answer(daemon, device, queue, applied->seq, change->open,
				change->result == -EACCES ? -EIO : change->result, now_ns);
	}
	if (good && !is_paused && (!opens || opens == applied->count))
		gp_device_learn(daemon, device, client, opens,
				device->info.unit == GP_UNIT_QUEUE ? ns / applied->count : ns);
	if (ns > ORDER_LATE_NS && !is_paused)
		gp_notice(daemon, client->owner, GP_NOTICE_LATE);
	if (ns && applied->done_ns > applied->issue_ns && applied->done_ns - applied->issue_ns > 2 * ns)
		gp_notice(daemon, client->owner, GP_NOTICE_COST);
	client->orders_open -= client->orders_open ? 1 : 0;
	gp_client_answered(daemon, client);
}

void gp_client_lost(struct gp_daemon *daemon, struct gp_client *client, const struct gp_wire_lost *lost)
{
	for (uint32_t i = 0; i < lost->count; i++) {
		struct gp_queue_entry *queue =
			gp_client_queue(client, lost->changes[i].slot, lost->changes[i].generation);

		if (!queue)
			continue;
		gp_queue_lost(daemon, queue, (enum gp_lost)lost->why, lost->changes[i].open);
		if (lost->changes[i].open)
			gp_queue_open_again(daemon, queue);
		gp_slicing_lost(daemon, queue);
	}
	if (lost->why != GP_LOST_LEASE)
		return;
	client->leases_lost += lost->count;
	daemon->counters.leases_lost += lost->count;
	gp_log_user(daemon, client->owner, "process %d (%s): %u gates opened because their lease ran out",
		    client->device.pid, client->name, lost->count);
}

int gp_client_order(void *context, struct gp_device_client *device_client, uint64_t seq, uint32_t gpu_id,
		    const struct gp_device_change *changes, uint32_t count)
{
	struct gp_daemon *daemon = context;
	struct gp_client *client = gp_client_find(daemon, device_client->tag);
	struct {
		struct gp_wire_order head;
		struct gp_wire_change changes[GP_WIRE_ORDER_MAX];
	} message;
	size_t size = sizeof(message.head) + count * sizeof(message.changes[0]);
	int r;

	if (!client || !client->peer || !client->welcomed)
		return -ENOTCONN;
	if (count > GP_WIRE_ORDER_MAX)
		return -E2BIG;
	message.head = (struct gp_wire_order){
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_ORDER, (uint32_t)size, 0 },
		.seq = seq,
		.gpu_id = gpu_id,
		.count = count,
	};
	for (uint32_t i = 0; i < count; i++)
		message.changes[i] =
			(struct gp_wire_change){ changes[i].slot, changes[i].generation, changes[i].open, 0 };
	r = gp_peer_send(client->peer, &message, size, NULL, 0);
	if (!r) {
		client->orders_open++;
	} else {
		gp_client_answers(daemon, client, false);
	}
	return r;
}
