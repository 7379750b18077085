/* SPDX-License-Identifier: MIT */
/* Owns the pass over the events: what the filter lets through, cut to the window, each once even if several files have
 * it. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "report/analysis.h"

#define SWEEP_NODES_SIZE (16u << 20)
#define SWEEP_EXACT      65536u /* values of the distributions of the whole run that are kept */
#define SWEEP_SPREADS(a) \
	&(a)->wait_dispatch, &(a)->wait_launch, &(a)->run, &(a)->completion, &(a)->copy_time, &(a)->kernel_gap

int gp_warn(struct gp_report *report, const char *format, ...)
{
	char(*moved)[256] = realloc(report->warnings, (report->warning_count + 1u) * sizeof(*report->warnings));
	va_list arguments;

	if (!moved)
		return -ENOMEM;
	report->warnings = moved;
	va_start(arguments, format);
	(void)vsnprintf(moved[report->warning_count++], sizeof(*moved), format, arguments);
	va_end(arguments);
	return 0;
}

static bool sweep_track_passes(const struct gp_analysis *analysis, uint32_t track_index)
{
	const struct gp_filter *filter = &analysis->filter;
	const struct gp_track *track = gp_store_track(analysis->store, track_index);
	uint64_t pid = 0;

	if (filter->has_pid && (!gp_who_pid(analysis, track_index, &pid) || pid != filter->pid))
		return false;
	return !filter->has_device || !track->is_engine ||
	       ((track->known & GP_KNOWN_DEVICE) && track->device == filter->device);
}

static bool sweep_passes(const struct gp_analysis *analysis, const struct gp_trace_record *record)
{
	uint8_t *passes = &analysis->track_passes[record->track];

	/* The process of a track may take a look at all others: once is enough. */
	if (!*passes)
		*passes = sweep_track_passes(analysis, record->track) ? 1 : 2;
	if (*passes == 2)
		return false;
	return record->end_ns >= analysis->clip_from_ns && record->start_ns <= analysis->clip_to_ns;
}

/* What is cut has lost its start or its end: nothing is measured from there, and its bytes belong to the whole. */
static void sweep_clip(const struct gp_analysis *analysis, struct gp_trace_record *record)
{
	if (record->start_ns < analysis->clip_from_ns) {
		record->start_ns = analysis->clip_from_ns;
		record->known &= (uint16_t) ~(GP_KNOWN_DISPATCH | GP_KNOWN_CORRELATION | GP_KNOWN_SIZE);
	}
	if (record->end_ns > analysis->clip_to_ns) {
		record->end_ns = analysis->clip_to_ns;
		record->known &= (uint16_t) ~(GP_KNOWN_COMPLETE | GP_KNOWN_SIZE);
	}
}

/* Both say whose they are, and it is not the same. */
static bool sweep_is_another(const struct gp_track *a, const struct gp_track *b)
{
	uint32_t known = a->known & b->known;

	return (a->rank && b->rank && a->rank != b->rank) || ((known & GP_KNOWN_PID) && a->pid != b->pid) ||
	       ((known & GP_KNOWN_TID) && a->tid != b->tid);
}

/* The same event again: from another file of the same run, or repeated in one. */
static bool sweep_is_same(const struct gp_analysis *analysis, const struct gp_trace_record *a,
			  const struct gp_trace_record *b)
{
	if (a->start_ns != b->start_ns || a->end_ns != b->end_ns || a->layer != b->layer || a->name != b->name)
		return false;
	if (a->track != b->track &&
	    sweep_is_another(gp_store_track(analysis->store, a->track), gp_store_track(analysis->store, b->track)))
		return false;
	return a->file != b->file ||
	       (a->track == b->track && (a->known & GP_KNOWN_CORRELATION) && a->correlation == b->correlation);
}

/* What one file knows and the other does not. */
static void sweep_merge(const struct gp_analysis *analysis, struct gp_trace_record *into,
			const struct gp_trace_record *from)
{
	uint32_t had = gp_store_track(analysis->store, into->track)->known;
	uint32_t has = gp_store_track(analysis->store, from->track)->known;

	if (!(into->known & (GP_KNOWN_DISPATCH | GP_KNOWN_SIZE)))
		into->dispatch_or_size = from->dispatch_or_size;
	if (!(into->known & GP_KNOWN_COMPLETE))
		into->complete_ns = from->complete_ns;
	if (!(into->known & GP_KNOWN_WORKGROUPS))
		into->workgroups = from->workgroups;
	if (!(into->known & GP_KNOWN_CORRELATION))
		into->correlation = from->correlation;
	into->known |= from->known;
	if (__builtin_popcount(has) > __builtin_popcount(had))
		into->track = from->track;
}

int gp_sweep_rewind(struct gp_analysis *analysis, struct gp_error *error)
{
	analysis->has_pending = false;
	analysis->duplicate_count = 0;
	return gp_store_rewind(analysis->store, error);
}

int gp_sweep_next(struct gp_analysis *analysis, struct gp_trace_record *ret_record, struct gp_error *error)
{
	const struct gp_trace_record *record = NULL;
	int r;

	while ((r = gp_store_next(analysis->store, &record, error)) > 0) {
		if (!sweep_passes(analysis, record))
			continue;
		if (!analysis->has_pending) {
			analysis->pending = *record;
			analysis->has_pending = true;
		} else if (sweep_is_same(analysis, &analysis->pending, record)) {
			analysis->duplicate_count++;
			sweep_merge(analysis, &analysis->pending, record);
		} else {
			*ret_record = analysis->pending;
			analysis->pending = *record;
			sweep_clip(analysis, ret_record);
			return 1;
		}
	}
	if (r < 0 || !analysis->has_pending)
		return r;
	*ret_record = analysis->pending;
	analysis->has_pending = false;
	sweep_clip(analysis, ret_record);
	return 1;
}

static int sweep_other(struct gp_analysis *analysis, const struct gp_trace_record *record)
{
	uint32_t thread = gp_who_thread(analysis, record->track);
	struct gp_stat *stat;

	if (thread == GP_ANALYSIS_NONE)
		return -ENOMEM;
	stat = gp_stats_get(&analysis->stats, record->name, record->layer, analysis->threads[thread].process);
	if (!stat)
		return -ENOMEM;
	gp_spread_add(&stat->spread, record->end_ns - record->start_ns);
	stat->self_ns += record->end_ns - record->start_ns;
	return 0;
}

static int sweep_record(struct gp_analysis *analysis, const struct gp_trace_record *record, struct gp_error *error)
{
	int r = gp_calls_close_until(analysis, record->start_ns, error);

	if (r)
		return r;
	if (!analysis->event_count++)
		analysis->first_ns = record->start_ns;
	if (record->end_ns > analysis->last_ns)
		analysis->last_ns = record->end_ns;
	switch (record->layer) {
	case GP_LAYER_MARKER:
	case GP_LAYER_MEMORY:
		r = sweep_other(analysis, record);
		return r ? gp_error_set(error, r, "not enough memory") : 0;
	case GP_LAYER_WAIT: return gp_streams_wait(analysis, record, error);
	case GP_LAYER_KERNEL:
	case GP_LAYER_COPY: gp_alone_add(analysis, record); return gp_engines_add(analysis, record, error);
	default: gp_alone_add(analysis, record); return gp_calls_add(analysis, record, error);
	}
}

static int sweep_run(struct gp_analysis *analysis, struct gp_error *error)
{
	struct gp_trace_record record;
	int r = gp_sweep_rewind(analysis, error);

	while (r >= 0) {
		r = gp_sweep_next(analysis, &record, error);
		if (r <= 0)
			break;
		r = sweep_record(analysis, &record, error);
	}
	return r < 0 ? r : gp_calls_close_until(analysis, UINT64_MAX, error);
}

static void sweep_fini(struct gp_analysis *analysis)
{
	struct gp_spread *const spreads[] = { SWEEP_SPREADS(analysis) };

	gp_calls_fini(analysis);
	gp_launches_fini(analysis);
	gp_who_fini(analysis);
	gp_stats_fini(&analysis->stats);
	gp_spill_fini(&analysis->nodes);
	gp_busy_fini(&analysis->gpu);
	gp_busy_fini(&analysis->compute);
	gp_busy_fini(&analysis->copy);
	gp_busy_fini(&analysis->copy_calls);
	gp_busy_fini(&analysis->alloc_calls);
	for (size_t i = 0; i < sizeof(spreads) / sizeof(spreads[0]); i++)
		gp_spread_fini(spreads[i]);
	free(analysis->steps);
}

void gp_sweep_window(struct gp_analysis *analysis)
{
	const struct gp_filter *filter = &analysis->filter;
	/* A log alone begins with its first sentence. */
	uint64_t origin = analysis->store->count ? analysis->store->first_ns : gp_facts_first_ns(analysis->facts);

	analysis->clip_to_ns = UINT64_MAX;
	if (filter->has_from && __builtin_add_overflow(origin, filter->from_ns, &analysis->clip_from_ns))
		analysis->clip_from_ns = UINT64_MAX;
	if (filter->has_to && __builtin_add_overflow(origin, filter->to_ns, &analysis->clip_to_ns))
		analysis->clip_to_ns = UINT64_MAX;
}

static int sweep_init(struct gp_analysis *analysis, struct gp_error *error)
{
	struct gp_spread *const spreads[] = { SWEEP_SPREADS(analysis) };
	int r;

	analysis->end_node = GP_ANALYSIS_NO_NODE;
	for (size_t i = 0; i < sizeof(spreads) / sizeof(spreads[0]); i++)
		spreads[i]->exact_max = SWEEP_EXACT;
	gp_sweep_window(analysis);
	r = gp_who_init(analysis, error);
	if (!r)
		r = gp_calls_init(analysis, error);
	if (!r)
		r = gp_launches_init(analysis, error);
	if (!r)
		r = gp_spill_init(&analysis->nodes, sizeof(struct gp_path_node), SWEEP_NODES_SIZE, error);
	if (!r && gp_stats_init(&analysis->stats))
		r = gp_error_set(error, -ENOMEM, "not enough memory");
	return r;
}

int gp_analyse(struct gp_store *store, const struct gp_analysis_facts *facts, const struct gp_filter *filter,
	       uint32_t top, struct gp_report *ret_report, struct gp_error *error)
{
	struct gp_analysis *analysis = calloc(1, sizeof(*analysis));
	struct gp_report report = { .top = top };
	int r;

	if (!analysis)
		return gp_error_set(error, -ENOMEM, "not enough memory");
	*analysis = (struct gp_analysis){ .store = store,
					  .facts = facts,
					  .filter = *filter,
					  .top = top,
					  .report = &report };
	r = sweep_init(analysis, error);
	if (!r)
		r = sweep_run(analysis, error);
	if (!r)
		r = gp_figures(analysis, error);
	if (!r)
		r = gp_path_walk(analysis, error);
	if (!r)
		r = gp_checks(analysis, error);
	if (!r)
		r = gp_timeline(analysis, error);
	if (!r)
		r = gp_rules(&report, error);
	sweep_fini(analysis);
	free(analysis);
	if (r)
		gp_report_fini(&report);
	else
		*ret_report = report;
	return r;
}

void gp_report_fini(struct gp_report *report)
{
	void *const arrays[] = { report->files, report->threads, report->processes, report->queues,   report->devices,
				 report->calls, report->kernels, report->copies,    report->markers,  report->colds,
				 report->steps, report->shares,  report->checks,    report->findings, report->warnings,
				 report->lanes, report->slices,  report->summaries, report->idles };

	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
		free(arrays[i]);
	memset(report, 0, sizeof(*report));
}
