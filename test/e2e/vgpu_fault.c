/* SPDX-License-Identifier: MIT */
/* Faults on demand, seen from a client. Usage: vgpu-fault PATH-OF-VGPU, inside `vgpu run`. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "test/e2e/vgpu_client.h"

#define GROUPS 256u

struct test {
	struct client client;
	uint64_t count;
	uint32_t *counts;
	struct client_kernarg *kernarg;
	const char *vgpu;
};

static int fault(struct test *test, const char *kind, const struct client_queue *queue)
{
	char command[512];

	if (queue)
		snprintf(command, sizeof(command), "'%s' fault --name \"$VGPU_NAME\" %s %d %u", test->vgpu, kind,
			 getpid(), queue->id);
	else
		snprintf(command, sizeof(command), "'%s' fault --name \"$VGPU_NAME\" %s", test->vgpu, kind);
	return system(command);
}

static void start(struct test *test, struct client_queue *queue, struct client_signal *signal)
{
	struct client_packet packet;

	*test->kernarg = (struct client_kernarg){ (uintptr_t)test->counts, GROUPS, 0 };
	packet = client_dispatch(test->count, test->kernarg, signal);
	client_submit(queue, &packet);
}

static uint32_t event_create(struct test *test, uint32_t type)
{
	struct kfd_ioctl_create_event_args create = { .event_type = type };

	CLIENT_CHECK(client_ioctl(&test->client, AMDKFD_IOC_CREATE_EVENT, &create) == 0);
	return create.event_id;
}

static bool event_wait(struct test *test, uint32_t id, struct kfd_event_data *ret_data)
{
	struct kfd_ioctl_wait_events_args args = { .events_ptr = (uintptr_t)ret_data,
						   .num_events = 1,
						   .timeout = 5000 };

	*ret_data = (struct kfd_event_data){ .event_id = id };
	return client_ioctl(&test->client, AMDKFD_IOC_WAIT_EVENTS, &args) == 0 &&
	       args.wait_result == KFD_IOC_WAIT_RESULT_COMPLETE;
}

/* The second ioctl from now fails, the ones around it do not. */
static void test_ioctl(struct test *test)
{
	struct kfd_ioctl_get_version_args version;

	CLIENT_CHECK(fault(test, "ioctl=2", NULL) == 0);
	CLIENT_CHECK(client_ioctl(&test->client, AMDKFD_IOC_GET_VERSION, &version) == 0);
	CLIENT_CHECK(client_ioctl(&test->client, AMDKFD_IOC_GET_VERSION, &version) == -EIO);
	CLIENT_CHECK(client_ioctl(&test->client, AMDKFD_IOC_GET_VERSION, &version) == 0);
	CLIENT_CHECK(fault(test, "nonsense=1 2>/dev/null", NULL) != 0);
	client_result("the second ioctl", true);
}

/* A memory fault stops its queue and reaches the memory event, with address and GPU. */
static void test_vm(struct test *test)
{
	struct client_signal *signal = client_signal(&test->client, 1);
	uint32_t id = event_create(test, KFD_IOC_EVENT_MEMORY);
	struct kfd_event_data data;
	struct client_queue queue;

	client_queue_create(&test->client, &queue, 64);
	CLIENT_CHECK(fault(test, "vm", &queue) == 0);
	CLIENT_CHECK(event_wait(test, id, &data));
	CLIENT_CHECK(data.memory_exception_data.va == 0xbad000 &&
		     data.memory_exception_data.gpu_id == test->client.gpu_id &&
		     data.memory_exception_data.failure.NotPresent);
	start(test, &queue, signal);
	client_sleep_ms(10);
	CLIENT_CHECK(signal->value == 1);
	CLIENT_CHECK(client_queue_destroy(&queue) == 0);
	client_result("memory fault", true);
}

/* A queue that hangs takes nothing; the others do. */
static void test_hang(struct test *test)
{
	struct client_signal *first = client_signal(&test->client, 1), *second = client_signal(&test->client, 1);
	struct client_queue hung, other;

	client_queue_create(&test->client, &hung, 64);
	client_queue_create(&test->client, &other, 64);
	CLIENT_CHECK(fault(test, "hang", &hung) == 0);
	start(test, &hung, first);
	start(test, &other, second);
	CLIENT_CHECK(client_wait(second) && first->value == 1);
	CLIENT_CHECK(client_queue_destroy(&hung) == 0 && client_queue_destroy(&other) == 0);
	client_result("queue hang", true);
}

/* A preemption that fails is reported to who asked for it. */
static void test_close(struct test *test)
{
	struct client_queue queue;

	client_queue_create(&test->client, &queue, 64);
	CLIENT_CHECK(fault(test, "close-fails", &queue) == 0);
	CLIENT_CHECK(client_queue_update(&queue, 0) == -EIO);
	CLIENT_CHECK(client_queue_destroy(&queue) == 0);
	client_result("preemption fails", true);
}

/* A reset takes all queues of the GPU, tells the processes, and new queues work. */
static void test_reset(struct test *test)
{
	struct client_signal *signal = client_signal(&test->client, 1);
	uint32_t id = event_create(test, KFD_IOC_EVENT_HW_EXCEPTION);
	struct client_queue queue;
	struct kfd_event_data data;

	client_queue_create(&test->client, &queue, 64);
	CLIENT_CHECK(fault(test, "reset=0", NULL) == 0);
	CLIENT_CHECK(event_wait(test, id, &data) && data.hw_exception_data.gpu_id == test->client.gpu_id);
	CLIENT_CHECK(client_queue_update(&queue, 0) == -EACCES);
	CLIENT_CHECK(client_queue_destroy(&queue) == 0);
	client_queue_create(&test->client, &queue, 64);
	start(test, &queue, signal);
	CLIENT_CHECK(client_wait(signal));
	CLIENT_CHECK(client_queue_destroy(&queue) == 0);
	client_result("reset", true);
}

/* Slowed down a thousand times, 20 us are 20 ms: by the GPU's own counter. */
static void test_slow(struct test *test)
{
	struct client_signal *signal = client_signal(&test->client, 1);
	struct client_queue queue;

	client_queue_create(&test->client, &queue, 64);
	CLIENT_CHECK(fault(test, "slow=1000", NULL) == 0);
	start(test, &queue, signal);
	CLIENT_CHECK(client_wait(signal));
	CLIENT_CHECK(signal->end - signal->start >= 2000000);
	CLIENT_CHECK(fault(test, "slow=1", NULL) == 0);
	CLIENT_CHECK(client_queue_destroy(&queue) == 0);
	client_result("slow device", true);
}

int main(int argc, char **argv)
{
	struct test test = { .vgpu = argc > 1 ? argv[1] : "vgpu" };

	client_open(&test.client);
	test.count = client_kernel(&test.client, CLIENT_KERNEL_COUNT);
	test.counts = client_alloc(&test.client, GROUPS * sizeof(uint32_t), KFD_IOC_ALLOC_MEM_FLAGS_VRAM);
	test.kernarg = client_alloc(&test.client, 4096, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	test_ioctl(&test);
	test_vm(&test);
	test_hang(&test);
	test_close(&test);
	test_reset(&test);
	test_slow(&test);
	return client_done();
}
