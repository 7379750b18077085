/* SPDX-License-Identifier: MIT */
/* The virtual node through the KFD ABI alone: packets of every type, rings, gates, memory, events. Run inside `vgpu
 * run`. */
#include <errno.h>
#include <gpreempt/kfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/e2e/vgpu_client.h"

#define GROUPS      256u
#define SLOW_GROUPS 40000u /* about four rounds of an MI300X at 5 ms each */

struct test {
	struct client client;
	struct client_queue queue;
	uint64_t count, slow, fast;
	uint32_t *counts;
	struct client_kernarg *kernarg;
};

static struct client_kernarg *kernarg_set(struct test *test, uint32_t groups)
{
	memset(test->counts, 0, groups * sizeof(uint32_t));
	*test->kernarg = (struct client_kernarg){ (uintptr_t)test->counts, groups, 0 };
	return test->kernarg;
}

static bool each_is(const uint32_t *counts, uint32_t count, uint32_t value)
{
	for (uint32_t i = 0; i < count; i++)
		if (counts[i] != value)
			return false;
	return true;
}

/* The version is that of Linux 6.12, and an ioctl nobody knows is refused. */
static void test_version(struct test *test)
{
	struct kfd_ioctl_get_version_args version;
	uint64_t unknown[4] = { 0 };

	CLIENT_CHECK(client_ioctl(&test->client, AMDKFD_IOC_GET_VERSION, &version) == 0);
	CLIENT_CHECK(version.major_version == 1 && version.minor_version == 17);
	CLIENT_CHECK(client_ioctl(&test->client, _IOWR('K', 0x7f, unknown), unknown) == -EINVAL);
	CLIENT_CHECK(client_ioctl(&test->client, _IOWR('X', 1, unknown), unknown) == -ENOTTY);
	client_result("version", true);
}

/* A kernel runs each workgroup once; its times lie in order. */
static void test_kernel(struct test *test)
{
	struct client_signal *signal = client_signal(&test->client, 1);
	struct client_packet packet = client_dispatch(test->count, kernarg_set(test, GROUPS), signal);

	client_submit(&test->queue, &packet);
	CLIENT_CHECK(client_wait(signal));
	CLIENT_CHECK(each_is(test->counts, GROUPS, 1));
	CLIENT_CHECK(signal->start && signal->end - signal->start >= 2000); /* 20 us at 100 MHz */
	client_result("kernel", true);
}

/* With the barrier bit a kernel begins after the one before has ended. */
static void test_barrier_bit(struct test *test)
{
	struct client_signal *first = client_signal(&test->client, 1), *second = client_signal(&test->client, 1);
	struct client_packet packet = client_dispatch(test->count, kernarg_set(test, GROUPS), first);

	client_submit(&test->queue, &packet);
	packet.signal = (uintptr_t)second;
	client_submit(&test->queue, &packet);
	CLIENT_CHECK(client_wait(second) && first->value == 0);
	CLIENT_CHECK(first->end <= second->start);
	CLIENT_CHECK(each_is(test->counts, GROUPS, 2));
	client_result("barrier bit", true);
}

/* AND waits for all, OR for one, across queues. */
static void test_dependencies(struct test *test)
{
	struct client_signal *a = client_signal(&test->client, 1), *b = client_signal(&test->client, 1);
	struct client_signal *all = client_signal(&test->client, 1), *any = client_signal(&test->client, 1);
	struct client_barrier and = { .header = 3 | 1 << 8,
				      .deps = { (uintptr_t)a, (uintptr_t)b },
				      .signal = (uintptr_t)all };
	struct client_barrier or
		= { .header = 5 | 1 << 8, .deps = { (uintptr_t)a, 0, (uintptr_t)b }, .signal = (uintptr_t)any };
	struct client_packet packet = client_dispatch(test->count, kernarg_set(test, GROUPS), a);
	struct client_queue second, third;

	client_queue_create(&test->client, &second, 64);
	client_queue_create(&test->client, &third, 64);
	client_submit(&second, &and);
	client_submit(&third, & or);
	client_sleep_ms(5);
	CLIENT_CHECK(all->value == 1 && any->value == 1);
	client_submit(&test->queue, &packet);
	CLIENT_CHECK(client_wait(any));
	client_sleep_ms(5);
	CLIENT_CHECK(all->value == 1);
	packet.signal = (uintptr_t)b;
	client_submit(&test->queue, &packet);
	CLIENT_CHECK(client_wait(all));
	CLIENT_CHECK(client_queue_destroy(&second) == 0 && client_queue_destroy(&third) == 0);
	CLIENT_CHECK(client_queue_destroy(&third) == -EINVAL);
	client_result("dependencies", true);
}

/* A small ring goes round many times. */
static void test_wrap(struct test *test)
{
	struct client_signal *signal = client_signal(&test->client, 500);
	struct client_packet packet = client_dispatch(test->fast, kernarg_set(test, GROUPS), signal);
	struct client_queue queue;

	client_queue_create(&test->client, &queue, 16);
	for (uint32_t i = 0; i < 500u; i++)
		client_submit(&queue, &packet);
	CLIENT_CHECK(client_wait(signal));
	CLIENT_CHECK(each_is(test->counts, GROUPS, 500));
	CLIENT_CHECK(client_read_index(&queue) == 500);
	client_queue_destroy(&queue);
	client_result("ring wrap", true);
}

struct producer {
	struct client_queue *queue;
	struct client_packet packet;
};

static void *produce(void *data)
{
	struct producer *producer = data;

	for (uint32_t i = 0; i < 100u; i++)
		client_submit(producer->queue, &producer->packet);
	return NULL;
}

/* Four threads write into one queue: nothing is lost, nothing runs twice, whatever order the doorbells come in. */
static void test_producers(struct test *test)
{
	struct client_signal *signal = client_signal(&test->client, 400);
	struct producer producer = { &test->queue, client_dispatch(test->fast, kernarg_set(test, GROUPS), signal) };
	pthread_t threads[4];

	for (uint32_t i = 0; i < 4u; i++)
		pthread_create(&threads[i], NULL, produce, &producer);
	for (uint32_t i = 0; i < 4u; i++)
		pthread_join(threads[i], NULL);
	CLIENT_CHECK(client_wait(signal));
	CLIENT_CHECK(each_is(test->counts, GROUPS, 400));
	client_result("several producers", true);
}

/* A packet that is not one stops its queue, with the reason in the inactive signal; other queues go on. */
static void test_invalid(struct test *test)
{
	static const struct {
		uint16_t header, setup, group;
		uint64_t kernel;
		int64_t error;
		const char *name;
	} cases[] = {
		{ 9 | 1 << 8, 1, 64, 1, 32, "unknown type" },
		{ 2 | 1 << 8, 0, 64, 1, 2, "no dimension" },
		{ 2 | 1 << 8, 1, 2048, 1, 64, "workgroup too large" },
		{ 2 | 1 << 8, 1, 64, 0, 8, "no code" },
		{ 0, 5, 64, 1, 256, "vendor packet" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct client_signal *signal = client_signal(&test->client, 1);
		struct client_packet packet =
			client_dispatch(cases[i].kernel ? test->count : 0, kernarg_set(test, GROUPS), signal);
		struct client_queue queue;

		client_queue_create(&test->client, &queue, 64);
		packet.header = cases[i].header;
		packet.setup = cases[i].setup;
		packet.workgroup_size[0] = cases[i].group;
		client_submit(&queue, &packet);
		for (uint32_t j = 0; j < CLIENT_WAIT_MS && !queue.inactive->value; j++)
			client_sleep_ms(1);
		if (queue.inactive->value != cases[i].error || signal->value != 1)
			printf("# %s: error %lld, signal %lld\n", cases[i].name, (long long)queue.inactive->value,
			       (long long)signal->value);
		CLIENT_CHECK(queue.inactive->value == cases[i].error && signal->value == 1);
		CLIENT_CHECK(client_queue_destroy(&queue) == 0);
	}
	client_result("invalid packets", true);
	test_kernel(test);
}

/* A kernel that wants private memory waits until its queue has so much per lane; what is behind it waits too. */
static void test_scratch(struct test *test)
{
	struct client_signal *signal = client_signal(&test->client, 2);
	struct client_packet packet = client_dispatch(test->count, kernarg_set(test, GROUPS), signal);
	struct client_queue queue;

	client_queue_create(&test->client, &queue, 64);
	packet.private_size = 256;
	client_submit(&queue, &packet);
	packet.private_size = 0;
	client_submit(&queue, &packet);
	for (uint32_t i = 0; i < CLIENT_WAIT_MS && !queue.inactive->value; i++)
		client_sleep_ms(1);
	CLIENT_CHECK(queue.inactive->value == 1 && signal->value == 2 && client_read_index(&queue) == 0);
	*(volatile uint32_t *)(void *)(queue.control + 176) = 256;
	__atomic_store_n(&queue.inactive->value, 0, __ATOMIC_RELEASE);
	CLIENT_CHECK(client_wait(signal) && each_is(test->counts, GROUPS, 2));
	/* Asked for once per need, whenever the answer comes: the runtime's handler would not find the packet again. */
	for (uint32_t i = 0; i < 300u; i++) {
		signal->value = 1;
		packet.private_size = 260u + 4u * i;
		client_submit(&queue, &packet);
		/* Without a pause, so that the answer comes at once; 2^20 looks are less than a second. */
		for (uint64_t j = 0; j < 64ull << 20 && !__atomic_load_n(&queue.inactive->value, __ATOMIC_ACQUIRE); j++)
			if (j >= 1u << 20)
				usleep(1000);
		*(volatile uint32_t *)(void *)(queue.control + 176) = packet.private_size;
		__atomic_store_n(&queue.inactive->value, 0, __ATOMIC_RELEASE);
		if (!client_wait(signal) || queue.inactive->value) {
			printf("# request %u was made twice\n", i);
			CLIENT_CHECK(!queue.inactive->value);
			break;
		}
	}
	CLIENT_CHECK(client_queue_destroy(&queue) == 0);
	client_result("scratch", true);
}

/* 0 % sets the work aside, 100 % lets it go on where it was: each workgroup runs once, however often it is stopped. */
static bool gate_kernel(struct test *test, struct client_signal *signal)
{
	struct client_packet packet = client_dispatch(test->slow, kernarg_set(test, SLOW_GROUPS), signal);
	bool was_midway = false;
	uint64_t before, after;

	signal->value = 1;
	client_submit(&test->queue, &packet);
	/* Beside other clients it takes a while until the first workgroups are through. */
	for (uint32_t i = 0; i < 300u && (i < 6u || !was_midway) && signal->value; i++) {
		client_sleep_ms(6);
		CLIENT_CHECK(client_queue_update(&test->queue, 0) == 0);
		before = client_sum(test->counts, SLOW_GROUPS);
		client_sleep_ms(12);
		after = client_sum(test->counts, SLOW_GROUPS);
		CLIENT_CHECK(before == after);
		was_midway |= after > 0 && after < SLOW_GROUPS;
		CLIENT_CHECK(client_queue_update(&test->queue, 100) == 0);
	}
	CLIENT_CHECK(client_wait(signal));
	CLIENT_CHECK(each_is(test->counts, SLOW_GROUPS, 1));
	return was_midway;
}

static void test_gate(struct test *test)
{
	struct client_signal *signal = client_signal(&test->client, 1);
	struct client_packet packet = client_dispatch(test->slow, kernarg_set(test, SLOW_GROUPS), signal);
	uint32_t tries = 0;

	/* On a busy host a kernel may be over before the first stop: then another. */
	while (tries < 100u && !gate_kernel(test, signal))
		tries++;
	CLIENT_CHECK(tries < 100u);
	CLIENT_CHECK(client_queue_update(&test->queue, 101) == -EINVAL);
	/* A packet written while the gate is closed runs when it opens. */
	CLIENT_CHECK(client_queue_update(&test->queue, 0) == 0);
	signal->value = 1;
	packet = client_dispatch(test->count, kernarg_set(test, GROUPS), signal);
	client_submit(&test->queue, &packet);
	client_sleep_ms(10);
	CLIENT_CHECK(signal->value == 1 && client_sum(test->counts, GROUPS) == 0);
	CLIENT_CHECK(client_queue_update(&test->queue, 100) == 0);
	CLIENT_CHECK(client_wait(signal));
	client_result("gate", true);
}

/* Device memory is counted: what is taken is missing, what is too much is refused, what is freed is back. */
static void test_memory(struct test *test)
{
	struct kfd_ioctl_get_available_memory_args before = { .gpu_id = test->client.gpu_id }, after = before;
	struct kfd_ioctl_free_memory_of_gpu_args free_args = { 0 };
	__u64 handle, offset;
	uint64_t va = 0x700000000000ull;

	CLIENT_CHECK(client_ioctl(&test->client, AMDKFD_IOC_AVAILABLE_MEMORY, &before) == 0);
	CLIENT_CHECK(client_try_alloc(&test->client, 1ull << 30, KFD_IOC_ALLOC_MEM_FLAGS_VRAM, va, &free_args.handle,
				      &offset) == 0);
	client_ioctl(&test->client, AMDKFD_IOC_AVAILABLE_MEMORY, &after);
	CLIENT_CHECK(before.available - after.available == 1ull << 30);
	CLIENT_CHECK(client_try_alloc(&test->client, 1ull << 30, KFD_IOC_ALLOC_MEM_FLAGS_VRAM, va, &handle, &offset) ==
		     -EINVAL);
	CLIENT_CHECK(client_try_alloc(&test->client, before.available, KFD_IOC_ALLOC_MEM_FLAGS_VRAM, va + (1ull << 40),
				      &handle, &offset) == -ENOMEM);
	CLIENT_CHECK(client_try_alloc(&test->client, 0, KFD_IOC_ALLOC_MEM_FLAGS_VRAM, va + (1ull << 40), &handle,
				      &offset) == -EINVAL);
	CLIENT_CHECK(client_try_alloc(&test->client, 4096, 0, va + (1ull << 40), &handle, &offset) == -EINVAL);
	CLIENT_CHECK(client_ioctl(&test->client, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &free_args) == 0);
	CLIENT_CHECK(client_ioctl(&test->client, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &free_args) == -EINVAL);
	client_ioctl(&test->client, AMDKFD_IOC_AVAILABLE_MEMORY, &after);
	CLIENT_CHECK(before.available == after.available);
	client_result("memory", true);
}

static int wait_one(struct test *test, uint32_t id, uint32_t timeout_ms, uint32_t *ret_result)
{
	struct kfd_event_data data = { .event_id = id };
	struct kfd_ioctl_wait_events_args args = { .events_ptr = (uintptr_t)&data,
						   .num_events = 1,
						   .timeout = timeout_ms };
	int r = client_ioctl(&test->client, AMDKFD_IOC_WAIT_EVENTS, &args);

	*ret_result = args.wait_result;
	return r;
}

/* Events: a wait ends by time or by a signal; an auto-reset event is taken by one wait; a completion signal raises its
 * event. */
static void test_events(struct test *test)
{
	struct kfd_ioctl_create_event_args create = { .event_type = KFD_IOC_EVENT_SIGNAL, .auto_reset = 1 };
	struct client_signal *signal = client_signal(&test->client, 1);
	struct client_packet packet = client_dispatch(test->count, kernarg_set(test, GROUPS), signal);
	struct kfd_ioctl_set_event_args set;
	uint64_t *mailbox = client_alloc(&test->client, 4096, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	uint32_t result;

	CLIENT_CHECK(client_ioctl(&test->client, AMDKFD_IOC_CREATE_EVENT, &create) == 0 && create.event_page_offset);
	CLIENT_CHECK(wait_one(test, create.event_id, 5, &result) == 0 && result == KFD_IOC_WAIT_RESULT_TIMEOUT);
	set = (struct kfd_ioctl_set_event_args){ create.event_id, 0 };
	CLIENT_CHECK(client_ioctl(&test->client, AMDKFD_IOC_SET_EVENT, &set) == 0);
	CLIENT_CHECK(wait_one(test, create.event_id, CLIENT_WAIT_MS, &result) == 0 &&
		     result == KFD_IOC_WAIT_RESULT_COMPLETE);
	CLIENT_CHECK(wait_one(test, create.event_id, 5, &result) == 0 && result == KFD_IOC_WAIT_RESULT_TIMEOUT);
	CLIENT_CHECK(wait_one(test, 4000, 5, &result) == -EINVAL);
	signal->mailbox = (uintptr_t)mailbox;
	signal->event_id = create.event_id;
	client_submit(&test->queue, &packet);
	CLIENT_CHECK(wait_one(test, create.event_id, CLIENT_WAIT_MS, &result) == 0 &&
		     result == KFD_IOC_WAIT_RESULT_COMPLETE);
	CLIENT_CHECK(*mailbox == create.event_id && signal->value == 0);
	client_result("events", true);
}

/* The descriptor belongs to who opened it: a child that inherits it gets EBADF, and its exit harms nobody. */
static void test_fork(struct test *test)
{
	struct kfd_ioctl_get_version_args version;
	int status = -1;
	pid_t child = fork();

	if (child == 0)
		_exit(client_ioctl(&test->client, AMDKFD_IOC_GET_VERSION, &version) == -EBADF ? 0 : 1);
	waitpid(child, &status, 0);
	CLIENT_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CLIENT_CHECK(client_ioctl(&test->client, AMDKFD_IOC_GET_VERSION, &version) == 0);
	client_result("fork", true);
}

/* Ten thousand queues asked for: as many as a process may have on this device (127, on gfx9.4.3 255), or as the
 * module's parameter allows the device (EPERM), then the right errno; all go, all come back. */
static void test_queue_limit(struct test *test, uint32_t limit, int error)
{
	struct kfd_ioctl_create_queue_args args = { .ring_base_address = (uintptr_t)test->queue.ring,
						    .ring_size = test->queue.ring_size,
						    .gpu_id = test->client.gpu_id,
						    .queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
						    .queue_priority = 7,
						    .write_pointer_address = (uintptr_t)test->kernarg,
						    .read_pointer_address = (uintptr_t)test->kernarg + 8 };
	uint32_t count = 0;
	int r = 0;

	for (uint32_t i = 0; i < 10000u; i++) {
		r = client_ioctl(&test->client, AMDKFD_IOC_CREATE_QUEUE, &args);
		count += r == 0;
		CLIENT_CHECK(r == (i < limit - 1u ? 0 : error));
	}
	CLIENT_CHECK(count == limit - 1u);
	for (uint32_t id = 0; id < 1024u; id++) {
		struct kfd_ioctl_destroy_queue_args destroy = { id, 0 };

		if (id != test->queue.id && client_ioctl(&test->client, AMDKFD_IOC_DESTROY_QUEUE, &destroy) == 0)
			count--;
	}
	CLIENT_CHECK(count == 0);
	client_result("queue limit", true);
}

/* How often the text is in the file now; -1: no such file. */
static int count_in(const char *path, const char *text)
{
	char line[512];
	FILE *stream = fopen(path, "r");
	int count = 0;

	if (!stream)
		return -1;
	while (fgets(line, sizeof(line), stream))
		count += strstr(line, text) != NULL;
	fclose(stream);
	return count;
}

/* Files follow the node within a moment. */
static bool becomes(const char *path, const char *text, int count)
{
	for (uint32_t i = 0; i < CLIENT_WAIT_MS / 10u; i++) {
		if (count_in(path, text) == count)
			return true;
		client_sleep_ms(10);
	}
	printf("# %s has '%s' %d times, not %d\n", path, text, count_in(path, text), count);
	return false;
}

#define DEBUGFS        "/sys/kernel/debug/kfd/"
#define GPU_PROPERTIES "/sys/class/kfd/kfd/topology/nodes/1/properties"

/* debugfs shows where the queues are: in slots, in the runlist, closed or open. */
static void test_debugfs(struct test *test)
{
	char text[64];

	if (count_in(DEBUGFS "rls", "") < 0) {
		printf("# skipped: this kernel has no folder for debugfs\n");
		return;
	}
	snprintf(text, sizeof(text), "MAP_PROCESS pid=%d ", getpid());
	CLIENT_CHECK(becomes(DEBUGFS "rls", text, 1));
	/* CP_HQD_ACTIVE is the third word of a slot's first line. */
	CLIENT_CHECK(becomes(DEBUGFS "hqds", "c914: 00000000 00000000 00000001 ", 1));
	CLIENT_CHECK(becomes(DEBUGFS "hqds", "CP Pipe", 24));
	CLIENT_CHECK(becomes(DEBUGFS "mqds", "active=1", 1));
	CLIENT_CHECK(client_queue_update(&test->queue, 0) == 0);
	CLIENT_CHECK(becomes(DEBUGFS "rls", text, 0));
	CLIENT_CHECK(becomes(DEBUGFS "hqds", "c914: 00000000 00000000 00000001 ", 0));
	CLIENT_CHECK(becomes(DEBUGFS "mqds", "active=0 percent=0", 1));
	CLIENT_CHECK(client_queue_update(&test->queue, 100) == 0);
	CLIENT_CHECK(becomes(DEBUGFS "rls", text, 1));
	client_result("debugfs", true);
}

/* proc/ has the process: its queues, its memory, and how much of the GPU it fills. */
static void test_proc(struct test *test)
{
	struct client_signal *signal = client_signal(&test->client, 1);
	struct client_packet packet = client_dispatch(test->slow, kernarg_set(test, SLOW_GROUPS), signal);
	char path[128], text[32];

#define PROC(...) (snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/" __VA_ARGS__), path)
	snprintf(text, sizeof(text), "%u", test->queue.ring_size);
	CLIENT_CHECK(count_in(PROC("%d/queues/%u/size", getpid(), test->queue.id), text) == 1);
	CLIENT_CHECK(count_in(PROC("%d/queues/%u/type", getpid(), test->queue.id), "0") == 1);
	snprintf(text, sizeof(text), "%u", test->client.gpu_id);
	CLIENT_CHECK(count_in(PROC("%d/queues/%u/gpuid", getpid(), test->queue.id), text) == 1);
	CLIENT_CHECK(count_in(PROC("%d/pasid", getpid()), "327") == 1);
	/* The counts are all the device memory there is. */
	snprintf(text, sizeof(text), "%zu", (SLOW_GROUPS * sizeof(uint32_t) + 4095u) & ~(size_t)4095u);
	CLIENT_CHECK(becomes(PROC("%d/vram_%u", getpid(), test->client.gpu_id), text, 1));
	CLIENT_CHECK(count_in(PROC("%d/sdma_%u", getpid(), test->client.gpu_id), "0") == 1);
	CLIENT_CHECK(count_in(PROC("%d/stats_%u/evicted_ms", getpid(), test->client.gpu_id), "0") == 1);
	/* A kernel that fills the device, stopped half way so that the files can follow. */
	CLIENT_CHECK(client_queue_update(&test->queue, 0) == 0);
	CLIENT_CHECK(becomes(PROC("%d/stats_%u/cu_occupancy", getpid(), test->client.gpu_id), "0", 1));
	client_submit(&test->queue, &packet);
	CLIENT_CHECK(client_queue_update(&test->queue, 100) == 0);
	CLIENT_CHECK(client_wait(signal));
#undef PROC
	client_result("proc", true);
}

/* Without context save (cwsr_enable=0) 0 % waits for the workgroups that run and keeps the others from starting: what
 * began is finished when the answer comes, what did not begins after 100 %. */
static void test_drain(struct test *test)
{
	struct client_signal *signal = client_signal(&test->client, 1);
	struct client_packet packet = client_dispatch(test->slow, kernarg_set(test, SLOW_GROUPS), signal);
	uint64_t before;

	CLIENT_CHECK(count_in("/sys/module/amdgpu/parameters/cwsr_enable", "0") == 1);
	client_submit(&test->queue, &packet);
	client_sleep_ms(3); /* the first round takes 5 ms */
	CLIENT_CHECK(client_queue_update(&test->queue, 0) == 0);
	before = client_sum(test->counts, SLOW_GROUPS);
	client_sleep_ms(20);
	CLIENT_CHECK(client_sum(test->counts, SLOW_GROUPS) == before && (before % 304u == 0 || before == SLOW_GROUPS));
	CLIENT_CHECK(client_queue_update(&test->queue, 100) == 0);
	CLIENT_CHECK(client_wait(signal) && each_is(test->counts, SLOW_GROUPS, 1));
	client_result("without context save", true);
}

/* Through FUSE the driver's 524 cannot be told: the answer would be thrown away and the caller wait for ever. */
static void test_type(struct test *test)
{
	struct kfd_ioctl_create_queue_args args = {
		.ring_base_address = (uintptr_t)test->queue.ring,
		.write_pointer_address = (uintptr_t)test->queue.control + 56u,
		.read_pointer_address = (uintptr_t)test->queue.control + 128u,
		.ring_size = test->queue.ring_size,
		.gpu_id = test->client.gpu_id,
		.queue_type = 77,
		.queue_percentage = 100,
		.queue_priority = 7,
	};
	int r = client_ioctl(&test->client, AMDKFD_IOC_CREATE_QUEUE, &args);

	CLIENT_CHECK(r == (access("/dev/.vgpu", F_OK) == 0 ? -EOPNOTSUPP : -524));
	client_result("unknown type of queue", true);
}

/* sched_policy=1 and 2: no queue beyond the slots. They are active, so that each takes one. */
static void test_full(struct test *test, int error)
{
	struct client_queue queues[32];
	uint32_t count = 0;
	int r = 0;

	/* 24 slots, of which the test's own queue has one. */
	while (count < 32u && (r = client_queue_try_create(&test->client, &queues[count], 64)) == 0)
		count++;
	CLIENT_CHECK(count == 23 && r == error);
	while (count)
		CLIENT_CHECK(client_queue_destroy(&queues[--count]) == 0);
	client_result("no oversubscription", true);
}

/* sched_policy=2: no debugging, of oneself neither; other calls are as ever. */
static void test_no_trap(struct test *test)
{
	struct gp_kfd_dbg_trap args = { .pid = (uint32_t)getpid(), .op = GP_KFD_DBG_ENABLE };

	CLIENT_CHECK(client_ioctl(&test->client, _IOWR('K', GP_KFD_NR_DBG_TRAP, struct gp_kfd_dbg_trap), &args) ==
		     -EINVAL);
	client_result("no debugging without HWS", true);
}

int main(int argc, char **argv)
{
	struct test test = { 0 };

	client_open(&test.client);
	client_queue_create(&test.client, &test.queue, 256);
	test.count = client_kernel(&test.client, CLIENT_KERNEL_COUNT);
	test.slow = client_kernel(&test.client, CLIENT_KERNEL_SLOW);
	test.fast = client_kernel(&test.client, CLIENT_KERNEL_FAST);
	test.counts = client_alloc(&test.client, SLOW_GROUPS * sizeof(uint32_t), KFD_IOC_ALLOC_MEM_FLAGS_VRAM);
	test.kernarg = client_alloc(&test.client, 4096, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	test_version(&test);
	if (argc > 1 && !strcmp(argv[1], "drain")) {
		test_drain(&test);
		return client_done();
	}
	if (argc > 1 && !strcmp(argv[1], "limits")) {
		test_queue_limit(&test, 20, -EPERM);
		return client_done();
	}
	if (argc > 1 && !strcmp(argv[1], "full")) {
		test_full(&test, -EPERM);
		return client_done();
	}
	if (argc > 1 && !strcmp(argv[1], "no-hws")) {
		test_full(&test, -EBUSY);
		test_no_trap(&test);
		test_gate(&test);
		return client_done();
	}
	/* With an argument: nobody else is on the node. */
	if (argc > 1) {
		test_debugfs(&test);
		test_proc(&test);
	}
	test_kernel(&test);
	test_barrier_bit(&test);
	test_dependencies(&test);
	test_wrap(&test);
	test_producers(&test);
	test_invalid(&test);
	test_scratch(&test);
	test_gate(&test);
	test_type(&test);
	test_memory(&test);
	test_events(&test);
	test_fork(&test);
	test_queue_limit(&test, count_in(GPU_PROPERTIES, "gfx_target_version 90402") == 1 ? 255u : 127u, -ENOSPC);
	return client_done();
}
