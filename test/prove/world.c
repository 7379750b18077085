/* SPDX-License-Identifier: MIT */
/* Owns the tiny world: what happens in it, and what must hold. Never looks into the core. */
#include "test/prove/world.h"

#define WORLD_START_NS      1000000000ull
#define WORLD_LATE_NS       1000000000ull
#define WORLD_DEADLINES_MAX 1000u

struct world world;
struct gp_sched *world_sched;
_Alignas(16) unsigned char world_memory[WORLD_MEMORY_SIZE];
size_t world_memory_size;

static struct gp_plan world_plan;

uint32_t world_device_count(void)
{
	return world.config->device_count ? world.config->device_count : 1;
}

static uint32_t world_device(void)
{
	return world_device_count() > 1 ? pick(world_device_count()) : 0;
}

static struct world_queue *world_find(struct gp_queue_id id)
{
	uint32_t i;

	for (i = 0; i < WORLD_QUEUES; i++)
		if (world.queues[i].used && world.queues[i].id.index == id.index &&
		    world.queues[i].id.generation == id.generation)
			return &world.queues[i];
	return NULL;
}

/* One of the queues there are; NULL: there is none. */
static struct world_queue *world_some_queue(void)
{
	uint32_t i, count = 0, n;

	for (i = 0; i < WORLD_QUEUES; i++)
		count += world.queues[i].used;
	if (!count)
		return NULL;
	for (i = 0, n = pick(count); !world.queues[i].used || n--; i++)
		;
	return &world.queues[i];
}

static struct gp_queue_attr world_some_attr(void)
{
	return world.config->attr_count ? world.config->attrs[pick(world.config->attr_count)] :
					  world.config->queues[pick(WORLD_QUEUES)].attr;
}

static void world_add_queue(uint32_t index, uint32_t client, uint32_t device, const struct gp_queue_attr *attr)
{
	struct world_queue *queue = &world.queues[index];
	struct gp_queue_id id;

	if (gp_sched_queue_add(world_sched, world.clients[client], device, attr, world.now_ns, &id))
		return;
	REQUIRE(!world_find(id), "a new queue's id is nobody's");
	*queue = (struct world_queue){ .id = id, .used = true, .client = client, .device = device, .attr = *attr };
}

static void world_forget_queues(uint32_t client)
{
	uint32_t i;

	for (i = 0; i < WORLD_QUEUES; i++)
		world.queues[i].used &= world.queues[i].client != client;
}

/* One order of a plan. */
static void world_order(const struct gp_order *order, bool open)
{
	struct world_queue *queue = world_find(order->queue);
	struct gp_queue_info info;

	REQUIRE(queue, "a plan names a queue that is gone");
	if (!queue)
		return;
	REQUIRE(!queue->ordered, "a queue is ordered whose last order is under way");
	REQUIRE(queue->device == world_plan.device, "a plan orders a queue of another device");
	REQUIRE(queue->told == GP_GATE_UNKNOWN || queue->gate != (open ? WORLD_OPEN : WORLD_CLOSED),
		"an order changes nothing");
	REQUIRE(queue->told != GP_GATE_QUARANTINED, "a quarantined queue is ordered");
	REQUIRE(order->client.index == world.clients[queue->client].index &&
			order->client.generation == world.clients[queue->client].generation,
		"an order names another client");
	REQUIRE(order->why > GP_WHY_NONE && order->why < GP_WHY_COUNT, "an order has a reason");
	REQUIRE(!gp_sched_queue_info(world_sched, order->queue, &info) &&
			info.gate == (open ? GP_GATE_OPENING : GP_GATE_CLOSING),
		"a gate is not as ordered");
	queue->lost_since = false;
	queue->ordered = true;
	queue->order_open = open;
	queue->awaited = order->is_awaited;
	queue->order_seq = world_plan.seq;
	queue->order_ns = world.now_ns;
	queue->patience_ns = world_plan.patience_ns;
}

/* The core says which orders it waits for no more: what became of them nobody knows. */
static void world_take_given_up(void)
{
	struct gp_given_up given;
	struct world_queue *queue;

	while (gp_sched_given_up(world_sched, &given)) {
		queue = world_find(given.queue);
		REQUIRE(queue && queue->ordered && queue->order_seq == given.seq && queue->order_open == given.open,
			"an order is given up that is not under way");
		if (!queue)
			continue;
		queue->ordered = false;
		queue->gate = WORLD_UNSURE;
		world.faulty = true;
	}
}

static void world_take_plan(void)
{
	struct world_device *device = &world.devices[world_plan.device];
	uint32_t i, order_count = world_plan.close_count + world_plan.open_count;

	REQUIRE(world_plan.device < world_device_count(), "a plan for no device");
	REQUIRE(world_plan.close_count <= GP_PLAN_MAX && world_plan.open_count <= GP_PLAN_MAX, "a plan has no room");
	REQUIRE(world_plan.announce ? world_find(world_plan.bring_in) != NULL : order_count > 0,
		"a plan without orders announces nobody");
	REQUIRE(world_plan.seq > device->seq, "plans' numbers grow");
	device->seq = world_plan.seq;
	if (!order_count)
		return;
	world_take_given_up();
	for (i = 0; i < WORLD_QUEUES; i++)
		REQUIRE(!world.queues[i].used || !world.queues[i].ordered || !world.queues[i].awaited ||
				world.queues[i].device != world_plan.device ||
				world.now_ns >= world.queues[i].order_ns + 2 * world.queues[i].patience_ns,
			"a plan while an awaited order of the last one is under way");
	REQUIRE(!device->stopped || !world_plan.close_count, "a close on a stopped device");
	REQUIRE(world_plan.transaction_count >= 1 && world_plan.transaction_count <= order_count,
		"a plan's transactions");
	for (i = 0; i < world_plan.close_count; i++)
		world_order(&world_plan.close[i], false);
	for (i = 0; i < world_plan.open_count; i++)
		world_order(&world_plan.open[i], true);
	world.counts[world_plan.device].plans++;
	world.counts[world_plan.device].closes += world_plan.close_count;
	world.counts[world_plan.device].opens += world_plan.open_count;
}

void world_settle(void)
{
	uint32_t rounds = 0, i;

	while (gp_sched_plan(world_sched, world.now_ns, &world_plan)) {
		world_take_plan();
		if (++rounds > 4 * WORLD_DEVICES) {
			world_fail("plans without end at one moment");
			return;
		}
	}
	world_take_given_up();
	for (i = 0; i < WORLD_QUEUES; i++)
		REQUIRE(!world.queues[i].used || !world.queues[i].ordered ||
				world.now_ns < world.queues[i].order_ns +
						       world.devices[world.queues[i].device].attr.ack_timeout_ns,
			"an order that nobody answered is not given up");
	REQUIRE(gp_sched_deadline_ns(world_sched) > world.now_ns, "it wants to be asked again at once");
}

bool world_can_answer(const struct world_queue *queue)
{
	uint32_t i;

	if (!queue->used || !queue->ordered)
		return false;
	for (i = 0; queue->order_open && i < WORLD_QUEUES; i++) {
		const struct world_queue *other = &world.queues[i];

		if (other->used && other->ordered && !other->order_open && other->awaited &&
		    other->order_seq == queue->order_seq && world.now_ns < other->order_ns + other->patience_ns)
			return false;
	}
	return true;
}

void world_answer(struct world_queue *queue, int result)
{
	queue->ordered = false;
	if (queue->lost_since)
		queue->gate = WORLD_UNSURE;
	else if (queue->order_open)
		queue->gate = result ? WORLD_CLOSED : WORLD_OPEN;
	else if (!result)
		queue->gate = WORLD_CLOSED;
	world.faulty |= result != 0;
	REQUIRE(!gp_sched_applied(world_sched, queue->id, queue->order_seq, result, world.now_ns),
		"an answer is taken");
	REQUIRE(gp_sched_applied(world_sched, queue->id, queue->order_seq, result, world.now_ns) == -ESTALE,
		"an answer is taken once");
}

static void world_event_ack(void)
{
	static const int results[] = { 0, -EIO, -EBUSY };
	struct world_queue *can[WORLD_QUEUES];
	uint32_t count = 0, i;

	for (i = 0; i < WORLD_QUEUES; i++)
		if (world_can_answer(&world.queues[i]))
			can[count++] = &world.queues[i];
	if (!count) {
		for (i = 0; i < WORLD_QUEUES; i++)
			REQUIRE(!world.queues[i].used || world.queues[i].ordered ||
					gp_sched_applied(world_sched, world.queues[i].id, world.queues[i].order_seq, 0,
							 world.now_ns) == -ESTALE,
				"an answer to no order is refused");
		return;
	}
	if (pick(2))
		world_answer(can[pick(count)], results[pick(3)]);
	else
		for (i = 0; i < WORLD_QUEUES; i++)
			if (world_can_answer(&world.queues[i]))
				world_answer(&world.queues[i], 0);
	world_settle();
}

void world_tell(struct world_queue *queue)
{
	int r = world.config->edges ?
			gp_sched_edge(world_sched, queue->id, queue->busy, world.now_ns) :
			gp_sched_sample(world_sched, queue->id, queue->written, queue->completed, world.now_ns);

	REQUIRE(!r, "what a queue's counters say is taken");
}

static void world_event_work(void)
{
	struct world_queue *queue = world_some_queue();

	if (!queue)
		return;
	switch (pick(3)) {
	case 0:
		queue->written++;
		queue->busy = true;
		break;
	case 1: /* goes on: one done, one more to do */
		queue->written++;
		queue->completed = queue->written - 1;
		queue->busy = true;
		break;
	default: queue->completed = queue->written; queue->busy = false;
	}
	world_tell(queue);
}

static void world_event_life(void)
{
	struct gp_client_attr client_attr = { .memory_size = 1ull << 30, .user = world.config->user };
	struct world_queue *queue;
	struct gp_queue_attr attr;
	uint32_t i;

	switch (pick(4)) {
	case 0:
		for (i = 0; i < WORLD_CLIENTS && world.clients_used[i]; i++)
			;
		if (i < WORLD_CLIENTS && !gp_sched_client_add(world_sched, &client_attr, &world.clients[i]))
			world.clients_used[i] = true;
		break;
	case 1:
		i = pick(WORLD_CLIENTS);
		if (!world.clients_used[i])
			break;
		REQUIRE(!gp_sched_client_remove(world_sched, world.clients[i], world.now_ns), "a client goes");
		REQUIRE(gp_sched_client_remove(world_sched, world.clients[i], world.now_ns) == -ESTALE,
			"a client goes once");
		world.clients_used[i] = false;
		world_forget_queues(i);
		break;
	case 2:
		for (i = 0; i < WORLD_QUEUES && world.queues[i].used; i++)
			;
		if (i == WORLD_QUEUES)
			break;
		attr = world_some_attr();
		world_add_queue(i, pick(WORLD_CLIENTS), world_device(), &attr);
		break;
	default:
		queue = world_some_queue();
		if (!queue)
			break;
		REQUIRE(!gp_sched_queue_remove(world_sched, queue->id, world.now_ns), "a queue goes");
		REQUIRE(gp_sched_queue_remove(world_sched, queue->id, world.now_ns) == -ESTALE, "a queue goes once");
		queue->used = false;
	}
}

static void world_event_attr(void)
{
	struct world_queue *queue;
	struct gp_queue_attr attr;
	uint32_t n = pick(world.config->policy[0] == 'd' ? 2 : 1);

	if (n) { /* drf: a client gets or frees memory */
		struct gp_client_attr client = { .memory_size = (uint64_t)pick(2) << 33, .user = world.config->user };

		n = pick(WORLD_CLIENTS);
		REQUIRE(gp_sched_client_set_attr(world_sched, world.clients[n], &client) ==
				(world.clients_used[n] ? 0 : -ESTALE),
			"a client is changed");
		return;
	}
	queue = world_some_queue();
	if (!queue)
		return;
	attr = world_some_attr();
	if (!gp_sched_queue_set_attr(world_sched, queue->id, &attr, world.now_ns))
		queue->attr = attr;
}

static void world_event_lost(void)
{
	struct world_queue *queue = world_some_queue();
	bool open;

	if (!queue)
		return;
	open = pick(2);
	queue->gate = open ? WORLD_OPEN : WORLD_CLOSED;
	queue->lost_since = true;
	world.faulty = true;
	if (open && pick(2))
		REQUIRE(!gp_sched_lease_lost(world_sched, queue->id, world.now_ns), "a lost lease is taken");
	else
		REQUIRE(!gp_sched_gate_lost(world_sched, queue->id, open, world.now_ns), "a lost gate is taken");
}

static void world_event_stop(void)
{
	uint32_t device = world_device();
	bool *stopped = &world.devices[device].stopped;

	REQUIRE(!(*stopped ? gp_sched_device_start : gp_sched_device_stop)(world_sched, device, world.now_ns),
		"a device stops and starts");
	*stopped = !*stopped;
	world_take_given_up();
	world.faulty = true;
}

/* Each must be refused, and leave everything as it was. */
static void world_event_nonsense(void)
{
	static unsigned char before[WORLD_MEMORY_SIZE];
	struct gp_queue_attr attr = world.config->queues[0].attr, bad = attr;
	struct gp_queue_id stale = world.queues[0].id, queue;
	struct gp_client_id client = world.clients[0];
	struct gp_queue_info info;
	uint64_t later_ns = world.now_ns + 1000000;

	memcpy(before, world_memory, world_memory_size);
	stale.generation += 7;
	client.generation += 7;
	bad.priority = GP_PRIORITY_MAX + 1;
	REQUIRE(gp_sched_sample(world_sched, stale, 1, 0, later_ns) == -ESTALE, "a stale queue is sampled");
	REQUIRE(gp_sched_edge(world_sched, stale, true, later_ns) == -ESTALE, "a stale queue has an edge");
	REQUIRE(gp_sched_hint(world_sched, stale, 1, later_ns) == -ESTALE, "a stale queue is announced");
	REQUIRE(gp_sched_gate_lost(world_sched, stale, true, later_ns) == -ESTALE, "a stale gate is lost");
	REQUIRE(gp_sched_queue_remove(world_sched, stale, later_ns) == -ESTALE, "a stale queue goes");
	REQUIRE(gp_sched_queue_set_attr(world_sched, stale, &attr, later_ns) == -ESTALE, "a stale queue is changed");
	REQUIRE(gp_sched_queue_info(world_sched, stale, &info) == -ESTALE, "a stale queue is known");
	REQUIRE(gp_sched_client_remove(world_sched, client, later_ns) == -ESTALE, "a stale client goes");
	REQUIRE(gp_sched_queue_add(world_sched, client, 0, &attr, later_ns, &queue) == -ESTALE,
		"a stale client has a queue");
	REQUIRE(gp_sched_device_set_cost(world_sched, WORLD_DEVICES, 1, 1) == -EINVAL, "no device has a cost");
	REQUIRE(gp_sched_device_stop(world_sched, WORLD_DEVICES, later_ns) == -EINVAL, "no device stops");
	REQUIRE(gp_sched_device_set_others(world_sched, 0, GP_QUEUE_MAX + 1, 0, later_ns) == -EINVAL,
		"too many others");
	if (world.clients_used[0]) {
		REQUIRE(gp_sched_queue_add(world_sched, world.clients[0], WORLD_DEVICES, &attr, later_ns, &queue) ==
				-EINVAL,
			"a queue on no device");
		REQUIRE(gp_sched_queue_add(world_sched, world.clients[0], 0, &bad, later_ns, &queue) == -EINVAL,
			"a queue with a bad attribute");
	}
	if (world.queues[0].used) {
		REQUIRE(gp_sched_sample(world_sched, world.queues[0].id, 1ull << 40, 1ull << 41, later_ns) == -EINVAL,
			"more is completed than written");
		REQUIRE(gp_sched_hint(world_sched, world.queues[0].id, GP_DURATION_NS_MAX + 1, later_ns) == -EINVAL,
			"a hint beyond an hour");
		REQUIRE(gp_sched_queue_set_attr(world_sched, world.queues[0].id, &bad, later_ns) == -EINVAL,
			"a queue is changed to nonsense");
	}
	REQUIRE(!memcmp(before, world_memory, world_memory_size), "a call that failed has changed something");
}

void world_check(void)
{
	struct gp_stats stats;
	struct gp_queue_info info;
	const char *wrong = gp_sched_check(world_sched);
	uint32_t i;

	REQUIRE(!wrong, wrong);
	for (i = 0; i < WORLD_QUEUES; i++) {
		struct world_queue *queue = &world.queues[i];

		if (!queue->used)
			continue;
		REQUIRE(!gp_sched_queue_info(world_sched, queue->id, &info), "a queue that is there is not known");
		REQUIRE(info.gate != GP_GATE_OPEN || queue->gate != WORLD_CLOSED, "a closed gate is taken for open");
		REQUIRE(info.gate != GP_GATE_CLOSED || queue->gate != WORLD_OPEN, "an open gate is taken for closed");
		REQUIRE((info.gate == GP_GATE_CLOSING || info.gate == GP_GATE_OPENING) == queue->ordered,
			"a gate moves without an order, or an order without its gate");
		REQUIRE(!(queue->written > queue->completed || (world.config->edges && queue->busy)) || info.has_work,
			"work is not known");
		REQUIRE(info.device == queue->device, "a queue moved");
		queue->told = info.gate;
	}
	for (i = 0; i < world_device_count(); i++) {
		if (gp_sched_stats(world_sched, i, &stats))
			world_fail("a device has no figures");
		REQUIRE(stats.plans == world.counts[i].plans && stats.closes == world.counts[i].closes &&
				stats.opens == world.counts[i].opens && stats.preemptions <= stats.closes &&
				stats.transactions >= stats.plans,
			"the figures do not count what happened");
	}
}

/* A driver may be late, but not by a second: then it keeps the deadlines on the way. */
static void world_pass(uint64_t step_ns)
{
	uint64_t end_ns = world.now_ns + step_ns;
	uint32_t i;

	for (i = 0; step_ns >= WORLD_LATE_NS && i < WORLD_DEADLINES_MAX && gp_sched_deadline_ns(world_sched) < end_ns;
	     i++) {
		if (gp_sched_deadline_ns(world_sched) > world.now_ns)
			world.now_ns = gp_sched_deadline_ns(world_sched);
		world_settle();
	}
	world.faulty |= gp_sched_deadline_ns(world_sched) < end_ns;
	world.now_ns = end_ns;
	world_settle();
}

void world_step(void)
{
	uint32_t events[WORLD_EVENT_COUNT] = { 0 }, count = 0, i, device;
	struct world_queue *queue;

	for (i = 0; i < WORLD_EVENT_COUNT; i++)
		if (world.config->events >> i & 1)
			events[count++] = i;
	switch (events[pick(count)]) {
	case WORLD_WORK: world_event_work(); break;
	case WORLD_TIME:
		for (count = 1; count < WORLD_STEPS && world.config->steps_ns[count];)
			count++;
		world_pass(world.config->steps_ns[pick(count)]);
		break;
	case WORLD_ACK: world_event_ack(); break;
	case WORLD_LIFE: world_event_life(); break;
	case WORLD_ATTR: world_event_attr(); break;
	case WORLD_LOST: world_event_lost(); break;
	case WORLD_HINT:
		queue = world_some_queue();
		if (queue)
			REQUIRE(!gp_sched_hint(world_sched, queue->id, pick(2) * 3000000, world.now_ns),
				"a hint is taken");
		break;
	case WORLD_STOP: world_event_stop(); break;
	case WORLD_OTHERS:
		device = world_device();
		world.devices[device].others = pick(3);
		REQUIRE(!gp_sched_device_set_others(world_sched, device, world.devices[device].others,
						    world.devices[device].others, world.now_ns),
			"others are counted");
		break;
	case WORLD_COST:
		device = world_device();
		world.devices[device].attr.close_ns = world.devices[device].attr.open_ns = pick(2) ? 100000 : 3000000;
		REQUIRE(!gp_sched_device_set_cost(world_sched, device, world.devices[device].attr.close_ns,
						  world.devices[device].attr.open_ns),
			"a cost is taken");
		break;
	default: world_event_nonsense();
	}
	world_check();
}

/* Everybody has work. */
static void world_warm(enum world_start start)
{
	uint32_t i, rounds;

	for (i = 0; i < WORLD_QUEUES; i++) {
		world.queues[i].written = 2;
		world.queues[i].busy = true;
		world_tell(&world.queues[i]);
	}
	world_settle();
	for (rounds = 0; rounds < 4 && start == WORLD_BUSY; rounds++) {
		world.now_ns += 1000000;
		for (i = 0; i < WORLD_QUEUES; i++)
			if (world_can_answer(&world.queues[i]))
				world_answer(&world.queues[i], 0);
		world_settle();
	}
	world_check();
}

void world_start(const struct world_config *config, enum world_start start)
{
	struct gp_limits limits = { WORLD_DEVICES, WORLD_CLIENTS, WORLD_QUEUES * WORLD_DEVICES, 2, 1 };
	struct gp_client_attr client = { .memory_size = 1ull << 30, .user = config->user };
	uint32_t i, device;

	memset(&world, 0, sizeof(world));
	world.config = config;
	world.now_ns = WORLD_START_NS;
	limits.device_count = world_device_count();
	limits.queue_count = WORLD_QUEUES * limits.device_count;
	world_memory_size = gp_sched_size(&limits);
	if (!world_memory_size || world_memory_size > sizeof(world_memory) ||
	    gp_sched_init(world_memory, world_memory_size, &limits, &world_sched)) {
		world_fail("the core does not start");
		return;
	}
	for (i = 0; i < limits.device_count; i++) {
		REQUIRE(!gp_sched_device_add(world_sched, &config->attr, config->policy, &config->param, &device),
			"a device is refused");
		world.devices[i].attr = config->attr;
		world.devices[i].attr.ack_timeout_ns =
			config->attr.ack_timeout_ns ? config->attr.ack_timeout_ns : 1000000000;
	}
	for (i = 0; i < WORLD_CLIENTS; i++) {
		REQUIRE(!gp_sched_client_add(world_sched, &client, &world.clients[i]), "a client is refused");
		world.clients_used[i] = true;
	}
	for (i = 0; i < WORLD_QUEUES; i++)
		world_add_queue(i, config->queues[i].client, config->queues[i].device, &config->queues[i].attr);
	world_check();
	if (start != WORLD_IDLE)
		world_warm(start);
}
