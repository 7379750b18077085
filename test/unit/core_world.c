/* SPDX-License-Identifier: MIT */
/* See core_world.h. */
#include "test/unit/core_world.h"

#include <stdio.h>

struct world *world_new(void)
{
	const struct gp_limits limits = {
		.device_count = WORLD_DEVICE_MAX,
		.client_count = WORLD_CLIENT_MAX,
		.queue_count = 4 * WORLD_QUEUE_MAX,
		.gang_count = 4,
		.trace_count = WORLD_TRACE_COUNT,
	};
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	world->memory_size = (gp_sched_size(&limits) + 15) & ~(size_t)15;
	world->memory = aligned_alloc(16, world->memory_size);
	assert_non_null(world->memory);
	/* What the caller's memory held before must not matter. */
	memset(world->memory, 0xa5, world->memory_size);
	assert_int_equal(gp_sched_init(world->memory, world->memory_size, &limits, &world->sched), 0);
	world->now_ns = 1 * S;
	return world;
}

void world_free(struct world *world)
{
	free(world->memory);
	free(world);
}

static void world_check(const struct world *world)
{
	const char *wrong = gp_sched_check(world->sched);

	if (wrong)
		fail_msg("at %llu ns: %s", (unsigned long long)world->now_ns, wrong);
}

uint32_t world_device(struct world *world, struct world_setup setup)
{
	uint32_t device;

	if (!setup.attr.queue_max)
		setup.attr.queue_max = 64;
	if (!setup.attr.close_ns)
		setup.attr.close_ns = 150 * US;
	if (!setup.attr.open_ns)
		setup.attr.open_ns = 150 * US;
	assert_true(world->device_count < WORLD_DEVICE_MAX);
	assert_int_equal(gp_sched_device_add(world->sched, &setup.attr, setup.policy ? setup.policy : "hpf",
					     &setup.param, &device),
			 0);
	assert_int_equal(device, world->device_count);
	world->devices[world->device_count++].attr = setup.attr;
	return device;
}

uint32_t world_client_of(struct world *world, uint64_t user)
{
	const struct gp_client_attr attr = { .tag = world->client_count, .user = user };

	assert_true(world->client_count < WORLD_CLIENT_MAX);
	assert_int_equal(gp_sched_client_add(world->sched, &attr, &world->clients[world->client_count]), 0);
	return world->client_count++;
}

uint32_t world_client(struct world *world)
{
	return world_client_of(world, 0);
}

uint32_t world_queue_attr(struct world *world, uint32_t client, uint32_t device, struct gp_queue_attr attr)
{
	struct world_queue *queue = &world->queues[world->queue_count];

	assert_true(world->queue_count < WORLD_QUEUE_MAX);
	*queue = (struct world_queue){
		.client = client,
		.device = device,
		.open = true,
		.used = true,
		.is_compute = attr.kind == GP_KIND_COMPUTE,
		.open_since_ns = world->now_ns,
		.work_mark_ns = world->now_ns,
	};
	attr.tag = world->queue_count;
	assert_int_equal(
		gp_sched_queue_add(world->sched, world->clients[client], device, &attr, world->now_ns, &queue->id), 0);
	world_check(world);
	return world->queue_count++;
}

uint32_t world_queue(struct world *world, uint32_t client, uint32_t device, int32_t priority)
{
	return world_queue_attr(world, client, device, (struct gp_queue_attr){ .priority = priority });
}

uint32_t world_solo(struct world *world, uint32_t device, int32_t priority)
{
	return world_queue(world, world_client(world), device, priority);
}

/* After each change, as a device would see it. */
static void world_look(struct world *world)
{
	uint32_t i, count = 0;

	for (i = 0; i < world->queue_count; i++) {
		const struct world_queue *q = &world->queues[i];

		count += q->used && q->open && q->written > q->completed && q->slice_ns && q->slice_ns < 1 * MS;
	}
	if (count > world->most_short)
		world->most_short = count;
}

static void world_account(struct world *world, struct world_queue *queue)
{
	if (queue->open && queue->written > queue->completed)
		queue->open_ns += world->now_ns - queue->work_mark_ns;
	queue->work_mark_ns = world->now_ns;
}

static void world_sample(struct world *world, struct world_queue *queue, uint64_t written, uint64_t completed)
{
	world_account(world, queue);
	queue->written = written;
	queue->completed = completed;
	world_look(world);
	assert_int_equal(gp_sched_sample(world->sched, queue->id, written, completed, world->now_ns), 0);
	world_check(world);
}

void world_write(struct world *world, uint32_t queue, uint64_t packet_count)
{
	struct world_queue *q = &world->queues[queue];

	world_sample(world, q, q->written + packet_count, q->completed);
}

void world_complete(struct world *world, uint32_t queue, uint64_t packet_count)
{
	struct world_queue *q = &world->queues[queue];

	assert_true(q->open); /* a closed queue makes no progress */
	world_sample(world, q, q->written, q->completed + packet_count);
}

void world_drain(struct world *world, uint32_t queue)
{
	world_complete(world, queue, world->queues[queue].written - world->queues[queue].completed);
}

void world_remove(struct world *world, uint32_t queue)
{
	world->queues[queue].used = false;
	assert_int_equal(gp_sched_queue_remove(world->sched, world->queues[queue].id, world->now_ns), 0);
	world_check(world);
}

void world_remove_client(struct world *world, uint32_t client)
{
	uint32_t i;

	for (i = 0; i < world->queue_count; i++)
		if (world->queues[i].client == client)
			world->queues[i].used = false;
	assert_int_equal(gp_sched_client_remove(world->sched, world->clients[client], world->now_ns), 0);
	world_check(world);
}

static void world_set_gate(struct world *world, struct world_queue *queue, bool open)
{
	if (queue->open == open)
		return;
	world_account(world, queue);
	queue->open = open;
	if (open)
		queue->open_since_ns = world->now_ns;
	else
		queue->closed_since_ns = world->now_ns;
	world_look(world);
}

void world_gate_lost(struct world *world, uint32_t queue, bool open)
{
	world_set_gate(world, &world->queues[queue], open);
	assert_int_equal(gp_sched_gate_lost(world->sched, world->queues[queue].id, open, world->now_ns), 0);
	world_check(world);
}

static uint32_t world_find(const struct world *world, struct gp_queue_id id)
{
	uint32_t i;

	for (i = 0; i < world->queue_count; i++)
		if (world->queues[i].used && world->queues[i].id.index == id.index &&
		    world->queues[i].id.generation == id.generation)
			return i;
	return WORLD_QUEUE_MAX;
}

/* What the unit makes of these orders, counted the slow way. */
static uint32_t world_transactions(const struct world *world, const struct gp_plan *plan, const struct gp_order *orders,
				   uint32_t count)
{
	uint32_t i, j, transactions = 0;

	for (i = 0; i < count; i++) {
		bool counted = false;

		for (j = 0; j < i && !counted; j++)
			counted = world->devices[plan->device].attr.unit == GP_UNIT_DEVICE ||
				  (world->devices[plan->device].attr.unit == GP_UNIT_PROCESS &&
				   orders[j].client.index == orders[i].client.index);
		transactions += !counted;
	}
	return transactions;
}

static void world_log_order(struct world *world, const struct gp_plan *plan, const struct gp_order *order, bool open)
{
	uint32_t queue = world_find(world, order->queue);

	assert_int_not_equal(queue, WORLD_QUEUE_MAX);
	assert_int_equal(world->queues[queue].device, plan->device);
	assert_int_equal(world->clients[world->queues[queue].client].index, order->client.index);
	assert_int_not_equal(order->why, GP_WHY_NONE);
	/* Never an order without effect; only one that repairs what was lost may find its gate open. */
	if (order->why != GP_WHY_TIMEOUT && order->why != GP_WHY_STOPPED && order->why != GP_WHY_QUARANTINE &&
	    world->queues[queue].open == open)
		fail_msg("queue %u ordered %s, which it is (%s)", queue, open ? "open" : "closed",
			 gp_why_name(order->why));
	assert_true(world->order_count < WORLD_ORDER_MAX);
	world->orders[world->order_count++] = (struct world_order){
		.time_ns = world->now_ns,
		.seq = plan->seq,
		.move = order->move,
		.device = plan->device,
		.queue = queue,
		.transaction_count = plan->transaction_count,
		.open = open,
		.why = order->why,
	};
}

static int world_apply(struct world *world, const struct gp_order *order, bool open)
{
	uint32_t queue = world_find(world, order->queue);
	int result;

	if (queue == WORLD_QUEUE_MAX)
		return 0;
	result = open ? world->queues[queue].open_result : world->queues[queue].close_result;
	if (result == 0)
		world_set_gate(world, &world->queues[queue], open);
	return result;
}

static void world_take_slice(struct world *world, const struct gp_plan *plan, const struct gp_slice_order *order)
{
	uint32_t queue = world_find(world, order->queue);
	struct world_queue *q = &world->queues[queue];

	assert_int_not_equal(queue, WORLD_QUEUE_MAX);
	assert_int_equal(q->device, plan->device);
	assert_int_equal(world->clients[q->client].index, order->client.index);
	assert_true(world->devices[plan->device].attr.short_ns > 0);
	assert_int_equal(q->slice_seq, 0); /* one at a time; only the test itself may let one time out */
	q->slice_count++;
	q->slice_seq = plan->seq;
	q->slice_order_ns = order->slice_ns;
	q->slice_at_ns = world->now_ns + world->slice_delay_ns;
}

void world_answer_slice(struct world *world, uint32_t queue)
{
	struct world_queue *q = &world->queues[queue];
	uint64_t seq = q->slice_seq;

	if (!q->slice_result)
		q->slice_ns = q->slice_order_ns;
	world_look(world);
	q->slice_seq = 0;
	(void)gp_sched_sliced(world->sched, q->id, seq, q->slice_result, world->now_ns);
	world_check(world);
}

/* True: one was answered. */
static bool world_answer_slices(struct world *world)
{
	bool any = false;
	uint32_t i;

	for (i = 0; i < world->queue_count; i++) {
		struct world_queue *q = &world->queues[i];

		if (!q->used || !q->slice_seq || q->slice_silent || q->slice_at_ns > world->now_ns)
			continue;
		world_answer_slice(world, i);
		any = true;
	}
	return any;
}

static void world_take_plan(struct world *world, const struct gp_plan *plan)
{
	struct world_device *device = &world->devices[plan->device];
	uint32_t i, transactions;

	assert_true(plan->device < world->device_count);
	if (plan->announce) {
		world->announce_count++;
		world->announced = plan->bring_in;
	}
	assert_true(plan->slice_count <= GP_PLAN_SLICE_MAX);
	for (i = 0; i < plan->slice_count; i++)
		world_take_slice(world, plan, &plan->slice[i]);
	if (!plan->close_count && !plan->open_count) {
		assert_true(plan->announce || plan->slice_count);
		return;
	}
	/* One plan at a time; only the test itself may have let one time out. */
	assert_true(!device->in_flight || world->ack == WORLD_ACK_BY_HAND);
	transactions = world_transactions(world, plan, plan->close, plan->close_count);
	if (device->attr.unit != GP_UNIT_DEVICE || !plan->close_count)
		transactions += world_transactions(world, plan, plan->open, plan->open_count);
	assert_int_equal(plan->transaction_count, transactions);
	for (i = 0; i < plan->close_count; i++)
		world_log_order(world, plan, &plan->close[i], false);
	for (i = 0; i < plan->open_count; i++)
		world_log_order(world, plan, &plan->open[i], true);
	world->plan_count++;
	device->plan = *plan;
	device->in_flight = world->ack != WORLD_ACK_NEVER;
	device->ack_at_ns = world->ack == WORLD_ACK_DELAYED ? world->now_ns + world->ack_delay_ns : GP_NEVER_NS;
	for (i = 0; i < plan->close_count && !device->in_flight; i++)
		(void)world_apply(world, &plan->close[i], false);
	for (i = 0; i < plan->open_count && !device->in_flight; i++)
		(void)world_apply(world, &plan->open[i], true);
}

void world_ack_order(struct world *world, const struct gp_plan *plan, const struct gp_order *order, bool open)
{
	bool is_there = world_find(world, order->queue) != WORLD_QUEUE_MAX;
	int result = world_apply(world, order, open);

	assert_int_equal(gp_sched_applied(world->sched, order->queue, plan->seq, result, world->now_ns),
			 is_there ? 0 : -ESTALE);
	world_check(world);
}

void world_ack(struct world *world, uint32_t device)
{
	struct world_device *d = &world->devices[device];
	uint32_t i;

	assert_true(d->in_flight);
	d->in_flight = false;
	for (i = 0; i < d->plan.close_count; i++)
		world_ack_order(world, &d->plan, &d->plan.close[i], false);
	for (i = 0; i < d->plan.open_count; i++)
		world_ack_order(world, &d->plan, &d->plan.open[i], true);
}

void world_settle(struct world *world)
{
	static struct gp_plan plan;
	uint32_t i, guard = 0;
	bool again = true;

	while (again) {
		again = false;
		while (gp_sched_plan(world->sched, world->now_ns, &plan)) {
			assert_true(++guard < 1000); /* plans without end */
			world_take_plan(world, &plan);
			world_check(world);
		}
		world_check(world);
		/* All that is due has been done, so the next deadline lies ahead: no driver spins. */
		assert_true(gp_sched_deadline_ns(world->sched) > world->now_ns);
		for (i = 0; i < world->device_count; i++)
			if (world->devices[i].in_flight && world->devices[i].ack_at_ns <= world->now_ns) {
				world_ack(world, i);
				again = true;
			}
		again |= world_answer_slices(world);
	}
}

void world_skip(struct world *world, uint64_t duration_ns)
{
	world->now_ns += duration_ns;
}

void world_run(struct world *world, uint64_t duration_ns)
{
	uint64_t end_ns = world->now_ns + duration_ns;
	uint32_t i, guard = 0;

	world_settle(world);
	while (world->now_ns < end_ns) {
		uint64_t next_ns = gp_sched_deadline_ns(world->sched);

		assert_true(++guard < 1000000);
		for (i = 0; i < world->device_count; i++)
			if (world->devices[i].in_flight && world->devices[i].ack_at_ns < next_ns)
				next_ns = world->devices[i].ack_at_ns;
		for (i = 0; i < world->queue_count; i++)
			if (world->queues[i].used && world->queues[i].slice_seq && !world->queues[i].slice_silent &&
			    world->queues[i].slice_at_ns < next_ns)
				next_ns = world->queues[i].slice_at_ns;
		world->now_ns = next_ns < end_ns ? next_ns : end_ns;
		for (i = 0; i < world->device_count; i++)
			if (world->devices[i].in_flight && world->devices[i].ack_at_ns <= world->now_ns)
				world_ack(world, i);
		world_settle(world);
	}
	for (i = 0; i < world->queue_count; i++)
		world_account(world, &world->queues[i]);
}

bool world_is_open(const struct world *world, uint32_t queue)
{
	return world->queues[queue].open;
}

uint32_t world_open_compute_count(const struct world *world, uint32_t device)
{
	uint32_t i, count = 0;

	for (i = 0; i < world->queue_count; i++)
		count += world->queues[i].used && world->queues[i].device == device && world->queues[i].is_compute &&
			 world->queues[i].open;
	return count;
}

struct gp_queue_info world_info(const struct world *world, uint32_t queue)
{
	struct gp_queue_info info;

	assert_int_equal(gp_sched_queue_info(world->sched, world->queues[queue].id, &info), 0);
	return info;
}

enum gp_gate world_gate(const struct world *world, uint32_t queue)
{
	return world_info(world, queue).gate;
}

struct gp_stats world_stats(const struct world *world, uint32_t device)
{
	struct gp_stats stats;

	assert_int_equal(gp_sched_stats(world->sched, device, &stats), 0);
	return stats;
}

const struct world_order *world_last_order(const struct world *world, uint32_t queue, uint32_t first)
{
	uint32_t i;

	for (i = world->order_count; i > first; i--)
		if (world->orders[i - 1].queue == queue)
			return &world->orders[i - 1];
	return NULL;
}

uint32_t world_trace(const struct world *world, enum gp_trace_type type, uint32_t queue,
		     struct gp_trace_event *ret_last)
{
	static struct gp_trace_event events[WORLD_TRACE_COUNT];
	uint64_t cursor = 0;
	uint32_t i, count, found = 0;

	count = gp_sched_trace_read(world->sched, &cursor, events, WORLD_TRACE_COUNT, NULL);
	for (i = 0; i < count; i++) {
		if (events[i].type != type ||
		    (queue != WORLD_QUEUE_MAX && events[i].queue.index != world->queues[queue].id.index))
			continue;
		found++;
		if (ret_last)
			*ret_last = events[i];
	}
	return found;
}

void world_set_stuck_alone(struct world *world, uint32_t queue, bool is_alone)
{
	const struct gp_client_attr attr = { .is_stuck_alone = is_alone };

	assert_int_equal(gp_sched_client_set_attr(world->sched, world->clients[world->queues[queue].client], &attr), 0);
	world_run(world, 10 * MS);
}
