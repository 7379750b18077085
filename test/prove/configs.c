/* SPDX-License-Identifier: MIT */
/* The small worlds: every policy with what it needs, every kind of device. Two clients, three queues; costs of 1 ms,
 * turns of 8 ms, an ageing window of 50 ms, orders that are given up after 10 ms, two failures to quarantine. */
#include "test/prove/world.h"

#define MS 1000000ull

#define BIT(event) (1u << (event))
#define ALWAYS     (BIT(WORLD_WORK) | BIT(WORLD_TIME) | BIT(WORLD_ACK) | BIT(WORLD_NONSENSE))
#define STEPS                                   \
	{                                       \
		0, 3 * MS / 2, 11 * MS, 60 * MS \
	}
#define COSTS .close_ns = MS, .open_ns = MS, .ack_timeout_ns = 10 * MS, .queue_max = WORLD_QUEUES
#define PARAM .turn_ns = 8 * MS, .age_window_ns = 50 * MS, .age_turn_ns = 4 * MS, .fail_max = 2

/* Client 0 has two queues, client 1 one: two equals and one above them. */
#define THREE                                                             \
	{                                                                 \
		{ 0, 0, { .priority = 1 } }, { 1, 0, { .priority = 1 } }, \
		{                                                         \
			0, 0,                                             \
			{                                                 \
				.priority = 2                             \
			}                                                 \
		}                                                         \
	}

const struct world_config world_configs[] = {
	{ .name = "hpf",
	  .policy = "hpf",
	  .attr = { .unit = GP_UNIT_PROCESS, .slot_count = 2, COSTS },
	  .param = { PARAM, .burst = 2 },
	  .queues = THREE,
	  .attr_count = 2,
	  .attrs = { { .priority = 0 }, { .priority = 2 } },
	  .steps_ns = STEPS,
	  .events = ALWAYS | BIT(WORLD_LIFE) | BIT(WORLD_LOST) },
	{ .name = "hpf-stop",
	  .policy = "hpf",
	  .attr = { .unit = GP_UNIT_PROCESS, COSTS },
	  .param = { PARAM, .burst = 2 },
	  .queues = THREE,
	  .attr_count = 2,
	  .attrs = { { .priority = 1 }, { .priority = 3 } },
	  .steps_ns = { 0, 3 * MS / 2, 11 * MS, 60 * MS, 1100 * MS },
	  .events = ALWAYS | BIT(WORLD_STOP) | BIT(WORLD_HINT) | BIT(WORLD_ATTR) },
	{ .name = "slots", /* one slot, copy queues beside it, strangers in it; each gate a transaction */
	  .policy = "hpf",
	  .attr = { .unit = GP_UNIT_QUEUE, .slot_count = 1, COSTS },
	  .param = { PARAM, .burst = 2 },
	  .queues = { { 0, 0, { .priority = 1 } },
		      { 1, 0, { .priority = 1 } },
		      { 1, 0, { .priority = 2, .kind = GP_KIND_COPY } } },
	  .attr_count = 2,
	  .attrs = { { .priority = 2 }, { .priority = 1, .kind = GP_KIND_COPY } },
	  .steps_ns = STEPS,
	  .events = ALWAYS | BIT(WORLD_OTHERS) | BIT(WORLD_ATTR) | BIT(WORLD_LIFE) },
	{ .name = "budget", /* whole device at once; the bucket holds one preemption and fills slowly; costs change */
	  .policy = "hpf",
	  .attr = { .unit = GP_UNIT_DEVICE, COSTS },
	  .param = { PARAM, .overhead_permille = 100, .burst = 1, .batch_clients = 2 },
	  .queues = { { 0, 0, { .priority = 0 } }, { 1, 0, { .priority = 1 } }, { 1, 0, { .priority = 2 } } },
	  .steps_ns = { 0, 3 * MS / 2, 11 * MS, 60 * MS, 21 * MS },
	  .events = ALWAYS | BIT(WORLD_COST) | BIT(WORLD_HINT) },
	{ .name = "rr",
	  .policy = "rr",
	  .attr = { .unit = GP_UNIT_PROCESS, .slot_count = 2, COSTS },
	  .param = { PARAM, .burst = 2 },
	  .user = 7, /* both clients are one user's */
	  .queues = THREE,
	  .steps_ns = STEPS,
	  .events = ALWAYS | BIT(WORLD_LIFE) | BIT(WORLD_LOST) },
	{ .name = "wfq",
	  .policy = "wfq",
	  .attr = { .unit = GP_UNIT_PROCESS, COSTS },
	  .param = { PARAM, .burst = 2 },
	  .queues = { { 0, 0, { .weight = 100 } },
		      { 0, 0, { .weight = 300 } },
		      { 1, 0, { .weight = 100, .kind = GP_KIND_COPY } } },
	  .attr_count = 2,
	  .attrs = { { .weight = 1 }, { .weight = GP_WEIGHT_MAX } },
	  .steps_ns = { 0, 7, 3 * MS / 2, 11 * MS },
	  .events = ALWAYS | BIT(WORLD_LIFE) | BIT(WORLD_ATTR) },
	{ .name = "edf",
	  .policy = "edf",
	  .attr = { .unit = GP_UNIT_PROCESS, .slot_count = 2, COSTS },
	  .param = { PARAM, .burst = 2 },
	  .queues = { { 0, 0, { .priority = 1 } },
		      { 1, 0, { .deadline_ns = 20 * MS, .budget_ns = 5 * MS } },
		      { 0, 0, { .deadline_ns = 40 * MS } } },
	  .attr_count = 3,
	  .attrs = { { .priority = 2 },
		     { .deadline_ns = 10 * MS, .budget_ns = 6 * MS },
		     { .deadline_ns = 10 * MS, .budget_ns = 8 * MS } },
	  .steps_ns = STEPS,
	  .events = ALWAYS | BIT(WORLD_LIFE) | BIT(WORLD_ATTR) },
	{ .name = "drf",
	  .policy = "drf",
	  .attr = { .unit = GP_UNIT_PROCESS, .memory_size = 16ull << 30, COSTS },
	  .param = { PARAM, .burst = 2 },
	  .queues = { { 0, 0, { .weight = 100 } },
		      { 1, 0, { .weight = 300 } },
		      { 1, 0, { .weight = 100, .kind = GP_KIND_COPY } } },
	  .attr_count = 1,
	  .attrs = { { .weight = 200 } },
	  .steps_ns = STEPS,
	  .events = ALWAYS | BIT(WORLD_LIFE) | BIT(WORLD_ATTR) },
	{ .name = "gang", /* two queues on two devices move together; one above them on the second device */
	  .policy = "hpf",
	  .device_count = 2,
	  .attr = { .unit = GP_UNIT_PROCESS, .slot_count = 1, COSTS },
	  .param = { PARAM, .burst = 2 },
	  .queues = { { 0, 0, { .priority = 1, .gang = 7 } },
		      { 0, 1, { .priority = 1, .gang = 7 } },
		      { 1, 1, { .priority = 2 } } },
	  .attr_count = 2,
	  .attrs = { { .priority = 1, .gang = 7 }, { .priority = 2, .gang = 9 } },
	  .steps_ns = STEPS,
	  .events = ALWAYS | BIT(WORLD_LIFE) },
	{ .name = "gang-turns", /* a gang and a loner take turns */
	  .policy = "rr",
	  .device_count = 2,
	  .attr = { .unit = GP_UNIT_DEVICE, COSTS },
	  .param = { PARAM, .burst = 2 },
	  .queues = { { 0, 0, { .gang = 7 } }, { 0, 1, { .gang = 7 } }, { 1, 1, { .priority = 2 } } },
	  .attr_count = 2,
	  .attrs = { { .gang = 7 }, { .gang = 0 } },
	  .steps_ns = STEPS,
	  .events = ALWAYS | BIT(WORLD_STOP) | BIT(WORLD_LOST) },
	{ .name = "switching", /* the device puts lower contexts aside by itself, and is told whom to bring in */
	  .policy = "hpf",
	  .attr = { .unit = GP_UNIT_QUEUE, .switch_ns = MS / 10, .lower_max = 1, COSTS },
	  .param = { PARAM, .burst = 2 },
	  .queues = { { 0, 0, { .priority = 1 } }, { 1, 0, { .priority = 1 } }, { 1, 0, { .priority = 2 } } },
	  .attr_count = 2,
	  .attrs = { { .priority = 0 }, { .priority = 2 } },
	  .steps_ns = { 0, MS, 3 * MS, 11 * MS, 60 * MS },
	  .events = ALWAYS | BIT(WORLD_HINT) | BIT(WORLD_ATTR) },
	{ .name = "fetch", /* counters move at fetch: idle is only presumed */
	  .policy = "hpf",
	  .attr = { .unit = GP_UNIT_PROCESS, .fetch_counters = true, COSTS },
	  .param = { PARAM, .burst = 2 },
	  .queues = THREE,
	  .attr_count = 2,
	  .attrs = { { .priority = 1, .unseen = true }, { .priority = 2 } },
	  .steps_ns = { 0, MS / 20, 3 * MS / 2, 11 * MS, 150 * MS },
	  .events = ALWAYS | BIT(WORLD_ATTR) | BIT(WORLD_LOST) },
	{ .name = "parking", /* one process at a time, and closing it frees its place */
	  .policy = "hpf",
	  .attr = { .unit = GP_UNIT_PROCESS, .process_count_max = 1, .process_parking = true, COSTS },
	  .param = { PARAM, .burst = 2 },
	  .queues = THREE,
	  .steps_ns = STEPS,
	  .events = ALWAYS | BIT(WORLD_OTHERS) | BIT(WORLD_LIFE) },
	{ .name = "unseen", /* doorbells nobody sees: never parked, open when the device rests */
	  .policy = "hpf",
	  .attr = { .unit = GP_UNIT_PROCESS, .slot_count = 1, COSTS },
	  .param = { PARAM, .burst = 2 },
	  .queues = { { 0, 0, { .priority = 1, .unseen = true } },
		      { 1, 0, { .priority = 1 } },
		      { 0, 0, { .priority = 2 } } },
	  .attr_count = 2,
	  .attrs = { { .priority = 1 }, { .priority = 2, .unseen = true } },
	  .steps_ns = { 0, 3 * MS / 2, 11 * MS, 1100 * MS },
	  .events = ALWAYS | BIT(WORLD_ATTR) | BIT(WORLD_OTHERS) },
	{ .name = "edges", /* no counters at all */
	  .policy = "hpf",
	  .attr = { .unit = GP_UNIT_DEVICE, COSTS },
	  .param = { PARAM, .overhead_permille = 1000, .burst = 2 },
	  .queues = THREE,
	  .steps_ns = STEPS,
	  .events = ALWAYS | BIT(WORLD_LOST) | BIT(WORLD_HINT),
	  .edges = true },
	{ .name = "none",
	  .policy = "none",
	  .attr = { .unit = GP_UNIT_PROCESS, .slot_count = 1, COSTS },
	  .param = { PARAM, .burst = 2 },
	  .queues = THREE,
	  .steps_ns = STEPS,
	  .events = ALWAYS | BIT(WORLD_LIFE) | BIT(WORLD_LOST) },
	{ .name = NULL },
};
