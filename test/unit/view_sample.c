/* SPDX-License-Identifier: MIT */
/* Owns a result that looks like a simulation's without one: requests in a window, each delayed as the run would
 * delay it. */
#include <stdio.h>
#include <stdlib.h>
#include "lib/rng.h"
#include "test/unit/view_sample.h"

#define SAMPLE_MS           1000000ull
#define SAMPLE_WINDOW_START (2000u * SAMPLE_MS)
#define SAMPLE_WINDOW       (200u * SAMPLE_MS)
#define SAMPLE_SLICES       4000u
#define SAMPLE_MARKS        4000u

enum sample_run { SAMPLE_ALONE, SAMPLE_STOCK, SAMPLE_HPF, SAMPLE_RUN_COUNT };

static const char *const sample_names[] = { "alone", "stock", "hpf" };
static const enum gp_result_kind sample_kinds[] = { GP_RESULT_ALONE, GP_RESULT_STOCK, GP_RESULT_DEFAULT };

static void sample_slice(struct gp_result_run *run, uint32_t client, uint64_t start_ns, uint64_t end_ns, bool preempted)
{
	uint32_t number = run->slice_count;

	if (number == SAMPLE_SLICES || end_ns <= start_ns)
		return;
	run->slice_count++;
	run->slices[number] = (struct gp_result_slice){ .start_ns = start_ns,
							.end_ns = end_ns,
							.client = client,
							.queue = client,
							.pipe = client % 4u,
							.slot = UINT32_MAX,
							.tag = number,
							.preempted = preempted };
}

static void sample_mark(struct gp_result_run *run, enum gp_result_mark_type type, uint64_t start_ns, uint64_t end_ns,
			const char *why)
{
	bool is_serve = type == GP_MARK_ARRIVAL || type == GP_MARK_INVERSION;

	if (run->mark_count < SAMPLE_MARKS)
		run->marks[run->mark_count++] =
			(struct gp_result_mark){ .type = type,
						 .start_ns = start_ns,
						 .end_ns = end_ns,
						 .client = is_serve ? 0 : 1,
						 .other = type == GP_MARK_INVERSION ? 1 : UINT32_MAX,
						 .queue = is_serve ? 0 : 1,
						 .why = why };
}

/* Batch runs 20 ms kernels in turn from *at_ns to until_ns, where it is cut. */
static void sample_batch(struct gp_result_run *run, uint32_t batch_count, uint64_t *at_ns, uint64_t until_ns,
			 bool is_cut)
{
	while (batch_count && *at_ns < until_ns) {
		uint64_t end_ns = *at_ns + 20u * SAMPLE_MS - *at_ns % (20u * SAMPLE_MS);
		uint32_t client = 1u + (uint32_t)(*at_ns / (20u * SAMPLE_MS)) % batch_count;
		bool preempted = is_cut && end_ns > until_ns;

		end_ns = end_ns > until_ns ? until_ns : end_ns;
		sample_slice(run, client, *at_ns, end_ns, preempted);
		*at_ns = end_ns;
	}
}

static void sample_window(struct gp_result_run *run, enum sample_run kind, uint32_t batch_count)
{
	uint64_t at_ns = SAMPLE_WINDOW_START, end_ns = SAMPLE_WINDOW_START + SAMPLE_WINDOW, arrival_ns = at_ns;
	struct gp_rng rng;

	gp_rng_init(&rng, 7);
	run->window_start_ns = at_ns;
	run->window_end_ns = end_ns;
	for (;;) {
		arrival_ns += 1u * SAMPLE_MS + gp_rng_exponential(&rng, 7u * SAMPLE_MS);
		if (arrival_ns + 25u * SAMPLE_MS > end_ns)
			break;
		sample_mark(run, GP_MARK_ARRIVAL, arrival_ns, arrival_ns, NULL);
		if (kind == SAMPLE_ALONE) {
			at_ns = arrival_ns > at_ns ? arrival_ns : at_ns;
		} else if (kind == SAMPLE_STOCK) {
			uint64_t start_ns = (arrival_ns / (20u * SAMPLE_MS) + 1u) * 20u * SAMPLE_MS;

			start_ns = start_ns > at_ns ? start_ns : at_ns;
			sample_batch(run, batch_count, &at_ns, start_ns, false);
			sample_mark(run, GP_MARK_INVERSION, arrival_ns, start_ns, "no preemption");
		} else if (arrival_ns > at_ns) {
			sample_batch(run, batch_count, &at_ns, arrival_ns, true);
			sample_mark(run, GP_MARK_CLOSE, arrival_ns, arrival_ns, "more urgent work is waiting");
			sample_mark(run, GP_MARK_HALT, arrival_ns, arrival_ns + 150000u, "one transaction");
			sample_mark(run, GP_MARK_INVERSION, arrival_ns, arrival_ns + 150000u, "resolved by preemption");
			at_ns = arrival_ns + 150000u;
		}
		sample_slice(run, 0, at_ns, at_ns + 2u * SAMPLE_MS, false);
		at_ns += 2u * SAMPLE_MS;
		if (kind == SAMPLE_HPF && gp_rng_below(&rng, 3)) {
			sample_mark(run, GP_MARK_OPEN, at_ns, at_ns, "nothing more urgent is waiting");
			sample_mark(run, GP_MARK_HALT, at_ns, at_ns + 150000u, "one transaction");
			at_ns += 150000u;
		}
	}
	sample_batch(run, kind == SAMPLE_ALONE ? 0 : batch_count, &at_ns, end_ns, false);
}

static void sample_latencies(struct gp_result_client *client, enum sample_run kind)
{
	struct gp_rng rng;

	gp_rng_init(&rng, 11);
	for (uint32_t i = 0; i < 10000; i++) {
		uint64_t ns = 2u * SAMPLE_MS + gp_rng_exponential(&rng, 300000u);

		if (kind == SAMPLE_STOCK)
			ns += gp_rng_below(&rng, 20u * SAMPLE_MS);
		if (kind == SAMPLE_HPF)
			ns += 150000u + gp_rng_below(&rng, 80000u);
		gp_hist_add(&client->latency_ns, ns);
	}
	client->requests = client->latency_ns.count;
}

static void sample_clients(struct gp_result_run *run, enum sample_run kind, uint32_t batch_count)
{
	static const uint32_t shares[] = { 200000, 780000, 760000 };

	run->client_count = 1u + batch_count;
	for (uint32_t i = 0; i < run->client_count; i++) {
		struct gp_result_client *client = &run->clients[i];

		(void)snprintf(client->name, sizeof(client->name), i ? batch_count > 1 ? "train%u" : "train" : "serve",
			       i);
		client->priority = i ? 20 : 80;
		client->is_service = !i;
		client->gpu_share_ppm = i ? shares[kind] / batch_count : 200000u;
		client->throughput_milli = i ? 38100u / batch_count : 100120u;
		client->requests = i ? 381u / batch_count : 0;
		if (!i)
			sample_latencies(client, kind);
	}
}

static void sample_run(struct gp_result_run *run, enum sample_run kind, uint32_t batch_count)
{
	(void)snprintf(run->policy, sizeof(run->policy), "%s", sample_names[kind]);
	run->kind = sample_kinds[kind];
	run->clients = calloc(1u + batch_count, sizeof(*run->clients));
	run->slices = calloc(SAMPLE_SLICES, sizeof(*run->slices));
	run->marks = calloc(SAMPLE_MARKS, sizeof(*run->marks));
	run->waits = calloc(1, sizeof(*run->waits));
	run->duration_ns = 10000u * SAMPLE_MS;
	sample_clients(run, kind, batch_count);
	sample_window(run, kind, batch_count);
	if (kind == SAMPLE_ALONE)
		return;
	run->wait_count = batch_count ? 1 : 0;
	run->waits[0] = kind == SAMPLE_STOCK ?
				(struct gp_result_wait){ 0, 1, 812, 7900u * SAMPLE_MS, 20u * SAMPLE_MS } :
				(struct gp_result_wait){ 0, 1, 803, 130u * SAMPLE_MS, 190000u };
	if (run->wait_count) {
		run->inversion_count = run->waits[0].count;
		run->inversion_ns = run->waits[0].total_ns;
		run->inversion_ns_max = run->waits[0].max_ns;
	}
	if (kind == SAMPLE_HPF) {
		run->preemptions = 803;
		run->transactions = 1606;
		run->transaction_ns = 240900000u;
		run->left_short = 12;
		run->turns = batch_count > 1 ? 480 : 0;
	}
}

struct gp_result *view_sample_create(uint32_t batch_count)
{
	struct gp_result *result = calloc(1, sizeof(*result));

	result->seed = 7;
	result->device_count = 1;
	result->dilate = 1;
	(void)snprintf(result->device, sizeof(result->device), "mi300x");
	(void)snprintf(result->device_title, sizeof(result->device_title), "AMD Instinct MI300X");
	(void)snprintf(result->mix, sizeof(result->mix), "serve+train");
	(void)snprintf(result->gate, sizeof(result->gate), "process");
	(void)snprintf(
		result->command, sizeof(result->command),
		"gpreempt sim --mix serve+train --device mi300x --policy hpf --seed 7 --duration 10s --compare alone,"
		"stock,hpf");
	result->gate_cost_ns = 150000;
	result->run_count = SAMPLE_RUN_COUNT;
	result->runs = calloc(SAMPLE_RUN_COUNT, sizeof(*result->runs));
	for (int i = 0; i < SAMPLE_RUN_COUNT; i++)
		sample_run(&result->runs[i], (enum sample_run)i, batch_count);
	return result;
}

void view_sample_destroy(struct gp_result *result)
{
	for (uint32_t i = 0; i < result->run_count; i++) {
		free(result->runs[i].clients);
		free(result->runs[i].slices);
		free(result->runs[i].marks);
		free(result->runs[i].waits);
	}
	free(result->runs);
	free(result);
}
