/* SPDX-License-Identifier: MIT */
/*
 * hip ROUNDS: an ordinary HIP program in the guest. It copies two vectors to the device, adds them there ROUNDS times
 * (each round to the sum of the one before), sums up the result by workgroups through LDS, copies both back and
 * compares each value with what the CPU computes.
 *
 * It prints "hip arch=NAME rounds=N wrong=N", and exits 0 if nothing was wrong.
 */
#include <hip/hip_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <vector>

static const unsigned count = 20000; /* not a multiple of a workgroup */
static const unsigned group = 256;

static void must(hipError_t error, const char *what)
{
	if (error == hipSuccess)
		return;
	printf("hip: %s: %s\n", what, hipGetErrorString(error));
	exit(2);
}

__global__ void add(const float *a, float *b, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		b[i] += a[i];
}

__global__ void sums(const float *a, float *ret_sums, unsigned n)
{
	__shared__ float part[group];
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	part[threadIdx.x] = i < n ? a[i] : 0;
	for (unsigned step = group / 2; step; step /= 2) {
		__syncthreads();
		if (threadIdx.x < step)
			part[threadIdx.x] += part[threadIdx.x + step];
	}
	if (!threadIdx.x)
		ret_sums[blockIdx.x] = part[0];
}

/* Values are whole and small: each sum is exact, in whatever order. */
static unsigned check(const std::vector<float> &a, const std::vector<float> &b, const std::vector<float> &result,
		      const std::vector<float> &partial, unsigned rounds)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < count; i++)
		wrong += result[i] != b[i] + (float)rounds * a[i];
	for (unsigned k = 0; k < partial.size(); k++) {
		float sum = 0;

		for (unsigned i = k * group; i < count && i < (k + 1) * group; i++)
			sum += b[i] + (float)rounds * a[i];
		wrong += partial[k] != sum;
	}
	return wrong;
}

int main(int argc, char **argv)
{
	const unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 1, groups = (count + group - 1) / group;
	std::vector<float> a(count), b(count), result(count), partial(groups);
	float *on_device[3];
	hipDeviceProp_t properties;
	unsigned wrong;

	must(hipGetDeviceProperties(&properties, 0), "hipGetDeviceProperties");
	for (unsigned i = 0; i < count; i++) {
		a[i] = (float)(i % 97);
		b[i] = (float)(i % 31);
	}
	must(hipMalloc((void **)&on_device[0], count * sizeof(float)), "hipMalloc");
	must(hipMalloc((void **)&on_device[1], count * sizeof(float)), "hipMalloc");
	must(hipMalloc((void **)&on_device[2], groups * sizeof(float)), "hipMalloc");
	must(hipMemcpy(on_device[0], a.data(), count * sizeof(float), hipMemcpyHostToDevice),
	     "hipMemcpy to the device");
	must(hipMemcpy(on_device[1], b.data(), count * sizeof(float), hipMemcpyHostToDevice),
	     "hipMemcpy to the device");
	for (unsigned i = 0; i < rounds; i++)
		hipLaunchKernelGGL(add, dim3(groups), dim3(group), 0, 0, on_device[0], on_device[1], count);
	hipLaunchKernelGGL(sums, dim3(groups), dim3(group), 0, 0, on_device[1], on_device[2], count);
	must(hipGetLastError(), "launch");
	must(hipDeviceSynchronize(), "hipDeviceSynchronize");
	must(hipMemcpy(result.data(), on_device[1], count * sizeof(float), hipMemcpyDeviceToHost), "hipMemcpy back");
	must(hipMemcpy(partial.data(), on_device[2], groups * sizeof(float), hipMemcpyDeviceToHost), "hipMemcpy back");
	wrong = check(a, b, result, partial, rounds);
	printf("hip arch=%s rounds=%u wrong=%u\n", properties.gcnArchName, rounds, wrong);
	for (float *memory : on_device)
		must(hipFree(memory), "hipFree");
	return wrong != 0;
}
