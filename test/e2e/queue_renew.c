/* SPDX-License-Identifier: MIT */
/*
 * A program of ROCr with one idle queue, which it destroys and makes anew each time it gets SIGUSR1: it says "ready",
 * then "destroyed N" and "created N". SIGTERM ends it, after the queue and the runtime. Run by test/e2e/sched.
 */
#include <hsa/hsa.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                                               \
	do {                                                                                     \
		if ((call) != HSA_STATUS_SUCCESS) {                                              \
			fprintf(stderr, "%s:%d: %s does not work\n", __FILE__, __LINE__, #call); \
			exit(1);                                                                 \
		}                                                                                \
	} while (0)

static hsa_status_t on_agent(hsa_agent_t agent, void *ret_gpu)
{
	hsa_device_type_t type;

	MUST(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
	if (type != HSA_DEVICE_TYPE_GPU)
		return HSA_STATUS_SUCCESS;
	*(hsa_agent_t *)ret_gpu = agent;
	return HSA_STATUS_INFO_BREAK;
}

static hsa_queue_t *create(hsa_agent_t gpu)
{
	hsa_queue_t *queue;

	MUST(hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
	return queue;
}

static void say(const char *what, int number)
{
	printf("%s %d\n", what, number);
	fflush(stdout);
}

int main(void)
{
	hsa_queue_t *queue;
	hsa_agent_t gpu;
	sigset_t signals;
	int number;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL); /* before there are other threads */
	MUST(hsa_init());
	if (hsa_iterate_agents(on_agent, &gpu) != HSA_STATUS_INFO_BREAK) {
		fprintf(stderr, "there is no GPU\n");
		return 1;
	}
	queue = create(gpu);
	puts("ready");
	fflush(stdout);
	for (int count = 1; !sigwait(&signals, &number) && number == SIGUSR1; count++) {
		MUST(hsa_queue_destroy(queue));
		say("destroyed", count);
		queue = create(gpu);
		say("created", count);
	}
	MUST(hsa_queue_destroy(queue));
	MUST(hsa_shut_down());
	return 0;
}
