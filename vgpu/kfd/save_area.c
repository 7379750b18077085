/* SPDX-License-Identifier: MIT */
/*
 * The size of context-save areas (Linux 6.12, kfd_queue.c, kfd_queue_ctx_save_restore_size() and
 * kfd_queue_acquire_buffers()).
 *
 * Two things are let pass that the driver refuses: a queue without any area, whose waves vgpud keeps to itself; and, on
 * a device of several XCCs, the one large area of a runtime that knows none and was told that the device is another.
 */
#include "vgpu/kfd/save_area.h"
#include <errno.h>
#include "vgpu/node/memory.h"

#define SAVE_AREA_VGPRS           0x80000u /* of a CU, gfx908 and later */
#define SAVE_AREA_SGPRS           0x4000u
#define SAVE_AREA_LDS             0x10000u
#define SAVE_AREA_HWREGS          0x1000u
#define SAVE_AREA_HEAD            40u
#define SAVE_AREA_STACK_WAVE      8u
#define SAVE_AREA_DEBUG_WAVE      32u
#define SAVE_AREA_WAVES_OF_CU     40u
#define SAVE_AREA_WAVES_OF_ENGINE 512u

static uint32_t save_area_page(uint32_t size)
{
	return (size + 4095u) & ~4095u;
}

static void save_area_make(uint32_t cu_count, uint32_t engine_count, struct gp_save_area *ret_area)
{
	uint32_t waves = cu_count * SAVE_AREA_WAVES_OF_CU;

	if (waves > engine_count * SAVE_AREA_WAVES_OF_ENGINE)
		waves = engine_count * SAVE_AREA_WAVES_OF_ENGINE;
	ret_area->control_stack_size = save_area_page(SAVE_AREA_HEAD + waves * SAVE_AREA_STACK_WAVE + 8u);
	ret_area->size =
		ret_area->control_stack_size +
		save_area_page(cu_count * (SAVE_AREA_VGPRS + SAVE_AREA_SGPRS + SAVE_AREA_LDS + SAVE_AREA_HWREGS));
	ret_area->debug_size = (waves * SAVE_AREA_DEBUG_WAVE + 63u) & ~63u;
}

void gp_save_area_of(const struct gp_vdev *gpu, struct gp_save_area *ret_area)
{
	uint32_t xcc_count = (uint32_t)gp_desc_get(gpu->desc, GP_DESC_XCC_COUNT);
	uint32_t cu_count = (uint32_t)gp_desc_get(gpu->desc, GP_DESC_CU_COUNT);

	ret_area->xcc_count = xcc_count ? xcc_count : 1u;
	save_area_make(cu_count / ret_area->xcc_count, gpu->identity->array_count, ret_area);
}

int gp_save_area_check(struct gp_vproc *process, const struct gp_vdev *gpu,
		       const struct kfd_ioctl_create_queue_args *args)
{
	struct gp_save_area area, whole = { 0 };
	const struct gp_vbo *bo;
	uint64_t total;

	if (!args->ctx_save_restore_address && !args->ctx_save_restore_size)
		return 0;
	gp_save_area_of(gpu, &area);
	total = (uint64_t)(area.size + area.debug_size) * area.xcc_count;
	save_area_make((uint32_t)gp_desc_get(gpu->desc, GP_DESC_CU_COUNT), gpu->identity->array_count, &whole);
	bo = gp_vm_find(process, gpu, args->ctx_save_restore_address);
	if (!bo || bo->va != args->ctx_save_restore_address)
		return -EINVAL;
	if (args->ctl_stack_size == area.control_stack_size && args->ctx_save_restore_size == area.size)
		return bo->size >= total ? 0 : -EINVAL;
	if (area.xcc_count > 1u && args->ctl_stack_size == whole.control_stack_size &&
	    args->ctx_save_restore_size == whole.size && bo->size >= whole.size)
		return 0;
	gp_vnode_log(
		process->node, 1,
		"process %d: a save area of %u bytes, %u of them control stack, in %llu of memory: the driver wants %u, %u and %llu",
		process->pid, args->ctx_save_restore_size, args->ctl_stack_size, (unsigned long long)bo->size,
		area.size, area.control_stack_size, (unsigned long long)total);
	return -EINVAL;
}
