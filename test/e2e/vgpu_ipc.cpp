// SPDX-License-Identifier: MIT
// Memory between two processes by hipIpcGetMemHandle() and hipIpcOpenMemHandle(): what the one writes the other reads, on
// the same piece; it lasts as long as one of them has it; a key that nobody gave opens nothing.
#include <hip/hip_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#define HIP(call)                                                                                                      \
	do {                                                                                                           \
		hipError_t e = (call);                                                                                 \
		if (e != hipSuccess) {                                                                                 \
			fprintf(stderr, "vgpu-ipc: %s: %s\n", #call, hipGetErrorString(e));                            \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

enum { COUNT = 100000 };

static void check(const void *memory, unsigned first)
{
	std::vector<unsigned> values(COUNT);

	HIP(hipMemcpy(values.data(), memory, COUNT * sizeof(unsigned), hipMemcpyDeviceToHost));
	for (unsigned i = 0; i < COUNT; i++)
		if (values[i] != first + i) {
			fprintf(stderr, "vgpu-ipc: value %u is %u, not %u\n", i, values[i], first + i);
			exit(3);
		}
}

static void put(void *memory, unsigned first)
{
	std::vector<unsigned> values(COUNT);

	for (unsigned i = 0; i < COUNT; i++)
		values[i] = first + i;
	HIP(hipMemcpy(memory, values.data(), COUNT * sizeof(unsigned), hipMemcpyHostToDevice));
}

static void say(int fd, const void *data, size_t size)
{
	if (write(fd, data, size) != (ssize_t)size)
		exit(1);
}

static void hear(int fd, void *data, size_t size)
{
	if (read(fd, data, size) != (ssize_t)size)
		exit(1);
}

static int second(int from, int to)
{
	hipIpcMemHandle_t handle, wrong;
	void *memory;
	char byte = 0;

	hear(from, &handle, sizeof(handle));
	wrong = handle;
	wrong.reserved[0] ^= 1; // of the key, which comes first
	if (hipIpcOpenMemHandle(&memory, wrong, hipIpcMemLazyEnablePeerAccess) == hipSuccess) {
		fprintf(stderr, "vgpu-ipc: a key that nobody gave opens something\n");
		return 3;
	}
	(void)hipGetLastError();
	HIP(hipIpcOpenMemHandle(&memory, handle, hipIpcMemLazyEnablePeerAccess));
	check(memory, 1000);
	put(memory, 5000);
	say(to, &byte, 1);
	hear(from, &byte, 1); // the first has freed it
	check(memory, 7000);
	HIP(hipIpcCloseMemHandle(memory));
	return 0;
}

int main()
{
	int there[2], back[2], status;
	hipIpcMemHandle_t handle;
	void *memory;
	char byte = 0;

	if (pipe(there) || pipe(back))
		return 1;
	if (!fork())
		_exit(second(there[0], back[1]));
	close(back[1]);
	HIP(hipMalloc(&memory, COUNT * sizeof(unsigned)));
	put(memory, 1000);
	HIP(hipIpcGetMemHandle(&handle, memory));
	say(there[1], &handle, sizeof(handle));
	hear(back[0], &byte, 1);
	check(memory, 5000);
	put(memory, 7000);
	HIP(hipFree(memory));
	say(there[1], &byte, 1);
	if (wait(&status) < 0 || status)
		return 1;
	puts("exact");
	return 0;
}
