/* SPDX-License-Identifier: MIT */
/* What the program does as a real one would: contexts that start, threads that work as the hardware lets them,
 * children. */
#include <fcntl.h>
#include <gpreempt/rm.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/nvidia/fake_rm.h"
#include "test/nvidia/rm_client.h"

/* The fake's own state: what the hardware was told. */
static const struct fake_rm_state *hardware(void)
{
	static const struct fake_rm_state *state;
	char path[4200];
	int fd;

	snprintf(path, sizeof(path), "%s/" FAKE_RM_STATE, getenv(FAKE_RM_ENV));
	fd = state ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		state = mmap(NULL, sizeof(*state), PROT_READ, MAP_SHARED, fd, 0);
		close(fd);
	}
	return state == MAP_FAILED ? NULL : state;
}

static bool channel_runs(uint32_t channel)
{
	const struct fake_rm_state *state = hardware();

	for (uint32_t i = 0; state && i < FAKE_RM_OBJECT_MAX; i++)
		if (state->objects[i].used && state->objects[i].client == client && state->objects[i].handle == channel)
			return state->objects[i].scheduled &&
			       !__atomic_load_n(&state->objects[i].disabled, __ATOMIC_ACQUIRE);
	return false;
}

/* A context as CUDA sets it up: small pieces of work on a channel, one after the other, calls on the driver in between.
 * Each runs when the hardware lets it. */
int context_start(uint32_t pieces)
{
	int number = context_open(0);
	struct context *context = &contexts[number < 0 ? 0 : number];
	uint64_t slice = 0;

	for (uint32_t i = 0; number >= 0 && i < pieces; i++) {
		fake_gpu_submit(&context->gpu, 1, i % 2u ? FAKE_GPU_KERNEL : FAKE_GPU_COMMANDS);
		while (!channel_runs(context->channels[1]))
			usleep(1000);
		fake_gpu_take(&context->gpu, 1);
		if (i % 2u)
			fake_gpu_finish(&context->gpu, 1, i);
		usleep(2000);
		rm_control(context->group, GP_RM_SLICE_GET, &slice, sizeof(slice));
	}
	return number;
}

static void *start_run(void *data)
{
	return (void *)(intptr_t)context_start(*(const uint32_t *)data);
}

/* Contexts of one process that start at the same time, each in a thread of its own. How many have started. */
long context_start_several(uint32_t count, uint32_t pieces)
{
	pthread_t threads[CONTEXTS];
	long started = 0;
	void *number;

	if (ctl < 0 && !client_open())
		return -1;
	for (uint32_t i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, start_run, &pieces))
			return -1;
	for (uint32_t i = 0; i < count; i++) {
		pthread_join(threads[i], &number);
		started += (intptr_t)number >= 0;
	}
	return started;
}

/* A thread for each context that always has a kernel to run, one after the other, as the hardware lets it. */
static struct busy {
	pthread_t thread;
	bool halting;
	uint32_t first, done; /* the number of its first kernel; how many have run */
	uint32_t looks, most; /* of 1 ms that one has waited for its channel; the longest wait */
} busy_ones[CONTEXTS];

static void *busy_run(void *data)
{
	struct context *context = data;
	struct busy *busy = &busy_ones[context - contexts];

	while (!__atomic_load_n(&busy->halting, __ATOMIC_ACQUIRE)) {
		fake_gpu_submit(&context->gpu, 1, FAKE_GPU_KERNEL);
		for (busy->looks = 0; !channel_runs(context->channels[1]); usleep(1000))
			if (++busy->looks > __atomic_load_n(&busy->most, __ATOMIC_RELAXED))
				__atomic_store_n(&busy->most, busy->looks, __ATOMIC_RELAXED);
		fake_gpu_take(&context->gpu, 1);
		usleep(500);
		fake_gpu_finish(&context->gpu, 1, busy->first + busy->done);
		__atomic_fetch_add(&busy->done, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Whether all that was put has run, once. */
static bool busy_halt(const struct context *context)
{
	struct busy *busy = &busy_ones[context - contexts];

	__atomic_store_n(&busy->halting, true, __ATOMIC_RELEASE);
	pthread_join(busy->thread, NULL);
	return context->gpu.put[1] == busy->first + busy->done && context->gpu.taken[1] == context->gpu.put[1];
}

/* What a child does, which has no context: ends, makes one of its own, becomes another program, or outlives its parent
 * with the parent's files. */
enum fork_way { FORK_ENDS, FORK_MAKES_ONE, FORK_EXECUTES, FORK_OUTLIVES };

int fork_child(uint32_t way)
{
	pid_t parent = getpid(), child = fork();
	int status = -1;

	if (child == 0) {
		if (way == FORK_MAKES_ONE) {
			ctl = -1;
			context_count = 0;
			memset(contexts, 0, sizeof(contexts));
			_exit(context_open(0) < 0);
		}
		if (way == FORK_EXECUTES)
			_exit(execl("/bin/true", "true", NULL) < 0);
		while (way == FORK_OUTLIVES && getppid() == parent)
			usleep(10000);
		_exit(0);
	}
	if (way == FORK_OUTLIVES)
		return child < 0;
	waitpid(child, &status, 0);
	return status;
}

bool busy_request(const struct request *request)
{
	struct context *context = &contexts[request->a % CONTEXTS];
	struct busy *busy = &busy_ones[request->a % CONTEXTS];

	if (request_is(request, "busy")) {
		busy->first = context->gpu.put[1];
		answer(pthread_create(&busy->thread, NULL, busy_run, context));
	} else if (request_is(request, "done")) {
		answer(__atomic_load_n(&busy->done, __ATOMIC_ACQUIRE));
	} else if (request_is(request, "waited")) { /* and from now on anew */
		answer(__atomic_exchange_n(&busy->most, 0, __ATOMIC_RELAXED));
	} else if (request_is(request, "halt")) {
		answer(busy_halt(context));
	} else {
		return false;
	}
	return true;
}
