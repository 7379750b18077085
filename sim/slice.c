/* SPDX-License-Identifier: MIT */
/*
 * Owns slices of time-sliced contexts (tsg), as they are carried out: each order of the core's is one call, which takes
 * its time and is answered by itself; switches of the one that the core watches are counted now and then. What is
 * ordered is the core's decision alone. Without a core the slice of the lower clients is set once, if there is one.
 */
#include "sim/state.h"

#define SLICE_TOP_NS   1000000000u /* without a core: the only client on top */
#define SLICE_COUNT_NS 50000000u   /* between two counts, as gpreemptd counts … */
#define SLICE_TURN     2u          /* … and so many of them at least in a turn */

bool gp_sim_slice_is_there(const struct gp_sim *sim)
{
	return gp_desc_get(sim->config.desc, GP_DESC_SCHEDULER) == GP_SCHEDULER_TSG;
}

static uint64_t slice_own_ns(const struct gp_sim *sim)
{
	return (uint64_t)gp_desc_get(sim->config.desc, GP_DESC_TIMESLICE_NS);
}

/* One context has one slice: as long as the longest that any of its queues should have. */
static void slice_set(struct gp_sim *sim, const struct sim_queue *queue)
{
	const struct gp_sim_client_info *client = &sim->clients[queue->info.client].info;
	uint64_t slice_ns = 0, own_ns;
	uint32_t i;

	for (i = client->first_queue; i < client->first_queue + client->queue_count; i++) {
		const struct sim_queue *other = &sim->queues[i];

		if (other->info.device != queue->info.device || other->info.kind != GP_GPU_COMPUTE)
			continue;
		own_ns = other->slice_set_ns ? other->slice_set_ns : slice_own_ns(sim);
		slice_ns = own_ns > slice_ns ? own_ns : slice_ns;
	}
	(void)gp_gpu_set_timeslice(sim->devices[queue->info.device].gpu, queue->info.gpu_process, slice_ns,
				   sim->now_ns);
}

void gp_sim_slice_begin(struct gp_sim *sim, const struct gp_plan *plan)
{
	uint32_t i, queue;

	for (i = 0; i < plan->slice_count; i++) {
		queue = gp_sim_find_queue(sim, plan->slice[i].queue);
		if (queue == SIM_NONE)
			continue;
		sim->queues[queue].slice_seq = plan->seq;
		sim->queues[queue].slice_ns = plan->slice[i].slice_ns;
		gp_sim_push(sim, sim->now_ns + sim->decide_ns + SIM_SLICE_CALL_NS, SIM_SLICE, queue, plan->seq);
	}
}

void gp_sim_slice_issue(struct gp_sim *sim, uint32_t index, uint64_t seq)
{
	const struct gp_sim_faults *faults = sim->config.faults;
	struct sim_queue *queue = &sim->queues[index];
	struct gp_sim_ack_fate fate = { 0 };
	uint64_t time_ns = sim->now_ns + sim->notice_ns;
	uint32_t i;

	if (queue->slice_seq != seq || !queue->info.alive) /* given up, or gone with its process */
		return;
	if (faults && faults->obeys && !faults->obeys(faults->context, queue->info.client, sim->now_ns))
		return;
	queue->slice_set_ns = queue->slice_ns;
	slice_set(sim, queue);
	if (faults && faults->ack)
		faults->ack(faults->context, queue->info.device, queue->info.client, sim->now_ns, &fate);
	for (i = 0; !fate.drop && i <= fate.copies; i++)
		gp_sim_push(sim, time_ns + fate.delay_ns + i * fate.copy_delay_ns, SIM_SLICED, index, seq);
}

void gp_sim_slice_deliver(struct gp_sim *sim, uint32_t index, uint64_t seq)
{
	if (sim->queues[index].info.in_core)
		(void)gp_sched_sliced(sim->core, sim->queues[index].info.core_queue, seq, 0, gp_sim_core_now_ns(sim));
	sim->core_dirty = true;
}

/* The next count, as long as the core wants to know. */
static void slice_watch(struct gp_sim *sim, uint32_t device)
{
	uint64_t turn_ns = sim->config.param.turn_ns / SLICE_TURN;
	struct gp_queue_id queue;

	if (sim->devices[device].count_pending ||
	    !gp_sched_switch_watch(sim->core, sim->devices[device].core_device, &queue))
		return;
	sim->devices[device].count_pending = true;
	gp_sim_push(sim, sim->now_ns + (turn_ns && turn_ns < SLICE_COUNT_NS ? turn_ns : SLICE_COUNT_NS), SIM_COUNT,
		    device, 0);
}

void gp_sim_slice_watch(struct gp_sim *sim)
{
	uint32_t i;

	for (i = 0; i < sim->device_count && gp_sim_slice_is_there(sim); i++)
		slice_watch(sim, i);
}

void gp_sim_slice_count(struct gp_sim *sim, uint32_t device)
{
	struct gp_queue_id core;
	uint32_t index, count;

	sim->devices[device].count_pending = false;
	if (!gp_sched_switch_watch(sim->core, sim->devices[device].core_device, &core))
		return;
	index = gp_sim_find_queue(sim, core);
	if (index == SIM_NONE || !sim->queues[index].info.alive ||
	    gp_gpu_switch_count(sim->devices[device].gpu, sim->queues[index].info.gpu_process, &count))
		return;
	(void)gp_sched_switches(sim->core, core, count, sim->now_ns + 1, gp_sim_core_now_ns(sim));
	sim->core_dirty = true;
	slice_watch(sim, device);
}

/* Who is on top is a question of each device, and of those who are there. */
static void slice_set_device(struct gp_sim *sim, uint32_t device)
{
	int32_t top = -1, bottom = SIM_LEVELS;
	uint32_t i, k, top_count = 0;

	for (i = 0; i < sim->client_count; i++) {
		const struct gp_sim_client_info *client = &sim->clients[i].info;

		if (!client->alive || !(client->work->devices >> device & 1))
			continue;
		top_count = client->priority > top ? 1 : top_count + (client->priority == top);
		top = client->priority > top ? client->priority : top;
		bottom = client->priority < bottom ? client->priority : bottom;
	}
	for (i = 0; i < sim->client_count; i++) {
		const struct sim_client *client = &sim->clients[i];
		bool is_top = client->info.priority == top;
		uint64_t slice_ns = is_top ? SLICE_TOP_NS : sim->config.lower_slice_ns;

		/* Equals at the top share by the device's own slices, as do all when there is one priority only. */
		if (top == bottom || (is_top && top_count > 1))
			slice_ns = slice_own_ns(sim);
		for (k = 0; client->info.alive && k < client->device_count; k++)
			if (client->devices[k] == device)
				(void)gp_gpu_set_timeslice(sim->devices[device].gpu, client->processes[k], slice_ns,
							   sim->now_ns);
	}
}

void gp_sim_slice_set_lower(struct gp_sim *sim)
{
	uint32_t i;

	for (i = 0; i < sim->device_count && !sim->core && sim->config.lower_slice_ns && gp_sim_slice_is_there(sim);
	     i++)
		slice_set_device(sim, i);
}
