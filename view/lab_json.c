/* SPDX-License-Identifier: MIT */
/* Owns the lab as JSON: docs/lab.md has the schema. */
#include <errno.h>
#include "lib/json_writer.h"
#include "view/lab.h"

static void lab_json_cell(struct gp_json_writer *writer, const char *key, const struct gp_lab_cell *cell)
{
	if (!cell->has) {
		gp_json_writer_null(writer, key);
		return;
	}
	if (cell->is_text) {
		gp_json_writer_string(writer, key, cell->text);
		return;
	}
	gp_json_writer_begin(writer, key, '{');
	gp_json_writer_decimal(writer, "value", cell->mid, 3);
	gp_json_writer_decimal(writer, "low", cell->low, 3);
	gp_json_writer_decimal(writer, "high", cell->high, 3);
	gp_json_writer_end(writer, '}');
}

static void lab_json_table(struct gp_json_writer *writer, const struct gp_lab_table *table)
{
	gp_json_writer_begin(writer, NULL, '{');
	gp_json_writer_string(writer, "title", table->title);
	gp_json_writer_string(writer, "unit", table->unit);
	gp_json_writer_string(writer, "measured_head", gp_lab_measured_head(table));
	gp_json_writer_begin(writer, "rows", '[');
	for (uint32_t i = 0; i < table->row_count; i++) {
		const struct gp_lab_row *row = &table->rows[i];

		gp_json_writer_begin(writer, NULL, '{');
		gp_json_writer_string(writer, "row", row->label);
		lab_json_cell(writer, "measured", &row->measured);
		lab_json_cell(writer, "expected", &row->expected);
		lab_json_cell(writer, "model", &row->predicted);
		gp_json_writer_string(writer, "mark", gp_lab_mark_name(row->mark));
		if (row->verdict == GP_LAB_UNSCORED)
			gp_json_writer_null(writer, "verdict");
		else
			gp_json_writer_string(writer, "verdict", gp_lab_verdict_name(row->verdict));
		gp_json_writer_string(writer, "note", row->note);
		gp_json_writer_end(writer, '}');
	}
	gp_json_writer_end(writer, ']');
	gp_json_writer_end(writer, '}');
}

static void lab_json_part(struct gp_json_writer *writer, const struct gp_lab *lab, const struct gp_lab_part *part)
{
	gp_json_writer_begin(writer, NULL, '{');
	gp_json_writer_string(writer, "name", part->name);
	gp_json_writer_string(writer, "title", part->title);
	gp_json_writer_string(writer, "device", gp_lab_part_device(lab, part));
	gp_json_writer_string(writer, "question", part->question);
	gp_json_writer_string(writer, "answer", part->answer);
	gp_json_writer_string(writer, "falsify", part->falsify);
	gp_json_writer_string(writer, "command", part->command);
	gp_json_writer_begin(writer, "tables", '[');
	for (uint32_t i = 0; i < part->table_count; i++)
		lab_json_table(writer, &part->tables[i]);
	gp_json_writer_end(writer, ']');
	gp_json_writer_end(writer, '}');
}

int gp_view_lab_json(FILE *stream, const struct gp_lab *lab)
{
	struct gp_json_writer writer;

	gp_json_writer_init(&writer, stream);
	gp_json_writer_begin(&writer, NULL, '{');
	gp_json_writer_string(&writer, "schema", "gpreempt-lab-1");
	gp_json_writer_string(&writer, "version", lab->version);
	gp_json_writer_string(&writer, "device", gp_lab_device(lab));
	gp_json_writer_string(&writer, "command", lab->command);
	gp_json_writer_u64(&writer, "random_seeds", lab->seed_count);
	gp_json_writer_begin(&writer, "fitted", '[');
	for (uint32_t i = 0; i < lab->param_count; i++) {
		gp_json_writer_begin(&writer, NULL, '{');
		gp_json_writer_string(&writer, "name", lab->params[i].name);
		gp_json_writer_string(&writer, "value", lab->params[i].value);
		gp_json_writer_string(&writer, "fitted_on", lab->params[i].fitted_on);
		gp_json_writer_string(&writer, "determined", lab->params[i].determined);
		gp_json_writer_end(&writer, '}');
	}
	gp_json_writer_end(&writer, ']');
	gp_json_writer_begin(&writer, "experiments", '[');
	for (uint32_t i = 0; i < lab->part_count; i++)
		lab_json_part(&writer, lab, lab->parts[i]);
	gp_json_writer_end(&writer, ']');
	gp_json_writer_end(&writer, '}');
	return ferror(stream) ? -EIO : 0;
}
