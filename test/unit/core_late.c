/* SPDX-License-Identifier: MIT */
/* Who is late: a driver with a lease, a client with the answers to its aged turns. */
#include <errno.h>
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

static const struct world_setup process_unit = { .attr = { .unit = GP_UNIT_PROCESS } };

/* The driver answers by hand from here on; the next close is under way. */
static void pair_await_close(const struct pair *p)
{
	p->w->ack = WORLD_ACK_BY_HAND;
	world_settle(p->w);
	while (!p->w->devices[p->device].in_flight)
		world_run(p->w, 100 * US);
	assert_int_equal(world_gate(p->w, p->low), GP_GATE_CLOSING);
}

/* The driver was late to renew the lease in each of its closes: that is nobody's failure, and the gate is closed again
 * at once. If the program opened it as well, it counts. */
static void lease_lost_in_each_close_is_no_failure(void **state)
{
	struct pair p = pair_new(process_unit);
	const struct gp_queue_id *low = &p.w->queues[p.low].id;
	uint32_t i;

	(void)state;
	world_write(p.w, p.high, 1000);
	for (i = 0; i < 10; i++) {
		pair_await_close(&p);
		assert_int_equal(gp_sched_lease_lost(p.w->sched, *low, p.w->now_ns), 0);
		world_ack(p.w, p.device);
		world_settle(p.w);
		assert_int_equal(world_gate(p.w, p.low), GP_GATE_OPENING);
		world_ack(p.w, p.device);
	}
	assert_int_equal(world_stats(p.w, p.device).order_failures, 0);
	for (i = 0; i < 3; i++) {
		pair_await_close(&p);
		assert_int_equal(gp_sched_lease_lost(p.w->sched, *low, p.w->now_ns), 0);
		assert_int_equal(gp_sched_gate_lost(p.w->sched, *low, true, p.w->now_ns), 0);
		assert_int_equal(gp_sched_lease_lost(p.w->sched, *low, p.w->now_ns), 0);
		world_ack(p.w, p.device);
		while (!p.w->devices[p.device].in_flight)
			world_run(p.w, 100 * US);
		world_ack(p.w, p.device);
	}
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_QUARANTINED);
	world_free(p.w);
}

/* With a closed gate it means what a lost gate means; an open one stays as it is, and so does one that opens. */
static void lease_lost_of_a_closed_gate(void **state)
{
	struct pair p = pair_new(process_unit);
	const struct gp_queue_id *low = &p.w->queues[p.low].id;

	(void)state;
	world_write(p.w, p.high, 1000);
	world_run(p.w, 10 * MS);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_CLOSED);
	p.w->queues[p.low].open = true;
	assert_int_equal(gp_sched_lease_lost(p.w->sched, *low, p.w->now_ns), 0);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_OPEN);
	world_run(p.w, 10 * MS);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_CLOSED);
	p.w->ack = WORLD_ACK_BY_HAND;
	world_drain(p.w, p.high);
	world_run(p.w, 10 * MS);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_OPENING);
	assert_int_equal(gp_sched_lease_lost(p.w->sched, *low, p.w->now_ns), 0);
	world_ack(p.w, p.device);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_OPEN);
	assert_int_equal(gp_sched_lease_lost(p.w->sched, *low, p.w->now_ns), 0);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_OPEN);
	assert_int_equal(gp_sched_lease_lost(p.w->sched, (struct gp_queue_id){ 999, 1 }, p.w->now_ns), -ESTALE);
	world_free(p.w);
}

/* A client completes nothing in its first aged turn, and answers the orders of all others after these are over. None of
 * them can be judged, so it does not back off. Another client yields to it once, and to no turn that follows. When the
 * client answers promptly again it has turns to itself as before. */
static void nobody_yields_to_a_late_client_for_ever(void **state)
{
	struct pair p = pair_new((struct world_setup){
		.attr = { .unit = GP_UNIT_PROCESS, .ack_timeout_ns = 40 * MS },
		.param = { .age_window_ns = 50 * MS, .age_turn_ns = 5 * MS, .overhead_permille = 1000 } });
	const struct gp_plan *plan = &p.w->devices[p.device].plan;
	uint32_t i, k, yields = 0, turns = 0;
	struct world *w = p.w;
	struct gp_plan unanswered;
	uint64_t late_ns = 0;

	(void)state;
	world_write(w, p.high, 1u << 30);
	world_settle(w);
	w->ack = WORLD_ACK_BY_HAND;
	for (i = 0; i < 1000; i++) {
		world_run(w, 1 * MS);
		if (late_ns && w->now_ns >= late_ns) {
			world_ack_order(w, &unanswered, &unanswered.open[0], true);
			late_ns = 0;
		}
		if (!w->devices[p.device].in_flight)
			continue;
		for (k = 0; k < plan->close_count; k++)
			yields += plan->close[k].why == GP_WHY_YIELD;
		if (!plan->open_count || plan->open[0].queue.index != w->queues[p.low].id.index || !turns++) {
			world_ack(w, p.device);
			continue;
		}
		for (k = 0; k < plan->close_count; k++)
			world_ack_order(w, plan, &plan->close[k], false);
		unanswered = *plan;
		late_ns = w->now_ns + 30 * MS;
		w->devices[p.device].in_flight = false;
	}
	assert_true(turns >= 5);
	assert_int_equal(yields, 1);
	w->ack = WORLD_ACK_DELAYED;
	for (i = 0; i < 300 && !(world_is_open(w, p.low) && !world_is_open(w, p.high)); i++)
		world_run(w, 1 * MS);
	assert_true(world_is_open(w, p.low) && !world_is_open(w, p.high));
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lease_lost_in_each_close_is_no_failure),
		cmocka_unit_test(lease_lost_of_a_closed_gate),
		cmocka_unit_test(nobody_yields_to_a_late_client_for_ever),
	};

	return cmocka_run_group_tests_name("core_late", tests, NULL, NULL);
}
