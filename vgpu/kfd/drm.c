/* SPDX-License-Identifier: MIT */
/* The render node: the few DRM queries that libdrm and the thunk make. */
#include <amdgpu_drm.h>
#include <drm.h>
#include <errno.h>
#include <string.h>
#include "vgpu/kfd/call.h"
#include <gpreempt/userq.h>
#include "vgpu/kfd/queue.h"
#include "vgpu/node/memory.h"
#include "vgpu/node/process.h"

#define DRM_NR_VERSION    0x00u
#define DRM_NR_GET_CLIENT 0x05u
#define DRM_NR_GET_CAP    0x0cu
#define DRM_NR_INFO       (DRM_COMMAND_BASE + DRM_AMDGPU_INFO)
#define DRM_NR_GEM_CLOSE  0x09u
#define DRM_NR_GEM_CREATE (DRM_COMMAND_BASE + DRM_AMDGPU_GEM_CREATE)
#define DRM_NR_GEM_MMAP   (DRM_COMMAND_BASE + DRM_AMDGPU_GEM_MMAP)
#define DRM_DOORBELLS     1u /* the one object there is on a render node: the caller's doorbells */
#define DRM_MQD_COMPUTE   8u /* struct drm_amdgpu_userq_mqd_compute_gfx11: one address */

static int drm_string(struct gp_vproc *process, const char *text, char *to, __kernel_size_t *size)
{
	size_t length = strlen(text), given = *size < length ? *size : length;

	*size = length;
	return given && to ? gp_client_write(process, (uintptr_t)to, text, given) : 0;
}

static int drm_version(struct gp_vproc *process, struct drm_version *version)
{
	version->version_major = 3;
	version->version_minor = 57;
	version->version_patchlevel = 0;
	if (drm_string(process, "amdgpu", version->name, &version->name_len) < 0 ||
	    drm_string(process, "20150101", version->date, &version->date_len) < 0 ||
	    drm_string(process, "AMD GPU (virtual, vgpud)", version->desc, &version->desc_len) < 0)
		return -EFAULT;
	return 0;
}

/* libdrm takes all render nodes that are not character devices for one device: the first GPU answers for all, which are
 * alike. */
static void drm_device(const struct gp_vdev *gpu, struct drm_amdgpu_info_device *ret_info)
{
	const struct gp_desc *desc = gpu->desc;

	*ret_info = (struct drm_amdgpu_info_device){
		.device_id = gpu->identity->device_id,
		.pci_rev = gpu->identity->revision,
		.family = AMDGPU_FAMILY_AI,
		.num_shader_engines = gpu->identity->array_count,
		.num_shader_arrays_per_engine = 1,
		.gpu_counter_freq = 100000, /* kHz */
		.max_engine_clock = (uint64_t)gp_desc_get(desc, GP_DESC_CLOCK) / 1000u,
		.max_memory_clock = gpu->identity->memory_clock * 1000u,
		.cu_active_number = (uint32_t)gp_desc_get(desc, GP_DESC_CU_COUNT),
		.num_rb_pipes = 8,
		.virtual_address_offset = 0x200000,
		.virtual_address_max = 0x7fffffff0000ull,
		.virtual_address_alignment = 4096,
		.pte_fragment_size = 0x200000,
		.gart_page_size = 4096,
		.vram_bit_width = gpu->identity->memory_width,
		.wave_front_size = 64,
		.high_va_offset = 0xffff800000000000ull,
		.high_va_max = 0xfffffffffffff000ull,
	};
}

static int drm_info(struct gp_vproc *process, const struct drm_amdgpu_info *info)
{
	struct gp_vdev *gpu = &process->node->gpus[0];
	union {
		struct drm_amdgpu_info_device device;
		struct drm_amdgpu_memory_info memory;
		uint32_t word;
		uint8_t bytes[1024];
	} answer;

	memset(&answer, 0, sizeof(answer));
	switch (info->query) {
	case AMDGPU_INFO_ACCEL_WORKING: answer.word = 1; break;
	case AMDGPU_INFO_DEV_INFO: drm_device(gpu, &answer.device); break;
	case AMDGPU_INFO_MEMORY:
		answer.memory.vram.total_heap_size = (uint64_t)gp_desc_get(gpu->desc, GP_DESC_MEMORY_SIZE);
		answer.memory.vram.usable_heap_size = answer.memory.vram.total_heap_size;
		answer.memory.vram.heap_usage = gpu->vram_used;
		answer.memory.cpu_accessible_vram = answer.memory.vram;
		answer.memory.gtt.total_heap_size = answer.memory.gtt.usable_heap_size = process->node->gtt_size;
		answer.memory.gtt.heap_usage = process->node->gtt_used;
		break;
	case AMDGPU_INFO_READ_MMR_REG: break;
	default: return -EINVAL;
	}
	return gp_client_write(process, info->return_pointer, &answer,
			       info->return_size < sizeof(answer) ? info->return_size : sizeof(answer));
}

/* Memory is KFD's here. Of DRM's own there are the doorbells, which user queues need. */
static int drm_gem(struct gp_vcall *call, struct gp_vdev *gpu)
{
	union drm_amdgpu_gem_create *create = (void *)call->arg;
	union drm_amdgpu_gem_mmap *map = (void *)call->arg;
	int r;

	if (_IOC_NR(call->command) == DRM_NR_GEM_MMAP) {
		if (map->in.handle != DRM_DOORBELLS)
			return -ENOENT;
		r = gp_vproc_bind(call->process, gpu);
		map->out.addr_ptr = gp_vqueue_doorbells(call->process, gpu);
		return r;
	}
	if (create->in.domains != GP_DRM_DOORBELL || create->in.bo_size > GP_VDOORBELL_COUNT * 8u)
		return -EINVAL;
	create->out.handle = DRM_DOORBELLS;
	return 0;
}

/* As amdgpu_userq_input_args_validate() and amdgpu_userq_create() of Linux 6.16: compute alone, and AQL packets whether
 * or not the flag says so, because ROCr of before that flag is all there is. */
static int drm_userq_create(struct gp_vcall **call, struct gp_vdev *gpu)
{
	union gp_drm_userq *args = (void *)(*call)->arg;
	const struct gp_drm_userq_in in = args->in;
	struct gp_kfd_create_queue create = {
		.base = { .ring_base_address = in.queue_va,
			  .write_pointer_address = in.wptr_va,
			  .read_pointer_address = in.rptr_va,
			  .ring_size = (uint32_t)in.queue_size,
			  .gpu_id = gpu->gpu_id,
			  .queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
			  .queue_percentage = KFD_MAX_QUEUE_PERCENTAGE,
			  .queue_priority = 7 },
	};
	int r;

	if (in.ip_type != GP_DRM_IP_COMPUTE || in.mqd_size != DRM_MQD_COMPUTE || !in.mqd ||
	    in.flags & ~(GP_DRM_USERQ_PRIORITY | GP_DRM_USERQ_SECURE | GP_DRM_USERQ_AQL))
		return -EINVAL;
	if (!in.queue_va || !in.queue_size || !in.rptr_va || !in.wptr_va || in.queue_size > UINT32_MAX)
		return -EINVAL;
	if ((in.flags & GP_DRM_USERQ_PRIORITY) == GP_DRM_USERQ_PRIORITY)
		return -EACCES; /* the highest is for administrators */
	if (in.doorbell_handle != DRM_DOORBELLS)
		return -EINVAL;
	r = gp_vqueue_create_user(call, &create, in.doorbell_offset);
	if (r >= 0) {
		args->out.queue_id = create.base.queue_id;
		args->out.pad = 0;
	}
	return r;
}

static int drm_userq(struct gp_vcall **call, struct gp_vdev *gpu)
{
	const union gp_drm_userq *args = (void *)(*call)->arg;

	switch (args->in.op) {
	case GP_DRM_USERQ_CREATE: return drm_userq_create(call, gpu);
	case GP_DRM_USERQ_FREE: return gp_vqueue_destroy(call, args->in.queue_id, true);
	default: return -EINVAL;
	}
}

int gp_vcall_drm(struct gp_vcall **call_slot, struct gp_vdev *gpu)
{
	struct gp_vcall *call = *call_slot;

	switch (_IOC_NR(call->command)) {
	case DRM_NR_VERSION: return drm_version(call->process, (void *)call->arg);
	case DRM_NR_GET_CLIENT: {
		struct drm_client *client = (void *)call->arg;

		client->auth = 1;
		client->pid = (unsigned long)call->process->pid;
		return 0;
	}
	case DRM_NR_GET_CAP: {
		struct drm_get_cap *cap = (void *)call->arg;

		cap->value = cap->capability == DRM_CAP_PRIME ? DRM_PRIME_CAP_IMPORT | DRM_PRIME_CAP_EXPORT : 0;
		return 0;
	}
	case DRM_NR_INFO: return drm_info(call->process, (void *)call->arg);
	case DRM_NR_GEM_CLOSE: return 0;
	case DRM_NR_GEM_CREATE:
	case DRM_NR_GEM_MMAP: return drm_gem(call, gpu);
	case GP_DRM_NR_USERQ: return drm_userq(call_slot, gpu);
	default: return -EINVAL;
	}
}
