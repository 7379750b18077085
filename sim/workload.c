/* SPDX-License-Identifier: MIT */
/* Owns the description of work: growing it, checking it, and drawing arrivals from it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <gpreempt/sched.h>
#include "sim/state.h"
#include "sim/workload.h"

/* Doubles at powers of two, so that no capacity needs to be kept beside each count. */
static int workload_grow(void *array_pointer, uint32_t count, uint32_t count_max, size_t size)
{
	void **array = array_pointer;
	uint32_t capacity;
	void *grown;

	if (count >= count_max)
		return -ENOSPC;
	if (count && (count & (count - 1)))
		return 0;
	capacity = count ? count * 2 : 1;
	grown = realloc(*array, (size_t)capacity * size);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	return 0;
}

struct gp_work_client *gp_workload_add_client(struct gp_workload *workload)
{
	struct gp_work_client *client;

	if (workload_grow(&workload->clients, workload->client_count, GP_WORK_CLIENT_MAX, sizeof(*client)))
		return NULL;
	client = &workload->clients[workload->client_count++];
	*client = (struct gp_work_client){ .devices = 1, .queue_count = 1, .depth = 2, .priority = GP_PRIORITY_NORMAL };
	return client;
}

uint32_t gp_workload_add_sequence(struct gp_workload *workload)
{
	if (workload_grow(&workload->sequences, workload->sequence_count, GP_WORK_SEQUENCE_MAX,
			  sizeof(*workload->sequences)))
		return UINT32_MAX;
	workload->sequences[workload->sequence_count] = (struct gp_work_sequence){ 0 };
	return workload->sequence_count++;
}

struct gp_work_step *gp_workload_add_step(struct gp_workload *workload, uint32_t sequence)
{
	struct gp_work_sequence *seq = &workload->sequences[sequence];
	struct gp_work_step *step;

	if (workload_grow(&seq->steps, seq->step_count, GP_WORK_STEP_MAX, sizeof(*step)))
		return NULL;
	step = &seq->steps[seq->step_count++];
	*step = (struct gp_work_step){ .repeat = 1, .device = UINT32_MAX };
	return step;
}

struct gp_work_request *gp_workload_add_request(struct gp_work_client *client)
{
	struct gp_work_request *request;

	if (workload_grow(&client->requests, client->request_count, GP_WORK_ARRIVAL_MAX, sizeof(*request)))
		return NULL;
	request = &client->requests[client->request_count++];
	*request = (struct gp_work_request){ .size = { 1, 1 } };
	return request;
}

void gp_workload_fini(struct gp_workload *workload)
{
	uint32_t i;

	for (i = 0; i < workload->client_count; i++)
		free(workload->clients[i].requests);
	for (i = 0; i < workload->sequence_count; i++)
		free(workload->sequences[i].steps);
	free(workload->clients);
	free(workload->sequences);
	*workload = (struct gp_workload){ 0 };
}

struct gp_gpu_kernel gp_workload_full_kernel(const struct gp_desc *desc, uint32_t rounds, uint64_t kernel_ns)
{
	struct gp_gpu_kernel kernel = { .workgroup_ns = kernel_ns / rounds, .waves = 4, .vgprs = 128, .workgroups = 1 };
	uint32_t capacity;

	if (!kernel.workgroup_ns)
		kernel.workgroup_ns = 1;
	capacity = gp_gpu_capacity(desc, &kernel);
	kernel.workgroups = capacity && capacity <= UINT32_MAX / rounds ? capacity * rounds : rounds;
	return kernel;
}

static int workload_check_kernel(const struct gp_gpu_kernel *kernel, const struct gp_desc *desc, const char *name,
				 uint32_t number, struct gp_error *error)
{
	if (!kernel->workgroups || !kernel->workgroup_ns || kernel->workgroup_ns > GP_WORK_NS_MAX)
		return gp_error_set(error, -EINVAL,
				    "client %s, step %u: a kernel needs at least one workgroup of 1 ns to 1 h", name,
				    number);
	if (!kernel->waves || kernel->waves > 16 || !kernel->vgprs || kernel->vgprs > 512)
		return gp_error_set(error, -EINVAL, "client %s, step %u: waves must be 1 to 16 and vgprs 1 to 512",
				    name, number);
	if (!gp_gpu_capacity(desc, kernel))
		return gp_error_set(error, -EINVAL,
				    "client %s, step %u: no compute unit of %s holds one such workgroup "
				    "(%u waves, %u registers, %u bytes of LDS)",
				    name, number, desc->name, kernel->waves, kernel->vgprs, kernel->lds_size);
	return 0;
}

static int workload_check_step(const struct gp_workload *workload, const struct gp_work_client *client, uint32_t number,
			       const struct gp_desc *desc, struct gp_error *error)
{
	const struct gp_work_sequence *seq = &workload->sequences[client->sequence];
	const struct gp_work_step *step = &seq->steps[number], *other;
	uint32_t i;

	if (!step->repeat || step->repeat > GP_WORK_REPEAT_MAX)
		return gp_error_set(error, -EINVAL, "client %s, step %u: repeat must be 1 to %u", client->name,
				    number + 1, GP_WORK_REPEAT_MAX);
	if (step->queue >= client->queue_count)
		return gp_error_set(error, -EINVAL, "client %s, step %u: queue %u, but the client has %u", client->name,
				    number + 1, step->queue, client->queue_count);
	if (step->device != UINT32_MAX &&
	    (step->device >= (uint32_t)__builtin_popcountll(client->devices) || step->type == GP_STEP_COLLECTIVE))
		return gp_error_set(error, -EINVAL,
				    "client %s, step %u: device %u: the client has %d, and a collective uses all",
				    client->name, number + 1, step->device, __builtin_popcountll(client->devices));
	for (i = 0; i < GP_WORK_DEPS; i++) {
		if (!step->deps[i])
			continue;
		if (step->deps[i] > number)
			return gp_error_set(error, -EINVAL,
					    "client %s, step %u: waits for step %u, which is not before it",
					    client->name, number + 1, step->deps[i]);
		other = &seq->steps[step->deps[i] - 1];
		/* Signals belong to one device; work on several meets in a collective. */
		if (other->device != step->device && other->device != UINT32_MAX)
			return gp_error_set(error, -EINVAL,
					    "client %s, step %u: waits for step %u on another device; use a "
					    "collective",
					    client->name, number + 1, step->deps[i]);
	}
	if (step->type != GP_STEP_COPY)
		return workload_check_kernel(&step->kernel, desc, client->name, number + 1, error);
	if (!step->copy_size || step->copy_size > (1ull << 50))
		return gp_error_set(error, -EINVAL, "client %s, step %u: a copy has 1 byte to 1 PiB", client->name,
				    number + 1);
	return 0;
}

static int workload_check_arrivals(const struct gp_workload *workload, const struct gp_work_client *client,
				   struct gp_error *error)
{
	uint32_t i, step_count = workload->sequences[client->sequence].step_count;
	const struct gp_work_request *request;

	if (client->kind == GP_WORK_BATCH) {
		if (!client->depth || client->depth > GP_GPU_RING_MAX)
			return gp_error_set(error, -EINVAL, "client %s: depth must be 1 to %u", client->name,
					    GP_GPU_RING_MAX);
		return 0;
	}
	if ((client->arrival == GP_ARRIVAL_POISSON || client->arrival == GP_ARRIVAL_PERIODIC) &&
	    (!client->period_ns || client->period_ns > GP_WORK_NS_MAX))
		return gp_error_set(error, -EINVAL, "client %s: the time between two requests must be 1 ns to 1 h",
				    client->name);
	if (client->think_ns > GP_WORK_NS_MAX || client->pause_ns > GP_WORK_NS_MAX ||
	    client->hint_ns > GP_WORK_NS_MAX || client->deadline_ns > GP_WORK_NS_MAX)
		return gp_error_set(error, -EINVAL, "client %s: think, pause, hint and deadline are at most 1 h",
				    client->name);
	if ((client->session || client->pause_ns) && client->arrival != GP_ARRIVAL_CLOSED)
		return gp_error_set(error, -EINVAL, "client %s: only a closed loop has sessions and pauses",
				    client->name);
	if (client->burst > GP_WORK_BURST_MAX || (client->burst > 1 && client->arrival == GP_ARRIVAL_CLOSED))
		return gp_error_set(error, -EINVAL,
				    "client %s: a burst has at most %u requests, and a closed loop has none",
				    client->name, GP_WORK_BURST_MAX);
	if (client->arrival != GP_ARRIVAL_EXPLICIT)
		return 0;
	if (!client->request_count)
		return gp_error_set(error, -EINVAL, "client %s: no arrivals", client->name);
	for (i = 0; i < client->request_count; i++) {
		request = &client->requests[i];
		if (request->offset_ns > 1000 * GP_WORK_NS_MAX || (i && request->offset_ns < request[-1].offset_ns))
			return gp_error_set(error, -EINVAL,
					    "client %s: arrival %u is earlier than arrival %u, or later than 1000 h",
					    client->name, i + 1, i);
		if (!request->step_count || request->first_step >= step_count ||
		    request->step_count > step_count - request->first_step)
			return gp_error_set(error, -EINVAL, "client %s: arrival %u has steps that are not there",
					    client->name, i + 1);
	}
	return 0;
}

static int workload_check_client(const struct gp_workload *workload, const struct gp_work_client *client,
				 const struct gp_desc *desc, struct gp_error *error)
{
	uint32_t i;
	int ret;

	if (client->priority < 0 || client->priority > GP_PRIORITY_MAX)
		return gp_error_set(error, -EINVAL, "client %s: priority must be 0 to %d (99 = most urgent)",
				    client->name, GP_PRIORITY_MAX);
	if (client->weight > GP_WEIGHT_MAX)
		return gp_error_set(error, -EINVAL, "client %s: weight must be 1 to %u", client->name, GP_WEIGHT_MAX);
	if (client->floor_permille >= 1000)
		return gp_error_set(error, -EINVAL, "client %s: a share is below 100%%", client->name);
	if (!client->devices || (workload->device_count < 64 && client->devices >> workload->device_count))
		return gp_error_set(error, -EINVAL,
				    "client %s: it uses a device that does not exist; this run has %u, "
				    "numbered from 0 (devices of [mix], or --devices)",
				    client->name, workload->device_count);
	if (!client->queue_count || client->queue_count > GP_WORK_QUEUE_MAX)
		return gp_error_set(error, -EINVAL, "client %s: queues must be 1 to %u", client->name,
				    GP_WORK_QUEUE_MAX);
	if (client->ring_size && (client->ring_size < 4 || client->ring_size > GP_GPU_RING_MAX ||
				  (client->ring_size & (client->ring_size - 1))))
		return gp_error_set(error, -EINVAL, "client %s: ring must be a power of two from 4 to %u", client->name,
				    GP_GPU_RING_MAX);
	if (client->gang >= GP_GANG_MAX)
		return gp_error_set(error, -EINVAL, "client %s: gang must be below %u", client->name, GP_GANG_MAX);
	if (client->start_ns > GP_WORK_NS_MAX)
		return gp_error_set(error, -EINVAL, "client %s: start is at most 1 h", client->name);
	if (client->sequence >= workload->sequence_count || !workload->sequences[client->sequence].step_count)
		return gp_error_set(error, -EINVAL, "client %s: has no steps", client->name);
	for (i = 0; i < workload->sequences[client->sequence].step_count; i++) {
		ret = workload_check_step(workload, client, i, desc, error);
		if (ret)
			return ret;
	}
	return workload_check_arrivals(workload, client, error);
}

static uint64_t workload_collectives(const struct gp_workload *workload, const struct gp_work_client *client)
{
	const struct gp_work_sequence *seq = &workload->sequences[client->sequence];
	uint64_t count = 0;
	uint32_t i;

	for (i = 0; i < seq->step_count; i++)
		count += seq->steps[i].type == GP_STEP_COLLECTIVE ? seq->steps[i].repeat : 0;
	return count;
}

/* The ranks of a job meet in as many collectives in each of their requests: else one would wait for ever. */
static int workload_check_ranks(const struct gp_workload *workload, const struct gp_work_client *client,
				struct gp_error *error)
{
	const struct gp_work_sequence *seq = &workload->sequences[client->sequence];
	uint64_t members = 0;
	uint32_t i;

	for (i = 0; i < seq->step_count; i++)
		if (seq->steps[i].type == GP_STEP_COLLECTIVE && seq->steps[i].repeat_by)
			return gp_error_set(error, -EINVAL,
					    "client %s, step %u: a collective of several clients cannot be repeated by "
					    "what a request says of itself",
					    client->name, i + 1);
	for (i = 0; i < workload->client_count; i++) {
		const struct gp_work_client *other = &workload->clients[i];

		if (other->meets != client->meets)
			continue;
		members += (uint64_t)__builtin_popcountll(other->devices);
		if (workload_collectives(workload, other) != workload_collectives(workload, client))
			return gp_error_set(error, -EINVAL,
					    "clients %s and %s are ranks of one job (meets = %u), but one has more "
					    "collectives than the other",
					    client->name, other->name, client->meets);
	}
	if (members > GP_WORK_RANK_MAX)
		return gp_error_set(error, -EINVAL, "the job of client %s has more than %u ranks", client->name,
				    GP_WORK_RANK_MAX);
	return 0;
}

int gp_workload_check(const struct gp_workload *workload, const struct gp_desc *desc, struct gp_error *error)
{
	uint64_t queues = 0;
	uint32_t i;
	int ret;

	if (!workload->client_count)
		return gp_error_set(error, -EINVAL, "the mix has no clients");
	if (!workload->device_count || workload->device_count > GP_WORK_DEVICE_MAX)
		return gp_error_set(error, -EINVAL, "the number of devices must be 1 to %u", GP_WORK_DEVICE_MAX);
	for (i = 0; i < workload->client_count; i++) {
		ret = workload_check_client(workload, &workload->clients[i], desc, error);
		if (ret)
			return ret;
		queues += (uint64_t)workload->clients[i].queue_count + 2;
	}
	for (i = 0; i < workload->client_count; i++) {
		ret = workload->clients[i].meets ? workload_check_ranks(workload, &workload->clients[i], error) : 0;
		if (ret)
			return ret;
	}
	if (queues > GP_GPU_QUEUE_MAX)
		return gp_error_set(error, -EINVAL, "more queues than the limit of %u", GP_GPU_QUEUE_MAX);
	return 0;
}

void gp_workload_rng(uint64_t seed, uint32_t client_count, struct gp_rng *ret_rngs)
{
	struct gp_rng master;
	uint32_t i;

	gp_rng_init(&master, seed);
	for (i = 0; i < client_count; i++)
		gp_rng_init(&ret_rngs[i], gp_rng_fork(&master));
}

uint64_t gp_workload_first_gap_ns(const struct gp_work_client *client, struct gp_rng *rng)
{
	/* A random phase: periodic services that all began at 0 would meet at every period, for ever. */
	if (client->arrival == GP_ARRIVAL_PERIODIC)
		return gp_rng_below(rng, client->period_ns);
	return client->arrival == GP_ARRIVAL_POISSON ? gp_workload_next_gap_ns(client, rng) : 0;
}

uint64_t gp_workload_next_gap_ns(const struct gp_work_client *client, struct gp_rng *rng)
{
	uint64_t gap_ns;

	if (client->arrival == GP_ARRIVAL_PERIODIC)
		return client->period_ns;
	gap_ns = gp_rng_exponential(rng, client->period_ns);
	return gap_ns ? gap_ns : 1;
}

uint64_t gp_workload_duration_ns(const struct gp_workload *workload, uint64_t seed)
{
	const struct gp_work_client *client;
	struct gp_rng master, rng;
	uint64_t time_ns;
	uint32_t i, n;

	if (workload->duration_ns)
		return workload->duration_ns;
	gp_rng_init(&master, seed);
	for (i = 0; i < workload->client_count; i++) {
		client = &workload->clients[i];
		gp_rng_init(&rng, gp_rng_fork(&master));
		if (client->kind != GP_WORK_SERVICE || client->arrival == GP_ARRIVAL_CLOSED)
			continue;
		if (client->arrival == GP_ARRIVAL_EXPLICIT)
			return client->start_ns + client->requests[client->request_count - 1].offset_ns + 1000000000ull;
		time_ns = client->start_ns + gp_workload_first_gap_ns(client, &rng);
		for (n = 1; n < workload->request_target; n++)
			time_ns += gp_workload_next_gap_ns(client, &rng);
		return time_ns + 1;
	}
	return 10000000000ull;
}
