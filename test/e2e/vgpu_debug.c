/* SPDX-License-Identifier: MIT */
/* Stopping queues from outside, by the rules of Linux 6.12: RUNTIME_ENABLE, DBG_TRAP on oneself and as a tracer, CRIU
 * pause. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/e2e/vgpu_client.h"

#define GROUPS             200000u /* about a tenth of a second of an MI300X */
#define INVALID            (1u << 31)
#define EC_QUEUE_NEW       (1ull << 30)
#define EC_QUEUE_DELETE    (1ull << 31)
#define EC_PROCESS_RUNTIME (1ull << 47)

struct runtime_args {
	uint64_t r_debug;
	uint32_t mode, capabilities;
};
struct trap_args {
	uint32_t pid, op;
	union {
		uint64_t words[4];
		struct {
			uint64_t mask, array;
			uint32_t count, grace;
		} queues;
		struct {
			uint64_t mask, rinfo;
			uint32_t rinfo_size, dbg_fd;
		} enable;
		struct {
			uint64_t mask;
			uint32_t gpu_id, queue_id;
		} query;
		struct {
			uint64_t address;
			uint32_t size, source, code, clear;
		} info;
	};
};
struct device_entry {
	uint64_t status, apertures[6];
	uint32_t gpu_id, more[15];
};
#define RUNTIME_ENABLE _IOWR('K', 0x25, struct runtime_args)
#define DBG_TRAP       _IOWR('K', 0x26, struct trap_args)
enum {
	ENABLE,
	DISABLE,
	SEND_RUNTIME_EVENT,
	SET_EXCEPTIONS,
	SUSPEND = 6,
	RESUME = 7,
	QUERY_DEBUG_EVENT = 11,
	EXCEPTION_INFO,
	SNAPSHOT,
	DEVICE_SNAPSHOT,
};
struct snapshot {
	uint64_t status, ring, wptr, rptr, cwsr;
	uint32_t id, gpu, size, type, cwsr_size, reserved;
};

struct test {
	struct client client;
	struct client_queue queue;
	uint64_t slow;
	uint32_t *counts;
	struct client_kernarg *kernarg;
};

static int runtime(struct test *test, uint32_t mode)
{
	struct runtime_args args = { 0, mode, 0 };

	return client_ioctl(&test->client, RUNTIME_ENABLE, &args);
}

static int trap(struct test *test, pid_t pid, uint32_t op)
{
	struct trap_args args = { .pid = (uint32_t)pid, .op = op };

	return client_ioctl(&test->client, DBG_TRAP, &args);
}

static int change(struct test *test, pid_t pid, uint32_t op, uint32_t *ids, uint32_t count)
{
	struct trap_args args = { .pid = (uint32_t)pid, .op = op };

	if (op == SUSPEND) {
		args.queues.array = (uintptr_t)ids;
		args.queues.count = count;
	} else {
		args.words[0] = (uintptr_t)ids;
		args.words[1] = count;
	}
	return client_ioctl(&test->client, DBG_TRAP, &args);
}

static int snapshot(struct test *test, pid_t pid, uint64_t clear, struct snapshot *entries, uint32_t room,
		    uint32_t *ret_count)
{
	struct trap_args args = { .pid = (uint32_t)pid, .op = SNAPSHOT };
	int r;

	args.queues.mask = clear;
	args.queues.array = (uintptr_t)entries;
	args.queues.count = room;
	args.queues.grace = sizeof(*entries);
	r = client_ioctl(&test->client, DBG_TRAP, &args);
	*ret_count = args.queues.count;
	return r;
}

static void start(struct test *test, struct client_signal *signal)
{
	struct client_packet packet;

	memset(test->counts, 0, GROUPS * sizeof(uint32_t));
	*test->kernarg = (struct client_kernarg){ (uintptr_t)test->counts, GROUPS, 0 };
	packet = client_dispatch(test->slow, test->kernarg, signal);
	client_submit(&test->queue, &packet);
}

static bool stands_still(struct test *test)
{
	uint64_t before = client_sum(test->counts, GROUPS);

	client_sleep_ms(15);
	return client_sum(test->counts, GROUPS) == before;
}

static bool once(struct test *test)
{
	for (uint32_t i = 0; i < GROUPS; i++)
		if (test->counts[i] != 1)
			return false;
	return true;
}

/* Who may, and when: each rule with its errno. */
static void test_rules(struct test *test)
{
	uint32_t ids[1] = { 0 };

	CLIENT_CHECK(trap(test, getpid(), SUSPEND) == -EINVAL); /* not enabled for debugging */
	CLIENT_CHECK(trap(test, 1, ENABLE) == -ESRCH);          /* a process that does not use the device */
	CLIENT_CHECK(trap(test, getpid(), ENABLE) == 0);
	CLIENT_CHECK(trap(test, getpid(), ENABLE) == -EALREADY);
	CLIENT_CHECK(change(test, getpid(), SUSPEND, ids, 1) == -EPERM); /* runtime not enabled */
	CLIENT_CHECK(trap(test, getpid(), DISABLE) == 0);
	CLIENT_CHECK(runtime(test, 1) == 0);
	CLIENT_CHECK(runtime(test, 1) == -EBUSY);
	CLIENT_CHECK(runtime(test, 0) == 0);
	client_queue_create(&test->client, &test->queue, 64);
	CLIENT_CHECK(runtime(test, 1) == -EEXIST); /* a queue exists already */
	CLIENT_CHECK(client_queue_destroy(&test->queue) == 0);
	CLIENT_CHECK(runtime(test, 1) == 0);
	client_queue_create(&test->client, &test->queue, 64);
	CLIENT_CHECK(trap(test, getpid(), ENABLE) == 0);
	client_result("rules", true);
}

/* A queue the debugger has not acknowledged cannot be suspended; the snapshot acknowledges it. */
static void test_new(struct test *test)
{
	uint32_t ids[2] = { test->queue.id, 777 }, count;
	struct snapshot entries[4] = { 0 };

	CLIENT_CHECK(change(test, getpid(), SUSPEND, ids, 2) == 0);
	CLIENT_CHECK(ids[0] == (test->queue.id | INVALID) && ids[1] == (777 | INVALID));
	CLIENT_CHECK(snapshot(test, getpid(), EC_QUEUE_NEW, entries, 4, &count) == 0 && count == 1);
	CLIENT_CHECK(entries[0].status == EC_QUEUE_NEW && entries[0].id == test->queue.id &&
		     entries[0].ring == (uintptr_t)test->queue.ring && entries[0].size == test->queue.ring_size &&
		     entries[0].type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	CLIENT_CHECK(snapshot(test, getpid(), 0, entries, 4, &count) == 0 && entries[0].status == 0);
	client_result("new queue", true);
}

/* Suspended work stands still and goes on where it was. */
static bool suspend_kernel(struct test *test, struct client_signal *signal)
{
	uint32_t ids[1] = { test->queue.id };
	bool midway = false;

	signal->value = 1;
	start(test, signal);
	for (uint32_t i = 0; i < 4u; i++) {
		client_sleep_ms(5);
		CLIENT_CHECK(change(test, getpid(), SUSPEND, ids, 1) == 1 && ids[0] == test->queue.id);
		CLIENT_CHECK(stands_still(test));
		midway |= client_sum(test->counts, GROUPS) < GROUPS;
		CLIENT_CHECK(change(test, getpid(), RESUME, ids, 1) == 1 && ids[0] == test->queue.id);
	}
	CLIENT_CHECK(client_wait(signal) && once(test));
	return midway;
}

static void test_suspend(struct test *test)
{
	struct client_signal *signal = client_signal(&test->client, 1);
	uint32_t tries = 0;

	/* On a busy host a kernel may be over before the first suspend: then another. */
	while (tries < 100u && !suspend_kernel(test, signal))
		tries++;
	CLIENT_CHECK(tries < 100u);
	client_result("suspend and resume", true);
}

static void *destroy_thread(void *data)
{
	struct test *test = data;

	return (void *)(intptr_t)client_queue_destroy(&test->queue);
}

/* Destroying a suspended queue waits for its resume. */
static void test_destroy(struct test *test)
{
	uint32_t ids[1] = { test->queue.id };
	pthread_t thread;
	void *result = (void *)1;

	CLIENT_CHECK(change(test, getpid(), SUSPEND, ids, 1) == 1);
	pthread_create(&thread, NULL, destroy_thread, test);
	client_sleep_ms(20);
	CLIENT_CHECK(pthread_tryjoin_np(thread, &result) == EBUSY);
	CLIENT_CHECK(change(test, getpid(), RESUME, NULL, 0) == 1);
	pthread_join(thread, &result);
	CLIENT_CHECK(result == NULL);
	client_result("destroy waits", true);
}

static void *runtime_enable_thread(void *data)
{
	return (void *)(intptr_t)runtime(data, 1);
}

static void *runtime_thread(void *data)
{
	return (void *)(intptr_t)runtime(data, 0);
}

/* Leaving the runtime waits while somebody debugs, until the debugger says go on; detaching is not that. */
static void test_runtime_disable(struct test *test)
{
	struct trap_args args = { .pid = (uint32_t)getpid(), .op = SEND_RUNTIME_EVENT };
	void *result = (void *)1;
	pthread_t thread;

	pthread_create(&thread, NULL, runtime_thread, test);
	client_sleep_ms(20);
	CLIENT_CHECK(pthread_tryjoin_np(thread, &result) == EBUSY);
	args.words[0] = EC_PROCESS_RUNTIME;
	CLIENT_CHECK(client_ioctl(&test->client, DBG_TRAP, &args) == 0);
	pthread_join(thread, &result);
	CLIENT_CHECK(result == NULL);
	CLIENT_CHECK(trap(test, getpid(), DISABLE) == 0);
	/* So does entering it. */
	CLIENT_CHECK(trap(test, getpid(), ENABLE) == 0);
	pthread_create(&thread, NULL, runtime_enable_thread, test);
	client_sleep_ms(20);
	CLIENT_CHECK(pthread_tryjoin_np(thread, &result) == EBUSY);
	CLIENT_CHECK(client_ioctl(&test->client, DBG_TRAP, &args) == 0);
	pthread_join(thread, &result);
	CLIENT_CHECK(result == NULL);
	CLIENT_CHECK(trap(test, getpid(), DISABLE) == 0 && runtime(test, 0) == 0);
	client_result("the runtime waits", true);
}

/* Exceptions reach the debugger's descriptor if it asked for them, are listed, and are cleared by the mask given. */
static void test_exceptions(struct test *test)
{
	struct trap_args args = { .pid = (uint32_t)getpid(), .op = ENABLE };
	struct device_entry devices[8] = { 0 };
	struct client_queue other;
	char byte = 0;
	int pipes[2];

	if (pipe2(pipes, O_NONBLOCK) < 0)
		return;
	CLIENT_CHECK(runtime(test, 1) == 0);
	args.queues.mask = EC_QUEUE_NEW;
	args.enable.dbg_fd = 999;
	CLIENT_CHECK(client_ioctl(&test->client, DBG_TRAP, &args) == -EBADF);
	args.enable.dbg_fd = (uint32_t)pipes[1];
	CLIENT_CHECK(client_ioctl(&test->client, DBG_TRAP, &args) == 0);
	CLIENT_CHECK(read(pipes[0], &byte, 1) < 0 && errno == EAGAIN);
	client_queue_create(&test->client, &other, 64);
	CLIENT_CHECK(read(pipes[0], &byte, 1) == 1 && byte == '.');
	args = (struct trap_args){ .pid = (uint32_t)getpid(), .op = QUERY_DEBUG_EVENT };
	CLIENT_CHECK(client_ioctl(&test->client, DBG_TRAP, &args) == 0 && args.words[0] == EC_QUEUE_NEW);
	CLIENT_CHECK(args.query.queue_id == other.id && args.query.gpu_id == test->client.gpu_id);
	args.words[0] = EC_QUEUE_NEW; /* clears */
	CLIENT_CHECK(client_ioctl(&test->client, DBG_TRAP, &args) == 0 && args.words[0] == EC_QUEUE_NEW);
	CLIENT_CHECK(client_ioctl(&test->client, DBG_TRAP, &args) == -EAGAIN);
	/* Nobody asked for this one: it is noted, no byte comes until somebody does. */
	CLIENT_CHECK(client_queue_destroy(&other) == 0);
	CLIENT_CHECK(read(pipes[0], &byte, 1) < 0 && errno == EAGAIN);
	args = (struct trap_args){ .pid = (uint32_t)getpid(), .op = SET_EXCEPTIONS, .words = { EC_QUEUE_DELETE } };
	CLIENT_CHECK(client_ioctl(&test->client, DBG_TRAP, &args) == 0 && read(pipes[0], &byte, 1) == 1);
	args = (struct trap_args){ .pid = (uint32_t)getpid(), .op = DEVICE_SNAPSHOT };
	args.queues.mask = EC_QUEUE_DELETE;
	args.queues.array = (uintptr_t)devices;
	args.queues.count = 8;
	args.queues.grace = sizeof(devices[0]);
	CLIENT_CHECK(client_ioctl(&test->client, DBG_TRAP, &args) == 0 && args.queues.count == test->client.gpu_count);
	CLIENT_CHECK(devices[0].status == EC_QUEUE_DELETE && devices[0].gpu_id == test->client.gpu_id);
	CLIENT_CHECK(client_ioctl(&test->client, DBG_TRAP, &args) == 0 && devices[0].status == 0);
	args = (struct trap_args){ .pid = (uint32_t)getpid(), .op = EXCEPTION_INFO };
	args.words[0] = (uintptr_t)devices;
	args.info.source = test->client.gpu_id;
	args.info.code = 32;
	CLIENT_CHECK(client_ioctl(&test->client, DBG_TRAP, &args) == -ENODATA);
	args.info.code = 64;
	CLIENT_CHECK(client_ioctl(&test->client, DBG_TRAP, &args) == -EINVAL);
	CLIENT_CHECK(trap(test, getpid(), DISABLE) == 0 && runtime(test, 0) == 0);
	close(pipes[0]);
	close(pipes[1]);
	client_result("exceptions", true);
}

/* What a suspend says of queues it cannot take, and of those it has already. */
static void test_suspend_counts(struct test *test)
{
	struct client_queue other;
	uint32_t ids[4], count;
	struct snapshot entries[4];

	CLIENT_CHECK(runtime(test, 1) == 0 && trap(test, getpid(), ENABLE) == 0);
	client_queue_create(&test->client, &test->queue, 64);
	CLIENT_CHECK(snapshot(test, getpid(), EC_QUEUE_NEW, entries, 4, &count) == 0 && count == 1);
	/* Room for none: counted all the same. */
	CLIENT_CHECK(snapshot(test, getpid(), 0, entries, 0, &count) == 0 && count == 1);
	client_queue_create(&test->client, &other, 64);
	ids[0] = test->queue.id;
	ids[1] = other.id;
	ids[2] = test->queue.id;
	CLIENT_CHECK(change(test, getpid(), SUSPEND, ids, 3) == 1);
	CLIENT_CHECK(ids[0] == test->queue.id && ids[1] == (other.id | INVALID) &&
		     ids[2] == (test->queue.id | INVALID));
	ids[0] = test->queue.id;
	CLIENT_CHECK(change(test, getpid(), SUSPEND, ids, 1) == 1 && ids[0] == test->queue.id);
	CLIENT_CHECK(change(test, getpid(), SUSPEND, NULL, 1) == -EINVAL);
	CLIENT_CHECK(change(test, getpid(), SUSPEND, ids, 2000) == -EINVAL);
	/* All queues, suspended or not. */
	CLIENT_CHECK(change(test, getpid(), RESUME, NULL, 0) == 2);
	ids[0] = other.id;
	ids[1] = 999;
	CLIENT_CHECK(change(test, getpid(), RESUME, ids, 2) == 1 && ids[0] == other.id && ids[1] == (999 | INVALID));
	/* Detaching clears the exceptions, and with them what is new. */
	CLIENT_CHECK(trap(test, getpid(), DISABLE) == 0 && trap(test, getpid(), ENABLE) == 0);
	ids[0] = other.id;
	CLIENT_CHECK(change(test, getpid(), SUSPEND, ids, 1) == 1 && ids[0] == other.id);
	CLIENT_CHECK(trap(test, getpid(), DISABLE) == 0);
	CLIENT_CHECK(client_queue_destroy(&other) == 0 && client_queue_destroy(&test->queue) == 0);
	CLIENT_CHECK(runtime(test, 0) == 0);
	client_result("what a suspend answers", true);
}

/* Halts of the whole GPU per call. The queue's own creation is one, and so is its destruction. */
static void test_halts(struct test *test, const char *vgpu)
{
	struct snapshot entries[4];
	uint32_t ids[1], count;
	long before;

	CLIENT_CHECK(runtime(test, 1) == 0);
	client_queue_create(&test->client, &test->queue, 64);
	before = client_halts(vgpu);
	CLIENT_CHECK(trap(test, getpid(), ENABLE) == 0 && client_halts(vgpu) == before + 1);
	CLIENT_CHECK(snapshot(test, getpid(), EC_QUEUE_NEW, entries, 4, &count) == 0 &&
		     client_halts(vgpu) == before + 1);
	ids[0] = test->queue.id;
	CLIENT_CHECK(change(test, getpid(), SUSPEND, ids, 1) == 1 && client_halts(vgpu) == before + 2);
	CLIENT_CHECK(change(test, getpid(), SUSPEND, ids, 1) == 1 && client_halts(vgpu) == before + 3);
	CLIENT_CHECK(change(test, getpid(), RESUME, ids, 1) == 1 && client_halts(vgpu) == before + 4);
	ids[0] = 999;
	CLIENT_CHECK(change(test, getpid(), SUSPEND, ids, 1) == 0 && client_halts(vgpu) == before + 4);
	CLIENT_CHECK(trap(test, getpid(), DISABLE) == 0 && client_halts(vgpu) == before + 8);
	CLIENT_CHECK(runtime(test, 0) == 0 && client_halts(vgpu) == before + 9);
	CLIENT_CHECK(client_queue_destroy(&test->queue) == 0 && client_halts(vgpu) == before + 10);
	client_result("halts", true);
}

/* The debugger: a child that traces us, suspends our queue, and dies of SIGKILL. Everything it stopped runs again. */
static void debugger(pid_t target, uint32_t queue_id, int socket)
{
	struct test test = { 0 };
	struct snapshot entries[4];
	uint32_t ids[1] = { queue_id }, count;
	char byte = 0;

	client_open(&test.client);
	if (trap(&test, target, ENABLE) != -EPERM)
		byte = 1;
	if (ptrace(PTRACE_SEIZE, target, NULL, NULL) < 0 || trap(&test, target, ENABLE) != 0)
		byte = 2;
	/* After ENABLE the tracing is no longer needed. */
	if (ptrace(PTRACE_INTERRUPT, target, NULL, NULL) < 0 || waitpid(target, NULL, __WALL) != target ||
	    ptrace(PTRACE_DETACH, target, NULL, NULL) < 0)
		byte = 3;
	if (snapshot(&test, target, EC_QUEUE_NEW, entries, 4, &count) != 0 || count != 1)
		byte = 4;
	if (change(&test, target, SUSPEND, ids, 1) != 1)
		byte = 5;
	(void)!write(socket, &byte, 1);
	pause();
	_exit(0);
}

static void test_tracer(struct test *test)
{
	struct client_signal *signal = client_signal(&test->client, 1);
	int sockets[2];
	char byte = 9;
	pid_t child;

	CLIENT_CHECK(runtime(test, 1) == 0);
	client_queue_create(&test->client, &test->queue, 64);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) < 0)
		return;
	child = fork();
	if (child == 0)
		debugger(getppid(), test->queue.id, sockets[1]);
	while (read(sockets[0], &byte, 1) < 0 && errno == EINTR)
		;
	if (byte)
		printf("# the debugger failed at step %d\n", byte);
	CLIENT_CHECK(byte == 0);
	start(test, signal);
	CLIENT_CHECK(stands_still(test) && client_sum(test->counts, GROUPS) == 0 && signal->value == 1);
	kill(child, SIGKILL);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	CLIENT_CHECK(client_wait(signal) && once(test));
	client_result("a debugger that dies", true);
}

/* The checkpoint pause stops the whole process, new queues included, until UNPAUSE. */
static void test_criu(struct test *test)
{
	struct client_signal *signal = client_signal(&test->client, 1);
	struct kfd_ioctl_criu_args args = { .op = KFD_CRIU_OP_UNPAUSE };

	/* Privileged, as the driver has it. */
	if (geteuid() != 0) {
		CLIENT_CHECK(client_ioctl(&test->client, AMDKFD_IOC_CRIU_OP, &args) == -EPERM);
		client_result("checkpoint pause, refused", true);
		return;
	}
	CLIENT_CHECK(client_ioctl(&test->client, AMDKFD_IOC_CRIU_OP, &args) == -EINVAL);
	start(test, signal);
	client_sleep_ms(5);
	args.op = KFD_CRIU_OP_PROCESS_INFO;
	CLIENT_CHECK(client_ioctl(&test->client, AMDKFD_IOC_CRIU_OP, &args) == 0 && args.pid == (uint32_t)getpid());
	CLIENT_CHECK(stands_still(test));
	args.op = KFD_CRIU_OP_UNPAUSE;
	CLIENT_CHECK(client_ioctl(&test->client, AMDKFD_IOC_CRIU_OP, &args) == 0);
	CLIENT_CHECK(client_wait(signal) && once(test));
	client_result("checkpoint pause", true);
}

int main(int argc, char **argv)
{
	struct test test = { 0 };

	client_open(&test.client);
	test.slow = client_kernel(&test.client, CLIENT_KERNEL_SLOW);
	test.counts = client_alloc(&test.client, GROUPS * sizeof(uint32_t), KFD_IOC_ALLOC_MEM_FLAGS_VRAM);
	test.kernarg = client_alloc(&test.client, 4096, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	test_rules(&test);
	test_new(&test);
	test_suspend(&test);
	test_destroy(&test);
	test_runtime_disable(&test);
	test_exceptions(&test);
	test_suspend_counts(&test);
	/* With an argument: nobody else is on the node. */
	if (argc > 1)
		test_halts(&test, argv[1]);
	test_tracer(&test);
	test_criu(&test);
	return client_done();
}
