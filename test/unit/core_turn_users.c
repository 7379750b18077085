/* SPDX-License-Identifier: MIT */
/* Turns are shared by users first, then by the clients of a user. */
#include "test/unit/core_world.h"

#define TURN   (10 * MS)
#define CROWD  20u
#define HONEST 1u
#define MANY   2u /* the user with many clients */

struct crowd {
	struct world *w;
	uint32_t device, honest, first, count;
};

static uint32_t crowd_join(struct crowd *c, uint64_t user)
{
	uint32_t queue = world_queue(c->w, world_client_of(c->w, user), c->device, GP_PRIORITY_LOW);

	world_write(c->w, queue, 1u << 30);
	return queue;
}

/* One client of one user and count of another, all with work; nobody above them has any. */
static struct crowd crowd_new(const char *policy, uint32_t count)
{
	struct crowd c = { .w = world_new(), .count = count };
	uint32_t i;

	c.device = world_device(
		c.w,
		(struct world_setup){ .policy = policy,
				      .attr = { .unit = GP_UNIT_PROCESS },
				      .param = { .turn_ns = TURN, .rest_ns = 3600 * S, .overhead_permille = 1000 } });
	world_solo(c.w, c.device, GP_PRIORITY_HIGH);
	c.first = c.w->queue_count;
	for (i = 0; i < count; i++)
		crowd_join(&c, MANY);
	c.honest = crowd_join(&c, HONEST);
	world_settle(c.w);
	return c;
}

static uint64_t open_ns(struct crowd *c, uint32_t queue)
{
	return c->w->queues[queue].open_ns;
}

/* Who has twenty clients has as much as who has one, and each of the twenty a twentieth of that. */
static void users_share_before_clients(void **state)
{
	static const char *const policies[] = { "hpf", "rr", "wfq", "edf", "drf" };
	uint32_t p, i;

	for (p = 0; p < sizeof(policies) / sizeof(policies[0]); p++) {
		struct crowd c = crowd_new(policies[p], CROWD);
		uint64_t begin_ns = c.w->now_ns, passed_ns;

		world_run(c.w, 8 * CROWD * TURN);
		passed_ns = c.w->now_ns - begin_ns;
		if (open_ns(&c, c.honest) < passed_ns * 45 / 100 || open_ns(&c, c.honest) > passed_ns * 55 / 100)
			fail_msg("%s: the other user has %llu of %llu ms", policies[p],
				 (unsigned long long)(open_ns(&c, c.honest) / MS),
				 (unsigned long long)(passed_ns / MS));
		for (i = 0; i < CROWD; i++)
			assert_in_range(open_ns(&c, c.first + i), passed_ns / (4 * CROWD), passed_ns / CROWD);
		world_free(c.w);
	}
}

/* Twenty that rested and get work at once are not all owed a turn before the others'. */
static void rest_is_no_credit_for_many(void **state)
{
	struct crowd c = crowd_new("hpf", 0);
	uint64_t before_ns;
	uint32_t i, first;

	crowd_join(&c, 3); /* so that turns end */
	first = c.w->queue_count;
	for (i = 0; i < CROWD; i++)
		world_queue(c.w, world_client_of(c.w, MANY), c.device, GP_PRIORITY_LOW);
	world_run(c.w, 10 * CROWD * TURN);
	for (i = 0; i < CROWD; i++)
		world_write(c.w, first + i, 1u << 30);
	before_ns = open_ns(&c, c.honest);
	world_run(c.w, 12 * TURN);
	assert_in_range(open_ns(&c, c.honest) - before_ns, 3 * TURN, 5 * TURN);
	world_free(c.w);
}

/* Coming again does not get a user before the others. */
static void coming_again_is_no_credit(void **state)
{
	struct crowd c = crowd_new("hpf", 1);
	uint64_t begin_ns = c.w->now_ns, passed_ns;
	uint32_t round, queue = c.first;

	for (round = 0; round < 40; round++) {
		world_run(c.w, TURN / 2);
		world_remove_client(c.w, c.w->queues[queue].client);
		c.w->queue_count -= c.w->queue_count > c.honest + 1;
		c.w->client_count -= c.w->client_count > c.w->queues[c.honest].client + 1;
		queue = crowd_join(&c, MANY);
	}
	passed_ns = c.w->now_ns - begin_ns;
	assert_true(open_ns(&c, c.honest) >= passed_ns * 45 / 100);
	world_free(c.w);
}

/* A user whose other clients have gone stands no farther back than one client does. */
static void leaving_is_no_debt(void **state)
{
	struct crowd c = crowd_new("hpf", CROWD);
	uint64_t before_ns;
	uint32_t i;

	world_run(c.w, 2 * TURN);
	for (i = 0; i + 1 < CROWD; i++)
		world_remove_client(c.w, c.w->queues[c.first + i].client);
	world_run(c.w, 2 * TURN * CROWD);
	before_ns = open_ns(&c, c.first + CROWD - 1);
	world_run(c.w, 8 * TURN);
	assert_in_range(open_ns(&c, c.first + CROWD - 1) - before_ns, 3 * TURN, 5 * TURN);
	world_free(c.w);
}

/* Clients without a user are users of their own. */
static void clients_without_user_do_not_share(void **state)
{
	struct crowd c = crowd_new("hpf", 0);
	uint32_t i, first = c.w->queue_count;

	for (i = 0; i < 3; i++)
		crowd_join(&c, 0);
	world_run(c.w, 40 * TURN);
	assert_in_range(open_ns(&c, c.honest), 9 * TURN, 11 * TURN);
	for (i = first; i < c.w->queue_count; i++)
		assert_in_range(open_ns(&c, i), 9 * TURN, 11 * TURN);
	world_free(c.w);
}

#define TOP_MAX 16u /* as turn.c says */

static uint32_t count_open(struct world *w, uint32_t first, uint32_t count)
{
	uint32_t i, open = 0;

	for (i = 0; i < count; i++)
		open += world_is_open(w, first + i);
	return open;
}

/* At the top priority programs run beside each other; but of one user only so many. The others of his take turns, above
 * those of lower priority; another user's, and those without a user, are open all the time. */
static void crowd_at_the_top_takes_turns(void **state)
{
	struct world *w = world_new();
	uint32_t device =
		world_device(w, (struct world_setup){ .policy = "hpf",
						      .attr = { .unit = GP_UNIT_PROCESS },
						      .param = { .turn_ns = TURN, .overhead_permille = 1000 } });
	uint32_t honest = world_queue(w, world_client_of(w, HONEST), device, 50);
	uint32_t low = world_queue(w, world_client_of(w, 3), device, GP_PRIORITY_LOW);
	uint32_t i, first = w->queue_count, round;
	uint64_t begin_ns, before_ns;

	for (i = 0; i < 2 * TOP_MAX; i++)
		world_queue(w, world_client_of(w, MANY), device, 50);
	world_write(w, honest, 1u << 30);
	world_write(w, low, 1u << 30);
	for (i = 0; i < 2 * TOP_MAX; i++) {
		if (i % 2) /* announced work is no way round it */
			assert_int_equal(gp_sched_hint(w->sched, w->queues[first + i].id, 0, w->now_ns), 0);
		world_run(w, MS);
		world_write(w, first + i, 1u << 30);
	}
	world_run(w, 2 * TURN);
	begin_ns = w->now_ns;
	before_ns = w->queues[honest].open_ns;
	for (round = 0; round < 8 * TOP_MAX; round++) {
		world_run(w, TURN / 4);
		assert_in_range(count_open(w, first, 2 * TOP_MAX), TOP_MAX, TOP_MAX + 1);
		assert_true(world_is_open(w, honest));
	}
	assert_int_equal(w->queues[honest].open_ns - before_ns, w->now_ns - begin_ns);
	for (i = 0; i < 2 * TOP_MAX; i++)
		assert_true(w->queues[first + i].open_ns >= TURN);
	world_free(w);
}

/* Whoever finds room when its next work comes is at the top again; who rests takes nobody's place. */
static void places_at_the_top_are_given_back(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .policy = "hpf",
								.attr = { .unit = GP_UNIT_PROCESS },
								.param = { .turn_ns = TURN } });
	uint32_t i, first = w->queue_count, round;

	for (i = 0; i < 2 * TOP_MAX; i++)
		world_write(w, world_queue(w, world_client_of(w, MANY), device, 50), 1);
	world_settle(w);
	assert_in_range(count_open(w, first, 2 * TOP_MAX), TOP_MAX, TOP_MAX + 1);
	for (i = 0; i < 2 * TOP_MAX; i++) {
		for (round = 0; !world_is_open(w, first + i) && round < 4 * TOP_MAX; round++)
			world_run(w, TURN / 4);
		world_drain(w, first + i);
	}
	world_run(w, MS);
	for (i = TOP_MAX; i < 2 * TOP_MAX; i++)
		world_write(w, first + i, 1);
	world_settle(w);
	assert_int_equal(count_open(w, first + TOP_MAX, TOP_MAX), TOP_MAX);
	for (i = 0; i < TOP_MAX; i++)
		world_remove_client(w, w->queues[first + TOP_MAX + i].client);
	for (i = 0; i < TOP_MAX; i++)
		world_write(w, first + i, 1);
	world_settle(w);
	assert_int_equal(count_open(w, first, TOP_MAX), TOP_MAX);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(users_share_before_clients),        cmocka_unit_test(rest_is_no_credit_for_many),
		cmocka_unit_test(coming_again_is_no_credit),         cmocka_unit_test(leaving_is_no_debt),
		cmocka_unit_test(clients_without_user_do_not_share), cmocka_unit_test(crowd_at_the_top_takes_turns),
		cmocka_unit_test(places_at_the_top_are_given_back),
	};

	return cmocka_run_group_tests_name("core_turn_users", tests, NULL, NULL);
}
