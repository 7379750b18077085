/* SPDX-License-Identifier: MIT */
#include "kfd.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CONTROL_STACK 20480u /* as the topology of a 60 CU gfx906 says: 40 waves of 8 bytes each, and a header */

int kfd = -1;
uint32_t gpu_id;
static uint32_t control_stack = CONTROL_STACK, save_size, debug_size = 65536;

void die(const char *what)
{
	printf("FAIL %s: %s\n", what, strerror(errno));
	exit(2);
}

double now_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

/* A figure of the GPU's topology node. */
static uint32_t node_property(const char *name)
{
	char key[64];
	unsigned long long value, found = 0;
	FILE *file;

	for (int node = 0; node < 8 && !found; node++) {
		char path[96];

		snprintf(path, sizeof(path), "/sys/class/kfd/kfd/topology/nodes/%d/properties", node);
		file = fopen(path, "r");
		if (!file)
			break;
		while (fscanf(file, "%63s %llu", key, &value) == 2)
			if (!strcmp(key, name) && value)
				found = value;
		fclose(file);
	}
	return (uint32_t)found;
}

void kfd_open(void)
{
	struct kfd_process_device_apertures apertures[8] = { 0 };
	struct kfd_ioctl_get_process_apertures_new_args nodes = { .kfd_process_device_apertures_ptr =
									  (uintptr_t)apertures,
								  .num_of_nodes = 8 };
	struct kfd_ioctl_acquire_vm_args vm = { 0 };
	const char *which = getenv("GPU");
	unsigned index = which ? (unsigned)atoi(which) % 8 : 0;
	char path[32];
	int drm;

	/* So that no two programs have a ring at the same address: the driver looks for a queue to reset by its ring's
	 * alone. Elsewhere addresses are the same in each boot: they are in the packets that are compared. */
	if (getenv("APART"))
		mmap(NULL, ((size_t)getpid() % 4096 + 1) * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	if (kfd < 0)
		die("/dev/kfd");
	nodes.num_of_nodes = index + 1;
	if (ioctl(kfd, AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &nodes))
		die("GET_PROCESS_APERTURES_NEW");
	gpu_id = apertures[index].gpu_id;
	snprintf(path, sizeof(path), "/dev/dri/renderD%u", 128 + index);
	drm = open(path, O_RDWR | O_CLOEXEC);
	if (drm < 0)
		die(path);
	vm.drm_fd = (uint32_t)drm;
	vm.gpu_id = gpu_id;
	if (ioctl(kfd, AMDKFD_IOC_ACQUIRE_VM, &vm))
		die("ACQUIRE_VM");
	save_size = node_property("cwsr_size");
	if (node_property("ctl_stack_size"))
		control_stack = node_property("ctl_stack_size");
	/* Space for the debugger behind the saved waves: 32 bytes for each wave that the device holds. */
	if (node_property("gfx_target_version") >= 100000)
		debug_size = node_property("simd_count") / node_property("simd_per_cu") * 32 * 32;
}

void *kfd_memory(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct kfd_ioctl_alloc_memory_of_gpu_args alloc = {
		.va_addr = (uintptr_t)memory,
		.size = size,
		.gpu_id = gpu_id,
		.mmap_offset = (uintptr_t)memory,
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE,
	};
	struct kfd_ioctl_map_memory_to_gpu_args map = { .device_ids_array_ptr = (uintptr_t)&gpu_id, .n_devices = 1 };

	if (memory == MAP_FAILED || ioctl(kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &alloc))
		die("ALLOC_MEMORY_OF_GPU");
	map.handle = alloc.handle;
	if (ioctl(kfd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &map))
		die("MAP_MEMORY_TO_GPU");
	return memory;
}

struct signal *kfd_signals(unsigned count)
{
	struct signal *signals =
		mmap(NULL, count * sizeof(*signals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (signals == MAP_FAILED)
		die("signals");
	return signals;
}

void queue_prepare(struct queue *queue, unsigned priority)
{
	struct kfd_ioctl_create_queue_args *args = &queue->args;
	uint32_t save = save_size ? save_size : control_stack + 60 * 0x55000u;
	volatile uint64_t *indexes;

	memset(queue, 0, sizeof(*queue));
	queue->ring = kfd_memory(RING * sizeof(*queue->ring));
	indexes = kfd_memory(4096);
	for (unsigned i = 0; i < RING; i++)
		queue->ring[i].header = 1;
	queue->read_index = &indexes[0];
	queue->write_index = &indexes[8];
	args->ring_base_address = (uintptr_t)queue->ring;
	args->ring_size = RING * sizeof(*queue->ring);
	args->read_pointer_address = (uintptr_t)queue->read_index;
	args->write_pointer_address = (uintptr_t)queue->write_index;
	args->gpu_id = gpu_id;
	args->queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
	args->queue_percentage = 100;
	args->queue_priority = priority;
	args->eop_buffer_address = (uintptr_t)kfd_memory(4096);
	args->eop_buffer_size = 4096;
	args->ctx_save_restore_size = save;
	args->ctl_stack_size = control_stack;
	args->ctx_save_restore_address = (uintptr_t)kfd_memory((save + debug_size + 4095) & ~4095u);
}

static int queue_make(struct queue *queue)
{
	struct kfd_ioctl_create_queue_args *args = &queue->args;
	char *doorbells;

	if (ioctl(kfd, AMDKFD_IOC_CREATE_QUEUE, args))
		return -errno;
	doorbells =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, kfd, (off_t)(args->doorbell_offset & ~0x1fffull));
	if (doorbells == MAP_FAILED)
		die("doorbells");
	queue->doorbell = (volatile uint64_t *)(doorbells + (args->doorbell_offset & 0x1fff));
	return 0;
}

int queue_create(struct queue *queue, unsigned priority)
{
	queue_prepare(queue, priority);
	return queue_make(queue);
}

int copy_queue_create(struct queue *queue)
{
	queue_prepare(queue, 7);
	memset(queue->ring, 0, RING * sizeof(*queue->ring));
	queue->args.queue_type = KFD_IOC_QUEUE_TYPE_SDMA;
	return queue_make(queue);
}

/* A copy, and behind it a fence that gets the value. */
void copy_submit(struct queue *queue, void *to, const void *from, uint32_t size, volatile uint32_t *fence,
		 uint32_t value)
{
	uint64_t t = (uintptr_t)to, f = (uintptr_t)from, a = (uintptr_t)fence;
	uint32_t words[] = { 1,
			     size - 1,
			     0,
			     (uint32_t)f,
			     (uint32_t)(f >> 32),
			     (uint32_t)t,
			     (uint32_t)(t >> 32),
			     5,
			     (uint32_t)a,
			     (uint32_t)(a >> 32),
			     value };
	volatile uint32_t *ring = (volatile uint32_t *)queue->ring;
	size_t ring_size = RING * sizeof(*queue->ring);

	while (queue->written + sizeof(words) - *queue->read_index > ring_size)
		usleep(500);
	for (unsigned i = 0; i < sizeof(words) / sizeof(*words); i++)
		ring[(queue->written + i * 4) % ring_size / 4] = words[i];
	queue->written += sizeof(words);
	*queue->write_index = queue->written;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*queue->doorbell = queue->written;
}

void queue_must(struct queue *queue, unsigned priority)
{
	int r = queue_create(queue, priority);

	if (r) {
		errno = -r;
		die("CREATE_QUEUE");
	}
}

void queue_update(struct queue *queue, unsigned percent, unsigned priority)
{
	struct kfd_ioctl_update_queue_args args = {
		.queue_id = queue->args.queue_id,
		.ring_base_address = queue->args.ring_base_address,
		.ring_size = queue->args.ring_size,
		.queue_percentage = percent,
		.queue_priority = priority,
	};

	if (ioctl(kfd, AMDKFD_IOC_UPDATE_QUEUE, &args))
		die("UPDATE_QUEUE");
}

void queue_destroy(struct queue *queue)
{
	struct kfd_ioctl_destroy_queue_args args = { .queue_id = queue->args.queue_id };

	if (ioctl(kfd, AMDKFD_IOC_DESTROY_QUEUE, &args))
		die("DESTROY_QUEUE");
}

void queue_dispatch(struct queue *queue, unsigned workgroups, uint64_t workgroup_ns, struct signal *signal)
{
	struct aql_packet *packet = &queue->ring[queue->written % RING];

	while (queue->written - *queue->read_index >= RING - 1)
		usleep(500);
	packet->setup = 1;
	packet->workgroup[0] = 256;
	packet->grid[0] = workgroups * 256;
	packet->workgroup_ns = workgroup_ns;
	packet->signal = (uintptr_t)signal;
	__atomic_store_n(&packet->header, (uint16_t)2, __ATOMIC_RELEASE);
	*queue->write_index = queue->written + 1;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*queue->doorbell = queue->written++;
}

bool wait_below(struct signal *signal, int64_t value, double limit_ms)
{
	double start = now_ms();

	while (signal->value > value) {
		if (now_ms() - start > limit_ms)
			return false;
		usleep(now_ms() - start < 1000 ? 100 : 10000);
	}
	return true;
}

int sched_stats(struct kfd_sched_stats *stats)
{
	struct kfd_ioctl_sched_args args = { .op = KFD_IOC_SCHED_STATS,
					     .gpu_id = gpu_id,
					     .stats_ptr = (uintptr_t)stats,
					     .stats_size = sizeof(*stats) };

	return ioctl(kfd, AMDKFD_IOC_SCHED, &args) ? -errno : 0;
}
