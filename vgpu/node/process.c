/* SPDX-License-Identifier: MIT */
/* Client processes. Owns the order in which their things are taken back: queues first, memory last. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "vgpu/kfd/debug.h"
#include "vgpu/kfd/gate.h"
#include "vgpu/execute/execute.h"
#include "vgpu/node/memory.h"
#include "vgpu/node/process.h"
#include "vgpu/node/share.h"
#include "vgpu/kfd/queue.h"
#include "vgpu/node/transaction.h"
#include "vgpu/files/live.h"

#define PROCESS_PIDFD_THREAD O_EXCL /* PIDFD_THREAD of Linux 6.9 */

struct gp_vproc *gp_vproc_find(struct gp_vnode *node, pid_t pid)
{
	for (struct gp_vproc *process = node->processes; process; process = process->next)
		if (process->pid == pid)
			return process;
	return NULL;
}

void gp_vproc_note_kernel(struct gp_vproc *process, uint64_t fingerprint, enum gp_vproc_kernel kind)
{
	struct gp_vproc_kernels *kernels = &process->kernels;
	uint32_t at = 0;

	while (at < kernels->count && kernels->fingerprints[at] != fingerprint)
		at++;
	if (at == GP_VPROC_KERNEL_MAX || (at < kernels->count && kind != GP_VPROC_REFUSED))
		return;
	kernels->fingerprints[at] = fingerprint;
	kernels->kinds[at] = kind;
	if (at == kernels->count)
		kernels->count++;
}

/* Once per program, unless all it ran were kernels that are described. */
static void process_tell_kernels(const struct gp_vproc *process)
{
	uint32_t counts[GP_VPROC_KERNEL_KINDS] = { 0 };

	for (uint32_t i = 0; i < process->kernels.count; i++)
		counts[process->kernels.kinds[i]]++;
	if (counts[GP_VPROC_EXECUTED] || counts[GP_VPROC_REFUSED] || counts[GP_VPROC_IDLE])
		gp_vnode_log(
			process->node, 0,
			"process %d: of its kernels %u were described, %u executed, %u refused, %u computed nothing%s",
			process->pid, counts[GP_VPROC_DESCRIBED], counts[GP_VPROC_EXECUTED], counts[GP_VPROC_REFUSED],
			counts[GP_VPROC_IDLE],
			process->kernels.count == GP_VPROC_KERNEL_MAX ? " (of the first 256)" : "");
}

bool gp_vproc_has_thread(const struct gp_vproc *process, pid_t thread)
{
	/* EPERM: the thread is there, we may only not signal it. */
	return thread == process->pid || !syscall(SYS_tgkill, process->pid, thread, 0) || errno == EPERM;
}

static int process_slot_take(struct gp_vnode *node, uint32_t *ret_slot)
{
	for (uint32_t slot = 0; slot < GP_VPROC_MAX; slot++)
		if (!(node->slots[slot / 32u] & 1u << slot % 32u)) {
			node->slots[slot / 32u] |= 1u << slot % 32u;
			*ret_slot = slot;
			return 0;
		}
	return -ENOSPC;
}

static struct gp_vproc *process_create(struct gp_vnode *node, pid_t pid)
{
	struct gp_vproc *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->events = calloc(GP_VPROC_EVENT_MAX, sizeof(*process->events));
	process->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (!process->events || process->pidfd < 0 || process_slot_take(node, &process->slot) < 0) {
		if (process->pidfd >= 0)
			close(process->pidfd);
		free(process->events);
		free(process);
		return NULL;
	}
	process->pid = process->thread = pid;
	process->memory = -1;
	process->serial = node->counters.processes_seen + 1u;
	process->debug_fd = -1;
	process->node = node;
	process->next = node->processes;
	node->processes = process;
	node->counters.processes_seen++;
	gp_live_process_add(process);
	gp_vnode_log(node, 1, "process %d: open, slot %u", pid, process->slot);
	return process;
}

bool gp_vproc_is_thread_alive(pid_t thread)
{
	char byte;
	struct iovec local = { &byte, 1 }, remote = { NULL, 1 };

	/* A thread that has ended has no memory (ESRCH); where it has some, nothing is at address 0 (EFAULT). */
	return process_vm_readv(thread, &local, 1, &remote, 1, 0) >= 0 || errno != ESRCH;
}

pid_t gp_vproc_living_thread(const struct gp_vproc *process)
{
	char path[64];
	const struct dirent *entry;
	pid_t found = 0;
	DIR *folder;

	if (gp_vproc_is_thread_alive(process->pid))
		return process->pid;
	snprintf(path, sizeof(path), "/proc/%d/task", process->pid);
	folder = opendir(path);
	while (folder && !found && (entry = readdir(folder))) {
		pid_t thread = *entry->d_name == '.' ? 0 : atoi(entry->d_name);

		found = thread && gp_vproc_is_thread_alive(thread) ? thread : 0;
	}
	if (folder)
		closedir(folder);
	return found;
}

int gp_vproc_getfd(const struct gp_vproc *process, int fd)
{
	pid_t thread = gp_vproc_living_thread(process);
	int copy, living;

	if (!thread || thread == process->pid)
		return (int)syscall(SYS_pidfd_getfd, process->pidfd, fd, 0);
	/* A thread that has ended has no descriptors either. */
	living = (int)syscall(SYS_pidfd_open, thread, PROCESS_PIDFD_THREAD);
	if (living < 0)
		return -1;
	copy = (int)syscall(SYS_pidfd_getfd, living, fd, 0);
	close(living);
	return copy;
}

pid_t gp_vproc_thread_group(pid_t thread)
{
	char path[64], line[256];
	pid_t group = thread;
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/%d/status", thread);
	stream = fopen(path, "re");
	if (!stream)
		return thread;
	while (fgets(line, sizeof(line), stream))
		if (sscanf(line, "Tgid: %d", &group) == 1)
			break;
	fclose(stream);
	return group;
}

int gp_vproc_open(struct gp_vnode *node, pid_t pid, struct gp_vproc **ret_process)
{
	struct gp_vproc *process = gp_vproc_find(node, pid);

	if (!process)
		process = process_create(node, pid);
	if (!process)
		return -ENOMEM;
	process->open_count++;
	*ret_process = process;
	return 0;
}

void gp_vproc_close(struct gp_vproc *process)
{
	if (!--process->open_count)
		gp_vproc_destroy(process);
}

int gp_vproc_bind(struct gp_vproc *process, struct gp_vdev *gpu)
{
	struct gp_vproc_device *device = &process->devices[gpu->index];
	uint64_t offset =
		GP_BAR_DOORBELL + ((uint64_t)process->slot * GP_VNODE_GPU_MAX + gpu->index) * GP_BAR_DOORBELL_STEP;

	if (device->has_model)
		return 0;
	if (!device->doorbells)
		device->doorbells = gp_bar_map(&process->node->bar, offset, GP_BAR_DOORBELL_SLICE);
	if (!device->doorbells)
		return -ENOMEM;
	if (gp_gpu_process_add(gpu->model, &device->model) < 0)
		return -ENOMEM;
	device->has_model = true;
	return 0;
}

static void process_drop_calls(struct gp_vproc *process)
{
	struct gp_vnode *node = process->node;
	struct gp_vcall **link = &node->calls;

	while (*link) {
		struct gp_vcall *call = *link;

		/* Also of its own calls: one that debugs itself is its own target. */
		if (call->target == process)
			call->target = NULL;
		if (call->process != process) {
			link = &call->next;
			continue;
		}
		/* Transactions under way refer to it: it stays, without an owner, until they finish. */
		call->process = NULL;
		if (call->kind == GP_VCALL_TRANSACTION && call->outstanding) {
			link = &call->next;
			continue;
		}
		gp_vcall_finish(node, call, -EINTR);
		link = &node->calls;
	}
}

void gp_vproc_destroy(struct gp_vproc *process)
{
	struct gp_vnode *node = process->node;
	struct gp_vproc **link = &node->processes;

	gp_vnode_log(node, 1, "process %d: gone with %u queues, %u pieces of memory", process->pid,
		     process->queue_count, process->bo_count);
	gp_debug_process_gone(process);
	gp_gate_release(process);
	gp_vqueue_destroy_all(process);
	gp_vtransaction_forget(process);
	process_drop_calls(process);
	for (uint32_t i = 0; i < node->gpu_count; i++) {
		struct gp_vproc_device *device = &process->devices[i];
		uint64_t offset =
			GP_BAR_DOORBELL + ((uint64_t)process->slot * GP_VNODE_GPU_MAX + i) * GP_BAR_DOORBELL_STEP;

		if (device->has_model)
			gp_gpu_process_remove(node->gpus[i].model, device->model, gp_vnode_device_ns(node));
		if (device->doorbells) {
			munmap(device->doorbells, GP_BAR_DOORBELL_SLICE);
			gp_bar_wipe(&node->bar, offset, GP_BAR_DOORBELL_SLICE);
		}
	}
	process_tell_kernels(process);
	gp_execute_forget(process);
	gp_vbo_free_all(process);
	gp_vshare_sweep(node); /* its descriptors are closed */
	gp_live_process_remove(process);
	while (*link != process)
		link = &(*link)->next;
	*link = process->next;
	node->slots[process->slot / 32u] &= ~(1u << process->slot % 32u);
	close(process->pidfd);
	if (process->memory >= 0)
		close(process->memory);
	if (process->debug_fd >= 0)
		close(process->debug_fd);
	free(process->events);
	free(process);
}
