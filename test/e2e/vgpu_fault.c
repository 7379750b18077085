/* SPDX-License-Identifier: MIT */
/* Faults on demand, seen from a client. Usage: vgpu-fault PATH-OF-VGPU, inside `vgpu run`. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "test/e2e/vgpu_client.h"

#define GROUPS 256u

struct test {
	struct client client;
	uint64_t count, counts_handle;
	uint32_t *counts;
	struct client_kernarg *kernarg;
	const char *vgpu, *self;
};

/* A call that another thread waits in. */
struct update {
	struct client_queue *queue;
	volatile int result; /* 1: not back yet */
};

static void *update_thread(void *data)
{
	struct update *update = data;

	update->result = client_queue_update(update->queue, 0);
	return NULL;
}

/* This program again, with one test. */
static int another(struct test *test, const char *name)
{
	char command[1024];

	snprintf(command, sizeof(command), "'%s' '%s' %s", test->self, test->vgpu, name);
	return system(command);
}

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
						   .timeout = CLIENT_WAIT_MS };

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

/* Of a process whose memory fault is not a debugger's all queues on that GPU stop; it hears of it through its memory
 * event, with address and GPU. */
static void test_vm(struct test *test)
{
	struct client_signal *signal = client_signal(&test->client, 1);
	uint32_t id = event_create(test, KFD_IOC_EVENT_MEMORY);
	struct kfd_event_data data;
	struct client_queue queue, other;

	client_queue_create(&test->client, &queue, 64);
	client_queue_create(&test->client, &other, 64);
	CLIENT_CHECK(fault(test, "vm", &queue) == 0);
	CLIENT_CHECK(event_wait(test, id, &data));
	CLIENT_CHECK(data.memory_exception_data.va == 0xbad000 &&
		     data.memory_exception_data.gpu_id == test->client.gpu_id &&
		     data.memory_exception_data.failure.NotPresent);
	start(test, &other, signal);
	client_sleep_ms(10);
	CLIENT_CHECK(signal->value == 1);
	CLIENT_CHECK(client_queue_destroy(&queue) == 0 && client_queue_destroy(&other) == 0);
	client_result("memory fault", true);
}

/* Memory that is not mapped on the GPU is not there for its kernels. */
static void test_unmapped(struct test *test)
{
	struct client_signal *signal = client_signal(&test->client, 1);
	uint32_t id = event_create(test, KFD_IOC_EVENT_MEMORY);
	struct kfd_ioctl_unmap_memory_from_gpu_args unmap = { .handle = test->counts_handle,
							      .device_ids_array_ptr = (uintptr_t)test->client.gpu_ids,
							      .n_devices = test->client.gpu_count };
	struct client_queue queue;
	struct kfd_event_data data;

	client_queue_create(&test->client, &queue, 64);
	CLIENT_CHECK(client_ioctl(&test->client, AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, &unmap) == 0);
	CLIENT_CHECK(unmap.n_success == test->client.gpu_count);
	start(test, &queue, signal);
	CLIENT_CHECK(event_wait(test, id, &data));
	CLIENT_CHECK(data.memory_exception_data.va == (uintptr_t)test->counts && signal->value == 1);
	client_result("unmapped memory", true);
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

/* A queue the firmware could not preempt is reset: its process is told, and its updates are refused from then on; the
 * rest of it, and others, go on. */
static void test_close(struct test *test)
{
	struct client_signal *signal = client_signal(&test->client, 1);
	uint32_t id = event_create(test, KFD_IOC_EVENT_HW_EXCEPTION);
	struct client_queue queue, other;
	struct kfd_event_data data;

	client_queue_create(&test->client, &queue, 64);
	client_queue_create(&test->client, &other, 64);
	CLIENT_CHECK(fault(test, "close-fails", &queue) == 0);
	CLIENT_CHECK(client_queue_update(&queue, 0) == -EACCES);
	CLIENT_CHECK(event_wait(test, id, &data) && data.hw_exception_data.gpu_id == test->client.gpu_id);
	start(test, &other, signal);
	CLIENT_CHECK(client_wait(signal));
	CLIENT_CHECK(client_queue_update(&other, 100) == -EACCES);
	CLIENT_CHECK(another(test, "lives") == 0);
	CLIENT_CHECK(client_queue_destroy(&queue) == 0 && client_queue_destroy(&other) == 0);
	client_result("preemption fails", true);
}

static void *create_thread(void *data)
{
	struct test *test = data;
	struct client_queue queue;

	return (void *)(intptr_t)client_queue_try_create(&test->client, &queue, 64);
}

/* What all processes see after a reset: the event, EACCES, and nothing that runs any more, on new queues neither. A
 * process that comes later finds a GPU that works. */
static void after_reset(struct test *test, uint32_t event, struct client_queue *queue)
{
	struct client_signal *signal = client_signal(&test->client, 1);
	struct client_queue late;
	struct kfd_event_data data;

	CLIENT_CHECK(event_wait(test, event, &data) && data.hw_exception_data.gpu_id == test->client.gpu_id &&
		     data.hw_exception_data.memory_lost);
	CLIENT_CHECK(client_queue_update(queue, 100) == -EACCES);
	CLIENT_CHECK(client_queue_destroy(queue) == 0);
	client_queue_create(&test->client, &late, 64);
	start(test, &late, signal);
	client_sleep_ms(10);
	CLIENT_CHECK(signal->value == 1);
	CLIENT_CHECK(client_queue_destroy(&late) == 0);
	CLIENT_CHECK(another(test, "lives") == 0);
}

static bool timeout_set(const char *text)
{
	FILE *stream = fopen("/sys/module/amdgpu/parameters/queue_preemption_timeout_ms", "w");

	if (!stream)
		return false;
	fputs(text, stream);
	return fclose(stream) == 0;
}

/* Until the node has a queue of ours that looks like this; it is shown with what was asked for, though the call waits.
 */
static bool queue_becomes(struct test *test, uint32_t id, const char *looks)
{
	char command[512];

	snprintf(command, sizeof(command), "'%s' ls -v | grep -q '^queue pid=%d id=%u .*%s'", test->vgpu, getpid(), id,
		 looks);
	for (uint32_t i = 0; i < CLIENT_WAIT_MS / 10u; i++) {
		if (system(command) == 0)
			return true;
		client_sleep_ms(10);
	}
	return false;
}

/* A preemption nobody answers holds the device, and everybody who wants something of it, until the GPU is reset. The
 * driver's timeout would do that; here it is too far away, and a fault does. */
static void test_held(struct test *test)
{
	uint32_t id = event_create(test, KFD_IOC_EVENT_HW_EXCEPTION);
	struct client_queue queue, other;
	struct update update = { &queue, 1 };
	void *created = NULL;
	pthread_t thread, creator;

	client_queue_create(&test->client, &queue, 64);
	client_queue_create(&test->client, &other, 64);
	CLIENT_CHECK(timeout_set("600000\n") && fault(test, "close-hangs", &queue) == 0);
	pthread_create(&thread, NULL, update_thread, &update);
	CLIENT_CHECK(queue_becomes(test, queue.id, " percent=0 "));
	pthread_create(&creator, NULL, create_thread, test);
	CLIENT_CHECK(queue_becomes(test, other.id + 1u, ""));
	client_sleep_ms(50);
	CLIENT_CHECK(update.result == 1 && pthread_tryjoin_np(creator, &created) == EBUSY);
	CLIENT_CHECK(timeout_set("9000\n") && fault(test, "reset=0", NULL) == 0);
	pthread_join(creator, &created);
	pthread_join(thread, NULL);
	CLIENT_CHECK((int)(intptr_t)created == -EIO && update.result == -EACCES);
	CLIENT_CHECK(client_queue_destroy(&queue) == 0);
	after_reset(test, id, &other);
	client_result("an unanswered preemption holds the device", true);
}

/* After the driver's timeout the GPU is reset. */
static void test_timeout(struct test *test)
{
	uint32_t id = event_create(test, KFD_IOC_EVENT_HW_EXCEPTION);
	struct client_queue queue, other;

	client_queue_create(&test->client, &queue, 64);
	client_queue_create(&test->client, &other, 64);
	CLIENT_CHECK(timeout_set("100\n") && fault(test, "close-hangs", &queue) == 0);
	CLIENT_CHECK(client_queue_update(&queue, 0) == -EACCES);
	CLIENT_CHECK(client_queue_destroy(&queue) == 0);
	after_reset(test, id, &other);
	CLIENT_CHECK(timeout_set("9000\n"));
	client_result("preemption times out", true);
}

/* The same by a destruction: it says so, and the queue is gone. */
static void test_timeout_destroy(struct test *test)
{
	uint32_t id = event_create(test, KFD_IOC_EVENT_HW_EXCEPTION);
	struct client_queue queue, other;

	client_queue_create(&test->client, &queue, 64);
	client_queue_create(&test->client, &other, 64);
	CLIENT_CHECK(timeout_set("100\n") && fault(test, "close-hangs", &queue) == 0);
	CLIENT_CHECK(client_queue_destroy(&queue) == -ETIME);
	CLIENT_CHECK(client_queue_destroy(&queue) == -EINVAL);
	after_reset(test, id, &other);
	CLIENT_CHECK(timeout_set("9000\n"));
	client_result("destruction times out", true);
}

static void test_reset(struct test *test)
{
	uint32_t id = event_create(test, KFD_IOC_EVENT_HW_EXCEPTION);
	struct client_queue queue;

	client_queue_create(&test->client, &queue, 64);
	CLIENT_CHECK(fault(test, "reset=0", NULL) == 0);
	after_reset(test, id, &queue);
	client_result("reset", true);
}

/* What comes on the descriptor of the management events up to the end of a text, or (NULL) within a moment. */
static void smi_read(int fd, const char *end, char *ret_text, size_t size)
{
	uint32_t tries = end ? CLIENT_WAIT_MS / 5u : 20u;
	size_t used = 0;
	ssize_t got;

	ret_text[0] = 0;
	for (uint32_t i = 0; i < tries && !(end && strstr(ret_text, end)); i++) {
		while (used < size - 1u && (got = read(fd, ret_text + used, size - 1u - used)) > 0)
			used += (size_t)got;
		ret_text[used] = 0;
		client_sleep_ms(5);
	}
}

/* Events of the management interface: lines of those that were asked for, on a descriptor of one's own. Through FUSE no
 * descriptor can be handed out, and that is said. */
static void test_smi(struct test *test)
{
	struct kfd_ioctl_smi_events_args args = { .gpuid = test->client.gpu_id };
	uint64_t mask = 1u << 0 | 1u << 2 | 1u << 3 | 1u << 8; /* fault, before and after a reset, eviction */
	struct client_queue queue;
	char text[2048], line[64];
	int r = client_ioctl(&test->client, AMDKFD_IOC_SMI_EVENTS, &args), fd = (int)args.anon_fd;

	if (access("/dev/.vgpu", F_OK) == 0) {
		CLIENT_CHECK(r == -EOPNOTSUPP);
		client_result("no management events through FUSE", true);
		return;
	}
	CLIENT_CHECK(r == 0 && read(fd, text, sizeof(text)) < 0 && errno == EAGAIN);
	client_queue_create(&test->client, &queue, 64);
	CLIENT_CHECK(fault(test, "vm", &queue) == 0);
	smi_read(fd, NULL, text, sizeof(text));
	CLIENT_CHECK(!*text); /* nothing was asked for */
	CLIENT_CHECK(write(fd, &mask, sizeof(mask)) == sizeof(mask));
	CLIENT_CHECK(fault(test, "vm", &queue) == 0);
	smi_read(fd, "\n", text, sizeof(text));
	snprintf(line, sizeof(line), "1 %x:vgpu-fault\n", (unsigned int)getpid());
	CLIENT_CHECK(!strcmp(text, line));
	CLIENT_CHECK(fault(test, "reset=0", NULL) == 0);
	smi_read(fd, "\n4 ", text, sizeof(text));
	snprintf(line, sizeof(line), " -%d %x 3\n", getpid(), test->client.gpu_id);
	CLIENT_CHECK(!strncmp(text, "3 ", 2) && strstr(text, "\n9 ") && strstr(text, line) && strstr(text, "\n4 "));
	args.gpuid = 1;
	CLIENT_CHECK(client_ioctl(&test->client, AMDKFD_IOC_SMI_EVENTS, &args) == -EINVAL);
	client_result("management events", true);
}

/* Slowed down a thousand times, 20 us are 20 ms: by the GPU's own counter. */
static void test_slow(struct test *test)
{
	struct client_signal *signal = client_signal(&test->client, 1);
	struct client_queue queue;

	client_queue_create(&test->client, &queue, 64);
	CLIENT_CHECK(fault(test, "slow=1000", NULL) == 0);
	CLIENT_CHECK(system("[ \"$(cat /sys/module/amdgpu/vgpu_dilation)\" = 1000 ]") == 0);
	start(test, &queue, signal);
	CLIENT_CHECK(client_wait(signal));
	CLIENT_CHECK(signal->end - signal->start >= 2000000);
	CLIENT_CHECK(fault(test, "slow=1", NULL) == 0);
	CLIENT_CHECK(client_queue_destroy(&queue) == 0);
	client_result("slow device", true);
}

/* Each call is answered when the halt it causes is over, and causes as many as the driver's does. The device is slowed
 * down so that a call answered too early would be seen. */
static void test_halts(struct test *test)
{
	struct kfd_ioctl_set_cu_mask_args mask = { .num_cu_mask = 32 };
	uint32_t bits = 0xffff;
	struct client_queue queue, parked;
	long before;

	CLIENT_CHECK(fault(test, "slow=100", NULL) == 0);
	before = client_halts(test->vgpu);
	client_queue_create(&test->client, &queue, 64);
	CLIENT_CHECK(client_halts(test->vgpu) == before + 1);
	CLIENT_CHECK(client_queue_update(&queue, 100) == 0); /* changes nothing */
	CLIENT_CHECK(client_halts(test->vgpu) == before + 2);
	mask.queue_id = queue.id;
	mask.cu_mask_ptr = (uintptr_t)&bits;
	CLIENT_CHECK(client_ioctl(&test->client, AMDKFD_IOC_SET_CU_MASK, &mask) == 0);
	CLIENT_CHECK(client_halts(test->vgpu) == before + 3);
	test->client.percent = 0;
	client_queue_create(&test->client, &parked, 64);
	CLIENT_CHECK(client_queue_destroy(&parked) == 0);
	CLIENT_CHECK(client_halts(test->vgpu) == before + 3);
	CLIENT_CHECK(client_queue_destroy(&queue) == 0);
	CLIENT_CHECK(client_halts(test->vgpu) == before + 4);
	CLIENT_CHECK(fault(test, "slow=1", NULL) == 0);
	client_result("halts", true);
}

/* A neighbour whose queue works. */
static void test_lives(struct test *test)
{
	struct client_signal *signal = client_signal(&test->client, 1);
	struct client_queue queue;

	client_queue_create(&test->client, &queue, 64);
	CLIENT_CHECK(client_queue_update(&queue, 100) == 0);
	start(test, &queue, signal);
	CLIENT_CHECK(client_wait(signal));
	CLIENT_CHECK(client_queue_destroy(&queue) == 0);
	client_result("another process", true);
}

/* A product of two matrices of n by n, all ones: n^3 steps for the host, next to nothing for the GPU. Whether another
 * queue's kernel of 5 ms is over before it. */
static bool heavy_is_overtaken(struct test *test, struct client_queue *queue, struct client_queue *other, uint32_t n)
{
	float *a = client_alloc(&test->client, 4ull * n * n, KFD_IOC_ALLOC_MEM_FLAGS_VRAM);
	float *c = client_alloc(&test->client, 4ull * n * n, KFD_IOC_ALLOC_MEM_FLAGS_VRAM);
	struct client_signal *heavy = client_signal(&test->client, 1), *light = client_signal(&test->client, 1);
	struct client_packet packet;
	uint64_t *kernarg = client_alloc(&test->client, 4096, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	bool overtaken;

	for (uint64_t i = 0; i < (uint64_t)n * n; i++)
		a[i] = 1;
	kernarg[0] = kernarg[1] = (uintptr_t)a;
	kernarg[2] = (uintptr_t)c;
	kernarg[3] = n;
	*test->kernarg = (struct client_kernarg){ (uintptr_t)test->counts, GROUPS, 0 };
	packet = client_dispatch(client_kernel(&test->client, CLIENT_KERNEL_SLOW), test->kernarg, light);
	client_submit(other, &packet);
	packet = (struct client_packet){
		.header = 2 | 1 << 8,
		.setup = 2,
		.workgroup_size = { 16, 16, 1 },
		.grid_size = { n, n, 1 },
		.kernel = client_kernel(&test->client, CLIENT_KERNEL_HEAVY),
		.kernarg = (uintptr_t)kernarg,
		.signal = (uintptr_t)heavy,
	};
	client_submit(queue, &packet);
	CLIENT_CHECK(client_wait(light));
	overtaken = heavy->value;
	/* What follows it in its own queue comes after it. */
	light->value = 1;
	start(test, queue, light);
	for (uint32_t i = 0; i < 20u && light->value; i++)
		client_wait(light);
	CLIENT_CHECK(light->value == 0 && heavy->value == 0);
	CLIENT_CHECK(c[0] == (float)n && c[(uint64_t)n * n - 1u] == (float)n);
	return overtaken;
}

/* What the host takes long to compute keeps nobody else from going on. */
static void test_heavy(struct test *test)
{
	struct client_queue queue, other;
	uint32_t n = 512;

	client_queue_create(&test->client, &queue, 64);
	client_queue_create(&test->client, &other, 64);
	/* On a fast host the small one may be over at once. */
	while (n <= 2048u && !heavy_is_overtaken(test, &queue, &other, n))
		n *= 2u;
	CLIENT_CHECK(n <= 2048u);
	CLIENT_CHECK(client_queue_destroy(&queue) == 0);
	client_result("heavy work beside others", true);
}

static const struct {
	const char *name;
	void (*run)(struct test *test);
} tests[] = {
	{ "ioctl", test_ioctl },       { "vm", test_vm },
	{ "unmapped", test_unmapped }, { "hang", test_hang },
	{ "close", test_close },       { "held", test_held },
	{ "timeout", test_timeout },   { "timeout-destroy", test_timeout_destroy },
	{ "reset", test_reset },       { "smi", test_smi },
	{ "slow", test_slow },         { "halts", test_halts },
	{ "heavy", test_heavy },       { "lives", test_lives },
};

/* Each in a process of its own: what a fault does to a process lasts as long as the process. */
int main(int argc, char **argv)
{
	struct test test = { .vgpu = argc > 1 ? argv[1] : "vgpu", .self = argv[0] };
	int failures = 0;

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (argc < 3) {
			failures += another(&test, tests[i].name) != 0;
			continue;
		}
		if (strcmp(tests[i].name, argv[2]))
			continue;
		client_open(&test.client);
		test.count = client_kernel(&test.client, CLIENT_KERNEL_COUNT);
		test.counts = client_alloc(&test.client, GROUPS * sizeof(uint32_t), KFD_IOC_ALLOC_MEM_FLAGS_VRAM);
		test.counts_handle = test.client.handle;
		test.kernarg = client_alloc(&test.client, 4096, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
		tests[i].run(&test);
		return client_done();
	}
	return failures != 0;
}
