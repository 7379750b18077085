/* SPDX-License-Identifier: MIT */
/*
 * How fast instructions are executed: an inner product as tiled matrix multiplications have it (loads from LDS and
 * fused multiply-adds), by each build of the lanes, beside the same arithmetic as a loop in C. Figures are ratios.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "vgpu/isa/isa.h"

#define BENCH_VA    0x1000u
#define BENCH_LOOPS 20000u
#define BENCH_LDS   16384u

/* s_mov_b32 s0, 0; then: ds_read2_b32 v[4:5], v0; ds_read2_b32 v[6:7], v1 offset1:16; v_fmac_f32 v2, v4, v6;
 * v_fmac_f32 v2, v5, v7; v_fmac_f32 v3, v4, v7; v_fmac_f32 v3, v5, v6; v_add_f32 v8, v2, v3; s_add_i32 s0, s0, 1;
 * s_cmp_lg_u32 s0, s1; s_cbranch_scc1; s_endpgm */
static const uint32_t bench_code[256] = {
	0xbe800080, 0xd86e0100, 0x04000000, 0xd86e1000, 0x06000001, 0x76040d04, 0x76040f05,
	0x76060f04, 0x76060d05, 0x02100702, 0x81008100, 0xbf070100, 0xbf85fff4, 0xbf810000,
};

static int bench_find(void *context, uint64_t va, struct gp_isa_range *ret_range)
{
	(void)context;
	if (va - BENCH_VA >= sizeof(bench_code))
		return -1;
	*ret_range = (struct gp_isa_range){ BENCH_VA, sizeof(bench_code), (uint8_t *)(uintptr_t)bench_code, false };
	return 0;
}

static double bench_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Lane instructions per second. */
static double bench_isa(enum gp_isa_variant variant, float *ret_sum)
{
	struct gp_isa_bus bus = { .find = bench_find };
	struct gp_isa_group group = { .bus = &bus, .lds_size = BENCH_LDS, .wave_count = 4 };
	double begin, seconds;
	uint64_t used;

	if (!gp_isa_select(variant))
		return 0;
	group.code = gp_isa_code_create(GP_ISA_GFX90A, 16);
	group.lds = calloc(1, BENCH_LDS);
	for (uint32_t i = 0; i < BENCH_LDS / 4u; i++) {
		float x = (float)(i % 17u) * 0.25f;

		memcpy(group.lds + i * 4u, &x, 4);
	}
	for (uint32_t i = 0; i < 4u; i++) {
		struct gp_isa_wave *wave = group.waves[i] = gp_isa_wave_create(16);

		wave->pc = BENCH_VA;
		wave->mode = 0xf0;
		wave->s[1] = BENCH_LOOPS;
		gp_isa_put64(wave, GP_ISA_EXEC, UINT64_MAX);
		for (uint32_t lane = 0; lane < 64u; lane++) {
			wave->v[0][lane] = lane / 16u * 64u;
			wave->v[1][lane] = lane % 16u * 4u + 4096u;
		}
	}
	begin = bench_now();
	gp_isa_group_run(&group, UINT64_MAX, &used);
	seconds = bench_now() - begin;
	memcpy(ret_sum, &group.waves[0]->v[8][5], 4);
	return (double)group.lanes_executed / seconds;
}

/* The same arithmetic for 256 items, in C. Lane operations per second, counted as above. */
#if defined(__x86_64__)
__attribute__((target("avx2,fma")))
#endif
static double
bench_native(float *ret_sum)
{
	static float lds[BENCH_LDS / 4u], a[256], b[256];
	double begin;

	for (uint32_t i = 0; i < BENCH_LDS / 4u; i++)
		lds[i] = (float)(i % 17u) * 0.25f;
	begin = bench_now();
	for (uint32_t k = 0; k < BENCH_LOOPS; k++) {
		for (uint32_t i = 0; i < 256u; i++) {
			const float *x = lds + i % 64u / 16u * 16u, *y = lds + 1024 + i % 16u;

			a[i] = fmaf(x[1], y[16], fmaf(x[0], y[0], a[i]));
			b[i] = fmaf(x[1], y[0], fmaf(x[0], y[16], b[i]));
		}
		__asm__ volatile("" ::: "memory");
	}
	*ret_sum = a[5] + b[5];
	return 7.0 * 256.0 * BENCH_LOOPS / (bench_now() - begin);
}

int main(void)
{
	static const char *const names[] = { "base", "AVX2", "AVX-512" };
	float expected, sum = 0;
	double native = bench_native(&expected);

	printf("a loop in C: %.2f G lane operations/s\n", native * 1e-9);
	for (int i = 0; i < 3; i++) {
		double rate = bench_isa((enum gp_isa_variant)i, &sum);

		if (rate > 0)
			printf("executed, %s: %.2f G lane instructions/s, %.2f of the loop's; sum %s\n", names[i],
			       rate * 1e-9, rate / native, sum == expected ? "equal" : "DIFFERENT");
		else
			printf("executed, %s: this processor does not have it\n", names[i]);
	}
	return 0;
}
