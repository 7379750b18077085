/* SPDX-License-Identifier: MIT */
/*
 * Dense matrix operations: D = A x B + C on m x m tiles, several blocks at once or several steps of k. Which lane holds
 * which element is a formula of m, the blocks and the elements per lane. Sums are made in the order of k, each step
 * rounded once; hardware may order and round otherwise. EXEC is ignored, as hardware ignores it.
 */
#include <math.h>
#include "vgpu/isa/float.h"
#include "vgpu/isa/internal.h"

enum matrix_type { MATRIX_F32, MATRIX_F16, MATRIX_BF16, MATRIX_I8 };

struct matrix_shape {
	uint8_t m, blocks, each; /* elements of A and of B in a lane */
	uint8_t type;
};

static const struct matrix_shape matrix_shapes[] = {
	{ 32, 2, 1, MATRIX_F32 },  { 16, 4, 1, MATRIX_F32 },  { 4, 16, 1, MATRIX_F32 },  { 32, 1, 1, MATRIX_F32 },
	{ 16, 1, 1, MATRIX_F32 },  { 32, 2, 4, MATRIX_F16 },  { 16, 4, 4, MATRIX_F16 },  { 4, 16, 4, MATRIX_F16 },
	{ 32, 1, 4, MATRIX_F16 },  { 16, 1, 4, MATRIX_F16 },  { 32, 2, 4, MATRIX_I8 },   { 16, 4, 4, MATRIX_I8 },
	{ 4, 16, 4, MATRIX_I8 },   { 32, 1, 4, MATRIX_I8 },   { 16, 1, 4, MATRIX_I8 },   { 32, 2, 4, MATRIX_BF16 },
	{ 16, 4, 4, MATRIX_BF16 }, { 4, 16, 4, MATRIX_BF16 }, { 32, 1, 4, MATRIX_BF16 }, { 16, 1, 4, MATRIX_BF16 },
	{ 32, 2, 2, MATRIX_BF16 }, { 16, 4, 2, MATRIX_BF16 }, { 4, 16, 2, MATRIX_BF16 }, { 32, 1, 2, MATRIX_BF16 },
	{ 16, 1, 2, MATRIX_BF16 }, { 32, 1, 8, MATRIX_I8 },   { 16, 1, 8, MATRIX_I8 },
};

static uint32_t matrix_rows(const struct matrix_shape *shape)
{
	return shape->m == 4u ? 4u : (uint32_t)shape->m * shape->m / 64u * shape->blocks;
}

struct isa_extent gp_isa_mfma_extent(const struct isa_op *op)
{
	const struct matrix_shape *shape = &matrix_shapes[op->a];
	uint8_t words = shape->type == MATRIX_F32 ? 1u :
			shape->type == MATRIX_I8  ? (shape->each + 3u) / 4u :
						    (shape->each + 1u) / 2u;

	return (struct isa_extent){ words, words, (uint8_t)matrix_rows(shape) };
}

/* Element e of a lane. */
static float matrix_element(const struct gp_isa_wave *wave, uint32_t row, uint32_t lane, uint32_t e, uint8_t type)
{
	uint32_t half;

	if (type == MATRIX_F32)
		return isa_f32(wave->v[row][lane]);
	half = wave->v[row + e / 2u][lane] >> e % 2u * 16u & 0xffffu;
	return type == MATRIX_F16 ? isa_f16(half) : isa_f32(half << 16);
}

/* blgp: which lane's B a lane's place reads. */
static uint32_t matrix_b_lane(uint32_t lane, uint32_t blgp)
{
	switch (blgp) {
	case 1: return lane & 31u;
	case 2: return lane | 32u;
	case 3: return (lane + 16u) & 63u;
	case 4: return lane & 15u;
	case 5: return (lane & 15u) + 16u;
	case 6: return (lane & 15u) + 32u;
	case 7: return (lane & 15u) + 48u;
	default: return lane;
	}
}

/* One element of a product, from where its row of A and its column of B lie. */
struct matrix_line {
	const struct gp_isa_wave *wave;
	const struct matrix_shape *shape;
	uint32_t a, b; /* rows */
	uint32_t a_lane, b_lane, groups, blgp;
};

static uint32_t matrix_sum(const struct matrix_line *line, uint32_t start)
{
	uint8_t type = line->shape->type;
	float sum = isa_f32(start);
	uint32_t total = start;

	for (uint32_t g = 0; g < line->groups; g++)
		for (uint32_t e = 0; e < line->shape->each; e++) {
			uint32_t la = line->a_lane + line->shape->m * g;
			uint32_t lb = matrix_b_lane(line->b_lane + line->shape->m * g, line->blgp);

			if (type == MATRIX_I8)
				total += (uint32_t)((int8_t)(line->wave->v[line->a + e / 4u][la] >> e % 4u * 8u) *
						    (int8_t)(line->wave->v[line->b + e / 4u][lb] >> e % 4u * 8u));
			else
				sum = fmaf(matrix_element(line->wave, line->a, la, e, type),
					   matrix_element(line->wave, line->b, lb, e, type), sum);
		}
	return type == MATRIX_I8 ? total : isa_bits(sum);
}

static enum isa_result matrix_run(struct gp_isa_group *group, struct gp_isa_wave *wave,
				  const struct isa_instruction *in)
{
	const struct matrix_shape *shape = &matrix_shapes[in->op->a];
	uint32_t m = shape->m, rows = matrix_rows(shape), per = m == 4u ? 4u : m * m / 64u;
	uint32_t cbsz = in->abs, abid = in->opsel & ((1u << cbsz) - 1u);
	struct matrix_line line = { .wave = wave,
				    .shape = shape,
				    .a = in->source[0] - ISA_VECTOR,
				    .b = in->source[1] - ISA_VECTOR,
				    .groups = 64u / m / shape->blocks,
				    .blgp = in->neg };
	isa_row result[32];

	for (uint32_t r = 0; r < rows; r++)
		for (uint32_t l = 0; l < GP_ISA_LANES; l++) {
			uint32_t block = m == 4u ? l / 4u : r / per, part = r % per;
			uint32_t row = m == 32u ? 8u * (part / 4u) + 4u * (l / 32u) + part % 4u :
				       m == 16u ? 4u * (l / 16u) + part :
						  part;
			uint32_t from = (block & ~((1u << cbsz) - 1u)) | abid;
			uint32_t start = in->source[2] >= ISA_VECTOR ? wave->v[in->source[2] - ISA_VECTOR + r][l] :
								       (uint32_t)in->value[2];

			line.a_lane = row + m * (shape->blocks > 1u ? from % shape->blocks : 0);
			line.b_lane = l % m + m * (shape->blocks > 1u ? block : 0);
			result[r][l] = matrix_sum(&line, start);
		}
	for (uint32_t r = 0; r < rows; r++)
		memcpy(wave->v[in->vdst + r], result[r], sizeof(isa_row));
	return ISA_NEXT;
}

/* clang-format off */
#define R(number, name, shape) { "v_mfma_" name, matrix_run, number, shape, ISA_F32 }
const struct isa_op gp_isa_mfma[] = {
	R(0x40, "f32_32x32x1f32", 0), R(0x41, "f32_16x16x1f32", 1), R(0x42, "f32_4x4x1f32", 2), R(0x44, "f32_32x32x2f32", 3),
	R(0x45, "f32_16x16x4f32", 4), R(0x48, "f32_32x32x4f16", 5), R(0x49, "f32_16x16x4f16", 6), R(0x4a, "f32_4x4x4f16", 7),
	R(0x4c, "f32_32x32x8f16", 8), R(0x4d, "f32_16x16x16f16", 9), R(0x50, "i32_32x32x4i8", 10), R(0x51, "i32_16x16x4i8", 11),
	R(0x52, "i32_4x4x4i8", 12), R(0x54, "i32_32x32x8i8", 13), R(0x55, "i32_16x16x16i8", 14), R(0x56, "i32_32x32x16i8", 25),
	R(0x57, "i32_16x16x32i8", 26), R(0x5d, "f32_32x32x4_2b_bf16", 15), R(0x5e, "f32_16x16x4_4b_bf16", 16),
	R(0x5f, "f32_4x4x4_16b_bf16", 17), R(0x60, "f32_32x32x8_bf16", 18), R(0x61, "f32_16x16x16_bf16", 19),
	R(0x63, "f32_32x32x4bf16_1k", 15), R(0x64, "f32_16x16x4bf16_1k", 16), R(0x65, "f32_4x4x4bf16_1k", 17),
	R(0x66, "f32_32x32x8bf16_1k", 18), R(0x67, "f32_16x16x16bf16_1k", 19), R(0x68, "f32_32x32x2bf16", 20),
	R(0x69, "f32_16x16x2bf16", 21), R(0x6b, "f32_4x4x2bf16", 22), R(0x6c, "f32_32x32x4bf16", 23), R(0x6d, "f32_16x16x8bf16", 24),
	{ 0 },
};
/* clang-format on */
