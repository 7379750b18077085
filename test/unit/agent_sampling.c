/* SPDX-License-Identifier: MIT */
/* How often the agent looks at counters: less and less while nothing moves, at once again when something does. The
 * queues of a device that says so are looked at more often. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "agent/agent.h"

#define INTERVAL_NS 1000000u

static uint64_t written, completed;

static void driver_sample(struct gp_slot *const *slots, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		slots[i]->written = written;
		slots[i]->completed = completed;
	}
}

static const struct gp_driver driver = { .sample = driver_sample };
static const struct gp_driver often = { .sample = driver_sample, .backoff_max = 1 };

/* So many intervals until the next look, after so many without a change. */
static uint64_t wait_after(uint32_t looks)
{
	uint64_t now = 1000000000u;

	gp_sample_settle(now);
	for (uint32_t i = 0; i < looks; i++) {
		now = gp_sample_due_ns();
		gp_sample_round(now);
		gp_sample_settle(now);
	}
	return (gp_sample_due_ns() - now) / INTERVAL_NS;
}

static void test_backoff(void **state)
{
	(void)state;
	assert_int_equal(gp_page_reserve(), 0);
	gp_agent.driver = &driver;
	gp_agent.link = GP_LINK_UP;
	gp_agent.sample_ns = INTERVAL_NS;
	assert_non_null(gp_slot_add(0));
	assert_int_equal(wait_after(20), 32);
	written = 1;
	assert_int_equal(wait_after(1), 1);
	assert_int_equal(wait_after(20), 4);
	gp_agent.driver = &often;
	assert_int_equal(wait_after(20), 2);
	completed = 1;
	assert_int_equal(wait_after(1), 1);
	assert_int_equal(wait_after(20), 2);
}

static uint32_t watch_count;
static bool watch_works;

static bool driver_watch(struct gp_slot *slot, bool on)
{
	watch_count += on;
	slot->watched = on && watch_works;
	return watch_works;
}

static const struct gp_driver watching = { .sample = driver_sample, .watch = driver_watch };

/* The next look that nobody asked for, in ms; 0: never. */
static uint64_t look(uint64_t *now_ns)
{
	uint64_t before_ns = *now_ns;

	gp_sample_settle(*now_ns);
	if (gp_sample_due_ns() == UINT64_MAX)
		return 0;
	*now_ns = gp_sample_due_ns();
	gp_sample_round(*now_ns);
	return (*now_ns - before_ns) / 1000000u;
}

/* A queue whose doorbells are not seen is watched after a second without work, and then nobody looks any more. While it
 * has work it is looked at less and less often; where doorbells are held back, or a trap cannot be had, not at all. */
static void test_watch(void **state)
{
	uint64_t now_ns = 1000000000u;
	struct gp_slot *slot;

	(void)state;
	gp_slots_reset();
	gp_agent.driver = &watching;
	gp_agent.sample_ns = 0;
	gp_agent.mechanism = GP_MECHANISM_SUBMIT;
	slot = gp_slot_add(0);
	slot->written = slot->completed = written = completed = 5;
	assert_int_equal(look(&now_ns), 0);
	gp_agent.mechanism = GP_MECHANISM_DEBUGGER;
	assert_int_equal(look(&now_ns), 0); /* not before all threads can be made to pass a fence */
	gp_fence_register();
	watch_works = true;
	for (uint64_t wait = 1000; wait < 16000; wait *= 2) {
		written = ++completed;
		assert_int_equal(look(&now_ns), wait);
		assert_int_equal(watch_count, 0);
	}
	assert_int_equal(look(&now_ns), 8000);
	assert_int_equal(watch_count, 1);
	assert_true(slot->seen && slot->watched && slot->change_due);
	assert_int_equal(look(&now_ns), 0);
	/* What it cannot have it does not ask for again. */
	slot->seen = slot->watched = watch_works = false;
	slot->watch_ns = 0;
	assert_int_equal(look(&now_ns), 1000);
	assert_int_equal(watch_count, 2);
	assert_int_equal(look(&now_ns), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_backoff), cmocka_unit_test(test_watch) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
