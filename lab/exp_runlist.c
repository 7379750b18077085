/* SPDX-License-Identifier: MIT */
/* Owns the experiments on placement: where oversubscription begins and what it costs, and which stream sits where. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "lab/experiments.h"
#include "lab/keys.h"

/* The first number of processes with which the model says the runlist is oversubscribed; 0: never. */
static int runlist_onset(const struct lab *lab, uint32_t queues, uint32_t idle, uint32_t kcq, uint32_t *ret_onset,
			 struct gp_error *error)
{
	*ret_onset = 0;
	for (uint32_t processes = 1; processes <= LAB_PROCESS_MAX && !*ret_onset; processes++) {
		struct lab_setup setup = lab->base;
		struct lab_rates rates;

		setup.process_count = processes;
		setup.queue_count = queues;
		setup.idle_count = idle;
		setup.kcq_count = kcq;
		setup.duration_ns = 8000000;
		setup.seed = 1;
		if (lab_rig_run(&setup, &rates, error))
			return -1;
		if (rates.oversubscribed)
			*ret_onset = processes;
	}
	return 0;
}

/* The same repository on an MI250: the driver counts 24 slots there too. */
static void runlist_mi250(struct gp_lab_table *table)
{
	struct gp_lab_row *row = lab_add_row(table, "MI250: queues at once");

	lab_set_text(&row->measured, "21 are fast, 22 are slow (AMD)");
	lab_set_milli(&row->predicted, 24000);
	row->mark = GP_LAB_COMPUTED;
	row->verdict = GP_LAB_OUTSIDE;
	(void)snprintf(
		row->note, sizeof(row->note),
		"Queues, not processes. Who holds the other three slots is not known; doctor and the core count 24.");
}

static int runlist_onsets(struct lab *lab, struct gp_lab_part *part, struct gp_error *error)
{
	static const struct {
		const char *label;
		uint32_t queues, idle, kcq;
		uint32_t measured; /* AMD's HPCTrainingExamples on an MI300A, ROCm 7.2.2; 0: not there */
	} cases[] = {
		{ "4 queues per process", 4, 0, 8, 0 },
		{ "4 and a utility queue", 4, 1, 8, 5 },
		{ "2 and a utility queue", 2, 1, 8, 9 },
		{ "1 and a utility queue", 1, 1, 8, 13 },
		{ "4 and one, amdgpu.num_kcq=2 (30 slots)", 4, 1, 2, 0 },
		{ "4 and one, amdgpu.num_kcq=0 (32 slots)", 4, 1, 0, 0 },
	};
	struct gp_lab_table *table = lab_add_table(part, "processes", "Where oversubscription begins");

	table->measured_head = "measured, and by whom";
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gp_lab_row *row = lab_add_row(table, "%s", cases[i].label);
		uint32_t onset;

		if (runlist_onset(lab, cases[i].queues, cases[i].idle, cases[i].kcq, &onset, error))
			return -1;
		if (onset)
			lab_set_milli(&row->predicted, (uint64_t)onset * 1000u);
		else
			lab_set_text(&row->predicted, "not up to %u", LAB_PROCESS_MAX);
		row->mark = GP_LAB_COMPUTED;
		if (!cases[i].measured)
			continue;
		lab_set_text(&row->measured, "slow from %u on (AMD, MI300A)", cases[i].measured);
		/* Another number of slots is another GPU: nothing is said of it. */
		if (gp_desc_get(lab->base.desc, GP_DESC_SLOT_COUNT) == 24)
			row->verdict = onset == cases[i].measured ? GP_LAB_INSIDE : GP_LAB_OUTSIDE;
	}
	runlist_mi250(table);
	lab_set_text(&table->rows[0].measured, "message at 8, none at 6 (the seed)");
	lab_set_text(&table->rows[0].expected, "above 32 queues (32 ACEs)");
	table->rows[0].verdict = GP_LAB_AGREES;
	(void)snprintf(
		table->rows[0].note, sizeof(table->rows[0].note),
		"24 slots (4 pipes of 8 queues, 8 of them the kernel's) or 13 processes (VMIDs), whichever comes first: "
		"get_cp_queues_num(), pm_calc_rlib_size().");
	return 0;
}

static int runlist_cost(struct lab *lab, struct gp_lab_table *table, const char *label, const struct lab_setup *setup,
			struct gp_error *error)
{
	struct gp_lab_row *row = lab_add_row(table, "%s", label);
	struct lab_rates last;

	if (lab_measure(lab, setup, &row->predicted, &last, error))
		return -1;
	if (!last.oversubscribed)
		(void)snprintf(row->note, sizeof(row->note), "Not oversubscribed: all queues are mapped at once.");
	return 0;
}

static int runlist_run(struct lab *lab, struct gp_lab_part *part, struct gp_error *error)
{
	struct gp_lab_table *table = lab_add_table(part, "queries/s", "Eight processes");
	struct lab_setup setup = lab->base, other;

	setup.process_count = 8;
	if (runlist_cost(lab, table, "as published", &setup, error))
		return -1;
	lab_data_cell(&lab->data, "qps", "8", false, &table->rows[0].measured);
	table->rows[0].mark = lab_mark(lab, "qps", "8");
	lab_score(&table->rows[0]);
	other = setup;
	other.load.slice_loss_ns = 0;
	if (runlist_cost(lab, table, "nothing lost per slice", &other, error))
		return -1;
	other = setup;
	other.pack_slots = true;
	if (runlist_cost(lab, table, "slices hold six processes", &other, error))
		return -1;
	lab_data_cell(&lab->data, "qps", "8", false, &table->rows[2].measured);
	lab_score(&table->rows[2]);
	(void)snprintf(table->rows[2].note, sizeof(table->rows[2].note),
		       "The rival reading of what firmware puts in one slice; the measured figure rejects it.");
	other = setup;
	other.kcq_count = 0;
	if (runlist_cost(lab, table, "amdgpu.num_kcq=0", &other, error))
		return -1;
	other = setup;
	other.queue_count = 2;
	if (runlist_cost(lab, table, "GPU_MAX_HW_QUEUES=2", &other, error))
		return -1;
	if (runlist_onsets(lab, part, error))
		return -1;
	(void)snprintf(
		part->answer, sizeof(part->answer),
		"Oversubscription explains the eighth process, not the second: seed 001 read dmesg rightly, but 2 and 4 processes "
		"hold 8 and 16 of 24 slots and lose the most. Eight processes take turns of 10 ms and lose about a quarter of each "
		"(fitted; 20 times what moving their state costs, so not save and restore). They are faster than four only because "
		"a slice has one process, whose queues block no other queues. More slots alone (num_kcq=0) would bring the blocking "
		"back; fewer queues cure both.");
	(void)snprintf(
		part->falsify, sizeof(part->falsify),
		"Seven processes of four queues each: the message must appear at the seventh (at the fifth where each has a utility "
		"queue). GPU_MAX_HW_QUEUES=3 with eight processes must be silent.");
	return 0;
}

const struct lab_experiment lab_runlist = {
	.name = "runlist",
	.title = "Oversubscription: where it begins and what it costs",
	.question = "Is \"Runlist is getting oversubscribed\" the root cause of the loss?",
	.keys = LAB_KEYS_RIG & ~(LAB_KEY(NUM_KCQ) | LAB_KEY(PACKING)),
	.runs = 5,
	.run = runlist_run,
};

/* Where the model puts the queues of one process: the same call sequence as a HIP process, read back. */
static int ace_place(struct lab *lab, uint32_t queues, struct gp_gpu_counters *ret_counters, struct gp_error *error)
{
	struct gp_gpu_config config = { .desc = &lab->desc };
	struct gp_gpu *gpu;
	uint32_t process, ids[LAB_QUEUE_MAX];
	int ret = gp_gpu_create(&config, &gpu);

	if (ret)
		return gp_error_set(error, ret, "the model cannot be set up");
	ret = gp_gpu_process_add(gpu, &process);
	for (uint32_t i = 0; i < queues && !ret; i++) {
		struct gp_gpu_queue_attr attr = { .kind = GP_GPU_COMPUTE };

		ret = gp_gpu_queue_add(gpu, process, &attr, 0, &ids[i]);
	}
	gp_gpu_advance(gpu, 100000000);
	for (uint32_t i = 0; i < queues && !ret; i++)
		ret = gp_gpu_counters(gpu, ids[i], &ret_counters[i]);
	gp_gpu_destroy(gpu);
	return ret ? gp_error_set(error, ret, "the model has no place for the queues") : 0;
}

static int ace_streams(struct lab *lab, struct gp_lab_part *part, struct gp_error *error)
{
	static const char *const dumped[] = { "pipe 0, queue 3 (oldest)", "pipe 3, queue 2", "pipe 2, queue 2",
					      "pipe 1, queue 2", "pipe 0, queue 2 (newest)" };
	struct gp_lab_table *table = lab_add_table(part, "", "Where the queues of one process sit");
	struct gp_gpu_counters counters[LAB_QUEUE_MAX];

	if (ace_place(lab, 5, counters, error))
		return -1;
	for (uint32_t i = 0; i < 5u; i++) {
		struct gp_lab_row *row = lab_add_row(table, "queue %u%s", i, i == 4u ? " (utility)" : "");
		char model[64];

		/* The model counts KFD's slots; the kernel's own come before them on every pipe. */
		(void)snprintf(model, sizeof(model), "pipe %" PRIu32 ", queue %" PRIu32, counters[i].pipe,
			       counters[i].slot +
				       (uint32_t)(lab->base.kcq_count / gp_desc_get(&lab->desc, GP_DESC_PIPE_COUNT)));
		lab_set_text(&row->measured, "%s", dumped[i]);
		lab_set_text(&row->expected, i < 4u ? "XCD 0, ACE %u" : "XCD 1, ACE 0", i);
		lab_set_text(&row->predicted, "%s, on every XCC", model);
		row->mark = GP_LAB_COMPUTED;
		row->verdict = !strncmp(dumped[i], model, strlen(model)) ? GP_LAB_AGREES : GP_LAB_OUTSIDE;
	}
	(void)snprintf(
		table->caption, sizeof(table->caption),
		"Measured: MQD and HQD dumps of an MI308X in the same author's public notes, decoded. Queues go round the pipes, the "
		"newest first, and every queue is on all XCCs at the same place. Stream n uses hardware queue n mod 4, which is "
		"right in seed 001; but a queue is not an ACE, and streams beyond 4 add no queues. Verdicts: the model against the dump.");
	return 0;
}

static int ace_map_run(struct lab *lab, struct gp_lab_part *part, struct gp_error *error)
{
	static const uint32_t streams[] = { 1, 4, 16, 32 };
	struct gp_lab_table *table = lab_add_table(part, "queries/s", "Two processes, by streams and placement");
	struct lab_setup setup;

	for (uint32_t i = 0; i < 4u; i++) {
		struct gp_lab_row *row = lab_add_row(table, "%u stream%s, 4 queues", streams[i], i ? "s" : "");

		setup = lab->base;
		setup.stream_count = streams[i];
		if (lab_measure(lab, &setup, &row->predicted, NULL, error))
			return -1;
	}
	table->rows[1].mark = lab_mark(lab, "qps", "2");
	lab_data_cell(&lab->data, "qps", "2", false, &table->rows[1].measured);
	lab_score(&table->rows[1]);
	setup = lab->base;
	setup.pipe_by_process = true;
	if (lab_measure(lab, &setup, &lab_add_row(table, "a pipe per process")->predicted, NULL, error))
		return -1;
	(void)snprintf(
		table->rows[4].note, sizeof(table->rows[4].note),
		"What seed 001 asks for. No interface exists; if it did, the queues of a process would block each other on their pipe.");
	setup.queue_count = 1;
	if (lab_measure(lab, &setup, &lab_add_row(table, "a pipe per process, one queue each")->predicted, NULL, error))
		return -1;
	setup = lab->base;
	setup.graph_on_one = true;
	if (lab_measure(lab, &setup, &lab_add_row(table, "graph replayed on one queue")->predicted, NULL, error))
		return -1;
	(void)snprintf(
		table->rows[6].note, sizeof(table->rows[6].note),
		"Less than with one queue per process: queue 0 of both processes sits on the same pipe, the others stay idle.");
	if (ace_streams(lab, part, error))
		return -1;
	(void)snprintf(
		part->answer, sizeof(part->answer),
		"An ACE is a pipe, not a queue: an XCC has 4 pipes of 8 queues each, of which KFD has 24, and in SPX a queue occupies "
		"the same place on every XCC. So the measured MI308X has 4 lanes, not 32, and not 16 either, and two processes of "
		"four queues share all of them. Seed 001 is right that there is no way to bind a process to an ACE; with several "
		"queues per process it would not help. Replaying a graph on one queue instead of several would.");
	return 0;
}

const struct lab_experiment lab_ace_map = {
	.name = "ace-map",
	.title = "Streams, queues and ACEs",
	.question = "Does stream k run on ACE k mod 32, and would binding processes to ACEs help?",
	.keys = (LAB_KEYS_RIG & ~(LAB_KEY(STREAMS) | LAB_KEY(PIPES) | LAB_KEY(GRAPH))) | LAB_KEY(PROCESSES),
	.runs = 7,
	.run = ace_map_run,
};
