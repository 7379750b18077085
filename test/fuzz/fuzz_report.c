/* SPDX-License-Identifier: MIT */
/*
 * Fuzzer: the whole analysis, on events made from the bytes. What must hold for any events: layers add up to the wall,
 * the critical path adds up to it too, unions are never longer than the wall, and every view can write the result.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "report/load.h"
#include "view/report_view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Twelve bytes an event: few threads, queues and names, times close together, so that much overlaps. */
#define RECORD 12u

static void feed(struct gp_run *run, const uint8_t *data, size_t size)
{
	static const char *const names[] = { "hipLaunchKernel",
					     "hipMemcpy",
					     "hsa_queue_create",
					     "hipMalloc",
					     "hipDeviceSynchronize",
					     "k",
					     "copy",
					     "hsa_signal_store_screlease" };
	struct gp_sink sink = gp_run_sink(run);
	struct gp_error error;

	for (size_t i = 0; i + RECORD <= size; i += RECORD) {
		const uint8_t *at = data + i;
		struct gp_profile_event event;

		/* A file that may say its rank behind its events. */
		if ((at[7] & 0x80) && run->store.file_count < GP_STORE_FILE_MAX) {
			if (gp_store_file_end(&run->store, &error) || gp_store_file_add(&run->store, "more", &error))
				abort();
			gp_store_rank(&run->store, UINT64_MAX);
		}
		if (at[7] & 0x40)
			gp_store_rank(&run->store, at[8] % 4u);
		gp_trace_event_init(&event, (enum gp_layer)(at[0] % GP_LAYER_COUNT), names[at[1] % 8],
				    strlen(names[at[1] % 8]));
		event.start_ns = 1u + at[2] + 256u * (at[3] % 64u);
		event.end_ns = event.start_ns + at[4] + (at[5] & 0x80 ? 1000u : 0u) - (at[5] == 1);
		event.known = at[6] | (uint32_t)(at[7] & 15u) << 8;
		event.pid = at[8] % 3u;
		event.tid = at[8] / 3u % 3u;
		event.device = at[9] % 2u;
		event.queue = at[9] / 2u % 3u;
		event.stream = at[9] / 8u % 5u;
		event.correlation = at[10] % 16u;
		event.dispatch_ns = event.start_ns - at[11] % 200u;
		event.complete_ns = event.end_ns + at[11] / 2u;
		event.size = at[11] * 4096u;
		event.workgroups = at[10];
		event.priority = at[11] % 3u;
		event.recorded_stream = at[11] % 5u;
		event.recorded_correlation = at[11] % 16u;
		event.row = i;
		if (sink.event(sink.context, &event, &error))
			abort();
	}
	if (gp_store_file_end(&run->store, &error))
		abort();
}

static void check(const struct gp_report *report)
{
	uint64_t sum = 0;

	for (int i = 0; i < GP_REPORT_LAYER_COUNT; i++)
		sum += report->layers[i].self_ns;
	if (sum != report->wall_ns || report->path_ns != report->wall_ns)
		abort();
	if (report->gpu_busy_ns > report->wall_ns || report->gpu_busy_ns > report->compute_ns + report->copy_ns ||
	    report->idle_alone_ns > report->wall_ns || report->cold_ns > report->wall_ns)
		abort();
	for (uint32_t i = 0; i < report->thread_count; i++) {
		sum = 0;
		for (int j = 0; j < GP_REPORT_LAYER_COUNT; j++)
			sum += report->threads[i].self_ns[j];
		if (sum != report->threads[i].span_ns)
			abort();
	}
	for (uint32_t i = 0; i < report->queue_count; i++)
		if (report->queues[i].busy_ns > report->wall_ns || report->queues[i].busy_ns > report->queues[i].sum_ns)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gp_report_style style = { .width = 80 };
	struct gp_filter filter = { .has_pid = false };
	struct gp_error error = { "" };
	struct gp_report report;
	struct gp_run run;
	FILE *sink = fopen("/dev/null", "w");

	if (!sink || size < 2)
		return sink ? fclose(sink) : 0;
	/* The first byte chooses the filter, the second how much of the store is in memory. */
	filter.has_pid = data[0] & 1;
	filter.pid = data[0] >> 1 & 1;
	filter.has_from = data[0] & 4;
	filter.from_ns = data[0];
	filter.has_device = data[0] & 8;
	if (gp_run_init(&run, (data[1] + 64u) * sizeof(struct gp_trace_record), &error) ||
	    gp_store_file_add(&run.store, "fuzz", &error))
		abort();
	feed(&run, data + 2, size - 2);
	if (gp_analyse(&run.store, &run.facts, &filter, 0, &report, &error))
		abort();
	check(&report);
	if (gp_report_text(sink, &report, &style) || gp_report_json(sink, &report) || gp_report_html(sink, &report) ||
	    gp_export_perfetto(&run.store, &run.facts, &filter, sink, &error))
		abort();
	gp_report_fini(&report);
	gp_run_fini(&run);
	fclose(sink);
	return 0;
}
