/* SPDX-License-Identifier: MIT */
/* Owns two runs beside each other, as text and as a page: what changed, the largest change first. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "lib/units.h"
#include "lib/utf8.h"
#include "view/format.h"
#include "view/report_html_style.h"
#include "view/report_view.h"
#include "view/symbol.h"

#define COMPARE_CELL 48u
#define COMPARE_NAME 110u /* columns of a name on a page */

static const char *const compare_columns[] = { "name", "A", "B", "change", "B / A" };

struct compare {
	FILE *stream;
	uint32_t width, top;
	bool colour, is_html;
};

/* One thing in both runs; a value that one of them does not know has no number. */
struct compare_row {
	const char *name;
	bool has_a, has_b;
	uint64_t a_ns, b_ns, a_count, b_count;
	bool is_kernel;
};

static const char *compare_ns(bool has, uint64_t ns, char *buffer)
{
	if (has)
		return gp_units_format_ns(ns, buffer, COMPARE_CELL);
	(void)snprintf(buffer, COMPARE_CELL, "–");
	return buffer;
}

/* "+12.3 ms" */
static const char *compare_change(const struct compare_row *row, char *buffer)
{
	char length[COMPARE_CELL];
	bool is_more = row->b_ns >= row->a_ns;

	if (!row->has_a || !row->has_b)
		(void)snprintf(buffer, COMPARE_CELL, "–");
	else if (row->a_ns == row->b_ns)
		(void)snprintf(buffer, COMPARE_CELL, "=");
	else
		(void)snprintf(buffer, COMPARE_CELL, "%s%s", is_more ? "+" : "−",
			       gp_units_format_ns(is_more ? row->b_ns - row->a_ns : row->a_ns - row->b_ns, length,
						  sizeof(length)));
	return buffer;
}

static const char *compare_times(const struct compare_row *row, char *buffer)
{
	if (row->has_a && row->has_b && row->a_ns)
		(void)gp_format_times(row->b_ns, row->a_ns, buffer, COMPARE_CELL);
	else
		(void)snprintf(buffer, COMPARE_CELL, "–");
	return buffer;
}

static void compare_cell(const struct compare *compare, const char *cell, size_t width)
{
	size_t has = gp_utf8_width(cell);

	fprintf(compare->stream, "%*s%s  ", (int)(width > has ? width - has : 0), "", cell);
}

static void compare_html_cell(const struct compare *compare, const char *cell, uint64_t value)
{
	fprintf(compare->stream, "<td data-v=\"%" PRIu64 "\">%s</td>", value, cell);
}

static void compare_html_row(const struct compare *compare, const struct compare_row *row)
{
	char cell[COMPARE_CELL], symbol[1200], cut[COMPARE_NAME * 4];
	const char *shown = row->is_kernel ? gp_symbol_short(row->name, symbol, sizeof(symbol)) : row->name;
	uint64_t change = row->b_ns > row->a_ns ? row->b_ns - row->a_ns : row->a_ns - row->b_ns;

	fputs("<tr><td class=\"n\" title=\"", compare->stream);
	gp_format_html(compare->stream, row->name);
	fputs("\">", compare->stream);
	gp_format_html(compare->stream, gp_format_cut(shown, COMPARE_NAME, cut, sizeof(cut)));
	fputs("</td>", compare->stream);
	compare_html_cell(compare, compare_ns(row->has_a, row->a_ns, cell), row->a_ns);
	compare_html_cell(compare, compare_ns(row->has_b, row->b_ns, cell), row->b_ns);
	compare_html_cell(compare, compare_change(row, cell), row->has_a && row->has_b ? change : 0);
	compare_html_cell(
		compare, compare_times(row, cell),
		row->has_a && row->has_b && row->a_ns ? (uint64_t)((double)row->b_ns / (double)row->a_ns * 1e3) : 0);
	fputs("</tr>\n", compare->stream);
}

static void compare_print(const struct compare *compare, const struct compare_row *row)
{
	char cell[COMPARE_CELL], name[1024], symbol[1200];

	if (compare->is_html) {
		compare_html_row(compare, row);
		return;
	}

	fputs("  ", compare->stream);
	compare_cell(compare, compare_ns(row->has_a, row->a_ns, cell), 9);
	compare_cell(compare, compare_ns(row->has_b, row->b_ns, cell), 9);
	compare_cell(compare, compare_change(row, cell), 10);
	compare_cell(compare, compare_times(row, cell), 6);
	fprintf(compare->stream, "%s\n",
		gp_format_cut(row->is_kernel ? gp_symbol_short(row->name, symbol, sizeof(symbol)) : row->name,
			      compare->width > 60 ? compare->width - 44 : 20, name, sizeof(name)));
}

static void compare_head(const struct compare *compare, const char *title)
{
	if (compare->is_html) {
		fprintf(compare->stream, "<section>\n<h2>%s</h2>\n<div class=\"card scroll\"><table><thead><tr>",
			title);
		for (size_t i = 0; i < sizeof(compare_columns) / sizeof(compare_columns[0]); i++)
			fprintf(compare->stream, "<th%s><button type=\"button\">%s</button></th>",
				i ? "" : " class=\"n\"", compare_columns[i]);
		fputs("</tr></thead><tbody>\n", compare->stream);
		return;
	}
	fprintf(compare->stream, "\n%s%s%s\n          A          B      change   B / A\n",
		compare->colour ? "\033[1m" : "", title, compare->colour ? "\033[0m" : "");
}

static void compare_foot(const struct compare *compare)
{
	if (compare->is_html)
		fputs("</tbody></table></div>\n<p class=\"hint\">This table is wider than the window: it scrolls "
		      "sideways.</p>\n</section>\n",
		      compare->stream);
}

static uint64_t compare_size(const struct compare_row *row)
{
	uint64_t a = row->has_a ? row->a_ns : 0, b = row->has_b ? row->b_ns : 0;

	return a > b ? a - b : b - a;
}

static int compare_order(const void *a, const void *b)
{
	uint64_t x = compare_size(a), y = compare_size(b);

	return x != y ? (x > y ? -1 : 1) :
			strcmp(((const struct compare_row *)a)->name, ((const struct compare_row *)b)->name);
}

static int compare_by_name(const void *a, const void *b)
{
	return strcmp(((const struct compare_row *)a)->name, ((const struct compare_row *)b)->name);
}

/* Rows of one run, then of the other, sorted by name and folded: processes have other numbers in another run. */
static int compare_names(const struct compare *compare, const char *title, const struct gp_report_name *a,
			 uint32_t a_count, const struct gp_report_name *b, uint32_t b_count)
{
	struct compare_row *rows = calloc(a_count + b_count + 1u, sizeof(*rows));
	uint32_t count = 0, kept = 0;

	if (!rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < a_count; i++)
		rows[count++] =
			(struct compare_row){ a[i].name, true, false, a[i].self_ns, 0, a[i].count, 0, a[i].is_kernel };
	for (uint32_t i = 0; i < b_count; i++)
		rows[count++] =
			(struct compare_row){ b[i].name, false, true, 0, b[i].self_ns, 0, b[i].count, b[i].is_kernel };
	qsort(rows, count, sizeof(*rows), compare_by_name);
	for (uint32_t i = 0; i < count; i++) {
		if (kept && !strcmp(rows[kept - 1].name, rows[i].name)) {
			rows[kept - 1].has_a |= rows[i].has_a;
			rows[kept - 1].has_b |= rows[i].has_b;
			rows[kept - 1].a_ns += rows[i].a_ns;
			rows[kept - 1].b_ns += rows[i].b_ns;
		} else {
			rows[kept++] = rows[i];
		}
	}
	qsort(rows, kept, sizeof(*rows), compare_order);
	if (kept)
		compare_head(compare, title);
	for (uint32_t i = 0; i < kept && (!compare->top || i < compare->top); i++)
		compare_print(compare, &rows[i]);
	if (kept)
		compare_foot(compare);
	if (compare->top && kept > compare->top)
		fprintf(compare->stream,
			compare->is_html ? "<p class=\"caption\">%" PRIu32 " more</p>\n" : "  … %" PRIu32 " more\n",
			kept - compare->top);
	free(rows);
	return 0;
}

static void compare_totals(const struct compare *compare, const struct gp_report *a, const struct gp_report *b)
{
	struct compare_row row = { "run", true, true, a->wall_ns, b->wall_ns, 0, 0 };

	compare_head(compare, "Where the time went");
	compare_print(compare, &row);
	for (int i = 0; i < GP_REPORT_LAYER_COUNT; i++) {
		row = (struct compare_row){ gp_report_layer_name(a, i),
					    a->layers[i].is_traced,
					    b->layers[i].is_traced,
					    a->layers[i].self_ns,
					    b->layers[i].self_ns,
					    0,
					    0 };
		if (row.has_a || row.has_b)
			compare_print(compare, &row);
	}
	row = (struct compare_row){ "GPU busy", a->has_gpu, b->has_gpu, a->gpu_busy_ns, b->gpu_busy_ns, 0, 0 };
	compare_print(compare, &row);
	row = (struct compare_row){ "kernels", a->kernel_count, b->kernel_count, a->compute_ns, b->compute_ns, 0, 0 };
	compare_print(compare, &row);
	row = (struct compare_row){ "copies", a->copy_count, b->copy_count, a->copy_ns, b->copy_ns, 0, 0 };
	compare_print(compare, &row);
	row = (struct compare_row){ "start-up", a->has_cold, b->has_cold, a->cold_ns, b->cold_ns, 0, 0 };
	compare_print(compare, &row);
	compare_foot(compare);
}

static void compare_latency(const struct compare *compare, const struct gp_report *a, const struct gp_report *b)
{
	const struct {
		const char *name;
		const struct gp_report_times *a, *b;
	} rows[] = {
		{ "wait, packet written to start", &a->wait_dispatch, &b->wait_dispatch },
		{ "wait, launch call to start", &a->wait_launch, &b->wait_launch },
		{ "run", &a->run, &b->run },
		{ "completion", &a->completion, &b->completion },
	};

	compare_head(compare, "A kernel's way (medians)");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct compare_row row = {
			rows[i].name, rows[i].a->count, rows[i].b->count, rows[i].a->p50_ns, rows[i].b->p50_ns, 0, 0
		};

		if (row.has_a || row.has_b)
			compare_print(compare, &row);
	}
	compare_foot(compare);
}

static bool compare_has_finding(const struct gp_report *report, const char *id)
{
	for (uint32_t i = 0; i < report->finding_count; i++)
		if (!strcmp(report->findings[i].id, id))
			return true;
	return false;
}

static void compare_findings(const struct compare *compare, const struct gp_report *a, const struct gp_report *b)
{
	fprintf(compare->stream, "\n%sFindings%s\n", compare->colour ? "\033[1m" : "",
		compare->colour ? "\033[0m" : "");
	for (uint32_t i = 0; i < a->finding_count; i++)
		fprintf(compare->stream, "  %s  %s\n", compare_has_finding(b, a->findings[i].id) ? "both  " : "gone  ",
			a->findings[i].title);
	for (uint32_t i = 0; i < b->finding_count; i++)
		if (!compare_has_finding(a, b->findings[i].id))
			fprintf(compare->stream, "  new     %s: %s\n", b->findings[i].title, b->findings[i].text);
	if (!a->finding_count && !b->finding_count)
		fprintf(compare->stream, "  none in either\n");
}

static void compare_html_finding(const struct compare *compare, const char *state,
				 const struct gp_report_finding *finding)
{
	fputs("<li><b>", compare->stream);
	gp_format_html(compare->stream, finding->title);
	fprintf(compare->stream, "</b><span class=\"tag\">%s</span><p>", state);
	gp_format_html(compare->stream, finding->text);
	fputs("</p></li>\n", compare->stream);
}

static void compare_html_findings(const struct compare *compare, const struct gp_report *a, const struct gp_report *b)
{
	fputs("<section>\n<h2>Findings</h2>\n<ol class=\"findings\">\n", compare->stream);
	for (uint32_t i = 0; i < b->finding_count; i++)
		if (!compare_has_finding(a, b->findings[i].id))
			compare_html_finding(compare, "new in B", &b->findings[i]);
	for (uint32_t i = 0; i < a->finding_count; i++)
		compare_html_finding(compare,
				     compare_has_finding(b, a->findings[i].id) ? "in both; as in A" : "gone in B",
				     &a->findings[i]);
	fputs("</ol>\n", compare->stream);
	if (!a->finding_count && !b->finding_count)
		fputs("<p>None in either.</p>\n", compare->stream);
	fputs("</section>\n", compare->stream);
}

static int compare_tables(const struct compare *compare, const struct gp_report *a, const struct gp_report *b)
{
	int r = compare_names(compare, "Calls (self time), largest change first", a->calls, a->call_count, b->calls,
			      b->call_count);

	if (!r)
		r = compare_names(compare, "Kernels, largest change first", a->kernels, a->kernel_name_count,
				  b->kernels, b->kernel_name_count);
	if (!r)
		r = compare_names(compare, "Copies", a->copies, a->copy_name_count, b->copies, b->copy_name_count);
	return r;
}

int gp_report_compare_html(FILE *stream, const struct gp_report *a, const struct gp_report *b)
{
	struct compare compare = { .stream = stream, .top = a->top && a->top < 200 ? 200 : a->top, .is_html = true };
	int r;

	fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
	      "content=\"width=device-width,initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n<title>gpreempt report: ",
	      stream);
	gp_format_html(stream, a->title);
	fputs(" against ", stream);
	gp_format_html(stream, b->title);
	fprintf(stream,
		"</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n<header>\n<p class=\"eyebrow\">gpreempt "
		"report --compare</p>\n<h1>",
		gp_report_html_style);
	gp_format_html(stream, a->title);
	fputs(" (A) against ", stream);
	gp_format_html(stream, b->title);
	fputs(" (B)</h1>\n<p class=\"caption\">What is in neither run, or not in its trace, is –.</p>\n</header>\n",
	      stream);
	compare_totals(&compare, a, b);
	compare_html_findings(&compare, a, b);
	compare_latency(&compare, a, b);
	r = compare_tables(&compare, a, b);
	fprintf(stream, "</main>\n<div id=\"tip\" role=\"status\"></div>\n<script>\n%s</script>\n</body>\n</html>\n",
		gp_report_html_script);
	if (r)
		return r;
	return fflush(stream) || ferror(stream) ? -EIO : 0;
}

int gp_report_compare_text(FILE *stream, const struct gp_report *a, const struct gp_report *b,
			   const struct gp_report_style *style)
{
	struct compare compare = { .stream = stream, .width = style->width, .top = a->top, .colour = style->colour };
	int r;

	fprintf(stream, "A: %s\nB: %s\n", a->title, b->title);
	compare_totals(&compare, a, b);
	compare_findings(&compare, a, b);
	compare_latency(&compare, a, b);
	r = compare_tables(&compare, a, b);
	if (r)
		return r;
	return fflush(stream) || ferror(stream) ? -EIO : 0;
}
