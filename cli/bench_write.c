/* SPDX-License-Identifier: MIT */
/* Owns how the measurements are told: a table, JSON, and a device description in which they replace what was assumed.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include "cli/bench_measure.h"
#include "cli/columns.h"
#include "lib/cleanup.h"
#include "lib/file.h"
#include "lib/json_writer.h"
#include "lib/paths.h"

static const char *write_rptr(enum gp_bench_rptr rptr)
{
	return rptr == GP_BENCH_RPTR_FETCH ? "fetch" : rptr == GP_BENCH_RPTR_COMPLETION ? "completion" : NULL;
}

static const char *write_head(enum gp_bench_head head)
{
	return head == GP_BENCH_HEAD_HOLD ? "hold" : head == GP_BENCH_HEAD_ROTATE ? "rotate" : NULL;
}

static void write_times(struct gp_columns *columns, const struct gp_bench_times *times)
{
	gp_columns_ns(columns, times->count ? times->p50 : UINT64_MAX);
	gp_columns_ns(columns, times->count ? times->p99 : UINT64_MAX);
	gp_columns_number(columns, times->count);
}

void gp_bench_show(FILE *stream, const struct gp_bench_kfd *kfd, const struct gp_bench_result *result)
{
	static const char *const gate_heads[] = { "<unit", "queues",   "occupancy", "close p50", "p99",
						  "n",     "open p50", "p99",       "n" };
	static const char *const packet_heads[] = { "queues", "packet p50", "p99", "n" };
	struct gp_columns columns;
	char percent[16];

	fprintf(stream, "GPU %u, %u CUs, gfx version %u, KFD %u.%u%s; device time\n\nGates\n", kfd->gpu_id,
		kfd->cu_count, kfd->gfx_version, kfd->kfd_major, kfd->kfd_minor,
		kfd->dilation > 1 ? " (a virtual one)" : "");
	gp_columns_init(&columns, gate_heads, 9);
	for (uint32_t i = 0; i < result->gate_count; i++) {
		const struct gp_bench_gate *gate = &result->gates[i];

		gp_columns_add(&columns, gate->unit);
		gp_columns_number(&columns, gate->queues);
		(void)snprintf(percent, sizeof(percent), "%u %%", gate->percent);
		gp_columns_add(&columns, percent);
		write_times(&columns, &gate->close);
		write_times(&columns, &gate->open);
	}
	gp_columns_print(&columns, stream, "  ");
	gp_columns_fini(&columns);
	fprintf(stream, "\nAn empty packet, doorbell to signal\n");
	gp_columns_init(&columns, packet_heads, 4);
	for (uint32_t i = 0; i < result->step_count; i++) {
		gp_columns_number(&columns, result->steps[i].queues);
		write_times(&columns, &result->steps[i].packet);
	}
	gp_columns_add(&columns, "9 alone");
	write_times(&columns, &result->packet);
	gp_columns_add(&columns, "8 blocked");
	write_times(&columns, &result->blocked);
	gp_columns_print(&columns, stream, "  ");
	gp_columns_fini(&columns);
	fprintf(stream, "\nread pointer moves at: %s\nblocked head of a queue: %s\nmore queues than slots felt at: ",
		write_rptr(result->rptr) ?: "not measured", write_head(result->head) ?: "not measured");
	if (result->oversubscribed_at)
		fprintf(stream, "%u queues\n", result->oversubscribed_at);
	else
		fprintf(stream, "not seen\n");
	for (uint32_t i = 0; i < result->note_count; i++)
		fprintf(stream, "not measured: %s\n", result->notes[i]);
}

static void write_json_times(struct gp_json_writer *json, const char *key, const struct gp_bench_times *times)
{
	const struct gp_json_figure figures[] = { { "p10_ns", times->p10 },
						  { "p50_ns", times->p50 },
						  { "p90_ns", times->p90 },
						  { "p99_ns", times->p99 },
						  { "count", times->count } };

	gp_json_writer_figures(json, key, times->count ? figures : NULL, sizeof(figures) / sizeof(figures[0]));
}

static void write_json_word(struct gp_json_writer *json, const char *key, const char *word)
{
	if (word)
		gp_json_writer_string(json, key, word);
	else
		gp_json_writer_null(json, key);
}

void gp_bench_json(FILE *stream, const struct gp_bench_kfd *kfd, const struct gp_bench_result *result)
{
	struct gp_json_writer json;

	gp_json_writer_init(&json, stream);
	gp_json_writer_begin(&json, NULL, '{');
	gp_json_writer_u64(&json, "schema", 1);
	gp_json_writer_u64(&json, "gpu_id", kfd->gpu_id);
	gp_json_writer_u64(&json, "cu_count", kfd->cu_count);
	gp_json_writer_u64(&json, "gfx_version", kfd->gfx_version);
	gp_json_writer_u64(&json, "dilation", kfd->dilation);
	gp_json_writer_begin(&json, "gates", '[');
	for (uint32_t i = 0; i < result->gate_count; i++) {
		gp_json_writer_begin(&json, NULL, '{');
		gp_json_writer_string(&json, "unit", result->gates[i].unit);
		gp_json_writer_u64(&json, "queues", result->gates[i].queues);
		gp_json_writer_u64(&json, "occupancy_percent", result->gates[i].percent);
		write_json_times(&json, "close", &result->gates[i].close);
		write_json_times(&json, "open", &result->gates[i].open);
		gp_json_writer_end(&json, '}');
	}
	gp_json_writer_end(&json, ']');
	gp_json_writer_begin(&json, "packets", '[');
	for (uint32_t i = 0; i < result->step_count; i++) {
		gp_json_writer_begin(&json, NULL, '{');
		gp_json_writer_u64(&json, "queues", result->steps[i].queues);
		write_json_times(&json, "latency", &result->steps[i].packet);
		gp_json_writer_end(&json, '}');
	}
	gp_json_writer_end(&json, ']');
	write_json_times(&json, "packet_alone", &result->packet);
	write_json_times(&json, "packet_beside_blocked_heads", &result->blocked);
	write_json_word(&json, "read_pointer", write_rptr(result->rptr));
	write_json_word(&json, "blocked_head", write_head(result->head));
	gp_json_writer_u64(&json, "oversubscribed_at", result->oversubscribed_at);
	gp_json_writer_u64(&json, "save_bandwidth", result->save_bandwidth);
	gp_json_writer_begin(&json, "not_measured", '[');
	for (uint32_t i = 0; i < result->note_count; i++)
		gp_json_writer_string(&json, NULL, result->notes[i]);
	gp_json_writer_end(&json, ']');
	gp_json_writer_end(&json, '}');
	fputc('\n', stream);
}

const char *gp_bench_base(const struct gp_bench_kfd *kfd)
{
	switch (kfd->gfx_version) {
	case 90006: return "mi50";
	case 90008: return "mi100";
	case 90010: return "mi210";
	case 90402:
		if (kfd->xcc_count == 1)
			return "mi300x-cpx";
		return kfd->cu_count == 80 ? "mi308x" : kfd->cu_count == 228 ? "mi300a" : "mi300x";
	default: return NULL;
	}
}

/* Where the numbers come from, for the last column. */
static void write_source(const struct gp_bench_kfd *kfd, const char *what, char *ret_source, size_t size)
{
	struct utsname machine = { .release = "" };
	time_t now = time(NULL);
	struct tm day;
	char date[16] = "";

	if (gmtime_r(&now, &day))
		(void)strftime(date, sizeof(date), "%Y-%m-%d", &day);
	uname(&machine);
	(void)snprintf(ret_source, size, "gpreempt bench device %s, Linux %.32s, KFD %u.%u%s: %s", date,
		       machine.release, kfd->kfd_major, kfd->kfd_minor, kfd->dilation > 1 ? ", VIRTUAL" : "", what);
}

/* The line that replaces the one of that key; false: it stays. */
static bool write_line(FILE *stream, const struct gp_bench_kfd *kfd, const struct gp_bench_result *result,
		       const char *key)
{
	char source[200];

	if (!strcmp(key, "gate_fixed") && result->gate_count && result->gates[0].percent == 0) {
		const struct gp_bench_times *close = &result->gates[0].close;

		write_source(kfd, "UPDATE_QUEUE on an idle queue, p10..p99 and p50", source, sizeof(source));
		if (close->p10 < close->p99)
			fprintf(stream,
				"gate_fixed        = %" PRIu64 "..%" PRIu64 " ns default %" PRIu64 " | measured | %s\n",
				close->p10, close->p99, close->p50, source);
		else
			fprintf(stream, "gate_fixed        = %" PRIu64 " ns | measured | %s\n", close->p50, source);
		return true;
	}
	if (!strcmp(key, "blocked_head") && write_head(result->head)) {
		write_source(kfd, "a packet beside 8 queues with blocked heads", source, sizeof(source));
		fprintf(stream, "blocked_head      = %s | measured | %s\n", write_head(result->head), source);
		return true;
	}
	if (!strcmp(key, "cu_count")) {
		write_source(kfd, "the topology", source, sizeof(source));
		fprintf(stream, "cu_count          = %u count | measured | %s\n", kfd->cu_count, source);
		return true;
	}
	/* Within what a memory can do; else the difference was noise. */
	if (!strcmp(key, "save_bandwidth") && result->save_bandwidth > 10000000000ull &&
	    result->save_bandwidth < 20000000000000ull) {
		write_source(kfd, "registers of a full device by the longer close", source, sizeof(source));
		fprintf(stream, "save_bandwidth    = %" PRIu64 " MB/s | fitted | %s\n",
			result->save_bandwidth / 1000000u, source);
		return true;
	}
	return false;
}

int gp_bench_describe(FILE *stream, const struct gp_bench_kfd *kfd, const struct gp_bench_result *result,
		      const char *base, struct gp_error *error)
{
	GP_AUTO_FREE char *text = NULL;
	char relative[128], path[PATH_MAX], *rest, *line;
	size_t size = 0;
	int r;

	(void)snprintf(relative, sizeof(relative), "devices/%.64s.ini", base);
	r = gp_paths_share(relative, path, sizeof(path));
	if (r)
		return gp_error_set(error, r, "there is no description '%.64s' (gpreempt sim --list)", base);
	r = gp_file_read(path, 1u << 20, &text, &size, error);
	if (r)
		return r;
	fprintf(stream,
		"# Made by gpreempt bench device from %s.ini; lines that say \"measured\" or \"fitted\" by it were measured here.\n",
		base);
	if (write_rptr(result->rptr))
		fprintf(stream,
			"# The read pointer moves at %s: gpreempt sim --rptr %s; gpreempt.conf: [kfd] rptr = %s\n",
			write_rptr(result->rptr), write_rptr(result->rptr), write_rptr(result->rptr));
	for (uint32_t i = 0; i < result->note_count; i++)
		fprintf(stream, "# not measured: %s\n", result->notes[i]);
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		char key[40] = "";

		if (line[0] != '#' && line[0] != '[')
			(void)sscanf(line, "%39[a-z_]", key);
		if (!key[0] || !write_line(stream, kfd, result, key))
			fprintf(stream, "%s%s", line, rest ? "\n" : "");
	}
	return fflush(stream) || ferror(stream) ? gp_error_set(error, -EIO, "the file could not be written") : 0;
}
