/* SPDX-License-Identifier: MIT */
/* Prometheus text: docs/metrics.md lists the names. Label names are those of AMD's exporter (and pci_bus_id, as
 * NVIDIA's has it), so that panels can join. Times are seconds: a Prometheus knows no other unit of time. */
#include <errno.h>
#include <gpreempt/counters.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "daemon/daemon.h"
#include "daemon/unmanaged.h"
#include "lib/file.h"

#define METRICS_FILE_NS      10000000000ull /* written at most so often */
#define METRICS_HEARTBEAT_NS 15000000000ull /* and at least so often: a reader can tell that an old file is old */
#define METRICS_NS_PER_S     UINT64_C(1000000000)

static void metrics_head(struct gp_text *text, const char *name, const char *type, const char *help)
{
	gp_text_add(text, "# HELP gpreempt_%s %s\n# TYPE gpreempt_%s %s\n", name, help, name, type);
}

/* A label's value: quotes, backslashes and line ends would break the line. */
static const char *metrics_label(const char *value, char *buffer, size_t size)
{
	size_t i;

	for (i = 0; value[i] && i + 1 < size; i++)
		buffer[i] = value[i] == '"' || value[i] == '\\' || (unsigned char)value[i] < 0x20 ? '_' : value[i];
	buffer[i] = '\0';
	return buffer;
}

static void metrics_labels(struct gp_text *text, const char *name, const struct gp_device_entry *device, uint32_t index,
			   const char *more)
{
	char model[GP_DEVICE_NAME_SIZE], host[65] = "", label[65];

	(void)gethostname(host, sizeof(host) - 1);
	gp_text_add(text, "gpreempt_%s{gpu_id=\"%u\",hostname=\"%s\",pci_bus_id=\"%s\",card_series=\"%s\"%s} ", name,
		    index, metrics_label(host, label, sizeof(label)), device->info.bdf,
		    metrics_label(device->info.name, model, sizeof(model)), more);
}

static void metrics_value(struct gp_text *text, const char *name, const struct gp_device_entry *device, uint32_t index,
			  const char *more, uint64_t value)
{
	metrics_labels(text, name, device, index, more);
	gp_text_add(text, "%" PRIu64 "\n", value);
}

static void metrics_seconds(struct gp_text *text, const char *name, const struct gp_device_entry *device,
			    uint32_t index, const char *more, uint64_t ns)
{
	metrics_labels(text, name, device, index, more);
	gp_text_add(text, "%" PRIu64 ".%09" PRIu64 "\n", ns / METRICS_NS_PER_S, ns % METRICS_NS_PER_S);
}

static const struct {
	const char *name, *help; /* NULL: no metric */
	size_t offset;
	bool is_time;
} metrics_stats[] = {
#define METRICS_COUNTER(field, metric, help, is_time) { metric, help, offsetof(struct gp_stats, field), is_time },
	GP_COUNTER_TABLE(METRICS_COUNTER)
#undef METRICS_COUNTER
};
/* Not in the table: the reasons for leaving gates open, which are in `status` alone, and the core's two counts of
 * slices. Those are of the slices that the present core ordered. The metric counts all that were set: also the own
 * slices of queues that left the core, and those of the cores before a change of the policy. */
_Static_assert(sizeof(struct gp_stats) ==
		       (sizeof(metrics_stats) / sizeof(metrics_stats[0]) + GP_WHY_COUNT + 2) * sizeof(uint64_t),
	       "a counter of the core is missing in the table");

static void metrics_core(struct gp_daemon *daemon, struct gp_text *text)
{
	struct gp_stats stats;

	for (size_t i = 0; i < sizeof(metrics_stats) / sizeof(metrics_stats[0]); i++) {
		if (!metrics_stats[i].name)
			continue;
		metrics_head(text, metrics_stats[i].name, "counter", metrics_stats[i].help);
		for (uint32_t k = 0; k < daemon->device_count; k++) {
			if (gp_sched_stats(daemon->sched, daemon->devices[k].core, &stats))
				continue;
			(metrics_stats[i].is_time ? metrics_seconds : metrics_value)(
				text, metrics_stats[i].name, &daemon->devices[k], k, "",
				*(const uint64_t *)((const char *)&stats + metrics_stats[i].offset));
		}
	}
}

static void metrics_costs(struct gp_daemon *daemon, struct gp_text *text)
{
	static const struct {
		const char *name;
		uint32_t permille;
	} quantiles[] = { { "0.5", 500 }, { "0.9", 900 }, { "0.99", 990 } };
	char labels[64];

	metrics_head(text, "gate_seconds", "summary", "What one gate transaction takes, device time.");
	for (uint32_t i = 0; i < daemon->device_count; i++) {
		for (int open = 0; open < 2; open++) {
			const struct gp_device_entry *device = &daemon->devices[i];
			const struct gp_hist *hist = open ? &device->open_hist : &device->close_hist;

			for (size_t k = 0; hist->count && k < sizeof(quantiles) / sizeof(quantiles[0]); k++) {
				snprintf(labels, sizeof(labels), ",change=\"%s\",quantile=\"%s\"",
					 open ? "open" : "close", quantiles[k].name);
				metrics_seconds(text, "gate_seconds", device, i, labels,
						gp_hist_quantile(hist, quantiles[k].permille));
			}
			snprintf(labels, sizeof(labels), ",change=\"%s\"", open ? "open" : "close");
			metrics_seconds(text, "gate_seconds_sum", device, i, labels, hist->sum);
			metrics_value(text, "gate_seconds_count", device, i, labels, hist->count);
		}
	}
}

static uint64_t metrics_short(const struct gp_daemon *daemon, const struct gp_device_entry *device)
{
	struct gp_queue_info info;
	uint64_t count = 0;

	for (const struct gp_queue_entry *q = device->queues; q; q = q->device_next)
		count += q->in_core && !gp_sched_queue_info(daemon->sched, q->core, &info) && info.is_slice_known &&
			 info.is_short;
	return count;
}

/* Slices, for devices that have them. */
static void metrics_slices(const struct gp_daemon *daemon, struct gp_text *text)
{
	static const struct {
		const char *name, *type, *help;
	} heads[] = { { "slices_total", "counter", "Slices set." },
		      { "slice_failures_total", "counter", "Slices that could not be set." },
		      { "slices_short", "gauge", "Queues with the short slice." },
		      { "switches_per_second", "gauge", "How often the GPU puts a queue aside by itself." },
		      { "slowed", "gauge", "1: so often that slices are longer for now." } };

	for (size_t k = 0; k < sizeof(heads) / sizeof(heads[0]); k++) {
		metrics_head(text, heads[k].name, heads[k].type, heads[k].help);
		for (uint32_t i = 0; i < daemon->device_count; i++) {
			const struct gp_device_entry *device = &daemon->devices[i];
			struct gp_switch_info switches = { 0 };
			bool is_known = !gp_sched_switch_info(daemon->sched, device->core, &switches);
			const uint64_t values[] = { device->slices, device->slice_failures,
						    metrics_short(daemon, device), switches.per_s_x1000 / 1000,
						    switches.is_slowed };

			if (device->info.short_us && is_known)
				metrics_value(text, heads[k].name, device, i, "", values[k]);
		}
	}
}

static void metrics_queues(struct gp_daemon *daemon, struct gp_text *text)
{
	uint32_t open = 0, closed = 0, work = 0, slots, processes;

	metrics_head(text, "queues", "gauge", "Queues by state.");
	for (uint32_t i = 0; i < daemon->device_count; i++, open = closed = work = 0) {
		for (const struct gp_queue_entry *q = daemon->devices[i].queues; q; q = q->device_next) {
			open += !q->closed;
			closed += q->closed;
			work += q->pending;
		}
		metrics_value(text, "queues", &daemon->devices[i], i, ",state=\"open\"", open);
		metrics_value(text, "queues", &daemon->devices[i], i, ",state=\"closed\"", closed);
		metrics_value(text, "queues", &daemon->devices[i], i, ",state=\"with_work\"", work);
	}
	metrics_head(text, "slots_used", "gauge", "Compute queues that are open.");
	for (uint32_t i = 0; i < daemon->device_count; i++) {
		gp_device_use(&daemon->devices[i], &slots, &processes);
		metrics_value(text, "slots_used", &daemon->devices[i], i, "", slots);
	}
	metrics_head(text, "slots", "gauge", "Hardware slots for compute queues.");
	for (uint32_t i = 0; i < daemon->device_count; i++)
		metrics_value(text, "slots", &daemon->devices[i], i, "", daemon->devices[i].info.slot_count);
	metrics_head(text, "processes", "gauge", "Processes with queues.");
	for (uint32_t i = 0; i < daemon->device_count; i++) {
		gp_device_use(&daemon->devices[i], &slots, &processes);
		metrics_value(text, "processes", &daemon->devices[i], i, "", processes);
	}
	metrics_slices(daemon, text);
	metrics_head(text, "stopped", "gauge", "1: the daemon does not schedule this GPU.");
	for (uint32_t i = 0; i < daemon->device_count; i++)
		metrics_value(text, "stopped", &daemon->devices[i], i, "", daemon->devices[i].stopped);
}

/* Labels that would be too many for every line; a query joins them by gpu_id. */
static void metrics_gpus(const struct gp_daemon *daemon, struct gp_text *text)
{
	char driver[GP_DEVICE_NAME_SIZE], more[160 + GP_DEVICE_NAME_SIZE];

	metrics_head(text, "gpu_info", "gauge", "A GPU, the mechanism that was reached and its driver.");
	for (uint32_t i = 0; i < daemon->device_count; i++) {
		const struct gp_device_info *info = &daemon->devices[i].info;

		snprintf(more, sizeof(more), ",kfd_gpu_id=\"%u\",mechanism=\"%s\",driver=\"%s\"", info->gpu_id,
			 gp_mechanism_name(info->mechanism), metrics_label(info->driver, driver, sizeof(driver)));
		metrics_value(text, "gpu_info", &daemon->devices[i], i, more, 1);
	}
}

void gp_metrics_write(struct gp_daemon *daemon, struct gp_text *text)
{
	const struct gp_counters *c = &daemon->counters;
	struct timespec now;
	const struct {
		const char *name, *type, *help;
		uint64_t value;
	} own[] = {
		{ "clients", "gauge", "Processes with an agent.", daemon->client_count },
		{ "clients_seen_total", "counter",
		  "Processes with an agent that have connected since the daemon started.", c->clients_seen },
		{ "orders_total", "counter", "Gate changes ordered.", c->orders },
		{ "leases_lost_total", "counter", "Gates that agents opened because the lease ran out.",
		  c->leases_lost },
		{ "messages_refused_total", "counter", "Malformed messages; each ended a connection.",
		  c->messages_refused },
		{ "connections_refused_total", "counter", "Connections turned away.", c->peers_refused },
		{ "wakeups_total", "counter", "Times the daemon woke.", c->wakeups },
		{ "decisions_total", "counter", "Times it asked the scheduler.", c->decisions },
		{ "events_lost_total", "counter", "Events that slow readers missed.", c->events_lost },
		{ "log_lines_left_out_total", "counter", "Lines that users caused beyond their rate.",
		  c->lines_left_out },
		{ "config_refused", "gauge", "1: the daemon refused the configuration at its last reload.",
		  *daemon->loop.refused.text != '\0' },
	};

	metrics_head(text, "build_info", "gauge", "The daemon's version.");
	gp_text_add(text, "gpreempt_build_info{version=\"%s\",policy=\"%s\"} 1\n", GP_VERSION, daemon->config.policy);
	metrics_head(text, "heartbeat_timestamp_seconds", "gauge", "When these numbers were read, Unix time.");
	clock_gettime(CLOCK_REALTIME, &now);
	gp_text_add(text, "gpreempt_heartbeat_timestamp_seconds %lld.%03ld\n", (long long)now.tv_sec,
		    now.tv_nsec / 1000000);
	metrics_gpus(daemon, text);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		metrics_head(text, own[i].name, own[i].type, own[i].help);
		gp_text_add(text, "gpreempt_%s %" PRIu64 "\n", own[i].name, own[i].value);
	}
	metrics_core(daemon, text);
	metrics_costs(daemon, text);
	metrics_queues(daemon, text);
}

void gp_metrics_remove(struct gp_daemon *daemon)
{
	if (*daemon->metrics.path)
		unlink(daemon->metrics.path);
	*daemon->metrics.path = '\0';
}

void gp_metrics_changed(struct gp_daemon *daemon)
{
	if (daemon->metrics.timer.at_ns)
		gp_timer_sooner(daemon, &daemon->metrics.timer, daemon->metrics.written_ns + METRICS_FILE_NS);
}

/* For node_exporter's textfile collector. */
void gp_metrics_file(struct gp_daemon *daemon, uint64_t now_ns)
{
	struct gp_text text = { 0 };
	struct gp_file_writer writer;
	struct gp_error error;
	int r = -ENOMEM;

	if (strcmp(daemon->metrics.path, daemon->config.metrics_file) != 0 && *daemon->metrics.path) {
		gp_metrics_remove(daemon); /* the configuration names another, or none */
		daemon->metrics.written_ns = 0;
	}
	if (!*daemon->config.metrics_file) {
		gp_timer_set(daemon, &daemon->metrics.timer, 0);
		return;
	}
	if (daemon->metrics.written_ns && now_ns < daemon->metrics.timer.at_ns)
		return;
	gp_timer_set(daemon, &daemon->metrics.timer, now_ns + METRICS_HEARTBEAT_NS);
	daemon->metrics.written_ns = now_ns;
	gp_unmanaged_refresh(daemon); /* unmanaged processes count against slots; the next file has what this finds */
	gp_metrics_write(daemon, &text);
	if (text.failed)
		gp_error_set(&error, -ENOMEM, "out of memory");
	else
		r = gp_file_open(&writer, daemon->config.metrics_file, &error);
	if (!r) {
		writer.hurried = true; /* no fsync: orders do not wait for a disk */
		fwrite(text.bytes, 1, text.size, writer.stream);
		r = gp_file_commit(&writer, &error);
	}
	if (!r)
		snprintf(daemon->metrics.path, sizeof(daemon->metrics.path), "%s", daemon->config.metrics_file);
	/* Only the first of several failures is logged: the journal must not fill a disk that is full already. */
	if (r && !daemon->metrics.failed)
		gp_log("metrics are not written: %s", error.text);
	else if (!r && daemon->metrics.failed)
		gp_log("metrics are written again");
	daemon->metrics.failed = r;
	gp_text_fini(&text);
}
