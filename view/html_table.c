/* SPDX-License-Identifier: MIT */
/* Owns the tables of a report: all numbers, and who waited for whom. */
#include <inttypes.h>
#include <string.h>
#include "view/compare.h"
#include "view/format.h"
#include "view/html_table.h"
#include "view/marks.h"
#include "view/row.h"
#include "view/svg.h"

#define HTML_WAIT_MAX 5u /* pairs shown per run; the JSON has them all */

static void table_cell(FILE *stream, const char *classes, const char *text)
{
	fprintf(stream, "<td%s%s%s>", *classes ? " class=\"" : "", classes, *classes ? "\"" : "");
	gp_format_html(stream, text);
	fputs("</td>", stream);
}

static void table_client_row(FILE *stream, const struct gp_result *result, const struct gp_result_run *run,
			     const struct gp_row *row)
{
	static const uint32_t permilles[] = { 500, 900, 990, 1000 };
	bool is_first = row->client == run->clients;
	char text[GP_ROW_TEXT_SIZE];

	fprintf(stream, "<tr%s>", is_first ? " class=\"new\"" : "");
	table_cell(stream, "strong", is_first ? run->policy : "");
	table_cell(stream, "n", row->name);
	(void)snprintf(text, sizeof(text), "%" PRId32, row->client->priority);
	table_cell(stream, "", text);
	table_cell(stream, "", gp_format_count(row->requests, text, sizeof(text)));
	for (int i = 0; i < 4; i++)
		table_cell(stream, permilles[i] == 990 ? "strong" : "",
			   gp_row_format_latency(row, permilles[i], text, sizeof(text)));
	table_cell(stream, "", gp_row_format_times(row, result, text, sizeof(text)));
	if (gp_row_has_deadlines(result))
		table_cell(stream, "", gp_row_format_deadlines(row, text, sizeof(text)));
	table_cell(stream, "", gp_row_format_rate(row, text, sizeof(text)));
	table_cell(stream, "", gp_row_format_share(row, text, sizeof(text)));
	fputs("</tr>\n", stream);
}

/* "1 turn", "2 turns" */
static void table_count(FILE *stream, uint64_t count, const char *one, const char *many)
{
	char text[GP_FORMAT_TEXT_SIZE];

	fprintf(stream, "%s %s", gp_format_count(count, text, sizeof(text)), count == 1 ? one : many);
}

/* What the run did, in words, in a row across. */
static void table_did_row(FILE *stream, const struct gp_result_run *run)
{
	uint64_t unfinished = gp_row_unfinished(run);
	char text[GP_FORMAT_TEXT_SIZE];

	fputs("<tr class=\"did\"><td></td><td colspan=\"11\">", stream);
	table_count(stream, run->preemptions, "preemption", "preemptions");
	if (!run->inversions_unknown) {
		fputs(", ", stream);
		table_count(stream, run->inversion_count, "inversion", "inversions");
	}
	if (!run->inversions_unknown && run->inversion_count) {
		fprintf(stream, " (%s in all", gp_format_tick(run->inversion_ns, text, sizeof(text)));
		fprintf(stream, ", longest %s)", gp_format_tick(run->inversion_ns_max, text, sizeof(text)));
	}
	if (unfinished) {
		fputs(", <b>", stream);
		table_count(stream, unfinished, "request", "requests");
		fputs(" unfinished at the end</b>", stream);
	}
	if (run->transactions) {
		fputs(", ", stream);
		table_count(stream, run->transactions, "stop of the device", "stops of the device");
		fprintf(stream, " taking %s", gp_format_tick(run->transaction_ns, text, sizeof(text)));
	}
	if (run->turns) {
		fputs(", ", stream);
		table_count(stream, run->turns, "turn", "turns");
	}
	if (run->left_short)
		fprintf(stream, ", %s left alone because the rest was shorter than the stop",
			gp_format_count(run->left_short, text, sizeof(text)));
	if (run->limited)
		fprintf(stream, ", %s held back by the budget", gp_format_count(run->limited, text, sizeof(text)));
	if (run->aged)
		fprintf(stream, ", %s raised by age", gp_format_count(run->aged, text, sizeof(text)));
	if (run->killed_ns)
		fprintf(stream, ", %s of work thrown away", gp_format_tick(run->killed_ns, text, sizeof(text)));
	fputs("</td></tr>\n", stream);
}

void gp_html_summary(FILE *stream, const struct gp_result *result)
{
	bool has_unfinished = false;
	struct gp_row row;

	fputs("<section>\n<h2>All numbers</h2>\n<p class=\"caption\">Priority 99 is the most urgent. <i>per s</i> "
	      "counts requests, or iterations of a batch client. <i>GPU</i> is the share of the device’s compute "
	      "time.</p>\n<div class=\"card scroll\"><table>\n<thead><tr><th>run</th><th class=\"n\">client</th>"
	      "<th>priority</th><th>requests</th><th>p50</th><th>p90</th><th>p99</th><th>max</th><th>× alone</th>",
	      stream);
	fputs(gp_row_has_deadlines(result) ? "<th>in time</th>" : "", stream);
	fputs("<th>per s</th><th>GPU</th></tr></thead>\n<tbody>\n", stream);
	for (uint32_t i = 0; i < result->run_count; i++) {
		for (uint32_t j = 0; j < result->runs[i].client_count; j += row.count) {
			gp_row_init(&row, &result->runs[i], j);
			table_client_row(stream, result, &result->runs[i], &row);
		}
		table_did_row(stream, &result->runs[i]);
		has_unfinished |= gp_row_unfinished(&result->runs[i]) > 0;
	}
	fputs("</tbody></table></div>\n", stream);
	if (has_unfinished)
		fputs("<p class=\"note\">Unfinished: still waiting when the run ended. They count with the time they "
		      "had waited, so the true latencies are longer (&gt;), and would grow with the run.</p>\n",
		      stream);
	fputs("</section>\n", stream);
}

static void table_wait_row(FILE *stream, const struct gp_result_run *run, const struct gp_result_wait *wait,
			   bool is_first, uint64_t longest_ns)
{
	char text[GP_FORMAT_TEXT_SIZE];
	uint32_t permille = gp_svg_scale(wait->total_ns, 0, longest_ns, 1000);
	uint32_t share_ppm = gp_svg_scale(wait->total_ns, 0, run->duration_ns, 1000000);

	fprintf(stream, "<tr%s>", is_first ? " class=\"new\"" : "");
	table_cell(stream, "strong", is_first ? run->policy : "");
	table_cell(stream, "n", gp_marks_client(run, wait->client));
	table_cell(stream, "n", gp_marks_client(run, wait->other));
	table_cell(stream, "", gp_format_count(wait->count, text, sizeof(text)));
	table_cell(stream, "", gp_format_tick(wait->max_ns, text, sizeof(text)));
	table_cell(stream, "strong", gp_format_tick(wait->total_ns, text, sizeof(text)));
	table_cell(stream, "",
		   share_ppm < 500u && wait->total_ns ? "< 0.1 %" : gp_format_share(share_ppm, text, sizeof(text)));
	fprintf(stream,
		"<td class=\"meters\"><span class=\"meter\" style=\"width:%" PRIu32 ".%" PRIu32
		"%%\"></span></td></tr>\n",
		permille / 10u, permille % 10u);
}

/* The longest waits of a run, longest first; what is beyond the maximum is counted. */
static void table_wait_rows(FILE *stream, const struct gp_result_run *run, uint64_t longest_ns)
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
		table_wait_row(stream, run, &run->waits[best], !shown, longest_ns);
		before_ns = run->waits[best].total_ns;
		before = best;
	}
	if (run->wait_count > HTML_WAIT_MAX)
		fprintf(stream,
			"<tr class=\"did\"><td></td><td colspan=\"7\">and %" PRIu32 " more, none of them longer in "
			"all</td></tr>\n",
			run->wait_count - HTML_WAIT_MAX);
}

void gp_html_waits(FILE *stream, const struct gp_result *result)
{
	uint64_t longest_ns = 0;
	uint32_t count = 0;
	bool is_known = true;

	for (uint32_t i = 0; i < result->run_count; i++) {
		is_known &= gp_compare_has_waits(&result->runs[i]);
		for (uint32_t j = 0; j < result->runs[i].wait_count; j++) {
			uint64_t total_ns = result->runs[i].waits[j].total_ns;

			longest_ns = total_ns > longest_ns ? total_ns : longest_ns;
			count++;
		}
	}
	if (!count && !is_known)
		return;
	fputs("<section>\n<h2>Who waited for whom</h2>\n<p class=\"caption\">Time in which a client had work while "
	      "one of lower rank was running. A good scheduler keeps these bars short. Where several ran at a time, "
	      "each of them counts.</p>\n",
	      stream);
	if (!count) {
		fputs("<p>No client waited for a less urgent one.</p>\n</section>\n", stream);
		return;
	}
	fputs("<div class=\"card scroll\"><table>\n<thead><tr><th>run</th><th class=\"n\">client</th><th class=\"n\">"
	      "waited for</th><th>times</th><th>longest</th><th>in all</th><th>of the run</th><th></th></tr></thead>\n"
	      "<tbody>\n",
	      stream);
	for (uint32_t i = 0; i < result->run_count; i++)
		table_wait_rows(stream, &result->runs[i], longest_ns);
	fputs("</tbody></table></div>\n</section>\n", stream);
}
