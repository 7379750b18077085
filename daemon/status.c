/* SPDX-License-Identifier: MIT */
/* STATUS as JSON: docs/status.md is its contract. Users see their own clients; of others only that they are there. */
#include <gpreempt/counters.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "daemon/daemon.h"
#include "daemon/unmanaged.h"

#define STATUS_PART_SIZE   14000u /* bytes that are made before they are sent */
#define STATUS_DEVICE_WORK 16u    /* units */

static const char *const status_units[] = { "device", "process", "queue" };

static const char *status_gate(const struct gp_queue_entry *queue, const struct gp_queue_info *info)
{
	static const char *const names[] = { "open", "closing", "closed", "opening", "unknown", "quarantined" };

	if (!info)
		return queue->closed ? "closed" : "open";
	return names[info->gate];
}

static void status_cost(struct gp_text *text, const char *name, const struct gp_hist *hist, uint64_t prior_ns,
			uint64_t used_ns)
{
	static const struct {
		const char *name;
		uint32_t permille;
	} quantiles[] = { { "p50", 500 }, { "p90", 900 }, { "p99", 990 } };

	gp_text_open(text, name, '{');
	gp_text_u64(text, "prior", prior_ns);
	gp_text_u64(text, "used", used_ns);
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
		gp_json_writer_known(gp_text_json(text), quantiles[i].name, hist->count,
				     gp_hist_quantile(hist, quantiles[i].permille));
	gp_text_u64(text, "count", hist->count);
	gp_text_close(text, '}');
}

static void status_stats(struct gp_daemon *daemon, const struct gp_device_entry *device, struct gp_text *text)
{
	struct gp_stats stats = { 0 };

	gp_sched_stats(daemon->sched, device->core, &stats);
	gp_text_open(text, "stats", '{');
#define STATUS_COUNTER(field, metric, help, is_time) gp_text_u64(text, #field, stats.field);
	GP_COUNTER_TABLE(STATUS_COUNTER)
#undef STATUS_COUNTER
	gp_text_open(text, "left_open", '{');
	for (uint32_t i = 0; i < GP_WHY_COUNT; i++)
		if (stats.left_open[i])
			gp_text_u64(text, gp_why_name((enum gp_why)i), stats.left_open[i]);
	gp_text_close(text, '}');
	gp_text_close(text, '}');
}

void gp_device_use(const struct gp_device_entry *device, uint32_t *ret_slots, uint32_t *ret_processes)
{
	uint32_t slots = device->unmanaged_queues;

	for (const struct gp_queue_entry *q = device->queues; q; q = q->device_next)
		slots += q->wire.kind == GP_WIRE_COMPUTE && !q->closed && !q->client->is_unmanaged;
	*ret_slots = slots;
	*ret_processes = device->unmanaged_processes + device->process_count;
}

/* A GPU that was left to another daemon may be stopped for another reason as well: both are named. */
static void status_stopped(const struct gp_device_entry *device, struct gp_text *text)
{
	const char *left = device->claim.is_left ? device->claim.why : "";
	const char *other = device->claim.is_why ? "" : device->stopped_why;
	char why[2 * GP_WHY_TEXT + 2];

	snprintf(why, sizeof(why), "%s%s%s", other, *left && *other ? "; " : "", left);
	gp_text_bool(text, "stopped", device->stopped);
	gp_text_string(text, "stopped_why", device->stopped ? why : NULL);
}

static void status_device(struct gp_daemon *daemon, const struct gp_device_entry *device, struct gp_text *text)
{
	const struct gp_device_info *info = &device->info;
	struct gp_switch_info switches = { 0 };
	uint32_t slots, processes;

	gp_sched_switch_info(daemon->sched, device->core, &switches);
	gp_device_use(device, &slots, &processes);
	gp_text_open(text, NULL, '{');
	gp_text_u64(text, "gpu_id", info->gpu_id);
	gp_text_u64(text, "node", info->node);
	gp_text_string(text, "backend", device->driver->ops->name);
	gp_text_string(text, "name", info->name);
	gp_text_string(text, "driver", info->driver);
	gp_text_string(text, "bdf", *info->bdf ? info->bdf : NULL);
	gp_text_u64(text, "cu_count", info->cu_count);
	gp_text_u64(text, "slot_count", info->slot_count);
	gp_text_u64(text, "process_count_max", info->process_count_max);
	gp_text_u64(text, "memory_bytes", info->memory_size);
	gp_text_string(text, "mechanism", gp_mechanism_name(info->mechanism));
	gp_text_string(text, "unit", status_units[info->unit]);
	gp_text_bool(text, "stops_all", info->stops_all);
	gp_text_string(text, "rptr", info->fetch_counters ? "fetch" : "completion");
	gp_text_bool(text, "kernel_reopens", info->kernel_reopens);
	gp_text_bool(text, "self_switching", info->switch_ns);
	gp_text_u64(text, "switch_ns", info->switch_ns);
	gp_text_u64(text, "short_slice_us", info->short_us);
	gp_text_u64(text, "switches_per_s", switches.per_s_x1000 / 1000);
	gp_text_bool(text, "slowed", switches.is_slowed);
	gp_text_bool(text, "stays", switches.is_staying);
	gp_text_string(
		text, "protect",
		gp_protect_names[daemon->config.param.protect ? daemon->config.param.protect : GP_PROTECT_BALANCED]);
	status_cost(text, "close_ns", &device->close_hist, device->close_prior_ns, gp_cost_ns(device, false));
	status_cost(text, "open_ns", &device->open_hist, device->open_prior_ns, gp_cost_ns(device, true));
	status_cost(text, "slice_ns", &device->slice_hist, 0, 0);
	gp_text_string(text, "cost_source", device->cost_source);
	gp_text_open(text, "findings", '[');
	for (uint32_t i = 0; i < info->finding_count; i++) {
		gp_text_open(text, NULL, '{');
		gp_text_string(text, "mechanism", gp_mechanism_name(info->findings[i].mechanism));
		gp_text_bool(text, "usable", info->findings[i].usable);
		gp_text_string(text, "text", info->findings[i].text);
		gp_text_close(text, '}');
	}
	gp_text_close(text, ']');
	gp_text_u64(text, "slots_used", slots);
	gp_text_u64(text, "processes", processes);
	gp_text_bool(text, "oversubscribed",
		     (info->slot_count && slots > info->slot_count) ||
			     (info->process_count_max && processes > info->process_count_max));
	status_stopped(device, text);
	gp_text_u64(text, "starvation_bound_ns", gp_sched_starvation_bound_ns(daemon->sched, device->core));
	status_stats(daemon, device, text);
	gp_text_close(text, '}');
}

/* app_us: the application's own slice, null if its agent did not say; now_us: the present slice, null if it is not
 * known. */
static void status_slice(const struct gp_daemon *daemon, const struct gp_queue_entry *queue, struct gp_text *text)
{
	struct gp_queue_info info = { .is_slice_known = !queue->slice.is_owed,
				      .slice_failures = queue->slice.failures };
	struct gp_json_writer *json = gp_text_json(text);
	uint64_t app_us = queue->slice.app_us;

	if (queue->in_core)
		gp_sched_queue_info(daemon->sched, queue->core, &info);
	gp_text_open(text, "slice", '{');
	gp_json_writer_known(json, "now_us", info.is_slice_known && (info.slice_ns || app_us),
			     info.slice_ns ? info.slice_ns / 1000 : app_us);
	gp_json_writer_known(json, "app_us", app_us, app_us);
	gp_text_bool(text, "short", info.is_slice_known && info.is_short);
	gp_text_u64(text, "changes", queue->slice.changes);
	gp_text_u64(text, "failures", info.slice_failures);
	gp_text_close(text, '}');
}

static void status_queue(struct gp_daemon *daemon, const struct gp_queue_entry *queue, struct gp_text *text)
{
	struct gp_json_writer *json = gp_text_json(text);
	struct gp_queue_info info = { 0 };
	bool known = queue->in_core && !gp_sched_queue_info(daemon->sched, queue->core, &info);

	gp_text_open(text, NULL, '{');
	gp_text_u64(text, "gpu_id", queue->wire.gpu_id);
	gp_text_u64(text, "queue_id", queue->wire.queue_id);
	gp_text_u64(text, "slot", queue->wire.slot);
	gp_text_string(text, "kind", queue->wire.kind == GP_WIRE_COPY ? "copy" : "compute");
	gp_text_bool(text, "seen", queue->wire.flags & GP_QUEUE_SEEN);
	gp_text_i64(text, "priority", queue->attr.priority);
	gp_text_bool(text, "scheduled", queue->in_core);
	gp_text_string(text, "unscheduled", queue->entry_line ? "entries" : NULL);
	gp_text_string(text, "gate", status_gate(queue, known ? &info : NULL));
	gp_text_string(text, "quarantine", !known ? NULL : info.is_stuck ? "stuck" : info.is_following ? "gang" : NULL);
	gp_text_bool(text, "has_work", queue->pending);
	gp_text_bool(text, "blocked", queue->blocked);
	gp_text_string(text, "counts",
		       queue->wire.flags & GP_QUEUE_BLIND ? "nothing" :
		       queue->wire.flags & GP_QUEUE_FETCH || daemon->devices[queue->device].info.fetch_counters ?
							    "fetch" :
							    "completion");
	gp_json_writer_known(json, "written", queue->client->page, queue->written);
	gp_json_writer_known(json, "completed", queue->client->page, queue->completed);
	gp_json_writer_known(json, "pending", queue->client->page,
			     queue->written > queue->completed ? queue->written - queue->completed : 0);
	gp_json_writer_known(json, "run_ns", known, info.run_ns);
	gp_json_writer_known(json, "wait_ns", known, info.wait_ns);
	gp_json_writer_known(json, "inversions", known, info.inversions);
	gp_json_writer_known(json, "preemptions", known, info.preemptions);
	if (daemon->devices[queue->device].info.short_us)
		status_slice(daemon, queue, text);
	gp_text_u64(text, "closes", queue->closes);
	gp_text_u64(text, "opens", queue->opens);
	gp_text_close(text, '}');
}

/* Over all devices: gpu_count says over how many, so that a share of them can be computed. */
static void status_client_time(struct gp_daemon *daemon, const struct gp_client *client, struct gp_text *text)
{
	struct gp_seat_info info, total = { 0 };
	uint32_t gpu_count = 0;

	for (uint32_t i = 0; i < daemon->device_count; i++) {
		if (!client->in_core || gp_sched_seat_info(daemon->sched, client->core, daemon->devices[i].core, &info))
			continue;
		gpu_count++;
		total.compute_ns += info.compute_ns;
		total.copy_ns += info.copy_ns;
		total.wait_ns += info.wait_ns;
	}
	gp_text_u64(text, "gpu_count", gpu_count);
	gp_text_u64(text, "compute_ns", total.compute_ns);
	gp_text_u64(text, "copy_ns", total.copy_ns);
	gp_text_u64(text, "wait_ns", total.wait_ns);
}

static void status_client_begin(struct gp_daemon *daemon, const struct gp_client *client, uint64_t now_ns,
				struct gp_text *text)
{
	static const char *const counters[] = { "agent", "daemon", "old" };
	char user[64], cgroup[1024];

	gp_text_open(text, NULL, '{');
	gp_text_i64(text, "pid", client->device.pid);
	gp_text_u64(text, "uid", client->uid);
	gp_text_string(text, "user", gp_user_name(daemon, client->uid, user, sizeof(user)));
	gp_text_string(text, "name", client->name);
	gp_text_string(text, "runtime", *client->runtime ? client->runtime : NULL);
	gp_text_string(text, "agent", *client->agent ? client->agent : NULL);
	gp_text_bool(text, "managed", !client->is_unmanaged);
	gp_text_u64(text, "connected_real_ns", now_ns - client->connected_ns);
	gp_text_i64(text, "priority", client->attr.priority);
	gp_text_i64(text, "ceiling", client->ceiling);
	gp_text_u64(text, "weight", client->attr.weight);
	gp_text_u64(text, "deadline_ns", client->attr.deadline_ns);
	gp_text_u64(text, "budget_ns", client->attr.budget_ns);
	gp_text_u64(text, "share_permille", client->attr.share);
	gp_text_string(text, "protect", gp_protect_names[client->attr.protect]);
	gp_text_string(text, "gang",
		       *client->attr.gang ? client->attr.gang :
		       client->mates > 1  ? client->together :
					    NULL);
	gp_text_string(text, "tag", *client->terms.tag ? client->terms.tag : NULL);
	snprintf(cgroup, sizeof(cgroup), "%.*s",
		 client->identity.cgroups ? (int)strcspn(client->identity.cgroups, "\n") : 0,
		 client->identity.cgroups ? client->identity.cgroups : "");
	gp_text_string(text, "cgroup", *cgroup ? cgroup : NULL);
	gp_text_string(text, "mechanism", gp_mechanism_name(client->device.mechanism));
	gp_text_string(text, "mechanism_why", client->mechanism_why);
	gp_text_bool(text, "answers", client->answers);
	gp_text_bool(text, "awaited", !client->is_distrusted);
	gp_text_string(text, "counters", counters[client->counters]);
	gp_text_bool(text, "doorbells_seen", client->device.flags & GP_HELLO_DOORBELLS);
	status_client_time(daemon, client, text);
	gp_text_open(text, "queues", '[');
}

static void status_client_end(struct gp_text *text)
{
	gp_text_close(text, ']');
	gp_text_close(text, '}');
}

void gp_status_client(struct gp_daemon *daemon, const struct gp_client *client, uint64_t now_ns, struct gp_text *text)
{
	gp_portion_use(daemon, 1 + client->queue_count);
	status_client_begin(daemon, client, now_ns, text);
	for (uint32_t i = 0; i < client->slot_count; i++)
		if (client->slots[i].queue)
			status_queue(daemon, client->slots[i].queue, text);
	status_client_end(text);
}

static void status_hidden(struct gp_daemon *daemon, const struct gp_client *client, struct gp_text *text)
{
	gp_text_open(text, NULL, '{');
	gp_text_bool(text, "hidden", true);
	gp_text_open(text, "gpu_ids", '[');
	for (uint32_t i = 0; i < daemon->device_count; i++)
		if (client->device_queue_count[i])
			gp_text_u64(text, NULL, daemon->devices[i].info.gpu_id);
	gp_text_close(text, ']');
	gp_text_u64(text, "queues", client->queue_count);
	gp_text_close(text, '}');
}

/* The sentence may quote a file that root alone can read. */
static const char *status_refused(const struct gp_daemon *daemon, const struct gp_peer *peer)
{
	if (!*daemon->loop.refused.text)
		return NULL;
	return gp_access_sees_all(daemon, peer) ? daemon->loop.refused.text : "root sees the reason";
}

static void status_daemon(struct gp_daemon *daemon, const struct gp_peer *peer, uint64_t now_ns, struct gp_text *text)
{
	const struct gp_counters *counters = &daemon->counters;

	gp_text_open(text, "daemon", '{');
	gp_text_string(text, "version", GP_VERSION);
	gp_text_i64(text, "pid", getpid());
	gp_text_u64(text, "uptime_real_ns", now_ns - daemon->start.at_ns);
	gp_text_string(text, "policy", daemon->config.policy);
	gp_text_u64(text, "lease_ms", daemon->config.lease_ns / 1000000);
	gp_text_u64(text, "dilation", daemon->dilation);
	gp_text_open(text, "config", '[');
	for (uint32_t i = 0; i < daemon->config.file_count; i++)
		gp_text_string(text, NULL, daemon->config.files[i]);
	gp_text_close(text, ']');
	gp_text_string(text, "config_refused", status_refused(daemon, peer));
	gp_text_open(text, "counters", '{');
	gp_text_u64(text, "clients_seen", counters->clients_seen);
	gp_text_u64(text, "orders", counters->orders);
	gp_text_u64(text, "order_failures", counters->order_failures);
	gp_text_u64(text, "leases_lost", counters->leases_lost);
	gp_text_u64(text, "messages", counters->messages);
	gp_text_u64(text, "messages_refused", counters->messages_refused);
	gp_text_u64(text, "connections_refused", counters->peers_refused);
	gp_text_u64(text, "log_lines_left_out", counters->lines_left_out);
	gp_text_u64(text, "driver_calls_stuck", gp_drivers_stuck(daemon, 0));
	gp_text_u64(text, "work_between_looks_max", counters->away_work_max);
	gp_text_u64(text, "wakeups", counters->wakeups);
	gp_text_u64(text, "decisions", counters->decisions);
	gp_text_close(text, '}');
	gp_text_close(text, '}');
}

enum { STATUS_BEGIN, STATUS_DEVICES, STATUS_CLIENTS, STATUS_END };

static bool status_is_enough(const struct gp_daemon *daemon, const struct gp_job *job)
{
	return job->text.size >= STATUS_PART_SIZE || gp_portion_is_over(daemon);
}

/* Writes the queues of the client that was begun. If the client has gone meanwhile, it has no more. */
static void status_go_on_client(struct gp_daemon *daemon, struct gp_job *job)
{
	const struct gp_client *client = gp_client_find(daemon, job->tag);

	for (; client && job->slot < client->slot_count; job->slot++) {
		if (!client->slots[job->slot].queue)
			continue;
		if (status_is_enough(daemon, job))
			return;
		gp_portion_use(daemon, 1);
		status_queue(daemon, client->slots[job->slot].queue, &job->text);
	}
	status_client_end(&job->text);
	job->tag = 0;
}

static void status_next_client(struct gp_daemon *daemon, const struct gp_peer *peer, struct gp_job *job)
{
	const struct gp_client *client = daemon->clients[job->index++];

	if (!client || client->is_unmanaged)
		return;
	gp_portion_use(daemon, 1);
	if (!gp_access_sees_all(daemon, peer) && !gp_access_is_same(peer, client)) {
		status_hidden(daemon, client, &job->text);
		return;
	}
	status_client_begin(daemon, client, job->now_ns, &job->text);
	job->tag = client->device.tag;
	job->slot = 0;
}

static void status_begin(struct gp_daemon *daemon, const struct gp_peer *peer, struct gp_job *job)
{
	job->now_ns = gp_now_ns(); /* one moment for all: a reader can tell from two durations when a client came */
	gp_sched_set_time(daemon->sched, gp_daemon_now_ns(daemon)); /* programs that just run cause no event */
	gp_text_open(&job->text, NULL, '{');
	gp_text_u64(&job->text, "schema", 1);
	status_daemon(daemon, peer, job->now_ns, &job->text);
	gp_text_open(&job->text, "devices", '[');
	job->stage = STATUS_DEVICES;
	job->index = 0;
}

static void status_next_device(struct gp_daemon *daemon, struct gp_job *job)
{
	if (job->index < daemon->device_count) {
		gp_portion_use(daemon, STATUS_DEVICE_WORK);
		status_device(daemon, &daemon->devices[job->index++], &job->text);
		return;
	}
	gp_text_close(&job->text, ']');
	gp_text_open(&job->text, "clients", '[');
	job->stage = STATUS_CLIENTS;
	job->index = 0;
}

static void status_end(struct gp_daemon *daemon, const struct gp_peer *peer, struct gp_job *job)
{
	gp_text_close(&job->text, ']');
	gp_unmanaged_write(daemon, gp_access_sees_all(daemon, peer) ? NULL : peer, &job->text);
	gp_text_close(&job->text, '}');
	gp_text_add(&job->text, "\n");
	job->stage = STATUS_END;
}

bool gp_status_part(struct gp_daemon *daemon, const struct gp_peer *peer, struct gp_job *job)
{
	do {
		if (job->stage == STATUS_BEGIN)
			status_begin(daemon, peer, job);
		else if (job->stage == STATUS_DEVICES)
			status_next_device(daemon, job);
		else if (job->tag)
			status_go_on_client(daemon, job);
		else if (job->index < daemon->client_top)
			status_next_client(daemon, peer, job);
		else
			status_end(daemon, peer, job);
	} while (job->stage != STATUS_END && !status_is_enough(daemon, job));
	return job->stage == STATUS_END;
}
