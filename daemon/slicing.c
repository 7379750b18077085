/* SPDX-License-Identifier: MIT */
/*
 * Sets slices on devices that switch by themselves. The core orders slices, the backend or the client's agent sets
 * them, and each answer goes back to the core. This file decides only when to ask the driver how often a queue was
 * put aside. When a queue leaves the core, this file gives it its own slice back.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/daemon.h"

#define SLICING_RETRY_NS       1000000000ull /* until the daemon tries again */
#define SLICING_COUNT_NS       50000000ull   /* between two counts, which take 0.12 ms each: within a usual turn … */
#define SLICING_COUNT_LEAST_NS 5000000ull    /* … and at least, where turns are shorter than that */

void gp_slicing_wake(struct gp_daemon *daemon, uint64_t at_ns)
{
	gp_timer_sooner(daemon, &daemon->slice_timer, at_ns);
}

void gp_slicing_changed(struct gp_daemon *daemon)
{
	gp_slicing_wake(daemon, GP_TIMER_NOW);
}

static void slicing_failed(struct gp_daemon *daemon, struct gp_queue_entry *queue, int result)
{
	if (!queue->slice.failures++)
		gp_log_user(daemon, queue->client->owner, "process %d (%s), queue %u: its slice cannot be %s: %s",
			    queue->client->device.pid, queue->client->name, queue->wire.queue_id,
			    queue->slice.asked_us ? "set" : "given back", strerror(-result));
	daemon->devices[queue->device].slice_failures++;
}

static int slicing_ask(struct gp_daemon *daemon, struct gp_queue_entry *queue, uint64_t slice_us)
{
	struct gp_device_slice want = { .slot = queue->wire.slot,
					.generation = queue->wire.generation,
					.gpu_id = queue->wire.gpu_id,
					.queue_id = queue->wire.queue_id,
					.slice_us = slice_us };
	const struct gp_driver_entry *driver = queue->client->driver;
	int r;

	queue->slice.is_asked = true;
	queue->slice.asked_us = slice_us;
	queue->slice.asked_ns = gp_now_ns();
	r = driver->ops->slice ? driver->ops->slice(driver->backend, &queue->client->device, &want) : -ENOTSUP;
	if (r) {
		queue->slice.is_asked = false;
		slicing_failed(daemon, queue, r);
	}
	return r;
}

static void slicing_tell(struct gp_daemon *daemon, struct gp_queue_entry *queue, int result)
{
	if (queue->in_core && queue->slice.seq)
		gp_sched_sliced(daemon->sched, queue->core, queue->slice.seq, result, gp_daemon_now_ns(daemon));
	queue->slice.seq = 0;
	gp_slicing_changed(daemon);
	gp_metrics_changed(daemon);
}

void gp_slicing_order(struct gp_daemon *daemon, const struct gp_slice_order *order, uint64_t seq)
{
	struct gp_queue_entry *queue = gp_queue_of(daemon, order->queue);
	int r;

	if (!queue)
		return;
	queue->slice.seq = seq;
	r = slicing_ask(daemon, queue, order->slice_ns / 1000);
	if (r)
		slicing_tell(daemon, queue, r);
}

void gp_slicing_answer(struct gp_daemon *daemon, struct gp_client *client, uint32_t slot, uint32_t generation,
		       uint64_t slice_us, int result)
{
	struct gp_queue_entry *queue = gp_client_queue(client, slot, generation);

	/* An answer with another length came too late: the daemon has asked for a newer length already. */
	if (!queue || !queue->slice.is_asked || slice_us != queue->slice.asked_us)
		return;
	queue->slice.is_asked = false;
	if (result) {
		slicing_failed(daemon, queue, result);
	} else {
		queue->slice.failures = 0;
		queue->slice.changes++;
		queue->slice.is_owed &= slice_us != 0;
		gp_hist_add(&daemon->devices[queue->device].slice_hist, gp_now_ns() - queue->slice.asked_ns);
		daemon->devices[queue->device].slices++;
	}
	slicing_tell(daemon, queue, result);
}

void gp_slicing_sliced(struct gp_daemon *daemon, struct gp_client *client, const struct gp_wire_slice *slice)
{
	gp_slicing_answer(daemon, client, slice->slot, slice->generation, slice->slice_us, slice->result);
}

bool gp_slicing_is_own(const struct gp_daemon *daemon, const struct gp_queue_entry *queue)
{
	struct gp_queue_info info;

	if (!queue->in_core || gp_sched_queue_info(daemon->sched, queue->core, &info))
		return !queue->slice.is_owed;
	return info.is_slice_known && !info.slice_ns && !info.is_slice_ordered;
}

void gp_slicing_lost(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	if (queue->in_core && !gp_slicing_is_own(daemon, queue))
		gp_sched_slice_lost(daemon->sched, queue->core, gp_daemon_now_ns(daemon));
	queue->slice.is_asked = false;
	gp_slicing_changed(daemon);
}

void gp_slicing_enter(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	if (queue->slice.is_owed)
		gp_sched_slice_lost(daemon->sched, queue->core, gp_daemon_now_ns(daemon));
	queue->slice.is_owed = queue->slice.is_asked = false;
	queue->slice.seq = 0;
}

void gp_slicing_leave(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	queue->slice.is_owed = !gp_slicing_is_own(daemon, queue);
	queue->slice.is_asked = false;
	queue->slice.seq = 0;
	if (queue->slice.is_owed)
		gp_slicing_changed(daemon);
}

void gp_slicing_set_app(struct gp_daemon *daemon, struct gp_queue_entry *queue, uint64_t slice_us)
{
	if (queue->slice.app_us == slice_us)
		return;
	queue->slice.app_us = slice_us;
	gp_queue_attr(daemon, queue);
}

void gp_slicing_not_set_again(struct gp_daemon *daemon, struct gp_queue_entry *queue, int result)
{
	slicing_failed(daemon, queue, result);
	gp_slicing_lost(daemon, queue);
}

int gp_slicing_ask_agent(void *context, struct gp_device_client *device_client, const struct gp_device_slice *slice)
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

/* Gives a queue that left the core its own slice back, as often as it takes. */
static void slicing_give_back(struct gp_daemon *daemon, struct gp_queue_entry *queue, uint64_t now_ns)
{
	if (!queue->slice.is_owed)
		return;
	if (queue->client->device.mechanism == GP_MECHANISM_NONE) {
		queue->slice.is_owed = false; /* its agent gave it back when the mechanism changed */
		return;
	}
	if (queue->slice.asked_us || now_ns >= queue->slice.asked_ns + SLICING_RETRY_NS)
		(void)slicing_ask(daemon, queue, 0);
	gp_slicing_wake(daemon, queue->slice.asked_ns + SLICING_RETRY_NS);
}

/* The time between two counts: two must fit into a turn. */
static uint64_t slicing_count_ns(const struct gp_daemon *daemon)
{
	uint64_t half_ns = daemon->config.param.turn_ns / 2;

	if (!half_ns || half_ns > SLICING_COUNT_NS)
		return SLICING_COUNT_NS;
	return half_ns > SLICING_COUNT_LEAST_NS ? half_ns : SLICING_COUNT_LEAST_NS;
}

static void slicing_count(struct gp_daemon *daemon, struct gp_device_entry *device, struct gp_queue_entry *queue,
			  uint64_t now_ns)
{
	struct gp_switching *switching = &device->switching;
	uint64_t gap_ns = slicing_count_ns(daemon), answer_ns = daemon->config.answer_ns;
	struct gp_device_count count = { .slot = queue->wire.slot,
					 .generation = queue->wire.generation,
					 .gpu_id = device->info.gpu_id };
	int r;

	if (switching->is_asked && now_ns >= switching->next_ns)
		switching->is_asked = false; /* the answer is overdue */
	/* Another queue has the turn, or the same queue has a new one. */
	if (!switching->is_asked &&
	    (gp_queue_of(daemon, switching->queue) != queue || switching->closes != queue->closes))
		switching->next_ns = now_ns;
	if (!switching->is_asked && now_ns >= switching->next_ns) {
		r = queue->client->driver->ops->count(queue->client->driver->backend, &queue->client->device, &count);
		switching->queue = queue->core;
		switching->closes = queue->closes;
		switching->is_asked = !r;
		queue->slice.uncounted = r == -EOPNOTSUPP;
		switching->next_ns = now_ns + (!r && answer_ns > gap_ns ? answer_ns : gap_ns);
	}
	gp_slicing_wake(daemon, switching->next_ns);
}

/* Logs that the core has made slices longer, or short again. */
static void slicing_say(struct gp_daemon *daemon, struct gp_device_entry *device)
{
	struct gp_switch_info info;

	if (gp_sched_switch_info(daemon->sched, device->core, &info) || info.is_slowed == device->switching.is_slowed)
		return;
	device->switching.is_slowed = info.is_slowed;
	if (!info.is_slowed)
		gp_log("GPU %u: slices are short again", device->info.gpu_id);
	else
		gp_log("GPU %u: urgent work comes in pieces: %llu switches a second take %llu %% of the GPU's time; the daemon "
		       "gives batch programs longer slices for at least %llu s",
		       device->info.gpu_id, (unsigned long long)(info.per_s_x1000 / 1000),
		       (unsigned long long)(info.per_s_x1000 / 1000 * device->info.switch_ns / 10000000),
		       (unsigned long long)(info.hold_ns / 1000000000u));
}

static void slicing_device_update(struct gp_daemon *daemon, struct gp_device_entry *device, uint64_t now_ns)
{
	struct gp_queue_entry *queue, *next;
	struct gp_queue_id watched;

	for (queue = device->queues; queue; queue = next) {
		next = queue->device_next;
		slicing_give_back(daemon, queue, now_ns);
	}
	slicing_say(daemon, device);
	queue = device->driver->ops->count && gp_sched_switch_watch(daemon->sched, device->core, &watched) ?
			gp_queue_of(daemon, watched) :
			NULL;
	if (queue && !queue->slice.uncounted)
		slicing_count(daemon, device, queue, now_ns);
}

void gp_slicing_counted(struct gp_daemon *daemon, struct gp_client *client, const struct gp_device_count *count)
{
	struct gp_queue_entry *queue = gp_client_queue(client, count->slot, count->generation);
	struct gp_switching *switching;

	if (!queue || !queue->in_core)
		return; /* slicing_count() gives this answer up when its time is over */
	switching = &daemon->devices[queue->device].switching;
	if (gp_queue_of(daemon, switching->queue) != queue)
		return;
	switching->is_asked = false;
	switching->next_ns = gp_now_ns() + slicing_count_ns(daemon);
	gp_slicing_changed(daemon);
	if (count->result) {
		queue->slice.uncounted = count->result != -ESRCH && count->result != -EBUSY && count->result != -ENOMEM;
		if (queue->slice.uncounted)
			gp_log_user(daemon, client->owner,
				    "process %d (%s): the driver does not tell how often it is put aside (%s)",
				    client->device.pid, client->name, strerror(-count->result));
	} else if (switching->closes == queue->closes) {
		gp_sched_switches(daemon->sched, queue->core, count->saves, count->at_ns / daemon->dilation,
				  gp_daemon_now_ns(daemon));
	}
}

void gp_slicing_update(struct gp_daemon *daemon, uint64_t now_ns)
{
	if (!gp_timer_expire(daemon, &daemon->slice_timer, now_ns))
		return;
	for (uint32_t i = 0; i < daemon->device_count; i++) {
		struct gp_device_entry *device = &daemon->devices[i];

		if (device->info.short_us)
			slicing_device_update(daemon, device, now_ns);
	}
}

bool gp_slicing_are_back(const struct gp_daemon *daemon)
{
	for (uint32_t i = 0; i < daemon->device_count; i++)
		for (const struct gp_queue_entry *q = daemon->devices[i].queues; q; q = q->device_next)
			if (q->client->answers && !q->slice.failures && !gp_slicing_is_own(daemon, q))
				return false;
	return true;
}
