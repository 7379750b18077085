/* SPDX-License-Identifier: MIT */
/* Owns the raw client. Sizes of the save area are KFD's own (Linux 6.12, kfd_queue.c), which refuses any other. */
#include <errno.h>
#include <fcntl.h>
#include <gpreempt/kfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "cli/bench_kfd.h"
#include "lib/cleanup.h"
#include "lib/file.h"
#include "lib/kfd.h"

#define BENCH_PAGE      4096u
#define BENCH_DOORBELLS 8192u      /* of one process on one GPU */
#define BENCH_SIGNALS   32u        /* bytes 0..2047 of the page */
#define BENCH_CODE      2048u      /* descriptor; its code 256 bytes further */
#define BENCH_WRITABLE  (1u << 31) /* KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE, which shifts a signed 1 */
#define BENCH_WAVES     40u        /* per CU, for the size of the save area on gfx9 */
#define BENCH_FLAGS                                                                               \
	(BENCH_WRITABLE | KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT | \
	 KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE)

uint64_t gp_bench_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int bench_ioctl(const struct gp_bench_kfd *kfd, unsigned long request, void *argument)
{
	int r;

	do
		r = ioctl(kfd->kfd, request, argument);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

static uint32_t bench_or(uint64_t value, uint32_t otherwise)
{
	return value == GP_KFD_UNKNOWN || !value || value > UINT32_MAX ? otherwise : (uint32_t)value;
}

static size_t bench_align(size_t size)
{
	return (size + BENCH_PAGE - 1) / BENCH_PAGE * BENCH_PAGE;
}

/* Context save area: control stack, then registers and LDS of every wave, per XCC; and a debugger's part. */
static void bench_save_size(struct gp_bench_kfd *kfd, const struct gp_kfd_node *node)
{
	uint32_t cus = kfd->cu_count / kfd->xcc_count, waves = cus * BENCH_WAVES;
	size_t vgpr = kfd->gfx_version >= 90008 ? 0x80000 : 0x40000;
	size_t group = bench_align((size_t)cus * (vgpr + 0x4000 + 0x10000 + 0x1000));

	kfd->control_stack_size = bench_align(40u + waves * 8u + 8u);
	kfd->save_size = kfd->control_stack_size + group;
	kfd->control_stack_size = bench_or(node->control_stack_size, (uint32_t)kfd->control_stack_size);
	kfd->save_size = bench_or(node->save_size, (uint32_t)kfd->save_size);
	kfd->save_total = bench_align((kfd->save_size + (size_t)waves * 32u) * kfd->xcc_count);
}

static int bench_describe(struct gp_bench_kfd *kfd, const struct gp_kfd_node *node, struct gp_error *error)
{
	char path[128];

	kfd->gpu_id = node->gpu_id;
	kfd->node = node->node;
	kfd->xcc_count = bench_or(node->xcc_count, 1);
	kfd->cu_count = bench_or(gp_kfd_cu_count(node), 0);
	kfd->gfx_version = bench_or(node->gfx_version, 0);
	kfd->slot_count = bench_or(node->cp_queue_count, 24);
	(void)snprintf(path, sizeof(path), "/dev/dri/renderD%u", bench_or(node->render_minor, 128));
	kfd->render = open(path, O_RDWR | O_CLOEXEC);
	if (kfd->render < 0)
		return gp_error_set(error, -errno, "%s cannot be opened: %s", path, strerror(errno));
	if (kfd->gfx_version < GP_KFD_GFX_9 || kfd->gfx_version >= GP_KFD_GFX_10)
		return gp_error_set(error, -ENOTSUP, "GPU %u is gfx version %u; this kit knows gfx9 (MI50 to MI300)",
				    kfd->gpu_id, kfd->gfx_version);
	bench_save_size(kfd, node);
	return kfd->cu_count ? 0 :
			       gp_error_set(error, -EINVAL, "GPU %u: no compute units in the topology", kfd->gpu_id);
}

/* The node of that GPU (0: the first). */
static int bench_topology(struct gp_bench_kfd *kfd, uint32_t gpu_id, struct gp_error *error)
{
	struct gp_kfd_node nodes[GP_KFD_NODES_MAX];
	int count = gp_kfd_topology(GP_KFD_SYSFS, nodes, GP_KFD_NODES_MAX, error);

	for (int i = 0; i < count; i++)
		if (!gpu_id || nodes[i].gpu_id == gpu_id)
			return bench_describe(kfd, &nodes[i], error);
	if (count < 0)
		return count;
	return gp_error_set(error, -ENODEV,
			    gpu_id ? "there is no such GPU (gpu_id as in gpreempt status)" :
				     "there is no GPU in " GP_KFD_SYSFS);
}

/* Memory that both see at one address; NULL: not to be had. */
static void *bench_alloc(struct gp_bench_kfd *kfd, size_t size, uint32_t flags, bool is_mapped)
{
	void *va = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct kfd_ioctl_alloc_memory_of_gpu_args args = { .va_addr = (uintptr_t)va,
							   .size = size,
							   .gpu_id = kfd->gpu_id,
							   .flags = flags };
	struct kfd_ioctl_map_memory_to_gpu_args map = { .device_ids_array_ptr = (uintptr_t)&kfd->gpu_id,
							.n_devices = 1 };

	if (va == MAP_FAILED)
		return NULL;
	if (bench_ioctl(kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args) < 0)
		return NULL;
	map.handle = args.handle;
	if (bench_ioctl(kfd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &map) < 0)
		return NULL;
	if (is_mapped && mmap(va, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, kfd->render,
			      (off_t)args.mmap_offset) == MAP_FAILED)
		return NULL;
	return va;
}

/* A wave that sleeps 5000 times 127 x 64 clocks (about 24 ms at 1.7 GHz) and ends; 128 VGPRs, so that 16 waves fill a
 * CU's registers and a save has something to move. Scalar instructions only, the same on gfx906 to gfx942: s_movk_i32
 * s0, 5000; loop: s_sleep 127; s_sub_u32 s0, s0, 1; s_cmp_lg_u32 s0, 0; s_cbranch_scc1 loop; s_endpgm */
static void bench_kernel_write(struct gp_bench_kfd *kfd)
{
	static const uint32_t code[] = { 0xb0001388, 0xbf8e007f, 0x80808100, 0xbf078000, 0xbf85fffc, 0xbf810000 };
	uint32_t *descriptor = (uint32_t *)(void *)(kfd->page + BENCH_CODE);
	bool is_unified = kfd->gfx_version == 90010 || kfd->gfx_version >= 90400; /* gfx90a on: granules of 8 */

	descriptor[4] = 256;                       /* entry, relative to the descriptor */
	descriptor[11] = is_unified ? 31 : 0;      /* rsrc3: accumulators begin at 128 */
	descriptor[12] = (is_unified ? 15u : 31u); /* rsrc1: 128 VGPRs, 16 SGPRs */
	descriptor[13] = 0;
	memcpy(kfd->page + BENCH_CODE + 256, code, sizeof(code));
	kfd->kernel = (uintptr_t)descriptor;
}

static void bench_dilation(struct gp_bench_kfd *kfd)
{
	GP_AUTO_FREE char *text = NULL;
	size_t size;

	kfd->dilation = 1;
	if (!gp_file_read("/sys/module/amdgpu/vgpu_dilation", 64, &text, &size, NULL) && atoi(text) > 0)
		kfd->dilation = (uint64_t)atoi(text);
}

int gp_bench_kfd_open(struct gp_bench_kfd *kfd, uint32_t gpu_id, struct gp_error *error)
{
	struct kfd_ioctl_get_version_args version = { 0 };
	struct gp_kfd_runtime_enable runtime = { .mode_mask = GP_KFD_RUNTIME_MODE_ENABLE };
	struct kfd_ioctl_acquire_vm_args vm;
	int r;

	memset(kfd, 0, sizeof(*kfd));
	kfd->render = -1;
	kfd->kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	if (kfd->kfd < 0)
		return gp_error_set(error, -errno, "/dev/kfd cannot be opened: %s (gpreempt doctor says more)",
				    strerror(errno));
	r = bench_topology(kfd, gpu_id, error);
	if (r)
		return r;
	bench_dilation(kfd);
	(void)bench_ioctl(kfd, AMDKFD_IOC_GET_VERSION, &version);
	kfd->kfd_major = version.major_version;
	kfd->kfd_minor = version.minor_version;
	vm = (struct kfd_ioctl_acquire_vm_args){ .drm_fd = (uint32_t)kfd->render, .gpu_id = kfd->gpu_id };
	r = bench_ioctl(kfd, AMDKFD_IOC_ACQUIRE_VM, &vm);
	if (r < 0)
		return gp_error_set(error, r, "GPU %u: no address space: %s", kfd->gpu_id, strerror(-r));
	kfd->page = bench_alloc(kfd, BENCH_PAGE, BENCH_FLAGS | KFD_IOC_ALLOC_MEM_FLAGS_GTT, true);
	if (!kfd->page)
		return gp_error_set(error, -ENOMEM, "GPU %u: no memory: %s", kfd->gpu_id, strerror(errno));
	bench_kernel_write(kfd);
	/* Before the first queue, or DBG_TRAP is refused later. */
	kfd->has_runtime =
		bench_ioctl(kfd, _IOWR('K', GP_KFD_NR_RUNTIME_ENABLE, struct gp_kfd_runtime_enable), &runtime) >= 0;
	return 0;
}

void gp_bench_kfd_close(struct gp_bench_kfd *kfd)
{
	if (kfd->is_debugged)
		(void)gp_bench_kfd_debug(kfd, false);
	gp_bench_kfd_drop(kfd, 0);
	if (kfd->render >= 0)
		close(kfd->render);
	if (kfd->kfd >= 0)
		close(kfd->kfd);
}

int gp_bench_kfd_queue(struct gp_bench_kfd *kfd)
{
	struct gp_bench_queue *queue = &kfd->queues[kfd->queue_count];
	struct kfd_ioctl_create_queue_args args = { .ring_size = GP_BENCH_RING * 64u,
						    .gpu_id = kfd->gpu_id,
						    .queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
						    .queue_percentage = 100,
						    .queue_priority = 7 };
	uint8_t *page;
	int r;

	if (kfd->queue_count == GP_BENCH_QUEUE_MAX)
		return -ENOSPC;
	/* Memory of a queue that is gone is used again: nothing is freed before the end. */
	if (!queue->ring) {
		queue->ring = bench_alloc(kfd, args.ring_size, BENCH_FLAGS | KFD_IOC_ALLOC_MEM_FLAGS_GTT, true);
		queue->control = bench_alloc(kfd, BENCH_PAGE, BENCH_FLAGS | KFD_IOC_ALLOC_MEM_FLAGS_GTT, true);
		queue->eop = bench_alloc(kfd, BENCH_PAGE, BENCH_FLAGS | KFD_IOC_ALLOC_MEM_FLAGS_VRAM, false);
		queue->save = bench_alloc(kfd, kfd->save_total, BENCH_FLAGS | KFD_IOC_ALLOC_MEM_FLAGS_VRAM, false);
	}
	if (!queue->ring || !queue->control || !queue->eop || !queue->save)
		return -ENOMEM;
	memset(queue->control, 0, BENCH_PAGE);
	for (uint32_t i = 0; i < GP_BENCH_RING; i++)
		queue->ring[i * 64u] = 1;                  /* invalid until written */
	*(uint32_t *)(void *)(queue->control + 136) = 128; /* where the read index is, as ROCr says it */
	args.ring_base_address = (uintptr_t)queue->ring;
	args.write_pointer_address = (uintptr_t)queue->control + 56;
	args.read_pointer_address = (uintptr_t)queue->control + 128;
	args.eop_buffer_address = (uintptr_t)queue->eop;
	args.eop_buffer_size = BENCH_PAGE;
	args.ctx_save_restore_address = (uintptr_t)queue->save;
	args.ctx_save_restore_size = (uint32_t)kfd->save_size;
	args.ctl_stack_size = (uint32_t)kfd->control_stack_size;
	r = bench_ioctl(kfd, AMDKFD_IOC_CREATE_QUEUE, &args);
	if (r < 0)
		return r;
	queue->id = args.queue_id;
	page = mmap(NULL, BENCH_DOORBELLS, PROT_READ | PROT_WRITE, MAP_SHARED, kfd->kfd,
		    (off_t)(args.doorbell_offset & ~(uint64_t)(BENCH_DOORBELLS - 1u)));
	kfd->queue_count++;
	if (page == MAP_FAILED) {
		r = -errno;
		gp_bench_kfd_drop(kfd, kfd->queue_count - 1);
		return r;
	}
	queue->doorbell_page = page;
	queue->doorbell = (volatile uint64_t *)(void *)(page + (args.doorbell_offset & (BENCH_DOORBELLS - 1u)));
	return 0;
}

void gp_bench_kfd_drop(struct gp_bench_kfd *kfd, uint32_t count)
{
	while (kfd->queue_count > count) {
		struct gp_bench_queue *queue = &kfd->queues[--kfd->queue_count];
		struct kfd_ioctl_destroy_queue_args args = { .queue_id = queue->id };

		(void)bench_ioctl(kfd, AMDKFD_IOC_DESTROY_QUEUE, &args);
		if (queue->doorbell_page)
			munmap(queue->doorbell_page, BENCH_DOORBELLS);
		queue->doorbell_page = NULL;
		queue->doorbell = NULL;
	}
}

struct gp_bench_signal *gp_bench_kfd_signal(struct gp_bench_kfd *kfd, int64_t value)
{
	struct gp_bench_signal *signals = (struct gp_bench_signal *)(void *)kfd->page;
	struct gp_bench_signal *signal = &signals[kfd->signal_count++ % BENCH_SIGNALS];

	*signal = (struct gp_bench_signal){ .kind = 1, .value = value };
	return signal;
}

static void bench_submit(struct gp_bench_queue *queue, const uint32_t packet[16])
{
	uint64_t index = __atomic_fetch_add((uint64_t *)(void *)(queue->control + 56), 1, __ATOMIC_RELAXED);
	uint8_t *slot = queue->ring + index % GP_BENCH_RING * 64u;

	memcpy(slot + 4, packet + 1, 60);
	__atomic_store_n((uint32_t *)(void *)slot, packet[0], __ATOMIC_RELEASE);
	*queue->doorbell = index;
}

/* Headers: type, barrier bit, system scope both ways. */
void gp_bench_kfd_barrier(struct gp_bench_queue *queue, struct gp_bench_signal *dependency,
			  struct gp_bench_signal *done)
{
	uint32_t packet[16] = { 3u | 1u << 8 | 2u << 9 | 2u << 11 };
	uint64_t address = (uintptr_t)dependency;

	memcpy(packet + 2, &address, sizeof(address));
	address = (uintptr_t)done;
	memcpy(packet + 14, &address, sizeof(address));
	bench_submit(queue, packet);
}

void gp_bench_kfd_kernel(struct gp_bench_kfd *kfd, struct gp_bench_queue *queue, uint32_t groups,
			 struct gp_bench_signal *done)
{
	uint32_t packet[16] = {
		(2u | 1u << 8 | 2u << 9 | 2u << 11) | 1u << 16, 64u | 1u << 16, 1u, groups * 64u, 1, 1
	};
	uint64_t address = (uintptr_t)done;

	memcpy(packet + 8, &kfd->kernel, sizeof(kfd->kernel));
	memcpy(packet + 14, &address, sizeof(address));
	bench_submit(queue, packet);
}

bool gp_bench_kfd_wait(const struct gp_bench_signal *signal, uint64_t timeout_ns)
{
	uint64_t end_ns = gp_bench_now_ns() + timeout_ns;

	while (__atomic_load_n(&signal->value, __ATOMIC_ACQUIRE) != 0)
		if (gp_bench_now_ns() > end_ns)
			return false;
	return true;
}

uint64_t gp_bench_kfd_read_index(const struct gp_bench_queue *queue)
{
	return __atomic_load_n((const uint64_t *)(const void *)(queue->control + 128), __ATOMIC_ACQUIRE);
}

int gp_bench_kfd_update(struct gp_bench_kfd *kfd, struct gp_bench_queue *queue, bool open)
{
	struct kfd_ioctl_update_queue_args args = { .ring_base_address = (uintptr_t)queue->ring,
						    .queue_id = queue->id,
						    .ring_size = GP_BENCH_RING * 64u,
						    .queue_percentage = open ? 100 : 0,
						    .queue_priority = 7 };
	int r = bench_ioctl(kfd, AMDKFD_IOC_UPDATE_QUEUE, &args);

	return r < 0 ? r : 0;
}

static int bench_trap(struct gp_bench_kfd *kfd, struct gp_kfd_dbg_trap *trap)
{
	trap->pid = (uint32_t)getpid();
	return bench_ioctl(kfd, _IOWR('K', GP_KFD_NR_DBG_TRAP, struct gp_kfd_dbg_trap), trap);
}

int gp_bench_kfd_debug(struct gp_bench_kfd *kfd, bool enable)
{
	struct gp_kfd_dbg_trap trap = { .op = enable ? GP_KFD_DBG_ENABLE : GP_KFD_DBG_DISABLE };
	struct gp_kfd_queue_snapshot entries[GP_BENCH_QUEUE_MAX];
	struct gp_kfd_runtime_info info = { 0 };
	int pipes[2] = { -1, -1 }, r;

	if (enable && !kfd->has_runtime)
		return -EOPNOTSUPP;
	if (enable) {
		if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK))
			return -errno;
		trap.enable.rinfo_ptr = (uintptr_t)&info;
		trap.enable.rinfo_size = sizeof(info);
		trap.enable.dbg_fd = (uint32_t)pipes[1];
	}
	r = bench_trap(kfd, &trap);
	if (pipes[0] >= 0) {
		close(pipes[0]);
		close(pipes[1]);
	}
	if (r < 0)
		return r;
	kfd->is_debugged = enable;
	if (!enable)
		return 0;
	/* New queues cannot be suspended before they have been looked at. */
	trap = (struct gp_kfd_dbg_trap){ .op = GP_KFD_DBG_GET_QUEUE_SNAPSHOT };
	trap.queue_snapshot.exception_mask = GP_KFD_EC_QUEUE_NEW;
	trap.queue_snapshot.snapshot_buf_ptr = (uintptr_t)entries;
	trap.queue_snapshot.num_queues = GP_BENCH_QUEUE_MAX;
	trap.queue_snapshot.entry_size = sizeof(entries[0]);
	r = bench_trap(kfd, &trap);
	return r < 0 ? r : 0;
}

/* One call for all; the ids come back with a mark on those that failed. */
static int bench_change(struct gp_bench_kfd *kfd, uint32_t count, bool suspend)
{
	struct gp_kfd_dbg_trap trap = { .op = suspend ? GP_KFD_DBG_SUSPEND_QUEUES : GP_KFD_DBG_RESUME_QUEUES };
	uint32_t ids[GP_BENCH_QUEUE_MAX];
	int r;

	for (uint32_t i = 0; i < count; i++)
		ids[i] = kfd->queues[i].id;
	if (suspend) {
		trap.suspend.queue_array_ptr = (uintptr_t)ids;
		trap.suspend.num_queues = count;
	} else {
		trap.resume.queue_array_ptr = (uintptr_t)ids;
		trap.resume.num_queues = count;
	}
	r = bench_trap(kfd, &trap);
	for (uint32_t i = 0; r >= 0 && i < count; i++)
		if (ids[i] & (GP_KFD_QUEUE_ERROR | GP_KFD_QUEUE_INVALID))
			r = -EIO;
	return r < 0 ? r : 0;
}

int gp_bench_kfd_suspend(struct gp_bench_kfd *kfd, uint32_t count)
{
	return bench_change(kfd, count, true);
}

int gp_bench_kfd_resume(struct gp_bench_kfd *kfd, uint32_t count)
{
	return bench_change(kfd, count, false);
}
