/* SPDX-License-Identifier: MIT */
/* Owns the walk: from any state on, with everybody at work and every order carried out, nobody with work stays closed,
 * and the core sleeps until the moment it named. */
#include "test/prove/world.h"

#define WALK_ORDER_NS  1000000ull /* how long an order takes */
#define WALK_WAKES_MAX 3000u
#define WALK_MORE_NS   1500000000ull /* beyond the bound, where none is promised: gates rest for a second */

/* How long the queue may wait, as it is now: the core's own promise where it makes one. */
static uint64_t walk_bound_ns(const struct world_queue *queue)
{
	uint64_t bound_ns = gp_sched_queue_starvation_bound_ns(world_sched, queue->id);
	bool promised = world_device_count() == 1;
	uint32_t i;

	for (i = 0; i < WORLD_QUEUES; i++)
		if (world.queues[i].used)
			promised &= !world.queues[i].attr.gang && !world.queues[i].attr.unseen &&
				    world.queues[i].told != GP_GATE_QUARANTINED;
	return promised && !world.faulty ? bound_ns : 4 * bound_ns + WALK_MORE_NS;
}

/* Everybody who is open and at work gets something done, and has more to do. */
static void walk_progress(void)
{
	uint32_t i;

	for (i = 0; i < WORLD_QUEUES; i++) {
		struct world_queue *queue = &world.queues[i];

		if (!queue->used || !queue->busy || queue->gate != WORLD_OPEN)
			continue;
		queue->written++;
		queue->completed = queue->written - 1;
		world_tell(queue);
	}
}

static void walk_answer(void)
{
	uint32_t i;

	for (i = 0; i < WORLD_QUEUES; i++)
		if (world.now_ns >= world.queues[i].order_ns + WALK_ORDER_NS && world_can_answer(&world.queues[i]))
			world_answer(&world.queues[i], 0);
}

static uint64_t walk_next_ns(uint64_t end_ns)
{
	uint64_t next_ns = gp_sched_deadline_ns(world_sched);
	uint32_t i;

	for (i = 0; i < WORLD_QUEUES; i++)
		if (world_can_answer(&world.queues[i]) && world.queues[i].order_ns + WALK_ORDER_NS < next_ns)
			next_ns = world.queues[i].order_ns + WALK_ORDER_NS;
	if (next_ns <= world.now_ns)
		next_ns = world.now_ns + 1;
	return next_ns < end_ns ? next_ns : end_ns;
}

/* It does not wait, or nobody can help it: a stopped device's gates are opened once, and what closes by itself after
 * that stays closed. A gate that closed by itself while it was ordered open is what the answer said. */
static bool walk_is_excused(const struct world_queue *queue)
{
	return !queue->used || !queue->busy || world.config->policy[0] == 'n' || queue->gate == WORLD_OPEN ||
	       queue->told == GP_GATE_QUARANTINED || (world.devices[queue->device].stopped && queue->lost_since) ||
	       (queue->told == GP_GATE_OPEN && queue->gate == WORLD_UNSURE);
}

void world_walk(void)
{
	uint64_t since_ns[WORLD_QUEUES], end_ns = 0;
	uint32_t wakes, i;

	for (i = 0; i < WORLD_QUEUES; i++) {
		since_ns[i] = world.now_ns;
		if (world.queues[i].used && walk_bound_ns(&world.queues[i]) > end_ns)
			end_ns = walk_bound_ns(&world.queues[i]);
	}
	end_ns += world.now_ns + 1;
	for (wakes = 0;; wakes++) {
		walk_answer();
		walk_progress();
		world_settle();
		world_check();
		for (i = 0; i < WORLD_QUEUES; i++) {
			struct world_queue *queue = &world.queues[i];

			if (walk_is_excused(queue))
				since_ns[i] = world.now_ns;
			else if (world.now_ns - since_ns[i] > walk_bound_ns(queue)) {
				world_fail("a queue with work stays closed");
				return;
			}
		}
		if (wakes > WALK_WAKES_MAX) {
			world_fail("the core is busy with itself");
			return;
		}
		if (world.now_ns >= end_ns)
			return;
		world.now_ns = walk_next_ns(end_ns);
	}
}
