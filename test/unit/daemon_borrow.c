/* SPDX-License-Identifier: MIT */
/* Mechanism borrow: gpreemptd itself calls RM on the clients' files. What it orders, and what it does when refused. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "test/unit/borrow_scene.h"

static void test_slices_and_gates(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));

	(void)state;
	scene_begin(scene, NULL);
	assert_int_equal(scene->world.daemon.devices[0].info.mechanism, GP_MECHANISM_BORROW);
	assert_int_equal(scene->world.daemon.devices[0].info.unit, GP_UNIT_DEVICE);
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	assert_int_equal(scene->agents[0].welcome.mechanism, GP_MECHANISM_BORROW);
	scene_join(scene, 1, GP_PRIORITY_LOW);
	UNTIL(scene, rm.contexts[1].slice_us == SHORT);
	scene_join(scene, 2, GP_PRIORITY_LOW);
	scene_work(scene, 1, 2);
	UNTIL(scene, closed_count() == 1 && rm.contexts[1].slice_us == SHORT && rm.contexts[2].slice_us == SHORT);
	/* The agents were not asked for anything. */
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(scene->agents[i].order_count + scene->agents[i].slice_count, 0);
	scene_leave(scene, 0);
	UNTIL(scene, !closed_count() && rm.contexts[1].slice_us == LONG && rm.contexts[2].slice_us == LONG);
	scene_end(scene);
}

/* A plan that closes several closes them in one call. */
static void test_several_in_one_call(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));

	(void)state;
	scene_begin(scene, "[policy]\nbatch_clients = 1\n");
	for (uint32_t i = 1; i < AGENTS; i++) {
		scene_join(scene, i, GP_PRIORITY_LOW);
		agent_doorbell(&scene->world, &scene->agents[i], 0, 5);
	}
	assert_int_equal(rm.disables, 0);
	/* Now they are below somebody: all but one have to close. */
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	UNTIL(scene, closed_count() == AGENTS - 2);
	assert_int_equal(rm.disables, 1);
	assert_int_equal(rm.channels_most, (AGENTS - 2) * CHANNELS);
	scene_end(scene);
}

static void test_one_by_one_where_together_is_refused(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));

	(void)state;
	scene_begin(scene, NULL);
	for (uint32_t i = 1; i < AGENTS; i++) {
		scene_join(scene, i, GP_PRIORITY_LOW);
		agent_doorbell(&scene->world, &scene->agents[i], 0, 5);
	}
	rm.refuse_several = true;
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	UNTIL(scene, closed_count() == AGENTS - 2);
	assert_int_equal(rm.disables, AGENTS - 2);
	assert_int_equal(rm.channels_most, CHANNELS);
	for (uint32_t i = 0; i < AGENTS; i++)
		assert_int_equal(scene->agents[i].mechanism, 0); /* nobody was told another one */
	scene_end(scene);
}

/* One with a queue is there, and another has come that has said nothing of its own yet. */
static struct scene *scene_before_group(struct gp_wire_group *ret_group)
{
	struct scene *scene = malloc(sizeof(*scene));

	scene_begin(scene, NULL);
	scene_join(scene, 1, GP_PRIORITY_NORMAL);
	scene_hello(scene, 0, GP_PRIORITY_LOW);
	*ret_group = scene_group(scene, 0);
	return scene;
}

/* Handles that do not answer on the file, another GPU, a file that is none of the driver's: the agent does it. */
static void test_bad_groups(void **state)
{
	static const char *const whys[] = { "does not answer", "another GPU", "no file of the NVIDIA driver",
					    "cannot take its file" };
	int other = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	for (uint32_t kind = 0; kind < 4; kind++) {
		struct gp_wire_group group;
		struct scene *scene = scene_before_group(&group);
		struct agent *agent = &scene->agents[0];

		if (kind == 0)
			group.client = rm.contexts[1].client; /* somebody else's */
		else if (kind == 1)
			rm.contexts[0].gpu_id = 77;
		else
			group.fd = kind == 2 ? other : 100000;
		world_send(agent->fd, &group, sizeof(group));
		UNTIL(scene, agent->mechanism == GP_MECHANISM_CHANNEL && scene_queue(scene, 0)->in_core);
		assert_non_null(strstr(scene_queue(scene, 0)->client->mechanism_why, whys[kind]));
		UNTIL(scene, agent->slice_us[0] == SHORT);
		assert_int_equal(rm.disables, 0);
		assert_int_equal(rm.contexts[1].slice_us, LONG);
		scene_end(scene);
	}
	close(other);
}

/* The daemon looks at a group that its agent has just let go, and hears of that afterwards: nothing is wrong. debt_ns:
 * what the agent's user, who is not root, has used of the daemon's time. */
static void look_at_a_group_that_goes(uint64_t debt_ns)
{
	struct gp_wire_group group;
	struct scene *scene = scene_before_group(&group);
	struct agent *agent = &scene->agents[0];
	struct gp_wire_slot gone = { .header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_REMOVE, sizeof(gone),
						 0 },
				     .slot = group.slot,
				     .generation = group.generation };
	struct gp_client *client = scene_queue(scene, 0)->client;
	struct gp_owner *owner = client->peer->owner;
	uint32_t id = owner->id;
	uint64_t until_ns;

	rm.contexts[0].group++; /* it has ended */
	world_send(agent->fd, &group, sizeof(group));
	UNTIL(scene, scene_queue(scene, 0)->group.doubt_ns);
	until_ns = scene_queue(scene, 0)->group.doubt_ns + 400000000ull;
	owner->id = 4711;
	owner->debt_ns = debt_ns;
	owner->spent_ns = gp_now_ns();
	world_send(agent->fd, &gone, sizeof(gone));
	UNTIL(scene, gp_now_ns() > until_ns);
	owner->id = id;
	assert_int_equal(agent->mechanism, 0); /* the daemon told the agent no other one */
	assert_int_equal(client->device.mechanism, GP_MECHANISM_BORROW);
	assert_null(gp_client_queue(client, group.slot, group.generation)); /* the daemon has read it */
	rm.contexts[0].group--;
	scene_end(scene);
}

static void test_a_group_that_goes(void **state)
{
	(void)state;
	look_at_a_group_that_goes(0);
}

/* The user has used more than a user may: the daemon reads later what the agent sent, and waits for it. */
static void test_a_group_that_goes_unread(void **state)
{
	(void)state;
	look_at_a_group_that_goes(70000000);
}

/* An agent that tells of the same group again and again, which is not there: that does not keep it out of the schedule.
 */
static void test_a_group_told_again(void **state)
{
	struct gp_wire_group group;
	struct scene *scene = scene_before_group(&group);
	struct agent *agent = &scene->agents[0];
	uint64_t end_ns = gp_now_ns() + 5000000000ull, again_ns = 0;

	(void)state;
	group.group++;
	while (agent->mechanism != GP_MECHANISM_CHANNEL && gp_now_ns() < end_ns) {
		if (gp_now_ns() >= again_ns) {
			world_send(agent->fd, &group, sizeof(group));
			again_ns = gp_now_ns() + 20000000ull;
		}
		scene_round(scene);
	}
	assert_int_equal(agent->mechanism, GP_MECHANISM_CHANNEL);
	UNTIL(scene, scene_queue(scene, 0)->in_core);
	scene_end(scene);
}

/* One could not be closed: both are short until it is noticed. */
static void scene_end_crowded(struct scene *scene)
{
	scene_leave(scene, 1);
	UNTIL(scene, rm.contexts[1].slice_us == LONG);
	rm.most_short = 0;
	scene_end(scene);
}

static bool is_held(const struct scene *scene, uint32_t index)
{
	return __atomic_load_n(&scene->agents[index].page->queues[0].held, __ATOMIC_ACQUIRE);
}

/* The agent is told before it is closed that we do it, and until it is open again: it would open it if we died. */
static void test_agents_know(void **state)
{
	struct scene *scene = scene_three();

	(void)state;
	rm.hang = true;
	scene_work(scene, 1, 2);
	UNTIL(scene, rm.hanging);
	assert_true(is_held(scene, 2));
	assert_false(is_held(scene, 0) || is_held(scene, 1));
	assert_false(scene_queue(scene, 2)->closed);
	rm_go_on();
	UNTIL(scene, scene_queue(scene, 2)->closed);
	assert_true(is_held(scene, 2));
	agent_complete(&scene->world, &scene->agents[1], 0, 5);
	UNTIL(scene, context_is_open(&rm.contexts[2]) && !scene_queue(scene, 2)->closed);
	assert_false(is_held(scene, 2));
	scene_end(scene);
}

/* We were late with a close, the agent's lease ran out and it opened the context, and then our close came: when we hear
 * of the lease, and nobody wants anything of that context, it does not stay closed. */
static void test_close_after_the_lease(void **state)
{
	struct scene *scene = scene_three();
	struct {
		struct gp_wire_lost head;
		struct gp_wire_change change;
	} lost = { .head = { .header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_LOST, sizeof(lost), 0 },
			     .why = GP_LOST_LEASE,
			     .count = 1 } };

	(void)state;
	scene_work(scene, 1, 2);
	UNTIL(scene, scene_queue(scene, 2)->closed && !context_is_open(&rm.contexts[2]));
	agent_complete(&scene->world, &scene->agents[2], 0, 5);
	scene_leave(scene, 1);
	lost.change = (struct gp_wire_change){ 0, scene_queue(scene, 2)->wire.generation, true, 0 };
	world_send(scene->agents[2].fd, &lost, sizeof(lost));
	UNTIL(scene, scene_queue(scene, 2)->client->leases_lost);
	UNTIL(scene, context_is_open(&rm.contexts[2]) && !scene_queue(scene, 2)->closed);
	scene_end(scene);
}

/* RM disables channels one after the other: when one cannot be, those before it are enabled again. */
static void test_half_a_close(void **state)
{
	struct scene *scene = scene_three();
	struct gp_wire_group group = scene_group(scene, 2);
	uint32_t looks = rm.looks;

	(void)state;
	group.channels[group.channel_count++] = 0x999;
	world_send(scene->agents[2].fd, &group, sizeof(group));
	UNTIL(scene, rm.looks > looks);
	scene_work(scene, 1, 2);
	UNTIL(scene, scene->world.daemon.devices[0].order_failures);
	UNTIL(scene, context_is_open(&rm.contexts[2]));
	UNTIL(scene, !is_held(scene, 2));
	scene_end_crowded(scene);
}

/* Held out by a call that is under way when it is found that nobody sees its work: it does not stay so. */
static void test_blind_while_it_is_closed(void **state)
{
	struct scene *scene = scene_three();
	struct gp_wire_queue change;

	(void)state;
	rm.hang = true;
	scene_work(scene, 1, 2);
	UNTIL(scene, rm.hanging);
	change = scene_queue(scene, 2)->wire;
	change.header.type = GP_WIRE_QUEUE_CHANGE;
	change.flags = GP_QUEUE_SEEN | GP_QUEUE_BLIND;
	world_send(scene->agents[2].fd, &change, sizeof(change));
	UNTIL(scene, !scene_queue(scene, 2)->in_core);
	rm_go_on();
	UNTIL(scene, rm.disables && rm.enables);
	UNTIL(scene, context_is_open(&rm.contexts[2]) && rm.contexts[2].slice_us == LONG);
	rm.most_short = 0;
	scene_end(scene);
}

/* Refused to us, though it is the client's own: the agent does it, and what we had done is undone before. */
static void refused_later(uint32_t status)
{
	struct scene *scene = malloc(sizeof(*scene));

	scene_begin(scene, NULL);
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	scene_join(scene, 1, GP_PRIORITY_LOW);
	UNTIL(scene, rm.contexts[1].slice_us == SHORT);
	rm.refuse = GP_RM_DISABLE_CHANNELS;
	rm.status = status;
	scene_join(scene, 2, GP_PRIORITY_LOW);
	scene_work(scene, 1, 2);
	UNTIL(scene,
	      scene->agents[1].mechanism == GP_MECHANISM_CHANNEL || scene->agents[2].mechanism == GP_MECHANISM_CHANNEL);
	UNTIL(scene, scene->agents[1].order_count + scene->agents[2].order_count > 0);
	rm.refuse = 0;
	rm.most_short = 0; /* while neither could be closed both may have been short, for a moment */
	scene_end(scene);
}

static void test_refused_later(void **state)
{
	static const uint32_t statuses[] = { GP_RM_ERR_PERMISSIONS, GP_RM_ERR_ARGUMENT, GP_RM_ERR_SUPPORT,
					     GP_RM_ERR_STATE, 0xffff };

	(void)state;
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		refused_later(statuses[i]);
}

/* It gets channels while it is closed, and they cannot be closed as well: it is open, and is not believed closed. */
static void test_closed_again_and_cannot(void **state)
{
	struct scene *scene = scene_three();
	struct gp_wire_group group = scene_group(scene, 2);

	(void)state;
	scene_work(scene, 1, 2);
	UNTIL(scene, !context_is_open(&rm.contexts[2]) && scene_queue(scene, 2)->closed);
	group.channels[group.channel_count++] = 0x999;
	world_send(scene->agents[2].fd, &group, sizeof(group));
	UNTIL(scene, context_is_open(&rm.contexts[2]));
	UNTIL(scene, !scene_queue(scene, 2)->closed);
	scene_end_crowded(scene);
}

/* Its program has set a slice of its own, and ours cannot be set over it: it is not believed short, and tried again. */
static void test_short_again_and_cannot(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct gp_wire_group group;

	(void)state;
	scene_begin(scene, NULL);
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	scene_join(scene, 1, GP_PRIORITY_LOW);
	group = scene_group(scene, 1);
	UNTIL(scene, scene_info(scene, 1).is_short);
	pthread_mutex_lock(&rm.lock);
	rm.contexts[1].slice_us = 500;
	rm.refuse = GP_RM_SLICE_SET;
	rm.refuse_client = rm.contexts[1].client;
	rm.status = GP_RM_ERR_BUSY;
	pthread_mutex_unlock(&rm.lock);
	world_send(scene->agents[1].fd, &group, sizeof(group));
	UNTIL(scene, !scene_info(scene, 1).is_slice_known);
	rm.refuse = 0;
	UNTIL(scene, rm.contexts[1].slice_us == SHORT && scene_info(scene, 1).is_slice_known);
	scene_end(scene);
}

/* Wherever there is no memory for it, the client is not left with a mechanism that nobody serves. */
static void test_no_memory(void **state)
{
	(void)state;
	for (int nth = 1; nth <= 3; nth++) {
		struct gp_wire_group group;
		struct scene *scene = scene_before_group(&group);
		struct agent *agent = &scene->agents[0];

		group.fd = 100000;
		rm.no_memory = nth;
		world_send(agent->fd, &group, sizeof(group));
		UNTIL(scene, agent->mechanism == GP_MECHANISM_CHANNEL && scene_queue(scene, 0)->in_core);
		assert_int_equal(rm.no_memory, 0);
		scene_end(scene);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slices_and_gates),
		cmocka_unit_test(test_several_in_one_call),
		cmocka_unit_test(test_one_by_one_where_together_is_refused),
		cmocka_unit_test(test_bad_groups),
		cmocka_unit_test(test_a_group_that_goes),
		cmocka_unit_test(test_a_group_that_goes_unread),
		cmocka_unit_test(test_a_group_told_again),
		cmocka_unit_test(test_close_after_the_lease),
		cmocka_unit_test(test_half_a_close),
		cmocka_unit_test(test_agents_know),
		cmocka_unit_test(test_blind_while_it_is_closed),
		cmocka_unit_test(test_refused_later),
		cmocka_unit_test(test_closed_again_and_cannot),
		cmocka_unit_test(test_short_again_and_cannot),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
