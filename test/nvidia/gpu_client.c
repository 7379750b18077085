/* SPDX-License-Identifier: MIT */
/* A CUDA program that does what it is told, a line at a time, and answers each with a line. It needs no compiler for
 * the GPU: the driver makes its kernel from text. Without a GPU it answers "none". */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Counts in steps_done[0], one step about every microsecond (a thousand cycles or so), and adds to sums[thread]. */
static const char kernel_text[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry count_steps(.param .u64 p_done, .param .u64 p_sums, .param .u32 p_steps)\n{\n"
	".reg .u64 %a, %s, %t0, %t1, %d, %o;\n.reg .u32 %n, %i, %x, %y, %g;\n.reg .pred %p, %q, %z;\n"
	"ld.param.u64 %a, [p_done];\nld.param.u64 %s, [p_sums];\nld.param.u32 %n, [p_steps];\n"
	"mov.u32 %x, %tid.x;\nmov.u32 %y, %ctaid.x;\nmov.u32 %g, %ntid.x;\nmad.lo.u32 %x, %y, %g, %x;\n"
	"setp.eq.u32 %z, %x, 0;\nmul.wide.u32 %o, %x, 4;\nadd.u64 %s, %s, %o;\nmov.u32 %i, 0;\n"
	"loop:\nsetp.ge.u32 %p, %i, %n;\n@%p bra done;\nmov.u64 %t0, %clock64;\n"
	"spin:\nmov.u64 %t1, %clock64;\nsub.u64 %d, %t1, %t0;\nsetp.lt.u64 %q, %d, 1700;\n@%q bra spin;\n"
	"@!%z bra next;\nred.relaxed.sys.global.add.u32 [%a], 1;\n"
	"next:\nred.global.add.u32 [%s], 1;\nadd.u32 %i, %i, 1;\nbra loop;\n"
	"done:\nret;\n}\n";

static struct {
	int (*init)(unsigned);
	int (*device)(int *, int);
	int (*context)(void **, unsigned, int);
	int (*load)(void **, const void *);
	int (*function)(void **, void *, const char *);
	int (*host)(void **, size_t, unsigned);
	int (*alloc)(uint64_t *, size_t);
	int (*stream)(void **, unsigned);
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
		      void **);
	int (*query)(void *);
	int (*synchronize)(void);
	int (*set)(uint64_t, unsigned, size_t, void *);
	int (*to_host)(void *, uint64_t, size_t, void *);
	int (*to_device)(uint64_t, const void *, size_t, void *);
	int (*capture)(void *, unsigned);
	int (*capture_end)(void *, void **);
	int (*instantiate)(void **, void *, uint64_t);
	int (*graph)(void *, void *);
	int (*destroy)(void *);
} cu;

#define STREAMS 4u
#define THREADS 64u

static void *streams[STREAMS], *kernel, *graph_exec, *context;
static uint32_t *steps_done;
static uint64_t sums, other, steps_done_at;
static uint32_t expected;

static bool find(void *library, void *ret_function, const char *name)
{
	*(void **)ret_function = dlsym(library, name);
	return *(void **)ret_function != NULL;
}

static bool load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	return library && find(library, &cu.init, "cuInit") && find(library, &cu.device, "cuDeviceGet") &&
	       find(library, &cu.context, "cuCtxCreate_v2") && find(library, &cu.load, "cuModuleLoadData") &&
	       find(library, &cu.function, "cuModuleGetFunction") && find(library, &cu.host, "cuMemHostAlloc") &&
	       find(library, &cu.alloc, "cuMemAlloc_v2") && find(library, &cu.stream, "cuStreamCreate") &&
	       find(library, &cu.launch, "cuLaunchKernel") && find(library, &cu.query, "cuStreamQuery") &&
	       find(library, &cu.synchronize, "cuCtxSynchronize") && find(library, &cu.set, "cuMemsetD32Async") &&
	       find(library, &cu.to_host, "cuMemcpyDtoHAsync_v2") &&
	       find(library, &cu.to_device, "cuMemcpyHtoDAsync_v2") &&
	       find(library, &cu.capture, "cuStreamBeginCapture_v2") &&
	       find(library, &cu.capture_end, "cuStreamEndCapture") &&
	       find(library, &cu.instantiate, "cuGraphInstantiateWithFlags") &&
	       find(library, &cu.graph, "cuGraphLaunch") && find(library, &cu.destroy, "cuCtxDestroy_v2");
}

static int launch(uint32_t stream, uint32_t steps, uint32_t blocks)
{
	void *args[] = { &steps_done_at, &sums, &steps };

	expected += steps;
	return cu.launch(kernel, blocks, 1, 1, THREADS, 1, 1, 0, streams[stream % STREAMS], args, NULL);
}

static int launch_twice(uint32_t stream, uint32_t steps)
{
	int r = launch(stream, steps, 1);

	return r ? r : launch(stream, steps, 1);
}

/* 0, or minus the place where CUDA refused. */
static int context_open(void)
{
	void *module, *made;
	int device;

	if (cu.device(&device, 0) || cu.context(&context, 0, device))
		return -1;
	if (cu.load(&module, kernel_text) || cu.function(&kernel, module, "count_steps"))
		return -2;
	if (cu.host((void **)&steps_done, 4096, 0) || cu.alloc(&sums, 4u << 20) || cu.alloc(&other, 4u << 20) ||
	    cu.set(sums, 0, 1u << 20, NULL))
		return -3;
	steps_done_at = (uintptr_t)steps_done;
	for (uint32_t i = 0; i < STREAMS; i++)
		if (cu.stream(&streams[i], 1))
			return -4;
	if (cu.capture(streams[0], 1) || launch_twice(0, 50) || cu.capture_end(streams[0], &made) ||
	    cu.instantiate(&graph_exec, made, 0))
		return -5;
	expected = 0;
	return cu.synchronize() ? -6 : 0;
}

/* Work of many kinds. */
static int work(uint32_t kind, uint32_t stream, uint32_t steps)
{
	static uint32_t pageable[65536];
	void *s = streams[stream % STREAMS];

	switch (kind) {
	case 0: return launch(stream, steps, 1);
	case 1: return launch(stream, steps, 132);
	case 2: return launch_twice(stream, steps) | launch(stream + 1u, steps, 1);
	case 3: return cu.set(other, 7, 1u << 20, s);
	case 4: return launch(stream, steps, 1) | cu.to_host(steps_done + 16, other, 256, s);
	case 5: return cu.to_device(other, pageable, sizeof(pageable), s) | launch(stream, steps, 1);
	case 6: expected += 100; return cu.graph(graph_exec, s);
	default: {
		int r = 0;

		for (uint32_t i = 0; i < 40u; i++)
			r |= launch(stream + i, steps / 8u, 1);
		return r;
	}
	}
}

static int busy(void)
{
	for (uint32_t i = 0; i < STREAMS; i++) {
		int r = cu.query(streams[i]);

		if (r == 600)
			return 1;
		if (r)
			return -r;
	}
	return 0;
}

int main(void)
{
	char line[256], verb[32];
	bool good = load() && cu.init(0) == 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof(line), stdin)) {
		unsigned a = 0, b = 0, c = 0;
		long r = -1;

		if (sscanf(line, "%31s %u %u %u", verb, &a, &b, &c) < 1)
			continue;
		if (!good) {
			puts("none");
			continue;
		}
		if (!strcmp(verb, "context"))
			r = context_open();
		else if (!strcmp(verb, "work"))
			r = work(a, b, c);
		else if (!strcmp(verb, "busy"))
			r = busy();
		else if (!strcmp(verb, "steps_done"))
			r = (long)__atomic_load_n(steps_done, __ATOMIC_ACQUIRE);
		else if (!strcmp(verb, "wait"))
			r = cu.synchronize();
		else if (!strcmp(verb, "lost")) /* steps that were not made */
			r = (long)expected - (long)__atomic_load_n(steps_done, __ATOMIC_ACQUIRE);
		else if (!strcmp(verb, "close"))
			r = cu.destroy(context);
		printf("ok %ld\n", r);
	}
	return 0;
}
