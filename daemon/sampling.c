/* SPDX-License-Identifier: MIT */
/*
 * Which agents look at their counters, and how often. Looking costs wakeups in somebody else's process, so it happens
 * only while it can change a decision: somebody else on the device has work, or a gate there is closed. Also the
 * leases: closed gates with work are renewed while the daemon is well.
 *
 *   fast   it has work or queues whose doorbells are not seen, and another client on the device has work or a gate is
 * closed slow   nobody has known work, but it has unseen queues that are closed, or unseen compute queues beside other
 * clients off    otherwise; switched off a while after it was last needed, so that short gaps cost no messages
 */
#include "daemon/daemon.h"

#define SAMPLING_LINGER_NS 20000000ull

/* Per device: how many clients there are and have work, how many gates are closed. Queues of one client are not
 * adjacent, so a client is counted at its first queue of the round. */
static void sampling_count(struct gp_daemon *daemon)
{
	daemon->sampling_round++;
	for (uint32_t i = 0; i < daemon->device_count; i++) {
		struct gp_device_entry *device = &daemon->devices[i];

		device->clients = device->busy_clients = device->closed_queues = 0;
		for (struct gp_queue_entry *q = device->queues; q; q = q->device_next) {
			struct gp_client *client = q->client;

			if (client->sampling_round != daemon->sampling_round) {
				client->sampling_round = daemon->sampling_round;
				client->here = client->busy = 0;
			}
			device->closed_queues += q->closed;
			device->clients += !(client->here >> i & 1);
			client->here |= 1ull << i;
			if (q->pending) {
				device->busy_clients += !(client->busy >> i & 1);
				client->busy |= 1ull << i;
			}
		}
	}
}

/* Nothing tells when such a queue gets work. The few unseen queues of a runtime whose doorbells are seen otherwise
 * (blits) are not worth waking an idle machine for: they get work beside queues that are seen. */
static bool sampling_is_raw(const struct gp_queue_entry *queue)
{
	return queue->wire.kind == GP_WIRE_COMPUTE && !(queue->client->device.flags & GP_HELLO_DOORBELLS);
}

static uint64_t sampling_need(const struct gp_daemon *daemon, const struct gp_client *client)
{
	uint64_t need = 0;

	for (uint32_t i = 0; i < client->slot_count; i++) {
		const struct gp_queue_entry *q = client->slots[i].queue;
		const struct gp_device_entry *device = q ? &daemon->devices[q->device] : NULL;
		bool unseen = q && !(q->wire.flags & GP_QUEUE_SEEN);
		bool others_busy;

		if (!q || !q->in_core)
			continue;
		others_busy = device->busy_clients > (client->busy >> q->device & 1);
		if ((q->pending || unseen) && (others_busy || (device->closed_queues && device->busy_clients)))
			return daemon->config.sample_ns;
		if (unseen && (q->closed || (sampling_is_raw(q) && device->clients > 1)))
			need = daemon->config.idle_sample_ns;
	}
	return need;
}

static void sampling_set(struct gp_client *client, uint64_t interval_ns)
{
	struct gp_wire_sample message = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_SAMPLE, sizeof(message), 0 },
		.interval_ns = interval_ns,
	};

	if (client->sample_ns != interval_ns && !gp_peer_send(client->peer, &message, sizeof(message), NULL, 0))
		client->sample_ns = interval_ns;
}

static void sampling_renew(const struct gp_daemon *daemon, struct gp_client *client, uint64_t now_ns)
{
	bool needed = false;

	for (uint32_t i = 0; i < client->slot_count && !needed; i++)
		needed = client->slots[i].queue && client->slots[i].queue->closed && client->slots[i].queue->pending;
	client->lease_needed = needed;
	if (!needed || now_ns - client->lease_ns < daemon->config.lease_ns / 4)
		return;
	client->lease_ns = now_ns;
	__atomic_fetch_add(&client->page->renewals, 1, __ATOMIC_RELEASE);
}

void gp_sampling_update(struct gp_daemon *daemon, uint64_t now_ns)
{
	uint64_t need, next_ns = UINT64_MAX, at_ns;

	if (!daemon->sampling_dirty && now_ns < daemon->sampling_next_ns)
		return;
	daemon->sampling_dirty = false;
	sampling_count(daemon);
	for (uint32_t i = 0; i < daemon->client_top; i++) {
		struct gp_client *client = daemon->clients[i];

		if (!client || !client->welcomed || !client->peer)
			continue;
		need = sampling_need(daemon, client);
		if (need) {
			client->sample_until_ns = now_ns + SAMPLING_LINGER_NS;
			sampling_set(client, need);
		} else if (client->sample_ns && now_ns >= client->sample_until_ns) {
			sampling_set(client, 0);
		}
		if (!need && client->sample_ns && client->sample_until_ns < next_ns)
			next_ns = client->sample_until_ns;
		sampling_renew(daemon, client, now_ns);
		at_ns = client->lease_ns + daemon->config.lease_ns / 4;
		if (client->lease_needed && at_ns < next_ns)
			next_ns = at_ns;
	}
	daemon->sampling_next_ns = next_ns;
}
