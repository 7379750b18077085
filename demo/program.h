/* SPDX-License-Identifier: MIT */
/* What the two demonstration programs share: options, time, and HIP calls that must succeed. Nothing in it knows of
 * gpreempt. */
#ifndef GP_DEMO_PROGRAM_H
#define GP_DEMO_PROGRAM_H

#include <hip/hip_runtime.h>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#define MUST(call)                                                                                                   \
	do {                                                                                                         \
		hipError_t error_ = (call);                                                                          \
		if (error_ != hipSuccess) {                                                                          \
			std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, hipGetErrorName(error_)); \
			std::exit(1);                                                                                \
		}                                                                                                    \
	} while (0)

#define GROUP_SIZE 256u  /* work items of a workgroup */
#define PERIOD     1009u /* element i has the value of element i % PERIOD, so that the host's check is cheap */

static inline uint64_t program_now_ns()
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void program_sleep_until_ns(uint64_t when_ns)
{
	struct timespec when = { (time_t)(when_ns / 1000000000u), (long)(when_ns % 1000000000u) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, nullptr) == EINTR)
		;
}

/*
 * Waits for an event without keeping a core busy. hipEventSynchronize() of ROCm 5.2 does keep one busy, whatever the
 * flags say: the runtime's own thread waits for the same signal, and of several waiters only the first one sleeps.
 * Beside several such programs on a few cores that would be measured, not the GPU.
 */
static inline void program_wait(hipEvent_t event, long every_ns)
{
	const struct timespec pause = { 0, every_ns };
	hipError_t state;

	while ((state = hipEventQuery(event)) == hipErrorNotReady)
		nanosleep(&pause, nullptr);
	MUST(state);
}

/* How many times slower than the clock the virtual GPU runs; 1 on a real one. `vgpu run` says so. What programs print
 * is device time; what they write to files is by the clock. */
static inline double program_dilation()
{
	const char *text = std::getenv("VGPU_DILATION");
	double value = text ? std::strtod(text, nullptr) : 1;

	return value >= 1 && value <= 1e6 ? value : 1;
}

/* A number after an option, or the end. */
static inline double program_number(const char *option, const char *text)
{
	char *end;
	double value = text ? std::strtod(text, &end) : 0;

	if (!text || !*text || *end || !(value >= 0) || value > 1e12) {
		std::fprintf(stderr, "%s: a number is wanted, not '%s'\n", option, text ? text : "");
		std::exit(2);
	}
	return value;
}

/* How many workgroups of a kernel the device holds at once. */
static inline unsigned program_full(const void *kernel)
{
	hipDeviceProp_t properties;
	int per_unit = 0;

	MUST(hipGetDeviceProperties(&properties, 0));
	MUST(hipOccupancyMaxActiveBlocksPerMultiprocessor(&per_unit, kernel, (int)GROUP_SIZE, 0));
	if (per_unit < 1) {
		std::fprintf(stderr, "the device holds no workgroup of this kernel\n");
		std::exit(1);
	}
	return (unsigned)properties.multiProcessorCount * (unsigned)per_unit;
}

/* How many elements of a result differ, bit for bit, from what the host computed for one period of it. */
static inline size_t program_wrong(const float *result, const float *wanted, size_t count)
{
	size_t wrong = 0;

	for (size_t at = 0; at < count; at += PERIOD) {
		size_t length = count - at < PERIOD ? count - at : PERIOD;

		if (std::memcmp(result + at, wanted, length * sizeof(float)))
			for (size_t i = 0; i < length; i++)
				wrong += std::memcmp(&result[at + i], &wanted[i], sizeof(float)) != 0;
	}
	return wrong;
}

#endif
