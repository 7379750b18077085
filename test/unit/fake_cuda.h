/* SPDX-License-Identifier: MIT */
#ifndef GP_TEST_FAKE_CUDA_H
#define GP_TEST_FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fake_cuda_fail { FAKE_CUDA_NONE, FAKE_CUDA_STREAM, FAKE_CUDA_LAUNCH, FAKE_CUDA_PUSH, FAKE_CUDA_RETAIN };

struct fake_cuda {
	unsigned long long context_id; /* set by the test; 0: no context is current */
	enum fake_cuda_fail fail;      /* set by the test */
	bool held_out;                 /* set by the test: no kernel runs */
	unsigned long long primary_id; /* set by the test: of the primary context; 0: none is in use */
	int devices, actives; /* set by the test: how many there are; of so many is the primary context in use */
	unsigned retained, released_primary, pushed;
	int primary_device; /* the one that was retained last */
	int capture_mode;
	unsigned streams, modules, launches, waits;
	int relaxed;
	unsigned long long words;
	uint64_t limit_ns;
	uint32_t number, released;
};
extern struct fake_cuda fake_cuda;

void fake_cuda_ran(uint32_t number); /* kernels up to this one have ended */

int cuCtxGetCurrent(void **context);
int cuCtxGetId(void *context, unsigned long long *id);
int cuCtxPushCurrent_v2(void *context);
int cuCtxPopCurrent_v2(void **context);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuThreadExchangeStreamCaptureMode(int *mode);
int cuStreamCreate(void **stream, unsigned flags);
int cuModuleLoadData(void **module, const void *image);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuMemHostAlloc(void **pointer, size_t size, unsigned flags);
int cuMemHostGetDevicePointer_v2(unsigned long long *device, void *host, unsigned flags);
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
		   unsigned shared, void *stream, void **params, void **extra);
int cuStreamWaitValue32_v2(void *stream, unsigned long long address, uint32_t value, unsigned flags);

#endif
