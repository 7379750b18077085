// SPDX-License-Identifier: MIT
// Launches per second of a HIP program: an empty kernel, in bursts that fit the queue; the time is the launching thread's. Prints ns
// per launch, the tenth percentile of the bursts (the machine has other work). bench/agent-launches runs it with and without the agent.
#include <hip/hip_runtime.h>
#include <algorithm>
#include <chrono>
#include <cstdio>

constexpr int burst = 500, bursts = 201;

__global__ void nothing() {}

int main()
{
	static double times[bursts];
	hipStream_t stream;

	if (hipStreamCreate(&stream) != hipSuccess)
		return 1;
	for (int i = -3; i < bursts; i++) {
		auto start = std::chrono::steady_clock::now();

		for (int j = 0; j < burst; j++)
			nothing<<<1, 64, 0, stream>>>();
		double ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / burst;
		if (hipStreamSynchronize(stream) != hipSuccess)
			return 1;
		if (i >= 0)
			times[i] = ns;
	}
	std::sort(times, times + bursts);
	std::printf("%.1f\n", times[bursts / 10]);
	return 0;
}
