/* SPDX-License-Identifier: MIT */
/* Owns the experiments on scheduling itself: hardware priority against logical priority, and one lock against several.
 * The first runs the simulator with the scheduler core, not the rig. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "lab/experiments.h"
#include "lab/keys.h"
#include "lib/hist.h"
#include "lib/rng.h"
#include "sim/mix.h"
#include "sim/mode.h"

#define PRIORITY_DURATION_NS 4000000000u
#define PRIORITY_HIGH        15u
#define LOCK_EDGES           20000u
#define LOCK_DEVICES         8u

struct priority_case {
	const char *label, *mode, *note;
	uint32_t hw_priority;
};

static const struct priority_case priority_cases[] = {
	{ "alone", "alone", NULL, 0 },
	{ "all NORMAL (stock)", "stock", NULL, 0 },
	{ "server's queues HIGH (hardware)", "stock",
	  "A HIGH queue is served first at the next packet boundary; it never stops what runs.", PRIORITY_HIGH },
	{ "logical priority (gpreempt, hpf)", "hpf",
	  "All queues NORMAL in hardware, as seed 003 wants it; gates do the rest.", 0 },
};

/* Requests that wait at the end count with their age, which only says that it is at least so long. */
static void priority_unfinished(struct gp_lab_row *row, const struct gp_result_client *client)
{
	uint64_t all = client->requests + client->unfinished;
	size_t used = strlen(row->note);

	if (client->unfinished * 100u <= all)
		return;
	(void)snprintf(row->note + used, sizeof(row->note) - used,
		       "%sA lower bound: requests pile up, %" PRIu64 " of %" PRIu64 " were unfinished at the end.",
		       used ? " " : "", client->unfinished, all);
}

static int priority_case(struct lab *lab, const struct gp_workload *workload, const struct priority_case *c,
			 struct gp_lab_table *latency, struct gp_lab_table *batch, struct gp_error *error)
{
	struct gp_sim_config config = { .workload = workload,
					.desc = &lab->desc,
					.device_count = 1,
					.unit = GP_UNIT_PROCESS,
					.seed = 7,
					.duration_ns = PRIORITY_DURATION_NS,
					.notice_ns = GP_SIM_DEFAULT_NS,
					.decide_ns = GP_SIM_DEFAULT_NS,
					.sample_ns = GP_SIM_DEFAULT_NS,
					.no_recording = true };
	struct gp_lab_row *row = lab_add_row(latency, "%s", c->label);
	struct gp_result_run run;

	for (uint32_t i = 0; i < workload->client_count; i++)
		workload->clients[i].hw_priority = workload->clients[i].kind == GP_WORK_SERVICE ? c->hw_priority : 0;
	if (gp_mode_run(&config, c->mode, NULL, &run, error))
		return -1;
	if (c->note)
		(void)snprintf(row->note, sizeof(row->note), "%s", c->note);
	for (uint32_t i = 0; i < run.client_count; i++) {
		const struct gp_result_client *client = &run.clients[i];

		if (client->is_service) {
			lab_set_milli(&row->predicted, gp_hist_quantile(&client->latency_ns, 990) / 1000u);
			priority_unfinished(row, client);
		} else {
			lab_set_milli(&lab_add_row(batch, "%s", c->label)->predicted, client->throughput_milli);
		}
	}
	gp_sim_result_fini(&run);
	return 0;
}

static int priority_run(struct lab *lab, struct gp_lab_part *part, struct gp_error *error)
{
	struct gp_lab_table *latency = lab_add_table(part, "ms", "p99 of a server's requests beside a trainer");
	struct gp_lab_table *batch = lab_add_table(part, "kernels/s", "What the trainer gets");
	struct gp_mix_options options = { .desc = &lab->desc, .setting_count = 1, .settings = { "request=2ms" } };
	struct gp_workload workload = { .client_count = 0 };
	int ret = gp_mix_load("serve+train", &options, &workload, error);

	for (uint32_t i = 0; i < sizeof(priority_cases) / sizeof(priority_cases[0]) && !ret; i++)
		ret = priority_case(lab, &workload, &priority_cases[i], latency, batch, error);
	gp_workload_fini(&workload);
	if (ret)
		return ret;
	lab_set_text(&latency->rows[3].expected, "at least 3 times shorter than without");
	latency->rows[3].verdict =
		latency->rows[3].predicted.mid * 3u <= latency->rows[1].predicted.mid ? GP_LAB_AGREES : GP_LAB_REFUTED;
	lab_set_text(&latency->rows[2].expected, "cannot be set: hard-wired NORMAL");
	latency->rows[2].verdict = GP_LAB_REFUTED;
	(void)snprintf(
		latency->caption, sizeof(latency->caption),
		"gpreempt sim --mix serve+train --device mi308x --request 2ms --seed 7 --duration 4s --compare alone,stock,hpf; the "
		"trainer's kernels are 20 ms long. One random seed: the arrivals are the same in all rows.");
	(void)snprintf(
		part->answer, sizeof(part->answer),
		"Hardware priority can be set and does not preempt; logical priority with context save does. Seed 003's premise is a "
		"constructor's default: HIP sets LOW and HIGH after creation (hsa_amd_queue_set_priority(), UPDATE_QUEUE), and KFD "
		"writes them into the MQD (set_priority() in kfd_mqd_manager_v9.c). They choose among queues of a pipe and among "
		"pipes, and wait for what runs; AMD calls them a hint and newer HIP ignores them. So the seed's conclusion, one "
		"hardware priority and a scheduler in software, is right.");
	(void)snprintf(
		part->falsify, sizeof(part->falsify),
		"A server on a high-priority HIP stream (DEBUG_HIP_IGNORE_STREAM_PRIORITY=0) beside a trainer with 20 ms kernels: a "
		"p99 well below 20 ms would mean that the hardware preempts by itself.");
	return 0;
}

const struct lab_experiment lab_priority = {
	.name = "priority",
	.title = "Hardware priority against logical priority",
	.question =
		"What does the hardware's queue priority do for an urgent process, and what does a scheduler in software?",
	.keys = 0,
	.runs = 0,
	.run = priority_run,
};

/* Waiting time for a lock that each decision holds for hold_ns; devices: each with a lock of its own. */
static uint64_t lock_wait(uint32_t processes, uint64_t mean_ns, uint64_t hold_ns, uint32_t locks)
{
	uint64_t free_ns[LOCK_DEVICES] = { 0 }, now_ns = 0;
	struct gp_hist hist;
	struct gp_rng rng;

	gp_hist_init(&hist);
	gp_rng_init(&rng, 1);
	for (uint32_t i = 0; i < LOCK_EDGES; i++) {
		uint32_t lock = (uint32_t)gp_rng_below(&rng, LOCK_DEVICES) % locks;

		now_ns += gp_rng_exponential(&rng, mean_ns / processes);
		gp_hist_add(&hist, free_ns[lock] > now_ns ? free_ns[lock] - now_ns : 0);
		free_ns[lock] = (free_ns[lock] > now_ns ? free_ns[lock] : now_ns) + hold_ns;
	}
	return gp_hist_quantile(&hist, 990);
}

static void lock_table(struct gp_lab_part *part, const char *title, uint64_t mean_ns, uint64_t hold_ns,
		       const char *caption)
{
	static const uint32_t counts[] = { 8, 64, 512 };
	struct gp_lab_table *table = lab_add_table(part, "µs", title);

	for (uint32_t i = 0; i < 3u; i++) {
		for (uint32_t locks = 1; locks <= LOCK_DEVICES; locks += LOCK_DEVICES - 1u) {
			struct gp_lab_row *row = lab_add_row(table, "%u processes, %s", counts[i],
							     locks > 1u ? "a lock per device" : "one lock");

			lab_set_milli(&row->predicted, lock_wait(counts[i], mean_ns, hold_ns, locks));
		}
	}
	(void)snprintf(table->caption, sizeof(table->caption), "%s", caption);
}

static int lock_run(struct lab *lab, struct gp_lab_part *part, struct gp_error *error)
{
	uint64_t gate_ns = (uint64_t)gp_desc_get(&lab->desc, GP_DESC_GATE_FIXED_NS);

	(void)error;
	lock_table(
		part, "p99 wait for a decision (1 µs held)", 1000000, 1000,
		"Each process has a thousand edges a second (a query or request each), on one of eight devices. One microsecond is what "
		"the core may take at 10,000 queues (docs/results/bench.md has what it takes).");
	lock_table(
		part, "p99 wait for a gate change (the driver's lock, held for a transaction)", 100000000, gate_ns,
		"Ten gate changes per process and second, each under KFD's dqm lock for as long as a transaction lasts. KFD has one such "
		"lock per device; the row with one lock is what a node-wide lock around the driver's calls would cost.");
	(void)snprintf(
		part->answer, sizeof(part->answer),
		"A scheduler lock is no bottleneck at these rates, because nothing takes one to submit work: a dispatch is a store to a "
		"doorbell. KFD's lock (dqm->lock) is per device and taken when queues come, go or change. Decisions of a microsecond "
		"may share one lock for the whole node up to hundreds of processes; gate changes of a hundred microseconds must not, "
		"which is why gpreempt decides in one thread and carries out per client.");
	return 0;
}

const struct lab_experiment lab_lock = {
	.name = "lock",
	.title = "One scheduler lock against one per device",
	.question = "Do processes wait for the scheduler's lock (seed 000, bottleneck 4)?",
	.keys = 0,
	.runs = 0,
	.run = lock_run,
};
