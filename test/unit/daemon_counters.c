/* SPDX-License-Identifier: MIT */
/* Counters from a page that its owner may write as it likes: what the core sees never goes back and never overtakes. */
#include <stdlib.h>
#include <string.h>
#include "lib/rng.h"
#include "test/unit/daemon_world.h"

static struct world world;
static struct agent agent;

static int begin(void **state)
{
	(void)state;
	world_begin_one(&world, &agent, NULL, 50);
	return 0;
}

static int end(void **state)
{
	(void)state;
	world_end_one(&world, &agent);
	return 0;
}

static struct gp_queue_info look(uint64_t doorbell, uint64_t written, uint64_t completed, uint32_t flags)
{
	struct gp_page_queue *page = &agent.page->queues[0];
	struct gp_queue_entry *queue = world_queue(&world, &agent, 0);
	struct gp_queue_info info;

	page->doorbell = doorbell;
	page->written = written;
	page->completed = completed;
	page->flags = flags;
	gp_queue_sample(&world.daemon, queue);
	world_step(&world);
	assert_int_equal(gp_sched_queue_info(world.daemon.sched, queue->core, &info), 0);
	return info;
}

/* A doorbell counts before the sampled write counter has moved. */
static void test_doorbell_is_first(void **state)
{
	(void)state;
	assert_int_equal(look(3, 0, 0, 0).pending, 3);
	assert_int_equal(look(3, 5, 1, 0).pending, 4);
	assert_int_equal(look(3, 5, 5, 0).pending, 0);
}

/* Announced is the larger of the two words, whoever wrote them. */
static void test_words(void **state)
{
	(void)state;
	agent.page->queues[0].owned = 4;
	assert_int_equal(look(3, 0, 0, 0).pending, 4);
	agent.page->queues[0].owned = 6;
	assert_int_equal(look(5, 0, 4, 0).pending, 2);
	assert_int_equal(look(7, 0, 6, 0).pending, 1);
	assert_false(look(7, 0, 7, 0).has_work);
}

/* Who arms an idle queue makes the fence of doorbells that have none, before it looks again; and only then. */
static void test_barriers(void **state)
{
	struct gp_page_queue *page = &agent.page->queues[0];
	uint64_t before = world.daemon.barrier_count;

	(void)state;
	assert_int_equal(agent.page->barriers, gp_queue_makes_barriers());
	look(1, 0, 0, 0);
	assert_int_equal(page->armed, GP_ARMED_IDLE);
	look(1, 0, 1, 0);
	assert_int_equal(page->armed, GP_ARMED_BUSY);
	assert_int_equal(world.daemon.barrier_count, before);
	agent.page->plain = 1;
	look(2, 0, 1, 0);
	assert_true(page->armed == GP_ARMED_IDLE && world.daemon.barrier_count == before);
	look(2, 0, 2, 0);
	assert_true(page->armed == GP_ARMED_BUSY && world.daemon.barrier_count == before + 1u);
	look(2, 0, 2, 0); /* armed already */
	assert_int_equal(world.daemon.barrier_count, before + 1u);
}

/* Packets behind a barrier that waits are not work, until it goes on. */
static void test_blocked(void **state)
{
	(void)state;
	assert_int_equal(look(0, 10, 2, 0).pending, 8);
	assert_false(look(0, 10, 2, GP_PAGE_BLOCKED).has_work);
	assert_int_equal(look(0, 10, 3, 0).pending, 7);
	assert_false(look(0, 10, 10, 0).has_work);
}

static void test_nonsense(void **state)
{
	struct gp_rng rng;
	struct gp_queue_entry *queue = world_queue(&world, &agent, 0);

	(void)state;
	assert_false(look(0, 5, 9, 0).has_work);
	assert_int_equal(look(0, UINT64_MAX, 0, 0).pending, 1ull << 32);
	assert_false(look(0, 0, UINT64_MAX, 0).has_work);
	gp_rng_init(&rng, 1);
	for (int i = 0; i < 100000; i++) {
		uint64_t written = queue->virtual_written, completed = queue->virtual_completed;
		uint32_t shift = (uint32_t)gp_rng_below(&rng, 64);
		struct gp_queue_info info = look(gp_rng_next(&rng) >> shift, gp_rng_next(&rng) >> shift,
						 gp_rng_next(&rng) >> shift, (uint32_t)gp_rng_below(&rng, 4));

		assert_true(queue->virtual_written >= written);
		assert_true(queue->virtual_completed >= completed);
		assert_true(queue->virtual_completed <= queue->virtual_written);
		assert_int_equal(info.has_work, queue->pending);
	}
}

/* The armed flag says what the daemon wants to hear of, whatever the other side wrote there. */
static void test_armed(void **state)
{
	struct gp_page_queue *page = &agent.page->queues[0];

	(void)state;
	assert_int_equal(page->armed, GP_ARMED_BUSY);
	page->armed = 0xffffffff;
	look(1, 1, 0, 0);
	assert_int_equal(page->armed, GP_ARMED_IDLE);
	look(1, 1, 1, 0);
	assert_int_equal(page->armed, GP_ARMED_BUSY);
	/* It cannot be made smaller under us. */
	assert_int_equal(agent.welcome.page_size, sizeof(struct gp_page));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_doorbell_is_first, begin, end),
		cmocka_unit_test_setup_teardown(test_words, begin, end),
		cmocka_unit_test_setup_teardown(test_barriers, begin, end),
		cmocka_unit_test_setup_teardown(test_blocked, begin, end),
		cmocka_unit_test_setup_teardown(test_nonsense, begin, end),
		cmocka_unit_test_setup_teardown(test_armed, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
