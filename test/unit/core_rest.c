/* SPDX-License-Identifier: MIT */
/* A device on which nobody has work: closed gates whose doorbells are not seen need somebody who looks, until they
 * open. */
#include "test/unit/core_world.h"

struct rest {
	struct world *w;
	uint32_t device, urgent, seen, unseen;
};

/* An urgent client, and a batch client of whose two queues one is not seen; both idle and closed, because the urgent
 * one had work. */
static struct rest rest_new(struct world_setup setup)
{
	struct rest r = { .w = world_new() };
	uint32_t client;

	r.device = world_device(r.w, setup);
	r.urgent = world_solo(r.w, r.device, GP_PRIORITY_HIGH);
	client = world_client(r.w);
	r.seen = world_queue(r.w, client, r.device, GP_PRIORITY_LOW);
	r.unseen = world_queue_attr(r.w, client, r.device,
				    (struct gp_queue_attr){ .priority = GP_PRIORITY_LOW, .unseen = true });
	world_settle(r.w);
	world_write(r.w, r.urgent, 1);
	world_run(r.w, 10 * MS);
	assert_false(world_is_open(r.w, r.seen) || world_is_open(r.w, r.unseen));
	world_drain(r.w, r.urgent);
	world_run(r.w, 100 * MS);
	assert_false(world_is_open(r.w, r.seen) || world_is_open(r.w, r.unseen));
	return r;
}

/* Requests that come again and again find idle gates closed; when there have been none for a while they open, those of
 * a client in one transaction, and nothing happens after that. */
static void idle_gates_open_on_a_device_that_rests(void **state)
{
	struct rest r = rest_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });
	uint64_t transactions = world_stats(r.w, r.device).transactions;
	uint32_t i;

	(void)state;
	for (i = 0; i < 20; i++) {
		world_write(r.w, r.urgent, 1);
		world_run(r.w, 1 * MS);
		world_drain(r.w, r.urgent);
		world_run(r.w, 500 * MS);
		assert_false(world_is_open(r.w, r.unseen));
	}
	assert_int_equal(world_stats(r.w, r.device).transactions, transactions);
	world_run(r.w, 2 * S);
	assert_true(world_is_open(r.w, r.unseen) && world_is_open(r.w, r.seen));
	assert_int_equal(world_last_order(r.w, r.unseen, 0)->why, GP_WHY_REST);
	assert_int_equal(world_last_order(r.w, r.seen, 0)->why, GP_WHY_COMPANY);
	assert_int_equal(world_stats(r.w, r.device).transactions, transactions + 1);
	assert_int_equal(gp_sched_deadline_ns(r.w->sched), UINT64_MAX);
	world_write(r.w, r.urgent, 1);
	world_run(r.w, 1 * MS);
	assert_false(world_is_open(r.w, r.unseen) || world_is_open(r.w, r.seen));
	world_free(r.w);
}

/* Where all doorbells are seen closed gates stay as they are: they cost nobody anything. */
static void seen_gates_stay_closed(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });
	uint32_t urgent = world_solo(w, device, GP_PRIORITY_HIGH), batch = world_solo(w, device, GP_PRIORITY_LOW);

	(void)state;
	world_settle(w);
	world_write(w, urgent, 1);
	world_run(w, 1 * MS);
	world_drain(w, urgent);
	world_run(w, 10 * S);
	assert_false(world_is_open(w, batch));
	world_free(w);
}

/* One that has no turn opens too; it closes again when another batch client gets work, and its own work waits then. */
static void without_a_turn_until_somebody_has_work(void **state)
{
	struct rest r =
		rest_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS }, .param = { .rest_ns = 3600 * S } });
	uint32_t client = world_client(r.w), other;

	(void)state;
	other = world_queue_attr(r.w, client, r.device,
				 (struct gp_queue_attr){ .priority = GP_PRIORITY_LOW, .unseen = true });
	world_run(r.w, 3 * S);
	assert_true(world_is_open(r.w, r.unseen) && world_is_open(r.w, other));
	world_write(r.w, r.unseen, 1000);
	world_run(r.w, 1 * MS);
	assert_true(world_is_open(r.w, r.unseen));
	assert_false(world_is_open(r.w, other));
	world_write(r.w, other, 1);
	world_run(r.w, 100 * US);
	assert_false(world_is_open(r.w, other));
	world_run(r.w, 2 * S); /* its turn comes */
	assert_true(r.w->queues[other].open_ns > 0);
	world_free(r.w);
}

/* A gate that cannot be opened is tried again, ever more seldom, and does not keep the others closed. */
static void one_that_fails_keeps_no_other(void **state)
{
	struct rest r = rest_new((struct world_setup){ .attr = { .unit = GP_UNIT_QUEUE } });
	uint32_t second = world_queue_attr(r.w, r.w->queues[r.unseen].client, r.device,
					   (struct gp_queue_attr){ .priority = GP_PRIORITY_LOW, .unseen = true });

	(void)state;
	world_write(r.w, r.urgent, 1);
	world_run(r.w, 10 * MS);
	world_drain(r.w, r.urgent);
	assert_false(world_is_open(r.w, second));
	r.w->queues[r.unseen].open_result = -5;
	world_run(r.w, 5 * S);
	assert_true(world_is_open(r.w, second));
	assert_true(r.w->plan_count < 1000);
	r.w->queues[r.unseen].open_result = 0;
	world_run(r.w, 60 * S);
	assert_true(world_is_open(r.w, r.unseen));
	world_free(r.w);
}

/* Where there are fewer slots than such queues, the rest stay closed: one more for each that is open would fill the
 * device. */
static void no_more_than_there_are_slots(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_QUEUE, .slot_count = 3 } });
	uint32_t urgent = world_solo(w, device, GP_PRIORITY_HIGH), client = world_client(w), i;

	(void)state;
	for (i = 0; i < 6; i++)
		world_queue_attr(w, client, device,
				 (struct gp_queue_attr){ .priority = GP_PRIORITY_LOW, .unseen = true });
	world_settle(w);
	world_write(w, urgent, 1);
	world_run(w, 10 * MS);
	assert_int_equal(world_open_compute_count(w, device), 1);
	world_remove(w, urgent); /* all slots are theirs */
	world_run(w, 5 * S);
	assert_int_equal(world_open_compute_count(w, device), 3);
	world_free(w);
}

struct idle_top {
	struct world *w;
	uint32_t device, urgent, batch[2];
};

/* An urgent client that had work once, and two batch clients that always have. */
static struct idle_top idle_top_new(uint64_t switch_ns)
{
	struct idle_top t = { .w = world_new() };
	uint32_t i;

	t.device = world_device(
		t.w,
		(struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS, .switch_ns = switch_ns, .lower_max = 1 } });
	t.urgent = world_solo(t.w, t.device, GP_PRIORITY_HIGH);
	for (i = 0; i < 2; i++) {
		t.batch[i] = world_solo(t.w, t.device, GP_PRIORITY_LOW);
		world_write(t.w, t.batch[i], 1000000000);
	}
	world_write(t.w, t.urgent, 1);
	world_run(t.w, 1 * MS);
	world_drain(t.w, t.urgent);
	return t;
}

static int32_t idle_top_priority(const struct idle_top *t)
{
	int32_t top = -1;

	assert_int_equal(gp_sched_priority_top(t->w->sched, t->device, &top), 0);
	return top;
}

/* While the urgent client had work a moment ago batch clients take turns; then nobody is held out and nothing is
 * ordered, until it has work again: then it has the device as before. */
static void nobody_is_held_out_for_one_without_work(void **state)
{
	uint32_t kind, orders;

	(void)state;
	for (kind = 0; kind < 2; kind++) {
		struct idle_top t = idle_top_new(kind ? 200 * US : 0);

		world_run(t.w, 900 * MS);
		assert_int_equal(world_is_open(t.w, t.batch[0]) + world_is_open(t.w, t.batch[1]), 1);
		assert_int_equal(idle_top_priority(&t), GP_PRIORITY_HIGH);
		world_run(t.w, 200 * MS);
		assert_true(world_is_open(t.w, t.batch[0]) && world_is_open(t.w, t.batch[1]));
		assert_int_equal(idle_top_priority(&t), GP_PRIORITY_LOW);
		orders = t.w->order_count;
		world_run(t.w, 10 * S);
		assert_int_equal(t.w->order_count, orders);
		world_write(t.w, t.urgent, 1);
		world_run(t.w, 1 * MS);
		assert_int_equal(world_is_open(t.w, t.batch[0]) + world_is_open(t.w, t.batch[1]), kind);
		assert_int_equal(idle_top_priority(&t), GP_PRIORITY_HIGH);
		world_drain(t.w, t.urgent);
		world_run(t.w, 900 * MS);
		assert_int_equal(world_is_open(t.w, t.batch[0]) + world_is_open(t.w, t.batch[1]), 1);
		world_free(t.w);
	}
}

/* An announcement ends the rest as work does. */
static void announced_work_ends_the_rest(void **state)
{
	struct idle_top t = idle_top_new(0);

	(void)state;
	world_run(t.w, 2 * S);
	assert_true(world_is_open(t.w, t.batch[0]) && world_is_open(t.w, t.batch[1]));
	assert_int_equal(gp_sched_hint(t.w->sched, t.w->queues[t.urgent].id, 300 * US, t.w->now_ns), 0);
	world_run(t.w, 300 * US);
	assert_false(world_is_open(t.w, t.batch[0]) || world_is_open(t.w, t.batch[1]));
	world_free(t.w);
}

/* With one batch client nobody is held out, and nothing changes. */
static void one_alone_stays_below(void **state)
{
	struct idle_top t = idle_top_new(200 * US);

	(void)state;
	world_remove(t.w, t.batch[1]);
	world_run(t.w, 5 * S);
	assert_int_equal(idle_top_priority(&t), GP_PRIORITY_HIGH);
	assert_int_equal(gp_sched_deadline_ns(t.w->sched), UINT64_MAX);
	world_free(t.w);
}

/* Below one that rests the next priority is the top: those below that one still take turns. */
static void the_next_priority_is_the_top(void **state)
{
	struct idle_top t = idle_top_new(200 * US);
	uint32_t middle[2], i, k;

	(void)state;
	for (i = 0; i < 2; i++)
		middle[i] = world_solo(t.w, t.device, GP_PRIORITY_NORMAL);
	for (i = 0; i < 50; i++) {
		world_write(t.w, middle[0], 1);
		world_write(t.w, middle[1], 1);
		world_run(t.w, 50 * MS);
		if (i > 30) {
			assert_true(world_is_open(t.w, middle[0]) && world_is_open(t.w, middle[1]));
			assert_int_equal(world_is_open(t.w, t.batch[0]) + world_is_open(t.w, t.batch[1]), 1);
		}
		for (k = 0; k < 2; k++)
			if (world_is_open(t.w, middle[k]))
				world_drain(t.w, middle[k]);
		world_run(t.w, 20 * MS);
	}
	assert_int_equal(idle_top_priority(&t), GP_PRIORITY_NORMAL);
	world_free(t.w);
}

/* One whose requests come every three seconds: after a few of them the device does not rest in between. */
static void seldom_requests_are_waited_for(void **state)
{
	struct idle_top t = idle_top_new(0);
	uint32_t i, open = 0;

	(void)state;
	for (i = 0; i < 30; i++) {
		world_run(t.w, 3 * S);
		open += world_is_open(t.w, t.batch[0]) && world_is_open(t.w, t.batch[1]);
		world_write(t.w, t.urgent, 1);
		world_run(t.w, 2 * MS);
		world_drain(t.w, t.urgent);
	}
	assert_in_range(open, 1, 15);
	assert_int_equal(world_is_open(t.w, t.batch[0]) && world_is_open(t.w, t.batch[1]), 0);
	world_run(t.w, 9 * S); /* but not for ever */
	assert_true(world_is_open(t.w, t.batch[0]) && world_is_open(t.w, t.batch[1]));
	world_free(t.w);
}

/* The only batch client has the turn, and waits for a budget that was spent on closing its gates. Nobody above it has
 * work: it is not held out for that any longer than one without the turn would be. */
static void budget_does_not_outlast_a_rest(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_QUEUE },
								.param = { .rest_ns = 10 * MS,
									   .overhead_permille = 10,
									   .burst = 1,
									   .age_window_ns = 100 * S } });
	uint32_t urgent = world_solo(w, device, GP_PRIORITY_HIGH), batch = world_client(w), queues[2], i;

	(void)state;
	for (i = 0; i < 2; i++)
		queues[i] = world_queue(w, batch, device, GP_PRIORITY_LOW);
	world_run(w, 1 * S);
	for (i = 0; i < 2; i++)
		world_write(w, queues[i], 1u << 30);
	world_run(w, 1 * S);
	assert_true(world_is_open(w, queues[0]) && world_is_open(w, queues[1]));
	world_write(w, urgent, 1);
	world_run(w, 2 * MS);
	assert_true(!world_is_open(w, queues[0]) && !world_is_open(w, queues[1]));
	world_drain(w, urgent);
	world_run(w, 12 * MS);
	assert_true(world_is_open(w, queues[0]) && world_is_open(w, queues[1]));
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(idle_gates_open_on_a_device_that_rests),
		cmocka_unit_test(seen_gates_stay_closed),
		cmocka_unit_test(without_a_turn_until_somebody_has_work),
		cmocka_unit_test(one_that_fails_keeps_no_other),
		cmocka_unit_test(no_more_than_there_are_slots),
		cmocka_unit_test(nobody_is_held_out_for_one_without_work),
		cmocka_unit_test(announced_work_ends_the_rest),
		cmocka_unit_test(one_alone_stays_below),
		cmocka_unit_test(the_next_priority_is_the_top),
		cmocka_unit_test(seldom_requests_are_waited_for),
		cmocka_unit_test(budget_does_not_outlast_a_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
