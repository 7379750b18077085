/* SPDX-License-Identifier: MIT */
/*
 * Memory between two processes as a descriptor (dmabuf), by the KFD ABI alone: what a kernel of the one writes the
 * other reads; it lasts as long as a piece or a descriptor of it; what is none is refused. Run inside `vgpu run`.
 */
#include <errno.h>
#include <gpreempt/kfd.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/e2e/vgpu_client.h"

#define GROUPS 256u
#define SIZE   (8u << 20)
#define EXPORT _IOWR('K', GP_KFD_NR_EXPORT_DMABUF, struct gp_kfd_export_dmabuf)

static void send_fd(int socket, int fd)
{
	char control[CMSG_SPACE(sizeof(fd))] = { 0 }, byte = 0;
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	CLIENT_CHECK(sendmsg(socket, &message, 0) == 1);
}

static int receive_fd(int socket)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	int fd = -1;

	if (recvmsg(socket, &message, 0) == 1 && CMSG_FIRSTHDR(&message))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

static void say(int socket)
{
	CLIENT_CHECK(write(socket, "", 1) == 1);
}

static void hear(int socket)
{
	char byte;

	CLIENT_CHECK(read(socket, &byte, 1) == 1);
}

static int import(struct client *client, int fd, void *va, __u64 *ret_handle)
{
	struct kfd_ioctl_import_dmabuf_args args = { .va_addr = (uintptr_t)va,
						     .gpu_id = client->gpu_id,
						     .dmabuf_fd = (uint32_t)fd };
	int r = client_ioctl(client, AMDKFD_IOC_IMPORT_DMABUF, &args);

	*ret_handle = args.handle;
	return r;
}

static void map(struct client *client, __u64 handle, bool on)
{
	struct kfd_ioctl_map_memory_to_gpu_args args = { .handle = handle,
							 .device_ids_array_ptr = (uintptr_t)client->gpu_ids,
							 .n_devices = client->gpu_count };

	CLIENT_CHECK(
		client_ioctl(client, on ? AMDKFD_IOC_MAP_MEMORY_TO_GPU : AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, &args) == 0);
}

static void drop(struct client *client, __u64 handle)
{
	struct kfd_ioctl_free_memory_of_gpu_args args = { .handle = handle };

	map(client, handle, false);
	CLIENT_CHECK(client_ioctl(client, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &args) == 0);
}

static void count(struct client *client, struct client_queue *queue, void *counts)
{
	struct client_kernarg *kernarg = client_alloc(client, 4096, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	struct client_signal *signal = client_signal(client, 1);
	struct client_packet packet;

	*kernarg = (struct client_kernarg){ (uintptr_t)counts, GROUPS, 0 };
	packet = client_dispatch(client_kernel(client, CLIENT_KERNEL_COUNT), kernarg, signal);
	client_submit(queue, &packet);
	CLIENT_CHECK(client_wait(signal));
}

/* What is left of the device's memory, once what is free is known to be. */
static uint64_t available(struct client *client)
{
	struct kfd_ioctl_get_available_memory_args args = { .gpu_id = client->gpu_id };
	void *va = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct kfd_ioctl_free_memory_of_gpu_args own = { 0 };
	__u64 offset;

	CLIENT_CHECK(
		client_try_alloc(client, 4096, KFD_IOC_ALLOC_MEM_FLAGS_VRAM, (uintptr_t)va, &own.handle, &offset) == 0);
	CLIENT_CHECK(client_ioctl(client, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &own) == 0);
	CLIENT_CHECK(client_ioctl(client, AMDKFD_IOC_AVAILABLE_MEMORY, &args) == 0);
	return args.available;
}

/* AMD's packet that waits for a value (hsa_amd_barrier_value_packet_t). */
struct value_packet {
	uint16_t header;
	uint8_t format, pad;
	uint32_t pad2;
	uint64_t signal;
	int64_t value, mask;
	uint32_t condition, pad3;
	uint64_t pad4[2], completion;
};

/* Whether each count is so high. The GPU looks, because a descriptor cannot be mapped here: a packet that waits for two
 * counts, read as one value, is over only if they are as they should be. */
static void check_counts(struct client *client, struct client_queue *queue, const uint8_t *counts, uint32_t runs)
{
	struct client_signal *signal = client_signal(client, GROUPS / 2u);

	for (uint32_t pair = 0; pair < GROUPS / 2u; pair++) {
		struct value_packet packet = {
			.header = 1u << 8,
			.format = 2,
			.signal = (uintptr_t)counts + pair * 8u - 8u, /* whose value is at 8 */
			.value = (int64_t)((uint64_t)runs << 32 | runs),
			.mask = -1,
			.completion = (uintptr_t)signal,
		};

		client_submit(queue, &packet);
	}
	CLIENT_CHECK(client_wait(signal));
}

static void importer(int socket)
{
	void *va = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct kfd_ioctl_get_dmabuf_info_args info = { 0 };
	struct client_queue queue;
	struct client client;
	__u64 handle;
	int fd, wrong[2];

	client_open(&client);
	client_queue_create(&client, &queue, 64);
	fd = receive_fd(socket);
	CLIENT_CHECK(fd >= 0);
	info.dmabuf_fd = (uint32_t)fd;
	CLIENT_CHECK(client_ioctl(&client, AMDKFD_IOC_GET_DMABUF_INFO, &info) == 0);
	CLIENT_CHECK(info.size == SIZE && info.gpu_id == client.gpu_id && info.flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM);
	CLIENT_CHECK(pipe(wrong) == 0);
	CLIENT_CHECK(import(&client, wrong[1], va, &handle) == -EINVAL);
	CLIENT_CHECK(import(&client, 1000, va, &handle) == -EBADF);
	CLIENT_CHECK(import(&client, fd, va, &handle) == 0);
	map(&client, handle, true);
	count(&client, &queue, va);
	say(socket); /* the exporter looks, and frees its piece and closes its descriptor */
	hear(socket);
	count(&client, &queue, va);
	check_counts(&client, &queue, va, 2);
	drop(&client, handle);
	CLIENT_CHECK(import(&client, fd, va, &handle) == 0); /* only the descriptor had it */
	map(&client, handle, true);
	count(&client, &queue, va);
	check_counts(&client, &queue, va, 3);
	drop(&client, handle);
	close(fd);
	CLIENT_CHECK(import(&client, fd, va, &handle) == -EBADF);
	say(socket);
	_exit(client_done());
}

/* With an argument: this front end cannot give descriptors, and must say so. */
int main(int argc, char **argv)
{
	struct gp_kfd_export_dmabuf args = { 0 }, again;
	uint64_t before, held;
	struct stat first, second;
	struct client client;
	uint32_t *counts;
	int sockets[2], status, r;
	pid_t child;

	CLIENT_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
	child = fork();
	if (!child) {
		close(sockets[0]);
		importer(sockets[1]);
	}
	close(sockets[1]);
	client_open(&client);
	before = available(&client);
	counts = client_alloc(&client, SIZE, KFD_IOC_ALLOC_MEM_FLAGS_VRAM);
	memset(counts, 0, GROUPS * sizeof(*counts));
	args.handle = client.handle;
	r = client_ioctl(&client, EXPORT, &args);
	(void)argv;
	if (argc > 1) {
		close(sockets[0]); /* the importer ends at that */
		client_result("dmabuf: this front end cannot", r == -EOPNOTSUPP);
		return client_done();
	}
	CLIENT_CHECK(r == 0);
	if (r < 0)
		return client_done();
	again = args;
	CLIENT_CHECK(client_ioctl(&client, EXPORT, &again) == 0 && again.fd != args.fd);
	CLIENT_CHECK(fstat((int)args.fd, &first) == 0 && fstat((int)again.fd, &second) == 0);
	CLIENT_CHECK(first.st_dev == second.st_dev && first.st_ino == second.st_ino); /* by which agents know it */
	close((int)again.fd);
	again.handle = ~0ull;
	CLIENT_CHECK(client_ioctl(&client, EXPORT, &again) == -EINVAL);
	send_fd(sockets[0], (int)args.fd);
	hear(sockets[0]);
	CLIENT_CHECK(client_sum(counts, GROUPS) == GROUPS);
	drop(&client, args.handle);
	close((int)args.fd);
	held = available(&client);
	CLIENT_CHECK(held + SIZE <= before);
	say(sockets[0]);
	hear(sockets[0]);
	CLIENT_CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CLIENT_CHECK(available(&client) >= held + SIZE);
	client_result("dmabuf", true);
	return client_done();
}
