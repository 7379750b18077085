/* SPDX-License-Identifier: MIT */
/* The BAR: one sparse file in memory that backs every device file, so that each mmap offset an ioctl returns is an
 * offset in it and a client's mapping is shared memory with vgpud. Consequence, by design: no isolation of memory
 * between clients. */
#ifndef GP_VGPU_BAR_H
#define GP_VGPU_BAR_H

#include <stdint.h>

#define GP_BAR_VRAM_STEP   (1ull << 40) /* GPU i's memory begins at i TiB */
#define GP_BAR_GTT         (8ull << 40)
#define GP_BAR_GTT_SIZE    (1ull << 40)
#define GP_BAR_MAPPED_SIZE (9ull << 40) /* what vgpud itself maps; doorbells are mapped one by one */
/* Doorbells: 4 GiB per process and GPU, because thunk 5.2.3 takes the low 32 bits of the offset as the place in the
 * page. */
#define GP_BAR_DOORBELL       (16ull << 40)
#define GP_BAR_DOORBELL_STEP  (1ull << 32)
#define GP_BAR_SIZE           (64ull << 40)
#define GP_BAR_DOORBELL_SLICE 8192u

struct gp_bar {
	int fd;
	uint8_t *base;
};

int gp_bar_init(struct gp_bar *bar);
void gp_bar_fini(struct gp_bar *bar);
void gp_bar_wipe(struct gp_bar *bar, uint64_t offset, uint64_t size);    /* gives the pages back; they read as zero */
uint8_t *gp_bar_map(struct gp_bar *bar, uint64_t offset, uint64_t size); /* NULL: no memory */

/* Which parts of [begin, end) are free: sorted, coalesced, first fit. */
struct gp_range_extent {
	uint64_t begin, end;
};
struct gp_range {
	struct gp_range_extent *free;
	uint32_t free_count, free_capacity;
};
int gp_range_init(struct gp_range *range, uint64_t begin, uint64_t end);
void gp_range_fini(struct gp_range *range);
int gp_range_take(struct gp_range *range, uint64_t size, uint64_t align, uint64_t *ret_begin); /* -ENOSPC */
void gp_range_give(struct gp_range *range, uint64_t begin, uint64_t size);
uint64_t gp_range_free_size(const struct gp_range *range);

#endif
