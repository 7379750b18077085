/* SPDX-License-Identifier: MIT */
/*
 * Launches of an HSA program: packets and doorbells as fast as one thread makes them, in bursts that fit the queue; the
 * time is the producer's. Run by bench/agent-launches.
 */
#include <hsa/hsa.h>
#include <string.h>
#include "bench/agent_rounds.h"

#define LAUNCHES 1000u

static hsa_agent_t gpu;
static hsa_queue_t *queue;
static hsa_signal_t done;

static hsa_status_t find_gpu(hsa_agent_t agent, void *data)
{
	hsa_device_type_t type;

	(void)data;
	if (hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type) == HSA_STATUS_SUCCESS &&
	    type == HSA_DEVICE_TYPE_GPU)
		gpu = agent;
	return HSA_STATUS_SUCCESS;
}

static void launch(hsa_signal_t signal)
{
	uint64_t index = hsa_queue_add_write_index_screlease(queue, 1);
	hsa_barrier_and_packet_t *packet = (hsa_barrier_and_packet_t *)queue->base_address + index % queue->size;

	memset((char *)packet + 4, 0, sizeof(*packet) - 4u);
	packet->completion_signal = signal;
	__atomic_store_n((uint32_t *)(void *)packet, HSA_PACKET_TYPE_BARRIER_AND | 1u << HSA_PACKET_HEADER_BARRIER,
			 __ATOMIC_RELEASE);
	hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)index);
}

static void burst(void)
{
	for (unsigned i = 0; i < LAUNCHES; i++)
		launch((hsa_signal_t){ 0 });
}

static void drain(void)
{
	hsa_signal_store_relaxed(done, 1);
	launch(done);
	while (hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED) != 0)
		;
}

int main(void)
{
	if (hsa_init() != HSA_STATUS_SUCCESS || hsa_iterate_agents(find_gpu, NULL) != HSA_STATUS_SUCCESS ||
	    !gpu.handle ||
	    hsa_queue_create(gpu, 4096, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue) !=
		    HSA_STATUS_SUCCESS ||
	    hsa_signal_create(1, 0, NULL, &done) != HSA_STATUS_SUCCESS) {
		fprintf(stderr, "no HSA here\n");
		return 1;
	}
	rounds_serve(LAUNCHES, burst, drain);
	hsa_signal_destroy(done);
	hsa_queue_destroy(queue);
	hsa_shut_down();
	return 0;
}
