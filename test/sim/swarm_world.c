/* SPDX-License-Identifier: MIT */
/*
 * Owns the worlds: a device, a policy with its parameters, and clients with their work, all drawn from a seed. Every
 * world is valid (the simulator's own check refuses it otherwise, which fails the run) and small: a tenth of a second
 * of device time.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "lib/paths.h"
#include "test/sim/swarm.h"

#define US 1000ull
#define MS 1000000ull

static uint64_t world_between(struct gp_rng *rng, uint64_t low, uint64_t high)
{
	return low + gp_rng_below(rng, high - low + 1);
}

static bool world_chance(struct gp_rng *rng, uint32_t permille)
{
	return gp_rng_below(rng, 1000) < permille;
}

static void world_set(struct gp_desc *desc, enum gp_desc_key key, int64_t value)
{
	desc->values[key].value = desc->values[key].min = desc->values[key].max = value;
}

static int world_draw_device(struct swarm_world *world, struct gp_rng *rng, struct gp_error *error)
{
	static const char *const names[] = { "mi300x", "mi300x", "mi308x", "mi50", "h200", "mi300x" };
	uint64_t drawn = gp_rng_below(rng, sizeof(names) / sizeof(names[0])), pick = world->is_self ? 4 : drawn;
	char relative[64], path[512];
	int64_t pipes;
	int ret;

	if (world->has_ranks && pick == 4)
		pick = 0;

	snprintf(relative, sizeof(relative), "devices/%s.ini", names[pick]);
	ret = gp_paths_share(relative, path, sizeof(path));
	if (ret)
		return gp_error_set(error, ret, "there is no %s in the data tree", relative);
	ret = gp_desc_load(path, &world->desc, error);
	if (ret)
		return ret;
	if (gp_desc_get(&world->desc, GP_DESC_SCHEDULER) == GP_SCHEDULER_TSG)
		return 0;
	if (pick == 5) /* an imagined MI300X with a MES firmware: transactions that halt nobody else */
		world_set(&world->desc, GP_DESC_SCHEDULER, GP_SCHEDULER_MES);
	pipes = gp_desc_get(&world->desc, GP_DESC_PIPE_COUNT);
	/* Few slots, but not so few that queues which are never parked fill them: an oversubscribed device is the
	 * model's own test. */
	if (world_chance(rng, 400) && !world->has_ranks)
		world_set(&world->desc, GP_DESC_SLOT_COUNT, pipes * (int64_t)world_between(rng, 2, 3));
	return 0;
}

static bool world_is_tsg(const struct swarm_world *world)
{
	return gp_desc_get(&world->desc, GP_DESC_SCHEDULER) == GP_SCHEDULER_TSG;
}

static bool world_has_few_slots(const struct swarm_world *world)
{
	return !world_is_tsg(world) && gp_desc_get(&world->desc, GP_DESC_SLOT_COUNT) < 20;
}

/* What ends in quarantine stays open for ever. Where slots are few it fills them, and then the device is
 * oversubscribed; on a self-switching device it is a second lower context beside the turn holder, and the two leave
 * each other no time. Neither is what is looked at here. */
bool swarm_world_can_quarantine(const struct swarm_world *world)
{
	return world->is_self || (!world_is_tsg(world) && !world_has_few_slots(world));
}

static void world_draw_param(struct swarm_world *world, struct gp_rng *rng)
{
	struct gp_sim_config *config = &world->config;

	config->param = (struct gp_param){
		.turn_ns = world_between(rng, 1, 20) * MS,
		.min_open_ns = world_chance(rng, 500) ? 0 : world_between(rng, 10, 1000) * US,
		.linger_max_ns = world_chance(rng, 300) ? 0 : world_between(rng, 1, 5000) * US,
		.age_window_ns = world_between(rng, 10, 80) * MS,
		.age_turn_ns = world_between(rng, 500, 5000) * US,
		.hint_grace_ns = world_between(rng, 100, 3000) * US,
		.overhead_permille = world_chance(rng, 300) ? 1000 : (uint32_t)world_between(rng, 20, 400),
		.burst = (uint32_t)world_between(rng, 1, 32),
		.batch_clients = world_chance(rng, 600) ? 0 : (uint32_t)world_between(rng, 1, 3),
		.fail_max = world_chance(rng, 500) ? 0 : (uint32_t)world_between(rng, 1, 4),
	};
}

static void world_draw_config(struct swarm_world *world, struct gp_rng *rng)
{
	static const char *const policies[] = { "hpf", "hpf", "hpf", "hpf", "edf", "edf", "rr", "wfq", "drf", "none" };
	static const uint64_t costs[] = { 0, 60 * US, 150 * US, 150 * US, 500 * US };
	static const enum gp_unit units[] = { GP_UNIT_PROCESS, GP_UNIT_PROCESS, GP_UNIT_DEVICE, GP_UNIT_QUEUE };
	struct gp_sim_config *config = &world->config;

	*config = (struct gp_sim_config){
		.workload = &world->workload,
		.desc = &world->desc,
		.mode = GP_SIM_CORE,
		.device_count = world_chance(rng, 350) ? (uint32_t)world_between(rng, 2, 3) : 1,
		.policy = policies[gp_rng_below(rng, 10)],
		.unit = units[gp_rng_below(rng, 4)],
		.gate_cost_ns = costs[gp_rng_below(rng, 5)],
		.dilate = world_chance(rng, 200) ? (uint32_t)world_between(rng, 2, 10) : 0,
		.notice_ns = GP_SIM_DEFAULT_NS,
		.decide_ns = GP_SIM_DEFAULT_NS,
		.sample_ns = GP_SIM_DEFAULT_NS,
		.rptr_at_fetch = world_chance(rng, 300),
		.no_arrivals_limit = true,
		.no_recording = true,
		.trace_count = 8192,
	};
	if (world_chance(rng, 300)) {
		config->notice_ns = world_between(rng, 0, 50) * US;
		config->decide_ns = world_between(rng, 0, 50) * US;
		config->sample_ns = world_between(rng, 1, 200) * US;
	}
	/* Without a scheduler slices of two devices need never meet, and then a collective never does. */
	if (!strcmp(config->policy, "none") && world_has_few_slots(world))
		world_set(&world->desc, GP_DESC_SLOT_COUNT, 24);
	world_draw_param(world, rng);
}

/* A kernel of about this much device time, if it had the device for itself. */
static struct gp_gpu_kernel world_draw_kernel(const struct gp_desc *desc, struct gp_rng *rng, uint64_t kernel_ns)
{
	struct gp_gpu_kernel kernel = gp_workload_full_kernel(desc, (uint32_t)world_between(rng, 1, 8), kernel_ns);

	if (world_chance(rng, 300))
		kernel.workgroups = (uint32_t)world_between(rng, 1, kernel.workgroups);
	if (world_chance(rng, 200)) {
		kernel.waves = (uint32_t)world_between(rng, 1, 8);
		kernel.vgprs = (uint32_t)world_between(rng, 16, 128);
		kernel.lds_size = (uint32_t)world_between(rng, 0, 16384);
	}
	return kernel;
}

static int world_draw_steps(struct swarm_world *world, struct gp_rng *rng, struct gp_work_client *client,
			    uint64_t job_ns)
{
	uint32_t i, count = (uint32_t)world_between(rng, 1, 4), sequence = gp_workload_add_sequence(&world->workload);
	bool copies = world_chance(rng, 300),
	     collective = __builtin_popcountll(client->devices) > 1 && world_chance(rng, 700);
	struct gp_work_step *step;

	if (sequence == UINT32_MAX)
		return -ENOMEM;
	client->sequence = sequence;
	for (i = 0; i < count; i++) {
		step = gp_workload_add_step(&world->workload, sequence);
		if (!step)
			return -ENOMEM;
		step->queue = (uint32_t)gp_rng_below(rng, client->queue_count);
		step->repeat = world_chance(rng, 200) ? 2 : 1;
		step->kernel = world_draw_kernel(&world->desc, rng, job_ns / count / step->repeat + 1);
		if (i && world_chance(rng, 500))
			step->deps[0] = (uint32_t)world_between(rng, 1, i);
		if (copies && (i == 0 || world_chance(rng, 200))) {
			step->type = GP_STEP_COPY;
			step->copy_size = world_between(rng, 1, 16) << world_between(rng, 10, 20);
			step->to_host = world_chance(rng, 300);
		} else if (collective && (i == count - 1 || world_chance(rng, 300))) {
			/* As collectives are: few workgroups, and in one order on every device. Two that fill the
			 * device, or that start in another order on another device, would wait for each other for ever
			 * on any GPU. */
			step->type = GP_STEP_COLLECTIVE;
			step->queue = 0;
			step->kernel.workgroups = (uint32_t)world_between(rng, 1, 8);
			step->kernel.waves = 4;
			step->kernel.vgprs = 64;
		}
	}
	return 0;
}

static void world_draw_arrivals(struct gp_rng *rng, struct gp_work_client *client, uint64_t job_ns)
{
	uint64_t permille = world_between(rng, 30, 400), at_ns = 0;
	struct gp_work_request *request;
	uint32_t i, count;

	client->kind = GP_WORK_SERVICE;
	client->period_ns = job_ns * 1000 / permille + 1;
	client->hint_ns = world_chance(rng, 250) ? world_between(rng, 20, 2000) * US : 0;
	if (world_chance(rng, 300))
		client->deadline_ns = world_between(rng, 1, 50) * MS;
	if (client->deadline_ns && world_chance(rng, 500))
		client->budget_ns = job_ns;
	switch (gp_rng_below(rng, 4)) {
	case 0: client->arrival = GP_ARRIVAL_PERIODIC; break;
	case 1:
		client->arrival = GP_ARRIVAL_CLOSED;
		client->think_ns = world_between(rng, 0, 5000) * US;
		break;
	case 2: /* bursts */
		client->arrival = GP_ARRIVAL_EXPLICIT;
		count = (uint32_t)world_between(rng, 2, 30);
		for (i = 0; i < count; i++) {
			request = gp_workload_add_request(client);
			if (!request)
				return;
			at_ns += world_chance(rng, 700) ? gp_rng_below(rng, 100 * US) :
							  gp_rng_below(rng, 8 * client->period_ns);
			request->offset_ns = at_ns;
			request->step_count = 1; /* the whole sequence, once it is known */
		}
		break;
	default: client->arrival = GP_ARRIVAL_POISSON; break;
	}
}

/* Queues of one process on several devices are a gang; so may be single-device processes that work together. */
static void world_draw_place(struct swarm_world *world, struct gp_rng *rng, struct gp_work_client *client,
			     uint32_t index)
{
	uint32_t devices = world->config.device_count;

	client->devices = 1ull << gp_rng_below(rng, devices);
	/* On a self-switching device a gang would be one of several lower contexts at once, which nothing there can
	 * run. */
	if (devices > 1 && world_chance(rng, 350) && !world_is_tsg(world)) {
		client->devices = world_between(rng, 1, (1ull << devices) - 1);
		if (__builtin_popcountll(client->devices) > 1)
			client->gang = index + 10;
	}
	if (devices > 1 && !client->gang && world_chance(rng, 150) && !world_is_tsg(world))
		client->gang = 1;
	if (client->gang || client->unseen) /* never parked: they must leave slots */
		client->queue_count = (uint32_t)world_between(rng, 1, 2);
	if (client->gang)
		client->deadline_ns = client->budget_ns = 0;
	/* With a deadline each queue has an urgency of its own, which it lends to its siblings while it has work or
	 * announced some; the checkers do not follow announcements. */
	if (client->deadline_ns)
		client->hint_ns = 0;
}

static int world_draw_client(struct swarm_world *world, struct gp_rng *rng, uint32_t index)
{
	static const int32_t priorities[] = { 0, 20, 20, 50, 50, 80, 80, 99 };
	struct gp_work_client *client = gp_workload_add_client(&world->workload);
	uint64_t job_ns;
	uint32_t i;
	int ret;

	if (!client)
		return -ENOMEM;
	snprintf(client->name, sizeof(client->name), "c%u", index);
	client->priority = world_chance(rng, 700) ? priorities[gp_rng_below(rng, 8)] :
						    (int32_t)gp_rng_below(rng, GP_PRIORITY_MAX + 1);
	client->weight = world_chance(rng, 500) ? 0 : (uint32_t)world_between(rng, 1, 1000);
	client->queue_count =
		world_chance(rng, 700) ? (uint32_t)world_between(rng, 1, 2) : (uint32_t)world_between(rng, 3, 6);
	client->ring_size = world_chance(rng, 100) ? 8 : 64;
	client->spread = world_chance(rng, 300) && world->config.device_count == 1;
	client->unseen = world_chance(rng, 80) && index < 2; /* never parked: they must leave slots */
	client->memory_size = gp_rng_below(rng, 16ull << 30);
	client->start_ns = world_chance(rng, 300) ? gp_rng_below(rng, 20 * MS) : 0;
	job_ns = world_chance(rng, 500) ? world_between(rng, 20, 500) * US : world_between(rng, 1, 5) * MS;
	if (world_chance(rng, 450)) {
		client->kind = GP_WORK_BATCH;
		client->depth = (uint32_t)world_between(rng, 1, 8);
		job_ns *= 2;
	} else {
		world_draw_arrivals(rng, client, job_ns);
	}
	world_draw_place(world, rng, client, index);
	ret = world_draw_steps(world, rng, client, job_ns);
	for (i = 0; i < client->request_count; i++)
		client->requests[i].step_count = world->workload.sequences[client->sequence].step_count;
	return ret;
}

uint64_t swarm_world_job_ns(const struct swarm_world *world, uint32_t index)
{
	const struct gp_work_sequence *seq = &world->workload.sequences[world->workload.clients[index].sequence];
	const struct gp_work_step *step;
	uint64_t total_ns = 0;
	uint32_t i, capacity;

	for (i = 0; i < seq->step_count; i++) {
		step = &seq->steps[i];
		capacity = gp_gpu_capacity(&world->desc, &step->kernel);
		if (step->type == GP_STEP_COPY)
			total_ns +=
				step->repeat * (step->copy_size * 1000000000 /
							(uint64_t)gp_desc_get(&world->desc, GP_DESC_COPY_BANDWIDTH) +
						20 * US);
		else
			total_ns += step->repeat *
				    ((step->kernel.workgroups + capacity - 1) / capacity * step->kernel.workgroup_ns +
				     20 * US);
	}
	return total_ns;
}

/* Long enough for the longest plan there can be, most of the time; else the core gives up on plans that are still
 * carried out. */
static uint64_t world_ack_timeout_ns(const struct swarm_world *world, struct gp_rng *rng)
{
	uint64_t queues = 4, gate_ns = world->config.gate_cost_ns ? world->config.gate_cost_ns : 400 * US;
	uint32_t i;

	if (world_chance(rng, 100) && swarm_world_can_quarantine(world))
		return world_between(rng, 1, 3) * MS;
	for (i = 0; i < world->workload.client_count; i++)
		queues += world->workload.clients[i].queue_count + 2;
	return 2 * queues * gate_ns + world_between(rng, 1, 10) * MS;
}

static void world_describe(struct swarm_world *world)
{
	static const char *const units[] = { "device", "process", "queue" };
	static const char *const schedulers[] = { "cpsch", "mes", "tsg" };
	const struct gp_sim_config *config = &world->config;

	snprintf(
		world->text, sizeof(world->text),
		"%u x %s (%s), %s, unit %s, gate %llu us, counters at %s, %u clients, %llu ms, %u faults, acks lost/late/doubled %u/%u/%u per mille",
		config->device_count, world->desc.name, schedulers[gp_desc_get(&world->desc, GP_DESC_SCHEDULER)],
		config->policy, units[config->unit], (unsigned long long)(config->gate_cost_ns / US),
		config->rptr_at_fetch ? "fetch" : "completion", world->workload.client_count,
		(unsigned long long)(world->calm_ns / MS), world->fault_count, world->ack.drop, world->ack.late,
		world->ack.copy);
}

/* Claims work as soon as it is there, at the lowest priority, and never has any. */
static int world_draw_liar(struct swarm_world *world, struct gp_rng *rng, uint32_t index)
{
	struct gp_work_client *client = gp_workload_add_client(&world->workload);
	uint32_t sequence = gp_workload_add_sequence(&world->workload);
	struct gp_work_step *step = sequence == UINT32_MAX ? NULL : gp_workload_add_step(&world->workload, sequence);
	struct gp_work_request *request = client ? gp_workload_add_request(client) : NULL;

	if (!step || !request)
		return -ENOMEM;
	snprintf(client->name, sizeof(client->name), "f%u", index);
	client->claims = true;
	client->priority = GP_PRIORITY_IDLE;
	client->kind = GP_WORK_SERVICE;
	client->arrival = GP_ARRIVAL_EXPLICIT;
	client->sequence = sequence;
	client->queue_count = (uint32_t)world_between(rng, 1, 2);
	client->devices = 1ull << gp_rng_below(rng, world->config.device_count);
	client->start_ns = gp_rng_below(rng, 20 * MS);
	step->repeat = 1;
	step->device = UINT32_MAX;
	step->kernel = gp_workload_full_kernel(&world->desc, 1, 100 * US);
	request->offset_ns = 1000000 * MS;
	request->step_count = 1;
	return 0;
}

static int world_draw_hostile(struct swarm_world *world, uint64_t seed)
{
	uint32_t i, users, liars, honest = world->workload.client_count;
	struct gp_rng rng;
	int ret = 0;

	gp_rng_init(&rng, seed ^ 0x6c696172u);
	users = (uint32_t)world_between(&rng, 1, SWARM_USER_MAX);
	liars = (uint32_t)world_between(&rng, 1, SWARM_LIAR_MAX);
	for (i = 0; i < liars && !ret; i++)
		ret = world_draw_liar(world, &rng, i);
	for (i = 0; i < honest + liars && !ret; i++)
		world->workload.clients[i].user =
			world_chance(&rng, i < honest ? 500 : 200) ? 0 : 1 + gp_rng_below(&rng, users);
	return ret;
}

static void world_draw_floors(struct swarm_world *world, uint64_t seed)
{
	struct gp_rng rng;
	uint32_t i;

	gp_rng_init(&rng, seed ^ 0x666c6f6fu);
	for (i = 0; i < world->workload.client_count; i++)
		if (world_chance(&rng, 500) && !world->workload.clients[i].gang)
			world->workload.clients[i].floor_permille = (uint32_t)world_between(&rng, 20, 400);
}

int swarm_world_init(struct swarm_world *world, uint64_t seed, enum swarm_kind kind, struct gp_error *error)
{
	struct gp_rng rng;
	uint32_t i, count;
	int ret;

	memset(world, 0, sizeof(*world));
	world->is_self = kind == SWARM_SELF;
	world->has_ranks = kind == SWARM_RANKS || kind == SWARM_ALONE;
	gp_rng_init(&rng, seed);
	ret = world_draw_device(world, &rng, error);
	if (ret)
		return ret;
	world_draw_config(world, &rng);
	if (world->has_ranks)
		world->config.device_count = 2 + (uint32_t)(seed % 3);
	world->config.seed = seed;
	world->workload.device_count = world->config.device_count;
	world->calm_ns = world_between(&rng, 40, 200) * MS;
	world->config.duration_ns = world->workload.duration_ns = world->calm_ns;
	snprintf(world->workload.name, sizeof(world->workload.name), "swarm");
	count = world_chance(&rng, 650) ? (uint32_t)world_between(&rng, 1, 5) :
					  (uint32_t)world_between(&rng, 6, SWARM_CLIENT_MAX);
	for (i = 0; i < count && !ret; i++)
		ret = world_draw_client(world, &rng, i);
	if (!ret && kind == SWARM_HOSTILE)
		ret = world_draw_hostile(world, seed);
	if (!ret && world->has_ranks)
		ret = swarm_world_draw_ranks(world, seed);
	if (!ret && kind == SWARM_ALONE)
		swarm_world_draw_alone(world, seed);
	if (!ret && kind == SWARM_FLOORS)
		world_draw_floors(world, seed);
	if (!ret)
		ret = swarm_world_draw_gather(world, seed, kind);
	if (ret) {
		swarm_world_fini(world);
		return gp_error_set(error, ret, "out of memory");
	}
	world->config.ack_timeout_ns = world_ack_timeout_ns(world, &rng);
	swarm_world_draw_faults(world, &rng);
	/* One that claims work for ever above others leaves them their aged turns only: nothing drains in time. */
	for (i = 0; i < world->fault_count; i++)
		if (world->workload.clients[world->faults[i].client].claims)
			world->faults[i].value = 0;
	/* What came later has a stream of its own, so that older seeds keep their worlds. */
	gp_rng_init(&rng, seed ^ 0x616765u);
	world->config.param.age_permille = world_chance(&rng, 500) ? 1000 : (uint32_t)world_between(&rng, 50, 800);
	gp_rng_init(&rng, seed ^ 0x72657374u);
	world->config.param.rest_ns = world_chance(&rng, 500) ? 0 : world_between(&rng, 200, 1500) * US;
	gp_rng_init(&rng, seed ^ 0x73746179u);
	if (world->is_self && world_chance(&rng, 500))
		world->config.param.protect = world_chance(&rng, 700) ? GP_PROTECT_LATENCY : GP_PROTECT_THROUGHPUT;
	world_describe(world);
	return 0;
}

void swarm_world_fini(struct swarm_world *world)
{
	gp_workload_fini(&world->workload);
}
