// SPDX-License-Identifier: MIT
// A small inference-like server that says when work is coming: the request's first line announces it, the data follow, and by the
// time the kernel is launched the scheduler has put less urgent work aside. Works the same without gpreempt: every call then
// returns -ENOTCONN and nothing else happens.
//
//   hipcc -O2 serve.cpp -o serve $(pkg-config --cflags --libs gpreempt)
//   gpreempt run -p normal -- ./serve <requests
//
// A request is a line "ADD n x": the server fills a vector of n elements with 1, adds x to each on the GPU and prints the sum.
#include <gpreempt/gpreempt.h>
#include <hip/hip_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                      \
	do {                                                                                             \
		hipError_t error = (call);                                                               \
		if (error != hipSuccess) {                                                               \
			std::fprintf(stderr, "%s: %s\n", #call, hipGetErrorString(error));               \
			std::exit(1);                                                                    \
		}                                                                                        \
	} while (0)

__global__ void saxpy(float *y, const float *x, float a, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		y[i] += a * x[i];
}

constexpr int size_max = 1 << 20;
// From the announcement to the launch: reading, filling, copying. Measured for these sizes, then rounded up.
constexpr uint64_t ahead_ns = 300000;

int main()
{
	float *x, *y;
	hipStream_t stream;
	char line[64];

	CHECK(hipStreamCreate(&stream));
	CHECK(hipMalloc(&x, size_max * sizeof(float)));
	CHECK(hipMalloc(&y, size_max * sizeof(float)));
	int told = gpreempt_set_priority(nullptr, GPREEMPT_HIGH);
	std::fprintf(stderr, "serve: %s\n", told ? "nobody schedules us" : "priority asked for");
	while (std::fgets(line, sizeof(line), stdin)) {
		int n = 0;
		float a = 0, sum = 0;

		if (std::sscanf(line, "ADD %d %f", &n, &a) != 2 || n < 1 || n > size_max) {
			std::puts("what?");
			continue;
		}
		gpreempt_hint(nullptr, ahead_ns);
		std::vector<float> ones(n, 1.0f);
		CHECK(hipMemcpyAsync(x, ones.data(), n * sizeof(float), hipMemcpyHostToDevice, stream));
		CHECK(hipMemcpyAsync(y, ones.data(), n * sizeof(float), hipMemcpyHostToDevice, stream));
		saxpy<<<(n + 255) / 256, 256, 0, stream>>>(y, x, a, n);
		CHECK(hipMemcpyAsync(ones.data(), y, n * sizeof(float), hipMemcpyDeviceToHost, stream));
		CHECK(hipStreamSynchronize(stream));
		for (float value : ones)
			sum += value;
		std::printf("%.1f\n", sum);
		std::fflush(stdout);
	}
	return 0;
}
