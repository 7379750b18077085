/* SPDX-License-Identifier: MIT */
/* Owns the lab as a whole: its data, the runs it remembers, and the building blocks experiments are made of. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "lab/keys.h"
#include "lab/lab.h"
#include "lib/paths.h"

#define LAB_DURATION_NS 1200000000u

const struct lab_experiment *lab_experiment_find(const char *name)
{
	for (uint32_t i = 0; lab_experiments[i]; i++)
		if (!strcmp(lab_experiments[i]->name, name))
			return lab_experiments[i];
	return NULL;
}

/* The device behind the published figures, and a HIP process as it is by default: four streams, four queues. */
static void lab_default(struct lab *lab)
{
	memset(&lab->base, 0, sizeof(lab->base)); /* padding too: setups are compared by their bytes */
	lab->base.desc = &lab->desc;
	lab_fit_load_into(&lab->fit, &lab->base.load);
	lab->base.load.jitter_ppm = 500000;
	lab->base.load.host_ns = 300000;
	lab->base.process_count = 2;
	lab->base.stream_count = lab->base.queue_count = 4;
	lab->base.kcq_count = 8;
	lab->base.ring_count = 8;
	lab->base.entity_count = 4;
	lab->base.job_ns = 10000;
	lab->base.quantum_ns = (uint64_t)gp_desc_get(&lab->desc, GP_DESC_QUEUE_QUANTUM);
	lab->base.process_quantum_ns = (uint64_t)gp_desc_get(&lab->desc, GP_DESC_PROCESS_QUANTUM);
	lab->base.rotate = gp_desc_get(&lab->desc, GP_DESC_BLOCKED_HEAD) != 0;
	lab->base.pack_slots = gp_desc_get(&lab->desc, GP_DESC_SLICE_PACKING) != 0;
	lab->base.duration_ns = LAB_DURATION_NS;
	lab->seeds = 6;
}

/* The load is that of a device with the command processor of gfx9, and kernels sized for its compute units. */
static int lab_load_device(struct lab *lab, const char *device_path, struct gp_error *error)
{
	char path[4096];
	int ret = 0;

	if (!device_path)
		ret = gp_paths_share("devices/mi308x.ini", path, sizeof(path));
	if (ret)
		return gp_error_set(error, ret, "the device description devices/mi308x.ini is not there");
	ret = gp_desc_load(device_path ? device_path : path, &lab->desc, error);
	if (ret)
		return ret;
	if (gp_desc_get(&lab->desc, GP_DESC_SCHEDULER) != GP_SCHEDULER_CPSCH ||
	    gp_desc_get(&lab->desc, GP_DESC_CU_COUNT) < 2)
		return gp_error_set(
			error, -EINVAL,
			"%s: the lab's load needs a device with the scheduler cpsch and at least 2 compute units",
			device_path);
	return 0;
}

int lab_init(struct lab *lab, const char *device_path, struct gp_error *error)
{
	int ret = lab_load_device(lab, device_path, error);

	if (!ret)
		ret = lab_data_load(&lab->data, error);
	if (!ret)
		ret = lab_fit_load(&lab->fit, error);
	if (!ret)
		lab_default(lab);
	lab->is_other_device = device_path;
	return ret;
}

void lab_describe(const struct lab *lab, struct gp_lab *ret_view)
{
	(void)snprintf(ret_view->device, sizeof(ret_view->device), "%s", lab->desc.title);
	ret_view->seed_count = lab->seeds;
	for (uint32_t i = 0; i < LAB_PARAM_COUNT; i++) {
		struct gp_lab_param *param = &ret_view->params[ret_view->param_count++];

		(void)snprintf(param->name, sizeof(param->name), "%s", lab_param_name((enum lab_param)i));
		(void)lab_param_format((enum lab_param)i, lab->fit.values[i], param->value, sizeof(param->value));
		(void)snprintf(param->fitted_on, sizeof(param->fitted_on), "%s", lab->fit.rows[i]);
		(void)snprintf(param->determined, sizeof(param->determined), "%s", lab->fit.determined[i]);
	}
}

/* Figures of one device say nothing about a model of another. What is computed from the driver's source stays. */
static void lab_unscore(struct gp_lab_part *part)
{
	for (uint32_t i = 0; i < part->table_count; i++)
		for (uint32_t k = 0; k < part->tables[i].row_count; k++)
			if (part->tables[i].rows[k].mark != GP_LAB_COMPUTED &&
			    part->tables[i].rows[k].verdict <= GP_LAB_OUTSIDE)
				part->tables[i].rows[k].verdict = GP_LAB_UNSCORED;
}

int lab_run(struct lab *lab, const struct lab_experiment *experiment, struct gp_lab_part **ret_part,
	    struct gp_error *error)
{
	struct gp_lab_part *part = calloc(1, sizeof(*part));
	int ret;

	if (!part)
		return gp_error_set(error, -ENOMEM, "out of memory");
	part->name = experiment->name;
	part->title = experiment->title;
	part->question = experiment->question;
	(void)snprintf(part->command, sizeof(part->command), "gpreempt lab %s%s", experiment->name, lab->settings);
	ret = experiment->run(lab, part, error);
	if (ret) {
		free(part);
		return ret;
	}
	if (lab->is_other_device)
		lab_unscore(part);
	*ret_part = part;
	return 0;
}

static bool lab_is_same(const struct lab_setup *a, const struct lab_setup *b)
{
	/* Padding that differs only makes a miss: the setup runs again and finds the same. Members compared one by one
	 * would hit wrongly as soon as one was forgotten. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
	return !memcmp(a, b, sizeof(*a));
}

static struct lab_memory *lab_recall(struct lab *lab, const struct lab_setup *setup)
{
	for (uint32_t i = 0; i < lab->cache_count; i++)
		if (lab->cache[i].seeds == lab->seeds && lab_is_same(&lab->cache[i].setup, setup))
			return &lab->cache[i];
	return NULL;
}

int lab_measure(struct lab *lab, const struct lab_setup *setup, struct gp_lab_cell *ret_cell,
		struct lab_rates *ret_last, struct gp_error *error)
{
	struct lab_memory *memory = lab_recall(lab, setup), fresh = { .seeds = lab->seeds };
	uint64_t sum = 0;

	for (uint64_t seed = 1; !memory && seed <= lab->seeds; seed++) {
		struct lab_setup own = *setup;
		int ret;

		own.seed = seed;
		ret = lab_rig_run(&own, &fresh.last, error);
		if (ret)
			return ret;
		sum += fresh.last.qps_milli;
		if (seed == 1 || fresh.last.qps_milli < fresh.cell.low)
			fresh.cell.low = fresh.last.qps_milli;
		if (fresh.last.qps_milli > fresh.cell.high)
			fresh.cell.high = fresh.last.qps_milli;
		if (lab->progress)
			lab->progress(lab->progress_context);
	}
	if (!memory) {
		fresh.cell.has = true;
		fresh.cell.mid = (sum + lab->seeds / 2u) / lab->seeds;
		memcpy(&fresh.setup, setup, sizeof(*setup));
		memory = lab->cache_count < LAB_CACHE_MAX ? &lab->cache[lab->cache_count++] : &lab->cache[0];
		*memory = fresh;
	}
	*ret_cell = memory->cell;
	if (ret_last)
		*ret_last = memory->last;
	return 0;
}

struct gp_lab_table *lab_add_table(struct gp_lab_part *part, const char *unit, const char *title)
{
	struct gp_lab_table *table = &part->tables[part->table_count < GP_LAB_TABLE_MAX ? part->table_count++ : 0];

	table->unit = unit;
	(void)snprintf(table->title, sizeof(table->title), "%s", title);
	return table;
}

struct gp_lab_row *lab_add_row(struct gp_lab_table *table, const char *format, ...)
{
	struct gp_lab_row *row = &table->rows[table->row_count < GP_LAB_ROW_MAX ? table->row_count++ : 0];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(row->label, sizeof(row->label), format, args);
	va_end(args);
	return row;
}

void lab_set_text(struct gp_lab_cell *cell, const char *format, ...)
{
	va_list args;

	*cell = (struct gp_lab_cell){ .has = true, .is_text = true };
	va_start(args, format);
	(void)vsnprintf(cell->text, sizeof(cell->text), format, args);
	va_end(args);
}

void lab_set_milli(struct gp_lab_cell *cell, uint64_t milli)
{
	*cell = (struct gp_lab_cell){ .has = true, .mid = milli, .low = milli, .high = milli };
}

void lab_score(struct gp_lab_row *row)
{
	const struct gp_lab_cell *measured = &row->measured, *predicted = &row->predicted;

	if (!measured->has || measured->is_text || !predicted->has || predicted->is_text)
		return;
	if (predicted->mid >= measured->low && predicted->mid <= measured->high)
		row->verdict = GP_LAB_INSIDE;
	else if (predicted->high >= measured->low && predicted->low <= measured->high)
		row->verdict = GP_LAB_TOUCHES;
	else
		row->verdict = GP_LAB_OUTSIDE;
}

bool lab_same(const struct gp_lab_cell *a, const struct gp_lab_cell *b)
{
	return a->has && b->has && a->mid == b->mid && a->low == b->low && a->high == b->high;
}

enum gp_lab_mark lab_mark(const struct lab *lab, const char *table, const char *row)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "%s %s", table, row);
	return lab_fit_uses(&lab->fit, name) ? GP_LAB_CALIBRATED : GP_LAB_PREDICTED;
}
