/* SPDX-License-Identifier: MIT */
/*
 * Owns the ground truth: who waited for whom, kept by the simulator itself in every mode, so that modes are compared
 * alike.
 *
 * An inversion, here, is a stretch of time in which compute work of some priority is pending on a device while compute
 * work of a lower priority runs there. Totals count such stretches per device and waiting priority; up to SIM_PAIR_MAX
 * clients the same is kept for each pair of clients as well.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "sim/state.h"

int gp_sim_account_init(struct gp_sim *sim)
{
	struct sim_device *device;
	uint32_t i;

	if (sim->client_count <= SIM_PAIR_MAX) {
		sim->pairs = calloc((size_t)SIM_PAIR_MAX * SIM_PAIR_MAX, sizeof(*sim->pairs));
		if (!sim->pairs)
			return -ENOMEM;
	}
	for (i = 0; i < sim->device_count; i++) {
		device = &sim->devices[i];
		device->client_work = calloc(sim->client_count, sizeof(*device->client_work));
		device->client_running = calloc(sim->client_count, sizeof(*device->client_running));
		if (!device->client_work || !device->client_running)
			return -ENOMEM;
		if (!sim->pairs)
			continue;
		device->pair_since_ns = calloc((size_t)SIM_PAIR_MAX * SIM_PAIR_MAX, sizeof(*device->pair_since_ns));
		if (!device->pair_since_ns)
			return -ENOMEM;
	}
	return 0;
}

void gp_sim_account_fini(struct gp_sim *sim)
{
	uint32_t i;

	for (i = 0; i < sim->device_count; i++) {
		free(sim->devices[i].client_work);
		free(sim->devices[i].client_running);
		free(sim->devices[i].pair_since_ns);
	}
	free(sim->pairs);
}

static void account_level_end(struct gp_sim *sim, uint64_t length_ns)
{
	/* Work that comes and goes at one instant met nobody. */
	if (!length_ns)
		return;
	sim->inversion_count++;
	sim->inversion_ns += length_ns;
	if (length_ns > sim->inversion_ns_max)
		sim->inversion_ns_max = length_ns;
}

static void account_levels(struct gp_sim *sim, struct sim_device *device)
{
	int32_t level, lowest = SIM_LEVELS;
	bool is_inverted;

	for (level = 0; level < SIM_LEVELS; level++) {
		if (device->running[level] && lowest == SIM_LEVELS)
			lowest = level;
		is_inverted = device->work[level] && lowest < level;
		if (is_inverted == !!device->level_since_ns[level])
			continue;
		if (!is_inverted)
			account_level_end(sim, sim->now_ns + 1 - device->level_since_ns[level]);
		device->level_since_ns[level] = is_inverted ? sim->now_ns + 1 : 0;
	}
}

static void account_pair_end(struct gp_sim *sim, uint32_t device, uint32_t waits, uint32_t runs)
{
	uint64_t *since_ns = &sim->devices[device].pair_since_ns[waits * SIM_PAIR_MAX + runs];
	struct sim_pair *pair = &sim->pairs[waits * SIM_PAIR_MAX + runs];
	struct gp_result_mark mark = { .type = GP_MARK_INVERSION,
				       .start_ns = *since_ns - 1,
				       .end_ns = sim->now_ns,
				       .device = device,
				       .client = waits,
				       .other = runs,
				       .queue = SIM_NONE,
				       .why = "waits for lower priority" };
	uint64_t length_ns = sim->now_ns + 1 - *since_ns;

	*since_ns = 0;
	if (!length_ns)
		return;
	pair->count++;
	pair->total_ns += length_ns;
	if (length_ns > pair->max_ns)
		pair->max_ns = length_ns;
	gp_sim_record_mark(sim, &mark);
}

static void account_pair(struct gp_sim *sim, uint32_t device, uint32_t waits, uint32_t runs)
{
	struct sim_device *dev = &sim->devices[device];
	uint64_t *since_ns = &dev->pair_since_ns[waits * SIM_PAIR_MAX + runs];
	bool is_inverted = dev->client_work[waits] && dev->client_running[runs] &&
			   sim->clients[waits].info.priority > sim->clients[runs].info.priority;

	if (is_inverted == !!*since_ns)
		return;
	if (is_inverted)
		*since_ns = sim->now_ns + 1;
	else
		account_pair_end(sim, device, waits, runs);
}

static void account_client_changed(struct gp_sim *sim, uint32_t device, uint32_t client)
{
	uint32_t i;

	account_levels(sim, &sim->devices[device]);
	for (i = 0; sim->pairs && i < sim->client_count; i++) {
		account_pair(sim, device, client, i);
		account_pair(sim, device, i, client);
	}
}

static void account_blocked(struct gp_sim *sim, uint32_t index)
{
	struct sim_queue *queue = &sim->queues[index];
	bool is_blocked = queue->info.alive && queue->info.closed && queue->info.written > queue->info.completed;

	if (is_blocked == !!queue->blocked_since_ns)
		return;
	if (!is_blocked)
		sim->clients[queue->info.client].wait_ns += sim->now_ns + 1 - queue->blocked_since_ns;
	queue->blocked_since_ns = is_blocked ? sim->now_ns + 1 : 0;
}

void gp_sim_account_work(struct gp_sim *sim, uint32_t index, bool has_work)
{
	struct sim_queue *queue = &sim->queues[index];
	struct sim_device *device = &sim->devices[queue->info.device];
	uint32_t client = queue->info.client, *count = &device->client_work[client];

	account_blocked(sim, index);
	if (queue->info.kind != GP_GPU_COMPUTE)
		return;
	*count += has_work ? 1 : -1u;
	if (*count != has_work) /* neither the first that came nor the last that went */
		return;
	device->work[sim->clients[client].info.priority] += has_work ? 1 : -1u;
	account_client_changed(sim, queue->info.device, client);
}

void gp_sim_account_running(struct gp_sim *sim, uint32_t index, bool runs)
{
	struct sim_queue *queue = &sim->queues[index];
	struct sim_device *device = &sim->devices[queue->info.device];
	uint32_t client = queue->info.client, *count = &device->client_running[client];

	if (queue->info.kind != GP_GPU_COMPUTE)
		return;
	*count += runs ? 1 : -1u;
	if (*count != runs)
		return;
	device->running[sim->clients[client].info.priority] += runs ? 1 : -1u;
	account_client_changed(sim, queue->info.device, client);
}

void gp_sim_account_gate(struct gp_sim *sim, uint32_t queue)
{
	account_blocked(sim, queue);
}

void gp_sim_account_set_priority(struct gp_sim *sim, uint32_t index, int32_t priority)
{
	struct sim_client *client = &sim->clients[index];
	struct sim_device *device;
	uint32_t i;

	for (i = 0; i < sim->device_count; i++) {
		device = &sim->devices[i];
		device->work[client->info.priority] -= device->client_work[index] > 0;
		device->running[client->info.priority] -= device->client_running[index] > 0;
		device->work[priority] += device->client_work[index] > 0;
		device->running[priority] += device->client_running[index] > 0;
	}
	client->info.priority = priority;
	for (i = 0; i < sim->device_count; i++)
		account_client_changed(sim, i, index);
}

void gp_sim_account_queue_gone(struct gp_sim *sim, uint32_t index)
{
	struct sim_queue *queue = &sim->queues[index];
	struct gp_gpu_counters counters;

	if (!gp_gpu_counters(sim->devices[queue->info.device].gpu, queue->info.gpu_queue, &counters))
		sim->clients[queue->info.client].unit_ns += counters.unit_ns;
	if (queue->info.running) {
		queue->info.running = 0;
		gp_sim_account_running(sim, index, false);
	}
	if (queue->info.written > queue->info.completed) {
		queue->info.completed = queue->info.written;
		gp_sim_account_work(sim, index, false);
	}
	queue->info.closed = false;
	account_blocked(sim, index);
}

/* The run is looked at: what is under way counts up to now, and goes on as a new stretch. */
void gp_sim_account_finish(struct gp_sim *sim)
{
	struct sim_device *device;
	uint32_t i, k;

	for (i = 0; i < sim->device_count; i++) {
		device = &sim->devices[i];
		for (k = 0; k < SIM_LEVELS; k++) {
			if (device->level_since_ns[k])
				account_level_end(sim, sim->now_ns + 1 - device->level_since_ns[k]);
			device->level_since_ns[k] = 0;
		}
		account_levels(sim, device);
		for (k = 0; sim->pairs && k < SIM_PAIR_MAX * SIM_PAIR_MAX; k++) {
			if (device->pair_since_ns[k])
				account_pair_end(sim, i, k / SIM_PAIR_MAX, k % SIM_PAIR_MAX);
		}
		for (k = 0; k < sim->client_count; k++)
			account_client_changed(sim, i, k);
	}
}
