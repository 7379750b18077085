/* SPDX-License-Identifier: MIT */
/*
 * What bench/vgpu measures from inside a virtual node: `bench-vgpu-client calls | doorbells | rate | durations | idle`;
 * `kernels` prints the kernels file that the node must be started with. Each line of output is one row of a table.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "test/e2e/vgpu_client.h"
#include "vgpu/packet/kernels.h"

#define BENCH_CALLS       20000u
#define BENCH_HOPS        20000u
#define BENCH_DISPATCHES  50000u
#define BENCH_QUEUE_SIZE  1024u /* packets */
#define BENCH_KERNEL      32u   /* s_nop 32 and the following numbers: one per duration below */
#define BENCH_SAMPLES_MAX 50000u
#define BENCH_TICK_NS     10u /* the GPU's counter: 100 MHz of the host's monotonic clock */

static const uint64_t bench_asked_ns[] = { 1, 10000, 100000, 1000000, 10000000 };
#define BENCH_ASKED_COUNT (sizeof(bench_asked_ns) / sizeof(bench_asked_ns[0]))

static uint64_t bench_samples[BENCH_SAMPLES_MAX];

static uint64_t bench_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int bench_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Sorts the first count samples. */
static void bench_sort(uint32_t count)
{
	qsort(bench_samples, count, sizeof(bench_samples[0]), bench_compare);
}

static uint64_t bench_quantile(uint32_t count, uint32_t percent)
{
	return bench_samples[(uint64_t)(count - 1u) * percent / 100u];
}

static void bench_kernels(void)
{
	for (uint32_t i = 0; i < BENCH_ASKED_COUNT; i++) {
		uint32_t words[2] = { 0xbf800000u | (BENCH_KERNEL + i), 0xbf810000u };

		printf("[%016" PRIx64 "]\nname = bench%u\nworkgroup_time = %" PRIu64 "ns\n",
		       gp_kernels_fingerprint(words, 2), i, bench_asked_ns[i]);
	}
}

/* A byte to another process and back, through pipes: what any answer by another process costs on this host. */
static void bench_hops(void)
{
	int there[2], back[2];
	char byte = 0;
	pid_t child;

	if (pipe(there) < 0 || pipe(back) < 0 || (child = fork()) < 0)
		exit(1);
	if (child == 0) {
		close(there[1]);
		while (read(there[0], &byte, 1) == 1)
			if (write(back[1], &byte, 1) != 1)
				break;
		_exit(0);
	}
	for (uint32_t i = 0; i < BENCH_HOPS; i++) {
		uint64_t begin_ns = bench_now_ns();

		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			exit(1);
		bench_samples[i] = bench_now_ns() - begin_ns;
	}
	close(there[1]);
	waitpid(child, NULL, 0);
	bench_sort(BENCH_HOPS);
}

static void bench_calls(void)
{
	struct kfd_ioctl_get_version_args args;
	uint64_t hop_ns, call_ns;
	struct client client;

	bench_hops();
	hop_ns = bench_quantile(BENCH_HOPS, 50);
	printf("pipe there and back    %7.1f %7.1f\n", (double)hop_ns / 1e3,
	       (double)bench_quantile(BENCH_HOPS, 99) / 1e3);
	client_open(&client);
	for (uint32_t i = 0; i < BENCH_CALLS; i++) {
		uint64_t begin_ns = bench_now_ns();

		if (client_ioctl(&client, AMDKFD_IOC_GET_VERSION, &args) < 0)
			exit(1);
		bench_samples[i] = bench_now_ns() - begin_ns;
	}
	bench_sort(BENCH_CALLS);
	call_ns = bench_quantile(BENCH_CALLS, 50);
	printf("GET_VERSION            %7.1f %7.1f   %.2fx a pipe\n", (double)call_ns / 1e3,
	       (double)bench_quantile(BENCH_CALLS, 99) / 1e3, (double)call_ns / (double)hop_ns);
}

struct bench_gpu {
	struct client client;
	struct client_queue queue;
	struct client_kernarg *kernarg;
	struct client_signal *signal;
	uint64_t kernels[BENCH_ASKED_COUNT];
};

static void bench_gpu_open(struct bench_gpu *gpu)
{
	client_open(&gpu->client);
	client_queue_create(&gpu->client, &gpu->queue, BENCH_QUEUE_SIZE);
	gpu->kernarg = client_alloc(&gpu->client, 4096, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	gpu->kernarg->groups = 1;
	gpu->signal = client_signal(&gpu->client, 0);
	for (uint32_t i = 0; i < BENCH_ASKED_COUNT; i++)
		gpu->kernels[i] = client_kernel(&gpu->client, BENCH_KERNEL + i);
}

struct bench_dispatch {
	uint64_t rung_ns, seen_ns, start_ns, end_ns; /* seen: by a client that looks all the time */
};

static struct bench_dispatch bench_dispatch(struct bench_gpu *gpu, uint32_t kernel)
{
	struct client_packet packet = client_dispatch(gpu->kernels[kernel], gpu->kernarg, gpu->signal);
	struct bench_dispatch dispatch;

	gpu->signal->value = 1;
	dispatch.rung_ns = bench_now_ns();
	client_submit(&gpu->queue, &packet);
	while (__atomic_load_n(&gpu->signal->value, __ATOMIC_ACQUIRE))
		;
	dispatch.seen_ns = bench_now_ns();
	dispatch.start_ns = gpu->signal->start * BENCH_TICK_NS;
	dispatch.end_ns = gpu->signal->end * BENCH_TICK_NS;
	return dispatch;
}

static void bench_doorbells(void)
{
	static const struct {
		uint32_t gap_us, count;
	} rows[] = { { 0, 5000 }, { 500, 2000 }, { 5000, 400 }, { 100000, 40 }, { 2000000, 5 } };
	struct bench_gpu gpu;

	bench_gpu_open(&gpu);
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		uint64_t start_ns[3];

		for (uint32_t pass = 0; pass < 2u; pass++) {
			for (uint32_t i = 0; i < rows[row].count; i++) {
				struct bench_dispatch dispatch;

				if (rows[row].gap_us)
					usleep(rows[row].gap_us);
				dispatch = bench_dispatch(&gpu, 0);
				/* The counter's step is 10 ns; a start cannot be before the doorbell. */
				bench_samples[i] = pass ? dispatch.seen_ns - dispatch.rung_ns :
						   dispatch.start_ns > dispatch.rung_ns ?
							  dispatch.start_ns - dispatch.rung_ns :
							  0;
			}
			bench_sort(rows[row].count);
			if (!pass) {
				start_ns[0] = bench_quantile(rows[row].count, 50);
				start_ns[1] = bench_quantile(rows[row].count, 99);
			}
		}
		printf("after %7u us        %7.1f %7.1f %7.1f %7.1f\n", rows[row].gap_us, (double)start_ns[0] / 1e3,
		       (double)start_ns[1] / 1e3, (double)bench_quantile(rows[row].count, 50) / 1e3,
		       (double)bench_quantile(rows[row].count, 99) / 1e3);
	}
}

static void bench_rate(void)
{
	struct bench_gpu gpu;
	uint64_t begin_ns, ns, barrier_ns = 0;

	bench_gpu_open(&gpu);
	for (uint32_t kind = 0; kind < 2u; kind++) {
		struct client_packet kernel = client_dispatch(gpu.kernels[0], gpu.kernarg, NULL);
		struct client_barrier barrier = { .header = 3 | 1 << 8 };

		gpu.signal->value = 1;
		begin_ns = bench_now_ns();
		for (uint32_t i = 0; i < BENCH_DISPATCHES; i++) {
			if (i + 1u == BENCH_DISPATCHES)
				kernel.signal = barrier.signal = (uintptr_t)gpu.signal;
			client_submit(&gpu.queue, kind ? (const void *)&kernel : (const void *)&barrier);
		}
		while (__atomic_load_n(&gpu.signal->value, __ATOMIC_ACQUIRE))
			;
		ns = (bench_now_ns() - begin_ns) / BENCH_DISPATCHES;
		if (kind)
			printf("empty kernels          %9" PRIu64 " per second   %.2fx a barrier's time\n",
			       1000000000u / ns, (double)ns / (double)barrier_ns);
		else
			printf("barrier packets        %9" PRIu64 " per second\n", 1000000000u / ns);
		barrier_ns = ns;
	}
}

static void bench_durations(void)
{
	const char *text = getenv("VGPU_DILATION");
	uint64_t dilation = text ? strtoull(text, NULL, 10) : 1;
	struct bench_gpu gpu;

	bench_gpu_open(&gpu);
	for (uint32_t kernel = 1; kernel < BENCH_ASKED_COUNT; kernel++) {
		uint64_t asked_ns = bench_asked_ns[kernel] * dilation, stamped_ns = 0;
		/* About two seconds, at most 1000 samples. */
		uint32_t count = 2000000000u / asked_ns < 1000u ? (uint32_t)(2000000000u / asked_ns) : 1000u;

		if (!count)
			count = 1;
		for (uint32_t i = 0; i < count; i++) {
			struct bench_dispatch dispatch = bench_dispatch(&gpu, kernel);

			bench_samples[i] = dispatch.seen_ns - dispatch.rung_ns;
			stamped_ns += dispatch.end_ns - dispatch.start_ns;
		}
		bench_sort(count);
		printf("%3" PRIu64 " %7" PRIu64 " us %9.0f %9.1f %9.1f %9.1f   %.3fx %.3fx\n", dilation,
		       bench_asked_ns[kernel] / 1000u, (double)asked_ns / 1e3, (double)stamped_ns / count / 1e3,
		       (double)bench_quantile(count, 50) / 1e3, (double)bench_quantile(count, 99) / 1e3,
		       (double)bench_quantile(count, 50) / (double)asked_ns,
		       (double)bench_quantile(count, 99) / (double)asked_ns);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc == 2 ? argv[1] : "";
	struct bench_gpu gpu;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(mode, "kernels")) {
		bench_kernels();
	} else if (!strcmp(mode, "calls")) {
		bench_calls();
	} else if (!strcmp(mode, "doorbells")) {
		bench_doorbells();
	} else if (!strcmp(mode, "rate")) {
		bench_rate();
	} else if (!strcmp(mode, "durations")) {
		bench_durations();
	} else if (!strcmp(mode, "idle")) {
		bench_gpu_open(&gpu);
		bench_dispatch(&gpu, 0);
		printf("ready\n");
		pause();
	} else {
		fprintf(stderr, "usage: bench-vgpu-client kernels | calls | doorbells | rate | durations | idle\n");
		return 2;
	}
	return 0;
}
