/* SPDX-License-Identifier: MIT */
/* The render node: the few DRM queries that libdrm and the thunk make. */
#include <amdgpu_drm.h>
#include <drm.h>
#include <errno.h>
#include <string.h>
#include "vgpu/kfd/call.h"
#include "vgpu/node/memory.h"

#define DRM_NR_VERSION    0x00u
#define DRM_NR_GET_CLIENT 0x05u
#define DRM_NR_GET_CAP    0x0cu
#define DRM_NR_INFO       (DRM_COMMAND_BASE + DRM_AMDGPU_INFO)

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

int gp_vcall_drm(struct gp_vcall *call)
{
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
	default: return -EINVAL;
	}
}
