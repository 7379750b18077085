/* SPDX-License-Identifier: MIT */
/* Owns what goes wrong, or changes, on request: deaths, forks, resets, clocks, priorities. */
#include <errno.h>
#include <stdlib.h>
#include "sim/state.h"

int gp_sim_add_fault(struct gp_sim *sim, const struct gp_sim_fault *fault)
{
	struct gp_sim_fault *faults;

	if (fault->time_ns < sim->now_ns || (fault->type == GP_SIM_FAULT_RESET && fault->device >= sim->device_count) ||
	    (fault->type <= GP_SIM_FAULT_HINT && fault->client >= sim->client_count) ||
	    (fault->type == GP_SIM_FAULT_PRIORITY && (fault->value < 0 || fault->value > GP_PRIORITY_MAX)))
		return -EINVAL;
	faults = realloc(sim->faults, (size_t)(sim->fault_count + 1) * sizeof(*faults));
	if (!faults)
		return -ENOMEM;
	sim->faults = faults;
	faults[sim->fault_count] = *fault;
	gp_sim_push(sim, fault->time_ns, SIM_FAULT, sim->fault_count++, 0);
	return sim->out_of_memory ? -ENOMEM : 0;
}

static void fault_death(struct gp_sim *sim, uint32_t index, uint64_t notice_ns, uint64_t respawn_ns)
{
	struct sim_client *client = &sim->clients[index];
	struct sim_grave *graves;

	if (!client->info.alive)
		return;
	gp_sim_process_die(sim, index);
	if (client->info.in_core && notice_ns != UINT64_MAX) {
		graves = realloc(sim->graves, (size_t)(sim->grave_count + 1) * sizeof(*graves));
		if (!graves) {
			sim->out_of_memory = true;
			return;
		}
		sim->graves = graves;
		graves[sim->grave_count] = (struct sim_grave){ .client = index,
							       .first_queue = client->info.first_queue,
							       .queue_count = client->info.queue_count,
							       .core_client = client->info.core_client };
		gp_sim_push(sim, sim->now_ns + notice_ns, SIM_CORE_REMOVE, sim->grave_count++, 0);
	}
	if (respawn_ns)
		gp_sim_push(sim, sim->now_ns + respawn_ns, SIM_START, index, client->incarnation);
}

/* A child inherits the memory mappings and no queues; KFD gives it a process of its own once it touches the device. */
static void fault_fork(struct gp_sim *sim, const struct gp_sim_fault *fault)
{
	const struct sim_client *client = &sim->clients[fault->client];
	uint32_t i, process;

	for (i = 0; i < client->device_count; i++) {
		if (gp_gpu_process_add(sim->devices[client->devices[i]].gpu, &process) || !fault->respawn_ns)
			continue;
		gp_sim_push(sim, sim->now_ns + fault->respawn_ns, SIM_CHILD_EXIT, client->devices[i], process);
	}
}

static void fault_reset(struct gp_sim *sim, const struct gp_sim_fault *fault)
{
	uint32_t i;

	/* What they ran is read before the device forgets it. */
	for (i = 0; i < sim->queue_count; i++) {
		if (sim->queues[i].info.alive && sim->queues[i].info.device == fault->device)
			gp_sim_account_queue_gone(sim, i);
	}
	gp_gpu_reset(sim->devices[fault->device].gpu, sim->now_ns);
	for (i = 0; i < sim->client_count; i++) {
		if (sim->clients[i].info.work->devices >> fault->device & 1)
			fault_death(sim, i, fault->notice_ns, fault->respawn_ns);
	}
	gp_sim_drain(sim);
	if (!sim->core)
		return;
	gp_sim_apply_device_reset(sim, fault->device);
	gp_sim_push(sim, sim->now_ns + fault->notice_ns, SIM_DEVICE_STOP, fault->device, 0);
	if (fault->respawn_ns)
		gp_sim_push(sim, sim->now_ns + fault->notice_ns + fault->respawn_ns, SIM_DEVICE_START, fault->device,
			    0);
}

void gp_sim_fault_device(struct gp_sim *sim, uint32_t device, bool stop)
{
	if (stop)
		gp_sched_device_stop(sim->core, sim->devices[device].core_device, gp_sim_core_now_ns(sim));
	else
		gp_sched_device_start(sim->core, sim->devices[device].core_device, gp_sim_core_now_ns(sim));
	sim->core_dirty = true;
}

/* The lease ran out: the agent opens the gate by itself, in a transaction of its own that nobody ordered. */
static void fault_open_gate(struct gp_sim *sim, const struct gp_sim_fault *fault)
{
	struct sim_queue *queue = &sim->queues[fault->queue];
	struct gp_gpu_change change = { .queue = queue->info.gpu_queue, .open = true };

	if (!queue->info.alive || !queue->info.closed)
		return;
	if (gp_gpu_transact(sim->devices[queue->info.device].gpu, &change, 1, 0, sim->now_ns))
		return;
	queue->info.closed = false;
	gp_sim_account_gate(sim, fault->queue);
	gp_sim_push(sim, sim->now_ns + fault->notice_ns, SIM_GATE_LOST, fault->queue, sim->transaction_seq);
}

/* An agent tells this before it answers an order that it carried out afterwards, never after that. */
void gp_sim_fault_gate_lost(struct gp_sim *sim, uint32_t queue, uint64_t seq)
{
	if (!sim->core || !sim->queues[queue].info.in_core || sim->queues[queue].ended_seq > seq)
		return;
	gp_sched_gate_lost(sim->core, sim->queues[queue].info.core_queue, true, gp_sim_core_now_ns(sim));
	sim->core_dirty = true;
}

static void fault_close(struct gp_sim *sim, const struct gp_sim_fault *fault)
{
	const struct sim_queue *queue;

	if (fault->queue >= sim->queue_count || !sim->queues[fault->queue].info.alive)
		return;
	queue = &sim->queues[fault->queue];
	gp_gpu_set_fault(sim->devices[queue->info.device].gpu, queue->info.gpu_queue,
			 fault->type == GP_SIM_FAULT_CLOSE_FAILS ? GP_GPU_FAULT_CLOSE_FAILS : GP_GPU_FAULT_CLOSE_HANGS);
}

void gp_sim_fault_act(struct gp_sim *sim, const struct gp_sim_fault *given)
{
	struct gp_sim_fault fault = *given; /* the list may move while this one acts */

	switch (fault.type) {
	case GP_SIM_FAULT_DEATH: fault_death(sim, fault.client, fault.notice_ns, fault.respawn_ns); break;
	case GP_SIM_FAULT_FORK: fault_fork(sim, &fault); break;
	case GP_SIM_FAULT_PRIORITY:
		gp_sim_account_set_priority(sim, fault.client, (int32_t)fault.value);
		gp_sim_push(sim, sim->now_ns + fault.notice_ns, SIM_CORE_PRIORITY, fault.client, 0);
		break;
	case GP_SIM_FAULT_HINT:
		gp_sim_agent_hint(sim, fault.client, sim->now_ns + (uint64_t)(fault.value > 0 ? fault.value : 0));
		break;
	case GP_SIM_FAULT_RESET: fault_reset(sim, &fault); break;
	case GP_SIM_FAULT_CLOCK:
		sim->clock_offset_ns += fault.value;
		sim->core_dirty = sim->core != NULL;
		break;
	case GP_SIM_FAULT_CLOSE_FAILS:
	case GP_SIM_FAULT_CLOSE_HANGS: fault_close(sim, &fault); break;
	case GP_SIM_FAULT_GATE_LOST:
		if (fault.queue < sim->queue_count)
			fault_open_gate(sim, &fault);
		break;
	}
}
