/* SPDX-License-Identifier: MIT */
/*
 * Three levels on a device that switches by itself: the lowest stays open below the one in the middle while that is
 * cheaper than closing it, has its turn back afterwards, and is closed when the middle one goes on for long. For the
 * most urgent one it is the middle one that closes. Each case also without a slice for the middle: as before.
 */
#include "test/unit/core_world.h"

#define SHORT (1 * US)
#define MID   (1800 * US)

struct three {
	struct world *w;
	uint32_t device, high, mid, low;
};

static void three_begin(struct three *t, uint64_t mid_ns, enum gp_protect protect)
{
	struct world_setup setup = { .policy = "hpf",
				     .param = { .rest_ns = 3600 * S, .protect = protect }, /* nobody rests here */
				     .attr = { .unit = GP_UNIT_PROCESS,
					       .switch_ns = 200 * US,
					       .lower_max = 1,
					       .short_ns = SHORT,
					       .mid_ns = mid_ns,
					       .slice_ns = 400 * US,
					       .close_ns = 700 * US,
					       .open_ns = 300 * US } };

	t->w = world_new();
	t->device = world_device(t->w, setup);
	t->w->ack_delay_ns = t->w->slice_delay_ns = 400 * US;
	t->high = world_solo(t->w, t->device, GP_PRIORITY_HIGH);
	t->low = world_solo(t->w, t->device, GP_PRIORITY_LOW);
	t->mid = world_solo(t->w, t->device, GP_PRIORITY_NORMAL);
	world_write(t->w, t->low, 1000000);
	world_run(t->w, 10 * MS);
	assert_true(world_is_open(t->w, t->low) && world_is_open(t->w, t->mid));
	assert_int_equal(t->w->queues[t->low].slice_ns, SHORT);
	assert_int_equal(t->w->queues[t->mid].slice_ns, mid_ns ? mid_ns : SHORT);
}

/* Requests of the middle one: nobody is ordered about, and no slice is set. */
static void the_lowest_stays_open(void **state)
{
	struct three t;
	uint32_t n, slices, orders;

	(void)state;
	three_begin(&t, MID, GP_PROTECT_BALANCED);
	slices = t.w->queues[t.mid].slice_count + t.w->queues[t.low].slice_count;
	orders = t.w->order_count;
	for (n = 0; n < 20; n++) {
		world_write(t.w, t.mid, 1);
		world_run(t.w, 2500 * US);
		assert_true(world_is_open(t.w, t.low) && world_is_open(t.w, t.mid));
		world_drain(t.w, t.mid);
		world_run(t.w, 7500 * US);
	}
	assert_int_equal(t.w->order_count, orders);
	assert_int_equal(t.w->queues[t.mid].slice_count + t.w->queues[t.low].slice_count, slices);
	world_free(t.w);
}

/* A close and an open take 1 ms, a visit 0.4 ms after each 1.8 ms: after three of them the lowest closes. */
static void the_lowest_closes_in_time(void **state)
{
	struct three t;
	uint32_t n;

	(void)state;
	three_begin(&t, MID, GP_PROTECT_BALANCED);
	for (n = 0; n < 5; n++) {
		world_write(t.w, t.mid, 1);
		world_run(t.w, 6 * MS);
		assert_true(world_is_open(t.w, t.low));
		world_run(t.w, 2 * MS);
		assert_false(world_is_open(t.w, t.low));
		assert_int_equal(world_last_order(t.w, t.low, 0)->why, GP_WHY_PRIORITY);
		world_run(t.w, 10 * MS); /* alone it is short, for those above it */
		assert_int_equal(t.w->queues[t.mid].slice_ns, SHORT);
		world_drain(t.w, t.mid);
		world_run(t.w, 10 * MS);
		assert_true(world_is_open(t.w, t.low));
		assert_int_equal(t.w->queues[t.mid].slice_ns, MID);
	}
	world_free(t.w);
}

/* The most urgent one need not wait for the slice of the middle one. */
static void the_middle_closes_for_the_top(void **state)
{
	struct three t;

	(void)state;
	three_begin(&t, MID, GP_PROTECT_BALANCED);
	world_write(t.w, t.mid, 1);
	world_run(t.w, 500 * US);
	world_write(t.w, t.high, 1);
	world_run(t.w, 1 * MS);
	assert_true(world_is_open(t.w, t.low));
	assert_false(world_is_open(t.w, t.mid));
	assert_int_equal(world_last_order(t.w, t.mid, 0)->why, GP_WHY_PRIORITY);
	world_drain(t.w, t.high);
	world_run(t.w, 1 * MS);
	assert_true(world_is_open(t.w, t.mid));
	world_drain(t.w, t.mid);
	world_run(t.w, 10 * MS);
	assert_true(world_is_open(t.w, t.low));
	world_free(t.w);
}

/* Turns of equals go on as if nobody had been in between. */
static void the_turn_goes_on(void **state)
{
	struct three t;
	uint32_t n, other, orders;

	(void)state;
	three_begin(&t, MID, GP_PROTECT_BALANCED);
	other = world_solo(t.w, t.device, GP_PRIORITY_LOW);
	world_write(t.w, other, 1000000);
	world_run(t.w, 5 * MS);
	orders = t.w->order_count;
	for (n = 0; n < 30; n++) {
		world_write(t.w, t.mid, 1);
		world_run(t.w, 2 * MS);
		world_drain(t.w, t.mid);
		world_run(t.w, 8 * MS);
		assert_int_not_equal(world_is_open(t.w, t.low), world_is_open(t.w, other));
	}
	assert_in_range(t.w->order_count - orders, 4, 20); /* 300 ms, turns of 80 */
	assert_int_equal(t.w->most_short, 1);
	world_free(t.w);
}

static void without_it_the_lowest_closes(void **state)
{
	struct three t;
	uint32_t n;

	(void)state;
	for (n = 0; n < 2; n++) {
		three_begin(&t, n ? MID : 0, n ? GP_PROTECT_LATENCY : GP_PROTECT_BALANCED);
		world_write(t.w, t.mid, 1);
		world_run(t.w, 2 * MS);
		assert_false(world_is_open(t.w, t.low));
		world_free(t.w);
	}
}

/* Whoever goes, or loses its slice, takes what it was part of with it. */
static void who_goes_is_forgotten(void **state)
{
	struct three t;
	uint32_t n;

	(void)state;
	for (n = 0; n < 4; n++) {
		three_begin(&t, MID, GP_PROTECT_BALANCED);
		world_write(t.w, t.mid, 1);
		world_run(t.w, 1 * MS);
		if (n == 0)
			world_remove(t.w, t.mid);
		else if (n == 1)
			world_remove(t.w, t.low);
		else if (n == 2)
			assert_int_equal(gp_sched_slice_lost(t.w->sched, t.w->queues[t.mid].id, t.w->now_ns), 0);
		else
			assert_int_equal(gp_sched_device_stop(t.w->sched, t.device, t.w->now_ns), 0);
		world_run(t.w, 5 * MS);
		if (n == 0 || n == 3)
			assert_true(world_is_open(t.w, t.low));
		if (n == 2)
			assert_false(world_is_open(t.w, t.low));
		assert_null(gp_sched_check(t.w->sched));
		world_free(t.w);
	}
}

/* With another slice than the shortest one it would take what the middle one is to have: it closes as before. */
static void who_is_not_short_closes(void **state)
{
	struct three t;
	struct gp_queue_attr fixed = { .priority = GP_PRIORITY_LOW, .fixed_slice = true };
	uint32_t low;

	(void)state;
	three_begin(&t, MID, GP_PROTECT_BALANCED);
	world_drain(t.w, t.low);
	world_remove(t.w, t.low);
	low = world_queue_attr(t.w, world_client(t.w), t.device, fixed);
	world_write(t.w, low, 1000000);
	world_run(t.w, 10 * MS);
	assert_true(world_is_open(t.w, low));
	world_write(t.w, t.mid, 1);
	world_run(t.w, 3 * MS);
	assert_true(world_is_open(t.w, t.mid) && !world_is_open(t.w, low));
	world_free(t.w);
}

/* A client's own lower queue does not put it in the middle: the one with the turn has the shortest slice. */
static void nobody_is_above_itself(void **state)
{
	struct three t;
	uint32_t client, works, idle;

	(void)state;
	three_begin(&t, MID, GP_PROTECT_BALANCED);
	world_remove(t.w, t.low);
	world_remove(t.w, t.mid);
	client = world_client(t.w);
	works = world_queue(t.w, client, t.device, GP_PRIORITY_NORMAL);
	idle = world_queue(t.w, client, t.device, GP_PRIORITY_LOW);
	world_write(t.w, works, 1000000);
	world_run(t.w, 20 * MS);
	assert_true(world_is_open(t.w, works) && world_is_open(t.w, idle));
	assert_int_equal(t.w->queues[works].slice_ns, SHORT);
	world_free(t.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_lowest_stays_open),         cmocka_unit_test(the_lowest_closes_in_time),
		cmocka_unit_test(the_middle_closes_for_the_top), cmocka_unit_test(the_turn_goes_on),
		cmocka_unit_test(without_it_the_lowest_closes),  cmocka_unit_test(who_goes_is_forgotten),
		cmocka_unit_test(who_is_not_short_closes),       cmocka_unit_test(nobody_is_above_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
