/* SPDX-License-Identifier: MIT */
/* Hints: announced work closes lower gates, or makes the device switch, before it arrives. And self-switching devices.
 */
#include "test/unit/core_world.h"

struct pair {
	struct world *w;
	uint32_t device, high, low;
};

static struct pair pair_new(struct world_setup setup)
{
	struct pair p = { .w = world_new() };

	p.device = world_device(p.w, setup);
	p.high = world_solo(p.w, p.device, GP_PRIORITY_HIGH);
	p.low = world_solo(p.w, p.device, GP_PRIORITY_LOW);
	world_write(p.w, p.low, 1000000);
	world_settle(p.w);
	return p;
}

static void hint(struct pair *p, uint32_t queue, uint64_t in_ns)
{
	assert_int_equal(gp_sched_hint(p->w->sched, p->w->queues[queue].id, in_ns, p->w->now_ns), 0);
}

/* The lower gate closes just before the announced time, so that the close is done when the work comes. */
static void hint_closes_before_arrival(void **state)
{
	struct pair p = pair_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });
	uint64_t arrival_ns = p.w->now_ns + 2 * MS;

	p.w->ack_delay_ns = 150 * US;
	hint(&p, p.high, 2 * MS);
	world_run(p.w, 1700 * US);
	assert_true(world_is_open(p.w, p.low)); /* not earlier than needed */
	world_run(p.w, 300 * US);
	assert_true(p.w->now_ns == arrival_ns);
	assert_false(world_is_open(p.w, p.low));
	assert_int_equal(world_last_order(p.w, p.low, 0)->why, GP_WHY_HINT);
	world_write(p.w, p.high, 1);
	world_run(p.w, 5 * MS); /* beyond the grace: it did come */
	assert_false(world_is_open(p.w, p.low));
	assert_int_equal(world_stats(p.w, p.device).hints, 1);
	assert_int_equal(world_stats(p.w, p.device).hints_missed, 0);
	assert_int_equal(world_stats(p.w, p.device).inversions, 0);
	world_free(p.w);
}

/* Announced work that does not come is waited for until the grace is over; then the lower gate opens. */
static void missed_hint_reopens(void **state)
{
	struct pair p = pair_new(
		(struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS }, .param = { .hint_grace_ns = 1 * MS } });

	hint(&p, p.high, 1 * MS);
	world_run(p.w, 1999 * US);
	assert_false(world_is_open(p.w, p.low));
	world_run(p.w, 1 * US);
	assert_true(world_is_open(p.w, p.low));
	assert_int_equal(world_stats(p.w, p.device).hints_missed, 1);
	assert_int_equal(world_trace(p.w, GP_TRACE_HINT_MISSED, p.high, NULL), 1);
	world_run(p.w, 1 * S);
	assert_int_equal(p.w->plan_count, 2);
	world_free(p.w);
}

/* A hint of work at once acts at once; a hint on a busy queue changes nothing. */
static void hint_of_now_acts_now(void **state)
{
	struct pair p = pair_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });

	hint(&p, p.high, 0);
	world_settle(p.w);
	assert_false(world_is_open(p.w, p.low));
	world_write(p.w, p.high, 1);
	hint(&p, p.high, 5 * MS);
	world_settle(p.w);
	world_drain(p.w, p.high);
	world_run(p.w, 1 * MS);
	assert_true(world_is_open(p.w, p.low));
	world_free(p.w);
}

/* The lower queue's own hint preempts nobody, and opens its gate once nobody more urgent has work. */
static void hint_of_the_lower_waits(void **state)
{
	struct pair p = pair_new(
		(struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS }, .param = { .hint_grace_ns = 50 * MS } });

	world_drain(p.w, p.low);
	world_write(p.w, p.high, 1);
	world_settle(p.w);
	assert_false(world_is_open(p.w, p.low));
	hint(&p, p.low, 0);
	world_run(p.w, 1 * MS);
	assert_true(world_is_open(p.w, p.high));
	assert_false(world_is_open(p.w, p.low));
	world_drain(p.w, p.high);
	world_run(p.w, 1 * MS);
	assert_true(world_is_open(p.w, p.low));
	world_free(p.w);
}

/* Counters at fetch: a queue that announced work is closed while it is idle, so it is in doubt. The work comes, and the
 * core waits for it no more when it is done. */
static void announced_work_comes_in_doubt(void **state)
{
	struct pair p = { .w = world_new() };
	uint32_t urgent, i;

	p.device = world_device(p.w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS, .fetch_counters = true },
							   .param = { .hint_grace_ns = 50 * MS } });
	urgent = world_solo(p.w, p.device, GP_PRIORITY_HIGH);
	p.high = world_solo(p.w, p.device, GP_PRIORITY_NORMAL);
	p.low = world_solo(p.w, p.device, GP_PRIORITY_LOW);
	world_write(p.w, p.high, 1);
	world_drain(p.w, p.high);
	world_run(p.w, 10 * MS);
	assert_true(world_is_open(p.w, p.high) && !world_info(p.w, p.high).has_work);
	hint(&p, p.high, 2 * MS);
	world_write(p.w, urgent, 1000);
	world_run(p.w, 2 * MS);
	assert_true(!world_is_open(p.w, p.high) && world_info(p.w, p.high).has_work); /* in doubt */
	world_write(p.w, p.high, 1);
	world_write(p.w, p.low, 1000);
	world_drain(p.w, urgent);
	world_run(p.w, 10 * MS);
	assert_true(world_is_open(p.w, p.high) && !world_is_open(p.w, p.low));
	world_drain(p.w, p.high);
	for (i = 0; i < 25 && !world_is_open(p.w, p.low); i++) /* within the grace */
		world_run(p.w, 1 * MS);
	assert_true(world_is_open(p.w, p.low));
	world_run(p.w, 100 * MS);
	assert_int_equal(world_stats(p.w, p.device).hints_missed, 0);
	world_free(p.w);
}

/* Self-switching: the one batch client that is open stays open under the urgent one, and no order is given. */
static void self_switching_holder_stays_open(void **state)
{
	struct pair p = pair_new(
		(struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS, .switch_ns = 200 * US, .lower_max = 1 } });
	uint32_t i;

	for (i = 0; i < 10; i++) {
		world_write(p.w, p.high, 1);
		world_run(p.w, 2 * MS);
		world_drain(p.w, p.high);
		world_run(p.w, 2 * MS);
	}
	assert_true(world_is_open(p.w, p.low));
	assert_int_equal(p.w->plan_count, 0);
	assert_int_equal(world_stats(p.w, p.device).inversions, 0);
	assert_true(world_stats(p.w, p.device).left_open[GP_WHY_SELF] > 0);
	world_free(p.w);
}

/* Three priorities: the hardware keeps one lower context aside, so the lowest is held out while the middle one has
 * work. */
static void self_switching_holds_the_lowest_out(void **state)
{
	uint32_t lower_max;

	for (lower_max = 1; lower_max <= 2; lower_max++) {
		struct pair p = pair_new((struct world_setup){
			.attr = { .unit = GP_UNIT_PROCESS, .switch_ns = 200 * US, .lower_max = lower_max } });
		uint32_t middle = world_solo(p.w, p.device, GP_PRIORITY_NORMAL), plans;

		world_run(p.w, 1 * MS);
		assert_true(world_is_open(p.w, p.low));
		world_write(p.w, middle, 1000);
		world_run(p.w, 1 * MS);
		assert_true(world_is_open(p.w, middle));
		assert_false(world_is_open(p.w, p.low));
		plans = p.w->plan_count;
		world_run(p.w, 100 * MS);
		world_write(p.w, p.high, 1);
		world_run(p.w, 100 * MS);
		assert_true(world_is_open(p.w, middle)); /* aside by itself */
		assert_false(world_is_open(p.w, p.low));
		world_drain(p.w, p.high);
		world_run(p.w, 100 * MS);
		assert_int_equal(p.w->plan_count, plans); /* nothing to change, so nothing was ordered */
		world_drain(p.w, middle);
		world_run(p.w, 1 * MS);
		assert_true(world_is_open(p.w, p.low));
		world_free(p.w);
	}
}

/* The middle one stays open while it is idle and the lowest has the turn: the device brings it in by itself, and then
 * the lowest is held out. One that is as low as the holder does not: the two would fight. */
static void self_switching_idle_middle_stays_open(void **state)
{
	struct pair p = pair_new(
		(struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS, .switch_ns = 200 * US, .lower_max = 1 } });
	uint32_t middle = world_solo(p.w, p.device, GP_PRIORITY_NORMAL);
	uint32_t other = world_solo(p.w, p.device, GP_PRIORITY_LOW), i;

	for (i = 0; i < 5; i++) {
		world_write(p.w, middle, 1);
		world_run(p.w, 2 * MS);
		assert_true(world_is_open(p.w, middle));
		assert_false(world_is_open(p.w, p.low));
		world_drain(p.w, middle);
		world_run(p.w, 8 * MS);
		assert_true(world_is_open(p.w, middle));
		assert_true(world_is_open(p.w, p.low));
		assert_false(world_is_open(p.w, other));
		/* Nor does the urgent one close it. */
		world_write(p.w, p.high, 1);
		world_run(p.w, 2 * MS);
		assert_true(world_is_open(p.w, middle));
		world_drain(p.w, p.high);
		world_run(p.w, 2 * MS);
	}
	assert_null(world_last_order(p.w, middle, 0));
	world_free(p.w);
}

/* A hint on a self-switching device asks it to switch, in a plan that changes no gate. */
static void self_switching_hint_announces(void **state)
{
	struct pair p = pair_new(
		(struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS, .switch_ns = 200 * US, .lower_max = 1 } });

	hint(&p, p.high, 1 * MS);
	world_run(p.w, 700 * US);
	assert_int_equal(p.w->announce_count, 0);
	world_run(p.w, 200 * US);
	assert_int_equal(p.w->announce_count, 1);
	assert_int_equal(p.w->announced.index, p.w->queues[p.high].id.index);
	assert_int_equal(p.w->announced.generation, p.w->queues[p.high].id.generation);
	assert_int_equal(p.w->plan_count, 0);
	world_run(p.w, 100 * MS);
	assert_int_equal(p.w->announce_count, 1);
	world_free(p.w);
}

/* Nothing is announced for a queue that went away, or on a stopped device. */
static void nothing_is_announced_in_vain(void **state)
{
	struct pair p = pair_new(
		(struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS, .switch_ns = 200 * US, .lower_max = 1 } });

	hint(&p, p.high, 1 * MS);
	assert_int_equal(gp_sched_device_stop(p.w->sched, p.device, p.w->now_ns), 0);
	world_run(p.w, 10 * MS);
	assert_int_equal(p.w->announce_count, 0);
	assert_int_equal(gp_sched_device_start(p.w->sched, p.device, p.w->now_ns), 0);
	world_run(p.w, 10 * MS);
	hint(&p, p.high, 1 * MS);
	world_remove(p.w, p.high);
	world_run(p.w, 10 * MS);
	assert_int_equal(p.w->announce_count, 0);
	world_free(p.w);
}

/* The urgent one's work at time zero and hints at time zero count: zero is a time like any other. */
static void time_zero_is_a_time(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } }), high, low;

	w->now_ns = 0;
	high = world_solo(w, device, GP_PRIORITY_HIGH);
	low = world_solo(w, device, GP_PRIORITY_LOW);
	world_write(w, low, 1000);
	assert_int_equal(gp_sched_hint(w->sched, w->queues[high].id, 0, 0), 0);
	world_run(w, 1 * MS);
	assert_false(world_is_open(w, low));
	world_run(w, 10 * MS);
	assert_true(world_is_open(w, low));
	world_free(w);
}

/* Announced work is due on one device at the moment when the other one's plan could let the gang open: it does not open
 * for a moment below that work. It opens when the work that was announced does not come. */
static void gang_does_not_open_below_announced_work(void **state)
{
	uint32_t i, k, first;

	(void)state;
	for (i = 0; i < 2; i++) {
		const struct world_setup setup = { .attr = { .unit = GP_UNIT_PROCESS },
						   .param = { .hint_grace_ns = 5 * MS } };
		struct world *w = world_new();
		uint32_t client = world_client(w), high[2], gang[2];

		for (k = 0; k < 2; k++)
			high[k] = world_solo(w, world_device(w, setup), GP_PRIORITY_HIGH);
		for (k = 0; k < 2; k++)
			gang[k] = world_queue_attr(w, client, k,
						   (struct gp_queue_attr){ .priority = GP_PRIORITY_NORMAL, .gang = 7 });
		for (k = 0; k < 2; k++)
			world_write(w, gang[k], 1000);
		for (k = 0; k < 2; k++)
			world_write(w, high[k], 1);
		world_run(w, 10 * MS);
		assert_false(world_is_open(w, gang[0]) || world_is_open(w, gang[1]));
		world_drain(w, high[1 - i]);
		world_run(w, 10 * MS);
		assert_int_equal(gp_sched_hint(w->sched, w->queues[high[1 - i]].id, 10 * MS, w->now_ns), 0);
		world_skip(w, 10 * MS);
		first = w->order_count;
		world_drain(w, high[i]);
		world_run(w, 4 * MS);
		assert_null(world_last_order(w, gang[0], first));
		assert_null(world_last_order(w, gang[1], first));
		world_run(w, 10 * MS);
		assert_true(world_is_open(w, gang[0]) && world_is_open(w, gang[1]));
		world_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hint_closes_before_arrival),
		cmocka_unit_test(missed_hint_reopens),
		cmocka_unit_test(hint_of_now_acts_now),
		cmocka_unit_test(hint_of_the_lower_waits),
		cmocka_unit_test(announced_work_comes_in_doubt),
		cmocka_unit_test(self_switching_holder_stays_open),
		cmocka_unit_test(self_switching_holds_the_lowest_out),
		cmocka_unit_test(self_switching_idle_middle_stays_open),
		cmocka_unit_test(self_switching_hint_announces),
		cmocka_unit_test(nothing_is_announced_in_vain),
		cmocka_unit_test(time_zero_is_a_time),
		cmocka_unit_test(gang_does_not_open_below_announced_work),
	};

	return cmocka_run_group_tests_name("core_hints", tests, NULL, NULL);
}
