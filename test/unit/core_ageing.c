/* SPDX-License-Identifier: MIT */
/* The starvation bound and the preemption budget, and which of them goes first. */
#include "test/unit/core_world.h"

#define LOWS 6u

/* The longest any busy queue waited with its gate closed, by the world's own record, while the world runs in small
 * steps. */
struct watch {
	struct world *w;
	uint64_t worst_ns;
};

static void watch_run(struct watch *watch, uint64_t duration_ns, uint64_t step_ns)
{
	struct world *w = watch->w;
	uint64_t end_ns = w->now_ns + duration_ns;
	uint32_t i;

	while (w->now_ns < end_ns) {
		world_run(w, step_ns);
		for (i = 0; i < w->queue_count; i++) /* who is let run gets somewhere */
			if (w->queues[i].open && w->queues[i].written > w->queues[i].completed)
				world_complete(w, i, 1);
		for (i = 0; i < w->queue_count; i++) {
			const struct world_queue *q = &w->queues[i];

			if (!q->open && q->written > q->completed && w->now_ns - q->closed_since_ns > watch->worst_ns)
				watch->worst_ns = w->now_ns - q->closed_since_ns;
		}
	}
}

static struct world *starving_new(struct world_setup setup, uint32_t lows, uint32_t *ret_device)
{
	struct world *w = world_new();
	uint32_t i;

	*ret_device = world_device(w, setup);
	world_write(w, world_solo(w, *ret_device, GP_PRIORITY_HIGH), 1u << 30);
	for (i = 0; i < lows; i++)
		world_write(w, world_solo(w, *ret_device, GP_PRIORITY_LOW), 1u << 30);
	world_settle(w);
	return w;
}

/* Under an urgent queue that never drains a lower one gets its aged turn in every window, and no more. */
static void starved_queue_gets_its_turn_in_each_window(void **state)
{
	uint32_t device;
	struct world *w =
		starving_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS },
						   .param = { .age_window_ns = 100 * MS, .age_turn_ns = 5 * MS } },
			     1, &device);
	struct watch watch = { .w = w };

	world_run(w, 99 * MS);
	assert_false(world_is_open(w, 1));
	world_run(w, 2 * MS);
	assert_true(world_is_open(w, 1));
	assert_int_equal(world_last_order(w, 1, 0)->why, GP_WHY_AGED);
	assert_true(world_is_open(w, 0)); /* the urgent one is not closed for it */
	world_run(w, 5 * MS);
	assert_false(world_is_open(w, 1));
	watch_run(&watch, 10 * S, 1 * MS);
	assert_in_range(w->queues[1].open_ns, 400 * MS, 560 * MS); /* 5 of 105 ms */
	assert_in_range(world_stats(w, device).aged, 90, 100);
	world_free(w);
}

/* Several starved clients: each waits no longer than the stated bound, for units, budgets and costs that make it tight.
 */
static void worst_wait_is_within_the_bound(void **state)
{
	static const struct {
		struct world_setup setup;
		uint64_t ack_ns;
	} cases[] = {
		{ { .attr = { .unit = GP_UNIT_PROCESS }, .param = { .age_window_ns = 50 * MS } }, 0 },
		{ { .attr = { .unit = GP_UNIT_PROCESS }, .param = { .age_window_ns = 50 * MS } }, 300 * US },
		{ { .attr = { .unit = GP_UNIT_DEVICE },
		    .param = { .age_window_ns = 100 * MS, .age_turn_ns = 10 * MS } },
		  150 * US },
		{ { .attr = { .unit = GP_UNIT_QUEUE }, .param = { .age_window_ns = 20 * MS, .age_turn_ns = 5 * MS } },
		  150 * US },
		/* Six turns of 5 ms do not fit into a window of 10 ms: all must still be served in their order. */
		{ { .attr = { .unit = GP_UNIT_PROCESS }, .param = { .age_window_ns = 10 * MS, .age_turn_ns = 5 * MS } },
		  150 * US },
		/* A budget so small that each aged turn has to wait for it. */
		{ { .attr = { .unit = GP_UNIT_PROCESS },
		    .param = { .age_window_ns = 50 * MS, .age_turn_ns = 5 * MS, .overhead_permille = 10, .burst = 1 } },
		  150 * US },
		{ { .attr = { .unit = GP_UNIT_PROCESS, .slot_count = 2 }, .param = { .age_window_ns = 50 * MS } },
		  150 * US },
		{ { .attr = { .unit = GP_UNIT_PROCESS, .process_count_max = 2, .process_parking = true },
		    .param = { .age_window_ns = 50 * MS } },
		  150 * US },
	};
	uint32_t i, j;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct watch watch = { 0 };
		uint32_t device;
		uint64_t bound_ns;

		watch.w = starving_new(cases[i].setup, LOWS, &device);
		watch.w->ack_delay_ns = cases[i].ack_ns;
		bound_ns = gp_sched_starvation_bound_ns(watch.w->sched, device);
		watch_run(&watch, 10 * bound_ns, 500 * US);
		if (watch.worst_ns > bound_ns)
			fail_msg("case %u: waited %llu us, bound %llu us", i, (unsigned long long)(watch.worst_ns / US),
				 (unsigned long long)(bound_ns / US));
		for (j = 1; j <= LOWS; j++) /* a stated share: an aged turn in each such stretch */
			if (watch.w->queues[j].open_ns <
			    8 * (cases[i].setup.param.age_turn_ns ? cases[i].setup.param.age_turn_ns : 5 * MS))
				fail_msg("case %u: queue %u ran for %llu us only", i, j,
					 (unsigned long long)(watch.w->queues[j].open_ns / US));
		world_free(watch.w);
	}
}

/* What a gate needs to close is no time that its queue was given: many short openings with slow closes do not put the
 * aged turn off. */
static void time_to_close_is_not_time_open(void **state)
{
	uint32_t device;
	struct world *w =
		starving_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS },
						   .param = { .age_window_ns = 100 * MS, .age_turn_ns = 5 * MS } },
			     1, &device);
	uint64_t closed_ns = w->now_ns;

	world_run(w, 50 * MS);
	world_drain(w, 0);
	world_run(w, 1 * MS);
	assert_true(world_is_open(w, 1));
	w->ack_delay_ns = 6 * MS;
	world_write(w, 0, 1u << 30);
	world_settle(w);
	world_run(w, 6 * MS);
	assert_false(world_is_open(w, 1));
	w->ack_delay_ns = 0;
	world_run(w, closed_ns + 101 * MS - w->now_ns);
	assert_true(world_is_open(w, 1));
	assert_int_equal(world_last_order(w, 1, 0)->why, GP_WHY_AGED);
	world_free(w);
}

/* One that gets its share between the urgent one's requests does not grow old. */
static void served_queue_does_not_age(void **state)
{
	uint32_t device, i;
	struct world *w = starving_new(
		(struct world_setup){
			.attr = { .unit = GP_UNIT_PROCESS },
			.param = { .age_window_ns = 100 * MS, .age_turn_ns = 5 * MS, .overhead_permille = 1000 } },
		1, &device);

	world_drain(w, 0);
	for (i = 0; i < 200; i++) {
		world_write(w, 0, 1);
		world_run(w, 8 * MS);
		world_drain(w, 0);
		world_run(w, 2 * MS);
	}
	assert_int_equal(world_stats(w, device).aged, 0);
	assert_int_equal(world_stats(w, device).left_open[GP_WHY_AGED], 0);
	world_free(w);
}

/* A queue that went idle while it waited is owed nothing. */
static void idle_queue_does_not_age(void **state)
{
	uint32_t device;
	struct world *w = starving_new(
		(struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS }, .param = { .age_window_ns = 100 * MS } }, 1,
		&device);

	world_run(w, 50 * MS);
	/* The application took its work back: the counters say so though the gate is closed. */
	assert_int_equal(
		gp_sched_sample(w->sched, w->queues[1].id, w->queues[1].written, w->queues[1].written, w->now_ns), 0);
	w->queues[1].completed = w->queues[1].written;
	world_run(w, 1 * S);
	assert_int_equal(world_stats(w, device).aged, 0);
	assert_true(gp_sched_deadline_ns(w->sched) == GP_NEVER_NS);
	world_free(w);
}

/* The first aged turn is beside the urgent queue. If nothing was completed in it, the urgent queue yields for the next
 * one, and is back as soon as that is over or its work is done. */
static void aged_turn_in_vain_makes_others_yield(void **state)
{
	struct gp_trace_event event;
	uint32_t device, i;
	struct world *w = starving_new(
		(struct world_setup){
			.attr = { .unit = GP_UNIT_PROCESS },
			.param = { .age_window_ns = 100 * MS, .age_turn_ns = 5 * MS, .overhead_permille = 1000 } },
		1, &device);

	for (i = 0; i < 150 && !world_is_open(w, 1); i++)
		world_run(w, 1 * MS);
	assert_true(world_is_open(w, 1) && world_is_open(w, 0));
	world_run(w, 10 * MS);
	assert_true(!world_is_open(w, 1) && world_is_open(w, 0));
	for (i = 0; i < 150 && !world_is_open(w, 1); i++)
		world_run(w, 1 * MS);
	assert_true(world_is_open(w, 1));
	assert_false(world_is_open(w, 0));
	assert_int_equal(world_last_order(w, 0, 0)->why, GP_WHY_YIELD);
	world_run(w, 10 * MS);
	assert_true(!world_is_open(w, 1) && world_is_open(w, 0));
	/* Nothing again: it waits twice as long. */
	assert_int_equal(world_trace(w, GP_TRACE_BACK_OFF, 1, &event), 1);
	assert_int_equal(event.value, 200 * MS);
	assert_int_equal(event.why, GP_WHY_VAIN);
	world_run(w, 150 * MS);
	assert_false(world_is_open(w, 1));
	for (i = 0; i < 150 && !world_is_open(w, 1); i++)
		world_run(w, 1 * MS);
	assert_true(world_is_open(w, 1) && !world_is_open(w, 0));
	world_complete(w, 1, 1); /* it got somewhere: next time it runs beside the other again */
	world_run(w, 10 * MS);
	for (i = 0; i < 150 && !world_is_open(w, 1); i++)
		world_run(w, 1 * MS);
	assert_true(world_is_open(w, 1) && world_is_open(w, 0));
	world_free(w);
}

/* That the others yield may use the budget up. The aged client's gates open all the same, and at once: put aside they
 * are in one transaction, and one that opened late would have lost the rest of its turn. */
static void aged_client_opens_as_a_whole(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS },
								.param = { .age_window_ns = 100 * MS,
									   .age_turn_ns = 5 * MS,
									   .overhead_permille = 20,
									   .burst = 1,
									   .age_permille = 1000 } });
	uint32_t high = world_solo(w, device, GP_PRIORITY_HIGH), client = world_client(w), lows[2], i;

	world_write(w, high, 1u << 30);
	for (i = 0; i < 2; i++) {
		lows[i] = world_queue(w, client, device, GP_PRIORITY_LOW);
		world_write(w, lows[i], 1u << 30);
	}
	world_settle(w);
	for (i = 0; i < 1000 && world_is_open(w, high); i++)
		world_run(w, 1 * MS);
	assert_int_equal(world_last_order(w, high, 0)->why, GP_WHY_YIELD);
	assert_true(world_is_open(w, lows[0]) && world_is_open(w, lows[1]));
	world_free(w);
}

/* The order that opens the aged gate fails. When it was mended, the queue is closed as any other: nobody yields to it
 * for the rest of the turn. */
static void turn_whose_order_failed_is_over(void **state)
{
	uint32_t device, i, orders;
	struct world *w = starving_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS },
							     .param = { .age_window_ns = 100 * MS,
									.age_turn_ns = 50 * MS,
									.overhead_permille = 1000,
									.age_permille = 1000 } },
				       1, &device);

	for (i = 0; i < 150 && !world_is_open(w, 1); i++)
		world_run(w, 1 * MS);
	world_run(w, 60 * MS); /* in vain */
	assert_true(!world_is_open(w, 1) && world_is_open(w, 0));
	w->queues[1].open_result = -EINVAL;
	orders = w->order_count;
	for (i = 0; i < 2000 && world_is_open(w, 0); i++)
		world_run(w, 100 * US);
	assert_int_equal(world_last_order(w, 0, orders)->why, GP_WHY_YIELD);
	assert_int_equal(world_gate(w, 1), GP_GATE_UNKNOWN);
	w->queues[1].open_result = 0;
	for (i = 0; i < 100 && world_gate(w, 1) != GP_GATE_CLOSED; i++)
		world_run(w, 100 * US);
	assert_int_equal(world_gate(w, 1), GP_GATE_CLOSED);
	world_run(w, 1 * MS);
	assert_true(world_is_open(w, 0));
	world_free(w);
}

/* That the other yields uses the budget up, and the order for the first of two aged gates fails. The turn is over: the
 * second gate does not have it when the budget is there again, but waits for the next one. */
static void turn_whose_order_failed_does_not_wait_for_the_budget(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_QUEUE },
								.param = { .age_window_ns = 100 * MS,
									   .age_turn_ns = 5 * MS,
									   .overhead_permille = 10,
									   .burst = 1,
									   .age_permille = 1000 } });
	uint32_t high = world_solo(w, device, GP_PRIORITY_HIGH), client = world_client(w), lows[2], i, orders;
	uint64_t from_ns;

	world_write(w, high, 1u << 30);
	for (i = 0; i < 2; i++) {
		lows[i] = world_queue(w, client, device, GP_PRIORITY_LOW);
		world_write(w, lows[i], 1u << 30);
	}
	world_settle(w);
	for (i = 0; i < 3000 && !world_is_open(w, lows[0]); i++)
		world_run(w, 100 * US);
	for (i = 0; i < 3000 && (world_is_open(w, lows[0]) || world_is_open(w, lows[1])); i++) /* in vain */
		world_run(w, 100 * US);
	assert_true(world_is_open(w, high) && !world_is_open(w, lows[0]) && !world_is_open(w, lows[1]));
	w->queues[lows[0]].open_result = w->queues[lows[1]].open_result = -EINVAL;
	orders = w->order_count;
	for (i = 0; i < 3000 && w->order_count == orders; i++)
		world_run(w, 100 * US);
	from_ns = w->now_ns;
	assert_int_equal(w->orders[orders].why, GP_WHY_YIELD);
	assert_true((world_gate(w, lows[0]) == GP_GATE_UNKNOWN) != (world_gate(w, lows[1]) == GP_GATE_UNKNOWN));
	w->queues[lows[0]].open_result = w->queues[lows[1]].open_result = 0;
	world_run(w, 1 * MS);
	assert_true(world_is_open(w, high));
	orders = w->order_count;
	while (w->now_ns < from_ns + 99 * MS) {
		world_run(w, 1 * MS);
		for (i = orders; i < w->order_count; i++)
			assert_int_not_equal(w->orders[i].why, GP_WHY_AGED);
	}
	for (i = 0; i < 1000 && world_is_open(w, high); i++) /* but then */
		world_run(w, 1 * MS);
	assert_int_equal(world_last_order(w, high, orders)->why, GP_WHY_YIELD);
	world_free(w);
}

/* The seat whose aged turn it is goes away: the next one is served. */
static void aged_client_that_dies_makes_room(void **state)
{
	uint32_t device;
	struct world *w = starving_new(
		(struct world_setup){
			.attr = { .unit = GP_UNIT_PROCESS },
			.param = { .age_window_ns = 100 * MS, .age_turn_ns = 50 * MS, .age_permille = 1000 } },
		2, &device);
	uint32_t aged;

	world_run(w, 110 * MS);
	aged = world_is_open(w, 1) ? 1 : 2;
	assert_true(world_is_open(w, aged));
	assert_false(world_is_open(w, 3 - aged));
	world_remove_client(w, w->queues[aged].client);
	world_run(w, 50 * MS);
	assert_true(w->queues[3 - aged].open_ns > 0);
	world_free(w);
}

/* The budget bounds preemptions whatever the arrivals do: 10 % of the device at 300 us each is 333 a second, after the
 * first burst. */
static void preemptions_are_limited(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(
		w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS },
					 .param = { .overhead_permille = 100, .burst = 4, .min_open_ns = 1 } });
	uint32_t high = world_solo(w, device, GP_PRIORITY_HIGH), low = world_solo(w, device, GP_PRIORITY_LOW), i;
	struct gp_stats stats;

	world_write(w, low, 1u << 30);
	for (i = 0; i < 2000; i++) { /* one second of arrivals every half millisecond, far too many */
		world_write(w, high, 1);
		world_run(w, 20 * US);
		world_drain(w, high);
		/* An odd gap now and then, so that no linger is learned that would hide the limit. */
		world_run(w, 480 * US);
	}
	stats = world_stats(w, device);
	assert_true(stats.preemptions <= 4 + 334);
	assert_true(stats.transactions * 150 * US <= 1 * S / 10 + 4 * 300 * US + 300 * US);
	world_free(w);
}

/* Frequent looks must not eat the budget's refill: at one permille and a look every 700 ns it still fills. */
static void budget_fills_however_often_one_looks(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(
		w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS, .close_ns = 1 * US, .open_ns = 1 * US },
					 .param = { .overhead_permille = 1, .burst = 1, .linger_max_ns = 1 } });
	uint32_t high = world_solo(w, device, GP_PRIORITY_HIGH), low = world_solo(w, device, GP_PRIORITY_LOW), i;
	uint32_t other = world_solo(w, device, GP_PRIORITY_IDLE);

	world_write(w, low, 1u << 30);
	world_write(w, high, 1);
	world_settle(w);
	assert_false(world_is_open(w, low));
	world_drain(w, high);
	for (i = 0; i < 8000; i++) { /* 5.6 ms; the 4 us for two clients are there after 4 ms */
		world_skip(w, 700);
		/* An event each time, so that the core looks each time. */
		assert_int_equal(gp_sched_edge(w->sched, w->queues[other].id, i % 2 == 0, w->now_ns), 0);
		world_settle(w);
	}
	assert_true(world_is_open(w, low));
	world_free(w);
}

/* A used-up budget leaves the lower queue open and says why; the batch side is not opened again before a cycle can be
 * paid. */
static void used_up_budget_leaves_open_then_keeps_closed(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(
		w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS },
					 .param = { .overhead_permille = 10, .burst = 1, .linger_max_ns = 1 } });
	uint32_t high = world_solo(w, device, GP_PRIORITY_HIGH), low = world_solo(w, device, GP_PRIORITY_LOW);

	world_write(w, low, 1u << 30);
	world_write(w, high, 1);
	world_run(w, 1 * MS);
	assert_false(world_is_open(w, low)); /* the one preemption the bucket held */
	world_drain(w, high);
	world_run(w, 1 * MS);
	assert_false(world_is_open(w, low)); /* 300 us at 1 % take 30 ms to save up */
	world_run(w, 27 * MS);
	assert_false(world_is_open(w, low));
	world_run(w, 2 * MS);
	assert_true(world_is_open(w, low));
	world_write(w, high, 1);
	world_run(w, 1 * MS);
	assert_false(world_is_open(w, low)); /* it was saved for this */
	world_free(w);
}

/* Lower gates that were never closed are left open when the budget is used up by others. */
static void used_up_budget_is_the_reason(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(
		w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS },
					 .param = { .overhead_permille = 10, .burst = 1, .batch_clients = 2 } });
	uint32_t high = world_solo(w, device, GP_PRIORITY_HIGH), low = world_solo(w, device, GP_PRIORITY_LOW), other;

	world_write(w, low, 1u << 30);
	world_write(w, high, 1u << 30);
	world_run(w, 1 * MS);
	other = world_solo(w, device, GP_PRIORITY_LOW); /* born open, and the bucket is empty */
	world_write(w, other, 1u << 30);
	world_run(w, 1 * MS);
	assert_true(world_is_open(w, other));
	assert_int_equal(world_stats(w, device).left_open[GP_WHY_RATE], 1);
	world_run(w, 30 * MS);
	assert_false(world_is_open(w, other));
	world_free(w);
}

/* Precedence: the rate limit goes before the starvation bound (an aged turn waits for the budget), that before
 * priority. */
static void rate_limit_precedes_ageing_precedes_priority(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS },
								.param = { .overhead_permille = 1,
									   .burst = 1,
									   .age_window_ns = 50 * MS,
									   .age_turn_ns = 5 * MS } });
	uint32_t high = world_solo(w, device, GP_PRIORITY_HIGH), low = world_solo(w, device, GP_PRIORITY_LOW);
	uint64_t bound_ns = gp_sched_starvation_bound_ns(w->sched, device);

	world_write(w, high, 1u << 30);
	world_write(w, low, 1u << 30);
	world_run(w, 100 * MS);
	assert_false(world_is_open(w, low)); /* aged, but 300 us at 0.1 % take 300 ms */
	world_run(w, 195 * MS);
	assert_false(world_is_open(w, low));
	world_run(w, 9 * MS);
	assert_true(world_is_open(w, low)); /* and then it has its turn, though high has work */
	assert_true(w->now_ns - 1 * S < bound_ns);
	world_free(w);
}

/* Where the device switches by itself an aged client has the turn alone. The holder keeps the turn until the budget can
 * pay for that: the aged client does not open in the turn that was taken for it. */
static void holder_keeps_its_turn_until_the_budget_can_pay(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS,
									  .switch_ns = 200 * US,
									  .lower_max = 1,
									  .short_ns = 1 * US,
									  .slice_ns = 2 * MS },
								.param = { .overhead_permille = 1,
									   .burst = 1,
									   .age_window_ns = 50 * MS,
									   .age_turn_ns = 5 * MS } });
	uint32_t high = world_solo(w, device, GP_PRIORITY_HIGH), mid = world_solo(w, device, GP_PRIORITY_NORMAL);
	uint32_t low = world_solo(w, device, GP_PRIORITY_LOW), first;

	(void)state;
	world_write(w, mid, 1u << 30);
	world_write(w, low, 1u << 30);
	world_write(w, high, 1u << 30);
	world_run(w, 10 * MS);
	assert_true(world_is_open(w, mid) && !world_is_open(w, low)); /* that close took what the budget had */
	first = w->order_count;
	world_run(w, 190 * MS);
	assert_int_equal(w->order_count, first); /* 300 us at 0.1 % take 300 ms */
	world_run(w, 110 * MS);
	assert_non_null(world_last_order(w, mid, first));
	assert_non_null(world_last_order(w, low, first));
	assert_int_equal(w->orders[first].queue, mid); /* first the holder closes, then the aged one opens */
	assert_int_equal(w->orders[first + 1].queue, low);
	assert_int_equal(w->orders[first + 1].why, GP_WHY_AGED);
	world_run(w, 10 * MS);
	assert_true(world_is_open(w, mid) && !world_is_open(w, low));
	world_free(w);
}

/* One client of a user leaves the orders of its aged turns unanswered for long, so none of them counts as one. It does
 * not have all the turns of its user: another one that is due goes before it. */
static void late_client_does_not_keep_the_turns_of_its_user(void **state)
{
	struct world *w = world_new();
	uint32_t device =
		world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS, .ack_timeout_ns = 40 * MS },
						      .param = { .age_window_ns = 50 * MS, .age_turn_ns = 5 * MS } });
	const struct gp_plan *plan = &w->devices[device].plan;
	uint32_t late = world_queue(w, world_client_of(w, 7), device, GP_PRIORITY_LOW);
	uint32_t prompt = world_queue(w, world_client_of(w, 7), device, GP_PRIORITY_LOW), i;
	uint64_t late_ns = 0, opened = 0;
	struct gp_plan unanswered;

	(void)state;
	world_write(w, world_solo(w, device, GP_PRIORITY_HIGH), 1u << 30);
	world_write(w, late, 1u << 30);
	world_run(w, 2 * MS);
	world_write(w, prompt, 1u << 30);
	world_run(w, 2 * MS);
	assert_true(!world_is_open(w, late) && !world_is_open(w, prompt));
	w->ack = WORLD_ACK_BY_HAND;
	for (i = 0; i < 1000; i++) {
		world_run(w, 1 * MS);
		if (world_is_open(w, prompt))
			world_complete(w, prompt, 1);
		if (late_ns && w->now_ns >= late_ns) {
			world_ack_order(w, &unanswered, &unanswered.open[0], true);
			late_ns = 0;
		}
		if (!w->devices[device].in_flight)
			continue;
		if (plan->open_count == 1 && plan->open[0].queue.index == w->queues[late].id.index) {
			assert_int_equal(plan->close_count, 0);
			unanswered = *plan;
			late_ns = w->now_ns + 30 * MS;
			w->devices[device].in_flight = false;
		} else {
			opened += plan->open_count == 1 && plan->open[0].queue.index == w->queues[prompt].id.index;
			world_ack(w, device);
		}
	}
	assert_true(opened >= 5);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starved_queue_gets_its_turn_in_each_window),
		cmocka_unit_test(worst_wait_is_within_the_bound),
		cmocka_unit_test(time_to_close_is_not_time_open),
		cmocka_unit_test(served_queue_does_not_age),
		cmocka_unit_test(idle_queue_does_not_age),
		cmocka_unit_test(aged_turn_in_vain_makes_others_yield),
		cmocka_unit_test(aged_client_opens_as_a_whole),
		cmocka_unit_test(turn_whose_order_failed_is_over),
		cmocka_unit_test(turn_whose_order_failed_does_not_wait_for_the_budget),
		cmocka_unit_test(aged_client_that_dies_makes_room),
		cmocka_unit_test(late_client_does_not_keep_the_turns_of_its_user),
		cmocka_unit_test(preemptions_are_limited),
		cmocka_unit_test(budget_fills_however_often_one_looks),
		cmocka_unit_test(used_up_budget_leaves_open_then_keeps_closed),
		cmocka_unit_test(used_up_budget_is_the_reason),
		cmocka_unit_test(rate_limit_precedes_ageing_precedes_priority),
		cmocka_unit_test(holder_keeps_its_turn_until_the_budget_can_pay),
	};

	return cmocka_run_group_tests_name("core_ageing", tests, NULL, NULL);
}
