/* SPDX-License-Identifier: MIT */
/* Owns the experiment `qps`: throughput by processes, the question the seeds begin with. */
#include <string.h>
#include "lab/experiments.h"
#include "lab/keys.h"

static int qps_row(struct lab *lab, struct gp_lab_table *table, uint32_t processes, const struct lab_setup *setup,
		   struct gp_error *error)
{
	struct gp_lab_row *row = lab_add_row(table, "%u", processes);
	struct lab_setup own = *setup;

	own.process_count = processes;
	lab_data_cell(&lab->data, "qps", row->label, false, &row->measured);
	lab_data_cell(&lab->data, "qps", row->label, true, &row->expected);
	row->mark = lab_mark(lab, "qps", row->label);
	if (lab_measure(lab, &own, &row->predicted, NULL, error))
		return -1;
	lab_score(row);
	return 0;
}

static int qps_other(struct lab *lab, struct gp_lab_table *table, const char *label, const struct lab_setup *setup,
		     struct gp_error *error)
{
	static const uint32_t counts[] = { 1, 2, 4, 8 };

	for (uint32_t i = 0; i < 4u; i++) {
		struct gp_lab_row *row =
			lab_add_row(table, "%s, %u process%s", label, counts[i], counts[i] > 1 ? "es" : "");
		struct lab_setup own = *setup;

		own.process_count = counts[i];
		if (lab_measure(lab, &own, &row->predicted, NULL, error))
			return -1;
	}
	return 0;
}

static int qps_run(struct lab *lab, struct gp_lab_part *part, struct gp_error *error)
{
	static const uint32_t counts[] = { 1, 2, 4, 6, 8 };
	struct gp_lab_table *table = lab_add_table(part, "queries/s", "Throughput by number of processes");
	struct lab_setup one = lab->base, two = lab->base;

	table->is_curve = true;
	table->axis_title = "processes";
	for (uint32_t i = 0; i < 5u; i++)
		if (qps_row(lab, table, counts[i], &lab->base, error))
			return -1;
	(void)snprintf(
		table->rows[3].note, sizeof(table->rows[3].note),
		"Six processes are the test the model fails: it loses more than was measured. Nothing was adjusted for it.");
	(void)snprintf(
		table->caption, sizeof(table->caption),
		"Measured: the first figure published, and the range over all notes of the same author. The model: mean, and "
		"range over random seeds.");
	table = lab_add_table(part, "queries/s", "Fewer hardware queues per process");
	one.queue_count = 1;
	two.queue_count = 2;
	if (qps_other(lab, table, "GPU_MAX_HW_QUEUES=1", &one, error) ||
	    qps_other(lab, table, "GPU_MAX_HW_QUEUES=2", &two, error))
		return -1;
	(void)snprintf(table->caption, sizeof(table->caption),
		       "These have not been measured. They follow from the same mechanism with no further parameter.");
	(void)snprintf(
		part->answer, sizeof(part->answer),
		"Processes block each other on the four pipes of the command processor, each of which serves one queue at a time, "
		"while neither the driver nor the compute units are busy. With four queues per process, queue j of every process "
		"sits on pipe j; if a pipe stays with a queue whose head waits for another queue until its 1 ms quantum is over "
		"(not public, assumed: hold), all queues behind it wait. Beyond 24 queues the runlist is oversubscribed, processes "
		"take turns, and the blocking stops: eight are faster than four. One or two hardware queues per process should "
		"restore the throughput of one. Six processes are the miss: the model loses more than was measured.");
	(void)snprintf(
		part->falsify, sizeof(part->falsify),
		"On an MI308X: for n in 1 2 4 8; do GPU_MAX_HW_QUEUES=1 ./serve-with-processes $n; done, and the same with 2. If four "
		"processes still give about 58 queries/s instead of more than 100, the blocked head is not the cause and this "
		"model is wrong. Or directly: gpreempt bench device -o mine.ini measures what a pipe does with a blocked head; if "
		"mine.ini says blocked_head = rotate, gpreempt lab qps --device mine.ini shows what is left of the explanation.");
	return 0;
}

const struct lab_experiment lab_qps = {
	.name = "qps",
	.title = "Why several processes are slower than one",
	.question = "Why do 1, 2, 4, 6 and 8 processes give 115, 85, 58, 60-72 and 91 queries per second?",
	.keys = LAB_KEYS_RIG,
	.runs = 13,
	.run = qps_run,
};
