/* SPDX-License-Identifier: MIT */
/* hpf and what a preemption costs: who is closed for whom, in how many transactions, and when closing is not worth it.
 */
#include "test/unit/core_world.h"

/* A device and two clients: high (80) with one queue, low (20) with one queue that is busy. */
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

/* The busy edge of the urgent queue closes the lower one; when it drained the lower one opens again. */
static void lower_closes_and_reopens(void **state)
{
	struct pair p = pair_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });
	const struct world_order *order;

	assert_int_equal(p.w->plan_count, 0);
	world_write(p.w, p.high, 1);
	world_settle(p.w);
	assert_false(world_is_open(p.w, p.low));
	assert_true(world_is_open(p.w, p.high));
	order = world_last_order(p.w, p.low, 0);
	assert_int_equal(order->why, GP_WHY_PRIORITY);
	assert_int_equal(order->transaction_count, 1);

	world_run(p.w, 10 * MS);
	assert_false(world_is_open(p.w, p.low));
	world_drain(p.w, p.high);
	world_settle(p.w);
	assert_true(world_is_open(p.w, p.low));
	assert_int_equal(p.w->plan_count, 2);
	assert_int_equal(world_stats(p.w, p.device).preemptions, 1);
	assert_int_equal(world_stats(p.w, p.device).closes, 1);
	assert_int_equal(world_stats(p.w, p.device).opens, 1);
	assert_int_equal(world_stats(p.w, p.device).transactions, 2);
	world_free(p.w);
}

/* While nothing has to change, no plan is made and no deadline is set, whatever is sampled. */
static void nothing_to_do_means_no_plan(void **state)
{
	struct pair p = pair_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });
	struct gp_plan *plan = malloc(sizeof(*plan));
	uint32_t i;

	world_write(p.w, p.high, 1000);
	world_settle(p.w);
	assert_int_equal(p.w->plan_count, 1);
	for (i = 0; i < 100; i++) {
		world_skip(p.w, 10 * US);
		world_complete(p.w, p.high, 1);
		assert_false(gp_sched_plan(p.w->sched, p.w->now_ns, plan));
		assert_int_equal(gp_sched_sample(p.w->sched, p.w->queues[p.high].id, p.w->queues[p.high].written,
						 p.w->queues[p.high].completed, p.w->now_ns),
				 0);
		assert_false(gp_sched_plan(p.w->sched, p.w->now_ns, plan));
	}
	free(plan);
	world_free(p.w);
}

/* An idle device with idle queues sleeps: the deadline is never. */
static void idle_world_sleeps(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });

	world_solo(w, device, GP_PRIORITY_HIGH);
	world_solo(w, device, GP_PRIORITY_LOW);
	world_settle(w);
	assert_true(gp_sched_deadline_ns(w->sched) == GP_NEVER_NS);
	assert_int_equal(w->plan_count, 0);
	world_free(w);
}

/* No late starters: idle lower gates close in the same plan as busy ones, and say that they were idle. */
static void idle_lower_gates_close_in_the_same_plan(void **state)
{
	struct pair p =
		pair_new((struct world_setup){ .attr = { .unit = GP_UNIT_DEVICE }, .param = { .batch_clients = 4 } });
	uint32_t idle = world_queue(p.w, p.w->queues[p.low].client, p.device, GP_PRIORITY_LOW);
	uint32_t other = world_solo(p.w, p.device, GP_PRIORITY_NORMAL);

	world_settle(p.w);
	world_write(p.w, p.high, 1);
	world_settle(p.w);
	assert_int_equal(p.w->plan_count, 1);
	assert_int_equal(world_last_order(p.w, p.low, 0)->why, GP_WHY_PRIORITY);
	assert_int_equal(world_last_order(p.w, idle, 0)->why, GP_WHY_IDLE);
	assert_int_equal(world_last_order(p.w, other, 0)->why, GP_WHY_IDLE);
	assert_int_equal(world_stats(p.w, p.device).preemptions, 1); /* only one of them had work */
	assert_int_equal(world_info(p.w, p.low).preemptions, 1);
	assert_int_equal(world_info(p.w, idle).preemptions, 0);
	assert_int_equal(world_info(p.w, other).preemptions, 0);
	/* Work that arrives at a closed gate waits until the urgent queue is done. */
	world_write(p.w, other, 1);
	world_run(p.w, 5 * MS);
	assert_false(world_is_open(p.w, other));
	world_drain(p.w, p.high);
	world_settle(p.w);
	assert_true(world_is_open(p.w, other));
	assert_false(world_is_open(p.w, p.low)); /* now held by the middle one */
	world_free(p.w);
}

/* What one plan over two clients with two queues each costs, by unit. */
static void transactions_follow_the_unit(void **state)
{
	static const struct {
		enum gp_unit unit;
		uint32_t closing;
	} cases[] = {
		{ GP_UNIT_DEVICE, 1 },
		{ GP_UNIT_PROCESS, 2 },
		{ GP_UNIT_QUEUE, 4 },
	};
	uint32_t i, j;

	for (i = 0; i < 3; i++) {
		struct world *w = world_new();
		uint32_t device = world_device(
			w, (struct world_setup){ .attr = { .unit = cases[i].unit }, .param = { .batch_clients = 2 } });
		uint32_t high = world_solo(w, device, GP_PRIORITY_HIGH);
		uint32_t a = world_client(w), b = world_client(w), low[4];

		for (j = 0; j < 4; j++) {
			low[j] = world_queue(w, j < 2 ? a : b, device, GP_PRIORITY_LOW);
			world_write(w, low[j], 1000000);
		}
		world_settle(w);
		world_write(w, high, 1);
		world_settle(w);
		assert_int_equal(w->plan_count, 1);
		assert_int_equal(w->orders[0].transaction_count, cases[i].closing);
		assert_int_equal(world_stats(w, device).transactions, cases[i].closing);
		world_free(w);
	}
}

/* With the device as unit a turn ends and the next begins in one plan of one transaction. */
static void stop_and_start_share_a_transaction(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(
		w, (struct world_setup){ .attr = { .unit = GP_UNIT_DEVICE }, .param = { .batch_clients = 1 } });
	uint32_t a, b, first;

	world_solo(w, device, GP_PRIORITY_HIGH);
	a = world_solo(w, device, GP_PRIORITY_LOW);
	b = world_solo(w, device, GP_PRIORITY_LOW);
	world_write(w, a, 1000000);
	world_write(w, b, 1000000);
	world_settle(w);
	assert_true(world_is_open(w, a));
	assert_false(world_is_open(w, b));
	first = w->order_count;
	world_run(w, 41 * MS);
	assert_false(world_is_open(w, a));
	assert_true(world_is_open(w, b));
	assert_int_equal(w->order_count - first, 2);
	assert_true(w->orders[first].seq == w->orders[first + 1].seq);
	assert_int_equal(w->orders[first].transaction_count, 1);
	world_free(w);
}

/* Packets of 60 us. Two are left: 120 us, less than the 150 us of a transaction. */
static struct pair pair_with_short_rest(void)
{
	struct pair p = pair_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });
	uint32_t i;

	world_skip(p.w, 60 * US);
	world_complete(p.w, p.low, 1000000 - 50);
	for (i = 0; i < 48; i++) {
		world_skip(p.w, 60 * US);
		world_complete(p.w, p.low, 1);
	}
	world_settle(p.w);
	return p;
}

/* A lower queue whose rest is shorter than a transaction is left alone, with its reason; it is closed once the estimate
 * is overrun. */
static void short_rest_is_left_alone_once(void **state)
{
	struct pair p = pair_with_short_rest();

	world_write(p.w, p.high, 1);
	world_settle(p.w);
	assert_int_equal(p.w->plan_count, 0);
	assert_int_equal(world_stats(p.w, p.device).left_open[GP_WHY_SHORT], 1);
	assert_int_equal(world_trace(p.w, GP_TRACE_LEFT_OPEN, p.low, NULL), 1);
	world_run(p.w, 140 * US);
	assert_int_equal(p.w->plan_count, 0);
	world_run(p.w, 30 * US); /* 120 us and a quarter are over, and it still runs */
	assert_false(world_is_open(p.w, p.low));
	assert_int_equal(world_last_order(p.w, p.low, 0)->why, GP_WHY_PRIORITY);
	world_free(p.w);
}

/* The rest ended within the estimate and new work came before the hold was over: no order failed, so none is named. */
static void short_rest_that_comes_back_names_no_failure(void **state)
{
	struct pair p = pair_with_short_rest();

	world_write(p.w, p.high, 1);
	world_settle(p.w);
	assert_int_equal(world_stats(p.w, p.device).left_open[GP_WHY_SHORT], 1);
	world_skip(p.w, 60 * US);
	world_complete(p.w, p.low, 2);
	world_settle(p.w);
	world_write(p.w, p.low, 1);
	world_settle(p.w);
	assert_int_equal(world_stats(p.w, p.device).left_open[GP_WHY_FAILED], 0);
	world_free(p.w);
}

/* One that did end within the estimate is then closed as idle, or not at all if the urgent one ended too. */
static void short_rest_that_ends_costs_nothing(void **state)
{
	struct pair p = pair_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });
	uint32_t i;

	world_skip(p.w, 60 * US);
	world_complete(p.w, p.low, 1000000 - 50);
	for (i = 0; i < 49; i++) {
		world_skip(p.w, 60 * US);
		world_complete(p.w, p.low, 1);
	}
	world_write(p.w, p.high, 1);
	world_settle(p.w);
	world_run(p.w, 50 * US);
	world_drain(p.w, p.low);
	world_drain(p.w, p.high);
	world_run(p.w, 10 * MS);
	assert_int_equal(p.w->plan_count, 0);
	world_free(p.w);
}

/* A gate once opened stays open for min_open_ns, and closes right after. */
static void minimum_open_time_is_kept(void **state)
{
	struct pair p = pair_new(
		(struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS }, .param = { .min_open_ns = 2 * MS } });
	uint64_t opened_ns;

	world_write(p.w, p.high, 1);
	world_settle(p.w);
	assert_false(world_is_open(p.w, p.low)); /* it was born open: nothing to protect */
	world_run(p.w, 1 * MS);
	world_drain(p.w, p.high);
	world_settle(p.w);
	opened_ns = p.w->now_ns;
	assert_true(world_is_open(p.w, p.low));
	world_run(p.w, 500 * US);
	world_write(p.w, p.high, 1);
	world_settle(p.w);
	assert_true(world_is_open(p.w, p.low));
	assert_int_equal(world_stats(p.w, p.device).left_open[GP_WHY_MIN_OPEN], 1);
	world_run(p.w, 10 * MS);
	assert_false(world_is_open(p.w, p.low));
	assert_int_equal(p.w->queues[p.low].closed_since_ns - opened_ns, 2 * MS);
	world_free(p.w);
}

/* Teaches the urgent queue a rhythm: count bursts of packets inner_ns apart, outer_ns between bursts. */
static void teach(struct pair *p, uint32_t bursts, uint32_t per_burst, uint64_t inner_ns, uint64_t outer_ns)
{
	uint32_t i, j;

	for (i = 0; i < bursts; i++)
		for (j = 0; j < per_burst; j++) {
			world_write(p->w, p->high, 1);
			world_run(p->w, 300 * US);
			world_drain(p->w, p->high);
			world_run(p->w, j + 1 < per_burst ? inner_ns : outer_ns);
		}
}

/* Bursty arrivals: the lower gates stay closed over the gaps within a burst, and open after the burst. */
static void linger_is_learned_from_bursts(void **state)
{
	struct pair p = pair_new(
		(struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS }, .param = { .overhead_permille = 1000 } });
	uint64_t before;

	teach(&p, 8, 8, 100 * US, 50 * MS);
	before = world_stats(p.w, p.device).closes;
	world_write(p.w, p.high, 1);
	world_run(p.w, 300 * US);
	world_drain(p.w, p.high);
	world_settle(p.w);
	assert_in_range(world_info(p.w, p.high).linger_ns, 100 * US, 1 * MS);
	world_run(p.w, 100 * US);
	assert_false(world_is_open(p.w, p.low));
	teach(&p, 4, 8, 100 * US, 50 * MS);
	assert_in_range(world_stats(p.w, p.device).closes - before, 4, 5); /* one per burst */
	world_free(p.w);
}

/* Arrivals far apart, in no rhythm: waiting for the next would cost more than it saves, so there is no linger. */
static void rare_arrivals_do_not_linger(void **state)
{
	struct pair p = pair_new(
		(struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS }, .param = { .overhead_permille = 1000 } });
	uint64_t random = 12345;
	uint32_t i;

	for (i = 0; i < 64; i++) {
		/* Roughly exponential gaps around 20 ms: the number of trailing ones of a random word is geometric. */
		random = random * 6364136223846793005ull + 1442695040888963407ull;
		world_write(p.w, p.high, 1);
		world_run(p.w, 300 * US);
		world_drain(p.w, p.high);
		world_run(p.w, (uint64_t)(__builtin_ctzll(~(random >> 33)) + 1) * 10 * MS + (random >> 40) % (2 * MS));
	}
	world_write(p.w, p.high, 1);
	world_run(p.w, 300 * US);
	world_drain(p.w, p.high);
	world_settle(p.w);
	assert_int_equal(world_info(p.w, p.high).linger_ns, 0);
	assert_true(world_is_open(p.w, p.low));
	world_free(p.w);
}

/* Clients that share the top priority never close each other. */
static void equals_at_the_top_stay_open(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });
	uint32_t i;

	for (i = 0; i < 4; i++)
		world_write(w, world_solo(w, device, GP_PRIORITY_NORMAL), 100000);
	world_run(w, 500 * MS);
	assert_int_equal(w->plan_count, 0);
	for (i = 0; i < 4; i++)
		assert_true(world_is_open(w, i));
	world_free(w);
}

/* Changing priorities changes who waits: at once, in either direction. */
static void priority_changes_take_effect(void **state)
{
	struct pair p = pair_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });
	struct gp_queue_attr attr = { .priority = GP_PRIORITY_REALTIME };

	world_write(p.w, p.high, 1000);
	world_settle(p.w);
	assert_false(world_is_open(p.w, p.low));
	assert_int_equal(gp_sched_queue_set_attr(p.w->sched, p.w->queues[p.low].id, &attr, p.w->now_ns), 0);
	world_run(p.w, 1 * MS);
	assert_true(world_is_open(p.w, p.low));
	assert_false(world_is_open(p.w, p.high));
	attr.priority = GP_PRIORITY_HIGH;
	assert_int_equal(gp_sched_queue_set_attr(p.w->sched, p.w->queues[p.low].id, &attr, p.w->now_ns), 0);
	world_run(p.w, 1 * MS);
	assert_true(world_is_open(p.w, p.low));
	assert_true(world_is_open(p.w, p.high));
	world_free(p.w);
}

/* A queue lowered from the top takes a free turn as it is: it is not closed just to be opened again. */
static void lowered_queue_keeps_a_free_turn(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });
	uint32_t low;

	world_solo(w, device, GP_PRIORITY_HIGH);
	low = world_solo(w, device, GP_PRIORITY_HIGH);
	world_write(w, low, 1000);
	world_settle(w);
	assert_int_equal(gp_sched_queue_set_attr(w->sched, w->queues[low].id, &(struct gp_queue_attr){ .priority = 20 },
						 w->now_ns),
			 0);
	world_run(w, 100 * MS);
	assert_int_equal(w->plan_count, 0);
	world_free(w);
}

/* A new top makes the others take turns; the one that has work gets the turn, not an idle one that happened to come
 * first. */
static void new_top_leaves_the_busy_one_open(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });
	uint32_t i, busy;

	for (i = 0; i < 3; i++)
		world_solo(w, device, GP_PRIORITY_LOW);
	busy = world_solo(w, device, GP_PRIORITY_LOW);
	for (i = 0; i < 3; i++)
		world_solo(w, device, GP_PRIORITY_LOW);
	world_write(w, busy, 100000);
	world_settle(w);
	world_solo(w, device, GP_PRIORITY_HIGH);
	world_run(w, 10 * MS);
	assert_null(world_last_order(w, busy, 0));
	assert_true(world_is_open(w, busy));
	world_free(w);
}

/* When the urgent client dies its victims open again. */
static void removal_releases_the_lower(void **state)
{
	struct pair p = pair_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });

	world_write(p.w, p.high, 1000);
	world_settle(p.w);
	assert_false(world_is_open(p.w, p.low));
	world_remove_client(p.w, p.w->queues[p.high].client);
	world_settle(p.w);
	assert_true(world_is_open(p.w, p.low));
	world_free(p.w);
}

/* Idle gates of a client open in company with its busy one, since that transaction is paid for: but not where each gate
 * costs its own. */
static void company_opens_with_its_client(void **state)
{
	uint32_t unit;

	for (unit = GP_UNIT_DEVICE; unit <= GP_UNIT_QUEUE; unit++) {
		struct pair p = pair_new((struct world_setup){ .attr = { .unit = (enum gp_unit)unit } });
		uint32_t idle = world_queue(p.w, p.w->queues[p.low].client, p.device, GP_PRIORITY_LOW);

		world_write(p.w, p.high, 1);
		world_run(p.w, 1 * MS);
		assert_false(world_is_open(p.w, idle));
		world_drain(p.w, p.high);
		world_run(p.w, 1 * MS);
		assert_true(world_is_open(p.w, p.low));
		assert_int_equal(world_is_open(p.w, idle), unit != GP_UNIT_QUEUE);
		if (unit != GP_UNIT_QUEUE)
			assert_int_equal(world_last_order(p.w, idle, 0)->why, GP_WHY_COMPANY);
		world_free(p.w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lower_closes_and_reopens),
		cmocka_unit_test(nothing_to_do_means_no_plan),
		cmocka_unit_test(idle_world_sleeps),
		cmocka_unit_test(idle_lower_gates_close_in_the_same_plan),
		cmocka_unit_test(transactions_follow_the_unit),
		cmocka_unit_test(stop_and_start_share_a_transaction),
		cmocka_unit_test(short_rest_is_left_alone_once),
		cmocka_unit_test(short_rest_that_comes_back_names_no_failure),
		cmocka_unit_test(short_rest_that_ends_costs_nothing),
		cmocka_unit_test(minimum_open_time_is_kept),
		cmocka_unit_test(linger_is_learned_from_bursts),
		cmocka_unit_test(rare_arrivals_do_not_linger),
		cmocka_unit_test(equals_at_the_top_stay_open),
		cmocka_unit_test(priority_changes_take_effect),
		cmocka_unit_test(lowered_queue_keeps_a_free_turn),
		cmocka_unit_test(new_top_leaves_the_busy_one_open),
		cmocka_unit_test(removal_releases_the_lower),
		cmocka_unit_test(company_opens_with_its_client),
	};

	return cmocka_run_group_tests_name("core_priority", tests, NULL, NULL);
}
