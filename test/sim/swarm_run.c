/* SPDX-License-Identifier: MIT */
/*
 * Owns one run of one world, in two phases: first faults and arrivals, where only safety is asked for; then both stop,
 * and what is under way must drain within the stated time: half a second, a starvation bound for each client (under drf
 * more, see run_bounds()), and twenty times what the outstanding requests take by themselves (under wfq more, see
 * run_claimed_ns()).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "test/sim/checker_known.h"
#include "test/sim/swarm.h"

#define RUN_DRAIN_NS     500000000ull
#define RUN_DRAIN_FACTOR 20u
#define RUN_LEASE_NS     20000000ull  /* a tenth of the real one: runs are short */
#define RUN_SETTLE_NS    100000000ull /* after the last job, until the core knows */
#define RUN_STEPS_MAX    4000000u     /* no world comes near: one that does hangs */

struct run_faults {
	const struct swarm_world *world;
	struct gp_rng rng;
	bool over;
};

/* How far to go: after a failure too (planted bugs: the right checker may not be the first), or only until all is
 * drained. */
struct run_goal {
	uint64_t until_ns;
	bool past_failure, drained;
};

static void run_ack(void *context, uint32_t device, uint32_t client, uint64_t now_ns, struct gp_sim_ack_fate *fate)
{
	struct run_faults *faults = context;
	const struct swarm_ack_odds *odds = &faults->world->ack;

	(void)device, (void)now_ns;
	if (!faults->over && client == faults->world->tardy_client)
		fate->delay_ns = faults->world->config.ack_timeout_ns / 8 * 7;
	if (faults->over || !odds->delay_ns)
		return;
	fate->drop = gp_rng_below(&faults->rng, 1000) < odds->drop;
	if (gp_rng_below(&faults->rng, 1000) < odds->late)
		fate->delay_ns = gp_rng_below(&faults->rng, odds->delay_ns);
	if (gp_rng_below(&faults->rng, 1000) < odds->copy) {
		fate->copies = 1 + (uint32_t)gp_rng_below(&faults->rng, 3);
		fate->copy_delay_ns = gp_rng_below(&faults->rng, odds->delay_ns);
	}
}

static bool run_obeys(void *context, uint32_t client, uint64_t now_ns)
{
	const struct run_faults *faults = context;

	return faults->over || client != faults->world->mute_client || now_ns < faults->world->mute_ns;
}

/* The simulator's default, see sim/engine.h; what it divides by only makes it shorter. */
static uint64_t run_host_ns(uint64_t ns)
{
	return ns == GP_SIM_DEFAULT_NS ? 5000 : ns;
}

/* What never ends is as late as the core waits. */
static uint64_t run_late_ns(const struct swarm_world *world)
{
	bool is_late = world->tardy_client != UINT32_MAX;
	uint32_t i;

	for (i = 0; i < world->fault_count; i++)
		is_late |= world->faults[i].type == GP_SIM_FAULT_CLOSE_HANGS;
	if (is_late && world->ack.delay_ns < world->config.ack_timeout_ns)
		return world->config.ack_timeout_ns;
	return world->ack.delay_ns;
}

/*
 * Starvation bounds that a client may need for so much work. Under drf memory counts as a share that no waiting makes
 * smaller: beside somebody who claims work without end, one that has much of it is never next. Then it has what ageing
 * promises and nothing else: an aged turn's worth in twice the bound.
 */
static uint64_t run_bounds(const struct swarm_world *world, uint64_t work_ns)
{
	bool claims = false;
	uint32_t i;

	for (i = 0; i < world->workload.client_count; i++)
		claims |= world->workload.clients[i].claims;
	if (!claims || strcmp(world->config.policy, "drf"))
		return 1;
	return 1 + 2 * (work_ns / world->config.param.age_turn_ns + 1);
}

static uint64_t run_left(const struct gp_sim *sim, uint32_t index)
{
	struct gp_sim_client_info info;

	gp_sim_client(sim, index, &info);
	return info.arrived - info.completed - info.lost;
}

/* The clients of one user share one weight on a device. */
static bool run_shares_weight(const struct gp_work_client *a, const struct gp_work_client *b)
{
	return a == b || (a->user && a->user == b->user && a->devices & b->devices);
}

/*
 * What clients that claim work without end get under wfq while this client does its work. wfq gives time by weight, and
 * beside them a client of small weight gets far less than a twentieth of the device. It does its work and two turns
 * more: it may have had one too early, and it gets its last one when all of that is owed to it. A gang needs its turn
 * on all its devices. Without claimers nothing is added: all others have an end.
 */
static uint64_t run_claimed_ns(const struct swarm_world *world, const struct gp_sim *sim, uint32_t index,
			       uint64_t work_ns)
{
	const struct gp_work_client *clients = world->workload.clients, *own = &clients[index];
	uint64_t weight = own->weight ? own->weight : GP_WEIGHT_DEFAULT, others = 0, own_users = 0;
	uint32_t i, k, count = world->workload.client_count;

	if (!work_ns || strcmp(world->config.policy, "wfq"))
		return 0;
	for (i = 0; i < count; i++) /* as many as there can be */
		own_users += run_shares_weight(&clients[i], own) && (clients[i].claims || run_left(sim, i));
	for (i = 0; i < count; i++) {
		uint64_t users = 0; /* as few as there can be */

		if (!clients[i].claims || !(own->gang || clients[i].devices & own->devices))
			continue;
		for (k = 0; k < count; k++)
			users += run_shares_weight(&clients[k], &clients[i]) && (clients[k].claims || k == index);
		others += GP_WEIGHT_DEFAULT * own_users / users + 1; /* theirs is the default one */
	}
	return (work_ns + 2 * world->config.param.turn_ns) * others / weight;
}

static uint64_t run_drain_ns(const struct swarm_world *world, const struct gp_sim *sim)
{
	uint64_t total_ns = RUN_DRAIN_NS, bound_ns = 0, own_ns, work_ns;
	uint32_t i;

	for (i = 0; i < world->config.device_count; i++) {
		own_ns = gp_sched_starvation_bound_ns(gp_sim_core(sim), i);
		if (own_ns > bound_ns)
			bound_ns = own_ns;
	}
	for (i = 0; i < world->workload.client_count; i++) {
		work_ns = run_left(sim, i) * swarm_world_job_ns(world, i);
		total_ns += run_bounds(world, work_ns) * bound_ns + RUN_DRAIN_FACTOR * work_ns +
			    run_claimed_ns(world, sim, i, work_ns);
	}
	return total_ns;
}

/*
 * The agent's lease: a closed gate with work that nobody renews opens by itself. The core renews what it knows to be
 * closed, so the lease matters where it takes a closed gate for an open one: a queue in quarantine whose last order was
 * lost with its transaction.
 */
static bool run_lease(struct gp_sim *sim, const struct checker_run *run)
{
	struct gp_sim_fault fault = { .type = GP_SIM_FAULT_GATE_LOST, .time_ns = gp_sim_now_ns(sim) };
	const struct known_queue *known;
	struct gp_sim_queue_info info;
	bool any = false;

	for (fault.queue = 0; fault.queue < gp_sim_queue_count(sim); fault.queue++) {
		gp_sim_queue(sim, fault.queue, &info);
		known = known_find_tag(run->known, fault.queue);
		if (info.alive && info.closed && known && known->gate == GP_GATE_QUARANTINED)
			any |= !gp_sim_add_fault(sim, &fault);
	}
	return any;
}

/* false: a checker has seen enough. When nothing else will happen, a lease still runs out. */
static bool run_until(struct gp_sim *sim, struct checker_run *run, const struct run_goal *goal, uint64_t *steps)
{
	uint64_t lease_ns = gp_sim_now_ns(sim) + RUN_LEASE_NS;

	while (!(goal->drained && gp_sim_is_drained(sim))) {
		if (gp_sim_next_ns(sim) > goal->until_ns && (gp_sim_is_drained(sim) || !run_lease(sim, run)))
			break;
		if (!gp_sim_step(sim))
			break;
		swarm_seam_tell(CHECK_STEP);
		if (gp_sim_now_ns(sim) >= lease_ns) {
			run_lease(sim, run);
			lease_ns = gp_sim_now_ns(sim) + RUN_LEASE_NS;
		}
		if (++*steps > RUN_STEPS_MAX) {
			checker_fail(run, &checker_drain, "at %llu ns: %u steps and no end",
				     (unsigned long long)gp_sim_now_ns(sim), RUN_STEPS_MAX);
			return false;
		}
		if (run->failed_count && !goal->past_failure)
			return false;
	}
	return true;
}

static void run_phases(const struct swarm_world *world, struct gp_sim *sim, struct checker_run *run,
		       struct run_faults *faults, struct swarm_outcome *outcome)
{
	struct run_goal goal = { .until_ns = world->calm_ns, .past_failure = outcome->past_failure };
	uint32_t i;

	for (i = 0; i < world->fault_count; i++) {
		if (gp_sim_add_fault(sim, &world->faults[i])) {
			snprintf(outcome->error, sizeof(outcome->error), "fault %u was refused", i);
			return;
		}
	}
	if (!run_until(sim, run, &goal, &outcome->steps))
		return;
	faults->over = true;
	gp_sim_stop_arrivals(sim);
	swarm_seam_tell(CHECK_CALM);
	goal.until_ns = gp_sim_now_ns(sim) + run_drain_ns(world, sim);
	goal.drained = true;
	if (!run_until(sim, run, &goal, &outcome->steps))
		return;
	/* Drained or not, it is looked at when the last samples have come. */
	goal.until_ns = gp_sim_now_ns(sim) + RUN_SETTLE_NS;
	goal.drained = false;
	if (run_until(sim, run, &goal, &outcome->steps))
		swarm_seam_tell(CHECK_END);
}

void swarm_run(const struct swarm_order *order, const struct swarm_world *world, struct swarm_outcome *ret_outcome)
{
	struct run_faults faults = { .world = world };
	struct gp_sim_faults table = { .context = &faults, .ack = run_ack, .obeys = run_obeys };
	struct gp_sim_config config = world->config;
	struct checker_run run;
	struct gp_error error;
	struct gp_sim *sim;

	*ret_outcome = (struct swarm_outcome){ .past_failure = order->plant != NULL };
	gp_rng_init(&faults.rng, order->seed ^ 0x6661756c74u);
	config.faults = &table;
	if (checker_run_init(&run)) {
		snprintf(ret_outcome->error, sizeof(ret_outcome->error), "out of memory");
		return;
	}
	run.desc = &world->desc;
	run.latency_ns = run_host_ns(config.notice_ns) + run_host_ns(config.decide_ns);
	run.mute_client = world->mute_client;
	run.late_ns = run_late_ns(world);
	run.log = order->log ? swarm_log_event : NULL;
	if (order->plant && order->plant->world)
		order->plant->world((struct gp_workload *)config.workload);
	swarm_seam_begin(&run, order->plant);
	if (gp_sim_create(&config, &sim, &error)) {
		snprintf(ret_outcome->error, sizeof(ret_outcome->error), "%.*s", (int)sizeof(ret_outcome->error) - 1,
			 error.text);
	} else {
		swarm_seam_attach(sim);
		run_phases(world, sim, &run, &faults, ret_outcome);
		ret_outcome->end_ns = gp_sim_now_ns(sim);
		if (order->log)
			swarm_log_rest(run.known);
		memcpy(ret_outcome->failed, run.failed, sizeof(run.failed));
		memcpy(ret_outcome->text, run.text, sizeof(run.text));
		ret_outcome->failed_count = run.failed_count;
		swarm_seam_end();
		gp_sim_destroy(sim);
	}
	swarm_seam_end();
	checker_run_fini(&run);
}
