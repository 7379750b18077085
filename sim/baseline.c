/* SPDX-License-Identifier: MIT */
/*
 * Owns the modes without a core, so that a table compares like with like. All of them sit on the host, between the
 * process and its ring, and hear of arrivals and completions notice_ns late, as a host-side scheduler does.
 *   sequential  one request or iteration at a time over all clients, the most urgent first, never interrupted
 *   lv1         lower clients have a bounded number of commands in flight, and launch none while a higher one has work
 *   reset       as lv1 with fewer in flight; besides, running lower kernels are killed and run again later
 */
#include <errno.h>
#include <stdlib.h>
#include "sim/state.h"

static bool baseline_is_gating(const struct gp_sim *sim)
{
	return sim->config.mode == GP_SIM_LV1 || sim->config.mode == GP_SIM_RESET;
}

static bool baseline_is_lower(const struct gp_sim *sim, const struct sim_client *client)
{
	uint32_t i;

	for (i = 0; i < sim->client_count; i++) {
		if (sim->clients[i].info.priority > client->info.priority)
			return true;
	}
	return false;
}

static bool baseline_must_wait(const struct gp_sim *sim, const struct sim_client *client)
{
	int32_t level;

	for (level = client->info.priority + 1; level < SIM_LEVELS; level++) {
		if (sim->host_work[level])
			return true;
	}
	return false;
}

bool gp_sim_baseline_may_submit(struct gp_sim *sim, uint32_t index, uint32_t job)
{
	const struct sim_client *client = &sim->clients[index];
	uint32_t depth = sim->config.lv1_depth ? sim->config.lv1_depth : 8;

	if (sim->config.mode == GP_SIM_SEQUENTIAL)
		return sim->jobs[job].granted;
	/* What was written for one device goes out on all of them: the members of a collective wait for each other. */
	if (!baseline_is_gating(sim) || sim->jobs[job].member || !baseline_is_lower(sim, client))
		return true;
	if (sim->config.mode == GP_SIM_RESET)
		depth = sim->config.reset_depth ? sim->config.reset_depth : 2;
	return !baseline_must_wait(sim, client) && client->packet_count < depth;
}

static void baseline_wait_for_turn(struct gp_sim *sim, uint32_t job)
{
	uint32_t capacity, i, *jobs;

	if (sim->turn_count == sim->turn_capacity) {
		capacity = sim->turn_capacity ? sim->turn_capacity * 2 : 64;
		jobs = malloc((size_t)capacity * sizeof(*jobs));
		if (!jobs) {
			sim->out_of_memory = true;
			return;
		}
		for (i = 0; i < sim->turn_count; i++)
			jobs[i] = sim->turn_jobs[(sim->turn_head + i) % sim->turn_capacity];
		free(sim->turn_jobs);
		sim->turn_jobs = jobs;
		sim->turn_head = 0;
		sim->turn_capacity = capacity;
	}
	sim->turn_jobs[(sim->turn_head + sim->turn_count++) % sim->turn_capacity] = job;
}

static uint32_t *baseline_turn(struct gp_sim *sim, uint32_t place)
{
	return &sim->turn_jobs[(sim->turn_head + place) % sim->turn_capacity];
}

/* The most urgent waiting job goes, in order of arrival among equals. */
void gp_sim_baseline_grant(struct gp_sim *sim)
{
	uint32_t i, job, best = SIM_NONE;

	sim->turn_taken = false;
	while (sim->turn_count && *baseline_turn(sim, 0) == SIM_NONE) {
		sim->turn_head = (sim->turn_head + 1) % sim->turn_capacity;
		sim->turn_count--;
	}
	for (i = 0; i < sim->turn_count; i++) {
		job = *baseline_turn(sim, i);
		if (job != SIM_NONE &&
		    (best == SIM_NONE ||
		     sim->clients[sim->jobs[job].client].info.priority >
			     sim->clients[sim->jobs[*baseline_turn(sim, best)].client].info.priority))
			best = i;
	}
	if (best == SIM_NONE)
		return;
	job = *baseline_turn(sim, best);
	*baseline_turn(sim, best) = SIM_NONE;
	sim->turn_taken = sim->jobs[job].granted = true;
	gp_sim_process_pump(sim, sim->jobs[job].client);
}

void gp_sim_baseline_job_created(struct gp_sim *sim, uint32_t index)
{
	const struct sim_job *job = &sim->jobs[index];

	if (sim->config.mode == GP_SIM_SEQUENTIAL) {
		if (sim->turn_taken) {
			baseline_wait_for_turn(sim, index);
			return;
		}
		sim->turn_taken = sim->jobs[index].granted = true;
	}
	if (baseline_is_gating(sim) && sim->clients[job->client].job_count == 1)
		gp_sim_push(sim, sim->now_ns + sim->notice_ns, SIM_HOST_BUSY, job->client, 0);
}

/* Completed, or lost with its process. */
void gp_sim_baseline_job_ended(struct gp_sim *sim, uint32_t index)
{
	const struct sim_job *job = &sim->jobs[index];
	uint32_t i;

	for (i = 0; i < sim->turn_count; i++) {
		if (*baseline_turn(sim, i) == index)
			*baseline_turn(sim, i) = SIM_NONE;
	}
	if (sim->config.mode == GP_SIM_SEQUENTIAL && job->granted)
		gp_sim_push(sim, sim->now_ns + sim->notice_ns, SIM_GRANT, 0, 0);
	if (baseline_is_gating(sim) && sim->clients[job->client].job_count == 1)
		gp_sim_push(sim, sim->now_ns + sim->notice_ns, SIM_HOST_IDLE, job->client, 0);
}

/* One transaction per device brings every lower client's queues to where they should be. */
static void baseline_hold(struct gp_sim *sim, uint32_t device)
{
	struct gp_gpu *gpu = sim->devices[device].gpu;
	struct gp_gpu_change *changes;
	struct sim_client *client;
	struct sim_queue *queue;
	uint32_t i, count = 0;
	bool wait;

	if (sim->hold_busy[device]) {
		sim->hold_again[device] = true;
		return;
	}
	changes = malloc((size_t)(sim->queue_count + 1) * sizeof(*changes));
	if (!changes) {
		sim->out_of_memory = true;
		return;
	}
	for (i = 0; i < sim->queue_count; i++) {
		queue = &sim->queues[i];
		client = &sim->clients[queue->info.client];
		wait = baseline_must_wait(sim, client);
		if (!queue->info.alive || queue->info.device != device || queue->info.kind != GP_GPU_COMPUTE ||
		    wait == queue->info.closed || (wait && queue->info.written == queue->info.completed))
			continue;
		if (wait)
			gp_gpu_kill(gpu, queue->info.gpu_queue, sim->now_ns);
		changes[count++] = (struct gp_gpu_change){ .queue = queue->info.gpu_queue, .open = !wait };
	}
	sim->hold_seq[device] = ++sim->transaction_seq;
	sim->hold_start_ns[device] = sim->now_ns;
	if (count && !gp_gpu_transact(gpu, changes, count, sim->hold_seq[device], sim->now_ns))
		sim->hold_busy[device] = true;
	free(changes);
}

/* Reset mode's transaction is done: gates are what they are; what changed meanwhile needs another one. */
bool gp_sim_baseline_transaction_end(struct gp_sim *sim, uint32_t device, const struct gp_gpu_event *event)
{
	struct gp_gpu_counters counters;
	struct sim_queue *queue;
	uint32_t i;

	if (!sim->hold_busy[device] || event->value != sim->hold_seq[device])
		return false;
	sim->hold_busy[device] = false;
	sim->transactions++;
	sim->transaction_ns += sim->now_ns - sim->hold_start_ns[device];
	for (i = 0; i < sim->queue_count; i++) {
		queue = &sim->queues[i];
		if (!queue->info.alive || queue->info.device != device ||
		    gp_gpu_counters(sim->devices[device].gpu, queue->info.gpu_queue, &counters))
			continue;
		queue->info.closed = !counters.open;
		gp_sim_account_gate(sim, i);
	}
	if (sim->hold_again[device]) {
		sim->hold_again[device] = false;
		baseline_hold(sim, device);
	}
	return true;
}

void gp_sim_baseline_host(struct gp_sim *sim, uint32_t index, bool busy)
{
	struct sim_client *client = &sim->clients[index];
	uint32_t i;
	int32_t level;

	/* It goes from where it was counted, whatever its priority has become meanwhile. */
	if (busy)
		client->host_level = client->info.priority;
	level = client->host_level;
	sim->host_work[level] += busy ? 1 : -1u;
	if (sim->host_work[level] != busy)
		return;
	for (i = 0; i < sim->device_count && sim->config.mode == GP_SIM_RESET; i++)
		baseline_hold(sim, i);
	for (i = 0; i < sim->client_count && !busy; i++) {
		if (sim->clients[i].info.priority < level)
			gp_sim_process_pump(sim, i);
	}
}
