/* SPDX-License-Identifier: MIT */
/* Prints how many thousand ticks of this machine's time stamp counter a second has; 0 where there is none. Without KVM
 * the guest's counter is this one, and a kernel without ACPI has nothing to measure it with. */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#ifdef __x86_64__
#include <x86intrin.h>

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int main(void)
{
	struct timespec pause = { .tv_nsec = 200000000 };
	uint64_t start_ns = now_ns(), start = __rdtsc();

	nanosleep(&pause, NULL);
	printf("%llu\n", (unsigned long long)((__rdtsc() - start) * 1000000u / (now_ns() - start_ns)));
	return 0;
}
#else
int main(void)
{
	printf("0\n");
	return 0;
}
#endif
