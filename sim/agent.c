/* SPDX-License-Identifier: MIT */
/*
 * Owns what agents and daemon do around the core, in virtual time: queues are registered when they are created, an
 * idle→busy edge takes notice_ns to arrive, progress is seen by sampling. Sampling is not simulated tick by tick:
 * after a change the next tick comes after a time drawn evenly from the interval.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "sim/state.h"

#define AGENT_AHEAD_MAX_NS   1000000u /* as libgpreempt: hints further ahead bring nothing in */
#define AGENT_AHEAD_GRACE_NS 50000u   /* and the waiting kernel lasts so long after the announced time */
#define AGENT_SLICE_SHORT_NS 1000u    /* tsg: the shortest slice there is */
#define AGENT_SLICE_MID_NS   2000000u /* as [nvidia] middle_slice */
#define AGENT_SLICE_LONG_NS  1000000000u
#define AGENT_CLAIM          1000000u /* packets that a hostile client claims and never has */
#define AGENT_RETRY_NS       1000u    /* a deadline that does not move is looked at again after */

uint64_t gp_sim_core_now_ns(const struct gp_sim *sim)
{
	int64_t offset_ns = sim->clock_offset_ns;

	if (offset_ns < 0 && (uint64_t)-offset_ns > sim->now_ns)
		return 0;
	return sim->now_ns + (uint64_t)offset_ns;
}

struct gp_sched *gp_sim_core(const struct gp_sim *sim)
{
	return sim->core;
}

static int agent_add_device(struct gp_sim *sim, struct sim_device *device, uint32_t queue_max, struct gp_error *error)
{
	const struct gp_desc *desc = sim->config.desc;
	bool is_tsg = gp_desc_get(desc, GP_DESC_SCHEDULER) == GP_SCHEDULER_TSG;
	struct gp_device_attr attr = {
		.unit = sim->config.unit,
		.queue_max = queue_max,
		.slot_count = is_tsg ? 0 : (uint32_t)gp_desc_get(desc, GP_DESC_SLOT_COUNT),
		.process_count_max = is_tsg ? 0 : (uint32_t)gp_desc_get(desc, GP_DESC_PROCESS_COUNT),
		.memory_size = (uint64_t)gp_desc_get(desc, GP_DESC_MEMORY_SIZE),
		.ack_timeout_ns = sim->config.ack_timeout_ns,
		.fetch_counters = sim->config.rptr_at_fetch,
		/* Whether a process without open queues still takes a place in a slice is not public: as the
		   description says. */
		.process_parking = !is_tsg && gp_desc_get(desc, GP_DESC_EMPTY_PROCESS) == 0,
	};
	int ret;

	if (is_tsg) {
		if (!sim->config.hold_out)
			attr.switch_ns = (uint64_t)(gp_desc_get(desc, GP_DESC_SWITCH_OUT_NS) +
						    gp_desc_get(desc, GP_DESC_SWITCH_IN_NS));
		attr.lower_max = 1;
		attr.short_ns = sim->config.lower_slice_ns ? sim->config.lower_slice_ns :
				attr.switch_ns             ? AGENT_SLICE_SHORT_NS :
							     0;
		attr.long_ns = attr.short_ns < AGENT_SLICE_LONG_NS ? AGENT_SLICE_LONG_NS : 0;
		attr.mid_ns = sim->config.middle_slice_ns == SIM_SLICE_NONE ? 0 :
			      sim->config.middle_slice_ns                   ? sim->config.middle_slice_ns :
									      AGENT_SLICE_MID_NS;
		if (!attr.short_ns || attr.short_ns >= attr.mid_ns || attr.mid_ns >= AGENT_SLICE_LONG_NS)
			attr.mid_ns = 0;
		attr.slice_ns = SIM_SLICE_CALL_NS;
		device->close_ns = (uint64_t)gp_desc_get(desc, GP_DESC_DISABLE_NS);
		device->open_ns = (uint64_t)gp_desc_get(desc, GP_DESC_ENABLE_NS);
	} else {
		device->close_ns = device->open_ns = gp_gpu_gate_cost_ns(device->gpu);
	}
	if (sim->config.gate_cost_ns)
		device->close_ns = device->open_ns = sim->config.gate_cost_ns;
	attr.close_ns = device->close_ns;
	attr.open_ns = device->open_ns;
	ret = gp_sched_device_add(sim->core, &attr, sim->config.policy, &sim->config.param, &device->core_device);
	if (ret)
		return gp_error_set(error, ret, "the scheduler refuses the device (policy %s): %s", sim->config.policy,
				    strerror(-ret));
	return 0;
}

static uint32_t agent_queue_max(const struct gp_sim *sim, uint32_t device)
{
	uint32_t i, count = 0;

	for (i = 0; i < sim->client_count; i++) {
		if (sim->clients[i].info.work->devices >> device & 1)
			count += sim->clients[i].queues_per_device;
	}
	return count + count / 4 + 256;
}

int gp_sim_agent_init(struct gp_sim *sim, struct gp_error *error)
{
	struct gp_limits limits = { .device_count = sim->device_count,
				    .gang_count = 1,
				    .trace_count = sim->config.trace_count ? sim->config.trace_count : 4096 };
	uint32_t queue_max[GP_WORK_DEVICE_MAX] = { 0 };
	size_t size;
	uint32_t i;
	int ret;

	for (i = 0; i < sim->client_count; i++)
		limits.gang_count += sim->clients[i].info.work->gang > 0;
	/* Room beyond the clients: one that died unnoticed and started again is there twice. Faults come to small
	 * workloads. */
	limits.client_count = sim->client_count + sim->client_count / 4 + 64;
	for (i = 0; i < sim->device_count; i++) {
		queue_max[i] = agent_queue_max(sim, i);
		limits.queue_count += queue_max[i];
	}
	size = gp_sched_size(&limits);
	sim->core_memory = size ? aligned_alloc(16, (size + 15) & ~(size_t)15) : NULL;
	sim->queue_of_core = malloc(((size_t)limits.queue_count + 1) * sizeof(*sim->queue_of_core));
	if (!sim->core_memory || !sim->queue_of_core)
		return gp_error_set(error, -ENOMEM, "no memory for %u queues in the scheduler", limits.queue_count);
	memset(sim->queue_of_core, 0xff, (size_t)limits.queue_count * sizeof(*sim->queue_of_core));
	sim->core_queue_count = limits.queue_count;
	ret = gp_sched_init(sim->core_memory, (size + 15) & ~(size_t)15, &limits, &sim->core);
	if (ret)
		return gp_error_set(error, ret, "cannot set up the scheduler: %s", strerror(-ret));
	for (i = 0; i < sim->device_count && !ret; i++)
		ret = agent_add_device(sim, &sim->devices[i], queue_max[i], error);
	return ret;
}

static struct gp_queue_attr agent_queue_attr(const struct gp_sim *sim, uint32_t index)
{
	const struct sim_queue *queue = &sim->queues[index];
	const struct sim_client *client = &sim->clients[queue->info.client];
	const struct gp_work_client *work = client->info.work;

	return (struct gp_queue_attr){
		.priority = client->info.priority,
		.weight = work->weight,
		.floor_permille = work->floor_permille,
		.deadline_ns = work->deadline_ns,
		.budget_ns = work->budget_ns,
		.gang = work->gang,
		.unseen = work->unseen,
		.shares_slice = true, /* streams of one context */
		.own_slice_ns =
			gp_sim_slice_is_there(sim) ? (uint64_t)gp_desc_get(sim->config.desc, GP_DESC_TIMESLICE_NS) : 0,
		.tag = index,
		.kind = queue->info.kind == GP_GPU_COPY ? GP_KIND_COPY : GP_KIND_COMPUTE,
	};
}

static void agent_queue_add(struct gp_sim *sim, uint32_t index)
{
	struct sim_queue *queue = &sim->queues[index];
	struct gp_queue_attr attr = agent_queue_attr(sim, index);
	uint32_t device = sim->devices[queue->info.device].core_device;
	struct gp_client_id client = sim->clients[queue->info.client].info.core_client;
	uint64_t now_ns = gp_sim_core_now_ns(sim);
	int ret;

	ret = gp_sched_queue_add(sim->core, client, device, &attr, now_ns, &queue->info.core_queue);
	if (ret == -EDQUOT) {
		/* What was promised is refused, not the client: it goes on without a share, then without a deadline. */
		attr.floor_permille = 0;
		ret = gp_sched_queue_add(sim->core, client, device, &attr, now_ns, &queue->info.core_queue);
	}
	if (ret == -EDQUOT) {
		attr.deadline_ns = attr.budget_ns = 0;
		sim->clients[queue->info.client].deadlines_refused++;
		ret = gp_sched_queue_add(sim->core, client, device, &attr, now_ns, &queue->info.core_queue);
	}
	queue->has_deadline = attr.deadline_ns;
	queue->info.in_core = !ret;
	if (!ret)
		sim->queue_of_core[queue->info.core_queue.index] = index;
}

static void agent_sample_soon(struct gp_sim *sim, uint32_t index)
{
	struct sim_queue *queue = &sim->queues[index];

	if (queue->sample_pending)
		return;
	queue->sample_pending = true;
	gp_sim_push(sim, sim->now_ns + gp_rng_below(&sim->host_rng, sim->sample_ns + 1), SIM_SAMPLE, index, 0);
}

void gp_sim_agent_client_add(struct gp_sim *sim, uint32_t index)
{
	struct sim_client *client = &sim->clients[index];
	const struct gp_work_client *work = client->info.work;
	struct gp_client_attr attr = { .tag = index,
				       .memory_size = work->memory_size,
				       .is_stuck_alone = work->is_stuck_alone,
				       .user = work->user };
	uint32_t i;

	client->info.in_core = sim->core && !gp_sched_client_add(sim->core, &attr, &client->info.core_client);
	for (i = 0; client->info.in_core && i < client->info.queue_count; i++) {
		agent_queue_add(sim, client->info.first_queue + i);
		if (work->claims) /* needs no doorbell to say so */
			agent_sample_soon(sim, client->info.first_queue + i);
	}
	gp_sim_slice_set_lower(sim);
	if (!client->info.in_core)
		return;
	sim->core_dirty = true;
	if (sim->config.observer && sim->config.observer->client_change)
		sim->config.observer->client_change(sim->config.observer->context, index, true, true, sim->now_ns);
}

/* The core hears of a death. The client itself may have started again meanwhile, under another id. */
void gp_sim_agent_client_remove(struct gp_sim *sim, uint32_t index)
{
	const struct sim_grave *grave = &sim->graves[index];
	struct sim_client *client = &sim->clients[grave->client];
	struct sim_queue *queue;
	uint32_t i;

	if (!sim->core || gp_sched_client_remove(sim->core, grave->core_client, gp_sim_core_now_ns(sim)))
		return;
	for (i = grave->first_queue; i < grave->first_queue + grave->queue_count; i++) {
		queue = &sim->queues[i];
		if (queue->info.in_core && sim->queue_of_core[queue->info.core_queue.index] == i)
			sim->queue_of_core[queue->info.core_queue.index] = SIM_NONE;
		queue->info.in_core = false;
	}
	if (client->info.first_queue == grave->first_queue)
		client->info.in_core = false;
	gp_sim_slice_set_lower(sim); /* who is on top may have changed */
	sim->core_dirty = true;
	if (sim->config.observer && sim->config.observer->client_change)
		sim->config.observer->client_change(sim->config.observer->context, grave->client, false, true,
						    sim->now_ns);
}

void gp_sim_agent_set_priority(struct gp_sim *sim, uint32_t index)
{
	const struct sim_client *client = &sim->clients[index];
	struct gp_queue_attr attr;
	struct sim_queue *queue;
	uint32_t i;

	gp_sim_slice_set_lower(sim);
	for (i = 0; client->info.in_core && i < client->info.queue_count; i++) {
		queue = &sim->queues[client->info.first_queue + i];
		if (!queue->info.in_core)
			continue;
		attr = agent_queue_attr(sim, client->info.first_queue + i);
		if (!queue->has_deadline) /* refused once: it is not asked for again */
			attr.deadline_ns = attr.budget_ns = 0;
		gp_sched_queue_set_attr(sim->core, queue->info.core_queue, &attr, gp_sim_core_now_ns(sim));
		sim->core_dirty = true;
	}
}

/* A doorbell was rung. Only the first one after idleness is told at once; the rest is seen by sampling. */
void gp_sim_agent_submitted(struct gp_sim *sim, uint32_t index)
{
	struct sim_queue *queue = &sim->queues[index];

	if (!queue->info.in_core)
		return;
	if (!queue->armed || sim->clients[queue->info.client].info.work->unseen) {
		agent_sample_soon(sim, index);
		return;
	}
	queue->armed = false;
	queue->notice_pending = true;
	gp_sim_push(sim, sim->now_ns + sim->notice_ns, SIM_NOTICE, index, 0);
}

void gp_sim_agent_progressed(struct gp_sim *sim, uint32_t index)
{
	if (sim->queues[index].info.in_core)
		agent_sample_soon(sim, index);
}

void gp_sim_agent_report(struct gp_sim *sim, uint32_t index, bool first)
{
	struct sim_queue *queue = &sim->queues[index];
	struct gp_gpu_counters counters;
	int ret;

	if (!queue->info.in_core || !queue->info.alive ||
	    gp_gpu_counters(sim->devices[queue->info.device].gpu, queue->info.gpu_queue, &counters))
		return;
	if (sim->clients[queue->info.client].info.work->claims)
		counters.written += AGENT_CLAIM;
	ret = gp_sched_sample(sim->core, queue->info.core_queue, counters.written, counters.read,
			      gp_sim_core_now_ns(sim));
	/* The edge is on its way: what a sample says before it must not arm the doorbell again. */
	if (!queue->notice_pending)
		queue->armed = counters.written == counters.read;
	sim->core_dirty = true;
	if (sim->config.observer && sim->config.observer->sample)
		sim->config.observer->sample(sim->config.observer->context, index, counters.written, counters.read,
					     first, ret, sim->now_ns);
}

/* tsg: the client's own library has its context take the device at once, by a kernel that waits (libgpreempt/cuda.c).
 * On other devices, and where contexts are held out instead, only the core's plans act. */
static void agent_bring_in(struct gp_sim *sim, const struct sim_queue *queue, uint64_t in_ns)
{
	const struct gp_desc *desc = sim->config.desc;
	uint64_t switch_ns;

	if (gp_desc_get(desc, GP_DESC_SCHEDULER) != GP_SCHEDULER_TSG || sim->config.hold_out)
		return;
	switch_ns = (uint64_t)(gp_desc_get(desc, GP_DESC_SWITCH_OUT_NS) + gp_desc_get(desc, GP_DESC_SWITCH_IN_NS));
	if (in_ns <= AGENT_AHEAD_MAX_NS)
		(void)gp_gpu_announce(sim->devices[queue->info.device].gpu, queue->info.gpu_queue,
				      sim->now_ns + switch_ns + in_ns + AGENT_AHEAD_GRACE_NS, sim->now_ns);
}

/* The client says: work at target_ns. It does not know more than which of its streams comes next. */
void gp_sim_agent_hint(struct gp_sim *sim, uint32_t index, uint64_t target_ns)
{
	const struct sim_client *client = &sim->clients[index];
	const struct gp_work_client *work = client->info.work;
	uint64_t in_ns = target_ns > sim->now_ns ? target_ns - sim->now_ns : 0;
	uint64_t grace_ns = sim->config.param.hint_grace_ns ? sim->config.param.hint_grace_ns : 2000000;
	uint32_t i, place = work->spread ? (uint32_t)(client->job_number % work->queue_count) : 0;
	struct sim_queue *queue;

	for (i = 0; client->info.alive && client->info.in_core && i < client->device_count; i++) {
		queue = &sim->queues[client->info.first_queue + i * client->queues_per_device + place];
		if (!queue->info.in_core)
			continue;
		queue->hold_until_ns = sim->now_ns + in_ns + grace_ns;
		agent_bring_in(sim, queue, in_ns);
		gp_sched_hint(sim->core, queue->info.core_queue, in_ns, gp_sim_core_now_ns(sim));
		sim->core_dirty = true;
	}
}

uint64_t gp_sim_agent_deadline_ns(const struct gp_sim *sim)
{
	uint64_t deadline_ns;
	int64_t offset_ns = sim->clock_offset_ns;

	if (!sim->core)
		return UINT64_MAX;
	deadline_ns = gp_sched_deadline_ns(sim->core);
	if (deadline_ns == GP_NEVER_NS)
		return UINT64_MAX;
	if (offset_ns > 0)
		deadline_ns = deadline_ns > (uint64_t)offset_ns ? deadline_ns - (uint64_t)offset_ns : 0;
	else
		deadline_ns += (uint64_t)-offset_ns;
	return deadline_ns > sim->core_retry_ns ? deadline_ns : sim->core_retry_ns;
}

/* Every decision the core has now. */
void gp_sim_agent_decide(struct gp_sim *sim)
{
	sim->core_dirty = false;
	sim->core_retry_ns = 0;
	while (gp_sched_plan(sim->core, gp_sim_core_now_ns(sim), &sim->plan)) {
		if (sim->config.observer && sim->config.observer->plan)
			sim->config.observer->plan(sim->config.observer->context, &sim->plan, sim->now_ns);
		gp_sim_slice_begin(sim, &sim->plan);
		if (sim->plan.close_count || sim->plan.open_count || sim->plan.announce)
			gp_sim_apply_begin(sim, &sim->plan);
	}
	gp_sim_apply_given_up(sim);
	gp_sim_slice_watch(sim);
	gp_sim_record_decisions(sim);
	/* A deadline that is still due although it was met would stop virtual time. */
	if (gp_sim_agent_deadline_ns(sim) <= sim->now_ns)
		sim->core_retry_ns = sim->now_ns + AGENT_RETRY_NS;
}
