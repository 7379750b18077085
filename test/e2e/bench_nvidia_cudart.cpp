/* SPDX-License-Identifier: MIT */
/*
 * As much of the CUDA runtime as bench/nvidia's programs use, on the CPU: kernels are computed when they are launched,
 * by functions written a second time here, and complete after the time they would take one after the other on a small
 * device. So the programs themselves can be tried where there is no GPU. FAKE_CUDA_CORRUPT=n: the n-th launch writes
 * one wrong bit. FAKE_CUDA_IPC=folder: memory and events that processes share are files there.
 */
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <map>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
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

uint32_t pair_work(uint32_t x, uint32_t round, uint32_t role)
{
	uint32_t y;

	x ^= (round * 2 + role) * 0x9e3779b1u;
	y = x ^ 0x2545f491u;
	for (uint32_t r = 0; r < 16; r++) {
		x = x * 0x915f77f5u + y;
		y = (y ^ (x >> 15)) * 0x93d765ddu;
	}
	return x ^ y;
}

void pair(void **arguments)
{
	uint32_t *buffer = argument<uint32_t *>(arguments, 0), bit = wrong_bit();
	const uint32_t round = argument<uint32_t>(arguments, 1), role = argument<uint32_t>(arguments, 2);
	const uint64_t now = now_ns();

	/* Computed in order, as an event in the stream has it. */
	while (busy_until_ns > now && busy_until_ns > now_ns())
		;
	for (uint32_t i = 0; i < 256; i++)
		buffer[i] = pair_work(buffer[i], round, role) ^ (i == 77 ? bit : 0);
	takes(20);
}

void relay(void **arguments)
{
	struct words {
		volatile uint64_t round[2], value[2], timeouts;
	} *words = argument<struct words *>(arguments, 0);
	const uint32_t round = argument<uint32_t>(arguments, 1), role = argument<uint32_t>(arguments, 2),
		       bit = wrong_bit();
	const uint64_t begin = now_ns(), limit = argument<uint64_t>(arguments, 3);

	while (words->round[1 - role] + (1 - role) < round) {
		if (now_ns() - begin > limit) {
			words->timeouts = 1;
			return;
		}
		usleep(10);
	}
	words->value[role] = pair_work((uint32_t)words->value[1 - role], round, role) ^ bit;
	__atomic_store_n(&words->round[role], round, __ATOMIC_RELEASE);
	takes(20);
}

/* Memory that another process can open by its name. */
std::map<void *, std::string> &shared_names()
{
	static std::map<void *, std::string> names;

	return names;
}

void *shared_open(const std::string &path)
{
	const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	void *memory = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, 4096) == 0)
		memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (memory == MAP_FAILED)
		return nullptr;
	shared_names()[memory] = path;
	return memory;
}

void *shared_new()
{
	static int count;
	const char *folder = getenv("FAKE_CUDA_IPC");

	return folder ? shared_open(std::string(folder) + "/" + std::to_string(getpid()) + "." +
				    std::to_string(count++)) :
			nullptr;
}

template <typename T> cudaError_t handle_get(T *handle, void *memory)
{
	const auto found = shared_names().find(memory);

	if (found == shared_names().end() || found->second.size() >= sizeof(*handle))
		return cudaErrorInvalidValue;
	strcpy((char *)handle, found->second.c_str());
	return cudaSuccess;
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
	else if (name.find("pair_kernel") != std::string::npos)
		pair(arguments);
	else if (name.find("relay_kernel") != std::string::npos)
		relay(arguments);
	else if (name.find("empty_kernel") != std::string::npos)
		takes(1);
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
	*pointer = getenv("FAKE_CUDA_IPC") && size <= 4096 ? shared_new() : calloc(1, size);
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
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
	*event = (cudaEvent_t)(flags & cudaEventInterprocess ? shared_new() : calloc(1, sizeof(uint64_t)));
	return *event ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *memory)
{
	return handle_get(handle, memory);
}
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
	return handle_get(handle, event);
}
cudaError_t cudaIpcOpenMemHandle(void **memory, cudaIpcMemHandle_t handle, unsigned)
{
	*memory = shared_open((const char *)&handle);
	return *memory ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
	*event = (cudaEvent_t)shared_open((const char *)&handle);
	return *event ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t event, unsigned)
{
	const uint64_t at = *(volatile uint64_t *)event;

	busy_until_ns = busy_until_ns > at ? busy_until_ns : at;
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
