/* SPDX-License-Identifier: MIT */
/*
 * Slices on a device that switches by itself: below the top priority they are short, never two that are open together,
 * lengthened before a second opens, and back to what they were when nobody is scheduled any more. The agents here keep
 * what their device would have; it is looked at after every single change.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "test/unit/daemon_world.h"
#include "test/unit/nvidia_root.h"

#define AGENTS 4u
#define SHORT  1u

struct scene {
	struct world world;
	struct nvidia_root root;
	struct agent agents[AGENTS];
	bool here[AGENTS];
	bool backwards;      /* the last agent reads its messages first */
	uint32_t most_short; /* that were open together at any time */
};

static void scene_look(void *context)
{
	struct scene *scene = context;
	uint32_t count = 0;

	for (uint32_t i = 0; i < AGENTS; i++)
		for (uint32_t slot = 0; scene->here[i] && slot < WORLD_SLOTS; slot++)
			count += scene->agents[i].slice_us[slot] == SHORT && !scene->agents[i].shut[slot];
	if (count > scene->most_short)
		scene->most_short = count;
}

/* A machine whose first GPU has the number that the fakes use. */
static void scene_begin(struct scene *scene, const char *config)
{
	char text[512];

	memset(scene, 0, sizeof(*scene));
	nvidia_root_begin(&scene->root);
	nvidia_root_gpu(&scene->root, "0000:00:01.0", "NVIDIA H200", 0);
	snprintf(
		text, sizeof(text),
		"[daemon]\nbackend = nvidia\n[nvidia]\nroot = %s\nmechanism = channel\nlong_slice = 0\nmiddle_slice = 0\n%s",
		scene->root.path, config ? config : "");
	world_begin(&scene->world, text);
	scene->world.look = scene_look;
	scene->world.look_context = scene;
}

/* A middle slice that cannot be used is said, with what the daemon uses instead; one that can, and none, are not. */
static void test_middle_slice_said(void **state)
{
	static const struct {
		const char *config, *said;
	} cases[] = {
		{ "middle_slice = 80ms\nlong_slice = 50ms\n",
		  "middle_slice (80000 us) must be longer than short_slice (1 us) and, unless long_slice is 0, shorter than "
		  "long_slice (50000 us); the daemon uses no middle slice (0)" },
		{ "middle_slice = 1us\n", "middle_slice (1 us) must be longer than" },
		{ "middle_slice = 2ms\nlong_slice = 50ms\n", NULL },
		{ "middle_slice = 0\n", NULL },
		{ "short_slice = 0\nmiddle_slice = 2ms\n", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static struct scene scene;
		static char text[65536];
		FILE *journal = tmpfile();
		int copy = dup(STDERR_FILENO);
		size_t size;

		assert_non_null(journal);
		assert_true(dup2(fileno(journal), STDERR_FILENO) >= 0);
		scene_begin(&scene, cases[i].config);
		fflush(stderr);
		assert_true(dup2(copy, STDERR_FILENO) >= 0);
		close(copy);
		rewind(journal);
		size = fread(text, 1, sizeof(text) - 1, journal);
		text[size] = 0;
		fclose(journal);
		if (cases[i].said ? !strstr(text, cases[i].said) : strstr(text, "middle_slice") != NULL)
			fail_msg("%s: %s", cases[i].config, text);
		world_end(&scene.world);
		nvidia_root_end(&scene.root);
	}
}

static void scene_settle(struct scene *scene)
{
	for (int round = 0; round < 20; round++)
		for (uint32_t n = 0; n < AGENTS; n++) {
			uint32_t i = scene->backwards ? AGENTS - 1 - n : n;

			if (scene->here[i])
				agent_work(&scene->world, &scene->agents[i]);
		}
}

static void scene_wait(struct scene *scene)
{
	world_wait(&scene->world, 1);
	scene_settle(scene);
}

static void scene_leave(struct scene *scene, uint32_t index)
{
	scene->here[index] = false;
	agent_leave(&scene->world, &scene->agents[index]);
}

static void scene_end(struct scene *scene)
{
	for (uint32_t i = 0; i < AGENTS; i++)
		if (scene->here[i])
			scene_leave(scene, i);
	world_end(&scene->world);
	nvidia_root_end(&scene->root);
}

static struct agent *scene_join(struct scene *scene, uint32_t index, int32_t priority)
{
	struct gp_wire_hello hello = world_hello(priority);
	struct agent *agent = &scene->agents[index];
	struct gp_wire_group group = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_GROUP, sizeof(group), 0 },
		.generation = 1,
		.fd = 3,
		.slice_us = 2048,
	};

	hello.mechanisms = GP_MECHANISM_BIT(GP_MECHANISM_CHANNEL);
	agent_hello(&scene->world, agent, &hello);
	scene->here[index] = true;
	agent_add_queue(&scene->world, agent, 0, GP_QUEUE_SEEN);
	world_send(agent->fd, &group, sizeof(group));
	scene_settle(scene);
	return agent;
}

static void scene_set(struct scene *scene, uint32_t index, int32_t priority)
{
	struct gp_wire_attr_message message = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_ATTR, sizeof(message), 0 },
		.attr = { .valid = GP_ATTR_PRIORITY, .priority = priority },
	};

	world_send(scene->agents[index].fd, &message, sizeof(message));
	scene_settle(scene);
}

static void test_below_the_top_is_short(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct agent *low, *high;

	(void)state;
	scene_begin(scene, NULL);
	low = scene_join(scene, 0, GP_PRIORITY_LOW);
	assert_int_equal(low->slice_count, 0); /* alone it is the top itself */
	high = scene_join(scene, 1, GP_PRIORITY_NORMAL);
	assert_int_equal(low->slice_us[0], SHORT);
	assert_int_equal(high->slice_count, 0);
	assert_false(low->shut[0]);
	/* It stays open while the urgent one works: the device switches by itself. */
	agent_doorbell(&scene->world, low, 0, 10);
	agent_doorbell(&scene->world, high, 0, 10);
	scene_settle(scene);
	assert_false(low->shut[0]);
	assert_int_equal(low->order_count + high->order_count, 0);
	/* The urgent one goes: nobody is below anybody. */
	scene_leave(scene, 1);
	scene_settle(scene);
	assert_int_equal(low->slice_us[0], 0);
	assert_int_equal(scene->most_short, 1);
	scene_end(scene);
	free(scene);
}

/* long_slice: the only program on top has it, two have their own, and it goes back with the rest. */
static void test_the_only_one_on_top_is_long(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct agent *low, *high, *second;

	(void)state;
	scene_begin(scene, "long_slice = 50ms\n[policy]\nrest = 1h\n");
	low = scene_join(scene, 0, GP_PRIORITY_LOW);
	high = scene_join(scene, 1, GP_PRIORITY_NORMAL);
	assert_int_equal(low->slice_us[0], SHORT);
	assert_int_equal(high->slice_us[0], 50000);
	second = scene_join(scene, 2, GP_PRIORITY_NORMAL);
	assert_int_equal(high->slice_us[0], 0);
	assert_int_equal(second->slice_us[0], 0);
	scene_leave(scene, 1);
	scene_settle(scene);
	assert_int_equal(second->slice_us[0], 50000);
	scene_leave(scene, 0);
	scene_settle(scene);
	assert_int_equal(second->slice_us[0], 0);
	assert_true(gp_slicing_are_back(&scene->world.daemon));
	scene_end(scene);
	free(scene);
}

/* What a hint asks for is done by the application itself: no order, no answer. */
static void test_hint_is_not_answered(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct agent *low, *high;
	struct gp_stats stats;

	(void)state;
	scene_begin(scene, NULL);
	low = scene_join(scene, 0, GP_PRIORITY_LOW);
	high = scene_join(scene, 1, GP_PRIORITY_NORMAL);
	agent_doorbell(&scene->world, low, 0, 10);
	scene_settle(scene);
	high->page->hint_ns = 100000;
	__atomic_fetch_add(&high->page->hint_count, 1, __ATOMIC_SEQ_CST);
	agent_ring(high);
	scene_settle(scene);
	assert_int_equal(gp_sched_stats(scene->world.daemon.sched, scene->world.daemon.devices[0].core, &stats), 0);
	assert_int_equal(stats.hints, 1);
	assert_int_equal(stats.stale_acks, 0);
	assert_int_equal(low->order_count + high->order_count, 0);
	scene_end(scene);
	free(scene);
}

static void test_priorities_change_live(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct agent *a, *b;

	(void)state;
	scene_begin(scene, NULL);
	a = scene_join(scene, 0, GP_PRIORITY_LOW);
	b = scene_join(scene, 1, GP_PRIORITY_NORMAL);
	assert_int_equal(a->slice_us[0], SHORT);
	scene_set(scene, 1, GP_PRIORITY_IDLE);
	assert_int_equal(a->slice_us[0], 0);
	assert_int_equal(b->slice_us[0], SHORT);
	/* At no time both: the one was long before the other was asked to be short. */
	assert_int_equal(scene->most_short, 1);
	scene_set(scene, 1, GP_PRIORITY_LOW);
	assert_int_equal(b->slice_us[0], 0);
	scene_end(scene);
	free(scene);
}

static void test_never_two_short_ones_open(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	uint32_t open = 0;

	(void)state;
	scene_begin(scene, "[policy]\nturn = 1ms\nrest = 1h\n");
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	for (uint32_t i = 1; i < AGENTS; i++)
		scene_join(scene, i, GP_PRIORITY_LOW);
	for (uint32_t packets = 1; packets < 200; packets++) {
		for (uint32_t i = 1; i < AGENTS; i++)
			agent_doorbell(&scene->world, &scene->agents[i], 0, packets);
		scene_settle(scene);
	}
	for (uint32_t i = 1; i < AGENTS; i++)
		open += !scene->agents[i].shut[0];
	assert_in_range(open, 0, 1);
	for (uint32_t i = 1; i < AGENTS; i++)
		assert_int_equal(scene->agents[i].slice_us[0], SHORT);
	assert_int_equal(scene->agents[0].slice_count, 0);
	assert_int_equal(scene->most_short, 1);
	/* Turns cost no slices: those that wait are kept short. */
	assert_true(scene->agents[1].order_count > 2);
	assert_in_range(scene->agents[1].slice_count, 1, 3);
	scene_end(scene);
	free(scene);
}

/* One that cannot be closed stays open beside the others: then nobody is short. */
static void test_one_that_cannot_be_closed(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct agent *a, *b;

	(void)state;
	scene_begin(scene, NULL);
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	a = scene_join(scene, 1, GP_PRIORITY_LOW);
	agent_doorbell(&scene->world, a, 0, 1);
	assert_int_equal(a->slice_us[0], SHORT);
	memset(&scene->agents[2], 0, sizeof(scene->agents[2]));
	b = &scene->agents[2];
	{
		struct gp_wire_hello hello = world_hello(GP_PRIORITY_LOW);

		hello.mechanisms = GP_MECHANISM_BIT(GP_MECHANISM_CHANNEL);
		agent_hello(&scene->world, b, &hello);
		scene->here[2] = true;
		b->fail = -EIO;
		agent_add_queue(&scene->world, b, 0, GP_QUEUE_SEEN);
	}
	for (uint32_t packets = 1; packets < 50; packets++) {
		agent_doorbell(&scene->world, a, 0, packets + 1);
		agent_doorbell(&scene->world, b, 0, packets);
		scene_settle(scene);
	}
	assert_int_equal(world_gate(&scene->world, b, 0), GP_GATE_QUARANTINED);
	for (int round = 0; round < 20000 && !a->shut[0] && a->slice_us[0] == SHORT; round++)
		scene_wait(scene);
	assert_true(a->shut[0] || a->slice_us[0] == 0);
	assert_int_equal(b->slice_us[0] == SHORT && a->slice_us[0] == SHORT && !a->shut[0], 0);
	assert_int_equal(scene->most_short, 1);
	scene_end(scene);
	free(scene);
}

/* Two batch clients with work and short slices below a third: the first, which is returned, is open, the other not. */
static struct agent *scene_two_short(struct scene *scene)
{
	struct agent *a, *b;

	scene_begin(scene, "[policy]\nturn = 1ms\nrest = 1h\n");
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	a = scene_join(scene, 1, GP_PRIORITY_LOW);
	b = scene_join(scene, 2, GP_PRIORITY_LOW);
	agent_doorbell(&scene->world, a, 0, 1000);
	agent_doorbell(&scene->world, b, 0, 1000);
	for (int round = 0; round < 20000 && (a->slice_us[0] != SHORT || b->slice_us[0] != SHORT || !b->shut[0]);
	     round++)
		scene_wait(scene);
	assert_true(b->shut[0]);
	assert_false(a->shut[0]);
	return a;
}

/* It cannot be made long either, and nor can the one that is to open beside it: then that one waits, because two short
 * ones would get nowhere. It opens as soon as the first has no work. */
static void test_neither_can_be_made_long(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct agent *a = scene_two_short(scene), *b = &scene->agents[2];
	int round = 0;

	(void)state;
	a->fail = -EIO;
	a->slice_fail = b->slice_fail = -EPERM;
	for (; round < 20000 && world_gate(&scene->world, a, 0) != GP_GATE_QUARANTINED; round++)
		scene_wait(scene);
	assert_int_equal(world_gate(&scene->world, a, 0), GP_GATE_QUARANTINED);
	/* Whatever the core tries, and however often. */
	for (uint32_t more = 0; more < 200; more++) {
		scene_wait(scene);
		assert_true(b->shut[0]);
	}
	assert_int_equal(scene->most_short, 1);
	agent_complete(&scene->world, a, 0, 1000);
	for (; round < 20000 && b->shut[0]; round++)
		scene_wait(scene);
	assert_false(b->shut[0]);
	scene_end(scene);
	free(scene);
}

/* The same two, and the first does not answer one close in time: what became of it is unknown, and so is whether the
 * other was opened. They do not wait for each other. */
static void test_neither_is_known_to_be_closed(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	uint32_t both_shut = 0;
	struct agent *a = scene_two_short(scene), *b = &scene->agents[2];
	int round = 0;

	(void)state;
	a->slice_fail = b->slice_fail = -EPERM;
	a->silent = true;
	for (; round < 20000 && world_queue(&scene->world, a, 0)->client->answers; round++)
		scene_wait(scene);
	assert_false(world_queue(&scene->world, a, 0)->client->answers);
	a->silent = false;
	agent_answer(&scene->world, a);
	for (uint32_t more = 0; more < 5000; more++) {
		scene_wait(scene);
		both_shut = a->shut[0] && b->shut[0] ? both_shut + 1 : 0;
		assert_true(both_shut < 4000);
	}
	assert_int_equal(scene->most_short, 1);
	scene_end(scene);
	free(scene);
}

/* Three priorities: the middle one is short and open while it has no work; when it gets some the lowest closes, and
 * nobody's slice is touched. */
static void test_the_middle_one_waits_open(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct agent *middle, *low;

	(void)state;
	scene_begin(scene, NULL);
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	low = scene_join(scene, 1, GP_PRIORITY_LOW);
	agent_doorbell(&scene->world, low, 0, 5);
	middle = scene_join(scene, 2, GP_PRIORITY_LOW + 10);
	for (uint64_t packets = 1; packets < 6; packets++) {
		assert_int_equal(low->slice_us[0], SHORT);
		assert_int_equal(middle->slice_us[0], SHORT);
		assert_false(low->shut[0] || middle->shut[0]);
		agent_doorbell(&scene->world, middle, 0, packets);
		for (int round = 0; round < 20000 && !low->shut[0]; round++) {
			world_wait(&scene->world, 1); /* it may have been opened a moment ago */
			scene_settle(scene);
		}
		assert_true(low->shut[0]);
		assert_false(middle->shut[0]);
		agent_complete(&scene->world, middle, 0, packets);
		for (int round = 0; round < 20000 && low->shut[0]; round++) {
			world_wait(&scene->world, 1);
			scene_settle(scene);
		}
	}
	assert_int_equal(middle->order_count, 0);
	assert_in_range(middle->slice_count, 1, 1);
	assert_in_range(low->slice_count, 1, 1);
	scene_end(scene);
	free(scene);
}

/* pause opens everything: what opens beside others is long before. */
static void scene_stop(bool backwards)
{
	struct scene *scene = malloc(sizeof(*scene));

	scene_begin(scene, NULL);
	scene->backwards = backwards;
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	for (uint32_t i = 1; i < AGENTS; i++)
		scene_join(scene, i, GP_PRIORITY_LOW);
	for (uint32_t i = 1; i < AGENTS; i++)
		agent_doorbell(&scene->world, &scene->agents[i], 0, 5);
	scene_settle(scene);
	gp_device_stop(&scene->world.daemon, &scene->world.daemon.devices[0], "a test");
	scene_settle(scene);
	for (uint32_t i = 0; i < AGENTS; i++) {
		assert_false(scene->agents[i].shut[0]);
		assert_int_equal(scene->agents[i].slice_us[0], 0);
	}
	assert_int_equal(scene->most_short, 1);
	assert_true(gp_slicing_are_back(&scene->world.daemon));
	gp_device_start(&scene->world.daemon, &scene->world.daemon.devices[0]);
	scene_settle(scene);
	for (uint32_t i = 1; i < AGENTS; i++)
		assert_int_equal(scene->agents[i].slice_us[0], SHORT);
	assert_int_equal(scene->most_short, 1);
	scene_end(scene);
	free(scene);
}

static void test_a_stop_gives_everything_back(void **state)
{
	(void)state;
	scene_stop(false);
	scene_stop(true);
}

static void test_no_policy_no_slices(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));

	(void)state;
	scene_begin(scene, "[policy]\npolicy = none\n");
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	scene_join(scene, 1, GP_PRIORITY_LOW);
	assert_int_equal(scene->agents[0].slice_count + scene->agents[1].slice_count, 0);
	scene_end(scene);
	free(scene);
}

/* One that does not answer may be short for all we know: no other becomes short beside it. */
static void test_no_answer_is_no_permission(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct agent *a, *b;

	(void)state;
	scene_begin(scene, NULL);
	a = scene_join(scene, 0, GP_PRIORITY_LOW);
	agent_doorbell(&scene->world, a, 0, 5);
	a->slice_silent = true;
	b = scene_join(scene, 1, GP_PRIORITY_NORMAL);
	agent_doorbell(&scene->world, b, 0, 5);
	assert_int_equal(a->slice_count, 1);
	scene_set(scene, 1, GP_PRIORITY_IDLE);
	assert_int_equal(b->slice_count, 0);
	/* Its answer comes: it is lengthened, and only then the other is shortened. */
	a->slice_silent = false;
	agent_answer_slice(&scene->world, a);
	scene_settle(scene);
	assert_int_equal(a->slice_us[0], 0);
	assert_int_equal(b->slice_us[0], SHORT);
	assert_int_equal(scene->most_short, 1);
	scene_end(scene);
	free(scene);
}

/* One that never answers may be short for all we know: no other becomes short beside it. */
static void test_no_answer_at_all(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct agent *a, *b;

	(void)state;
	scene_begin(scene, "[daemon]\nanswer_timeout = 20ms\n");
	a = scene_join(scene, 0, GP_PRIORITY_LOW);
	agent_doorbell(&scene->world, a, 0, 5);
	a->slice_silent = true;
	b = scene_join(scene, 1, GP_PRIORITY_NORMAL);
	agent_doorbell(&scene->world, b, 0, 5);
	for (int i = 0; i < 20000 && !world_info(&scene->world, a, 0).slice_failures; i++)
		scene_wait(scene);
	assert_int_equal(world_info(&scene->world, a, 0).slice_failures, 1);
	assert_false(world_info(&scene->world, a, 0).is_slice_known);
	scene_set(scene, 1, GP_PRIORITY_IDLE);
	assert_int_equal(b->slice_count, 0);
	scene_end(scene);
	free(scene);
}

static void test_a_refusal_is_said_and_not_repeated_at_once(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct agent *a;
	char *text;
	int result;
	struct gp_control_request request = world_request(GP_CONTROL_STATUS);

	(void)state;
	scene_begin(scene, NULL);
	a = scene_join(scene, 0, GP_PRIORITY_LOW);
	a->slice_fail = -EPERM;
	scene_join(scene, 1, GP_PRIORITY_NORMAL);
	assert_int_equal(a->slice_count, 1);
	assert_int_equal(a->slice_us[0], 0);
	scene->here[0] = scene->here[1] = false;
	for (uint32_t i = 0; i < 2; i++)
		scene->agents[i].silent = true;
	text = world_ask(&scene->world, &request, &result);
	assert_int_equal(result, 0);
	assert_non_null(strstr(text, "\"slice\":{\"now_us\":2048,\"app_us\":2048,\"short\":false"));
	assert_non_null(strstr(text, "\"self_switching\":true"));
	free(text);
	scene->here[0] = scene->here[1] = true;
	scene_end(scene);
	free(scene);
}

/* A library of before this device: it is served, and nothing is sent that it does not know. */
static void test_a_version_1_agent(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct gp_wire_hello hello = world_hello(GP_PRIORITY_LOW);
	struct agent *old;

	(void)state;
	scene_begin(scene, NULL);
	hello.header.version = 1;
	hello.version_min = hello.version_max = 1;
	old = &scene->agents[0];
	agent_hello(&scene->world, old, &hello);
	scene->here[0] = true;
	assert_int_equal(old->welcome.header.version, 1);
	assert_int_equal(old->welcome.version, 1);
	assert_int_equal(old->page->version, 1);
	assert_int_equal(old->welcome.mechanism, GP_MECHANISM_NONE);
	agent_add_queue(&scene->world, old, 0, GP_QUEUE_SEEN);
	scene_join(scene, 1, GP_PRIORITY_NORMAL);
	assert_int_equal(old->slice_count, 0);
	assert_int_equal(old->order_count, 0);
	scene_end(scene);
	free(scene);
}

/* What an agent may say of groups and slices: bad ones end its connection, and nothing else. */
static void test_bad_messages(void **state)
{
	static const struct gp_wire_group group = { .header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_GROUP,
								sizeof(group), 0 },
						    .generation = 1,
						    .fd = 3 };
	static const struct gp_wire_slice slice = { .header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_SLICED,
								sizeof(slice), 0 },
						    .generation = 1 };
	struct scene *scene = malloc(sizeof(*scene));

	(void)state;
	scene_begin(scene, NULL);
	scene_join(scene, 1, GP_PRIORITY_NORMAL);
	for (uint32_t kind = 0; kind < 9; kind++) {
		struct agent *agent = scene_join(scene, 0, GP_PRIORITY_LOW);
		struct gp_wire_group bad = group;
		struct gp_wire_slice answer = slice;
		bool is_bad = kind < 7;

		bad.slot = kind == 0 ? GP_WIRE_QUEUE_MAX : 0;
		bad.fd = kind == 1 ? -1 : 3;
		bad.channel_count = kind == 2 ? GP_WIRE_CHANNEL_MAX + 1 : 1;
		bad.reserved = kind == 3;
		answer.slot = kind == 4 ? GP_WIRE_QUEUE_MAX : 0;
		answer.result = kind == 5;
		answer.reserved = kind == 6;
		bad.slot = kind == 7 ? 5 : bad.slot; /* no such queue: it may just have gone */
		/* kind 8: a slice that nobody asked for */
		if (kind < 4 || kind == 7)
			world_send(agent->fd, &bad, sizeof(bad));
		else
			world_send(agent->fd, &answer, sizeof(answer));
		world_step(&scene->world);
		if (world_is_closed(agent->fd) != is_bad)
			fail_msg("kind %u", kind);
		scene_leave(scene, 0);
	}
	assert_int_equal(scene->world.daemon.counters.messages_refused, 7);
	assert_int_equal(scene->agents[1].slice_count, 0);
	scene_end(scene);
	free(scene);
}

static void test_a_version_1_agent_has_no_groups(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct gp_wire_hello hello = world_hello(GP_PRIORITY_LOW);
	struct gp_wire_group group = { .header = { GP_WIRE_MAGIC, 1, GP_WIRE_GROUP, sizeof(group), 0 }, .fd = 3 };

	(void)state;
	scene_begin(scene, NULL);
	hello.version_min = hello.version_max = 1;
	agent_hello(&scene->world, &scene->agents[0], &hello);
	world_send(scene->agents[0].fd, &group, sizeof(group));
	world_step(&scene->world);
	assert_true(world_is_closed(scene->agents[0].fd));
	scene->here[0] = true;
	scene_end(scene);
	free(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_middle_slice_said),
		cmocka_unit_test(test_below_the_top_is_short),
		cmocka_unit_test(test_the_only_one_on_top_is_long),
		cmocka_unit_test(test_hint_is_not_answered),
		cmocka_unit_test(test_priorities_change_live),
		cmocka_unit_test(test_never_two_short_ones_open),
		cmocka_unit_test(test_one_that_cannot_be_closed),
		cmocka_unit_test(test_neither_can_be_made_long),
		cmocka_unit_test(test_neither_is_known_to_be_closed),
		cmocka_unit_test(test_the_middle_one_waits_open),
		cmocka_unit_test(test_a_stop_gives_everything_back),
		cmocka_unit_test(test_no_policy_no_slices),
		cmocka_unit_test(test_no_answer_is_no_permission),
		cmocka_unit_test(test_no_answer_at_all),
		cmocka_unit_test(test_a_refusal_is_said_and_not_repeated_at_once),
		cmocka_unit_test(test_a_version_1_agent),
		cmocka_unit_test(test_a_version_1_agent_has_no_groups),
		cmocka_unit_test(test_bad_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
