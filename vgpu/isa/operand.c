/* SPDX-License-Identifier: MIT */
/* Operands: constants, scalar registers, rows of vector registers, and the writing of rows where EXEC allows. */
#include "vgpu/isa/internal.h"

static const uint32_t operand_f32[9] = { 0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000,
					 0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983 };
static const uint16_t operand_f16[9] = { 0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118 };
static const uint64_t operand_f64[9] = { 0x3fe0000000000000, 0xbfe0000000000000, 0x3ff0000000000000,
					 0xbff0000000000000, 0x4000000000000000, 0xc000000000000000,
					 0x4010000000000000, 0xc010000000000000, 0x3fc45f306dc9c882 };

bool gp_isa_constant(uint32_t code, uint32_t literal, enum isa_type type, uint64_t *ret_value)
{
	bool is_wide = type == ISA_U64 || type == ISA_F64;

	if (code >= 128u && code <= 192u) {
		*ret_value = code - 128u;
		return true;
	}
	if (code >= 193u && code <= 208u) {
		*ret_value = is_wide ? (uint64_t)(192 - (int64_t)code) : (uint32_t)(192 - (int32_t)code);
		return true;
	}
	if (code >= 240u && code <= 248u) {
		*ret_value = is_wide                            ? operand_f64[code - 240u] :
			     type == ISA_F16 || type == ISA_U16 ? operand_f16[code - 240u] :
								  operand_f32[code - 240u];
		return true;
	}
	if (code == 255u) {
		/* The high half of a double; integers are extended with zeros. */
		*ret_value = type == ISA_F64 ? (uint64_t)literal << 32 : literal;
		return true;
	}
	return false;
}

/* Values of the wave that are no register. Apertures are the high halves of addresses, as flat instructions see them.
 */
static uint64_t operand_special(const struct gp_isa_wave *wave, uint32_t code)
{
	switch (code) {
	case 235: return (uint64_t)GP_ISA_SHARED_APERTURE << 32;
	case 236: return (uint64_t)GP_ISA_SHARED_APERTURE << 32 | UINT32_MAX;
	case 237: return (uint64_t)GP_ISA_PRIVATE_APERTURE << 32;
	case 238: return (uint64_t)GP_ISA_PRIVATE_APERTURE << 32 | UINT32_MAX;
	case 251: return gp_isa_get64(wave, GP_ISA_VCC) == 0;
	case 252: return isa_exec(wave) == 0;
	case 253: return wave->scc;
	default: return 0;
	}
}

uint32_t gp_isa_scalar(const struct gp_isa_wave *wave, const struct isa_instruction *in, uint32_t which)
{
	uint32_t source = in->source[which];

	if (source < GP_ISA_SGPR_MAX)
		return wave->s[source];
	if (source == ISA_CONSTANT)
		return (uint32_t)in->value[which];
	/* 32 bits of an aperture are its high half. */
	return source <= 238u ? (uint32_t)(operand_special(wave, source) >> 32) :
				(uint32_t)operand_special(wave, source);
}

uint64_t gp_isa_scalar64(const struct gp_isa_wave *wave, const struct isa_instruction *in, uint32_t which)
{
	uint32_t source = in->source[which];

	if (source < GP_ISA_SGPR_MAX - 1u)
		return gp_isa_get64(wave, source);
	return source == ISA_CONSTANT ? in->value[which] : operand_special(wave, source);
}

const uint32_t *gp_isa_lane_mask(struct gp_isa_wave *wave)
{
	uint64_t exec = isa_exec(wave);

	if (wave->mask_exec != exec) {
		ISA_EACH wave->lane_mask[i] = 0u - (uint32_t)(exec >> i & 1u);
		wave->mask_exec = exec;
	}
	return wave->lane_mask;
}

void gp_isa_put(struct gp_isa_wave *wave, uint32_t row, const uint32_t *from)
{
	if (isa_exec(wave) == UINT64_MAX)
		memcpy(wave->v[row], from, sizeof(isa_row));
	else
		gp_isa_lanes->blend(wave->v[row], from, gp_isa_lane_mask(wave));
}

void gp_isa_put_wide(struct gp_isa_wave *wave, uint32_t row, const uint64_t *from)
{
	_Alignas(64) isa_row low, high;

	ISA_EACH
	{
		low[i] = (uint32_t)from[i];
		high[i] = (uint32_t)(from[i] >> 32);
	}
	gp_isa_put(wave, row, low);
	gp_isa_put(wave, row + 1u, high);
}

const uint32_t *gp_isa_row(const struct gp_isa_wave *wave, const struct isa_instruction *in, uint32_t which,
			   uint32_t *buffer)
{
	if (in->source[which] >= ISA_VECTOR)
		return wave->v[in->source[which] - ISA_VECTOR];
	gp_isa_lanes->broadcast(buffer, gp_isa_scalar(wave, in, which));
	return buffer;
}

void gp_isa_row64(const struct gp_isa_wave *wave, const struct isa_instruction *in, uint32_t which, uint64_t *buffer)
{
	if (in->source[which] >= ISA_VECTOR) {
		const uint32_t *low = wave->v[in->source[which] - ISA_VECTOR], *high = low + GP_ISA_LANES;

		ISA_EACH buffer[i] = low[i] | (uint64_t)high[i] << 32;
	} else {
		uint64_t value = gp_isa_scalar64(wave, in, which);

		ISA_EACH buffer[i] = value;
	}
}
