/* SPDX-License-Identifier: MIT */
/* The BAR and the allocator of its ranges. Never looks at what is stored there. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <linux/falloc.h>
#include "vgpu/node/bar.h"

int gp_bar_init(struct gp_bar *bar)
{
	int fd = memfd_create("vgpu-bar", MFD_CLOEXEC | MFD_ALLOW_SEALING), r;
	uint8_t *base;

	if (fd < 0)
		return -errno;
	/* Sealed: a client that holds the file cannot shrink it under us, which would be a SIGBUS here. */
	if (ftruncate(fd, (off_t)GP_BAR_SIZE) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	base = mmap(NULL, GP_BAR_MAPPED_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (base == MAP_FAILED) {
		r = -errno;
		close(fd);
		return r;
	}
	bar->fd = fd;
	bar->base = base;
	return 0;
}

void gp_bar_fini(struct gp_bar *bar)
{
	munmap(bar->base, GP_BAR_MAPPED_SIZE);
	close(bar->fd);
}

void gp_bar_wipe(struct gp_bar *bar, uint64_t offset, uint64_t size)
{
	/* Cannot fail on a memfd of ours but for a range outside the file, which the allocator never gives out. */
	(void)!fallocate(bar->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size);
}

uint8_t *gp_bar_map(struct gp_bar *bar, uint64_t offset, uint64_t size)
{
	uint8_t *pointer = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, bar->fd, (off_t)offset);

	return pointer == MAP_FAILED ? NULL : pointer;
}

int gp_range_init(struct gp_range *range, uint64_t begin, uint64_t end)
{
	range->free = malloc(sizeof(*range->free));
	if (!range->free)
		return -ENOMEM;
	range->free[0] = (struct gp_range_extent){ begin, end };
	range->free_count = range->free_capacity = 1;
	return 0;
}

void gp_range_fini(struct gp_range *range)
{
	free(range->free);
	range->free = NULL;
}

/* Room for one extent more, made before anything changes: taking may split, giving may add. */
static int range_reserve(struct gp_range *range)
{
	struct gp_range_extent *extents;
	uint32_t capacity = range->free_capacity * 2u;

	if (range->free_count + 1u < range->free_capacity)
		return 0;
	extents = realloc(range->free, (capacity + 2u) * sizeof(*extents));
	if (!extents)
		return -ENOMEM;
	range->free = extents;
	range->free_capacity = capacity + 2u;
	return 0;
}

static void range_insert(struct gp_range *range, uint32_t index, struct gp_range_extent extent)
{
	memmove(&range->free[index + 1u], &range->free[index], (range->free_count - index) * sizeof(extent));
	range->free[index] = extent;
	range->free_count++;
}

static void range_drop(struct gp_range *range, uint32_t index)
{
	range->free_count--;
	memmove(&range->free[index], &range->free[index + 1u], (range->free_count - index) * sizeof(range->free[0]));
}

int gp_range_take(struct gp_range *range, uint64_t size, uint64_t align, uint64_t *ret_begin)
{
	/* Two in advance: the give that answers this take must not need memory. */
	if (range_reserve(range) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < range->free_count; i++) {
		struct gp_range_extent *extent = &range->free[i];
		uint64_t begin = (extent->begin + align - 1u) & ~(align - 1u);
		uint64_t old_end = extent->end;

		if (begin > extent->end || extent->end - begin < size)
			continue;
		extent->end = begin;
		if (begin + size < old_end)
			range_insert(range, i + 1u, (struct gp_range_extent){ begin + size, old_end });
		if (range->free[i].begin == range->free[i].end)
			range_drop(range, i);
		*ret_begin = begin;
		return 0;
	}
	return -ENOSPC;
}

void gp_range_give(struct gp_range *range, uint64_t begin, uint64_t size)
{
	uint32_t index = 0;
	uint64_t end = begin + size;

	while (index < range->free_count && range->free[index].begin < begin)
		index++;
	if (index && range->free[index - 1u].end == begin) {
		range->free[index - 1u].end = end;
		if (index < range->free_count && range->free[index].begin == end) {
			range->free[index - 1u].end = range->free[index].end;
			range_drop(range, index);
		}
	} else if (index < range->free_count && range->free[index].begin == end) {
		range->free[index].begin = begin;
	} else if (range_reserve(range) == 0) {
		range_insert(range, index, (struct gp_range_extent){ begin, end });
	}
	/* No memory for the extent: the range is lost to the allocator, never handed out twice. */
}

uint64_t gp_range_free_size(const struct gp_range *range)
{
	uint64_t size = 0;

	for (uint32_t i = 0; i < range->free_count; i++)
		size += range->free[i].end - range->free[i].begin;
	return size;
}
