/* SPDX-License-Identifier: MIT */
/* How often the agent looks at counters: less and less while nothing moves, at once again when something does. Channel
 * groups, whose doorbells nobody sees, are looked at more often. */
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
	struct gp_slot *slot;

	(void)state;
	assert_int_equal(gp_page_reserve(), 0);
	gp_agent.driver = &driver;
	gp_agent.link = GP_LINK_UP;
	gp_agent.sample_ns = INTERVAL_NS;
	slot = gp_slot_add(0);
	slot->format = GP_QUEUE_SDMA;
	assert_int_equal(wait_after(20), 32);
	written = 1;
	assert_int_equal(wait_after(1), 1);
	assert_int_equal(wait_after(20), 4);
	slot->format = GP_QUEUE_GROUP;
	assert_int_equal(wait_after(20), 2);
	completed = 1;
	assert_int_equal(wait_after(1), 1);
	assert_int_equal(wait_after(20), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_backoff) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
