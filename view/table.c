/* SPDX-License-Identifier: MIT */
/* Owns the table on the terminal: one row per run and client, and below each run what it cost. Fits 110 columns. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "lib/units.h"
#include "lib/utf8.h"
#include "view/compare.h"
#include "view/format.h"
#include "view/result.h"

#define TABLE_WIDTH        110u /* columns */
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
	TABLE_RATE,
	TABLE_SHARE,
	TABLE_COLUMN_COUNT
};

static const char *const table_heads[TABLE_COLUMN_COUNT] = {
	"run", "client", "prio", "requests", "p50", "p90", "p99", "max", "×alone", "per s", "GPU",
};

struct table_row {
	char cells[TABLE_COLUMN_COUNT][TABLE_CELL_SIZE];
};

struct table {
	FILE *stream;
	bool colour;
	size_t widths[TABLE_COLUMN_COUNT];
};

static void table_fill(const struct gp_result *result, const struct gp_result_run *run,
		       const struct gp_compare_row *group, struct table_row *row)
{
	static const uint32_t permilles[] = { 500, 900, 990, 1000 };
	const struct gp_result_client *client = group->client, *alone = gp_compare_alone(result, client);
	bool has_latency = gp_compare_has_latency(client);

	memset(row, 0, sizeof(*row));
	(void)gp_format_cut(run->policy, TABLE_POLICY_WIDTH, row->cells[TABLE_POLICY], TABLE_CELL_SIZE);
	(void)gp_format_cut(group->name, TABLE_CLIENT_WIDTH, row->cells[TABLE_CLIENT], TABLE_CELL_SIZE);
	(void)snprintf(row->cells[TABLE_PRIORITY], TABLE_CELL_SIZE, "%" PRId32, client->priority);
	(void)gp_format_count(group->requests, row->cells[TABLE_REQUESTS], TABLE_CELL_SIZE);
	for (int i = 0; i < 4; i++) {
		if (has_latency)
			(void)gp_units_format_ns(gp_hist_quantile(&client->latency_ns, permilles[i]),
						 row->cells[TABLE_P50 + i], TABLE_CELL_SIZE);
		else
			strcpy(row->cells[TABLE_P50 + i], "–");
	}
	strcpy(row->cells[TABLE_ALONE], "–");
	if (has_latency && alone)
		(void)gp_format_times(gp_hist_quantile(&client->latency_ns, 990),
				      gp_hist_quantile(&alone->latency_ns, 990), row->cells[TABLE_ALONE],
				      TABLE_CELL_SIZE);
	(void)gp_format_rate(group->throughput_milli, row->cells[TABLE_RATE], TABLE_CELL_SIZE);
	(void)gp_format_share(group->gpu_share_ppm, row->cells[TABLE_SHARE], TABLE_CELL_SIZE);
}

static void table_measure(struct table *table, const struct gp_result *result)
{
	for (int i = 0; i < TABLE_COLUMN_COUNT; i++)
		table->widths[i] = gp_utf8_width(table_heads[i]);
	for (uint32_t i = 0; i < result->run_count; i++)
		for (uint32_t j = 0; j < result->runs[i].client_count;) {
			struct gp_compare_row group;
			struct table_row row;

			gp_compare_row_init(&group, &result->runs[i], j);
			j += group.count;
			table_fill(result, &result->runs[i], &group, &row);
			for (int k = 0; k < TABLE_COLUMN_COUNT; k++)
				if (gp_utf8_width(row.cells[k]) > table->widths[k])
					table->widths[k] = gp_utf8_width(row.cells[k]);
		}
}

static void table_style(const struct table *table, const char *style)
{
	if (table->colour)
		fputs(style, table->stream);
}

/* Names to the left, numbers to the right. */
static void table_cell(const struct table *table, int column, const char *text)
{
	int padding = (int)(table->widths[column] - gp_utf8_width(text));
	bool is_last = column == TABLE_COLUMN_COUNT - 1;

	if (column == TABLE_POLICY || column == TABLE_CLIENT)
		fprintf(table->stream, "%s%*s", text, padding, "");
	else
		fprintf(table->stream, "%*s%s", padding, "", text);
	fputs(is_last ? "" : "  ", table->stream);
}

static void table_head(const struct table *table, const struct gp_result *result)
{
	char text[GP_UNITS_TEXT_SIZE], mix[TABLE_MIX_WIDTH * 4 + 4], title[TABLE_TITLE_WIDTH * 4 + 4];

	table_style(table, TABLE_BOLD);
	fprintf(table->stream, "%s on %s", gp_format_cut(result->mix, TABLE_MIX_WIDTH, mix, sizeof(mix)),
		gp_format_cut(result->device_title[0] ? result->device_title : result->device, TABLE_TITLE_WIDTH, title,
			      sizeof(title)));
	table_style(table, TABLE_PLAIN);
	if (result->device_count > 1)
		fprintf(table->stream, " × %" PRIu32, result->device_count);
	fputs("\nsimulated, not measured", table->stream);
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

	if (*column && *column + 2 + gp_utf8_width(item) > TABLE_WIDTH) {
		fputs(",\n", table->stream);
		*column = 0;
	}
	if (*column)
		fprintf(table->stream, ", %s", item);
	else
		fprintf(table->stream, "%*s%s", (int)indent, "", item);
	*column += gp_utf8_width(item) + (*column ? 2 : indent);
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
	};
	char item[TABLE_ITEM_SIZE], text[GP_UNITS_TEXT_SIZE], longest[GP_UNITS_TEXT_SIZE];
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
	table_item(table, &column, item);
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
	struct gp_compare_row group;

	for (uint32_t i = 0; i < run->client_count; i += group.count) {
		struct table_row row;

		gp_compare_row_init(&group, run, i);
		table_fill(result, run, &group, &row);
		if (i)
			row.cells[TABLE_POLICY][0] = '\0';
		for (int j = 0; j < TABLE_COLUMN_COUNT; j++) {
			bool is_bold = j == TABLE_POLICY || (j == TABLE_P99 && gp_compare_has_latency(group.client));

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

static void table_legend(const struct table *table, const struct gp_result *result)
{
	bool has_alone = false, has_left = false, has_limited = false;

	for (uint32_t i = 0; i < result->run_count; i++) {
		has_alone |= !strcmp(result->runs[i].policy, "alone");
		has_left |= result->runs[i].left_short > 0;
		has_limited |= result->runs[i].limited > 0;
	}
	table_style(table, TABLE_DIM);
	fputs("\nprio: 99 = most urgent. p99: 99 of 100 requests were at least this fast, from arrival to "
	      "completion.\n",
	      table->stream);
	if (has_alone)
		fputs("×alone: p99 against the same client with the GPU to itself.\n", table->stream);
	fputs("per s: requests, or kernels of a batch client. inversion: urgent work waited while less urgent work "
	      "ran.\n",
	      table->stream);
	if (has_left)
		fputs("left alone: not preempted, because what was left to run was shorter than preempting it.\n",
		      table->stream);
	if (has_limited)
		fputs("held back: not preempted, because the budget for preemptions was spent.\n", table->stream);
	table_style(table, TABLE_PLAIN);
}

int gp_view_table(FILE *stream, const struct gp_result *result, bool colour)
{
	struct table table = { .stream = stream, .colour = colour };

	table_measure(&table, result);
	table_head(&table, result);
	for (uint32_t i = 0; i < result->run_count; i++)
		table_run(&table, result, &result->runs[i]);
	table_legend(&table, result);
	return fflush(stream) || ferror(stream) ? -EIO : 0;
}
