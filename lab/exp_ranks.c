/* SPDX-License-Identifier: MIT */
/*
 * Owns the experiment on coupled ranks: N processes on one device that all wait for the slowest after each iteration,
 * as AMD measured on an MI300A (HPCTrainingExamples, GhostExchange, ROCm 7.2.2): seconds for 50 iterations. The device
 * is an MI300A, or one slice of it, whatever the lab's is. Fitted is the time between two iterations, on the first row
 * of each mode; slices, their loss and their packing are what the other figures made of them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "lab/experiments.h"
#include "lab/keys.h"
#include "lib/cleanup.h"
#include "lib/paths.h"

#define RANKS_ITERATIONS 50u
#define RANKS_STAGES     4u     /* kernels of an iteration, one after the other; assumed */
#define RANKS_KERNEL_NS  20000u /* assumed: short, since 4 and 12 ranks take the same time */
#define RANKS_HOST_NS    1000000u
#define RANKS_NEAR       40u /* per cent that count as near */

/* A row of share/lab/published.csv, and the ranks and hardware queues that it is about. */
struct ranks_row {
	const char *name;
	uint32_t ranks, queues;
};

struct ranks_mode {
	const char *table, *title, *device;
	bool pack_slots;
	uint32_t row_count;
	struct ranks_row rows[8];
};

#define RANKS_SPX                                                                                                    \
	7,                                                                                                           \
	{                                                                                                            \
		{ "4 x 5", 4, 4 }, { "12 x 2", 12, 1 }, { "8 x 5", 8, 4 }, { "11 x 3", 11, 2 }, { "12 x 3", 12, 2 }, \
			{ "11 x 5", 11, 4 },                                                                         \
		{                                                                                                    \
			"12 x 5", 12, 4                                                                              \
		}                                                                                                    \
	}

static const struct ranks_mode ranks_modes[] = {
	{ "ranks-spx", "SPX: ranks x queues; a slice holds one process", "devices/mi300a.ini", false, RANKS_SPX },
	{ "ranks-spx", "SPX: ranks x queues; a slice holds what fits the slots", "devices/mi300a.ini", true,
	  RANKS_SPX },
	{ "ranks-cpx",
	  "CPX: ranks on one slice, one queue and a utility queue each",
	  "devices/mi300x-cpx.ini",
	  false,
	  6,
	  { { "2", 2, 1 }, { "4", 4, 1 }, { "6", 6, 1 }, { "7", 7, 1 }, { "8", 8, 1 }, { "12", 12, 1 } } },
};

static int ranks_device(const char *name, struct gp_desc *ret_desc, struct gp_error *error)
{
	char path[4096];
	int ret = gp_paths_share(name, path, sizeof(path));

	return ret ? gp_error_set(error, ret, "the device description %s is not there", name) :
		     gp_desc_load(path, ret_desc, error);
}

/* How long 50 iterations take, in ms. Each rank has its own; the rig counts all of them. */
static int ranks_time(struct lab *lab, const struct lab_setup *setup, struct gp_lab_cell *ret_cell, bool *ret_over,
		      struct gp_error *error)
{
	uint64_t all = (uint64_t)RANKS_ITERATIONS * setup->process_count * 1000000u;
	struct gp_lab_cell rate;
	struct lab_rates last;

	if (lab_measure(lab, setup, &rate, &last, error))
		return -1;
	if (!rate.low)
		return gp_error_set(error, -ERANGE, "no rank gets on");
	*ret_over = last.oversubscribed;
	*ret_cell = (struct gp_lab_cell){ .has = true,
					  .mid = all / rate.mid,
					  .low = all / rate.high,
					  .high = all / rate.low };
	return 0;
}

/* Within so many per cent of what was measured. */
static void ranks_score(struct gp_lab_row *row)
{
	uint64_t low = row->measured.low * (100u - RANKS_NEAR) / 100u;
	uint64_t high = row->measured.high * (100u + RANKS_NEAR) / 100u;

	if (row->measured.has)
		row->verdict = row->predicted.mid >= low && row->predicted.mid <= high ? GP_LAB_INSIDE : GP_LAB_OUTSIDE;
}

/* What the rows that were not fitted say, all tables together. */
struct ranks_tally {
	uint32_t rows, onsets, near;
	uint64_t slow_tenths, fast_tenths; /* how many times too slow and too fast at most */
};

/* Half as long again as the first row, where all queues are mapped, is a loss. */
static bool ranks_loses(uint64_t first, uint64_t later)
{
	return later * 2u > first * 3u;
}

static void ranks_count(struct ranks_tally *tally, const struct gp_lab_row *first, const struct gp_lab_row *row)
{
	uint64_t measured = (row->measured.low + row->measured.high) / 2u;
	uint64_t base = (first->measured.low + first->measured.high) / 2u;
	uint64_t model = row->predicted.mid;

	if (!row->measured.has || !first->measured.has || !measured || !model)
		return;
	tally->rows++;
	tally->near += row->verdict == GP_LAB_INSIDE;
	tally->onsets += ranks_loses(base, measured) == ranks_loses(first->predicted.mid, model);
	if (model * 10u / measured > tally->slow_tenths)
		tally->slow_tenths = model * 10u / measured;
	if (measured * 10u / model > tally->fast_tenths)
		tally->fast_tenths = measured * 10u / model;
}

static int ranks_mode(struct lab *lab, struct gp_lab_part *part, const struct ranks_mode *mode,
		      const struct gp_desc *desc, struct ranks_tally *tally, struct gp_error *error)
{
	struct gp_lab_table *table = lab_add_table(part, "s for 50 iterations", mode->title);
	struct lab_setup setup = lab->base;

	table->measured_head = "measured by AMD";
	setup.desc = desc;
	setup.load.stages = RANKS_STAGES;
	setup.load.fork_ppm = setup.load.wave_ppm = setup.load.jitter_ppm = 0;
	setup.load.kernel_ns = RANKS_KERNEL_NS;
	setup.load.host_ns = RANKS_HOST_NS;
	setup.idle_count = 1;
	setup.is_coupled = true;
	setup.pack_slots = mode->pack_slots;
	for (uint32_t i = 0; i < mode->row_count; i++) {
		struct gp_lab_row *row = lab_add_row(table, "%s", mode->rows[i].name);
		bool over;

		setup.process_count = mode->rows[i].ranks;
		setup.stream_count = setup.queue_count = mode->rows[i].queues;
		if (ranks_time(lab, &setup, &row->predicted, &over, error))
			return -1;
		lab_data_cell(&lab->data, mode->table, mode->rows[i].name, false, &row->measured);
		if (!i && row->measured.has) { /* the time between iterations, from the first row */
			uint64_t want = (row->measured.low + row->measured.high) / 2u;

			if (want < row->predicted.mid)
				return gp_error_set(error, -ERANGE,
						    "%s, row %s: with these settings the model takes %" PRIu64
						    " ms for what was measured as %" PRIu64
						    " ms, so that no time between iterations fits; change --set",
						    mode->table, mode->rows[i].name, row->predicted.mid, want);
			setup.load.host_ns += (want - row->predicted.mid) * 1000000u / RANKS_ITERATIONS;
			if (ranks_time(lab, &setup, &row->predicted, &over, error))
				return -1;
		}
		row->mark = i ? GP_LAB_PREDICTED : GP_LAB_CALIBRATED;
		ranks_score(row);
		if (i)
			ranks_count(tally, &table->rows[0], row);
		(void)snprintf(row->note, sizeof(row->note), "%s",
			       over ? "Oversubscribed." : "All queues are mapped at once.");
	}
	return 0;
}

static void ranks_answer(struct gp_lab_part *part, const struct ranks_tally *tally)
{
	bool all = tally->rows && tally->near == tally->rows;

	(void)snprintf(
		part->answer, sizeof(part->answer),
		"Of %" PRIu32 " rows that nothing was fitted on, the loss is where it was measured in %" PRIu32
		", and %" PRIu32 " are within %u %% of what was measured. At most the model is %" PRIu64 ".%" PRIu64
		" times too slow and %" PRIu64 ".%" PRIu64 " times too fast.%s",
		tally->rows, tally->onsets, tally->near, RANKS_NEAR, tally->slow_tenths / 10u, tally->slow_tenths % 10u,
		tally->fast_tenths / 10u, tally->fast_tenths % 10u,
		all ? "" :
		      " What the model does not know is what the firmware puts into a slice: one process, which the MI308X's "
		      "figures want, or what fits the slots. 8 and 12 ranks in CPX were measured at about what 3 and 7 slices "
		      "take, as if each process beyond the first slice had one of its own; 11 ranks of 3 queues contradict that.");
}

static int ranks_run(struct lab *lab, struct gp_lab_part *part, struct gp_error *error)
{
	uint32_t count = sizeof(ranks_modes) / sizeof(ranks_modes[0]);
	GP_AUTO_FREE struct gp_desc *descs = calloc(count, sizeof(*descs));
	struct ranks_tally tally = { 0 };

	if (!descs)
		return gp_error_set(error, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < count; i++)
		if (ranks_device(ranks_modes[i].device, &descs[i], error) ||
		    ranks_mode(lab, part, &ranks_modes[i], &descs[i], &tally, error))
			return -1;
	(void)snprintf(
		part->tables[0].caption, sizeof(part->tables[0].caption),
		"Verdicts of this page: within 40 %% of what was measured. Each rank has a utility queue; N x M is N ranks "
		"of M queues, the utility queue included.");
	part->devices = "an MI300A (SPX) and a slice of an MI300X (CPX)";
	ranks_answer(part, &tally);
	(void)snprintf(
		part->falsify, sizeof(part->falsify),
		"Eight ranks in CPX, the HQDs dumped every millisecond: two sets of queues in turn (6 and 2 processes) as the "
		"model has it, or three.");
	return 0;
}

const struct lab_experiment lab_ranks = {
	.name = "ranks",
	.title = "Coupled ranks on one device",
	.question =
		"What does the seventh rank of a slice, or the 25th queue of a device, cost ranks that wait for each other?",
	.keys = LAB_KEY(PROCESS_QUANTUM) | LAB_KEY(SLICE_LOSS) | LAB_KEY(BLOCKED_HEAD) | LAB_KEY(SEEDS) |
		LAB_KEY(DURATION),
	.runs = 23,
	.run = ranks_run,
};
