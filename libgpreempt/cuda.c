/* SPDX-License-Identifier: MIT */
/*
 * A hint on CUDA. An NVIDIA GPU switches contexts by itself as soon as the more urgent one has work, and needs about
 * 235 us for that. So the library gives the context work ahead of time, on a stream of its own: a kernel of one thread
 * that waits, and behind it a wait for the word that this kernel writes at its end. Without something pending behind it
 * the GPU takes the context out again once the kernel is started, and the real work pays for the switch after all
 * (measured: docs/measurements/h200-2026-11-15.md, third run).
 *
 * The kernel limits its own time, and the wait behind it depends on nothing but the kernel: if the announced work never
 * comes, the program need not cancel anything.
 *
 * Only threads of the application call CUDA, and only inside gpreempt_hint(). If another thread destroys the context
 * meanwhile, that is the application's mistake, as with any call of CUDA.
 *
 * In a server, the thread that receives a request often has no context current: its worker thread has one. If the
 * process has exactly one primary context in use (the kind that the CUDA runtime and everything built on it create),
 * the hint is for that one.
 */
#include "libgpreempt/cuda.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* With a hint further ahead than this the batch work loses more than the switch costs: chosen. */
#define CUDA_AHEAD_MAX_NS 1000000u
/* The work may come so much later than announced. The kernel counts from its own start, about 235 us after the
 * announcement; the grace keeps it running long enough even if it started sooner. Chosen. */
#define CUDA_GRACE_NS 50000u
/* CUDA cannot tell whether a context still exists, and the library must not touch the contents of one that does not. So
 * it reuses an entry only when its context cannot exist any more: no GPU has room for so many contexts at once, so the
 * one used longest ago has ended. */
#define CUDA_CONTEXT_MAX 1024u
/* Kernels that have not ended, at most: one that waits, and the one that replaces it. There would be more only while
 * the context is held out; they would fill its channel, and then a launch would block the application's thread. */
#define CUDA_OPEN_MAX   2u
#define CUDA_DEVICE_MAX 64

/* CUDA's driver interface, as far as the library uses it: names and values from its documentation. */
typedef int cuda_result; /* 0: success */
#define CUDA_STREAM_NON_BLOCKING 1u
#define CUDA_HOST_PORTABLE       1u
#define CUDA_HOST_DEVICEMAP      2u
#define CUDA_WAIT_GEQ            0u
#define CUDA_CAPTURE_RELAXED     2

static struct {
	cuda_result (*context_get)(void **context);
	cuda_result (*context_id)(void *context, unsigned long long *id);
	cuda_result (*context_push)(void *context);
	cuda_result (*context_pop)(void **context);
	cuda_result (*device_count)(int *count);
	cuda_result (*device_get)(int *device, int ordinal);
	cuda_result (*primary_state)(int device, unsigned *flags, int *active);
	cuda_result (*primary_retain)(void **context, int device);
	cuda_result (*primary_release)(int device);
	cuda_result (*capture_mode)(int *mode);
	cuda_result (*stream_create)(void **stream, unsigned flags);
	cuda_result (*module_load)(void **module, const void *image);
	cuda_result (*module_function)(void **function, void *module, const char *name);
	cuda_result (*host_alloc)(void **pointer, size_t size, unsigned flags);
	cuda_result (*host_pointer)(unsigned long long *device, void *host, unsigned flags);
	cuda_result (*launch)(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
			      void *stream, void **params, void **extra);
	cuda_result (*wait_value)(void *stream, unsigned long long address, uint32_t value, unsigned flags);
} cuda;

/* words[0]: kernels up to this number may end; words[1]: kernels up to this number have ended. The driver compiles it
 * for the GPU there is. */
static const char cuda_kernel[] =
	".version 6.0\n.target sm_50\n.address_size 64\n"
	".visible .entry gp_wait(.param .u64 p_words, .param .u64 p_limit, .param .u32 p_number)\n"
	"{\n"
	".reg .u64 %words, %limit, %start, %now;\n"
	".reg .u32 %number, %released;\n"
	".reg .pred %p;\n"
	"ld.param.u64 %words, [p_words];\n"
	"ld.param.u64 %limit, [p_limit];\n"
	"ld.param.u32 %number, [p_number];\n"
	"mov.u64 %start, %globaltimer;\n"
	"again:\n"
	"ld.volatile.global.u32 %released, [%words];\n"
	"sub.s32 %released, %released, %number;\n"
	"setp.ge.s32 %p, %released, 0;\n"
	"@%p bra out;\n"
	"mov.u64 %now, %globaltimer;\n"
	"sub.u64 %now, %now, %start;\n"
	"setp.lt.u64 %p, %now, %limit;\n"
	"@%p bra again;\n"
	"out:\n"
	"st.volatile.global.u32 [%words+4], %number;\n"
	"ret;\n"
	"}\n";

struct cuda_context {
	unsigned long long id; /* CUDA never reuses it; 0: none */
	uint64_t used;         /* number of the last hint that used it */
	bool usable;
	void *stream, *function;
	uint32_t *words;
	unsigned long long words_device;
	uint32_t number;
};
static struct cuda_context cuda_contexts[CUDA_CONTEXT_MAX];
static uint32_t cuda_context_count;
static uint64_t cuda_hints;
static pthread_mutex_t cuda_lock = PTHREAD_MUTEX_INITIALIZER;

static bool cuda_find(void)
{
	static const struct {
		const char *name;
		void *into;
	} functions[] = {
		{ "cuCtxGetCurrent", &cuda.context_get },
		{ "cuCtxGetId", &cuda.context_id },
		{ "cuCtxPushCurrent_v2", &cuda.context_push },
		{ "cuCtxPopCurrent_v2", &cuda.context_pop },
		{ "cuDeviceGetCount", &cuda.device_count },
		{ "cuDeviceGet", &cuda.device_get },
		{ "cuDevicePrimaryCtxGetState", &cuda.primary_state },
		{ "cuDevicePrimaryCtxRetain", &cuda.primary_retain },
		{ "cuDevicePrimaryCtxRelease_v2", &cuda.primary_release },
		{ "cuThreadExchangeStreamCaptureMode", &cuda.capture_mode },
		{ "cuStreamCreate", &cuda.stream_create },
		{ "cuModuleLoadData", &cuda.module_load },
		{ "cuModuleGetFunction", &cuda.module_function },
		{ "cuMemHostAlloc", &cuda.host_alloc },
		{ "cuMemHostGetDevicePointer_v2", &cuda.host_pointer },
		{ "cuLaunchKernel", &cuda.launch },
		{ "cuStreamWaitValue32_v2", &cuda.wait_value },
	};
	static enum { UNKNOWN, THERE, MISSING } state;
	/* The application has loaded it, or the library does without. */
	void *library = state == UNKNOWN ? dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) : NULL;

	if (!library)
		return state == THERE; /* the application may load it later */
	state = THERE;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *function = dlsym(library, functions[i].name);

		*(void **)functions[i].into = function;
		if (!function)
			/* Before CUDA 12: no call can tell a context from a later one at the same address. */
			state = MISSING;
	}
	return state == THERE;
}

static bool cuda_prepare(struct cuda_context *context)
{
	void *module, *words;

	if (cuda.stream_create(&context->stream, CUDA_STREAM_NON_BLOCKING) || cuda.module_load(&module, cuda_kernel) ||
	    cuda.module_function(&context->function, module, "gp_wait") ||
	    cuda.host_alloc(&words, 64, CUDA_HOST_PORTABLE | CUDA_HOST_DEVICEMAP))
		return false;
	context->words = words;
	context->words[0] = context->words[1] = 0;
	return cuda.host_pointer(&context->words_device, words, 0) == 0;
}

static struct cuda_context *cuda_context_of(unsigned long long id)
{
	struct cuda_context *context = NULL, *oldest = &cuda_contexts[0];

	for (uint32_t i = 0; i < cuda_context_count && !context; i++) {
		if (cuda_contexts[i].id == id)
			context = &cuda_contexts[i];
		else if (cuda_contexts[i].used < oldest->used)
			oldest = &cuda_contexts[i];
	}
	if (!context) {
		/* CUDA has freed the old context's stream, module and memory with the context. */
		context = cuda_context_count < CUDA_CONTEXT_MAX ? &cuda_contexts[cuda_context_count++] : oldest;
		*context = (struct cuda_context){ .id = id };
		context->usable = cuda_prepare(context);
	}
	context->used = ++cuda_hints;
	return context->usable ? context : NULL;
}

static void cuda_launch(struct cuda_context *context, uint64_t in_ns)
{
	uint64_t limit = in_ns + CUDA_GRACE_NS;
	uint32_t number = context->number + 1u;
	void *params[] = { &context->words_device, &limit, &number };

	/* A kernel that still waits for work that did not come ends now. */
	__atomic_store_n(&context->words[0], context->number, __ATOMIC_RELEASE);
	if (context->number - __atomic_load_n(&context->words[1], __ATOMIC_ACQUIRE) >= CUDA_OPEN_MAX)
		return;
	context->usable = cuda.launch(context->function, 1, 1, 1, 1, 1, 1, 0, context->stream, params, NULL) == 0 &&
			  cuda.wait_value(context->stream, context->words_device + 4u, number, CUDA_WAIT_GEQ) == 0;
	context->number = number;
}

/* The device of the only primary context in use; false: there is none, or several. */
static bool cuda_primary_device(int *ret_device)
{
	int count = 0, device, found = 0;

	if (cuda.device_count(&count))
		return false;
	for (int i = 0; i < count && i < CUDA_DEVICE_MAX; i++) {
		unsigned flags;
		int active = 0;

		if (cuda.device_get(&device, i) || cuda.primary_state(device, &flags, &active) || !active)
			continue;
		if (++found == 1)
			*ret_device = device;
	}
	return found == 1;
}

static void cuda_bring_in_current(uint64_t in_ns)
{
	int mode = CUDA_CAPTURE_RELAXED; /* the application may be capturing a graph without this launch */
	struct cuda_context *context;
	unsigned long long id = 0;
	void *current = NULL;

	if (cuda.context_get(&current) || !current || cuda.context_id(current, &id) || !id || cuda.capture_mode(&mode))
		return;
	context = cuda_context_of(id);
	if (context)
		cuda_launch(context, in_ns);
	cuda.capture_mode(&mode);
}

static void cuda_bring_in_primary(uint64_t in_ns)
{
	void *context;
	int device;

	if (!cuda_primary_device(&device) || cuda.primary_retain(&context, device))
		return;
	if (!cuda.context_push(context)) {
		cuda_bring_in_current(in_ns);
		cuda.context_pop(&context);
	}
	cuda.primary_release(device);
}

void gp_cuda_bring_in(uint64_t in_ns)
{
	void *current = NULL;

	/* Another thread holds the lock for a hint of its own, which brings the context in. */
	if (in_ns > CUDA_AHEAD_MAX_NS || pthread_mutex_trylock(&cuda_lock))
		return;
	if (cuda_find() && !cuda.context_get(&current)) {
		if (current)
			cuda_bring_in_current(in_ns);
		else
			cuda_bring_in_primary(in_ns);
	}
	pthread_mutex_unlock(&cuda_lock);
}
