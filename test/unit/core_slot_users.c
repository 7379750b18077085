/* SPDX-License-Identifier: MIT */
/* Slots, places of processes and the budget belong to users: one with many queues does not keep the others out. */
#include "test/unit/core_world.h"

#define SLOTS 8u
#define MANY  60u
#define OTHER 1u
#define CROWD 2u /* the user with many queues */

static uint32_t of_user(struct world *w, uint64_t user, uint32_t device, int32_t priority)
{
	return world_queue(w, world_client_of(w, user), device, priority);
}

/* Idle gates of one who adds queue after queue give way before the one idle gate of another, though that is idle
 * longest. */
static void idle_flood_parks_its_own(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .slot_count = SLOTS } });
	uint32_t other = of_user(w, OTHER, device, GP_PRIORITY_NORMAL), client = world_client_of(w, CROWD), i;

	world_settle(w);
	for (i = 0; i < MANY; i++) {
		world_skip(w, 10 * US);
		world_queue(w, client, device, GP_PRIORITY_NORMAL);
		if (i % 3)
			world_settle(w);
		assert_true(world_is_open(w, other));
	}
	world_settle(w);
	assert_int_equal(world_open_compute_count(w, device), SLOTS);
	world_free(w);
}

/* Sixty busy queues of one user at the top and one of another's: that one is open all the time, in whatever order they
 * came. */
static void busy_flood_shares_slots(void **state)
{
	uint32_t first, i;

	for (first = 0; first < 2; first++) {
		struct world *w = world_new();
		uint32_t device = world_device(w, (struct world_setup){ .attr = { .slot_count = SLOTS } });
		uint32_t client = world_client_of(w, CROWD), other = 0;
		uint64_t begin_ns;

		if (first)
			other = of_user(w, OTHER, device, GP_PRIORITY_NORMAL);
		for (i = 0; i < MANY; i++)
			world_write(w, world_queue(w, client, device, GP_PRIORITY_NORMAL), 1u << 30);
		world_run(w, 200 * MS);
		if (!first)
			other = of_user(w, OTHER, device, GP_PRIORITY_NORMAL);
		world_write(w, other, 1u << 30);
		begin_ns = w->now_ns;
		world_run(w, 4 * S);
		assert_true(w->queues[other].open_ns >= (w->now_ns - begin_ns) * 9 / 10);
		for (i = 0; i < w->queue_count; i++) /* and the others take turns */
			assert_true(w->queues[i].open_ns >= 4 * S * (SLOTS - 1) / MANY / 3);
		world_free(w);
	}
}

/* Lets time pass; of the orders under way only those of this queue are answered. */
static void run_answering(struct world *w, uint32_t device, uint32_t queue, uint64_t duration_ns)
{
	uint64_t end_ns = w->now_ns + duration_ns, seq = 0;
	const struct gp_plan *plan = &w->devices[device].plan;
	uint32_t i;

	while (w->now_ns < end_ns) {
		world_run(w, 50 * US);
		if (!w->devices[device].in_flight || plan->seq == seq)
			continue;
		seq = plan->seq;
		for (i = 0; i < plan->close_count; i++)
			if (plan->close[i].queue.index == w->queues[queue].id.index)
				world_ack_order(w, plan, &plan->close[i], false);
		for (i = 0; i < plan->open_count; i++)
			if (plan->open[i].queue.index == w->queues[queue].id.index)
				world_ack_order(w, plan, &plan->open[i], true);
		w->devices[device].in_flight = false;
	}
}

/* Gates that one user does not close when he is told to, and later those in quarantine, do not count against another:
 * that one's are not parked for them, and open beside them. */
static void silent_flood_takes_no_slots(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(
		w, (struct world_setup){
			   .attr = { .slot_count = SLOTS, .unit = GP_UNIT_PROCESS, .ack_timeout_ns = 20 * MS } });
	uint32_t other = of_user(w, OTHER, device, GP_PRIORITY_HIGH), client = world_client_of(w, CROWD), i, round;

	world_settle(w);
	w->ack = WORLD_ACK_BY_HAND;
	for (i = 0; i < MANY; i++)
		world_queue(w, client, device, GP_PRIORITY_LOW);
	for (round = 0; round < 100; round++) {
		world_write(w, other, 1);
		run_answering(w, device, other, 1 * MS);
		assert_true(world_is_open(w, other));
		world_drain(w, other);
		run_answering(w, device, other, 4 * MS);
	}
	assert_true(world_stats(w, device).timeouts > 0);
	world_free(w);
}

/* A user's client is waited for from its first answer on; who is nobody's in particular at once. */
static void first_answer_earns_trust(void **state)
{
	uint64_t user;

	for (user = 0; user < 2; user++) {
		struct world *w = world_new();
		uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });
		uint32_t high = world_solo(w, device, GP_PRIORITY_HIGH),
			 low = of_user(w, user, device, GP_PRIORITY_LOW);
		const struct gp_plan *plan = &w->devices[device].plan;

		world_write(w, low, 1000);
		world_settle(w);
		w->ack = WORLD_ACK_BY_HAND;
		world_write(w, high, 1);
		world_settle(w);
		assert_int_equal(plan->close_count, 1);
		assert_int_equal(plan->close[0].is_awaited, !user);
		world_ack(w, device);
		world_drain(w, high);
		world_run(w, 20 * MS);
		assert_int_equal(plan->open_count, 1);
		assert_true(plan->open[0].is_awaited);
		world_ack(w, device);
		world_free(w);
	}
}

/* The same with processes, where a closed client's place is free for another. */
static void process_flood_shares_places(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(
		w, (struct world_setup){
			   .attr = { .unit = GP_UNIT_PROCESS, .process_count_max = 4, .process_parking = true } });
	uint32_t i, other;
	uint64_t begin_ns;

	for (i = 0; i < 30; i++)
		world_write(w, of_user(w, CROWD, device, GP_PRIORITY_NORMAL), 1u << 30);
	other = of_user(w, OTHER, device, GP_PRIORITY_NORMAL);
	world_write(w, other, 1u << 30);
	world_run(w, 200 * MS);
	begin_ns = w->queues[other].open_ns;
	world_run(w, 4 * S);
	assert_true(w->queues[other].open_ns - begin_ns >= 4 * S * 9 / 10);
	world_free(w);
}

/* An urgent queue and a batch client, and many idle clients of another user whose gates are open. */
static void idle_gates_do_not_use_up_the_budget(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS },
								.param = { .burst = 8, .overhead_permille = 10 } });
	uint32_t high = world_solo(w, device, GP_PRIORITY_HIGH), batch = world_solo(w, device, GP_PRIORITY_LOW), i,
		 round;

	world_write(w, batch, 1u << 30);
	world_run(w, 10 * S); /* the bucket is full */
	for (i = 0; i < 40; i++)
		of_user(w, CROWD, device, GP_PRIORITY_IDLE);
	for (round = 0; round < 4; round++) {
		assert_true(world_is_open(w, batch));
		world_write(w, high, 1);
		world_settle(w);
		assert_false(world_is_open(w, batch));
		world_drain(w, high);
		world_run(w, 20 * MS);
	}
	world_free(w);
}

/* Six slots, of which one user's three gates cannot be closed, and two users with two open gates each, one of them by a
 * mistake: no user has more than his part, and one slot too many is taken. Of the gate that gives way then nothing is
 * left for an equal. */
static void too_many_open_are_not_exchanged(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS, .slot_count = 6 },
								.param = { .overhead_permille = 1000 } });
	uint32_t stuck[3], own[3], others[2], i, urgent = world_solo(w, device, GP_PRIORITY_HIGH);

	for (i = 0; i < 3; i++) {
		stuck[i] = of_user(w, CROWD, device, GP_PRIORITY_NORMAL);
		w->queues[stuck[i]].close_result = -EIO;
		world_write(w, stuck[i], 1u << 30);
	}
	world_run(w, 1 * MS);
	world_write(w, urgent, 1);
	world_run(w, 5 * MS);
	world_remove_client(w, w->queues[urgent].client);
	for (i = 0; i < 3; i++) {
		assert_int_equal(world_gate(w, stuck[i]), GP_GATE_QUARANTINED);
		own[i] = of_user(w, OTHER, device, GP_PRIORITY_NORMAL);
	}
	for (i = 0; i < 2; i++) {
		others[i] = of_user(w, CROWD + 1, device, GP_PRIORITY_NORMAL);
		world_write(w, others[i], 1u << 30);
	}
	world_write(w, own[0], 1u << 30);
	world_write(w, own[1], 1u << 30);
	world_run(w, 1 * MS);
	for (i = 0; i < 2; i++) {
		if (!world_is_open(w, own[i]))
			world_gate_lost(w, own[i], true);
		if (!world_is_open(w, others[i]))
			world_gate_lost(w, others[i], true);
	}
	world_run(w, 2 * MS);
	assert_int_equal(world_open_compute_count(w, device), 7);
	world_drain(w, others[0]);
	world_write(w, own[2], 1u << 30);
	w->ack = WORLD_ACK_BY_HAND;
	world_settle(w);
	assert_true(w->devices[device].in_flight);
	assert_int_equal(w->devices[device].plan.close_count, 1);
	assert_int_equal(w->devices[device].plan.open_count, 0);
	world_ack(w, device);
	w->ack = WORLD_ACK_DELAYED;
	for (i = 0; i < 10; i++) {
		world_run(w, 1 * MS);
		assert_true(world_open_compute_count(w, device) <= 6);
	}
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(idle_flood_parks_its_own),
		cmocka_unit_test(busy_flood_shares_slots),
		cmocka_unit_test(silent_flood_takes_no_slots),
		cmocka_unit_test(process_flood_shares_places),
		cmocka_unit_test(first_answer_earns_trust),
		cmocka_unit_test(idle_gates_do_not_use_up_the_budget),
		cmocka_unit_test(too_many_open_are_not_exchanged),
	};

	return cmocka_run_group_tests_name("core_slot_users", tests, NULL, NULL);
}
