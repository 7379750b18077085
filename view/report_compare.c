/* SPDX-License-Identifier: MIT */
/* Owns two runs beside each other: what changed, the largest change first. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "lib/units.h"
#include "lib/utf8.h"
#include "view/format.h"
#include "view/report_view.h"

#define COMPARE_CELL 48u

struct compare {
	FILE *stream;
	uint32_t width, top;
	bool colour;
};

/* One thing in both runs; a value that one of them does not know has no number. */
struct compare_row {
	const char *name;
	bool has_a, has_b;
	uint64_t a_ns, b_ns, a_count, b_count;
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

static void compare_print(const struct compare *compare, const struct compare_row *row)
{
	char cell[COMPARE_CELL], name[1024];

	fputs("  ", compare->stream);
	compare_cell(compare, compare_ns(row->has_a, row->a_ns, cell), 9);
	compare_cell(compare, compare_ns(row->has_b, row->b_ns, cell), 9);
	compare_cell(compare, compare_change(row, cell), 10);
	compare_cell(compare, compare_times(row, cell), 6);
	fprintf(compare->stream, "%s\n",
		gp_format_cut(row->name, compare->width > 60 ? compare->width - 44 : 20, name, sizeof(name)));
}

static void compare_head(const struct compare *compare, const char *title)
{
	fprintf(compare->stream, "\n%s%s%s\n          A          B      change   B / A\n",
		compare->colour ? "\033[1m" : "", title, compare->colour ? "\033[0m" : "");
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
		rows[count++] = (struct compare_row){ a[i].name, true, false, a[i].self_ns, 0, a[i].count, 0 };
	for (uint32_t i = 0; i < b_count; i++)
		rows[count++] = (struct compare_row){ b[i].name, false, true, 0, b[i].self_ns, 0, b[i].count };
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
	if (compare->top && kept > compare->top)
		fprintf(compare->stream, "  … %" PRIu32 " more\n", kept - compare->top);
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

int gp_report_compare_text(FILE *stream, const struct gp_report *a, const struct gp_report *b,
			   const struct gp_report_style *style)
{
	struct compare compare = { .stream = stream, .width = style->width, .top = a->top, .colour = style->colour };
	int r;

	fprintf(stream, "A: %s\nB: %s\n", a->title, b->title);
	compare_totals(&compare, a, b);
	compare_findings(&compare, a, b);
	compare_latency(&compare, a, b);
	r = compare_names(&compare, "Calls (self time), largest change first", a->calls, a->call_count, b->calls,
			  b->call_count);
	if (!r)
		r = compare_names(&compare, "Kernels, largest change first", a->kernels, a->kernel_name_count,
				  b->kernels, b->kernel_name_count);
	if (!r)
		r = compare_names(&compare, "Copies", a->copies, a->copy_name_count, b->copies, b->copy_name_count);
	if (r)
		return r;
	return fflush(stream) || ferror(stream) ? -EIO : 0;
}
