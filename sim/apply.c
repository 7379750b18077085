/* SPDX-License-Identifier: MIT */
/*
 * Owns plans under way: which orders go into one transaction (by the device's unit, closes first), one transaction
 * after the other until the plan's patience is over, what each really took, and the answers. Each client answers for
 * itself; what one owes may hang here while the device has had other plans since.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include "sim/state.h"

/* Until an order is carried out its result is one of these. */
#define APPLY_WAITING   INT_MAX
#define APPLY_UNDER_WAY (INT_MAX - 1)
#define APPLY_IGNORED   (INT_MAX - 2) /* and nobody will say so */

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
	apply->transaction_count = 0;
	apply->hurried = false;
	apply->references = apply->issuing = true;
	for (i = 0; i < apply_order_count(apply); i++)
		apply->orders[i] = (struct sim_order){ .result = APPLY_WAITING };
	/* What an older plan opens is issued before anything of this one. */
	for (i = 0; i < sim->apply_count; i++) {
		if (i != index && sim->applies[i]->device == apply->device)
			gp_sim_apply_hurry(sim, i, sim->applies[i]->plan.seq);
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

static bool apply_obeys(const struct gp_sim *sim, uint32_t queue)
{
	const struct gp_sim_faults *faults = sim->config.faults;

	return !faults || !faults->obeys || faults->obeys(faults->context, sim->queues[queue].info.client, sim->now_ns);
}

/* Opens wait for closes that are awaited. */
static bool apply_holds_back(const struct sim_apply *apply, uint32_t place)
{
	uint32_t i;

	if (place < apply->plan.close_count || apply->hurried)
		return false;
	for (i = 0; i < apply->plan.close_count; i++) {
		if (apply->orders[i].result == APPLY_IGNORED && apply->plan.close[i].is_awaited)
			return true;
	}
	return false;
}

static void apply_answer(struct gp_sim *sim, uint32_t index, uint32_t first);

/* The next transaction: the first waiting order and all that join it. Orders for queues that are gone fail at once. */
static uint32_t apply_collect(struct gp_sim *sim, uint32_t index, uint64_t transaction, struct gp_gpu_change *changes)
{
	struct sim_apply *apply = sim->applies[index];
	uint32_t i, queue, first = SIM_NONE, count = 0;

	for (i = 0; i < apply_order_count(apply); i++) {
		struct sim_order *order = &apply->orders[i];

		if (order->result != APPLY_WAITING || apply_holds_back(apply, i))
			continue;
		order->answer = i;
		queue = gp_sim_find_queue(sim, apply_order(apply, i)->queue);
		if (queue == SIM_NONE || !sim->queues[queue].info.alive) {
			order->result = -ESRCH;
			apply_answer(sim, index, i);
			continue;
		}
		if (!apply_obeys(sim, queue)) {
			order->result = APPLY_IGNORED;
			continue;
		}
		if (first == SIM_NONE)
			first = i;
		if (!apply_joins(sim, apply, first, i))
			continue;
		order->result = APPLY_UNDER_WAY;
		order->transaction = transaction;
		order->start_ns = sim->now_ns;
		changes[count++] = (struct gp_gpu_change){ .queue = sim->queues[queue].info.gpu_queue,
							   .open = i >= apply->plan.close_count };
		if (i < apply->plan.close_count)
			sim->queues[queue].closing = true;
	}
	return count;
}

/* What is known since now is told to the core, unless the answer's fate is another. */
static void apply_answer(struct gp_sim *sim, uint32_t index, uint32_t first)
{
	struct sim_apply *apply = sim->applies[index];
	const struct gp_sim_faults *faults = sim->config.faults;
	struct gp_sim_ack_fate fate = { 0 };
	uint32_t i, queue = gp_sim_find_queue(sim, apply_order(apply, first)->queue);
	uint64_t time_ns;

	if (faults && faults->ack && queue != SIM_NONE)
		faults->ack(faults->context, apply->device, sim->queues[queue].info.client, sim->now_ns, &fate);
	if (fate.drop)
		return;
	apply->references += 1 + fate.copies;
	time_ns = sim->now_ns + sim->notice_ns + fate.delay_ns;
	for (i = 0; i <= fate.copies; i++)
		gp_sim_push(sim, time_ns + i * fate.copy_delay_ns, SIM_ACK, index, first);
}

/* The orders of one transaction have their results: without faults they are answered in one go, with them each client
 * answers for itself. */
static void apply_answer_transaction(struct gp_sim *sim, uint32_t index, uint64_t transaction)
{
	struct sim_apply *apply = sim->applies[index];
	uint32_t i, k;

	for (i = 0; i < apply_order_count(apply); i++) {
		if (apply->orders[i].transaction != transaction)
			continue;
		for (k = 0; k < i; k++) {
			if (apply->orders[k].transaction == transaction &&
			    (!sim->config.faults ||
			     apply_order(apply, k)->client.index == apply_order(apply, i)->client.index))
				break;
		}
		apply->orders[i].answer = k;
		if (k == i)
			apply_answer(sim, index, i);
	}
}

static void apply_set_results(struct sim_apply *apply, uint64_t transaction, int result)
{
	uint32_t i;

	for (i = 0; i < apply_order_count(apply); i++) {
		if (apply->orders[i].result == APPLY_UNDER_WAY && apply->orders[i].transaction == transaction)
			apply->orders[i].result = result;
	}
}

/* One transaction after the other; where patience is over, all that are left. */
void gp_sim_apply_issue(struct gp_sim *sim, uint32_t index)
{
	struct sim_apply *apply = sim->applies[index];
	const struct gp_sim_faults *faults = sim->config.faults;
	struct gp_gpu_change changes[2 * GP_PLAN_MAX];
	uint32_t i, count;
	uint64_t seq;
	int ret;

	if (apply->plan.announce)
		apply_announce(sim, apply);
	if (!apply->transaction_count && !apply->hurried && apply->plan.patience_ns && apply->issuing &&
	    apply->orders[0].result == APPLY_WAITING)
		gp_sim_push(sim, sim->now_ns + apply->plan.patience_ns, SIM_HURRY, index, apply->plan.seq);
	while (apply->issuing && (apply->hurried || !apply->transaction_count)) {
		seq = sim->transaction_seq + 1;
		count = apply_collect(sim, index, seq, changes);
		if (!count)
			break;
		if (faults && faults->transaction)
			faults->transaction(faults->context, apply->device, changes, count, sim->now_ns);
		sim->transaction_seq = seq;
		ret = gp_gpu_transact(sim->devices[apply->device].gpu, changes, count, seq, sim->now_ns);
		if (ret) {
			apply_set_results(apply, seq, ret);
			apply_answer_transaction(sim, index, seq);
		} else {
			apply->transaction_count++;
		}
	}
	for (i = 0; i < apply_order_count(apply); i++) {
		if (apply->orders[i].result == APPLY_WAITING || apply->orders[i].result == APPLY_UNDER_WAY)
			return;
	}
	apply->references -= apply->issuing;
	apply->issuing = false;
}

void gp_sim_apply_hurry(struct gp_sim *sim, uint32_t index, uint64_t seq)
{
	struct sim_apply *apply = sim->applies[index];

	if (!apply->references || apply->plan.seq != seq || apply->hurried)
		return;
	apply->hurried = true;
	gp_sim_apply_issue(sim, index);
}

void gp_sim_apply_given_up(struct gp_sim *sim)
{
	struct gp_given_up given;
	uint32_t i, k;

	while (gp_sched_given_up(sim->core, &given)) {
		for (i = 0; i < sim->apply_count; i++) {
			struct sim_apply *apply = sim->applies[i];

			for (k = 0; apply->issuing && apply->plan.seq == given.seq && k < apply_order_count(apply);
			     k++) {
				if (apply->orders[k].result == APPLY_WAITING &&
				    apply_order(apply, k)->queue.index == given.queue.index)
					apply->orders[k].result = -ECANCELED;
			}
		}
	}
}

/* The core plans with what transactions really take: an average that forgets, in integers. */
static void apply_learn(struct gp_sim *sim, struct sim_device *device, bool closes, bool opens, uint64_t length_ns)
{
	if (closes)
		device->close_ns = device->close_ns - device->close_ns / 8 + length_ns / 8;
	if (opens)
		device->open_ns = device->open_ns - device->open_ns / 8 + length_ns / 8;
	gp_sched_device_set_cost(sim->core, device->core_device, device->close_ns, device->open_ns);
}

/* What became of one order, as the driver's own per-queue status would say. */
static int apply_outcome(struct gp_sim *sim, uint32_t queue, bool open, const struct gp_gpu_event *event)
{
	struct sim_queue *q;
	struct gp_gpu_counters counters;

	if (queue == SIM_NONE || !sim->queues[queue].info.alive)
		return -ESRCH;
	q = &sim->queues[queue];
	if (gp_gpu_counters(sim->devices[q->info.device].gpu, q->info.gpu_queue, &counters))
		return -ESRCH;
	q->closing = false;
	q->ended_seq = event->value;
	q->info.closed = !counters.open;
	gp_sim_account_gate(sim, queue);
	if (counters.open == open)
		return 0;
	return event->error ? event->error : -EIO;
}

bool gp_sim_apply_transaction_end(struct gp_sim *sim, uint32_t device, const struct gp_gpu_event *event)
{
	struct sim_apply *apply = NULL;
	bool closes = false, opens = false;
	uint64_t start_ns = 0;
	uint32_t i, index;

	for (index = 0; index < sim->apply_count && !start_ns; index++) {
		apply = sim->applies[index];
		for (i = 0; apply->issuing && apply->device == device && i < apply_order_count(apply); i++) {
			struct sim_order *order = &apply->orders[i];

			if (order->result != APPLY_UNDER_WAY || order->transaction != event->value)
				continue;
			start_ns = order->start_ns + 1;
			closes |= i < apply->plan.close_count;
			opens |= i >= apply->plan.close_count;
			order->result = apply_outcome(sim, gp_sim_find_queue(sim, apply_order(apply, i)->queue),
						      i >= apply->plan.close_count, event);
		}
	}
	if (!start_ns || !event->value)
		return false;
	sim->transactions++;
	sim->transaction_ns += sim->now_ns - (start_ns - 1);
	if (!event->error)
		apply_learn(sim, &sim->devices[device], closes, opens, sim->now_ns - (start_ns - 1));
	apply->transaction_count--;
	apply_answer_transaction(sim, index - 1, event->value);
	gp_sim_apply_issue(sim, index - 1);
	return true;
}

/* Whatever was under way on a device that was reset has failed; the rest finds its queues gone. */
void gp_sim_apply_device_reset(struct gp_sim *sim, uint32_t device)
{
	struct sim_apply *apply;
	uint32_t i, k;

	for (i = 0; i < sim->apply_count; i++) {
		apply = sim->applies[i];
		if (!apply->issuing || apply->device != device || !apply->transaction_count)
			continue;
		apply->transaction_count = 0;
		for (k = 0; k < apply_order_count(apply); k++) {
			uint64_t transaction = apply->orders[k].transaction;

			if (apply->orders[k].result != APPLY_UNDER_WAY)
				continue;
			apply_set_results(apply, transaction, -EIO);
			apply_answer_transaction(sim, i, transaction);
		}
		gp_sim_apply_issue(sim, i);
	}
}

void gp_sim_apply_deliver(struct gp_sim *sim, uint32_t index, uint32_t answer)
{
	struct sim_apply *apply = sim->applies[index];
	uint32_t i;
	int ret;

	apply->references--;
	for (i = answer; i < apply_order_count(apply); i++) {
		const struct sim_order *order = &apply->orders[i];

		if (order->answer != answer || order->result > 0)
			continue;
		ret = gp_sched_applied(sim->core, apply_order(apply, i)->queue, apply->plan.seq, order->result,
				       gp_sim_core_now_ns(sim));
		if (sim->config.observer && sim->config.observer->ack)
			sim->config.observer->ack(sim->config.observer->context, apply_order(apply, i), apply->plan.seq,
						  order->result, i == answer, ret, sim->now_ns);
	}
	sim->core_dirty = true;
}

void gp_sim_apply_fini(struct gp_sim *sim)
{
	uint32_t i;

	for (i = 0; i < sim->apply_count; i++)
		free(sim->applies[i]);
	free(sim->applies);
}
