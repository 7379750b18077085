/* SPDX-License-Identifier: MIT */
/*
 * Handles agents' messages: HELLO, queues, counters, RUNTIME. A client is the process behind one connection and ends
 * with it. Whatever an agent says is about its own process only: a lying agent can only have its own process scheduled
 * badly.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include "daemon/daemon.h"
#include "daemon/unmanaged.h"
#include "lib/closer.h"

#define CLIENT_INDEX_SHIFT 10   /* a queue's tag has its slot below the client's index */
#define CLIENT_SYNC_SOME   64u  /* agents that the daemon asks for counters between two looks at urgent work */
#define CLIENT_CROWD       64u  /* from so many clients of one user on, the journal mentions them; chosen */
#define CLIENT_PAGES       16u  /* of ended clients that take no place while they wait to be given back; chosen */
#define CLIENT_KEPT        64u  /* places for root alone, or a sixteenth if that is less; chosen */
#define CLIENT_HEADS       512u /* clients of a user, with 4 KB each, that may come at once; chosen … */
#define CLIENT_HEAD_NS     100000000ull /* … and one more after this */

struct gp_client *gp_client_find(const struct gp_daemon *daemon, uint64_t tag)
{
	uint32_t index = (uint32_t)tag >> CLIENT_INDEX_SHIFT;
	struct gp_client *client = index < daemon->config.client_max ? daemon->clients[index] : NULL;

	return client && client->device.tag >> 32 == tag >> 32 ? client : NULL;
}

static uint32_t client_kept(const struct gp_daemon *daemon)
{
	uint32_t part = daemon->config.client_max / 16;

	return part < CLIENT_KEPT ? part : CLIENT_KEPT;
}

/* A few are always under way when many clients come and go. */
static uint32_t client_late_pages(uint32_t pending)
{
	return pending > CLIENT_PAGES ? pending - CLIENT_PAGES : 0;
}

int gp_client_create(struct gp_daemon *daemon, struct gp_owner *owner, struct gp_client **ret_client)
{
	/* A client that has ended keeps its place until the memory of its page is given back. */
	uint32_t used = daemon->client_count + client_late_pages(gp_unmap_pending());
	uint32_t own = owner->client_count + client_late_pages(gp_unmap_pending_of(owner->id));
	uint32_t index, i;
	struct gp_client *client;

	if (!gp_owner_may_take(owner, daemon->config.client_max, client_kept(daemon), used, own))
		return -ENOSPC;
	for (i = 0, index = daemon->client_hint; daemon->clients[index]; i++)
		index = (index + 1) % daemon->config.client_max;
	client = calloc(1, sizeof(*client));
	if (!client)
		return -ENOMEM;
	client->owner = gp_owner_hold(owner);
	if (++owner->client_count >= CLIENT_CROWD)
		gp_notice(daemon, owner, GP_NOTICE_CROWD);
	client->index = index;
	client->doorbell_fd = -1;
	client->page_fd = -1;
	client->device.pidfd = -1;
	client->driver = gp_driver_for(daemon, 0);
	client->device.tag = (uint64_t)++daemon->serial << 32 | (uint64_t)index << CLIENT_INDEX_SHIFT;
	client->answers = true;
	client->connected_ns = gp_now_ns();
	gp_client_attr_init(client);
	client->ceiling = GP_PRIORITY_MAX;
	client->may_raise = true;
	daemon->clients[index] = client;
	daemon->client_hint = (index + 1) % daemon->config.client_max;
	if (index >= daemon->client_top)
		daemon->client_top = index + 1;
	daemon->client_count++;
	daemon->counters.clients_seen++;
	gp_metrics_changed(daemon);
	*ret_client = client;
	return 0;
}

void gp_client_remove(struct gp_daemon *daemon, struct gp_client *client)
{
	client->driver->ops->detach(client->driver->backend, &client->device, true);
	gp_sampling_forget(daemon, client);
	gp_fair_forget(daemon, client);
	gp_client_synced(daemon, client);
	gp_client_forget_attr(daemon, client);
	for (uint32_t i = 0; i < client->slot_count; i++)
		if (client->slots[i].queue)
			gp_queue_remove(daemon, client->slots[i].queue);
	gp_account_end(daemon, client);
	if (client->in_core)
		gp_sched_client_remove(daemon->sched, client->core, gp_daemon_now_ns(daemon));
	/* Its process may keep the page for ever: without its memory. To the agent zeros say that every gate is open,
	 * that no doorbell is to be told, and that the lease was renewed once more; it finds the connection ended. */
	if (client->page)
		gp_unmap_elsewhere(client->page, sizeof(*client->page), client->owner->id);
	if (client->page_fd >= 0)
		close(client->page_fd);
	gp_daemon_drop(daemon, client->doorbell_fd);
	if (client->peer)
		client->peer->client = NULL;
	else if (client->device.pidfd >= 0)
		close(client->device.pidfd);
	GP_ASSERT(!client->queue_count && daemon->clients[client->index] == client && daemon->client_count &&
		  client->owner->client_count);
	daemon->clients[client->index] = NULL;
	while (daemon->client_top && !daemon->clients[daemon->client_top - 1])
		daemon->client_top--;
	daemon->client_count--;
	client->owner->client_count--;
	gp_metrics_changed(daemon);
	free(client->slots);
	gp_identity_fini(&client->identity);
	free(client->shares);
	client->shares = NULL;
	/* epoll events of this round may still point here. */
	client->dead = true;
	gp_together_update(daemon, client);
	client->next_dead = daemon->dead_clients;
	daemon->dead_clients = client;
}

static void client_doorbell(struct gp_daemon *daemon, void *owner, uint32_t events)
{
	struct gp_client *client = owner;

	(void)events;
	/* epoll reports each write to the eventfd as an edge. So the daemon never reads it: that would only cost a
	 * call. */
	if (!client->dead)
		gp_fair_ring(daemon, client);
}

/* Creates the page. Its seals keep everyone from changing its size, so that reading it never faults. The client maps it
 * for writing before the last seal (client_seal_page()). */
static int client_make_page(struct gp_client *client)
{
	int fd = memfd_create("gpreempt-page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *page;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, sizeof(struct gp_page)) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW)) {
		close(fd);
		return -errno;
	}
	page = mmap(NULL, sizeof(struct gp_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		close(fd);
		return -errno;
	}
	client->page = page;
	client->page->magic = GP_PAGE_MAGIC;
	client->page->version = client->peer->version;
	client->page->queue_count = GP_WIRE_QUEUE_MAX;
	client->page->armed = GP_ARMED_BUSY;
	client->page->barriers = gp_queue_makes_barriers();
	client->page_fd = fd;
	return 0;
}

/* Its user can have the kernel take from memory what the client wrote (a cgroup with a limit, and swap), and the
 * decision thread would wait for it at each look. What it has touched once stays in memory from here on. If the kernel
 * refuses that, the daemon goes on. A page without the last seal is not locked: no memory of it could be given back. */
static void client_lock_page(const struct gp_client *client)
{
	if (fcntl(client->page_fd, F_GET_SEALS) & F_SEAL_SEAL)
		(void)mlock2(client->page, sizeof(*client->page), MLOCK_ONFAULT);
}

/* From now on only those who have mapped the page may write it, and nobody can make holes into it: the daemon would
 * fill them with memory of its own, as often as the client likes. Linux before 5.1 knows no such seal. False: the
 * connection has ended. */
static bool client_seal_page(struct gp_daemon *daemon, struct gp_client *client)
{
	if (client->page_fd < 0)
		return true;
	if (fcntl(client->page_fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) && errno != EINVAL) {
		gp_peer_refuse(daemon, client->peer, "a page with a seal of its own");
		return false;
	}
	client_lock_page(client);
	close(client->page_fd);
	client->page_fd = -1;
	return true;
}

/* Whether the slot has memory. The client writes a slot before it says that a queue has it, so the memory is charged to
 * the client. What the daemon touches first is charged to the daemon, and stays so for as long as the client likes. */
static bool client_wrote_slot(const struct gp_client *client, uint32_t slot)
{
	uintptr_t at = (uintptr_t)&client->page->queues[slot], page = (uintptr_t)sysconf(_SC_PAGESIZE);
	unsigned char resident = 0;

	return !mincore((void *)(at & ~(page - 1u)), 1, &resident) && resident & 1u;
}

static int client_welcome(struct gp_daemon *daemon, struct gp_client *client)
{
	struct gp_wire_welcome welcome = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_WELCOME, sizeof(welcome), 0 },
		.version = client->peer->version,
		.mechanism = client->device.mechanism,
		.lease_ms = (uint32_t)(daemon->config.lease_ns / 1000000),
		.page_size = sizeof(struct gp_page),
	};
	int fds[2] = { -1, -1 }, r;

	GP_ASSERT(client->page_fd < 0);
	snprintf(welcome.stream_map, sizeof(welcome.stream_map), "%s", daemon->config.stream_map);
	r = client_make_page(client);
	if (r)
		return r;
	fds[0] = client->page_fd;
	client->doorbell_fd = fds[1] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	client->doorbell_source = (struct gp_source){ client_doorbell, client };
	if (fds[1] < 0)
		r = -errno;
	if (!r)
		r = gp_daemon_watch(daemon, fds[1], EPOLLIN | EPOLLET, &client->doorbell_source);
	if (!r)
		r = gp_peer_send(client->peer, &welcome, sizeof(welcome), fds, 2);
	if (r)
		return r;
	client->welcomed = true;
	client->lease_sent_ns = daemon->config.lease_ns;
	gp_client_tell_attr(client);
	return 0;
}

static void client_runtime_ok(struct gp_client *client)
{
	struct gp_wire_header message = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_RUNTIME_OK, sizeof(message),
					  client->runtime_cookie };

	client->letting_go = false;
	gp_peer_send(client->peer, &message, sizeof(message), NULL, 0);
}

/* Sets the mechanism that changes the client's gates from now on. The gates that the old mechanism had closed are open
 * by then. */
void gp_client_mechanism(struct gp_daemon *daemon, struct gp_client *client, uint32_t mechanism, const char *why)
{
	struct gp_wire_mechanism message = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_MECHANISM, sizeof(message), 0 },
		.mechanism = mechanism,
	};
	bool changed = client->device.mechanism != mechanism;

	client->device.mechanism = mechanism;
	snprintf(client->mechanism_why, sizeof(client->mechanism_why), "%s", why);
	if (!client->welcomed) {
		int r = client->peer ? client_welcome(daemon, client) : 0;

		if (r) {
			gp_peer_close(daemon, client->peer, strerror(-r));
			return;
		}
	} else if (changed && client->peer && gp_peer_send(client->peer, &message, sizeof(message), NULL, 0)) {
		/* The agent would go on with the old mechanism. When the connection ends, it opens its gates and
		 * connects again. */
		gp_peer_close(daemon, client->peer, "it does not read");
		return;
	}
	for (uint32_t i = 0; i < client->slot_count; i++) {
		struct gp_queue_entry *queue = client->slots[i].queue;

		if (!queue || !changed)
			continue;
		queue->group.doubt_ns = 0;
		gp_queue_gate(daemon, queue, true); /* it leaves the core at once, which need not hear of that */
		gp_queue_leave(daemon, queue);
		if (mechanism != GP_MECHANISM_NONE && gp_quarantine_admits(client))
			gp_queue_enter(daemon, queue);
	}
	if (client->letting_go && mechanism == GP_MECHANISM_NONE)
		client_runtime_ok(client);
}

static void client_refuse_hello(struct gp_daemon *daemon, struct gp_peer *peer, const char *why)
{
	struct gp_wire_text text = { .header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_REFUSED, sizeof(text), 0 } };

	snprintf(text.text, sizeof(text.text), "%s", why);
	gp_peer_send(peer, &text, sizeof(text), NULL, 0);
	daemon->counters.peers_refused++;
	gp_peer_close(daemon, peer, why);
}

/* The daemon touches the first 4 KB of each page, which stay charged to it for as long as anybody keeps them, also when
 * the client has gone: mapped, where the daemon or the client itself has sealed the page, or in a pipe, with or without
 * a queue. So a user gets only so many in a time. */
static bool client_may_come(struct gp_owner *owner)
{
	uint64_t now_ns = gp_now_ns();

	if (gp_owner_is_root(owner))
		return true;
	if (owner->heads_ns > now_ns + (CLIENT_HEADS - 1u) * CLIENT_HEAD_NS)
		return false;
	owner->heads_ns = (owner->heads_ns > now_ns ? owner->heads_ns : now_ns) + CLIENT_HEAD_NS;
	return true;
}

static void client_hello(struct gp_daemon *daemon, struct gp_peer *peer, const struct gp_wire_hello *hello)
{
	struct gp_client *client;
	const struct gp_wire_attr wanted = hello->attr;
	int r;

	if (peer->client) {
		gp_peer_refuse(daemon, peer, "HELLO twice");
		return;
	}
	if (hello->version_min > GP_WIRE_VERSION || hello->version_max < GP_WIRE_VERSION_MIN) {
		client_refuse_hello(daemon, peer, "agent and gpreemptd have no protocol version in common");
		return;
	}
	if (!client_may_come(peer->owner)) {
		client_refuse_hello(daemon, peer, "your user began more than 10 programs a second");
		return;
	}
	r = gp_client_create(daemon, peer->owner, &client);
	if (r) {
		client_refuse_hello(daemon, peer, "gpreemptd has no room for another client of yours (clients_max)");
		return;
	}
	gp_peer_watch_end(daemon, peer);
	peer->client = client;
	client->peer = peer;
	client->uid = peer->uid;
	client->identity = gp_identity_take(&peer->identity);
	client->device.pid = peer->pid;
	client->device.uid = peer->uid;
	client->device.owner = client->owner->id;
	client->device.pidfd = peer->pidfd;
	client->device.flags = hello->flags;
	client->device.mechanisms = hello->mechanisms;
	client->driver = gp_driver_for(daemon, hello->mechanisms);
	memcpy(client->name, hello->name, sizeof(client->name));
	memcpy(client->runtime, hello->runtime, sizeof(client->runtime));
	memcpy(client->agent, hello->agent, sizeof(client->agent));
	gp_client_find_terms(daemon, client);
	if (wanted.valid & GP_ATTR_PRIORITY && wanted.priority > client->ceiling)
		gp_log_user(daemon, peer->owner,
			    "audit: process %d (%s, uid %u) asked for priority %d, its ceiling is %d", peer->pid,
			    client->name, peer->uid, wanted.priority, client->ceiling);
	if (!client->may_raise && gp_access_is_raise(&wanted))
		gp_log_user(
			daemon, peer->owner,
			"audit: process %d (%s, uid %u) asked for a share, a weight above %u, a deadline or protection, which its ceiling does not allow",
			peer->pid, client->name, peer->uid, GP_WEIGHT_DEFAULT);
	client->own = wanted;
	gp_together_find(daemon, client);
	gp_client_make_attr(daemon, client);
	client->driver->ops->attach(client->driver->backend, &client->device);
}

static void client_queue_add(struct gp_daemon *daemon, struct gp_peer *peer, const struct gp_wire_queue *wire)
{
	struct gp_client *client = peer->client;
	struct gp_queue_entry *queue;
	int r;

	if (!client_seal_page(daemon, client))
		return;
	if (!client_wrote_slot(client, wire->slot)) {
		gp_peer_refuse(daemon, peer, "QUEUE_ADD for a slot that it has not written");
		return;
	}
	r = gp_queue_add(daemon, client, wire);
	if (r == -ENODEV || r == -EDQUOT) {
		if (!client->left_out++)
			gp_log_user(daemon, peer->owner, "process %d (%s): a queue on GPU %u is not scheduled: %s",
				    peer->pid, client->name, wire->gpu_id,
				    r == -ENODEV ? "that GPU is not one of ours" :
						   "its user has too many (queues_per_user, queues_max)");
		return;
	}
	if (r) {
		gp_peer_refuse(daemon, peer, r == -ESTALE ? "QUEUE_ADD again" : "QUEUE_ADD for a slot in use");
		return;
	}
	queue = client->slots[wire->slot].queue;
	gp_unmanaged_want(daemon);
	if (client->driver->ops->queue_added)
		client->driver->ops->queue_added(client->driver->backend, &client->device, wire->gpu_id,
						 wire->queue_id);
	if (client->device.mechanism != GP_MECHANISM_NONE && gp_quarantine_admits(client))
		gp_queue_enter(daemon, queue);
	/* When the client gets its first queue on a second device, its earlier queues get a gang too. */
	if (queue->attr.gang)
		for (uint32_t i = 0; i < client->slot_count; i++)
			if (client->slots[i].queue && client->slots[i].queue->attr.gang != queue->attr.gang)
				gp_queue_attr(daemon, client->slots[i].queue);
	gp_queue_sample(daemon, queue);
}

struct gp_queue_entry *gp_client_queue(const struct gp_client *client, uint32_t slot, uint32_t generation)
{
	struct gp_queue_entry *queue = slot < client->slot_count ? client->slots[slot].queue : NULL;

	return queue && queue->wire.generation == generation ? queue : NULL;
}

static void client_queue_change(struct gp_daemon *daemon, struct gp_peer *peer, const struct gp_wire_queue *wire)
{
	struct gp_client *client = peer->client;
	struct gp_queue_entry *queue = gp_client_queue(client, wire->slot, wire->generation);
	const struct gp_client_slot *slot = wire->slot < client->slot_count ? &client->slots[wire->slot] : NULL;
	const uint32_t changing = GP_QUEUE_GWS | GP_QUEUE_FETCH | GP_QUEUE_BLIND;

	/* An agent may change a queue that it added and that the daemon left out. */
	if (!queue && slot && slot->used && slot->generation == wire->generation)
		return;
	if (!queue) {
		gp_peer_refuse(daemon, peer, "QUEUE_CHANGE for a queue that is not there");
		return;
	}
	queue->wire.attr = wire->attr;
	queue->wire.hw_priority = wire->hw_priority;
	queue->wire.flags = (queue->wire.flags & ~changing) | (wire->flags & changing);
	gp_queue_set_seen(daemon, queue, wire->flags & GP_QUEUE_SEEN);
	gp_queue_attr(daemon, queue);
	gp_queue_reconsider(daemon, queue);
	gp_queue_sample(daemon, queue);
}

static void client_runtime(struct gp_daemon *daemon, struct gp_client *client, const struct gp_wire_runtime *runtime)
{
	gp_portion_use(daemon, 2 * client->queue_count); /* a new mechanism: all queues leave the core and come again */
	gp_notice(daemon, client->owner, GP_NOTICE_RUNTIME);
	if (runtime->enable) {
		client->device.flags |= GP_HELLO_RUNTIME;
		client->driver->ops->attach(client->driver->backend, &client->device);
		return;
	}
	client->device.flags &= ~GP_HELLO_RUNTIME;
	client->runtime_cookie = runtime->header.cookie;
	client->letting_go = true;
	client->driver->ops->detach(client->driver->backend, &client->device, false);
}

void gp_client_sync(struct gp_daemon *daemon)
{
	daemon->sync.serial++;
	daemon->sync.next = 0;
}

void gp_client_synced(struct gp_daemon *daemon, struct gp_client *client)
{
	daemon->sync.waiting -= client->sync_wait;
	client->sync_wait = false;
}

/* The daemon does not wait for an agent to which it cannot send SYNC. */
bool gp_client_sync_some(struct gp_daemon *daemon)
{
	struct gp_wire_header message = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_SYNC, sizeof(message),
					  daemon->sync.serial };

	for (uint32_t asked = 0; daemon->sync.next < daemon->client_top; daemon->sync.next++) {
		struct gp_client *client = daemon->clients[daemon->sync.next];

		if (!client || !client->welcomed || !client->queue_count || !client->peer)
			continue;
		if (asked++ == CLIENT_SYNC_SOME)
			return true;
		gp_client_synced(daemon, client);
		client->sync_wait = !gp_peer_send(client->peer, &message, sizeof(message), NULL, 0);
		daemon->sync.waiting += client->sync_wait;
		gp_portion_use(daemon, 1);
	}
	return false;
}

static void client_synced(struct gp_daemon *daemon, struct gp_client *client, uint32_t cookie)
{
	gp_queue_sample_client(daemon, client);
	client->counters = GP_COUNTERS_AGENT;
	if (cookie == daemon->sync.serial)
		gp_client_synced(daemon, client);
}

void gp_client_message(struct gp_daemon *daemon, struct gp_peer *peer, int type, const void *data, size_t size)
{
	struct gp_client *client = peer->client;
	struct gp_queue_entry *queue;

	(void)size;
	if (type == GP_WIRE_HELLO) {
		client_hello(daemon, peer, data);
		return;
	}
	if (!client || !client->welcomed) {
		gp_peer_refuse(daemon, peer, "a message before it was welcomed");
		return;
	}
	if (((type == GP_WIRE_GROUP || type == GP_WIRE_SLICED) && peer->version < 2) ||
	    (type == GP_WIRE_SHARE && peer->version < 3)) {
		gp_peer_refuse(daemon, peer, "a message of a later version than it speaks");
		return;
	}
	switch (type) {
	case GP_WIRE_QUEUE_ADD: client_queue_add(daemon, peer, data); break;
	case GP_WIRE_QUEUE_CHANGE: client_queue_change(daemon, peer, data); break;
	case GP_WIRE_QUEUE_REMOVE: {
		const struct gp_wire_slot *slot = data;

		queue = gp_client_queue(client, slot->slot, slot->generation);
		if (queue)
			gp_queue_remove(daemon, queue);
		break;
	}
	case GP_WIRE_APPLIED: gp_client_applied(daemon, client, data); break;
	case GP_WIRE_LOST: gp_client_lost(daemon, client, data); break;
	case GP_WIRE_SYNCED: client_synced(daemon, client, ((const struct gp_wire_header *)data)->cookie); break;
	case GP_WIRE_RUNTIME: client_runtime(daemon, client, data); break;
	case GP_WIRE_ATTR:
		gp_client_set_attr(daemon, client, &((const struct gp_wire_attr_message *)data)->attr, false);
		break;
	case GP_WIRE_GROUP: gp_channel_group_described(daemon, client, data); break;
	case GP_WIRE_SLICED: gp_slicing_sliced(daemon, client, data); break;
	case GP_WIRE_SHARE: gp_share_take(daemon, client, data); break;
	default: gp_peer_refuse(daemon, peer, "a message that agents do not send"); break;
	}
}
