/* SPDX-License-Identifier: MIT */
/*
 * Owns plans under way: which orders go into one transaction (by the device's unit, closes first), one transaction
 * after the other, what each really took, and the acknowledgement. The core gives a device one plan at a time, but a
 * plan it has given up on may still hang here while the next one is carried out.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include "sim/state.h"

/* Until an order is carried out its result is one of these. */
#define APPLY_WAITING   INT_MAX
#define APPLY_UNDER_WAY (INT_MAX - 1)

static const struct gp_order *apply_order(const struct sim_apply *apply, uint32_t place)
{
	return place < apply->plan.close_count ? &apply->plan.close[place] :
						 &apply->plan.open[place - apply->plan.close_count];
}

static uint32_t apply_order_count(const struct sim_apply *apply)
{
	return apply->plan.close_count + apply->plan.open_count;
}

static uint32_t apply_take_free(struct gp_sim *sim)
{
	struct sim_apply **applies, *added;
	uint32_t i;

	for (i = 0; i < sim->apply_count; i++) {
		if (!sim->applies[i]->references)
			return i;
	}
	/* A table of pointers is what is meant: a plan under way must not move.
	 * NOLINTNEXTLINE(bugprone-sizeof-expression) */
	applies = realloc(sim->applies, (size_t)(sim->apply_count + 1) * sizeof(*applies));
	if (!applies)
		return SIM_NONE;
	sim->applies = applies;
	added = calloc(1, sizeof(*added));
	if (!added)
		return SIM_NONE;
	applies[i] = added;
	sim->apply_count++;
	return i;
}

static uint32_t apply_device_of(const struct gp_sim *sim, uint32_t core_device)
{
	uint32_t i = 0;

	while (sim->devices[i].core_device != core_device)
		i++;
	return i;
}

void gp_sim_apply_begin(struct gp_sim *sim, const struct gp_plan *plan)
{
	uint32_t i, index = apply_take_free(sim);
	struct sim_apply *apply;

	if (index == SIM_NONE) {
		sim->out_of_memory = true;
		return;
	}
	apply = sim->applies[index];
	apply->plan = *plan;
	apply->device = apply_device_of(sim, plan->device);
	apply->transaction_seq = 0;
	apply->abandoned = false;
	apply->references = 1;
	for (i = 0; i < apply_order_count(apply); i++)
		apply->results[i] = APPLY_WAITING;
	/* The core gave up on the older one; an order of it carried out now would undo one of this plan's. */
	for (i = 0; i < sim->apply_count; i++) {
		if (i != index && sim->applies[i]->references && sim->applies[i]->device == apply->device)
			sim->applies[i]->abandoned = true;
	}
	gp_sim_push(sim, sim->now_ns + sim->decide_ns, SIM_ISSUE, index, 0);
}

static void apply_announce(struct gp_sim *sim, struct sim_apply *apply)
{
	uint32_t index = gp_sim_find_queue(sim, apply->plan.bring_in);
	const struct sim_queue *queue;

	apply->plan.announce = false;
	if (index == SIM_NONE || !sim->queues[index].info.alive)
		return;
	queue = &sim->queues[index];
	gp_gpu_announce(sim->devices[queue->info.device].gpu, queue->info.gpu_queue,
			queue->hold_until_ns > sim->now_ns ? queue->hold_until_ns : sim->now_ns, sim->now_ns);
}

/* Does this order belong into one transaction with the first one? */
static bool apply_joins(const struct gp_sim *sim, const struct sim_apply *apply, uint32_t first, uint32_t place)
{
	const struct gp_order *a = apply_order(apply, first), *b = apply_order(apply, place);

	switch (sim->config.unit) {
	case GP_UNIT_DEVICE: return true;
	case GP_UNIT_PROCESS:
		return a->client.index == b->client.index && a->client.generation == b->client.generation &&
		       (first < apply->plan.close_count) == (place < apply->plan.close_count);
	case GP_UNIT_QUEUE: return first == place;
	}
	return false;
}

/* The next transaction: the first waiting order and all that join it. Orders for queues that are gone fail at once. */
static uint32_t apply_collect(struct gp_sim *sim, struct sim_apply *apply, struct gp_gpu_change *changes)
{
	uint32_t i, queue, first = SIM_NONE, count = 0;

	apply->closes = apply->opens = false;
	for (i = 0; i < apply_order_count(apply); i++) {
		if (apply->results[i] != APPLY_WAITING)
			continue;
		if (apply->abandoned) {
			apply->results[i] = -ECANCELED;
			continue;
		}
		queue = gp_sim_find_queue(sim, apply_order(apply, i)->queue);
		if (queue == SIM_NONE || !sim->queues[queue].info.alive) {
			apply->results[i] = -ESRCH;
			continue;
		}
		if (first == SIM_NONE)
			first = i;
		if (!apply_joins(sim, apply, first, i))
			continue;
		apply->results[i] = APPLY_UNDER_WAY;
		changes[count++] = (struct gp_gpu_change){ .queue = sim->queues[queue].info.gpu_queue,
							   .open = i >= apply->plan.close_count };
		if (i < apply->plan.close_count)
			apply->closes = sim->queues[queue].closing = true;
		else
			apply->opens = true;
	}
	return count;
}

static void apply_acknowledge(struct gp_sim *sim, uint32_t index)
{
	struct sim_apply *apply = sim->applies[index];
	const struct gp_sim_faults *faults = sim->config.faults;
	struct gp_sim_ack_fate fate = { 0 };
	uint64_t time_ns;
	uint32_t i;

	if (faults && faults->ack)
		faults->ack(faults->context, apply->device, apply->plan.seq, sim->now_ns, &fate);
	apply->references = 0;
	if (fate.drop)
		return;
	apply->references = 1 + fate.copies;
	time_ns = sim->now_ns + sim->notice_ns + fate.delay_ns;
	for (i = 0; i <= fate.copies; i++)
		gp_sim_push(sim, time_ns + i * fate.copy_delay_ns, SIM_ACK, index, 0);
}

static void apply_set_results(struct sim_apply *apply, int from, int to)
{
	uint32_t i;

	for (i = 0; i < apply_order_count(apply); i++) {
		if (apply->results[i] == from)
			apply->results[i] = to;
	}
}

void gp_sim_apply_issue(struct gp_sim *sim, uint32_t index)
{
	struct sim_apply *apply = sim->applies[index];
	const struct gp_sim_faults *faults = sim->config.faults;
	struct gp_gpu_change changes[2 * GP_PLAN_MAX];
	uint32_t count;
	int ret;

	if (apply->plan.announce)
		apply_announce(sim, apply);
	for (;;) {
		count = apply_collect(sim, apply, changes);
		if (!count)
			break;
		if (faults && faults->transaction)
			faults->transaction(faults->context, apply->device, changes, count, sim->now_ns);
		apply->transaction_seq = ++sim->transaction_seq;
		apply->transaction_start_ns = sim->now_ns;
		ret = gp_gpu_transact(sim->devices[apply->device].gpu, changes, count, apply->transaction_seq,
				      sim->now_ns);
		if (!ret)
			return;
		apply_set_results(apply, APPLY_UNDER_WAY, ret);
	}
	apply->transaction_seq = 0;
	apply_acknowledge(sim, index);
}

/* The core plans with what transactions really take: an average that forgets, in integers. */
static void apply_learn(struct gp_sim *sim, const struct sim_apply *apply, uint64_t length_ns)
{
	struct sim_device *device = &sim->devices[apply->device];

	if (apply->closes)
		device->close_ns = device->close_ns - device->close_ns / 8 + length_ns / 8;
	if (apply->opens)
		device->open_ns = device->open_ns - device->open_ns / 8 + length_ns / 8;
	gp_sched_device_set_cost(sim->core, device->core_device, device->close_ns, device->open_ns);
}

/* What became of one order, as the driver's own per-queue status would say. */
static int apply_outcome(struct gp_sim *sim, uint32_t queue, bool open, int error)
{
	struct sim_queue *q;
	struct gp_gpu_counters counters;

	if (queue == SIM_NONE || !sim->queues[queue].info.alive)
		return -ESRCH;
	q = &sim->queues[queue];
	if (gp_gpu_counters(sim->devices[q->info.device].gpu, q->info.gpu_queue, &counters))
		return -ESRCH;
	q->closing = false;
	q->info.closed = !counters.open;
	gp_sim_account_gate(sim, queue);
	if (counters.open == open)
		return 0;
	return error ? error : -EIO;
}

bool gp_sim_apply_transaction_end(struct gp_sim *sim, uint32_t device, const struct gp_gpu_event *event)
{
	struct sim_apply *apply = NULL;
	uint32_t i, index;

	for (index = 0; index < sim->apply_count; index++) {
		apply = sim->applies[index];
		if (apply->references && apply->device == device && apply->transaction_seq == event->value)
			break;
	}
	if (index == sim->apply_count || !event->value)
		return false;
	sim->transactions++;
	sim->transaction_ns += sim->now_ns - apply->transaction_start_ns;
	for (i = 0; i < apply_order_count(apply); i++) {
		if (apply->results[i] == APPLY_UNDER_WAY)
			apply->results[i] = apply_outcome(sim, gp_sim_find_queue(sim, apply_order(apply, i)->queue),
							  i >= apply->plan.close_count, event->error);
	}
	if (!event->error)
		apply_learn(sim, apply, sim->now_ns - apply->transaction_start_ns);
	gp_sim_apply_issue(sim, index);
	return true;
}

/* Whatever was under way on a device that was reset has failed; the rest finds its queues gone. */
void gp_sim_apply_device_reset(struct gp_sim *sim, uint32_t device)
{
	struct sim_apply *apply;
	uint32_t i;

	for (i = 0; i < sim->apply_count; i++) {
		apply = sim->applies[i];
		if (!apply->references || apply->device != device || !apply->transaction_seq)
			continue;
		apply_set_results(apply, APPLY_UNDER_WAY, -EIO);
		gp_sim_apply_issue(sim, i);
	}
}

void gp_sim_apply_deliver(struct gp_sim *sim, uint32_t index)
{
	struct sim_apply *apply = sim->applies[index];
	int ret;

	apply->references--;
	ret = gp_sched_applied(sim->core, apply->plan.device, apply->plan.seq, apply->results, apply_order_count(apply),
			       gp_sim_core_now_ns(sim));
	sim->core_dirty = true;
	if (sim->config.observer && sim->config.observer->ack)
		sim->config.observer->ack(sim->config.observer->context, apply->device, apply->plan.seq, apply->results,
					  apply_order_count(apply), ret, sim->now_ns);
}

void gp_sim_apply_fini(struct gp_sim *sim)
{
	uint32_t i;

	for (i = 0; i < sim->apply_count; i++)
		free(sim->applies[i]);
	free(sim->applies);
}
