/* SPDX-License-Identifier: MIT */
/*
 * Memory as executed kernels see it. Pieces of the BAR are touched where they are. Of the client's own pages copies are
 * made, for a slice: what changed goes back at its end, byte by byte, so that the client's own changes stay.
 */
#include <errno.h>
#include <string.h>
#include "vgpu/execute/execute.h"
#include "vgpu/node/memory.h"

#define MEMORY_PAGE  4096u
#define MEMORY_PAGES 64u
#define MEMORY_WRITABLE \
	0x80000000u /* KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE, which the kernel's header shifts out of an int */

struct memory_page {
	uint64_t va;
	uint32_t size;
	_Alignas(64) uint8_t before[MEMORY_PAGE];
	_Alignas(64) uint8_t now[MEMORY_PAGE];
};

/* One slice at a time is under way, of whichever execution. */
static struct memory_page memory_pages[MEMORY_PAGES];
static uint32_t memory_page_count;
static bool memory_is_open;

static int memory_write_back(struct gp_execution *execution)
{
	int r = 0;

	for (uint32_t i = 0; i < memory_page_count; i++) {
		struct memory_page *page = &memory_pages[i];

		if (!memcmp(page->before, page->now, page->size))
			continue;
		for (uint32_t at = 0; at < page->size;) {
			uint32_t end = at;

			while (end < page->size && page->before[end] != page->now[end])
				end++;
			if (end > at && gp_vm_write(execution->queue->process, execution->queue->gpu, page->va + at,
						    page->now + at, end - at) < 0)
				r = -EFAULT;
			at = end + 1u;
		}
	}
	memory_page_count = 0;
	return r;
}

void gp_execute_memory_begin(struct gp_execution *execution)
{
	memory_page_count = 0;
	memory_is_open = true;
	gp_isa_bus_flush(&execution->bus);
}

bool gp_execute_memory_is_open(void)
{
	return memory_is_open;
}

int gp_execute_memory_end(struct gp_execution *execution)
{
	memory_is_open = false;
	gp_isa_bus_flush(&execution->bus);
	return memory_write_back(execution);
}

/* A copy of the client's page at va. */
static int memory_copy(struct gp_execution *execution, const struct gp_vbo *bo, uint64_t va,
		       struct gp_isa_range *ret_range)
{
	struct memory_page *page;
	uint64_t base = va & ~(uint64_t)(MEMORY_PAGE - 1u), end = base + MEMORY_PAGE;

	if (memory_page_count == MEMORY_PAGES) {
		/* What was handed out before is not used any more: the bus asks again. */
		gp_isa_bus_flush(&execution->bus);
		if (memory_write_back(execution) < 0)
			return -EFAULT;
	}
	page = &memory_pages[memory_page_count];
	page->va = base < bo->va ? bo->va : base;
	page->size = (uint32_t)((end > bo->va + bo->size ? bo->va + bo->size : end) - page->va);
	if (gp_vm_read(execution->queue->process, execution->queue->gpu, page->va, page->now, page->size) < 0)
		return -EFAULT;
	memcpy(page->before, page->now, page->size);
	memory_page_count++;
	ret_range->base = page->va;
	ret_range->size = page->size;
	ret_range->host = page->now;
	return 0;
}

int gp_execute_find(void *context, uint64_t va, struct gp_isa_range *ret_range)
{
	struct gp_execution *execution = context;
	struct gp_vproc *process = execution->queue->process;
	const struct gp_vdev *gpu = execution->queue->gpu;
	struct gp_vbo *bo;

	if (va - GP_EXECUTE_PACKET_VA < GP_AQL_PACKET_SIZE) {
		*ret_range = (struct gp_isa_range){ GP_EXECUTE_PACKET_VA, GP_AQL_PACKET_SIZE,
						    execution->dispatch->packet.bytes, false };
		return 0;
	}
	bo = gp_vm_find(process, gpu, va);
	if (!bo)
		return -EFAULT;
	ret_range->writable = bo->flags & MEMORY_WRITABLE;
	if (bo->user)
		return memory_copy(execution, bo, va, ret_range);
	ret_range->base = bo->va;
	ret_range->size = bo->size;
	ret_range->host = gp_vm_pointer(process, gpu, bo->va, bo->size);
	return ret_range->host ? 0 : -EFAULT;
}
