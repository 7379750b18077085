// SPDX-License-Identifier: MIT
// One of two programs that were started apart and need each other: ipc-pair ROLE FILE. The first gives a buffer by
// hipIpcGetMemHandle(), through FILE; kernels of both count in it, each when it is its turn, and spin until then. Prints
// "ready" when both have it, ends soon after there is a file FILE.end; status 3: a result is not exact.
#include <hip/hip_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#define HIP(call)                                                                                                      \
	do {                                                                                                           \
		hipError_t e = (call);                                                                                 \
		if (e != hipSuccess) {                                                                                 \
			fprintf(stderr, "ipc-pair: %s: %s\n", #call, hipGetErrorString(e));                            \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

enum { TURNS = 4 }; // of a kernel

struct shared {
	volatile unsigned given, taken;
	volatile unsigned kernels[2]; // launched and done, by role
	volatile unsigned last;       // kernels of each role, once that is decided
	hipIpcMemHandle_t memory;
};

__global__ void turns(volatile unsigned *word, unsigned role, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		while (*word % 2u != role)
			__builtin_amdgcn_s_sleep(2);
		*word = *word + 1u;
		__threadfence_system();
	}
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	const unsigned role = atoi(argv[1]);
	const std::string file = argv[2];
	const int fd = open(argv[2], O_RDWR);
	shared *both = fd < 0 ? (shared *)MAP_FAILED :
				(shared *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	unsigned *word, found;

	if (both == (shared *)MAP_FAILED) {
		perror(argv[2]);
		return 1;
	}
	if (!role) {
		hipIpcMemHandle_t handle;

		HIP(hipMalloc(&word, 4096));
		HIP(hipMemset(word, 0, 4096));
		HIP(hipDeviceSynchronize());
		HIP(hipIpcGetMemHandle(&handle, word));
		memcpy((void *)&both->memory, &handle, sizeof(handle));
		both->given = 1;
		while (!both->taken)
			usleep(1000);
	} else {
		hipIpcMemHandle_t handle;

		while (!both->given)
			usleep(1000);
		memcpy(&handle, (void *)&both->memory, sizeof(handle));
		HIP(hipIpcOpenMemHandle((void **)&word, handle, hipIpcMemLazyEnablePeerAccess));
		both->taken = 1;
	}
	do {
		// The first decides which kernel is the last, before the other can have begun it.
		if (!role && !both->last && !access((file + ".end").c_str(), F_OK))
			both->last = both->kernels[0] + 2u;
		turns<<<1, 1>>>(word, role, TURNS);
		HIP(hipDeviceSynchronize());
		if (!both->kernels[role]) {
			puts("ready");
			fflush(stdout);
		}
		both->kernels[role] = both->kernels[role] + 1u;
	} while (both->kernels[role] != both->last);
	while (both->kernels[!role] != both->last)
		usleep(1000);
	HIP(hipMemcpy(&found, word, sizeof(found), hipMemcpyDeviceToHost));
	if (found != 2u * TURNS * both->last) {
		fprintf(stderr, "ipc-pair: %u turns, not %u\n", found, 2u * TURNS * both->last);
		return 3;
	}
	if (role)
		HIP(hipIpcCloseMemHandle(word));
	printf("exact after %u kernels\n", both->last);
	return 0;
}
