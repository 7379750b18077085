/* SPDX-License-Identifier: MIT */
/* The core's interface: the input's bytes are a device, its parameters and policy, and then any number of calls in the
 * small world of test/prove; what must hold there aborts here. At the end everybody is waited for. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "test/prove/world.h"

static const uint8_t *bytes;
static size_t left;

uint32_t pick(uint32_t count)
{
	if (!left)
		return 0;
	left--;
	return *bytes++ % count;
}

void world_fail(const char *what)
{
	fprintf(stderr, "FAILED %s: %s\n", world.config->policy, what);
	abort();
}

static uint64_t draw_ns(void)
{
	static const uint64_t times[] = { 0, 1, 1000, 1000000, 8000000, 50000000, 1000000000, GP_DURATION_NS_MAX };

	return times[pick(sizeof(times) / sizeof(times[0]))];
}

static struct gp_queue_attr draw_attr(void)
{
	struct gp_queue_attr attr = { .priority = (int32_t)pick(4), .weight = pick(2) ? pick(4) * 3333 : 0 };

	if (pick(4) == 0)
		attr.deadline_ns = draw_ns();
	if (pick(4) == 0)
		attr.budget_ns = draw_ns();
	attr.gang = pick(4) ? 0 : 1 + pick(2);
	attr.kind = (enum gp_kind)(pick(4) == 0);
	attr.unseen = pick(4) == 0;
	attr.fetched = pick(8) == 0;
	return attr;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world_config config;
	uint32_t i;

	bytes = data;
	left = size;
	config = (struct world_config){ .name = "drawn",
					.device_count = 1 + pick(2),
					.events = (1u << WORLD_EVENT_COUNT) - 1 };
	config.policy = gp_policy_names[pick(6)];
	config.attr = (struct gp_device_attr){ .unit = (enum gp_unit)pick(3),
					       .queue_max = WORLD_QUEUES,
					       .slot_count = pick(4),
					       .process_count_max = pick(3),
					       .close_ns = draw_ns(),
					       .open_ns = draw_ns(),
					       .ack_timeout_ns = 10000000,
					       .switch_ns = pick(2) * 100000,
					       .lower_max = pick(3),
					       .process_parking = pick(2),
					       .fetch_counters = pick(2) };
	config.param = (struct gp_param){ .turn_ns = draw_ns(),
					  .min_open_ns = draw_ns(),
					  .linger_max_ns = draw_ns(),
					  .age_window_ns = draw_ns(),
					  .age_turn_ns = draw_ns(),
					  .hint_grace_ns = draw_ns(),
					  .rest_ns = draw_ns(),
					  .overhead_permille = pick(2) ? pick(4) * 333 : 0,
					  .burst = pick(2) ? pick(4) * 33333 : 0,
					  .batch_clients = pick(4),
					  .fail_max = pick(3) };
	config.edges = pick(4) == 0;
	for (i = 0; i < WORLD_QUEUES; i++) {
		config.queues[i].client = pick(WORLD_CLIENTS);
		config.queues[i].device = pick(config.device_count);
		config.queues[i].attr = draw_attr();
	}
	config.attr_count = WORLD_ATTRS;
	for (i = 0; i < WORLD_ATTRS; i++)
		config.attrs[i] = draw_attr();
	for (i = 1; i < WORLD_STEPS; i++)
		config.steps_ns[i] = 1 + draw_ns() / (1 + pick(7));
	world_start(&config, WORLD_IDLE);
	while (left)
		world_step();
	return 0;
}
