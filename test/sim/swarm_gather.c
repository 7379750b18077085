/* SPDX-License-Identifier: MIT */
/*
 * Owns the programs of a world that launch ahead, on devices that switch by themselves: pieces come closely for some
 * milliseconds, then the program waits. What is drawn here has a stream of its own, and worlds without it are as they
 * were: so are those of the seeds that were kept before (the constant was chosen so that each of them is without).
 */
#include <errno.h>
#include <stdio.h>
#include "test/sim/swarm.h"

#define US           1000ull
#define MS           1000000ull
#define GATHER_SEED  0x6761748cu
#define GATHER_COUNT 4000u /* pieces of one world */

static uint64_t gather_between(struct gp_rng *rng, uint64_t low, uint64_t high)
{
	return low + gp_rng_below(rng, high - low + 1);
}

/* Now and then a launch is late, and now and then it waits: for what it launched, or not at all. */
static int gather_draw_pieces(const struct swarm_world *world, struct gp_rng *rng, struct gp_work_client *client)
{
	uint64_t at_ns = 0, until_ns = gather_between(rng, 2, 15) * MS, each_ns = gather_between(rng, 15, 90) * US;
	struct gp_work_request *request;
	uint32_t i;

	for (i = 0; i < GATHER_COUNT && at_ns < world->calm_ns; i++) {
		request = gp_workload_add_request(client);
		if (!request)
			return -ENOMEM;
		request->offset_ns = at_ns;
		request->step_count = 1;
		at_ns += gather_between(rng, each_ns / 2, each_ns);
		if (gp_rng_below(rng, 1000) < 5)
			at_ns += gather_between(rng, 200, 1500) * US;
		if (at_ns > until_ns) {
			at_ns += gather_between(rng, 500, 6000) * US;
			until_ns = at_ns + gather_between(rng, 2, 15) * MS;
		}
	}
	return 0;
}

static int gather_draw_client(struct swarm_world *world, struct gp_rng *rng)
{
	struct gp_work_client *client = gp_workload_add_client(&world->workload);
	uint32_t sequence = gp_workload_add_sequence(&world->workload);
	struct gp_work_step *step = sequence == UINT32_MAX ? NULL : gp_workload_add_step(&world->workload, sequence);

	if (!client || !step)
		return -ENOMEM;
	snprintf(client->name, sizeof(client->name), "g");
	client->priority = GP_PRIORITY_MAX;
	client->kind = GP_WORK_SERVICE;
	client->arrival = GP_ARRIVAL_EXPLICIT;
	client->sequence = sequence;
	client->queue_count = 1;
	client->ring_size = 1024;
	client->devices = 1ull << gp_rng_below(rng, world->config.device_count);
	client->unseen = gp_rng_below(rng, 2);
	step->repeat = 1;
	step->device = UINT32_MAX;
	step->kernel = gp_workload_full_kernel(&world->desc, 1, gather_between(rng, 1, 8) * US);
	return gather_draw_pieces(world, rng, client);
}

int swarm_world_draw_gather(struct swarm_world *world, uint64_t seed, enum swarm_kind kind)
{
	struct gp_param *param = &world->config.param;
	struct gp_rng rng;

	if (gp_desc_get(&world->desc, GP_DESC_SCHEDULER) != GP_SCHEDULER_TSG)
		return 0;
	param->gather_ns = GP_GATHER_OFF;
	gp_rng_init(&rng, seed ^ GATHER_SEED);
	if (gp_rng_below(&rng, 1000) < 500 || (kind != SWARM_SELF && kind != SWARM_HOSTILE))
		return 0;
	param->gather_ns = gp_rng_below(&rng, 2) ? 0 : gather_between(&rng, 500, 6000) * US;
	/* Few switches are too many, and there is time to find that out. */
	param->overhead_permille = (uint32_t)gather_between(&rng, 5, 60);
	world->calm_ns += 100 * MS;
	world->config.duration_ns = world->workload.duration_ns = world->calm_ns;
	if (gp_rng_below(&rng, 3))
		world->config.policy = "hpf";
	return gather_draw_client(world, &rng);
}
