/* SPDX-License-Identifier: MIT */
/*
 * cores FILE DESCRIPTION: the compute units of the software GPU. It takes dispatches from the device
 * (test/kernel/device/cores.h), executes their instructions as vgpud does (vgpu/execute, vgpu/isa), and gives them
 * back. What vgpud's node gives to vgpu/execute is given here: memory through the device's file, a clock, what to do at
 * a fault.
 *
 * FILE: softgpu/cores in debugfs. DESCRIPTION: of the device, as the model has it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include "lib/error.h"
#include "model/desc.h"
#include "test/kernel/device/cores.h"
#include "vgpu/execute/execute.h"
#include "vgpu/kfd/event.h"
#include "vgpu/node/identity.h"
#include "vgpu/node/memory.h"

static const struct gp_identity identity = { .name = "vega20", .gfx = "gfx906", .gfx_version = 90006 };
static struct gp_vnode node = { .dilation = 1 };
static struct gp_vdev gpu = { .node = &node, .identity = &identity };
static int device;

/* ---- what vgpu/execute needs of a node ---- */

int gp_vm_read(struct gp_vproc *process, const struct gp_vdev *of, uint64_t va, void *ret_data, size_t size)
{
	(void)of;
	if (pread(device, ret_data, size, (off_t)va) == (ssize_t)size)
		return 0;
	process->fault_va = va;
	return -EFAULT;
}

int gp_vm_write(struct gp_vproc *process, const struct gp_vdev *of, uint64_t va, const void *data, size_t size)
{
	(void)of;
	if (pwrite(device, data, size, (off_t)va) == (ssize_t)size)
		return 0;
	process->fault_va = va;
	return -EFAULT;
}

/* All memory is reached through the file, page by page: vgpu/execute copies it. */
struct gp_vbo *gp_vm_find(struct gp_vproc *process, const struct gp_vdev *of, uint64_t va)
{
	struct soft_cores_piece piece = { .address = va };
	static struct gp_vbo bo;

	(void)process;
	(void)of;
	if (ioctl(device, SOFT_CORES_FIND, &piece))
		return NULL;
	bo = (struct gp_vbo){ .va = piece.base, .size = piece.size, .user = piece.base, .flags = ~0u };
	return &bo;
}

void *gp_vm_pointer(struct gp_vproc *process, const struct gp_vdev *of, uint64_t va, uint64_t size)
{
	(void)process;
	(void)of;
	(void)va;
	(void)size;
	return NULL;
}

uint64_t gp_vnode_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t gp_vnode_ticks(const struct gp_vnode *of, uint64_t device_ns)
{
	(void)of;
	return device_ns / 10u;
}

void gp_vnode_log(const struct gp_vnode *of, int level, const char *format, ...)
{
	va_list arguments;

	(void)of;
	(void)level;
	va_start(arguments, format);
	fputs("cores: ", stdout);
	vprintf(format, arguments);
	putchar('\n');
	va_end(arguments);
}

void gp_vproc_note_kernel(struct gp_vproc *process, uint64_t fingerprint, enum gp_vproc_kernel kind)
{
	(void)process;
	(void)fingerprint;
	(void)kind;
}

/* A queue with an error is not executed further: execute() says so to the device. */
void gp_vqueue_fault(struct gp_vqueue *queue, uint64_t va)
{
	printf("cores: a kernel came to 0x%llx, where it has no memory\n", (unsigned long long)va);
	queue->error = 1;
}

void gp_vqueue_wave_error(struct gp_vqueue *queue, uint64_t mask, uint32_t signal)
{
	(void)mask;
	(void)signal;
	queue->error = 1;
}

/* A kernel that wants to interrupt the host (printf) is not one for this device. */
void gp_vevent_interrupt(struct gp_vproc *process, uint32_t id)
{
	printf("cores: a kernel interrupts the host, event %u: nobody hears it\n", id);
	process->queues[0]->error = 1;
}

/* ---- dispatches ---- */

/* The dimensions of a packet. Returns the items of a workgroup, or 0. */
static uint32_t dimensions(const struct gp_aql_kernel *packet, struct gp_vdispatch *dispatch)
{
	struct gp_kernel_call *call = &dispatch->kernel;
	uint32_t count = packet->setup & 3u, size = 1;
	uint64_t workgroups = 1;

	for (uint32_t i = 0; i < 3u; i++) {
		uint32_t group = i < count ? packet->workgroup_size[i] : 1u,
			 grid = i < count ? packet->grid_size[i] : 1u;

		if (!group || !grid || group > 1024u)
			return 0;
		call->workgroup_size[i] = group;
		call->grid_size[i] = grid;
		call->workgroups[i] = (grid - 1u) / group + 1u;
		size *= group;
		workgroups *= call->workgroups[i];
		if (size > 1024u || workgroups > 1u << 20)
			return 0;
	}
	dispatch->workgroups = (uint32_t)workgroups;
	return size;
}

/* Returns whether all of it was executed. */
static bool execute(const struct soft_cores_dispatch *from)
{
	struct gp_vdispatch dispatch = { .index = from->index, .used = true, .started = true, .ended = true };
	static struct gp_vproc process; /* too large for a stack */
	struct gp_vqueue queue = { .process = &process, .gpu = &gpu, .rptr_va = from->rptr_address };
	struct gp_execution *execution = NULL;
	struct gp_gpu_kernel kernel;
	uint32_t size;
	bool is_over = false;

	process = (struct gp_vproc){ .node = &node, .queues = { &queue } };
	memcpy(dispatch.packet.bytes, from->packet, sizeof(from->packet));
	dispatch.kernel.process = &process;
	dispatch.kernel.gpu = &gpu;
	dispatch.kernel.kernarg = dispatch.packet.kernel.kernarg_address;
	size = dimensions(&dispatch.packet.kernel, &dispatch);
	kernel = (struct gp_gpu_kernel){ .workgroups = dispatch.workgroups,
					 .waves = (size + GP_ISA_LANES - 1u) / GP_ISA_LANES,
					 .vgprs = 64,
					 .lds_size = dispatch.packet.kernel.group_size };
	if (size && gp_execute_create(&queue, &dispatch, &kernel, &execution) == 0) {
		while (!queue.error && !gp_execute_is_over(execution))
			gp_execute_run(execution, UINT64_MAX);
		is_over = !queue.error;
	}
	gp_execute_destroy(execution);
	gp_execute_forget(&process);
	return is_over;
}

int main(int argc, char **argv)
{
	static struct gp_desc desc;
	struct soft_cores_dispatch dispatch;
	struct gp_error error = { 0 };

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 3 || gp_desc_load(argv[2], &desc, &error)) {
		printf("cores: %s\n", argc < 3 ? "usage: cores FILE DESCRIPTION" : error.text);
		return 2;
	}
	gpu.desc = &desc;
	device = open(argv[1], O_RDWR);
	if (device < 0) {
		printf("cores: %s: %s\n", argv[1], strerror(errno));
		return 2;
	}
	while (ioctl(device, SOFT_CORES_NEXT, &dispatch) == 0) {
		__u32 failed = !execute(&dispatch);

		if (failed)
			printf("cores: a kernel was not executed\n");
		if (ioctl(device, SOFT_CORES_DONE, &failed))
			break;
	}
	printf("cores: %s\n", strerror(errno));
	return 1;
}
