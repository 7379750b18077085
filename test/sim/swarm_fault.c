/* SPDX-License-Identifier: MIT */
/* Owns what goes wrong in a world. All of it is over, with its notices and respawns, when the calm begins. */
#include "test/sim/swarm.h"

#define US 1000ull
#define MS 1000000ull

static void fault_draw_one(const struct swarm_world *world, struct gp_rng *rng, uint32_t queue_count,
			   struct gp_sim_fault *fault)
{
	/* Rare ones that change much, common ones that change little. */
	static const enum gp_sim_fault_type types[] = {
		GP_SIM_FAULT_DEATH,     GP_SIM_FAULT_DEATH,     GP_SIM_FAULT_FORK,        GP_SIM_FAULT_PRIORITY,
		GP_SIM_FAULT_PRIORITY,  GP_SIM_FAULT_PRIORITY,  GP_SIM_FAULT_PRIORITY,    GP_SIM_FAULT_HINT,
		GP_SIM_FAULT_HINT,      GP_SIM_FAULT_CLOCK,     GP_SIM_FAULT_CLOSE_FAILS, GP_SIM_FAULT_CLOSE_HANGS,
		GP_SIM_FAULT_GATE_LOST, GP_SIM_FAULT_GATE_LOST, GP_SIM_FAULT_RESET,
	};
	uint64_t last_ns = world->calm_ns - 15 * MS;

	*fault = (struct gp_sim_fault){
		.type = types[gp_rng_below(rng, sizeof(types) / sizeof(types[0]))],
		.time_ns = gp_rng_below(rng, last_ns),
		.client = (uint32_t)gp_rng_below(rng, world->workload.client_count),
		.queue = (uint32_t)gp_rng_below(rng, queue_count),
		.device = (uint32_t)gp_rng_below(rng, world->config.device_count),
		.notice_ns = gp_rng_below(rng, 3) ? gp_rng_below(rng, 200 * US) : gp_rng_below(rng, 5 * MS),
		.respawn_ns = gp_rng_below(rng, 4) ? 1 + gp_rng_below(rng, 8 * MS) : 0,
	};
	switch (fault->type) {
	case GP_SIM_FAULT_PRIORITY: fault->value = (int64_t)gp_rng_below(rng, GP_PRIORITY_MAX + 1); break;
	case GP_SIM_FAULT_HINT:
		fault->value = (int64_t)gp_rng_below(rng, 3 * MS);
		if (world->workload.clients[fault->client].deadline_ns) /* see world_draw_place() */
			fault->type = GP_SIM_FAULT_FORK;
		break;
	case GP_SIM_FAULT_CLOCK:
		fault->value = gp_rng_below(rng, 2) ? (int64_t)gp_rng_below(rng, 200 * MS) :
						      -(int64_t)gp_rng_below(rng, 5 * MS);
		break;
	case GP_SIM_FAULT_CLOSE_FAILS:
	case GP_SIM_FAULT_CLOSE_HANGS:
		if (!swarm_world_can_quarantine(world))
			fault->type = GP_SIM_FAULT_GATE_LOST;
		break;
	/* A device that never comes back would leave nothing to look at. */
	case GP_SIM_FAULT_RESET: fault->respawn_ns = 1 + gp_rng_below(rng, 8 * MS); break;
	default: break;
	}
}

/* One who never answers, and one who always does at the last moment. */
static void fault_draw_owing(struct swarm_world *world, struct gp_rng *rng)
{
	if (!gp_rng_below(rng, 3)) {
		world->mute_client = (uint32_t)gp_rng_below(rng, world->workload.client_count);
		world->mute_ns = gp_rng_below(rng, world->calm_ns);
	}
	if (!gp_rng_below(rng, 3))
		world->tardy_client = (uint32_t)gp_rng_below(rng, world->workload.client_count);
}

void swarm_world_draw_faults(struct swarm_world *world, struct gp_rng *rng)
{
	uint32_t i, queue_count = 0, mood = (uint32_t)gp_rng_below(rng, 10);

	world->mute_client = world->tardy_client = UINT32_MAX;
	for (i = 0; i < world->workload.client_count; i++)
		queue_count += world->workload.clients[i].queue_count *
			       (uint32_t)__builtin_popcountll(world->workload.clients[i].devices);
	if (mood < 4) /* nothing goes wrong at all: the promises with bounds are sharp there */
		return;
	world->fault_count = (uint32_t)gp_rng_below(rng, mood < 8 ? 8 : 33);
	for (i = 0; i < world->fault_count; i++)
		fault_draw_one(world, rng, queue_count, &world->faults[i]);
	if (mood == 5 || mood >= 8) {
		world->ack.drop = (uint32_t)gp_rng_below(rng, 60);
		world->ack.late = (uint32_t)gp_rng_below(rng, 200);
		world->ack.copy = (uint32_t)gp_rng_below(rng, 200);
		world->ack.delay_ns = 1 + gp_rng_below(rng, 2 * world->config.ack_timeout_ns);
	}
	if (!swarm_world_can_quarantine(world)) {
		world->ack.drop = 0;
		world->ack.delay_ns /= 8;
	} else {
		fault_draw_owing(world, rng);
	}
}
