/* SPDX-License-Identifier: MIT */
/* A client of the virtual node that does what it is told, a line at a time, and answers each with a line. It knows
 * nothing of the agent that is loaded into it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "test/e2e/agent_owner.h"
#include "test/e2e/vgpu_client.h"

#define QUEUES 32u
#define GROUPS 100000u

struct lane {
	struct client_queue queue;
	struct client_signal *signal;
	struct client_kernarg *kernarg;
	uint32_t *counts;
	uint32_t groups;
};
static struct client client;
static struct lane lanes[QUEUES];
static uint32_t lane_count;
static uint64_t slow;
static struct client_signal *gate;

static void lane_open(uint32_t i)
{
	client_queue_create(&client, &lanes[i].queue, 64);
	lanes[i].kernarg = client_alloc(&client, 4096, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	lanes[i].counts = client_alloc(&client, GROUPS * sizeof(uint32_t), KFD_IOC_ALLOC_MEM_FLAGS_VRAM);
}

static void lane_start(struct lane *lane, uint32_t groups)
{
	struct client_packet packet;

	lane->groups = groups;
	lane->signal = client_signal(&client, 1);
	memset(lane->counts, 0, GROUPS * sizeof(uint32_t));
	*lane->kernarg = (struct client_kernarg){ (uintptr_t)lane->counts, groups, 0 };
	packet = client_dispatch(slow, lane->kernarg, lane->signal);
	client_submit(&lane->queue, &packet);
}

static const char *lane_wait(struct lane *lane)
{
	if (!client_wait(lane->signal))
		return "late";
	for (uint32_t i = 0; i < lane->groups; i++)
		if (lane->counts[i] != 1)
			return "bad";
	return "ok";
}

static int lane_update(struct lane *lane, uint32_t percent, uint32_t priority)
{
	struct kfd_ioctl_update_queue_args *args =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r;

	*args = (struct kfd_ioctl_update_queue_args){ (uintptr_t)lane->queue.ring, lane->queue.id,
						      lane->queue.ring_size, percent, priority };
	/* The caller's own structure is his, and may be constant. */
	mprotect(args, 4096, PROT_READ);
	r = client_ioctl(&client, AMDKFD_IOC_UPDATE_QUEUE, args);
	munmap(args, 4096);
	return r;
}

/* The child may not use our descriptor, and can be a client of its own. */
static int fork_child(void)
{
	pid_t child = fork();
	int status = -1;

	if (child == 0) {
		struct kfd_ioctl_get_version_args version;
		char byte;

		if (client_ioctl(&client, AMDKFD_IOC_GET_VERSION, &version) != -EBADF)
			_exit(1);
		close(client.kfd);
		close(client.render);
		client_open(&client);
		for (uint32_t i = 0; i < 64u; i++)
			client_signal(&client, 0); /* the rest of a page that is our parent's */
		slow = client_kernel(&client, CLIENT_KERNEL_SLOW);
		lane_open(QUEUES - 1u);
		lane_start(&lanes[QUEUES - 1u], 1000);
		/* It stays until it is told to end. */
		_exit(strcmp(lane_wait(&lanes[QUEUES - 1u]), "ok") || read(0, &byte, 1) != 1 ? 2 : 0);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

/* As daemons and interpreters do it: every number but one's own. */
static void close_others(bool by_range)
{
	int last = client.kfd > client.render ? client.kfd : client.render;

	for (int fd = 3; fd < (by_range ? last : 3000); fd++)
		if (fd != client.kfd && fd != client.render)
			close(fd);
	if (by_range)
		(void)!close_range((unsigned)last + 1u, ~0u, 0);
}

/* Every other open number is overwritten with standard output, then closed. */
static int overwrite_others(void)
{
	int fds[OWNER_FDS], count = owner_fds(fds, client.kfd, client.render), good = 0;

	for (int i = 0; i < count; i++) {
		good += dup2(1, fds[i]) == fds[i];
		close(fds[i]);
	}
	return good == count ? count : -1;
}

/* The same by a child that has descriptors of its own and our memory. */
static int overwrite_by_vfork(void)
{
	int fds[OWNER_FDS], count = owner_fds(fds, client.kfd, client.render), status = -1;
	pid_t child = vfork();

	if (child == 0) {
		/* Programs do it. */
		for (int i = 0; i < count; i++) /* NOLINT(clang-analyzer-unix.Vfork) */
			dup2(1, fds[i]);
		_exit(0);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) && !WEXITSTATUS(status) ? count : -1;
}

static void *thread_create(void *data)
{
	lane_open((uint32_t)(uintptr_t)data);
	return NULL;
}

static void create_at_once(uint32_t count)
{
	pthread_t threads[QUEUES];

	for (uint32_t i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, thread_create, (void *)(uintptr_t)(lane_count + i));
	for (uint32_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	lane_count += count;
}

struct runtime_args {
	uint64_t r_debug;
	uint32_t mode, capabilities;
};

static int runtime(uint32_t mode)
{
	struct runtime_args args = { 0, mode, 0 };

	return client_ioctl(&client, _IOWR('K', 0x25, struct runtime_args), &args);
}

/* How long the call took; negative: it failed. */
static int runtime_off_ms(void)
{
	struct timespec begin, end;
	int r;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	r = runtime(0);
	clock_gettime(CLOCK_MONOTONIC, &end);
	return r < 0 ? r : (int)((end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000);
}

static int trap(uint32_t op)
{
	uint32_t args[10] = { (uint32_t)getpid(), op };

	return client_ioctl(&client, _IOWR('K', 0x26, args), args);
}

static void block(struct lane *lane)
{
	struct client_barrier barrier = { .header = 3 | 1 << 8 };

	gate = client_signal(&client, 1);
	barrier.deps[0] = (uintptr_t)gate;
	client_submit(&lane->queue, &barrier);
}

/* What it does to its own process. False: no such verb. */
static bool obey_owner(const char *verb, uint32_t a)
{
	if (!strcmp(verb, "sandbox")) {
		printf("ok %d\n", owner_sandbox());
	} else if (!strcmp(verb, "trapped")) {
		printf("ok %d\n", owner_trapped_count());
	} else if (!strcmp(verb, "steal")) {
		printf("ok %d\n", owner_steal(client.kfd, client.render));
	} else if (!strcmp(verb, "stolen")) {
		puts(owner_stolen());
	} else if (!strcmp(verb, "bind")) {
		printf("ok %d\n", owner_bind());
	} else if (!strcmp(verb, "processors")) {
		printf("ok %d\n", owner_agent_processors());
	} else if (!strcmp(verb, "stacks")) {
		printf("ok %ld\n", owner_agent_stacks());
	} else if (!strcmp(verb, "limit")) {
		printf("ok %d\n", owner_limit(a));
	} else if (!strcmp(verb, "hoard")) {
		printf("ok %d\n", owner_hoard(a));
	} else if (!strcmp(verb, "share")) {
		printf("ok %d\n", owner_share());
	} else if (!strcmp(verb, "reopen")) {
		client.kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC); /* another file; the first stays open */
		printf("ok %d\n", client.kfd);
	} else if (!strcmp(verb, "count")) {
		printf("ok %d\n", owner_count(a));
	} else {
		return false;
	}
	return true;
}

static void obey(const char *verb, uint32_t a, uint32_t b, uint32_t c)
{
	struct lane *lane = &lanes[a % QUEUES];

	if (!strcmp(verb, "queue")) {
		lane_open(lane_count);
		printf("ok %u\n", lanes[lane_count++].queue.id);
	} else if (!strcmp(verb, "start")) {
		lane_start(lane, b);
		puts("ok");
	} else if (!strcmp(verb, "sum")) {
		printf("ok %llu\n", (unsigned long long)client_sum(lane->counts, lane->groups));
	} else if (!strcmp(verb, "wait")) {
		puts(lane_wait(lane));
	} else if (!strcmp(verb, "update")) {
		printf("ok %d\n", lane_update(lane, b, c));
	} else if (!strcmp(verb, "destroy")) {
		printf("ok %d\n", client_queue_destroy(&lane->queue));
	} else if (!strcmp(verb, "threads")) {
		create_at_once(a);
		puts("ok");
	} else if (!strcmp(verb, "fork")) {
		printf("ok %d\n", fork_child());
	} else if (!strcmp(verb, "close")) {
		close_others(a);
		puts("ok");
	} else if (!strcmp(verb, "overwrite")) {
		printf("ok %d\n", overwrite_others());
	} else if (!strcmp(verb, "vfork")) {
		printf("ok %d\n", overwrite_by_vfork());
	} else if (!strcmp(verb, "leave")) {
		printf("ok %d\n", runtime_off_ms());
	} else if (!strcmp(verb, "block")) {
		block(lane);
		puts("ok");
	} else if (!strcmp(verb, "unblock")) {
		__atomic_store_n(&gate->value, 0, __ATOMIC_RELEASE);
		puts("ok");
	} else if (!strcmp(verb, "reserve")) {
		__atomic_fetch_add((uint64_t *)(void *)(lane->queue.control + 56), 1, __ATOMIC_RELAXED);
		puts("ok");
	} else if (!strcmp(verb, "runtime")) {
		printf("ok %d\n", runtime(a));
	} else if (!strcmp(verb, "trap")) {
		printf("ok %d\n", trap(a));
	} else if (!strcmp(verb, "fault")) {
		printf("ok %d\n", client_ioctl(&client, AMDKFD_IOC_UPDATE_QUEUE, (void *)64));
	} else if (!strcmp(verb, "exit")) {
		exit(0);
	} else if (!obey_owner(verb, a)) {
		puts("what");
	}
}

int main(void)
{
	char line[128], verb[32];

	setvbuf(stdout, NULL, _IOLBF, 0);
	client_open(&client);
	slow = client_kernel(&client, CLIENT_KERNEL_SLOW);
	while (fgets(line, sizeof(line), stdin)) {
		uint32_t a = 0, b = 0, c = 0;

		if (sscanf(line, "%31s %u %u %u", verb, &a, &b, &c) < 1)
			continue;
		obey(verb, a, b, c);
	}
	return 0;
}
