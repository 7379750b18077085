/* SPDX-License-Identifier: MIT */
/* Owns the report: one HTML file that needs no network, with what was simulated, what came out, and what to see in
 * each picture. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "lib/units.h"
#include "view/finding.h"
#include "view/format.h"
#include "view/html_style.h"
#include "view/html_table.h"
#include "view/svg.h"

#define HTML_TEXT_SIZE GP_UNITS_TEXT_SIZE
#define HTML_CARD_MAX  8u  /* charts of a kind; the table has all */
#define HTML_NAME_MAX  24u /* clients named in the legend */

static void html_fact(FILE *stream, const char *term, const char *value)
{
	fprintf(stream, "<div><dt>%s</dt><dd>", term);
	gp_format_html(stream, value);
	fputs("</dd></div>\n", stream);
}

static void html_header(FILE *stream, const struct gp_result *result)
{
	char text[HTML_TEXT_SIZE], finding[GP_FINDING_SIZE];
	const char *title = result->device_title[0] ? result->device_title : result->device;

	fprintf(stream, "<header>\n<p class=\"eyebrow\">gpreempt · %s</p>\n<h1>",
		result->is_emulated ? "programs on a virtual node, not measured on a GPU" : "simulated, not measured");
	gp_format_html(stream, result->mix_title[0] ? result->mix_title : result->mix);
	if (!result->mix_title[0]) {
		fputs(" on ", stream);
		gp_format_html(stream, title);
	}
	fputs("</h1>\n", stream);
	if (result->mix_title[0]) {
		fputs("<p class=\"eyebrow\">", stream);
		gp_format_html(stream, result->mix);
		fputs(" on ", stream);
		gp_format_html(stream, title);
		fputs("</p>\n", stream);
	}
	if (*gp_finding_text(result, finding, sizeof(finding))) {
		fputs("<p class=\"lede\">", stream);
		gp_format_html(stream, finding);
		fputs("</p>\n", stream);
	}
	fputs("<dl class=\"facts\">\n", stream);
	html_fact(stream, "device", result->device);
	(void)snprintf(text, sizeof(text), "%" PRIu32, result->device_count);
	html_fact(stream, "devices", text);
	if (result->run_count)
		html_fact(stream, result->is_emulated ? "device time" : "simulated time",
			  gp_format_tick(result->runs[0].duration_ns, text, sizeof(text)));
	(void)snprintf(text, sizeof(text), "%" PRIu64, result->seed);
	html_fact(stream, "seed", text);
	if (result->gate[0])
		html_fact(stream, "gate unit", result->gate);
	html_fact(stream, "gate cost",
		  result->gate_cost_ns ? gp_format_tick(result->gate_cost_ns, text, sizeof(text)) :
					 "from the device description");
	if (result->dilate > 1) {
		(void)snprintf(text, sizeof(text), "%" PRIu32 "×", result->dilate);
		html_fact(stream, "dilation", text);
	}
	fputs("</dl>\n</header>\n", stream);
}

/* A row that is in an earlier run has been shown already. */
static bool html_is_known(const struct gp_result *result, uint32_t run, const char *name)
{
	struct gp_row row;

	for (uint32_t i = 0; i < run; i++)
		if (gp_row_find(&row, &result->runs[i], name))
			return true;
	return false;
}

/* A service without a request in any run has nothing to draw. */
static bool html_has_chart(const struct gp_result *result, const char *name, bool is_service)
{
	struct gp_row row;

	for (uint32_t i = 0; is_service && i < result->run_count; i++)
		if (gp_row_find(&row, &result->runs[i], name) && gp_row_has_latency(&row))
			return true;
	return !is_service;
}

/* One card per service (with latencies) or batch row of any run, in the order of the mix; how many were left out. */
static uint32_t html_cards(FILE *stream, const struct gp_result *result, bool is_service,
			   void (*chart)(FILE *stream, const struct gp_result *result, const char *row_name),
			   const char *what)
{
	uint32_t count = 0;
	struct gp_row row;

	for (uint32_t i = 0; i < result->run_count; i++)
		for (uint32_t j = 0; j < result->runs[i].client_count; j += row.count) {
			gp_row_init(&row, &result->runs[i], j);
			if (row.client->is_service != is_service || html_is_known(result, i, row.name) ||
			    !html_has_chart(result, row.name, is_service))
				continue;
			if (count++ >= HTML_CARD_MAX)
				continue;
			fputs("<div class=\"card\"><h3>", stream);
			gp_format_html(stream, row.name);
			fprintf(stream, "<span class=\"caption\">, priority %" PRId32 ": %s</span></h3>\n",
				row.client->priority, what);
			chart(stream, result, row.name);
			fputs("</div>\n", stream);
		}
	return count > HTML_CARD_MAX ? count - HTML_CARD_MAX : 0;
}

/* The figure: what the urgent gained, and what it cost the others. */
static void html_figure(FILE *stream, const struct gp_result *result)
{
	uint32_t left_out;

	fputs("<section>\n<h2>What it saves, and what it costs</h2>\n<p class=\"caption\">p99: 99 of 100 requests "
	      "were at least this fast, from arrival to completion; shorter is better, and the aim is <i>alone</i>, "
	      "the same client with the GPU to itself. An arrow is a lower bound: requests pile up. Throughput: "
	      "longer is better; the dashed mark is all that the services leave.</p>\n<div class=\"grid2\">\n",
	      stream);
	left_out = html_cards(stream, result, true, gp_chart_latency, "tail latency");
	left_out += html_cards(stream, result, false, gp_chart_throughput, "throughput");
	fputs("</div>\n", stream);
	if (left_out)
		fprintf(stream, "<p class=\"note\">%" PRIu32 " more are in the table below.</p>\n", left_out);
	fputs("</section>\n", stream);
}

static void html_client_legend(FILE *stream, const struct gp_compare_names *names)
{
	static const struct {
		const char *classes, *path, *words;
	} marks[] = {
		{ "arrival", "M-.8-6h1.6v12h-1.6z", "request arrives" },
		{ "mark close", "M-4.5-3.5h9L0 4.5z", "gate closed" },
		{ "mark open", "M-4.5 3.5h9L0-4.5z", "gate opened" },
		{ "mark turn", "M0-5l4 5-4 5-4-5z", "turn" },
		{ "mark left", "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z", "left open on purpose" },
		{ "cut", "M-1-6h2v12h-2z", "ended by preemption" },
		{ "halt", "M-6-6h12v12h-12z", "device stopped" },
		{ "inversion", "M-6-4h12v8h-12z", "inversion" },
	};

	fputs("<div class=\"legend\">", stream);
	for (uint32_t i = 0; i < names->count && i < HTML_NAME_MAX; i++) {
		fprintf(stream,
			"<button type=\"button\" data-c=\"c%" PRIu32
			"\" aria-pressed=\"false\"><i class=\"dotc c%" PRIu32 "\"></i>",
			gp_chart_client_colour(i), gp_chart_client_colour(i));
		gp_format_html(stream, names->clients[i]->name);
		fputs("</button>", stream);
	}
	if (names->count > HTML_NAME_MAX)
		fprintf(stream, "<span>and %" PRIu32 " more</span>", names->count - HTML_NAME_MAX);
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		fprintf(stream,
			"<span><svg viewBox=\"-7 -7 14 14\" aria-hidden=\"true\"><path class=\"%s\" d=\"%s\"/></svg>"
			"%s</span>",
			marks[i].classes, marks[i].path, marks[i].words);
	fputs("</div>\n", stream);
}

/* Programs on a virtual node have none: nobody saw which of their packets ran when. */
static bool html_has_timeline(const struct gp_result_run *run)
{
	return run->slice_count && run->window_end_ns > run->window_start_ns;
}

static int html_timelines(FILE *stream, const struct gp_result *result, const struct gp_compare_names *names)
{
	char length[HTML_TEXT_SIZE], start[HTML_TEXT_SIZE];
	bool has_any = false;

	for (uint32_t i = 0; i < result->run_count; i++)
		has_any |= html_has_timeline(&result->runs[i]);
	if (!has_any)
		return 0;
	fputs("<section>\n<h2>Who had the GPU</h2>\n<p class=\"caption\">A window of each run, one lane per hardware "
	      "queue, the most urgent on top. "
	      "A lane is coloured while its work runs. Point at anything to read what happened and why; choose a "
	      "client to single it out.</p>\n",
	      stream);
	html_client_legend(stream, names);
	for (uint32_t i = 0; i < result->run_count; i++) {
		const struct gp_result_run *run = &result->runs[i];
		int r;

		if (!html_has_timeline(run))
			continue;
		fputs("<div class=\"card\"><h3>", stream);
		gp_format_html(stream, run->policy);
		(void)gp_format_tick(run->window_start_ns, start, sizeof(start));
		fprintf(stream, " <span class=\"caption\">%s from %s on</span></h3>\n<div class=\"scroll wide\">",
			gp_format_tick(run->window_end_ns - run->window_start_ns, length, sizeof(length)), start);
		r = gp_chart_timeline(stream, result, run, names);
		if (r < 0)
			return r;
		fputs("</div></div>\n", stream);
	}
	fputs("<p class=\"note\">To zoom in, write the same run with --perfetto FILE and open it in Perfetto.</p>"
	      "\n</section>\n",
	      stream);
	return 0;
}

static void html_distributions(FILE *stream, const struct gp_result *result)
{
	uint32_t left_out;

	fputs("<section>\n<h2>How latencies spread</h2>\n<p class=\"caption\">Each curve is one run: the share of "
	      "requests (upwards) that finished within a time (to the right, logarithmic). Further left is better; "
	      "the dots sit on the dashed line at 99 %.</p>\n<div class=\"legend\">",
	      stream);
	for (uint32_t i = 0; i < result->run_count; i++) {
		fprintf(stream, "<span><i class=\"dotc r%" PRIu32 "\"></i>", gp_chart_run_colour(result, i));
		gp_format_html(stream, result->runs[i].policy);
		fputs("</span>", stream);
	}
	fputs("</div>\n<div class=\"narrow\">\n", stream);
	left_out = html_cards(stream, result, true, gp_chart_distribution, "distribution of latencies");
	fputs("</div>\n", stream);
	if (left_out)
		fprintf(stream, "<p class=\"note\">%" PRIu32 " more are in the table above.</p>\n", left_out);
	fputs("</section>\n", stream);
}

static void html_command(FILE *stream, const struct gp_result *result)
{
	if (!result->command[0])
		return;
	fputs("<section>\n<h2>To see the same again</h2>\n<pre>", stream);
	gp_format_html(stream, result->command);
	fputs("</pre>\n</section>\n", stream);
}

static void html_words(FILE *stream)
{
	fputs("<section>\n<h2>Words</h2>\n<dl class=\"words\">"
	      "<dt>client</dt><dd>a process that uses the GPU</dd>"
	      "<dt>gate</dt><dd>open or closed, per queue; behind a closed gate running work is saved and nothing is "
	      "lost</dd>"
	      "<dt>preemption</dt><dd>a gate closed on running work, which later resumes where it stopped</dd>"
	      "<dt>inversion</dt><dd>urgent work waited while less urgent work ran</dd>"
	      "<dt>turn</dt><dd>batch clients of equal rank have the GPU one after the other, for tens of "
	      "milliseconds each</dd>"
	      "<dt>alone</dt><dd>each client with the GPU to itself: what no scheduler can beat</dd>"
	      "<dt>stock</dt><dd>what driver and firmware do by themselves</dd>"
	      "</dl>\n</section>\n",
	      stream);
}

int gp_view_html(FILE *stream, const struct gp_result *result)
{
	struct gp_compare_names names;
	int r;

	gp_compare_names_init(&names, result);
	fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
	      "content=\"width=device-width,"
	      "initial-scale=1\">\n<title>gpreempt: ",
	      stream);
	gp_format_html(stream, result->mix_title[0] ? result->mix_title : result->mix);
	fputs(" on ", stream);
	gp_format_html(stream, result->device);
	fprintf(stream, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n", gp_html_style);
	html_header(stream, result);
	html_figure(stream, result);
	gp_html_summary(stream, result);
	r = html_timelines(stream, result, &names);
	if (r < 0)
		return r;
	html_distributions(stream, result);
	gp_html_waits(stream, result);
	html_command(stream, result);
	html_words(stream);
	fprintf(stream, "</main>\n<div id=\"tip\" role=\"status\"></div>\n<script>\n%s</script>\n</body>\n</html>\n",
		gp_html_script);
	return fflush(stream) || ferror(stream) ? -EIO : 0;
}
