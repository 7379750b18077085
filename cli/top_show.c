/* SPDX-License-Identifier: MIT */
/* Owns the lines of `gpreempt top`: the same for a terminal, a pipe and programs. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "cli/top_sample.h"
#include "lib/json_writer.h"
#include "lib/units.h"
#include "view/format.h"

static const char *show_rate(uint64_t milli, char *buffer, size_t size)
{
	if (milli == GP_TOP_UNKNOWN)
		return "\xe2\x80\x93";
	(void)snprintf(buffer, size, "%" PRIu64 ".%" PRIu64, milli / 1000, milli / 100 % 10);
	return buffer;
}

static const char *show_share(uint64_t permille, char *buffer, size_t size)
{
	if (permille == GP_TOP_UNKNOWN)
		return "\xe2\x80\x93";
	(void)snprintf(buffer, size, "%" PRIu64 ".%" PRIu64, permille / 10, permille % 10);
	return buffer;
}

static const char *show_count(uint64_t value, char *buffer, size_t size)
{
	return value == GP_STATE_UNKNOWN ? "?" : gp_format_count(value, buffer, size);
}

static void show_queue(struct gp_columns *columns, const struct gp_state_queue *queue)
{
	char text[64];

	gp_columns_add(columns, "");
	gp_columns_add(columns, "");
	(void)snprintf(text, sizeof(text), "  gpu %" PRIu64 " queue %" PRIu64, queue->gpu_id, queue->queue_id);
	gp_columns_add(columns, text);
	gp_columns_number(columns, queue->priority);
	gp_columns_add(columns, queue->kind);
	gp_columns_add(columns, queue->gate);
	gp_columns_number(columns, queue->pending);
	gp_columns_add(columns, "");
	gp_columns_add(columns, "");
	gp_columns_add(columns, "");
	gp_columns_add(columns, "");
}

void gp_top_columns(const struct gp_top *top, bool with_queues, struct gp_columns *ret_columns)
{
	static const char *const heads[] = { "PID",     "<USER", "<NAME", "PRIO",      "<MECHANISM", "OPEN",
					     "PENDING", "GPU%",  "WAIT%", "PREEMPT/s", "INV/s" };
	char text[64], name[160];

	gp_columns_init(ret_columns, heads, sizeof(heads) / sizeof(heads[0]));
	for (uint32_t i = 0; i < top->row_count; i++) {
		const struct gp_top_row *row = &top->rows[i];
		const struct gp_state_client *client = row->client;
		bool is_hidden = client->hidden == 1;

		(void)snprintf(text, sizeof(text), "%" PRIu64, client->pid);
		gp_columns_add(ret_columns, client->pid == GP_STATE_UNKNOWN ? "-" : text);
		gp_columns_add(ret_columns, client->user[0] ? client->user : "-");
		gp_columns_add(ret_columns,
			       is_hidden ? "(another user's)" : gp_format_cut(client->name, 24, name, sizeof(name)));
		gp_columns_number(ret_columns, client->priority);
		gp_columns_add(ret_columns, is_hidden ? "-" : !client->managed ? "unmanaged" : client->mechanism);
		(void)snprintf(text, sizeof(text), "%u/%u", row->open, row->queues);
		if (client->queue_count)
			gp_columns_add(ret_columns, text);
		else
			gp_columns_number(ret_columns, client->unlisted_queue_count);
		gp_columns_number(ret_columns, row->pending);
		gp_columns_add(ret_columns, show_share(row->gpu_permille, text, sizeof(text)));
		gp_columns_add(ret_columns, show_share(row->wait_permille, text, sizeof(text)));
		gp_columns_add(ret_columns, show_rate(row->preemptions_milli, text, sizeof(text)));
		gp_columns_add(ret_columns, show_rate(row->inversions_milli, text, sizeof(text)));
		for (uint32_t j = 0; with_queues && j < client->queue_count; j++)
			show_queue(ret_columns, &top->now.queues[client->queue_first + j]);
	}
}

const char *gp_top_device_line(const struct gp_top_device *row, char *buffer, size_t buffer_size)
{
	const struct gp_state_device *device = row->device;
	char a[40], b[40], c[40], d[40], e[40], f[40], g[40], name[160];

	(void)snprintf(
		buffer, buffer_size,
		"GPU %" PRIu64 " %s: %s%s, slots %s/%s, processes %s/%s%s, preempt/s %s, inversions/s %s, calls/s %s",
		device->gpu_id, gp_format_cut(device->name, 24, name, sizeof(name)), device->mechanism,
		device->stopped == 1 ? " STOPPED" : "", show_count(device->slots_used, a, sizeof(a)),
		show_count(device->slot_count, b, sizeof(b)), show_count(device->processes, c, sizeof(c)),
		show_count(device->process_count_max, d, sizeof(d)),
		device->oversubscribed == 1 ? " OVERSUBSCRIBED" : "", show_rate(row->preemptions_milli, e, sizeof(e)),
		show_rate(row->inversions_milli, f, sizeof(f)), show_rate(row->transactions_milli, g, sizeof(g)));
	return buffer;
}

const char *gp_top_head_line(const struct gp_top *top, char *buffer, size_t buffer_size)
{
	const struct gp_state_daemon *daemon = &top->now.daemon;
	char up[GP_UNITS_TEXT_SIZE];

	(void)snprintf(buffer, buffer_size, "gpreemptd %s, policy %s, up %s, %u %s (99 = most urgent); by %s, %s",
		       daemon->version, daemon->policy,
		       daemon->uptime_real_ns == GP_STATE_UNKNOWN ?
			       "?" :
			       gp_units_format_ns(daemon->uptime_real_ns, up, sizeof(up)),
		       top->now.client_count, gp_units_word(top->now.client_count, "program", "programs"),
		       gp_top_sort_names[top->sort], top->ascending ? "ascending" : "descending");
	return buffer;
}

void gp_top_print(const struct gp_top *top, FILE *stream, bool with_queues)
{
	struct gp_columns columns;
	char line[1024];

	fprintf(stream, "%s\n", gp_top_head_line(top, line, sizeof(line)));
	for (uint32_t i = 0; i < top->now.device_count; i++)
		fprintf(stream, "%s\n", gp_top_device_line(&top->devices[i], line, sizeof(line)));
	gp_top_columns(top, with_queues, &columns);
	gp_columns_print(&columns, stream, "");
	gp_columns_fini(&columns);
}

static void show_json_number(struct gp_json_writer *writer, const char *key, uint64_t value)
{
	gp_json_writer_known(writer, key, value != GP_TOP_UNKNOWN, value);
}

static void show_json_device(struct gp_json_writer *writer, const struct gp_top_device *device)
{
	gp_json_writer_begin(writer, NULL, '{');
	gp_json_writer_u64(writer, "gpu_id", device->device->gpu_id);
	show_json_number(writer, "preemptions_per_1000s", device->preemptions_milli);
	show_json_number(writer, "inversions_per_1000s", device->inversions_milli);
	show_json_number(writer, "transactions_per_1000s", device->transactions_milli);
	gp_json_writer_end(writer, '}');
}

static void show_json_row(struct gp_json_writer *writer, const struct gp_top_row *row)
{
	gp_json_writer_begin(writer, NULL, '{');
	gp_json_writer_bool(writer, "managed", row->client->managed);
	gp_json_writer_string(writer, "name", row->client->name);
	show_json_number(writer, "pid", row->client->pid);
	show_json_number(writer, "priority", row->client->priority);
	show_json_number(writer, "queues", row->queues);
	show_json_number(writer, "open", row->open);
	show_json_number(writer, "pending", row->pending);
	show_json_number(writer, "gpu_permille", row->gpu_permille);
	show_json_number(writer, "wait_permille", row->wait_permille);
	show_json_number(writer, "preemptions_per_1000s", row->preemptions_milli);
	show_json_number(writer, "inversions_per_1000s", row->inversions_milli);
	gp_json_writer_end(writer, '}');
}

void gp_top_json(const struct gp_top *top, FILE *stream)
{
	struct gp_json_writer writer;

	gp_json_writer_init_line(&writer, stream);
	gp_json_writer_begin(&writer, NULL, '{');
	gp_json_writer_u64(&writer, "schema", 1);
	show_json_number(&writer, "uptime_real_ns", top->now.daemon.uptime_real_ns);
	gp_json_writer_begin(&writer, "devices", '[');
	for (uint32_t i = 0; i < top->now.device_count; i++)
		show_json_device(&writer, &top->devices[i]);
	gp_json_writer_end(&writer, ']');
	gp_json_writer_begin(&writer, "clients", '[');
	for (uint32_t i = 0; i < top->row_count; i++)
		show_json_row(&writer, &top->rows[i]);
	gp_json_writer_end(&writer, ']');
	gp_json_writer_end(&writer, '}');
}
