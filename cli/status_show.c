/* SPDX-License-Identifier: MIT */
/* Owns how the state reads: what was reached and why, before numbers. */
#include <gpreempt/mechanism.h>
#include <inttypes.h>
#include <string.h>
#include "cli/attr.h"
#include "cli/status_show.h"
#include "lib/json_writer.h"
#include "lib/units.h"
#include "view/format.h"

static const char *status_count(uint64_t value, char *buffer, size_t size)
{
	return value == GP_STATE_UNKNOWN ? "?" : gp_format_count(value, buffer, size);
}

static const char *status_ns(uint64_t ns, char *buffer, size_t size)
{
	return ns == GP_STATE_UNKNOWN ? "?" : gp_units_format_ns(ns, buffer, size);
}

static bool status_is(uint64_t flag)
{
	return flag != GP_STATE_UNKNOWN && flag;
}

/* What a mechanism means, for somebody who has not read the design. */
static const char *status_mechanism_text(const char *mechanism)
{
	const struct gp_mechanism_info *info = gp_mechanism_info(gp_state_mechanism(mechanism));

	return info ? info->sentence : "";
}

static void status_cost(FILE *stream, const char *what, const struct gp_state_cost *cost, const char *source)
{
	char a[GP_UNITS_TEXT_SIZE], b[GP_UNITS_TEXT_SIZE], c[GP_FORMAT_TEXT_SIZE];

	if (cost->count != GP_STATE_UNKNOWN && cost->count)
		fprintf(stream, "%s p50 %s, p99 %s (%s orders)", what, status_ns(cost->p50, a, sizeof(a)),
			status_ns(cost->p99, b, sizeof(b)), status_count(cost->count, c, sizeof(c)));
	else
		fprintf(stream, "%s %s (%s)", what, status_ns(cost->prior, a, sizeof(a)),
			source[0] ? source : "assumed, none measured yet");
}

static void status_work(FILE *stream, const struct gp_state_stats *stats)
{
	char a[GP_FORMAT_TEXT_SIZE], b[GP_FORMAT_TEXT_SIZE], c[GP_UNITS_TEXT_SIZE], d[GP_UNITS_TEXT_SIZE];

	fprintf(stream, "  decisions   %s %s", status_count(stats->preemptions, a, sizeof(a)),
		gp_units_word(stats->preemptions, "preemption", "preemptions"));
	fprintf(stream, ", %s %s (%s in all, longest %s)", status_count(stats->inversions, a, sizeof(a)),
		gp_units_word(stats->inversions, "inversion", "inversions"),
		status_ns(stats->inversion_ns, c, sizeof(c)), status_ns(stats->inversion_ns_max, d, sizeof(d)));
	fprintf(stream, ", %s %s, %s %s\n", status_count(stats->turns, a, sizeof(a)),
		gp_units_word(stats->turns, "turn", "turns"), status_count(stats->hints, b, sizeof(b)),
		gp_units_word(stats->hints, "hint", "hints"));
	if (status_is(stats->quarantines) || status_is(stats->timeouts) || status_is(stats->order_failures))
		fprintf(stream, "  trouble     %s orders failed, %s not answered in time, %s queues quarantined\n",
			status_count(stats->order_failures, a, sizeof(a)), status_count(stats->timeouts, b, sizeof(b)),
			status_count(stats->quarantines, d, sizeof(d)));
}

static void status_device_head(FILE *stream, const struct gp_state_device *device)
{
	char a[GP_FORMAT_TEXT_SIZE], b[GP_UNITS_TEXT_SIZE];

	fprintf(stream, "\nGPU %" PRIu64 "  %s", device->gpu_id, device->name[0] ? device->name : "(no name)");
	if (device->bdf[0])
		fprintf(stream, "  %s", device->bdf);
	if (device->cu_count != GP_STATE_UNKNOWN && device->cu_count)
		fprintf(stream, "  %s CUs", status_count(device->cu_count, a, sizeof(a)));
	if (device->memory_bytes != GP_STATE_UNKNOWN && device->memory_bytes)
		fprintf(stream, "  %s", gp_units_format_size(device->memory_bytes, b, sizeof(b)));
	if (device->driver[0])
		fprintf(stream, "  (%s)", device->driver);
	fputc('\n', stream);
	if (status_is(device->stopped))
		fprintf(stream, "  STOPPED     every gate is open; the daemon does not schedule this GPU: %s\n",
			device->stopped_why[0] ? device->stopped_why : "no reason given");
}

static void status_switching(FILE *stream, const struct gp_state_device *device)
{
	char a[GP_UNITS_TEXT_SIZE];

	fprintf(stream, "  switching   by itself, in about %s", status_ns(device->switch_ns, a, sizeof(a)));
	if (status_is(device->short_slice_us))
		fprintf(stream, "; programs below the top priority have slices of %" PRIu64 " µs",
			device->short_slice_us);
	if (status_is(device->slowed))
		fprintf(stream,
			"; longer ones for now, because urgent work comes in pieces (%" PRIu64 " switches a second)",
			device->switches_per_s);
	fputc('\n', stream);
}

static void status_device(FILE *stream, const struct gp_state_device *device)
{
	char a[GP_FORMAT_TEXT_SIZE], b[GP_FORMAT_TEXT_SIZE];
	const char *means = status_mechanism_text(device->mechanism);

	status_device_head(stream, device);
	fprintf(stream, "  mechanism   %s%s%s\n", device->mechanism[0] ? device->mechanism : "?", *means ? ": " : "",
		means);
	if (device->unit[0])
		fprintf(stream, "  transaction one %s at a time%s%s\n", device->unit,
			status_is(device->stops_all) ? "; the whole device stands still meanwhile" : "",
			device->kernel_reopens == GP_STATE_UNKNOWN ? "" :
			device->kernel_reopens                     ? "; the kernel opens the gates if the daemon dies" :
								     "; the agents open the gates if the daemon dies");
	fputs("  cost        ", stream);
	status_cost(stream, "close", &device->close_ns, device->cost_source);
	status_cost(stream, "; open", &device->open_ns, device->cost_source);
	if (status_is(device->slice_ns.count))
		status_cost(stream, "; slice", &device->slice_ns, "");
	fputc('\n', stream);
	if (status_is(device->self_switching))
		status_switching(stream, device);
	if (device->slot_count || device->process_count_max) {
		fprintf(stream, "  slots       %s of %s in use", status_count(device->slots_used, a, sizeof(a)),
			status_count(device->slot_count, b, sizeof(b)));
		fprintf(stream, ", processes %s of %s%s\n", status_count(device->processes, a, sizeof(a)),
			status_count(device->process_count_max, b, sizeof(b)),
			status_is(device->oversubscribed) ? " - OVERSUBSCRIBED (see gpreempt doctor)" : "");
	}
	status_work(stream, &device->stats);
	for (uint32_t i = 0; i < device->finding_count; i++) {
		const struct gp_state_finding *finding = &device->findings[i];
		bool is_note = gp_state_mechanism(finding->mechanism) == GP_MECHANISM_NONE;

		fprintf(stream, "  %s %-9s %s\n",
			is_note                    ? "note " :
			status_is(finding->usable) ? "can  " :
						     "can't",
			is_note ? "" : finding->mechanism, finding->text);
	}
}

void gp_status_sum(const struct gp_state *state, const struct gp_state_client *client,
		   struct gp_status_total *ret_total)
{
	struct gp_status_total total = { 0 };

	for (uint32_t i = 0; i < client->queue_count; i++) {
		const struct gp_state_queue *queue = &state->queues[client->queue_first + i];

		total.queues++;
		total.open += !strcmp(queue->gate, "open") || !strcmp(queue->gate, "quarantined");
		total.pending += queue->pending == GP_STATE_UNKNOWN ? 0 : queue->pending;
		total.run_ns += queue->run_ns == GP_STATE_UNKNOWN ? 0 : queue->run_ns;
		total.wait_ns += queue->wait_ns == GP_STATE_UNKNOWN ? 0 : queue->wait_ns;
		total.preemptions += queue->preemptions == GP_STATE_UNKNOWN ? 0 : queue->preemptions;
		total.inversions += queue->inversions == GP_STATE_UNKNOWN ? 0 : queue->inversions;
	}
	/* Queues that run beside each other count once, where the daemon says so. */
	if (client->compute_ns != GP_STATE_UNKNOWN && client->wait_ns != GP_STATE_UNKNOWN) {
		total.run_ns = client->compute_ns;
		total.wait_ns = client->wait_ns;
	}
	*ret_total = total;
}

/* By which means its gates are changed, or why they are not. */
static const char *status_how(const struct gp_state_client *client, char *text, size_t size)
{
	if (status_is(client->hidden))
		return "-";
	if (!client->managed)
		return status_is(client->paused) ? "unmanaged, paused" : "unmanaged";
	if (client->answers == 0)
		return "does not answer";
	if (client->counters[0] && strcmp(client->counters, "agent")) {
		(void)snprintf(text, size, "%s, silent", client->mechanism);
		return text;
	}
	return client->mechanism[0] ? client->mechanism : "-";
}

static void status_client_row(struct gp_columns *columns, const struct gp_state *state,
			      const struct gp_state_client *client)
{
	struct gp_status_total total;
	char text[64];

	gp_status_sum(state, client, &total);
	if (client->pid == GP_STATE_UNKNOWN)
		(void)snprintf(text, sizeof(text), "-");
	else
		(void)snprintf(text, sizeof(text), "%" PRIu64, client->pid);
	gp_columns_add(columns, text);
	gp_columns_add(columns, client->user[0] ? client->user : "-");
	gp_columns_add(columns, status_is(client->hidden) ? "(another user's)" : client->name[0] ? client->name : "-");
	gp_columns_number(columns, client->managed ? client->priority : GP_STATE_UNKNOWN);
	gp_columns_add(columns, status_how(client, text, sizeof(text)));
	if (client->queue_count) {
		(void)snprintf(text, sizeof(text), "%u/%u", total.open, total.queues);
		gp_columns_add(columns, text);
	} else {
		gp_columns_number(columns, client->unlisted_queue_count);
	}
	gp_columns_number(columns, client->queue_count ? total.pending : GP_STATE_UNKNOWN);
	gp_columns_ns(columns, client->queue_count ? total.run_ns : GP_STATE_UNKNOWN);
	gp_columns_ns(columns, client->queue_count ? total.wait_ns : GP_STATE_UNKNOWN);
	gp_columns_number(columns, client->queue_count ? total.preemptions : GP_STATE_UNKNOWN);
}

static void status_queue_notes(const struct gp_state_queue *queue, char *text, size_t size)
{
	const struct gp_state_slice *slice = &queue->slice;
	const char *work = !strcmp(queue->counts, "fetch") ? "work known at fetch only" : "";
	const char *why = !strcmp(queue->quarantine, "stuck") ? "could not be closed" :
			  !strcmp(queue->quarantine, "gang")  ? "another of its gang could not be closed" :
								"";
	bool has_slice = slice->now_us != GP_STATE_UNKNOWN;
	char was[48] = "", now[48] = "";

	if (has_slice)
		(void)snprintf(now, sizeof(now), "slice %" PRIu64 " µs", slice->now_us);
	if (has_slice && slice->app_us != GP_STATE_UNKNOWN && slice->app_us != slice->now_us)
		(void)snprintf(was, sizeof(was), ", was %" PRIu64 " µs", slice->app_us);
	(void)snprintf(text, size, "%s%s%s%s%s%s", has_slice || queue->seen ? now : "unseen", was,
		       *work && (*now || !queue->seen) ? ", " : "", work,
		       *why && (*now || *work || !queue->seen) ? ", " : "", why);
}

static void status_queue_row(struct gp_columns *columns, const struct gp_state_client *client,
			     const struct gp_state_queue *queue)
{
	char text[160];

	(void)snprintf(text, sizeof(text), "%" PRIu64, client->pid);
	gp_columns_add(columns, client->pid == GP_STATE_UNKNOWN ? "-" : text);
	(void)snprintf(text, sizeof(text), "%" PRIu64, queue->gpu_id);
	gp_columns_add(columns, queue->gpu_id == GP_STATE_UNKNOWN ? "-" : text);
	(void)snprintf(text, sizeof(text), "%" PRIu64, queue->queue_id);
	gp_columns_add(columns, queue->queue_id == GP_STATE_UNKNOWN ? "-" : text);
	gp_columns_add(columns, queue->kind[0] ? queue->kind : "-");
	gp_columns_number(columns, queue->priority);
	gp_columns_add(columns, queue->gate[0] ? queue->gate : "-");
	gp_columns_add(columns, queue->has_work == GP_STATE_UNKNOWN ? "-" :
				!queue->has_work                    ? "idle" :
				status_is(queue->blocked)           ? "blocked" :
								      "work");
	gp_columns_number(columns, queue->pending);
	gp_columns_ns(columns, queue->run_ns);
	gp_columns_ns(columns, queue->wait_ns);
	gp_columns_number(columns, queue->preemptions);
	status_queue_notes(queue, text, sizeof(text));
	gp_columns_add(columns, text);
}

static void status_queues(FILE *stream, const struct gp_state *state, const struct gp_state_client *clients,
			  uint32_t count)
{
	static const char *const heads[] = { "pid",  "gpu",     "queue", "<kind",  "prio",      "<gate",
					     "<now", "pending", "ran",   "waited", "preempted", "<" };
	struct gp_columns columns;

	gp_columns_init(&columns, heads, sizeof(heads) / sizeof(heads[0]));
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < clients[i].queue_count; j++)
			status_queue_row(&columns, &clients[i], &state->queues[clients[i].queue_first + j]);
	if (columns.row_count) {
		fputc('\n', stream);
		gp_columns_print(&columns, stream, "");
	}
	gp_columns_fini(&columns);
}

/* A program that has just started: its agent connects after the first queue. */
static bool status_is_awaited(const struct gp_state_client *client)
{
	return client->agent_awaited != GP_STATE_UNKNOWN && client->agent_awaited;
}

/* A rank of a job that the daemon cannot put aside with the others. */
static void status_rank(FILE *stream, const struct gp_state_client *client)
{
	if (client->rank_of[0])
		fprintf(stream, "  pid %" PRIu64 " (%s) belongs to %s, but %s\n",
			client->pid == GP_STATE_UNKNOWN ? 0 : client->pid, client->name[0] ? client->name : "?",
			client->rank_of,
			status_is_awaited(client) ?
				"its agent has not connected yet: it may do so within two seconds of its start." :
				"has no agent: the daemon cannot close its queues when it closes those of the job, and its "
				"kernels may spin. Start it with gpreempt run.");
}

void gp_status_show(FILE *stream, const struct gp_state *state, bool with_queues)
{
	static const char *const heads[] = { "pid",        "<user",       "<name",   "prio (99 = most urgent)",
					     "<mechanism", "open/queues", "pending", "ran",
					     "waited",     "preempted" };
	const struct gp_state_daemon *daemon = &state->daemon;
	struct gp_columns columns;
	char a[GP_UNITS_TEXT_SIZE];

	fprintf(stream, "gpreemptd %s, pid %" PRIu64 ", policy %s, up %s", daemon->version[0] ? daemon->version : "?",
		daemon->pid == GP_STATE_UNKNOWN ? 0 : daemon->pid, daemon->policy[0] ? daemon->policy : "?",
		status_ns(daemon->uptime_real_ns, a, sizeof(a)));
	if (daemon->lease_ms != GP_STATE_UNKNOWN)
		fprintf(stream, ", lease %" PRIu64 " ms", daemon->lease_ms);
	if (daemon->dilation != GP_STATE_UNKNOWN && daemon->dilation > 1)
		fprintf(stream, ", the device is %" PRIu64 " times slower than the host (virtual)", daemon->dilation);
	fputc('\n', stream);
	if (*daemon->config_refused)
		fprintf(stream,
			"\nThe daemon refused the configuration at its last reload and keeps the settings from before: %s\n",
			daemon->config_refused);
	if (!state->device_count)
		fputs("\nNo device.\n", stream);
	for (uint32_t i = 0; i < state->device_count; i++)
		status_device(stream, &state->devices[i]);
	if (!state->client_count) {
		fputs("\nNo program uses a device.\n", stream);
		return;
	}
	gp_columns_init(&columns, heads, sizeof(heads) / sizeof(heads[0]));
	for (uint32_t i = 0; i < state->client_count; i++)
		status_client_row(&columns, state, &state->clients[i]);
	fputc('\n', stream);
	gp_columns_print(&columns, stream, "");
	gp_columns_fini(&columns);
	if (with_queues)
		status_queues(stream, state, state->clients, state->client_count);
	for (uint32_t i = 0; i < state->client_count; i++)
		status_rank(stream, &state->clients[i]);
	if (state->left_out)
		fprintf(stream, "\n%u more are not shown.\n", state->left_out);
}

void gp_status_show_client(FILE *stream, const struct gp_state *state, const struct gp_state_client *client)
{
	char text[24], a[GP_UNITS_TEXT_SIZE];

	fprintf(stream, "pid %" PRIu64 " %s%s%s\n", client->pid == GP_STATE_UNKNOWN ? 0 : client->pid,
		client->name[0] ? client->name : "?", client->user[0] ? ", user " : "", client->user);
	if (!client->managed) {
		fputs(status_is_awaited(client) ?
			      "  unmanaged: it has just started, and no agent in it has connected yet\n" :
			      "  unmanaged: no agent is in it (it was not started by gpreempt run)\n",
		      stream);
		status_rank(stream, client);
		return;
	}
	fprintf(stream, "  priority   %s   (99 = most urgent)\n",
		client->priority == GP_STATE_UNKNOWN ?
			"?" :
			gp_attr_priority_text((int32_t)client->priority, text, sizeof(text)));
	if (client->ceiling != GP_STATE_UNKNOWN)
		fprintf(stream, "  ceiling    %" PRIu64 "\n", client->ceiling);
	if (client->weight != GP_STATE_UNKNOWN)
		fprintf(stream, "  weight     %" PRIu64 "\n", client->weight);
	if (status_is(client->share_permille))
		fprintf(stream, "  share      %" PRIu64 ".%" PRIu64 "%% guaranteed\n", client->share_permille / 10,
			client->share_permille % 10);
	if (*client->protect && strcmp(client->protect, "default"))
		fprintf(stream, "  protect    %s\n", client->protect);
	if (status_is(client->deadline_ns))
		fprintf(stream, "  deadline   %s\n", status_ns(client->deadline_ns, a, sizeof(a)));
	if (status_is(client->budget_ns))
		fprintf(stream, "  budget     %s\n", status_ns(client->budget_ns, a, sizeof(a)));
	if (client->gang[0])
		fprintf(stream, "  gang       %s\n", client->gang);
	if (client->tag[0])
		fprintf(stream, "  tag        %s\n", client->tag);
	if (client->runtime[0])
		fprintf(stream, "  runtime    %s\n", client->runtime);
	if (client->mechanism[0])
		fprintf(stream, "  mechanism  %s%s%s\n", client->mechanism, client->mechanism_why[0] ? ": " : "",
			client->mechanism_why);
	status_queues(stream, state, client, 1);
}

/* Queues of one process on one GPU in a line. */
static void status_show_mqds(FILE *stream, const struct gp_hqd *hqd)
{
	for (uint32_t i = 0; i < hqd->queue_count;) {
		const struct gp_hqd_queue *first = &hqd->queues[i];
		uint32_t compute = 0, active = 0, other = 0;
		bool is_known = true;

		for (;
		     i < hqd->queue_count && hqd->queues[i].pid == first->pid && hqd->queues[i].gpu_id == first->gpu_id;
		     i++) {
			compute += hqd->queues[i].is_compute;
			other += !hqd->queues[i].is_compute;
			active += hqd->queues[i].is_known && hqd->queues[i].is_active;
			is_known &= hqd->queues[i].is_known || !hqd->queues[i].is_compute;
		}
		fprintf(stream, "process %u on GPU %u: %u compute queues", first->pid, first->gpu_id, compute);
		if (is_known && compute)
			fprintf(stream, " (%u active)", active);
		fprintf(stream, ", %u others", other);
		if (first->is_known)
			fprintf(stream, "; pipe priority %u, queue priority %u", first->pipe_priority,
				first->queue_priority);
		fputc('\n', stream);
	}
	if (hqd->queue_count)
		fputs("On a GPU with several XCCs each queue is listed once for each of them.\n", stream);
}

void gp_status_show_hqd(FILE *stream, const struct gp_hqd *hqd)
{
	status_show_mqds(stream, hqd);
	for (uint32_t i = 0; i < hqd->list_count; i++)
		fprintf(stream, "GPU %u: the run list has %u processes and %u queues\n", hqd->lists[i].gpu_id,
			hqd->lists[i].process_count, hqd->lists[i].queue_count);
	if (!hqd->slot_count)
		return;
	for (uint32_t i = 0; i < hqd->slot_count; i++) {
		const struct gp_hqd_slot *slot = &hqd->slots[i], *before = i ? slot - 1 : NULL;
		bool is_new = !before || before->gpu_id != slot->gpu_id;
		uint32_t active, all;

		if (is_new) {
			gp_hqd_count(hqd, slot->gpu_id, &active, &all);
			fprintf(stream, "%sGPU %u: %u of %u hardware queue slots hold a queue (VMID shown; . is free)",
				i ? "\n\n" : "", slot->gpu_id, active, all);
		}
		if (is_new || before->instance != slot->instance)
			fprintf(stream, "\n  instance %u", slot->instance);
		if (is_new || before->instance != slot->instance || before->pipe != slot->pipe)
			fprintf(stream, "\n    pipe %u  ", slot->pipe);
		if (!slot->is_known)
			fprintf(stream, " %u:?", slot->queue);
		else if (slot->is_active)
			fprintf(stream, " %u:%u", slot->queue, slot->vmid);
		else
			fprintf(stream, " %u:.", slot->queue);
	}
	fputc('\n', stream);
}

static void status_json_mqds(struct gp_json_writer *json, const struct gp_hqd *hqd)
{
	gp_json_writer_begin(json, "queues", '[');
	for (uint32_t i = 0; i < hqd->queue_count; i++) {
		const struct gp_hqd_queue *queue = &hqd->queues[i];
		const struct gp_json_figure figures[] = { { "active", queue->is_active },
							  { "pipe_priority", queue->pipe_priority },
							  { "queue_priority", queue->queue_priority } };

		gp_json_writer_begin(json, NULL, '{');
		gp_json_writer_u64(json, "process", queue->pid);
		gp_json_writer_u64(json, "gpu_id", queue->gpu_id);
		gp_json_writer_string(json, "kind", queue->is_compute ? "compute" : "other");
		gp_json_writer_figures(json, "registers", queue->is_known ? figures : NULL, 3);
		gp_json_writer_end(json, '}');
	}
	gp_json_writer_end(json, ']');
	gp_json_writer_begin(json, "run_lists", '[');
	for (uint32_t i = 0; i < hqd->list_count; i++) {
		gp_json_writer_begin(json, NULL, '{');
		gp_json_writer_u64(json, "gpu_id", hqd->lists[i].gpu_id);
		gp_json_writer_u64(json, "processes", hqd->lists[i].process_count);
		gp_json_writer_u64(json, "queues", hqd->lists[i].queue_count);
		gp_json_writer_end(json, '}');
	}
	gp_json_writer_end(json, ']');
}

void gp_status_json_hqd(FILE *stream, const struct gp_hqd *hqd)
{
	struct gp_json_writer json;

	gp_json_writer_init(&json, stream);
	gp_json_writer_begin(&json, NULL, '{');
	gp_json_writer_u64(&json, "schema", 1);
	gp_json_writer_begin(&json, "slots", '[');
	for (uint32_t i = 0; i < hqd->slot_count; i++) {
		const struct gp_hqd_slot *slot = &hqd->slots[i];

		gp_json_writer_begin(&json, NULL, '{');
		gp_json_writer_u64(&json, "gpu_id", slot->gpu_id);
		gp_json_writer_u64(&json, "instance", slot->instance);
		gp_json_writer_u64(&json, "pipe", slot->pipe);
		gp_json_writer_u64(&json, "queue", slot->queue);
		if (slot->is_known) {
			gp_json_writer_u64(&json, "active", slot->is_active);
			gp_json_writer_u64(&json, "vmid", slot->vmid);
		} else {
			gp_json_writer_null(&json, "active");
			gp_json_writer_null(&json, "vmid");
		}
		gp_json_writer_end(&json, '}');
	}
	gp_json_writer_end(&json, ']');
	status_json_mqds(&json, hqd);
	gp_json_writer_end(&json, '}');
	fputc('\n', stream);
}
