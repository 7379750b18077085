/* SPDX-License-Identifier: MIT */
/* Owns jobs (one request or iteration): turning their steps into packets, and following the packets to the end. */
#include <errno.h>
#include <stdlib.h>
#include "sim/state.h"

static uint32_t job_take_free(struct gp_sim *sim)
{
	uint32_t capacity, i;
	struct sim_job *jobs;

	if (sim->job_free == SIM_NONE) {
		capacity = sim->job_capacity ? sim->job_capacity * 2 : 64;
		jobs = realloc(sim->jobs, (size_t)capacity * sizeof(*jobs));
		if (!jobs)
			return SIM_NONE;
		sim->jobs = jobs;
		for (i = sim->job_capacity; i < capacity; i++)
			jobs[i] = (struct sim_job){ .next = i + 1 < capacity ? i + 1 : SIM_NONE };
		sim->job_free = sim->job_capacity;
		sim->job_capacity = capacity;
	}
	i = sim->job_free;
	sim->job_free = sim->jobs[i].next;
	return i;
}

uint32_t gp_sim_job_create(struct gp_sim *sim, uint32_t client, const struct gp_work_request *request)
{
	struct sim_client *owner = &sim->clients[client];
	uint32_t index = job_take_free(sim);
	struct sim_job *job;

	if (index == SIM_NONE) {
		sim->out_of_memory = true;
		return SIM_NONE;
	}
	job = &sim->jobs[index];
	*job = (struct sim_job){ .client = client,
				 .number = owner->job_number++,
				 .arrival_ns = sim->now_ns,
				 .next = SIM_NONE,
				 .meeting = SIM_NONE,
				 .live = true,
				 .size = { 1, 1 },
				 .step_end = owner->sequence->step_count };
	if (request) {
		job->size[0] = request->size[0];
		job->size[1] = request->size[1];
		job->step = request->first_step;
		job->step_end = request->first_step + request->step_count;
	}
	if (owner->signal_count) {
		job->signals = calloc((size_t)owner->signal_count * owner->device_count, sizeof(*job->signals));
		sim->out_of_memory |= !job->signals;
	}
	if (owner->last_job == SIM_NONE)
		owner->first_job = index;
	else
		sim->jobs[owner->last_job].next = index;
	owner->last_job = index;
	owner->job_count++;
	owner->info.arrived++;
	sim->live_jobs++;
	gp_sim_baseline_job_created(sim, index);
	if (sim->config.observer && sim->config.observer->arrival)
		sim->config.observer->arrival(sim->config.observer->context, client, job->number, sim->now_ns);
	return index;
}

static void job_free_signals(struct gp_sim *sim, struct sim_job *job)
{
	const struct sim_client *client = &sim->clients[job->client];
	uint32_t i;

	for (i = 0; job->signals && i < client->signal_count * client->device_count; i++) {
		if (job->signals[i])
			gp_gpu_signal_remove(sim->devices[client->devices[i % client->device_count]].gpu,
					     job->signals[i]);
	}
	free(job->signals);
	job->signals = NULL;
}

static void job_release(struct gp_sim *sim, uint32_t index)
{
	struct sim_job *job = &sim->jobs[index];

	job_free_signals(sim, job);
	job->live = false;
	job->next = sim->job_free;
	sim->job_free = index;
	sim->clients[job->client].job_count--;
	sim->live_jobs--;
}

/* Place of a step's queue among the client's queues of one device. */
static uint32_t job_queue_place(const struct sim_client *client, const struct sim_job *job,
				const struct gp_work_step *step)
{
	uint32_t first = client->info.work->spread ? (uint32_t)(job->number % client->info.work->queue_count) : 0;

	if (step->type == GP_STEP_COPY)
		return client->copy_queue[step->to_host];
	return (first + step->queue) % client->info.work->queue_count;
}

static int job_put(struct gp_sim *sim, uint32_t queue, uint32_t job, struct gp_gpu_packet *packet, uint32_t meeting)
{
	struct sim_queue *q = &sim->queues[queue];
	struct sim_client *client = &sim->clients[q->info.client];
	bool was_idle = q->info.written == q->info.completed;
	bool is_kernel = packet->type == GP_GPU_KERNEL;
	int ret;

	/* The model may free a place at fetch; what is not complete is still followed here. */
	if (q->info.written - q->info.completed == q->ring_size)
		return -ENOSPC;
	packet->barrier = true;
	packet->tag = sim->jobs[job].number;
	ret = gp_gpu_submit(sim->devices[q->info.device].gpu, q->info.gpu_queue, packet, sim->now_ns);
	if (ret)
		return ret;
	q->ring[q->info.written % q->ring_size] = (struct sim_packet){
		.job = job,
		.meeting = meeting,
		.workgroups = is_kernel ? packet->kernel.workgroups : 0,
		.capacity = is_kernel ? gp_gpu_capacity(sim->config.desc, &packet->kernel) : 0,
	};
	q->info.written++;
	q->doorbell_due = true;
	sim->jobs[job].packet_count++;
	client->packet_count++;
	client->info.workgroups_submitted += is_kernel ? packet->kernel.workgroups : 0;
	if (was_idle)
		gp_sim_account_work(sim, queue, true);
	if (sim->config.observer && sim->config.observer->submit)
		sim->config.observer->submit(sim->config.observer->context, queue, packet, sim->now_ns);
	return 0;
}

/* The barrier packet that waits for the steps on other queues this one depends on; 0: none is needed, or it is
 * written. */
static int job_put_barrier(struct gp_sim *sim, uint32_t index, uint32_t queue, uint32_t member)
{
	struct sim_job *job = &sim->jobs[index];
	const struct sim_client *client = &sim->clients[job->client];
	const struct gp_work_step *step = &client->sequence->steps[job->step], *other;
	struct gp_gpu_packet packet = { .type = GP_GPU_BARRIER_AND };
	uint32_t i, place, signal, count = 0;

	for (i = 0; i < GP_WORK_DEPS; i++) {
		if (!step->deps[i])
			continue;
		other = &client->sequence->steps[step->deps[i] - 1];
		place = client->signal_place[step->deps[i] - 1];
		if (place == SIM_NONE || job_queue_place(client, job, other) == job_queue_place(client, job, step))
			continue;
		signal = job->signals[place * client->device_count + member];
		if (signal)
			packet.deps[count++] = signal;
	}
	return count ? job_put(sim, queue, index, &packet, SIM_NONE) : 0;
}

static uint64_t job_times(uint64_t base, enum gp_step_by by, const struct sim_job *job, uint64_t limit)
{
	uint64_t product, factor = by == GP_BY_NONE ? 1 : job->size[by - 1];

	if (__builtin_mul_overflow(base, factor, &product) || product > limit)
		return limit;
	return product ? product : 1;
}

static int job_put_step(struct gp_sim *sim, uint32_t index, uint32_t queue, uint32_t member, bool is_last)
{
	struct sim_job *job = &sim->jobs[index];
	const struct sim_client *client = &sim->clients[job->client];
	const struct gp_work_step *step = &client->sequence->steps[job->step];
	uint32_t place = client->signal_place ? client->signal_place[job->step] : SIM_NONE, meeting = SIM_NONE;
	struct gp_gpu *gpu = sim->devices[client->devices[member]].gpu;
	struct gp_gpu_packet packet = { .type = step->type == GP_STEP_COPY ? GP_GPU_COPY_BYTES : GP_GPU_KERNEL,
					.kernel = step->kernel,
					.copy_size = step->copy_size };
	uint32_t *signal = place == SIM_NONE || !is_last ? NULL : &job->signals[place * client->device_count + member];
	int ret;

	packet.kernel.workgroup_ns = job_times(step->kernel.workgroup_ns, step->time_by, job, GP_WORK_NS_MAX);
	if (signal && !*signal && gp_gpu_signal_add(gpu, 1, signal))
		sim->out_of_memory = true;
	if (signal)
		packet.signal = *signal;
	if (step->type == GP_STEP_COLLECTIVE && client->meet_count > 1 && !client->meets_nobody) {
		if (job->meeting == SIM_NONE)
			job->meeting = gp_sim_meeting_take(sim, job->client);
		if (job->meeting == SIM_NONE)
			return -ENOMEM;
		meeting = job->meeting;
		packet.kernel.spin_signal = gp_sim_meeting_signal(sim, meeting, job->client, member);
	}
	ret = job_put(sim, queue, index, &packet, meeting);
	if (!ret && meeting != SIM_NONE)
		gp_sim_meeting_join(sim, meeting);
	return ret;
}

/* Moves on to the next packet of the job: members of a repetition, repetitions of a step, steps. */
static bool job_advance(struct sim_client *client, struct sim_job *job)
{
	const struct gp_work_step *step = &client->sequence->steps[job->step];

	job->waited = false;
	if (step->device == UINT32_MAX && ++job->member < client->device_count)
		return false;
	job->member = 0;
	job->meeting = SIM_NONE;
	if (++job->repeat < job_times(step->repeat, step->repeat_by, job, UINT32_MAX))
		return false;
	job->repeat = 0;
	return ++job->step == job->step_end;
}

int gp_sim_job_submit_next(struct gp_sim *sim, uint32_t index)
{
	struct sim_job *job = &sim->jobs[index];
	struct sim_client *client = &sim->clients[job->client];
	const struct gp_work_step *step = &client->sequence->steps[job->step];
	uint32_t member = step->device == UINT32_MAX ? job->member : step->device;
	uint32_t queue =
		client->info.first_queue + member * client->queues_per_device + job_queue_place(client, job, step);
	bool is_last = job->repeat + 1 == job_times(step->repeat, step->repeat_by, job, UINT32_MAX);
	int ret;

	if (!job->waited && !job->repeat) {
		ret = job_put_barrier(sim, index, queue, member);
		if (ret)
			return ret;
	}
	job->waited = true;
	ret = job_put_step(sim, index, queue, member, is_last);
	if (ret)
		return ret;
	if (!job_advance(client, job))
		return 0;
	job->submitted = true;
	return 1;
}

/* A request of the warm-up counts for nothing; the last of them starts the clock of all figures. */
static void job_count_warm(struct gp_sim *sim, uint32_t index)
{
	struct sim_client *client = &sim->clients[index];

	if (++client->warm_done == client->info.work->warm_count)
		client->begin = gp_sim_client_spent(sim, index);
}

static void job_count(struct sim_client *client, uint64_t latency_ns)
{
	uint64_t deadline_ns = client->info.work->deadline_ns;

	gp_hist_add(&client->latency_ns, latency_ns);
	if (deadline_ns && latency_ns <= deadline_ns)
		client->deadlines_met++;
	else if (deadline_ns)
		client->deadlines_missed++;
}

static void job_complete(struct gp_sim *sim, uint32_t index)
{
	struct sim_job *job = &sim->jobs[index];
	struct sim_client *client = &sim->clients[job->client];
	const struct gp_work_client *work = client->info.work;
	uint32_t owner = job->client;

	client->info.completed++;
	if (job->number < work->warm_count)
		job_count_warm(sim, owner);
	else
		job_count(client, sim->now_ns - job->arrival_ns);
	if (sim->config.observer && sim->config.observer->completion)
		sim->config.observer->completion(sim->config.observer->context, owner, job->number, job->arrival_ns,
						 sim->now_ns);
	gp_sim_baseline_job_ended(sim, index);
	job_release(sim, index);
	if (work->kind == GP_WORK_SERVICE && work->arrival == GP_ARRIVAL_CLOSED)
		gp_sim_process_schedule(sim, owner,
					sim->now_ns + (work->session && client->info.completed % work->session == 0 ?
							       work->pause_ns :
							       work->think_ns));
}

static void job_stop_running(struct gp_sim *sim, uint32_t queue, struct sim_packet *packet,
			     const struct gp_gpu_event *event)
{
	struct sim_queue *q = &sim->queues[queue];

	if (!packet->start_ns)
		return;
	gp_sim_record_slice(sim, queue, event, packet->start_ns - 1, event->type != GP_GPU_EVENT_END);
	packet->start_ns = 0;
	if (packet->meeting != SIM_NONE)
		gp_sim_meeting_stop(sim, packet->meeting, q->info.client, q->info.device);
	if (!--q->info.running)
		gp_sim_account_running(sim, queue, false);
}

static void job_packet_end(struct gp_sim *sim, uint32_t queue, struct sim_packet *packet,
			   const struct gp_gpu_event *event)
{
	struct sim_queue *q = &sim->queues[queue];
	struct sim_client *client = &sim->clients[q->info.client];
	uint32_t index = packet->job, meeting = packet->meeting;
	struct sim_job *job = &sim->jobs[index];

	job_stop_running(sim, queue, packet, event);
	packet->job = SIM_NONE;
	q->info.completed++;
	client->packet_count--;
	client->info.workgroups_done += packet->workgroups ? event->value : 0;
	if (q->info.written == q->info.completed)
		gp_sim_account_work(sim, queue, false);
	gp_sim_agent_progressed(sim, queue);
	if (meeting != SIM_NONE)
		gp_sim_meeting_leave(sim, meeting);
	if (!--job->packet_count && job->submitted)
		job_complete(sim, index);
	gp_sim_process_pump(sim, q->info.client);
}

void gp_sim_job_event(struct gp_sim *sim, uint32_t queue, const struct gp_gpu_event *event)
{
	struct sim_queue *q = &sim->queues[queue];
	struct sim_packet *packet = &q->ring[event->packet % q->ring_size];

	switch (event->type) {
	case GP_GPU_EVENT_FETCH:
		if (sim->config.rptr_at_fetch)
			gp_sim_agent_progressed(sim, queue);
		break;
	case GP_GPU_EVENT_START:
		if (packet->start_ns)
			break;
		packet->start_ns = event->time_ns + 1;
		if (!q->info.running++)
			gp_sim_account_running(sim, queue, true);
		if (packet->meeting != SIM_NONE)
			gp_sim_meeting_start(sim, packet->meeting, q->info.client, q->info.device);
		break;
	case GP_GPU_EVENT_STOP:
		/* A stop-the-world transaction also halts work that goes on right after: that is no preemption of
		 * it. */
		if (packet->start_ns && q->closing) {
			sim->preemptions++;
			q->closing = false;
		}
		job_stop_running(sim, queue, packet, event);
		break;
	case GP_GPU_EVENT_KILLED:
		if (packet->start_ns)
			sim->preemptions++;
		job_stop_running(sim, queue, packet, event);
		sim->killed_ns += packet->capacity ? event->value / packet->capacity : 0;
		break;
	case GP_GPU_EVENT_END: job_packet_end(sim, queue, packet, event); break;
	default: break;
	}
}

/* The process is gone: so is everything it had under way. */
void gp_sim_job_discard_all(struct gp_sim *sim, uint32_t client)
{
	struct sim_client *owner = &sim->clients[client];
	struct sim_queue *q;
	uint32_t i, n;

	gp_sim_meeting_give_up(sim, client); /* some members of its collectives will never come */
	for (i = 0; i < owner->info.queue_count; i++) {
		q = &sim->queues[owner->info.first_queue + i];
		for (n = 0; n < q->ring_size; n++) {
			if (q->ring[n].job != SIM_NONE)
				owner->info.workgroups_submitted -= q->ring[n].workgroups;
			if (q->ring[n].job != SIM_NONE && q->ring[n].meeting != SIM_NONE)
				gp_sim_meeting_leave(sim, q->ring[n].meeting);
			q->ring[n] = (struct sim_packet){ .job = SIM_NONE, .meeting = SIM_NONE };
		}
	}
	for (i = 0; i < sim->job_capacity; i++) {
		if (!sim->jobs[i].live || sim->jobs[i].client != client)
			continue;
		owner->info.lost++;
		gp_sim_baseline_job_ended(sim, i);
		job_release(sim, i);
	}
	owner->first_job = owner->last_job = SIM_NONE;
	owner->packet_count = 0;
}
