/* SPDX-License-Identifier: MIT */
/* Owns the reading of the lab's data files. Every figure needs a source; a row without one is refused. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "lab/data.h"
#include "lib/cleanup.h"
#include "lib/csv.h"
#include "lib/file.h"
#include "lib/ini.h"
#include "lib/paths.h"
#include "lib/units.h"

#define DATA_SIZE_MAX  (1u << 20)
#define DATA_VALUE_MAX 1000000u /* whole units */

static const struct {
	const char *name;
	uint64_t min, max;
} data_params[LAB_PARAM_COUNT] = {
	[LAB_KERNEL] = { "kernel", 1000, 100000000 },    /* ns */
	[LAB_STAGES] = { "stages", 1, LAB_STAGE_MAX },   /* count */
	[LAB_FORK] = { "fork", 0, 1000000 },             /* ppm */
	[LAB_WAVE] = { "wave", 0, 1000000 },             /* ppm */
	[LAB_SLICE_LOSS] = { "slice-loss", 0, 9000000 }, /* ns */
};

const char *lab_param_name(enum lab_param param)
{
	return data_params[param].name;
}

const char *lab_param_format(enum lab_param param, uint64_t value, char *buffer, size_t buffer_size)
{
	if (param == LAB_STAGES)
		(void)snprintf(buffer, buffer_size, "%" PRIu64, value);
	else if (param == LAB_FORK || param == LAB_WAVE)
		(void)snprintf(buffer, buffer_size, "%" PRIu64 ".%" PRIu64 " %%", value / 10000u, value / 1000u % 10u);
	else
		(void)gp_units_format_ns(value, buffer, buffer_size);
	return buffer;
}

/* "99.75" as thousandths: digits, at most three behind the point. */
static int data_milli(const char *text, uint64_t *ret_milli)
{
	uint64_t value = 0, scale = 1000;
	size_t whole = strspn(text, "0123456789"), fraction = 0;

	if (!whole || whole > 7u)
		return -EINVAL;
	for (size_t i = 0; i < whole; i++)
		value = value * 10u + (uint64_t)(text[i] - '0');
	if (text[whole] == '.') {
		fraction = strspn(text + whole + 1u, "0123456789");
		if (!fraction || fraction > 3u)
			return -EINVAL;
	}
	if (text[whole + (fraction ? fraction + 1u : 0)] || value > DATA_VALUE_MAX)
		return -EINVAL;
	value *= scale;
	for (size_t i = 0; i < fraction; i++) {
		scale /= 10u;
		value += (uint64_t)(text[whole + 1u + i] - '0') * scale;
	}
	*ret_milli = value;
	return 0;
}

static int data_row(const struct gp_csv *csv, struct lab_datum *item, struct gp_error *error)
{
	const char *const *fields = csv->fields;

	if (csv->field_count != 5u)
		return gp_error_set(error, -EINVAL, "%s:%" PRIu32 ": %" PRIu32 " columns, 5 are needed", csv->file_name,
				    csv->line, csv->field_count);
	if (!*fields[0] || !*fields[1] || strlen(fields[0]) >= sizeof(item->table) ||
	    strlen(fields[1]) >= sizeof(item->row))
		return gp_error_set(error, -EINVAL,
				    "%s:%" PRIu32 ": the names of table and row have 1 to 23 characters",
				    csv->file_name, csv->line);
	if (!*fields[4] || strlen(fields[4]) >= sizeof(item->source))
		return gp_error_set(error, -EINVAL, "%s:%" PRIu32 ": a source of 1 to 95 characters is needed",
				    csv->file_name, csv->line);
	item->is_expected = !strcmp(fields[2], "expected");
	if (!item->is_expected && strcmp(fields[2], "measured"))
		return gp_error_set(error, -EINVAL, "%s:%" PRIu32 ": the kind is measured or expected, not \"%.40s\"",
				    csv->file_name, csv->line, fields[2]);
	if (data_milli(fields[3], &item->milli))
		return gp_error_set(error, -EINVAL,
				    "%s:%" PRIu32
				    ": \"%.40s\" is not a figure from 0 to %u with at most three decimals",
				    csv->file_name, csv->line, fields[3], DATA_VALUE_MAX);
	strcpy(item->table, fields[0]);
	strcpy(item->row, fields[1]);
	strcpy(item->source, fields[4]);
	return 0;
}

static int data_rows(struct gp_csv *csv, struct lab_data *data, struct gp_error *error)
{
	int ret = gp_csv_next(csv, error);

	if (ret < 0)
		return ret;
	if (!ret || csv->field_count != 5u || strcmp(csv->fields[0], "table"))
		return gp_error_set(error, -EINVAL, "%s: the first line must be table,row,kind,value,source",
				    csv->file_name);
	for (;;) {
		ret = gp_csv_next(csv, error);
		if (ret <= 0)
			break;
		if (data->count == LAB_DATA_MAX)
			return gp_error_set(error, -EFBIG, "%s: more than %u figures", csv->file_name, LAB_DATA_MAX);
		ret = data_row(csv, &data->items[data->count], error);
		if (ret)
			return ret;
		data->count++;
	}
	return ret;
}

int lab_data_parse(const char *text, size_t text_size, const char *file_name, struct lab_data *ret_data,
		   struct gp_error *error)
{
	GP_AUTO_FREE struct lab_data *data = calloc(1, sizeof(*data));
	GP_AUTO_FREE struct gp_csv *csv = malloc(sizeof(*csv));
	int ret;

	if (!data || !csv)
		return gp_error_set(error, -ENOMEM, "out of memory");
	gp_csv_init(csv, text, text_size, file_name);
	ret = data_rows(csv, data, error);
	if (!ret)
		*ret_data = *data;
	return ret;
}

static int data_read(const char *relative, char **ret_text, size_t *ret_size, char *path, size_t path_size,
		     struct gp_error *error)
{
	int ret = gp_paths_share(relative, path, path_size);

	if (ret)
		return gp_error_set(error, ret, "the data file %s is not there: %s", relative, strerror(-ret));
	return gp_file_read(path, DATA_SIZE_MAX, ret_text, ret_size, error);
}

int lab_data_load(struct lab_data *ret_data, struct gp_error *error)
{
	GP_AUTO_FREE char *text = NULL;
	char path[4096];
	size_t size;
	int ret = data_read("lab/published.csv", &text, &size, path, sizeof(path), error);

	return ret ? ret : lab_data_parse(text, size, path, ret_data, error);
}

void lab_data_cell(const struct lab_data *data, const char *table, const char *row, bool is_expected,
		   struct gp_lab_cell *cell)
{
	for (uint32_t i = 0; i < data->count; i++) {
		const struct lab_datum *item = &data->items[i];

		if (item->is_expected != is_expected || strcmp(item->table, table) || strcmp(item->row, row))
			continue;
		if (!cell->has)
			*cell = (struct gp_lab_cell){ .has = true,
						      .mid = item->milli,
						      .low = item->milli,
						      .high = item->milli };
		cell->low = item->milli < cell->low ? item->milli : cell->low;
		cell->high = item->milli > cell->high ? item->milli : cell->high;
	}
}

struct data_fit {
	struct lab_fit fit;
	uint32_t seen;
};

/* name = value | rows it was fitted on | how well determined */
static int data_param(void *context, const char *section, const char *name, const char *value, uint32_t line,
		      struct gp_error *error)
{
	struct data_fit *read = context;
	uint32_t param = 0;
	char text[32];
	const char *rows = name ? strchr(value, '|') : NULL, *determined = rows ? strchr(rows + 1, '|') : NULL;

	(void)line;
	if (!name)
		return strcmp(section, "fit") ? gp_error_set(error, -EINVAL, "there is one section, [fit]") : 0;
	while (param < LAB_PARAM_COUNT && strcmp(data_params[param].name, name))
		param++;
	if (param == LAB_PARAM_COUNT || strcmp(section, "fit"))
		return gp_error_set(error, -EINVAL,
				    "unknown parameter \"%.40s\"; valid: kernel, stages, fork, wave, slice-loss", name);
	if (!determined || (size_t)(rows - value) >= sizeof(text) ||
	    (size_t)(determined - rows) >= sizeof(read->fit.rows[0]) ||
	    strlen(determined) >= sizeof(read->fit.determined[0]))
		return gp_error_set(error, -EINVAL, "%s needs \"value | rows | how well determined\"", name);
	(void)snprintf(text, sizeof(text), "%.*s", (int)(rows - value), value);
	text[strcspn(text, " \t")] = '\0';
	if (gp_units_parse_count(text, name, data_params[param].min, data_params[param].max, &read->fit.values[param],
				 error))
		return -EINVAL;
	(void)snprintf(read->fit.rows[param], sizeof(read->fit.rows[0]), "%.*s", (int)(determined - rows - 1),
		       rows + 1 + strspn(rows + 1, " "));
	(void)snprintf(read->fit.determined[param], sizeof(read->fit.determined[0]), "%s",
		       determined + 1 + strspn(determined + 1, " "));
	rows = read->fit.rows[param];
	read->fit.rows[param][strcspn(rows, "|")] = '\0';
	while (*rows && rows[strlen(rows) - 1] == ' ')
		read->fit.rows[param][strlen(rows) - 1] = '\0';
	read->seen |= 1u << param;
	return 0;
}

int lab_fit_parse(const char *text, size_t text_size, const char *file_name, struct lab_fit *ret_fit,
		  struct gp_error *error)
{
	struct data_fit read = { .seen = 0 };
	int ret = gp_ini_parse(text, text_size, file_name, data_param, &read, error);

	if (ret)
		return ret;
	for (uint32_t i = 0; i < LAB_PARAM_COUNT; i++)
		if (!(read.seen >> i & 1u))
			return gp_error_set(error, -EINVAL, "%s: %s is missing", file_name, data_params[i].name);
	*ret_fit = read.fit;
	return 0;
}

int lab_fit_load(struct lab_fit *ret_fit, struct gp_error *error)
{
	GP_AUTO_FREE char *text = NULL;
	char path[4096];
	size_t size;
	int ret = data_read("lab/fit.ini", &text, &size, path, sizeof(path), error);

	return ret ? ret : lab_fit_parse(text, size, path, ret_fit, error);
}

void lab_fit_load_into(const struct lab_fit *fit, struct lab_load *load)
{
	load->kernel_ns = fit->values[LAB_KERNEL];
	load->stages = (uint32_t)fit->values[LAB_STAGES];
	load->fork_ppm = (uint32_t)fit->values[LAB_FORK];
	load->wave_ppm = (uint32_t)fit->values[LAB_WAVE];
	load->slice_loss_ns = fit->values[LAB_SLICE_LOSS];
}

bool lab_fit_uses(const struct lab_fit *fit, const char *row)
{
	size_t size = strlen(row);

	for (uint32_t i = 0; i < LAB_PARAM_COUNT; i++)
		for (const char *at = fit->rows[i]; (at = strstr(at, row)); at += size)
			if ((at == fit->rows[i] || at[-1] == ' ') && (!at[size] || at[size] == ',' || at[size] == ' '))
				return true;
	return false;
}
