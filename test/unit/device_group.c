/* SPDX-License-Identifier: MIT */
/*
 * Disables are counted, as NVIDIA's driver counts them: whatever is ordered, fails, comes, goes or is opened by the
 * agent meanwhile, no channel is disabled twice, and what was closed or opened is. The driver is this test.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "device/nvidia/group.h"
#include "lib/rng.h"

#define GROUPS   4u
#define CHANNELS 64u

/* Group i is client 100 + i; its channels are numbered from 0. */
static uint32_t counts[GROUPS][CHANNELS];
static bool gone[GROUPS][CHANNELS];
static bool held[GROUPS]; /* for certain: closed by us, and nobody else did anything since */
static uint32_t failing;  /* so many calls are refused */
static struct gp_rng rng;

int __wrap_gp_borrow_control(const struct gp_borrow_object *object, uint32_t command, void *params, uint32_t size);
int __wrap_gp_borrow_control(const struct gp_borrow_object *object, uint32_t command, void *params, uint32_t size)
{
	const struct gp_rm_disable *call = params;

	(void)object;
	assert_int_equal(command, GP_RM_DISABLE_CHANNELS);
	assert_int_equal(size, sizeof(*call));
	assert_true(call->count <= GP_RM_DISABLE_MAX);
	if (failing) {
		failing--;
		return -EBUSY;
	}
	for (uint32_t i = 0; i < call->count; i++) {
		uint32_t group = call->clients[i] - 100u, channel = call->channels[i];

		assert_true(group < GROUPS && channel < CHANNELS);
		/* Those before it in the list are changed by then. */
		if (gone[group][channel])
			return -ENOENT;
		if (call->disable)
			counts[group][channel]++;
		else if (counts[group][channel])
			counts[group][channel]--;
		assert_true(counts[group][channel] <= 1u);
	}
	return 0;
}

static void group_make(struct gp_borrow_group *group, uint32_t index)
{
	*group = (struct gp_borrow_group){ .fd = -1, .client = 100u + index, .app_us = 2048 };
	for (uint32_t k = 0; k < CHANNELS; k++)
		if (!gone[index][k] && gp_rng_below(&rng, 8) && group->channel_count < 16u)
			group->channels[group->channel_count++] = k;
}

/* Whether all of its channels that are there are disabled so often. */
static bool group_is(const struct gp_borrow_group *group, uint32_t count)
{
	for (uint32_t k = 0; k < group->channel_count; k++)
		if (!gone[group->client - 100u][group->channels[k]] &&
		    counts[group->client - 100u][group->channels[k]] != count)
			return false;
	return true;
}

/* Others of its channels are told now: some that left the list go on, some are gone for good. */
static void group_changes(struct gp_borrow_group *group)
{
	uint32_t index = group->client - 100u, k = (uint32_t)gp_rng_below(&rng, CHANNELS);
	struct gp_borrow_group next;
	int r;

	if (gp_rng_below(&rng, 4) == 0) {
		gone[index][k] = !gone[index][k];
		counts[index][k] = 0;
		held[index] = false;
	}
	group_make(&next, index);
	r = gp_nvidia_group_follow(&next, group);
	if (!r && held[index])
		assert_true(next.closed && group_is(&next, 1));
	held[index] &= !r;
	*group = next;
}

static void groups_change(struct gp_borrow_group *groups, bool open)
{
	struct gp_borrow_group *some[GROUPS];
	int results[GROUPS];
	uint32_t count = 0;

	for (uint32_t i = 0; i < GROUPS; i++)
		if (gp_rng_below(&rng, 2))
			some[count++] = &groups[i];
	gp_nvidia_groups_change(some, count, open, results);
	for (uint32_t i = 0; i < count; i++) {
		if (!results[i])
			assert_true(group_is(some[i], !open));
		held[some[i]->client - 100u] = !results[i] && !open;
	}
}

static void test_counts(void **state)
{
	struct gp_borrow_group groups[GROUPS];

	(void)state;
	gp_rng_init(&rng, 20261116);
	for (uint32_t i = 0; i < GROUPS; i++)
		group_make(&groups[i], i);
	for (uint32_t round = 0; round < 200000u; round++) {
		uint32_t i = (uint32_t)gp_rng_below(&rng, GROUPS);

		failing = gp_rng_below(&rng, 16) ? 0 : 1u + (uint32_t)gp_rng_below(&rng, 4);
		switch (gp_rng_below(&rng, 8)) {
		case 0: group_changes(&groups[i]); break;
		case 1: /* the agent opens it, and knows nothing of us */
			for (uint32_t k = 0; k < CHANNELS; k++)
				counts[i][k] = 0;
			held[i] = false;
			break;
		case 2: /* a channel ends before we are told */ gone[i][groups[i].channels[0]] = true; break;
		case 3:
			gp_nvidia_group_restore(&groups[i]);
			held[i] = false;
			break;
		default: groups_change(groups, gp_rng_below(&rng, 2)); break;
		}
		failing = 0;
		/* Once is enough, for whoever comes after us. */
		if (round % 100u == 99u) {
			struct gp_borrow_group *one = &groups[i];
			int result = 1;

			gp_nvidia_groups_change(&one, 1, true, &result);
			assert_int_equal(result, 0);
			assert_true(group_is(one, 0) && !one->closed && !one->disabled);
			held[i] = false;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_counts) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
