/* SPDX-License-Identifier: MIT */
/*
 * Owns the fit. One pass, in an order in which each number has a row of its own: the share of one-round kernels from
 * the 70-CU row, stages and forks from 2 and 4 processes on a grid, the kernel's duration from one process at every
 * point of it, the loss per slice from 8 processes. What is reported as determined is the range within which a number
 * keeps its rows inside what was published while the others stay: a wide one says that the data do not know it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "lab/fit.h"

#define FIT_WEIGHT_FOUR 16u
#define FIT_REFINE_STEP 2u
#define FIT_TOLERANCE   100u /* per mille around a single published figure of 2 or 4 processes */
/* Beyond these a kernel would be shorter than 1 us, or a run without a query. */
#define FIT_QPS_MILLI_MIN 1000u
#define FIT_QPS_MILLI_MAX 10000000u
#define FIT_STEPS         8u /* of a bisection */
#define FIT_WAVE_MAX      1000000u
#define FIT_LOSS_MAX      6000000u
/* Where it begins, so that a fit does not depend on the one before. */
#define FIT_START_KERNEL_NS 100000u
#define FIT_START_STAGES    70u
#define FIT_START_FORK      400000u

static const uint32_t fit_stages[] = { 50, 60, 70, 80, 100, 120 };
static const uint32_t fit_forks[] = { 200000, 400000, 600000 };
#define FIT_STAGE_COUNT (sizeof(fit_stages) / sizeof(fit_stages[0]))
#define FIT_FORK_COUNT  (sizeof(fit_forks) / sizeof(fit_forks[0]))

struct fit_point {
	uint64_t kernel_ns, error;
	bool fits;
};

struct fit {
	struct lab *lab;
	struct gp_lab_cell targets[9]; /* by processes */
	struct gp_lab_cell cu;
	struct fit_point points[FIT_STAGE_COUNT][FIT_FORK_COUNT];
};

static int fit_qps(struct fit *fit, const struct lab_setup *setup, uint32_t processes, uint64_t *ret_milli,
		   struct gp_error *error)
{
	struct lab_setup own = *setup;
	struct gp_lab_cell cell;

	own.process_count = processes;
	if (lab_measure(fit->lab, &own, &cell, NULL, error))
		return -1;
	*ret_milli = cell.mid;
	return 0;
}

/* The duration of a kernel with which one process gives what was published: the time of a query is linear in it. */
static int fit_kernel(struct fit *fit, struct lab_setup *setup, uint64_t target_milli, struct gp_error *error)
{
	for (uint32_t i = 0; i < 3u; i++) {
		uint64_t qps;
		int64_t now_ns, want_ns = (int64_t)(1000000000000ull / target_milli), next_ns;

		if (fit_qps(fit, setup, 1, &qps, error))
			return -1;
		now_ns = (int64_t)(1000000000000ull / (qps ? qps : 1u));
		next_ns = (int64_t)setup->load.kernel_ns + (want_ns - now_ns) / (int64_t)setup->load.stages;
		setup->load.kernel_ns = next_ns < 1000 ? 1000 : (uint64_t)next_ns;
	}
	return 0;
}

/* One process on 70 CUs, in thousandths of a percent of what it has on all. */
static int fit_cu(struct fit *fit, const struct lab_setup *setup, uint64_t *ret_milli, struct gp_error *error)
{
	struct lab_setup masked = *setup;
	uint64_t whole, part;

	masked.cu_count = 70;
	if (fit_qps(fit, setup, 1, &whole, error) || fit_qps(fit, &masked, 1, &part, error))
		return -1;
	*ret_milli = whole ? part * 100000u / whole : 0;
	return 0;
}

/* The more kernels fill the device exactly once, the more a mask costs. */
static int fit_wave(struct fit *fit, struct lab_setup *setup, uint64_t target, uint32_t *ret_ppm,
		    struct gp_error *error)
{
	uint32_t low = 0, high = FIT_WAVE_MAX;

	for (uint32_t i = 0; i < FIT_STEPS; i++) {
		struct lab_setup own = *setup;
		uint64_t milli;

		own.load.wave_ppm = (low + high) / 2u;
		if (fit_cu(fit, &own, &milli, error))
			return -1;
		if (milli > target)
			low = own.load.wave_ppm;
		else
			high = own.load.wave_ppm;
	}
	*ret_ppm = (low + high) / 2u / 1000u * 1000u;
	return 0;
}

static int fit_loss(struct fit *fit, const struct lab_setup *setup, uint64_t target, uint64_t *ret_ns,
		    struct gp_error *error)
{
	uint64_t low = 0, high = FIT_LOSS_MAX;

	for (uint32_t i = 0; i < FIT_STEPS; i++) {
		struct lab_setup own = *setup;
		uint64_t qps;

		own.load.slice_loss_ns = (low + high) / 2u;
		if (fit_qps(fit, &own, 8, &qps, error))
			return -1;
		if (qps > target)
			low = own.load.slice_loss_ns;
		else
			high = own.load.slice_loss_ns;
	}
	*ret_ns = (low + high) / 2u / 10000u * 10000u;
	return 0;
}

static uint64_t fit_error(uint64_t value, uint64_t target)
{
	uint64_t difference = value > target ? value - target : target - value;

	return difference * 1000u / target;
}

/* How far two and four processes are from what was published, with the kernel that one process asks for. */
static int fit_point(struct fit *fit, struct lab_setup *setup, struct fit_point *ret_point, struct gp_error *error)
{
	const struct gp_lab_cell *two = &fit->targets[2], *four = &fit->targets[4];
	struct lab_setup own;
	struct gp_lab_cell cell2, cell4;
	uint64_t error2, error4, spread;

	if (fit_kernel(fit, setup, fit->targets[1].mid, error))
		return -1;
	own = *setup;
	own.process_count = 2;
	if (lab_measure(fit->lab, &own, &cell2, NULL, error))
		return -1;
	own.process_count = 4;
	if (lab_measure(fit->lab, &own, &cell4, NULL, error))
		return -1;
	error2 = fit_error(cell2.mid, two->mid);
	error4 = fit_error(cell4.mid, (four->low + four->high) / 2u);
	/* The measured figures repeat within a few percent: a load whose runs scatter is none that was measured. */
	if (!cell2.mid || !cell4.mid)
		return gp_error_set(error, -EINVAL, "no query of this load ends within a run");
	spread = (cell2.high - cell2.low) * 500u / cell2.mid + (cell4.high - cell4.low) * 500u / cell4.mid;
	ret_point->kernel_ns = setup->load.kernel_ns;
	/* Four processes are published within 1 %, two within 30 %. */
	ret_point->error = error2 * error2 + FIT_WEIGHT_FOUR * error4 * error4 + spread * spread;
	ret_point->fits = ((cell2.mid >= two->low && cell2.mid <= two->high) || error2 <= FIT_TOLERANCE) &&
			  error4 <= FIT_TOLERANCE;
	return 0;
}

static int fit_grid(struct fit *fit, const struct lab_setup *setup, struct gp_error *error)
{
	for (uint32_t i = 0; i < FIT_STAGE_COUNT; i++) {
		for (uint32_t k = 0; k < FIT_FORK_COUNT; k++) {
			struct lab_setup own = *setup;

			own.load.stages = fit_stages[i];
			own.load.fork_ppm = fit_forks[k];
			own.load.kernel_ns = setup->load.kernel_ns * setup->load.stages / fit_stages[i];
			if (fit_point(fit, &own, &fit->points[i][k], error))
				return -1;
		}
	}
	return 0;
}

static void fit_best(const struct fit *fit, struct lab_load *load)
{
	uint64_t best = UINT64_MAX;

	for (uint32_t i = 0; i < FIT_STAGE_COUNT; i++) {
		for (uint32_t k = 0; k < FIT_FORK_COUNT; k++) {
			if (fit->points[i][k].error >= best)
				continue;
			best = fit->points[i][k].error;
			load->stages = fit_stages[i];
			load->fork_ppm = fit_forks[k];
			load->kernel_ns = fit->points[i][k].kernel_ns;
		}
	}
}

/* Around the best point of the grid, with its own share of one-round kernels, stage by stage. */
static int fit_refine(struct fit *fit, struct lab_setup *setup, struct gp_error *error)
{
	struct lab_load best = setup->load;
	uint64_t least = UINT64_MAX;
	uint32_t middle = setup->load.stages;

	for (uint32_t stages = middle * 3u / 4u; stages <= middle * 5u / 4u; stages += FIT_REFINE_STEP) {
		struct lab_setup own = *setup;
		struct fit_point point;

		own.load.stages = stages;
		own.load.kernel_ns = setup->load.kernel_ns * middle / stages;
		if (fit_point(fit, &own, &point, error))
			return -1;
		if (point.error < least) {
			least = point.error;
			best = own.load;
		}
	}
	setup->load = best;
	return 0;
}

static void fit_say(struct lab_fit *fit, enum lab_param param, uint64_t low, uint64_t high, const char *words)
{
	char from[32], to[32];

	(void)snprintf(fit->determined[param], sizeof(fit->determined[param]), "%s to %s: %s",
		       lab_param_format(param, low, from, sizeof(from)), lab_param_format(param, high, to, sizeof(to)),
		       words);
}

/* The ranges on the grid within which 2 and 4 processes stay where they were published. */
static void fit_say_grid(const struct fit *fit, struct lab_fit *result)
{
	uint64_t stage_low = UINT64_MAX, stage_high = 0, fork_low = UINT64_MAX, fork_high = 0;

	for (uint32_t i = 0; i < FIT_STAGE_COUNT; i++) {
		for (uint32_t k = 0; k < FIT_FORK_COUNT; k++) {
			if (!fit->points[i][k].fits)
				continue;
			stage_low = fit_stages[i] < stage_low ? fit_stages[i] : stage_low;
			stage_high = fit_stages[i] > stage_high ? fit_stages[i] : stage_high;
			fork_low = fit_forks[k] < fork_low ? fit_forks[k] : fork_low;
			fork_high = fit_forks[k] > fork_high ? fit_forks[k] : fork_high;
		}
	}
	if (!stage_high) {
		(void)snprintf(result->determined[LAB_STAGES], sizeof(result->determined[0]),
			       "no value keeps both rows in range");
		(void)snprintf(result->determined[LAB_FORK], sizeof(result->determined[0]),
			       "no value keeps both rows in range");
		return;
	}
	fit_say(result, LAB_STAGES, stage_low, stage_high, "fairly, on a grid, with any share of forks");
	fit_say(result, LAB_FORK, fork_low, fork_high,
		fork_high - fork_low > 300000u ? "hardly at all: any value on the grid will do" : "fairly, on a grid");
}

static int fit_say_rows(struct fit *fit, struct lab_setup *setup, struct lab_fit *result, struct gp_error *error)
{
	struct lab_setup low = *setup, high = *setup;
	uint32_t wave_low, wave_high;
	uint64_t loss_low, loss_high;

	if (fit_kernel(fit, &low, fit->targets[1].high, error) || fit_kernel(fit, &high, fit->targets[1].low, error))
		return -1;
	fit_say(result, LAB_KERNEL, low.load.kernel_ns, high.load.kernel_ns, "well, given the stages");
	if (fit_wave(fit, setup, fit->cu.mid + 1000u, &wave_low, error) ||
	    fit_wave(fit, setup, fit->cu.mid - 1000u, &wave_high, error))
		return -1;
	fit_say(result, LAB_WAVE, wave_low, wave_high,
		"fairly: one percent around the row; a planted share comes back within ten points");
	if (fit_loss(fit, setup, fit->targets[8].high, &loss_low, error) ||
	    fit_loss(fit, setup, fit->targets[8].low, &loss_high, error))
		return -1;
	fit_say(result, LAB_SLICE_LOSS, loss_low, loss_high, "well, by its one row; what it is made of is not known");
	return 0;
}

static int fit_targets(struct fit *fit, struct gp_error *error)
{
	static const uint32_t counts[] = { 1, 2, 4, 8 };
	char row[8];

	for (uint32_t i = 0; i < 4u; i++) {
		(void)snprintf(row, sizeof(row), "%u", counts[i]);
		lab_data_cell(&fit->lab->data, "qps", row, false, &fit->targets[counts[i]]);
		if (!fit->targets[counts[i]].has || !fit->targets[counts[i]].low)
			return gp_error_set(error, -EINVAL, "the published data have no row \"qps,%s\" to fit on", row);
		if (fit->targets[counts[i]].low < FIT_QPS_MILLI_MIN || fit->targets[counts[i]].high > FIT_QPS_MILLI_MAX)
			return gp_error_set(
				error, -EINVAL,
				"the published row \"qps,%s\" is outside what the load can be fitted to: 1 to "
				"10000 queries per second",
				row);
	}
	lab_data_cell(&fit->lab->data, "cu-limit", "1 70", false, &fit->cu);
	if (!fit->cu.has || fit->cu.mid < 2000u)
		return gp_error_set(error, -EINVAL, "the published data have no row \"cu-limit,1 70\" to fit on");
	return 0;
}

static int fit_all(struct fit *fit, struct gp_error *error)
{
	struct lab *lab = fit->lab;
	struct lab_setup setup = lab->base;
	struct lab_fit result = lab->fit;

	setup.load.kernel_ns = FIT_START_KERNEL_NS;
	setup.load.stages = FIT_START_STAGES;
	setup.load.fork_ppm = FIT_START_FORK;
	if (fit_targets(fit, error) || fit_wave(fit, &setup, fit->cu.mid, &setup.load.wave_ppm, error) ||
	    fit_grid(fit, &setup, error))
		return -1;
	fit_best(fit, &setup.load);
	if (fit_wave(fit, &setup, fit->cu.mid, &setup.load.wave_ppm, error) || fit_refine(fit, &setup, error) ||
	    fit_loss(fit, &setup, (fit->targets[8].low + fit->targets[8].high) / 2u, &setup.load.slice_loss_ns, error))
		return -1;
	fit_say_grid(fit, &result);
	if (fit_say_rows(fit, &setup, &result, error))
		return -1;
	result.values[LAB_KERNEL] = setup.load.kernel_ns;
	result.values[LAB_STAGES] = setup.load.stages;
	result.values[LAB_FORK] = setup.load.fork_ppm;
	result.values[LAB_WAVE] = setup.load.wave_ppm;
	result.values[LAB_SLICE_LOSS] = setup.load.slice_loss_ns;
	lab->fit = result;
	lab_fit_load_into(&result, &lab->base.load);
	return 0;
}

int lab_fit_run(struct lab *lab, struct gp_error *error)
{
	struct fit *fit = calloc(1, sizeof(*fit));
	int ret;

	if (!fit)
		return gp_error_set(error, -ENOMEM, "out of memory");
	fit->lab = lab;
	ret = fit_all(fit, error);
	free(fit);
	return ret;
}

int lab_fit_write(FILE *stream, const struct lab_fit *fit)
{
	fputs("# SPDX-License-Identifier: MIT\n"
	      "# The numbers of the lab's load that were fitted, each with the published rows (share/lab/published.csv) it was fitted\n"
	      "# on and the range within which those rows stay in range. Made by `gpreempt lab fit`; all other rows are predictions.\n"
	      "[fit]\n",
	      stream);
	for (uint32_t i = 0; i < LAB_PARAM_COUNT; i++)
		fprintf(stream, "%-10s = %" PRIu64 " | %s | %s\n", lab_param_name((enum lab_param)i), fit->values[i],
			fit->rows[i], fit->determined[i]);
	return fflush(stream) || ferror(stream) ? -EIO : 0;
}

int lab_fit_show(FILE *stream, const struct lab_fit *fit)
{
	char value[32];

	fprintf(stream, "%-12s%-12s%-16s%s\n", "parameter", "value", "fitted on", "its rows stay in range from");
	for (uint32_t i = 0; i < LAB_PARAM_COUNT; i++)
		fprintf(stream, "%-12s%-12s%-16s%s\n", lab_param_name((enum lab_param)i),
			lab_param_format((enum lab_param)i, fit->values[i], value, sizeof(value)), fit->rows[i],
			fit->determined[i]);
	return fflush(stream) || ferror(stream) ? -EIO : 0;
}
