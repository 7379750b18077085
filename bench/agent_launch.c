/* SPDX-License-Identifier: MIT */
/*
 * Launches per second of an HSA program: packets and doorbells as fast as one thread makes them, in bursts that fit the
 * queue; the time is the producer's. Prints ns per launch, the tenth percentile of the bursts (the machine has other
 * work). bench/agent-launches runs it with and without the agent.
 */
#include <hsa/hsa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BURST  1000u
#define BURSTS 201u

static hsa_agent_t gpu;

static hsa_status_t find_gpu(hsa_agent_t agent, void *data)
{
	hsa_device_type_t type;

	(void)data;
	if (hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type) == HSA_STATUS_SUCCESS &&
	    type == HSA_DEVICE_TYPE_GPU)
		gpu = agent;
	return HSA_STATUS_SUCCESS;
}

static void launch(hsa_queue_t *queue, hsa_signal_t signal)
{
	uint64_t index = hsa_queue_add_write_index_screlease(queue, 1);
	hsa_barrier_and_packet_t *packet = (hsa_barrier_and_packet_t *)queue->base_address + index % queue->size;

	memset((char *)packet + 4, 0, sizeof(*packet) - 4u);
	packet->completion_signal = signal;
	__atomic_store_n((uint32_t *)(void *)packet, HSA_PACKET_TYPE_BARRIER_AND | 1u << HSA_PACKET_HEADER_BARRIER,
			 __ATOMIC_RELEASE);
	hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)index);
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(void)
{
	static double bursts[BURSTS];
	hsa_signal_t none = { 0 }, done;
	hsa_queue_t *queue;

	if (hsa_init() != HSA_STATUS_SUCCESS || hsa_iterate_agents(find_gpu, NULL) != HSA_STATUS_SUCCESS ||
	    !gpu.handle ||
	    hsa_queue_create(gpu, 4096, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue) !=
		    HSA_STATUS_SUCCESS ||
	    hsa_signal_create(1, 0, NULL, &done) != HSA_STATUS_SUCCESS) {
		fprintf(stderr, "no HSA here\n");
		return 1;
	}
	for (unsigned i = 0; i < BURSTS; i++) {
		double start = now_ns();

		for (unsigned j = 0; j < BURST; j++)
			launch(queue, none);
		bursts[i] = (now_ns() - start) / BURST;
		hsa_signal_store_relaxed(done, 1);
		launch(queue, done);
		while (hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX,
						 HSA_WAIT_STATE_BLOCKED) != 0)
			;
	}
	qsort(bursts, BURSTS, sizeof(bursts[0]), compare);
	printf("%.1f\n", bursts[BURSTS / 10u]);
	hsa_queue_destroy(queue);
	hsa_shut_down();
	return 0;
}
