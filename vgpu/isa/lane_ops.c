/* SPDX-License-Identifier: MIT */
/* The table of vector operations (lanes.def) with what each kind takes and gives, and which build of the lanes runs. */
#include "vgpu/isa/internal.h"

/* clang-format off */
#define U16 ISA_U16
#define U32 ISA_U32
#define U64 ISA_U64
#define F16 ISA_F16
#define F32 ISA_F32
#define F64 ISA_F64
#define KIND(name, count, a, b, c, to, ...) \
	static const struct isa_kind kind_##name = { .source_count = count, .source = { a, b, c }, .result = to, ##__VA_ARGS__ };
KIND(U1, 1, U32, 0, 0, U32)
KIND(U2, 2, U32, U32, 0, U32)
KIND(U3, 3, U32, U32, U32, U32)
KIND(UA, 3, U32, U32, U32, U32, .accumulates = true)
KIND(F1, 1, F32, 0, 0, F32)
KIND(E1, 1, F32, 0, 0, F32)
KIND(F2, 2, F32, F32, 0, F32)
KIND(F3, 3, F32, F32, F32, F32)
KIND(FA, 3, F32, F32, F32, F32, .accumulates = true)
KIND(FDOT, 3, U32, U32, F32, F32, .accumulates = true)
KIND(DOTF, 3, U32, U32, F32, F32)
KIND(DOTI, 3, U32, U32, U32, U32)
KIND(FU1, 1, F32, 0, 0, U32)
KIND(FH1, 1, F32, 0, 0, F16)
KIND(UF1, 1, U32, 0, 0, F32)
KIND(HF1, 1, F16, 0, 0, F32)
KIND(FFU2, 2, F32, F32, 0, U32)
KIND(FUF2, 2, F32, U32, 0, F32)
KIND(FUU3, 3, F32, U32, U32, U32)
KIND(H1, 1, F16, 0, 0, F16)
KIND(HW1, 1, F16, 0, 0, U16)
KIND(WH1, 1, U16, 0, 0, F16)
KIND(H2, 2, F16, F16, 0, F16)
KIND(HHU2, 2, F16, F16, 0, U32)
KIND(HWH2, 2, F16, U16, 0, F16)
KIND(H3, 3, F16, F16, F16, F16)
KIND(HA, 3, F16, F16, F16, F16, .accumulates = true)
KIND(HK3, 3, F16, F16, F16, F16, .keeps_half = true)
KIND(W2, 2, U16, U16, 0, U16)
KIND(WK2, 2, U16, U16, 0, U16, .keeps_half = true)
KIND(W3, 3, U16, U16, U16, U16)
KIND(WK3, 3, U16, U16, U16, U16, .keeps_half = true)
KIND(WU3, 3, U16, U16, U32, U32)
KIND(PACK, 2, F16, F16, 0, U32)
KIND(D1, 1, F64, 0, 0, F64)
KIND(ED1, 1, F64, 0, 0, F64)
KIND(D2, 2, F64, F64, 0, F64)
KIND(D3, 3, F64, F64, F64, F64)
KIND(DA, 3, F64, F64, F64, F64, .accumulates = true)
KIND(DU1, 1, F64, 0, 0, U32)
KIND(DF1, 1, F64, 0, 0, F32)
KIND(UD1, 1, U32, 0, 0, F64)
KIND(FD1, 1, F32, 0, 0, F64)
KIND(DUD2, 2, F64, U32, 0, F64)
KIND(Q1, 1, U64, 0, 0, U64)
KIND(UQ2, 2, U32, U64, 0, U64)
KIND(QUQ3, 3, U64, U32, U64, U64)
/* cndmask takes the modifiers of floats. */
KIND(SEL, 2, F32, F32, 0, U32, .mask_in = true)
KIND(CARRY2, 2, U32, U32, 0, U32, .mask_out = true)
KIND(BORROW2, 2, U32, U32, 0, U32, .mask_out = true)
KIND(BORROWREV2, 2, U32, U32, 0, U32, .mask_out = true)
KIND(CARRY3, 2, U32, U32, 0, U32, .mask_in = true, .mask_out = true)
KIND(BORROW3, 2, U32, U32, 0, U32, .mask_in = true, .mask_out = true)
KIND(BORROWREV3, 2, U32, U32, 0, U32, .mask_in = true, .mask_out = true)
KIND(FC3, 3, F32, F32, F32, F32, .mask_in = true)
KIND(DC3, 3, F64, F64, F64, F64, .mask_in = true)
KIND(FO3, 3, F32, F32, F32, F32, .mask_out = true)
KIND(DO3, 3, F64, F64, F64, F64, .mask_out = true)
KIND(MAD64, 3, U32, U32, U64, U64, .mask_out = true)
KIND(MADI64, 3, U32, U32, U64, U64, .mask_out = true)

enum {
#define OP(encoding, number, kind, name, expression) LANE_##name,
#include "vgpu/isa/lanes.def"
#undef OP
	LANE_COUNT,
};

const struct isa_lane_op gp_isa_lane_ops[] = {
#define OP(encoding, number, kind, name, expression) { "v_" #name, &kind_##kind, LANE_##name, number, ISA_##encoding },
#include "vgpu/isa/lanes.def"
#undef OP
};
/* clang-format on */
const uint32_t gp_isa_lane_op_count = LANE_COUNT;

/* Of one direction only: these round to even, whatever the mode. */
bool gp_isa_ignores_round(const struct isa_lane_op *op)
{
	return op->kind == &kind_E1 || op->kind == &kind_ED1;
}

const struct isa_lanes *gp_isa_lanes = &gp_isa_lanes_base;

static bool lane_ops_has(enum gp_isa_variant variant)
{
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (variant == GP_ISA_AVX2)
		return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
	if (variant == GP_ISA_AVX512)
		return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
	return variant == GP_ISA_BASE;
}

bool gp_isa_select(enum gp_isa_variant variant)
{
	if (!lane_ops_has(variant))
		return false;
	gp_isa_lanes = variant == GP_ISA_AVX512 ? &gp_isa_lanes_avx512 :
		       variant == GP_ISA_AVX2   ? &gp_isa_lanes_avx2 :
						  &gp_isa_lanes_base;
	return true;
}

enum gp_isa_variant gp_isa_best(void)
{
	return lane_ops_has(GP_ISA_AVX512) ? GP_ISA_AVX512 : lane_ops_has(GP_ISA_AVX2) ? GP_ISA_AVX2 : GP_ISA_BASE;
}
