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
	struct rest r = rest_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(idle_gates_open_on_a_device_that_rests),
		cmocka_unit_test(seen_gates_stay_closed),
		cmocka_unit_test(without_a_turn_until_somebody_has_work),
		cmocka_unit_test(one_that_fails_keeps_no_other),
		cmocka_unit_test(no_more_than_there_are_slots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
