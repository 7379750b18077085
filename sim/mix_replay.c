/* SPDX-License-Identifier: MIT */
/* Owns replays: a recorded kernel trace as a client, and recorded request arrivals. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <gpreempt/sched.h>
#include "sim/mix_state.h"
#include "sim/arrivals.h"

/* The n-th different Queue_Id is stream n. */
static int replay_queue(uint64_t *ids, uint32_t *count, uint64_t id, struct gp_error *error)
{
	uint32_t i;

	for (i = 0; i < *count; i++) {
		if (ids[i] == id)
			return (int)i;
	}
	if (*count == GP_WORK_QUEUE_MAX)
		return gp_error_set(error, -EINVAL, "the trace uses more than %u queues", GP_WORK_QUEUE_MAX);
	ids[*count] = id;
	return (int)(*count)++;
}

static int replay_requests(struct gp_work_client *client, const struct gp_trace_kernels *kernels,
			   struct gp_error *error)
{
	struct gp_work_request *request;
	uint32_t i;

	for (i = 0; i < kernels->count; i++) {
		request = gp_workload_add_request(client);
		if (!request)
			return gp_error_set(error, -ENOSPC, "more than %u kernels in the trace", GP_WORK_ARRIVAL_MAX);
		request->offset_ns = kernels->kernels[i].start_ns - kernels->kernels[0].start_ns;
		request->first_step = i;
		request->step_count = 1;
	}
	return 0;
}

/* Kept timing: each kernel is a request of its own that arrives when it started in the trace. Back to back: the
 * whole trace is an iteration. The times in the trace are taken as if measured on the simulated device. */
int gp_mix_replay(struct gp_workload *workload, struct gp_work_client *client, const struct gp_trace_kernels *kernels,
		  const struct gp_desc *desc, bool back_to_back, struct gp_error *error)
{
	struct mix_list list = { .kernels = kernels };
	uint64_t ids[GP_WORK_QUEUE_MAX];
	uint32_t i, queue_count = 0;
	struct gp_work_step *step;
	int ret;

	client->sequence = gp_workload_add_sequence(workload);
	if (client->sequence == UINT32_MAX)
		return gp_error_set(error, -ENOSPC, "more than %u sequences", GP_WORK_SEQUENCE_MAX);
	ret = gp_mix_list_append(workload, client->sequence, &list, desc, error);
	if (ret)
		return ret;
	for (i = 0; i < kernels->count; i++) {
		ret = replay_queue(ids, &queue_count, kernels->kernels[i].queue, error);
		if (ret < 0)
			return ret;
		step = &workload->sequences[client->sequence].steps[i];
		step->queue = (uint32_t)ret;
		/* The trace says when, not what waited for what: streams are independent. */
		step->deps[0] = 0;
	}
	client->queue_count = queue_count;
	client->kind = back_to_back || !kernels->has_times ? GP_WORK_BATCH : GP_WORK_SERVICE;
	if (client->kind == GP_WORK_BATCH)
		return 0;
	client->arrival = GP_ARRIVAL_EXPLICIT;
	return replay_requests(client, kernels, error);
}

int gp_mix_add_trace(struct gp_workload *workload, const char *path, const struct gp_desc *desc, struct gp_error *error)
{
	struct gp_work_client client = { .devices = 1, .depth = 8, .priority = GP_PRIORITY_HIGH }, *added;
	struct gp_trace_kernels kernels;
	int ret;

	ret = gp_trace_kernels_load(path, &kernels, error);
	if (ret)
		return ret;
	snprintf(client.name, sizeof(client.name), "trace");
	ret = gp_mix_replay(workload, &client, &kernels, desc, false, error);
	if (!ret && client.request_count && !workload->client_count)
		workload->duration_ns = client.requests[client.request_count - 1].offset_ns + 100000000ull;
	gp_trace_kernels_fini(&kernels);
	added = ret ? NULL : gp_workload_add_client(workload);
	if (!added) {
		free(client.requests);
		return ret ? ret : gp_error_set(error, -ENOSPC, "more than %u clients", GP_WORK_CLIENT_MAX);
	}
	*added = client;
	return 0;
}

int gp_mix_arrivals(struct gp_work_client *client, const char *path, uint32_t speed_milli, uint32_t step_count,
		    struct gp_error *error)
{
	struct gp_trace_arrivals arrivals;
	struct gp_work_request *request;
	uint32_t i;
	int ret;

	ret = gp_trace_arrivals_load(path, &arrivals, error);
	if (ret)
		return ret;
	for (i = 0; !ret && i < arrivals.count; i++) {
		request = gp_workload_add_request(client);
		if (!request) {
			ret = gp_error_set(error, -ENOSPC, "more than %u arrivals", GP_WORK_ARRIVAL_MAX);
			continue;
		}
		request->offset_ns = (uint64_t)((unsigned __int128)arrivals.arrivals[i].offset_ns * 1000 / speed_milli);
		request->size[0] = arrivals.arrivals[i].context_tokens ? arrivals.arrivals[i].context_tokens : 1;
		request->size[1] = arrivals.arrivals[i].generated_tokens ? arrivals.arrivals[i].generated_tokens : 1;
		request->step_count = step_count;
	}
	gp_trace_arrivals_fini(&arrivals);
	return ret;
}
