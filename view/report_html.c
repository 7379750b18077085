/* SPDX-License-Identifier: MIT */
/* Owns the report as one HTML file that needs no network: the layer bar, the findings, a timeline that zooms, tables
 * that sort, the critical path. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "lib/units.h"
#include "view/format.h"
#include "view/report_view.h"
#include "view/symbol.h"
#include "view/report_html_style.h"

#define HTML_CELL 48u
#define HTML_ROWS 200u /* of a table, unless --top says otherwise */
#define HTML_LANE 22u  /* pixels */
#define HTML_FULL 1000000u
#define HTML_NAME 110u /* columns of a kernel's name */

static const char *html_ns(uint64_t ns, char *buffer)
{
	return gp_units_format_ns(ns, buffer, HTML_CELL);
}

static uint64_t html_ppm(uint64_t part, uint64_t whole)
{
	return whole ? (uint64_t)((double)part * 1e6 / (double)whole + 0.5) : 0;
}

static uint32_t html_rows(const struct gp_report *report, uint64_t count)
{
	uint32_t most = report->top > HTML_ROWS || !report->top ? report->top : HTML_ROWS;

	return most && count > most ? most : (uint32_t)count;
}

static void html_header(FILE *stream, const struct gp_report *report)
{
	char wall[HTML_CELL], count[HTML_CELL];

	fputs("<header>\n<p class=\"eyebrow\">gpreempt report</p>\n<h1>", stream);
	gp_format_html(stream, report->title);
	fprintf(stream, "</h1>\n<p class=\"eyebrow\">%s events over %s",
		gp_format_count(report->event_count, count, sizeof(count)), html_ns(report->wall_ns, wall));
	if (report->is_filtered) {
		fputs(", ", stream);
		gp_format_html(stream, report->filter);
	}
	fputs("</p>\n<ul class=\"files\">\n", stream);
	for (uint32_t i = 0; i < report->file_count; i++) {
		fputs("<li>", stream);
		gp_format_html(stream, report->files[i].name);
		fprintf(stream, ": %s, %s events%s</li>\n", report->files[i].format,
			gp_format_count(report->files[i].events, count, sizeof(count)),
			report->files[i].is_unproven ? " (this format: not seen on a real file)" : "");
	}
	fputs("</ul>\n</header>\n", stream);
}

static void html_layers(FILE *stream, const struct gp_report *report)
{
	char self[HTML_CELL], share[HTML_CELL];

	fputs("<section>\n<h2>Where the time went</h2>\n<p class=\"caption\">Self time: each moment belongs to the lowest layer "
	      "that is active, so that nothing counts twice.</p>\n",
	      stream);
	if (!report->layers[GP_REPORT_APPLICATION].is_traced) {
		fputs("<p>There are no calls in this trace: what the host did is unknown.</p>\n", stream);
	} else {
		fputs("<div class=\"card\"><div class=\"bar\" id=\"layers\" role=\"img\" aria-label=\"time by layer\">",
		      stream);
		for (int i = 0; i < GP_REPORT_LAYER_COUNT; i++)
			if (report->layers[i].is_traced)
				fprintf(stream, "<i class=\"l%d\" style=\"width:%.4f%%\"></i>", i,
					(double)html_ppm(report->layers[i].self_ns, report->wall_ns) / 1e4);
		fputs("</div>\n<ul class=\"legend\">\n", stream);
		for (int i = 0; i < GP_REPORT_LAYER_COUNT; i++) {
			if (report->layers[i].is_traced)
				fprintf(stream, "<li><i class=\"l%d\"></i>%s %s, %s</li>\n", i,
					gp_report_layer_name(report, i), html_ns(report->layers[i].self_ns, self),
					gp_format_share(html_ppm(report->layers[i].self_ns, report->wall_ns), share,
							sizeof(share)));
			else if (i == GP_REPORT_HIP || (i == GP_REPORT_HSA && !report->has_cuda))
				fprintf(stream, "<li>%s: not in this trace</li>\n", gp_report_layer_name(report, i));
		}
		fputs("</ul></div>\n", stream);
	}
	if (report->has_gpu) {
		char busy[HTML_CELL], compute[HTML_CELL], copy[HTML_CELL];

		fprintf(stream,
			"<p>The GPU was busy for <b>%s</b> (%s of the run): kernels %s, copies %s. Engine time is not part of the "
			"bar: it runs beside the calls.</p>\n",
			html_ns(report->gpu_busy_ns, busy),
			gp_format_share(html_ppm(report->gpu_busy_ns, report->wall_ns), share, sizeof(share)),
			report->kernel_count ? html_ns(report->compute_ns, compute) : "not in this trace",
			report->copy_count ? html_ns(report->copy_ns, copy) : "not in this trace");
	} else {
		fputs("<p>There are neither kernels nor copies in this trace: what the GPU did is unknown.</p>\n",
		      stream);
	}
	fputs("</section>\n", stream);
}

static void html_findings(FILE *stream, const struct gp_report *report)
{
	fputs("<section>\n<h2>Findings</h2>\n<ol class=\"findings\">\n", stream);
	for (uint32_t i = 0; i < report->finding_count; i++) {
		const struct gp_report_finding *finding = &report->findings[i];

		fputs("<li><b>", stream);
		gp_format_html(stream, finding->title);
		fprintf(stream, "</b><span class=\"tag\">%s confidence</span><p>",
			gp_report_confidence_names[finding->confidence]);
		gp_format_html(stream, finding->text);
		fputs("</p><p class=\"do\">", stream);
		gp_format_html(stream, finding->advice);
		fputs("</p></li>\n", stream);
	}
	fputs("</ol>\n", stream);
	if (!report->finding_count)
		fputs("<p>Nothing stands out.</p>\n", stream);
	fputs("</section>\n", stream);
}

static void html_slice(FILE *stream, const struct gp_report *report, const struct gp_report_slice *slice)
{
	double start = (double)slice->start_ns * HTML_FULL / (double)report->wall_ns;
	double width = (double)(slice->end_ns - slice->start_ns) * HTML_FULL / (double)report->wall_ns;

	fprintf(stream,
		"<rect class=\"l%d%s\" x=\"%.3f\" y=\"%u\" width=\"%.3f\" height=\"%u\" data-s=\"%" PRIu64
		"\" data-d=\"%" PRIu64 "\" data-c=\"%" PRIu32 "\" data-n=\"",
		report->lanes[slice->lane].kind, width < HTML_FULL / 800.0 ? " thin" : "", start,
		slice->lane * HTML_LANE + 3, width, HTML_LANE - 6, slice->start_ns, slice->end_ns - slice->start_ns,
		slice->count);
	gp_format_html(stream, slice->name);
	fputs("\"/>\n", stream);
}

static void html_timeline(FILE *stream, const struct gp_report *report)
{
	if (!report->slice_count || !report->wall_ns)
		return;
	fputs("<section>\n<h2>Timeline</h2>\n<p class=\"caption\">One lane per thread and layer, one per hardware queue. The wheel "
	      "zooms, dragging moves; point at anything to read what it is. What is too short to see is merged; --from and --to "
	      "look closer.</p>\n<div class=\"card\"><div class=\"tools\"><button type=\"button\" data-zoom=\".5\" id=\"in\">zoom "
	      "in</button><button type=\"button\" data-zoom=\"2\" id=\"out\">zoom out</button><button type=\"button\" "
	      "data-zoom=\"left\" aria-label=\"earlier\">&larr;</button><button type=\"button\" data-zoom=\"right\" "
	      "aria-label=\"later\">&rarr;</button><button type=\"button\" data-zoom=\"all\" id=\"all\">all</button>"
	      "<output id=\"said\"></output></div>\n<div class=\"time\"><div class=\"names\">",
	      stream);
	for (uint32_t i = 0; i < report->lane_count; i++) {
		fputs("<div title=\"", stream);
		gp_format_html(stream, report->lanes[i].name);
		fputs("\">", stream);
		gp_format_html(stream, report->lanes[i].name);
		fputs("</div>", stream);
	}
	fprintf(stream,
		"</div>\n<svg id=\"t\" viewBox=\"0 0 %u %u\" height=\"%u\" preserveAspectRatio=\"none\" data-wall=\"%" PRIu64
		"\" role=\"img\" aria-label=\"timeline\">\n",
		HTML_FULL, report->lane_count * HTML_LANE, report->lane_count * HTML_LANE, report->wall_ns);
	for (uint32_t i = 0; i < report->slice_count; i++)
		html_slice(stream, report, &report->slices[i]);
	fputs("</svg><div class=\"axis\" id=\"axis\"></div></div></div>\n</section>\n", stream);
}

/* A table is begun with its heads ("n:" in front: text, flush left) and filled cell by cell. */
static void html_table(FILE *stream, const char *title, const char *caption, const char *const *heads)
{
	fprintf(stream, "<section>\n<h2>%s</h2>\n", title);
	if (caption)
		fprintf(stream, "<p class=\"caption\">%s</p>\n", caption);
	fputs("<div class=\"card scroll\"><table><thead><tr>", stream);
	for (; *heads; heads++) {
		bool is_name = !strncmp(*heads, "n:", 2);

		fprintf(stream, "<th%s><button type=\"button\">%s</button></th>", is_name ? " class=\"n\"" : "",
			*heads + (is_name ? 2 : 0));
	}
	fputs("</tr></thead><tbody>\n", stream);
}

static void html_table_end(FILE *stream, uint64_t count, uint32_t rows)
{
	fputs("</tbody></table></div>\n<p class=\"hint\">This table is wider than the window: it scrolls sideways.</p>\n",
	      stream);
	if (rows < count)
		fprintf(stream, "<p class=\"caption\">%" PRIu64 " more are left out (--top 0 shows all).</p>\n",
			count - rows);
	fputs("</section>\n", stream);
}

static void html_cell_ns(FILE *stream, bool is_known, uint64_t ns)
{
	char cell[HTML_CELL];

	if (is_known)
		fprintf(stream, "<td data-v=\"%" PRIu64 "\">%s</td>", ns, html_ns(ns, cell));
	else
		fputs("<td data-v=\"\">?</td>", stream);
}

static void html_cell_count(FILE *stream, bool is_known, uint64_t count)
{
	char cell[HTML_CELL];

	if (is_known)
		fprintf(stream, "<td data-v=\"%" PRIu64 "\">%s</td>", count,
			gp_format_count(count, cell, sizeof(cell)));
	else
		fputs("<td data-v=\"\">?</td>", stream);
}

static void html_cell_id(FILE *stream, bool is_known, uint64_t id)
{
	if (is_known)
		fprintf(stream, "<td data-v=\"%" PRIu64 "\">%" PRIu64 "</td>", id, id);
	else
		fputs("<td data-v=\"\">?</td>", stream);
}

static void html_cell_rank_id(FILE *stream, uint32_t rank, bool is_known, uint64_t id)
{
	if (rank && is_known)
		fprintf(stream, "<td data-v=\"%" PRIu64 "\">%" PRIu32 ":%" PRIu64 "</td>", id, rank - 1, id);
	else if (rank)
		fprintf(stream, "<td data-v=\"\">%" PRIu32 ":?</td>", rank - 1);
	else
		html_cell_id(stream, is_known, id);
}

static void html_cell_share(FILE *stream, uint64_t part, uint64_t whole)
{
	char cell[HTML_CELL];

	fprintf(stream, "<td data-v=\"%" PRIu64 "\">%s</td>", html_ppm(part, whole),
		gp_format_share(html_ppm(part, whole), cell, sizeof(cell)));
}

static void html_cell_text(FILE *stream, const char *text)
{
	fputs("<td class=\"n\">", stream);
	gp_format_html(stream, text);
	fputs("</td>", stream);
}

/* A kernel's name short and cut; the whole of it where one points. */
static void html_cell_symbol(FILE *stream, const char *name, const char *shown)
{
	char cut[HTML_NAME * 4];

	shown = gp_format_cut(shown, HTML_NAME, cut, sizeof(cut));
	if (!strcmp(shown, name)) {
		html_cell_text(stream, name);
		return;
	}
	fputs("<td class=\"n\" title=\"", stream);
	gp_format_html(stream, name);
	fputs("\">", stream);
	gp_format_html(stream, shown);
	fputs("</td>", stream);
}

static void html_names(FILE *stream, const struct gp_report *report, const char *title,
		       const struct gp_report_name *names, uint64_t count)
{
	static const char *const heads[] = { "n:name", "layer", "self", "share", "count", "total",
					     "mean",   "min",   "max",  "bytes", "wait",  NULL };
	uint32_t rows = html_rows(report, count);

	if (!count)
		return;
	html_table(stream, title, NULL, heads);
	for (uint32_t i = 0; i < rows; i++) {
		const struct gp_report_name *name = &names[i];
		char size[HTML_CELL], symbol[1200];

		fputs("<tr>", stream);
		html_cell_symbol(stream, name->name,
				 name->is_kernel ? gp_symbol_short(name->name, symbol, sizeof(symbol)) : name->name);
		fputs("<td>", stream);
		gp_format_html(stream, name->layer);
		fputs("</td>", stream);
		html_cell_ns(stream, true, name->self_ns);
		html_cell_share(stream, name->self_ns, report->wall_ns);
		html_cell_count(stream, true, name->count);
		html_cell_ns(stream, true, name->total_ns);
		html_cell_ns(stream, name->count, name->count ? name->total_ns / name->count : 0);
		html_cell_ns(stream, name->has_spread, name->min_ns);
		html_cell_ns(stream, name->has_spread, name->max_ns);
		if (name->has_size)
			fprintf(stream, "<td data-v=\"%" PRIu64 "\">%s</td>", name->size,
				gp_units_format_size(name->size, size, sizeof(size)));
		else
			fputs("<td data-v=\"\">–</td>", stream);
		if (name->has_wait)
			html_cell_ns(stream, true, name->wait_ns);
		else
			fputs("<td data-v=\"\">–</td>", stream);
		fputs("</tr>\n", stream);
	}
	html_table_end(stream, count, rows);
}

static void html_colds(FILE *stream, const struct gp_report *report)
{
	static const char *const heads[] = {
		"n:call", "first", "GPU in it", "later (median)", "cost of the first", "silent in it", "n:where", NULL
	};
	uint32_t rows = html_rows(report, report->cold_count);

	if (!report->cold_count)
		return;
	html_table(
		stream, "First calls against later ones",
		"Outermost calls. Cost: what the first took more than a later one, both without the time in which the GPU worked. "
		"Silent: the longest stretch inside without any traced call.",
		heads);
	for (uint32_t i = 0; i < rows; i++) {
		const struct gp_report_cold *cold = &report->colds[i];
		char where[1200];

		fputs("<tr>", stream);
		html_cell_text(stream, cold->name);
		html_cell_ns(stream, true, cold->first_ns);
		html_cell_ns(stream, report->has_gpu, cold->engine_ns);
		if (cold->later_count)
			html_cell_ns(stream, true, cold->later_ns);
		else
			fputs("<td data-v=\"\">called once</td>", stream);
		html_cell_ns(stream, true, cold->excess_ns);
		html_cell_ns(stream, report->layers[GP_REPORT_HSA].is_traced, cold->silent_ns);
		(void)snprintf(where, sizeof(where), "%s:%" PRIu64, cold->file, cold->row);
		html_cell_text(stream, where);
		fputs("</tr>\n", stream);
	}
	html_table_end(stream, report->cold_count, rows);
}

/* "~" in front of an estimate. */
static void html_cell_quantile(FILE *stream, const struct gp_report_times *times, uint64_t ns)
{
	char cell[HTML_CELL];

	fprintf(stream, "<td data-v=\"%" PRIu64 "\">%s%s</td>", ns, times->is_exact ? "" : "~", html_ns(ns, cell));
}

static void html_times_row(FILE *stream, const char *name, const struct gp_report_times *times)
{
	if (!times->count)
		return;
	fputs("<tr>", stream);
	html_cell_text(stream, name);
	html_cell_count(stream, true, times->count);
	html_cell_ns(stream, true, times->sum_ns / times->count);
	html_cell_ns(stream, true, times->min_ns);
	html_cell_quantile(stream, times, times->p50_ns);
	html_cell_quantile(stream, times, times->p99_ns);
	html_cell_ns(stream, true, times->max_ns);
	fputs("</tr>\n", stream);
}

static void html_latency(FILE *stream, const struct gp_report *report)
{
	static const char *const heads[] = { "n:step", "count", "mean", "min", "median", "p99", "max", NULL };

	if (!report->kernel_count)
		return;
	html_table(stream, "A kernel’s way",
		   report->wait_dispatch.count || report->wait_launch.count ?
			   NULL :
			   "How long kernels waited is not in this trace: it has neither dispatch times nor the calls.",
		   heads);
	html_times_row(stream, "wait: packet written to start", &report->wait_dispatch);
	html_times_row(stream, "wait: launch call to start", &report->wait_launch);
	html_times_row(stream, "run", &report->run);
	html_times_row(stream, "completion: end to seen by the host", &report->completion);
	html_times_row(stream, "device idle between kernels", &report->kernel_gap);
	html_times_row(stream, "copies, on the engine", &report->copy_time);
	html_times_row(stream, "step: from one wait of the host to the next", &report->step);
	html_table_end(stream, 0, 0);
}

static void html_path(FILE *stream, const struct gp_report *report)
{
	static const char *const heads[] = { "n:step", "time", "share", "times", NULL };
	uint32_t rows = html_rows(report, report->share_count);
	char label[1200];

	if (!report->share_count)
		return;
	html_table(
		stream, "Critical path",
		"From the end of the run back to its start, one thing after the other without a hole: what would have to be shorter "
		"for the run to be shorter. It adds up to the run.",
		heads);
	for (uint32_t i = 0; i < rows; i++) {
		const struct gp_report_share *share = &report->shares[i];

		fputs("<tr>", stream);
		html_cell_symbol(stream, share->name,
				 gp_report_step_text(share->kind, share->name, label, sizeof(label)));
		html_cell_ns(stream, true, share->ns);
		html_cell_share(stream, share->ns, report->path_ns);
		html_cell_count(stream, true, share->count);
		fputs("</tr>\n", stream);
	}
	html_table_end(stream, report->share_count, rows);
}

static void html_idles(FILE *stream, const struct gp_report *report)
{
	static const char *const heads[] = { "at", "length", "n:range", "n:call", NULL };
	uint32_t rows = html_rows(report, report->idle_count);

	if (!report->idle_count || !report->layers[GP_REPORT_APPLICATION].is_traced)
		return;
	html_table(stream, "Longest stretches without work on the GPU",
		   "With the shortest range and call of the host that cover at least half of each.", heads);
	for (uint32_t i = 0; i < rows; i++) {
		const struct gp_report_idle *idle = &report->idles[i];

		fputs("<tr>", stream);
		html_cell_ns(stream, true, idle->start_ns);
		html_cell_ns(stream, true, idle->end_ns - idle->start_ns);
		html_cell_text(stream, idle->range ? idle->range : "–");
		html_cell_text(stream, idle->call ? idle->call : "–");
		fputs("</tr>\n", stream);
	}
	html_table_end(stream, report->idle_count, rows);
}

static void html_queues(FILE *stream, const struct gp_report *report)
{
	static const char *const heads[] = { "n:engine",     "device",      "queue", "process", "streams",
					     "work",         "busy",        "share", "overlap", "gaps",
					     "idle between", "longest gap", NULL };
	uint32_t rows = html_rows(report, report->queue_count);

	if (!report->queue_count)
		return;
	html_table(stream, "Queues and copy engines", NULL, heads);
	for (uint32_t i = 0; i < rows; i++) {
		const struct gp_report_queue *queue = &report->queues[i];

		fputs("<tr>", stream);
		html_cell_text(stream, queue->is_copy ? "copies" : "compute");
		html_cell_rank_id(stream, queue->rank, queue->has_device, queue->device);
		html_cell_id(stream, queue->has_queue, queue->queue);
		html_cell_rank_id(stream, queue->rank, queue->has_pid, queue->pid);
		html_cell_count(stream, queue->stream_count, queue->stream_count);
		html_cell_count(stream, true, queue->count);
		html_cell_ns(stream, true, queue->busy_ns);
		html_cell_share(stream, queue->busy_ns, report->wall_ns);
		html_cell_ns(stream, true, queue->sum_ns - queue->busy_ns);
		html_cell_count(stream, true, queue->gap_count);
		html_cell_ns(stream, true, queue->gap_ns);
		html_cell_ns(stream, true, queue->gap_ns_max);
		fputs("</tr>\n", stream);
	}
	html_table_end(stream, report->queue_count, rows);
}

static void html_who(FILE *stream, const struct gp_report *report)
{
	static const char *const process_heads[] = {
		"process", "calls", "kernels", "copies", "queues", "GPU time", "waited while others ran", NULL
	};
	const char *const thread_heads[] = { "process",
					     "thread",
					     "calls",
					     "span",
					     "application",
					     "libraries",
					     gp_report_layer_name(report, GP_REPORT_HIP),
					     "HSA",
					     "driver",
					     NULL };
	uint32_t rows = html_rows(report, report->process_count);

	if (report->process_count > 1) {
		html_table(stream, "Processes", NULL, process_heads);
		for (uint32_t i = 0; i < rows; i++) {
			const struct gp_report_process *process = &report->processes[i];

			fputs("<tr>", stream);
			html_cell_rank_id(stream, process->rank, process->has_pid, process->pid);
			html_cell_count(stream, true, process->calls);
			html_cell_count(stream, true, process->kernels);
			html_cell_count(stream, true, process->copies);
			html_cell_count(stream, true, process->queues);
			html_cell_ns(stream, true, process->gpu_ns);
			html_cell_ns(stream, process->has_behind, process->behind_ns);
			fputs("</tr>\n", stream);
		}
		html_table_end(stream, report->process_count, rows);
	}
	if (report->thread_count < 2)
		return;
	rows = html_rows(report, report->thread_count);
	html_table(stream, "Threads", "Self time of each thread between its first and its last call.", thread_heads);
	for (uint32_t i = 0; i < rows; i++) {
		const struct gp_report_thread *thread = &report->threads[i];

		fputs("<tr>", stream);
		html_cell_rank_id(stream, thread->rank, thread->has_pid, thread->pid);
		html_cell_id(stream, thread->has_tid, thread->tid);
		html_cell_count(stream, true, thread->calls);
		html_cell_ns(stream, true, thread->span_ns);
		for (int j = 0; j < GP_REPORT_LAYER_COUNT; j++)
			html_cell_ns(stream, report->layers[j].is_traced, thread->self_ns[j]);
		fputs("</tr>\n", stream);
	}
	html_table_end(stream, report->thread_count, rows);
}

static void html_checks(FILE *stream, const struct gp_report *report)
{
	fputs("<section>\n<h2>The way of a kernel</h2>\n<ul class=\"checks card\">\n", stream);
	for (uint32_t i = 0; i < report->check_count; i++) {
		const struct gp_report_check *check = &report->checks[i];

		fprintf(stream, "<li class=\"s%d\">%s <span>", check->state, check->title);
		gp_format_html(stream, check->evidence[0] ? check->evidence : "not visible in this trace");
		fprintf(stream, "%s</span></li>\n", check->state == GP_CHECK_INFERRED ? ", inferred" : "");
	}
	fputs("</ul>\n</section>\n", stream);
	if (!report->warning_count)
		return;
	fputs("<section>\n<h2>Notes</h2>\n<ul class=\"files\">\n", stream);
	for (uint32_t i = 0; i < report->warning_count; i++) {
		fputs("<li>", stream);
		gp_format_html(stream, report->warnings[i]);
		fputs("</li>\n", stream);
	}
	fputs("</ul>\n</section>\n", stream);
}

int gp_report_html(FILE *stream, const struct gp_report *report)
{
	fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
	      "content=\"width=device-width,initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n<title>gpreempt report: ",
	      stream);
	gp_format_html(stream, report->title);
	fprintf(stream, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n", gp_report_html_style);
	html_header(stream, report);
	if (report->event_count) {
		html_layers(stream, report);
		html_findings(stream, report);
		html_timeline(stream, report);
		html_path(stream, report);
		html_colds(stream, report);
		html_latency(stream, report);
		html_names(stream, report, "Calls", report->calls, report->call_count);
		html_names(stream, report, "Kernels", report->kernels, report->kernel_name_count);
		html_names(stream, report, "Copies", report->copies, report->copy_name_count);
		html_names(stream, report, "Ranges and allocations", report->markers, report->marker_count);
		html_idles(stream, report);
		html_queues(stream, report);
		html_who(stream, report);
	} else {
		fputs("<p>There is no call, kernel or copy in it.</p>\n", stream);
		html_findings(stream, report);
	}
	html_names(stream, report, "Statistics files", report->summaries, report->summary_count);
	html_checks(stream, report);
	fprintf(stream, "</main>\n<div id=\"tip\" role=\"status\"></div>\n<script>\n%s</script>\n</body>\n</html>\n",
		gp_report_html_script);
	return fflush(stream) || ferror(stream) ? -EIO : 0;
}
