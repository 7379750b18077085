/* SPDX-License-Identifier: MIT */
/*
 * After the faults stop everything drains: when the stated time is up nothing is pending, no gate is closed on pending
 * work, and the core does not believe in work that is gone. Time moves on within a stated number of steps, and both
 * invariant checks are clean after each.
 */
#include "test/sim/checker.h"
#include "test/sim/checker_known.h"
#include "test/sim/checker_truth.h"

#define DRAIN_STEPS_AT_ONCE 100000u /* steps without time moving */
#define DRAIN_GPU_CHECK     16u     /* the model's check walks its whole table: not after every step */

struct drain_state {
	uint64_t now_ns, steps;
	uint32_t since_check;
	bool is_called; /* the core was, since its last check: without a call it cannot have changed */
};

static void drain_invariants(struct checker_run *run, struct drain_state *state, bool all)
{
	const char *wrong = run->core && (all || state->is_called) ? gp_sched_check(run->core) : NULL;
	uint32_t i;

	state->is_called = false;
	if (wrong)
		checker_fail(run, &checker_drain, "at %llu ns: the core's own check: %s",
			     (unsigned long long)run->now_ns, wrong);
	if (!all && ++state->since_check < DRAIN_GPU_CHECK)
		return;
	state->since_check = 0;
	for (i = 0; i < run->known->device_count; i++) {
		wrong = gp_gpu_check(gp_sim_gpu(run->sim, i));
		if (wrong)
			checker_fail(run, &checker_drain, "at %llu ns: the model's own check of device %u: %s",
				     (unsigned long long)run->now_ns, i, wrong);
	}
}

/* Orders that are lost by chance may leave so many queues in quarantine that they fill the slots. Such a device owes
 * nobody an end, and it would not have been drawn had it been known. Nor can a client end elsewhere what waits for its
 * queue there: a collective needs all its members at once. */
static bool drain_is_owed(const struct checker_run *run, uint32_t client)
{
	struct gp_sim_queue_info info;
	uint32_t i, device;

	for (i = 0; i < gp_sim_queue_count(run->sim); i++) {
		gp_sim_queue(run->sim, i, &info);
		device = run->truth->queues[i].device;
		if (info.alive && info.client == client && run->known->devices[device].gates &&
		    !known_has_slot(run->known, device))
			return false;
	}
	return true;
}

static void drain_end(struct checker_run *run)
{
	struct gp_sim_queue_info info;
	const struct known_queue *known;
	bool is_rest = false; /* something is left that nobody is blamed for */
	uint32_t i;

	for (i = 0; i < gp_sim_queue_count(run->sim); i++) {
		gp_sim_queue(run->sim, i, &info);
		if (!info.alive)
			continue;
		known = known_find_tag(run->known, i);
		if (info.written != info.completed && !drain_is_owed(run, info.client)) {
			is_rest = true;
			continue;
		}
		if (info.written != info.completed) {
			checker_fail(
				run, &checker_drain,
				"at %llu ns: queue %u (client %u) still has %llu packets; its gate is %s, in the core %d (work: %d)",
				(unsigned long long)run->now_ns, i, info.client,
				(unsigned long long)(info.written - info.completed),
				run->truth->queues[i].closed ? "closed" : "open", known ? (int)known->gate : -1,
				known && known->has_work);
			return;
		}
		/* With counters at fetch it may presume for long that the last packet still runs. */
		if (known && known->has_work && !run->known->devices[known->device].attr.fetch_counters &&
		    !(known->written > info.written)) /* a hostile one claims more than there is */
			checker_fail(run, &checker_drain,
				     "at %llu ns: queue %u (client %u) is empty and the core still counts on its work",
				     (unsigned long long)run->now_ns, i, info.client);
	}
	if (!is_rest && !gp_sim_is_drained(run->sim))
		checker_fail(run, &checker_drain, "at %llu ns: every queue is empty, but a job never ended",
			     (unsigned long long)run->now_ns);
}

static void drain_event(struct checker_run *run, void *data, const struct check_event *event)
{
	struct drain_state *state = data;

	state->is_called |= event->type == CHECK_SETTLED;
	if (event->type == CHECK_END) {
		drain_invariants(run, state, true);
		drain_end(run);
	}
	if (event->type != CHECK_STEP)
		return;
	drain_invariants(run, state, false);
	if (run->now_ns != state->now_ns) {
		state->now_ns = run->now_ns;
		state->steps = 0;
	} else if (++state->steps > DRAIN_STEPS_AT_ONCE) {
		checker_fail(run, &checker_drain, "at %llu ns: %u steps and time does not move",
			     (unsigned long long)run->now_ns, DRAIN_STEPS_AT_ONCE);
	}
}

const struct checker checker_drain = {
	.name = "drain",
	.promise = "after the faults stop everything drains within the stated time",
	.state_size = sizeof(struct drain_state),
	.event = drain_event,
};
