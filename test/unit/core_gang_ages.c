/* SPDX-License-Identifier: MIT */
/* Aged turns of gangs: which member opens in one, and what ends it. */
#include "test/unit/core_world.h"

/* Two devices, a high client on each, and a gang (low) of two clients with a queue on each device. */
struct aged {
	struct world *w;
	uint32_t device[2], high[2], gang[2];
};

static struct aged aged_new(struct world_setup first, struct world_setup second)
{
	struct aged a = { .w = world_new() };
	uint32_t i;

	for (i = 0; i < 2; i++) {
		a.device[i] = world_device(a.w, i ? second : first);
		a.high[i] = world_solo(a.w, a.device[i], GP_PRIORITY_HIGH);
	}
	for (i = 0; i < 2; i++)
		a.gang[i] = world_queue_attr(a.w, world_client(a.w), a.device[i],
					     (struct gp_queue_attr){ .priority = GP_PRIORITY_LOW, .gang = 1 });
	return a;
}

static const struct world_setup ages = { .attr = { .unit = GP_UNIT_PROCESS },
					 .param = { .age_window_ns = 100 * MS, .age_turn_ns = 10 * MS } };
/* One order that is not answered in 3 ms is enough for quarantine. */
static const struct world_setup sticks = {
	.attr = { .unit = GP_UNIT_PROCESS, .ack_timeout_ns = 3 * MS },
	.param = { .fail_max = 1, .age_window_ns = 100 * MS, .age_turn_ns = 10 * MS },
};

/* The member whose aged turn it was goes away: the others are not aged for ever. */
static void aged_member_that_leaves_takes_the_turn_along(void **state)
{
	struct aged a = aged_new(ages, ages);

	(void)state;
	world_settle(a.w);
	world_write(a.w, a.gang[0], 1000000);
	world_write(a.w, a.high[0], 1000000);
	world_write(a.w, a.high[1], 1000000);
	world_run(a.w, 105 * MS);
	assert_true(world_is_open(a.w, a.gang[0]) && world_is_open(a.w, a.gang[1]));
	world_write(a.w, a.gang[1], 1000000);
	world_remove_client(a.w, a.w->queues[a.gang[0]].client);
	world_run(a.w, 20 * MS);
	assert_false(world_is_open(a.w, a.gang[1]));
	world_free(a.w);
}

/* The same, where another batch client has the turn beside the member that stays: that one closes at once, not when the
 * turn is over. */
static void member_that_stays_gives_way_to_the_holder(void **state)
{
	struct world_setup setup = ages;
	struct aged a;
	uint32_t holder;

	(void)state;
	setup.param.turn_ns = 1 * S;
	setup.param.rest_ns = 10 * S;
	a = aged_new(setup, setup);
	holder = world_solo(a.w, a.device[1], GP_PRIORITY_LOW);
	world_write(a.w, holder, 1000000);
	world_settle(a.w);
	world_write(a.w, a.gang[0], 1000000);
	world_write(a.w, a.high[0], 1000000);
	world_run(a.w, 105 * MS);
	assert_true(world_is_open(a.w, a.gang[0]) && world_is_open(a.w, a.gang[1]) && world_is_open(a.w, holder));
	world_write(a.w, a.gang[1], 1000000);
	world_run(a.w, 1 * MS);
	world_remove_client(a.w, a.w->queues[a.gang[0]].client);
	world_run(a.w, 1 * MS);
	assert_true(world_is_open(a.w, holder));
	assert_false(world_is_open(a.w, a.gang[1]));
	world_free(a.w);
}

/* The member whose aged turn it is gets stuck, and is left alone: the others are not aged for ever. */
static void aged_turn_ends_with_a_stuck_owner(void **state)
{
	struct aged a = aged_new(sticks, sticks);

	(void)state;
	world_set_stuck_alone(a.w, a.gang[0], true);
	world_settle(a.w);
	world_write(a.w, a.gang[0], 1000000);
	world_write(a.w, a.high[0], 1000000);
	world_write(a.w, a.high[1], 1000000);
	world_run(a.w, 50 * MS);
	assert_false(world_is_open(a.w, a.gang[0]) || world_is_open(a.w, a.gang[1]));
	a.w->ack = WORLD_ACK_BY_HAND;
	world_run(a.w, 51 * MS);
	world_ack(a.w, a.device[1]); /* the other order is left unanswered */
	world_run(a.w, 3 * MS);
	if (a.w->devices[a.device[1]].in_flight)
		world_ack(a.w, a.device[1]);
	a.w->ack = WORLD_ACK_DELAYED;
	assert_int_equal(world_gate(a.w, a.gang[0]), GP_GATE_QUARANTINED);
	world_run(a.w, 20 * MS);
	assert_false(world_is_open(a.w, a.gang[1]));
	world_free(a.w);
}

/* The gang has an aged turn, which is the first member's. A more urgent client came to device 1, which has not answered
 * yet, so the core has not ordered the member there open. */
static void begin_turn(const struct aged *a)
{
	uint32_t top = world_solo(a->w, a->device[1], GP_PRIORITY_HIGH + 1), i;

	world_settle(a->w);
	for (i = 0; i < 2; i++) {
		world_write(a->w, a->gang[i], 1000000);
		world_write(a->w, a->high[i], 1000000);
	}
	world_run(a->w, 99 * MS);
	a->w->ack = WORLD_ACK_BY_HAND;
	world_write(a->w, top, 1000000);
	world_run(a->w, 2 * MS);
	assert_true(a->w->devices[0].in_flight && a->w->devices[1].in_flight);
	assert_true(world_last_order(a->w, a->gang[0], 0)->open);
	assert_int_equal(world_last_order(a->w, a->gang[0], 0)->why, GP_WHY_AGED);
}

/* That answer is late for as long as the aged turn lasts: the member there does not open afterwards. */
static void late_member_does_not_open_after_the_aged_turn(void **state)
{
	struct aged a = aged_new(ages, ages);

	(void)state;
	begin_turn(&a);
	world_ack(a.w, 0);
	world_drain(a.w, a.high[0]);
	world_settle(a.w);
	assert_true(world_is_open(a.w, a.gang[0]));
	world_run(a.w, 15 * MS);
	if (a.w->devices[0].in_flight)
		world_ack(a.w, 0);
	world_ack(a.w, 1);
	world_settle(a.w);
	assert_false(a.w->devices[1].in_flight);
	assert_false(world_is_open(a.w, a.gang[0]) || world_is_open(a.w, a.gang[1]));
	world_free(a.w);
}

/* As begin_turn(); the owner of the turn is left alone if it gets stuck, and ret_guest is a third member, without work.
 */
static struct aged owner_new(uint32_t *ret_guest)
{
	struct world_setup patient = sticks;
	struct aged a;

	patient.attr.ack_timeout_ns = 0;
	a = aged_new(sticks, patient);
	*ret_guest = world_queue_attr(a.w, world_client(a.w), a.device[0],
				      (struct gp_queue_attr){ .priority = GP_PRIORITY_LOW, .gang = 1 });
	world_set_stuck_alone(a.w, a.gang[0], true);
	world_set_stuck_alone(a.w, *ret_guest, true);
	begin_turn(&a);
	return a;
}

static void owner_check(const struct aged *a)
{
	world_ack(a->w, 1);
	world_settle(a->w);
	assert_false(world_last_order(a->w, a->gang[1], 0)->open);
	world_free(a->w);
}

/* The owner of the aged turn leaves: the other member does not open without it. */
static void late_member_does_not_open_without_the_owner(void **state)
{
	uint32_t guest;
	struct aged a = owner_new(&guest);

	(void)state;
	world_ack(a.w, 0);
	world_remove_client(a.w, a.w->queues[a.gang[0]].client);
	owner_check(&a);
}

/* Another member than the owner leaves: the aged turn goes on, and the late member opens in it. */
static void aged_turn_outlasts_another_member(void **state)
{
	uint32_t guest;
	struct aged a = owner_new(&guest);

	(void)state;
	world_ack(a.w, 0);
	world_remove_client(a.w, a.w->queues[guest].client);
	world_ack(a.w, 1);
	world_settle(a.w);
	assert_true(world_last_order(a.w, a.gang[0], 0)->open);
	assert_true(world_last_order(a.w, a.gang[1], 0)->open);
	assert_int_equal(world_last_order(a.w, a.gang[1], 0)->why, GP_WHY_AGED);
	world_ack(a.w, 1);
	a.w->ack = WORLD_ACK_DELAYED;
	world_run(a.w, 3 * MS);
	assert_true(world_is_open(a.w, a.gang[0]) && world_is_open(a.w, a.gang[1]));
	world_free(a.w);
}

/* The same, if the owner does not answer and is left alone in quarantine: the other member does not open. */
static void late_member_does_not_open_beside_a_stuck_owner(void **state)
{
	uint32_t guest;
	struct aged a = owner_new(&guest);

	(void)state;
	world_run(a.w, 3 * MS);
	assert_int_equal(world_gate(a.w, a.gang[0]), GP_GATE_QUARANTINED);
	owner_check(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aged_member_that_leaves_takes_the_turn_along),
		cmocka_unit_test(member_that_stays_gives_way_to_the_holder),
		cmocka_unit_test(aged_turn_ends_with_a_stuck_owner),
		cmocka_unit_test(late_member_does_not_open_after_the_aged_turn),
		cmocka_unit_test(late_member_does_not_open_without_the_owner),
		cmocka_unit_test(aged_turn_outlasts_another_member),
		cmocka_unit_test(late_member_does_not_open_beside_a_stuck_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
