/* SPDX-License-Identifier: MIT */
/* The KFD client of the tests. Shares no code with the node: layouts are written down again here. */
#include "test/e2e/vgpu_client.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CLIENT_WRITABLE (1u << 31) /* KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE, which shifts a signed 1 */

static int test_count, failure_count, complaint_count;

static void die(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

int client_ioctl(const struct client *client, unsigned long request, void *arg)
{
	int r;

	do
		r = ioctl(client->kfd, request, arg);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

void client_open(struct client *client)
{
	struct kfd_process_device_apertures apertures[8];
	struct kfd_ioctl_get_process_apertures_new_args args = { (uintptr_t)apertures, 8, 0 };

	client->kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	client->render = open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
	if (client->kfd < 0 || client->render < 0)
		die("open");
	if (client_ioctl(client, AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &args) < 0 || !args.num_of_nodes)
		die("apertures");
	client->gpu_count = args.num_of_nodes;
	for (uint32_t i = 0; i < args.num_of_nodes; i++) {
		struct kfd_ioctl_acquire_vm_args vm = { (uint32_t)client->render, apertures[i].gpu_id };

		client->gpu_ids[i] = apertures[i].gpu_id;
		if (client_ioctl(client, AMDKFD_IOC_ACQUIRE_VM, &vm) < 0)
			die("ACQUIRE_VM");
	}
	client->gpu_id = client->gpu_ids[0];
	client->percent = 100;
}

int client_try_alloc(struct client *client, size_t size, uint32_t flags, uint64_t va, __u64 *ret_handle,
		     __u64 *ret_offset)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args args = { .va_addr = va,
							   .size = size,
							   .gpu_id = client->gpu_id,
							   .flags = flags };
	int r = client_ioctl(client, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args);

	*ret_handle = args.handle;
	*ret_offset = args.mmap_offset;
	return r;
}

void *client_alloc(struct client *client, size_t size, uint32_t flags)
{
	void *va = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct kfd_ioctl_map_memory_to_gpu_args map = { .device_ids_array_ptr = (uintptr_t)client->gpu_ids,
							.n_devices = client->gpu_count };
	__u64 offset;

	if (va == MAP_FAILED ||
	    client_try_alloc(client, size, flags | CLIENT_WRITABLE, (uintptr_t)va, &map.handle, &offset) < 0)
		die("ALLOC_MEMORY");
	if (client_ioctl(client, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &map) < 0 || map.n_success != client->gpu_count)
		die("MAP_MEMORY");
	if (mmap(va, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, client->render, (off_t)offset) == MAP_FAILED)
		die("mmap");
	client->handle = map.handle;
	return va;
}

void client_queue_create(struct client *client, struct client_queue *queue, uint32_t packets)
{
	errno = -client_queue_try_create(client, queue, packets);
	if (errno)
		die("CREATE_QUEUE");
}

int client_queue_try_create(struct client *client, struct client_queue *queue, uint32_t packets)
{
	static const struct client_save none;

	return client_queue_try_create_with(client, queue, packets, &none);
}

int client_queue_try_create_with(struct client *client, struct client_queue *queue, uint32_t packets,
				 const struct client_save *save)
{
	struct kfd_ioctl_create_queue_args args = { .ring_size = packets * 64u,
						    .gpu_id = client->gpu_id,
						    .queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
						    .queue_percentage = client->percent,
						    .queue_priority = 7 };
	uint8_t *page;
	int r;

	*queue = (struct client_queue){ .client = client, .packets = packets, .ring_size = args.ring_size };
	queue->ring = client_alloc(client, args.ring_size, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	queue->control = client_alloc(client, 4096, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	queue->inactive = client_signal(client, 0);
	for (uint32_t i = 0; i < packets; i++)
		queue->ring[i * 64u] = 1; /* invalid until written */
	*(uint64_t *)(void *)(queue->control + 192) = (uintptr_t)queue->inactive;
	args.ring_base_address = (uintptr_t)queue->ring;
	args.ctx_save_restore_address = (uintptr_t)save->address;
	args.ctx_save_restore_size = save->size;
	args.ctl_stack_size = save->stack_size;
	args.write_pointer_address = (uintptr_t)queue->control + 56;
	args.read_pointer_address = (uintptr_t)queue->control + 128;
	r = client_ioctl(client, AMDKFD_IOC_CREATE_QUEUE, &args);
	if (r < 0)
		return r;
	page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, client->kfd,
		    (off_t)(args.doorbell_offset & ~8191ull));
	if (page == MAP_FAILED)
		die("mmap of the doorbell");
	queue->id = args.queue_id;
	queue->doorbell = (volatile uint64_t *)(void *)(page + (args.doorbell_offset & 8191u));
	return 0;
}

int client_queue_update(struct client_queue *queue, uint32_t percent)
{
	struct kfd_ioctl_update_queue_args args = { (uintptr_t)queue->ring, queue->id, queue->ring_size, percent, 7 };

	return client_ioctl(queue->client, AMDKFD_IOC_UPDATE_QUEUE, &args);
}

int client_queue_destroy(struct client_queue *queue)
{
	struct kfd_ioctl_destroy_queue_args args = { queue->id, 0 };

	return client_ioctl(queue->client, AMDKFD_IOC_DESTROY_QUEUE, &args);
}

struct client_signal *client_signal(struct client *client, int64_t value)
{
	static struct client_signal *page;
	static uint32_t used;

	if (!page || used == 4096u / sizeof(*page)) {
		page = client_alloc(client, 4096, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
		used = 0;
	}
	page[used] = (struct client_signal){ .kind = 1, .value = value };
	return &page[used++];
}

uint64_t client_kernel(struct client *client, uint32_t number)
{
	uint32_t *page = client_alloc(client, 4096, KFD_IOC_ALLOC_MEM_FLAGS_GTT);

	page[4] = 256; /* entry, relative to the descriptor */
	page[64] = 0xbf800000u | number;
	page[65] = 0xbf810000u;
	return (uintptr_t)page;
}

uint64_t client_read_index(const struct client_queue *queue)
{
	return __atomic_load_n((uint64_t *)(void *)(queue->control + 128), __ATOMIC_ACQUIRE);
}

void client_submit(struct client_queue *queue, const void *packet)
{
	uint64_t index = __atomic_fetch_add((uint64_t *)(void *)(queue->control + 56), 1, __ATOMIC_RELAXED);
	uint8_t *slot = queue->ring + index % queue->packets * 64u;
	uint32_t first;

	while (index - client_read_index(queue) >= queue->packets)
		usleep(10);
	memcpy(slot + 4, (const uint8_t *)packet + 4, 60);
	memcpy(&first, packet, 4);
	__atomic_store_n((uint32_t *)(void *)slot, first, __ATOMIC_RELEASE);
	*queue->doorbell = index;
}

struct client_packet client_dispatch(uint64_t kernel, struct client_kernarg *kernarg, struct client_signal *signal)
{
	return (struct client_packet){
		.header = 2 | 1 << 8,
		.setup = 1,
		.workgroup_size = { 64, 1, 1 },
		.grid_size = { kernarg->groups * 64u, 1, 1 },
		.kernel = kernel,
		.kernarg = (uintptr_t)kernarg,
		.signal = (uintptr_t)signal,
	};
}

void client_sleep_ms(uint32_t ms)
{
	struct timespec time = { ms / 1000u, (long)(ms % 1000u) * 1000000l };

	nanosleep(&time, NULL);
}

bool client_wait(struct client_signal *signal)
{
	for (uint32_t i = 0; i < CLIENT_WAIT_MS * 10u; i++) {
		if (__atomic_load_n(&signal->value, __ATOMIC_ACQUIRE) == 0)
			return true;
		usleep(100);
	}
	return false;
}

uint64_t client_sum(const uint32_t *counts, uint32_t count)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += __atomic_load_n(&counts[i], __ATOMIC_RELAXED);
	return sum;
}

long client_halts(const char *vgpu)
{
	char command[512], line[64] = "";
	FILE *stream;

	snprintf(command, sizeof(command),
		 "'%s' ls -v | sed -n \"/^$VGPU_NAME /,/^$/s/.* halts=\\([0-9]*\\) .*/\\1/p\"", vgpu);
	stream = popen(command, "r");
	if (!stream)
		return -1;
	if (!fgets(line, sizeof(line), stream))
		line[0] = 0;
	pclose(stream);
	return strtol(line, NULL, 10);
}

void client_complain(const char *file, int line, const char *what)
{
	printf("# %s:%d: not so: %s\n", file, line, what);
	complaint_count++;
}

void client_result(const char *name, bool good)
{
	bool fine = good && !complaint_count;

	printf("%sok %d - %s\n", fine ? "" : "not ", ++test_count, name);
	fflush(stdout);
	failure_count += !fine;
	complaint_count = 0;
}

int client_done(void)
{
	printf("1..%d\n", test_count);
	return failure_count ? 1 : 0;
}
