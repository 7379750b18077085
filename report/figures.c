/* SPDX-License-Identifier: MIT */
/* Owns the report's tables: what the pass has gathered, in the order and the units of the views. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "lib/units.h"
#include "report/analysis.h"

#define FIGURES_GAP_LAUNCHES 10u /* a gap of up to so many launches may be one of launching */
#define FIGURES_XLA          "Chrome JSON of XLA"
#define FIGURES_COLD_MIN_NS  100000u /* a first call that cost less than 0.1 ms more is not worth a row */

/* Formats whose reader was never tried on a file of the tool itself, only on generated ones. */
static bool figures_is_unproven(const char *format)
{
	static const char *const formats[] = {
		"rocprofv3 agent_info CSV", "rocprof v2 CSV", FIGURES_XLA, "CSV", "ftrace", "dmesg", NULL
	};

	for (size_t i = 0; formats[i] && format; i++)
		if (!strcmp(format, formats[i]))
			return true;
	return false;
}

static int figures_files(struct gp_analysis *analysis)
{
	struct gp_report *report = analysis->report;
	const struct gp_store *store = analysis->store;

	report->files = calloc(store->file_count + 1u, sizeof(*report->files));
	if (!report->files)
		return -ENOMEM;
	report->file_count = store->file_count;
	for (uint32_t i = 0; i < store->file_count; i++) {
		const struct gp_store_file *file = &store->files[i];

		report->files[i] = (struct gp_report_file){ .name = file->name,
							    .format = file->format ? file->format : "unknown",
							    .events = file->events,
							    .left_out = file->left_out,
							    .left_out_row = file->left_out_row,
							    .is_unproven = figures_is_unproven(file->format) };
		report->has_stream_queues |= file->format && (!strcmp(file->format, "Chrome JSON of PyTorch") ||
							      !strcmp(file->format, FIGURES_XLA));
		if (file->left_out &&
		    gp_warn(report,
			    "%s: %" PRIu64 " %s left out: without a time, or with an end before the start; the "
			    "first is row %" PRIu64,
			    file->name, file->left_out, gp_units_word(file->left_out, "row is", "rows are"),
			    file->left_out_row))
			return -ENOMEM;
	}
	return 0;
}

static uint64_t figures_self(const struct analysis_layers *layers, int layer)
{
	uint64_t at = gp_busy_total(&layers->below[layer]);

	return layer + 1 < GP_REPORT_LAYER_COUNT ? at - gp_busy_total(&layers->below[layer + 1]) : at;
}

static void figures_layers(struct gp_analysis *analysis)
{
	struct gp_report *report = analysis->report;
	struct gp_report_layer *application = &report->layers[GP_REPORT_APPLICATION];

	for (int i = GP_REPORT_LIBRARY; i < GP_REPORT_LAYER_COUNT; i++) {
		report->layers[i].calls = analysis->layer_calls[i];
		report->layers[i].is_traced = analysis->layer_calls[i] > 0;
		report->layers[i].self_ns = figures_self(&analysis->layers, i);
		report->layers[i].union_ns = gp_busy_total(&analysis->layer_unions[i]);
		application->is_traced |= report->layers[i].is_traced;
	}
	/* Without any call in the trace nobody knows what the application did. */
	application->self_ns = report->wall_ns - gp_busy_total(&analysis->layers.below[GP_REPORT_LIBRARY]);
	application->union_ns = report->wall_ns;
}

static int figures_threads(struct gp_analysis *analysis)
{
	struct gp_report *report = analysis->report;

	report->threads = calloc(analysis->thread_count + 1u, sizeof(*report->threads));
	if (!report->threads)
		return -ENOMEM;
	for (uint32_t i = 0; i < analysis->thread_count; i++) {
		const struct analysis_thread *from = &analysis->threads[i];
		struct gp_report_thread *thread = &report->threads[report->thread_count];

		if (!from->calls)
			continue;
		report->thread_count++;
		thread->has_pid = analysis->processes[from->process].has_pid;
		thread->pid = analysis->processes[from->process].pid;
		thread->rank = analysis->processes[from->process].rank;
		thread->has_tid = from->has_tid;
		thread->tid = from->tid;
		thread->calls = from->calls;
		thread->span_ns = from->last_ns - from->first_ns;
		for (int j = GP_REPORT_LIBRARY; j < GP_REPORT_LAYER_COUNT; j++)
			thread->self_ns[j] = figures_self(&from->layers, j);
		thread->self_ns[GP_REPORT_APPLICATION] =
			thread->span_ns - gp_busy_total(&from->layers.below[GP_REPORT_LIBRARY]);
	}
	return 0;
}

static int figures_processes(struct gp_analysis *analysis)
{
	struct gp_report *report = analysis->report;

	report->processes = calloc(analysis->process_count + 1u, sizeof(*report->processes));
	if (!report->processes)
		return -ENOMEM;
	for (uint32_t i = 0; i < analysis->process_count; i++) {
		const struct analysis_process *from = &analysis->processes[i];
		struct gp_report_process *process = &report->processes[report->process_count++];

		process->has_pid = from->has_pid;
		process->pid = from->pid;
		process->rank = from->rank;
		process->calls = from->calls;
		process->kernels = from->kernels;
		process->copies = from->copies;
		process->gpu_ns = gp_busy_total(&from->gpu);
		process->queues = from->queues;
		process->has_behind = from->behind_count > 0;
		process->behind_ns = from->behind_ns;
	}
	return 0;
}

static int figures_compare_queues(const void *a, const void *b)
{
	const struct gp_report_queue *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->has_device != y->has_device)
		return x->has_device ? -1 : 1;
	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->is_copy != y->is_copy)
		return x->is_copy ? 1 : -1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->queue < y->queue ? -1 : x->queue > y->queue;
}

static int figures_queues(struct gp_analysis *analysis)
{
	struct gp_report *report = analysis->report;

	report->queues = calloc(analysis->queue_count + 1u, sizeof(*report->queues));
	report->devices = calloc(analysis->device_count + 1u, sizeof(*report->devices));
	if (!report->queues || !report->devices)
		return -ENOMEM;
	for (uint32_t i = 0; i < analysis->queue_count; i++) {
		const struct analysis_queue *from = &analysis->queues[i];

		report->queues[report->queue_count++] = (struct gp_report_queue){
			.is_copy = from->is_copy,
			.has_pid = analysis->processes[from->process].has_pid,
			.pid = analysis->processes[from->process].pid,
			.rank = analysis->devices[from->device_index].rank,
			.has_device = from->has_device,
			.device = from->device,
			.has_queue = from->has_queue,
			.queue = from->queue,
			.count = from->count,
			.busy_ns = gp_busy_total(&from->busy),
			.sum_ns = from->sum_ns,
			.gap_count = from->gap_count,
			.gap_ns = from->gap_ns,
			.gap_ns_max = from->gap_ns_max,
			.stream_count = from->stream_count,
			.first_ns = from->first_ns - analysis->first_ns,
			.last_ns = from->busy.end_ns - analysis->first_ns,
		};
	}
	qsort(report->queues, report->queue_count, sizeof(*report->queues), figures_compare_queues);
	for (uint32_t i = 0; i < analysis->device_count; i++) {
		const struct analysis_device *from = &analysis->devices[i];

		report->devices[report->device_count++] =
			(struct gp_report_device){ .rank = from->rank,
						   .has_device = from->has_device,
						   .device = from->device,
						   .has_cu_count = from->has_cu_count,
						   .has_kernels = from->compute.is_used,
						   .has_copies = from->copy.is_used,
						   .cu_count = from->cu_count,
						   .compute_ns = gp_busy_total(&from->compute),
						   .copy_ns = gp_busy_total(&from->copy),
						   .busy_ns = gp_busy_total(&from->all),
						   .kernel_sum_ns = from->kernel_sum_ns,
						   .span_ns = from->last_ns - from->first_ns,
						   .queues = from->queues };
	}
	return 0;
}

static void figures_name(const struct gp_analysis *analysis, const struct gp_stat *stat, struct gp_report_name *name)
{
	static const char *const layers[] = {
		[GP_LAYER_MARKER] = "marker", [GP_LAYER_LIBRARY] = "library", [GP_LAYER_HIP] = "HIP",
		[GP_LAYER_HSA] = "HSA",       [GP_LAYER_DRIVER] = "driver",   [GP_LAYER_MEMORY] = "memory",
		[GP_LAYER_KERNEL] = "kernel", [GP_LAYER_COPY] = "copy",       [GP_LAYER_WAIT] = "wait",
	};
	const struct analysis_process *process = &analysis->processes[stat->process];

	*name = (struct gp_report_name){
		.name = gp_names_get(&analysis->store->names, stat->name),
		.layer = stat->layer == GP_LAYER_HIP ? gp_report_layer_name(analysis->report, GP_REPORT_HIP) :
						       layers[stat->layer],
		.is_kernel = stat->layer == GP_LAYER_KERNEL,
		.has_pid = process->has_pid,
		.pid = process->pid,
		.rank = process->rank,
		.count = stat->spread.count,
		.total_ns = stat->spread.sum_ns,
		.self_ns = stat->self_ns,
		.min_ns = stat->spread.min_ns,
		.max_ns = stat->spread.max_ns,
		.median_ns = gp_spread_quantile(&stat->spread, 500),
		.has_spread = true,
		.is_exact = gp_spread_is_exact(&stat->spread),
		.first_ns = stat->first_ns,
		.has_size = stat->sized_count && stat->sized_count == stat->spread.count,
		.size = stat->size,
		.has_wait = stat->wait_count > 0,
		.wait_ns = stat->wait_count ? stat->wait_ns / stat->wait_count : 0,
	};
}

static int figures_compare_names(const void *a, const void *b)
{
	const struct gp_report_name *x = a, *y = b;
	int order;

	if (x->self_ns != y->self_ns)
		return x->self_ns > y->self_ns ? -1 : 1;
	order = strcmp(x->name, y->name);
	return order ? order : x->pid < y->pid ? -1 : x->pid > y->pid;
}

static int figures_names(struct gp_analysis *analysis)
{
	struct gp_report *report = analysis->report;
	size_t room = analysis->stats.count + 1u;

	report->calls = calloc(room, sizeof(*report->calls));
	report->kernels = calloc(room, sizeof(*report->kernels));
	report->copies = calloc(room, sizeof(*report->copies));
	report->markers = calloc(room, sizeof(*report->markers));
	if (!report->calls || !report->kernels || !report->copies || !report->markers)
		return -ENOMEM;
	for (uint32_t i = 0; i < analysis->stats.count; i++) {
		const struct gp_stat *stat = analysis->stats.stats[i];

		switch (stat->layer) {
		case GP_LAYER_KERNEL:
			figures_name(analysis, stat, &report->kernels[report->kernel_name_count++]);
			break;
		case GP_LAYER_COPY: figures_name(analysis, stat, &report->copies[report->copy_name_count++]); break;
		case GP_LAYER_MARKER:
		case GP_LAYER_MEMORY: figures_name(analysis, stat, &report->markers[report->marker_count++]); break;
		default: figures_name(analysis, stat, &report->calls[report->call_count++]);
		}
	}
	qsort(report->calls, report->call_count, sizeof(*report->calls), figures_compare_names);
	qsort(report->kernels, report->kernel_name_count, sizeof(*report->kernels), figures_compare_names);
	qsort(report->copies, report->copy_name_count, sizeof(*report->copies), figures_compare_names);
	qsort(report->markers, report->marker_count, sizeof(*report->markers), figures_compare_names);
	return 0;
}

static int figures_compare_colds(const void *a, const void *b)
{
	const struct gp_report_cold *x = a, *y = b;

	if (x->excess_ns != y->excess_ns)
		return x->excess_ns > y->excess_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* What the first call cost more than a later one, both without the time in which the GPU worked. A call that came but
 * once counts if it is of the kind that sets something up, or something was set up inside it. */
static uint64_t figures_excess(struct gp_analysis *analysis, const struct gp_stat *stat, uint64_t *ret_later_ns)
{
	uint64_t host = stat->first_ns - stat->first_engine_ns;
	bool is_setup = stat->first_has_setup || (gp_analysis_name_flags(analysis, stat->name) & NAME_SETUP);
	uint64_t later = stat->later ? gp_spread_quantile(stat->later, 500) : 0;

	*ret_later_ns = later;
	/* Who waits for the GPU may wait for what was begun before the trace: that is no start-up. */
	if (stat->first_is_blind)
		return 0;
	if (!stat->later)
		return is_setup ? host : 0;
	return host > later ? host - later : 0;
}

static int figures_colds(struct gp_analysis *analysis)
{
	struct gp_report *report = analysis->report;

	report->colds = calloc(analysis->stats.count + 1u, sizeof(*report->colds));
	if (!report->colds)
		return -ENOMEM;
	/* Whoever looks at a later part has not seen the first calls. */
	report->has_cold = analysis->clip_from_ns <= analysis->store->first_ns;
	for (uint32_t i = 0; report->has_cold && i < analysis->stats.count; i++) {
		const struct gp_stat *stat = analysis->stats.stats[i];
		uint64_t later = 0, excess;

		if (!stat->outer_count)
			continue;
		excess = figures_excess(analysis, stat, &later);
		report->cold_ns += excess;
		if (excess < FIGURES_COLD_MIN_NS)
			continue;
		report->colds[report->cold_count++] = (struct gp_report_cold){
			.name = gp_names_get(&analysis->store->names, stat->name),
			.has_pid = analysis->processes[stat->process].has_pid,
			.pid = analysis->processes[stat->process].pid,
			.first_ns = stat->first_ns,
			.engine_ns = stat->first_engine_ns,
			.later_count = stat->outer_count - 1,
			.later_ns = later,
			.excess_ns = excess,
			.silent_ns = stat->first_silent_ns,
			.file = analysis->store->files[stat->first_file].name,
			.row = stat->first_row,
		};
	}
	/* Threads start up beside each other: together they cannot cost more than the run took. */
	report->cold_ns = report->cold_ns < report->wall_ns ? report->cold_ns : report->wall_ns;
	qsort(report->colds, report->cold_count, sizeof(*report->colds), figures_compare_colds);
	return 0;
}

static void figures_times(struct gp_report_times *times, const struct gp_spread *spread)
{
	*times = (struct gp_report_times){ .count = spread->count,
					   .sum_ns = spread->sum_ns,
					   .min_ns = spread->min_ns,
					   .max_ns = spread->max_ns,
					   .p50_ns = gp_spread_quantile(spread, 500),
					   .p99_ns = gp_spread_quantile(spread, 990),
					   .is_exact = gp_spread_is_exact(spread) };
}

static void figures_totals(struct gp_analysis *analysis)
{
	struct gp_report *report = analysis->report;

	report->first_ns = analysis->first_ns;
	report->wall_ns = analysis->event_count ? analysis->last_ns - analysis->first_ns : 0;
	report->event_count = analysis->event_count;
	report->duplicate_count = analysis->duplicate_count;
	report->overlap_count = analysis->overlap_count;
	report->has_gpu = analysis->gpu.is_used;
	report->gpu_busy_ns = gp_busy_total(&analysis->gpu);
	report->compute_ns = gp_busy_total(&analysis->compute);
	report->copy_ns = gp_busy_total(&analysis->copy);
	/* Ranges may reach beyond the first and last call or work: that time is not known to be idle. */
	report->idle_alone_ns = analysis->calls_or_gpu.is_used ?
					analysis->calls_or_gpu.end_ns - analysis->calls_or_gpu.first_ns -
						gp_busy_total(&analysis->calls_or_gpu) :
					0;
	report->idle_before_ns = analysis->alone.before_ns;
	report->idle_behind_ns = analysis->alone.total_ns - analysis->alone.work_ns;
	report->idle_launched_ns = analysis->alone.launched_ns;
	report->idle_launched_before_ns = analysis->alone.launched_before_ns;
	report->kernel_count = analysis->run.count;
	report->copy_count = analysis->copy_time.count;
	report->launch_count = analysis->launch_count;
	report->correlated_launch_count = analysis->correlated_launch_count;
	report->joined_launch_count = analysis->joined_launch_count;
	report->joined_kernel_count = analysis->joined_kernel_count;
	report->joined_copy_count = analysis->joined_copy_count;
	report->has_cuda = analysis->cuda_call_count > 0;
	report->has_hip = analysis->hip_call_count > 0;
	report->launch_ns = analysis->launch_ns;
	report->sync_count = analysis->sync_count;
	report->sync_after_launch_count = analysis->sync_after_launch_count;
	report->copy_call_ns = gp_busy_total(&analysis->copy_calls);
	report->launch_gap_ns_max =
		report->launch_count ? FIGURES_GAP_LAUNCHES * (report->launch_ns / report->launch_count) : 0;
	report->launch_gap_ns = gp_spread_sum_below(&analysis->kernel_gap, report->launch_gap_ns_max);
	report->small_copy_count = analysis->small_copy_count;
	report->sized_copy_count = analysis->sized_copy_count;
	report->small_copy_ns = analysis->small_copy_ns;
	report->has_tail = analysis->has_tail;
	report->tail_ns = analysis->tail_ns;
	report->tail_kernel_ns = analysis->tail_kernel_ns;
	report->has_priorities = analysis->has_priorities;
	/* Where the daemon kept the account, its word counts; elsewhere what the waits show. Its account is of the
	 * whole recording, so nothing is known of a part. */
	if (analysis->facts->counts[GP_FACT_INVERSION]) {
		const struct gp_filter *filter = &analysis->filter;

		report->has_priorities =
			!filter->has_pid && !filter->has_device && !filter->has_from && !filter->has_to;
		report->inversion_count = analysis->facts->counts[GP_FACT_INVERSION];
		report->inversion_ns = analysis->facts->sums[GP_FACT_INVERSION];
		report->inversion_ns_max = analysis->facts->largest[GP_FACT_INVERSION];
	} else {
		report->inversion_count = analysis->inversion_count;
		report->inversion_ns = analysis->inversion_ns;
		report->inversion_ns_max = analysis->inversion_ns_max;
	}
	figures_times(&report->wait_dispatch, &analysis->wait_dispatch);
	figures_times(&report->wait_launch, &analysis->wait_launch);
	figures_times(&report->run, &analysis->run);
	figures_times(&report->completion, &analysis->completion);
	figures_times(&report->copy_time, &analysis->copy_time);
	figures_times(&report->kernel_gap, &analysis->kernel_gap);
	report->oversubscribed_count = gp_facts_count(analysis, GP_FACT_OVERSUBSCRIBED);
	report->preemption_failed_count = gp_facts_count(analysis, GP_FACT_PREEMPTION_FAILED);
	report->eviction_count = gp_facts_count(analysis, GP_FACT_EVICTION);
	report->reset_count = gp_facts_count(analysis, GP_FACT_RESET);
}

static void figures_traffic(struct gp_analysis *analysis)
{
	struct gp_report *report = analysis->report;

	/* What such a call usually takes, so that one that is slow because something starts up does not count. */
	for (uint32_t i = 0; i < analysis->stats.count; i++) {
		const struct gp_stat *stat = analysis->stats.stats[i];

		if (!stat->later || !(gp_analysis_name_flags(analysis, stat->name) & NAME_ALLOC) ||
		    stat->layer == GP_LAYER_KERNEL)
			continue;
		report->alloc_call_count += stat->outer_count;
		report->alloc_call_ns += gp_spread_quantile(stat->later, 500) * stat->outer_count;
	}
	if (report->alloc_call_ns > gp_busy_total(&analysis->alloc_calls))
		report->alloc_call_ns = gp_busy_total(&analysis->alloc_calls);
	report->copy_wait_ns = analysis->copy_wait_ns;
	report->copy_wait_unknown_ns = analysis->copy_wait_unknown_ns;
	gp_collectives(analysis);
	for (int i = 0; i < 2; i++)
		report->links[i] = (struct gp_report_link){ .count = analysis->links[i].count,
							    .size = analysis->links[i].size,
							    .ns = analysis->links[i].ns,
							    .best_size = analysis->links[i].best_size,
							    .best_ns = analysis->links[i].best_ns };
}

static int figures_summaries(struct gp_analysis *analysis)
{
	struct gp_report *report = analysis->report;

	report->summaries = calloc(analysis->facts->count + 1u, sizeof(*report->summaries));
	if (!report->summaries)
		return -ENOMEM;
	for (uint32_t i = 0; i < analysis->facts->count; i++) {
		const struct gp_kept_fact *fact = &analysis->facts->facts[i];
		const char *file = analysis->store->files[fact->file].name;

		if (fact->kind == GP_FACT_WARNING && gp_warn(report, "%s:%" PRIu64 ": %s", file, fact->row, fact->text))
			return -ENOMEM;
		if (fact->kind == GP_FACT_SUMMARY)
			report->summaries[report->summary_count++] = (struct gp_report_name){ .name = fact->text,
											      .layer = file,
											      .count = fact->calls,
											      .total_ns = fact->value,
											      .self_ns = fact->value };
	}
	qsort(report->summaries, report->summary_count, sizeof(*report->summaries), figures_compare_names);
	return 0;
}

static int figures_warn_ranks(struct gp_report *report, const struct gp_store *store)
{
	uint32_t unranked = 0;
	int r;

	if (!store->has_ranks)
		return 0;
	r = gp_warn(report,
		    "the files are of several ranks: \"3:0\" is process or device 0 of rank 3; the clocks of ranks "
		    "on different machines may differ");
	for (uint32_t i = 0; i < store->file_count; i++)
		unranked += store->files[i].events && !store->files[i].rank;
	if (unranked)
		r |= gp_warn(report, "%" PRIu32 " of the files %s no rank: devices of the same number are one there",
			     unranked, gp_units_word(unranked, "says", "say"));
	return r;
}

/* Profiles of XLA name neither their process nor their host. The second file of a run repeats the first. */
static int figures_warn_xla(struct gp_report *report, const struct gp_store *store)
{
	uint64_t count = 0, largest = 0, all = 0;

	for (uint32_t i = 0; i < store->file_count; i++) {
		const struct gp_store_file *file = &store->files[i];

		if (!file->format || strcmp(file->format, FIGURES_XLA))
			continue;
		count++;
		all += file->events;
		largest = file->events > largest ? file->events : largest;
	}
	if (count < 2 || report->duplicate_count >= all - largest)
		return 0;
	return gp_warn(report,
		       "%" PRIu64
		       " files of XLA say neither process nor host: devices of the same number are one here. "
		       "Give one host's file at a time",
		       count);
}

static int figures_warn(struct gp_analysis *analysis)
{
	struct gp_report *report = analysis->report;
	const struct gp_store *store = analysis->store;
	uint64_t latest_first = 0, earliest_last = UINT64_MAX;
	int r = 0;

	if (report->duplicate_count)
		r |= gp_warn(report, "%" PRIu64 " %s in more than one file, or twice in one; each counts once",
			     report->duplicate_count, gp_units_word(report->duplicate_count, "event is", "events are"));
	if (report->overlap_count)
		r |= gp_warn(report,
			     "%" PRIu64 " %s another of the same thread without lying inside it: the nesting is a "
			     "guess, the layers are not",
			     report->overlap_count,
			     gp_units_word(report->overlap_count, "call overlaps", "calls overlap"));
	if (analysis->open_overflow)
		r |= gp_warn(report, "%" PRIu64 " %s not in the table of calls: too many were open at once",
			     analysis->open_overflow, gp_units_word(analysis->open_overflow, "call is", "calls are"));
	if (analysis->behind_overflow)
		r |= gp_warn(report,
			     "%" PRIu64
			     " %s while very many calls of the process waited: some of these calls may count "
			     "as start-up though they waited for older work",
			     analysis->behind_overflow,
			     gp_units_word(analysis->behind_overflow, "kernel or copy started",
					   "kernels and copies started"));
	if (analysis->stats.folded || store->names.folded)
		r |= gp_warn(report, "there are too many different names to tell them all apart; the totals hold");
	r |= figures_warn_ranks(report, store);
	r |= figures_warn_xla(report, store);
	for (uint32_t i = 0; i < store->file_count; i++) {
		if (!store->files[i].events)
			continue;
		latest_first = store->files[i].first_ns > latest_first ? store->files[i].first_ns : latest_first;
		earliest_last = store->files[i].last_ns < earliest_last ? store->files[i].last_ns : earliest_last;
	}
	report->is_apart = latest_first > earliest_last && !analysis->filter.has_from && !analysis->filter.has_to;
	if (report->is_apart)
		r |= gp_warn(report, "the files do not overlap in time: are they of one run, and of one clock?");
	return r ? -ENOMEM : 0;
}

int gp_figures(struct gp_analysis *analysis, struct gp_error *error)
{
	int r;

	figures_totals(analysis);
	figures_traffic(analysis);
	figures_layers(analysis);
	r = figures_files(analysis);
	if (!r)
		r = figures_threads(analysis);
	if (!r)
		r = figures_processes(analysis);
	if (!r)
		r = figures_queues(analysis);
	if (!r)
		r = figures_names(analysis);
	if (!r)
		r = figures_colds(analysis);
	if (!r)
		r = figures_summaries(analysis);
	if (!r)
		r = gp_rhythm_steps(analysis);
	if (!r)
		r = figures_warn(analysis);
	if (!r)
		r = gp_facts_warn(analysis);
	return r ? gp_error_set(error, r, "not enough memory") : 0;
}
