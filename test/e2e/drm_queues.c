/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a HIP program of Debian's: its compute queues are made through DRM, as ROCr does with
 * HSA_ENABLE_DRM_DEBUG=1, which Debian's does not know. The runtime asks KFD for a queue; what goes to the driver is
 * AMDGPU_USERQ on the render node the runtime has acquired its memory with. Memory, copies and events stay KFD's, as
 * the greater part of them does in AMD's own runtime. Owns nothing of the agent, which comes behind it in LD_PRELOAD
 * and sees the calls that are made here.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <linux/kfd_ioctl.h>
#include <amdgpu_drm.h>
#include <gpreempt/userq.h>

#define QUEUES_ID       0x1000u /* what the runtime is told is the number of a DRM queue: beyond KFD's */
#define QUEUES_DOORBELL 0x80u   /* the first doorbell that is taken */
#define QUEUES_GPU_MAX  8

typedef int (*queues_ioctl_t)(int fd, unsigned long request, void *arg);

static struct {
	uint32_t gpu_id, doorbells;
	int fd;
	uint64_t map;
} queues_gpus[QUEUES_GPU_MAX];
static uint32_t queues_gpu_count, queues_made;
static uint32_t queues_of[1024]; /* which GPU a DRM queue is on */

static int queues_next(int fd, unsigned long request, void *arg)
{
	static queues_ioctl_t next;

	if (!next)
		next = (queues_ioctl_t)dlsym(RTLD_NEXT, "ioctl");
	return next(fd, request, arg);
}

static uint32_t queues_gpu(uint32_t gpu_id)
{
	uint32_t i = 0;

	while (i < queues_gpu_count && queues_gpus[i].gpu_id != gpu_id)
		i++;
	return i;
}

static void queues_acquired(const struct kfd_ioctl_acquire_vm_args *args)
{
	union drm_amdgpu_gem_create create = {
		.in = { .bo_size = 8192, .alignment = 4096, .domains = GP_DRM_DOORBELL }
	};
	union drm_amdgpu_gem_mmap map = { 0 };
	uint32_t i = queues_gpu(args->gpu_id);

	if (i >= QUEUES_GPU_MAX || i < queues_gpu_count)
		return;
	queues_gpus[i].gpu_id = args->gpu_id;
	queues_gpus[i].fd = (int)args->drm_fd;
	if (queues_next(queues_gpus[i].fd, DRM_IOCTL_AMDGPU_GEM_CREATE, &create))
		return;
	queues_gpus[i].doorbells = create.out.handle;
	map.in.handle = create.out.handle;
	if (queues_next(queues_gpus[i].fd, DRM_IOCTL_AMDGPU_GEM_MMAP, &map))
		return;
	queues_gpus[i].map = map.out.addr_ptr;
	queues_gpu_count++;
}

static int queues_create(struct kfd_ioctl_create_queue_args *args)
{
	uint64_t eop = args->eop_buffer_address;
	uint32_t gpu = queues_gpu(args->gpu_id),
		 doorbell = QUEUES_DOORBELL + __atomic_fetch_add(&queues_made, 1, __ATOMIC_SEQ_CST);
	union gp_drm_userq userq = { .in = { .op = GP_DRM_USERQ_CREATE,
					     .ip_type = GP_DRM_IP_COMPUTE,
					     .flags = GP_DRM_USERQ_AQL,
					     .doorbell_offset = doorbell,
					     .queue_va = args->ring_base_address,
					     .queue_size = args->ring_size,
					     .rptr_va = args->read_pointer_address,
					     .wptr_va = args->write_pointer_address,
					     .mqd = (uintptr_t)&eop,
					     .mqd_size = sizeof(eop) } };

	if (gpu >= queues_gpu_count) {
		errno = ENODEV;
		return -1;
	}
	userq.in.doorbell_handle = queues_gpus[gpu].doorbells;
	if (queues_next(queues_gpus[gpu].fd, GP_DRM_IOC_USERQ, &userq))
		return -1;
	queues_of[userq.out.queue_id % 1024u] = gpu;
	args->queue_id = QUEUES_ID + userq.out.queue_id;
	args->doorbell_offset = queues_gpus[gpu].map + doorbell * 8u;
	return 0;
}

static int queues_free(uint32_t id)
{
	union gp_drm_userq userq = { .in = { .op = GP_DRM_USERQ_FREE, .queue_id = id - QUEUES_ID } };

	return queues_next(queues_gpus[queues_of[(id - QUEUES_ID) % 1024u]].fd, GP_DRM_IOC_USERQ, &userq);
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	void *arg;
	int r;

	va_start(list, request);
	arg = va_arg(list, void *);
	va_end(list);
	if (_IOC_TYPE(request) != 'K' || !_IOC_SIZE(request))
		return queues_next(fd, request, arg);
	switch (_IOC_NR(request)) {
	case _IOC_NR(AMDKFD_IOC_ACQUIRE_VM):
		r = queues_next(fd, request, arg);
		if (!r)
			queues_acquired(arg);
		return r;
	case _IOC_NR(AMDKFD_IOC_CREATE_QUEUE):
		return ((struct kfd_ioctl_create_queue_args *)arg)->queue_type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL ?
			       queues_create(arg) :
			       queues_next(fd, request, arg);
	case _IOC_NR(AMDKFD_IOC_DESTROY_QUEUE):
		return *(uint32_t *)arg >= QUEUES_ID ? queues_free(*(uint32_t *)arg) : queues_next(fd, request, arg);
	/* DRM has none of these. */
	case _IOC_NR(AMDKFD_IOC_UPDATE_QUEUE):
		return ((struct kfd_ioctl_update_queue_args *)arg)->queue_id >= QUEUES_ID ?
			       0 :
			       queues_next(fd, request, arg);
	case _IOC_NR(AMDKFD_IOC_SET_CU_MASK): return *(uint32_t *)arg >= QUEUES_ID ? 0 : queues_next(fd, request, arg);
	default: return queues_next(fd, request, arg);
	}
}
