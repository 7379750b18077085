/* SPDX-License-Identifier: MIT */
/* Turns among batch clients, and the policies that order them. */
#include "test/unit/core_world.h"

#define BATCH_MAX 4u

/* A device with an idle client at the top and count busy batch clients. */
struct batch {
	struct world *w;
	uint32_t device, high, low[BATCH_MAX], count;
};

static struct batch batch_new(struct world_setup setup, uint32_t count)
{
	struct batch b = { .w = world_new(), .count = count };
	uint32_t i;

	b.device = world_device(b.w, setup);
	b.high = world_solo(b.w, b.device, GP_PRIORITY_HIGH);
	for (i = 0; i < count; i++) {
		b.low[i] = world_solo(b.w, b.device, GP_PRIORITY_LOW);
		world_write(b.w, b.low[i], 1000000);
	}
	world_settle(b.w);
	return b;
}

static uint32_t batch_open_count(const struct batch *b)
{
	uint32_t i, count = 0;

	for (i = 0; i < b->count; i++)
		count += world_is_open(b->w, b->low[i]);
	return count;
}

/* With the process as unit one batch client is open at a time, in round robin, each for turn_ns. */
static void one_batch_client_in_turns(void **state)
{
	struct batch b = batch_new(
		(struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS }, .param = { .turn_ns = 10 * MS } }, 3);
	uint32_t i, last = BATCH_MAX;

	for (i = 0; i < 30; i++) {
		uint32_t j, now = 0;

		assert_int_equal(batch_open_count(&b), 1);
		for (j = 0; j < 3; j++)
			if (world_is_open(b.w, b.low[j]))
				now = j;
		if (last != BATCH_MAX)
			assert_int_equal(now, (last + 1) % 3);
		last = now;
		world_run(b.w, 10 * MS);
	}
	for (i = 0; i < 3; i++)
		assert_int_equal(b.w->queues[b.low[i]].open_ns, 100 * MS);
	world_free(b.w);
}

/* How long a turn is if nobody says: longer where the device switches by itself, since its end alone takes a call. */
static void turns_have_a_default(void **state)
{
	static const uint64_t switch_ns[] = { 0, 200 * US }, turn_ns[] = { 40 * MS, 80 * MS };
	uint32_t i;

	for (i = 0; i < 2; i++) {
		struct batch b = batch_new(
			(struct world_setup){
				.attr = { .unit = GP_UNIT_PROCESS, .switch_ns = switch_ns[i], .lower_max = 1 } },
			2);

		world_run(b.w, 4 * turn_ns[i]);
		assert_int_equal(b.w->queues[b.low[0]].open_ns, 2 * turn_ns[i]);
		assert_int_equal(b.w->queues[b.low[1]].open_ns, 2 * turn_ns[i]);
		assert_int_equal(b.w->plan_count, 1 + 4); /* the first one closes the second */
		world_free(b.w);
	}
}

/* A turn that is over before its gates are open is nobody's: turns are not shorter than four changes of them. */
static void turns_are_worth_their_end(void **state)
{
	struct batch b = batch_new(
		(struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS, .close_ns = 500 * US, .open_ns = 500 * US },
				      .param = { .turn_ns = 1 * MS, .min_open_ns = 1 } },
		3);
	uint32_t i, plans;

	b.w->ack_delay_ns = 1 * MS;
	world_run(b.w, 300 * MS);
	for (i = 0; i < 3; i++)
		assert_in_range(b.w->queues[b.low[i]].open_ns, 60 * MS, 100 * MS);
	assert_in_range(b.w->plan_count, 40, 70);
	/* As was learned since. */
	plans = b.w->plan_count;
	assert_int_equal(gp_sched_device_set_cost(b.w->sched, b.device, 2500 * US, 2500 * US), 0);
	world_run(b.w, 300 * MS);
	assert_in_range(b.w->plan_count - plans, 10, 20);
	assert_int_equal(gp_sched_device_set_cost(b.w->sched, b.device, 500 * US, 500 * US), 0);
	plans = b.w->plan_count;
	world_run(b.w, 300 * MS);
	assert_in_range(b.w->plan_count - plans, 40, 70);
	world_free(b.w);
}

/* Never more than one is open in the device either while plans take time. */
static void turns_do_not_overlap(void **state)
{
	struct batch b = batch_new(
		(struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS }, .param = { .turn_ns = 10 * MS } }, 4);
	uint32_t i;

	b.w->ack_delay_ns = 300 * US;
	for (i = 0; i < 1000; i++) {
		world_run(b.w, 100 * US);
		assert_in_range(batch_open_count(&b), 0, 1);
	}
	for (i = 0; i < 4; i++)
		assert_true(b.w->queues[b.low[i]].open_ns > 20 * MS);
	world_free(b.w);
}

/* One at a time is the rule for every unit; with as many turns as clients there is nothing to take turns for. */
static void turns_are_taken_whatever_the_unit(void **state)
{
	uint32_t unit;

	for (unit = GP_UNIT_DEVICE; unit <= GP_UNIT_QUEUE; unit++) {
		struct batch b = batch_new((struct world_setup){ .attr = { .unit = (enum gp_unit)unit } }, 4);

		assert_int_equal(batch_open_count(&b), 1);
		world_free(b.w);
		b = batch_new(
			(struct world_setup){ .attr = { .unit = (enum gp_unit)unit }, .param = { .batch_clients = 4 } },
			4);
		world_run(b.w, 200 * MS);
		assert_int_equal(batch_open_count(&b), 4);
		assert_int_equal(b.w->plan_count, 0);
		world_free(b.w);
	}
}

/* A turn is time run: what the urgent queue takes out of it does not count. */
static void turn_does_not_run_while_closed(void **state)
{
	struct batch b = batch_new(
		(struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS }, .param = { .turn_ns = 10 * MS } }, 2);

	world_run(b.w, 4 * MS);
	assert_true(world_is_open(b.w, b.low[0]));
	world_write(b.w, b.high, 1);
	world_run(b.w, 100 * MS);
	assert_int_equal(batch_open_count(&b), 0);
	world_drain(b.w, b.high);
	world_settle(b.w);
	assert_true(world_is_open(b.w, b.low[0]));
	world_run(b.w, 6 * MS - 1);
	assert_true(world_is_open(b.w, b.low[0]));
	world_run(b.w, 1);
	assert_true(world_is_open(b.w, b.low[1]));
	assert_int_equal(b.w->queues[b.low[0]].open_ns, 10 * MS);
	world_free(b.w);
}

/* Carries the plan under way out, a transaction for each gate; the last gate's answer takes late_ns longer. */
static void turn_open_one_by_one(struct world *w, uint32_t device, uint64_t late_ns)
{
	struct world_device *d = &w->devices[device];
	uint32_t i;

	assert_true(d->in_flight);
	for (i = 0; i < d->plan.close_count; i++) {
		world_skip(w, 150 * US);
		world_ack_order(w, &d->plan, &d->plan.close[i], false);
	}
	for (i = 0; i < d->plan.open_count; i++) {
		world_skip(w, 150 * US + (i + 1 == d->plan.open_count ? late_ns : 0));
		world_ack_order(w, &d->plan, &d->plan.open[i], true);
	}
	d->in_flight = false;
	world_settle(w);
}

/* Where each gate takes a transaction, a turn is as long for the queue that opens last; but not for who answers late.
 */
static void turn_begins_with_its_last_gate(void **state)
{
	static const uint64_t late_ns[] = { 0, 100 * US };
	uint32_t i, k, wide, queues[8];

	for (i = 0; i < 2; i++) {
		struct batch b = batch_new(
			(struct world_setup){ .attr = { .unit = GP_UNIT_QUEUE }, .param = { .turn_ns = 2 * MS } }, 1);

		wide = world_client(b.w);
		for (k = 0; k < 8; k++) {
			queues[k] = world_queue(b.w, wide, b.device, GP_PRIORITY_LOW);
			world_write(b.w, queues[k], 1000000);
		}
		world_settle(b.w);
		b.w->ack = WORLD_ACK_BY_HAND;
		world_run(b.w, 2 * MS);
		assert_int_equal(b.w->devices[b.device].plan.open_count, 8);
		turn_open_one_by_one(b.w, b.device, late_ns[i]);
		world_run(b.w, 2 * MS - late_ns[i] - 1);
		assert_false(b.w->devices[b.device].in_flight);
		world_run(b.w, 1);
		assert_true(b.w->devices[b.device].in_flight);
		assert_int_equal(b.w->devices[b.device].plan.close_count, 8);
		world_free(b.w);
	}
}

/* One that has the turn but no work gives way at once to one that has. */
static void idle_holder_gives_way(void **state)
{
	struct batch b = batch_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } }, 2);

	world_run(b.w, 1 * MS);
	world_drain(b.w, b.low[0]);
	world_settle(b.w);
	assert_true(world_is_open(b.w, b.low[1]));
	assert_false(world_is_open(b.w, b.low[0]));
	/* Alone, it stays: a turn ends only for somebody. */
	world_run(b.w, 500 * MS);
	assert_true(world_is_open(b.w, b.low[1]));
	world_free(b.w);
}

/* A higher batch rank does not wait for the turn to end; a lower one does not get it at all. */
static void higher_rank_takes_the_turn(void **state)
{
	struct batch b = batch_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } }, 2);
	uint32_t middle = world_solo(b.w, b.device, GP_PRIORITY_NORMAL);

	world_run(b.w, 1 * MS);
	world_write(b.w, middle, 10);
	world_settle(b.w);
	assert_true(world_is_open(b.w, middle));
	assert_int_equal(batch_open_count(&b), 0);
	world_run(b.w, 200 * MS);
	assert_int_equal(batch_open_count(&b), 0);
	world_drain(b.w, middle);
	world_settle(b.w);
	assert_int_equal(batch_open_count(&b), 1);
	world_free(b.w);
}

/* batch_clients says how many at once. */
static void two_batch_clients_at_once(void **state)
{
	struct batch b = batch_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS },
							 .param = { .turn_ns = 10 * MS, .batch_clients = 2 } },
				   4);
	uint32_t i;

	for (i = 0; i < 40; i++) {
		assert_int_equal(batch_open_count(&b), 2);
		world_run(b.w, 5 * MS);
	}
	for (i = 0; i < 4; i++)
		assert_in_range(b.w->queues[b.low[i]].open_ns, 90 * MS, 110 * MS);
	world_free(b.w);
}

/* A gate that opens without our order outside its turn is closed again: nobody else may notice a lost lease for long.
 */
static void gate_lost_outside_its_turn_is_closed(void **state)
{
	struct batch b = batch_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } }, 2);

	assert_false(world_is_open(b.w, b.low[1]));
	world_run(b.w, 1 * MS);
	world_gate_lost(b.w, b.low[1], true);
	world_settle(b.w);
	assert_false(world_is_open(b.w, b.low[1]));
	assert_int_equal(world_last_order(b.w, b.low[1], 0)->why, GP_WHY_TURN);
	world_free(b.w);
}

/* Policy none never orders anything, whatever happens. */
static void none_never_plans(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(
		w, (struct world_setup){ .policy = "none", .attr = { .unit = GP_UNIT_PROCESS, .slot_count = 2 } });
	uint32_t i, queues[6];

	for (i = 0; i < 6; i++) {
		queues[i] = world_solo(w, device, (int32_t)i * 15);
		world_write(w, queues[i], 100);
	}
	assert_int_equal(gp_sched_hint(w->sched, w->queues[0].id, 1000, w->now_ns), 0);
	world_run(w, 3 * S);
	assert_int_equal(gp_sched_device_stop(w->sched, device, w->now_ns), 0);
	world_run(w, 1 * S);
	assert_int_equal(gp_sched_device_start(w->sched, device, w->now_ns), 0);
	for (i = 0; i < 6; i++)
		world_drain(w, queues[i]);
	world_run(w, 1 * S);
	assert_int_equal(w->plan_count, 0);
	assert_int_equal(world_stats(w, device).inversions, 0);
	assert_true(gp_sched_deadline_ns(w->sched) == GP_NEVER_NS);
	world_free(w);
}

/* rr gives equal turns whatever the priorities. */
static void rr_ignores_priority(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .policy = "rr",
								.attr = { .unit = GP_UNIT_PROCESS },
								.param = { .turn_ns = 10 * MS } });
	uint32_t a = world_solo(w, device, GP_PRIORITY_REALTIME), b = world_solo(w, device, GP_PRIORITY_IDLE);

	world_write(w, a, 1000000);
	world_write(w, b, 1000000);
	world_run(w, 200 * MS);
	assert_int_equal(w->queues[a].open_ns, 100 * MS);
	assert_int_equal(w->queues[b].open_ns, 100 * MS);
	world_free(w);
}

/* wfq: weights 3:1 give run times 3:1 within 5 % over 60 turns; so do three clients 4:2:1. */
static void wfq_follows_weights(void **state)
{
	static const uint32_t weights[2][3] = { { 300, 100, 0 }, { 400, 200, 100 } }, turns[2] = { 60, 70 };
	uint32_t i, j;

	for (i = 0; i < 2; i++) {
		struct world *w = world_new();
		uint32_t device = world_device(w, (struct world_setup){ .policy = "wfq",
									.attr = { .unit = GP_UNIT_PROCESS },
									.param = { .turn_ns = 10 * MS } });
		uint64_t sum = 0;

		for (j = 0; j < 3 && weights[i][j]; j++) {
			world_queue_attr(w, world_client(w), device, (struct gp_queue_attr){ .weight = weights[i][j] });
			world_write(w, j, 1000000);
			sum += weights[i][j];
		}
		world_run(w, turns[i] * 10 * MS);
		for (j = 0; j < 3 && weights[i][j]; j++) {
			uint64_t expected = turns[i] * 10 * MS * weights[i][j] / sum;

			assert_in_range(w->queues[j].open_ns, expected - expected / 20, expected + expected / 20);
		}
		world_free(w);
	}
}

/* wfq: idling earns no credit, so one that comes back does not shut the others out. */
static void wfq_gives_no_credit_for_idling(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .policy = "wfq",
								.attr = { .unit = GP_UNIT_PROCESS },
								.param = { .turn_ns = 10 * MS } });
	uint32_t a = world_solo(w, device, 50), b = world_solo(w, device, 50);
	uint64_t before;

	world_write(w, a, 1000000);
	world_run(w, 1 * S);
	before = w->queues[a].open_ns;
	world_write(w, b, 1000000);
	world_run(w, 200 * MS);
	assert_in_range(w->queues[a].open_ns - before, 80 * MS, 120 * MS);
	assert_in_range(w->queues[b].open_ns, 80 * MS, 120 * MS);
	world_free(w);
}

/* A service of 2 ms requests beside a trainer that always has work, under wfq. */
struct shares {
	struct world *w;
	uint32_t device, serve, train;
};

static struct shares shares_new_param(uint32_t serve_weight, enum gp_unit unit, struct gp_param param)
{
	struct shares s = { .w = world_new() };

	s.device = world_device(s.w, (struct world_setup){ .policy = "wfq", .attr = { .unit = unit }, .param = param });
	s.serve = world_queue_attr(s.w, world_client(s.w), s.device, (struct gp_queue_attr){ .weight = serve_weight });
	s.train = world_queue_attr(s.w, world_client(s.w), s.device, (struct gp_queue_attr){ .weight = 100 });
	world_write(s.w, s.serve, 1); /* alone: from this its requests are known */
	world_run(s.w, 2 * MS);
	world_drain(s.w, s.serve);
	world_write(s.w, s.train, 1000000);
	world_run(s.w, 10 * MS);
	assert_true(world_is_open(s.w, s.train));
	return s;
}

static struct shares shares_new(uint32_t serve_weight, enum gp_unit unit)
{
	return shares_new_param(serve_weight, unit, (struct gp_param){ 0 });
}

/* Lets a request of so much work go its way, with the trainer closed on it as it may be; the time it took. */
static uint64_t shares_request(struct shares *s, uint64_t work_ns)
{
	uint64_t begin_ns = s->w->now_ns, open_ns = s->w->queues[s->serve].open_ns;

	world_write(s->w, s->serve, 1);
	world_settle(s->w);
	while (s->w->queues[s->serve].open_ns - open_ns < work_ns)
		world_run(s->w, 10 * US);
	world_drain(s->w, s->serve);
	world_settle(s->w);
	return s->w->now_ns - begin_ns;
}

/* wfq: a request that would be over first does not wait for the end of the turn, be it short or of much weight. */
static void wfq_request_ends_a_longer_turn(void **state)
{
	static const uint32_t weights[] = { 100, 10000 };
	uint32_t i, unit, first;

	for (unit = GP_UNIT_DEVICE; unit <= GP_UNIT_QUEUE; unit++)
		for (i = 0; i < 2; i++) {
			struct shares s = shares_new(weights[i], (enum gp_unit)unit);

			first = s.w->order_count;
			world_write(s.w, s.serve, 1);
			world_settle(s.w);
			assert_true(world_is_open(s.w, s.serve));
			assert_false(world_is_open(s.w, s.train));
			assert_int_equal(world_last_order(s.w, s.train, first)->why, GP_WHY_SHARE);
			world_run(s.w, 2 * MS);
			world_drain(s.w, s.serve);
			world_settle(s.w);
			assert_true(world_is_open(s.w, s.train));
			world_free(s.w);
		}
}

/* wfq: one that waited a whole ageing window, and for the budget after that, gets a turn in its own right meanwhile. It
 * is a turn like any other: it may be ended early, its gates close then, and the other's open beside it only when that
 * one is aged itself. */
static void wfq_turn_of_an_aged_one_is_like_any_other(void **state)
{
	struct shares s = shares_new_param(10000, GP_UNIT_PROCESS,
					   (struct gp_param){ .age_window_ns = 1 * MS,
							      .age_turn_ns = 5 * MS,
							      .overhead_permille = 140,
							      .burst = 2 });
	uint32_t i;

	shares_request(&s, 2 * MS);
	assert_true(world_is_open(s.w, s.train));
	assert_int_equal(world_last_order(s.w, s.train, 0)->why, GP_WHY_TURN);
	world_write(s.w, s.serve, 1);
	for (i = 0; i < 49 && !world_is_open(s.w, s.serve); i++) {
		world_run(s.w, 100 * US);
		assert_true(!world_is_open(s.w, s.train) || !world_is_open(s.w, s.serve) ||
			    world_last_order(s.w, s.serve, 0)->why == GP_WHY_AGED);
	}
	assert_true(world_is_open(s.w, s.serve));
	world_free(s.w);
}

/* wfq: one that never pauses waits for the turn's end, like all the others. */
static void wfq_long_request_waits_for_the_turn(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .policy = "wfq", .attr = { .unit = GP_UNIT_PROCESS } });
	uint32_t a = world_solo(w, device, 50), b = world_solo(w, device, 50);

	world_write(w, a, 1000000);
	world_run(w, 10 * MS);
	world_write(w, b, 1000000);
	world_run(w, 30 * MS - 1);
	assert_true(world_is_open(w, a));
	world_run(w, 1);
	assert_true(world_is_open(w, b));
	world_free(w);
}

/* wfq: short requests in close succession get their share and no more: half of the device beside an equal, and never
 * more than a request ahead. */
static void wfq_pausing_gets_no_more_than_the_share(void **state)
{
	struct shares s = shares_new(100, GP_UNIT_PROCESS);
	uint64_t begin_ns = s.w->now_ns, train_ns = s.w->queues[s.train].open_ns;
	uint64_t serve_ns = s.w->queues[s.serve].open_ns;
	uint32_t i;

	for (i = 0; i < 500; i++) {
		shares_request(&s, 2 * MS);
		assert_true(s.w->queues[s.serve].open_ns - serve_ns <=
			    s.w->queues[s.train].open_ns - train_ns + 2 * MS + 20 * US);
		world_run(s.w, 20 * US);
	}
	assert_in_range((s.w->queues[s.train].open_ns - train_ns) * 100 / (s.w->now_ns - begin_ns), 45, 60);
	world_free(s.w);
}

/* wfq: who got the turn keeps it as long as the switch there and back takes, and the budget bounds the rest: requests
 * of almost nothing that come all the time do not make the device a switching machine. */
static void wfq_switching_is_bounded(void **state)
{
	struct shares s = shares_new(10000, GP_UNIT_PROCESS);
	uint64_t begin_ns = s.w->now_ns, pairs, closes = world_stats(s.w, s.device).closes, last_ns;
	uint32_t i;

	shares_request(&s, 10 * US);
	last_ns = s.w->now_ns;
	world_run(s.w, 10 * US);
	world_write(s.w, s.serve, 1);
	world_run(s.w, 580 * US);
	assert_true(world_is_open(s.w, s.train));
	world_run(s.w, 20 * US);
	assert_true(world_is_open(s.w, s.serve));
	assert_in_range(s.w->now_ns - last_ns, 600 * US, 620 * US);
	world_drain(s.w, s.serve);
	world_settle(s.w);
	for (i = 0; i < 3000; i++) {
		shares_request(&s, 10 * US);
		world_run(s.w, 10 * US);
	}
	/* A pair of transactions is 300 us; 200 in 1000 of the time, and the burst of 32. */
	pairs = world_stats(s.w, s.device).closes - closes;
	assert_true(pairs <= (s.w->now_ns - begin_ns) / 5 / (300 * US) + 32);
	assert_true(pairs > 1000);
	world_free(s.w);
}

/* wfq: a hint is no way around: credit is not kept over a pause that a hint ends. */
static void wfq_hint_brings_no_credit(void **state)
{
	struct shares s = shares_new(100, GP_UNIT_PROCESS);
	uint64_t train_ns;

	world_run(s.w, 1 * S);
	assert_int_equal(gp_sched_hint(s.w->sched, s.w->queues[s.serve].id, 0, s.w->now_ns), 0);
	world_settle(s.w);
	world_write(s.w, s.serve, 1000000);
	train_ns = s.w->queues[s.train].open_ns;
	world_run(s.w, 400 * MS);
	assert_in_range(s.w->queues[s.train].open_ns - train_ns, 150 * MS, 250 * MS);
	world_free(s.w);
}

/* drf: who holds much memory has the larger dominant share and waits; among equals in memory the one that computed less
 * is next. */
static void drf_serves_the_smaller_dominant_share(void **state)
{
	struct world *w = world_new();
	uint32_t device =
		world_device(w, (struct world_setup){ .policy = "drf",
						      .param = { .turn_ns = 10 * MS },
						      .attr = { .unit = GP_UNIT_PROCESS, .memory_size = 1ull << 30 } });
	uint32_t hog = world_solo(w, device, 50), lean = world_solo(w, device, 50), third = world_solo(w, device, 50);

	assert_int_equal(gp_sched_client_set_attr(w->sched, w->clients[w->queues[hog].client],
						  &(struct gp_client_attr){ .memory_size = 800ull << 20 }),
			 0);
	world_run(w, 100 * MS);
	world_write(w, third, 1000000);
	world_run(w, 5 * MS);
	world_write(w, hog, 1000000);
	world_write(w, lean, 1000000);
	world_run(w, 6 * MS);
	assert_true(world_is_open(w, lean)); /* the third one's turn is over, and the hog has 78 % of the memory */
	world_run(w, 300 * MS);
	assert_true(w->queues[lean].open_ns > 4 * w->queues[hog].open_ns);
	assert_true(w->queues[third].open_ns > 4 * w->queues[hog].open_ns);
	world_free(w);
}

/* edf: of two with deadlines the one due earlier runs and the other waits; those without any wait for both. */
static void edf_serves_the_earlier_deadline(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .policy = "edf", .attr = { .unit = GP_UNIT_PROCESS } });
	uint32_t loose = world_queue_attr(w, world_client(w), device, (struct gp_queue_attr){ .deadline_ns = 50 * MS });
	uint32_t tight = world_queue_attr(w, world_client(w), device, (struct gp_queue_attr){ .deadline_ns = 10 * MS });
	uint32_t batch = world_solo(w, device, GP_PRIORITY_REALTIME);

	world_write(w, batch, 100000);
	world_settle(w);
	world_write(w, loose, 1);
	world_run(w, 1 * MS);
	assert_true(world_is_open(w, loose));
	assert_false(world_is_open(w, batch));
	world_write(w, tight, 1);
	world_run(w, 1 * MS);
	assert_true(world_is_open(w, tight));
	assert_false(world_is_open(w, loose));
	world_drain(w, tight);
	world_run(w, 1 * MS);
	assert_true(world_is_open(w, loose));
	/* Arrived 45 ms later, the tight one is due after the loose one. */
	world_run(w, 43 * MS);
	world_write(w, tight, 1);
	world_run(w, 1 * MS);
	assert_true(world_is_open(w, loose));
	assert_false(world_is_open(w, batch));
	world_drain(w, loose);
	world_run(w, 1 * MS);
	assert_true(world_is_open(w, tight));
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_batch_client_in_turns),
		cmocka_unit_test(turns_have_a_default),
		cmocka_unit_test(turns_are_worth_their_end),
		cmocka_unit_test(turns_do_not_overlap),
		cmocka_unit_test(turns_are_taken_whatever_the_unit),
		cmocka_unit_test(turn_does_not_run_while_closed),
		cmocka_unit_test(turn_begins_with_its_last_gate),
		cmocka_unit_test(idle_holder_gives_way),
		cmocka_unit_test(higher_rank_takes_the_turn),
		cmocka_unit_test(two_batch_clients_at_once),
		cmocka_unit_test(gate_lost_outside_its_turn_is_closed),
		cmocka_unit_test(none_never_plans),
		cmocka_unit_test(rr_ignores_priority),
		cmocka_unit_test(wfq_follows_weights),
		cmocka_unit_test(wfq_gives_no_credit_for_idling),
		cmocka_unit_test(wfq_request_ends_a_longer_turn),
		cmocka_unit_test(wfq_turn_of_an_aged_one_is_like_any_other),
		cmocka_unit_test(wfq_long_request_waits_for_the_turn),
		cmocka_unit_test(wfq_pausing_gets_no_more_than_the_share),
		cmocka_unit_test(wfq_switching_is_bounded),
		cmocka_unit_test(wfq_hint_brings_no_credit),
		cmocka_unit_test(drf_serves_the_smaller_dominant_share),
		cmocka_unit_test(edf_serves_the_earlier_deadline),
	};

	return cmocka_run_group_tests_name("core_turns", tests, NULL, NULL);
}
