/* SPDX-License-Identifier: MIT */
/* Guaranteed shares: who has one gets it while it has work, whatever goes before it; no more than that, and nobody may
 * promise more than there is. */
#include <errno.h>
#include "test/unit/core_world.h"

static struct gp_queue_attr floor_attr(int32_t priority, uint32_t permille)
{
	return (struct gp_queue_attr){ .priority = priority, .floor_permille = permille };
}

static uint32_t floor_solo(struct world *w, uint32_t device, int32_t priority, uint32_t permille)
{
	uint32_t queue = world_queue_attr(w, world_client(w), device, floor_attr(priority, permille));

	world_write(w, queue, 1000000);
	return queue;
}

/* Permille of the time since it was last asked in which the queue's gate was open. */
static uint64_t part(struct world *w, uint32_t queue, uint64_t duration_ns)
{
	uint64_t open_ns = world_info(w, queue).run_ns;

	world_run(w, duration_ns);
	return (world_info(w, queue).run_ns - open_ns) * 1000 / duration_ns;
}

static const enum gp_unit units[] = { GP_UNIT_PROCESS, GP_UNIT_QUEUE, GP_UNIT_DEVICE };
#define UNITS (sizeof(units) / sizeof(units[0]))

/* Beside a client that is more urgent and never idle: three tenths, in each second, and not much more. */
static void a_floor_is_met(void **state)
{
	for (size_t i = 0; i < UNITS; i++) {
		struct world *w = world_new();
		uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = units[i] } });
		uint32_t high = floor_solo(w, device, 90, 0), low = floor_solo(w, device, 10, 300);

		world_settle(w);
		world_run(w, S);
		for (int second = 0; second < 5; second++)
			assert_in_range(part(w, low, S), 290, 330);
		assert_in_range(part(w, high, S), 600, 710);
		assert_null(gp_sched_check(w->sched));
		world_free(w);
	}
}

/* Without one the same client has what ageing gives. */
static void without_one_there_is_ageing(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });
	uint32_t low;

	floor_solo(w, device, 90, 0);
	low = floor_solo(w, device, 10, 0);
	world_settle(w);
	world_run(w, S);
	assert_true(part(w, low, 5 * S) < 50);
	world_free(w);
}

/* Each of several has its own; between them and the urgent one the rest. */
static void several_floors(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });
	uint32_t a, b;

	floor_solo(w, device, 90, 0);
	a = floor_solo(w, device, 10, 300);
	b = floor_solo(w, device, 20, 150);
	floor_solo(w, device, 50, 0);
	world_settle(w);
	world_run(w, S);
	assert_in_range(part(w, a, 5 * S), 290, 340);
	assert_in_range(part(w, b, 5 * S), 140, 190);
	assert_null(gp_sched_check(w->sched));
	world_free(w);
}

/* Who has more than its share anyway goes before nobody. */
static void a_floor_is_no_priority(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });
	uint32_t high = world_solo(w, device, 90), low = floor_solo(w, device, 10, 300), i;

	world_settle(w);
	for (i = 0; i < 50; i++) { /* a tenth of the time */
		world_run(w, 90 * MS);
		world_write(w, high, 1);
		world_settle(w);
		world_run(w, MS);
		assert_false(world_is_open(w, low));
		world_run(w, 9 * MS);
		world_drain(w, high);
		world_settle(w);
	}
	assert_int_equal(world_trace(w, GP_TRACE_FLOOR, WORLD_QUEUE_MAX, NULL), 0);
	world_free(w);
}

/* Copies are owed nothing: they could never pay it back, and would hold everybody out. */
static void copies_are_not_behind(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });
	uint32_t high = floor_solo(w, device, 90, 0), client = world_client(w);
	struct gp_queue_attr copies = floor_attr(10, 300);
	uint32_t low = world_queue_attr(w, client, device, floor_attr(10, 300)), copy;

	copies.kind = GP_KIND_COPY;
	copy = world_queue_attr(w, client, device, copies);
	world_write(w, copy, 1000000);
	world_settle(w);
	world_run(w, S);
	assert_in_range(part(w, high, 5 * S), 900, 1000);
	assert_int_equal(world_trace(w, GP_TRACE_FLOOR, WORLD_QUEUE_MAX, NULL), 0);
	world_write(w, low, 1000000); /* with work to compute its client has its share */
	world_settle(w);
	world_run(w, S);
	assert_in_range(part(w, low, 5 * S), 290, 330);
	world_free(w);
}

/* A share is of the time in which there is work: who comes back is owed nothing for the time without. */
static void idle_time_earns_nothing(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });
	uint32_t low;

	floor_solo(w, device, 90, 0);
	low = floor_solo(w, device, 10, 300);
	world_settle(w);
	world_run(w, S);
	for (uint32_t i = 0; i < 1000 && !world_is_open(w, low); i++)
		world_run(w, MS);
	world_drain(w, low);
	world_settle(w);
	world_run(w, 10 * S);
	world_write(w, low, 1000000);
	world_settle(w);
	assert_in_range(part(w, low, 100 * MS), 200, 400);
	world_free(w);
}

/* What the budget and ageing may take is not promised to anybody: 700 of 1000. */
static void promises_are_kept_to_what_there_is(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });
	uint32_t one = floor_solo(w, device, 10, 400), other = floor_solo(w, device, 10, 300), client = world_client(w);
	struct gp_queue_attr attr = floor_attr(10, 1);
	struct gp_queue_id id;

	assert_int_equal(gp_sched_queue_add(w->sched, w->clients[client], device, &attr, w->now_ns, &id), -EDQUOT);
	attr.floor_permille = 1000;
	assert_int_equal(gp_sched_queue_add(w->sched, w->clients[client], device, &attr, w->now_ns, &id), -EINVAL);
	attr.floor_permille = 401;
	assert_int_equal(gp_sched_queue_set_attr(w->sched, w->queues[one].id, &attr, w->now_ns), -EDQUOT);
	attr.floor_permille = 100;
	assert_int_equal(gp_sched_queue_set_attr(w->sched, w->queues[one].id, &attr, w->now_ns), 0);
	/* A second queue of the client has the client's share, not one more. */
	attr.floor_permille = 300;
	assert_int_equal(
		gp_sched_queue_add(w->sched, w->clients[w->queues[other].client], device, &attr, w->now_ns, &id), 0);
	attr.floor_permille = 300;
	assert_int_equal(gp_sched_queue_set_attr(w->sched, w->queues[one].id, &attr, w->now_ns), 0);
	world_remove(w, one);
	attr.floor_permille = 400;
	assert_int_equal(gp_sched_queue_add(w->sched, w->clients[client], device, &attr, w->now_ns, &id), 0);
	assert_null(gp_sched_check(w->sched));
	world_free(w);
}

/* It goes while it is behind; somebody else is open a moment later. */
static void one_that_is_behind_may_go(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });
	uint32_t high = floor_solo(w, device, 90, 0), low = floor_solo(w, device, 10, 300), i;

	world_settle(w);
	for (i = 0; i < 1000 && !world_is_open(w, low); i++)
		world_run(w, MS);
	assert_true(world_is_open(w, low));
	assert_int_equal(world_last_order(w, low, 0)->why, GP_WHY_FLOOR);
	world_remove(w, low);
	world_settle(w);
	world_run(w, MS);
	assert_true(world_is_open(w, high));
	assert_null(gp_sched_check(w->sched));
	world_free(w);
}

/* Permille of the device that a queue has where it shares it with all that are open, or, on a device that switches by
 * itself, has nothing beside those of the queues `above` that are open. */
static uint64_t device_part(struct world *w, uint32_t queue, uint64_t above, uint64_t duration_ns)
{
	const uint64_t step_ns = 100 * US;
	uint64_t part = 0;

	for (uint64_t t = 0; t < duration_ns; t += step_ns) {
		uint32_t open = 0;
		bool aside = false;

		world_run(w, step_ns);
		for (uint32_t i = 0; i < w->queue_count; i++) {
			open += world_is_open(w, i);
			aside |= world_is_open(w, i) && above >> i & 1;
		}
		if (world_is_open(w, queue) && !aside)
			part += above ? 1000 : 1000 / open;
	}
	return part * step_ns / duration_ns;
}

/* Beside others of its own priority whose gates are open too, a share is of what is left for it. */
static void equals_are_counted(void **state)
{
	for (size_t i = 0; i < UNITS; i++) {
		struct world *w = world_new();
		uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = units[i] } });
		uint32_t one = floor_solo(w, device, 90, 400), other = floor_solo(w, device, 90, 0);

		floor_solo(w, device, 90, 0);
		floor_solo(w, device, 90, 0);
		world_settle(w);
		world_run(w, S);
		for (int second = 0; second < 3; second++)
			assert_in_range(device_part(w, one, 0, S), 380, 440);
		assert_in_range(device_part(w, other, 0, S), 170, 210);
		assert_null(gp_sched_check(w->sched));
		world_free(w);
	}
}

/* A device that switches by itself leaves the gate of a lower one open, and puts it aside for as long as there is work
 * above it: its share is what it has while those above are closed. */
static void open_and_put_aside_is_nothing(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .param = { .rest_ns = 3600 * S },
								.attr = { .unit = GP_UNIT_PROCESS,
									  .switch_ns = 200 * US,
									  .lower_max = 1,
									  .short_ns = US,
									  .slice_ns = 400 * US,
									  .long_ns = 5 * MS,
									  .close_ns = 700 * US,
									  .open_ns = 300 * US } });
	uint32_t high = floor_solo(w, device, 90, 0), top = floor_solo(w, device, 90, 0);
	uint32_t low = floor_solo(w, device, 10, 300), equal = floor_solo(w, device, 10, 0);
	uint64_t above = 1u << high | 1u << top;

	w->ack_delay_ns = w->slice_delay_ns = 400 * US;
	world_settle(w);
	world_run(w, S);
	for (int second = 0; second < 3; second++)
		assert_in_range(device_part(w, low, above, S), 290, 350);
	assert_true(device_part(w, equal, above | 1u << low, S) < 60);
	assert_null(gp_sched_check(w->sched));
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_floor_is_met),
		cmocka_unit_test(without_one_there_is_ageing),
		cmocka_unit_test(several_floors),
		cmocka_unit_test(a_floor_is_no_priority),
		cmocka_unit_test(copies_are_not_behind),
		cmocka_unit_test(idle_time_earns_nothing),
		cmocka_unit_test(promises_are_kept_to_what_there_is),
		cmocka_unit_test(one_that_is_behind_may_go),
		cmocka_unit_test(equals_are_counted),
		cmocka_unit_test(open_and_put_aside_is_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
