/* SPDX-License-Identifier: MIT */
/* VOP3P: two halves or two floats at once, mixed precision, and the accumulation registers. */
#include "vgpu/isa/internal.h"
#include "vgpu/isa/lanes_help.h"

/* Half h of operand n: which half it is, and whether its sign is turned, the instruction says for each. */
static uint32_t packed_half(const struct isa_instruction *in, uint32_t word, uint32_t n, uint32_t h)
{
	uint32_t select = h ? in->opsel_hi >> n & 1u : in->opsel >> n & 1u;

	return word >> select * 16u & 0xffffu;
}

static uint32_t packed_half_float(const struct isa_instruction *in, uint32_t word, uint32_t n, uint32_t h)
{
	uint32_t neg = h ? in->abs >> n & 1u : in->neg >> n & 1u;

	return packed_half(in, word, n, h) ^ neg << 15;
}

static uint32_t packed_clamp(uint32_t half)
{
	float x = isa_f16(half);

	return x > 0 ? (x < 1 ? half : 0x3c00u) : 0;
}

#define PACKED(name, pick, type, finish, expression)                                                               \
	static enum isa_result packed_##name(struct gp_isa_group *group, struct gp_isa_wave *wave,                 \
					     const struct isa_instruction *in)                                     \
	{                                                                                                          \
		_Alignas(64) isa_row buffers[3], result;                                                           \
		const uint32_t *a = gp_isa_row(wave, in, 0, buffers[0]), *b = gp_isa_row(wave, in, 1, buffers[1]); \
		const uint32_t *c = in->source_count == 3u ? gp_isa_row(wave, in, 2, buffers[2]) : a;              \
		uint32_t round = wave->mode >> 2 & 3u;                                                             \
                                                                                                                   \
		(void)round;                                                                                       \
		ISA_EACH                                                                                           \
		{                                                                                                  \
			uint32_t out = 0;                                                                          \
                                                                                                                   \
			for (uint32_t h = 0; h < 2u; h++) {                                                        \
				type x = pick(a[i], 0), y = pick(b[i], 1), z = pick(c[i], 2);                      \
				uint32_t r = (expression);                                                         \
                                                                                                                   \
				(void)z;                                                                           \
				out |= (finish) << h * 16u;                                                        \
			}                                                                                          \
			result[i] = out;                                                                           \
		}                                                                                                  \
		gp_isa_put(wave, in->vdst, result);                                                                \
		return ISA_NEXT;                                                                                   \
	}
#define PICK_INTEGER(word, n)     packed_half(in, word, n, h)
#define PICK_FLOAT(word, n)       isa_f16(packed_half_float(in, word, n, h))
#define INTEGER(name, expression) PACKED(name, PICK_INTEGER, uint32_t, r & 0xffffu, expression)
#define FLOAT(name, expression)   PACKED(name, PICK_FLOAT, float, in->clamp ? packed_clamp(r) : r, expression)

static uint32_t packed_sat_u16(int64_t value)
{
	return value < 0 ? 0 : value > 0xffff ? 0xffffu : (uint32_t)value;
}

#define S(x) ((int32_t)(int16_t)(x))
INTEGER(mad_i16, in->clamp ? isa_sat_i16((uint32_t)(S(x) * S(y) + S(z))) : x *y + z)
INTEGER(mul_lo_u16, x *y)
INTEGER(add_i16, in->clamp ? isa_sat_i16((uint32_t)(S(x) + S(y))) : x + y)
INTEGER(sub_i16, in->clamp ? isa_sat_i16((uint32_t)(S(x) - S(y))) : x - y)
INTEGER(lshlrev_b16, y << (x & 15u))
INTEGER(lshrrev_b16, y >> (x & 15u))
INTEGER(ashrrev_i16, (uint32_t)(S(y) >> (x & 15u)))
INTEGER(max_i16, isa_max_i16(x, y))
INTEGER(min_i16, isa_min_i16(x, y))
INTEGER(mad_u16, in->clamp ? packed_sat_u16((int64_t)x *y + z) : x *y + z)
INTEGER(add_u16, in->clamp ? packed_sat_u16((int64_t)x + y) : x + y)
INTEGER(sub_u16, in->clamp ? packed_sat_u16((int64_t)x - y) : x - y)
INTEGER(max_u16, isa_max_u32(x, y))
INTEGER(min_u16, isa_min_u32(x, y))
FLOAT(fma_f16, isa_half_fma(x, y, z, round))
FLOAT(add_f16, isa_half64((double)x + (double)y, round))
FLOAT(mul_f16, isa_half64((double)x *(double)y, round))
FLOAT(min_f16, isa_half(isa_min(x, y), ISA_ROUND_EVEN))
FLOAT(max_f16, isa_half(isa_max(x, y), ISA_ROUND_EVEN))

/* One of two floats: from a pair of rows, a pair of scalar registers, or a constant that is both. */
static const uint32_t *packed_word(const struct gp_isa_wave *wave, const struct isa_instruction *in, uint32_t n,
				   uint32_t h, uint32_t *buffer)
{
	uint32_t source = in->source[n], high = (h ? in->opsel_hi : in->opsel) >> n & 1u;

	if (source >= ISA_VECTOR)
		return wave->v[source - ISA_VECTOR + high];
	gp_isa_lanes->broadcast(buffer, source < GP_ISA_SGPR_MAX ? wave->s[source + high] : gp_isa_scalar(wave, in, n));
	return buffer;
}

enum packed_float { PACKED_FMA, PACKED_MUL, PACKED_ADD };

static void packed_floats(struct gp_isa_wave *wave, const struct isa_instruction *in, enum packed_float op)
{
	_Alignas(64) isa_row buffers[3], result[2];

	for (uint32_t h = 0; h < 2u; h++) {
		const uint32_t *rows[3] = { buffers[0], buffers[1], buffers[2] };
		uint32_t flip[3] = { 0 };

		for (uint32_t n = 0; n < in->source_count; n++) {
			rows[n] = packed_word(wave, in, n, h, buffers[n]);
			flip[n] = (h ? in->abs : in->neg) >> n & 1u ? 0x80000000u : 0;
		}
		ISA_EACH
		{
			float x = isa_f32(rows[0][i] ^ flip[0]), y = isa_f32(rows[1][i] ^ flip[1]);
			float r = op == PACKED_MUL ? x * y :
				  op == PACKED_ADD ? x + y :
						     fmaf(x, y, isa_f32(rows[2][i] ^ flip[2]));

			result[h][i] = isa_bits(!in->clamp ? r : r > 0 ? (r < 1 ? r : 1.0f) : 0.0f);
		}
	}
	gp_isa_put(wave, in->vdst, result[0]);
	gp_isa_put(wave, in->vdst + 1u, result[1]);
}

#define RUN(name)                                                                                  \
	static enum isa_result packed_##name(struct gp_isa_group *group, struct gp_isa_wave *wave, \
					     const struct isa_instruction *in)

RUN(fma_f32)
{
	packed_floats(wave, in, PACKED_FMA);
	return ISA_NEXT;
}

RUN(mul_f32)
{
	packed_floats(wave, in, PACKED_MUL);
	return ISA_NEXT;
}

RUN(add_f32)
{
	packed_floats(wave, in, PACKED_ADD);
	return ISA_NEXT;
}

/* The first result from the first operand, the second from the second; opsel alone says which word of it: compilers
 * copy a pair with op_sel:[0,1]. */
RUN(mov_b32)
{
	_Alignas(64) isa_row buffers[2], result[2];

	memcpy(result[0], packed_word(wave, in, 0, 0, buffers[0]), sizeof(isa_row));
	memcpy(result[1], packed_word(wave, in, 1, 0, buffers[1]), sizeof(isa_row));
	gp_isa_put(wave, in->vdst, result[0]);
	gp_isa_put(wave, in->vdst + 1u, result[1]);
	return ISA_NEXT;
}

/* Each operand is a float or, where opsel_hi says so, a half. */
static float packed_mixed(const struct isa_instruction *in, uint32_t word, uint32_t n)
{
	float x = in->opsel_hi >> n & 1u ? isa_f16(word >> (in->opsel >> n & 1u) * 16u & 0xffffu) : isa_f32(word);

	if (in->abs >> n & 1u)
		x = fabsf(x);
	return in->neg >> n & 1u ? -x : x;
}

static void packed_mix(struct gp_isa_wave *wave, const struct isa_instruction *in, uint32_t *ret_result, bool is_half)
{
	_Alignas(64) isa_row buffers[3];
	const uint32_t *a = gp_isa_row(wave, in, 0, buffers[0]), *b = gp_isa_row(wave, in, 1, buffers[1]);
	const uint32_t *c = gp_isa_row(wave, in, 2, buffers[2]);

	ISA_EACH
	{
		float r = fmaf(packed_mixed(in, a[i], 0), packed_mixed(in, b[i], 1), packed_mixed(in, c[i], 2));

		if (in->clamp)
			r = r > 0 ? (r < 1 ? r : 1.0f) : 0.0f;
		ret_result[i] = is_half ? isa_half(r, wave->mode >> 2 & 3u) : isa_bits(r);
	}
}

RUN(fma_mix_f32)
{
	_Alignas(64) isa_row result;

	packed_mix(wave, in, result, false);
	gp_isa_put(wave, in->vdst, result);
	return ISA_NEXT;
}

RUN(fma_mixlo_f16)
{
	_Alignas(64) isa_row result;

	packed_mix(wave, in, result, true);
	ISA_EACH result[i] |= wave->v[in->vdst][i] & 0xffff0000u;
	gp_isa_put(wave, in->vdst, result);
	return ISA_NEXT;
}

RUN(fma_mixhi_f16)
{
	_Alignas(64) isa_row result;

	packed_mix(wave, in, result, true);
	ISA_EACH result[i] = result[i] << 16 | (wave->v[in->vdst][i] & 0xffffu);
	gp_isa_put(wave, in->vdst, result);
	return ISA_NEXT;
}

RUN(accvgpr_move)
{
	_Alignas(64) isa_row buffer;

	const uint32_t *from = gp_isa_row(wave, in, 0, buffer);

	if (from != buffer)
		memcpy(buffer, from, sizeof(buffer));
	gp_isa_put(wave, in->vdst, buffer);
	return ISA_NEXT;
}

/* clang-format off */
#define R(number, name, sources, kind) { "v_pk_" #name, packed_##name, number, sources, ISA_PACKED_##kind }
const struct isa_op gp_isa_vop3p[] = {
	R(0, mad_i16, 3, 16), R(1, mul_lo_u16, 2, 16), R(2, add_i16, 2, 16), R(3, sub_i16, 2, 16), R(4, lshlrev_b16, 2, 16),
	R(5, lshrrev_b16, 2, 16), R(6, ashrrev_i16, 2, 16), R(7, max_i16, 2, 16), R(8, min_i16, 2, 16), R(9, mad_u16, 3, 16),
	R(10, add_u16, 2, 16), R(11, sub_u16, 2, 16), R(12, max_u16, 2, 16), R(13, min_u16, 2, 16), R(14, fma_f16, 3, 16),
	R(15, add_f16, 2, 16), R(16, mul_f16, 2, 16), R(17, min_f16, 2, 16), R(18, max_f16, 2, 16),
	{ "v_fma_mix_f32", packed_fma_mix_f32, 32, 3, ISA_PACKED_MIX }, { "v_fma_mixlo_f16", packed_fma_mixlo_f16, 33, 3, ISA_PACKED_MIX },
	{ "v_fma_mixhi_f16", packed_fma_mixhi_f16, 34, 3, ISA_PACKED_MIX },
	R(48, fma_f32, 3, F32), R(49, mul_f32, 2, F32), R(50, add_f32, 2, F32), R(51, mov_b32, 2, F32),
	{ "v_accvgpr_read_b32", packed_accvgpr_move, 88, 1, ISA_PACKED_ACC_READ },
	{ "v_accvgpr_write_b32", packed_accvgpr_move, 89, 1, ISA_PACKED_ACC_WRITE }, { 0 },
};
/* clang-format on */
