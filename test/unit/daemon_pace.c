/* SPDX-License-Identifier: MIT */
/* How often a device that switches by itself may do so. Between two counts there was nothing at all, or more than any
 * device can do: how long that took does not matter. */
#include <string.h>
#include "test/unit/borrow_scene.h"

#define S          1000000000ull
#define SLOWED     1000u      /* µs: a switch of 200 may take 20 % */
#define MANY       100000000u /* switches */
#define WINDOWS(n) (4u + (n)) /* counts in which so many windows end, however they fall */
/* Programs with work all the time would be given the device to themselves: here only the limit is looked at. */
#define LIMIT "[policy]\nprotect = throughput\n"

/* An urgent program and a batch program with work, the latter short. */
static struct scene *pace_begin(const char *config)
{
	struct scene *scene = malloc(sizeof(*scene));

	scene_begin(scene, config);
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	scene_join(scene, 1, GP_PRIORITY_LOW);
	scene_work(scene, 0, 1);
	UNTIL(scene, rm.contexts[1].slice_us == SHORT && scene_info(scene, 1).slice_ns == SHORT * 1000);
	return scene;
}

static void pace_step(uint32_t index, uint32_t step)
{
	pthread_mutex_lock(&rm.lock);
	rm.contexts[index].saves_step = step;
	pthread_mutex_unlock(&rm.lock);
}

static struct gp_switch_info pace_of(const struct scene *scene)
{
	const struct gp_daemon *daemon = &scene->world.daemon;
	struct gp_switch_info info;

	assert_int_equal(gp_sched_switch_info(daemon->sched, daemon->devices[0].core, &info), 0);
	return info;
}

static void test_pieces(void **state)
{
	struct scene *scene = pace_begin(LIMIT);

	(void)state;
	UNTIL(scene, rm.counts >= WINDOWS(8));
	assert_false(pace_of(scene).is_slowed);
	assert_int_equal(rm.contexts[1].slice_us, SHORT);
	pace_step(1, MANY);
	UNTIL(scene, rm.contexts[1].slice_us == SLOWED);
	assert_true(pace_of(scene).is_slowed);
	assert_int_equal(rm.contexts[0].slice_us, LONG);
	UNTIL(scene, scene_info(scene, 1).slice_ns == SLOWED * 1000); /* the answer has come as well */
	/* As long as it is so. */
	rm.counts = 0;
	UNTIL(scene, rm.counts >= WINDOWS(40));
	assert_int_equal(rm.contexts[1].slice_us, SLOWED);
	pace_step(1, 0);
	UNTIL(scene, rm.contexts[1].slice_us == SHORT);
	assert_false(pace_of(scene).is_slowed);
	/* Needed again at once: the next try is later. */
	pace_step(1, MANY);
	UNTIL(scene, rm.contexts[1].slice_us == SLOWED);
	pace_step(1, 0);
	UNTIL(scene, rm.contexts[1].slice_us == SHORT);
	assert_int_equal(pace_of(scene).hold_ns, 2 * S);
	/* One window of it is not believed. */
	rm.counts = 0;
	pace_step(1, MANY);
	UNTIL(scene, rm.counts >= 1);
	pace_step(1, 0);
	UNTIL(scene, rm.counts >= WINDOWS(8));
	assert_false(pace_of(scene).is_slowed);
	assert_true(scene->world.daemon.counters.order_failures == 0 && rm.disables == 0);
	scene_end(scene);
}

/* Whose turn it is, is counted; what happened to it while it was closed is not. */
static void test_turns(void **state)
{
	struct scene *scene = pace_begin(LIMIT "turn = 200ms\n");

	(void)state;
	pace_step(1, MANY);
	scene_join(scene, 2, GP_PRIORITY_LOW);
	pace_step(2, MANY);
	agent_doorbell(&scene->world, &scene->agents[2], 0, 5);
	UNTIL(scene, rm.contexts[1].slice_us == SLOWED && rm.contexts[2].slice_us == SLOWED);
	assert_int_equal(closed_count(), 1);
	scene_leave(scene, 0);
	UNTIL(scene, !closed_count() && rm.contexts[1].slice_us == LONG && rm.contexts[2].slice_us == LONG);
	/* Nobody is above anybody: that is forgotten. */
	UNTIL(scene, !pace_of(scene).is_slowed && !pace_of(scene).per_s_x1000);
	scene_end(scene);
}

static void test_not_limited(void **state)
{
	struct scene *scene = pace_begin(LIMIT "overhead = 1000\n");

	(void)state;
	for (int i = 0; i < 500; i++)
		scene_round(scene);
	assert_int_equal(rm.counts, 0);
	assert_int_equal(rm.contexts[1].slice_us, SHORT);
	scene_end(scene);
}

/* A driver that does not tell is not asked again, and nothing else changes. */
static void test_driver_does_not_tell(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));

	(void)state;
	scene_begin(scene, NULL);
	rm.refuse = GP_RM_CTXSW_STATS;
	rm.status = GP_RM_ERR_ARGUMENT;
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	scene_join(scene, 1, GP_PRIORITY_LOW);
	scene_work(scene, 0, 1);
	UNTIL(scene, scene_queue(scene, 1)->slice.uncounted);
	for (int i = 0; i < 500; i++)
		scene_round(scene);
	assert_int_equal(rm.counts, 1);
	assert_int_equal(rm.contexts[1].slice_us, SHORT);
	assert_int_equal(scene->agents[1].mechanism, 0);
	scene_end(scene);
}

/* Turns that are shorter than the usual time between two counts are counted, too. */
static void test_short_turns(void **state)
{
	struct scene *scene = pace_begin(LIMIT "turn = 30ms\n");

	(void)state;
	scene_join(scene, 2, GP_PRIORITY_LOW);
	agent_doorbell(&scene->world, &scene->agents[2], 0, 5);
	UNTIL(scene, closed_count() == 1);
	pace_step(1, MANY);
	pace_step(2, MANY);
	UNTIL(scene, rm.contexts[1].slice_us == SLOWED && rm.contexts[2].slice_us == SLOWED);
	scene_end(scene);
}

/* What is not known any more does not make slices longer for good: nobody tells for a while, and then again. */
static void test_nobody_tells(void **state)
{
	struct scene *scene = pace_begin(LIMIT);

	(void)state;
	pace_step(1, MANY);
	UNTIL(scene, rm.contexts[1].slice_us == SLOWED);
	pthread_mutex_lock(&rm.lock);
	rm.refuse = GP_RM_CTXSW_STATS;
	rm.status = GP_RM_ERR_BUSY;
	pthread_mutex_unlock(&rm.lock);
	UNTIL(scene, rm.contexts[1].slice_us == SHORT);
	assert_false(pace_of(scene).is_slowed);
	pthread_mutex_lock(&rm.lock);
	rm.refuse = 0;
	pthread_mutex_unlock(&rm.lock);
	UNTIL(scene, rm.contexts[1].slice_us == SLOWED);
	scene_end(scene);
}

/* The limit is lifted while it holds. */
static void test_limit_is_lifted(void **state)
{
	struct scene *scene = pace_begin(LIMIT);
	struct gp_error error;

	(void)state;
	pace_step(1, MANY);
	UNTIL(scene, rm.contexts[1].slice_us == SLOWED);
	scene->world.daemon.config.param.overhead_permille = 1000;
	assert_int_equal(gp_device_build_core(&scene->world.daemon, &error), 0);
	UNTIL(scene, rm.contexts[1].slice_us == SHORT);
	rm.counts = 0;
	for (int i = 0; i < 500; i++)
		scene_round(scene);
	assert_int_equal(rm.counts, 0);
	scene_end(scene);
}

/* When nobody works any more nothing is due, and slices are short for the next one. */
static void test_rest(void **state)
{
	struct scene *scene = pace_begin(LIMIT);
	struct gp_daemon *daemon = &scene->world.daemon;

	(void)state;
	pace_step(1, MANY);
	UNTIL(scene, rm.contexts[1].slice_us == SLOWED);
	for (uint32_t i = 0; i < 2; i++)
		agent_complete(&scene->world, &scene->agents[i], 0, 5);
	UNTIL(scene, !daemon->slice_timer.at_ns && !pace_of(scene).per_s_x1000 && rm.contexts[1].slice_us == SHORT);
	rm.counts = 0;
	for (int i = 0; i < 200; i++) {
		scene_round(scene);
		assert_int_equal(daemon->slice_timer.at_ns, 0);
	}
	assert_int_equal(rm.counts, 0);
	scene_end(scene);
}

/* A late answer to the short slice is none to the longer one that was asked for since. */
static void test_late_answer_to_another_length(void **state)
{
	struct scene *scene = pace_begin(LIMIT);
	struct gp_queue_entry *queue = scene_queue(scene, 1);
	struct gp_slicing before = queue->slice;

	(void)state;
	queue->slice.is_asked = true;
	queue->slice.asked_us = SLOWED;
	gp_slicing_answer(&scene->world.daemon, queue->client, queue->wire.slot, queue->wire.generation, SHORT, 0);
	assert_true(queue->slice.is_asked);
	gp_slicing_answer(&scene->world.daemon, queue->client, queue->wire.slot, queue->wire.generation, SLOWED, 0);
	assert_false(queue->slice.is_asked);
	/* And the core, which has not asked for it, is not told. */
	assert_int_equal(scene_info(scene, 1).slice_ns, SHORT * 1000);
	queue->slice = before;
	scene_end(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_not_limited),
		cmocka_unit_test(test_driver_does_not_tell),
		cmocka_unit_test(test_short_turns),
		cmocka_unit_test(test_nobody_tells),
		cmocka_unit_test(test_limit_is_lifted),
		cmocka_unit_test(test_rest),
		cmocka_unit_test(test_late_answer_to_another_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
