/* SPDX-License-Identifier: MIT */
/* Owns the table on the terminal: one row per run and client, and below each run what it cost. Fits 110 columns. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "lib/units.h"
#include "lib/utf8.h"
#include "view/finding.h"
#include "view/format.h"
#include "view/row.h"

#define TABLE_WIDTH        110u /* columns, at most */
#define TABLE_WIDTH_MIN    40u
#define TABLE_LEGEND_SIZE  256u
#define TABLE_CELL_SIZE    64u
#define TABLE_ITEM_SIZE    128u
#define TABLE_POLICY_WIDTH 10u /* names beyond are cut with an ellipsis */
#define TABLE_CLIENT_WIDTH 16u
#define TABLE_MIX_WIDTH    32u
#define TABLE_TITLE_WIDTH  64u

#define TABLE_BOLD  "\033[1m"
#define TABLE_DIM   "\033[2m"
#define TABLE_PLAIN "\033[0m"

enum table_column {
	TABLE_POLICY,
	TABLE_CLIENT,
	TABLE_PRIORITY,
	TABLE_REQUESTS,
	TABLE_P50,
	TABLE_P90,
	TABLE_P99,
	TABLE_MAX,
	TABLE_ALONE,
	TABLE_DEADLINES, /* only if somebody has one */
	TABLE_RATE,
	TABLE_SHARE,
	TABLE_COLUMN_COUNT
};

static const char *const table_heads[TABLE_COLUMN_COUNT] = {
	"run", "client", "prio", "requests", "p50", "p90", "p99", "max", "×alone", "in time", "per s", "GPU",
};

struct table_row {
	char cells[TABLE_COLUMN_COUNT][TABLE_CELL_SIZE];
};

struct table {
	FILE *stream;
	size_t width; /* columns there are */
	bool colour;
	size_t gap; /* between columns */
	size_t widths[TABLE_COLUMN_COUNT];
};

static void table_fill(const struct gp_result *result, const struct gp_result_run *run, const struct gp_row *group,
		       struct table_row *row)
{
	static const uint32_t permilles[] = { 500, 900, 990, 1000 };

	memset(row, 0, sizeof(*row));
	(void)gp_format_cut(run->policy, TABLE_POLICY_WIDTH, row->cells[TABLE_POLICY], TABLE_CELL_SIZE);
	(void)gp_format_cut(group->name, TABLE_CLIENT_WIDTH, row->cells[TABLE_CLIENT], TABLE_CELL_SIZE);
	(void)snprintf(row->cells[TABLE_PRIORITY], TABLE_CELL_SIZE, "%" PRId32, group->client->priority);
	(void)gp_format_count(group->requests, row->cells[TABLE_REQUESTS], TABLE_CELL_SIZE);
	for (int i = 0; i < 4; i++)
		(void)gp_row_format_latency(group, permilles[i], row->cells[TABLE_P50 + i], TABLE_CELL_SIZE);
	(void)gp_row_format_times(group, result, row->cells[TABLE_ALONE], TABLE_CELL_SIZE);
	(void)gp_row_format_deadlines(group, row->cells[TABLE_DEADLINES], TABLE_CELL_SIZE);
	(void)gp_row_format_rate(group, row->cells[TABLE_RATE], TABLE_CELL_SIZE);
	(void)gp_row_format_share(group, row->cells[TABLE_SHARE], TABLE_CELL_SIZE);
}

static size_t table_total(const struct table *table)
{
	size_t total = 0;

	for (int i = 0; i < TABLE_COLUMN_COUNT; i++)
		total += table->widths[i] ? table->widths[i] + table->gap : 0;
	return total - table->gap;
}

/* Gives up columns of one that is wider than `least`, as many as the table is too wide. */
static void table_shrink(struct table *table, int column, size_t least)
{
	size_t total = table_total(table), spare;

	if (total <= table->width || table->widths[column] <= least)
		return;
	spare = table->widths[column] - least;
	table->widths[column] -= total - table->width < spare ? total - table->width : spare;
}

/* Numbers are never cut: names give way, then the space between columns, then names again; on a narrow terminal whole
 * columns, those first that say least. */
static void table_fit(struct table *table)
{
	static const enum table_column least[] = { TABLE_MAX, TABLE_P90, TABLE_REQUESTS, TABLE_RATE, TABLE_PRIORITY };

	table_shrink(table, TABLE_CLIENT, 10);
	table_shrink(table, TABLE_POLICY, 7);
	if (table_total(table) > table->width)
		table->gap = 1;
	table_shrink(table, TABLE_CLIENT, 6);
	table_shrink(table, TABLE_POLICY, 5);
	for (size_t i = 0; i < sizeof(least) / sizeof(least[0]) && table_total(table) > table->width; i++)
		table->widths[least[i]] = 0;
}

static void table_measure(struct table *table, const struct gp_result *result)
{
	struct gp_row group;

	table->gap = 2;
	for (int i = 0; i < TABLE_COLUMN_COUNT; i++)
		table->widths[i] = gp_utf8_width(table_heads[i]);
	for (uint32_t i = 0; i < result->run_count; i++)
		for (uint32_t j = 0; j < result->runs[i].client_count; j += group.count) {
			struct table_row row;

			gp_row_init(&group, &result->runs[i], j);
			table_fill(result, &result->runs[i], &group, &row);
			for (int k = 0; k < TABLE_COLUMN_COUNT; k++)
				if (gp_utf8_width(row.cells[k]) > table->widths[k])
					table->widths[k] = gp_utf8_width(row.cells[k]);
		}
	if (!gp_row_has_deadlines(result))
		table->widths[TABLE_DEADLINES] = 0;
	table_fit(table);
}

static void table_style(const struct table *table, const char *style)
{
	if (table->colour)
		fputs(style, table->stream);
}

/* Names to the left, numbers to the right. */
static void table_cell(const struct table *table, int column, const char *text)
{
	char cut[TABLE_CELL_SIZE * 2];
	int padding;

	if (!table->widths[column])
		return;
	(void)gp_format_cut(text, table->widths[column], cut, sizeof(cut));
	padding = (int)(table->widths[column] - gp_utf8_width(cut));
	if (column == TABLE_POLICY || column == TABLE_CLIENT)
		fprintf(table->stream, "%s%*s", cut, padding, "");
	else
		fprintf(table->stream, "%*s%s", padding, "", cut);
	if (column < TABLE_COLUMN_COUNT - 1)
		fprintf(table->stream, "%*s", (int)table->gap, "");
}

static void table_head(const struct table *table, const struct gp_result *result)
{
	char text[GP_UNITS_TEXT_SIZE], mix[TABLE_MIX_WIDTH * 4 + 4], title[TABLE_TITLE_WIDTH * 4 + 4],
		whole[TABLE_WIDTH * 4 + 4];

	table_style(table, TABLE_BOLD);
	if (result->mix_title[0])
		fprintf(table->stream, "%s\n", gp_format_cut(result->mix_title, table->width, whole, sizeof(whole)));
	fprintf(table->stream, "%s on %s", gp_format_cut(result->mix, TABLE_MIX_WIDTH, mix, sizeof(mix)),
		gp_format_cut(result->device_title[0] ? result->device_title : result->device, TABLE_TITLE_WIDTH, title,
			      sizeof(title)));
	table_style(table, TABLE_PLAIN);
	if (result->device_count > 1)
		fprintf(table->stream, " × %" PRIu32, result->device_count);
	fputs(result->is_emulated ? "\nprograms that ran on a virtual node, not measured on a GPU" :
				    "\nsimulated, not measured",
	      table->stream);
	if (result->run_count)
		fprintf(table->stream, ": %s of device time",
			gp_format_tick(result->runs[0].duration_ns, text, sizeof(text)));
	fprintf(table->stream, ", seed %" PRIu64, result->seed);
	if (result->gate[0])
		fprintf(table->stream, ", gate per %s", result->gate);
	if (result->gate_cost_ns)
		fprintf(table->stream, " at %s", gp_format_tick(result->gate_cost_ns, text, sizeof(text)));
	if (result->dilate > 1)
		fprintf(table->stream, ", dilated %" PRIu32 "×", result->dilate);
	fputs("\n\n", table->stream);
	table_style(table, TABLE_DIM);
	for (int i = 0; i < TABLE_COLUMN_COUNT; i++)
		table_cell(table, i, table_heads[i]);
	table_style(table, TABLE_PLAIN);
	fputc('\n', table->stream);
}

/* One item of a sentence that goes on in the next line where it would be too wide. */
static void table_item(const struct table *table, size_t *column, const char *item)
{
	size_t indent = table->widths[TABLE_POLICY] + 2;

	if (*column && *column + 2 + gp_utf8_width(item) > table->width) {
		fputs(",\n", table->stream);
		*column = 0;
	}
	if (*column)
		fprintf(table->stream, ", %s", item);
	else
		fprintf(table->stream, "%*s%s", (int)indent, "", item);
	*column += gp_utf8_width(item) + (*column ? 2 : indent);
}

static uint64_t table_refused(const struct gp_result_run *run)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < run->client_count; i++)
		count += run->clients[i].deadlines_refused;
	return count;
}

/* What a run did, in words; rare things only where they happened. */
static void table_costs(const struct table *table, const struct gp_result_run *run)
{
	const struct {
		uint64_t count;
		const char *one, *many;
	} rare[] = {
		{ run->turns, "turn", "turns" },
		{ run->left_short, "time left alone", "times left alone" },
		{ run->limited, "held back", "held back" },
		{ run->aged, "raised by age", "raised by age" },
		{ table_refused(run), "deadline refused by the admission test",
		  "deadlines refused by the admission test" },
	};
	char item[TABLE_ITEM_SIZE], text[GP_UNITS_TEXT_SIZE], longest[GP_UNITS_TEXT_SIZE];
	uint64_t unfinished = gp_row_unfinished(run);
	size_t column = 0;

	table_style(table, TABLE_DIM);
	(void)snprintf(item, sizeof(item), "%s preemption%s", gp_format_count(run->preemptions, text, sizeof(text)),
		       run->preemptions == 1 ? "" : "s");
	table_item(table, &column, item);
	(void)snprintf(item, sizeof(item), "%s inversion%s", gp_format_count(run->inversion_count, text, sizeof(text)),
		       run->inversion_count == 1 ? "" : "s");
	if (run->inversion_count) {
		size_t used = strlen(item);

		(void)snprintf(item + used, sizeof(item) - used, " (%s in all, longest %s)",
			       gp_format_tick(run->inversion_ns, text, sizeof(text)),
			       gp_format_tick(run->inversion_ns_max, longest, sizeof(longest)));
	}
	if (!run->inversions_unknown)
		table_item(table, &column, item);
	if (unfinished) {
		(void)snprintf(item, sizeof(item), "%s request%s unfinished at the end",
			       gp_format_count(unfinished, text, sizeof(text)), unfinished == 1 ? "" : "s");
		table_item(table, &column, item);
	}
	for (size_t i = 0; i < sizeof(rare) / sizeof(rare[0]); i++) {
		if (!rare[i].count)
			continue;
		(void)snprintf(item, sizeof(item), "%s %s", gp_format_count(rare[i].count, text, sizeof(text)),
			       rare[i].count == 1 ? rare[i].one : rare[i].many);
		table_item(table, &column, item);
	}
	if (run->killed_ns) {
		(void)snprintf(item, sizeof(item), "%s of work thrown away",
			       gp_format_tick(run->killed_ns, text, sizeof(text)));
		table_item(table, &column, item);
	}
	table_style(table, TABLE_PLAIN);
	fputc('\n', table->stream);
}

static void table_run(const struct table *table, const struct gp_result *result, const struct gp_result_run *run)
{
	struct gp_row group;

	for (uint32_t i = 0; i < run->client_count; i += group.count) {
		struct table_row row;

		gp_row_init(&group, run, i);
		table_fill(result, run, &group, &row);
		if (i)
			row.cells[TABLE_POLICY][0] = '\0';
		for (int j = 0; j < TABLE_COLUMN_COUNT; j++) {
			bool is_bold = j == TABLE_POLICY || (j == TABLE_P99 && gp_row_has_latency(&group));

			if (is_bold)
				table_style(table, TABLE_BOLD);
			table_cell(table, j, row.cells[j]);
			if (is_bold)
				table_style(table, TABLE_PLAIN);
		}
		fputc('\n', table->stream);
	}
	table_costs(table, run);
}

/* What would read badly at the start of a line: a unit, a sign, a number after its sign. */
static bool table_is_glued(const char *before, const char *word)
{
	size_t length = strlen(before);
	char last = length ? before[length - 1] : ' ';

	return *word == '>' || *word == '%' || last == '>' || (last >= '0' && last <= '9');
}

/* A paragraph, wrapped at spaces; writes into `word`. */
static void table_wrap(const struct table *table, char *word)
{
	size_t column = 0;

	while (*word) {
		char *end = word, *before = word;
		size_t width;
		bool is_last;

		for (;;) {
			end += strcspn(end, " ");
			is_last = !*end;
			*end = '\0';
			if (is_last || !table_is_glued(before, end + 1))
				break;
			*end++ = ' ';
			before = end;
		}
		width = gp_utf8_width(word);
		if (column && column + 1 + width > table->width) {
			fputc('\n', table->stream);
			column = 0;
		}
		fprintf(table->stream, "%s%s", column ? " " : "", word);
		column += width + (column ? 1 : 0);
		word = is_last ? end : end + 1;
	}
	fputc('\n', table->stream);
}

/* The result in words, where there is something to compare with. */
static void table_finding(const struct table *table, const struct gp_result *result)
{
	char text[GP_FINDING_SIZE];

	if (!gp_row_run(result, GP_RESULT_ALONE) || !gp_row_run(result, GP_RESULT_STOCK) ||
	    !*gp_finding_text(result, text, sizeof(text)))
		return;
	fputc('\n', table->stream);
	table_wrap(table, text);
}

static void table_explain(const struct table *table, const char *line)
{
	char text[TABLE_LEGEND_SIZE];

	(void)snprintf(text, sizeof(text), "%s", line);
	table_wrap(table, text);
}

/* How far a kernel list of the model is from what was measured, and why. */
static void table_lists(const struct table *table, const struct gp_result *result)
{
	char line[TABLE_LEGEND_SIZE], model[GP_UNITS_TEXT_SIZE], measured[GP_UNITS_TEXT_SIZE];

	for (uint32_t i = 0; i < result->list_count; i++) {
		const struct gp_result_list *list = &result->lists[i];
		bool more = list->model_ns >= list->measured_ns;
		uint64_t off = more ? list->model_ns - list->measured_ns : list->measured_ns - list->model_ns;

		if (!list->measured_ns)
			continue;
		(void)snprintf(line, sizeof(line),
			       "%s: a lone request takes %s in a model of the %s, %s as measured (%s%u %%).",
			       list->name, gp_units_format_ns(list->model_ns, model, sizeof(model)), list->device,
			       gp_units_format_ns(list->measured_ns, measured, sizeof(measured)), more ? "+" : "-",
			       (unsigned)(off * 100u / list->measured_ns));
		table_explain(table, line);
	}
	if (result->list_count)
		table_explain(
			table,
			"The list's kernels were timed one by one, each with its launch, which overlaps in a request; "
			"the model adds a packet's time.");
}

static void table_legend(const struct table *table, const struct gp_result *result)
{
	bool has_alone = false, has_left = false, has_limited = false, has_unfinished = false;

	for (uint32_t i = 0; i < result->run_count; i++) {
		has_alone |= result->runs[i].kind == GP_RESULT_ALONE;
		has_left |= result->runs[i].left_short > 0;
		has_limited |= result->runs[i].limited > 0;
		has_unfinished |= gp_row_unfinished(&result->runs[i]) > 0;
	}
	table_style(table, TABLE_DIM);
	fputc('\n', table->stream);
	table_explain(table, "prio: 99 = most urgent. p99: 99 of 100 requests were at least this fast, from arrival to "
			     "completion.");
	if (gp_row_has_deadlines(result))
		table_explain(table, "in time: requests that met their deadline, of all that ended or missed it.");
	if (has_alone)
		table_explain(table, "×alone: p99 against the same client with the GPU to itself.");
	table_explain(table, "per s: requests, or iterations of a batch client. inversion: urgent work waited while "
			     "less urgent work ran.");
	if (has_unfinished) {
		table_explain(table, "unfinished: still waiting when the run ended; they count with the time they had "
				     "waited, so the true");
		table_explain(table, "latencies are longer (>).");
	}
	if (has_left)
		table_explain(table, "left alone: not preempted, because what was left to run was shorter than "
				     "preempting it.");
	if (has_limited)
		table_explain(table, "held back: not preempted, because the budget for preemptions was spent.");
	table_lists(table, result);
	table_style(table, TABLE_PLAIN);
}

int gp_view_table(FILE *stream, const struct gp_result *result, bool colour, uint32_t width)
{
	struct table table = { .stream = stream, .colour = colour, .width = width };

	table.width = !width || width > TABLE_WIDTH ? TABLE_WIDTH : width < TABLE_WIDTH_MIN ? TABLE_WIDTH_MIN : width;

	table_measure(&table, result);
	table_head(&table, result);
	for (uint32_t i = 0; i < result->run_count; i++)
		table_run(&table, result, &result->runs[i]);
	table_finding(&table, result);
	table_legend(&table, result);
	return fflush(stream) || ferror(stream) ? -EIO : 0;
}
