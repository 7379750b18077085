/* SPDX-License-Identifier: MIT */
/*
 * A program that makes and destroys queues as long as it runs: each turn has streams of its own, with a copy, a kernel
 * and a copy in each, and their results are compared. It ends after SIGTERM, or after so many turns, with a reset of
 * the device, which destroys the queues that the runtime kept. Its first thread does the work, or leaves it to another
 * one and ends by itself: at once, or at SIGUSR1. Run by test/e2e/sched as
 * streams --json FILE [--turns N] [--leave now|signal].
 */
#include <csignal>
#include <pthread.h>
#include "demo/program.h"

#define STREAMS 2u
#define COUNT   1024u

static volatile sig_atomic_t stopped;

extern "C" __global__ void turn_around(float *out, const float *in, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = in[n - 1u - i];
}

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
}

/* Returns how many results are wrong. */
static size_t turn(const float *in, unsigned number)
{
	float *from[STREAMS], *to[STREAMS], out[STREAMS][COUNT] = {};
	hipStream_t streams[STREAMS];
	size_t wrong = 0;

	for (unsigned i = 0; i < STREAMS; i++) {
		MUST(hipStreamCreate(&streams[i]));
		MUST(hipMalloc(&from[i], COUNT * sizeof(float)));
		MUST(hipMalloc(&to[i], COUNT * sizeof(float)));
		MUST(hipMemcpyAsync(from[i], in + number % COUNT, COUNT * sizeof(float), hipMemcpyHostToDevice,
				    streams[i]));
		hipLaunchKernelGGL(turn_around, dim3(COUNT / GROUP_SIZE), dim3(GROUP_SIZE), 0, streams[i], to[i],
				   from[i], COUNT);
		MUST(hipGetLastError());
		MUST(hipMemcpyAsync(out[i], to[i], COUNT * sizeof(float), hipMemcpyDeviceToHost, streams[i]));
	}
	for (unsigned i = 0; i < STREAMS; i++) {
		MUST(hipStreamSynchronize(streams[i]));
		for (unsigned k = 0; k < COUNT; k++)
			wrong += out[i][k] != in[number % COUNT + COUNT - 1u - k];
		MUST(hipFree(from[i]));
		MUST(hipFree(to[i]));
		MUST(hipStreamDestroy(streams[i]));
	}
	return wrong;
}

struct options {
	const char *json, *leave;
	unsigned turns;
};

static int work(const struct options *options)
{
	static float in[2u * COUNT];
	unsigned done = 0;
	size_t wrong = 0;
	FILE *file;

	for (unsigned i = 0; i < 2u * COUNT; i++)
		in[i] = (float)i;
	for (; !stopped && (!options->turns || done < options->turns); done++) {
		wrong += turn(in, done);
		if (!done) {
			std::puts("ready");
			std::fflush(stdout);
		}
	}
	MUST(hipDeviceReset());
	file = options->json ? std::fopen(options->json, "w") : nullptr;
	if (!file ||
	    std::fprintf(file, "{\"program\": \"streams\", \"turns\": %u, \"wrong\": %zu}\n", done, wrong) < 0 ||
	    std::fclose(file)) {
		std::perror("streams: --json FILE");
		return 1;
	}
	return wrong ? 3 : 0;
}

static void *worker(void *options)
{
	std::exit(work((const struct options *)options));
}

/* The first thread of a process may end before the others. */
static void leave(struct options *options)
{
	sigset_t usr1;
	pthread_t thread;
	int number;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, nullptr);
	if (pthread_create(&thread, nullptr, worker, options))
		std::abort();
	if (!std::strcmp(options->leave, "signal"))
		sigwait(&usr1, &number);
	pthread_exit(nullptr);
}

int main(int argc, char **argv)
{
	static struct options options;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!std::strcmp(argv[i], "--json"))
			options.json = argv[i + 1];
		else if (!std::strcmp(argv[i], "--turns"))
			options.turns = (unsigned)program_number(argv[i], argv[i + 1]);
		else if (!std::strcmp(argv[i], "--leave"))
			options.leave = argv[i + 1];
	}
	std::signal(SIGTERM, on_signal);
	if (options.leave)
		leave(&options);
	return work(&options);
}
