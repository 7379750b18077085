/* SPDX-License-Identifier: MIT */
/* A program that makes the calls libcuda makes, on a fake resource manager: a line of commands in, a line of answers
 * out. It knows nothing of the agent that is loaded into it. */
#include <errno.h>
#include <fcntl.h>
#include <gpreempt/rm.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "test/nvidia/fake_rm.h"
#include "test/nvidia/rm_client.h"

int ctl = -1;
uint32_t client;
struct context contexts[CONTEXTS];
uint32_t context_count;
static bool use_xfer, use_rights, use_dup, use_early;

static int rm_ioctl(uint32_t number, void *args, uint32_t size)
{
	struct gp_rm_xfer xfer = { number, size, (uintptr_t)args };

	return use_xfer ? ioctl(ctl, GP_RM_REQUEST(GP_RM_XFER) | sizeof(xfer) << 16, &xfer) :
			  ioctl(ctl, GP_RM_REQUEST(number) | size << 16, args);
}

/* The new handle; 0: refused. */
static uint32_t rm_alloc(uint32_t parent, uint32_t class_id, const void *params, uint32_t params_size)
{
	struct gp_rm_alloc_rights rights = { .client = client,
					     .parent = parent,
					     .class_id = class_id,
					     .params = (uintptr_t)params,
					     .params_size = params_size,
					     .status = 0x77 };
	struct gp_rm_alloc plain = { client, parent, 0, class_id, (uintptr_t)params, params_size, 0x77 };

	if (use_rights)
		return rm_ioctl(GP_RM_ALLOC, &rights, sizeof(rights)) == 0 && !rights.status ? rights.object : 0;
	return rm_ioctl(GP_RM_ALLOC, &plain, sizeof(plain)) == 0 && !plain.status ? plain.object : 0;
}

static uint32_t rm_free(uint32_t parent, uint32_t object)
{
	struct gp_rm_free args = { client, parent, object, 0x77 };

	return rm_ioctl(GP_RM_FREE, &args, sizeof(args)) < 0 ? 0x7777u : args.status;
}

/* A second name of an object, and the first one goes; 0: refused. */
static uint32_t rm_rename(uint32_t old_parent, uint32_t old, uint32_t parent)
{
	static uint32_t names = 0xd0d00000u;
	struct gp_rm_dup args = { client, parent, ++names, client, old, 0, 0x77 };

	if (rm_ioctl(GP_RM_DUP, &args, sizeof(args)) < 0 || args.status)
		return 0;
	return !old_parent || rm_free(old_parent, old) == GP_RM_OK ? args.object : 0;
}

uint32_t rm_control(uint32_t object, uint32_t command, void *params, uint32_t size)
{
	struct gp_rm_control args = { client, object, command, 0, (uintptr_t)params, size, 0x77 };

	return rm_ioctl(GP_RM_CONTROL, &args, sizeof(args)) < 0 ? 0x7777u : args.status;
}

/* Memory of another process's client, as CUDA's IPC opens it. */
static long memory_open(const struct context *context, uint32_t other, uint32_t object)
{
	static uint32_t names = 0xe0e00000u;
	struct gp_rm_dup args = { client, context->device, ++names, other, object, 0, 0x77 };

	return rm_ioctl(GP_RM_DUP, &args, sizeof(args)) < 0 || args.status ? -1 : 0;
}

/* A file that others may have, to read and write, given to the GPU. */
static long memory_give(const struct context *context, const char *path, int flags)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags, fd, 0);
	struct gp_rm_memory args = { .client = client,
				     .parent = context->device,
				     .class_id = GP_RM_CLASS_OWN_MEMORY,
				     .address = (uintptr_t)at,
				     .limit = 4095,
				     .status = 0x77,
				     .fd = -1 };

	close(fd);
	return at == MAP_FAILED || rm_ioctl(GP_RM_MEMORY, &args, sizeof(args)) < 0 || args.status ? -1 : 0;
}

/* Objects that travel in an open file; pid: the other process, whose descriptor is number. 0: to another process. */
static long memory_carry(pid_t pid, int number)
{
	struct {
		int32_t fd;
		uint8_t rest[FAKE_RM_EXPORT_SIZE - 4];
	} params = { 0 };
	char path[4200];
	int process = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

	snprintf(path, sizeof(path), "%s/nvidiactl", getenv(FAKE_RM_ENV));
	params.fd = pid ? (int)syscall(SYS_pidfd_getfd, process, number, 0) : open(path, O_RDWR | O_CLOEXEC);
	if (params.fd < 0 || rm_control(client, pid ? GP_RM_IMPORT_FROM_FD : GP_RM_EXPORT_TO_FD, &params,
					pid ? FAKE_RM_IMPORT_SIZE : FAKE_RM_EXPORT_SIZE))
		return -1;
	return params.fd;
}

bool client_open(void)
{
	char path[4200];

	snprintf(path, sizeof(path), "%s/nvidiactl", getenv(FAKE_RM_ENV));
	ctl = open(path, O_RDWR | O_CLOEXEC);
	client = 0;
	client = rm_alloc(0, GP_RM_CLASS_CLIENT, NULL, 0);
	return ctl >= 0 && client;
}

/* MAP_MEMORY, then mmap(). */
static bool memory_map(struct context *context)
{
	struct gp_rm_map args = { client, context->device, context->memory_handle, 0, 0, FAKE_GPU_SIZE, 0, 0x77, 0, -1,
				  0 };
	void *at = (void *)(uintptr_t)(FAKE_GPU_FIRST + (uint64_t)(context - contexts) * FAKE_GPU_SIZE);

	args.fd = memfd_create("memory", MFD_CLOEXEC);
	if (args.fd < 0 || ftruncate(args.fd, FAKE_GPU_SIZE) < 0 || rm_ioctl(GP_RM_MAP, &args, sizeof(args)) < 0 ||
	    args.status)
		return false;
	context->gpu.memory = mmap(at, FAKE_GPU_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, args.fd, 0);
	close(args.fd);
	return context->gpu.memory == at;
}

static uint32_t channel_add(uint32_t group, uint32_t engine, const struct context *context, uint32_t i)
{
	uint8_t params[368] = { 0 };
	uint64_t ring, registers = FAKE_GPU_USERD(i);
	uint32_t entries = FAKE_GPU_ENTRIES;

	if (context) {
		ring = (uintptr_t)context->gpu.memory + FAKE_GPU_RING(i);
		memcpy(params + GP_RM_CHANNEL_RING, &ring, 8);
		memcpy(params + GP_RM_CHANNEL_USERD, &context->memory_handle, 4);
		memcpy(params + GP_RM_CHANNEL_USERD_OFF, &registers, 8);
	}
	memcpy(params + GP_RM_CHANNEL_ENTRIES, &entries, 4);
	memcpy(params + GP_RM_CHANNEL_ENGINE, &engine, 4);
	return rm_alloc(group, 0xc86f, params, sizeof(params));
}

static uint32_t group_add(uint32_t device, uint32_t engine)
{
	uint8_t params[GP_RM_GROUP_SIZE] = { 0 };

	memcpy(params + GP_RM_GROUP_ENGINE, &engine, 4);
	return rm_alloc(device, GP_RM_CLASS_GROUP, params, sizeof(params));
}

static int context_make(struct context *context, uint32_t gpu)
{
	uint32_t device_params[16] = { gpu }, schedule = 1;

	context->device = rm_alloc(client, GP_RM_CLASS_DEVICE, device_params, 56);
	context->subdevice = rm_alloc(context->device, GP_RM_CLASS_SUBDEVICE, device_params, 4);
	if (use_dup) {
		uint32_t device = rm_rename(0, context->device, client);

		context->subdevice = rm_rename(context->device, context->subdevice, device);
		if (rm_free(client, context->device) != GP_RM_OK)
			return -1;
		context->device = device;
	}
	context->memory_handle = rm_alloc(context->device, 0x40, NULL, 0);
	if (!memory_map(context))
		return -1;
	context->group = group_add(context->device, GP_RM_ENGINE_GR0);
	for (uint32_t i = 0; i < FAKE_GPU_CHANNELS; i++) {
		context->channels[context->channel_count++] = channel_add(context->group, GP_RM_ENGINE_GR0, context, i);
		if (use_early && !i)
			context->compute = rm_alloc(context->channels[0], 0xcbc0, NULL, 0);
	}
	if (!use_early)
		context->compute = rm_alloc(context->channels[0], 0xcbc0, NULL, 0);
	rm_alloc(context->channels[1], 0xcbc0, NULL, 0);
	rm_control(context->group, GP_RM_GROUP_SCHEDULE, &schedule, 3);
	context->copy_group = group_add(context->device, 9);
	rm_alloc(channel_add(context->copy_group, 9, NULL, 0), 0xc8b5, NULL, 0);
	return context->compute ? 0 : -1;
}

int context_open(uint32_t gpu)
{
	uint32_t number;

	if (ctl < 0 && !client_open())
		return -1;
	number = __atomic_fetch_add(&context_count, 1, __ATOMIC_RELAXED);
	return context_make(&contexts[number], gpu) < 0 ? -1 : (int)number;
}

/* Whatever the agent reads, the driver's answer is the one that counts. */
static const char *hostile(void)
{
	/* Not a page that was unmapped: another thread may get it. */
	void *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct gp_rm_alloc alloc = { client, client, 0, 0xc86f, 0xdead0000, 368, 0 };
	struct gp_rm_xfer xfer = { GP_RM_ALLOC, sizeof(alloc), (uintptr_t)gone };
	uint32_t sizes[] = { 0, 1, 15, 31, 33, 47, 49, 64, 200, 4095 };

	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (uint32_t n = 0x27; n < 0x60; n++)
			if (ioctl(ctl, GP_RM_REQUEST(n) | (unsigned long)sizes[i] << 16, gone) == 0)
				return "taken";
	if (ioctl(ctl, GP_RM_REQUEST(GP_RM_ALLOC) | sizeof(alloc) << 16, gone) == 0 || errno != EFAULT)
		return "no fault";
	if (ioctl(ctl, GP_RM_REQUEST(GP_RM_XFER) | sizeof(xfer) << 16, &xfer) == 0 || errno != EFAULT)
		return "no fault by xfer";
	if (ioctl(ctl, GP_RM_REQUEST(GP_RM_ALLOC) | sizeof(alloc) << 16, &alloc) < 0 || !alloc.status)
		return "bad parameters were taken";
	return "ok 0";
}

/* The memory goes without a munmap() of its own. */
static bool memory_goes(struct context *context, const char *how)
{
	struct gp_rm_unmap unmap = { 0 };
	void *at = context->gpu.memory;

	if (!strcmp(how, "fixed"))
		return mmap(at, FAKE_GPU_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at;
	if (!strcmp(how, "moved"))
		return mremap(at, FAKE_GPU_SIZE, FAKE_GPU_SIZE, MREMAP_MAYMOVE | MREMAP_FIXED,
			      (char *)at + (1u << 30)) != MAP_FAILED;
	if (!strcmp(how, "protected"))
		return mprotect(at, FAKE_GPU_SIZE, PROT_NONE) == 0;
	unmap.client = client;
	unmap.device = context->device;
	unmap.memory = context->memory_handle;
	unmap.address = (uintptr_t)at;
	return rm_ioctl(GP_RM_UNMAP, &unmap, sizeof(unmap)) == 0 && syscall(SYS_munmap, at, FAKE_GPU_SIZE) == 0;
}

static bool context_close(struct context *context, const char *what)
{
	uint32_t parent = context->device, object = context->group;

	if (!strcmp(what, "fixed") || !strcmp(what, "moved") || !strcmp(what, "protected") || !strcmp(what, "rm"))
		return memory_goes(context, what);

	if (!strcmp(what, "device")) {
		parent = client;
		object = context->device;
	} else if (!strcmp(what, "client")) {
		parent = 0;
		object = client;
	} else if (!strcmp(what, "memory")) {
		object = context->memory_handle;
	} else if (!strcmp(what, "unmap")) {
		return munmap(context->gpu.memory, FAKE_GPU_SIZE) == 0;
	} else if (!strcmp(what, "channel")) {
		parent = context->group;
		object = context->channels[--context->channel_count];
	}
	return rm_free(parent, object) == GP_RM_OK;
}

/* Contexts that come, work and go, in every way, in several threads at once. */
#define STORM_THREADS 4u
static uint32_t storm_rounds, storm_failures;

static void *storm(void *data)
{
	static const char *const ways[] = { "group", "device", "memory", "channel" };
	struct context *context = data;

	for (uint32_t i = 0; i < storm_rounds; i++) {
		*context = (struct context){ 0 };
		if (context_make(context, 0) < 0)
			__atomic_fetch_add(&storm_failures, 1, __ATOMIC_RELAXED);
		for (uint32_t n = 0; n < 20u; n++) {
			fake_gpu_submit(&context->gpu, n % 3u, n % 4u);
			if (n % 2u)
				fake_gpu_take(&context->gpu, n % 3u);
		}
		if (!context_close(context, ways[i % 4u]))
			__atomic_fetch_add(&storm_failures, 1, __ATOMIC_RELAXED);
		context_close(context, "unmap");
		if (i % 4u != 1u)
			context_close(context, "device");
	}
	return NULL;
}

static long storm_all(uint32_t rounds)
{
	pthread_t threads[STORM_THREADS];

	storm_rounds = rounds;
	for (uint32_t i = 0; i < STORM_THREADS; i++)
		pthread_create(&threads[i], NULL, storm, &contexts[CONTEXTS - 1u - i]);
	for (uint32_t i = 0; i < STORM_THREADS; i++)
		pthread_join(threads[i], NULL);
	return storm_failures;
}

/* As a container's filter does: kcmp() is refused, in every thread. */
static long refuse_kcmp(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), /* struct seccomp_data: the call's number */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kcmp, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

/* The number is the application's from now on, and leads to a device of the driver. */
static long steal(int number)
{
	char path[4200];
	int fd;

	snprintf(path, sizeof(path), "%s/nvidia0", getenv(FAKE_RM_ENV));
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd >= 0 && syscall(SYS_dup3, fd, number, O_CLOEXEC) == number && close(fd) == 0;
}

void answer(long number)
{
	printf("ok %ld\n", number);
}

bool request_is(const struct request *request, const char *verb)
{
	return !strcmp(request->verb, verb);
}

/* These carry out the requests about one thing each, and return whether this is one. */
static bool context_request(const struct request *request)
{
	struct context *context = &contexts[request->a % CONTEXTS];

	if (request_is(request, "context"))
		answer(context_open(request->a));
	else if (request_is(request, "start"))
		answer(context_start(request->a));
	else if (request_is(request, "starts") && request->a <= CONTEXTS)
		answer(context_start_several(request->a, request->b));
	else if (request_is(request, "group"))
		answer(context->group);
	else if (request_is(request, "client"))
		answer(client);
	else if (request_is(request, "free"))
		answer(context_close(context, request->what) ? 0 : -1);
	else if (request_is(request, "mig"))
		answer(rm_alloc(context->subdevice, GP_RM_CLASS_MIG, NULL, 0) != 0);
	else if (request_is(request, "fork"))
		answer(fork_child(request->a));
	else if (request_is(request, "storm"))
		answer(storm_all(request->a));
	else
		return false;
	return true;
}

static bool channel_request(const struct request *request)
{
	struct context *context = &contexts[request->a % CONTEXTS];
	struct gp_rm_disable disable = { .disable = (uint8_t)request->b, .count = 1 };
	uint64_t slice = request->b;

	disable.clients[0] = client;
	disable.channels[0] = context->channels[0];
	if (request_is(request, "channel"))
		answer((context->channels[context->channel_count++] = channel_add(context->group, 1, NULL, 0)) != 0);
	else if (request_is(request, "member")) /* a channel whose work can be followed */
		answer((context->channels[context->channel_count++] =
				channel_add(context->group, GP_RM_ENGINE_GR0, context, FAKE_GPU_CHANNELS - 1u)) != 0);
	else if (request_is(request, "again")) /* its last channel, which did not go */
		answer(context->channel_count++);
	else if (request_is(request, "schedule"))
		answer(rm_control(context->group, GP_RM_GROUP_SCHEDULE, &(uint32_t){ 1 }, 3));
	else if (request_is(request, "slice"))
		answer(rm_control(context->group, GP_RM_SLICE_SET, &slice, 8));
	else if (request_is(request, "slice?"))
		answer(rm_control(context->group, GP_RM_SLICE_GET, &slice, 8) ? -1 : (long)slice);
	else if (request_is(request, "disable"))
		answer(rm_control(context->subdevice, GP_RM_DISABLE_CHANNELS, &disable, sizeof(disable)));
	else
		return false;
	return true;
}

static bool memory_request(const struct request *request)
{
	struct context *context = &contexts[request->a % CONTEXTS];

	if (request_is(request, "memory"))
		answer(context->memory_handle);
	else if (request_is(request, "open")) /* a client's memory */
		answer(memory_open(&contexts[0], request->a, request->b));
	else if (request_is(request, "shared"))
		answer(memory_give(context, request->what, MAP_SHARED));
	else if (request_is(request, "private"))
		answer(memory_give(context, request->what, MAP_PRIVATE));
	else if (request_is(request, "carry"))
		answer(memory_carry((pid_t)request->a, (int)request->b));
	else
		return false;
	return true;
}

/* Their a is context * 16 + channel. */
static bool gpu_request(const struct request *request)
{
	struct fake_gpu *gpu = &contexts[request->a / 16u % CONTEXTS].gpu;
	uint32_t channel = request->a % 16u % FAKE_GPU_CHANNELS;

	if (request_is(request, "submit"))
		answer((fake_gpu_submit(gpu, channel, request->b), (long)gpu->put[channel] - 1));
	else if (request_is(request, "progress"))
		answer((fake_gpu_progress(gpu, channel), 0));
	else if (request_is(request, "word"))
		answer((*fake_gpu_word(gpu, FAKE_GPU_HOST_WORD) = request->b));
	else if (request_is(request, "take"))
		answer((fake_gpu_take(gpu, channel), 0));
	else if (request_is(request, "finish"))
		answer((fake_gpu_finish(gpu, channel, request->b), 0));
	else if (request_is(request, "many"))
		answer((fake_gpu_many(gpu, channel, request->b), 0));
	else
		return false;
	return true;
}

static int filter_call(uint32_t number, bool ends)
{
	struct sock_filter lines[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, ends ? SECCOMP_RET_KILL_THREAD : SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(lines) / sizeof(lines[0]), lines };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) |
	       (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

static bool descriptor_request(const struct request *request)
{
	uint32_t a = request->a;

	if (request_is(request, "dup")) {
		int other = dup(ctl);

		close(ctl);
		answer((ctl = other) >= 0);
	} else if (request_is(request, "number")) { /* takes a descriptor's number */
		answer(dup2(ctl, (int)a) == (int)a);
	} else if (request_is(request, "steal")) { /* the same for another file, by a system call of its own */
		answer(steal((int)a));
	} else if (request_is(request, "drop")) { /* closes it by a system call of its own */
		answer(syscall(SYS_close, a));
	} else if (request_is(request, "filter")) { /* from now on a call ends its thread, or is answered with EPERM */
		answer(filter_call(a, request->b));
	} else if (request_is(request, "sweep")) { /* and all from that number on, as a daemon does when it starts */
		answer(syscall(SYS_close_range, a, ~0u, 0));
	} else if (request_is(request, "end")) { /* all its descriptors, and nothing freed */
		answer(close(ctl) | (a ? close_range(3, 60, 0) : 0));
		ctl = -1;
	} else if (request_is(request, "range")) { /* descriptors that nobody has open */
		answer(close_range(500, 600, 0));
	} else {
		return false;
	}
	return true;
}

/* How the driver is called from now on. */
static bool call_request(const struct request *request)
{
	if (request_is(request, "xfer"))
		answer(use_xfer = request->a);
	else if (request_is(request, "rename"))
		answer(use_dup = request->a);
	else if (request_is(request, "early")) /* a group is a queue from its first channel on, and grows */
		answer(use_early = request->a);
	else if (request_is(request, "rights"))
		answer(use_rights = request->a);
	else if (request_is(request, "kcmp"))
		answer(refuse_kcmp());
	else if (request_is(request, "hostile"))
		puts(hostile());
	else
		return false;
	return true;
}

static void carry_out(const struct request *request)
{
	if (!context_request(request) && !channel_request(request) && !memory_request(request) &&
	    !busy_request(request) && !gpu_request(request) && !descriptor_request(request) && !call_request(request))
		puts("what?");
}

/* Lines until there are no more. */
static void *serve(void *unused)
{
	char line[256], verb[32], what[128];

	while (fgets(line, sizeof(line), stdin)) {
		unsigned a = 0, b = 0;

		what[0] = 0;
		if (sscanf(line, "%31s %u %u", verb, &a, &b) < 3)
			sscanf(line, "%31s %u %127s", verb, &a, what);
		if (!strcmp(verb, "leave"))
			return unused;
		carry_out(&(struct request){ .verb = verb, .a = a, .b = b, .what = what });
	}
	exit(0);
}

/* The first thread has ended when this one goes on in its place. */
static void *serve_alone(void *first)
{
	answer(pthread_join(*(pthread_t *)first, NULL));
	return serve(NULL);
}

int main(void)
{
	static pthread_t first;
	pthread_t other;

	setvbuf(stdout, NULL, _IOLBF, 0);
	serve(NULL);
	first = pthread_self();
	if (pthread_create(&other, NULL, serve_alone, &first))
		return 1;
	pthread_exit(NULL);
}
