/* SPDX-License-Identifier: MIT */
/* A process that nobody started with gpreempt: enables its runtime if told to ("runtime"), keeps one queue busy until
 * its input ends, and says whether every workgroup ran exactly once. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <gpreempt/kfd.h>
#include "test/e2e/vgpu_client.h"

#define GROUPS 2000u

int main(int argc, char **argv)
{
	struct gp_kfd_runtime_enable enable = { .mode_mask = GP_KFD_RUNTIME_MODE_ENABLE };
	struct pollfd input = { .fd = 0, .events = POLLIN };
	struct client client;
	struct client_queue queue;
	struct client_kernarg *kernarg;
	struct client_signal *signal;
	struct client_packet packet;
	uint32_t *counts, runs = 0;
	uint64_t kernel;

	client_open(&client);
	if (argc > 1 && !strcmp(argv[1], "runtime") &&
	    ioctl(client.kfd, _IOWR(AMDKFD_IOCTL_BASE, GP_KFD_NR_RUNTIME_ENABLE, struct gp_kfd_runtime_enable),
		  &enable))
		return 2;
	client_queue_create(&client, &queue, 64);
	kernarg = client_alloc(&client, 4096, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	counts = client_alloc(&client, GROUPS * sizeof(*counts), KFD_IOC_ALLOC_MEM_FLAGS_VRAM);
	kernel = client_kernel(&client, CLIENT_KERNEL_COUNT);
	signal = client_signal(&client, 1);
	*kernarg = (struct client_kernarg){ (uintptr_t)counts, GROUPS, 0 };
	printf("ready\n");
	fflush(stdout);
	while (poll(&input, 1, 0) == 0) {
		memset(counts, 0, GROUPS * sizeof(*counts));
		signal->value = 1;
		packet = client_dispatch(kernel, kernarg, signal);
		client_submit(&queue, &packet);
		/* It may be set aside for as long as somebody likes. */
		while (signal->value > 0)
			client_sleep_ms(1);
		for (uint32_t i = 0; i < GROUPS; i++)
			if (counts[i] != 1)
				return 3;
		runs++;
	}
	printf("%u runs, exact\n", runs);
	return 0;
}
