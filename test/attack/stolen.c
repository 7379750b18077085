/* SPDX-License-Identifier: MIT */
/* Reads /proc/stat, for attack.c. */
#include <stdio.h>
#include <unistd.h>
#include "test/attack/stolen.h"

#define CPUS_MAX 1024u

/* Time that the host of a virtual machine took from its processors, by /proc/stat; the most of any of them since it was
 * asked last. A tick is 10 ms. */
uint64_t attack_stolen_ns(void)
{
	static unsigned long long before[CPUS_MAX];
	unsigned long long ticks, most = 0;
	char line[256];
	unsigned int cpu;
	FILE *file = fopen("/proc/stat", "re");

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "cpu%u %*u %*u %*u %*u %*u %*u %*u %llu", &cpu, &ticks) != 2 || cpu >= CPUS_MAX)
			continue;
		if (ticks - before[cpu] > most)
			most = ticks - before[cpu];
		before[cpu] = ticks;
	}
	if (file)
		fclose(file);
	return most * (1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK));
}
