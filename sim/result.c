/* SPDX-License-Identifier: MIT */
/* Owns the questions others ask a simulation: its queues and clients as they are, and what the run found. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sim/state.h"

struct gp_gpu *gp_sim_gpu(const struct gp_sim *sim, uint32_t device)
{
	return sim->devices[device].gpu;
}

uint32_t gp_sim_queue_count(const struct gp_sim *sim)
{
	return sim->queue_count;
}

void gp_sim_queue(const struct gp_sim *sim, uint32_t queue, struct gp_sim_queue_info *ret_info)
{
	*ret_info = sim->queues[queue].info;
}

void gp_sim_client(const struct gp_sim *sim, uint32_t client, struct gp_sim_client_info *ret_info)
{
	*ret_info = sim->clients[client].info;
}

uint32_t gp_sim_find_queue(const struct gp_sim *sim, struct gp_queue_id core_queue)
{
	uint32_t queue;

	if (core_queue.index >= sim->core_queue_count)
		return SIM_NONE;
	queue = sim->queue_of_core[core_queue.index];
	if (queue == SIM_NONE || sim->queues[queue].info.core_queue.generation != core_queue.generation)
		return SIM_NONE;
	return queue;
}

void gp_sim_stop_arrivals(struct gp_sim *sim)
{
	sim->arrivals_stopped = true;
	gp_sim_process_finish(sim);
}

bool gp_sim_is_drained(const struct gp_sim *sim)
{
	return !sim->live_jobs;
}

/* Requests under way enter with their age: a lower bound, so that a run that fell behind is not flattered by what it
 * never finished. */
static void result_unfinished(const struct gp_sim *sim, uint32_t index, struct gp_result_client *row)
{
	const struct gp_work_client *work = sim->clients[index].info.work;
	const struct sim_job *job;
	uint32_t i;

	for (i = 0; i < sim->job_capacity; i++) {
		job = &sim->jobs[i];
		if (!job->live || job->client != index || job->number < work->warm_count)
			continue;
		row->unfinished++;
		gp_hist_add(&row->latency_ns, sim->now_ns - job->arrival_ns);
		row->deadlines_missed += work->deadline_ns && sim->now_ns - job->arrival_ns > work->deadline_ns;
	}
}

struct sim_spent gp_sim_client_spent(const struct gp_sim *sim, uint32_t index)
{
	const struct sim_client *client = &sim->clients[index];
	struct sim_spent spent = { .now_ns = sim->now_ns, .unit_ns = client->unit_ns, .wait_ns = client->wait_ns };
	struct gp_gpu_counters counters;
	const struct sim_queue *queue;
	uint32_t i;

	for (i = 0; client->info.alive && i < client->info.queue_count; i++) {
		queue = &sim->queues[client->info.first_queue + i];
		if (queue->info.kind == GP_GPU_COMPUTE &&
		    !gp_gpu_counters(sim->devices[queue->info.device].gpu, queue->info.gpu_queue, &counters))
			spent.unit_ns += counters.unit_ns;
		if (queue->blocked_since_ns)
			spent.wait_ns += sim->now_ns + 1 - queue->blocked_since_ns;
	}
	return spent;
}

static void result_client(const struct gp_sim *sim, uint32_t index, struct gp_result_client *row)
{
	const struct sim_client *client = &sim->clients[index];
	struct sim_spent spent = gp_sim_client_spent(sim, index);
	bool is_warm = client->warm_done >= client->info.work->warm_count;
	uint64_t time_ns = spent.now_ns - client->begin.now_ns;

	snprintf(row->name, sizeof(row->name), "%s", client->info.work->name);
	row->priority = client->info.work->priority;
	row->is_service = client->info.work->kind == GP_WORK_SERVICE;
	row->requests = client->info.completed - client->warm_done;
	row->latency_ns = client->latency_ns;
	row->wait_ns = spent.wait_ns - client->begin.wait_ns;
	row->deadlines_met = client->deadlines_met;
	row->deadlines_missed = client->deadlines_missed;
	row->deadlines_refused = client->deadlines_refused;
	if (!time_ns || !is_warm)
		return;
	row->gpu_share_ppm = (uint32_t)((unsigned __int128)(spent.unit_ns - client->begin.unit_ns) * 1000000 /
					(time_ns * sim->device_count));
	row->throughput_milli = (uint64_t)((unsigned __int128)row->requests * 1000000000000ull / time_ns);
	if (row->is_service)
		result_unfinished(sim, index, row);
}

static int result_clients(const struct gp_sim *sim, struct gp_result_run *run)
{
	uint32_t i, count = sim->config.has_only_client ? 1 : sim->client_count;

	run->clients = calloc(count, sizeof(*run->clients));
	if (!run->clients)
		return -ENOMEM;
	run->client_count = count;
	for (i = 0; i < count; i++)
		result_client(sim, sim->config.has_only_client ? sim->config.only_client : i, &run->clients[i]);
	return 0;
}

static int result_waits(const struct gp_sim *sim, struct gp_result_run *run)
{
	const struct sim_pair *pair;
	uint32_t i, k;

	if (!sim->pairs || sim->config.has_only_client)
		return 0;
	run->waits = calloc((size_t)sim->client_count * sim->client_count, sizeof(*run->waits));
	if (!run->waits)
		return -ENOMEM;
	for (i = 0; i < sim->client_count; i++) {
		for (k = 0; k < sim->client_count; k++) {
			pair = &sim->pairs[i * SIM_PAIR_MAX + k];
			if (pair->count)
				run->waits[run->wait_count++] = (struct gp_result_wait){ .client = i,
											 .other = k,
											 .count = pair->count,
											 .total_ns = pair->total_ns,
											 .max_ns = pair->max_ns };
		}
	}
	return 0;
}

static int result_recording(const struct gp_sim *sim, struct gp_result_run *run)
{
	const struct sim_record *record = &sim->record;

	run->window_start_ns = record->start_ns;
	run->window_end_ns = record->end_ns;
	if (!record->enabled)
		return 0;
	run->slices = calloc(record->slice_count + 1u, sizeof(*run->slices));
	run->marks = calloc(record->mark_count + 1u, sizeof(*run->marks));
	if (!run->slices || !run->marks)
		return -ENOMEM;
	memcpy(run->slices, record->slices, record->slice_count * sizeof(*run->slices));
	memcpy(run->marks, record->marks, record->mark_count * sizeof(*run->marks));
	run->slice_count = record->slice_count;
	run->mark_count = record->mark_count;
	return 0;
}

static void result_core(const struct gp_sim *sim, struct gp_result_run *run)
{
	struct gp_stats stats;
	uint32_t i;

	for (i = 0; sim->core && i < sim->device_count; i++) {
		if (gp_sched_stats(sim->core, sim->devices[i].core_device, &stats))
			continue;
		run->limited += stats.left_open[GP_WHY_RATE];
		run->left_short += stats.left_open[GP_WHY_SHORT];
		run->turns += stats.turns;
		run->aged += stats.aged;
	}
}

int gp_sim_result(struct gp_sim *sim, const char *name, struct gp_result_run *ret_run)
{
	struct gp_result_run run = {
		.duration_ns = sim->now_ns,
		.preemptions = sim->preemptions,
		.transactions = sim->transactions,
		.transaction_ns = sim->transaction_ns,
		.killed_ns = sim->killed_ns,
	};
	int ret;

	if (sim->out_of_memory)
		return -ENOMEM;
	/* Inversions under way end with the run. */
	gp_sim_account_finish(sim);
	run.inversion_count = sim->inversion_count;
	run.inversion_ns = sim->inversion_ns;
	run.inversion_ns_max = sim->inversion_ns_max;
	snprintf(run.policy, sizeof(run.policy), "%s", name);
	result_core(sim, &run);
	ret = result_clients(sim, &run);
	if (!ret)
		ret = result_waits(sim, &run);
	if (!ret)
		ret = result_recording(sim, &run);
	if (ret) {
		gp_sim_result_fini(&run);
		return ret;
	}
	*ret_run = run;
	return 0;
}

void gp_sim_result_fini(struct gp_result_run *run)
{
	free(run->clients);
	free(run->slices);
	free(run->marks);
	free(run->waits);
	*run = (struct gp_result_run){ 0 };
}
