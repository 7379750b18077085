/* SPDX-License-Identifier: MIT */
/* A libcuda.so.1 that only remembers: what hints ask of CUDA, for test/unit/libgpreempt_cuda.c. */
#include "test/unit/fake_cuda.h"
#include <string.h>

struct fake_cuda fake_cuda;
static uint32_t fake_words[16];

void fake_cuda_ran(uint32_t number)
{
	fake_words[1] = number;
}

int cuCtxGetCurrent(void **context)
{
	*context = (void *)(uintptr_t)(fake_cuda.context_id ? 0x1000u : 0u);
	return 0;
}

int cuCtxGetId(void *context, unsigned long long *id)
{
	*id = fake_cuda.context_id;
	return context ? 0 : 201;
}

int cuCtxPushCurrent_v2(void *context)
{
	fake_cuda.pushed++;
	fake_cuda.context_id = fake_cuda.primary_id;
	return context != (void *)(uintptr_t)0x2000u || fake_cuda.fail == FAKE_CUDA_PUSH ? 201 : 0;
}

int cuCtxPopCurrent_v2(void **context)
{
	*context = (void *)(uintptr_t)0x2000u;
	fake_cuda.context_id = 0;
	return 0;
}

int cuDeviceGetCount(int *count)
{
	*count = fake_cuda.devices;
	return fake_cuda.devices ? 0 : 3; /* not initialised */
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal + 10;
	return ordinal < fake_cuda.devices ? 0 : 101;
}

/* In use on the last ones. */
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
	*flags = 0;
	*active = device - 10 >= fake_cuda.devices - fake_cuda.actives;
	return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	fake_cuda.retained++;
	fake_cuda.primary_device = device;
	*context = (void *)(uintptr_t)0x2000u;
	return fake_cuda.fail == FAKE_CUDA_RETAIN ? 2 : 0;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	fake_cuda.released_primary += device == fake_cuda.primary_device;
	return 0;
}

int cuThreadExchangeStreamCaptureMode(int *mode)
{
	int before = fake_cuda.capture_mode;

	fake_cuda.capture_mode = *mode;
	*mode = before;
	return 0;
}

int cuStreamCreate(void **stream, unsigned flags)
{
	*stream = &fake_cuda;
	fake_cuda.streams += flags == 1u;
	return fake_cuda.fail == FAKE_CUDA_STREAM ? 2 : 0;
}

int cuModuleLoadData(void **module, const void *image)
{
	*module = &fake_cuda;
	fake_cuda.modules++;
	fake_cuda.relaxed = fake_cuda.capture_mode == 2;
	return !strstr(image, "gp_wait");
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
	*function = module;
	return strcmp(name, "gp_wait") != 0;
}

int cuMemHostAlloc(void **pointer, size_t size, unsigned flags)
{
	*pointer = fake_words;
	return size > sizeof(fake_words) || flags != 3u;
}

int cuMemHostGetDevicePointer_v2(unsigned long long *device, void *host, unsigned flags)
{
	(void)flags;
	*device = 0x7000;
	return host != fake_words;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
		   unsigned shared, void *stream, void **params, void **extra)
{
	(void)function, (void)stream, (void)extra;
	fake_cuda.launches += gx * gy * gz * bx * by * bz == 1u && shared == 0;
	fake_cuda.words = *(unsigned long long *)params[0];
	fake_cuda.limit_ns = *(uint64_t *)params[1];
	fake_cuda.number = *(uint32_t *)params[2];
	fake_cuda.released = fake_words[0];
	if (!fake_cuda.held_out)
		fake_words[1] = fake_cuda.number;
	return fake_cuda.fail == FAKE_CUDA_LAUNCH ? 700 : 0;
}

int cuStreamWaitValue32_v2(void *stream, unsigned long long address, uint32_t value, unsigned flags)
{
	(void)stream;
	fake_cuda.waits += address == 0x7004 && flags == 0 && value == fake_cuda.number;
	return 0;
}
