/* SPDX-License-Identifier: MIT */
/*
 * Slices, on devices that switch by themselves (NVIDIA): a queue below the top priority of its device runs with the
 * shortest there is, so that a more urgent one waits for one switch only; all others as their application has them.
 *
 * Two short ones open at once make no progress at all (measured: docs/decisions/0008). Hence, over every answer that is
 * late, lost or bad:
 *   - before one is opened beside another, or shortened beside a short one, all of them are long;
 *   - one that was open without work and got some is about to close, or its neighbour is; if that takes longer than a
 *     few calls (it could not be closed), all of them are long again.
 * Closed and idle ones are kept short, so that a turn costs no call. Whoever goes, everything goes back to what it was.
 */
#include <errno.h>
#include <string.h>
#include "daemon/daemon.h"

#define SLICE_RETRY_NS  1000000000ull /* after the first failure; doubled after each further one */
#define SLICE_RETRY_MAX 6u
#define SLICE_GRACE_NS  5000000ull /* chosen: five times a close and an open */

/* What is known of a queue's gate: nothing is open in truth that is not at least CLOSING here. One without work is in
 * nobody's way, and is looked at again as soon as it has some. */
enum slice_gate { SLICE_CLOSED, SLICE_IDLE, SLICE_CLOSING, SLICE_MAYBE };

static enum slice_gate slice_gate(const struct gp_daemon *daemon, const struct gp_queue_entry *queue)
{
	struct gp_queue_info info;

	if (!queue->in_core || gp_sched_queue_info(daemon->sched, queue->core, &info))
		return queue->closed ? SLICE_CLOSED : queue->pending ? SLICE_MAYBE : SLICE_IDLE;
	switch (info.gate) {
	case GP_GATE_CLOSED: return SLICE_CLOSED;
	case GP_GATE_CLOSING: return queue->closed ? SLICE_CLOSED : SLICE_CLOSING;
	case GP_GATE_OPENING: return queue->closed && !queue->slice.opening ? SLICE_CLOSED : SLICE_MAYBE;
	default: /* unknown, quarantined: maybe open, unless it was never told to be */
		if (queue->closed && queue->slice.held_back)
			return SLICE_CLOSED;
		return info.has_work || queue->pending ? SLICE_MAYBE : SLICE_IDLE;
	}
}

static bool slice_is_scheduled(const struct gp_queue_entry *queue)
{
	return queue->in_core && queue->wire.kind == GP_WIRE_COMPUTE && !queue->client->is_unmanaged;
}

/* Nobody is shortened where nobody is scheduled. */
static bool slice_is_wanted(const struct gp_daemon *daemon, const struct gp_device_entry *device)
{
	return !daemon->stopping && !device->stopped && device->info.mechanism != GP_MECHANISM_NONE &&
	       strcmp(daemon->config.policy, "none") != 0;
}

/* As the core has it: below the highest priority, or the highest that is not at rest. */
static int32_t slice_top(const struct gp_daemon *daemon, const struct gp_device_entry *device)
{
	int32_t top = INT32_MIN;

	(void)gp_sched_priority_top(daemon->sched, device->core, &top);
	return top;
}

static bool slice_may_be_short(const struct gp_queue_entry *queue)
{
	return queue->slice.state != GP_SLICE_LONG || (queue->slice.asked && queue->slice.asked_short);
}

static bool slice_is_short_open(const struct gp_daemon *daemon, const struct gp_queue_entry *queue)
{
	return slice_may_be_short(queue) && slice_gate(daemon, queue) > SLICE_IDLE;
}

static void slice_failed(struct gp_daemon *daemon, struct gp_queue_entry *queue, int result)
{
	struct gp_slice *slice = &queue->slice;
	uint32_t shift = slice->failures < SLICE_RETRY_MAX ? slice->failures : SLICE_RETRY_MAX;

	if (!slice->failures++)
		gp_log_user(daemon, queue->client->owner, "process %d (%s), queue %u: its slice cannot be %s: %s",
			    queue->client->device.pid, queue->client->name, queue->wire.queue_id,
			    slice->asked_short ? "shortened" : "given back", strerror(-result));
	daemon->devices[queue->device].slice_failures++;
	slice->retry_ns = gp_now_ns() + (SLICE_RETRY_NS << shift);
	daemon->slice_dirty = true;
}

static void slice_ask(struct gp_daemon *daemon, struct gp_queue_entry *queue, bool is_short)
{
	struct gp_slice *slice = &queue->slice;
	struct gp_device_slice want = { .slot = queue->wire.slot,
					.generation = queue->wire.generation,
					.gpu_id = queue->wire.gpu_id,
					.queue_id = queue->wire.queue_id,
					.slice_us = is_short ? gp_pace_short_us(daemon, queue) : 0 };
	uint64_t now_ns = gp_now_ns();
	int r;

	if (slice->asked || now_ns < slice->retry_ns)
		return;
	slice->asked = true;
	slice->asked_short = is_short;
	slice->asked_us = want.slice_us;
	slice->asked_ns = now_ns;
	r = daemon->ops->slice ? daemon->ops->slice(daemon->backend, &queue->client->device, &want) : -ENOTSUP;
	if (r) {
		slice->asked = false;
		slice_failed(daemon, queue, r);
	}
}

static void slice_settle(struct gp_daemon *daemon, struct gp_queue_entry *queue, int result)
{
	struct gp_slice *slice = &queue->slice;

	slice->asked = false;
	daemon->slice_dirty = true;
	if (result) {
		/* One that was refused is as it was; of one that was not answered nothing is known. */
		if (result == -ETIMEDOUT)
			slice->state = GP_SLICE_UNKNOWN;
		slice_failed(daemon, queue, result);
	} else {
		slice->state = slice->asked_short ? GP_SLICE_SHORT : GP_SLICE_LONG;
		slice->us = slice->asked_us;
		slice->failures = 0;
		slice->retry_ns = 0;
		slice->changes++;
		gp_hist_add(&daemon->devices[queue->device].slice_hist, gp_now_ns() - slice->asked_ns);
		daemon->devices[queue->device].slices++;
	}
	gp_plan_go_on(daemon, &daemon->devices[queue->device]);
}

static struct gp_queue_entry *slice_queue(const struct gp_client *client, uint32_t slot, uint32_t generation)
{
	struct gp_queue_entry *queue = slot < client->slot_count ? client->slots[slot].queue : NULL;

	return queue && queue->wire.generation == generation ? queue : NULL;
}

void gp_slice_answer(struct gp_daemon *daemon, struct gp_client *client, uint32_t slot, uint32_t generation,
		     uint64_t slice_us, int result)
{
	struct gp_queue_entry *queue = slice_queue(client, slot, generation);

	if (!queue)
		return;
	if (!queue->slice.asked || slice_us != queue->slice.asked_us) {
		/* An answer that came too late: what was set is set, but what came after it is not known. */
		if (!result && queue->slice.state == GP_SLICE_UNKNOWN)
			queue->slice.retry_ns = 0;
		daemon->slice_dirty = true;
		return;
	}
	slice_settle(daemon, queue, result);
}

void gp_slice_sliced(struct gp_daemon *daemon, struct gp_client *client, const struct gp_wire_slice *slice)
{
	gp_slice_answer(daemon, client, slice->slot, slice->generation, slice->slice_us, slice->result);
}

void gp_slice_lost(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	/* What we held ourselves was given back with its slice. */
	if (daemon->devices[queue->device].info.hands_over && queue->slice.state != GP_SLICE_LONG)
		queue->slice.state = GP_SLICE_UNKNOWN;
}

void gp_slice_group(struct gp_daemon *daemon, struct gp_client *client, const struct gp_wire_group *group)
{
	struct gp_queue_entry *queue = slice_queue(client, group->slot, group->generation);

	if (!queue)
		return; /* left out, or just removed */
	queue->slice.app_us = group->slice_us;
	if (daemon->ops->group)
		daemon->ops->group(daemon->backend, &client->device, queue->wire.gpu_id, group);
}

void gp_slice_grouped(struct gp_daemon *daemon, struct gp_client *client, const struct gp_device_grouped *grouped)
{
	struct gp_queue_entry *queue = slice_queue(client, grouped->slot, grouped->generation);

	if (!queue)
		return;
	queue->slice.grouped = true;
	/* What is not so any more is not believed any longer. Answers to what was asked meanwhile are still to come. */
	if (grouped->gate)
		gp_queue_lost(daemon, queue, true);
	if (grouped->slice) {
		queue->slice.state = GP_SLICE_UNKNOWN;
		slice_failed(daemon, queue, grouped->slice);
	}
	gp_queue_reconsider(daemon, queue);
}

int gp_slice_ask_agent(void *context, struct gp_device_client *device_client, const struct gp_device_slice *slice)
{
	struct gp_client *client = gp_client_find(context, device_client->tag);
	struct gp_wire_slice message = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_SLICE, sizeof(message), 0 },
		.slot = slice->slot,
		.generation = slice->generation,
		.slice_us = slice->slice_us,
	};

	if (!client || !client->peer || !client->welcomed)
		return -ENOTCONN;
	if (client->peer->version < 2)
		return -EOPNOTSUPP;
	return gp_peer_send(client->peer, &message, sizeof(message), NULL, 0);
}

/* Of the queues that would be open together, those that may be short are asked to be long; true: none is waited for.
 * One that refuses or does not answer is not waited for either: see gp_slice_holds_back(). */
bool gp_slice_may_open(struct gp_daemon *daemon, struct gp_device_entry *device)
{
	const struct gp_under_way *way = &device->way;
	struct gp_queue_entry *q;
	int32_t top = slice_top(daemon, device);
	uint32_t open = 0;
	bool ready = true;

	if (!device->info.short_us)
		return true;
	for (uint32_t i = 0; i < way->open_count; i++) {
		q = gp_queue_of(daemon, way->open[i].queue);
		if (q && q->plan_seq == way->seq)
			q->slice.opening = true;
	}
	for (q = device->queues; q; q = q->device_next)
		open += slice_gate(daemon, q) > SLICE_IDLE && (q->attr.priority < top || slice_may_be_short(q));
	for (q = device->queues; q && open > 1; q = q->device_next) {
		if (!slice_is_short_open(daemon, q))
			continue;
		slice_ask(daemon, q, false);
		ready &= !q->slice.asked;
	}
	return ready;
}

/* One below the top that could not be made long does not open beside another: neither would get anywhere, and the one
 * that is open does. Where nobody is scheduled, everything opens. */
bool gp_slice_holds_back(struct gp_daemon *daemon, struct gp_device_entry *device, struct gp_queue_entry *queue)
{
	uint32_t others = 0;

	queue->slice.held_back = false;
	if (!device->info.short_us || !slice_is_wanted(daemon, device) || !slice_may_be_short(queue) ||
	    queue->attr.priority >= slice_top(daemon, device))
		return false;
	for (const struct gp_queue_entry *q = device->queues; q; q = q->device_next)
		others += q != queue && slice_is_short_open(daemon, q);
	if (others) {
		queue->slice.opening = false;
		queue->slice.held_back = true;
	}
	return others;
}

void gp_slice_order_over(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	queue->slice.opening = false;
	daemon->slice_dirty = true;
}

/* Of one device, in one round. */
struct slice_round {
	int32_t top;
	bool is_crowded;      /* several have stayed for longer than it takes to close one */
	int32_t best;         /* the highest priority of lower ones that may be open, with work or without … */
	uint32_t best_count;  /* … and how many have it */
	uint32_t staying;     /* lower ones with work that may be open and are not about to close */
	uint32_t short_count; /* that may be open and may be short */
	uint32_t lengthening; /* that may be short and should not be: first they, then others become short */
};

static bool slice_is_staying(const struct gp_daemon *daemon, const struct gp_queue_entry *queue, int32_t top)
{
	return slice_is_scheduled(queue) && queue->attr.priority < top && slice_gate(daemon, queue) == SLICE_MAYBE;
}

static struct slice_round slice_look(const struct gp_daemon *daemon, const struct gp_device_entry *device)
{
	struct slice_round round = { .top = slice_top(daemon, device), .best = INT32_MIN };

	for (const struct gp_queue_entry *q = device->queues; q; q = q->device_next) {
		round.lengthening += slice_may_be_short(q) && (q->attr.priority >= round.top || !slice_is_scheduled(q));
		round.staying += slice_is_staying(daemon, q, round.top);
		if (slice_is_scheduled(q) && q->attr.priority < round.top && q->attr.priority >= round.best &&
		    slice_gate(daemon, q) != SLICE_CLOSED) {
			round.best_count = q->attr.priority > round.best ? 1 : round.best_count + 1;
			round.best = q->attr.priority;
		}
		round.short_count += slice_is_short_open(daemon, q);
	}
	return round;
}

/* Short, and as short as it may be. */
static bool slice_is_right(const struct gp_daemon *daemon, const struct gp_queue_entry *queue)
{
	return queue->slice.state == GP_SLICE_SHORT && queue->slice.us == gp_pace_short_us(daemon, queue);
}

/* How this one should be, and whether it may be made so now. */
static void slice_queue_update(struct gp_daemon *daemon, const struct gp_device_entry *device,
			       struct gp_queue_entry *queue, struct slice_round *round)
{
	enum slice_gate gate = slice_gate(daemon, queue);
	bool was_short = slice_is_short_open(daemon, queue);
	bool alone = round->staying == slice_is_staying(daemon, queue, round->top);
	bool safe = round->short_count == was_short;
	/* Without work, and the one to take the turn if it had some: it stays open beside another. */
	bool above = queue->attr.priority == round->best && round->best_count == 1;
	bool lower = slice_is_wanted(daemon, device) && slice_is_scheduled(queue) && queue->attr.priority < round->top;

	if ((!lower || (gate == SLICE_MAYBE && !alone && round->is_crowded)) && slice_may_be_short(queue))
		slice_ask(daemon, queue, false);
	else if (lower && !slice_is_right(daemon, queue) &&
		 (gate == SLICE_CLOSED || (gate == SLICE_IDLE && above && !round->lengthening) ||
		  (gate == SLICE_MAYBE && alone && safe && !round->lengthening)))
		slice_ask(daemon, queue, true);
	round->short_count += slice_is_short_open(daemon, queue) - was_short;
}

static uint64_t slice_due_ns(const struct gp_daemon *daemon, const struct gp_queue_entry *queue)
{
	return queue->slice.asked ? queue->slice.asked_ns + daemon->config.answer_ns : queue->slice.retry_ns;
}

void gp_slice_wake(struct gp_daemon *daemon, uint64_t at_ns)
{
	if (!daemon->slice_next_ns || at_ns < daemon->slice_next_ns)
		daemon->slice_next_ns = at_ns;
}

static void slice_device_update(struct gp_daemon *daemon, struct gp_device_entry *device, uint64_t now_ns)
{
	struct gp_queue_entry *q, *next, *at_work = NULL;
	struct slice_round round;

	for (q = device->queues; q; q = next) {
		next = q->device_next;
		if (q->slice.asked && now_ns >= slice_due_ns(daemon, q))
			slice_settle(daemon, q, -ETIMEDOUT);
	}
	round = slice_look(daemon, device);
	if (round.staying < 2)
		device->crowded_ns = 0;
	else if (!device->crowded_ns)
		device->crowded_ns = now_ns;
	round.is_crowded = device->crowded_ns && now_ns - device->crowded_ns >= SLICE_GRACE_NS;
	if (device->crowded_ns && !round.is_crowded)
		gp_slice_wake(daemon, device->crowded_ns + SLICE_GRACE_NS);
	for (q = device->queues; q; q = next) {
		next = q->device_next;
		slice_queue_update(daemon, device, q, &round);
		if (slice_due_ns(daemon, q) > now_ns)
			gp_slice_wake(daemon, slice_due_ns(daemon, q));
		if (slice_is_staying(daemon, q, round.top) && q->slice.state == GP_SLICE_SHORT)
			at_work = q;
	}
	gp_pace_update(daemon, device, slice_is_wanted(daemon, device) ? at_work : NULL, now_ns);
}

void gp_slice_update(struct gp_daemon *daemon, uint64_t now_ns)
{
	if (!daemon->slice_dirty && (!daemon->slice_next_ns || now_ns < daemon->slice_next_ns))
		return;
	daemon->slice_dirty = false;
	daemon->slice_next_ns = 0;
	for (uint32_t i = 0; i < daemon->device_count; i++)
		if (daemon->devices[i].info.short_us)
			slice_device_update(daemon, &daemon->devices[i], now_ns);
	if (daemon->slice_dirty) /* something failed at once: its retry is due by the clock */
		daemon->slice_next_ns = now_ns;
}

bool gp_slice_are_back(const struct gp_daemon *daemon)
{
	for (uint32_t i = 0; i < daemon->device_count; i++)
		for (const struct gp_queue_entry *q = daemon->devices[i].queues; q; q = q->device_next)
			if (slice_may_be_short(q) && q->client->answers && !q->slice.failures)
				return false;
	return true;
}
