/* SPDX-License-Identifier: MIT */
/*
 * A client of Debian's ROCr on the virtual node: barrier and kernel packets with completion signals, dependencies
 * between queues, profiling times, copies with their bytes compared. Run by test/e2e/vgpu as `vgpu run … -- vgpu-hsa
 * [BURST]`.
 *
 * Its kernel is two words of code that do nothing on a GPU (s_nop 7, s_endpgm); the node is told (--kernels) that code
 * with this fingerprint counts its workgroups.
 */
#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORKGROUPS 1000u
#define COPY_SIZE  (3u << 20)
#define PRODUCED   100

static int failures;

#define CHECK(condition)                                                               \
	do {                                                                           \
		if (!(condition)) {                                                    \
			printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			failures++;                                                    \
		}                                                                      \
	} while (0)
#define MUST(call)                                                                   \
	do {                                                                         \
		hsa_status_t status_ = (call);                                       \
		if (status_ != HSA_STATUS_SUCCESS) {                                 \
			const char *text_ = "";                                      \
			hsa_status_string(status_, &text_);                          \
			printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, text_); \
			exit(1);                                                     \
		}                                                                    \
	} while (0)

struct agents {
	hsa_agent_t gpus[8], cpu;
	unsigned int gpu_count;
};

static hsa_status_t on_agent(hsa_agent_t agent, void *data)
{
	struct agents *agents = data;
	hsa_device_type_t type;

	hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
	if (type == HSA_DEVICE_TYPE_GPU && agents->gpu_count < 8)
		agents->gpus[agents->gpu_count++] = agent;
	else if (type == HSA_DEVICE_TYPE_CPU)
		agents->cpu = agent;
	return HSA_STATUS_SUCCESS;
}

static hsa_status_t on_pool(hsa_amd_memory_pool_t pool, void *data)
{
	hsa_amd_memory_pool_t *first = data;
	hsa_amd_segment_t segment;
	bool allowed = false;

	hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment);
	hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &allowed);
	if (segment == HSA_AMD_SEGMENT_GLOBAL && allowed && !first->handle)
		*first = pool;
	return HSA_STATUS_SUCCESS;
}

static void submit(hsa_queue_t *queue, const void *packet, uint16_t header)
{
	uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
	uint16_t setup;
	char *slot;

	while (index - hsa_queue_load_read_index_scacquire(queue) >= queue->size)
		;
	slot = (char *)queue->base_address + 64 * (index & (queue->size - 1));
	memcpy(slot + 4, (const char *)packet + 4, 60);
	memcpy(&setup, (const char *)packet + 2, 2);
	__atomic_store_n((uint32_t *)(void *)slot, header | (uint32_t)setup << 16, __ATOMIC_RELEASE);
	hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)index);
}

static uint16_t header(unsigned int type, bool barrier)
{
	return (uint16_t)(type | (unsigned int)barrier << HSA_PACKET_HEADER_BARRIER |
			  2u << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
			  2u << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
}

static hsa_signal_value_t wait_for(hsa_signal_t signal)
{
	return hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, 20000000000ull, HSA_WAIT_STATE_BLOCKED);
}

struct kernel {
	uint32_t descriptor[16], pad[48], code[64];
};
struct kernarg {
	uint64_t counts;
	uint32_t groups;
};

struct test {
	struct agents agents;
	hsa_agent_t gpu;
	hsa_amd_memory_pool_t system, vram;
	hsa_queue_t *queue;
	hsa_signal_t signal;
	struct kernel *kernel;
	struct kernarg *kernarg;
	uint32_t *counts;
};

static void *system_memory(struct test *test, size_t size)
{
	void *pointer;

	MUST(hsa_amd_memory_pool_allocate(test->system, size, 0, &pointer));
	MUST(hsa_amd_agents_allow_access(1, &test->gpu, NULL, pointer));
	memset(pointer, 0, size);
	return pointer;
}

static hsa_kernel_dispatch_packet_t kernel_packet(struct test *test, hsa_signal_t signal)
{
	return (hsa_kernel_dispatch_packet_t){
		.setup = 1,
		.workgroup_size_x = 64,
		.workgroup_size_y = 1,
		.workgroup_size_z = 1,
		.grid_size_x = 64 * WORKGROUPS,
		.grid_size_y = 1,
		.grid_size_z = 1,
		.kernel_object = (uint64_t)(uintptr_t)test->kernel,
		.kernarg_address = test->kernarg,
		.completion_signal = signal,
	};
}

static void prepare(struct test *test)
{
	hsa_iterate_agents(on_agent, &test->agents);
	if (!test->agents.gpu_count) {
		printf("no GPU\n");
		exit(1);
	}
	test->gpu = test->agents.gpus[0];
	hsa_amd_agent_iterate_memory_pools(test->gpu, on_pool, &test->vram);
	hsa_amd_agent_iterate_memory_pools(test->agents.cpu, on_pool, &test->system);
	MUST(hsa_queue_create(test->gpu, 1024, HSA_QUEUE_TYPE_MULTI, NULL, NULL, 0, 0, &test->queue));
	MUST(hsa_signal_create(1, 0, NULL, &test->signal));
	test->kernel = system_memory(test, 4096);
	test->kernarg = system_memory(test, 4096);
	test->counts = system_memory(test, WORKGROUPS * sizeof(uint32_t));
	test->kernel->descriptor[4] = 256;  /* entry, from the descriptor */
	test->kernel->code[0] = 0xbf800007; /* s_nop 7 */
	test->kernel->code[1] = 0xbf810000; /* s_endpgm */
	*test->kernarg = (struct kernarg){ (uint64_t)(uintptr_t)test->counts, WORKGROUPS };
}

/* A barrier packet without dependencies completes; the read index has moved when the signal is seen. */
static void test_barrier(struct test *test)
{
	hsa_barrier_and_packet_t packet = { .completion_signal = test->signal };

	submit(test->queue, &packet, header(HSA_PACKET_TYPE_BARRIER_AND, true));
	CHECK(wait_for(test->signal) == 0);
	CHECK(hsa_queue_load_read_index_scacquire(test->queue) == 1);
}

/* A kernel runs each workgroup once, and its profiled time is at least that of one workgroup. */
static void test_kernel(struct test *test)
{
	hsa_kernel_dispatch_packet_t packet = kernel_packet(test, test->signal);
	hsa_amd_profiling_dispatch_time_t times;

	MUST(hsa_amd_profiling_set_profiler_enabled(test->queue, 1));
	hsa_signal_store_screlease(test->signal, 1);
	submit(test->queue, &packet, header(HSA_PACKET_TYPE_KERNEL_DISPATCH, true));
	CHECK(wait_for(test->signal) == 0);
	MUST(hsa_amd_profiling_get_dispatch_time(test->gpu, test->signal, &times));
	/* 20 us and the signal's way; the runtime's fit of the clocks may be off by a little. */
	CHECK(times.end - times.start >= 10000);
	printf("kernel: profiled %llu ns\n", (unsigned long long)(times.end - times.start));
	for (unsigned int i = 0; i < WORKGROUPS; i++)
		if (test->counts[i] != 1) {
			CHECK(!"each workgroup ran exactly once");
			break;
		}
}

static void test_burst(struct test *test, int count)
{
	hsa_kernel_dispatch_packet_t packet = kernel_packet(test, test->signal);

	hsa_signal_store_screlease(test->signal, count);
	for (int i = 0; i < count; i++)
		submit(test->queue, &packet, header(HSA_PACKET_TYPE_KERNEL_DISPATCH, true));
	CHECK(wait_for(test->signal) == 0);
	for (unsigned int i = 0; i < WORKGROUPS; i++)
		if (test->counts[i] != 1u + (unsigned int)count) {
			CHECK(!"each workgroup of the burst ran exactly once");
			break;
		}
}

/* A barrier on another queue waits for a kernel's signal of this one. */
static void test_dependency(struct test *test)
{
	hsa_barrier_and_packet_t barrier = { .completion_signal = test->signal };
	hsa_kernel_dispatch_packet_t packet;
	hsa_queue_t *other;
	hsa_signal_t dependency;

	MUST(hsa_queue_create(test->gpu, 256, HSA_QUEUE_TYPE_MULTI, NULL, NULL, 0, 0, &other));
	MUST(hsa_amd_queue_set_priority(other, HSA_AMD_QUEUE_PRIORITY_HIGH));
	MUST(hsa_signal_create(1, 0, NULL, &dependency));
	hsa_signal_store_screlease(test->signal, 1);
	barrier.dep_signal[0] = dependency;
	submit(other, &barrier, header(HSA_PACKET_TYPE_BARRIER_AND, true));
	CHECK(hsa_signal_load_scacquire(test->signal) == 1);
	packet = kernel_packet(test, dependency);
	submit(test->queue, &packet, header(HSA_PACKET_TYPE_KERNEL_DISPATCH, true));
	CHECK(wait_for(test->signal) == 0);
	CHECK(hsa_signal_load_scacquire(dependency) == 0);
	MUST(hsa_queue_destroy(other));
	MUST(hsa_signal_destroy(dependency));
}

/* OR goes on with the first of its signals, AND with the last; both on queues other than the kernels'. */
static void test_or(struct test *test)
{
	hsa_signal_t first, second, any;
	hsa_barrier_or_packet_t either = { 0 };
	hsa_barrier_and_packet_t both = { .completion_signal = test->signal };
	hsa_kernel_dispatch_packet_t packet;
	hsa_queue_t *others[2];

	MUST(hsa_signal_create(1, 0, NULL, &first));
	MUST(hsa_signal_create(1, 0, NULL, &second));
	MUST(hsa_signal_create(1, 0, NULL, &any));
	for (int i = 0; i < 2; i++)
		MUST(hsa_queue_create(test->gpu, 256, HSA_QUEUE_TYPE_MULTI, NULL, NULL, 0, 0, &others[i]));
	hsa_signal_store_screlease(test->signal, 1);
	either.dep_signal[0] = both.dep_signal[1] = first;
	either.dep_signal[4] = both.dep_signal[3] = second;
	either.completion_signal = any;
	submit(others[0], &either, header(HSA_PACKET_TYPE_BARRIER_OR, true));
	submit(others[1], &both, header(HSA_PACKET_TYPE_BARRIER_AND, true));
	packet = kernel_packet(test, second);
	submit(test->queue, &packet, header(HSA_PACKET_TYPE_KERNEL_DISPATCH, true));
	CHECK(wait_for(any) == 0);
	CHECK(hsa_signal_load_scacquire(first) == 1 && hsa_signal_load_scacquire(test->signal) == 1);
	packet = kernel_packet(test, first);
	submit(test->queue, &packet, header(HSA_PACKET_TYPE_KERNEL_DISPATCH, true));
	CHECK(wait_for(test->signal) == 0);
	for (int i = 0; i < 2; i++)
		MUST(hsa_queue_destroy(others[i]));
	MUST(hsa_signal_destroy(first));
	MUST(hsa_signal_destroy(second));
	MUST(hsa_signal_destroy(any));
}

struct producer {
	struct test *test;
	hsa_queue_t *queue;
};

static void *produce(void *data)
{
	const struct producer *producer = data;
	hsa_kernel_dispatch_packet_t packet = kernel_packet(producer->test, producer->test->signal);

	for (int i = 0; i < PRODUCED; i++)
		submit(producer->queue, &packet, header(HSA_PACKET_TYPE_KERNEL_DISPATCH, true));
	return NULL;
}

/* Four threads write into one small ring, which goes round many times: nothing is lost, nothing runs twice. */
static void test_producers(struct test *test)
{
	struct producer producer = { .test = test };
	pthread_t threads[4];
	uint32_t before = test->counts[0];

	MUST(hsa_queue_create(test->gpu, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, 0, 0, &producer.queue));
	hsa_signal_store_screlease(test->signal, 4 * PRODUCED);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, produce, &producer);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK(wait_for(test->signal) == 0);
	CHECK(hsa_queue_load_read_index_scacquire(producer.queue) == 4 * PRODUCED);
	for (unsigned int i = 0; i < WORKGROUPS; i++)
		if (test->counts[i] != before + 4 * PRODUCED) {
			CHECK(!"each workgroup of all producers ran exactly once");
			break;
		}
	MUST(hsa_queue_destroy(producer.queue));
}

/* With the barrier bit packets of one queue complete in order, and their times do not overlap. */
static void test_order(struct test *test)
{
	hsa_amd_profiling_dispatch_time_t times[2], ticks[2];
	hsa_signal_t signals[2];

	for (int i = 0; i < 2; i++) {
		hsa_kernel_dispatch_packet_t packet;

		MUST(hsa_signal_create(1, 0, NULL, &signals[i]));
		packet = kernel_packet(test, signals[i]);
		submit(test->queue, &packet, header(HSA_PACKET_TYPE_KERNEL_DISPATCH, true));
	}
	CHECK(wait_for(signals[1]) == 0 && hsa_signal_load_scacquire(signals[0]) == 0);
	for (int i = 0; i < 2; i++) {
		const amd_signal_t *signal = (const amd_signal_t *)(uintptr_t)signals[i].handle;

		ticks[i].start = signal->start_ts;
		ticks[i].end = signal->end_ts;
		CHECK(ticks[i].start < ticks[i].end);
		MUST(hsa_amd_profiling_get_dispatch_time(test->gpu, signals[i], &times[i]));
		MUST(hsa_signal_destroy(signals[i]));
	}
	/* By the device's own counter the second begins after the first has ended. The runtime's times of the two come
	 * from two fits of its clock to that counter: only what is whole kernels apart can be compared there. */
	CHECK(ticks[0].end <= ticks[1].start);
	CHECK(times[0].start < times[1].start && times[0].end < times[1].end);
}

/* A kernel that needs private memory waits for the runtime to give its queue scratch, and runs. */
static void test_scratch(struct test *test)
{
	hsa_kernel_dispatch_packet_t packet = kernel_packet(test, test->signal);
	uint32_t before = test->counts[0];

	hsa_signal_store_screlease(test->signal, 1);
	packet.private_segment_size = 1024;
	submit(test->queue, &packet, header(HSA_PACKET_TYPE_KERNEL_DISPATCH, true));
	CHECK(wait_for(test->signal) == 0 && test->counts[0] == before + 1);
}

static void on_error(hsa_status_t status, hsa_queue_t *queue, void *data)
{
	(void)queue;
	__atomic_store_n((int *)data, (int)status, __ATOMIC_RELEASE);
}

/* A packet that is none stops its queue, and the runtime tells who made it; other queues go on. */
static void test_invalid(struct test *test)
{
	hsa_kernel_dispatch_packet_t packet = kernel_packet(test, test->signal);
	hsa_queue_t *queue;
	int status = 0;

	MUST(hsa_queue_create(test->gpu, 256, HSA_QUEUE_TYPE_MULTI, on_error, &status, 0, 0, &queue));
	hsa_signal_store_screlease(test->signal, 1);
	packet.workgroup_size_x = 2048;
	submit(queue, &packet, header(HSA_PACKET_TYPE_KERNEL_DISPATCH, true));
	for (int i = 0; i < 20000 && !__atomic_load_n(&status, __ATOMIC_ACQUIRE); i++)
		usleep(1000);
	CHECK(__atomic_load_n(&status, __ATOMIC_ACQUIRE) == (int)HSA_STATUS_ERROR_INVALID_ARGUMENT ||
	      __atomic_load_n(&status, __ATOMIC_ACQUIRE) == (int)HSA_STATUS_ERROR_INVALID_PACKET_FORMAT);
	CHECK(hsa_signal_load_scacquire(test->signal) == 1);
	MUST(hsa_queue_destroy(queue));
	packet = kernel_packet(test, test->signal);
	submit(test->queue, &packet, header(HSA_PACKET_TYPE_KERNEL_DISPATCH, true));
	CHECK(wait_for(test->signal) == 0);
}

static void copy(struct test *test, void *to, hsa_agent_t to_agent, const void *from, hsa_agent_t from_agent,
		 size_t size)
{
	hsa_signal_store_screlease(test->signal, 1);
	MUST(hsa_amd_memory_async_copy(to, to_agent, from, from_agent, size, 0, NULL, test->signal));
	CHECK(wait_for(test->signal) == 0);
}

/* Bytes go to the device and back through the copy engines, and within the device through ROCr's own kernels. */
static void test_copies(struct test *test)
{
	unsigned char *from = system_memory(test, COPY_SIZE), *to = system_memory(test, COPY_SIZE);
	unsigned int salt = (unsigned int)getpid();
	void *device, *second;

	MUST(hsa_amd_memory_pool_allocate(test->vram, COPY_SIZE, 0, &device));
	MUST(hsa_amd_memory_pool_allocate(test->vram, COPY_SIZE, 0, &second));
	for (size_t i = 0; i < COPY_SIZE; i++)
		from[i] = (unsigned char)(i * 7 + salt);
	copy(test, device, test->gpu, from, test->agents.cpu, COPY_SIZE);
	copy(test, to, test->agents.cpu, device, test->gpu, COPY_SIZE);
	CHECK(!memcmp(from, to, COPY_SIZE));
	memset(to, 0, COPY_SIZE);
	copy(test, second, test->gpu, device, test->gpu, COPY_SIZE);
	copy(test, to, test->agents.cpu, second, test->gpu, COPY_SIZE);
	CHECK(!memcmp(from, to, COPY_SIZE));
	copy(test, (char *)second + 1, test->gpu, (char *)device + 6, test->gpu, COPY_SIZE - 10);
	copy(test, to, test->agents.cpu, second, test->gpu, COPY_SIZE);
	CHECK(to[0] == from[0] && !memcmp(from + 6, to + 1, COPY_SIZE - 10));
	MUST(hsa_amd_memory_fill(device, 0x01020304, COPY_SIZE / 4));
	copy(test, to, test->agents.cpu, device, test->gpu, COPY_SIZE);
	CHECK(to[0] == 4 && to[3] == 1 && to[COPY_SIZE - 1] == 1);
	MUST(hsa_amd_memory_pool_free(second));
	MUST(hsa_amd_memory_pool_free(device));
}

int main(int argc, char **argv)
{
	struct test test = { 0 };

	MUST(hsa_init());
	prepare(&test);
	test_barrier(&test);
	test_kernel(&test);
	test_burst(&test, argc > 1 ? atoi(argv[1]) : 200);
	test_dependency(&test);
	test_or(&test);
	test_producers(&test);
	test_order(&test);
	test_scratch(&test);
	test_copies(&test);
	test_invalid(&test);
	MUST(hsa_queue_destroy(test.queue));
	MUST(hsa_shut_down());
	printf(failures ? "%d failures\n" : "vgpu-hsa: ok\n", failures);
	return failures != 0;
}
