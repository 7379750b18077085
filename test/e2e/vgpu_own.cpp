// SPDX-License-Identifier: MIT
// A user's own HIP program, whose kernels nobody described to the node: its instructions are executed. Each kernel's
// result is compared with the same computation here. Arguments name single parts; those that fault run only then.
#include <hip/hip_runtime.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>
#include "vgpu_memory.hpp"

__global__ void triple_add(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] * 3 + b[i];
}

static bool test_vector()
{
	int n = 10001;
	std::vector<float> a(n), b(n);
	for (int i = 0; i < n; i++) {
		a[i] = (float)i;
		b[i] = (float)(2 * i);
	}
	Memory<float> x(a), y(b), z(n);
	triple_add<<<(n + 255) / 256, 256>>>(x.data, y.data, z.data, n);
	auto c = z.get();
	for (int i = 0; i < n; i++)
		if (c[i] != a[i] * 3 + b[i])
			return false;
	return true;
}

__global__ void block_sum(const int *in, int *out, int n)
{
	__shared__ int part[256];
	int i = blockIdx.x * 256 + threadIdx.x;

	part[threadIdx.x] = i < n ? in[i] : 0;
	for (int half = 128; half; half /= 2) {
		__syncthreads();
		if ((int)threadIdx.x < half)
			part[threadIdx.x] += part[threadIdx.x + half];
	}
	if (threadIdx.x == 0)
		atomicAdd(out, part[0]);
}

static bool test_reduction()
{
	std::vector<int> a(20000);
	for (auto &x : a)
		x = rand() % 1000;
	Memory<int> in(a), out(1);
	block_sum<<<79, 256>>>(in.data, out.data, (int)a.size());
	return out.get()[0] == std::accumulate(a.begin(), a.end(), 0);
}

__global__ void newton(double *x, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	double guess = 1;

	for (int k = 0; k < 30; k++)
		guess = 0.5 * (guess + (i + 1) / guess);
	if (i < n)
		x[i] = guess;
}

static bool test_double()
{
	Memory<double> x(500);
	newton<<<2, 256>>>(x.data, 500);
	auto got = x.get();
	for (int i = 0; i < 500; i++)
		if (fabs(got[i] - sqrt((double)(i + 1))) > 1e-13 * got[i])
			return false;
	return true;
}

// Private memory, indexed by values that the compiler cannot know.
__global__ void shuffle_stack(const int *in, int *out, int n)
{
	int stack[32], i = blockIdx.x * blockDim.x + threadIdx.x;

	for (int k = 0; k < 32; k++)
		stack[k] = in[(i + k) % n];
	for (int k = 0; k < 32; k++) {
		int j = stack[k] & 31, t = stack[k];

		stack[k] = stack[j];
		stack[j] = t;
	}
	int sum = 0;
	for (int k = 0; k < 32; k++)
		sum = sum * 31 + stack[k];
	out[i] = sum;
}

static bool test_private()
{
	int n = 1024;
	std::vector<int> a(n);
	for (auto &x : a)
		x = rand();
	Memory<int> in(a), out(n);
	shuffle_stack<<<4, 256>>>(in.data, out.data, n);
	auto got = out.get();
	for (int i = 0; i < n; i++) {
		int stack[32];
		unsigned sum = 0;
		for (int k = 0; k < 32; k++)
			stack[k] = a[(i + k) % n];
		for (int k = 0; k < 32; k++)
			std::swap(stack[k], stack[stack[k] & 31]); // the index is read before anything moves
		for (int k = 0; k < 32; k++)
			sum = sum * 31u + (unsigned)stack[k];
		if ((unsigned)got[i] != sum)
			return false;
	}
	return true;
}

// Every workgroup waits for every other one, several times.
__global__ void grid_barrier(unsigned *count, unsigned *out, unsigned rounds)
{
	for (unsigned round = 1; round <= rounds; round++) {
		__syncthreads();
		if (threadIdx.x == 0) {
			atomicAdd(count, 1u);
			while (__atomic_load_n(count, __ATOMIC_RELAXED) < round * gridDim.x)
				;
		}
		__syncthreads();
	}
	out[blockIdx.x * blockDim.x + threadIdx.x] = *count;
}

static bool test_grid_barrier()
{
	Memory<unsigned> count(1), out(40 * 64);
	grid_barrier<<<40, 64>>>(count.data, out.data, 5);
	for (auto x : out.get())
		if (x != 200)
			return false;
	return true;
}

// Waits for a flag that the host writes while the kernel runs, and answers.
__global__ void wait_for_host(volatile int *flag, volatile int *answer)
{
	while (*flag != 17)
		;
	*answer = *flag + 1;
}

static bool test_host_flag()
{
	volatile int *flags;
	MUST(hipHostMalloc((void **)&flags, 64, hipHostMallocCoherent));
	flags[0] = flags[1] = 0;
	wait_for_host<<<1, 64>>>(&flags[0], &flags[1]);
	if (hipStreamQuery(nullptr) == hipSuccess)
		return false;
	flags[0] = 17;
	MUST(hipDeviceSynchronize());
	return flags[1] == 18;
}

__global__ void set_flag(volatile int *flag, int value)
{
	*flag = value;
}

static bool test_other_queue()
{
	hipStream_t first, second;
	Memory<int> flags(2);
	MUST(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
	MUST(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
	wait_for_host<<<1, 64, 0, first>>>(flags.data, flags.data + 1);
	set_flag<<<1, 1, 0, second>>>(flags.data, 17);
	MUST(hipStreamSynchronize(first));
	MUST(hipStreamDestroy(first));
	MUST(hipStreamDestroy(second));
	return flags.get()[1] == 18;
}

__global__ void talk(int n)
{
	if (threadIdx.x < 2)
		printf("work item %u of %d says %s %.2f\n", (unsigned)threadIdx.x, n, "hello", 1.5 * (double)threadIdx.x);
}

static bool test_printf()
{
	talk<<<1, 64>>>(64);
	MUST(hipDeviceSynchronize());
	return true;
}

__global__ void measure(unsigned long long *out)
{
	unsigned long long begin = __builtin_readcyclecounter();

	while (__builtin_readcyclecounter() - begin < 20000)
		;
	out[0] = __builtin_readcyclecounter() - begin;
	out[1] = clock64();
}

static bool test_clock()
{
	Memory<unsigned long long> out(2);
	measure<<<1, 1>>>(out.data);
	auto got = out.get();
	return got[0] >= 20000 && got[1] > 0;
}

__global__ void read_from(const int *where, int *out)
{
	out[threadIdx.x] = where[threadIdx.x];
}

__global__ void give_up()
{
	if (threadIdx.x == 5)
		abort();
}

static bool fault_unmapped()
{
	Memory<int> out(64);
	read_from<<<1, 64>>>((const int *)0x12345000, out.data);
	return hipDeviceSynchronize() == hipSuccess;
}

// What a kernel finds of its own packet it may only read.
__global__ void write_to_packet()
{
	volatile unsigned *packet = (volatile unsigned *)(uintptr_t)__builtin_amdgcn_dispatch_ptr();

	packet[3] = 77;
}

__global__ void add_to(unsigned *to)
{
	atomicAdd(to, 1u);
}

__global__ void write_far(int *out, int at)
{
	__shared__ int part[64];

	part[threadIdx.x] = 1;
	__syncthreads();
	part[at + (int)threadIdx.x] = 2;
	__syncthreads();
	out[threadIdx.x] = part[threadIdx.x];
}

// No instruction of this target: an image load.
__global__ void unknown_instruction()
{
	asm volatile(".long 0xf0001f00\n\t.long 0x00010203");
}

static bool fault_read_only()
{
	write_to_packet<<<1, 64>>>();
	return hipDeviceSynchronize() == hipSuccess;
}

static bool fault_misaligned()
{
	Memory<unsigned> word(2);
	add_to<<<1, 1>>>((unsigned *)((char *)word.data + 2));
	return hipDeviceSynchronize() == hipSuccess;
}

static bool fault_lds()
{
	Memory<int> out(64);
	write_far<<<1, 64>>>(out.data, 5000);
	return hipDeviceSynchronize() == hipSuccess;
}

static bool fault_illegal()
{
	unknown_instruction<<<1, 64>>>();
	return hipDeviceSynchronize() == hipSuccess;
}

static bool fault_trap()
{
	give_up<<<1, 64>>>();
	return hipDeviceSynchronize() == hipSuccess;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		bool (*run)();
		bool is_fault;
	} tests[] = {
		{ "vector", test_vector, false },	  { "reduction", test_reduction, false },
		{ "double", test_double, false },	  { "private memory", test_private, false },
		{ "grid barrier", test_grid_barrier, false }, { "host flag", test_host_flag, false },
		{ "other queue", test_other_queue, false }, { "printf", test_printf, false },
		{ "clock", test_clock, false },		  { "unmapped", fault_unmapped, true },
		{ "trap", fault_trap, true },		  { "read-only", fault_read_only, true },
		{ "misaligned", fault_misaligned, true }, { "lds", fault_lds, true },
		{ "illegal", fault_illegal, true },
	};
	int failed = 0;

	for (auto &test : tests) {
		bool is_named = false;
		for (int i = 1; i < argc; i++)
			is_named |= !strcmp(argv[i], test.name);
		if (argc > 1 ? !is_named : test.is_fault)
			continue;
		bool is_right = test.run();
		printf("%s: %s\n", is_right ? "ok" : "WRONG", test.name);
		fflush(stdout);
		failed += !is_right;
	}
	printf(failed ? "vgpu-own: FAILED\n" : "vgpu-own: ok\n");
	return failed != 0;
}
