/* SPDX-License-Identifier: MIT */
/* Faults on demand. Each makes happen, once, what a driver or a broken GPU would do by itself. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "vgpu/node/fault.h"
#include "vgpu/node/process.h"
#include "vgpu/kfd/queue.h"
#include "vgpu/node/reset.h"

#define FAULT_VA           0xbad000u
#define FAULT_DILATION_MAX 100000u

const char gp_fault_kinds[] =
	"vm PID QUEUE, hang PID QUEUE, close-fails PID QUEUE, close-hangs PID QUEUE, reset=GPU, ioctl=N, slow=K";

/* The next preemption of this queue: reported as failed by the firmware, or never answered. */
static int fault_close(struct gp_vqueue *queue, enum gp_gpu_fault fault)
{
	int r = gp_gpu_set_fault(queue->gpu->model, queue->model, fault);

	queue->close_fails = r == 0 && fault == GP_GPU_FAULT_CLOSE_FAILS;
	queue->close_hangs = r == 0 && fault == GP_GPU_FAULT_CLOSE_HANGS;
	return r;
}

static int fault_queue(struct gp_vqueue *queue, const char *kind)
{
	if (!strcmp(kind, "vm"))
		gp_vqueue_fault(queue, FAULT_VA);
	else if (!strcmp(kind, "hang"))
		queue->hung = true;
	else if (!strcmp(kind, "close-fails"))
		return fault_close(queue, GP_GPU_FAULT_CLOSE_FAILS);
	else if (!strcmp(kind, "close-hangs"))
		return fault_close(queue, GP_GPU_FAULT_CLOSE_HANGS);
	else
		return -EINVAL;
	return 0;
}

static void fault_slow(struct gp_vnode *node, uint32_t dilation)
{
	uint64_t device_ns = gp_vnode_device_ns(node);

	/* Device time goes on from where it is. */
	node->dilation = dilation;
	node->origin_ns = node->now_ns - device_ns * dilation;
	gp_params_write_dilation(node);
}

bool gp_fault_ioctl(struct gp_vnode *node)
{
	return node->fail_ioctl && !--node->fail_ioctl;
}

int gp_fault_inject(struct gp_vnode *node, const char *text, struct gp_error *error)
{
	char kind[32] = "";
	unsigned int value = 0, pid = 0, id = 0;
	struct gp_vproc *process;
	struct gp_vqueue *queue;

	if (sscanf(text, "%31[a-z]=%u", kind, &value) == 2) {
		if (!strcmp(kind, "reset") && value < node->gpu_count)
			return gp_vdev_reset(&node->gpus[value]) < 0 ?
				       gp_error_set(error, -EIO, "the model cannot be reset") :
				       0;
		if (!strcmp(kind, "ioctl") && value) {
			node->fail_ioctl = value;
			return 0;
		}
		if (!strcmp(kind, "slow") && value && value <= FAULT_DILATION_MAX) {
			fault_slow(node, value);
			return 0;
		}
		return gp_error_set(error, -EINVAL, "no fault '%s=%u'; there are: %s", kind, value, gp_fault_kinds);
	}
	if (sscanf(text, "%31[a-z-] %u %u", kind, &pid, &id) != 3)
		return gp_error_set(error, -EINVAL, "no fault '%s'; there are: %s", text, gp_fault_kinds);
	process = gp_vproc_find(node, (pid_t)pid);
	queue = process ? gp_vqueue_find(process, id) : NULL;
	if (!queue)
		return gp_error_set(error, -ENOENT, "process %u has no queue %u here", pid, id);
	return fault_queue(queue, kind) < 0 ?
		       gp_error_set(error, -EINVAL, "no fault '%s'; there are: %s", kind, gp_fault_kinds) :
		       0;
}
