/* SPDX-License-Identifier: MIT */
/* Owns the report as JSON, schema 1 (docs/report.md). Times are whole nanoseconds; what is not known is null. */
#include <errno.h>
#include "lib/json_writer.h"
#include "view/report_view.h"

#define JSON_SCHEMA 1u

static void json_known(struct gp_json_writer *writer, const char *key, bool is_known, uint64_t value)
{
	if (is_known)
		gp_json_writer_u64(writer, key, value);
	else
		gp_json_writer_null(writer, key);
}

static void json_text(struct gp_json_writer *writer, const char *key, const char *text)
{
	if (text)
		gp_json_writer_string(writer, key, text);
	else
		gp_json_writer_null(writer, key);
}

static void json_files(struct gp_json_writer *writer, const struct gp_report *report)
{
	gp_json_writer_begin(writer, "files", '[');
	for (uint32_t i = 0; i < report->file_count; i++) {
		const struct gp_report_file *file = &report->files[i];

		gp_json_writer_begin(writer, NULL, '{');
		gp_json_writer_string(writer, "name", file->name);
		gp_json_writer_string(writer, "format", file->format);
		gp_json_writer_u64(writer, "events", file->events);
		gp_json_writer_u64(writer, "left_out", file->left_out);
		gp_json_writer_string(writer, "reader", file->is_unproven ? "not seen on a real file" : "real files");
		gp_json_writer_end(writer, '}');
	}
	gp_json_writer_end(writer, ']');
}

static void json_layers(struct gp_json_writer *writer, const struct gp_report *report)
{
	gp_json_writer_begin(writer, "layers", '[');
	for (int i = 0; i < GP_REPORT_LAYER_COUNT; i++) {
		const struct gp_report_layer *layer = &report->layers[i];

		gp_json_writer_begin(writer, NULL, '{');
		gp_json_writer_string(writer, "name", gp_report_layer_name(report, i));
		json_known(writer, "self_ns", layer->is_traced, layer->self_ns);
		json_known(writer, "active_ns", layer->is_traced, layer->union_ns);
		json_known(writer, "calls", layer->is_traced && i, layer->calls);
		gp_json_writer_end(writer, '}');
	}
	gp_json_writer_end(writer, ']');
}

static void json_gpu(struct gp_json_writer *writer, const struct gp_report *report)
{
	gp_json_writer_begin(writer, "gpu", '{');
	json_known(writer, "busy_ns", report->has_gpu, report->gpu_busy_ns);
	json_known(writer, "compute_ns", report->kernel_count, report->compute_ns);
	json_known(writer, "copy_ns", report->copy_count, report->copy_ns);
	gp_json_writer_u64(writer, "kernels", report->kernel_count);
	gp_json_writer_u64(writer, "copies", report->copy_count);
	gp_json_writer_end(writer, '}');
}

static void json_times(struct gp_json_writer *writer, const char *key, const struct gp_report_times *times)
{
	const struct gp_json_figure figures[] = { { "count", times->count },   { "total_ns", times->sum_ns },
						  { "min_ns", times->min_ns }, { "median_ns", times->p50_ns },
						  { "p99_ns", times->p99_ns }, { "max_ns", times->max_ns } };

	if (!times->count) {
		gp_json_writer_null(writer, key);
		return;
	}
	gp_json_writer_begin(writer, key, '{');
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		gp_json_writer_u64(writer, figures[i].key, figures[i].value);
	gp_json_writer_bool(writer, "exact", times->is_exact);
	gp_json_writer_end(writer, '}');
}

static void json_names(struct gp_json_writer *writer, const struct gp_report *report, const char *key,
		       const struct gp_report_name *names, uint64_t count)
{
	gp_json_writer_begin(writer, key, '[');
	for (uint64_t i = 0; i < count && (!report->top || i < report->top); i++) {
		const struct gp_report_name *name = &names[i];

		gp_json_writer_begin(writer, NULL, '{');
		gp_json_writer_string(writer, "name", name->name);
		gp_json_writer_string(writer, "layer", name->layer);
		json_known(writer, "rank", name->rank, name->rank - 1u);
		json_known(writer, "process", name->has_pid, name->pid);
		gp_json_writer_u64(writer, "count", name->count);
		gp_json_writer_u64(writer, "total_ns", name->total_ns);
		gp_json_writer_u64(writer, "self_ns", name->self_ns);
		json_known(writer, "min_ns", name->has_spread, name->min_ns);
		json_known(writer, "median_ns", name->has_spread, name->median_ns);
		if (name->has_spread)
			gp_json_writer_bool(writer, "median_exact", name->is_exact);
		else
			gp_json_writer_null(writer, "median_exact");
		json_known(writer, "max_ns", name->has_spread, name->max_ns);
		json_known(writer, "bytes", name->has_size, name->size);
		json_known(writer, "wait_ns", name->has_wait, name->wait_ns);
		gp_json_writer_end(writer, '}');
	}
	gp_json_writer_end(writer, ']');
}

static void json_threads(struct gp_json_writer *writer, const struct gp_report *report)
{
	gp_json_writer_begin(writer, "threads", '[');
	for (uint32_t i = 0; i < report->thread_count; i++) {
		const struct gp_report_thread *thread = &report->threads[i];

		gp_json_writer_begin(writer, NULL, '{');
		json_known(writer, "rank", thread->rank, thread->rank - 1u);
		json_known(writer, "process", thread->has_pid, thread->pid);
		json_known(writer, "thread", thread->has_tid, thread->tid);
		gp_json_writer_u64(writer, "calls", thread->calls);
		gp_json_writer_u64(writer, "span_ns", thread->span_ns);
		gp_json_writer_begin(writer, "self_ns", '{');
		for (int j = 0; j < GP_REPORT_LAYER_COUNT; j++)
			json_known(writer, gp_report_layer_name(report, j), report->layers[j].is_traced,
				   thread->self_ns[j]);
		gp_json_writer_end(writer, '}');
		gp_json_writer_end(writer, '}');
	}
	gp_json_writer_end(writer, ']');
	gp_json_writer_begin(writer, "processes", '[');
	for (uint32_t i = 0; i < report->process_count; i++) {
		const struct gp_report_process *process = &report->processes[i];

		gp_json_writer_begin(writer, NULL, '{');
		json_known(writer, "rank", process->rank, process->rank - 1u);
		json_known(writer, "process", process->has_pid, process->pid);
		gp_json_writer_u64(writer, "calls", process->calls);
		gp_json_writer_u64(writer, "kernels", process->kernels);
		gp_json_writer_u64(writer, "copies", process->copies);
		gp_json_writer_u64(writer, "queues", process->queues);
		json_known(writer, "gpu_ns", process->kernels || process->copies, process->gpu_ns);
		json_known(writer, "behind_others_ns", process->has_behind, process->behind_ns);
		gp_json_writer_end(writer, '}');
	}
	gp_json_writer_end(writer, ']');
}

static void json_queues(struct gp_json_writer *writer, const struct gp_report *report)
{
	gp_json_writer_begin(writer, "devices", '[');
	for (uint32_t i = 0; i < report->device_count; i++) {
		const struct gp_report_device *device = &report->devices[i];

		gp_json_writer_begin(writer, NULL, '{');
		json_known(writer, "rank", device->rank, device->rank - 1u);
		json_known(writer, "device", device->has_device, device->device);
		json_known(writer, "compute_units", device->has_cu_count, device->cu_count);
		gp_json_writer_u64(writer, "busy_ns", device->busy_ns);
		json_known(writer, "compute_ns", device->has_kernels, device->compute_ns);
		json_known(writer, "copy_ns", device->has_copies, device->copy_ns);
		json_known(writer, "kernel_sum_ns", device->has_kernels, device->kernel_sum_ns);
		gp_json_writer_u64(writer, "span_ns", device->span_ns);
		gp_json_writer_u64(writer, "queues", device->queues);
		gp_json_writer_end(writer, '}');
	}
	gp_json_writer_end(writer, ']');
	gp_json_writer_begin(writer, "queues", '[');
	for (uint32_t i = 0; i < report->queue_count; i++) {
		const struct gp_report_queue *queue = &report->queues[i];

		gp_json_writer_begin(writer, NULL, '{');
		gp_json_writer_string(writer, "kind", queue->is_copy ? "copy" : "compute");
		json_known(writer, "rank", queue->rank, queue->rank - 1u);
		json_known(writer, "device", queue->has_device, queue->device);
		json_known(writer, "queue", queue->has_queue, queue->queue);
		json_known(writer, "process", queue->has_pid, queue->pid);
		json_known(writer, "streams", queue->stream_count, queue->stream_count);
		gp_json_writer_u64(writer, "count", queue->count);
		gp_json_writer_u64(writer, "busy_ns", queue->busy_ns);
		gp_json_writer_u64(writer, "overlap_ns", queue->sum_ns - queue->busy_ns);
		gp_json_writer_u64(writer, "gaps", queue->gap_count);
		gp_json_writer_u64(writer, "gap_ns", queue->gap_ns);
		gp_json_writer_u64(writer, "gap_max_ns", queue->gap_ns_max);
		gp_json_writer_end(writer, '}');
	}
	gp_json_writer_end(writer, ']');
}

static void json_cold(struct gp_json_writer *writer, const struct gp_report *report)
{
	gp_json_writer_begin(writer, "cold_start", '{');
	json_known(writer, "total_ns", report->has_cold, report->cold_ns);
	gp_json_writer_begin(writer, "calls", '[');
	for (uint32_t i = 0; i < report->cold_count && (!report->top || i < report->top); i++) {
		const struct gp_report_cold *cold = &report->colds[i];

		gp_json_writer_begin(writer, NULL, '{');
		gp_json_writer_string(writer, "name", cold->name);
		json_known(writer, "process", cold->has_pid, cold->pid);
		gp_json_writer_u64(writer, "first_ns", cold->first_ns);
		json_known(writer, "gpu_ns", report->has_gpu, cold->engine_ns);
		gp_json_writer_u64(writer, "later_count", cold->later_count);
		json_known(writer, "later_ns", cold->later_count, cold->later_ns);
		gp_json_writer_u64(writer, "excess_ns", cold->excess_ns);
		json_known(writer, "silent_ns", report->layers[GP_REPORT_HSA].is_traced, cold->silent_ns);
		gp_json_writer_string(writer, "file", cold->file);
		gp_json_writer_u64(writer, "row", cold->row);
		gp_json_writer_end(writer, '}');
	}
	gp_json_writer_end(writer, ']');
	gp_json_writer_end(writer, '}');
}

static void json_path(struct gp_json_writer *writer, const struct gp_report *report)
{
	gp_json_writer_begin(writer, "critical_path", '{');
	gp_json_writer_u64(writer, "total_ns", report->path_ns);
	gp_json_writer_begin(writer, "shares", '[');
	for (uint32_t i = 0; i < report->share_count && (!report->top || i < report->top); i++) {
		gp_json_writer_begin(writer, NULL, '{');
		gp_json_writer_string(writer, "kind", gp_report_step_names[report->shares[i].kind]);
		gp_json_writer_string(writer, "name", report->shares[i].name);
		gp_json_writer_u64(writer, "ns", report->shares[i].ns);
		gp_json_writer_u64(writer, "count", report->shares[i].count);
		gp_json_writer_end(writer, '}');
	}
	gp_json_writer_end(writer, ']');
	gp_json_writer_begin(writer, "longest_steps", '[');
	for (uint32_t i = 0; i < report->step_count; i++) {
		gp_json_writer_begin(writer, NULL, '{');
		gp_json_writer_string(writer, "kind", gp_report_step_names[report->steps[i].kind]);
		gp_json_writer_string(writer, "name", report->steps[i].name);
		gp_json_writer_u64(writer, "start_ns", report->steps[i].start_ns);
		gp_json_writer_u64(writer, "end_ns", report->steps[i].end_ns);
		gp_json_writer_end(writer, '}');
	}
	gp_json_writer_end(writer, ']');
	gp_json_writer_end(writer, '}');
}

static void json_findings(struct gp_json_writer *writer, const struct gp_report *report)
{
	static const char *const states[] = { "seen", "inferred", "not visible" };

	gp_json_writer_begin(writer, "findings", '[');
	for (uint32_t i = 0; i < report->finding_count; i++) {
		const struct gp_report_finding *finding = &report->findings[i];

		gp_json_writer_begin(writer, NULL, '{');
		gp_json_writer_string(writer, "id", finding->id);
		gp_json_writer_string(writer, "title", finding->title);
		gp_json_writer_string(writer, "confidence", gp_report_confidence_names[finding->confidence]);
		gp_json_writer_decimal(writer, "share", finding->share_ppm, 6);
		gp_json_writer_string(writer, "text", finding->text);
		gp_json_writer_string(writer, "advice", finding->advice);
		gp_json_writer_end(writer, '}');
	}
	gp_json_writer_end(writer, ']');
	gp_json_writer_begin(writer, "checks", '[');
	for (uint32_t i = 0; i < report->check_count; i++) {
		gp_json_writer_begin(writer, NULL, '{');
		gp_json_writer_string(writer, "title", report->checks[i].title);
		gp_json_writer_string(writer, "state", states[report->checks[i].state]);
		if (report->checks[i].evidence[0])
			gp_json_writer_string(writer, "evidence", report->checks[i].evidence);
		else
			gp_json_writer_null(writer, "evidence");
		gp_json_writer_end(writer, '}');
	}
	gp_json_writer_end(writer, ']');
	gp_json_writer_begin(writer, "notes", '[');
	for (uint32_t i = 0; i < report->warning_count; i++)
		gp_json_writer_string(writer, NULL, report->warnings[i]);
	gp_json_writer_end(writer, ']');
}

static void json_signs(struct gp_json_writer *writer, const struct gp_report *report)
{
	gp_json_writer_begin(writer, "kernel", '{');
	json_times(writer, "wait_from_dispatch", &report->wait_dispatch);
	json_times(writer, "wait_from_launch", &report->wait_launch);
	json_times(writer, "run", &report->run);
	json_times(writer, "completion", &report->completion);
	json_times(writer, "device_gap", &report->kernel_gap);
	gp_json_writer_end(writer, '}');
	json_times(writer, "copy", &report->copy_time);
	gp_json_writer_begin(writer, "signs", '{');
	gp_json_writer_u64(writer, "launches", report->launch_count);
	json_known(writer, "launches_joinable", report->correlated_launch_count, report->correlated_launch_count);
	json_known(writer, "launches_with_work", report->correlated_launch_count, report->joined_launch_count);
	json_known(writer, "kernels_with_launch", report->correlated_launch_count, report->joined_kernel_count);
	json_known(writer, "copies_with_call", report->correlated_launch_count || report->joined_copy_count,
		   report->joined_copy_count);
	gp_json_writer_u64(writer, "synchronisations", report->sync_count);
	gp_json_writer_u64(writer, "synchronised_launches", report->sync_after_launch_count);
	gp_json_writer_u64(writer, "copy_call_ns", report->copy_call_ns);
	json_known(writer, "idle_alone_ns", report->has_gpu && report->layers[0].is_traced, report->idle_alone_ns);
	json_known(writer, "idle_before_ns", report->has_gpu && report->layers[0].is_traced, report->idle_before_ns);
	json_known(writer, "idle_behind_ns", report->has_gpu && report->layers[0].is_traced, report->idle_behind_ns);
	json_known(writer, "idle_launched_ns", report->has_gpu && report->correlated_launch_count,
		   report->idle_launched_ns);
	json_known(writer, "small_copies", report->sized_copy_count, report->small_copy_count);
	json_known(writer, "tail_ns", report->has_tail, report->tail_ns);
	json_known(writer, "inversions", report->has_priorities, report->inversion_count);
	json_known(writer, "inversion_ns", report->has_priorities, report->inversion_ns);
	gp_json_writer_u64(writer, "oversubscribed", report->oversubscribed_count);
	gp_json_writer_u64(writer, "preemption_failed", report->preemption_failed_count);
	gp_json_writer_u64(writer, "resets", report->reset_count);
	gp_json_writer_u64(writer, "evictions", report->eviction_count);
	json_known(writer, "allocation_call_ns", report->layers[0].is_traced, report->alloc_call_ns);
	json_known(writer, "copy_wait_ns", report->kernel_count && report->layers[0].is_traced, report->copy_wait_ns);
	json_known(writer, "copy_wait_unknown_ns", report->kernel_count && report->layers[0].is_traced,
		   report->copy_wait_unknown_ns);
	json_known(writer, "collectives", report->kernel_count, report->collective_count);
	json_known(writer, "collective_ns", report->collective_count, report->collective_ns);
	json_known(writer, "exposed_ns", report->has_exposed, report->exposed_ns);
	json_known(writer, "collective_ns_min", report->collective_device_count > 1, report->collective_ns_min);
	json_known(writer, "collective_min_device", report->collective_device_count > 1, report->late_device);
	json_known(writer, "collective_min_rank", report->collective_device_count > 1 && report->late_rank,
		   report->late_rank - 1u);
	gp_json_writer_end(writer, '}');
}

static void json_rhythm(struct gp_json_writer *writer, const struct gp_report *report)
{
	json_times(writer, "step", &report->step);
	json_known(writer, "step_busy_ns", report->step.count, report->step_busy_ns);
	json_known(writer, "step_kernels", report->step.count, report->step_kernels);
	gp_json_writer_begin(writer, "idle", '[');
	for (uint32_t i = 0; i < report->idle_count && (!report->top || i < report->top); i++) {
		const struct gp_report_idle *idle = &report->idles[i];

		gp_json_writer_begin(writer, NULL, '{');
		gp_json_writer_u64(writer, "start_ns", idle->start_ns);
		gp_json_writer_u64(writer, "end_ns", idle->end_ns);
		json_text(writer, "range", idle->range);
		json_text(writer, "call", idle->call);
		gp_json_writer_end(writer, '}');
	}
	gp_json_writer_end(writer, ']');
}

static void json_report(struct gp_json_writer *writer, const char *key, const struct gp_report *report)
{
	gp_json_writer_begin(writer, key, '{');
	if (!key)
		gp_json_writer_u64(writer, "schema", JSON_SCHEMA);
	gp_json_writer_string(writer, "title", report->title);
	gp_json_writer_string(writer, "filter", report->filter);
	gp_json_writer_u64(writer, "wall_ns", report->wall_ns);
	json_known(writer, "first_ns", report->event_count, report->first_ns);
	gp_json_writer_u64(writer, "events", report->event_count);
	gp_json_writer_u64(writer, "duplicates", report->duplicate_count);
	json_files(writer, report);
	json_layers(writer, report);
	json_gpu(writer, report);
	json_signs(writer, report);
	json_rhythm(writer, report);
	json_cold(writer, report);
	json_findings(writer, report);
	json_path(writer, report);
	json_names(writer, report, "calls", report->calls, report->call_count);
	json_names(writer, report, "kernels", report->kernels, report->kernel_name_count);
	json_names(writer, report, "copies", report->copies, report->copy_name_count);
	json_names(writer, report, "ranges", report->markers, report->marker_count);
	json_names(writer, report, "summaries", report->summaries, report->summary_count);
	json_queues(writer, report);
	json_threads(writer, report);
	gp_json_writer_end(writer, '}');
}

int gp_report_json(FILE *stream, const struct gp_report *report)
{
	struct gp_json_writer writer;

	gp_json_writer_init(&writer, stream);
	json_report(&writer, NULL, report);
	return fflush(stream) || ferror(stream) ? -EIO : 0;
}

int gp_report_compare_json(FILE *stream, const struct gp_report *a, const struct gp_report *b)
{
	struct gp_json_writer writer;

	gp_json_writer_init(&writer, stream);
	gp_json_writer_begin(&writer, NULL, '{');
	gp_json_writer_u64(&writer, "schema", JSON_SCHEMA);
	json_report(&writer, "a", a);
	json_report(&writer, "b", b);
	gp_json_writer_end(&writer, '}');
	return fflush(stream) || ferror(stream) ? -EIO : 0;
}
