/* SPDX-License-Identifier: MIT */
/*
 * Owns the ranks of a world: one or two jobs of two to four processes on a device each, which wait for each other in
 * collectives, with kernels of different length in between, as batch loops or with requests at times of their own.
 */
#include <errno.h>
#include <stdio.h>
#include "test/sim/swarm.h"

#define US         1000ull
#define MS         1000000ull
#define RANKS_STEP 5u
#define RANKS_GANG 1000u /* beyond those of other clients */

/* What all ranks of a job have in common. */
struct ranks_job {
	uint32_t number, count, first_device, step_count, queue_count, repeat;
	int32_t priority;
	uint64_t job_ns;
	bool is_batch, meets[RANKS_STEP];
};

static uint64_t ranks_between(struct gp_rng *rng, uint64_t low, uint64_t high)
{
	return low + gp_rng_below(rng, high - low + 1);
}

static void ranks_draw_job(const struct swarm_world *world, struct gp_rng *rng, uint32_t number, struct ranks_job *job)
{
	static const int32_t priorities[] = { 0, 20, 20, 50, 80 };
	uint32_t i, devices = world->config.device_count;

	*job = (struct ranks_job){
		.number = number,
		.count = (uint32_t)ranks_between(rng, 2, devices),
		.first_device = (uint32_t)gp_rng_below(rng, devices),
		.step_count = (uint32_t)ranks_between(rng, 1, RANKS_STEP),
		.queue_count = (uint32_t)ranks_between(rng, 1, 2),
		.repeat = (uint32_t)ranks_between(rng, 1, 2),
		.priority = priorities[gp_rng_below(rng, 5)],
		.job_ns = gp_rng_below(rng, 2) ? ranks_between(rng, 300, 1000) * US : ranks_between(rng, 1, 4) * MS,
		.is_batch = gp_rng_below(rng, 3) > 0,
	};
	for (i = 0; i < job->step_count; i++)
		job->meets[i] = i + 1 == job->step_count || !gp_rng_below(rng, 3);
}

static int ranks_draw_steps(struct swarm_world *world, struct gp_rng *rng, const struct ranks_job *job,
			    uint32_t sequence)
{
	struct gp_work_step *step;
	uint32_t i;

	for (i = 0; i < job->step_count; i++) {
		step = gp_workload_add_step(&world->workload, sequence);
		if (!step)
			return -ENOMEM;
		step->kernel =
			gp_workload_full_kernel(&world->desc, (uint32_t)ranks_between(rng, 1, 4),
						ranks_between(rng, job->job_ns / 4, job->job_ns) / job->step_count);
		if (i)
			step->deps[0] = i;
		if (!job->meets[i]) {
			step->queue = (uint32_t)gp_rng_below(rng, job->queue_count);
			continue;
		}
		/* Few workgroups, and on one queue: see world_draw_steps(). */
		step->type = GP_STEP_COLLECTIVE;
		step->repeat = job->repeat;
		step->kernel.workgroups = (uint32_t)ranks_between(rng, 1, 8);
		step->kernel.workgroup_ns = ranks_between(rng, 5, 100) * US;
		step->kernel.vgprs = 64;
	}
	return 0;
}

static void ranks_draw_arrivals(struct gp_rng *rng, const struct ranks_job *job, struct gp_work_client *client)
{
	client->kind = GP_WORK_SERVICE;
	client->arrival = gp_rng_below(rng, 2) ? GP_ARRIVAL_POISSON : GP_ARRIVAL_PERIODIC;
	client->period_ns = job->job_ns * 1000 / ranks_between(rng, 100, 500) + 1;
}

static int ranks_draw_one(struct swarm_world *world, struct gp_rng *rng, const struct ranks_job *job, uint32_t index)
{
	uint32_t sequence = gp_workload_add_sequence(&world->workload);
	struct gp_work_client *client = gp_workload_add_client(&world->workload);

	if (!client || sequence == UINT32_MAX)
		return -ENOMEM;
	snprintf(client->name, sizeof(client->name), "rank%u-%u", job->number, index);
	client->priority = job->priority;
	client->queue_count = job->queue_count;
	client->ring_size = 64;
	client->sequence = sequence;
	client->meets = job->number;
	client->gang = RANKS_GANG + job->number;
	client->devices = 1ull << (job->first_device + index) % world->config.device_count;
	client->start_ns = gp_rng_below(rng, 4) ? 0 : gp_rng_below(rng, 20 * MS);
	client->kind = GP_WORK_BATCH;
	client->depth = (uint32_t)ranks_between(rng, 1, 6);
	if (!job->is_batch)
		ranks_draw_arrivals(rng, job, client);
	return ranks_draw_steps(world, rng, job, sequence);
}

int swarm_world_draw_ranks(struct swarm_world *world, uint64_t seed)
{
	struct ranks_job job;
	struct gp_rng rng;
	uint32_t i, number, count;
	int ret = 0;

	gp_rng_init(&rng, seed ^ 0x72616e6bu);
	count = gp_rng_below(&rng, 3) ? 1 : 2;
	for (number = 1; number <= count; number++) {
		ranks_draw_job(world, &rng, number, &job);
		for (i = 0; i < job.count && !ret; i++)
			ret = ranks_draw_one(world, &rng, &job, i);
	}
	return ret;
}

void swarm_world_draw_alone(struct swarm_world *world, uint64_t seed)
{
	struct gp_rng rng;
	uint32_t i;

	gp_rng_init(&rng, seed ^ 0x616c6f6eu);
	for (i = 0; i < world->workload.client_count; i++)
		world->workload.clients[i].is_stuck_alone = gp_rng_below(&rng, 2);
}
