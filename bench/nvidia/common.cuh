/* SPDX-License-Identifier: MIT */
/*
 * What the benchmark's CUDA programs share: a clock, options, and kernel sequences whose results can be checked.
 *
 * A sequence is a list of dependent kernels, each so many blocks that compute for so long. They compute, they do not
 * watch a clock: a kernel that is put aside has the same work left afterwards. What every thread ends with goes into a
 * sum that the host knows in advance, so work that was lost, repeated or damaged shows.
 */
#ifndef BENCH_NVIDIA_COMMON_CUH
#define BENCH_NVIDIA_COMMON_CUH

#include <cuda_runtime.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Two warps a block, so that four blocks on an SM do not slow each other down: a multiplication waits longer for the
 * one before it than the others need. Then a block takes as long as its list says, however many there are. (With four
 * warps a list of 6.5 ms took 5.4 on an H200: calibrated on a full device, most of its kernels are smaller.) */
enum { STEP_THREADS = 64, STEP_MAX = 4096, STEP_SHARED = 48 * 1024, STEP_PER_SM = 4 };

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static inline void sleep_ns(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000ull), (long)(ns % 1000000000ull) };

	nanosleep(&t, NULL);
}

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	fputs("error: ", stdout);
	vprintf(format, list);
	putchar('\n');
	va_end(list);
	fflush(stdout);
	_exit(2);
}

#define CUDA(call)                                                         \
	do {                                                               \
		cudaError_t error_ = (call);                               \
		if (error_ != cudaSuccess)                                 \
			fail("%s: %s", #call, cudaGetErrorString(error_)); \
	} while (0)

static double number(const char *name, const char *text, double low, double high)
{
	char *end;
	double value = text ? strtod(text, &end) : 0;

	if (!text || end == text || *end || !(value >= low && value <= high))
		fail("%s takes a number from %g to %g", name, low, high);
	return value;
}

/* The work of one thread: a chain in which each step needs the one before. */
__host__ __device__ static inline uint32_t step_work(uint32_t x, uint32_t rounds)
{
	uint32_t y = x ^ 0x2545f491u;

	for (uint32_t i = 0; i < rounds; i++) {
		x = x * 0x915f77f5u + y;
		y = (y ^ (x >> 15)) * 0x93d765ddu;
	}
	return x ^ y;
}

/* before: what the kernel in front of this one wrote, its first before_count words. mark_at: gets the mark when the
 * first block is done. */
__global__ void __launch_bounds__(STEP_THREADS)
	step_kernel(const uint32_t *before, uint32_t before_count, uint32_t *after, uint32_t rounds,
		    unsigned long long *sum, volatile unsigned long long *mark_at, unsigned long long mark)
{
	const uint32_t i = blockIdx.x * STEP_THREADS + threadIdx.x;
	const uint32_t out = step_work(i < before_count ? before[i] : i, rounds);
	unsigned long long part = (unsigned long long)out * (2ull * i + 1ull);

	after[i] = out;
	for (int lanes = 16; lanes; lanes /= 2)
		part += __shfl_down_sync(0xffffffffu, part, lanes);
	if (threadIdx.x % 32 == 0)
		atomicAdd(sum, part);
	if (mark_at && i == 0)
		*mark_at = mark;
}

struct step {
	uint32_t blocks, rounds;
	double us; /* as the list says, on this device */
};

struct sequence {
	struct step *steps;
	uint32_t count, shared_size;
	double us;
	uint32_t *buffer[2];
	unsigned long long *sum, sum_of_one, runs;
	cudaStream_t stream;
};

static int sm_count(void)
{
	int count = 0;

	CUDA(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
	return count;
}

/* Lines of "blocks nanoseconds": how long one block computes. # begins a comment. */
static void sequence_read(struct sequence *seq, const char *path)
{
	FILE *file = fopen(path, "re");
	char line[256];
	unsigned blocks;
	double ns;

	if (!file)
		fail("%s: %s", path, strerror(errno));
	seq->steps = (struct step *)calloc(STEP_MAX, sizeof(*seq->steps));
	seq->shared_size = STEP_SHARED;
	while (fgets(line, sizeof(line), file)) {
		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (sscanf(line, "%u %lf", &blocks, &ns) != 2 || !blocks || blocks > 1000000 || !(ns > 0 && ns < 1e9) ||
		    seq->count == STEP_MAX)
			fail("%s: not a kernel: %s", path, line);
		seq->steps[seq->count].blocks = blocks;
		seq->steps[seq->count++].us = ns / 1000;
	}
	fclose(file);
	if (!seq->count)
		fail("%s: no kernels", path);
}

/* So many kernels, each of which fills the device for so long. */
static void sequence_pieces(struct sequence *seq, double us, uint32_t count)
{
	seq->steps = (struct step *)calloc(count, sizeof(*seq->steps));
	for (uint32_t i = 0; i < count; i++) {
		seq->steps[i].blocks = (uint32_t)(STEP_PER_SM * sm_count());
		seq->steps[i].us = us;
	}
	seq->count = count;
}

/* Puts the whole sequence into its stream. mark_at gets base plus the microseconds done so far. */
static void sequence_launch(struct sequence *seq, volatile unsigned long long *mark_at, unsigned long long base)
{
	uint32_t before = 0;
	double done = 0;

	for (uint32_t k = 0; k < seq->count; k++) {
		const struct step *step = &seq->steps[k];

		done += step->us;
		step_kernel<<<step->blocks, STEP_THREADS, seq->shared_size, seq->stream>>>(
			seq->buffer[(k + 1) % 2], before, seq->buffer[k % 2], step->rounds, seq->sum, mark_at,
			base + (unsigned long long)done);
		before = step->blocks * STEP_THREADS;
	}
	CUDA(cudaGetLastError());
	seq->runs++;
}

static unsigned long long sequence_sum(struct sequence *seq)
{
	unsigned long long sum;

	CUDA(cudaMemcpyAsync(&sum, seq->sum, sizeof(sum), cudaMemcpyDeviceToHost, seq->stream));
	CUDA(cudaStreamSynchronize(seq->stream));
	return sum;
}

/* Sixteen elements of what the last kernel wrote, computed again here. */
static uint32_t sequence_cpu_wrong(const struct sequence *seq)
{
	const uint32_t count = seq->steps[seq->count - 1].blocks * STEP_THREADS;
	uint32_t *found = (uint32_t *)malloc(count * sizeof(*found)), wrong = 0;

	CUDA(cudaMemcpyAsync(found, seq->buffer[(seq->count - 1) % 2], count * sizeof(*found), cudaMemcpyDeviceToHost,
			     seq->stream));
	CUDA(cudaStreamSynchronize(seq->stream));
	for (uint32_t s = 0; s < 16; s++) {
		const uint32_t i = (uint32_t)((uint64_t)s * (count - 1) / 15);
		uint32_t value = i, before = 0;

		for (uint32_t k = 0; k < seq->count; k++) {
			value = step_work(i < before ? value : i, seq->steps[k].rounds);
			before = seq->steps[k].blocks * STEP_THREADS;
		}
		wrong += value != found[i];
	}
	free(found);
	return wrong;
}

/* Buffers, how many rounds each step is, and the sum of one run. rounds_per_us: from sequence_calibrate(). */
static void sequence_prepare(struct sequence *seq, double rounds_per_us)
{
	uint32_t most = 0;
	unsigned long long twice;

	for (uint32_t k = 0; k < seq->count; k++) {
		seq->us += seq->steps[k].us;
		seq->steps[k].rounds = (uint32_t)(seq->steps[k].us * rounds_per_us + 1);
		most = seq->steps[k].blocks > most ? seq->steps[k].blocks : most;
	}
	if (seq->shared_size) {
		const int shared_size = (int)seq->shared_size;

		CUDA(cudaFuncSetAttribute(step_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_size));
		CUDA(cudaFuncSetAttribute(step_kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
	}
	CUDA(cudaStreamCreateWithFlags(&seq->stream, cudaStreamNonBlocking));
	for (int b = 0; b < 2; b++)
		CUDA(cudaMalloc(&seq->buffer[b], (size_t)most * STEP_THREADS * sizeof(uint32_t)));
	CUDA(cudaMalloc(&seq->sum, sizeof(*seq->sum)));
	CUDA(cudaMemsetAsync(seq->sum, 0, sizeof(*seq->sum), seq->stream));
	sequence_launch(seq, NULL, 0);
	seq->sum_of_one = sequence_sum(seq);
	if (sequence_cpu_wrong(seq))
		fail("the GPU and the CPU disagree before anything was put aside");
	sequence_launch(seq, NULL, 0);
	twice = sequence_sum(seq);
	if (twice != 2 * seq->sum_of_one)
		fail("two runs of the same sequence disagree");
}

/* Every run so far, each element of it, is what it should be. */
static bool sequence_exact(struct sequence *seq)
{
	return sequence_sum(seq) == seq->runs * seq->sum_of_one && !sequence_cpu_wrong(seq);
}

/* How many rounds one block does in a microsecond, on an otherwise idle device with every SM at work. */
static double sequence_calibrate(double us)
{
	struct sequence seq = {};
	cudaEvent_t begin, end;
	double rate = 50;
	float ms = 0;

	sequence_pieces(&seq, us, 1);
	CUDA(cudaEventCreate(&begin));
	CUDA(cudaEventCreate(&end));
	sequence_prepare(&seq, rate);
	for (int i = 0; i < 200; i++) { /* the clocks rise meanwhile */
		seq.steps[0].rounds = (uint32_t)(us * rate + 1);
		CUDA(cudaEventRecord(begin, seq.stream));
		sequence_launch(&seq, NULL, 0);
		CUDA(cudaEventRecord(end, seq.stream));
		CUDA(cudaEventSynchronize(end));
		CUDA(cudaEventElapsedTime(&ms, begin, end));
		rate *= us / (ms * 1000.0 > us / 8 ? ms * 1000.0 : us / 8);
	}
	return rate;
}

#endif
