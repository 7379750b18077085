/* SPDX-License-Identifier: MIT */
/*
 * Decides which agents sample their counters, and how often. Sampling costs wakeups in the client's process, so it
 * happens only while it can change a decision: another client on the device has work, or a gate there is closed. This
 * file also renews the leases of closed gates with work, while the daemon is well.
 *
 * - fast: the client has work, or queues whose doorbells the agent cannot observe (unseen), and another client on the
 *   device has work or a gate there is closed;
 * - slow: no client has known work, but this one has unseen queues that are closed (until they open, on a device that
 *   rests), or unseen compute queues beside other clients; or only this client has work, and others sample because of
 *   that;
 * - off: otherwise. The daemon switches sampling off a while after it was last needed, so that short gaps cost no
 *   messages.
 */
#include "daemon/daemon.h"

#define SAMPLING_LINGER_NS 20000000ull
#define SAMPLING_WORK      64u /* queues that the daemon looks at for a unit of work */

/* Puts a client on the list of this round, once. */
static void sampling_touch(struct gp_daemon *daemon, struct gp_client *client, struct gp_client **touched)
{
	if (client->sampling_round == daemon->sampling.round)
		return;
	client->sampling_round = daemon->sampling.round;
	client->busy = client->need_ns = 0;
	client->lease_needed = false;
	client->touched_next = *touched;
	*touched = client;
}

static void sampling_want(struct gp_client *client, uint64_t interval_ns)
{
	if (!client->need_ns || interval_ns < client->need_ns)
		client->need_ns = interval_ns;
}

/* Only sampling tells when such a queue gets work. If the agent observes the other doorbells of the runtime, its few
 * unseen queues (blits) are not worth waking an idle machine for: they get work beside queues that are seen. */
static bool sampling_is_raw(const struct gp_queue_entry *queue)
{
	return queue->wire.kind == GP_WIRE_COMPUTE && !(queue->client->device.flags & GP_HELLO_DOORBELLS);
}

/* Asked for each unseen queue, of which one client may have a thousand. */
static bool sampling_is_alone(struct gp_daemon *daemon, const struct gp_queue_entry *queue)
{
	return queue->client->device_queue_count[queue->device] == daemon->devices[queue->device].queue_count;
}

static void sampling_device(struct gp_daemon *daemon, uint32_t index, struct gp_client **touched)
{
	struct gp_device_entry *device = &daemon->devices[index];
	struct gp_queue_entry *q;
	bool watched = false;
	uint32_t looks = 0;

	device->busy_clients = 0;
	for (q = device->busy; q; q = q->links[GP_QUEUE_BUSY].next, looks++) {
		sampling_touch(daemon, q->client, touched);
		device->busy_clients += !(q->client->busy >> index & 1);
		q->client->busy |= 1ull << index;
		q->client->lease_needed |= q->closed;
	}
	for (q = device->unseen; q; q = q->links[GP_QUEUE_UNSEEN].next, looks++) {
		sampling_touch(daemon, q->client, touched);
		if (!q->in_core)
			continue;
		watched |= device->busy_clients > (q->client->busy >> index & 1);
		if (device->busy_clients > (q->client->busy >> index & 1) ||
		    (device->closed_queues && device->busy_clients))
			sampling_want(q->client, daemon->config.sample_ns);
		else if (q->closed || (sampling_is_raw(q) && !sampling_is_alone(daemon, q)))
			sampling_want(q->client, daemon->config.idle_sample_ns);
	}
	/* If the end of this work went unnoticed, the other agents would sample their unseen queues for ever. */
	for (q = device->busy; q; q = q->links[GP_QUEUE_BUSY].next)
		if (q->in_core && (device->busy_clients > 1 || device->closed_queues))
			sampling_want(q->client, daemon->config.sample_ns);
		else if (q->in_core && watched)
			sampling_want(q->client, daemon->config.idle_sample_ns);
	gp_portion_use(daemon, looks / SAMPLING_WORK);
}

void gp_sampling_forget(struct gp_daemon *daemon, struct gp_client *client)
{
	if (!client->sample_ns)
		return;
	if (client->sampled_prev)
		client->sampled_prev->sampled_next = client->sampled_next;
	else
		daemon->sampling.clients = client->sampled_next;
	if (client->sampled_next)
		client->sampled_next->sampled_prev = client->sampled_prev;
	client->sample_ns = 0;
}

static void sampling_set(struct gp_daemon *daemon, struct gp_client *client, uint64_t interval_ns)
{
	struct gp_wire_sample message = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_SAMPLE, sizeof(message), 0 },
		.interval_ns = interval_ns,
	};

	if (client->sample_ns == interval_ns || gp_peer_send(client->peer, &message, sizeof(message), NULL, 0))
		return;
	gp_sampling_forget(daemon, client);
	client->sample_ns = interval_ns;
	if (!interval_ns)
		return;
	client->sampled_prev = NULL;
	client->sampled_next = daemon->sampling.clients;
	if (daemon->sampling.clients)
		daemon->sampling.clients->sampled_prev = client;
	daemon->sampling.clients = client;
}

static void sampling_renew(struct gp_client *client, uint64_t now_ns)
{
	if (!client->lease_needed || now_ns - client->lease_ns < client->lease_sent_ns / 4)
		return;
	client->lease_ns = now_ns;
	__atomic_fetch_add(&client->page->renewals, 1, __ATOMIC_RELEASE);
}

static uint64_t sampling_client(struct gp_daemon *daemon, struct gp_client *client, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX, look_ns;

	if (client->need_ns) {
		client->sample_until_ns = now_ns + SAMPLING_LINGER_NS;
		sampling_set(daemon, client, client->need_ns);
	} else if (client->sample_ns && now_ns >= client->sample_until_ns) {
		sampling_set(daemon, client, 0);
	} else if (client->sample_ns) {
		next_ns = client->sample_until_ns;
	}
	look_ns = gp_silence_check(daemon, client, now_ns);
	next_ns = look_ns < next_ns ? look_ns : next_ns;
	sampling_renew(client, now_ns);
	if (client->lease_needed && client->lease_ns + client->lease_sent_ns / 4 < next_ns)
		next_ns = client->lease_ns + client->lease_sent_ns / 4;
	return next_ns;
}

void gp_sampling_changed(struct gp_daemon *daemon)
{
	gp_timer_sooner(daemon, &daemon->sampling.timer, GP_TIMER_NOW);
}

/* The cost grows with the number of queues with work or unseen, not with the number of clients. */
void gp_sampling_update(struct gp_daemon *daemon, uint64_t now_ns)
{
	struct gp_client *touched = NULL, *client;
	uint64_t next_ns = UINT64_MAX, at_ns;

	if (!gp_timer_expire(daemon, &daemon->sampling.timer, now_ns))
		return;
	daemon->sampling.round++;
	for (uint32_t i = 0; i < daemon->device_count; i++)
		sampling_device(daemon, i, &touched);
	for (client = daemon->sampling.clients; client; client = client->sampled_next)
		sampling_touch(daemon, client, &touched);
	for (client = touched; client; client = client->touched_next) {
		if (!client->welcomed || !client->peer)
			continue;
		at_ns = sampling_client(daemon, client, now_ns);
		next_ns = at_ns < next_ns ? at_ns : next_ns;
	}
	if (next_ns != UINT64_MAX)
		gp_timer_sooner(daemon, &daemon->sampling.timer, next_ns);
}
