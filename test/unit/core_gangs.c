/* SPDX-License-Identifier: MIT */
/* Gangs: queues of a collective on several devices open and close together. */
#include "test/unit/core_world.h"

/* Two devices; on each a high and a low client, and one gang (50) of one client with a queue on each device. */
struct pairs {
	struct world *w;
	uint32_t device[2], high[2], low[2], gang[2];
};

static struct pairs pairs_new(struct world_setup setup, int32_t gang_priority)
{
	struct pairs p = { .w = world_new() };
	uint32_t i, client = world_client(p.w);

	for (i = 0; i < 2; i++) {
		p.device[i] = world_device(p.w, setup);
		p.high[i] = world_solo(p.w, p.device[i], GP_PRIORITY_HIGH);
		p.low[i] = world_solo(p.w, p.device[i], GP_PRIORITY_LOW);
	}
	for (i = 0; i < 2; i++)
		p.gang[i] = world_queue_attr(p.w, client, p.device[i],
					     (struct gp_queue_attr){ .priority = gang_priority, .gang = 7 });
	world_settle(p.w);
	return p;
}

static const struct world_setup process_unit = { .attr = { .unit = GP_UNIT_PROCESS } };

/* An urgent queue on one device closes the gang on both, in orders that share a move number; it opens again on both. */
static void gang_closes_and_opens_together(void **state)
{
	struct pairs p = pairs_new(process_unit, GP_PRIORITY_NORMAL);
	uint32_t i;

	for (i = 0; i < 2; i++)
		world_write(p.w, p.gang[i], 1000);
	world_run(p.w, 1 * MS);
	assert_true(world_is_open(p.w, p.gang[0]) && world_is_open(p.w, p.gang[1]));
	world_write(p.w, p.high[0], 1);
	world_run(p.w, 1 * MS);
	assert_false(world_is_open(p.w, p.gang[0]));
	assert_false(world_is_open(p.w, p.gang[1]));
	assert_true(world_last_order(p.w, p.gang[0], 0)->move == world_last_order(p.w, p.gang[1], 0)->move);
	world_drain(p.w, p.high[0]);
	world_run(p.w, 1 * MS);
	assert_true(world_is_open(p.w, p.gang[0]) && world_is_open(p.w, p.gang[1]));
	assert_true(world_last_order(p.w, p.gang[0], 0)->move == world_last_order(p.w, p.gang[1], 0)->move);
	assert_int_equal(world_last_order(p.w, p.gang[1], 0)->why, GP_WHY_GANG);
	world_free(p.w);
}

/* While an urgent queue holds either device the gang opens on neither. */
static void gang_waits_for_all_its_devices(void **state)
{
	struct pairs p = pairs_new(process_unit, GP_PRIORITY_NORMAL);

	world_write(p.w, p.gang[0], 1000);
	world_write(p.w, p.gang[1], 1000);
	world_write(p.w, p.high[0], 1);
	world_run(p.w, 1 * MS);
	world_write(p.w, p.high[1], 1);
	world_run(p.w, 1 * MS);
	world_drain(p.w, p.high[0]);
	world_run(p.w, 10 * MS);
	assert_false(world_is_open(p.w, p.gang[0]) || world_is_open(p.w, p.gang[1]));
	world_drain(p.w, p.high[1]);
	world_run(p.w, 10 * MS);
	assert_true(world_is_open(p.w, p.gang[0]) && world_is_open(p.w, p.gang[1]));
	world_free(p.w);
}

/* The opens are issued only after every close they need was acknowledged, on all devices. */
static void gang_opens_after_all_closes_are_acknowledged(void **state)
{
	struct pairs p = pairs_new(process_unit, GP_PRIORITY_NORMAL);

	world_write(p.w, p.high[0], 1); /* closes gang and low everywhere they are lower */
	world_run(p.w, 1 * MS);
	world_drain(p.w, p.high[0]);
	world_write(p.w, p.low[0], 1000);
	world_write(p.w, p.low[1], 1000);
	world_run(p.w, 1 * MS);
	assert_true(world_is_open(p.w, p.low[0]) && world_is_open(p.w, p.low[1]));
	assert_false(world_is_open(p.w, p.gang[0]) || world_is_open(p.w, p.gang[1]));
	p.w->ack = WORLD_ACK_BY_HAND;
	world_write(p.w, p.gang[0], 1000); /* one member's work is the gang's work */
	world_settle(p.w);
	assert_true(p.w->devices[0].in_flight && p.w->devices[1].in_flight);
	world_run(p.w, 100 * US);
	world_ack(p.w, 0);
	world_settle(p.w);
	assert_false(world_is_open(p.w, p.low[0]));
	assert_false(p.w->devices[0].in_flight); /* device 1 has not said yet that low is closed there */
	world_run(p.w, 100 * US);
	world_ack(p.w, 1);
	world_settle(p.w);
	assert_true(p.w->devices[0].in_flight && p.w->devices[1].in_flight);
	assert_true(p.w->devices[0].plan.open[0].move == p.w->devices[1].plan.open[0].move);
	world_ack(p.w, 0);
	world_ack(p.w, 1);
	world_settle(p.w);
	assert_true(world_is_open(p.w, p.gang[0]) && world_is_open(p.w, p.gang[1]));
	world_free(p.w);
}

/* Two gangs of equal rank take turns on all devices; a batch client of one device has its turns, too. */
static void gangs_take_turns(void **state)
{
	struct world *w = world_new();
	uint32_t device[2], gang[2][2], solo, i, j;

	for (i = 0; i < 2; i++) {
		device[i] = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS },
								  .param = { .turn_ns = 10 * MS } });
		world_solo(w, device[i], GP_PRIORITY_HIGH);
	}
	for (i = 0; i < 2; i++) {
		uint32_t client = world_client(w);

		for (j = 0; j < 2; j++) {
			gang[i][j] =
				world_queue_attr(w, client, device[j],
						 (struct gp_queue_attr){ .priority = GP_PRIORITY_LOW, .gang = i + 1 });
			world_write(w, gang[i][j], 1000000);
		}
	}
	solo = world_solo(w, device[1], GP_PRIORITY_LOW);
	world_write(w, solo, 1000000);
	w->ack_delay_ns = 100 * US;
	for (i = 0; i < 6000; i++) {
		world_run(w, 100 * US);
		assert_false(world_is_open(w, gang[0][0]) && world_is_open(w, gang[1][0]));
		assert_false(world_is_open(w, gang[0][1]) && world_is_open(w, gang[1][1]));
		assert_false(world_is_open(w, gang[0][1]) && world_is_open(w, solo));
	}
	for (i = 0; i < 2; i++)
		for (j = 0; j < 2; j++)
			assert_true(w->queues[gang[i][j]].open_ns > 100 * MS);
	assert_true(w->queues[solo].open_ns > 60 * MS);
	world_free(w);
}

/* The clients of one gang on a device share a turn, and lose it together even while the gang is closed and idle: else
 * the one that is left with it brings the others in beside those who got it. */
static void idle_gang_loses_its_turn_as_one(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(
		w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS }, .param = { .batch_clients = 2 } });
	uint32_t high = world_solo(w, device, GP_PRIORITY_HIGH), gang[2], solo[2], i;

	for (i = 0; i < 2; i++)
		solo[i] = world_solo(w, device, GP_PRIORITY_LOW);
	for (i = 0; i < 2; i++)
		gang[i] = world_queue_attr(w, world_client(w), device,
					   (struct gp_queue_attr){ .priority = GP_PRIORITY_LOW, .gang = 1 });
	world_write(w, solo[0], 1000000);
	world_run(w, 1 * MS);
	world_write(w, gang[0], 1);
	world_run(w, 1 * MS);
	assert_true(world_is_open(w, gang[0]) && world_is_open(w, gang[1]) && world_is_open(w, solo[0]));
	world_drain(w, gang[0]);
	world_write(w, high, 1);
	world_run(w, 1 * MS);
	assert_false(world_is_open(w, gang[0]) || world_is_open(w, gang[1]));
	world_write(w, solo[1], 1000000);
	world_drain(w, high);
	world_run(w, 1 * MS);
	assert_true(world_is_open(w, solo[0]) && world_is_open(w, solo[1]));
	world_write(w, gang[0], 1);
	world_run(w, 1 * MS);
	assert_true(world_is_open(w, solo[0]) && world_is_open(w, solo[1]));
	assert_false(world_is_open(w, gang[0]) || world_is_open(w, gang[1]));
	world_run(w, 40 * MS); /* and has its turn when one of theirs is over */
	assert_true(world_is_open(w, gang[0]) && world_is_open(w, gang[1]));
	assert_false(world_is_open(w, solo[0]) && world_is_open(w, solo[1]));
	world_free(w);
}

/* A starved gang grows old as one, opens on both devices whatever holds them, and closes again on both after its turn.
 */
static void starved_gang_ages_as_one(void **state)
{
	struct pairs p =
		pairs_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS },
						.param = { .age_window_ns = 100 * MS, .age_turn_ns = 10 * MS } },
			  GP_PRIORITY_LOW);
	uint32_t i;

	for (i = 0; i < 2; i++) {
		world_write(p.w, p.gang[i], 1000000);
		world_write(p.w, p.high[i], 1000000);
	}
	world_run(p.w, 90 * MS);
	assert_false(world_is_open(p.w, p.gang[0]) || world_is_open(p.w, p.gang[1]));
	world_run(p.w, 15 * MS);
	assert_true(world_is_open(p.w, p.gang[0]) && world_is_open(p.w, p.gang[1]));
	world_run(p.w, 10 * MS);
	assert_false(world_is_open(p.w, p.gang[0]) || world_is_open(p.w, p.gang[1]));
	world_run(p.w, 2 * S);
	assert_in_range(p.w->queues[p.gang[0]].open_ns, 150 * MS, 250 * MS);
	assert_in_range(p.w->queues[p.gang[1]].open_ns, 150 * MS, 250 * MS);
	world_free(p.w);
}

/* The urgent queue is on one device only, and the aged turn was started by the other: it must still end there. */
static void aged_turn_of_a_gang_ends_on_every_device(void **state)
{
	uint32_t unit;

	for (unit = GP_UNIT_DEVICE; unit <= GP_UNIT_PROCESS; unit++) {
		struct pairs p = pairs_new(
			(struct world_setup){ .attr = { .unit = (enum gp_unit)unit },
					      .param = { .age_window_ns = 100 * MS, .age_turn_ns = 10 * MS } },
			GP_PRIORITY_LOW);

		world_write(p.w, p.gang[0], 1000000); /* only the member on device 0 has work and grows old */
		world_write(p.w, p.high[0], 1000000);
		world_write(p.w, p.high[1], 1000000);
		world_run(p.w, 105 * MS);
		assert_true(world_is_open(p.w, p.gang[0]) && world_is_open(p.w, p.gang[1]));
		world_drain(p.w, p.high[0]); /* device 0 needs no close; device 1 does */
		world_run(p.w, 20 * MS);
		assert_false(world_is_open(p.w, p.gang[1]));
		assert_false(world_is_open(p.w, p.gang[0]));
		world_free(p.w);
	}
}

/* The second member cannot be closed for an urgent queue on the first device. */
static void pairs_stick(const struct pairs *p)
{
	world_write(p->w, p->gang[0], 1000);
	world_write(p->w, p->gang[1], 1000);
	world_settle(p->w);
	p->w->queues[p->gang[1]].close_result = -EIO;
	world_write(p->w, p->high[0], 1);
	world_run(p->w, 1 * MS);
	assert_int_equal(world_gate(p->w, p->gang[1]), GP_GATE_QUARANTINED);
}

/* Two devices, as pairs_new(); the second member could not be closed for the urgent queue on the first device. */
static struct pairs pairs_stuck(void)
{
	struct pairs p = pairs_new(process_unit, GP_PRIORITY_NORMAL);

	pairs_stick(&p);
	return p;
}

/* A member that cannot be preempted would spin for the others: they open again, and stay so beside urgent work. */
static void quarantined_member_keeps_the_gang_open(void **state)
{
	struct pairs p = pairs_stuck();

	assert_int_equal(world_gate(p.w, p.gang[0]), GP_GATE_QUARANTINED);
	assert_true(world_is_open(p.w, p.gang[0]));
	assert_int_equal(world_last_order(p.w, p.gang[0], 0)->why, GP_WHY_QUARANTINE);
	world_write(p.w, p.high[1], 1);
	world_run(p.w, 100 * MS);
	assert_true(world_is_open(p.w, p.gang[0]) && world_is_open(p.w, p.gang[1]));
	assert_false(world_is_open(p.w, p.low[0])); /* others are put aside as always */
	world_free(p.w);
}

/* When that member goes the others are put aside again. */
static void gang_closes_again_without_the_quarantined(void **state)
{
	struct pairs p = pairs_stuck();

	world_remove(p.w, p.gang[1]);
	world_run(p.w, 10 * MS);
	assert_false(world_is_open(p.w, p.gang[0]));
	world_drain(p.w, p.high[0]);
	world_run(p.w, 10 * MS);
	assert_true(world_is_open(p.w, p.gang[0]));
	assert_int_equal(world_gate(p.w, p.gang[0]), GP_GATE_OPEN);
	world_free(p.w);
}

/* A start of its device gives it another chance, and with it the others; a start of theirs does not. */
static void start_ends_the_quarantine_of_the_gang(void **state)
{
	struct pairs p = pairs_stuck();

	gp_sched_device_stop(p.w->sched, p.device[0], p.w->now_ns);
	world_settle(p.w);
	gp_sched_device_start(p.w->sched, p.device[0], p.w->now_ns);
	world_run(p.w, 10 * MS);
	assert_int_equal(world_gate(p.w, p.gang[0]), GP_GATE_QUARANTINED);
	p.w->queues[p.gang[1]].close_result = 0;
	gp_sched_device_stop(p.w->sched, p.device[1], p.w->now_ns);
	world_settle(p.w);
	gp_sched_device_start(p.w->sched, p.device[1], p.w->now_ns);
	world_run(p.w, 10 * MS);
	assert_false(world_is_open(p.w, p.gang[0]) || world_is_open(p.w, p.gang[1]));
	world_free(p.w);
}

/* Who joins such a gang stays open with the others. */
static void who_joins_follows_the_quarantined(void **state)
{
	struct pairs p = pairs_stuck();
	uint32_t late = world_queue_attr(p.w, world_client(p.w), p.device[0],
					 (struct gp_queue_attr){ .priority = GP_PRIORITY_NORMAL, .gang = 7 });

	world_write(p.w, late, 1000);
	world_run(p.w, 10 * MS);
	assert_int_equal(world_gate(p.w, late), GP_GATE_QUARANTINED);
	assert_true(world_is_open(p.w, late));
	world_free(p.w);
}

/* A member gets stuck and leaves while the close of another one is under way: that one was not ordered open with it,
 * and is not afterwards, because something more urgent has its device. */
static void member_that_closes_outlasts_the_quarantine(void **state)
{
	struct world *w = world_new();
	uint32_t high[2], gang[2], i;

	(void)state;
	for (i = 0; i < 2; i++) {
		(void)world_device(w, process_unit);
		high[i] = world_solo(w, i, GP_PRIORITY_HIGH);
		gang[i] = world_queue_attr(w, world_client(w), i,
					   (struct gp_queue_attr){ .priority = GP_PRIORITY_LOW, .gang = 1 });
		world_write(w, gang[i], 1000000);
	}
	world_run(w, 1 * MS);
	w->ack = WORLD_ACK_BY_HAND;
	for (i = 0; i < 2; i++)
		world_write(w, high[i], 1000000);
	world_settle(w);
	assert_true(w->devices[0].in_flight && w->devices[1].in_flight);
	w->queues[gang[0]].close_result = -EIO;
	world_ack(w, 0);
	assert_int_equal(world_gate(w, gang[0]), GP_GATE_QUARANTINED);
	world_remove_client(w, w->queues[gang[0]].client);
	world_ack(w, 1);
	world_settle(w);
	assert_false(world_last_order(w, gang[1], 0)->open);
	world_free(w);
}

/* A stuck member that is not to keep the others open is left alone: they are put aside for urgent work as always, and
 * open when that is over. If it is trusted again, they stay open again. */
static void stuck_alone_leaves_the_gang_closed(void **state)
{
	struct pairs p = pairs_stuck();

	world_set_stuck_alone(p.w, p.gang[1], true);
	assert_false(world_is_open(p.w, p.gang[0]));
	assert_true(world_is_open(p.w, p.gang[1]));
	assert_int_equal(world_gate(p.w, p.gang[1]), GP_GATE_QUARANTINED);
	world_set_stuck_alone(p.w, p.gang[1], false);
	assert_true(world_is_open(p.w, p.gang[0]));
	assert_int_equal(world_gate(p.w, p.gang[0]), GP_GATE_QUARANTINED);
	world_set_stuck_alone(p.w, p.gang[1], true);
	assert_false(world_is_open(p.w, p.gang[0]));
	world_drain(p.w, p.high[0]);
	world_run(p.w, 10 * MS);
	assert_int_equal(world_gate(p.w, p.gang[0]), GP_GATE_OPEN);
	assert_true(world_is_open(p.w, p.gang[0]));
	world_write(p.w, p.high[0], 1);
	world_run(p.w, 10 * MS);
	assert_false(world_is_open(p.w, p.gang[0]));
	world_free(p.w);
}

/* Known before it gets stuck: then the others are not opened for a moment either. */
static void stuck_alone_opens_nobody(void **state)
{
	struct pairs p = pairs_new(process_unit, GP_PRIORITY_NORMAL);

	world_set_stuck_alone(p.w, p.gang[1], true);
	pairs_stick(&p);
	assert_int_equal(world_gate(p.w, p.gang[0]), GP_GATE_CLOSED);
	assert_false(world_last_order(p.w, p.gang[0], 0)->why == GP_WHY_QUARANTINE);
	world_free(p.w);
}

/* Only the member that could not be closed counts as quarantined; a follower is told apart from it. */
static void followers_are_no_quarantines(void **state)
{
	struct pairs p = pairs_stuck();
	struct gp_queue_info stuck, follower;
	struct gp_stats stats[2];

	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(gp_sched_stats(p.w->sched, p.device[i], &stats[i]), 0);
	assert_int_equal(stats[0].quarantines, 0);
	assert_int_equal(stats[1].quarantines, 1);
	assert_int_equal(gp_sched_queue_info(p.w->sched, p.w->queues[p.gang[0]].id, &follower), 0);
	assert_int_equal(gp_sched_queue_info(p.w->sched, p.w->queues[p.gang[1]].id, &stuck), 0);
	assert_true(follower.is_following && !follower.is_stuck);
	assert_true(stuck.is_stuck && !stuck.is_following);
	world_free(p.w);
}

/* Many queues of one process on two devices are one gang, larger than the number of turns a device has. */
static void large_gang_opens_again(void **state)
{
	struct world *w = world_new();
	uint32_t device[2], high, low, gang[40], client = world_client(w), i;

	for (i = 0; i < 2; i++)
		device[i] = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });
	high = world_solo(w, device[0], GP_PRIORITY_HIGH);
	low = world_solo(w, device[0], GP_PRIORITY_LOW);
	world_solo(w, device[1], GP_PRIORITY_HIGH);
	for (i = 0; i < 40; i++) {
		gang[i] = world_queue_attr(w, client, device[i % 2],
					   (struct gp_queue_attr){ .priority = GP_PRIORITY_NORMAL, .gang = 1 });
		world_write(w, gang[i], 1000);
	}
	world_run(w, 1 * MS);
	world_write(w, low, 1000);
	world_write(w, high, 1);
	world_run(w, 1 * MS);
	assert_false(world_is_open(w, gang[0]) || world_is_open(w, gang[1]));
	world_drain(w, high);
	world_run(w, 10 * MS);
	for (i = 0; i < 40; i++)
		assert_true(world_is_open(w, gang[i]));
	assert_false(world_is_open(w, low));
	world_free(w);
}

/* A device without gating (policy none) does not keep the gang's other devices closed. */
static void device_without_gating_holds_nobody(void **state)
{
	struct world *w = world_new();
	uint32_t gated = world_device(w, process_unit);
	uint32_t ungated =
		world_device(w, (struct world_setup){ .policy = "none", .attr = { .unit = GP_UNIT_PROCESS } });
	uint32_t client = world_client(w), high = world_solo(w, gated, GP_PRIORITY_HIGH), gang;

	gang = world_queue_attr(w, client, gated, (struct gp_queue_attr){ .priority = GP_PRIORITY_NORMAL, .gang = 1 });
	world_queue_attr(w, client, ungated, (struct gp_queue_attr){ .priority = GP_PRIORITY_NORMAL, .gang = 1 });
	world_write(w, world_solo(w, ungated, GP_PRIORITY_REALTIME), 1000);
	world_write(w, gang, 1000);
	world_write(w, high, 1);
	world_run(w, 1 * MS);
	assert_false(world_is_open(w, gang));
	world_drain(w, high);
	world_run(w, 10 * MS);
	assert_true(world_is_open(w, gang));
	world_free(w);
}

/* Two clients of one gang on a device that switches by itself: they share a turn, and for urgent work both close, where
 * one alone would be left to the device; after a rest of the urgent one they are still together. */
static void several_clients_of_a_gang_are_put_aside_together(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(
		w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS, .switch_ns = 200 * US, .lower_max = 1 },
					 .param = { .turn_ns = 10 * MS } });
	uint32_t high = world_solo(w, device, GP_PRIORITY_HIGH), gang[2], lone, i, together = 0, alone = 0;

	(void)state;
	for (i = 0; i < 2; i++) {
		gang[i] = world_queue_attr(w, world_client(w), device,
					   (struct gp_queue_attr){ .priority = GP_PRIORITY_LOW, .gang = 7 });
		world_write(w, gang[i], 1000000);
	}
	lone = world_solo(w, device, GP_PRIORITY_LOW);
	world_write(w, lone, 1000000);
	for (i = 0; i < 400; i++) {
		if (i % 200 == 150)
			world_run(w, 3 * S); /* at rest: all are open */
		world_run(w, 1 * MS);
		assert_int_equal(world_is_open(w, gang[0]), world_is_open(w, gang[1]));
		if (i % 10)
			continue;
		world_write(w, high, 1);
		together += world_is_open(w, gang[0]);
		alone += world_is_open(w, lone) && !world_is_open(w, gang[0]);
		world_run(w, 500 * US);
		assert_false(world_is_open(w, gang[0]) || world_is_open(w, gang[1]));
		assert_int_equal(world_open_compute_count(w, device) > 1, world_is_open(w, lone));
		world_drain(w, high);
	}
	assert_true(together > 5 && alone > 5);
	world_free(w);
}

/* A member's work is in doubt for long, so the gang ranks below everybody. Work that another member announces is real:
 * it brings the gang's rank back, until it has come or was given up. */
static void announced_work_raises_a_gang_in_doubt(void **state)
{
	struct pairs p =
		pairs_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS, .fetch_counters = true },
						.param = { .age_window_ns = 100 * S, .hint_grace_ns = 20 * MS } },
			  GP_PRIORITY_NORMAL);
	uint32_t i;

	(void)state;
	world_write(p.w, p.gang[1], 2);
	world_run(p.w, 200 * MS);
	world_complete(p.w, p.gang[1], 1);
	world_run(p.w, 200 * MS);
	world_complete(p.w, p.gang[1], 1);
	world_run(p.w, 700 * MS);
	for (i = 0; i < 2; i++)
		world_write(p.w, p.high[i], 1);
	world_run(p.w, 5 * MS);
	assert_false(world_is_open(p.w, p.gang[1]));
	assert_true(world_info(p.w, p.gang[1]).has_work);
	for (i = 0; i < 2; i++)
		world_write(p.w, p.low[i], 1u << 30);
	for (i = 0; i < 2; i++)
		world_drain(p.w, p.high[i]);
	world_run(p.w, 100 * MS);
	assert_true(world_is_open(p.w, p.low[0]) && !world_is_open(p.w, p.gang[0]));
	gp_sched_hint(p.w->sched, p.w->queues[p.gang[0]].id, 0, p.w->now_ns);
	world_run(p.w, 5 * MS);
	assert_false(world_is_open(p.w, p.low[0]));
	world_run(p.w, 100 * MS);
	assert_true(world_is_open(p.w, p.low[0]) && !world_is_open(p.w, p.gang[0]));
	world_free(p.w);
}

/* The work that was announced comes: the gang lends its rank to another queue of its process, as without a hint. */
static void announced_gang_lends_its_rank(void **state)
{
	struct world_setup setup = { .attr = { .unit = GP_UNIT_PROCESS, .fetch_counters = true },
				     .param = { .age_window_ns = 100 * S, .hint_grace_ns = 20 * MS } };
	struct world *w = world_new();
	uint32_t client = world_client(w), device[2], high[2], gang[2], sibling, other, i;

	(void)state;
	for (i = 0; i < 2; i++) {
		device[i] = world_device(w, setup);
		high[i] = world_solo(w, device[i], GP_PRIORITY_HIGH);
	}
	for (i = 0; i < 2; i++)
		gang[i] = world_queue_attr(w, client, device[i],
					   (struct gp_queue_attr){ .priority = GP_PRIORITY_NORMAL, .gang = 7 });
	sibling = world_queue(w, client, device[0], 10);
	other = world_solo(w, device[0], 30);
	world_settle(w);
	/* As above: one member's work is in doubt for long. */
	world_write(w, gang[1], 2);
	for (i = 0; i < 2; i++) {
		world_run(w, 200 * MS);
		world_complete(w, gang[1], 1);
	}
	world_run(w, 700 * MS);
	for (i = 0; i < 2; i++)
		world_write(w, high[i], 1);
	world_run(w, 5 * MS);
	world_write(w, other, 1u << 30);
	world_write(w, sibling, 1u << 30);
	for (i = 0; i < 2; i++)
		world_drain(w, high[i]);
	world_run(w, 100 * MS);
	gp_sched_hint(w->sched, w->queues[gang[0]].id, 0, w->now_ns);
	world_run(w, 5 * MS);
	world_write(w, gang[0], 1u << 20);
	world_run(w, 50 * MS);
	assert_true(world_is_open(w, gang[0]) && world_is_open(w, sibling));
	world_free(w);
}

/* The work of a gang's urgent member is in doubt for long, and another member gets work. The gang is as urgent as with
 * an urgent member that is idle: what is in doubt may be a packet that waits for this work. */
static void member_in_doubt_lends_its_rank_to_work(void **state)
{
	struct world *w = world_new();
	uint32_t device =
		world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS, .fetch_counters = true },
						      .param = { .age_window_ns = 100 * S } });
	uint32_t high = world_solo(w, device, GP_PRIORITY_HIGH), other = world_solo(w, device, 30), gang[2], i;

	(void)state;
	for (i = 0; i < 2; i++)
		gang[i] = world_queue_attr(
			w, world_client(w), device,
			(struct gp_queue_attr){ .priority = i ? GP_PRIORITY_LOW : GP_PRIORITY_NORMAL, .gang = 7 });
	world_settle(w);
	world_write(w, gang[0], 2);
	for (i = 0; i < 2; i++) {
		world_run(w, 200 * MS);
		world_complete(w, gang[0], 1);
	}
	world_run(w, 700 * MS);
	world_write(w, high, 1);
	world_run(w, 5 * MS);
	assert_true(!world_is_open(w, gang[0]) && world_info(w, gang[0]).has_work);
	world_write(w, other, 1u << 30);
	world_drain(w, high);
	world_run(w, 100 * MS);
	assert_true(world_is_open(w, other) && !world_is_open(w, gang[0])); /* doubt alone holds nobody up */
	world_write(w, gang[1], 1u << 20);
	world_run(w, 50 * MS);
	assert_true(world_is_open(w, gang[0]) && world_is_open(w, gang[1]) && !world_is_open(w, other));
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(announced_work_raises_a_gang_in_doubt),
		cmocka_unit_test(announced_gang_lends_its_rank),
		cmocka_unit_test(member_in_doubt_lends_its_rank_to_work),
		cmocka_unit_test(gang_closes_and_opens_together),
		cmocka_unit_test(gang_waits_for_all_its_devices),
		cmocka_unit_test(gang_opens_after_all_closes_are_acknowledged),
		cmocka_unit_test(gangs_take_turns),
		cmocka_unit_test(idle_gang_loses_its_turn_as_one),
		cmocka_unit_test(starved_gang_ages_as_one),
		cmocka_unit_test(aged_turn_of_a_gang_ends_on_every_device),
		cmocka_unit_test(quarantined_member_keeps_the_gang_open),
		cmocka_unit_test(gang_closes_again_without_the_quarantined),
		cmocka_unit_test(start_ends_the_quarantine_of_the_gang),
		cmocka_unit_test(who_joins_follows_the_quarantined),
		cmocka_unit_test(member_that_closes_outlasts_the_quarantine),
		cmocka_unit_test(stuck_alone_leaves_the_gang_closed),
		cmocka_unit_test(stuck_alone_opens_nobody),
		cmocka_unit_test(followers_are_no_quarantines),
		cmocka_unit_test(large_gang_opens_again),
		cmocka_unit_test(device_without_gating_holds_nobody),
		cmocka_unit_test(several_clients_of_a_gang_are_put_aside_together),
	};

	return cmocka_run_group_tests_name("core_gangs", tests, NULL, NULL);
}
