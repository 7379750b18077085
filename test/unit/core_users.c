/* SPDX-License-Identifier: MIT */
/* Ageing is shared by user, is earned, and costs those above no more than is stated. */
#include "test/unit/core_world.h"

#define WINDOW (100 * MS)
#define TURN   (5 * MS)
#define FAKES  40u

/* A world with an urgent queue that always has work. */
struct top {
	struct world *w;
	uint32_t device, high;
};

static struct top top_new(struct gp_param param)
{
	struct top top = { .w = world_new() };

	param.age_window_ns = WINDOW;
	param.age_turn_ns = TURN;
	param.overhead_permille = 1000;
	top.device = world_device(top.w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS }, .param = param });
	top.high = world_solo(top.w, top.device, GP_PRIORITY_HIGH);
	world_write(top.w, top.high, 1u << 30);
	return top;
}

/* A client of this user that always claims work. */
static uint32_t top_low(struct top *top, uint64_t user)
{
	uint32_t queue = world_queue(top->w, world_client_of(top->w, user), top->device, GP_PRIORITY_IDLE);

	world_write(top->w, queue, 1u << 30);
	return queue;
}

/* Lets time pass; of the queues from first on those that are open complete something. Returns the time in which the
 * urgent queue was closed or had somebody beside it. */
static uint64_t top_run(struct top *top, uint64_t duration_ns, uint32_t first)
{
	uint64_t end_ns = top->w->now_ns + duration_ns, disturbed_ns = 0;
	uint32_t i;

	while (top->w->now_ns < end_ns) {
		bool alone = top->w->queues[top->high].open;

		world_run(top->w, 250 * US);
		for (i = 0; i < top->w->queue_count; i++) {
			if (i != top->high && top->w->queues[i].open)
				alone = false;
		}
		for (i = first; i < top->w->queue_count; i++)
			if (top->w->queues[i].open && top->w->queues[i].used)
				world_complete(top->w, i, 1);
		disturbed_ns += alone ? 0 : 250 * US;
	}
	return disturbed_ns;
}

static uint32_t opens_of(const struct world *w, uint32_t queue)
{
	uint32_t i, count = 0;

	for (i = 0; i < w->order_count; i++)
		count += w->orders[i].queue == queue && w->orders[i].open && w->orders[i].why == GP_WHY_AGED;
	return count;
}

/* Ten clients of one user that do real work get one aged turn in a window together, each of them in turn. */
static void clients_of_one_user_share_one_turn(void **state)
{
	struct top top = top_new((struct gp_param){ .age_permille = 1000 });
	uint32_t lows[10], i, least = 1000, most = 0;

	for (i = 0; i < 10; i++)
		lows[i] = top_low(&top, 7);
	top_run(&top, 50 * WINDOW, lows[0]);
	assert_in_range(world_stats(top.w, top.device).aged, 45, 50);
	for (i = 0; i < 10; i++) {
		uint32_t own = opens_of(top.w, lows[i]);

		least = own < least ? own : least;
		most = own > most ? own : most;
	}
	assert_in_range(least, 4, 5);
	assert_in_range(most, 5, 6);
	world_free(top.w);
}

/* Clients without a user are users of their own, as are those of different users. */
static void users_do_not_share(void **state)
{
	uint64_t same;

	for (same = 0; same < 2; same++) {
		struct top top = top_new((struct gp_param){ .age_permille = 1000 });
		uint32_t i;

		for (i = 0; i < 4; i++)
			top_low(&top, same ? i + 1 : 0);
		top_run(&top, 50 * WINDOW, top.high + 1);
		assert_in_range(world_stats(top.w, top.device).aged, 4 * 42, 4 * 50);
		world_free(top.w);
	}
}

/* The attack: many clients of one user claim work and complete nothing. The urgent queue is disturbed for one aged turn
 * in 64 windows, once all is known, and an honest client of another user has its turn in each window. */
static void fakes_lose_what_they_do_not_use(void **state)
{
	struct top top = top_new((struct gp_param){ 0 });
	uint64_t disturbed_ns, alone_ns;
	uint32_t honest, i;
	struct gp_stats stats;

	for (i = 0; i < FAKES; i++)
		top_low(&top, 1000);
	world_run(top.w, 200 * WINDOW); /* they back off */
	disturbed_ns = top_run(&top, 128 * WINDOW, WORLD_QUEUE_MAX);
	assert_true(disturbed_ns <= 3 * (TURN + 2 * MS));
	assert_true(world_trace(top.w, GP_TRACE_BACK_OFF, WORLD_QUEUE_MAX, NULL) > 3);
	stats = world_stats(top.w, top.device);
	assert_true(stats.back_offs >= 6);

	honest = top_low(&top, 1001);
	alone_ns = top_run(&top, 128 * WINDOW, honest);
	assert_in_range(opens_of(top.w, honest), 110, 128);
	assert_true(alone_ns <= 128 * (TURN + 1 * MS) + 3 * (TURN + 2 * MS));
	world_free(top.w);
}

/* In any stretch, from the first moment on, the top is disturbed no longer than is stated, whatever the fakes do: here
 * each of them is a user of its own. */
static void cost_is_within_its_bound(void **state)
{
	static const uint32_t permilles[] = { 20, 100, 300 };
	uint32_t p, i, honest;

	for (p = 0; p < 3; p++)
		for (honest = 0; honest < 2; honest++) {
			struct top top = top_new((struct gp_param){ .age_permille = permilles[p] });
			uint64_t took_ns, bound_ns;

			for (i = 0; i < FAKES; i++)
				top_low(&top, 1 + i);
			took_ns = top_run(&top, 40 * WINDOW, honest ? top.high + 1 : WORLD_QUEUE_MAX);
			bound_ns = gp_sched_age_cost_bound_ns(top.w->sched, top.device, 40 * WINDOW);
			/* The transactions at the end of each turn are the budget's. */
			assert_true(took_ns <= bound_ns * 12 / 10);
			assert_true(bound_ns <= 1100 * MS + 40 * WINDOW / 1000 * permilles[p]);
			assert_true(took_ns >= 40 * WINDOW / 1000 * permilles[p] / 4); /* and it is used */
			world_free(top.w);
		}
}

/* A kernel so long that no aged turn sees its end is not shut out: it gets one in every 64 windows at least, and as
 * soon as it completes something one in each. */
static void long_kernel_is_not_shut_out(void **state)
{
	struct top top = top_new((struct gp_param){ 0 });
	uint32_t low = top_low(&top, 5), before;
	uint64_t bound_ns;

	world_run(top.w, 200 * WINDOW);
	bound_ns = gp_sched_queue_starvation_bound_ns(top.w->sched, top.w->queues[low].id);
	assert_in_range(bound_ns, 64 * WINDOW, 64 * WINDOW + 2 * S);
	for (before = opens_of(top.w, low); opens_of(top.w, low) < before + 3;) {
		uint64_t closed_ns = top.w->now_ns;
		uint32_t now = opens_of(top.w, low);

		while (opens_of(top.w, low) == now) {
			world_run(top.w, 1 * MS);
			assert_true(top.w->now_ns - closed_ns <= bound_ns);
		}
	}
	while (!world_is_open(top.w, low))
		world_run(top.w, 1 * MS);
	world_complete(top.w, low, 1);
	before = opens_of(top.w, low);
	top_run(&top, 20 * WINDOW, low);
	assert_in_range(opens_of(top.w, low) - before, 18, 20);
	assert_true(gp_sched_queue_starvation_bound_ns(top.w->sched, top.w->queues[low].id) < 3 * WINDOW + 1 * S);
	world_free(top.w);
}

/* A driver that stops for a second in an aged turn (a daemon that was stopped) makes nobody wait ten times as long. */
static void late_driver_is_not_charged(void **state)
{
	struct top top = top_new((struct gp_param){ .age_permille = 100 });
	uint32_t lows[2] = { top_low(&top, 1), top_low(&top, 2) }, before[2], i;
	uint64_t bound_ns;

	while (!opens_of(top.w, lows[0]) || !world_is_open(top.w, lows[0]))
		world_run(top.w, 1 * MS);
	world_skip(top.w, 1100 * MS);
	world_settle(top.w);
	bound_ns = gp_sched_starvation_bound_ns(top.w->sched, top.device);
	for (i = 0; i < 2; i++)
		before[i] = opens_of(top.w, lows[i]);
	top_run(&top, bound_ns - 1 * S, lows[0]); /* less the acknowledgement that was not lost */
	for (i = 0; i < 2; i++)
		assert_true(opens_of(top.w, lows[i]) > before[i]);
	world_free(top.w);
}

/* The bound holds for everybody who does real work: with many users, many clients of one, and fakes beside them. */
static void worst_wait_is_within_the_bound(void **state)
{
	struct top top = top_new((struct gp_param){ .age_permille = 200 });
	uint64_t worst_ns = 0, most_ns = 0;
	uint32_t i, first, step;

	for (i = 0; i < 12; i++)
		top_low(&top, 1000 + i % 3); /* fakes of three users */
	first = top.w->queue_count;
	for (i = 0; i < 18; i++)
		top_low(&top, i < 8 ? 1 : i < 12 ? 2 : 10 + i);
	world_settle(top.w);
	for (step = 0; step < 20000; step++) {
		top_run(&top, 1 * MS, first);
		for (i = first; i < top.w->queue_count; i++) {
			const struct world_queue *q = &top.w->queues[i];
			uint64_t bound_ns = gp_sched_queue_starvation_bound_ns(top.w->sched, q->id);
			uint64_t waited_ns = q->open ? 0 : top.w->now_ns - q->closed_since_ns;

			if (waited_ns > bound_ns)
				fail_msg("queue %u waited %llu us, bound %llu us", i,
					 (unsigned long long)(waited_ns / US), (unsigned long long)(bound_ns / US));
			worst_ns = waited_ns > worst_ns ? waited_ns : worst_ns;
			most_ns = bound_ns > most_ns ? bound_ns : most_ns;
		}
	}
	assert_true(worst_ns >= most_ns / 8); /* and is not so loose that it says nothing */
	assert_true(most_ns <= gp_sched_starvation_bound_ns(top.w->sched, top.device));
	world_free(top.w);
}

/* A user is for life, shares go with their last client, and numbers that collide are kept apart. */
static void shares_come_and_go(void **state)
{
	struct top top = top_new((struct gp_param){ 0 });
	uint32_t round, i;

	for (round = 0; round < 3; round++) {
		uint32_t first = top.w->client_count;

		for (i = 0; i < 16; i++)
			top_low(&top, (uint64_t)(i % 5 + 1) << (i % 5 * 12));
		assert_int_equal(gp_sched_client_set_attr(top.w->sched, top.w->clients[first],
							  &(struct gp_client_attr){ .user = 99 }),
				 -EINVAL);
		assert_int_equal(gp_sched_client_set_attr(top.w->sched, top.w->clients[first],
							  &(struct gp_client_attr){ .user = 1, .memory_size = 5 }),
				 0);
		top_run(&top, 5 * WINDOW, first);
		for (i = 0; i < 16; i++)
			world_remove_client(top.w, first + i);
		top_run(&top, 1 * WINDOW, top.w->queue_count);
		top.w->client_count = first; /* their places in the record may be used again */
	}
	world_free(top.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clients_of_one_user_share_one_turn), cmocka_unit_test(users_do_not_share),
		cmocka_unit_test(fakes_lose_what_they_do_not_use),    cmocka_unit_test(cost_is_within_its_bound),
		cmocka_unit_test(long_kernel_is_not_shut_out),        cmocka_unit_test(late_driver_is_not_charged),
		cmocka_unit_test(worst_wait_is_within_the_bound),     cmocka_unit_test(shares_come_and_go),
	};

	return cmocka_run_group_tests_name("core_users", tests, NULL, NULL);
}
