/* SPDX-License-Identifier: MIT */
/* Timers: the earliest of those that are set comes first, whatever was set, moved and taken back before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "daemon/daemon.h"
#include "lib/rng.h"

#define TIMERS 20u

static struct gp_daemon daemon_;
static struct gp_timer timers[TIMERS];
static uint32_t runs;

static uint64_t earliest_ns(void)
{
	uint64_t at_ns = 0;

	for (uint32_t i = 0; i < TIMERS; i++)
		if (timers[i].at_ns && (!at_ns || timers[i].at_ns < at_ns))
			at_ns = timers[i].at_ns;
	return at_ns;
}

static void test_earliest(void **state)
{
	struct gp_rng rng;

	(void)state;
	gp_rng_init(&rng, 1);
	for (uint32_t i = 0; i < 100000; i++) {
		struct gp_timer *timer = &timers[gp_rng_below(&rng, TIMERS)];
		uint64_t at_ns = gp_rng_below(&rng, 50), before_ns = timer->at_ns;

		if (gp_rng_below(&rng, 3)) {
			gp_timer_set(&daemon_, timer, at_ns);
			assert_int_equal(timer->at_ns, at_ns);
		} else {
			gp_timer_sooner(&daemon_, timer, at_ns + 1);
			assert_int_equal(timer->at_ns, before_ns && before_ns < at_ns + 1 ? before_ns : at_ns + 1);
		}
		assert_int_equal(gp_timers_next_ns(&daemon_.loop.timers), earliest_ns());
	}
}

static void again(struct gp_daemon *daemon, uint64_t now_ns)
{
	runs++;
	gp_timer_set(daemon, &timers[0], now_ns); /* due at once: the next time */
	gp_timer_set(daemon, &timers[1], 0);      /* was due, and is taken back */
}

static void not_run(struct gp_daemon *daemon, uint64_t now_ns)
{
	(void)daemon, (void)now_ns;
	fail();
}

/* Each that is due runs once; those that are looked at by their noun stay; what is taken back does not run. */
static void test_run(void **state)
{
	(void)state;
	memset(&daemon_.loop.timers, 0, sizeof(daemon_.loop.timers));
	memset(timers, 0, sizeof(timers));
	timers[0].due = again;
	timers[1].due = timers[3].due = not_run;
	gp_timer_set(&daemon_, &timers[0], 5);
	gp_timer_set(&daemon_, &timers[1], 6);
	gp_timer_set(&daemon_, &timers[2], 7);
	gp_timer_set(&daemon_, &timers[3], 11);
	gp_timers_run(&daemon_, 4);
	assert_int_equal(runs, 0);
	gp_timers_run(&daemon_, 10);
	assert_int_equal(runs, 1);
	assert_int_equal(gp_timers_next_ns(&daemon_.loop.timers), 7);
	assert_false(gp_timer_expire(&daemon_, &timers[2], 6));
	assert_true(gp_timer_expire(&daemon_, &timers[2], 7));
	assert_false(gp_timer_expire(&daemon_, &timers[2], 7));
	assert_int_equal(gp_timers_next_ns(&daemon_.loop.timers), 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_earliest), cmocka_unit_test(test_run) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
