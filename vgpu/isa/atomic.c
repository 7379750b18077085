/* SPDX-License-Identifier: MIT */
/* Atomics. Memory is shared with the client, which has atomics of its own: what is done here is one for it too. */
#include "vgpu/isa/float.h"
#include "vgpu/isa/internal.h"

static uint32_t atomic_half_pair(uint32_t old, uint32_t x, bool is_bf16)
{
	uint32_t out = 0;

	for (uint32_t shift = 0; shift < 32u; shift += 16u) {
		uint32_t a = old >> shift & 0xffffu, b = x >> shift & 0xffffu;

		if (is_bf16) {
			uint32_t sum = isa_bits(isa_f32(a << 16) + isa_f32(b << 16));

			out |= ((sum + 0x7fffu + (sum >> 16 & 1u)) >> 16 & 0xffffu) << shift;
		} else {
			out |= isa_half64((double)isa_f16(a) + (double)isa_f16(b), ISA_ROUND_EVEN) << shift;
		}
	}
	return out;
}

static uint64_t atomic_next(enum isa_atomic op, uint64_t old, uint64_t x, uint64_t compare, bool is_wide)
{
	uint64_t mask = is_wide ? UINT64_MAX : UINT32_MAX;
	int64_t so = is_wide ? (int64_t)old : (int32_t)old, sx = is_wide ? (int64_t)x : (int32_t)x;

	switch (op) {
	case ISA_SWAP: return x;
	case ISA_CMPSWAP: return old == compare ? x : old;
	case ISA_ADD: return (old + x) & mask;
	case ISA_SUB: return (old - x) & mask;
	case ISA_RSUB: return (x - old) & mask;
	case ISA_SMIN: return so < sx ? old : x;
	case ISA_UMIN: return old < x ? old : x;
	case ISA_SMAX: return so > sx ? old : x;
	case ISA_UMAX: return old > x ? old : x;
	case ISA_AND: return old & x;
	case ISA_OR: return old | x;
	case ISA_XOR: return old ^ x;
	case ISA_INC: return old >= x ? 0 : old + 1u;
	case ISA_DEC: return !old || old > x ? x : old - 1u;
	case ISA_ADD_F32: return isa_bits(isa_f32((uint32_t)old) + isa_f32((uint32_t)x));
	case ISA_ADD_F64: return isa_bits64(isa_f64(old) + isa_f64(x));
	case ISA_MIN_F64: return isa_bits64(isa_min64(isa_f64(old), isa_f64(x)));
	case ISA_MAX_F64: return isa_bits64(isa_max64(isa_f64(old), isa_f64(x)));
	case ISA_MIN_F32: return isa_bits(isa_min(isa_f32((uint32_t)old), isa_f32((uint32_t)x)));
	case ISA_MAX_F32: return isa_bits(isa_max(isa_f32((uint32_t)old), isa_f32((uint32_t)x)));
	case ISA_PK_ADD_F16: return atomic_half_pair((uint32_t)old, (uint32_t)x, false);
	case ISA_PK_ADD_BF16: return atomic_half_pair((uint32_t)old, (uint32_t)x, true);
	case ISA_MSKOR: return (old & ~x) | compare;
	case ISA_CMPSWAP_F:
		return (is_wide ? isa_f64(old) == isa_f64(compare) :
				  isa_f32((uint32_t)old) == isa_f32((uint32_t)compare)) ?
			       x :
			       old;
	}
	return old;
}

uint64_t gp_isa_atomic(uint8_t *p, enum isa_atomic op, bool is_wide, uint64_t x, uint64_t compare)
{
	if (is_wide) {
		uint64_t *at = (uint64_t *)(void *)p, old = __atomic_load_n(at, __ATOMIC_RELAXED);

		while (!__atomic_compare_exchange_n(at, &old, atomic_next(op, old, x, compare, true), false,
						    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			;
		return old;
	}
	uint32_t *at = (uint32_t *)(void *)p, old = __atomic_load_n(at, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(at, &old,
					    (uint32_t)atomic_next(op, old, (uint32_t)x, (uint32_t)compare, false),
					    false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
	return old;
}
