/* SPDX-License-Identifier: MIT */
/* Owns clients: their life, their queues, when their requests arrive, and when their packets are written. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "sim/state.h"

/* Steps that another queue waits for need a signal; a job has one per such step and device. */
static int process_plan_signals(struct sim_client *client)
{
	const struct gp_work_sequence *seq = client->sequence;
	const struct gp_work_step *step, *other;
	uint32_t i, k, dep;

	client->signal_place = malloc((size_t)seq->step_count * sizeof(*client->signal_place));
	if (!client->signal_place)
		return -ENOMEM;
	for (i = 0; i < seq->step_count; i++)
		client->signal_place[i] = SIM_NONE;
	for (i = 0; i < seq->step_count; i++) {
		step = &seq->steps[i];
		for (k = 0; k < GP_WORK_DEPS; k++) {
			dep = step->deps[k];
			if (!dep || client->signal_place[dep - 1] != SIM_NONE)
				continue;
			other = &seq->steps[dep - 1];
			if (other->queue == step->queue &&
			    (other->type == GP_STEP_COPY) == (step->type == GP_STEP_COPY) &&
			    (step->type != GP_STEP_COPY || other->to_host == step->to_host))
				continue;
			client->signal_place[dep - 1] = client->signal_count++;
		}
	}
	return 0;
}

int gp_sim_process_init(struct gp_sim *sim, uint32_t index)
{
	struct sim_client *client = &sim->clients[index];
	const struct gp_work_client *work = &sim->config.workload->clients[index];
	bool copies[2] = { false, false };
	uint32_t i;

	client->info = (struct gp_sim_client_info){ .work = work, .priority = work->priority };
	client->sequence = &sim->config.workload->sequences[work->sequence];
	client->first_job = client->last_job = SIM_NONE;
	if (sim->config.has_only_client && sim->config.only_client != index)
		return 0;
	gp_hist_init(&client->latency_ns);
	for (i = 0; i < GP_WORK_DEVICE_MAX; i++) {
		if (work->devices >> i & 1)
			client->devices[client->device_count++] = i;
	}
	for (i = 0; i < client->sequence->step_count; i++) {
		if (client->sequence->steps[i].type == GP_STEP_COPY)
			copies[client->sequence->steps[i].to_host] = true;
	}
	client->queues_per_device = work->queue_count;
	for (i = 0; i < 2; i++)
		client->copy_queue[i] = copies[i] ? client->queues_per_device++ : SIM_NONE;
	return process_plan_signals(client);
}

void gp_sim_process_fini(struct sim_client *client)
{
	free(client->signal_place);
}

static int process_map_queue(struct sim_device *device, uint32_t gpu_queue, uint32_t queue)
{
	uint32_t count = device->queue_of_count;
	uint32_t *map;

	if (gpu_queue >= count) {
		while (gpu_queue >= count)
			count = count ? count * 2 : 64;
		map = realloc(device->queue_of, (size_t)count * sizeof(*map));
		if (!map)
			return -ENOMEM;
		memset(&map[device->queue_of_count], 0xff, (size_t)(count - device->queue_of_count) * sizeof(*map));
		device->queue_of = map;
		device->queue_of_count = count;
	}
	device->queue_of[gpu_queue] = queue;
	return 0;
}

static int process_add_queue(struct gp_sim *sim, uint32_t index, uint32_t member, uint32_t place)
{
	struct sim_client *client = &sim->clients[index];
	const struct gp_work_client *work = client->info.work;
	struct gp_gpu_queue_attr attr = { .ring_size = work->ring_size ? work->ring_size : 1024,
					  .priority = work->hw_priority,
					  .kind = place < work->queue_count ? GP_GPU_COMPUTE : GP_GPU_COPY };
	struct sim_queue *queues, *queue;
	uint32_t capacity, i;
	int ret;

	if (sim->queue_count == sim->queue_capacity) {
		capacity = sim->queue_capacity ? sim->queue_capacity * 2 : 64;
		queues = realloc(sim->queues, (size_t)capacity * sizeof(*queues));
		if (!queues)
			return -ENOMEM;
		sim->queues = queues;
		sim->queue_capacity = capacity;
	}
	queue = &sim->queues[sim->queue_count];
	*queue = (struct sim_queue){ .ring_size = attr.ring_size,
				     .armed = true,
				     .info = { .client = index,
					       .device = client->devices[member],
					       .gpu_process = client->processes[member],
					       .kind = attr.kind,
					       .alive = true } };
	ret = gp_gpu_queue_add(sim->devices[queue->info.device].gpu, queue->info.gpu_process, &attr, sim->now_ns,
			       &queue->info.gpu_queue);
	if (ret)
		return ret;
	queue->ring = calloc(attr.ring_size, sizeof(*queue->ring));
	if (!queue->ring)
		return -ENOMEM;
	for (i = 0; i < attr.ring_size; i++)
		queue->ring[i].job = queue->ring[i].meeting = SIM_NONE;
	return process_map_queue(&sim->devices[queue->info.device], queue->info.gpu_queue, sim->queue_count++);
}

static void process_first_arrival(struct gp_sim *sim, uint32_t index)
{
	struct sim_client *client = &sim->clients[index];
	const struct gp_work_client *work = client->info.work;

	if (work->kind == GP_WORK_BATCH) {
		gp_sim_process_pump(sim, index);
		return;
	}
	if (work->arrival == GP_ARRIVAL_EXPLICIT) {
		/* A process that starts again missed what came meanwhile. */
		while (client->request_index < work->request_count &&
		       work->start_ns + work->requests[client->request_index].offset_ns < sim->now_ns)
			client->request_index++;
		if (client->request_index < work->request_count)
			gp_sim_process_schedule(sim, index,
						work->start_ns + work->requests[client->request_index].offset_ns);
		return;
	}
	gp_sim_process_schedule(sim, index, sim->now_ns + gp_workload_first_gap_ns(work, &client->rng));
}

/* Its peers have made more jobs, and wait in their collectives for it. */
static bool process_is_behind(const struct sim_client *client)
{
	return client->info.alive && !client->meets_nobody && client->job_number < client->job_target;
}

static void process_catch_up(struct gp_sim *sim, uint32_t index)
{
	while (sim->clients[index].info.work->kind == GP_WORK_SERVICE && process_is_behind(&sim->clients[index]))
		if (gp_sim_job_create(sim, index, NULL) == SIM_NONE)
			return;
	if (sim->clients[index].info.alive)
		gp_sim_process_pump(sim, index);
}

int gp_sim_process_start(struct gp_sim *sim, uint32_t index)
{
	struct sim_client *client = &sim->clients[index];
	uint32_t member, place;
	int ret;

	client->info.first_queue = sim->queue_count;
	client->info.queue_count = client->device_count * client->queues_per_device;
	for (member = 0; member < client->device_count; member++) {
		ret = gp_gpu_process_add(sim->devices[client->devices[member]].gpu, &client->processes[member]);
		for (place = 0; !ret && place < client->queues_per_device; place++)
			ret = process_add_queue(sim, index, member, place);
		if (ret)
			return ret;
	}
	client->info.alive = true;
	if (sim->config.observer && sim->config.observer->client_change)
		sim->config.observer->client_change(sim->config.observer->context, index, true, false, sim->now_ns);
	gp_sim_agent_client_add(sim, index);
	process_first_arrival(sim, index);
	if (sim->arrivals_stopped && client->job_target)
		process_catch_up(sim, index);
	return 0;
}

/* Open loops end at the end of the run; the time of the next arrival is drawn all the same, so that the stream stays
 * in step. */
void gp_sim_process_schedule(struct gp_sim *sim, uint32_t index, uint64_t arrival_ns)
{
	struct sim_client *client = &sim->clients[index];
	uint64_t hint_ns = client->info.work->hint_ns;

	if (sim->arrivals_stopped || (arrival_ns >= sim->config.duration_ns && !sim->config.no_arrivals_limit))
		return;
	gp_sim_push(sim, arrival_ns, SIM_ARRIVAL, index, client->incarnation);
	if (!hint_ns || !sim->core)
		return;
	hint_ns = arrival_ns > sim->now_ns + hint_ns ? arrival_ns - hint_ns : sim->now_ns;
	gp_sim_push(sim, hint_ns + sim->notice_ns, SIM_HINT, index, arrival_ns);
}

void gp_sim_process_arrive(struct gp_sim *sim, uint32_t index)
{
	struct sim_client *client = &sim->clients[index];
	const struct gp_work_client *work = client->info.work;
	const struct gp_work_request *request = NULL;
	struct gp_result_mark mark = { .type = GP_MARK_ARRIVAL,
				       .start_ns = sim->now_ns,
				       .end_ns = sim->now_ns,
				       .device = client->devices[0],
				       .client = index,
				       .other = SIM_NONE,
				       .queue = client->info.first_queue,
				       .why = "request arrives" };
	uint32_t i;

	if (sim->arrivals_stopped)
		return;
	if (work->arrival == GP_ARRIVAL_EXPLICIT)
		request = &work->requests[client->request_index++];
	gp_sim_record_mark(sim, &mark);
	for (i = 0; i < (work->burst ? work->burst : 1); i++) {
		if (gp_sim_job_create(sim, index, request) == SIM_NONE)
			return;
	}
	if (work->arrival == GP_ARRIVAL_EXPLICIT && client->request_index < work->request_count)
		gp_sim_process_schedule(sim, index, work->start_ns + work->requests[client->request_index].offset_ns);
	else if (work->arrival == GP_ARRIVAL_POISSON || work->arrival == GP_ARRIVAL_PERIODIC)
		gp_sim_process_schedule(sim, index, sim->now_ns + gp_workload_next_gap_ns(work, &client->rng));
	gp_sim_process_pump(sim, index);
}

static void process_ring_doorbells(struct gp_sim *sim, const struct sim_client *client)
{
	struct sim_queue *queue;
	uint32_t i;

	for (i = 0; i < client->info.queue_count; i++) {
		queue = &sim->queues[client->info.first_queue + i];
		if (!queue->doorbell_due)
			continue;
		queue->doorbell_due = false;
		gp_gpu_doorbell(sim->devices[queue->info.device].gpu, queue->info.gpu_queue, sim->now_ns);
		gp_sim_agent_submitted(sim, client->info.first_queue + i);
	}
}

/* The job whose packets are written next. A batch client makes one whenever it has none left to write. */
static uint32_t process_next_job(struct gp_sim *sim, uint32_t index)
{
	struct sim_client *client = &sim->clients[index];
	bool is_batch = client->info.work->kind == GP_WORK_BATCH;
	/* What was written for one device goes out on all of them: the members of a collective wait for each other. */
	bool is_begun = client->first_job != SIM_NONE && sim->jobs[client->first_job].member > 0;

	if (is_batch && !is_begun && client->packet_count >= client->info.work->depth &&
	    sim->config.mode != GP_SIM_SEQUENTIAL)
		return SIM_NONE;
	if (client->first_job != SIM_NONE || !is_batch || (sim->arrivals_stopped && !process_is_behind(client)))
		return client->first_job;
	if (sim->config.mode == GP_SIM_SEQUENTIAL && client->job_count)
		return SIM_NONE;
	return gp_sim_job_create(sim, index, NULL);
}

/* Writes what may be written now. Called whenever that may have changed: an arrival, a completion, a host-side gate. */
void gp_sim_process_pump(struct gp_sim *sim, uint32_t index)
{
	struct sim_client *client = &sim->clients[index];
	bool any = false;
	uint32_t job;
	int ret;

	while (client->info.alive && !sim->out_of_memory) {
		job = process_next_job(sim, index);
		if (job == SIM_NONE || !gp_sim_baseline_may_submit(sim, index, job))
			break;
		ret = gp_sim_job_submit_next(sim, job);
		if (ret < 0)
			break;
		any = true;
		if (ret) {
			client->first_job = sim->jobs[job].next;
			if (client->first_job == SIM_NONE)
				client->last_job = SIM_NONE;
			sim->jobs[job].next = SIM_NONE;
		}
	}
	if (any)
		process_ring_doorbells(sim, client);
}

void gp_sim_process_finish(struct gp_sim *sim)
{
	uint32_t i, k;

	for (i = 0; i < sim->client_count; i++) {
		struct sim_client *client = &sim->clients[i];

		for (k = 0; client->info.work->meets && k < sim->client_count; k++)
			if (sim->clients[k].info.work->meets == client->info.work->meets &&
			    sim->clients[k].job_number > client->job_target)
				client->job_target = sim->clients[k].job_number;
	}
	for (i = 0; i < sim->client_count; i++)
		if (sim->clients[i].job_target)
			process_catch_up(sim, i);
}

/* In whatever state it is. The core is not told here: it finds out later, or never. */
void gp_sim_process_die(struct gp_sim *sim, uint32_t index)
{
	struct sim_client *client = &sim->clients[index];
	struct sim_queue *queue;
	uint32_t i;

	if (!client->info.alive)
		return;
	client->info.alive = false;
	client->incarnation++;
	for (i = 0; i < client->info.queue_count; i++) {
		queue = &sim->queues[client->info.first_queue + i];
		gp_sim_account_queue_gone(sim, client->info.first_queue + i);
		queue->info.alive = false;
		sim->devices[queue->info.device].queue_of[queue->info.gpu_queue] = SIM_NONE;
	}
	for (i = 0; i < client->device_count; i++)
		gp_gpu_process_remove(sim->devices[client->devices[i]].gpu, client->processes[i], sim->now_ns);
	gp_sim_job_discard_all(sim, index);
	if (sim->config.observer && sim->config.observer->client_change)
		sim->config.observer->client_change(sim->config.observer->context, index, false, false, sim->now_ns);
}
