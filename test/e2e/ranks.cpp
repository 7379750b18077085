// SPDX-License-Identifier: MIT
// One rank of a job, on the GPU of its number: ranks RANK COUNT FILE. In each round a kernel says that it is there and
// spins until all its peers are, as a collective does; then another computes. FILE is what they share. Prints "ready" when
// its first rounds are over, goes on when there is a file FILE.go, and ends soon after there is a file FILE.end; status 3: a
// result is not exact.
#include <hip/hip_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#define HIP(call)                                                                                                      \
	do {                                                                                                           \
		hipError_t e = (call);                                                                                 \
		if (e != hipSuccess) {                                                                                 \
			fprintf(stderr, "ranks: %s: %s\n", #call, hipGetErrorString(e));                               \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

enum { SIZE = 4096, STRIDE = 16, WIDTH = 256, AHEAD = 16 }; // AHEAD: rounds launched at once

__global__ void meet(volatile unsigned *flags, unsigned rank, unsigned count, unsigned round)
{
	flags[rank * STRIDE] = round;
	__threadfence_system();
	for (unsigned i = 0; i < count; i++)
		while (flags[i * STRIDE] < round)
			__builtin_amdgcn_s_sleep(2);
}

__global__ void work(unsigned *values, unsigned round)
{
	values[threadIdx.x] = values[threadIdx.x] * 3u + round + threadIdx.x;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	const unsigned rank = atoi(argv[1]), count = atoi(argv[2]);
	const std::string file = argv[3];
	unsigned round = 0;
	int fd = open(argv[3], O_RDWR);
	unsigned expected[WIDTH] = {}, found[WIDTH], *values, *flags;
	void *shared = fd < 0 ? MAP_FAILED : mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (shared == MAP_FAILED) {
		perror(argv[3]);
		return 1;
	}
	HIP(hipSetDevice(rank));
	HIP(hipHostRegister(shared, SIZE, hipHostRegisterMapped));
	HIP(hipHostGetDevicePointer((void **)&flags, shared, 0));
	HIP(hipMalloc(&values, sizeof(found)));
	HIP(hipMemset(values, 0, sizeof(found)));
	// The first decides which round is the last, before the others can have begun it.
	volatile unsigned *last = (volatile unsigned *)shared + SIZE / sizeof(unsigned) - 1;
	do {
		if (!rank && !access((file + ".end").c_str(), F_OK))
			*last = round + AHEAD;
		for (unsigned i = 0; i < AHEAD; i++) {
			round++;
			meet<<<1, 1>>>(flags, rank, count, round);
			work<<<1, WIDTH>>>(values, round);
			for (unsigned k = 0; k < WIDTH; k++)
				expected[k] = expected[k] * 3u + round + k;
		}
		HIP(hipDeviceSynchronize());
		if (round == AHEAD) {
			puts("ready");
			fflush(stdout);
			while (access((file + ".go").c_str(), F_OK))
				usleep(10000);
		}
	} while (*last != round);
	HIP(hipMemcpy(found, values, sizeof(found), hipMemcpyDeviceToHost));
	for (unsigned i = 0; i < WIDTH; i++)
		if (found[i] != expected[i]) {
			fprintf(stderr, "ranks: value %u is %u, not %u\n", i, found[i], expected[i]);
			return 3;
		}
	printf("exact after %u rounds\n", round);
	return 0;
}
