/* SPDX-License-Identifier: MIT */
/* Owns the report on a terminal: what to know first, then tables. Numbers first and names last, so that a narrow window
 * costs names only. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "lib/units.h"
#include "lib/utf8.h"
#include "view/format.h"
#include "view/report_view.h"
#include "view/symbol.h"

#define TEXT_WIDTH_MIN 60u
#define TEXT_WIDTH_MAX 200u
#define TEXT_CELL_SIZE 64u
#define TEXT_BAR_CELLS 48u
#define TEXT_BOLD      "\033[1m"
#define TEXT_DIM       "\033[2m"
#define TEXT_PLAIN     "\033[0m"

struct text {
	FILE *stream;
	bool colour;
	uint32_t width, top;
};

static const char *text_ns(uint64_t ns, char *buffer)
{
	return gp_units_format_ns(ns, buffer, TEXT_CELL_SIZE);
}

static uint64_t text_ppm(uint64_t part, uint64_t whole)
{
	return whole ? (uint64_t)((double)part * 1e6 / (double)whole + 0.5) : 0;
}

static const char *text_share(uint64_t part, uint64_t whole, char *buffer)
{
	if (!whole)
		(void)snprintf(buffer, TEXT_CELL_SIZE, "–");
	else
		(void)gp_format_share(text_ppm(part, whole), buffer, TEXT_CELL_SIZE);
	return buffer;
}

static void text_head(const struct text *text, const char *title)
{
	fprintf(text->stream, "\n%s%s%s\n", text->colour ? TEXT_BOLD : "", title, text->colour ? TEXT_PLAIN : "");
}

/* A cell with numbers, flush right. */
static void text_cell(const struct text *text, const char *cell, size_t width)
{
	size_t has = gp_utf8_width(cell);

	fprintf(text->stream, "%*s%s  ", (int)(width > has ? width - has : 0), "", cell);
}

/* The last cell: as much of a name as the window has room for behind `used` columns. */
static void text_name(const struct text *text, const char *name, size_t used)
{
	size_t room = text->width > used + 12 ? text->width - used : 12;
	char cut[TEXT_WIDTH_MAX * 4 + 4];

	fprintf(text->stream, "%s\n", gp_format_cut(name, room, cut, sizeof(cut)));
}

/* Words that wrap at the window's edge, indented. */
static void text_wrap(const struct text *text, const char *words, uint32_t indent)
{
	size_t column = 0;

	while (*words) {
		size_t length = strcspn(words, " "), width;
		char word[256];

		(void)snprintf(word, sizeof(word), "%.*s", (int)(length < sizeof(word) ? length : sizeof(word) - 1),
			       words);
		width = gp_utf8_width(word);
		if (column && column + 1 + width > text->width - indent) {
			fputc('\n', text->stream);
			column = 0;
		}
		fprintf(text->stream, "%*s%s", column ? 1 : (int)indent, "", word);
		column += width + (column ? 1 : 0);
		words += length;
		words += strspn(words, " ");
	}
	fputc('\n', text->stream);
}

static void text_files(const struct text *text, const struct gp_report *report)
{
	char count[TEXT_CELL_SIZE], wall[TEXT_CELL_SIZE];

	fprintf(text->stream, "%s%s%s\n", text->colour ? TEXT_BOLD : "", report->title, text->colour ? TEXT_PLAIN : "");
	fprintf(text->stream, "%s events over %s", gp_format_count(report->event_count, count, sizeof(count)),
		text_ns(report->wall_ns, wall));
	if (report->is_filtered)
		fprintf(text->stream, ", %s", report->filter);
	fputc('\n', text->stream);
	for (uint32_t i = 0; i < report->file_count && i < 20; i++) {
		const struct gp_report_file *file = &report->files[i];
		char name[512];

		fprintf(text->stream, "  %s: %s, %s events%s\n",
			gp_format_cut(file->name, text->width > 70 ? text->width - 50 : 20, name, sizeof(name)),
			file->format, gp_format_count(file->events, count, sizeof(count)),
			file->is_unproven ? " (this format: not seen on a real file)" : "");
	}
	if (report->file_count > 20)
		fprintf(text->stream, "  and %" PRIu32 " more files\n", report->file_count - 20);
}

static void text_layers(const struct text *text, const struct gp_report *report)
{
	char self[TEXT_CELL_SIZE], share[TEXT_CELL_SIZE];

	if (!report->layers[GP_REPORT_APPLICATION].is_traced)
		return;
	text_head(text, "Where the time went (self time: each moment belongs to the lowest layer that is active)");
	for (int i = 0; i < GP_REPORT_LAYER_COUNT; i++) {
		const struct gp_report_layer *layer = &report->layers[i];
		uint64_t cells = text_ppm(layer->self_ns, report->wall_ns) * TEXT_BAR_CELLS / 1000000u;

		if (!layer->is_traced) {
			if (i == GP_REPORT_HIP || (i == GP_REPORT_HSA && !report->has_cuda))
				fprintf(text->stream, "  %-11s  not in this trace: its time is in the layer above\n",
					gp_report_layer_name(report, i));
			continue;
		}
		fprintf(text->stream, "  %-11s  ", gp_report_layer_name(report, i));
		text_cell(text, text_ns(layer->self_ns, self), 8);
		text_cell(text, text_share(layer->self_ns, report->wall_ns, share), 7);
		for (uint64_t j = 0; j < cells && text->width >= 90; j++)
			fputs("█", text->stream);
		if (text->width >= 90 && !cells && layer->self_ns)
			fputs("▏", text->stream);
		fputc('\n', text->stream);
	}
}

static void text_gpu(const struct text *text, const struct gp_report *report)
{
	char busy[TEXT_CELL_SIZE], share[TEXT_CELL_SIZE], compute[TEXT_CELL_SIZE], copy[TEXT_CELL_SIZE],
		kernels[TEXT_CELL_SIZE], copies[TEXT_CELL_SIZE];

	if (!report->has_gpu) {
		fprintf(text->stream, "\nThe trace has neither kernels nor copies: what the GPU did is unknown.\n");
		return;
	}
	fprintf(text->stream, "\nGPU busy %s (%s of the run): ", text_ns(report->gpu_busy_ns, busy),
		text_share(report->gpu_busy_ns, report->wall_ns, share));
	if (report->kernel_count)
		fprintf(text->stream, "kernels %s (%s), ", text_ns(report->compute_ns, compute),
			gp_format_count(report->kernel_count, kernels, sizeof(kernels)));
	else
		fprintf(text->stream, "no kernels in this trace, ");
	if (report->copy_count)
		fprintf(text->stream, "copies %s (%s)\n", text_ns(report->copy_ns, copy),
			gp_format_count(report->copy_count, copies, sizeof(copies)));
	else
		fprintf(text->stream, "no copies in this trace\n");
}

/* "~" in front of an estimate. */
static const char *text_quantile(const struct gp_report_times *times, uint64_t ns, char *buffer)
{
	char plain[TEXT_CELL_SIZE - 1];

	(void)snprintf(buffer, TEXT_CELL_SIZE, "%s%s", times->is_exact ? "" : "~",
		       gp_units_format_ns(ns, plain, sizeof(plain)));
	return buffer;
}

static void text_times(const struct text *text, const char *label, const struct gp_report_times *times)
{
	char mean[TEXT_CELL_SIZE], p50[TEXT_CELL_SIZE], p99[TEXT_CELL_SIZE], max[TEXT_CELL_SIZE];

	if (!times->count)
		return;
	fprintf(text->stream, "  %-34s  ", label);
	text_cell(text, text_ns(times->sum_ns / times->count, mean), 8);
	text_cell(text, text_quantile(times, times->p50_ns, p50), 8);
	text_cell(text, text_quantile(times, times->p99_ns, p99), 8);
	text_cell(text, text_ns(times->max_ns, max), 8);
	fputc('\n', text->stream);
}

static void text_latency(const struct text *text, const struct gp_report *report)
{
	if (!report->kernel_count)
		return;
	text_head(text, "A kernel's way                            mean    median       p99       max");
	text_times(text, "wait, packet written to start", &report->wait_dispatch);
	text_times(text, "wait, launch call to start", &report->wait_launch);
	if (!report->wait_dispatch.count && !report->wait_launch.count)
		fprintf(text->stream, "  wait                                not in this trace\n");
	text_times(text, "run", &report->run);
	text_times(text, "completion, end to seen by the host", &report->completion);
	text_times(text, "device idle between kernels", &report->kernel_gap);
	text_times(text, "step, from wait to wait of the host", &report->step);
	if (report->correlated_launch_count && report->joined_launch_count < report->correlated_launch_count) {
		char share[TEXT_CELL_SIZE];

		fprintf(text->stream, "  %s of the launches have their work in the trace\n",
			text_share(report->joined_launch_count, report->correlated_launch_count, share));
	}
}

static void text_findings(const struct text *text, const struct gp_report *report)
{
	text_head(text, "Findings");
	if (!report->finding_count)
		fprintf(text->stream, "  Nothing stands out.\n");
	for (uint32_t i = 0; i < report->finding_count; i++) {
		const struct gp_report_finding *finding = &report->findings[i];

		fprintf(text->stream, "%s%" PRIu32 ". %s%s  [%s confidence]\n", text->colour ? TEXT_BOLD : "", i + 1,
			finding->title, text->colour ? TEXT_PLAIN : "",
			gp_report_confidence_names[finding->confidence]);
		text_wrap(text, finding->text, 3);
		fputs(text->colour ? TEXT_DIM : "", text->stream);
		text_wrap(text, finding->advice, 3);
		fputs(text->colour ? TEXT_PLAIN : "", text->stream);
	}
}

static uint32_t text_rows(const struct text *text, uint32_t count)
{
	return text->top && count > text->top ? text->top : count;
}

static void text_more(const struct text *text, uint32_t count)
{
	uint32_t rows = text_rows(text, count);

	if (rows < count)
		fprintf(text->stream, "  … %" PRIu32 " more (--top %" PRIu32 ")\n", count - rows, count);
}

static const char *text_id(bool is_known, uint64_t id, char *buffer)
{
	if (is_known)
		(void)snprintf(buffer, TEXT_CELL_SIZE, "%" PRIu64, id);
	else
		(void)snprintf(buffer, TEXT_CELL_SIZE, "?");
	return buffer;
}

/* "3:0" is number 0 of rank 3. */
static const char *text_rank_id(uint32_t rank, bool is_known, uint64_t id, char *buffer)
{
	int used = rank ? snprintf(buffer, TEXT_CELL_SIZE, "%" PRIu32 ":", rank - 1) : 0;

	if (is_known)
		(void)snprintf(buffer + used, TEXT_CELL_SIZE - (size_t)used, "%" PRIu64, id);
	else
		(void)snprintf(buffer + used, TEXT_CELL_SIZE - (size_t)used, "?");
	return buffer;
}

static void text_names(const struct text *text, const struct gp_report *report, const char *title,
		       const struct gp_report_name *names, uint32_t count)
{
	char cell[TEXT_CELL_SIZE], label[1300], symbol[1200];
	const char *shown;
	static const char *const whole[] = { "kernel", "copy", "marker", "memory" }; /* nothing is taken out of these */
	bool is_engine = false;

	if (!count)
		return;
	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		is_engine |= !strcmp(names[0].layer, whole[i]);
	text_head(text, title);
	fprintf(text->stream, "      %s    share     calls      mean       max  name\n", is_engine ? "time" : "self");
	for (uint32_t i = 0; i < text_rows(text, count); i++) {
		const struct gp_report_name *name = &names[i];

		fputs("  ", text->stream);
		text_cell(text, text_ns(name->self_ns, cell), 8);
		text_cell(text, text_share(name->self_ns, report->wall_ns, cell), 7);
		text_cell(text, gp_format_count(name->count, cell, sizeof(cell)), 8);
		text_cell(text, text_ns(name->count ? name->total_ns / name->count : 0, cell), 8);
		text_cell(text, name->has_spread ? text_ns(name->max_ns, cell) : "?", 8);
		shown = name->is_kernel ? gp_symbol_short(name->name, symbol, sizeof(symbol)) : name->name;
		if (report->process_count > 1 && name->has_pid)
			(void)snprintf(label, sizeof(label), "%s [%s]", shown,
				       text_rank_id(name->rank, true, name->pid, cell));
		else
			(void)snprintf(label, sizeof(label), "%s", shown);
		if (name->has_size && name->total_ns) {
			char size[TEXT_CELL_SIZE];
			size_t used = strlen(label);

			(void)snprintf(label + used, sizeof(label) - used, ", %s, %" PRIu64 ".%02" PRIu64 " GB/s",
				       gp_units_format_size(name->size, size, sizeof(size)),
				       name->size / name->total_ns, name->size * 100 / name->total_ns % 100);
		}
		text_name(text, label, 53);
	}
	text_more(text, count);
}

static void text_colds(const struct text *text, const struct gp_report *report)
{
	char cell[TEXT_CELL_SIZE];

	if (!report->cold_count)
		return;
	text_head(text, "First calls against later ones (outermost calls)");
	fprintf(text->stream, "     first  GPU in it     later      cost  silent in it  call\n");
	for (uint32_t i = 0; i < text_rows(text, report->cold_count); i++) {
		const struct gp_report_cold *cold = &report->colds[i];

		fputs("  ", text->stream);
		text_cell(text, text_ns(cold->first_ns, cell), 8);
		text_cell(text, report->has_gpu ? text_ns(cold->engine_ns, cell) : "?", 9);
		text_cell(text, cold->later_count ? text_ns(cold->later_ns, cell) : "once", 8);
		text_cell(text, text_ns(cold->excess_ns, cell), 8);
		text_cell(text, report->layers[GP_REPORT_HSA].is_traced ? text_ns(cold->silent_ns, cell) : "?", 12);
		text_name(text, cold->name, 57);
	}
	text_more(text, report->cold_count);
}

static void text_idles(const struct text *text, const struct gp_report *report)
{
	char cell[TEXT_CELL_SIZE], label[2300];

	if (!report->idle_count || !report->layers[GP_REPORT_APPLICATION].is_traced)
		return;
	text_head(text, "Longest stretches without work on the GPU, and what the host was in meanwhile");
	for (uint32_t i = 0; i < text_rows(text, report->idle_count); i++) {
		const struct gp_report_idle *idle = &report->idles[i];

		fputs("  ", text->stream);
		text_cell(text, text_ns(idle->end_ns - idle->start_ns, cell), 8);
		fputs("at ", text->stream);
		text_cell(text, text_ns(idle->start_ns, cell), 8);
		(void)snprintf(label, sizeof(label), "%.1100s%s%.1100s", idle->range ? idle->range : "",
			       idle->range && idle->call ? ", in " : "", idle->call ? idle->call : "");
		text_name(text, label[0] ? label : "no call, no range", 26);
	}
	text_more(text, report->idle_count);
}

static void text_queues(const struct text *text, const struct gp_report *report)
{
	char cell[TEXT_CELL_SIZE];

	if (!report->queue_count)
		return;
	text_head(text, "Queues and copy engines");
	fprintf(text->stream,
		"  device     queue  streams   process      work      busy    share  gaps       idle between\n");
	for (uint32_t i = 0; i < text_rows(text, report->queue_count); i++) {
		const struct gp_report_queue *queue = &report->queues[i];

		fputs("  ", text->stream);
		text_cell(text, text_rank_id(queue->rank, queue->has_device, queue->device, cell), 6);
		if (queue->is_copy && !queue->has_queue)
			text_cell(text, "copies", 8);
		else
			text_cell(text, text_id(queue->has_queue, queue->queue, cell), 8);
		text_cell(text, text_id(queue->stream_count, queue->stream_count, cell), 7);
		text_cell(text, text_rank_id(queue->rank, queue->has_pid, queue->pid, cell), 8);
		text_cell(text, gp_format_count(queue->count, cell, sizeof(cell)), 8);
		text_cell(text, text_ns(queue->busy_ns, cell), 8);
		text_cell(text, text_share(queue->busy_ns, report->wall_ns, cell), 7);
		text_cell(text, gp_format_count(queue->gap_count, cell, sizeof(cell)), 4);
		text_cell(text, text_ns(queue->gap_ns, cell), 10);
		fputc('\n', text->stream);
	}
	text_more(text, report->queue_count);
}

static void text_processes(const struct text *text, const struct gp_report *report)
{
	char cell[TEXT_CELL_SIZE];

	if (report->process_count > 1) {
		text_head(text, "Processes");
		fprintf(text->stream,
			"   process     calls   kernels    copies  queues  GPU time  waited while others ran\n");
		for (uint32_t i = 0; i < text_rows(text, report->process_count); i++) {
			const struct gp_report_process *process = &report->processes[i];

			fputs("  ", text->stream);
			text_cell(text, text_rank_id(process->rank, process->has_pid, process->pid, cell), 8);
			text_cell(text, gp_format_count(process->calls, cell, sizeof(cell)), 8);
			text_cell(text, gp_format_count(process->kernels, cell, sizeof(cell)), 8);
			text_cell(text, gp_format_count(process->copies, cell, sizeof(cell)), 8);
			text_cell(text, gp_format_count(process->queues, cell, sizeof(cell)), 6);
			text_cell(text, text_ns(process->gpu_ns, cell), 8);
			text_cell(text, process->has_behind ? text_ns(process->behind_ns, cell) : "?", 8);
			fputc('\n', text->stream);
		}
		text_more(text, report->process_count);
	}
	if (report->thread_count < 2)
		return;
	text_head(text, "Threads (self time)");
	fprintf(text->stream, "   process    thread     calls      span  application   library  %8s       HSA\n",
		report->has_cuda ? report->has_hip ? "HIP+CUDA" : "CUDA" : "HIP");
	for (uint32_t i = 0; i < text_rows(text, report->thread_count); i++) {
		const struct gp_report_thread *thread = &report->threads[i];

		fputs("  ", text->stream);
		text_cell(text, text_rank_id(thread->rank, thread->has_pid, thread->pid, cell), 8);
		text_cell(text, text_id(thread->has_tid, thread->tid, cell), 8);
		text_cell(text, gp_format_count(thread->calls, cell, sizeof(cell)), 8);
		text_cell(text, text_ns(thread->span_ns, cell), 8);
		text_cell(text, text_ns(thread->self_ns[GP_REPORT_APPLICATION], cell), 11);
		for (int j = GP_REPORT_LIBRARY; j <= GP_REPORT_HSA; j++)
			text_cell(text, report->layers[j].is_traced ? text_ns(thread->self_ns[j], cell) : "?", 8);
		fputc('\n', text->stream);
	}
	text_more(text, report->thread_count);
}

static void text_path(const struct text *text, const struct gp_report *report)
{
	char cell[TEXT_CELL_SIZE], label[1200];

	if (!report->share_count)
		return;
	text_head(text, "Critical path, by what is on it (adds up to the run)");
	for (uint32_t i = 0; i < text_rows(text, report->share_count); i++) {
		const struct gp_report_share *share = &report->shares[i];

		fputs("  ", text->stream);
		text_cell(text, text_ns(share->ns, cell), 8);
		text_cell(text, text_share(share->ns, report->path_ns, cell), 7);
		text_cell(text, gp_format_count(share->count, cell, sizeof(cell)), 8);
		text_name(text, gp_report_step_text(share->kind, share->name, label, sizeof(label)), 33);
	}
	text_more(text, report->share_count);
}

static void text_checks(const struct text *text, const struct gp_report *report)
{
	static const char *const states[] = { "✓ ", "~ ", "– " };

	text_head(text, "The way of a kernel: ✓ seen, ~ inferred, – not visible in this trace");
	for (uint32_t i = 0; i < report->check_count; i++) {
		const struct gp_report_check *check = &report->checks[i];

		fprintf(text->stream, "  %s", states[check->state]);
		fprintf(text->stream, "%s%s", check->title, check->evidence[0] ? ": " : "");
		text_name(text, check->evidence[0] ? check->evidence : ": not visible in this trace",
			  6 + strlen(check->title));
	}
}

int gp_report_text(FILE *stream, const struct gp_report *report, const struct gp_report_style *style)
{
	struct text text = { .stream = stream, .colour = style->colour, .top = report->top };

	text.width = style->width < TEXT_WIDTH_MIN ? TEXT_WIDTH_MIN : style->width;
	text.width = text.width > TEXT_WIDTH_MAX ? TEXT_WIDTH_MAX : text.width;
	text_files(&text, report);
	if (report->event_count) {
		text_layers(&text, report);
		text_gpu(&text, report);
		text_findings(&text, report);
		text_colds(&text, report);
		text_latency(&text, report);
		text_names(&text, report, "Calls by self time", report->calls, report->call_count);
		text_names(&text, report, "Kernels", report->kernels, report->kernel_name_count);
		text_names(&text, report, "Copies", report->copies, report->copy_name_count);
		text_names(&text, report, "Ranges and allocations", report->markers, report->marker_count);
		text_idles(&text, report);
		text_queues(&text, report);
		text_processes(&text, report);
		text_path(&text, report);
		text_checks(&text, report);
	} else {
		fprintf(stream, "There is no call, kernel or copy in it.\n");
		if (report->finding_count)
			text_findings(&text, report);
	}
	text_names(&text, report, "Statistics files (totals as they say; calls may be nested)", report->summaries,
		   (uint32_t)report->summary_count);
	for (uint32_t i = 0; i < report->warning_count; i++) {
		fputs(i ? "" : "\n", stream);
		fputs("note: ", stream);
		text_wrap(&text, report->warnings[i], 0);
	}
	return fflush(stream) || ferror(stream) ? -EIO : 0;
}
