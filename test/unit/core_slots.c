/* SPDX-License-Identifier: MIT */
/* Admission: compute queues stay within the device's slots, clients within its processes; only what may be parked is
 * parked. */
#include "test/unit/core_world.h"

#define SLOTS  24u
#define QUEUES 30u

/* Thirty queues of one client, all at the top, on 24 slots. Created one microsecond apart. */
static struct world *slots_new(uint32_t *ret_device)
{
	struct world *w = world_new();
	uint32_t client = world_client(w), i;

	*ret_device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_DEVICE, .slot_count = SLOTS } });
	for (i = 0; i < QUEUES; i++) {
		world_queue(w, client, *ret_device, 50);
		world_skip(w, 1 * US);
	}
	return w;
}

/* More queues than slots: those idle longest are parked, down to exactly the number of slots. */
static void longest_idle_is_parked_first(void **state)
{
	uint32_t device, i;
	struct world *w = slots_new(&device);

	for (i = 0; i < QUEUES; i += 3) { /* 0, 3, 6, … were busy a moment ago */
		world_write(w, i, 1);
		world_skip(w, 1 * US);
		world_drain(w, i);
	}
	world_settle(w);
	assert_int_equal(world_open_compute_count(w, device), SLOTS);
	for (i = 0; i < QUEUES; i++)
		assert_int_equal(world_is_open(w, i), !(i == 1 || i == 2 || i == 4 || i == 5 || i == 7 || i == 8));
	assert_int_equal(world_last_order(w, 1, 0)->why, GP_WHY_SLOTS);
	assert_int_equal(w->plan_count, 1);
	assert_true(gp_sched_deadline_ns(w->sched) == GP_NEVER_NS);
	world_free(w);
}

/* Within the slots nobody is parked. */
static void nobody_is_parked_within_the_limit(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .slot_count = 24 } });
	uint32_t client = world_client(w), i;

	for (i = 0; i < 24; i++)
		world_queue(w, client, device, 50);
	world_run(w, 1 * S);
	assert_int_equal(w->plan_count, 0);
	world_free(w);
}

/* Strangers hold slots: what they leave is ours, at least one; when they go, so does the limit. */
static void others_take_slots(void **state)
{
	uint32_t device;
	struct world *w = slots_new(&device);

	assert_int_equal(gp_sched_device_set_others(w->sched, device, 20, 2, w->now_ns), 0);
	world_settle(w);
	assert_int_equal(world_open_compute_count(w, device), SLOTS - 20);
	assert_int_equal(gp_sched_device_set_others(w->sched, device, 200, 2, w->now_ns), 0);
	world_run(w, 1 * S);
	assert_int_equal(world_open_compute_count(w, device), 1);
	assert_int_equal(gp_sched_device_set_others(w->sched, device, 0, 0, w->now_ns), 0);
	for (uint32_t i = 0; i < QUEUES; i++)
		world_write(w, i, 1);
	world_settle(w);
	assert_int_equal(world_open_compute_count(w, device), SLOTS);
	assert_int_equal(gp_sched_device_set_others(w->sched, device + 1, 0, 0, w->now_ns), -EINVAL);
	assert_null(gp_sched_check(w->sched));
	world_free(w);
}

/* A parked queue's doorbell opens it, and another idle one makes room in the same plan. */
static void doorbell_opens_a_parked_queue(void **state)
{
	uint32_t device, first;
	struct world *w = slots_new(&device);

	world_settle(w);
	assert_false(world_is_open(w, 0));
	assert_true(world_is_open(w, 6));
	first = w->order_count;
	world_write(w, 0, 1);
	world_settle(w);
	assert_true(world_is_open(w, 0));
	assert_false(world_is_open(w, 6));
	assert_int_equal(w->order_count - first, 2);
	assert_int_equal(w->orders[first].transaction_count, 1);
	assert_int_equal(world_open_compute_count(w, device), SLOTS);
	world_free(w);
}

/* All busy: never more than the slots are open, everybody runs, and nobody is put aside before it ran for a turn. */
static void busy_queues_share_the_slots_in_turns(void **state)
{
	uint32_t device, i;
	struct world *w = slots_new(&device);
	uint64_t start_ns;

	w->ack_delay_ns = 100 * US;
	for (i = 0; i < QUEUES; i++)
		world_write(w, i, 1000000);
	start_ns = w->now_ns;
	for (i = 0; i < 2000; i++) {
		world_run(w, 200 * US);
		/* Right after their birth the surplus is open until the first plan is carried out. */
		assert_true(world_open_compute_count(w, device) <= SLOTS || w->now_ns - start_ns < 1 * MS);
	}
	for (i = 0; i < QUEUES; i++)
		assert_in_range(w->queues[i].open_ns, 260 * MS, 360 * MS); /* 24/30 of 400 ms is 320 */
	/* 400 ms are ten turns of six newcomers each, and swapping stays within a fifth of the time, 300 us each, and
	 * the first burst. */
	assert_in_range(w->plan_count, 5, 400 * MS / 5 / (300 * US) + 32);
	for (i = 0; i < w->order_count; i++)
		if (!w->orders[i].open && i >= 6)
			assert_true(w->orders[i].time_ns - start_ns >= 39 * MS);
	world_free(w);
}

/* An urgent queue gets its slot from the lowest, not from an equal. */
static void slot_comes_from_the_lowest(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(
		w, (struct world_setup){ .attr = { .slot_count = 2 }, .param = { .overhead_permille = 1000 } });
	uint32_t first = world_solo(w, device, 80), second, low;

	second = world_solo(w, device, 80);
	low = world_solo(w, device, 20);
	world_settle(w);
	assert_false(world_is_open(w, first)); /* idle longest */
	world_write(w, low, 1000);
	world_write(w, second, 1000);
	world_run(w, 1 * MS);
	world_write(w, first, 1000);
	world_run(w, 1 * MS);
	assert_true(world_is_open(w, first));
	assert_true(world_is_open(w, second));
	assert_false(world_is_open(w, low));
	world_free(w);
}

/* Queues whose doorbells are not seen, and copy queues, are never parked, however many there are. */
static void unseen_and_copy_queues_are_never_parked(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_DEVICE, .slot_count = 4 } });
	uint32_t client = world_client(w), i;

	for (i = 0; i < 6; i++)
		world_queue_attr(w, client, device, (struct gp_queue_attr){ .priority = 50, .unseen = true });
	for (i = 0; i < 6; i++)
		world_queue_attr(w, client, device, (struct gp_queue_attr){ .priority = 50, .kind = GP_KIND_COPY });
	world_run(w, 10 * MS);
	assert_int_equal(w->plan_count, 0);
	/* Copy queues take no slot: with four unseen ones gone there is room for two that can be parked. */
	for (i = 0; i < 4; i++)
		world_remove(w, i);
	for (i = 0; i < 3; i++)
		world_queue(w, client, device, 50);
	world_settle(w);
	assert_int_equal(world_open_compute_count(w, device), 4);
	assert_false(world_is_open(w, 12));
	assert_true(world_is_open(w, 13) && world_is_open(w, 14));
	world_free(w);
}

/* Queues that are never parked may fill all slots, even idle: the others then take turns in one more, rather than
 * starve. */
static void unseen_queues_do_not_starve_the_others(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_DEVICE, .slot_count = 2 } });
	uint32_t client = world_client(w), i;

	for (i = 0; i < 3; i++)
		world_queue_attr(w, client, device, (struct gp_queue_attr){ .priority = 50, .unseen = true });
	for (i = 0; i < 3; i++)
		world_write(w, world_queue(w, client, device, 50), 1000000);
	world_run(w, 1 * MS);
	for (i = 0; i < 300; i++) {
		world_run(w, 1 * MS);
		assert_int_equal(world_open_compute_count(w, device), 4);
	}
	for (i = 3; i < 6; i++)
		assert_in_range(w->queues[i].open_ns, 60 * MS, 140 * MS);
	world_free(w);
}

/* A gate opened beyond the slots without our order is parked again. */
static void lost_gate_does_not_oversubscribe(void **state)
{
	uint32_t device;
	struct world *w = slots_new(&device);

	world_settle(w);
	world_gate_lost(w, 0, true);
	world_settle(w);
	assert_int_equal(world_open_compute_count(w, device), SLOTS);
	world_free(w);
}

/* Stock CPSCH: closed gates do not free a process, so nothing is parked for it, but it is said. */
static void process_oversubscription_is_reported(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .process_count_max = 2 } });
	struct gp_trace_event event;
	uint32_t i;

	for (i = 0; i < 4; i++)
		world_solo(w, device, 50);
	world_run(w, 10 * MS);
	assert_int_equal(w->plan_count, 0);
	assert_int_equal(world_trace(w, GP_TRACE_OVERSUBSCRIBED, WORLD_QUEUE_MAX, &event), 1);
	assert_int_equal(event.value, 3);
	world_free(w);
}

static uint32_t open_clients(const struct world *w)
{
	uint32_t i, j, count = 0;

	for (i = 0; i < w->client_count; i++) {
		bool open = false;

		for (j = 0; j < w->queue_count; j++)
			open |= w->queues[j].client == i && w->queues[j].open;
		count += open;
	}
	return count;
}

/* With more processes than places closed gates free no process. Idle queues beyond the slots are parked all the same
 * after a while, so that the runlist of a device at rest fits; those with work never are, and work opens at once. */
static void idle_queues_are_parked_among_too_many_processes(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(
		w,
		(struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS, .slot_count = 4, .process_count_max = 2 } });
	uint32_t i, clients[6];

	for (i = 0; i < 6; i++)
		clients[i] = world_client(w);
	for (i = 0; i < 12; i++)
		world_queue(w, clients[i % 6], device, 50);
	world_run(w, 900 * MS);
	assert_int_equal(w->plan_count, 0);
	world_run(w, 200 * MS);
	assert_int_equal(world_open_compute_count(w, device), 4);
	assert_int_equal(open_clients(w), 2);
	i = w->plan_count;
	world_run(w, 60 * S);
	assert_int_equal(w->plan_count, i); /* nothing happens, and nobody wakes up for it */
	for (i = 0; i < 12; i++)
		world_write(w, i, 1000000);
	world_run(w, 1 * MS);
	assert_int_equal(world_open_compute_count(w, device), 12);
	world_run(w, 5 * S);
	assert_int_equal(world_open_compute_count(w, device), 12);
	world_free(w);
}

/* Where counters move at fetch a queue that had work may still run a long packet. It is not parked: nothing would open
 * it again. One that never had any is. */
static void idle_queues_that_fetch_are_not_parked(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS,
									  .slot_count = 4,
									  .process_count_max = 2,
									  .fetch_counters = true } });
	uint32_t i, clients[6];

	(void)state;
	for (i = 0; i < 6; i++)
		clients[i] = world_client(w);
	for (i = 0; i < 12; i++)
		world_queue(w, clients[i % 6], device, 50);
	for (i = 0; i < 12; i += 2)
		world_write(w, i, 1);
	world_run(w, 10 * MS);
	for (i = 0; i < 12; i += 2)
		world_drain(w, i);
	world_run(w, 30 * S);
	for (i = 0; i < 12; i++)
		assert_int_equal(world_is_open(w, i), i % 2 == 0);
	assert_in_range(w->plan_count, 1, 6);
	world_free(w);
}

/* Those that had work before the others came stay open and hide none of them. */
static void queues_that_fetched_hide_nobody(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS,
									  .slot_count = 4,
									  .process_count_max = 2,
									  .fetch_counters = true } });
	uint32_t i, clients[3];

	(void)state;
	for (i = 0; i < 3; i++) {
		clients[i] = world_client(w);
		world_write(w, world_queue(w, clients[i], device, 50), 1);
	}
	world_run(w, 10 * MS);
	for (i = 0; i < 3; i++)
		world_drain(w, i);
	world_run(w, 1 * S);
	for (i = 0; i < 12; i++)
		world_queue(w, clients[i % 3], device, 50);
	world_run(w, 10 * S);
	assert_int_equal(world_open_compute_count(w, device), 4);
	world_free(w);
}

/* A client with many idle queues, which stays open because it works, does not hide the idle clients behind it. */
static void many_idle_queues_hide_nobody(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(
		w,
		(struct world_setup){ .attr = { .queue_max = 300, .unit = GP_UNIT_PROCESS, .process_count_max = 2 } });
	uint32_t i, many = world_client(w);

	for (i = 0; i < 270; i++)
		world_queue(w, many, device, 50);
	world_write(w, world_queue(w, many, device, 50), 1000000);
	for (i = 0; i < 6; i++)
		world_queue(w, world_client(w), device, 50);
	world_run(w, 5 * S);
	assert_in_range(open_clients(w), 1, 2);
	world_free(w);
}

/* Where closing a client's last gate frees its process, no more clients than processes are open, and all get their
 * time. */
static void processes_are_parked(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(
		w, (struct world_setup){
			   .attr = { .unit = GP_UNIT_DEVICE, .process_count_max = 2, .process_parking = true } });
	uint32_t i, client;

	for (i = 0; i < 4; i++) {
		client = world_client(w);
		world_queue(w, client, device, 50);
		world_queue(w, client, device, 50);
	}
	world_settle(w);
	assert_int_equal(open_clients(w), 2);
	for (i = 0; i < 8; i++)
		world_write(w, i, 1000000);
	for (i = 0; i < 400; i++) {
		world_run(w, 1 * MS);
		assert_int_equal(open_clients(w), 2);
	}
	for (i = 0; i < 8; i++)
		assert_in_range(w->queues[i].open_ns, 120 * MS, 280 * MS);
	world_free(w);
}

/* Turns as short as a few changes of gates, and no limit on what those may cost: equals that take the slots from each
 * other leave the device at least half of its time. */
static void short_turns_leave_time_for_work(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(
		w,
		(struct world_setup){
			.attr = { .unit = GP_UNIT_QUEUE, .slot_count = 8, .close_ns = 105 * US, .open_ns = 105 * US },
			.param = { .turn_ns = 1 * MS, .overhead_permille = 1000 } });
	uint32_t i;

	(void)state;
	for (i = 0; i < 14; i++) {
		world_write(w, world_solo(w, device, 50), 1u << 30);
		world_run(w, 150 * US);
	}
	world_run(w, 1 * S);
	assert_in_range(world_stats(w, device).transactions * 105 * US, 100 * MS, 500 * MS);
	for (i = 0; i < 14; i++)
		assert_in_range(w->queues[i].open_ns, 560 * MS, 585 * MS); /* 8 of 14 */
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_turns_leave_time_for_work),
		cmocka_unit_test(longest_idle_is_parked_first),
		cmocka_unit_test(nobody_is_parked_within_the_limit),
		cmocka_unit_test(others_take_slots),
		cmocka_unit_test(doorbell_opens_a_parked_queue),
		cmocka_unit_test(busy_queues_share_the_slots_in_turns),
		cmocka_unit_test(slot_comes_from_the_lowest),
		cmocka_unit_test(unseen_and_copy_queues_are_never_parked),
		cmocka_unit_test(unseen_queues_do_not_starve_the_others),
		cmocka_unit_test(lost_gate_does_not_oversubscribe),
		cmocka_unit_test(process_oversubscription_is_reported),
		cmocka_unit_test(idle_queues_are_parked_among_too_many_processes),
		cmocka_unit_test(idle_queues_that_fetch_are_not_parked),
		cmocka_unit_test(queues_that_fetched_hide_nobody),
		cmocka_unit_test(many_idle_queues_hide_nobody),
		cmocka_unit_test(processes_are_parked),
	};

	return cmocka_run_group_tests_name("core_slots", tests, NULL, NULL);
}
