/* SPDX-License-Identifier: MIT */
/*
 * As much of the CUDA runtime as bench/nvidia's programs use, on the CPU: kernels are computed when they are launched,
 * by functions written a second time here, and complete after the time they would take one after the other on a small
 * device. So the programs themselves can be tried where there is no GPU. FAKE_CUDA_CORRUPT=n: the n-th launch writes
 * one wrong bit.
 */
#include <cuda_runtime_api.h>
#include <map>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <time.h>
#include <vector>

namespace
{

constexpr unsigned SMS = 1;
constexpr double STEP_ROUND_US = 10, FILL_ROUND_US = 10;

/* Programs register their kernels before main(). */
std::map<const void *, std::string> &names()
{
	static std::map<const void *, std::string> names;

	return names;
}

struct {
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;
} configuration;
uint64_t busy_until_ns, launches;

uint64_t now_ns()
{
	timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void takes(double us)
{
	const uint64_t now = now_ns();

	busy_until_ns = (busy_until_ns > now ? busy_until_ns : now) + (uint64_t)(us * 1000);
}

uint32_t wrong_bit()
{
	const char *which = getenv("FAKE_CUDA_CORRUPT");

	return which && (uint64_t)atoll(which) == ++launches ? 1u << 7 : 0;
}

template <typename T> T argument(void **arguments, int index)
{
	T value;

	memcpy(&value, arguments[index], sizeof(value));
	return value;
}

void step(unsigned blocks, void **arguments)
{
	const uint32_t *before = argument<const uint32_t *>(arguments, 0);
	const uint32_t count = argument<uint32_t>(arguments, 1), rounds = argument<uint32_t>(arguments, 3);
	uint32_t *after = argument<uint32_t *>(arguments, 2), bit = wrong_bit();
	uint64_t *sum = argument<uint64_t *>(arguments, 4), *mark_at = argument<uint64_t *>(arguments, 5);
	const unsigned places = SMS * 16;

	for (uint32_t i = 0; i < blocks * 64; i++) {
		uint32_t x = i < count ? before[i] : i, y = x ^ 0x2545f491u;

		for (uint32_t r = 0; r < rounds; r++) {
			x = x * 0x915f77f5u + y;
			y = (y ^ (x >> 15)) * 0x93d765ddu;
		}
		after[i] = x ^ y ^ (i == 77 ? bit : 0);
		*sum += (uint64_t)after[i] * (2ull * i + 1);
	}
	if (mark_at)
		*mark_at = argument<uint64_t>(arguments, 6);
	takes(rounds * STEP_ROUND_US * ((blocks + places - 1) / places));
}

uint32_t fill_one(uint32_t id, uint32_t chunks, uint32_t rounds)
{
	uint32_t words[8], slots[24], hash = 0x811c9dc5u;

	for (uint32_t k = 0; k < 8; k++)
		words[k] = (id + 1) * 0x9e3779b1u ^ (k + 1) * 0x85ebca77u;
	for (uint32_t k = 0; k < 24; k++)
		slots[k] = id ^ k << 24;
	for (uint32_t c = 0; c < chunks; c++) {
		for (uint32_t r = 0; r < rounds; r++)
			for (uint32_t k = 0; k < 8; k++)
				words[k] = words[k] * 0xc2b2ae3du + (words[(k + 3) % 8] >> 5);
		slots[c % 24] += words[1] ^ c;
		words[6] ^= slots[(c * 5 + 11) % 24];
	}
	for (uint32_t word : words)
		hash = (hash ^ word) * 0x01000193u;
	for (uint32_t slot : slots)
		hash = (hash ^ slot) * 0x01000193u;
	return hash;
}

void fill(unsigned blocks, void **arguments)
{
	static std::map<std::vector<uint32_t>, std::vector<uint32_t>> known; /* the same launch over and over */
	uint32_t *out = argument<uint32_t *>(arguments, 0), bit = wrong_bit();
	const uint32_t *reference = argument<const uint32_t *>(arguments, 1);
	uint64_t *wrong = argument<uint64_t *>(arguments, 2), *beat = argument<uint64_t *>(arguments, 3);
	const uint32_t chunks = argument<uint32_t>(arguments, 5), rounds = argument<uint32_t>(arguments, 6);
	std::vector<uint32_t> &values = known[{ blocks, chunks, rounds }];

	if (values.empty())
		for (uint32_t i = 0; i < blocks * 512; i++)
			values.push_back(fill_one(i, chunks, rounds));
	for (uint32_t i = 0; i < blocks * 512; i++) {
		out[i] = values[i] ^ (i == 77 ? bit : 0);
		*wrong += reference && out[i] != reference[i];
	}
	for (uint32_t block = 0; beat && block < blocks; block += 8)
		beat[block / 8] = argument<uint64_t>(arguments, 4) + chunks;
	takes(chunks * rounds * FILL_ROUND_US);
}

} // namespace

extern "C" {

void **__cudaRegisterFatBinary(void *)
{
	static void *handle;

	return &handle;
}
void __cudaRegisterFatBinaryEnd(void **)
{
}
void __cudaUnregisterFatBinary(void **)
{
}
void __cudaRegisterFunction(void **, const char *host, char *, const char *name, int, uint3 *, uint3 *, dim3 *, dim3 *,
			    int *)
{
	names()[host] = name;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream)
{
	configuration = { grid, block, shared, stream };
	return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
	*grid = configuration.grid;
	*block = configuration.block;
	*shared = configuration.shared;
	memcpy(stream, &configuration.stream, sizeof(configuration.stream));
	return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
	*kernel = (cudaKernel_t)host;
	return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3, void **arguments, size_t, cudaStream_t)
{
	const std::string &name = names()[(const void *)kernel];

	if (name.find("step_kernel") != std::string::npos)
		step(grid.x, arguments);
	else if (name.find("fill_kernel") != std::string::npos)
		fill(grid.x, arguments);
	else
		return cudaErrorInvalidDeviceFunction;
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int)
{
	return cudaSuccess;
}
cudaError_t cudaSetDeviceFlags(unsigned)
{
	return cudaSuccess;
}
cudaError_t cudaGetLastError(void)
{
	return cudaSuccess;
}
const char *cudaGetErrorString(cudaError_t)
{
	return "an error";
}
cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int)
{
	return cudaSuccess;
}
cudaError_t cudaHostRegister(void *, size_t, unsigned)
{
	return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int)
{
	*value = SMS;
	return cudaSuccess;
}
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned)
{
	*device = host;
	return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *, int, size_t, unsigned)
{
	*blocks = 4;
	return cudaSuccess;
}
cudaError_t cudaMalloc(void **pointer, size_t size)
{
	*pointer = calloc(1, size);
	return *pointer ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaMemsetAsync(void *pointer, int value, size_t size, cudaStream_t)
{
	memset(pointer, value, size);
	return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind, cudaStream_t)
{
	memcpy(to, from, size);
	return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
	*stream = (cudaStream_t)&busy_until_ns;
	return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
	*event = (cudaEvent_t)calloc(1, sizeof(uint64_t));
	return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	return cudaEventCreateWithFlags(event, 0);
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t)
{
	const uint64_t now = now_ns();

	*(uint64_t *)event = busy_until_ns > now ? busy_until_ns : now;
	return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event)
{
	return now_ns() >= *(uint64_t *)event ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	while (cudaEventQuery(event) != cudaSuccess)
		;
	return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t)
{
	return cudaEventSynchronize((cudaEvent_t)&busy_until_ns);
}
/* Of two records one behind the other: what was launched between them. */
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
	*ms = (float)(*(uint64_t *)end - *(uint64_t *)begin) / 1e6f;
	return cudaSuccess;
}
}
