/* SPDX-License-Identifier: MIT */
/*
 * A client that means harm: random ioctls with random arguments, calls with odd paths, rings and doorbells full of
 * noise, wrong sizes, a descriptor closed under way. It only has to survive as a process; test/e2e/vgpu looks
 * afterwards whether the node and a well-behaved neighbour did. Usage: vgpu-hostile SEED ROUNDS. The seed is printed
 * first.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
#include "test/e2e/vgpu_client.h"

static uint64_t state;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Numbers that programs trip over, or plain noise. */
static uint64_t draw_value(const struct client *client, const void *memory)
{
	switch (draw() % 10u) {
	case 0: return 0;
	case 1: return UINT64_MAX;
	case 2: return client->gpu_id;
	case 3: return (uintptr_t)memory + draw() % 8192u;
	case 4: return 1ull << draw() % 64u;
	case 5: return draw() % 16u;
	case 6: return (uint64_t)client->gpu_id << 32 | draw() % 8u;
	case 7: return draw() & ~4095ull;
	default: return draw();
	}
}

static void random_ioctl(struct client *client, void *memory)
{
	union {
		uint64_t words[512];
		uint32_t halves[1024];
		struct kfd_ioctl_wait_events_args wait;
	} arg;
	uint32_t number = (uint32_t)(draw() % 0x30u),
		 size = (uint32_t)(draw() % 8u ? 8u + draw() % 12u * 8u : draw() % 4096u);

	for (size_t i = 0; i < sizeof(arg.words) / sizeof(arg.words[0]); i++) {
		arg.words[i] = draw_value(client, memory);
		if (draw() % 3u == 0)
			arg.words[i] = (uint64_t)client->gpu_id << 32 | client->gpu_id;
	}
	/* A wait without end would only test patience; no timeout given is longer than a few ms. */
	if (number == 0x0c) {
		arg.wait.timeout = (uint32_t)(draw() % 3u);
		size = sizeof(struct kfd_ioctl_wait_events_args);
	}
	if (number == 0x26)
		arg.halves[0] = draw() % 2u ? (uint32_t)getpid() : (uint32_t)draw();
	ioctl(draw() % 8u ? client->kfd : client->render,
	      _IOC(_IOC_READ | _IOC_WRITE, draw() % 16u ? 'K' : 'd', number, size), &arg);
}

/* Calls with paths, mostly the node's, and with pointers and sizes that are wrong in every way. Nothing is created. */
static void random_path_call(const struct client *client, uint8_t *memory)
{
	static const char *const pieces[] = { "/dev", "/kfd", "/dri", "/renderD128", "/sys",    "/class", "/..",
					      "//",   "/.",   "/x",   "/devices",    "/module", "kfd",    "" };
	static const int calls[] = { SYS_openat, SYS_newfstatat, SYS_statx,      SYS_faccessat, SYS_readlinkat,
				     SYS_openat, SYS_openat2,    SYS_faccessat2, SYS_getxattr,  SYS_listxattr };
	char path[256] = "";
	uint64_t args[5], how[3] = { draw() % 4u ? O_PATH : 0, 0, draw() % 64u };
	long r;

	for (uint64_t i = draw() % 6u; i; i--)
		strcat(path, pieces[draw() % (sizeof(pieces) / sizeof(pieces[0]))]);
	if (draw() % 2u)
		strcpy(path, draw() % 2u ? "/dev/kfd" : "/sys/class/kfd/kfd/topology/nodes/1/gpu_id");
	for (size_t i = 0; i < 5u; i++)
		args[i] = draw() % 4u ? (uintptr_t)memory + draw() % 8192u : draw_value(client, memory);
	args[0] = draw() % 4u ? (uint64_t)AT_FDCWD : draw() % 64u;
	args[1] = draw() % 8u ? (uintptr_t)path : args[1];
	r = calls[draw() % (sizeof(calls) / sizeof(calls[0]))];
	if (r == SYS_openat)
		args[2] = draw() & (O_ACCMODE | O_DIRECTORY | O_NOFOLLOW | O_PATH | O_CLOEXEC | O_NONBLOCK);
	if (r == SYS_openat2)
		args[2] = draw() % 4u ? (uintptr_t)how : args[2], args[3] = draw() % 4u ? sizeof(how) : args[3];
	if (r == SYS_getxattr || r == SYS_listxattr)
		args[0] = args[1];
	/* What is opened read and write might be any file of the host's: only looked at, never used. */
	r = syscall(r, args[0], args[1], args[2], args[3], args[4]);
	if (r > 64)
		close((int)r);
}

static void noise_into(void *memory, size_t size)
{
	for (size_t i = 0; i + 8u <= size; i += 8u)
		if (draw() % 2u) {
			uint64_t word = draw();

			memcpy((uint8_t *)memory + i, &word, 8);
		}
}

static void noisy_queue(struct client *client, uint32_t type)
{
	struct client_queue queue;
	struct kfd_ioctl_create_queue_args args = { .ring_size = 4096,
						    .gpu_id = client->gpu_id,
						    .queue_type = type,
						    .queue_percentage = 100,
						    .queue_priority = (uint32_t)(draw() % 16u) };
	uint8_t *page;

	queue.ring = client_alloc(client, 4096, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	queue.control = client_alloc(client, 4096, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	args.ring_base_address = (uintptr_t)queue.ring;
	args.write_pointer_address = (uintptr_t)queue.control + 56;
	args.read_pointer_address = (uintptr_t)queue.control + 128;
	noise_into(queue.ring, 4096);
	noise_into(queue.control, 4096);
	/* Something a packet processor would begin with. */
	for (uint32_t i = 0; i < 4096u; i += 64u)
		if (draw() % 2u)
			queue.ring[i] = (uint8_t)(draw() % 14u);
	if (client_ioctl(client, AMDKFD_IOC_CREATE_QUEUE, &args) < 0)
		return;
	page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, client->kfd,
		    (off_t)(args.doorbell_offset & ~8191ull));
	if (page == MAP_FAILED)
		return;
	for (uint32_t i = 0; i < 20u; i++) {
		uint64_t value = draw() % 2u ? draw() % 200u : draw();

		memcpy(page + (args.doorbell_offset & 8191u), &value, 8);
		if (draw() % 4u == 0)
			noise_into(queue.ring, 4096);
		usleep(100);
	}
	munmap(page, 8192);
}

/* Some calls wait for a debugger, which is ourselves: a signal now and then ends them. */
static void on_alarm(int number)
{
	(void)number;
}

static void interrupt_waits(void)
{
	struct sigaction action = { .sa_handler = on_alarm }; /* no SA_RESTART */
	struct itimerval often = { { 0, 20000 }, { 0, 20000 } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

int main(int argc, char **argv)
{
	uint32_t rounds = argc > 2 ? (uint32_t)atoi(argv[2]) : 1000u;
	struct client client;
	void *memory;

	state = argc > 1 ? strtoull(argv[1], NULL, 0) : 1u;
	printf("# seed %llu\n", (unsigned long long)state);
	state = state * 2654435761u + 88172645463325252ull;
	client_open(&client);
	interrupt_waits();
	memory = client_alloc(&client, 8192, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	for (uint32_t i = 0; i < 12u; i++)
		noisy_queue(&client, i % 3u == 2u ? KFD_IOC_QUEUE_TYPE_SDMA : KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	for (uint32_t i = 0; i < rounds; i++) {
		random_ioctl(&client, memory);
		random_path_call(&client, memory);
	}
	close(client.render);
	random_ioctl(&client, memory);
	client_result("survived", true);
	return client_done();
}
