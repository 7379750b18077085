/* SPDX-License-Identifier: MIT */
/*
 * Guaranteed shares: while a client has work it is never farther behind its share of a device than a few quanta, and it
 * is claimed to be behind only when it is. Clients that are open with work share the device evenly; one that switches
 * by itself runs none that takes turns beside one that takes none. Gates are the device's own, work is what really is
 * there, and who takes turns is derived from what the core was told. Time in which
 * answers are waited for, or in which the device has no slot, is nobody's fault; a fault, and each change of who is
 * there, starts the count anew.
 */
#include <string.h>
#include "test/sim/checker.h"
#include "test/sim/checker_known.h"
#include "test/sim/checker_truth.h"

#define FLOOR_CLIENT_MAX 64u
#define FLOOR_COSTS \
	8u /* a quantum is so many times a close and an open, or an aged turn: as sched.h's users are told */
#define FLOOR_MORE   50  /* and so much of a share, and of each quantum an eighth, may be more in the core's count */
#define FLOOR_QUANTA 2u  /* for each share on the device: it may be the last of those that are behind */
#define FLOOR_DEBTS  64u /* quanta that it may be owed at most */
#define FLOOR_CREDIT 4   /* quanta that it had beyond its share a moment ago are held against it */

struct floor_own {
	int64_t debt; /* at least, thousandths of ns */
	int64_t most; /* that the core may have counted: excused time, and what changes of its gate cost, are in it */
};

struct floor_state {
	uint64_t mark_ns, offset_ns, disturbed_ns;
	struct floor_own own[FLOOR_CLIENT_MAX][KNOWN_DEVICE_MAX];
	uint64_t any_calls[KNOWN_DEVICE_MAX]; /* when `run` had counted so many calls of the core any[] was found */
	bool any[KNOWN_DEVICE_MAX];           /* a queue there has a guaranteed share */
	uint64_t none_ns[KNOWN_DEVICE_MAX]; /* every client there is as floor_none() leaves it for this quantum; 0: not
					     */
};

static uint64_t floor_quantum_ns(const struct known_device *device)
{
	uint64_t cost_ns = FLOOR_COSTS * (device->attr.close_ns + device->attr.open_ns);

	return cost_ns > device->param.age_turn_ns ? cost_ns : device->param.age_turn_ns;
}

/* How far it was behind before is not known: it may have all the credit there is, or, after a fault, all the debt. */
static void floor_forget(struct floor_own *own, uint64_t quantum_ns, bool is_fault)
{
	own->debt = -(int64_t)(FLOOR_CREDIT * 1000 * quantum_ns);
	if (is_fault)
		own->most = (int64_t)(FLOOR_DEBTS * 1000 * quantum_ns);
}

static void floor_reset(const struct checker_run *run, struct floor_state *state, bool is_fault)
{
	uint32_t i, k;

	memset(state->none_ns, 0, sizeof(state->none_ns));
	for (i = 0; i < FLOOR_CLIENT_MAX; i++)
		for (k = 0; k < run->known->device_count; k++)
			floor_forget(&state->own[i][k], floor_quantum_ns(&run->known->devices[k]), is_fault);
}

/* What one client has on one device. */
struct floor_look {
	uint32_t permille, shares;           /* shares: of all clients there */
	bool has_work, is_known, is_excused; /* has_work: really; is_known: as far as the core knows */
};

/* Who is open with work on a device. */
struct floor_open {
	uint32_t lowers, uppers; /* clients, by whether they take turns */
	uint32_t known;          /* all that the core has been told have work, open or not */
	bool is_lower[FLOOR_CLIENT_MAX], is_upper[FLOOR_CLIENT_MAX], is_known[FLOOR_CLIENT_MAX];
};

/* The queue's gate is open and there is something behind it. */
static bool floor_runs(const struct checker_run *run, const struct known_queue *q)
{
	bool closed = q->attr.tag < TRUTH_QUEUE_MAX && run->truth->queues[q->attr.tag].closed;
	struct gp_sim_queue_info info;

	if (q->attr.kind != GP_KIND_COMPUTE || !q->has_work || closed)
		return false;
	gp_sim_queue(run->sim, (uint32_t)q->attr.tag, &info);
	return info.written != info.completed;
}

static struct floor_open floor_look_open(const struct checker_run *run, uint32_t device)
{
	struct floor_open open = { 0 };
	uint32_t i;

	for (i = 0; i < run->known->queue_end; i++) {
		const struct known_queue *q = &run->known->queues[i];

		if (!q->used || q->device != device || q->client.index >= FLOOR_CLIENT_MAX)
			continue;
		open.is_known[q->client.index] |= q->has_work;
		if (!floor_runs(run, q))
			continue;
		open.is_upper[q->client.index] |= !q->is_batch;
		open.is_lower[q->client.index] |= q->is_batch;
	}
	for (i = 0; i < FLOOR_CLIENT_MAX; i++) {
		open.known += open.is_known[i];
		open.uppers += open.is_upper[i];
		open.lowers += open.is_lower[i] && !open.is_upper[i];
	}
	return open;
}

/* Thousandths of the device that the client has. */
static uint32_t floor_part(const struct floor_open *open, uint32_t client, bool switches)
{
	if (!open->is_upper[client] && !open->is_lower[client])
		return 0;
	if (!switches)
		return 1000 / (open->uppers + open->lowers);
	return open->is_upper[client] ? 1000 / open->uppers : open->uppers ? 0 : 1000 / open->lowers;
}

/* Does any queue on the device have a guaranteed share? */
static bool floor_any(const struct checker_run *run, struct floor_state *state, uint32_t device)
{
	uint32_t i;

	if (state->any_calls[device] == run->calls)
		return state->any[device];
	state->any_calls[device] = run->calls;
	for (i = 0; i < run->known->queue_end; i++)
		if (run->known->queues[i].used && run->known->queues[i].device == device &&
		    run->known->queues[i].attr.floor_permille)
			return state->any[device] = true;
	return state->any[device] = false;
}

static void floor_look(const struct checker_run *run, const struct known_queue *q, struct floor_look *look)
{
	struct gp_sim_queue_info info;

	if (!q->attr.gang && q->attr.floor_permille > look->permille)
		look->permille = q->attr.floor_permille;
	look->is_excused |= q->gate == GP_GATE_QUARANTINED || q->gate == GP_GATE_UNKNOWN || known_moves(q) ||
			    q->vague || q->attr.gang;
	look->is_known |= q->has_work;
	if (q->attr.kind != GP_KIND_COMPUTE || !q->has_work)
		return;
	gp_sim_queue(run->sim, (uint32_t)q->attr.tag, &info);
	look->has_work |= info.written != info.completed;
}

/* Of every client, in one walk over the queues. */
static void floor_look_all(const struct checker_run *run, uint32_t device, bool is_excused, struct floor_look *looks)
{
	uint32_t i, shares = 0;

	for (i = 0; i < FLOOR_CLIENT_MAX; i++)
		looks[i] = (struct floor_look){ .is_excused = is_excused };
	for (i = 0; i < run->known->queue_end; i++) {
		const struct known_queue *q = &run->known->queues[i];

		if (!q->used || q->device != device)
			continue;
		shares += q->attr.floor_permille > 0;
		if (q->client.index < FLOOR_CLIENT_MAX)
			floor_look(run, q, &looks[q->client.index]);
	}
	for (i = 0; i < FLOOR_CLIENT_MAX; i++)
		looks[i].shares = shares;
}

static int64_t floor_bound(const struct checker_run *run, const struct floor_look *look, uint32_t device)
{
	const struct known_device *d = &run->known->devices[device];
	uint64_t ns = (2 + FLOOR_QUANTA * look->shares) * floor_quantum_ns(d) + 2 * d->param.age_turn_ns +
		      d->param.min_open_ns + 16 * run->latency_ns;

	return (int64_t)(ns * 1000);
}

/* Without a share on the device no client is behind. */
static void floor_none(struct floor_state *state, uint32_t device, uint64_t quantum_ns)
{
	uint32_t client;

	if (state->none_ns[device] == quantum_ns)
		return;
	state->none_ns[device] = quantum_ns;
	for (client = 0; client < FLOOR_CLIENT_MAX; client++) {
		state->own[client][device].most = 0;
		floor_forget(&state->own[client][device], quantum_ns, false);
	}
}

static void floor_step(struct checker_run *run, struct floor_state *state, uint64_t elapsed_ns)
{
	struct floor_look looks[FLOOR_CLIENT_MAX];
	uint32_t client, device;

	known_refresh(run->known);
	for (device = 0; device < run->known->device_count; device++) {
		const struct known_device *d = &run->known->devices[device];
		int64_t credit = (int64_t)(FLOOR_CREDIT * 1000 * floor_quantum_ns(d));
		struct floor_open open;
		bool is_excused;

		if (!d->gates || d->stopped)
			continue;
		if (!floor_any(run, state, device)) {
			floor_none(state, device, floor_quantum_ns(d));
			continue;
		}
		open = floor_look_open(run, device);
		is_excused = known_waits(run->known, device) || !known_has_slot(run->known, device);
		state->none_ns[device] = 0;
		floor_look_all(run, device, is_excused, looks);
		for (client = 0; client < FLOOR_CLIENT_MAX; client++) {
			struct floor_own *own = &state->own[client][device];
			struct floor_look look = looks[client];
			int64_t owed, had;

			owed = (int64_t)(elapsed_ns * look.permille);
			had = look.is_excused || !look.has_work ?
				      0 :
				      (int64_t)(elapsed_ns * floor_part(&open, client, d->attr.switch_ns));
			if (look.is_known)
				own->most += owed + owed / FLOOR_MORE + 1 - (had && open.known ? had / open.known : 0);
			own->most = !look.permille ? 0 : own->most < -credit ? -credit : own->most;
			if (!look.permille || !look.has_work)
				floor_forget(own, floor_quantum_ns(d), false);
			if (!look.permille || !look.has_work || look.is_excused)
				continue;
			own->debt += owed - had;
			own->debt = own->debt < -credit ? -credit : own->debt;
			if (own->debt > floor_bound(run, &look, device))
				checker_fail(
					run, &checker_floor,
					"at %llu ns: client %u has work and a share of %u thousandths of device %u, and is %lld us behind",
					(unsigned long long)run->now_ns, client, look.permille, device,
					(long long)(own->debt / 1000000));
		}
	}
}

/* The claim names one queue of the client; the share may be that of another one there. Gangs have none. */
static bool floor_is_promised(const struct known *known, const struct known_queue *queue)
{
	uint32_t i;

	for (i = 0; i < known->queue_end; i++) {
		const struct known_queue *q = &known->queues[i];

		if (q->used && q->device == queue->device && q->client.index == queue->client.index &&
		    q->attr.floor_permille && !q->attr.gang)
			return true;
	}
	return false;
}

/* Of the time since the last step, in which the simulator had nothing to do: it is counted at the next one only. */
static int64_t floor_pending(const struct checker_run *run, const struct floor_state *state,
			     const struct known_queue *q)
{
	struct floor_look looks[FLOOR_CLIENT_MAX], look;
	int64_t owed;

	floor_look_all(run, q->device, false, looks);
	look = looks[q->client.index];
	owed = (int64_t)((run->now_ns - state->mark_ns) * look.permille);
	return look.is_known ? owed + owed / FLOOR_MORE : 0;
}

/* Behind is who is owed a quantum by the core's count, which cannot be more than `most` and what is not yet in it. */
static void floor_claim(struct checker_run *run, struct floor_state *state, const struct gp_trace_event *claim)
{
	const struct known_queue *q = known_find(run->known, claim->queue);
	struct floor_own *own;
	uint64_t quantum_ns;
	int64_t most;

	if (!q || q->client.index >= FLOOR_CLIENT_MAX)
		return;
	own = &state->own[q->client.index][q->device];
	state->none_ns[q->device] = 0;
	if (!claim->value) {
		own->most += (int64_t)(run->known->devices[q->device].attr.close_ns * 1000);
		return;
	}
	quantum_ns = floor_quantum_ns(&run->known->devices[q->device]);
	most = own->most + floor_pending(run, state, q);
	if (!floor_is_promised(run->known, q))
		checker_fail(run, &checker_floor, "at %llu ns: client %u is claimed to be behind a share it has not",
			     (unsigned long long)run->now_ns, q->client.index);
	else if (q->attr.floor_permille && !run->known->devices[q->device].attr.fetch_counters &&
		 most < (int64_t)(quantum_ns * 1000 / 8))
		checker_fail(run, &checker_floor,
			     "at %llu ns: client %u is claimed to be behind its share, and is not (%lld us)",
			     (unsigned long long)run->now_ns, q->client.index, (long long)(most / 1000000));
}

static void floor_event(struct checker_run *run, void *data, const struct check_event *event)
{
	struct floor_state *state = data;
	uint64_t latest_ns = 0, elapsed_ns;
	uint32_t i;

	/* The core's clock jumped: what it claims in that same call counts the jump as time that passed. */
	if ((event->type == CHECK_SETTLED || event->type == CHECK_TRACE) &&
	    event->core_ns - event->now_ns != state->offset_ns) {
		state->offset_ns = event->core_ns - event->now_ns;
		floor_reset(run, state, true);
	}
	if (event->type == CHECK_CALM || event->type == CHECK_ATTR || event->type == CHECK_QUEUE_ADD)
		floor_reset(run, state, event->type == CHECK_CALM);
	if (event->type == CHECK_TRACE && event->trace->type == GP_TRACE_FLOOR)
		floor_claim(run, state, event->trace);
	if (event->type != CHECK_STEP || !run->core)
		return;
	for (i = 0; i < run->known->device_count; i++)
		if (run->known->devices[i].disturbed_ns > latest_ns)
			latest_ns = run->known->devices[i].disturbed_ns;
	if (latest_ns != state->disturbed_ns) {
		state->disturbed_ns = latest_ns;
		floor_reset(run, state, true);
	}
	elapsed_ns = run->now_ns - state->mark_ns;
	state->mark_ns = run->now_ns;
	if (elapsed_ns)
		floor_step(run, state, elapsed_ns);
}

const struct checker checker_floor = {
	.name = "floor",
	.promise = "a client with work gets its guaranteed share",
	.state_size = sizeof(struct floor_state),
	.event = floor_event,
};
