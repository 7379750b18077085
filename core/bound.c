/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What ageing promises, in numbers: the longest that a queue waits, and the most that ageing costs urgent work. */
#include "core/calls.h"

/* Saturates: absurd parameters give an absurd bound, not a small one. */
static uint64_t age_times(uint64_t a, uint64_t b)
{
	return a && b > GP_NS_MAX / a ? GP_NS_MAX : a * b;
}

static uint64_t age_per_plan(const struct gp_device *device)
{
	return device->attr.unit == GP_UNIT_DEVICE  ? 1 :
	       device->attr.unit == GP_UNIT_PROCESS ? device->seat_count :
						      device->queue_count;
}

/* An aged turn with its own orders and with the plan that may be under way before it. */
uint64_t gp_age_run_ns(const struct gp_device *device)
{
	uint64_t pair_ns = device->attr.close_ns + device->attr.open_ns;

	return device->param.age_turn_ns + 2 * device->attr.open_ns + age_times(2 * pair_ns, age_per_plan(device));
}

/* The time from one aged turn to the next, as age_permille and the budget demand. */
static uint64_t age_slot_ns(const struct gp_device *device)
{
	uint64_t pair_ns = device->attr.close_ns + device->attr.open_ns;
	uint64_t refill_ns = age_times(pair_ns * 1000, age_per_plan(device)) / device->param.overhead_permille;

	return age_times(gp_age_run_ns(device), 1000) / device->param.age_permille + refill_ns;
}

/* One aged turn of every user. Turns of gangs wait for all their devices, each of which may owe as many as began at
 * once on all of them. */
static uint64_t age_round_ns(const struct gp_sched *sched, const struct gp_device *device)
{
	uint64_t slot_ns = age_slot_ns(device);
	uint32_t i;

	if (sched->gang_count) {
		for (i = 0, slot_ns = 0; i < sched->device_count; i++)
			slot_ns += age_slot_ns(&sched->devices[i]);
		slot_ns = age_times(slot_ns, sched->device_count);
	}
	return age_times(device->share_count, slot_ns);
}

/* How many aged turns a user needs for all its queues. With fewer slots than queues an aged turn may have room for one
 * queue of its seat only, and where each gate takes a transaction the budget may pay for one only. */
static uint32_t age_turns(const struct gp_device *device, const struct gp_share *share)
{
	bool one_by_one = device->attr.unit == GP_UNIT_QUEUE ||
			  (device->attr.slot_count &&
			   (uint64_t)device->queue_count + device->other_queue_count > device->attr.slot_count);

	return one_by_one ? share->queue_count : share->seat_count;
}

/*
 * A gate closed on work opens after its window, at most one aged turn of every user, the user's window and such a round
 * for each queue of its own user that goes before it, and one acknowledgement that is lost or late. Waits are not
 * sliding windows: a queue that is opened for short times may have had its turn's worth at the beginning of one and at
 * the end of the next, and then it waits twice as long.
 */
static uint64_t age_bound_ns(const struct gp_sched *sched, const struct gp_device *device, uint32_t level,
			     uint32_t share_level, uint32_t turns)
{
	uint64_t round_ns = age_round_ns(sched, device);

	return gp_age_window_ns(device, level > share_level ? level : share_level) + device->attr.ack_timeout_ns +
	       age_slot_ns(device) + round_ns + age_times(turns - 1, gp_age_window_ns(device, share_level) + round_ns);
}

uint64_t gp_sched_starvation_bound_ns(const struct gp_sched *sched, uint32_t device)
{
	const struct gp_device *d;
	uint32_t i, own, most = 1;

	if (device >= sched->device_count)
		return 0;
	d = &sched->devices[device];
	for (i = d->seat_first; i != GP_NONE; i = sched->seats[i].device_next) {
		own = age_turns(d, &sched->shares[sched->seats[i].share]);
		most = own > most ? own : most;
	}
	return age_bound_ns(sched, d, 0, 0, most);
}

uint64_t gp_sched_queue_starvation_bound_ns(const struct gp_sched *sched, struct gp_queue_id queue)
{
	const struct gp_queue *q = gp_queue_find(sched, queue);
	const struct gp_share *share;

	if (!q)
		return 0;
	share = gp_share_of(sched, q);
	return age_bound_ns(sched, &sched->devices[q->device], q->age_level, share->level,
			    age_turns(&sched->devices[q->device], share));
}

/* Turns of gangs that began on other devices may come beside the device's own. */
uint64_t gp_sched_age_cost_bound_ns(const struct gp_sched *sched, uint32_t device, uint64_t span_ns)
{
	const struct gp_device *d;
	uint64_t one_ns, rate_ns, users_ns;

	if (device >= sched->device_count)
		return 0;
	d = &sched->devices[device];
	if (span_ns > GP_NS_MAX)
		span_ns = GP_NS_MAX;
	one_ns = (gp_age_run_ns(d) + d->attr.ack_timeout_ns) * (sched->gang_count ? sched->device_count : 1);
	rate_ns = one_ns + span_ns / 1000 * d->param.age_permille + span_ns % 1000 * d->param.age_permille / 1000;
	users_ns = age_times(age_times(d->share_count, one_ns), span_ns / d->param.age_window_ns + 2);
	return rate_ns < users_ns ? rate_ns : users_ns;
}
