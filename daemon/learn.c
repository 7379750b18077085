/* SPDX-License-Identifier: MIT */
/*
 * Learns what a transaction costs from the daemon's own measurements: from an order to its answer, or around its own
 * calls. The core uses the cost for all users, so no user may make transactions look dear or cheap for others. Each
 * user has a value, the upper quartile of that user's last transactions, and the cost is the median of all users'
 * values. If their number is even, what the backend assumes counts as one more value. With one user alone the cost is
 * that user's value. As soon as a second user connects, and until that user has a value, the cost is what the backend
 * assumes. What an earlier daemon has saved counts only as long as no user has a value: several accounts of one user
 * may have made it. The cost never goes far from what is assumed for the device, nor far above root's value.
 */
#include <stdlib.h>
#include <string.h>
#include "daemon/daemon.h"

#define LEARN_MIN    8u  /* transactions that a user needs for a value */
#define LEARN_FACTOR 32u /* a cost stays within this factor of the backend's; chosen: the range of all devices */
#define LEARN_ABOVE  4u  /* … and of root's value above that; chosen: other users' processes may take longer */

static struct gp_cost_user *learn_user(struct gp_cost *cost, uint32_t owner)
{
	struct gp_cost_user *user = NULL;

	for (uint32_t i = 0; i < GP_COST_USERS; i++) {
		if (cost->users[i].used_ns && cost->users[i].owner == owner)
			return &cost->users[i];
		if (!user || cost->users[i].used_ns < user->used_ns)
			user = &cost->users[i];
	}
	*user = (struct gp_cost_user){ .owner = owner };
	return user;
}

void gp_cost_add(struct gp_device_entry *device, uint32_t owner, bool open, uint64_t ns)
{
	struct gp_cost_user *user = learn_user(&device->cost, owner);

	user->used_ns = gp_now_ns();
	user->ns[open][user->count[open]++ % GP_COST_SAMPLES] = ns;
}

static int learn_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t learn_user_ns(const struct gp_cost_user *user, bool open)
{
	uint32_t count = user->count[open] < GP_COST_SAMPLES ? user->count[open] : GP_COST_SAMPLES;
	uint64_t ns[GP_COST_SAMPLES];

	memcpy(ns, user->ns[open], sizeof(ns));
	qsort(ns, count, sizeof(ns[0]), learn_compare);
	return ns[count * 3 / 4];
}

uint32_t gp_cost_user_count(const struct gp_device_entry *device, bool open)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < GP_COST_USERS; i++)
		count += device->cost.users[i].count[open] >= LEARN_MIN;
	return count;
}

/* Whether more than one user has queues on the device. */
static bool learn_is_shared(const struct gp_device_entry *device)
{
	const struct gp_queue_entry *first = device->queues;

	for (const struct gp_queue_entry *q = first; q; q = q->device_next)
		if (q->client->owner != first->client->owner)
			return true;
	return false;
}

/* The median of all values, of which given_ns, if known, is one if their number is even. */
static uint64_t learn_median_ns(uint64_t *values, uint32_t count, uint64_t given_ns)
{
	if (count % 2 == 0 && given_ns)
		values[count++] = given_ns;
	qsort(values, count, sizeof(values[0]), learn_compare);
	return values[(count - 1) / 2];
}

uint64_t gp_cost_ns(const struct gp_device_entry *device, bool open)
{
	uint64_t prior_ns = open ? device->open_prior_ns : device->close_prior_ns;
	uint64_t given_ns = open ? device->info.open_ns : device->info.close_ns;
	uint64_t values[GP_COST_USERS + 1], ns, most_ns = UINT64_MAX;
	uint32_t count = 0;

	for (uint32_t i = 0; i < GP_COST_USERS; i++) {
		const struct gp_cost_user *user = &device->cost.users[i];

		if (user->count[open] < LEARN_MIN)
			continue;
		values[count] = learn_user_ns(user, open);
		if (!user->owner)
			most_ns = values[count] * LEARN_ABOVE;
		count++;
	}
	if (!count)
		return gp_cost_bound_ns(prior_ns, given_ns);
	if (count == 1 && learn_is_shared(device))
		ns = given_ns ? given_ns : prior_ns;
	else
		ns = learn_median_ns(values, count, given_ns);
	return gp_cost_bound_ns(ns < most_ns ? ns : most_ns, given_ns);
}

uint64_t gp_cost_bound_ns(uint64_t ns, uint64_t given_ns)
{
	if (!given_ns)
		return ns;
	return ns > given_ns * LEARN_FACTOR ? given_ns * LEARN_FACTOR :
	       ns < given_ns / LEARN_FACTOR ? given_ns / LEARN_FACTOR :
					      ns;
}

/* Whether the next daemon may use the costs. If only one user has values, that user must be root, or the daemon must
 * change the gates itself. */
bool gp_cost_is_known(const struct gp_device_entry *device)
{
	for (int open = 0; open < 2; open++) {
		bool own = gp_mechanism_has(device->info.mechanism, GP_BY_DAEMON);

		for (uint32_t i = 0; i < GP_COST_USERS; i++)
			own |= device->cost.users[i].count[open] >= LEARN_MIN && !device->cost.users[i].owner;
		if (gp_cost_user_count(device, open) < (own ? 1 : 2))
			return false;
	}
	return true;
}
