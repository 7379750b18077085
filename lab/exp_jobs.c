/* SPDX-License-Identifier: MIT */
/* Owns the experiments on the kernel's own schedulers (drm_sched): rings and entities. What they count is background
 * work of the kernel, not queries. */
#include <inttypes.h>
#include <string.h>
#include "lab/experiments.h"
#include "lab/keys.h"
#include "lab/stack.h"

#define JOBS_POINTS 4u
#define JOBS_COUNT  4000u /* jobs drawn for the share of a ring */
#define JOBS_CLEAR_NS \
	50000u /* one clear or move of a buffer on an engine, assumed; at these rates it does not matter */

static const uint32_t jobs_processes[JOBS_POINTS] = { 1, 2, 4, 8 };
static const char *const jobs_ring_names[] = { "fixed ring (the driver)", "hash of the entity", "round robin",
					       "least loaded" };

/* Jobs per second, in thousandths: queries per second times jobs per query, as published. */
static uint64_t jobs_rate(const struct lab *lab, uint32_t i)
{
	struct gp_lab_cell qps = { .has = false }, per_query = { .has = false };
	char row[16];

	(void)snprintf(row, sizeof(row), "%u", jobs_processes[i]);
	lab_data_cell(&lab->data, "qps", row, false, &qps);
	lab_data_cell(&lab->data, "jobs", row, false, &per_query);
	return qps.mid * per_query.mid / 1000u;
}

/* Least squares through the published points: rate = base + slope × processes, both in thousandths. */
static void jobs_line(const struct lab *lab, int64_t *ret_base, int64_t *ret_slope)
{
	int64_t n = JOBS_POINTS, sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0;

	for (uint32_t i = 0; i < JOBS_POINTS; i++) {
		int64_t x = jobs_processes[i], y = (int64_t)jobs_rate(lab, i);

		sum_x += x;
		sum_y += y;
		sum_xx += x * x;
		sum_xy += x * y;
	}
	*ret_slope = (n * sum_xy - sum_x * sum_y) / (n * sum_xx - sum_x * sum_x);
	*ret_base = (sum_y - *ret_slope * sum_x) / n;
}

static void jobs_tables(const struct lab *lab, struct gp_lab_part *part)
{
	struct gp_lab_table *rates = lab_add_table(part, "jobs/s", "Kernel jobs per second, by processes");
	struct gp_lab_table *queries = lab_add_table(part, "jobs/query", "The same, divided by queries");
	struct gp_lab_table *shares =
		lab_add_table(part, "%", "\"Job efficiency\", the same, divided by N × the rate of one");
	int64_t base, slope;

	jobs_line(lab, &base, &slope);
	rates->is_curve = true;
	rates->axis_title = "processes";
	for (uint32_t i = 0; i < JOBS_POINTS; i++) {
		uint64_t line = (uint64_t)(base + slope * (int64_t)jobs_processes[i]), first = jobs_rate(lab, 0);
		struct gp_lab_cell qps = { .has = false };
		struct gp_lab_row *row = lab_add_row(rates, "%u", jobs_processes[i]);

		lab_data_cell(&lab->data, "qps", row->label, false, &qps);
		lab_set_milli(&row->measured, jobs_rate(lab, i));
		lab_set_milli(&row->predicted, line);
		row->mark = GP_LAB_FITTED;
		row = lab_add_row(queries, "%u", jobs_processes[i]);
		lab_data_cell(&lab->data, "jobs", row->label, false, &row->measured);
		if (i)
			lab_set_text(&row->expected, "as with one process: 0.124");
		lab_set_milli(&row->predicted, line * 1000u / qps.mid);
		row->mark = GP_LAB_FITTED;
		if (!i)
			continue;
		row = lab_add_row(shares, "%u", jobs_processes[i]);
		lab_data_cell(&lab->data, "efficiency", row->label, false, &row->measured);
		lab_set_milli(&row->predicted, jobs_rate(lab, i) * 100000u / (first * jobs_processes[i]));
		row->mark = GP_LAB_COMPUTED;
		row->verdict = GP_LAB_AGREES;
	}
	(void)snprintf(
		rates->caption, sizeof(rates->caption),
		"One line, %" PRId64 ".%02" PRId64 " + %" PRId64 ".%02" PRId64
		" per process, fits all four points whatever the queries/s are: it is a background rate of each process (clears "
		"and moves of buffers by the kernel, an inference), not a cost of queries. Fitted, because why it is so many is not known.",
		base / 1000, base % 1000 / 10, slope / 1000, slope % 1000 / 10);
	(void)snprintf(
		shares->caption, sizeof(shares->caption),
		"Arithmetic on the published figures: 34 %% \"missing\" jobs at 8 processes are the constant of the line above.");
}

static void jobs_counts(const struct lab *lab, struct gp_lab_part *part)
{
	struct gp_lab_table *table = lab_add_table(part, "jobs", "Largest job count");

	for (uint32_t i = 0; i < JOBS_POINTS; i++) {
		struct gp_lab_row *row;

		if (jobs_processes[i] == 2u)
			continue;
		row = lab_add_row(table, "%u process%s", jobs_processes[i], i ? "es" : "");
		char key[8];

		(void)snprintf(key, sizeof(key), "%u", jobs_processes[i]);
		lab_data_cell(&lab->data, "count", key, false, &row->measured);
		lab_set_text(&row->predicted, "–");
		row->mark = GP_LAB_NOT_MODELLED;
	}
	(void)snprintf(
		table->caption, sizeof(table->caption),
		"Not modelled: at most 75 jobs/s with at most one waiting in 73 to 77 %% of the samples cannot queue 287 deep in "
		"steady state. It must be bursts (start-up frees and clears), and nothing published says how large those are.");
}

/* The share of the first ring when so many jobs come at random. */
static uint64_t jobs_share(const struct lab *lab, enum lab_rings rings, uint64_t rate_milli)
{
	struct lab_setup setup = lab->base;
	struct lab_stack stack;
	struct gp_rng rng;
	uint64_t now_ns = 0, first = 0;

	setup.rings = rings;
	lab_stack_init(&stack, &setup);
	gp_rng_init(&rng, 1);
	for (uint32_t i = 0; i < JOBS_COUNT; i++) {
		uint32_t ring, process, entity;

		now_ns += gp_rng_exponential(&rng, 1000000000000ull / rate_milli);
		process = (uint32_t)gp_rng_below(&rng, 4);
		entity = (uint32_t)gp_rng_below(&rng, setup.entity_count);
		ring = lab_stack_pick(&stack, process, entity, now_ns);
		stack.free_ns[ring] = (stack.free_ns[ring] > now_ns ? stack.free_ns[ring] : now_ns) + JOBS_CLEAR_NS;
		first += ring == 0;
	}
	return first * 100000u / JOBS_COUNT;
}

static void jobs_shares(const struct lab *lab, struct gp_lab_part *part)
{
	struct gp_lab_table *table = lab_add_table(part, "%", "Share of sdma0.0, four processes");

	for (uint32_t rings = LAB_RING_FIXED; rings <= LAB_RING_LEAST_LOADED; rings++) {
		struct gp_lab_row *row = lab_add_row(table, "%s", jobs_ring_names[rings]);

		if (rings == LAB_RING_FIXED)
			lab_data_cell(&lab->data, "rings", "sdma0.0", false, &row->measured);
		lab_set_milli(&row->predicted, jobs_share(lab, (enum lab_rings)rings, jobs_rate(lab, 2)));
		row->mark = GP_LAB_PREDICTED;
		lab_score(row);
	}
	(void)snprintf(
		table->caption, sizeof(table->caption),
		"The hot spot is by design: buffer_funcs_ring is instance 0 (sdma_v4_4_2.c), and choosing the least loaded gives "
		"the same, as all are idle and the first of equals is taken (drm_sched_pick_best()). What the other 10.7 %% are "
		"is not published.");
}

static int jobs_ring_row(struct lab *lab, struct gp_lab_table *table, enum lab_submission submission, uint32_t rings,
			 struct gp_error *error)
{
	bool is_feared = submission == LAB_SUBMIT_DRM_SCHED;
	struct gp_lab_row *row =
		lab_add_row(table, "%s%s", is_feared ? "compute through rings, " : "", jobs_ring_names[rings]);
	struct lab_setup setup = lab->base;

	setup.submission = submission;
	setup.rings = (enum lab_rings)rings;
	setup.workqueue = is_feared ? LAB_WORKQUEUE_ONE : LAB_WORKQUEUE_PER_RING;
	if (lab_measure(lab, &setup, &row->predicted, NULL, error))
		return -1;
	if (!is_feared && rings)
		row->verdict =
			lab_same(&table->rows[0].predicted, &row->predicted) ? GP_LAB_NO_EFFECT : GP_LAB_UNSCORED;
	return 0;
}

static int rings_run(struct lab *lab, struct gp_lab_part *part, struct gp_error *error)
{
	struct gp_lab_table *table =
		lab_add_table(part, "queries/s", "Compute throughput of two processes, by choice of ring");

	for (uint32_t rings = LAB_RING_FIXED; rings <= LAB_RING_LEAST_LOADED; rings++)
		if (jobs_ring_row(lab, table, LAB_SUBMIT_DOORBELL, rings, error))
			return -1;
	if (jobs_ring_row(lab, table, LAB_SUBMIT_DRM_SCHED, LAB_RING_FIXED, error))
		return -1;
	lab_data_cell(&lab->data, "fixes", "now", false, &table->rows[0].measured);
	lab_data_cell(&lab->data, "fixes", "rings", true, &table->rows[2].expected);
	table->rows[0].mark = lab_mark(lab, "qps", "2");
	(void)snprintf(
		table->rows[4].note, sizeof(table->rows[4].note),
		"As feared, not as it is: every dispatch a job of one ordered workqueue, 10 us each (assumed). ROCm does not do this.");
	jobs_shares(lab, part);
	jobs_tables(lab, part);
	jobs_counts(lab, part);
	(void)snprintf(
		part->answer, sizeof(part->answer),
		"The choice of ring has no effect on compute throughput, because ROCm's kernels and copies never pass a ring of the "
		"kernel: both are user-mode queues with doorbells (amd_aql_queue.cpp, amd_blit_sdma.cpp). What the traces of seed 000 "
		"count on sdma0.0 are clears and moves of buffers by the kernel itself, at most 75 a second. Jobs per query and job "
		"efficiency are that one background rate divided by other things.");
	(void)snprintf(
		part->falsify, sizeof(part->falsify),
		"trace-cmd record -e gpu_scheduler:drm_run_job while one warm process serves for a minute: a rate that grows with "
		"the queries/s instead of with the processes.");
	return 0;
}

const struct lab_experiment lab_rings = {
	.name = "rings",
	.title = "Rings, the sdma0.0 hot spot, and jobs per query",
	.question =
		"Is sdma0.0 with 89.3 % of the jobs a bottleneck, and do queries of several processes need more jobs?",
	.keys = (LAB_KEYS_RIG & ~(LAB_KEY(RING) | LAB_KEY(SUBMISSION) | LAB_KEY(WORKQUEUE))) | LAB_KEY(PROCESSES),
	.runs = 5,
	.run = rings_run,
};

static int entities_run(struct lab *lab, struct gp_lab_part *part, struct gp_error *error)
{
	static const uint32_t counts[] = { 1, 2, 4, 16 };
	struct gp_lab_table *table = lab_add_table(part, "queries/s", "Two processes, entities per context");

	for (uint32_t feared = 0; feared < 2u; feared++) {
		for (uint32_t i = 0; i < 4u; i++) {
			struct gp_lab_row *row =
				lab_add_row(table, "%s%u entit%s", feared ? "compute through rings, " : "", counts[i],
					    counts[i] > 1 ? "ies" : "y");
			struct lab_setup setup = lab->base;

			setup.entity_count = counts[i];
			setup.submission = feared ? LAB_SUBMIT_DRM_SCHED : LAB_SUBMIT_DOORBELL;
			setup.rings = LAB_RING_ROUND_ROBIN;
			if (lab_measure(lab, &setup, &row->predicted, NULL, error))
				return -1;
			if (i && lab_same(&table->rows[feared * 4u].predicted, &row->predicted))
				row->verdict = GP_LAB_NO_EFFECT;
		}
	}
	lab_data_cell(&lab->data, "fixes", "now", false, &table->rows[2].measured);
	(void)snprintf(
		table->caption, sizeof(table->caption),
		"\"Compute through rings\" is the stack as seed 000 draws it: context, entity, ring, scheduler, a work item of 10 us "
		"(assumed) per dispatch, one ordered workqueue per ring.");
	(void)snprintf(
		part->answer, sizeof(part->answer),
		"The number of entities has no effect on ROCm, because an amdgpu context and its entities belong to the CS ioctl "
		"(graphics, Vulkan, the kernel itself), and KFD queues have none. The limit is per engine type: 4 for compute, 2 "
		"for DMA, 1 for the others (amdgpu_ctx_num_entities[] in amdgpu_ctx.c), and an entity is not bound to one ring: "
		"drm_sched_entity_select_rq() chooses again whenever it is idle. Even through rings the model finds little: a work "
		"item is short beside a kernel.");
	return 0;
}

const struct lab_experiment lab_entities = {
	.name = "entities",
	.title = "Entities per context",
	.question = "Does the limit of four entities per context keep processes from the 64 compute rings?",
	.keys = (LAB_KEYS_RIG & ~(LAB_KEY(ENTITIES) | LAB_KEY(SUBMISSION) | LAB_KEY(RING))) | LAB_KEY(PROCESSES),
	.runs = 8,
	.run = entities_run,
};
