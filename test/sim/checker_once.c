/* SPDX-License-Identifier: MIT */
/*
 * Every workgroup of every completed packet ran exactly once, whatever was preempted. Progress never moves back between
 * a stop and the next start, a packet ends once and with all its workgroups, and two laws that hold whatever the
 * scheduling: a kernel cannot end sooner than its work divided by all the places of the device, and the space-time a
 * queue used is the work it was given.
 */
#include <stdlib.h>
#include "test/sim/checker.h"
#include "test/sim/checker_truth.h"

struct once_packet {
	uint64_t workgroups, workgroup_ns, capacity;
	uint64_t done, run_ns, since_ns; /* device time without halts */
	bool is_kernel, spins, started, active, ended;
};

struct once_queue {
	struct once_packet *packets;
	uint64_t count, capacity, ended;
	uint64_t work_ns; /* of all packets, in whole-device ns, rounded down for each */
	bool spins;
};

struct once_device {
	uint64_t clock_ns, mark_ns;
	bool halted;
};

struct once_state {
	struct once_queue queues[TRUTH_QUEUE_MAX];
	struct once_device devices[4];
};

static uint64_t once_clock(struct once_state *state, uint32_t device, uint64_t now_ns)
{
	struct once_device *d = &state->devices[device];

	if (!d->halted)
		d->clock_ns += now_ns - d->mark_ns;
	d->mark_ns = now_ns;
	return d->clock_ns;
}

static void once_submit(struct checker_run *run, struct once_state *state, const struct check_event *event)
{
	struct once_queue *queue = &state->queues[event->gpu_queue];
	struct once_packet *packets, *packet;
	const struct gp_gpu_kernel *kernel = &event->packet->kernel;

	if (queue->count == queue->capacity) {
		queue->capacity = queue->capacity ? queue->capacity * 2 : 64;
		packets = realloc(queue->packets, queue->capacity * sizeof(*packets));
		if (!packets)
			abort();
		queue->packets = packets;
	}
	packet = &queue->packets[queue->count++];
	*packet = (struct once_packet){ .is_kernel = event->packet->type == GP_GPU_KERNEL };
	if (!packet->is_kernel)
		return;
	packet->workgroups = kernel->workgroups;
	packet->workgroup_ns = kernel->workgroup_ns;
	packet->capacity = gp_gpu_capacity(run->desc, kernel);
	packet->spins = kernel->spin_signal != 0;
	queue->spins |= packet->spins;
	queue->work_ns += packet->workgroups * packet->workgroup_ns / packet->capacity;
}

/* All is done that was submitted: what it used must be what it was given. The model joins workgroups that end close
 * together when there are many such groups; it counts what that adds, neither more nor less. */
static void once_conserve(struct checker_run *run, const struct once_queue *queue, const struct check_event *event)
{
	struct gp_gpu_counters counters;
	uint64_t slack_ns = queue->work_ns / 1000 + queue->count;

	if (gp_gpu_counters(gp_sim_gpu(run->sim, event->device), event->gpu_event->queue, &counters) ||
	    counters.completed != queue->count)
		return;
	if (counters.unit_ns + slack_ns < queue->work_ns + counters.delay_ns)
		checker_fail(
			run, &checker_once,
			"at %llu ns: queue %u used %llu ns of the device for %llu ns of work: some of it never ran",
			(unsigned long long)event->now_ns, event->gpu_queue, (unsigned long long)counters.unit_ns,
			(unsigned long long)queue->work_ns);
	if (!queue->spins && counters.unit_ns > queue->work_ns + counters.delay_ns + slack_ns)
		checker_fail(
			run, &checker_once,
			"at %llu ns: queue %u used %llu ns of the device for %llu ns of work: some of it ran twice",
			(unsigned long long)event->now_ns, event->gpu_queue, (unsigned long long)counters.unit_ns,
			(unsigned long long)queue->work_ns);
}

static void once_end(struct checker_run *run, struct once_state *state, const struct check_event *event,
		     struct once_packet *packet)
{
	struct once_queue *queue = &state->queues[event->gpu_queue];
	uint64_t clock_ns = once_clock(state, event->device, event->now_ns);
	const char *wrong = NULL;

	if (packet->active)
		packet->run_ns += clock_ns - packet->since_ns;
	if (packet->ended)
		wrong = "ended twice";
	else if (packet->is_kernel && !packet->started)
		wrong = "ended without having started";
	else if (packet->is_kernel && event->gpu_event->value != packet->workgroups)
		wrong = "ended with another number of workgroups than it has";
	else if (packet->is_kernel && packet->run_ns < packet->workgroups * packet->workgroup_ns / packet->capacity)
		wrong = "ended sooner than the whole device could have run it";
	if (wrong) {
		checker_fail(run, &checker_once,
			     "at %llu ns: queue %u, packet %llu: %s (%llu of %llu workgroups, ran %llu ns)",
			     (unsigned long long)event->now_ns, event->gpu_queue,
			     (unsigned long long)event->gpu_event->packet, wrong,
			     (unsigned long long)event->gpu_event->value, (unsigned long long)packet->workgroups,
			     (unsigned long long)packet->run_ns);
		return;
	}
	packet->active = false;
	packet->ended = true;
	if (++queue->ended == queue->count)
		once_conserve(run, queue, event);
}

static void once_gpu(struct checker_run *run, struct once_state *state, const struct check_event *event)
{
	const struct gp_gpu_event *gpu = event->gpu_event;
	struct once_packet *packet;
	const char *wrong = NULL;

	if (gpu->type == GP_GPU_EVENT_HALT || gpu->type == GP_GPU_EVENT_RUN) {
		once_clock(state, event->device, event->now_ns);
		state->devices[event->device].halted = gpu->type == GP_GPU_EVENT_HALT;
		return;
	}
	if (event->gpu_queue == CHECKER_NONE || gpu->type > GP_GPU_EVENT_KILLED || gpu->type == GP_GPU_EVENT_FETCH)
		return;
	if (gpu->packet >= state->queues[event->gpu_queue].count) {
		checker_fail(run, &checker_once, "at %llu ns: queue %u: packet %llu was never submitted",
			     (unsigned long long)event->now_ns, event->gpu_queue, (unsigned long long)gpu->packet);
		return;
	}
	packet = &state->queues[event->gpu_queue].packets[gpu->packet];
	if (gpu->type == GP_GPU_EVENT_END) {
		once_end(run, state, event, packet);
		return;
	}
	if (packet->ended)
		wrong = "goes on after its end";
	else if (gpu->type == GP_GPU_EVENT_KILLED)
		wrong = "lost its progress";
	else if (packet->is_kernel && gpu->type == GP_GPU_EVENT_START && gpu->value != packet->done)
		wrong = "resumed from another place than it stopped at";
	else if (packet->is_kernel && (gpu->value < packet->done || gpu->value > packet->workgroups))
		wrong = "stopped with less done than before, or more than there is";
	if (wrong)
		checker_fail(run, &checker_once,
			     "at %llu ns: queue %u, packet %llu: %s (%llu, was %llu of %llu workgroups)",
			     (unsigned long long)event->now_ns, event->gpu_queue, (unsigned long long)gpu->packet,
			     wrong, (unsigned long long)gpu->value, (unsigned long long)packet->done,
			     (unsigned long long)packet->workgroups);
	if (gpu->type == GP_GPU_EVENT_STOP) {
		if (packet->active)
			packet->run_ns += once_clock(state, event->device, event->now_ns) - packet->since_ns;
		packet->active = false;
		packet->done = gpu->value;
	} else if (gpu->type == GP_GPU_EVENT_START && !packet->active) {
		packet->since_ns = once_clock(state, event->device, event->now_ns);
		packet->started = packet->active = true;
	}
}

static void once_event(struct checker_run *run, void *data, const struct check_event *event)
{
	if (event->type == CHECK_SUBMIT)
		once_submit(run, data, event);
	else if (event->type == CHECK_GPU)
		once_gpu(run, data, event);
}

static void once_fini(void *data)
{
	struct once_state *state = data;
	uint32_t i;

	for (i = 0; i < TRUTH_QUEUE_MAX; i++)
		free(state->queues[i].packets);
}

const struct checker checker_once = {
	.name = "once",
	.promise = "every workgroup of every completed packet ran exactly once",
	.state_size = sizeof(struct once_state),
	.event = once_event,
	.fini = once_fini,
};
