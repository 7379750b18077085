/* SPDX-License-Identifier: MIT */
/*
 * An urgent program that launches ahead, on a device that switches by itself: while it launches, the batch client has a
 * long slice; when it waits, the batch client is held out until its result is there, and a moment longer. A pause in
 * its launches that turns out to be no wait makes the core wait longer the next time. All of that ends with the way in
 * which the program launches. None of it happens if it is switched off, or if the program asks for latency; if it asks
 * for throughput, nobody is held out. Work that comes less closely is requests, not pieces.
 */
#include "test/unit/core_world.h"

#define SHORT   (1 * US)
#define GATHER  (4 * MS)
#define LAUNCH  (100 * US)
#define VISIT   44u /* launches until the device has come to the urgent client and back */
#define COUNTED (50 * MS)

struct pair {
	struct world *w;
	uint32_t device, high, low, launches, count;
	uint64_t counted_ns;
};

static void count(struct pair *p, uint32_t switches)
{
	p->count += switches;
	p->counted_ns = p->w->now_ns;
	assert_int_equal(gp_sched_switches(p->w->sched, p->w->queues[p->low].id, p->count, p->w->now_ns, p->w->now_ns),
			 0);
}

/* The program launches one piece after the other; now and then the device has done them all. */
static void launch(struct pair *p, uint64_t for_ns, uint32_t switches)
{
	uint64_t until_ns = p->w->now_ns + for_ns;

	while (p->w->now_ns < until_ns) {
		world_write(p->w, p->high, 1);
		world_run(p->w, LAUNCH);
		if (++p->launches % VISIT == 0)
			world_drain(p->w, p->high);
		if (switches && p->w->now_ns >= p->counted_ns + COUNTED)
			count(p, switches);
	}
}

static bool is_slowed(const struct pair *p)
{
	struct gp_switch_info info;

	assert_int_equal(gp_sched_switch_info(p->w->sched, p->device, &info), 0);
	return info.is_slowed;
}

/* The same with the shortest slice below it: each piece is done before the next comes. */
static void launch_fast(struct pair *p)
{
	uint32_t n;

	count(p, 0);
	for (n = 0; n < 3000 && !is_slowed(p); n++) {
		world_write(p->w, p->high, 1);
		world_run(p->w, LAUNCH / 4);
		world_drain(p->w, p->high);
		world_run(p->w, LAUNCH - LAUNCH / 4);
		if (p->w->now_ns >= p->counted_ns + COUNTED)
			count(p, 150);
	}
}

static void pair_begin_for(struct pair *p, uint64_t gather_ns, enum gp_protect protect)
{
	bool gathers = gather_ns != GP_GATHER_OFF && protect != GP_PROTECT_LATENCY;
	struct world_setup setup = { .policy = "hpf",
				     .param = { .rest_ns = 3600 * S, .gather_ns = gather_ns, .protect = protect },
				     .attr = { .unit = GP_UNIT_PROCESS,
					       .switch_ns = 200 * US,
					       .lower_max = 1,
					       .short_ns = SHORT,
					       .long_ns = 50 * MS,
					       .slice_ns = 400 * US,
					       .close_ns = 700 * US,
					       .open_ns = 300 * US } };

	*p = (struct pair){ .w = world_new() };
	p->device = world_device(p->w, setup);
	p->w->ack_delay_ns = p->w->slice_delay_ns = 400 * US;
	p->high = world_solo(p->w, p->device, GP_PRIORITY_HIGH);
	p->low = world_solo(p->w, p->device, GP_PRIORITY_LOW);
	world_write(p->w, p->low, 1000000);
	world_run(p->w, 10 * MS);
	assert_int_equal(p->w->queues[p->low].slice_ns, SHORT);
	world_run(p->w, 1 * S);
	launch_fast(p);
	assert_true(is_slowed(p));
	launch(p, gathers ? 60 * MS : 500 * MS, 0);
	if (gathers) /* it was not held out to find that out */
		assert_int_equal(p->w->order_count, 0);
	world_drain(p->w, p->high); /* the next wait is known to begin with a launch */
	launch(p, 1 * MS, 0);
}

static void pair_begin(struct pair *p, uint64_t gather_ns)
{
	pair_begin_for(p, gather_ns, GP_PROTECT_BALANCED);
}

/* It launches no more and waits; the batch client closes. Then its result is there. */
static void wait_for_result(struct pair *p)
{
	world_run(p->w, 900 * US);
	assert_false(world_is_open(p->w, p->low));
	assert_int_equal(world_last_order(p->w, p->low, 0)->why, GP_WHY_WAITS);
	world_drain(p->w, p->high);
}

/* A token kernel by kernel: a result that is waited for, and the launches of the next one. The limit of switches holds.
 */
static void make_token(struct pair *p, uint64_t launch_ns, uint32_t switches)
{
	world_write(p->w, p->high, 1);
	world_run(p->w, 300 * US);
	wait_for_result(p);
	world_run(p->w, 1500 * US);
	launch(p, launch_ns, switches);
	assert_true(is_slowed(p));
}

static void it_gathers_while_it_launches(void **state)
{
	struct pair p;
	uint32_t orders;

	(void)state;
	pair_begin(&p, GATHER);
	assert_int_equal(p.w->queues[p.low].slice_ns, GATHER);
	orders = p.w->order_count;
	launch(&p, 200 * MS, 10);
	assert_int_equal(p.w->order_count, orders);
	assert_int_equal(p.w->queues[p.low].slice_ns, GATHER);
	world_free(p.w);
}

static void it_waits(void **state)
{
	struct pair p;
	uint32_t n;

	(void)state;
	pair_begin(&p, GATHER);
	for (n = 0; n < 5; n++) {
		assert_true(world_is_open(p.w, p.low));
		world_run(p.w, 300 * US);
		assert_true(world_is_open(p.w, p.low)); /* a launch may be late */
		wait_for_result(&p);
		world_run(p.w, 300 * US);
		assert_false(world_is_open(p.w, p.low));
		world_write(p.w, p.high, 3); /* and a second result, soon after the first */
		world_run(p.w, 100 * US);
		world_drain(p.w, p.high);
		world_run(p.w, 1 * MS);
		assert_true(world_is_open(p.w, p.low));
		launch(&p, 2 * MS, 0);
	}
	world_free(p.w);
}

/* A second wait that lasts: it is held out for that one, too. */
static void it_waits_again(void **state)
{
	struct pair p;
	uint32_t orders;

	(void)state;
	pair_begin(&p, GATHER);
	world_run(p.w, 300 * US);
	wait_for_result(&p);
	orders = p.w->order_count;
	world_write(p.w, p.high, 3);
	world_run(p.w, 350 * US); /* within the moment after the first … */
	assert_false(world_is_open(p.w, p.low));
	assert_int_equal(p.w->order_count, orders);
	world_run(p.w, 3 * MS); /* … and on for as long as it takes */
	wait_for_result(&p);
	world_run(p.w, 1 * MS);
	assert_true(world_is_open(p.w, p.low));
	world_free(p.w);
}

static void a_pause_is_no_wait(void **state)
{
	struct pair p;
	uint32_t orders;

	(void)state;
	pair_begin(&p, GATHER);
	world_run(p.w, 900 * US);
	assert_false(world_is_open(p.w, p.low));
	launch(&p, 2 * MS, 0); /* though nothing was done yet */
	assert_true(world_is_open(p.w, p.low));
	orders = p.w->order_count;
	world_run(p.w, 700 * US); /* longer than before is needed now */
	assert_int_equal(p.w->order_count, orders);
	launch(&p, 2 * MS, 0);
	world_run(p.w, 500 * US);
	wait_for_result(&p); /* a real one is still found */
	world_free(p.w);
}

/* Held out now and then it is never open for long enough to be counted at; what it is held out for says it instead. */
static void it_lasts_as_long_as_its_reason(void **state)
{
	struct pair p;
	uint32_t n;

	(void)state;
	pair_begin(&p, GATHER);
	for (n = 0; n < 150; n++) {
		make_token(&p, 27 * MS, 0);
		assert_int_equal(p.w->queues[p.low].slice_ns, GATHER);
	}
	world_drain(p.w, p.high);
	for (n = 0; n < 400; n++) { /* one piece at a time, each waited for */
		world_write(p.w, p.high, 1);
		world_run(p.w, 1 * MS);
		world_drain(p.w, p.high);
		world_run(p.w, 9 * MS);
		if (world_is_open(p.w, p.low) && n % 5 == 0)
			count(&p, 5);
	}
	assert_false(is_slowed(&p));
	assert_int_equal(p.w->queues[p.low].slice_ns, SHORT);
	world_free(p.w);
}

/* After two seconds without any of that slices are short again. */
static void it_ends_with_the_program(void **state)
{
	struct pair p;

	(void)state;
	pair_begin(&p, GATHER);
	world_run(p.w, 300 * US);
	wait_for_result(&p);
	world_run(p.w, 2500 * MS);
	assert_false(is_slowed(&p));
	assert_int_equal(p.w->queues[p.low].slice_ns, SHORT);
	world_free(p.w);
}

static void without_it_slices_alone(void **state)
{
	struct pair p;
	uint32_t orders;

	(void)state;
	pair_begin(&p, GP_GATHER_OFF);
	assert_int_equal(p.w->queues[p.low].slice_ns, 2 * MS);
	orders = p.w->order_count;
	world_run(p.w, 20 * MS);
	assert_int_equal(p.w->order_count, orders);
	world_free(p.w);
}

/* What is not set is 4 ms. */
static void it_is_on(void **state)
{
	struct pair p;

	(void)state;
	pair_begin(&p, 0);
	assert_int_equal(p.w->queues[p.low].slice_ns, 4 * MS);
	world_run(p.w, 300 * US);
	wait_for_result(&p);
	world_free(p.w);
}

/* As many as before, but one at a time at the pace of requests: the next is there before the last is done. */
static void requests_do_not_gather(void **state)
{
	struct pair p;
	uint32_t n;

	(void)state;
	pair_begin(&p, GATHER);
	for (n = 1; n <= 200; n++) {
		world_write(p.w, p.high, 1);
		world_run(p.w, 450 * US);
		if (n % 5 == 0)
			world_drain(p.w, p.high);
	}
	assert_true(is_slowed(&p));
	assert_int_not_equal(p.w->queues[p.low].slice_ns, GATHER);
	world_free(p.w);
}

static void not_for_latency(void **state)
{
	struct pair p;

	(void)state;
	pair_begin_for(&p, GATHER, GP_PROTECT_LATENCY);
	assert_int_not_equal(p.w->queues[p.low].slice_ns, GATHER);
	world_free(p.w);
}

/* Its own word counts before the device's, and at once. */
static void a_program_may_ask(void **state)
{
	struct pair p;
	struct gp_queue_attr attr;

	(void)state;
	pair_begin(&p, GATHER);
	assert_int_equal(p.w->queues[p.low].slice_ns, GATHER);
	attr = (struct gp_queue_attr){ .priority = GP_PRIORITY_HIGH, .protect = GP_PROTECT_LATENCY };
	assert_int_equal(gp_sched_queue_set_attr(p.w->sched, p.w->queues[p.high].id, &attr, p.w->now_ns), 0);
	launch(&p, 5 * MS, 0);
	assert_int_not_equal(p.w->queues[p.low].slice_ns, GATHER);
	world_free(p.w);
}

/* Slices only: it does not hold out, but the limit lasts as long as its reason. */
static void throughput_holds_nobody_out(void **state)
{
	struct pair p;
	uint32_t n;

	(void)state;
	pair_begin_for(&p, GATHER, GP_PROTECT_THROUGHPUT);
	for (n = 0; n < 150; n++) {
		world_write(p.w, p.high, 1);
		world_run(p.w, 1200 * US);
		world_drain(p.w, p.high);
		world_run(p.w, 1500 * US);
		launch(&p, 27 * MS, 2);
		assert_true(is_slowed(&p));
		assert_int_equal(p.w->queues[p.low].slice_ns, GATHER);
	}
	assert_int_equal(p.w->order_count, 0);
	world_free(p.w);
}

/* A server that started kernel by kernel answers by graphs from then on: each answer begins beside the shortest slice,
 * though the limit of switches still holds, and from the third on the server has the device to itself for each. */
static void answers_by_graphs_follow(void **state)
{
	struct pair p;
	uint32_t answer, token;

	(void)state;
	pair_begin(&p, GATHER);
	for (token = 0; token < 20; token++)
		make_token(&p, 120 * MS, 2); /* the device puts the batch client aside seldom */
	world_drain(p.w, p.high);
	for (answer = 0; answer < 12; answer++) {
		world_run(p.w, 33 * MS);
		assert_int_equal(p.w->queues[p.low].slice_ns, SHORT);
		for (token = 0; token < 16; token++) {
			world_write(p.w, p.high, 1);
			world_run(p.w, 2500 * US);
			assert_true(answer < 2 || !world_is_open(p.w, p.low));
			world_drain(p.w, p.high);
			world_run(p.w, 50 * US);
		}
	}
	assert_int_equal(world_last_order(p.w, p.low, 0)->why, GP_WHY_STAY);
	world_free(p.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_gathers_while_it_launches),
		cmocka_unit_test(it_waits),
		cmocka_unit_test(it_waits_again),
		cmocka_unit_test(a_pause_is_no_wait),
		cmocka_unit_test(it_lasts_as_long_as_its_reason),
		cmocka_unit_test(it_ends_with_the_program),
		cmocka_unit_test(without_it_slices_alone),
		cmocka_unit_test(it_is_on),
		cmocka_unit_test(requests_do_not_gather),
		cmocka_unit_test(not_for_latency),
		cmocka_unit_test(a_program_may_ask),
		cmocka_unit_test(throughput_holds_nobody_out),
		cmocka_unit_test(answers_by_graphs_follow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
