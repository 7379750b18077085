/* SPDX-License-Identifier: MIT */
/* The arithmetic of the preemption budget and of what is learned, at its edges: rounding, and values as large as the
 * interface lets in. */
#include "core/calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define START_NS 1000ull

struct purse {
	struct gp_sched sched;
	struct gp_device device;
};

static struct purse *purse_new(uint64_t cost_ns, uint32_t burst, uint32_t permille)
{
	struct purse *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	p->sched.now_ns = p->device.tokens_mark_ns = START_NS;
	p->device.attr.close_ns = cost_ns / 2;
	p->device.attr.open_ns = cost_ns - cost_ns / 2;
	p->device.param.burst = burst;
	p->device.param.overhead_permille = permille;
	p->device.wake_ns = GP_NEVER_NS;
	return p;
}

/* However often somebody looks, the bucket has what its rate says, to the nanosecond. */
static void gains_its_rate_and_no_more(void **state)
{
	static const uint32_t rates[] = { 1, 3, 200, 333, 600, 667, 999 };
	static const uint64_t steps[] = { 1, 2, 3, 7, 1000, 1001, 12345 };
	size_t i, k;
	int n;

	(void)state;
	for (i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		for (k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
			struct purse *p = purse_new(2 * GP_DURATION_NS_MAX, 1000, rates[i]);

			for (n = 0; n < 5000; n++) {
				p->sched.now_ns += steps[k];
				(void)gp_budget_can_pay(&p->sched, &p->device, 1);
				assert_int_equal(p->device.tokens_ns, (p->sched.now_ns - START_NS) * rates[i] / 1000);
			}
			free(p);
		}
}

/* The device is woken in the very nanosecond in which it can pay. */
static void wakes_when_it_can_pay(void **state)
{
	uint32_t permille;

	(void)state;
	for (permille = 1; permille < 1000; permille++) {
		struct purse *p = purse_new(300000, 4, permille);

		p->sched.now_ns += 7; /* part of a nanosecond is left over */
		assert_false(gp_budget_can_pay(&p->sched, &p->device, 1));
		p->sched.now_ns = p->device.wake_ns - 1;
		assert_false(gp_budget_can_pay(&p->sched, &p->device, 1));
		assert_int_equal(p->device.wake_ns, p->sched.now_ns + 1);
		p->sched.now_ns++;
		assert_true(gp_budget_can_pay(&p->sched, &p->device, 1));
		free(p);
	}
}

/* The dearest transactions that may be stated, the slowest rate: the device is woken within an hour each time, and is
 * never woken in the past. */
static void absurd_costs_do_not_overflow(void **state)
{
	struct purse *p = purse_new(2 * GP_DURATION_NS_MAX, 100000, 1);
	int i;

	(void)state;
	for (i = 0; i < 100; i++) {
		p->device.wake_ns = GP_NEVER_NS;
		assert_false(gp_budget_can_pay(&p->sched, &p->device, 50001));
		assert_in_range(p->device.wake_ns, p->sched.now_ns + 1, p->sched.now_ns + GP_DURATION_NS_MAX);
		p->sched.now_ns = p->device.wake_ns;
	}
	free(p);
}

/* A wait of many hours ends when the rate says: what is gained before each look counts. */
static void a_long_wait_ends(void **state)
{
	struct purse *p = purse_new(2 * GP_DURATION_NS_MAX, 1, 100); /* twenty hours */
	int looks;

	(void)state;
	for (looks = 0; !gp_budget_can_pay(&p->sched, &p->device, 1); looks++) {
		p->sched.now_ns = p->device.wake_ns;
		p->device.wake_ns = GP_NEVER_NS;
	}
	assert_int_equal(looks, 20);
	assert_int_equal(p->sched.now_ns - START_NS, 20 * GP_DURATION_NS_MAX);
	free(p);
}

/* Debt has an end, and without a limit there is none. */
static void debt_does_not_overflow(void **state)
{
	struct purse *p = purse_new(2 * GP_DURATION_NS_MAX, 100000, 1);
	int i;

	(void)state;
	for (i = 0; i < 10000; i++) {
		gp_budget_pay(&p->device, GP_QUEUE_MAX);
		assert_true(p->device.tokens_ns < 0);
		assert_false(gp_budget_can_pay(&p->sched, &p->device, 1));
	}
	p->device.param.overhead_permille = 1000;
	gp_budget_pay(&p->device, GP_QUEUE_MAX);
	assert_true(gp_budget_can_pay(&p->sched, &p->device, GP_QUEUE_MAX));
	free(p);
}

/* A queue whose packets took years says nothing about its rest, rather than a small number. */
static void absurd_packets_do_not_overflow(void **state)
{
	struct gp_queue *q = calloc(1, sizeof(*q));

	(void)state;
	assert_non_null(q);
	q->written = 1024;
	q->packet_ns = GP_NS_MAX - 1;
	assert_true(gp_learn_rest_ns(q, 5) == GP_NEVER_NS);
	q->packet_ns = (1ull << 54) + 1; /* times 1024: 1024 */
	assert_true(gp_learn_rest_ns(q, 5) == GP_NEVER_NS);
	q->packet_ns = 1000;
	assert_int_equal(gp_learn_rest_ns(q, 5), 1024 * 1000 - 5);
	q->written = 1025;
	assert_true(gp_learn_rest_ns(q, 5) == GP_NEVER_NS);
	free(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gains_its_rate_and_no_more),   cmocka_unit_test(wakes_when_it_can_pay),
		cmocka_unit_test(absurd_costs_do_not_overflow), cmocka_unit_test(a_long_wait_ends),
		cmocka_unit_test(debt_does_not_overflow),       cmocka_unit_test(absurd_packets_do_not_overflow),
	};

	return cmocka_run_group_tests_name("core_budget", tests, NULL, NULL);
}
