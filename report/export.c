/* SPDX-License-Identifier: MIT */
/* Owns the way of a run's events, filtered and cut as for the report, to the writer of Perfetto files. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "report/analysis.h"
#include "view/report_perfetto.h"

static int export_event(struct gp_analysis *analysis, const struct gp_trace_record *record,
			struct gp_report_perfetto *perfetto)
{
	static const char *const categories[] = {
		[GP_LAYER_MARKER] = "marker", [GP_LAYER_LIBRARY] = "library", [GP_LAYER_HIP] = "HIP",
		[GP_LAYER_HSA] = "HSA",       [GP_LAYER_DRIVER] = "driver",   [GP_LAYER_MEMORY] = "memory",
		[GP_LAYER_KERNEL] = "kernel", [GP_LAYER_COPY] = "copy",       [GP_LAYER_WAIT] = "wait",
	};
	const struct gp_track *track = gp_store_track(analysis->store, record->track);
	struct gp_report_event event = { .name = gp_names_get(&analysis->store->names, record->name),
					 .category = categories[record->layer],
					 .name_index = record->name,
					 .start_ns = record->start_ns,
					 .end_ns = record->end_ns,
					 .is_engine = track->is_engine };
	const struct analysis_process *process;

	if (record->layer == GP_LAYER_WAIT)
		return 0;

	event.track = track->is_engine ? gp_who_queue(analysis, record->track) : gp_who_thread(analysis, record->track);
	if (event.track == GP_ANALYSIS_NONE)
		return -ENOMEM;
	event.process_index =
		track->is_engine ? analysis->queues[event.track].process : analysis->threads[event.track].process;
	event.device_index = track->is_engine ? analysis->queues[event.track].device_index : 0;
	process = &analysis->processes[event.process_index];
	event.rank = process->rank;
	event.has_pid = process->has_pid;
	event.pid = process->pid;
	event.has_tid = track->known & GP_KNOWN_TID;
	event.tid = track->tid;
	event.has_device = track->known & GP_KNOWN_DEVICE;
	event.device = track->device;
	event.has_queue = track->known & GP_KNOWN_QUEUE;
	event.queue = track->queue;
	event.has_correlation = record->known & GP_KNOWN_CORRELATION;
	event.correlation = record->correlation;
	event.has_size = record->known & GP_KNOWN_SIZE;
	event.size = record->dispatch_or_size;
	return gp_report_perfetto_add(perfetto, &event);
}

static int export_all(struct gp_analysis *analysis, struct gp_report_perfetto *perfetto, struct gp_error *error)
{
	struct gp_trace_record record;
	int r = gp_sweep_rewind(analysis, error);

	while (!r) {
		r = gp_sweep_next(analysis, &record, error);
		if (r <= 0)
			return r < 0 ? r : gp_report_perfetto_finish(perfetto);
		r = export_event(analysis, &record, perfetto);
	}
	return r;
}

int gp_export_perfetto(struct gp_store *store, const struct gp_analysis_facts *facts, const struct gp_filter *filter,
		       FILE *stream, struct gp_error *error)
{
	struct gp_analysis *analysis = calloc(1, sizeof(*analysis));
	struct gp_report_perfetto *perfetto = gp_report_perfetto_create(stream);
	int r = -ENOMEM;

	errno = 0;
	if (analysis && perfetto) {
		analysis->store = store;
		analysis->facts = facts;
		analysis->filter = *filter;
		gp_sweep_window(analysis);
		r = gp_who_init(analysis, error);
		if (!r)
			r = export_all(analysis, perfetto, error);
		gp_who_fini(analysis);
	}
	gp_report_perfetto_destroy(perfetto);
	free(analysis);
	if (r && !error->text[0])
		gp_error_set(error, r, "cannot write the Perfetto file: %s", strerror(errno ? errno : -r));
	return r;
}
