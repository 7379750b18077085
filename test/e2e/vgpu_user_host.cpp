// SPDX-License-Identifier: MIT
// HIP programs of the kinds that people write, and what they ask of the runtime: streams and events, graphs, copies in
// two and three dimensions, managed and registered memory, symbols, virtual functions, a heap, workgroups as large as
// they can be, scratch memory that is lent for one dispatch. Each compared with the CPU. Arguments name single parts.
#include <hip/hip_runtime.h>
#include <hip/hip_fp16.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>
#include "vgpu_memory.hpp"

// Streams with asynchronous copies, and events between them.
__global__ void scale(float *x, int n, float by, float plus)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		x[i] = x[i] * by + plus;
}

static bool test_streams()
{
	const int streams = 4, n = 6000;
	hipStream_t stream[streams];
	hipEvent_t ready[streams], first, last;
	float *host, elapsed = -1;
	MUST(hipHostMalloc((void **)&host, streams * n * sizeof(float)));
	for (int i = 0; i < streams * n; i++)
		host[i] = (float)(i % 1000);
	Memory<float> device(streams * n);
	MUST(hipEventCreate(&first));
	MUST(hipEventCreate(&last));
	MUST(hipEventRecord(first, nullptr));
	for (int s = 0; s < streams; s++) {
		MUST(hipStreamCreate(&stream[s]));
		MUST(hipEventCreateWithFlags(&ready[s], hipEventDisableTiming));
	}
	for (int s = 0; s < streams; s++) {
		float *at = device.data + s * n;
		if (s)
			MUST(hipStreamWaitEvent(stream[s], ready[s - 1], 0));
		MUST(hipMemcpyAsync(at, host + s * n, n * sizeof(float), hipMemcpyHostToDevice, stream[s]));
		// Each takes the first number of the one before it, so that order matters.
		if (s)
			MUST(hipMemcpyAsync(at, at - n, sizeof(float), hipMemcpyDeviceToDevice, stream[s]));
		scale<<<(n + 255) / 256, 256, 0, stream[s]>>>(at, n, 2.0f, 1.0f);
		MUST(hipEventRecord(ready[s], stream[s]));
		MUST(hipMemcpyAsync(host + s * n, at, n * sizeof(float), hipMemcpyDeviceToHost, stream[s]));
	}
	for (int s = 0; s < streams; s++)
		MUST(hipStreamSynchronize(stream[s]));
	MUST(hipEventRecord(last, nullptr));
	MUST(hipEventSynchronize(last));
	MUST(hipEventElapsedTime(&elapsed, first, last));
	float before = 0;
	for (int s = 0; s < streams; s++)
		for (int i = 0; i < n; i++) {
			float x = s && i == 0 ? before : (float)((s * n + i) % 1000);
			if (i == 0)
				before = x * 2 + 1;
			if (host[s * n + i] != x * 2 + 1)
				return false;
		}
	for (int s = 0; s < streams; s++) {
		MUST(hipStreamDestroy(stream[s]));
		MUST(hipEventDestroy(ready[s]));
	}
	MUST(hipHostFree(host));
	return elapsed > 0;
}

// A graph, captured from a stream and launched three times.
static bool test_graph()
{
	const int n = 1000;
	hipStream_t stream;
	hipGraph_t graph;
	hipGraphExec_t run;
	std::vector<float> x(n, 1.0f), got(n);
	Memory<float> device(x);
	MUST(hipStreamCreate(&stream));
	MUST(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
	scale<<<4, 256, 0, stream>>>(device.data, n, 3.0f, 0.0f);
	scale<<<4, 256, 0, stream>>>(device.data, n, 1.0f, 2.0f);
	MUST(hipMemcpyAsync(got.data(), device.data, n * sizeof(float), hipMemcpyDeviceToHost, stream));
	MUST(hipStreamEndCapture(stream, &graph));
	MUST(hipGraphInstantiate(&run, graph, nullptr, nullptr, 0));
	for (int i = 0; i < 3; i++)
		MUST(hipGraphLaunch(run, stream));
	MUST(hipStreamSynchronize(stream));
	MUST(hipGraphExecDestroy(run));
	MUST(hipGraphDestroy(graph));
	MUST(hipStreamDestroy(stream));
	return std::all_of(got.begin(), got.end(), [](float e) { return e == 53.0f; });
}

// Symbols, constant memory, managed memory, structures by value, templates, halves, 64-bit divisions.
__constant__ int table[16];
__device__ int counter;
struct Point {
	short x, y;
	float weight[3];
};
template <typename T>
__global__ void mixed(Point point, T *out, const long long *wide, long long *quotients, __half *halves)
{
	int i = threadIdx.x;

	out[i] = (T)(table[i % 16] + point.x * i - point.y) + (T)point.weight[i % 3];
	quotients[i] = wide[i] / (i * 1000003ll - 31000001ll) + wide[i] % (i + 3) +
		       (long long)((unsigned long long)wide[i] / 10007u);
	halves[i] = __hadd(__float2half((float)i * 0.25f), __hmul(halves[i], __float2half(3.0f)));
	atomicAdd(&counter, i);
}

static bool test_mixed()
{
	int constants[16], zero = 0, count = 0;
	for (int i = 0; i < 16; i++)
		constants[i] = i * i * 3 - 50;
	MUST(hipMemcpyToSymbol(HIP_SYMBOL(table), constants, sizeof(constants)));
	MUST(hipMemcpyToSymbol(HIP_SYMBOL(counter), &zero, sizeof(zero)));
	Point point = { -7, 300, { 0.5f, 1.25f, -3.75f } };
	std::vector<long long> wide(64);
	for (int i = 0; i < 64; i++)
		wide[i] = (i % 2 ? -1 : 1) * (0x123456789abcdefll * (i + 1) % 0x7fffffffffffffffll);
	std::vector<__half> h(64);
	for (int i = 0; i < 64; i++)
		h[i] = __float2half((float)(i - 30) * 0.5f);
	Memory<float> out(64);
	Memory<long long> in(wide), quotients(64);
	Memory<__half> halves(h);
	mixed<float><<<1, 64>>>(point, out.data, in.data, quotients.data, halves.data);
	MUST(hipMemcpyFromSymbol(&count, HIP_SYMBOL(counter), sizeof(count)));
	auto o = out.get();
	auto q = quotients.get();
	auto hh = halves.get();
	for (int i = 0; i < 64; i++) {
		long long e = wide[i] / (i * 1000003ll - 31000001ll) + wide[i] % (i + 3) +
			      (long long)((unsigned long long)wide[i] / 10007u);
		float half = (float)i * 0.25f + (float)(i - 30) * 1.5f;
		if (o[i] != (float)(constants[i % 16] + point.x * i - point.y) + point.weight[i % 3] || q[i] != e ||
		    __half2float(hh[i]) != half)
			return false;
	}
	return count == 63 * 64 / 2;
}

// Virtual functions: calls that the compiler cannot follow have a large stack, which the runtime lends for one
// dispatch.
struct Shape {
	__device__ virtual float area() const = 0;
};
struct Square : Shape {
	float side;
	__device__ explicit Square(float x) : side(x)
	{
	}
	__device__ float area() const override
	{
		return side * side;
	}
};
struct Round : Shape {
	float radius;
	__device__ explicit Round(float x) : radius(x)
	{
	}
	__device__ float area() const override
	{
		return 3 * radius * radius;
	}
};

__global__ void areas(float *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	Square square((float)i);
	Round round((float)i);
	const Shape *shape = i % 2 ? (const Shape *)&square : (const Shape *)&round;

	out[i] = shape->area();
}

static bool test_virtual()
{
	Memory<float> out(128);
	areas<<<2, 64>>>(out.data);
	auto got = out.get();
	for (int i = 0; i < 128; i++)
		if (got[i] != (i % 2 ? (float)(i * i) : (float)(3 * i * i)))
			return false;
	return true;
}

// All of LDS, and as many work items as a workgroup can have; after the stack above it must ask for its own.
__global__ void large(unsigned *out)
{
	__shared__ unsigned part[16384];
	unsigned hash = 0;

	for (int i = threadIdx.x; i < 16384; i += 1024)
		part[i] = i * 2654435761u;
	__syncthreads();
	for (int i = 0; i < 16; i++)
		hash = hash * 31 + part[(threadIdx.x * 16 + i * 977) % 16384];
	out[blockIdx.x * 1024 + threadIdx.x] = hash;
}

static bool test_large()
{
	Memory<unsigned> out(2048);
	large<<<2, 1024>>>(out.data);
	auto got = out.get();
	for (int t = 0; t < 2048; t++) {
		unsigned hash = 0;
		for (int i = 0; i < 16; i++)
			hash = hash * 31 + (unsigned)((t % 1024 * 16 + i * 977) % 16384) * 2654435761u;
		if (got[t] != hash)
			return false;
	}
	return true;
}

// Copies of rectangles and boxes, of elements of every size that a copy engine knows.
static bool copy_rectangle(size_t width, size_t height)
{
	char *device;
	size_t pitch, size = width * height;
	MUST(hipMallocPitch((void **)&device, &pitch, width, height));
	std::vector<char> from(size), to(size), row(width, 5);
	for (size_t i = 0; i < size; i++)
		from[i] = (char)(i * 7 + i / 251);
	MUST(hipMemcpy2D(device, pitch, from.data(), width, width, height, hipMemcpyHostToDevice));
	MUST(hipMemset2D(device + pitch, pitch, 5, width, 1));
	MUST(hipMemcpy2D(to.data(), width, device, pitch, width, height, hipMemcpyDeviceToHost));
	MUST(hipFree(device));
	memcpy(from.data() + width, row.data(), width);
	return from == to;
}

static bool copy_box()
{
	hipPitchedPtr device;
	hipExtent extent = make_hipExtent(100, 20, 7);
	std::vector<char> from(100 * 20 * 7), to(from.size());
	for (size_t i = 0; i < from.size(); i++)
		from[i] = (char)(i * 13 + i / 256);
	MUST(hipMalloc3D(&device, extent));
	hipMemcpy3DParms copy = {};
	copy.srcPtr = make_hipPitchedPtr(from.data(), 100, 100, 20);
	copy.dstPtr = device;
	copy.extent = extent;
	copy.kind = hipMemcpyHostToDevice;
	MUST(hipMemcpy3D(&copy));
	// Back from inside the box: 60 by 10 by 5, at (20, 4, 1).
	hipMemcpy3DParms back = {};
	back.srcPtr = device;
	back.srcPos = make_hipPos(20, 4, 1);
	back.dstPtr = make_hipPitchedPtr(to.data(), 100, 100, 20);
	back.dstPos = make_hipPos(0, 1, 2);
	back.extent = make_hipExtent(60, 10, 5);
	back.kind = hipMemcpyDeviceToHost;
	MUST(hipMemcpy3D(&back));
	MUST(hipFree(device.ptr));
	for (int z = 0; z < 7; z++)
		for (int y = 0; y < 20; y++)
			for (int x = 0; x < 100; x++) {
				bool inside = x < 60 && y >= 1 && y < 11 && z >= 2;
				if (to[(z * 20 + y) * 100 + x] !=
				    (inside ? from[((z - 1) * 20 + y + 3) * 100 + x + 20] : 0))
					return false;
			}
	return true;
}

static bool test_boxes()
{
	return copy_rectangle(100, 50) && copy_rectangle(64, 3) && copy_rectangle(4096, 9) && copy_rectangle(33, 700) &&
	       copy_box();
}

__global__ void twice(int *x, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		x[i] = x[i] * 2 + 1;
}

static bool test_managed()
{
	int *x;
	MUST(hipMallocManaged((void **)&x, 4000));
	for (int i = 0; i < 1000; i++)
		x[i] = i;
	twice<<<4, 256>>>(x, 1000);
	MUST(hipDeviceSynchronize());
	for (int i = 0; i < 1000; i++)
		if (x[i] != 2 * i + 1)
			return false;
	MUST(hipFree(x));
	return true;
}

static bool test_registered()
{
	std::vector<int> x(5000);
	int *device;
	std::iota(x.begin(), x.end(), 0);
	MUST(hipHostRegister(x.data(), x.size() * sizeof(int), 0));
	MUST(hipHostGetDevicePointer((void **)&device, x.data(), 0));
	twice<<<20, 256>>>(device, 5000);
	MUST(hipDeviceSynchronize());
	MUST(hipHostUnregister(x.data()));
	for (int i = 0; i < 5000; i++)
		if (x[i] != 2 * i + 1)
			return false;
	return true;
}

// The heap is the host's: each call goes there and back.
__global__ void heap(int *out)
{
	int *mine = (int *)malloc(16 * sizeof(int)), sum = 0;

	for (int i = 0; mine && i < 16; i++)
		mine[i] = i * (int)threadIdx.x;
	for (int i = 0; mine && i < 16; i++)
		sum += mine[i];
	out[threadIdx.x] = mine ? sum : -1;
	free(mine);
}

static bool test_heap()
{
	Memory<int> out(32);
	heap<<<1, 32>>>(out.data);
	auto got = out.get();
	for (int i = 0; i < 32; i++)
		if (got[i] != 120 * i)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		bool (*run)();
	} tests[] = {
		{ "streams", test_streams }, { "graph", test_graph },           { "mixed", test_mixed },
		{ "virtual", test_virtual }, { "large", test_large },           { "boxes", test_boxes },
		{ "managed", test_managed }, { "registered", test_registered }, { "heap", test_heap },
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
	printf(failed ? "vgpu-user-host: FAILED\n" : "vgpu-user-host: ok\n");
	return failed != 0;
}
