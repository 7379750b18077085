/* SPDX-License-Identifier: MIT */
/*
 * Management events. A client's descriptor is one end of a socket pair: it writes a mask of events (8 bytes) and reads
 * lines, as with the driver's (Linux 6.12, kfd_smi_events.c; formats from its kfd_ioctl.h). Masks are taken in when the
 * next event happens, before it is decided whom it concerns, so nobody waits for them. A reader that does not read
 * loses events, never delays them.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "vgpu/kfd/debug.h"
#include "vgpu/kfd/smi.h"

#define SMI_LINE        96u /* KFD_SMI_EVENT_MSG_SIZE */
#define SMI_CLIENT_MAX  256u
#define SMI_ALL_PROCESS (1ull << 63)

enum smi_event {
	SMI_VMFAULT = 1,
	SMI_GPU_PRE_RESET = 3,
	SMI_GPU_POST_RESET = 4,
	SMI_QUEUE_EVICTION = 9,
	SMI_QUEUE_RESTORE = 10,
};

struct gp_smi_client {
	struct gp_smi_client *next;
	int fd;
	uint32_t gpu_index;
	pid_t pid;
	bool may_see_all; /* CAP_SYS_ADMIN when it was opened */
	uint64_t events;
};

static uint64_t smi_boot_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* False: the other end is closed. A write of less than a mask is thrown away, as the driver refuses it. */
static bool smi_take_masks(struct gp_smi_client *client)
{
	uint64_t mask;
	ssize_t size;

	while ((size = recv(client->fd, &mask, sizeof(mask), MSG_DONTWAIT)) > 0)
		if (size == (ssize_t)sizeof(mask))
			client->events = mask;
	return size < 0 && errno == EAGAIN;
}

static void smi_send(struct gp_vdev *gpu, pid_t pid, enum smi_event event, const char *text)
{
	struct gp_smi_client **link = &gpu->node->smi_clients;

	while (*link) {
		struct gp_smi_client *client = *link;
		bool mine = !pid || client->pid == pid;

		if (!smi_take_masks(client)) {
			*link = client->next;
			close(client->fd);
			free(client);
			continue;
		}
		link = &client->next;
		if (client->gpu_index != gpu->index || !(client->events & 1ull << (event - 1)))
			continue;
		if (mine || (client->may_see_all && client->events & SMI_ALL_PROCESS))
			(void)!send(client->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
	}
}

__attribute__((format(printf, 4, 5))) static void smi_event(struct gp_vdev *gpu, pid_t pid, enum smi_event event,
							    const char *format, ...)
{
	char text[SMI_LINE];
	va_list args;
	int size;

	if (!gpu->node->smi_clients)
		return;
	size = snprintf(text, sizeof(text), "%x ", event);
	va_start(args, format);
	vsnprintf(text + size, sizeof(text) - (size_t)size, format, args);
	va_end(args);
	smi_send(gpu, pid, event, text);
}

void gp_smi_vm_fault(struct gp_vdev *gpu, const struct gp_vproc *process)
{
	char path[64], name[32] = "";
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/%d/comm", process->pid);
	stream = fopen(path, "re");
	if (stream) {
		if (!fgets(name, sizeof(name), stream))
			name[0] = 0;
		fclose(stream);
	}
	name[strcspn(name, "\n")] = 0;
	smi_event(gpu, process->pid, SMI_VMFAULT, "%x:%s\n", (unsigned int)process->pid, name);
}

void gp_smi_reset(struct gp_vdev *gpu, bool after)
{
	if (!after)
		gpu->reset_count++;
	smi_event(gpu, 0, after ? SMI_GPU_POST_RESET : SMI_GPU_PRE_RESET, "%x %s\n", gpu->reset_count,
		  after ? "" : "vgpud");
}

void gp_smi_eviction(struct gp_vdev *gpu, const struct gp_vproc *process, uint32_t trigger)
{
	smi_event(gpu, process->pid, SMI_QUEUE_EVICTION, "%" PRIu64 " -%d %x %u\n", smi_boot_ns(), process->pid,
		  gpu->gpu_id, trigger);
}

void gp_smi_restore(struct gp_vdev *gpu, const struct gp_vproc *process)
{
	smi_event(gpu, process->pid, SMI_QUEUE_RESTORE, "%" PRIu64 " -%d %x %c\n", smi_boot_ns(), process->pid,
		  gpu->gpu_id, '0');
}

int gp_smi_open(struct gp_vcall *call, uint32_t gpu_id, uint32_t *ret_fd)
{
	struct gp_vnode *node = call->process->node;
	struct gp_vdev *gpu = gp_vnode_gpu(node, gpu_id);
	struct gp_smi_client *client;
	uint32_t count = 0;
	int fds[2], r;

	if (!gpu)
		return -EINVAL;
	if (!node->install_fd)
		return -EOPNOTSUPP;
	for (client = node->smi_clients; client; client = client->next)
		count++;
	if (count >= SMI_CLIENT_MAX)
		return -ENOMEM;
	/* Reads of the driver's file never block. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		return -errno;
	client = calloc(1, sizeof(*client));
	r = client ? node->install_fd(node, call, fds[1]) : -ENOMEM;
	close(fds[1]);
	if (r < 0) {
		close(fds[0]);
		free(client);
		return r;
	}
	*client = (struct gp_smi_client){ .next = node->smi_clients,
					  .fd = fds[0],
					  .gpu_index = gpu->index,
					  .pid = call->process->pid,
					  .may_see_all = gp_debug_is_admin(call->thread) };
	node->smi_clients = client;
	*ret_fd = (uint32_t)r;
	return 0;
}

void gp_smi_close_all(struct gp_vnode *node)
{
	while (node->smi_clients) {
		struct gp_smi_client *client = node->smi_clients;

		node->smi_clients = client->next;
		close(client->fd);
		free(client);
	}
}
