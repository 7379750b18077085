/* SPDX-License-Identifier: MIT */
/* The virtual node of the fuzzers. Owns the clients' processes and the clock (linked with --wrap=clock_gettime). */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "test/fuzz/vgpu_fixture.h"
#include "vgpu/node/bar.h"
#include "vgpu/node/memory.h"
#include "vgpu/node/process.h"
#include "vgpu/kfd/queue.h"

#define FIXTURE_START_NS 1000000000000ull
#define FIXTURE_IOCTL_NS 20000u

int __real_clock_gettime(clockid_t clock, struct timespec *ret_time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time);

static pid_t fixture_children[FUZZ_CLIENT_COUNT];
static uint64_t fixture_now_ns; /* 0: outside an input, where libFuzzer wants the real clock */
static struct fuzz_node fixture_node;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	if (!fixture_now_ns || clock == CLOCK_REALTIME)
		return __real_clock_gettime(clock, ret_time);
	*ret_time = (struct timespec){ (time_t)(fixture_now_ns / 1000000000u), (long)(fixture_now_ns % 1000000000u) };
	return 0;
}

uint64_t fuzz_take(struct fuzz_input *input, uint32_t byte_count)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < byte_count && input->at < input->end; i++)
		value |= (uint64_t)*input->at++ << i * 8u;
	return value;
}

static void fixture_must(bool condition)
{
	if (!condition)
		abort();
}

static void fixture_complete(struct gp_vnode *node, struct gp_vcall *call, int result)
{
	(void)node;
	(void)call;
	(void)result;
	fixture_node.answered++;
}

/* A client can be destroyed by what the node was made to write into it. */
static void fixture_children_start(void)
{
	static bool mapped;

	if (!mapped)
		fixture_must(mmap((void *)FUZZ_ARENA, FUZZ_ARENA_SIZE, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == (void *)FUZZ_ARENA);
	mapped = true;
	for (uint32_t i = 0; i < FUZZ_CLIENT_COUNT; i++) {
		if (fixture_children[i] && waitpid(fixture_children[i], NULL, WNOHANG) == 0)
			continue;
		fixture_children[i] = fork();
		fixture_must(fixture_children[i] >= 0);
		if (fixture_children[i] > 0)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
}

pid_t fuzz_node_pid(uint32_t client)
{
	return fixture_children[client];
}

int fuzz_node_client_open(struct fuzz_node *fuzz, uint32_t index)
{
	struct gp_vproc *process;
	int r = fuzz->clients[index] ? -EEXIST : gp_vproc_open(&fuzz->node, fixture_children[index], &process);

	if (r == 0)
		fuzz->clients[index] = process;
	return r;
}

struct fuzz_node *fuzz_node_open(const char *kernels_path)
{
	struct gp_vnode_config config = {
		.device = "mi300x",
		.gpu_count = FUZZ_GPU_COUNT,
		.kernels_path = kernels_path,
		.gtt_size = 64u << 20,
		.verbose = -1,
	};
	struct fuzz_node *fuzz = &fixture_node;
	struct gp_error error;

	fixture_children_start();
	memset((void *)FUZZ_ARENA, 0, FUZZ_ARENA_SIZE);
	fixture_now_ns = FIXTURE_START_NS;
	memset(fuzz, 0, sizeof(*fuzz));
	fixture_must(gp_vnode_init(&fuzz->node, &config, &error) == 0);
	fuzz->node.complete = fixture_complete;
	fuzz->vram_free = gp_range_free_size(&fuzz->node.gpus[0].vram);
	fuzz->gtt_free = gp_range_free_size(&fuzz->node.gtt);
	fixture_must(fuzz_node_client_open(fuzz, 0) == 0);
	return fuzz;
}

static void fixture_check(const struct fuzz_node *fuzz)
{
	for (uint32_t i = 0; i < FUZZ_GPU_COUNT; i++)
		fixture_must(!gp_gpu_check(fuzz->node.gpus[i].model));
	fixture_must(!fuzz->node.counters.exactly_once_violations);
}

void fuzz_node_turn(struct fuzz_node *fuzz, uint64_t ns)
{
	fixture_now_ns += ns;
	gp_vnode_turn(&fuzz->node);
	fixture_check(fuzz);
}

void fuzz_node_close(struct fuzz_node *fuzz)
{
	struct gp_vnode *node = &fuzz->node;

	fuzz_node_turn(fuzz, 1000);
	for (uint32_t i = 0; i < FUZZ_CLIENT_COUNT; i++)
		if (fuzz->clients[i] && gp_vproc_find(node, fixture_children[i]))
			gp_vproc_destroy(fuzz->clients[i]);
	/* Transactions of the dead come to their end in the model's time. */
	for (uint32_t i = 0; i < 1000u && node->transactions; i++)
		fuzz_node_turn(fuzz, i < 100u ? 100000 : 100000000); /* later ones: a hang that ends in a reset */
	fuzz_node_turn(fuzz, 1000);
	fixture_must(!node->processes && !node->transactions && !node->calls);
	fixture_must(fuzz->kept == fuzz->answered);
	fixture_must(node->counters.queues_created == node->counters.queues_destroyed);
	fixture_must(!node->gtt_used && gp_range_free_size(&node->gtt) == fuzz->gtt_free);
	for (uint32_t g = 0; g < FUZZ_GPU_COUNT; g++) {
		const struct gp_vdev *gpu = &node->gpus[g];

		fixture_must(!gpu->vram_used && gp_range_free_size(&gpu->vram) == fuzz->vram_free);
		for (uint32_t i = 0; i < GP_VSDMA_QUEUE_MAX / 32u; i++)
			fixture_must(!gpu->sdma_used[i]);
		for (uint32_t i = 0; i < GP_GPU_QUEUE_MAX; i++)
			fixture_must(!gpu->by_model[i]);
	}
	for (uint32_t i = 0; i < GP_VPROC_MAX / 32u; i++)
		fixture_must(!node->slots[i]);
	gp_vnode_fini(node);
	fixture_now_ns = 0;
}

int fuzz_node_ioctl(struct fuzz_node *fuzz, uint32_t client, uint32_t command, void *arg)
{
	struct gp_vcall *call;
	int r;

	if (!fuzz->clients[client])
		return -EBADF;
	/* As in the daemon's loop: calls come after some sleep, before the turn that would see what happened meanwhile.
	 */
	fixture_now_ns += FIXTURE_IOCTL_NS;
	fuzz->node.now_ns = fixture_now_ns;
	call = calloc(1, sizeof(*call));
	fixture_must(call);
	call->process = fuzz->clients[client];
	call->token = ++fuzz->token;
	call->command = command;
	call->thread = fixture_children[client];
	call->arg_size = _IOC_SIZE(command);
	fixture_must(call->arg_size <= sizeof(call->arg));
	memcpy(call->arg, arg, call->arg_size);
	r = gp_vcall_ioctl(&call, _IOC_TYPE(command) == 'd' ? GP_VFILE_RENDER : GP_VFILE_KFD);
	if (!call) {
		fuzz->kept++;
		return GP_VCALL_LATER;
	}
	memcpy(arg, call->arg, call->arg_size);
	gp_vcall_free(call);
	return r;
}

uint8_t *fuzz_node_alloc(struct fuzz_node *fuzz, uint64_t va, uint64_t size, uint32_t flags)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args args = {
		.va_addr = va,
		.size = size,
		.gpu_id = fuzz->node.gpus[0].gpu_id,
		.flags = flags,
	};
	uint32_t success = 0;

	if (fuzz_node_ioctl(fuzz, 0, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args) < 0)
		return NULL;
	*(volatile uint32_t *)FUZZ_ARENA = args.gpu_id;
	fixture_must(gp_vbo_map(fuzz->clients[0], args.handle, FUZZ_ARENA, 1, true, &success) == 0);
	*(volatile uint32_t *)FUZZ_ARENA = 0;
	return gp_vm_pointer(fuzz->clients[0], &fuzz->node.gpus[0], va, size);
}

int fuzz_node_queue(struct fuzz_node *fuzz, uint64_t va, uint32_t type, struct fuzz_queue *ret_queue)
{
	struct gp_kfd_create_queue args = {
		.base = {
			.ring_base_address = va,
			.ring_size = FUZZ_QUEUE_RING_SIZE,
			.write_pointer_address = va + FUZZ_QUEUE_RING_SIZE + 56u,
			.read_pointer_address = va + FUZZ_QUEUE_RING_SIZE + GP_AMD_QUEUE_READ_OFFSET,
			.gpu_id = fuzz->node.gpus[0].gpu_id,
			.queue_type = type,
			.queue_percentage = 100,
			.queue_priority = 7,
		},
	};
	struct kfd_ioctl_acquire_vm_args vm = { .gpu_id = fuzz->node.gpus[0].gpu_id };
	/* KFD wants ring and counters to be pieces of memory of their own. */
	uint8_t *ring = fuzz_node_alloc(fuzz, va, FUZZ_QUEUE_RING_SIZE, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	uint8_t *control = fuzz_node_alloc(fuzz, va + FUZZ_QUEUE_RING_SIZE, 4096, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	uint8_t *rest = fuzz_node_alloc(fuzz, va + FUZZ_QUEUE_RING_SIZE + 4096u,
					FUZZ_QUEUE_STEP - FUZZ_QUEUE_RING_SIZE - 4096u, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	uint32_t command = _IOWR('K', _IOC_NR(AMDKFD_IOC_CREATE_QUEUE), struct gp_kfd_create_queue), id = 0;
	const struct gp_vqueue *queue;
	int r;

	if (!ring || !control || !rest)
		return -ENOMEM;
	args.sdma_engine_id = args.pad = 0; /* no part of the older structure */
	for (uint32_t i = 0; i < FUZZ_QUEUE_RING_SIZE && type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
	     i += GP_AQL_PACKET_SIZE)
		ring[i] = GP_AQL_INVALID;
	fuzz_node_ioctl(fuzz, 0, AMDKFD_IOC_ACQUIRE_VM, &vm);
	r = fuzz_node_ioctl(fuzz, 0, command, &args);
	if (r < 0)
		return r;
	/* Its answer comes when the halt is over; its memory tells which queue it is. */
	for (uint32_t i = 0; i < 100u && fuzz->kept != fuzz->answered; i++)
		fuzz_node_turn(fuzz, 100000);
	while (id < GP_VPROC_QUEUE_MAX && (!(queue = gp_vqueue_find(fuzz->clients[0], id)) || queue->ring != va))
		id++;
	if (id == GP_VPROC_QUEUE_MAX)
		return -EIO;
	*ret_queue = (struct fuzz_queue){
		.id = id,
		.ring_size = FUZZ_QUEUE_RING_SIZE,
		.ring = ring,
		.control = control,
		.doorbell = queue->doorbell,
	};
	return 0;
}
