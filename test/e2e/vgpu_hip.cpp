/* SPDX-License-Identifier: MIT */
/*
 * A HIP program on the virtual node: properties, streams with priorities, memory, copies, events, launches, a graph, several GPUs.
 * Results are verified. The node knows its four kernels by the fingerprints in vgpu_kernels.ini, which hold for Debian 12's hipcc
 * (clang 15) and --offload-arch=gfx90a; another compiler makes other code, which tools/fingerprint describes (tools/roots).
 */
#include <hip/hip_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define MUST(call)                                                                                         \
	do {                                                                                               \
		hipError_t error_ = (call);                                                                \
		if (error_ != hipSuccess) {                                                                \
			std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, hipGetErrorName(error_)); \
			std::exit(1);                                                                      \
		}                                                                                          \
	} while (0)

static int failures;

static void check(bool good, const char *what)
{
	std::printf("%s: %s\n", good ? "ok" : "NOT OK", what);
	failures += !good;
}

extern "C" __global__ void vector_add(const float *a, const float *b, float *c, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

extern "C" __global__ void saxpy(float *y, const float *x, float a, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		y[i] += a * x[i];
}

extern "C" __global__ void reduce(float *sums, const float *x, unsigned n)
{
	__shared__ float part[256];
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	part[threadIdx.x] = i < n ? x[i] : 0;
	for (unsigned step = 128; step; step /= 2) {
		__syncthreads();
		if (threadIdx.x < step)
			part[threadIdx.x] += part[threadIdx.x + step];
	}
	if (!threadIdx.x)
		sums[blockIdx.x] = part[0];
}

extern "C" __global__ void matrix_multiply(const float *a, const float *b, float *c, unsigned n)
{
	unsigned column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
	float sum = 0;

	if (row >= n || column >= n)
		return;
	for (unsigned k = 0; k < n; k++)
		sum += a[row * n + k] * b[k * n + column];
	c[row * n + column] = sum;
}

static const unsigned N = 1u << 20;

struct buffers {
	float *a, *b, *c;
	std::vector<float> x, y;
};

static void prepare(buffers &data)
{
	MUST(hipMalloc(&data.a, N * sizeof(float)));
	MUST(hipMalloc(&data.b, N * sizeof(float)));
	MUST(hipMalloc(&data.c, N * sizeof(float)));
	data.x.resize(N);
	data.y.resize(N);
	for (unsigned i = 0; i < N; i++)
		data.x[i] = (float)(i % 1000);
	MUST(hipMemcpy(data.a, data.x.data(), N * sizeof(float), hipMemcpyHostToDevice));
	MUST(hipMemcpy(data.b, data.x.data(), N * sizeof(float), hipMemcpyHostToDevice));
}

static void test_memory(buffers &data)
{
	size_t before, total, after;
	void *extra;
	bool same;

	MUST(hipMemcpy(data.y.data(), data.a, N * sizeof(float), hipMemcpyDeviceToHost));
	same = data.y == data.x;
	check(same, "there and back");
	MUST(hipMemcpy(data.c, data.a, N * sizeof(float), hipMemcpyDeviceToDevice));
	MUST(hipMemset(data.b, 0, N * sizeof(float)));
	MUST(hipMemcpy(data.y.data(), data.c, N * sizeof(float), hipMemcpyDeviceToHost));
	check(data.y == data.x, "within the device");
	MUST(hipMemcpy(data.y.data(), data.b, N * sizeof(float), hipMemcpyDeviceToHost));
	check(data.y[0] == 0 && data.y[N - 1] == 0, "memset");
	MUST(hipMemcpy(data.b, data.x.data(), N * sizeof(float), hipMemcpyHostToDevice));
	MUST(hipMemGetInfo(&before, &total));
	MUST(hipMalloc(&extra, 1u << 30));
	MUST(hipMemGetInfo(&after, &total));
	check(before - after >= 1u << 30, "memory is counted");
	MUST(hipFree(extra));
	check(hipMalloc(&extra, total + (1ull << 30)) == hipErrorOutOfMemory, "more than there is");
	(void)hipGetLastError();
}

static void test_streams(buffers &data)
{
	int lowest, highest;
	hipStream_t streams[3];
	hipEvent_t begin, end;
	float ms;
	bool good = true;

	MUST(hipDeviceGetStreamPriorityRange(&lowest, &highest));
	MUST(hipStreamCreateWithPriority(&streams[0], hipStreamNonBlocking, highest));
	MUST(hipStreamCreateWithPriority(&streams[1], hipStreamNonBlocking, 0));
	MUST(hipStreamCreateWithPriority(&streams[2], hipStreamNonBlocking, lowest));
	MUST(hipEventCreate(&begin));
	MUST(hipEventCreate(&end));
	for (int i = 0; i < 3; i++) {
		MUST(hipMemset(data.c, 0, N * sizeof(float)));
		MUST(hipDeviceSynchronize());
		MUST(hipEventRecord(begin, streams[i]));
		hipLaunchKernelGGL(vector_add, dim3(N / 256), dim3(256), 0, streams[i], data.a, data.b, data.c, N);
		MUST(hipGetLastError());
		MUST(hipEventRecord(end, streams[i]));
		MUST(hipStreamSynchronize(streams[i]));
		MUST(hipEventElapsedTime(&ms, begin, end));
		MUST(hipMemcpy(data.y.data(), data.c, N * sizeof(float), hipMemcpyDeviceToHost));
		for (unsigned k = 0; k < N; k++)
			good &= data.y[k] == 2 * data.x[k];
		good &= ms > 0;
	}
	check(good, "vector addition on streams of three priorities, with events");
	for (int i = 0; i < 3; i++)
		MUST(hipStreamDestroy(streams[i]));
}

static void test_kernels(buffers &data)
{
	const unsigned side = 64;
	float sum = 0, want = 0;
	bool good = true;

	MUST(hipMemcpy(data.c, data.x.data(), N * sizeof(float), hipMemcpyHostToDevice));
	hipLaunchKernelGGL(saxpy, dim3(N / 256), dim3(256), 0, 0, data.c, data.a, 3.0f, N);
	MUST(hipMemcpy(data.y.data(), data.c, N * sizeof(float), hipMemcpyDeviceToHost));
	for (unsigned i = 0; i < N; i++)
		good &= data.y[i] == 4 * data.x[i];
	check(good, "saxpy");
	hipLaunchKernelGGL(reduce, dim3(4), dim3(256), 0, 0, data.c, data.a, 1000u);
	MUST(hipMemcpy(data.y.data(), data.c, 4 * sizeof(float), hipMemcpyDeviceToHost));
	for (int i = 0; i < 4; i++)
		sum += data.y[i];
	for (unsigned i = 0; i < 1000; i++)
		want += data.x[i];
	check(sum == want, "reduction");
	hipLaunchKernelGGL(matrix_multiply, dim3(side / 16, side / 16), dim3(16, 16), 0, 0, data.a, data.b, data.c, side);
	MUST(hipMemcpy(data.y.data(), data.c, side * side * sizeof(float), hipMemcpyDeviceToHost));
	good = true;
	for (unsigned row = 0; row < side; row++)
		for (unsigned column = 0; column < side; column++) {
			float element = 0;

			for (unsigned k = 0; k < side; k++)
				element += data.x[row * side + k] * data.x[k * side + column];
			good &= data.y[row * side + column] == element;
		}
	check(good, "matrix multiplication");
}

static void test_graph(buffers &data)
{
	hipStream_t stream;
	hipGraph_t graph;
	hipGraphExec_t exec;
	bool good = true;

	MUST(hipStreamCreate(&stream));
	MUST(hipMemcpy(data.c, data.x.data(), N * sizeof(float), hipMemcpyHostToDevice));
	MUST(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
	for (int i = 0; i < 3; i++)
		hipLaunchKernelGGL(saxpy, dim3(N / 256), dim3(256), 0, stream, data.c, data.a, 1.0f, N);
	MUST(hipStreamEndCapture(stream, &graph));
	MUST(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
	MUST(hipGraphLaunch(exec, stream));
	MUST(hipGraphLaunch(exec, stream));
	MUST(hipStreamSynchronize(stream));
	MUST(hipMemcpy(data.y.data(), data.c, N * sizeof(float), hipMemcpyDeviceToHost));
	for (unsigned i = 0; i < N; i++)
		good &= data.y[i] == 7 * data.x[i];
	check(good, "a graph of three kernels, launched twice");
	MUST(hipGraphExecDestroy(exec));
	MUST(hipGraphDestroy(graph));
	MUST(hipStreamDestroy(stream));
}

/* From one device's memory to the next one's, and the kernel there on what came. */
static void test_peers(buffers &data, int device, int count)
{
	int next = (device + 1) % count;
	float *there, *sum;
	bool good = true;

	MUST(hipSetDevice(next));
	MUST(hipMalloc(&there, N * sizeof(float)));
	MUST(hipMalloc(&sum, N * sizeof(float)));
	MUST(hipMemcpyPeer(there, next, data.a, device, N * sizeof(float)));
	hipLaunchKernelGGL(vector_add, dim3(N / 256), dim3(256), 0, 0, there, there, sum, N);
	MUST(hipGetLastError());
	MUST(hipMemcpy(data.y.data(), sum, N * sizeof(float), hipMemcpyDeviceToHost));
	for (unsigned i = 0; i < N; i++)
		good &= data.y[i] == 2 * data.x[i];
	check(good, "from device to device");
	MUST(hipFree(there));
	MUST(hipFree(sum));
	MUST(hipSetDevice(device));
}

int main()
{
	hipDeviceProp_t properties;
	int count = 0;

	MUST(hipGetDeviceCount(&count));
	for (int device = 0; device < count; device++) {
		buffers data;

		MUST(hipSetDevice(device));
		MUST(hipGetDeviceProperties(&properties, device));
		std::printf("device %d of %d: %s, %d compute units, %zu MiB\n", device, count, properties.gcnArchName,
			    properties.multiProcessorCount, properties.totalGlobalMem >> 20);
		check(properties.multiProcessorCount >= 38 && properties.warpSize == 64, "properties");
		prepare(data);
		test_memory(data);
		test_streams(data);
		test_kernels(data);
		test_graph(data);
		if (count > 1)
			test_peers(data, device, count);
		MUST(hipFree(data.a));
		MUST(hipFree(data.b));
		MUST(hipFree(data.c));
	}
	MUST(hipDeviceSynchronize());
	std::printf(failures ? "%d failures\n" : "vgpu-hip: ok\n", failures);
	return failures != 0;
}
