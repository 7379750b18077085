// SPDX-License-Identifier: MIT
// HIP programs of the kinds that people write, each compared with the same computation on the CPU: histograms,
// shuffles, votes, cooperative groups, doubles, dot products of bytes, recursion, calls through pointers, dynamic
// shared memory, stencils, loops of compare-and-swap, functions of libm. Arguments name single parts; those of the
// host's side are in vgpu_user_host.cpp.
#include <hip/hip_runtime.h>
#include <hip/hip_cooperative_groups.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>
#include "vgpu_memory.hpp"

namespace cg = cooperative_groups;

static std::vector<unsigned> numbers(size_t n, unsigned seed)
{
	std::vector<unsigned> x(n);
	for (auto &e : x)
		e = seed = seed * 1664525u + 1013904223u;
	return x;
}

// A histogram in shared memory, then in global memory.
__global__ void histogram(const unsigned *in, int n, unsigned *bins)
{
	__shared__ unsigned part[256];

	for (int i = threadIdx.x; i < 256; i += blockDim.x)
		part[i] = 0;
	__syncthreads();
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		atomicAdd(&part[in[i] >> 24], 1u);
	__syncthreads();
	for (int i = threadIdx.x; i < 256; i += blockDim.x)
		atomicAdd(&bins[i], part[i]);
}

static bool test_histogram()
{
	auto x = numbers(50000, 1);
	Memory<unsigned> in(x), bins(256);
	histogram<<<7, 192>>>(in.data, (int)x.size(), bins.data);
	std::vector<unsigned> expected(256);
	for (auto e : x)
		expected[e >> 24]++;
	return bins.get() == expected;
}

// Sums, extremes and a scan by shuffles of a wave.
__global__ void shuffles(const int *in, int *sums, int *scans, int *highest, float *neighbours)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x, x = in[i], sum = x, scan = x, high = x,
	    lane = threadIdx.x % warpSize;

	for (int step = warpSize / 2; step; step /= 2) {
		sum += __shfl_xor(sum, step);
		high = max(high, __shfl_down(high, step));
	}
	for (int step = 1; step < warpSize; step *= 2) {
		int below = __shfl_up(scan, step);
		if (lane >= step)
			scan += below;
	}
	sums[i] = sum;
	scans[i] = scan;
	highest[i] = __shfl(high, 0);
	neighbours[i] = __shfl((float)x, (lane * 7 + 3) % warpSize) + __shfl_xor((float)x, 5, 16);
}

static bool test_shuffles()
{
	int n = 512;
	std::vector<int> x(n);
	for (int i = 0; i < n; i++)
		x[i] = (i * 7919) % 1000 - 500;
	Memory<int> in(x), sums(n), scans(n), highest(n);
	Memory<float> neighbours(n);
	shuffles<<<2, 256>>>(in.data, sums.data, scans.data, highest.data, neighbours.data);
	auto s = sums.get(), c = scans.get(), h = highest.get();
	auto b = neighbours.get();
	for (int i = 0; i < n; i++) {
		auto first = x.begin() + i / 64 * 64;
		int lane = i % 64;
		if (s[i] != std::accumulate(first, first + 64, 0) ||
		    c[i] != std::accumulate(first, first + lane + 1, 0) || h[i] != *std::max_element(first, first + 64))
			return false;
		if (b[i] != (float)first[(lane * 7 + 3) % 64] + (float)first[(lane / 16 * 16) + ((lane % 16) ^ 5)])
			return false;
	}
	return true;
}

// Votes and bit tricks.
__global__ void votes(const unsigned *in, unsigned long long *masks, unsigned *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % warpSize;
	unsigned x = in[i];
	unsigned long long mask = __ballot(x & 1);
	unsigned rank = __popcll(mask & ((1ull << lane) - 1));

	if (lane == 0)
		masks[i / warpSize] = mask;
	out[i * 8 + 0] = rank;
	out[i * 8 + 1] = (unsigned)__any(x == 0) | (unsigned)__all(x != 0) << 1;
	out[i * 8 + 2] = __popc(x) | __clz((int)x) << 8 | __ffs((int)x) << 16;
	out[i * 8 + 3] = __brev(x);
	out[i * 8 + 4] = __ffsll(mask) | __clzll((long long)(mask >> 3)) << 8;
	out[i * 8 + 5] = __funnelshift_l(x, ~x, x & 31);
	out[i * 8 + 6] = __mul24((int)x, 3) + __umulhi(x, 0x9e3779b9u) + (unsigned)__mulhi((int)x, -7);
	out[i * 8 + 7] = __byte_perm(x, ~x, 0x5140) + __sad((int)x, 77, 5);
}

static bool test_votes()
{
	auto x = numbers(256, 5);
	Memory<unsigned> in(x), out(256 * 8);
	Memory<unsigned long long> masks(4);
	votes<<<2, 128>>>(in.data, masks.data, out.data);
	auto m = masks.get();
	auto o = out.get();
	for (int i = 0; i < 256; i++) {
		unsigned long long mask = 0;
		unsigned e = x[i], r = 0;
		for (int k = 0; k < 64; k++)
			mask |= (unsigned long long)(x[i / 64 * 64 + k] & 1) << k;
		for (int k = 0; k < 32; k++)
			r |= (e >> k & 1) << (31 - k);
		if (m[i / 64] != mask || o[i * 8] != (unsigned)__builtin_popcountll(mask & ((1ull << i % 64) - 1)) ||
		    o[i * 8 + 1] != 2u)
			return false;
		if (o[i * 8 + 2] !=
		    (unsigned)(__builtin_popcount(e) | (e ? __builtin_clz(e) : 32) << 8 | __builtin_ffs((int)e) << 16))
			return false;
		if (o[i * 8 + 3] != r ||
		    o[i * 8 + 4] != (unsigned)(__builtin_ffsll((long long)mask) | __builtin_clzll(mask >> 3) << 8))
			return false;
		if (o[i * 8 + 5] != (e & 31 ? ~e << (e & 31) | e >> (32 - (e & 31)) : ~e))
			return false;
		int a24 = (int)(e << 8) >> 8;
		unsigned six = (unsigned)(a24 * 3) + (unsigned)((unsigned long long)e * 0x9e3779b9u >> 32) +
			       (unsigned)((long long)(int)e * -7 >> 32);
		if (o[i * 8 + 6] != six)
			return false;
		unsigned long long both = (unsigned long long)~e << 32 | e;
		unsigned perm = (unsigned)(both & 255) | (unsigned)(both >> 32 & 255) << 8 |
				(unsigned)(both >> 8 & 255) << 16 | (unsigned)(both >> 40 & 255) << 24;
		unsigned sad = (unsigned)llabs((long long)(int)e - 77) + 5u;
		if (o[i * 8 + 7] != perm + sad)
			return false;
	}
	return true;
}

// Cooperative groups: a tile, the workgroup, the whole grid.
__global__ void cooperative(const int *in, int *out, int *total, int n)
{
	cg::grid_group grid = cg::this_grid();
	cg::thread_block block = cg::this_thread_block();
	auto tile = cg::tiled_partition<16>(block);
	__shared__ int part[256];
	int sum = 0;

	for (int i = (int)grid.thread_rank(); i < n; i += (int)grid.size())
		sum += in[i];
	for (int step = 16 / 2; step; step /= 2)
		sum += tile.shfl_down(sum, step);
	part[block.thread_rank()] = threadIdx.x % 16 == 0 ? sum : 0;
	block.sync();
	if (block.thread_rank() == 0) {
		int all = 0;
		for (unsigned i = 0; i < block.size(); i++)
			all += part[i];
		out[blockIdx.x] = all;
	}
	grid.sync();
	if (grid.thread_rank() == 0)
		for (unsigned i = 0; i < gridDim.x; i++)
			*total += out[i];
	grid.sync();
	if (block.thread_rank() == 0)
		out[blockIdx.x] += *total;
}

static bool test_cooperative()
{
	int n = 20000;
	std::vector<int> x(n);
	for (int i = 0; i < n; i++)
		x[i] = i % 97 - 40;
	Memory<int> in(x), out(8), total(1);
	void *args[] = { &in.data, &out.data, &total.data, &n };
	MUST(hipLaunchCooperativeKernel((void *)cooperative, dim3(8), dim3(256), args, 0, nullptr));
	MUST(hipDeviceSynchronize());
	int expected = std::accumulate(x.begin(), x.end(), 0), sum = 0;
	if (total.get()[0] != expected)
		return false;
	for (auto e : out.get())
		sum += e - expected;
	return sum == expected;
}

// Doubles: a matrix product and a polynomial.
__global__ void doubles(const double *a, const double *b, double *c, int n)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
	double sum = 0;

	if (x >= n || y >= n)
		return;
	for (int k = 0; k < n; k++)
		sum = fma(a[y * n + k], b[k * n + x], sum);
	c[y * n + x] = sum / (1.0 + sum * sum) + sqrt(fabs(sum)) + floor(sum * 10.0) + (double)(long long)(sum * 1e6);
}

static bool test_doubles()
{
	int n = 37;
	std::vector<double> a(n * n), b(n * n);
	for (int i = 0; i < n * n; i++) {
		a[i] = sin(i * 0.7) * 3;
		b[i] = cos(i * 1.3);
	}
	Memory<double> x(a), y(b), z(n * n);
	doubles<<<dim3(5, 5), dim3(8, 8)>>>(x.data, y.data, z.data, n);
	auto c = z.get();
	for (int i = 0; i < n * n; i++) {
		double sum = 0;
		for (int k = 0; k < n; k++)
			sum = fma(a[i / n * n + k], b[k * n + i % n], sum);
		double expected =
			sum / (1.0 + sum * sum) + sqrt(fabs(sum)) + floor(sum * 10.0) + (double)(long long)(sum * 1e6);
		if (fabs(c[i] - expected) > 1e-12 * fabs(expected) + 1e-12)
			return false;
	}
	return true;
}

// Bytes: a quantised matrix-vector product.
__global__ void bytes(const char4 *a, const char4 *x, int *y, int columns)
{
	int row = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;

	for (int i = 0; i < columns; i++) {
		char4 p = a[row * columns + i], q = x[i];
		sum += p.x * q.x + p.y * q.y + p.z * q.z + p.w * q.w;
	}
	y[row] = sum;
}

static bool test_bytes()
{
	int rows = 128, columns = 32;
	std::vector<char4> a(rows * columns), x(columns);
	std::vector<int> expected(rows);
	auto r = numbers(rows * columns + columns, 9);
	memcpy((void *)a.data(), r.data(), a.size() * 4);
	memcpy((void *)x.data(), r.data() + a.size(), x.size() * 4);
	for (int i = 0; i < rows * columns; i++) {
		char4 p = a[i], q = x[i % columns];
		expected[i / columns] += p.x * q.x + p.y * q.y + p.z * q.z + p.w * q.w;
	}
	Memory<char4> da(a), dx(x);
	Memory<int> y(rows);
	bytes<<<2, 64>>>(da.data, dx.data, y.data, columns);
	return y.get() == expected;
}

// Recursion, and calls through pointers.
__device__ __noinline__ int ackermann(int m, int n)
{
	return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
__device__ __noinline__ int fibonacci(int n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
typedef int operation(int, int);
__device__ __noinline__ int plus_op(int a, int b)
{
	return a + b;
}
__device__ __noinline__ int minus_op(int a, int b)
{
	return a - b;
}
__device__ __noinline__ int times_op(int a, int b)
{
	return a * b;
}
__device__ operation *operations[3] = { plus_op, minus_op, times_op };

__global__ void calls(int *out)
{
	int i = threadIdx.x;

	out[i] = fibonacci(i % 11) + ackermann(1, i % 5);
	out[i] = operations[i % 3](out[i], i);
}

static bool test_calls()
{
	Memory<int> out(100);
	calls<<<1, 100>>>(out.data);
	auto got = out.get();
	int fib[11] = { 0, 1 };
	for (int i = 2; i < 11; i++)
		fib[i] = fib[i - 1] + fib[i - 2];
	for (int i = 0; i < 100; i++) {
		int x = fib[i % 11] + (i % 5) + 2;
		if (got[i] != (i % 3 == 0 ? x + i : i % 3 == 1 ? x - i : x * i))
			return false;
	}
	return true;
}

// Dynamic shared memory: a bitonic sort.
__global__ void sort(unsigned *x, int n)
{
	extern __shared__ unsigned keys[];

	for (int i = threadIdx.x; i < n; i += blockDim.x)
		keys[i] = x[i];
	for (int size = 2; size <= n; size *= 2)
		for (int step = size / 2; step; step /= 2) {
			__syncthreads();
			for (int i = threadIdx.x; i < n; i += blockDim.x) {
				int j = i ^ step;
				if (j > i && (keys[i] > keys[j]) == ((i & size) == 0)) {
					unsigned t = keys[i];
					keys[i] = keys[j];
					keys[j] = t;
				}
			}
		}
	__syncthreads();
	for (int i = threadIdx.x; i < n; i += blockDim.x)
		x[i] = keys[i];
}

static bool test_sort()
{
	auto x = numbers(2048, 3);
	Memory<unsigned> keys(x);
	sort<<<1, 256, 2048 * 4>>>(keys.data, 2048);
	std::sort(x.begin(), x.end());
	return keys.get() == x;
}

// A stencil in three dimensions, ten steps.
__global__ void stencil(const float *from, float *to, int n)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;

	if (x >= n || y >= n)
		return;
	auto at = [&](int i, int j, int k) {
		return i < 0 || j < 0 || k < 0 || i >= n || j >= n || k >= n ? 0.0f : from[(k * n + j) * n + i];
	};
	float sum = at(x - 1, y, z) + at(x + 1, y, z);
	sum += at(x, y - 1, z);
	sum += at(x, y + 1, z);
	sum += at(x, y, z - 1);
	sum += at(x, y, z + 1);
	to[(z * n + y) * n + x] = 0.5f * at(x, y, z) + 0.0625f * sum;
}

static bool test_stencil()
{
	int n = 18;
	std::vector<float> now(n * n * n), next(n * n * n);
	for (size_t i = 0; i < now.size(); i++)
		now[i] = (float)((i * 37) % 256);
	Memory<float> a(now), b(now);
	for (int step = 0; step < 10; step++) {
		stencil<<<dim3(2, 3, n), dim3(16, 6)>>>(step % 2 ? b.data : a.data, step % 2 ? a.data : b.data, n);
		for (int z = 0; z < n; z++)
			for (int y = 0; y < n; y++)
				for (int x = 0; x < n; x++) {
					auto at = [&](int i, int j, int k) {
						return i < 0 || j < 0 || k < 0 || i >= n || j >= n || k >= n ?
							       0.0f :
							       now[(k * n + j) * n + i];
					};
					float sum = at(x - 1, y, z) + at(x + 1, y, z);
					sum += at(x, y - 1, z);
					sum += at(x, y + 1, z);
					sum += at(x, y, z - 1);
					sum += at(x, y, z + 1);
					next[(z * n + y) * n + x] = 0.5f * at(x, y, z) + 0.0625f * sum;
				}
		now.swap(next);
	}
	auto got = a.get();
	for (size_t i = 0; i < now.size(); i++)
		if (fabsf(got[i] - now[i]) > 1e-5f * fabsf(now[i]) + 1e-6f)
			return false;
	return true;
}

// Loops of compare-and-swap: a lock, a largest float, a sum of doubles, and an atomic of every kind.
__device__ void add_double(double *to, double x)
{
	auto *word = (unsigned long long *)to;
	unsigned long long old = *word, seen;

	do {
		seen = old;
		old = atomicCAS(word, seen,
				(unsigned long long)__double_as_longlong(x + __longlong_as_double((long long)seen)));
	} while (old != seen);
}

__global__ void atomics(const float *in, int n, float *highest, double *sum, unsigned *lock, unsigned *guarded,
			unsigned *words, unsigned long long *wide)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	int *as_int = (int *)highest, old = *as_int;
	while (__int_as_float(old) < in[i]) {
		int seen = atomicCAS(as_int, old, __float_as_int(in[i]));
		if (seen == old)
			break;
		old = seen;
	}
	add_double(sum, (double)in[i]);
	// One lane of a wave: lanes that wait for a lane of their own wave wait for ever, on hardware too.
	for (bool done = threadIdx.x % warpSize != 0; !done;)
		if (atomicCAS(lock, 0u, 1u) == 0u) {
			__threadfence();
			guarded[0] = guarded[0] + 1;
			guarded[1] = guarded[1] ^ guarded[0];
			__threadfence();
			atomicExch(lock, 0u);
			done = true;
		}
	atomicInc(&words[0], 6u);
	atomicDec(&words[1], 6u);
	atomicAnd(&words[2], ~(1u << i % 32));
	atomicOr(&words[3], 1u << i % 32);
	atomicXor(&words[4], (unsigned)i * 2654435761u);
	atomicMin((int *)&words[5], i - 77);
	atomicMax((int *)&words[6], i - 77);
	atomicMin(&words[7], (unsigned)i + 5u);
	atomicMax(&words[8], (unsigned)i + 5u);
	atomicSub(&words[9], 3u);
	atomicAdd((float *)&words[10], 0.25f);
	atomicAdd(&wide[0], 1ull << 33);
	atomicMax(&wide[1], (unsigned long long)i << 40);
	atomicAdd((double *)&wide[2], 0.5);
}

static bool test_atomics()
{
	int n = 300;
	std::vector<float> x(n);
	for (int i = 0; i < n; i++)
		x[i] = (float)((i * 31) % 211) * 0.5f - 20;
	Memory<float> in(x), highest(std::vector<float>{ -1000.0f });
	Memory<double> sum(1);
	Memory<unsigned> lock(1), guarded(2), words(std::vector<unsigned>{ 0, 3, ~0u, 0, 0, 9, 9, 9, 9, 0, 0 });
	Memory<unsigned long long> wide(3);
	atomics<<<3, 128>>>(in.data, n, highest.data, sum.data, lock.data, guarded.data, words.data, wide.data);
	auto w = words.get();
	unsigned folded = 0, mixed = 0, dec = 3;
	for (int i = 0; i < n; i++) {
		mixed ^= (unsigned)i * 2654435761u;
		dec = dec == 0 || dec > 6 ? 6 : dec - 1;
	}
	unsigned locked = 0;
	for (int i = 0; i < n; i++)
		if (i % 64 == 0)
			folded ^= ++locked;
	double total = 0, part;
	for (auto e : x)
		total += e;
	float quarter;
	memcpy(&quarter, &w[10], 4);
	auto q = wide.get();
	memcpy(&part, &q[2], 8);
	return highest.get()[0] == *std::max_element(x.begin(), x.end()) && sum.get()[0] == total &&
	       guarded.get()[0] == locked && guarded.get()[1] == folded && w[0] == (unsigned)n % 7 && w[1] == dec &&
	       w[2] == 0 && w[3] == ~0u && w[4] == mixed && (int)w[5] == -77 && (int)w[6] == n - 78 && w[7] == 5 &&
	       w[8] == (unsigned)n + 4 && w[9] == 0u - 3u * (unsigned)n && quarter == 0.25f * (float)n &&
	       q[0] == (unsigned long long)n << 33 && q[1] == (unsigned long long)(n - 1) << 40 && part == 0.5 * n;
}

// Transcendental functions, by tolerance.
__global__ void functions(const float *in, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	float x = in[i];
	out[i * 8 + 0] = sinf(x) + cosf(x * 100.0f);
	out[i * 8 + 1] = expf(-x * x) + logf(fabsf(x) + 0.1f);
	out[i * 8 + 2] = powf(fabsf(x) + 0.5f, 1.7f) + tanhf(x);
	out[i * 8 + 3] = atan2f(x, 1.5f) + asinf(x / 20.0f);
	out[i * 8 + 4] = erff(x) + cbrtf(x) + rsqrtf(fabsf(x) + 1.0f);
	out[i * 8 + 5] = fmodf(x * 7.0f, 3.0f) + rintf(x) + copysignf(1.0f, x);
	out[i * 8 + 6] = sinf(x * 1e6f);
	out[i * 8 + 7] = lgammaf(fabsf(x) + 2.0f) + hypotf(x, 3.0f);
}

static bool test_functions()
{
	int n = 400;
	std::vector<float> x(n);
	for (int i = 0; i < n; i++)
		x[i] = (float)(i - 200) * 0.0713f + 0.01f;
	Memory<float> in(x), out(n * 8);
	functions<<<4, 128>>>(in.data, out.data, n);
	auto got = out.get();
	for (int i = 0; i < n; i++) {
		double e = x[i], expected[8] = { sin(e) + cos((double)(x[i] * 100.0f)),
						 exp((double)(-x[i] * x[i])) + log((double)(fabsf(x[i]) + 0.1f)),
						 pow((double)(fabsf(x[i]) + 0.5f), 1.7) + tanh(e),
						 atan2(e, 1.5) + asin(e / 20),
						 erf(e) + cbrt(e) + 1 / sqrt((double)(fabsf(x[i]) + 1.0f)),
						 (double)fmodf(x[i] * 7.0f, 3.0f) + rint(e) + copysign(1.0, e),
						 sin((double)(x[i] * 1e6f)),
						 lgamma((double)(fabsf(x[i]) + 2.0f)) + hypot(e, 3.0) };
		for (int k = 0; k < 8; k++)
			if (fabs(got[i * 8 + k] - expected[k]) > 1e-5 * fabs(expected[k]) + 4e-6) {
				printf("function %d of %g: %.9g, not %.9g\n", k, e, (double)got[i * 8 + k],
				       expected[k]);
				return false;
			}
	}
	return true;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		bool (*run)();
	} tests[] = {
		{ "histogram", test_histogram }, { "shuffles", test_shuffles },
		{ "votes", test_votes },         { "cooperative", test_cooperative },
		{ "doubles", test_doubles },     { "bytes", test_bytes },
		{ "calls", test_calls },         { "sort", test_sort },
		{ "stencil", test_stencil },     { "atomics", test_atomics },
		{ "functions", test_functions },
	};
	int failed = 0;

	for (auto &test : tests) {
		bool is_named = false;
		for (int i = 1; i < argc; i++)
			is_named |= !strcmp(argv[i], test.name);
		if (argc > 1 && !is_named)
			continue;
		bool is_right = test.run();
		printf("%s: %s\n", is_right ? "ok" : "WRONG", test.name);
		fflush(stdout);
		failed += !is_right;
	}
	printf(failed ? "vgpu-user: FAILED\n" : "vgpu-user: ok\n");
	return failed != 0;
}
