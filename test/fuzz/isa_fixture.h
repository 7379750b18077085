/* SPDX-License-Identifier: MIT */
/* A workgroup of two waves with some memory, for the fuzzers of the interpreter. */
#ifndef GP_TEST_FUZZ_ISA_FIXTURE_H
#define GP_TEST_FUZZ_ISA_FIXTURE_H

#include <stdlib.h>
#include <string.h>
#include "vgpu/isa/isa.h"

#define ISA_FUZZ_CODE_VA   0x1000u
#define ISA_FUZZ_CODE_SIZE 4096u
#define ISA_FUZZ_MEMORY_VA 0x100000u
#define ISA_FUZZ_MEMORY    65536u
#define ISA_FUZZ_CONST_VA  0x200000u
#define ISA_FUZZ_CONST     4096u
#define ISA_FUZZ_LDS       4096u
#define ISA_FUZZ_ROWS      64u
#define ISA_FUZZ_ACCUM     32u

struct isa_fuzz {
	struct gp_isa_bus bus;
	struct gp_isa_group group;
	uint8_t *code, *memory, *constants, *lds;
};

static int isa_fuzz_find(void *context, uint64_t va, struct gp_isa_range *ret_range)
{
	struct isa_fuzz *fuzz = context;
	const struct gp_isa_range ranges[] = {
		{ ISA_FUZZ_CODE_VA, ISA_FUZZ_CODE_SIZE, fuzz->code, true },
		{ ISA_FUZZ_MEMORY_VA, ISA_FUZZ_MEMORY, fuzz->memory, true },
		{ ISA_FUZZ_CONST_VA, ISA_FUZZ_CONST, fuzz->constants, false },
	};

	for (uint32_t i = 0; i < 3u; i++)
		if (va - ranges[i].base < ranges[i].size) {
			*ret_range = ranges[i];
			return 0;
		}
	return -1;
}

static bool isa_fuzz_gws(void *context, struct gp_isa_group *group, uint32_t op, uint32_t resource, uint32_t value)
{
	(void)context, (void)group, (void)op, (void)resource, (void)value;
	return true;
}

/* Each buffer is of its own, so that a sanitizer sees its ends. */
static void isa_fuzz_open(struct isa_fuzz *fuzz, enum gp_isa_target target)
{
	*fuzz = (struct isa_fuzz){ .code = calloc(1, ISA_FUZZ_CODE_SIZE),
				   .memory = calloc(1, ISA_FUZZ_MEMORY),
				   .constants = calloc(1, ISA_FUZZ_CONST),
				   .lds = calloc(1, ISA_FUZZ_LDS) };
	fuzz->bus.find = isa_fuzz_find;
	fuzz->bus.context = fuzz;
	fuzz->group = (struct gp_isa_group){ .bus = &fuzz->bus,
					     .code = gp_isa_code_create(target, ISA_FUZZ_ACCUM),
					     .lds = fuzz->lds,
					     .lds_size = ISA_FUZZ_LDS,
					     .wave_count = 2,
					     .gws = isa_fuzz_gws };
	for (uint32_t i = 0; i < 2u; i++) {
		struct gp_isa_wave *wave = gp_isa_wave_create(ISA_FUZZ_ROWS);

		wave->pc = ISA_FUZZ_CODE_VA;
		wave->mode = 0xf0;
		gp_isa_put64(wave, GP_ISA_EXEC, i ? 0xffff0000ffffull : UINT64_MAX);
		wave->scratch = target == GP_ISA_GFX940 ? ISA_FUZZ_MEMORY_VA : 0;
		fuzz->group.waves[i] = wave;
	}
}

/* Registers that often are addresses of something, and sometimes are not. */
static void isa_fuzz_fill(struct isa_fuzz *fuzz, uint64_t seed)
{
	for (uint32_t w = 0; w < 2u; w++) {
		struct gp_isa_wave *wave = fuzz->group.waves[w];

		for (uint32_t i = 0; i < GP_ISA_FLAT_SCRATCH + ISA_FUZZ_ROWS; i++)
			for (uint32_t lane = 0; lane < (i < GP_ISA_FLAT_SCRATCH ? 1u : 64u); lane++) {
				uint32_t x;

				seed = seed * 6364136223846793005ull + 1442695040888963407ull;
				x = (uint32_t)(seed >> 33);
				x = x % 4u == 0  ? x :
				    x % 4u == 1u ? ISA_FUZZ_MEMORY_VA + (x >> 8) % ISA_FUZZ_MEMORY :
				    x % 4u == 2u ? (x >> 8) % ISA_FUZZ_LDS :
						   0;
				if (i < GP_ISA_FLAT_SCRATCH)
					wave->s[i] = x;
				else
					wave->v[i - GP_ISA_FLAT_SCRATCH][lane] = x;
			}
	}
}

static void isa_fuzz_close(struct isa_fuzz *fuzz)
{
	for (uint32_t i = 0; i < 2u; i++)
		gp_isa_wave_destroy(fuzz->group.waves[i]);
	gp_isa_code_destroy(fuzz->group.code);
	free(fuzz->code);
	free(fuzz->memory);
	free(fuzz->constants);
	free(fuzz->lds);
}

#endif
