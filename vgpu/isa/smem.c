/* SPDX-License-Identifier: MIT */
/* Scalar memory: loads, stores, clocks, caches. In the table a is the words of the data, b what kind. */
#include "vgpu/isa/internal.h"

enum { SMEM_LOAD = 1, SMEM_BUFFER_LOAD, SMEM_STORE, SMEM_BUFFER_STORE };

/* bit 0 of control: an immediate offset; bit 1: a register's as well. */
static uint64_t smem_offset(const struct gp_isa_wave *wave, const struct isa_instruction *in)
{
	uint64_t offset = in->control & 1u ? (uint64_t)(int64_t)in->offset : 0;

	if (in->control & 2u)
		offset += gp_isa_scalar(wave, in, 1);
	return offset;
}

static enum isa_result smem_access(struct gp_isa_group *group, struct gp_isa_wave *wave,
				   const struct isa_instruction *in)
{
	uint64_t base = gp_isa_get64(wave, in->source[0]), offset = smem_offset(wave, in), va;
	bool is_buffer = in->op->b == SMEM_BUFFER_LOAD || in->op->b == SMEM_BUFFER_STORE;
	bool is_store = in->op->b == SMEM_STORE || in->op->b == SMEM_BUFFER_STORE;
	uint32_t size = in->op->a * 4u, words[16] = { 0 };

	if (is_buffer) {
		uint64_t stride = base >> 48 & 0x3fffu, count = wave->s[in->source[0] + 2u];
		uint64_t limit = stride ? stride * count : count;

		base &= 0xffffffffffffull;
		offset &= 0xffffffffull;
		/* Beyond the end a buffer reads as 0 and takes nothing. */
		if ((offset & ~3ull) + size > limit) {
			if (!is_store)
				memcpy(&wave->s[in->sdst], words, size);
			return ISA_NEXT;
		}
	}
	va = (base + offset) & ~3ull;
	if (is_store) {
		memcpy(words, &wave->s[in->sdst], size);
		return gp_isa_bus_write(group->bus, va, words, size) < 0 ? ISA_FAULT : ISA_NEXT;
	}
	if (gp_isa_bus_read(group->bus, va, words, size) < 0)
		return ISA_FAULT;
	memcpy(&wave->s[in->sdst], words, size);
	return ISA_NEXT;
}

static enum isa_result smem_clock(struct gp_isa_group *group, struct gp_isa_wave *wave,
				  const struct isa_instruction *in)
{
	gp_isa_put64(wave, in->sdst,
		     group->clock ? group->clock(group->context, in->op->number == 37u) : group->executed);
	return ISA_NEXT;
}

/* There are no caches. */
static enum isa_result smem_nothing(struct gp_isa_group *group, struct gp_isa_wave *wave,
				    const struct isa_instruction *in)
{
	return ISA_NEXT;
}

/* clang-format off */
const struct isa_op gp_isa_smem[] = {
	{ "s_load_dword", smem_access, 0, 1, SMEM_LOAD }, { "s_load_dwordx2", smem_access, 1, 2, SMEM_LOAD },
	{ "s_load_dwordx4", smem_access, 2, 4, SMEM_LOAD }, { "s_load_dwordx8", smem_access, 3, 8, SMEM_LOAD },
	{ "s_load_dwordx16", smem_access, 4, 16, SMEM_LOAD },
	{ "s_buffer_load_dword", smem_access, 8, 1, SMEM_BUFFER_LOAD }, { "s_buffer_load_dwordx2", smem_access, 9, 2, SMEM_BUFFER_LOAD },
	{ "s_buffer_load_dwordx4", smem_access, 10, 4, SMEM_BUFFER_LOAD }, { "s_buffer_load_dwordx8", smem_access, 11, 8, SMEM_BUFFER_LOAD },
	{ "s_buffer_load_dwordx16", smem_access, 12, 16, SMEM_BUFFER_LOAD },
	{ "s_store_dword", smem_access, 16, 1, SMEM_STORE }, { "s_store_dwordx2", smem_access, 17, 2, SMEM_STORE },
	{ "s_store_dwordx4", smem_access, 18, 4, SMEM_STORE },
	{ "s_buffer_store_dword", smem_access, 24, 1, SMEM_BUFFER_STORE }, { "s_buffer_store_dwordx2", smem_access, 25, 2, SMEM_BUFFER_STORE },
	{ "s_buffer_store_dwordx4", smem_access, 26, 4, SMEM_BUFFER_STORE },
	{ "s_dcache_inv", smem_nothing, 32, 0, 0 }, { "s_dcache_wb", smem_nothing, 33, 0, 0 },
	{ "s_dcache_inv_vol", smem_nothing, 34, 0, 0 }, { "s_dcache_wb_vol", smem_nothing, 35, 0, 0 },
	{ "s_memtime", smem_clock, 36, 2, 0 }, { "s_memrealtime", smem_clock, 37, 2, 0 }, { 0 },
};
/* clang-format on */
