/* SPDX-License-Identifier: MIT */
/* clang-format off */
/*
 * Shows what programs did on a virtual node, in the simulator's own table. Each line of standard input has a word and
 * its values. Durations are device time:
 *
 *	device NAME, title TEXT, mix NAME, gate UNIT, gate-cost NS, dilate K, seed N
 *	run NAME DURATION_NS PREEMPTIONS INVERSIONS INVERSION_NS INVERSION_NS_MAX    (INVERSIONS -1: not counted)
 *	client NAME PRIORITY service|batch REQUESTS SHARE_PPM UNFINISHED             of the run above
 *	latency NS                                                                   of the client above
 *
 * usage: gpreempt-demo-table [--html FILE] [--json FILE]
 */
/* clang-format on */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/cleanup.h"
#include "lib/plain.h"
#include "view/result.h"

#define TABLE_RUN_MAX    8u
#define TABLE_CLIENT_MAX 16u
#define TABLE_LINE_SIZE  512u

struct table {
	struct gp_result result;
	struct gp_result_run runs[TABLE_RUN_MAX];
	struct gp_result_client clients[TABLE_RUN_MAX][TABLE_CLIENT_MAX];
};

static void table_copy(char *ret_text, size_t size, const char *text)
{
	(void)snprintf(ret_text, size, "%s", text);
}

/* demo/show runs its programs alone, with the stock driver, and with a policy. */
static enum gp_result_kind table_kind(const char *name)
{
	if (!strcmp(name, "alone"))
		return GP_RESULT_ALONE;
	return strcmp(name, "stock") ? GP_RESULT_POLICY : GP_RESULT_STOCK;
}

static int table_run(struct table *table, const char *text)
{
	struct gp_result_run *run = &table->runs[table->result.run_count];
	int64_t inversions;

	if (table->result.run_count == TABLE_RUN_MAX)
		return -E2BIG;
	*run = (struct gp_result_run){ .clients = table->clients[table->result.run_count] };
	if (sscanf(text, "%23s %" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNu64 " %" SCNu64, run->policy,
		   &run->duration_ns, &run->preemptions, &inversions, &run->inversion_ns,
		   &run->inversion_ns_max) != 6 ||
	    !run->duration_ns)
		return -EINVAL;
	run->kind = table_kind(run->policy);
	run->inversions_unknown = inversions < 0;
	run->inversion_count = inversions < 0 ? 0 : (uint64_t)inversions;
	table->result.run_count++;
	return 0;
}

static int table_client(struct table *table, const char *text)
{
	struct gp_result_run *run = table->result.run_count ? &table->runs[table->result.run_count - 1u] : NULL;
	struct gp_result_client *client;
	char kind[16];

	if (!run || run->client_count == TABLE_CLIENT_MAX)
		return -E2BIG;
	client = &run->clients[run->client_count];
	gp_hist_init(&client->latency_ns);
	if (sscanf(text, "%47s %" SCNd32 " %15s %" SCNu64 " %" SCNu64 " %" SCNu32 " %" SCNu64, client->name,
		   &client->priority, kind, &client->requests, &client->throughput_milli, &client->gpu_share_ppm,
		   &client->unfinished) != 7)
		return -EINVAL;
	client->is_service = !strcmp(kind, "service");
	run->client_count++;
	return 0;
}

static int table_latency(struct table *table, const char *text)
{
	struct gp_result_run *run = table->result.run_count ? &table->runs[table->result.run_count - 1u] : NULL;

	if (!run || !run->client_count)
		return -EINVAL;
	gp_hist_add(&run->clients[run->client_count - 1u].latency_ns, strtoull(text, NULL, 10));
	return 0;
}

static int table_line(struct table *table, const char *word, const char *text)
{
	struct gp_result *result = &table->result;

	if (!strcmp(word, "device"))
		table_copy(result->device, sizeof(result->device), text);
	else if (!strcmp(word, "title"))
		table_copy(result->device_title, sizeof(result->device_title), text);
	else if (!strcmp(word, "mix"))
		table_copy(result->mix, sizeof(result->mix), text);
	else if (!strcmp(word, "gate"))
		table_copy(result->gate, sizeof(result->gate), text);
	else if (!strcmp(word, "gate-cost"))
		result->gate_cost_ns = strtoull(text, NULL, 10);
	else if (!strcmp(word, "dilate"))
		result->dilate = (uint32_t)strtoul(text, NULL, 10);
	else if (!strcmp(word, "seed"))
		result->seed = strtoull(text, NULL, 10);
	else if (!strcmp(word, "run"))
		return table_run(table, text);
	else if (!strcmp(word, "client"))
		return table_client(table, text);
	else if (!strcmp(word, "latency"))
		return table_latency(table, text);
	else
		return -EINVAL;
	return 0;
}

static int table_read(struct table *table, FILE *stream)
{
	char line[TABLE_LINE_SIZE];
	uint32_t number = 0;

	while (fgets(line, sizeof(line), stream)) {
		char *text;
		int r;

		number++;
		line[strcspn(line, "\n")] = '\0';
		text = strchr(line, ' ');
		if (text)
			*text++ = '\0';
		r = text ? table_line(table, line, text) : -EINVAL;
		if (r < 0) {
			fprintf(stderr, "gpreempt-demo-table: line %" PRIu32 ": %s\n", number, strerror(-r));
			return r;
		}
	}
	return ferror(stream) ? -EIO : 0;
}

static int table_write(const struct gp_result *result, const char *path,
		       int (*view)(FILE *stream, const struct gp_result *result))
{
	FILE *stream = fopen(path, "w");
	int r;

	if (!stream)
		return -errno;
	r = view(stream, result);
	return fclose(stream) && !r ? -errno : r;
}

int main(int argc, char **argv)
{
	GP_AUTO_FREE struct table *table = calloc(1, sizeof(*table));
	int r;

	if (!table)
		return 1;
	table->result = (struct gp_result){ .is_emulated = true, .device_count = 1, .runs = table->runs };
	r = table_read(table, stdin);
	if (!r)
		r = gp_view_table(stdout, &table->result, isatty(STDOUT_FILENO), gp_plain_width(0));
	for (int i = 1; !r && i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--html"))
			r = table_write(&table->result, argv[i + 1], gp_view_html);
		else if (!strcmp(argv[i], "--json"))
			r = table_write(&table->result, argv[i + 1], gp_view_json);
		else
			r = -EINVAL;
	}
	if (r < 0)
		fprintf(stderr, "gpreempt-demo-table: %s\n", strerror(-r));
	return r < 0;
}
