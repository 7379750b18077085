/* SPDX-License-Identifier: MIT */
/* Owns the report: one HTML file that needs no network, with what was simulated, what came out, and what to see in
 * each picture. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "lib/units.h"
#include "view/format.h"
#include "view/html_style.h"
#include "view/marks.h"
#include "view/svg.h"

#define HTML_TEXT_SIZE GP_UNITS_TEXT_SIZE
#define HTML_WAIT_MAX  20u /* rows of who waited for whom, per run */

static void html_fact(FILE *stream, const char *term, const char *value)
{
	fprintf(stream, "<div><dt>%s</dt><dd>", term);
	gp_format_html(stream, value);
	fputs("</dd></div>\n", stream);
}

/* The most urgent client with latencies: what the report is about. */
static const struct gp_result_client *html_hero(const struct gp_compare_names *names)
{
	const struct gp_result_client *hero = NULL;

	for (uint32_t i = 0; i < names->count; i++) {
		const struct gp_result_client *client = names->clients[i];

		if (gp_compare_has_latency(client) && (!hero || client->priority > hero->priority))
			hero = client;
	}
	return hero;
}

/* "99 of 100 requests of serve finish within 2.4 ms under hpf, 21 ms under stock, 2.2 ms under alone." */
static void html_lede(FILE *stream, const struct gp_result *result, const struct gp_result_client *hero)
{
	char text[HTML_TEXT_SIZE];
	uint32_t told = 0;

	if (!hero)
		return;
	fputs("<p class=\"lede\">99 of 100 requests of <b>", stream);
	gp_format_html(stream, hero->name);
	fputs("</b> finish within ", stream);
	for (uint32_t i = 0; i < result->run_count; i++) {
		const struct gp_result_client *client = gp_compare_client(&result->runs[i], hero->name);

		if (!client || !gp_compare_has_latency(client))
			continue;
		fprintf(stream, "%s<b>%s</b> ", told ? ", " : "",
			gp_format_tick(gp_hist_quantile(&client->latency_ns, 990), text, sizeof(text)));
		if (!strcmp(result->runs[i].policy, "alone")) {
			fputs("with the GPU to itself", stream);
		} else {
			fputs(!strcmp(result->runs[i].policy, "stock") ? "with stock scheduling" : "under ", stream);
			if (strcmp(result->runs[i].policy, "stock"))
				gp_format_html(stream, result->runs[i].policy);
		}
		told++;
	}
	fputs(".</p>\n", stream);
}

static void html_header(FILE *stream, const struct gp_result *result, const struct gp_result_client *hero)
{
	char text[HTML_TEXT_SIZE];
	const char *title = result->device_title[0] ? result->device_title : result->device;

	fputs("<header>\n<p class=\"eyebrow\">gpreempt · simulated, not measured</p>\n<h1>", stream);
	gp_format_html(stream, result->mix);
	fputs(" on ", stream);
	gp_format_html(stream, title);
	fputs("</h1>\n", stream);
	html_lede(stream, result, hero);
	fputs("<dl class=\"facts\">\n", stream);
	html_fact(stream, "device", result->device);
	(void)snprintf(text, sizeof(text), "%" PRIu32, result->device_count);
	html_fact(stream, "devices", text);
	if (result->run_count)
		html_fact(stream, "simulated time", gp_format_tick(result->runs[0].duration_ns, text, sizeof(text)));
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
	fputs("</dl>\n", stream);
	if (result->command[0]) {
		fputs("<p class=\"eyebrow\">To see the same again:</p>\n<pre>", stream);
		gp_format_html(stream, result->command);
		fputs("</pre>\n", stream);
	}
	fputs("</header>\n", stream);
}

static void html_bars(FILE *stream, const struct gp_result *result, const struct gp_compare_names *names)
{
	fputs("<section>\n<h2>Tail latency in each run</h2>\n<p class=\"caption\">p99: 99 of 100 requests were at "
	      "least this fast, from arrival "
	      "to completion. Shorter is better; the aim is <i>alone</i>, the same client with the GPU to "
	      "itself.</p>\n",
	      stream);
	for (uint32_t i = 0; i < names->count; i++) {
		if (!gp_compare_has_latency(names->clients[i]))
			continue;
		fputs("<div class=\"card scroll narrow\"><h3>", stream);
		gp_format_html(stream, names->clients[i]->name);
		fprintf(stream, ", priority %" PRId32 "</h3>\n", names->clients[i]->priority);
		gp_chart_bars(stream, result, names->clients[i]);
		fputs("</div>\n", stream);
	}
	fputs("</section>\n", stream);
}

static void html_cell(FILE *stream, const char *classes, const char *text)
{
	fprintf(stream, "<td%s%s%s>", *classes ? " class=\"" : "", classes, *classes ? "\"" : "");
	gp_format_html(stream, text);
	fputs("</td>", stream);
}

static void html_client_row(FILE *stream, const struct gp_result *result, const struct gp_result_run *run,
			    const struct gp_compare_row *group)
{
	static const uint32_t permilles[] = { 500, 900, 990, 1000 };
	const struct gp_result_client *client = group->client, *alone = gp_compare_alone(result, client);
	bool has_latency = gp_compare_has_latency(client), is_first = client == run->clients;
	char text[HTML_TEXT_SIZE];

	fprintf(stream, "<tr%s>", is_first ? " class=\"new\"" : "");
	html_cell(stream, "strong", is_first ? run->policy : "");
	html_cell(stream, "n", group->name);
	(void)snprintf(text, sizeof(text), "%" PRId32, client->priority);
	html_cell(stream, "", text);
	html_cell(stream, "", gp_format_count(group->requests, text, sizeof(text)));
	for (int i = 0; i < 4; i++)
		html_cell(stream, permilles[i] == 990 ? "strong" : "",
			  has_latency ? gp_units_format_ns(gp_hist_quantile(&client->latency_ns, permilles[i]), text,
							   sizeof(text)) :
					"–");
	html_cell(stream, "",
		  has_latency && alone ?
			  gp_format_times(gp_hist_quantile(&client->latency_ns, 990),
					  gp_hist_quantile(&alone->latency_ns, 990), text, sizeof(text)) :
			  "–");
	html_cell(stream, "", gp_format_rate(group->throughput_milli, text, sizeof(text)));
	html_cell(stream, "", gp_format_share(group->gpu_share_ppm, text, sizeof(text)));
	fputs("</tr>\n", stream);
}

/* What the run did, in words, in a row across. */
static void html_did_row(FILE *stream, const struct gp_result_run *run)
{
	char text[HTML_TEXT_SIZE];

	fprintf(stream, "<tr class=\"did\"><td></td><td colspan=\"10\">%s preemptions",
		gp_format_count(run->preemptions, text, sizeof(text)));
	fprintf(stream, ", %s inversions", gp_format_count(run->inversion_count, text, sizeof(text)));
	if (run->inversion_count)
		fprintf(stream, " (longest %s)", gp_format_tick(run->inversion_ns_max, text, sizeof(text)));
	if (run->transactions) {
		fprintf(stream, ", %s stops of the device", gp_format_count(run->transactions, text, sizeof(text)));
		fprintf(stream, " taking %s", gp_format_tick(run->transaction_ns, text, sizeof(text)));
	}
	if (run->turns)
		fprintf(stream, ", %s turn%s", gp_format_count(run->turns, text, sizeof(text)),
			run->turns == 1 ? "" : "s");
	if (run->left_short)
		fprintf(stream, ", %s left alone because the rest was shorter than the stop",
			gp_format_count(run->left_short, text, sizeof(text)));
	if (run->limited)
		fprintf(stream, ", %s held back by the budget", gp_format_count(run->limited, text, sizeof(text)));
	if (run->killed_ns)
		fprintf(stream, ", %s of work thrown away", gp_format_tick(run->killed_ns, text, sizeof(text)));
	fputs("</td></tr>\n", stream);
}

static void html_summary(FILE *stream, const struct gp_result *result)
{
	fputs("<section>\n<h2>All numbers</h2>\n<p class=\"caption\">Priority 99 is the most urgent. <i>per s</i> "
	      "counts requests, or kernels of a "
	      "batch client. <i>GPU</i> is the share of the device’s compute time.</p>\n<div class=\"card scroll\">"
	      "<table>\n<thead><tr>"
	      "<th>run</th><th class=\"n\">client</th><th>priority</th><th>requests</th><th>p50</th><th>p90</th><th>"
	      "p99</th><th>max</th>"
	      "<th>× alone</th><th>per s</th><th>GPU</th></tr></thead>\n<tbody>\n",
	      stream);
	for (uint32_t i = 0; i < result->run_count; i++) {
		for (uint32_t j = 0; j < result->runs[i].client_count;) {
			struct gp_compare_row group;

			gp_compare_row_init(&group, &result->runs[i], j);
			html_client_row(stream, result, &result->runs[i], &group);
			j += group.count;
		}
		html_did_row(stream, &result->runs[i]);
	}
	fputs("</tbody></table></div>\n</section>\n", stream);
}

static void html_client_legend(FILE *stream, const struct gp_compare_names *names)
{
	static const struct {
		const char *classes, *path, *words;
	} marks[] = {
		{ "mark close", "M-4.5-3.5h9L0 4.5z", "gate closed" },
		{ "mark open", "M-4.5 3.5h9L0-4.5z", "gate opened" },
		{ "mark turn", "M0-5l4 5-4 5-4-5z", "turn" },
		{ "mark left", "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z", "left open on purpose" },
		{ "cut", "M-1-6h2v12h-2z", "ended by preemption" },
		{ "halt", "M-6-6h12v12h-12z", "device stopped" },
		{ "inversion", "M-6-4h12v8h-12z", "inversion" },
	};

	fputs("<div class=\"legend\">", stream);
	for (uint32_t i = 0; i < names->count; i++) {
		fprintf(stream,
			"<button type=\"button\" data-c=\"c%" PRIu32
			"\" aria-pressed=\"false\"><i class=\"dotc c%" PRIu32 "\"></i>",
			gp_chart_client_colour(i), gp_chart_client_colour(i));
		gp_format_html(stream, names->clients[i]->name);
		fputs("</button>", stream);
	}
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		fprintf(stream,
			"<span><svg viewBox=\"-7 -7 14 14\" aria-hidden=\"true\"><path class=\"%s\" d=\"%s\"/></svg>"
			"%s</span>",
			marks[i].classes, marks[i].path, marks[i].words);
	fputs("</div>\n", stream);
}

static int html_timelines(FILE *stream, const struct gp_result *result, const struct gp_compare_names *names)
{
	char length[HTML_TEXT_SIZE], start[HTML_TEXT_SIZE];

	fputs("<section>\n<h2>Who had the GPU</h2>\n<p class=\"caption\">A window of each run, one lane per hardware "
	      "queue, the most urgent on top. "
	      "A lane is coloured while its work runs. Point at anything to read what happened and why; choose a "
	      "client to single it out.</p>\n",
	      stream);
	html_client_legend(stream, names);
	for (uint32_t i = 0; i < result->run_count; i++) {
		const struct gp_result_run *run = &result->runs[i];
		int r;

		if (!run->slice_count || run->window_end_ns <= run->window_start_ns)
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

static void html_distributions(FILE *stream, const struct gp_result *result, const struct gp_compare_names *names)
{
	fputs("<section>\n<h2>How latencies spread</h2>\n<p class=\"caption\">Each curve is one run: the share of "
	      "requests (upwards) that finished "
	      "within a time (to the right, logarithmic). Further left is better; the dots sit on the dashed line at "
	      "99 %.</p>\n",
	      stream);
	fputs("<div class=\"legend\">", stream);
	for (uint32_t i = 0; i < result->run_count; i++) {
		fprintf(stream, "<span><i class=\"dotc r%" PRIu32 "\"></i>", gp_chart_run_colour(result, i));
		gp_format_html(stream, result->runs[i].policy);
		fputs("</span>", stream);
	}
	fputs("</div>\n", stream);
	for (uint32_t i = 0; i < names->count; i++) {
		if (!gp_compare_has_latency(names->clients[i]))
			continue;
		fputs("<div class=\"card scroll narrow\"><h3>", stream);
		gp_format_html(stream, names->clients[i]->name);
		fputs("</h3>\n", stream);
		gp_chart_distribution(stream, result, names->clients[i]);
		fputs("</div>\n", stream);
	}
	fputs("</section>\n", stream);
}

static void html_wait_row(FILE *stream, const struct gp_result_run *run, const struct gp_result_wait *wait,
			  uint64_t longest_ns)
{
	char text[HTML_TEXT_SIZE];
	uint32_t permille = gp_svg_scale(wait->total_ns, 0, longest_ns, 1000);

	fputs("<tr>", stream);
	html_cell(stream, "", run->policy);
	html_cell(stream, "n", gp_marks_client(run, wait->client));
	html_cell(stream, "n", gp_marks_client(run, wait->other));
	html_cell(stream, "", gp_format_count(wait->count, text, sizeof(text)));
	html_cell(stream, "", gp_format_tick(wait->max_ns, text, sizeof(text)));
	html_cell(stream, "strong", gp_format_tick(wait->total_ns, text, sizeof(text)));
	fprintf(stream,
		"<td class=\"meters\"><span class=\"meter\" style=\"width:%" PRIu32 ".%" PRIu32
		"%%\"></span></td></tr>\n",
		permille / 10u, permille % 10u);
}

/* The longest waits of a run, longest first; what is beyond the maximum is left to the JSON. */
static void html_wait_rows(FILE *stream, const struct gp_result_run *run, uint64_t longest_ns)
{
	uint64_t before_ns = UINT64_MAX;
	uint32_t before = 0;

	for (uint32_t shown = 0; shown < run->wait_count && shown < HTML_WAIT_MAX; shown++) {
		uint32_t best = UINT32_MAX;

		for (uint32_t i = 0; i < run->wait_count; i++) {
			uint64_t ns = run->waits[i].total_ns;
			bool is_left = ns < before_ns || (ns == before_ns && i > before);

			if (shown && !is_left)
				continue;
			if (best == UINT32_MAX || ns > run->waits[best].total_ns)
				best = i;
		}
		html_wait_row(stream, run, &run->waits[best], longest_ns);
		before_ns = run->waits[best].total_ns;
		before = best;
	}
}

static void html_waits(FILE *stream, const struct gp_result *result)
{
	uint64_t longest_ns = 0;
	uint32_t count = 0;

	for (uint32_t i = 0; i < result->run_count; i++)
		for (uint32_t j = 0; j < result->runs[i].wait_count; j++) {
			uint64_t total_ns = result->runs[i].waits[j].total_ns;

			longest_ns = total_ns > longest_ns ? total_ns : longest_ns;
			count++;
		}
	fputs("<section>\n<h2>Who waited for whom</h2>\n<p class=\"caption\">Time in which a client had work while "
	      "one of lower rank was running. "
	      "A good scheduler keeps these bars short.</p>\n",
	      stream);
	if (!count) {
		fputs("<p>Nobody waited for anybody less urgent.</p>\n</section>\n", stream);
		return;
	}
	fputs("<div class=\"card scroll\"><table>\n<thead><tr><th>run</th><th class=\"n\">client</th><th class=\"n\">"
	      "waited for</th><th>times</th>"
	      "<th>longest</th><th>in all</th><th></th></tr></thead>\n<tbody>\n",
	      stream);
	for (uint32_t i = 0; i < result->run_count; i++)
		html_wait_rows(stream, &result->runs[i], longest_ns);
	fputs("</tbody></table></div>\n</section>\n", stream);
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
	gp_format_html(stream, result->mix);
	fputs(" on ", stream);
	gp_format_html(stream, result->device);
	fprintf(stream, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n", gp_html_style);
	html_header(stream, result, html_hero(&names));
	html_bars(stream, result, &names);
	html_summary(stream, result);
	r = html_timelines(stream, result, &names);
	if (r < 0)
		return r;
	html_distributions(stream, result, &names);
	html_waits(stream, result);
	html_words(stream);
	fprintf(stream, "</main>\n<div id=\"tip\" role=\"status\"></div>\n<script>\n%s</script>\n</body>\n</html>\n",
		gp_html_script);
	return fflush(stream) || ferror(stream) ? -EIO : 0;
}
