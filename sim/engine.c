/* SPDX-License-Identifier: MIT */
/* Owns time: the heap, the order in which models, processes and core see what happens, and the life of a simulation. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "sim/state.h"

void gp_sim_push(struct gp_sim *sim, uint64_t time_ns, enum sim_event type, uint32_t index, uint64_t value)
{
	struct gp_sim_heap_event event = { .time_ns = time_ns, .type = type, .index = index, .value = value };

	if (gp_sim_heap_push(&sim->heap, &event))
		sim->out_of_memory = true;
}

static void engine_transaction_end(struct gp_sim *sim, uint32_t device, const struct gp_gpu_event *event)
{
	if (!gp_sim_apply_transaction_end(sim, device, event))
		gp_sim_baseline_transaction_end(sim, device, event);
}

static void engine_halt(struct gp_sim *sim, uint32_t device, const struct gp_gpu_event *event)
{
	struct sim_device *dev = &sim->devices[device];
	struct gp_result_mark mark = { .type = GP_MARK_HALT,
				       .device = device,
				       .client = SIM_NONE,
				       .other = SIM_NONE,
				       .queue = SIM_NONE,
				       .why = "device stands still" };

	if (event->type == GP_GPU_EVENT_HALT) {
		dev->halt_ns = event->time_ns + 1;
		return;
	}
	if (!dev->halt_ns)
		return;
	mark.start_ns = dev->halt_ns - 1;
	mark.end_ns = event->time_ns;
	dev->halt_ns = 0;
	gp_sim_record_mark(sim, &mark);
}

static void engine_gpu_event(struct gp_sim *sim, uint32_t device, const struct gp_gpu_event *event)
{
	struct sim_device *dev = &sim->devices[device];

	if (sim->config.observer && sim->config.observer->gpu_event)
		sim->config.observer->gpu_event(sim->config.observer->context, device, event);
	switch (event->type) {
	case GP_GPU_EVENT_FETCH:
	case GP_GPU_EVENT_START:
	case GP_GPU_EVENT_STOP:
	case GP_GPU_EVENT_END:
	case GP_GPU_EVENT_KILLED:
		if (event->queue < dev->queue_of_count && dev->queue_of[event->queue] != SIM_NONE)
			gp_sim_job_event(sim, dev->queue_of[event->queue], event);
		break;
	case GP_GPU_EVENT_TRANSACTION: engine_transaction_end(sim, device, event); break;
	case GP_GPU_EVENT_HALT:
	case GP_GPU_EVENT_RUN: engine_halt(sim, device, event); break;
	case GP_GPU_EVENT_OVERSUBSCRIBED:
	case GP_GPU_EVENT_RESET: break;
	}
}

/* Handling an event may make others ready on any device, so it goes round until a whole round found none. */
void gp_sim_drain(struct gp_sim *sim)
{
	struct gp_gpu_event event;
	bool any = true;
	uint32_t i;

	while (any) {
		any = false;
		for (i = 0; i < sim->device_count; i++) {
			while (gp_gpu_poll(sim->devices[i].gpu, &event)) {
				engine_gpu_event(sim, i, &event);
				any = true;
			}
		}
	}
}

static void engine_dispatch(struct gp_sim *sim, const struct gp_sim_heap_event *event)
{
	const struct sim_client *client;

	switch ((enum sim_event)event->type) {
	case SIM_START:
		client = &sim->clients[event->index];
		if (client->incarnation == event->value && !client->info.alive &&
		    gp_sim_process_start(sim, event->index))
			sim->out_of_memory = true;
		break;
	case SIM_ARRIVAL:
		client = &sim->clients[event->index];
		if (client->incarnation == event->value && client->info.alive)
			gp_sim_process_arrive(sim, event->index);
		break;
	case SIM_HINT: gp_sim_agent_hint(sim, event->index, event->value); break;
	case SIM_NOTICE:
		sim->queues[event->index].notice_pending = false;
		gp_sim_agent_report(sim, event->index, true);
		break;
	case SIM_SAMPLE:
		sim->queues[event->index].sample_pending = false;
		gp_sim_agent_report(sim, event->index, false);
		break;
	case SIM_ISSUE: gp_sim_apply_issue(sim, event->index); break;
	case SIM_HURRY: gp_sim_apply_hurry(sim, event->index, event->value); break;
	case SIM_ACK: gp_sim_apply_deliver(sim, event->index, (uint32_t)event->value); break;
	case SIM_HOST_BUSY:
	case SIM_HOST_IDLE: gp_sim_baseline_host(sim, event->index, event->type == SIM_HOST_BUSY); break;
	case SIM_GRANT: gp_sim_baseline_grant(sim); break;
	case SIM_FAULT: gp_sim_fault_act(sim, &sim->faults[event->index]); break;
	case SIM_CORE_REMOVE: gp_sim_agent_client_remove(sim, event->index); break;
	case SIM_CORE_PRIORITY: gp_sim_agent_set_priority(sim, event->index); break;
	case SIM_DEVICE_STOP:
	case SIM_DEVICE_START: gp_sim_fault_device(sim, event->index, event->type == SIM_DEVICE_STOP); break;
	case SIM_CHILD_EXIT:
		gp_gpu_process_remove(sim->devices[event->index].gpu, (uint32_t)event->value, sim->now_ns);
		break;
	case SIM_GATE_LOST: gp_sim_fault_gate_lost(sim, event->index, event->value); break;
	case SIM_SLICE: gp_sim_slice_issue(sim, event->index, event->value); break;
	case SIM_SLICED: gp_sim_slice_deliver(sim, event->index, event->value); break;
	case SIM_COUNT: gp_sim_slice_count(sim, event->index); break;
	}
}

uint64_t gp_sim_next_ns(const struct gp_sim *sim)
{
	uint64_t next_ns = gp_sim_heap_next_ns(&sim->heap), time_ns;
	uint32_t i;

	for (i = 0; i < sim->device_count; i++) {
		time_ns = gp_gpu_next_ns(sim->devices[i].gpu);
		if (time_ns < next_ns)
			next_ns = time_ns;
	}
	time_ns = gp_sim_agent_deadline_ns(sim);
	if (time_ns < next_ns)
		next_ns = time_ns;
	return next_ns < sim->now_ns ? sim->now_ns : next_ns;
}

static void engine_advance(struct gp_sim *sim, uint64_t now_ns)
{
	uint32_t i;

	sim->now_ns = now_ns;
	for (i = 0; i < sim->device_count; i++)
		gp_gpu_advance(sim->devices[i].gpu, now_ns);
	gp_sim_drain(sim);
}

/* At one time: the models first, then the simulator's own events one by one, then the core's decisions once for all
 * of them. */
bool gp_sim_step(struct gp_sim *sim)
{
	uint64_t next_ns = gp_sim_next_ns(sim);
	struct gp_sim_heap_event event;

	if (next_ns == UINT64_MAX || sim->out_of_memory)
		return false;
	engine_advance(sim, next_ns);
	if (gp_sim_heap_next_ns(&sim->heap) <= next_ns) {
		event = gp_sim_heap_pop(&sim->heap);
		engine_dispatch(sim, &event);
		gp_sim_drain(sim);
	}
	if (sim->core && gp_sim_heap_next_ns(&sim->heap) > next_ns &&
	    (sim->core_dirty || gp_sim_agent_deadline_ns(sim) <= next_ns)) {
		gp_sim_agent_decide(sim);
		gp_sim_drain(sim);
	}
	if (sim->config.observer && sim->config.observer->step)
		sim->config.observer->step(sim->config.observer->context, sim->now_ns);
	return true;
}

void gp_sim_run_until(struct gp_sim *sim, uint64_t until_ns)
{
	while (gp_sim_next_ns(sim) <= until_ns && gp_sim_step(sim))
		;
	if (sim->now_ns < until_ns && until_ns != UINT64_MAX && !sim->out_of_memory)
		engine_advance(sim, until_ns);
}

void gp_sim_run(struct gp_sim *sim)
{
	gp_sim_run_until(sim, sim->config.duration_ns);
}

uint64_t gp_sim_now_ns(const struct gp_sim *sim)
{
	return sim->now_ns;
}

static uint64_t engine_host_ns(const struct gp_sim_config *config, uint64_t given_ns, uint64_t default_ns)
{
	uint32_t dilate = config->dilate ? config->dilate : 1;

	return (given_ns == GP_SIM_DEFAULT_NS ? default_ns : given_ns) / dilate;
}

static int engine_create_devices(struct gp_sim *sim)
{
	struct gp_gpu_config gpu = {
		.desc = sim->config.desc,
		.gate_cost_ns = sim->config.gate_cost_ns,
		.rptr_at_fetch = sim->config.rptr_at_fetch,
	};
	uint32_t i;
	int ret;

	/* A kill and a relaunch cost what the option says, not what a context save costs. */
	if (sim->config.mode == GP_SIM_RESET)
		gpu.gate_cost_ns = sim->config.reset_cost_ns ? sim->config.reset_cost_ns : 20000;
	sim->devices = calloc(sim->config.device_count, sizeof(*sim->devices));
	if (!sim->devices)
		return -ENOMEM;
	for (i = 0; i < sim->config.device_count; i++) {
		ret = gp_gpu_create(&gpu, &sim->devices[i].gpu);
		if (ret)
			return ret;
		sim->device_count++;
	}
	return 0;
}

static int engine_create_clients(struct gp_sim *sim)
{
	const struct gp_workload *workload = sim->config.workload;
	struct gp_rng *rngs;
	uint32_t i;
	int ret = 0;

	sim->clients = calloc(workload->client_count, sizeof(*sim->clients));
	rngs = calloc(workload->client_count, sizeof(*rngs));
	if (!sim->clients || !rngs) {
		free(rngs);
		return -ENOMEM;
	}
	gp_workload_rng(sim->config.seed, workload->client_count, rngs);
	for (i = 0; i < workload->client_count && !ret; i++) {
		sim->client_count++;
		sim->clients[i].rng = rngs[i];
		ret = gp_sim_process_init(sim, i);
	}
	free(rngs);
	gp_sim_meeting_init(sim);
	return ret;
}

/* Clients that all start at once are created in the order of the mix. */
static void engine_start_clients(struct gp_sim *sim)
{
	uint32_t i;

	for (i = 0; i < sim->client_count; i++) {
		if (!sim->config.has_only_client || i == sim->config.only_client)
			gp_sim_push(sim, sim->clients[i].info.work->start_ns, SIM_START, i, 0);
	}
}

static int engine_init(struct gp_sim *sim, struct gp_error *error)
{
	int ret;

	sim->notice_ns = engine_host_ns(&sim->config, sim->config.notice_ns, 5000);
	sim->decide_ns = engine_host_ns(&sim->config, sim->config.decide_ns, 5000);
	sim->sample_ns = engine_host_ns(&sim->config, sim->config.sample_ns, 20000);
	sim->job_free = SIM_NONE;
	/* Not one of the clients' streams: the core's presence must not change an arrival. */
	gp_rng_init(&sim->host_rng, sim->config.seed ^ 0x686f7374u);
	ret = engine_create_devices(sim);
	if (!ret)
		ret = engine_create_clients(sim);
	if (!ret)
		ret = gp_sim_account_init(sim);
	if (!ret)
		ret = gp_sim_record_init(sim);
	if (ret)
		return gp_error_set(error, ret, "cannot set up the simulation: %s", strerror(-ret));
	if (sim->config.mode == GP_SIM_CORE) {
		ret = gp_sim_agent_init(sim, error);
		if (ret)
			return ret;
	}
	engine_start_clients(sim);
	return sim->out_of_memory ? gp_error_set(error, -ENOMEM, "out of memory") : 0;
}

static int engine_check_config(const struct gp_sim_config *config, struct gp_error *error)
{
	int32_t top = 0;
	uint32_t i;
	int ret;

	if (config->device_count < config->workload->device_count || config->device_count > GP_WORK_DEVICE_MAX)
		return gp_error_set(error, -EINVAL, "the mix needs %u devices; there are %u, and at most %u",
				    config->workload->device_count, config->device_count, GP_WORK_DEVICE_MAX);
	if (config->has_only_client && config->only_client >= config->workload->client_count)
		return gp_error_set(error, -EINVAL, "there is no client %u", config->only_client);
	if (config->duration_ns > GP_NS_MAX / 2)
		return gp_error_set(error, -EINVAL, "the duration is too long");
	ret = gp_workload_check(config->workload, config->desc, error);
	if (ret)
		return ret;
	for (i = 0; i < config->workload->client_count && config->mode == GP_SIM_SEQUENTIAL; i++) {
		if (config->workload->clients[i].meets && !config->has_only_client)
			return gp_error_set(
				error, -EINVAL,
				"mode sequential runs one client at a time, and the ranks of a job (client %s) "
				"would wait for each other for ever",
				config->workload->clients[i].name);
	}
	if (config->mode != GP_SIM_RESET)
		return 0;
	for (i = 0; i < config->workload->client_count; i++)
		top = config->workload->clients[i].priority > top ? config->workload->clients[i].priority : top;
	for (i = 0; i < config->workload->client_count; i++) {
		if (!config->workload->clients[i].idempotent && config->workload->clients[i].priority < top)
			return gp_error_set(error, -EINVAL,
					    "mode reset kills kernels and runs them again, which is only right "
					    "for idempotent ones; the mix does not say that client %s is idempotent",
					    config->workload->clients[i].name);
	}
	return 0;
}

int gp_sim_create(const struct gp_sim_config *config, struct gp_sim **ret_sim, struct gp_error *error)
{
	struct gp_sim *sim;
	int ret;

	ret = engine_check_config(config, error);
	if (ret)
		return ret;
	sim = calloc(1, sizeof(*sim));
	if (!sim)
		return gp_error_set(error, -ENOMEM, "out of memory");
	sim->config = *config;
	ret = engine_init(sim, error);
	if (ret) {
		gp_sim_destroy(sim);
		return ret;
	}
	*ret_sim = sim;
	return 0;
}

void gp_sim_destroy(struct gp_sim *sim)
{
	uint32_t i;

	if (!sim)
		return;
	for (i = 0; i < sim->client_count; i++)
		gp_sim_process_fini(&sim->clients[i]);
	for (i = 0; i < sim->queue_count; i++)
		free(sim->queues[i].ring);
	for (i = 0; i < sim->job_capacity; i++)
		free(sim->jobs[i].signals);
	gp_sim_account_fini(sim);
	gp_sim_apply_fini(sim);
	for (i = 0; i < sim->device_count; i++) {
		gp_gpu_destroy(sim->devices[i].gpu);
		free(sim->devices[i].queue_of);
	}
	free(sim->devices);
	free(sim->clients);
	free(sim->queues);
	free(sim->jobs);
	free(sim->meetings);
	free(sim->core_memory);
	free(sim->queue_of_core);
	free(sim->turn_jobs);
	free(sim->faults);
	free(sim->graves);
	free(sim->record.slices);
	free(sim->record.marks);
	gp_sim_heap_fini(&sim->heap);
	free(sim);
}
