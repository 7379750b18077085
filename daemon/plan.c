/* SPDX-License-Identifier: MIT */
/*
 * Carries out the core's plans. Each client's part goes to the backend separately, closes first. The daemon issues
 * the opens of a plan when the awaited closes are answered, or when its patience is over, so that a client that does
 * not answer holds up no other. Each answer goes to the core as it comes. The core says which orders it has given
 * up; a later answer to such an order only corrects what is known about the gate.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/daemon.h"

#define PLAN_ROUNDS     64 /* rounds of plans in one wakeup: at best each plan is answered at once; more is a mistake */
#define PLAN_FREE       64u /* queues of a user that are read before a plan for nothing; chosen: as many as a GPU runs */
#define PLAN_TROUBLE_NS 1000000000ull /* as long as a call of the debugger may take before it counts as stuck */

static struct gp_device_entry *plan_device(struct gp_daemon *daemon, uint32_t core)
{
	for (uint32_t i = 0; i < daemon->device_count; i++)
		if (daemon->devices[i].core == core)
			return &daemon->devices[i];
	return NULL;
}

/* The plan's opens no longer wait for this close. */
static void plan_not_awaited(struct gp_device_entry *device, struct gp_queue_entry *queue)
{
	if (queue->is_awaited && device->under_way.seq == queue->order_seq) {
		GP_ASSERT(device->under_way.waiting);
		device->under_way.waiting--;
	}
	queue->is_awaited = false;
}

/* Tells the core and the counters what became of an order. False: the core has given the order up. */
static bool plan_applied(struct gp_daemon *daemon, struct gp_device_entry *device, struct gp_queue_entry *queue,
			 int result, uint64_t now_ns)
{
	bool known =
		queue->in_core && queue->order_seq > daemon->core.seq_base &&
		!gp_sched_applied(daemon->sched, queue->core, queue->order_seq - daemon->core.seq_base, result, now_ns);

	queue->is_ordered = false;
	plan_not_awaited(device, queue);
	gp_metrics_changed(daemon);
	if (known)
		gp_quarantine_ordered(daemon, queue);
	if (known && result) {
		device->order_failures++;
		daemon->counters.order_failures++;
	}
	return known;
}

/* Issues the marked orders of one client, from place on, in one call. */
static void plan_issue_client(struct gp_daemon *daemon, struct gp_device_entry *device, const struct gp_order *orders,
			      uint32_t count, uint32_t place, bool open)
{
	struct gp_client *client = gp_queue_of(daemon, orders[place].queue)->client;
	struct gp_device_change changes[GP_PLAN_MAX];
	struct gp_queue_entry *queues[GP_PLAN_MAX];
	uint64_t now_ns = gp_daemon_now_ns(daemon);
	uint32_t changed = 0;
	int r;

	for (uint32_t i = place; i < count; i++) {
		struct gp_queue_entry *queue = gp_queue_of(daemon, orders[i].queue);

		if (!queue || queue->client != client || !queue->to_issue)
			continue;
		if (!open)
			gp_queue_hold(daemon, queue, true);
		queue->to_issue = false;
		queue->is_ordered = true;
		queue->ordered_ns = gp_now_ns();
		queues[changed] = queue;
		changes[changed++] = (struct gp_device_change){ .slot = queue->wire.slot,
								.generation = queue->wire.generation,
								.gpu_id = queue->wire.gpu_id,
								.queue_id = queue->wire.queue_id,
								.open = open };
	}
	client->orders += changed;
	device->orders += changed;
	daemon->counters.orders += changed;
	r = client->device.mechanism == GP_MECHANISM_NONE ?
		    -ENOTSUP :
		    client->driver->ops->apply(client->driver->backend, &client->device, device->under_way.seq,
					       device->info.gpu_id, changes, changed);
	for (uint32_t i = 0; r && i < changed; i++) {
		if (!open)
			gp_queue_hold(daemon, queues[i], queues[i]->closed); /* as it was */
		plan_applied(daemon, device, queues[i], r, now_ns);
	}
	if (!r)
		gp_pause_ordered(daemon);
}

/* Issues the closes or the opens of one plan. */
static void plan_issue(struct gp_daemon *daemon, struct gp_device_entry *device, const struct gp_order *orders,
		       uint32_t count, bool open)
{
	struct gp_queue_entry *queue;

	for (uint32_t i = 0; i < count; i++) {
		queue = gp_queue_of(daemon, orders[i].queue);
		if (!queue || queue->plan_seq != device->under_way.seq)
			continue; /* the queue is gone, or the core gave the order up */
		queue->order_seq = device->under_way.seq;
		queue->is_awaited = !open && orders[i].is_awaited;
		device->under_way.waiting += queue->is_awaited;
		queue->to_issue = true;
	}
	for (uint32_t i = 0; i < count; i++) {
		queue = gp_queue_of(daemon, orders[i].queue);
		if (queue && queue->to_issue)
			plan_issue_client(daemon, device, orders, count, i, open);
	}
	if (device->driver->ops->commit)
		device->driver->ops->commit(device->driver->backend, device->info.gpu_id);
}

/* Issues the plan's opens, unless they still wait for closes. hurry: they do not wait. */
static void plan_advance(struct gp_daemon *daemon, struct gp_device_entry *device, bool hurry)
{
	struct gp_under_way *way = &device->under_way;

	if (!way->active || (!hurry && way->waiting && gp_running_ns(daemon) < way->by_ns))
		return;
	way->active = false;
	plan_issue(daemon, device, way->open, way->open_count, true);
}

static void plan_begin(struct gp_daemon *daemon, const struct gp_plan *plan)
{
	struct gp_device_entry *device = plan_device(daemon, plan->device);
	struct gp_under_way *way = &device->under_way;
	struct gp_queue_entry *queue;

	for (uint32_t i = 0; i < plan->slice_count; i++)
		gp_slicing_order(daemon, &plan->slice[i], plan->seq);
	/* The plan changes no gate: it sets slices only, or follows a hint on a device that switches by itself. The
	 * application brings its context in; the core waits for no answer about gates. */
	if (!plan->close_count && !plan->open_count)
		return;
	plan_advance(daemon, device, true); /* opens of the plan before: agents take no older order than the last */
	way->seq = daemon->core.seq_base + plan->seq;
	way->waiting = 0;
	way->by_ns = gp_running_ns(daemon) + plan->patience_ns * daemon->dilation;
	way->open_count = plan->open_count;
	memcpy(way->open, plan->open, plan->open_count * sizeof(way->open[0]));
	for (uint32_t i = 0; i < plan->close_count + plan->open_count; i++) {
		queue = gp_queue_of(daemon, i < plan->close_count ? plan->close[i].queue :
								    plan->open[i - plan->close_count].queue);
		if (queue)
			queue->plan_seq = way->seq;
	}
	way->active = plan->open_count; /* before answers come: the closes may be refused at once */
	gp_slicing_changed(daemon);
	plan_issue(daemon, device, plan->close, plan->close_count, false);
	plan_advance(daemon, device, false);
	if (way->active)
		gp_timer_sooner(daemon, &daemon->core.timer, gp_running_at_ns(way->by_ns));
}

void gp_carry_answer(struct gp_daemon *daemon, struct gp_device_entry *device, struct gp_queue_entry *queue,
		     uint64_t seq, bool open, int result, uint64_t now_ns)
{
	if (queue->order_seq != seq || !queue->is_ordered)
		return; /* answered before */
	if (!plan_applied(daemon, device, queue, result, now_ns)) {
		if (!result && queue->plan_seq > seq) /* a newer order waits; its answer tells the gate's state */
			gp_queue_gate(daemon, queue, open);
		else if (!result)
			gp_queue_lost(daemon, queue, GP_LOST_RUNTIME, open);
		else if (!open)
			gp_queue_hold(daemon, queue, queue->closed); /* as it was */
	} else if (!result) {
		gp_queue_gate(daemon, queue, open);
		queue->opens += open;
		queue->closes += !open;
	} else {
		queue->client->order_failures++;
		if (!open)
			gp_queue_hold(daemon, queue, queue->closed); /* as it was */
	}
	plan_advance(daemon, device, false);
}

void gp_carry_queue_gone(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	struct gp_device_entry *device = &daemon->devices[queue->device];

	plan_not_awaited(device, queue);
	queue->is_ordered = false;
	queue->plan_seq = 0;
	plan_advance(daemon, device, false);
}

void gp_carry_forget(struct gp_device_entry *device)
{
	device->under_way.active = false;
	device->under_way.waiting = 0;
	for (struct gp_queue_entry *queue = device->queues; queue; queue = queue->device_next) {
		queue->is_awaited = false;
		queue->plan_seq = 0;
	}
}

/* The daemon's own call into the driver has not come back. Either the driver is slow this once, or the hardware does
 * not let a queue go and a reset is next; then further preemptions would only make it worse. So the daemon looks again
 * after a second. */
static void plan_doubt(struct gp_daemon *daemon, struct gp_device_entry *device, const struct gp_client *client)
{
	if (!gp_mechanism_has(client->device.mechanism, GP_BY_DAEMON) || device->trouble_ns)
		return;
	device->trouble_ns = gp_running_ns(daemon) + PLAN_TROUBLE_NS;
	gp_timer_sooner(daemon, &daemon->core.timer, gp_running_at_ns(device->trouble_ns));
}

static void plan_trouble(struct gp_daemon *daemon, struct gp_device_entry *device)
{
	if (!device->trouble_ns || gp_running_ns(daemon) < device->trouble_ns)
		return;
	device->trouble_ns = 0;
	if (gp_drivers_stuck(daemon, device->info.gpu_id))
		gp_device_halt(
			daemon, device,
			"the driver has not carried out a preemption for more than a second; find the program that hangs");
}

/* Takes the orders that the core has given up. A client that did not answer one in time counts as not answering; its
 * answer may still come. */
static void plan_given_up(struct gp_daemon *daemon)
{
	struct gp_given_up given;

	while (gp_sched_given_up(daemon->sched, &given)) {
		struct gp_queue_entry *queue = gp_queue_of(daemon, given.queue);
		bool is_out = queue && queue->is_ordered && queue->order_seq == daemon->core.seq_base + given.seq;

		if (!queue || queue->plan_seq > daemon->core.seq_base + given.seq)
			continue; /* the queue has a newer order already */
		queue->plan_seq = 0;
		plan_not_awaited(&daemon->devices[queue->device], queue);
		gp_metrics_changed(daemon);
		gp_quarantine_ordered(daemon, queue);
		if (!is_out || given.why != GP_WHY_TIMEOUT)
			continue;
		plan_doubt(daemon, &daemon->devices[queue->device], queue->client);
		gp_client_answers(daemon, queue->client, false);
		gp_client_escalate(daemon, queue->client);
	}
}

/* Issues the opens of plans whose patience is over, and looks for calls into the driver that are stuck. */
static void plan_due(struct gp_daemon *daemon)
{
	if (!gp_timer_expire(daemon, &daemon->core.timer, gp_now_ns()))
		return;
	for (uint32_t i = 0; i < daemon->device_count; i++) {
		struct gp_device_entry *device = &daemon->devices[i];

		plan_trouble(daemon, device);
		plan_advance(daemon, device, false);
		if (device->trouble_ns)
			gp_timer_sooner(daemon, &daemon->core.timer, gp_running_at_ns(device->trouble_ns));
		if (device->under_way.active)
			gp_timer_sooner(daemon, &daemon->core.timer, gp_running_at_ns(device->under_way.by_ns));
	}
}

/* Whether the daemon reads this queue's counters before the plan. A plan is often made for another user, so the first
 * queues of each user are free. For further ones the user pays, and they are left out while the user may not be served.
 */
static bool plan_may_read(struct gp_daemon *daemon, struct gp_owner *owner, struct gp_owner **many)
{
	if (owner->refresh_round != daemon->core.refreshes) {
		owner->refresh_round = daemon->core.refreshes;
		owner->refreshed = 0;
	}
	if (owner->refreshed == PLAN_FREE) {
		owner->refresh_waits = !gp_fair_may(daemon, owner);
		owner->refresh_next = *many;
		*many = owner;
	}
	return owner->refreshed++ < PLAN_FREE || !owner->refresh_waits;
}

/* Reads what the agents have sampled of queues with work: how much is left decides whether the core closes them. */
static void plan_refresh(struct gp_daemon *daemon)
{
	struct gp_looks looks = { NULL, false };
	struct gp_queue_entry *queue, *next;
	struct gp_owner *many = NULL;
	uint64_t begin_ns = gp_now_ns(), now_ns;
	uint32_t count = 0;

	daemon->core.refreshes++;
	for (uint32_t i = 0; i < daemon->device_count; i++) {
		for (queue = daemon->devices[i].busy; queue; queue = next) {
			next = queue->links[GP_QUEUE_BUSY].next; /* it leaves the list when it is found to be idle */
			if (!queue->in_core || !plan_may_read(daemon, queue->client->owner, &many))
				continue;
			gp_queue_look(daemon, queue, &looks);
			count++;
		}
	}
	gp_queue_look_again(daemon, &looks);
	gp_portion_use(daemon, count);
	now_ns = gp_now_ns();
	for (; many; many = many->refresh_next)
		if (!many->refresh_waits)
			gp_fair_charge(many, (now_ns - begin_ns) * (many->refreshed - PLAN_FREE) / count, now_ns);
}

/* The core says by when it wants to be asked for a plan; after an event that is now. */
static bool plan_is_due(const struct gp_daemon *daemon)
{
	return gp_sched_deadline_ns(daemon->sched) <= gp_daemon_now_ns(daemon);
}

void gp_carry_decide(struct gp_daemon *daemon)
{
	plan_due(daemon);
	if (plan_is_due(daemon))
		plan_refresh(daemon);
	for (int i = 0; i < PLAN_ROUNDS && plan_is_due(daemon); i++) {
		daemon->counters.decisions++;
		while (gp_sched_plan(daemon->sched, gp_daemon_now_ns(daemon), &daemon->core.plan))
			plan_begin(daemon, &daemon->core.plan);
		plan_given_up(daemon);
		gp_carry_inbox(daemon);
	}
	gp_events_flush(daemon);
}

/* Reports from other threads. */

static void plan_report(struct gp_daemon *daemon, struct gp_device_report *report)
{
	bool own = pthread_equal(pthread_self(), daemon->loop.thread);
	uint64_t one = 1;
	ssize_t written;

	pthread_mutex_lock(&daemon->inbox.lock);
	__atomic_store_n(daemon->inbox.tail, report, __ATOMIC_RELAXED); /* gp_carry_has_reports() has no lock */
	daemon->inbox.tail = &report->next;
	pthread_mutex_unlock(&daemon->inbox.lock);
	/* The decision thread looks into the inbox before it sleeps. */
	if (!own) {
		written = write(daemon->inbox.fd, &one, sizeof(one));
		(void)written; /* a full eventfd wakes the thread too */
	}
}

static void plan_host_done(void *context, uint64_t tag, const struct gp_device_done *done)
{
	struct gp_device_report *report = calloc(1, sizeof(*report) + done->count * sizeof(report->changes[0]));

	if (!report)
		return; /* as if the order was never answered: the core's timeout ends it */
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

/* Without memory the report is lost: whatever waits for it has a limit. */
static int plan_tell(struct gp_daemon *daemon, const struct gp_device_report *what, const char *why)
{
	struct gp_device_report *report = calloc(1, sizeof(*report));

	if (!report)
		return -ENOMEM;
	*report = *what;
	snprintf(report->why, sizeof(report->why), "%s", why);
	plan_report(daemon, report);
	return 0;
}

static void plan_host_mechanism(void *context, uint64_t tag, uint32_t mechanism, const char *why)
{
	plan_tell(context,
		  &(struct gp_device_report){ .kind = GP_REPORT_MECHANISM, .tag = tag, .mechanism = mechanism }, why);
}

static void plan_host_failed(void *context, uint32_t gpu_id, const char *why)
{
	plan_tell(context, &(struct gp_device_report){ .kind = GP_REPORT_FAILED, .gpu_id = gpu_id }, why);
}

static void plan_host_hangs(void *context, uint32_t gpu_id, bool hangs)
{
	plan_tell(context,
		  &(struct gp_device_report){ .kind = hangs ? GP_REPORT_HANGS : GP_REPORT_BACK, .gpu_id = gpu_id },
		  "a call into the driver does not come back");
}

static void plan_host_slice(void *context, uint64_t tag, const struct gp_device_slice *slice)
{
	plan_tell(context, &(struct gp_device_report){ .kind = GP_REPORT_SLICED, .tag = tag, .slice = *slice }, "");
}

static void plan_host_grouped(void *context, uint64_t tag, const struct gp_device_grouped *grouped)
{
	plan_tell(context, &(struct gp_device_report){ .kind = GP_REPORT_GROUPED, .tag = tag, .grouped = *grouped },
		  "");
}

static int plan_host_ungrouped(void *context, uint64_t tag, const struct gp_device_grouped *grouped, const char *why)
{
	return plan_tell(context,
			 &(struct gp_device_report){ .kind = GP_REPORT_UNGROUPED, .tag = tag, .grouped = *grouped },
			 why);
}

static void plan_host_counted(void *context, uint64_t tag, const struct gp_device_count *count)
{
	plan_tell(context, &(struct gp_device_report){ .kind = GP_REPORT_COUNTED, .tag = tag, .counted = *count }, "");
}

void gp_carry_host(struct gp_daemon *daemon, struct gp_device_host *ret_host)
{
	*ret_host = (struct gp_device_host){ .daemon = daemon,
					     .order = gp_client_order,
					     .done = plan_host_done,
					     .mechanism = plan_host_mechanism,
					     .failed = plan_host_failed,
					     .hangs = plan_host_hangs,
					     .slice = gp_slicing_ask_agent,
					     .sliced = plan_host_slice,
					     .counted = plan_host_counted,
					     .grouped = plan_host_grouped,
					     .ungrouped = plan_host_ungrouped };
}

static void plan_found(struct gp_device_info *info, const char *found)
{
	for (uint32_t i = 0; i < info->finding_count; i++)
		if (!strcmp(info->findings[i].text, found))
			return;
	gp_device_say(info, GP_MECHANISM_NONE, true, "%s", found);
}

static void plan_done(struct gp_daemon *daemon, const struct gp_device_report *report)
{
	struct gp_device_entry *device = gp_device_find(daemon, report->gpu_id);
	struct gp_client *client = gp_client_find(daemon, report->tag);
	uint64_t now_ns = gp_daemon_now_ns(daemon);
	uint32_t opens = 0, good = 0;

	for (uint32_t i = 0; device && client && i < report->count; i++) {
		const struct gp_device_change *change = &report->changes[i];
		struct gp_queue_entry *queue = gp_client_queue(client, change->slot, change->generation);

		if (!queue)
			continue;
		opens += change->open;
		good += !change->result;
		gp_carry_answer(daemon, device, queue, report->seq, change->open, change->result, now_ns);
	}
	if (good && report->done_ns > report->issue_ns && !gp_pause_since(report->issue_ns))
		gp_device_learn(daemon, device, client, opens, report->done_ns - report->issue_ns);
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

/* The daemon renews the leases of gates that it changes by its own calls, also when these calls fail. So no agent would
 * open a gate that the daemon closed. After a change of the mechanism the agents open all gates and restore all slices.
 */
static void plan_hand_over(struct gp_daemon *daemon, const struct gp_device_entry *device,
			   const struct gp_device_report *report)
{
	for (uint32_t i = 0; device->info.hands_over && i < daemon->client_top; i++) {
		struct gp_client *client = daemon->clients[i];

		if (client && client->device.mechanism == device->info.mechanism &&
		    plan_client_is_on(client, (uint32_t)(device - daemon->devices))) {
			client->device.is_handed_over = report->kind == GP_REPORT_HANGS;
			gp_client_mechanism(daemon, client, device->info.fallback, report->why);
		}
	}
}

/* Without the lock: the partner is the store in plan_report(). It need not be ordered, because this decides only
 * whether the thread sleeps. gp_carry_inbox() reads the reports under the lock, and a report of another thread that is
 * stored after this look wakes the thread by inbox.fd. */
bool gp_carry_has_reports(const struct gp_daemon *daemon)
{
	return __atomic_load_n(&daemon->inbox.reports, __ATOMIC_RELAXED);
}

static bool plan_client_is_on_hung(const struct gp_daemon *daemon, const struct gp_client *client)
{
	for (uint32_t i = 0; i < daemon->device_count; i++)
		if (daemon->devices[i].is_hung && plan_client_is_on(client, i))
			return true;
	return false;
}

/* The clients that were handed over, unless another of their devices hangs. */
static void plan_take_back(struct gp_daemon *daemon, const struct gp_device_entry *device)
{
	for (uint32_t i = 0; i < daemon->client_top; i++) {
		struct gp_client *client = daemon->clients[i];

		if (!client || !client->device.is_handed_over || plan_client_is_on_hung(daemon, client))
			continue;
		client->device.is_handed_over = false;
		gp_client_mechanism(daemon, client, device->info.mechanism, "the call into the driver has come back");
	}
}

static void plan_stop(struct gp_daemon *daemon, struct gp_device_entry *device, const struct gp_device_report *report)
{
	bool hangs = report->kind == GP_REPORT_HANGS, may_start = !device->stopped || device->claim.is_why;

	if (!hangs || !device->is_hung)
		gp_device_halt(daemon, device, report->why);
	device->is_hung |= hangs && may_start;
	plan_hand_over(daemon, device, report);
}

/* The call that hung has come back, and the backend has undone what it changed. */
static void plan_back(struct gp_daemon *daemon, struct gp_device_entry *device)
{
	gp_log("GPU %u: the call into the driver has come back; what it changed is undone", device->info.gpu_id);
	if (device->is_hung && !device->claim.is_left)
		gp_device_go_on(daemon, device);
	else if (device->is_hung)
		gp_claim_is_why(daemon, device);
	plan_take_back(daemon, device);
}

void gp_carry_inbox(struct gp_daemon *daemon)
{
	struct gp_device_report *report, *next;
	struct gp_device_entry *device;
	struct gp_client *client;

	pthread_mutex_lock(&daemon->inbox.lock);
	report = daemon->inbox.reports;
	daemon->inbox.reports = NULL;
	daemon->inbox.tail = &daemon->inbox.reports;
	pthread_mutex_unlock(&daemon->inbox.lock);
	for (; report; report = next) {
		next = report->next;
		client = gp_client_find(daemon, report->tag);
		device = gp_device_find(daemon, report->gpu_id);
		if (report->kind == GP_REPORT_DONE)
			plan_done(daemon, report);
		else if (report->kind == GP_REPORT_MECHANISM && client) {
			client->device.is_handed_over = false;
			gp_client_mechanism(daemon, client, report->mechanism, report->why);
		} else if ((report->kind == GP_REPORT_FAILED || report->kind == GP_REPORT_HANGS) && device)
			plan_stop(daemon, device, report);
		else if (report->kind == GP_REPORT_BACK && device)
			plan_back(daemon, device);
		else if (report->kind == GP_REPORT_SLICED && client)
			gp_slicing_answer(daemon, client, report->slice.slot, report->slice.generation,
					  report->slice.slice_us, report->slice.result);
		else if (report->kind == GP_REPORT_GROUPED && client)
			gp_channel_group_found(daemon, client, &report->grouped);
		else if (report->kind == GP_REPORT_UNGROUPED && client)
			gp_channel_group_missing(daemon, client, &report->grouped, report->why);
		else if (report->kind == GP_REPORT_COUNTED && client)
			gp_slicing_counted(daemon, client, &report->counted);
		free(report);
	}
}
