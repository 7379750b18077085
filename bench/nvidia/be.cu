/* SPDX-License-Identifier: MIT */
/*
 * be: a batch program. Back-to-back kernels that fill the registers and most of the shared memory of every SM, or a
 * kernel list over and over. It knows nothing of gpreempt.
 *
 *   be --calibrate                              how many rounds make a chunk of 20 us, on an idle device
 *   be [--ms 50] --iters N [--progress FILE]    until SIGTERM
 *   be --list FILE --rate N [--progress FILE]
 *   be --plant --iters N                        one word of the reference is damaged: it must end with WRONG
 *
 * Every thread of every launch is compared on the GPU with a reference, 16 threads of that with the CPU, and the last
 * launch's output once more on the host. Ends with `exact` or `WRONG` and status 0 or 3. The progress file gets a
 * record of two u64 (CLOCK_MONOTONIC ns, work units) every --sample-us: kernels report from inside, so the work done up
 * to any moment is known although a kernel takes 50 ms. Units are alike in all runs with the same --iters (or --rate).
 */
#include "common.cuh"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { THREADS = 512, SLOTS = 24, WORDS = 8, CHUNK_US = 20, BEATS = 512, SAMPLED = 16 };

static volatile sig_atomic_t ended;
/* One page, written by the GPU: as the host sees it, and as the GPU does. */
static volatile unsigned long long *beats, *beats_gpu;
static int progress_fd = -1;
static uint64_t sample_ns = 2000000;
static bool is_planted;

static void on_term(int number_)
{
	(void)number_;
	ended = 1;
}

/* State of one thread: WORDS registers and SLOTS words of shared memory. */
__host__ __device__ static inline void fill_begin(uint32_t id, uint32_t *words)
{
	for (int k = 0; k < WORDS; k++)
		words[k] = (id + 1u) * 0x9e3779b1u ^ (uint32_t)(k + 1) * 0x85ebca77u;
}

__host__ __device__ static inline void fill_rounds(uint32_t *words, uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds; i++) {
#pragma unroll
		for (int k = 0; k < WORDS; k++)
			words[k] = words[k] * 0xc2b2ae3du + (words[(k + 3) % WORDS] >> 5);
	}
}

__host__ __device__ static inline uint32_t fill_end(const uint32_t *words, const uint32_t *slots, uint32_t stride)
{
	uint32_t hash = 0x811c9dc5u;

	for (int k = 0; k < WORDS; k++)
		hash = (hash ^ words[k]) * 0x01000193u;
	for (int k = 0; k < SLOTS; k++)
		hash = (hash ^ slots[k * stride]) * 0x01000193u;
	return hash;
}

__host__ __device__ static inline void fill_chunk(uint32_t *words, uint32_t *slots, uint32_t stride, uint32_t chunk,
						  uint32_t rounds)
{
	fill_rounds(words, rounds);
	slots[chunk % SLOTS * stride] += words[1] ^ chunk;
	words[6] ^= slots[(chunk * 5u + 11u) % SLOTS * stride];
}

__global__ void __launch_bounds__(THREADS, 4)
	fill_kernel(uint32_t *out, const uint32_t *reference, unsigned long long *wrong,
		    volatile unsigned long long *beat, unsigned long long base, uint32_t chunks, uint32_t rounds)
{
	extern __shared__ uint32_t shared[];
	const uint32_t id = blockIdx.x * THREADS + threadIdx.x;
	const bool tells = beat && threadIdx.x == 0 && blockIdx.x % 8 == 0 && blockIdx.x / 8 < BEATS;
	uint32_t words[WORDS], *slots = shared + threadIdx.x, hash;

	fill_begin(id, words);
	for (int k = 0; k < SLOTS; k++)
		slots[k * THREADS] = id ^ (uint32_t)k << 24;
	for (uint32_t chunk = 0; chunk < chunks; chunk++) {
		fill_chunk(words, slots, THREADS, chunk, rounds);
		if (tells)
			beat[blockIdx.x / 8] = base + chunk + 1;
	}
	hash = fill_end(words, slots, THREADS);
	out[id] = hash;
	if (reference && hash != reference[id])
		atomicAdd(wrong, 1ull);
}

static uint32_t fill_cpu(uint32_t id, uint32_t chunks, uint32_t rounds)
{
	uint32_t words[WORDS], slots[SLOTS];

	fill_begin(id, words);
	for (int k = 0; k < SLOTS; k++)
		slots[k] = id ^ (uint32_t)k << 24;
	for (uint32_t chunk = 0; chunk < chunks; chunk++)
		fill_chunk(words, slots, 1, chunk, rounds);
	return fill_end(words, slots, 1);
}

struct fill {
	uint32_t grid, count, chunks, rounds;
	uint32_t *out, *reference;
	unsigned long long *wrong;
	cudaStream_t stream;
};

static void fill_launch(struct fill *fill, uint32_t *out, const uint32_t *reference, volatile unsigned long long *beat,
			unsigned long long base)
{
	fill_kernel<<<fill->grid, THREADS, SLOTS * THREADS * sizeof(uint32_t), fill->stream>>>(
		out, reference, fill->wrong, beat, base, fill->chunks, fill->rounds);
	CUDA(cudaGetLastError());
}

static void fill_init(struct fill *fill)
{
	fill->grid = (uint32_t)(4 * sm_count());
	fill->count = fill->grid * THREADS;
	CUDA(cudaFuncSetAttribute(fill_kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
	CUDA(cudaStreamCreateWithFlags(&fill->stream, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&fill->out, fill->count * sizeof(uint32_t)));
	CUDA(cudaMalloc(&fill->reference, fill->count * sizeof(uint32_t)));
	CUDA(cudaMalloc(&fill->wrong, sizeof(*fill->wrong)));
	CUDA(cudaMemsetAsync(fill->wrong, 0, sizeof(*fill->wrong), fill->stream));
}

static void fill_calibrate(void)
{
	struct fill fill = {};
	cudaEvent_t begin, end;
	double rounds = 16;
	int blocks = 0;
	float ms = 0;

	fill_init(&fill);
	CUDA(cudaEventCreate(&begin));
	CUDA(cudaEventCreate(&end));
	fill.chunks = 1000; /* so milliseconds of a launch are microseconds of a chunk */
	for (int i = 0; i < 16; i++) {
		fill.rounds = (uint32_t)(rounds + 0.5);
		CUDA(cudaEventRecord(begin, fill.stream));
		fill_launch(&fill, fill.out, NULL, NULL, 0);
		CUDA(cudaEventRecord(end, fill.stream));
		CUDA(cudaEventSynchronize(end));
		CUDA(cudaEventElapsedTime(&ms, begin, end));
		rounds *= CHUNK_US / (ms > 0.5 ? ms : 0.5);
		rounds = rounds < 1 ? 1 : rounds > 1e6 ? 1e6 : rounds;
	}
	CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill_kernel, THREADS,
							   SLOTS * THREADS * sizeof(uint32_t)));
	printf("{\"iters\": %u, \"chunk_us\": %.3f, \"blocks_per_sm\": %d}\n", fill.rounds, ms, blocks);
}

/* Sampled threads of the reference, computed here. */
static uint32_t fill_cpu_wrong(const struct fill *fill, const uint32_t *reference)
{
	uint32_t wrong = 0;

	for (uint32_t s = 0; s < SAMPLED; s++) {
		const uint32_t id = (uint32_t)((uint64_t)s * (fill->count - 1) / (SAMPLED - 1));

		wrong += fill_cpu(id, fill->chunks, fill->rounds) != reference[id];
	}
	return wrong;
}

static void *sampler(void *unused)
{
	uint64_t record[2];

	while (ended < 2) {
		record[1] = 0;
		for (int k = 0; k < BEATS; k++)
			record[1] += beats[k];
		record[0] = now_ns();
		if (write(progress_fd, record, sizeof(record)) != sizeof(record))
			break;
		sleep_ns(sample_ns);
	}
	return unused;
}

/* Until the event happened; the program waits in short sleeps, as a thread that does other things would. */
static void wait_for(cudaEvent_t event)
{
	uint64_t ended_at = 0;

	for (;;) {
		cudaError_t state = cudaEventQuery(event);

		if (state == cudaSuccess)
			return;
		if (state != cudaErrorNotReady)
			fail("while running: %s", cudaGetErrorString(state));
		if (ended && !ended_at)
			ended_at = now_ns();
		if (ended_at && now_ns() - ended_at > 20000000000ull)
			fail("stuck: a launch did not complete within 20 s");
		sleep_ns(100000);
	}
}

/* One launch runs, one is queued behind it. Returns how many completed. */
static unsigned long long run_fill(struct fill *fill)
{
	unsigned long long count = 0;
	cudaEvent_t events[2];

	for (int k = 0; k < 2; k++)
		CUDA(cudaEventCreateWithFlags(&events[k], cudaEventDisableTiming));
	while (!ended) {
		fill_launch(fill, fill->out, fill->reference, beats_gpu, count * fill->chunks);
		CUDA(cudaEventRecord(events[count % 2], fill->stream));
		if (++count >= 2)
			wait_for(events[count % 2]);
	}
	CUDA(cudaEventRecord(events[0], fill->stream));
	wait_for(events[0]);
	return count;
}

static unsigned long long run_list(struct sequence *seq)
{
	unsigned long long count = 0;
	cudaEvent_t events[2];

	for (int k = 0; k < 2; k++)
		CUDA(cudaEventCreateWithFlags(&events[k], cudaEventDisableTiming));
	while (!ended) {
		sequence_launch(seq, beats_gpu, count * (unsigned long long)seq->us);
		CUDA(cudaEventRecord(events[count % 2], seq->stream));
		if (++count >= 2)
			wait_for(events[count % 2]);
	}
	CUDA(cudaEventRecord(events[0], seq->stream));
	wait_for(events[0]);
	return count;
}

static int finish(unsigned long long launches, unsigned long long gpu_wrong, uint32_t host_wrong, uint32_t cpu_wrong,
		  double seconds)
{
	const bool exact = !gpu_wrong && !host_wrong && !cpu_wrong;

	printf("{\"launches\": %llu, \"seconds\": %.3f, \"gpu_wrong\": %llu, \"host_wrong\": %u, \"cpu_wrong\": %u, \"exact\": %s}\n",
	       launches, seconds, gpu_wrong, host_wrong, cpu_wrong, exact ? "true" : "false");
	printf("%s\n", exact ? "exact" : "WRONG");
	fflush(stdout);
	return exact ? 0 : 3;
}

static int main_fill(double ms, uint32_t rounds)
{
	struct fill fill = {};
	unsigned long long launches, gpu_wrong = 0;
	uint32_t *reference, *out, host_wrong = 0, cpu_wrong;
	uint64_t begin;
	size_t size;

	fill_init(&fill);
	fill.rounds = rounds;
	fill.chunks = (uint32_t)(ms * 1000 / CHUNK_US);
	size = fill.count * sizeof(uint32_t);
	reference = (uint32_t *)malloc(size);
	out = (uint32_t *)malloc(size);
	fill_launch(&fill, fill.reference, NULL, NULL, 0);
	CUDA(cudaMemcpyAsync(reference, fill.reference, size, cudaMemcpyDeviceToHost, fill.stream));
	CUDA(cudaStreamSynchronize(fill.stream));
	cpu_wrong = fill_cpu_wrong(&fill, reference);
	if (is_planted) { /* only as the GPU sees it */
		const uint32_t damaged = ~reference[fill.count / 2];

		CUDA(cudaMemcpyAsync(fill.reference + fill.count / 2, &damaged, sizeof(damaged), cudaMemcpyHostToDevice,
				     fill.stream));
		CUDA(cudaStreamSynchronize(fill.stream));
	}
	puts("ready");
	begin = now_ns();
	launches = run_fill(&fill);
	CUDA(cudaMemcpyAsync(&gpu_wrong, fill.wrong, sizeof(gpu_wrong), cudaMemcpyDeviceToHost, fill.stream));
	CUDA(cudaMemcpyAsync(out, fill.out, size, cudaMemcpyDeviceToHost, fill.stream));
	CUDA(cudaStreamSynchronize(fill.stream));
	for (uint32_t i = 0; i < fill.count && launches; i++)
		host_wrong += out[i] != reference[i];
	return finish(launches, gpu_wrong, host_wrong, cpu_wrong, (double)(now_ns() - begin) / 1e9);
}

static int main_list(const char *path, double rate)
{
	struct sequence seq = {};
	unsigned long long launches;
	uint64_t begin;

	sequence_read(&seq, path);
	sequence_prepare(&seq, rate);
	puts("ready");
	begin = now_ns();
	launches = run_list(&seq);
	return finish(launches, sequence_exact(&seq) ? 0 : 1, 0, 0, (double)(now_ns() - begin) / 1e9);
}

int main(int argc, char **argv)
{
	double ms = 50, rate = 0, seconds = 900;
	const char *list = NULL, *progress = NULL;
	uint32_t rounds = 0;
	bool calibrates = false;
	pthread_t thread;
	void *memory;
	int status;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (!strcmp(name, "--calibrate") || !strcmp(name, "--plant")) {
			*(name[2] == 'c' ? &calibrates : &is_planted) = true;
			continue;
		}
		i++;
		if (!strcmp(name, "--ms"))
			ms = number(name, value, 0.1, 10000);
		else if (!strcmp(name, "--iters"))
			rounds = (uint32_t)number(name, value, 1, 1e6);
		else if (!strcmp(name, "--rate"))
			rate = number(name, value, 0.001, 1e6);
		else if (!strcmp(name, "--sample-us"))
			sample_ns = (uint64_t)(number(name, value, 100, 1e6) * 1000);
		else if (!strcmp(name, "--seconds"))
			seconds = number(name, value, 1, 3600);
		else if (!strcmp(name, "--list") && value)
			list = value;
		else if (!strcmp(name, "--progress") && value)
			progress = value;
		else
			fail("usage: be --calibrate | [--ms N] --iters N | --list FILE --rate N; --progress FILE --sample-us N --seconds N");
	}
	signal(SIGTERM, on_term);
	signal(SIGINT, on_term);
	alarm((unsigned)seconds); /* nobody waits for it for ever */
	CUDA(cudaSetDevice(0));
	if (calibrates) {
		fill_calibrate();
		return 0;
	}
	if (list ? rate <= 0 : !rounds)
		fail("%s is missing: see --calibrate", list ? "--rate" : "--iters");
	if (posix_memalign(&memory, 4096, 4096))
		fail("no memory");
	memset(memory, 0, 4096);
	CUDA(cudaHostRegister(memory, 4096, cudaHostRegisterMapped));
	CUDA(cudaHostGetDevicePointer((void **)&beats_gpu, memory, 0));
	beats = (volatile unsigned long long *)memory;
	if (progress) {
		progress_fd = open(progress, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (progress_fd < 0 || pthread_create(&thread, NULL, sampler, NULL))
			fail("%s: %s", progress, strerror(errno));
	}
	status = list ? main_list(list, rate) : main_fill(ms, rounds);
	ended = 2;
	_exit(status); /* what the driver tears down at exit is not measured, and may wait for others */
}
