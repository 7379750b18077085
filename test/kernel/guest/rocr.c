/* SPDX-License-Identifier: MIT */
/*
 * rocr PACKETS PRIORITY: a program of Debian's ROCr in the guest. It makes a queue by the runtime, puts barrier packets
 * into it, each with a signal, and waits for every one of them as a program does.
 *
 * It prints "rocr agent=NAME packets=N done=N", and exits 0 if all of them completed. PRIORITY: 0 low, 1 normal, 2
 * high.
 */
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hsa_status_t find_gpu(hsa_agent_t agent, void *data)
{
	hsa_device_type_t type;

	if (hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type) == HSA_STATUS_SUCCESS &&
	    type == HSA_DEVICE_TYPE_GPU) {
		*(hsa_agent_t *)data = agent;
		return HSA_STATUS_INFO_BREAK;
	}
	return HSA_STATUS_SUCCESS;
}

static void must(hsa_status_t status, const char *what)
{
	const char *text = "?";

	if (status == HSA_STATUS_SUCCESS || status == HSA_STATUS_INFO_BREAK)
		return;
	hsa_status_string(status, &text);
	printf("rocr: %s: %s\n", what, text);
	exit(2);
}

int main(int argc, char **argv)
{
	unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 1, done = 0;
	hsa_amd_queue_priority_t priority =
		argc > 2 ? (hsa_amd_queue_priority_t)atoi(argv[2]) : HSA_AMD_QUEUE_PRIORITY_NORMAL;
	hsa_agent_t agent = { 0 };
	hsa_signal_t signal;
	hsa_queue_t *queue;
	char name[64] = "";

	must(hsa_init(), "hsa_init");
	must(hsa_iterate_agents(find_gpu, &agent), "hsa_iterate_agents");
	must(hsa_agent_get_info(agent, HSA_AGENT_INFO_NAME, name), "hsa_agent_get_info");
	must(hsa_queue_create(agent, 256, HSA_QUEUE_TYPE_SINGLE, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue),
	     "hsa_queue_create");
	must(hsa_amd_queue_set_priority(queue, priority), "hsa_amd_queue_set_priority");
	must(hsa_signal_create(0, 0, NULL, &signal), "hsa_signal_create");
	for (unsigned i = 0; i < count; i++) {
		uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
		hsa_barrier_and_packet_t *packet =
			(hsa_barrier_and_packet_t *)queue->base_address + index % queue->size;

		hsa_signal_store_relaxed(signal, 1);
		memset((char *)packet + 2, 0, sizeof(*packet) - 2);
		packet->completion_signal = signal;
		__atomic_store_n(&packet->header,
				 (uint16_t)(HSA_PACKET_TYPE_BARRIER_AND | 1 << HSA_PACKET_HEADER_BARRIER),
				 __ATOMIC_RELEASE);
		hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)index);
		done += hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX,
						  HSA_WAIT_STATE_BLOCKED) == 0;
	}
	printf("rocr agent=%s packets=%u done=%u\n", name, count, done);
	must(hsa_signal_destroy(signal), "hsa_signal_destroy");
	must(hsa_queue_destroy(queue), "hsa_queue_destroy");
	must(hsa_shut_down(), "hsa_shut_down");
	return done != count;
}
