// SPDX-License-Identifier: MIT
// Launches of a HIP program: an empty kernel, in bursts that fit the queue (250, or as many as are asked for); the time
// is the launching thread's. Run by bench/agent-launches.
#include <hip/hip_runtime.h>
#include "bench/agent_rounds.h"

static unsigned launches = 250;

__global__ void nothing() {}

static hipStream_t stream;

static void burst()
{
	for (unsigned i = 0; i < launches; i++)
		hipLaunchKernelGGL(nothing, dim3(1), dim3(64), 0, stream);
}

static void drain()
{
	if (hipStreamSynchronize(stream) != hipSuccess)
		std::exit(1);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		launches = (unsigned)std::atoi(argv[1]);
	if (hipStreamCreate(&stream) != hipSuccess)
		return 1;
	burst();
	drain();
	rounds_serve(launches, burst, drain);
	return 0;
}
