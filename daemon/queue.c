/* SPDX-License-Identifier: MIT */
/* One queue: its attributes, whether it is in the core, and the state of its gate. page.c reads its counters. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/daemon.h"
#include "daemon/terms.h"

#define QUEUE_ORDER_NS 5000000ull     /* until the next look for an order's answer; chosen: a few calls of the driver */
#define QUEUE_GANG_NS  10000000000ull /* between two changes of its gang; chosen: 120 times the longest usual turn */
#define QUEUE_WORK     64u            /* queues that the core looks at for a unit of work */
#define QUEUE_KEPT     64u            /* places of a device for root alone, or a sixteenth if that is less; chosen */

static uint64_t queue_tag(const struct gp_queue_entry *queue)
{
	return queue->client->device.tag | queue->wire.slot;
}

/* After a change of one queue the core looks at all queues of its client. */
static void queue_counts_as_work(struct gp_daemon *daemon, const struct gp_client *client)
{
	gp_portion_use(daemon, 1 + client->queue_count / QUEUE_WORK);
}

/* A queue's work or gate has changed, or whether it is in the core. */
static void queue_changed(struct gp_daemon *daemon)
{
	gp_sampling_changed(daemon);
	gp_slicing_changed(daemon);
}

static void queue_list(struct gp_queue_entry **head, enum gp_queue_list list, struct gp_queue_entry *queue, bool add)
{
	struct gp_queue_link *link = &queue->links[list];

	if (add) {
		*link = (struct gp_queue_link){ .next = *head };
		if (*head)
			(*head)->links[list].prev = queue;
		*head = queue;
		return;
	}
	if (link->prev)
		link->prev->links[list].next = link->next;
	else
		*head = link->next;
	if (link->next)
		link->next->links[list].prev = link->prev;
}

void gp_queue_set_pending(struct gp_daemon *daemon, struct gp_queue_entry *queue, bool pending)
{
	if (queue->pending == pending)
		return;
	queue->pending = pending;
	queue_changed(daemon);
	queue_list(&daemon->devices[queue->device].busy, GP_QUEUE_BUSY, queue, pending);
}

static void queue_unseen_list(struct gp_daemon *daemon, struct gp_queue_entry *queue, bool add)
{
	gp_sampling_changed(daemon);
	queue_list(&daemon->devices[queue->device].unseen, GP_QUEUE_UNSEEN, queue, add);
}

void gp_queue_set_seen(struct gp_daemon *daemon, struct gp_queue_entry *queue, bool seen)
{
	bool was = queue->wire.flags & GP_QUEUE_SEEN;

	if (was == seen)
		return;
	queue->wire.flags = (queue->wire.flags & ~GP_QUEUE_SEEN) | (seen ? GP_QUEUE_SEEN : 0);
	queue_unseen_list(daemon, queue, !seen);
}

/* The budget of a process is what all its queues on a device need together, so only one of them carries it in the
 * admission test. Returns whether it is this one. */
static bool queue_has_budget(struct gp_queue_entry *queue)
{
	const struct gp_client *client = queue->client;

	for (uint32_t i = 0; !queue->has_budget && i < client->slot_count; i++) {
		const struct gp_queue_entry *other = client->slots[i].queue;

		if (other && other->device == queue->device && other->has_budget)
			return false;
	}
	queue->has_budget = true;
	return true;
}

/* Each of these overrides the one before: the process's attributes, the queue's own, those that a command set. The
 * user's ceiling cuts the result. */
static void queue_make_attr(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	struct gp_client *client = queue->client;
	struct gp_wire_attr attr = client->attr, own = queue->wire.attr;
	uint32_t gang = queue->attr.gang;

	if (queue->wire.kind != GP_WIRE_COMPUTE)
		own.valid &= ~GP_ATTR_PRIORITY;
	gp_attr_overlay(&attr, &own);
	gp_attr_overlay(&attr, &queue->set);
	gp_client_cut(client, &attr);
	if (!((queue->wire.attr.valid | queue->set.valid) & GP_ATTR_BUDGET) && !queue_has_budget(queue))
		attr.budget_ns = 0;
	queue->attr = (struct gp_queue_attr){
		.priority = attr.priority,
		.weight = attr.weight,
		.deadline_ns = attr.deadline_ns,
		.budget_ns = attr.budget_ns,
		.floor_permille = attr.share,
		.protect = attr.protect,
		.gang = gp_gang_name_of(daemon, queue, attr.gang),
		.kind = queue->wire.kind == GP_WIRE_COPY ? GP_KIND_COPY : GP_KIND_COMPUTE,
		.unseen = !(queue->wire.flags & GP_QUEUE_SEEN),
		.fetched = queue->wire.flags & GP_QUEUE_FETCH,
		.fixed_slice = !queue->client->driver->ops->slice,
		/* The agent states it; a value that makes no sense counts as unknown. */
		.own_slice_ns = queue->slice.app_us <= GP_DURATION_NS_MAX / 1000 ? queue->slice.app_us * 1000 : 0,
		.tag = queue_tag(queue),
	};
	gp_gang_name_put(daemon, gang);
}

static int queue_admit(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	uint64_t now_ns = gp_daemon_now_ns(daemon);
	struct gp_queue_attr attr = queue->attr;

	if (!queue->in_core) {
		/* While the core has the number of this gang, no other gang gets it. */
		gp_gang_name_hold(daemon, attr.gang);
		gp_gang_name_put(daemon, queue->core_gang);
		queue->core_gang = attr.gang;
		return gp_sched_queue_add(daemon->sched, queue->client->core, daemon->devices[queue->device].core,
					  &attr, now_ns, &queue->core);
	}
	attr.gang = queue->core_gang;
	return gp_sched_queue_set_attr(daemon->sched, queue->core, &attr, now_ns);
}

/* If the admission test refuses a guaranteed share or an edf budget, the journal says so, and the queue goes on without
 * the share, or without its deadline. */
static int queue_admit_some(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	int r = queue_admit(daemon, queue);

	if (r == -EDQUOT && queue->attr.floor_permille) {
		gp_log_user(
			daemon, queue->client->owner,
			"process %d (%s), queue %u: its guaranteed share of %u thousandths is more than is left; it has none",
			queue->client->device.pid, queue->client->name, queue->wire.queue_id,
			queue->attr.floor_permille);
		queue->attr.floor_permille = 0;
		r = queue_admit(daemon, queue);
	}
	if (r != -EDQUOT)
		return r;
	gp_log_user(
		daemon, queue->client->owner,
		"process %d (%s), queue %u: its deadline of %llu ns with a budget of %llu ns does not fit; it runs without",
		queue->client->device.pid, queue->client->name, queue->wire.queue_id,
		(unsigned long long)queue->attr.deadline_ns, (unsigned long long)queue->attr.budget_ns);
	queue->attr.deadline_ns = queue->attr.budget_ns = 0;
	return queue_admit(daemon, queue);
}

/* In the core a queue keeps its gang for life. To change the gang, the queue leaves the core and enters again, with its
 * gate as it is. The daemon first waits for the answer to an order under way, which would be lost otherwise. A queue
 * that is in quarantine for its own orders stays as it is. A queue that enters begins with a turn of its own, so it may
 * do so only every QUEUE_GANG_NS. */
static void queue_change_gang(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	uint64_t now_ns = gp_now_ns(), later_ns = queue->gang_ns ? queue->gang_ns + QUEUE_GANG_NS : 0;
	struct gp_queue_info info;

	if (queue->attr.gang == queue->core_gang || !gp_quarantine_admits(queue->client) ||
	    gp_sched_queue_info(daemon->sched, queue->core, &info) || info.is_stuck)
		return;
	if (later_ns <= now_ns && (info.gate == GP_GATE_CLOSING || info.gate == GP_GATE_OPENING))
		later_ns = now_ns + QUEUE_ORDER_NS;
	else if (later_ns <= now_ns && gp_portion_is_over(daemon))
		later_ns = now_ns + 1; /* after the next look at urgent work */
	if (later_ns > now_ns) {
		gp_timer_sooner(daemon, &daemon->gangs.timer, later_ns);
		return;
	}
	queue->gang_ns = now_ns;
	gp_queue_leave(daemon, queue);
	gp_queue_enter_now(daemon, queue);
}

void gp_queue_gangs_due(struct gp_daemon *daemon, uint64_t now_ns)
{
	(void)now_ns;
	gp_portion_begin(daemon);
	for (uint32_t i = 0; i < daemon->client_top; i++)
		for (uint32_t k = 0; daemon->clients[i] && k < daemon->clients[i]->slot_count; k++) {
			struct gp_queue_entry *queue = daemon->clients[i]->slots[k].queue;

			if (queue && queue->in_core)
				queue_change_gang(daemon, queue);
		}
}

void gp_queue_attr(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	queue_counts_as_work(daemon, queue->client);
	queue_make_attr(daemon, queue);
	if (queue->in_core)
		queue_change_gang(daemon, queue);
	if (queue->in_core && queue_admit_some(daemon, queue))
		gp_log_user(daemon, queue->client->owner, "process %d, queue %u: attributes refused",
			    queue->client->device.pid, queue->wire.queue_id);
	gp_slicing_changed(daemon);
}

/* The daemon lists a queue that cannot be gated and never orders it. A queue with global wave sync cannot be suspended.
 * A mechanism that holds doorbells back must see them. A queue whose work the agent cannot observe would stay closed
 * for ever. */
static bool queue_can_be_gated(const struct gp_queue_entry *queue)
{
	uint32_t mechanism = queue->client->device.mechanism;

	if (queue->wire.flags & (GP_QUEUE_GWS | GP_QUEUE_BLIND))
		return false;
	if (gp_mechanism_has(mechanism, GP_NEEDS_GROUP) && !queue->group.is_found)
		return false;
	return !gp_mechanism_has(mechanism, GP_NEEDS_DOORBELLS) || queue->wire.flags & GP_QUEUE_SEEN;
}

static struct gp_client_attr queue_client_attr(const struct gp_client *client)
{
	/* Each of root's clients counts as a user of its own: root may have the whole machine anyway, and runs the
	 * services of many users. */
	bool is_root = !client->owner || gp_owner_is_root(client->owner);

	return (struct gp_client_attr){ .tag = client->device.tag,
					.user = is_root ? 0 : client->owner->id,
					.is_distrusted = client->is_distrusted,
					.is_stuck_alone = client->is_stuck_alone };
}

void gp_queue_client_attr(struct gp_daemon *daemon, const struct gp_client *client)
{
	struct gp_client_attr attr = queue_client_attr(client);

	if (client->in_core)
		gp_sched_client_set_attr(daemon->sched, client->core, &attr);
}

void gp_queue_enter_now(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	struct gp_client *client = queue->client;
	struct gp_client_attr attr;
	int r = 0;

	gp_quarantine_trust(daemon, client, gp_now_ns());
	attr = queue_client_attr(client);
	if (!client->in_core) {
		r = gp_sched_client_add(daemon->sched, &attr, &client->core);
		client->in_core = !r;
	}
	if (!r)
		r = queue_admit_some(daemon, queue);
	if (r) {
		gp_log_user(daemon, client->owner,
			    "process %d (%s), queue %u is not scheduled: %s (queues_max, clients_max)",
			    client->device.pid, client->name, queue->wire.queue_id, strerror(-r));
		return;
	}
	queue_counts_as_work(daemon, client);
	queue->in_core = queue->has_entered = true;
	queue_changed(daemon);
	GP_ASSERT(!daemon->core.queues[queue->core.index]); /* the core gives a place once */
	daemon->core.queues[queue->core.index] = queue;
	if (queue->closed)
		gp_sched_gate_lost(daemon->sched, queue->core, false, gp_daemon_now_ns(daemon));
	gp_slicing_enter(daemon, queue);
	gp_queue_tell_core(daemon, queue, gp_daemon_now_ns(daemon));
}

void gp_queue_enter(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	if (!queue->in_core && queue_can_be_gated(queue) && gp_entry_may(daemon, queue))
		gp_queue_enter_now(daemon, queue);
}

void gp_queue_leave(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	gp_entry_forget(daemon, queue);
	queue->has_entered = false;
	if (!queue->in_core)
		return;
	queue_counts_as_work(daemon, queue->client);
	gp_quarantine_leave(daemon, queue);
	gp_carry_queue_gone(daemon, queue);
	gp_account_leave(daemon, queue);
	gp_slicing_leave(daemon, queue);
	gp_sched_queue_remove(daemon->sched, queue->core, gp_daemon_now_ns(daemon));
	gp_account_left(daemon, queue);
	gp_events_flush(daemon); /* while the queue's name is still known */
	GP_ASSERT(daemon->core.queues[queue->core.index] == queue);
	daemon->core.queues[queue->core.index] = NULL;
	queue->in_core = false;
	queue_changed(daemon);
}

/* Opens a gate without a plan of the core. */
static int queue_open(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	struct gp_device_change open = { .slot = queue->wire.slot,
					 .generation = queue->wire.generation,
					 .gpu_id = queue->wire.gpu_id,
					 .queue_id = queue->wire.queue_id,
					 .open = true,
					 .is_final = true };
	const struct gp_driver_entry *driver = queue->client->driver;
	int r = driver->ops->apply(driver->backend, &queue->client->device,
				   daemon->devices[queue->device].under_way.seq, queue->wire.gpu_id, &open, 1);

	if (!r && driver->ops->commit)
		driver->ops->commit(driver->backend, queue->wire.gpu_id);
	return r;
}

/* The agent's lease ran out and it opened a gate that the daemon keeps closed. The daemon's last close may have come
 * after that, so the daemon opens the gate too. */
void gp_queue_open_again(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	const struct gp_device_info *info = &daemon->devices[queue->device].info;

	if (info->hands_over && queue->client->device.mechanism == info->mechanism && !queue->is_ordered)
		(void)queue_open(daemon, queue);
}

void gp_queue_reconsider(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	struct gp_client *client = queue->client;
	/* The driver may still carry out an order that is not answered yet. */
	bool may_be_closed = queue->closed || (queue->in_core && queue->is_ordered);

	if (queue_can_be_gated(queue)) {
		if (client->device.mechanism != GP_MECHANISM_NONE && gp_quarantine_admits(client))
			gp_queue_enter(daemon, queue);
		return;
	}
	gp_queue_leave(daemon, queue);
	/* The core will not open it any more. */
	if (may_be_closed && !queue_open(daemon, queue))
		gp_queue_gate(daemon, queue, true);
}

void gp_queue_hold(const struct gp_daemon *daemon, const struct gp_queue_entry *queue, bool held)
{
	const struct gp_device_info *info = &daemon->devices[queue->device].info;

	if (queue->client->page && (!held || (info->hands_over && queue->client->device.mechanism == info->mechanism)))
		__atomic_store_n(&queue->client->page->queues[queue->wire.slot].held, held, __ATOMIC_RELEASE);
}

void gp_queue_gate(struct gp_daemon *daemon, struct gp_queue_entry *queue, bool open)
{
	gp_queue_hold(daemon, queue, !open);
	if (queue->closed != open)
		return;
	queue_changed(daemon);
	queue->closed = !open;
	GP_ASSERT(!open || daemon->devices[queue->device].closed_queues);
	daemon->devices[queue->device].closed_queues += open ? -1u : 1u;
}

struct gp_queue_entry *gp_queue_of(const struct gp_daemon *daemon, struct gp_queue_id id)
{
	struct gp_queue_entry *queue = id.index < daemon->config.queue_max ? daemon->core.queues[id.index] : NULL;

	return queue && queue->core.generation == id.generation ? queue : NULL;
}

/* Nobody renewed the lease while the daemon stood still: a close that it ordered before that, and that is not answered
 * yet, has not failed. The agent's word alone does not excuse one. */
static bool queue_lapsed(const struct gp_queue_entry *queue, enum gp_lost why)
{
	return why == GP_LOST_LEASE && queue->is_ordered && gp_pause_since(queue->ordered_ns);
}

void gp_queue_lost(struct gp_daemon *daemon, struct gp_queue_entry *queue, enum gp_lost why, bool open)
{
	bool is_opened = open && queue->closed;

	gp_queue_gate(daemon, queue, open);
	if (queue->in_core && is_opened && !gp_entry_may_again(daemon, queue)) {
		gp_queue_leave(daemon, queue);
		gp_queue_enter(daemon, queue); /* it waits */
	} else if (queue->in_core && open && queue_lapsed(queue, why)) {
		gp_sched_lease_lost(daemon->sched, queue->core, gp_daemon_now_ns(daemon));
	} else if (queue->in_core) {
		gp_sched_gate_lost(daemon->sched, queue->core, open, gp_daemon_now_ns(daemon));
	} else if (queue->entry_line && queue->closed) {
		gp_queue_enter(daemon, queue);
	}
	gp_slicing_changed(daemon);
}

static int queue_slot(struct gp_client *client, const struct gp_wire_queue *wire, struct gp_client_slot **ret_slot)
{
	struct gp_client_slot *slots, *slot;
	uint32_t count = client->slot_count;

	if (wire->slot >= count) {
		while (count <= wire->slot)
			count = count ? count * 2 : 8;
		slots = realloc(client->slots, count * sizeof(*slots));
		if (!slots)
			return -ENOMEM;
		memset(slots + client->slot_count, 0, (count - client->slot_count) * sizeof(*slots));
		client->slots = slots;
		client->slot_count = count;
	}
	slot = &client->slots[wire->slot];
	if (slot->queue)
		return -EEXIST;
	if (slot->used && (int32_t)(wire->generation - slot->generation) <= 0)
		return -ESTALE;
	*ret_slot = slot;
	return 0;
}

/* One user must fill neither the table of all queues nor a device's part of it. */
static bool queue_is_too_many(const struct gp_daemon *daemon, const struct gp_client *client,
			      const struct gp_device_entry *device)
{
	const struct gp_owner *owner = client->owner;
	uint32_t max = daemon->config.queue_max / daemon->device_count;
	uint32_t kept = max / 16 < QUEUE_KEPT ? max / 16 : QUEUE_KEPT;

	if (!gp_owner_is_root(owner) && owner->queue_count >= daemon->config.user_queue_max)
		return true;
	return !gp_owner_may_take(owner, max, kept, device->queue_count,
				  owner->device_queue_count[device - daemon->devices]);
}

int gp_queue_add(struct gp_daemon *daemon, struct gp_client *client, const struct gp_wire_queue *wire)
{
	struct gp_device_entry *device = gp_device_find(daemon, wire->gpu_id);
	struct gp_queue_entry *queue;
	struct gp_client_slot *slot;
	int r;

	r = queue_slot(client, wire, &slot);
	if (r)
		return r;
	/* An agent without mechanisms has not said which driver its program uses: its first queue tells. */
	if (device && !client->device.mechanisms && !client->device.backend && !client->queue_count)
		client->driver = device->driver;
	if (device && device->driver != client->driver)
		device = NULL;
	if (!device || queue_is_too_many(daemon, client, device)) {
		*slot = (struct gp_client_slot){ NULL, wire->generation, true };
		return device ? -EDQUOT : -ENODEV;
	}
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return -ENOMEM;
	queue->client = client;
	queue->device = (uint32_t)(device - daemon->devices);
	queue->wire = *wire;
	queue->closed = wire->flags & GP_QUEUE_CLOSED;
	*slot = (struct gp_client_slot){ queue, wire->generation, true };
	client->queue_count++;
	client->owner->queue_count++;
	client->owner->device_queue_count[queue->device]++;
	if (!client->device_queue_count[queue->device]++ && !client->is_unmanaged)
		device->process_count++;
	queue->device_next = device->queues;
	if (queue->device_next)
		queue->device_next->device_prev = queue;
	device->queues = queue;
	device->queue_count++;
	device->closed_queues += queue->closed;
	if (!(wire->flags & GP_QUEUE_SEEN))
		queue_unseen_list(daemon, queue, true);
	if (client->page) {
		/* What the slot counted before is no progress of this queue. */
		queue->completed = __atomic_load_n(&client->page->queues[wire->slot].completed, __ATOMIC_RELAXED);
		queue->written = queue->completed;
		queue->hint_count = __atomic_load_n(&client->page->queues[wire->slot].hint_count, __ATOMIC_RELAXED);
	}
	queue_make_attr(daemon, queue);
	if (client->owner->device_queue_count[queue->device] == 1)
		gp_device_tell_cost(daemon, device); /* one more user: see learn.c */
	queue_changed(daemon);
	gp_metrics_changed(daemon);
	return 0;
}

/* Another queue carries the process's budget from now on. */
static void queue_pass_budget(struct gp_daemon *daemon, const struct gp_client *client, uint32_t device)
{
	for (uint32_t i = 0; i < client->slot_count; i++) {
		struct gp_queue_entry *other = client->slots[i].queue;

		if (other && other->device == device) {
			gp_queue_attr(daemon, other);
			return;
		}
	}
}

void gp_queue_remove(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	struct gp_device_entry *device = &daemon->devices[queue->device];
	struct gp_client *client = queue->client;
	bool pass = queue->has_budget && client->attr.budget_ns;
	struct gp_device_leaving leaving = { .slot = queue->wire.slot,
					     .gpu_id = queue->wire.gpu_id,
					     .queue_id = queue->wire.queue_id,
					     .is_closed = queue->closed,
					     .is_ordered = queue->is_ordered };

	gp_queue_leave(daemon, queue);
	if (client->driver->ops->queue_removed)
		client->driver->ops->queue_removed(client->driver->backend, &client->device, &leaving);
	gp_queue_set_pending(daemon, queue, false);
	if (!(queue->wire.flags & GP_QUEUE_SEEN))
		queue_unseen_list(daemon, queue, false);
	GP_ASSERT(device->queue_count && client->queue_count && client->owner->queue_count &&
		  client->owner->device_queue_count[queue->device] && device->closed_queues >= queue->closed);
	GP_ASSERT(!queue->entry_line);
	device->closed_queues -= queue->closed;
	gp_gang_name_put(daemon, queue->attr.gang);
	gp_gang_name_put(daemon, queue->core_gang);
	if (queue->device_prev)
		queue->device_prev->device_next = queue->device_next;
	else
		device->queues = queue->device_next;
	if (queue->device_next)
		queue->device_next->device_prev = queue->device_prev;
	device->queue_count--;
	client->slots[queue->wire.slot].queue = NULL;
	client->queue_count--;
	client->owner->queue_count--;
	client->owner->device_queue_count[queue->device]--;
	if (!--client->device_queue_count[queue->device] && !client->is_unmanaged)
		device->process_count--;
	queue_changed(daemon);
	gp_metrics_changed(daemon);
	if (pass)
		queue_pass_budget(daemon, client, queue->device);
	free(queue);
}
