/* SPDX-License-Identifier: MIT */
/*
 * Ranks of a job, and the devices of one client: none spins on its device for a peer whose gate is closed on its work,
 * for longer than the gates of both devices need to move: the plans that may be under way there when one of the two is
 * decided, and that one. Who belongs together is known from the workload, whatever the core was told.
 */
#include <stdlib.h>
#include "test/sim/checker.h"
#include "test/sim/checker_known.h"
#include "test/sim/checker_truth.h"

struct spin_queue {
	uint32_t job, client; /* job: of the ranks, or a number for a client that is alone one; 0: neither */
	uint64_t *packets;    /* those that spin, by their place in the queue */
	uint64_t count, capacity, started;
	bool runs;         /* the last one that started is on the device */
	uint64_t apart_ns; /* a peer has been away since, + 1; 0: none is */
	uint64_t lost_ns;  /* what the core's clock had lost then */
	bool unissued;     /* the device has not heard of its last order, which is to open it … */
	bool unheard; /* … and will not: the core gave it up while the device was busy with another transaction */
};

#define SPIN_JOB_MAX 8u /* beyond: clients on several devices */
struct spin_state {
	struct spin_queue queues[TRUTH_QUEUE_MAX];
	uint32_t queue_end;
	bool given_up[SPIN_JOB_MAX]; /* a rank died: nobody waits any more */
	uint64_t now_ns, core_ns;    /* at the last step */
	uint64_t before_ns;          /* the core's time at the step before that */
	uint64_t lost_ns;            /* so much less has passed for the core, each time its clock was set back */
};

static void spin_submit(struct checker_run *run, struct spin_state *state, const struct check_event *event)
{
	struct spin_queue *queue = &state->queues[event->gpu_queue];
	struct gp_sim_client_info client;
	struct gp_sim_queue_info info;
	uint64_t *packets;

	gp_sim_queue(run->sim, event->gpu_queue, &info);
	gp_sim_client(run->sim, info.client, &client);
	if (client.work->meets)
		queue->job = client.work->meets;
	else if (__builtin_popcountll(client.work->devices) > 1)
		queue->job = SPIN_JOB_MAX + info.client;
	else
		return;
	queue->client = info.client;
	if (state->queue_end <= event->gpu_queue)
		state->queue_end = event->gpu_queue + 1;
	if (event->packet->type != GP_GPU_KERNEL || !event->packet->kernel.spin_signal)
		return;
	if (queue->count == queue->capacity) {
		queue->capacity = queue->capacity ? queue->capacity * 2 : 64;
		packets = realloc(queue->packets, queue->capacity * sizeof(*packets));
		if (!packets)
			abort();
		queue->packets = packets;
	}
	queue->packets[queue->count++] = info.written;
}

static void spin_gpu(struct spin_state *state, const struct check_event *event)
{
	struct spin_queue *queue;

	if (event->gpu_queue == CHECKER_NONE || event->gpu_queue >= TRUTH_QUEUE_MAX)
		return;
	queue = &state->queues[event->gpu_queue];
	if (event->gpu_event->type == GP_GPU_EVENT_START) {
		if (queue->started < queue->count && queue->packets[queue->started] == event->gpu_event->packet)
			queue->started++;
		queue->runs |= queue->started && queue->packets[queue->started - 1] == event->gpu_event->packet;
	} else if (event->gpu_event->type == GP_GPU_EVENT_STOP || event->gpu_event->type == GP_GPU_EVENT_END ||
		   event->gpu_event->type == GP_GPU_EVENT_KILLED) {
		queue->runs &= !queue->started || queue->packets[queue->started - 1] != event->gpu_event->packet;
	}
}

static void spin_plan(struct checker_run *run, struct spin_state *state, const struct gp_plan *plan)
{
	uint32_t i, count = plan->close_count + plan->open_count;

	for (i = 0; i < count; i++) {
		bool opens = i >= plan->close_count;
		const struct gp_order *order = opens ? &plan->open[i - plan->close_count] : &plan->close[i];
		struct spin_queue *queue = &state->queues[run->known->queues[order->queue.index].attr.tag];

		queue->unissued = opens;
		queue->unheard = false;
	}
}

static void spin_transact(struct spin_state *state, const struct check_event *event)
{
	uint32_t i;

	for (i = 0; i < event->count; i++)
		state->queues[event->changes[i].queue].unissued = false;
}

static void spin_claim(struct checker_run *run, struct spin_state *state, const struct gp_trace_event *claim)
{
	const struct known_queue *known;
	uint32_t i;

	if (claim->type != GP_TRACE_ORDER_FAILED || claim->why != GP_WHY_TIMEOUT)
		return;
	known = &run->known->queues[claim->queue.index];
	for (i = 0; i < run->truth->transaction_count; i++)
		state->queues[known->attr.tag].unheard |=
			state->queues[known->attr.tag].unissued && run->truth->transactions[i].device == known->device;
}

static uint64_t spin_move_ns(const struct checker_run *run, uint32_t device);

/* The core's time now. It was last told the time with its last call, and no call may come while an answer is late. */
static uint64_t spin_core_ns(const struct checker_run *run)
{
	uint64_t now_ns = gp_sim_core_now_ns(run->sim);

	return now_ns > run->known->core_ns ? now_ns : run->known->core_ns;
}

/* A clock that was set back stands still for the core until it has caught up, and what the core waits for by it comes
 * so much later. One that was set forward makes up for nothing. */
static void spin_clock(const struct checker_run *run, struct spin_state *state)
{
	uint64_t core_ns = spin_core_ns(run), due_ns = state->core_ns + (run->now_ns - state->now_ns);

	if (core_ns < due_ns)
		state->lost_ns += due_ns - core_ns;
	state->before_ns = state->core_ns;
	state->core_ns = core_ns;
	state->now_ns = run->now_ns;
}

/* It was ordered, and the answer is lost or late: until it comes, or the core gives the order up, it gives that gate no
 * other one. An order that it does not give up when it should is no excuse. */
static bool spin_is_unanswered(const struct checker_run *run, const struct known_queue *queue, uint64_t core_ns)
{
	uint64_t timeout_ns = run->known->devices[queue->device].attr.ack_timeout_ns;

	return known_moves(queue) && core_ns > queue->order_ns + spin_move_ns(run, queue->device) &&
	       core_ns <= queue->order_ns + timeout_ns;
}

/* The device has no other plan as long as the core may wait for the answer of another client, which is late. Such a
 * wait may begin and end between two steps, with nothing to look at meanwhile: the later step counts it. */
static bool spin_is_kept_waiting(const struct checker_run *run, const struct spin_state *state, uint32_t device)
{
	uint32_t i;

	for (i = 0; i < run->known->queue_end; i++) {
		const struct known_queue *queue = &run->known->queues[i];
		uint64_t until_ns = queue->prompt_until_ns, core_ns = spin_core_ns(run);

		if (queue->used && queue->device == device && queue->is_awaited && state->before_ns < until_ns &&
		    spin_is_unanswered(run, queue, core_ns < until_ns ? core_ns : until_ns))
			return true;
	}
	return false;
}

/* The core takes it for open because it is in quarantine, but the last transaction that was to open it hangs or failed,
 * by its own fault or another's, or was given up while it waited for another one: a clock that is set forward makes
 * that happen at any time. The core does not know; its lease opens it (run_lease()). */
static bool spin_is_left_to_lease(const struct checker_run *run, const struct spin_state *state,
				  const struct known_queue *queue)
{
	const struct truth_queue *truth = &run->truth->queues[queue->attr.tag];

	return queue->gate == GP_GATE_QUARANTINED && truth->closed &&
	       (truth->opening || truth->missed || state->queues[queue->attr.tag].unheard);
}

/* The core can neither put it aside nor bring it back now, by no fault of its own, or does not know that it should. One
 * in quarantine that is open is no excuse: then all of its gang are open, unless it is left alone. */
static bool spin_is_excused(const struct checker_run *run, const struct spin_state *state,
			    const struct known_queue *queue)
{
	const struct known_device *device;
	struct gp_sim_queue_info info;

	if (!queue || spin_is_unanswered(run, queue, spin_core_ns(run)) ||
	    spin_is_kept_waiting(run, state, queue->device) ||
	    (queue->gate != GP_GATE_QUARANTINED && (queue->fail_count || queue->condemned)) ||
	    (queue->stuck && !known_keeps_gang(run->known, queue)) || spin_is_left_to_lease(run, state, queue))
		return true;
	gp_sim_queue(run->sim, (uint32_t)queue->attr.tag, &info);
	device = &run->known->devices[queue->device];
	return info.client == run->mute_client || device->stopped || !device->gates ||
	       run->truth->queues[queue->attr.tag].lost ||
	       spin_core_ns(run) < device->disturbed_ns + device->attr.ack_timeout_ns ||
	       !known_has_slot(run->known, queue->device);
}

/* Whether the job's rank waits for this queue of a peer: its gate is closed on what it has to do before they meet. */
static bool spin_is_away(const struct checker_run *run, const struct spin_state *state, uint32_t index, uint32_t rank)
{
	const struct spin_queue *peer = &state->queues[index], *spins = &state->queues[rank];
	struct gp_sim_queue_info info;

	if (peer->job != spins->job || run->truth->queues[index].device == run->truth->queues[rank].device ||
	    !run->truth->queues[index].used || !run->truth->queues[index].closed ||
	    (peer->count && peer->started >= spins->started))
		return false;
	gp_sim_queue(run->sim, index, &info);
	return info.alive && info.written != info.completed;
}

/* Transactions that one plan of the device can have, for gates in one direction. */
static uint64_t spin_transactions(const struct known *known, uint32_t device)
{
	uint64_t count = 0;
	uint32_t i, k;

	if (known->devices[device].attr.unit == GP_UNIT_DEVICE)
		return 1;
	for (i = 0; i < known->queue_end; i++) {
		const struct known_queue *queue = &known->queues[i];
		bool is_first = queue->used && queue->device == device;

		for (k = 0; k < i && known->devices[device].attr.unit == GP_UNIT_PROCESS; k++)
			is_first &= !known->queues[k].used || known->queues[k].device != device ||
				    known->queues[k].client.index != queue->client.index;
		count += is_first;
	}
	return count;
}

/* How long the plan that may be under way on the device, and the next one, can take. */
static uint64_t spin_move_ns(const struct checker_run *run, uint32_t device)
{
	const struct gp_device_attr *attr = &run->known->devices[device].attr;
	uint64_t gate_ns = attr->close_ns > attr->open_ns ? attr->close_ns : attr->open_ns;

	return 2 * (2 * run->latency_ns + spin_transactions(run->known, device) * gate_ns);
}

static void spin_look(struct checker_run *run, struct spin_state *state, uint32_t rank)
{
	struct spin_queue *queue = &state->queues[rank];
	const struct known_queue *known = known_find_tag(run->known, rank), *peer;
	uint64_t limit_ns, other_ns;
	uint32_t i, away = CHECKER_NONE;

	for (i = 0; i < state->queue_end && away == CHECKER_NONE; i++)
		if (spin_is_away(run, state, i, rank))
			away = i;
	peer = away == CHECKER_NONE ? NULL : known_find_tag(run->known, away);
	if (away == CHECKER_NONE || spin_is_excused(run, state, known) || spin_is_excused(run, state, peer)) {
		queue->apart_ns = 0;
		return;
	}
	if (!queue->apart_ns) {
		queue->apart_ns = run->now_ns + 1;
		queue->lost_ns = state->lost_ns;
	}
	limit_ns = spin_move_ns(run, known->device);
	other_ns = spin_move_ns(run, peer->device);
	limit_ns = (other_ns > limit_ns ? other_ns : limit_ns) + run->late_ns + (state->lost_ns - queue->lost_ns);
	if (run->now_ns + 1 - queue->apart_ns > limit_ns)
		checker_fail(
			run, &checker_spin,
			"at %llu ns: queue %u spins on device %u since %llu ns for queue %u, whose gate on device %u is closed on its work; %llu ns are allowed",
			(unsigned long long)run->now_ns, rank, known->device, (unsigned long long)queue->apart_ns - 1,
			away, peer->device, (unsigned long long)limit_ns);
}

static void spin_event(struct checker_run *run, void *data, const struct check_event *event)
{
	struct spin_state *state = data;
	uint32_t i;

	if (event->type == CHECK_SUBMIT)
		spin_submit(run, state, event);
	else if (event->type == CHECK_GPU)
		spin_gpu(state, event);
	else if (event->type == CHECK_PLAN)
		spin_plan(run, state, event->plan);
	else if (event->type == CHECK_TRANSACT)
		spin_transact(state, event);
	else if (event->type == CHECK_TRACE)
		spin_claim(run, state, event->trace);
	else if (event->type == CHECK_GPU_REMOVE && state->queues[event->gpu_queue].job < SPIN_JOB_MAX)
		state->given_up[state->queues[event->gpu_queue].job] = true;
	if (event->type != CHECK_STEP)
		return;
	spin_clock(run, state);
	for (i = 0; i < state->queue_end; i++) {
		struct spin_queue *queue = &state->queues[i];

		/* A kernel none of whose workgroups has found room is not reported as stopped when its gate closes. */
		if (queue->runs && run->truth->queues[i].used && !run->truth->queues[i].closed &&
		    (queue->job >= SPIN_JOB_MAX || !state->given_up[queue->job]))
			spin_look(run, state, i);
		else
			queue->apart_ns = 0;
	}
}

static void spin_fini(void *data)
{
	struct spin_state *state = data;
	uint32_t i;

	for (i = 0; i < state->queue_end; i++)
		free(state->queues[i].packets);
}

const struct checker checker_spin = {
	.name = "spin",
	.promise = "no rank spins for a peer longer than their gates need to move",
	.state_size = sizeof(struct spin_state),
	.event = spin_event,
	.fini = spin_fini,
};
