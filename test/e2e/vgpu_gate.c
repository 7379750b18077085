/* SPDX-License-Identifier: MIT */
/*
 * The batch gate of kernel/patches, seen from a client. Usage: vgpu-gate MODE [PATH-OF-VGPU], inside `vgpu run`:
 * gates (vgpu_kfd_sched=1), no-hws (and sched_policy=2), busy (vgpu_kfd_sched=2), none (a stock driver), denied (no
 * CAP_SYS_ADMIN). As in the patches, the call fails for what is wrong with the call; what became of a gate is its own
 * result.
 */
#include <errno.h>
#include <gpreempt/kfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "test/e2e/vgpu_client.h"

#define NOBODYS_QUEUE 4000u
#define GROUPS        40000u /* about four rounds of an MI300X at 5 ms each */

struct test {
	struct client client;
	struct client_queue queues[3];
	const char *vgpu;
};

static int gate(struct test *test, struct gp_kfd_sched_gate *gates, uint32_t count)
{
	struct gp_kfd_sched args = { .op = GP_KFD_SCHED_GATE,
				     .gpu_id = test->client.gpu_id,
				     .gates_ptr = (uintptr_t)gates,
				     .gate_count = count };

	return client_ioctl(&test->client, _IOWR('K', GP_KFD_NR_SCHED, struct gp_kfd_sched), &args);
}

/* The first queues, then one that nobody has. */
static void gates_set(struct test *test, uint32_t open, struct gp_kfd_sched_gate *ret_gates)
{
	for (uint32_t i = 0; i < 4; i++)
		ret_gates[i] = (struct gp_kfd_sched_gate){ .pid = (uint32_t)getpid(),
							   .queue_id = i < 3 ? test->queues[i].id : NOBODYS_QUEUE,
							   .open = open,
							   .result = 77 };
}

static bool are(const struct gp_kfd_sched_gate *gates, int first, int second, int third, int last)
{
	return gates[0].result == first && gates[1].result == second && gates[2].result == third &&
	       gates[3].result == last;
}

static void test_results(struct test *test)
{
	struct gp_kfd_sched_gate gates[4];

	for (uint32_t open = 0; open < 2; open++) {
		gates_set(test, open, gates);
		CLIENT_CHECK(gate(test, gates, 4) == 0 && are(gates, 0, 0, 0, -ESRCH));
	}
	gates[3].open = 2;
	CLIENT_CHECK(gate(test, gates, 4) == -EINVAL && gate(test, gates, 0) == -EINVAL);
	client_result("each gate has its result", true);
}

/* What runs is set aside in its midst, and goes on where it was. On a busy host a kernel may be over before the gate is
 * closed: then another. */
static void test_running(struct test *test)
{
	uint32_t *counts = client_alloc(&test->client, GROUPS * sizeof(uint32_t), KFD_IOC_ALLOC_MEM_FLAGS_VRAM);
	struct client_kernarg *kernarg = client_alloc(&test->client, 4096, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	uint64_t kernel = client_kernel(&test->client, CLIENT_KERNEL_SLOW);
	struct client_signal *signal = client_signal(&test->client, 1);
	struct gp_kfd_sched_gate gates[4];
	bool was_midway = false;
	uint64_t before;

	for (uint32_t i = 0; i < 100u && !was_midway; i++) {
		struct client_packet packet;

		memset(counts, 0, GROUPS * sizeof(uint32_t));
		*kernarg = (struct client_kernarg){ (uintptr_t)counts, GROUPS, 0 };
		packet = client_dispatch(kernel, kernarg, signal);
		signal->value = 1;
		client_submit(&test->queues[1], &packet);
		client_sleep_ms(2 + i % 16u);
		gates_set(test, 0, gates);
		CLIENT_CHECK(gate(test, gates, 3) == 0);
		before = client_sum(counts, GROUPS);
		client_sleep_ms(12);
		CLIENT_CHECK(client_sum(counts, GROUPS) == before);
		was_midway = before > 0 && before < GROUPS;
		gates_set(test, 1, gates);
		CLIENT_CHECK(gate(test, gates, 3) == 0 && client_wait(signal));
		CLIENT_CHECK(client_sum(counts, GROUPS) == GROUPS);
	}
	CLIENT_CHECK(was_midway);
	client_result("what runs is set aside", true);
}

/* A preemption that fails, as amdgpu finds it after queue_preemption_timeout_ms: those that depended on the runlist
 * have its error, what was as wanted has none. */
static void test_fails(struct test *test)
{
	struct gp_kfd_sched_gate gates[4];
	char command[512];

	gates_set(test, 0, gates);
	CLIENT_CHECK(gate(test, &gates[2], 1) == 0 && gates[2].result == 0);
	snprintf(command, sizeof(command),
		 "echo 100 >/sys/module/amdgpu/parameters/queue_preemption_timeout_ms && "
		 "'%s' fault --name \"$VGPU_NAME\" close-hangs %d %u",
		 test->vgpu, getpid(), test->queues[0].id);
	CLIENT_CHECK(system(command) == 0);
	gates_set(test, 0, gates);
	CLIENT_CHECK(gate(test, gates, 4) == 0 && are(gates, -ETIME, -ETIME, 0, -ESRCH));
	client_result("a runlist that fails is the result of what it was for", true);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	struct gp_kfd_sched_gate gates[4];
	struct test test = { .vgpu = argc > 2 ? argv[2] : "" };

	client_open(&test.client);
	for (uint32_t i = 0; i < 3; i++)
		client_queue_create(&test.client, &test.queues[i], 64);
	gates_set(&test, 0, gates);
	if (!strcmp(mode, "gates")) {
		test_results(&test);
		test_running(&test);
		test_fails(&test);
	} else if (!strcmp(mode, "no-hws")) {
		CLIENT_CHECK(gate(&test, gates, 4) == 0);
		CLIENT_CHECK(are(gates, -EOPNOTSUPP, -EOPNOTSUPP, -EOPNOTSUPP, -EOPNOTSUPP));
		client_result("no gates without HWS", true);
	} else {
		int expected = !strcmp(mode, "busy") ? -EBUSY : !strcmp(mode, "denied") ? -EPERM : -EINVAL;

		CLIENT_CHECK(gate(&test, gates, 4) == expected && are(gates, 77, 77, 77, 77));
		client_result("gates are refused", true);
	}
	return client_done();
}
