/* SPDX-License-Identifier: MIT */
/* Who holds a turn is charged for it, and gives it back when it needs none. */
#include "test/unit/core_world.h"

/* wfq: one that only copies is charged for its turn like any other: two such clients share, and the core does not wake
 * at every nanosecond to ask whether they are level. */
static void wfq_copies_are_charged(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .policy = "wfq",
								.attr = { .unit = GP_UNIT_PROCESS },
								.param = { .overhead_permille = 1000 } });
	const struct gp_queue_attr copy = { .priority = GP_PRIORITY_NORMAL, .kind = GP_KIND_COPY };
	uint32_t copies = world_queue_attr(w, world_client(w), device, copy);
	uint32_t computes = world_solo(w, device, GP_PRIORITY_NORMAL), looks = 0;
	uint64_t end_ns;

	world_write(w, copies, 1u << 30);
	world_write(w, computes, 1u << 30);
	for (end_ns = w->now_ns + 2 * S; w->now_ns < end_ns; looks++) {
		uint64_t next_ns = gp_sched_deadline_ns(w->sched);

		world_run(w, next_ns > w->now_ns && next_ns < end_ns ? next_ns - w->now_ns : 1 * MS);
		assert_true(looks < 10000);
	}
	assert_in_range(w->queues[copies].open_ns, 800 * MS, 1200 * MS);
	assert_in_range(w->queues[computes].open_ns, 800 * MS, 1200 * MS);
	world_free(w);
}

/* A client whose queues are raised to the top one after the other needs no turn any more: it does not keep one, behind
 * which the gates of two others would be open. */
static void raised_client_gives_its_turn_back(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS } });
	uint32_t high = world_solo(w, device, GP_PRIORITY_HIGH), client = world_client(w), i, open = 0;
	uint32_t raised[2], others[2];

	for (i = 0; i < 2; i++)
		raised[i] = world_queue(w, client, device, GP_PRIORITY_LOW);
	for (i = 0; i < 2; i++)
		others[i] = world_solo(w, device, GP_PRIORITY_LOW);
	world_write(w, raised[0], 1u << 30);
	world_settle(w);
	assert_true(world_is_open(w, raised[0]) && world_is_open(w, high));
	for (i = 0; i < 2; i++)
		assert_int_equal(gp_sched_queue_set_attr(w->sched, w->queues[raised[i]].id,
							 &(struct gp_queue_attr){ .priority = GP_PRIORITY_REALTIME },
							 w->now_ns),
				 0);
	world_drain(w, raised[0]);
	for (i = 0; i < 2; i++)
		world_write(w, others[i], 1u << 30);
	world_run(w, 100 * MS);
	for (i = 0; i < 2; i++)
		open += world_is_open(w, others[i]);
	assert_int_equal(open, 1);
	assert_null(gp_sched_check(w->sched));
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wfq_copies_are_charged),
		cmocka_unit_test(raised_client_gives_its_turn_back),
	};

	return cmocka_run_group_tests_name("core_turn_holders", tests, NULL, NULL);
}
