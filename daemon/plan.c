/* SPDX-License-Identifier: MIT */
/*
 * The core's plans are carried out: one client's part at a time goes to the backend, closes first; opens are issued
 * when the last close is answered. A device has one plan under way; when the core has given up on it, what is left of
 * it is forgotten, and answers that come later only correct what is known of a gate.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/daemon.h"

#define PLAN_ROUNDS 64 /* plans of one wakeup: each is followed by its answer at best, so more is a mistake */

static struct gp_device_entry *plan_device(struct gp_daemon *daemon, uint32_t core)
{
	for (uint32_t i = 0; i < daemon->device_count; i++)
		if (daemon->devices[i].core == core)
			return &daemon->devices[i];
	return NULL;
}

static const struct gp_order *plan_order(const struct gp_under_way *way, uint32_t place)
{
	return place < way->plan.close_count ? &way->plan.close[place] : &way->plan.open[place - way->plan.close_count];
}

static uint32_t plan_order_count(const struct gp_under_way *way)
{
	return way->plan.close_count + way->plan.open_count;
}

/* Nobody waits for these any more. Who has not answered is said once. */
static void plan_abandon(struct gp_daemon *daemon, struct gp_device_entry *device)
{
	struct gp_under_way *way = &device->way;

	for (uint32_t i = 0; way->active && i < plan_order_count(way); i++) {
		struct gp_queue_entry *queue = gp_queue_of(daemon, plan_order(way, i)->queue);

		if (way->results[i] != GP_WAITING || !queue || queue->order_place != i)
			continue;
		if (i >= way->plan.close_count && !way->opening)
			continue;
		gp_client_answers(daemon, queue->client, false);
		gp_client_escalate(daemon, queue->client);
	}
	gp_slice_plan_over(daemon, device);
	way->active = false;
}

static void plan_issue(struct gp_daemon *daemon, struct gp_device_entry *device);

static void plan_finish(struct gp_daemon *daemon, struct gp_device_entry *device)
{
	struct gp_under_way *way = &device->way;

	gp_slice_plan_over(daemon, device);
	way->active = false;
	gp_sched_applied(daemon->sched, device->core, way->plan.seq, way->results, plan_order_count(way),
			 gp_daemon_now_ns(daemon));
	daemon->dirty = daemon->metrics_dirty = true;
}

/* One order has its result. */
static void plan_settle(struct gp_daemon *daemon, struct gp_device_entry *device, uint32_t place, int result)
{
	struct gp_under_way *way = &device->way;

	if (way->results[place] != GP_WAITING)
		return;
	way->results[place] = result;
	way->waiting--;
	if (result) {
		device->order_failures++;
		daemon->counters.order_failures++;
	}
}

static void plan_advance(struct gp_daemon *daemon, struct gp_device_entry *device)
{
	struct gp_under_way *way = &device->way;

	while (way->active && !way->waiting) {
		if (way->opening || !way->plan.open_count) {
			plan_finish(daemon, device);
			return;
		}
		if (!gp_slice_may_open(daemon, device))
			return;
		way->opening = true;
		plan_issue(daemon, device);
	}
}

/* The orders of one client, from place on, in this phase; they go in one call. */
static void plan_issue_client(struct gp_daemon *daemon, struct gp_device_entry *device, uint32_t place, uint32_t end)
{
	struct gp_under_way *way = &device->way;
	struct gp_queue_entry *first = gp_queue_of(daemon, plan_order(way, place)->queue), *queue;
	struct gp_client *client = first->client;
	struct gp_device_change changes[GP_PLAN_MAX];
	uint32_t count = 0, i;
	int r;

	for (i = place; i < end; i++) {
		queue = gp_queue_of(daemon, plan_order(way, i)->queue);
		if (!queue || queue->client != client)
			continue;
		if (!way->opening)
			gp_queue_hold(daemon, queue, true);
		queue->order_seq = way->seq;
		queue->order_place = i;
		changes[count++] = (struct gp_device_change){ .slot = queue->wire.slot,
							      .generation = queue->wire.generation,
							      .gpu_id = queue->wire.gpu_id,
							      .queue_id = queue->wire.queue_id,
							      .open = way->opening };
	}
	client->orders += count;
	device->orders += count;
	daemon->counters.orders += count;
	r = client->device.mechanism == GP_MECHANISM_NONE ?
		    -ENOTSUP :
		    daemon->ops->apply(daemon->backend, &client->device, way->seq, device->info.gpu_id, changes, count);
	for (i = place; r && i < end; i++) {
		queue = gp_queue_of(daemon, plan_order(way, i)->queue);
		if (queue && queue->client == client) {
			queue->order_place = GP_NO_PLACE;
			if (!way->opening)
				gp_queue_hold(daemon, queue, queue->closed); /* as it was */
			plan_settle(daemon, device, i, r);
		}
	}
}

static void plan_issue(struct gp_daemon *daemon, struct gp_device_entry *device)
{
	struct gp_under_way *way = &device->way;
	uint32_t begin = way->opening ? way->plan.close_count : 0;
	uint32_t end = way->opening ? plan_order_count(way) : way->plan.close_count;
	uint32_t i;

	way->waiting = end - begin;
	for (i = begin; i < end; i++) {
		struct gp_queue_entry *queue = gp_queue_of(daemon, plan_order(way, i)->queue);

		if (queue)
			queue->order_place = GP_NO_PLACE;
		if (!queue)
			plan_settle(daemon, device, i, -ESRCH);
		else if (way->opening && gp_slice_holds_back(daemon, device, queue))
			plan_settle(daemon, device, i, -EBUSY);
	}
	for (i = begin; i < end; i++) {
		struct gp_queue_entry *queue = gp_queue_of(daemon, plan_order(way, i)->queue);

		if (way->results[i] == GP_WAITING && queue && queue->order_place == GP_NO_PLACE)
			plan_issue_client(daemon, device, i, end);
	}
	if (daemon->ops->commit)
		daemon->ops->commit(daemon->backend, device->info.gpu_id);
}

/* A plan has room for a thousand orders and usually has a few. */
static void plan_copy(struct gp_plan *to, const struct gp_plan *from)
{
	memcpy(to, from, offsetof(struct gp_plan, close));
	memcpy(to->close, from->close, from->close_count * sizeof(to->close[0]));
	memcpy(to->open, from->open, from->open_count * sizeof(to->open[0]));
}

static void plan_begin(struct gp_daemon *daemon, const struct gp_plan *plan)
{
	struct gp_device_entry *device = plan_device(daemon, plan->device);
	struct gp_under_way *way = &device->way;
	struct gp_stats stats;

	/* A hint on a device that switches by itself: the application brings its context in, nobody waits for an
	 * answer. */
	if (!plan->close_count && !plan->open_count)
		return;
	plan_abandon(daemon, device);
	if (!gp_sched_stats(daemon->sched, device->core, &stats))
		device->timeouts = stats.timeouts; /* what timed out so far was an older one */
	plan_copy(&way->plan, plan);
	way->seq = daemon->seq_base + plan->seq;
	way->active = true;
	way->opening = false;
	daemon->slice_dirty = true;
	for (uint32_t i = 0; i < plan_order_count(way); i++)
		way->results[i] = GP_WAITING;
	plan_issue(daemon, device);
	plan_advance(daemon, device);
}

void gp_plan_answer(struct gp_daemon *daemon, struct gp_device_entry *device, struct gp_queue_entry *queue,
		    uint64_t seq, bool open, int result)
{
	uint32_t place = queue->order_place;

	if (queue->order_seq != seq || place == GP_NO_PLACE)
		return; /* answered before */
	queue->order_place = GP_NO_PLACE;
	if (!device->way.active || device->way.seq != seq) {
		if (!result)
			gp_queue_lost(daemon, queue, open);
		else if (!open)
			gp_queue_hold(daemon, queue, queue->closed); /* as it was */
		return;
	}
	if (!result) {
		gp_queue_gate(daemon, queue, open);
		queue->opens += open;
		queue->closes += !open;
	} else {
		queue->client->order_failures++;
		if (!open)
			gp_queue_hold(daemon, queue, queue->closed); /* as it was */
	}
	plan_settle(daemon, device, place, result);
	plan_advance(daemon, device);
}

void gp_plan_queue_gone(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	struct gp_device_entry *device = &daemon->devices[queue->device];
	uint32_t place = queue->order_place;

	queue->order_place = GP_NO_PLACE;
	if (place == GP_NO_PLACE || !device->way.active || device->way.seq != queue->order_seq)
		return;
	plan_settle(daemon, device, place, -ESRCH);
	plan_advance(daemon, device);
}

void gp_plan_go_on(struct gp_daemon *daemon, struct gp_device_entry *device)
{
	if (device->way.active && !device->way.opening && !device->way.waiting)
		plan_advance(daemon, device);
}

/* A plan that timed out inside the core is not waited for either. */
static void plan_check_timeouts(struct gp_daemon *daemon)
{
	struct gp_stats stats;

	for (uint32_t i = 0; i < daemon->device_count; i++) {
		struct gp_device_entry *device = &daemon->devices[i];

		if (!device->way.active || gp_sched_stats(daemon->sched, device->core, &stats))
			continue;
		if (stats.timeouts != device->timeouts)
			plan_abandon(daemon, device);
	}
}

/* What the agents have sampled since, of queues that have work: how much is left decides whether to close them. */
static void plan_refresh(struct gp_daemon *daemon)
{
	struct gp_queue_entry *queue, *next;

	for (uint32_t i = 0; i < daemon->device_count; i++) {
		for (queue = daemon->devices[i].busy; queue; queue = next) {
			next = queue->busy_next; /* it leaves the list when it is found to be idle */
			if (queue->in_core)
				gp_queue_sample(daemon, queue);
		}
	}
}

void gp_plan_decide(struct gp_daemon *daemon)
{
	uint64_t now_ns = gp_daemon_now_ns(daemon);

	if (!daemon->dirty && gp_sched_deadline_ns(daemon->sched) > now_ns)
		return;
	plan_refresh(daemon);
	for (int i = 0; i < PLAN_ROUNDS; i++) {
		daemon->dirty = false;
		daemon->counters.decisions++;
		while (gp_sched_plan(daemon->sched, gp_daemon_now_ns(daemon), &daemon->plan))
			plan_begin(daemon, &daemon->plan);
		plan_check_timeouts(daemon);
		gp_plan_inbox(daemon);
		if (!daemon->dirty)
			break;
	}
	gp_events_flush(daemon);
}

/* Reports from other threads. */

static void plan_report(struct gp_daemon *daemon, struct gp_report *report)
{
	bool own = pthread_equal(pthread_self(), daemon->thread);
	uint64_t one = 1;
	ssize_t written;

	pthread_mutex_lock(&daemon->inbox_lock);
	*daemon->inbox_tail = report;
	daemon->inbox_tail = &report->next;
	pthread_mutex_unlock(&daemon->inbox_lock);
	/* Our own thread looks into the inbox before it sleeps. */
	if (!own) {
		written = write(daemon->inbox_fd, &one, sizeof(one));
		(void)written; /* full is as good as written */
	}
}

static void plan_host_done(void *context, uint64_t tag, const struct gp_device_done *done)
{
	struct gp_report *report = calloc(1, sizeof(*report) + done->count * sizeof(report->changes[0]));

	if (!report)
		return; /* as if it was never answered: the core's timeout */
	report->kind = GP_REPORT_DONE;
	report->tag = tag;
	report->seq = done->seq;
	report->issue_ns = done->issue_ns;
	report->done_ns = done->done_ns;
	report->gpu_id = done->gpu_id;
	report->count = done->count;
	report->found = done->found;
	memcpy(report->changes, done->changes, done->count * sizeof(report->changes[0]));
	plan_report(context, report);
}

/* Without memory it is as if it was never told: whoever waits for it has a limit. */
static void plan_tell(struct gp_daemon *daemon, const struct gp_report *what, const char *why)
{
	struct gp_report *report = calloc(1, sizeof(*report));

	if (!report)
		return;
	*report = *what;
	snprintf(report->why, sizeof(report->why), "%s", why);
	plan_report(daemon, report);
}

static void plan_host_mechanism(void *context, uint64_t tag, uint32_t mechanism, const char *why)
{
	plan_tell(context, &(struct gp_report){ .kind = GP_REPORT_MECHANISM, .tag = tag, .mechanism = mechanism }, why);
}

static void plan_host_failed(void *context, uint32_t gpu_id, const char *why)
{
	plan_tell(context, &(struct gp_report){ .kind = GP_REPORT_FAILED, .gpu_id = gpu_id }, why);
}

static void plan_host_slice(void *context, uint64_t tag, const struct gp_device_slice *slice)
{
	plan_tell(context, &(struct gp_report){ .kind = GP_REPORT_SLICED, .tag = tag, .slice = *slice }, "");
}

static void plan_host_grouped(void *context, uint64_t tag, const struct gp_device_grouped *grouped)
{
	plan_tell(context, &(struct gp_report){ .kind = GP_REPORT_GROUPED, .tag = tag, .grouped = *grouped }, "");
}

static void plan_host_counted(void *context, uint64_t tag, const struct gp_device_count *count)
{
	plan_tell(context, &(struct gp_report){ .kind = GP_REPORT_COUNTED, .tag = tag, .counted = *count }, "");
}

void gp_plan_host(struct gp_daemon *daemon, struct gp_device_host *ret_host)
{
	*ret_host = (struct gp_device_host){ .daemon = daemon,
					     .order = gp_client_order,
					     .done = plan_host_done,
					     .mechanism = plan_host_mechanism,
					     .failed = plan_host_failed,
					     .slice = gp_slice_ask_agent,
					     .sliced = plan_host_slice,
					     .counted = plan_host_counted,
					     .grouped = plan_host_grouped };
}

static void plan_found(struct gp_device_info *info, const char *found)
{
	for (uint32_t i = 0; i < info->finding_count; i++)
		if (!strcmp(info->findings[i].text, found))
			return;
	gp_device_say(info, GP_MECHANISM_NONE, true, "%s", found);
}

static void plan_done(struct gp_daemon *daemon, const struct gp_report *report)
{
	struct gp_device_entry *device = gp_device_find(daemon, report->gpu_id);
	struct gp_client *client = gp_client_find(daemon, report->tag);
	uint32_t opens = 0, good = 0;

	for (uint32_t i = 0; device && client && i < report->count; i++) {
		const struct gp_device_change *change = &report->changes[i];
		struct gp_queue_entry *queue =
			change->slot < client->slot_count ? client->slots[change->slot].queue : NULL;

		if (!queue || queue->wire.generation != change->generation)
			continue;
		opens += change->open;
		good += !change->result;
		gp_plan_answer(daemon, device, queue, report->seq, change->open, change->result);
	}
	if (good && report->done_ns > report->issue_ns)
		gp_device_learn(daemon, device, opens, report->done_ns - report->issue_ns);
	if (device && report->found)
		plan_found(&device->info, report->found);
	if (client)
		gp_client_answered(daemon, client);
}

static bool plan_client_is_on(const struct gp_client *client, uint32_t device)
{
	for (uint32_t i = 0; i < client->slot_count; i++)
		if (client->slots[i].queue && client->slots[i].queue->device == device)
			return true;
	return false;
}

/* What we call for ourselves we renew the lease of, though our calls fail: nobody would open what is closed. The agents
 * can: a change of the means lets them give everything back. */
static void plan_hand_over(struct gp_daemon *daemon, const struct gp_device_entry *device, const char *why)
{
	for (uint32_t i = 0; device->info.hands_over && i < daemon->client_top; i++) {
		struct gp_client *client = daemon->clients[i];

		if (client && client->device.mechanism == device->info.mechanism &&
		    plan_client_is_on(client, (uint32_t)(device - daemon->devices)))
			gp_client_mechanism(daemon, client, device->info.fallback, why);
	}
}

void gp_plan_inbox(struct gp_daemon *daemon)
{
	struct gp_report *report, *next;
	struct gp_device_entry *device;
	struct gp_client *client;

	pthread_mutex_lock(&daemon->inbox_lock);
	report = daemon->inbox;
	daemon->inbox = NULL;
	daemon->inbox_tail = &daemon->inbox;
	pthread_mutex_unlock(&daemon->inbox_lock);
	for (; report; report = next) {
		next = report->next;
		client = gp_client_find(daemon, report->tag);
		device = gp_device_find(daemon, report->gpu_id);
		if (report->kind == GP_REPORT_DONE)
			plan_done(daemon, report);
		else if (report->kind == GP_REPORT_MECHANISM && client)
			gp_client_mechanism(daemon, client, report->mechanism, report->why);
		else if (report->kind == GP_REPORT_FAILED && device) {
			gp_device_stop(daemon, device, report->why);
			plan_hand_over(daemon, device, report->why);
		} else if (report->kind == GP_REPORT_SLICED && client)
			gp_slice_answer(daemon, client, report->slice.slot, report->slice.generation,
					report->slice.slice_us, report->slice.result);
		else if (report->kind == GP_REPORT_GROUPED && client)
			gp_slice_grouped(daemon, client, &report->grouped);
		else if (report->kind == GP_REPORT_COUNTED && client)
			gp_pace_counted(daemon, client, &report->counted);
		free(report);
	}
}
