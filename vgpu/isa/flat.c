/* SPDX-License-Identifier: MIT */
/*
 * Vector memory: flat, global, scratch and buffer instructions, which share their operation numbers. A wave whose lanes
 * lie in one piece of memory is served at once; others lane by lane. In the tables a is the bytes (of atomics the
 * operation), b the flags.
 */
#include <errno.h>
#include "vgpu/isa/internal.h"

enum {
	FLAT_LOAD = 1,
	FLAT_STORE = 2,
	FLAT_ATOMIC = 4,
	FLAT_SIGNED = 8,
	FLAT_LOW = 16, /* 16 bits into, or out of, a half */
	FLAT_HIGH = 32,
	FLAT_WIDE = 64, /* an atomic of 64 bits */
};
#define FLAT_SPAN_MAX (1u << 30) /* bytes between the first and last lane of a wave that is served at once */

/* One instruction of one wave, with its lanes' addresses. */
struct flat_access {
	struct gp_isa_group *group;
	struct gp_isa_wave *wave;
	const struct isa_instruction *in;
	uint64_t exec;
	bool returns; /* an atomic that gives the old value */
	_Alignas(64) uint64_t va[GP_ISA_LANES];
};

struct isa_extent gp_isa_flat_extent(const struct isa_op *op)
{
	uint8_t words = (uint8_t)((op->a + 3u) / 4u), atomic = op->b & FLAT_WIDE ? 2u : 1u;

	if (op->b & FLAT_ATOMIC)
		return (struct isa_extent){ 1, op->a == ISA_CMPSWAP ? (uint8_t)(atomic * 2u) : atomic, atomic };
	return (struct isa_extent){ 1, op->b & FLAT_STORE ? words : 0, op->b & FLAT_LOAD ? words : 0 };
}

/* What a load of less than a word leaves in a register. */
static uint32_t flat_extend(uint32_t old, uint32_t value, uint32_t bytes, uint32_t flags)
{
	if (flags & FLAT_SIGNED)
		value = bytes == 1u ? (uint32_t)(int32_t)(int8_t)value : (uint32_t)(int32_t)(int16_t)value;
	if (flags & FLAT_LOW)
		return (old & 0xffff0000u) | (value & 0xffffu);
	return flags & FLAT_HIGH ? (old & 0xffffu) | value << 16 : value;
}

static void flat_lane_from(const struct flat_access *access, uint32_t lane, const uint8_t *bytes)
{
	const struct isa_op *op = access->in->op;
	uint32_t(*v)[GP_ISA_LANES] = access->wave->v + access->in->vdst, value = 0;

	if (op->a >= 4u) {
		for (uint32_t k = 0; k < op->a / 4u; k++)
			memcpy(&v[k][lane], bytes + k * 4u, 4);
		return;
	}
	memcpy(&value, bytes, op->a);
	v[0][lane] = flat_extend(v[0][lane], value, op->a, op->b);
}

static void flat_lane_to(const struct flat_access *access, uint32_t lane, uint8_t *bytes)
{
	const struct isa_op *op = access->in->op;
	uint32_t(*v)[GP_ISA_LANES] = access->wave->v + (access->in->source[1] - ISA_VECTOR), value;

	if (op->a >= 4u) {
		for (uint32_t k = 0; k < op->a / 4u; k++)
			memcpy(bytes + k * 4u, &v[k][lane], 4);
		return;
	}
	value = v[0][lane] >> (op->b & FLAT_HIGH ? 16 : 0);
	memcpy(bytes, &value, op->a);
}

static uint64_t flat_register(const struct flat_access *access, uint32_t from, uint32_t lane, bool is_wide)
{
	uint32_t(*v)[GP_ISA_LANES] = access->wave->v + from;

	return v[0][lane] | (is_wide ? (uint64_t)v[1][lane] << 32 : 0);
}

/* An atomic of one lane on memory that is its own to touch. */
static void flat_lane_atomic(const struct flat_access *access, uint32_t lane, uint8_t *p)
{
	const struct isa_op *op = access->in->op;
	bool is_wide = op->b & FLAT_WIDE;
	uint32_t from = access->in->source[1] - ISA_VECTOR;
	uint64_t x = flat_register(access, from, lane, is_wide), old;
	uint64_t compare = op->a == ISA_CMPSWAP ? flat_register(access, from + (is_wide ? 2u : 1u), lane, is_wide) : 0;

	old = gp_isa_atomic(p, op->a, is_wide, x, compare);
	if (!access->returns)
		return;
	access->wave->v[access->in->vdst][lane] = (uint32_t)old;
	if (is_wide)
		access->wave->v[access->in->vdst + 1u][lane] = (uint32_t)(old >> 32);
}

static uint32_t flat_size(const struct isa_op *op)
{
	return op->b & FLAT_ATOMIC ? (op->b & FLAT_WIDE ? 8u : 4u) : op->a;
}

static int flat_fail(const struct flat_access *access, enum gp_isa_fault_kind kind, uint64_t va)
{
	access->group->bus->fault = kind;
	access->group->bus->fault_va = va;
	return -EFAULT;
}

/* One lane, wherever its bytes are. */
static int flat_lane(const struct flat_access *access, uint32_t lane, uint64_t va)
{
	const struct isa_op *op = access->in->op;
	struct gp_isa_bus *bus = access->group->bus;
	uint32_t size = flat_size(op);
	uint8_t bytes[16], *p;

	if (op->b & FLAT_ATOMIC) {
		if (va % size)
			return flat_fail(access, GP_ISA_FAULT_MISALIGNED, va);
		p = gp_isa_at(bus, va, size, true);
		if (!p)
			return -EFAULT;
		flat_lane_atomic(access, lane, p);
		return 0;
	}
	if (op->b & FLAT_STORE) {
		flat_lane_to(access, lane, bytes);
		return gp_isa_bus_write(bus, va, bytes, size);
	}
	if (gp_isa_bus_read(bus, va, bytes, size) < 0)
		return -EFAULT;
	flat_lane_from(access, lane, bytes);
	return 0;
}

static int flat_lds(const struct flat_access *access, uint32_t lane, uint32_t at)
{
	const struct isa_op *op = access->in->op;
	uint32_t size = flat_size(op);
	uint8_t *p = access->group->lds + at;

	if ((uint64_t)at + size > access->group->lds_size)
		return flat_fail(access, GP_ISA_FAULT_APERTURE, (uint64_t)GP_ISA_SHARED_APERTURE << 32 | at);
	if (op->b & FLAT_ATOMIC) {
		if (at % size)
			return flat_fail(access, GP_ISA_FAULT_MISALIGNED, (uint64_t)GP_ISA_SHARED_APERTURE << 32 | at);
		flat_lane_atomic(access, lane, p);
	} else if (op->b & FLAT_STORE) {
		flat_lane_to(access, lane, p);
	} else {
		flat_lane_from(access, lane, p);
	}
	return 0;
}

/* Private memory: words of the lanes lie side by side. */
static int flat_private(const struct flat_access *access, uint32_t lane, uint64_t base, uint32_t at)
{
	const struct isa_op *op = access->in->op;
	struct gp_isa_bus *bus = access->group->bus;
	uint32_t size = op->a;
	uint8_t bytes[16];

	if (op->b & FLAT_ATOMIC)
		return flat_lane(access, lane, base + (uint64_t)(at / 4u) * 256u + lane * 4u);
	if (access->wave->scratch_size && (uint64_t)at + size > access->wave->scratch_size)
		return flat_fail(access, GP_ISA_FAULT_APERTURE, (uint64_t)GP_ISA_PRIVATE_APERTURE << 32 | at);
	if (op->b & FLAT_STORE)
		flat_lane_to(access, lane, bytes);
	for (uint32_t k = 0; k < size;) {
		uint32_t o = at + k, step = 4u - o % 4u < size - k ? 4u - o % 4u : size - k;
		uint64_t va = base + (uint64_t)(o / 4u) * 256u + lane * 4u + o % 4u;
		int r = op->b & FLAT_STORE ? gp_isa_bus_write(bus, va, bytes + k, step) :
					     gp_isa_bus_read(bus, va, bytes + k, step);

		if (r < 0)
			return r;
		k += step;
	}
	if (op->b & FLAT_LOAD)
		flat_lane_from(access, lane, bytes);
	return 0;
}

static bool flat_is_dense(const uint32_t *relative)
{
	uint32_t wrong = 0;

	ISA_EACH wrong |= relative[i] ^ (relative[0] + i * 4u);
	return !wrong;
}

static void flat_load_rows(const struct flat_access *access, const uint8_t *base, const uint32_t *relative)
{
	_Alignas(64) isa_row rows[4];
	uint32_t words = access->in->op->a / 4u;

	if (words == 1u && access->exec == UINT64_MAX && flat_is_dense(relative)) {
		memcpy(access->wave->v[access->in->vdst], base + relative[0], sizeof(isa_row));
		return;
	}
	for (uint32_t k = 0; k < words; k++)
		gp_isa_lanes->gather(rows[k], base + k * 4u, relative);
	for (uint32_t k = 0; k < words; k++)
		gp_isa_put(access->wave, access->in->vdst + k, rows[k]);
}

static void flat_store_rows(const struct flat_access *access, uint8_t *base, const uint32_t *relative)
{
	uint32_t(*v)[GP_ISA_LANES] = access->wave->v + (access->in->source[1] - ISA_VECTOR);

	if (access->in->op->a == 4u && access->exec == UINT64_MAX && flat_is_dense(relative)) {
		memcpy(base + relative[0], v[0], sizeof(isa_row));
		return;
	}
	for (uint32_t k = 0; k < access->in->op->a / 4u; k++)
		for (uint32_t i = 0; i < GP_ISA_LANES; i++)
			if (access->exec >> i & 1u)
				memcpy(base + relative[i] + k * 4u, &v[k][i], 4);
}

/* All lanes in one piece of memory: one look at the bus. False: they are not. */
static bool flat_at_once(const struct flat_access *access)
{
	const struct isa_op *op = access->in->op;
	const uint32_t *mask = gp_isa_lane_mask(access->wave);
	_Alignas(64) uint32_t relative[GP_ISA_LANES];
	uint64_t low, high;
	uint8_t *base;

	if (op->b & FLAT_ATOMIC || !gp_isa_lanes->span(access->va, mask, &low, &high) || high - low > FLAT_SPAN_MAX)
		return false;
	base = gp_isa_at(access->group->bus, low, high - low + op->a, op->b & FLAT_STORE);
	if (!base)
		return false;
	gp_isa_lanes->relative(relative, access->va, low, mask);
	if (op->a >= 4u && op->b & FLAT_LOAD) {
		flat_load_rows(access, base, relative);
	} else if (op->a >= 4u) {
		flat_store_rows(access, base, relative);
	} else {
		for (uint32_t i = 0; i < GP_ISA_LANES; i++) {
			if (!(access->exec >> i & 1u))
				continue;
			if (op->b & FLAT_LOAD)
				flat_lane_from(access, i, base + relative[i]);
			else
				flat_lane_to(access, i, base + relative[i]);
		}
	}
	return true;
}

static uint64_t flat_scratch(const struct gp_isa_wave *wave)
{
	return wave->scratch ? wave->scratch : gp_isa_get64(wave, GP_ISA_FLAT_SCRATCH);
}

static void flat_addresses(struct flat_access *access)
{
	const struct isa_instruction *in = access->in;
	const uint32_t *low = access->wave->v[in->source[0] - ISA_VECTOR], *high = low + GP_ISA_LANES;
	uint64_t offset = (uint64_t)(int64_t)in->offset;

	if (in->control & 8u) {
		offset += gp_isa_get64(access->wave, in->sdst);
		ISA_EACH access->va[i] = offset + low[i];
	} else {
		ISA_EACH access->va[i] = offset + (low[i] | (uint64_t)high[i] << 32);
	}
}

static enum isa_result flat_run_scratch(struct flat_access *access)
{
	const struct isa_instruction *in = access->in;
	uint64_t base = flat_scratch(access->wave);
	uint32_t offset = (uint32_t)in->offset + (in->control & 8u ? access->wave->s[in->sdst] : 0);

	for (uint32_t i = 0; i < GP_ISA_LANES; i++) {
		uint32_t at = offset + (in->control & 16u ? access->wave->v[in->source[0] - ISA_VECTOR][i] : 0);

		if (access->exec >> i & 1u && flat_private(access, i, base, at) < 0)
			return ISA_FAULT;
	}
	return ISA_NEXT;
}

static enum isa_result flat_run(struct gp_isa_group *group, struct gp_isa_wave *wave, const struct isa_instruction *in)
{
	struct flat_access access = { .group = group,
				      .wave = wave,
				      .in = in,
				      .exec = isa_exec(wave),
				      .returns = in->control & 4u };
	bool is_flat = !(in->control & 3u);

	if (!access.exec)
		return ISA_NEXT;
	if ((in->control & 3u) == 1u)
		return flat_run_scratch(&access);
	flat_addresses(&access);
	if (flat_at_once(&access))
		return ISA_NEXT;
	for (uint32_t i = 0; i < GP_ISA_LANES; i++) {
		uint64_t va = access.va[i];
		int r;

		if (!(access.exec >> i & 1u))
			continue;
		if (is_flat && va >> 32 == GP_ISA_PRIVATE_APERTURE)
			r = flat_private(&access, i, flat_scratch(wave), (uint32_t)va);
		else if (is_flat && va >> 32 == GP_ISA_SHARED_APERTURE)
			r = flat_lds(&access, i, (uint32_t)va);
		else
			r = flat_lane(&access, i, va);
		if (r < 0)
			return ISA_FAULT;
	}
	return ISA_NEXT;
}

/* Buffers. */

struct flat_buffer {
	uint64_t base, stride, records;
	bool is_swizzled;
};

static struct flat_buffer flat_resource(const struct gp_isa_wave *wave, uint32_t sgpr)
{
	return (struct flat_buffer){
		.base = gp_isa_get64(wave, sgpr) & 0xffffffffffffull,
		.stride = wave->s[sgpr + 1u] >> 16 & 0x3fffu,
		.records = wave->s[sgpr + 2u],
		.is_swizzled = wave->s[sgpr + 1u] >> 31,
	};
}

static void flat_nothing(const struct flat_access *access, uint32_t lane)
{
	static const uint8_t zeros[16];

	if (access->in->op->b & FLAT_LOAD)
		flat_lane_from(access, lane, zeros);
}

static enum isa_result flat_run_buffer(struct gp_isa_group *group, struct gp_isa_wave *wave,
				       const struct isa_instruction *in)
{
	struct flat_access access = { .group = group,
				      .wave = wave,
				      .in = in,
				      .exec = isa_exec(wave),
				      .returns = in->control & 4u };
	struct flat_buffer buffer = flat_resource(wave, in->sdst);
	const uint32_t *first = in->control & 3u ? wave->v[in->source[0] - ISA_VECTOR] : NULL;
	uint32_t soffset = gp_isa_scalar(wave, in, 2), size = flat_size(in->op);

	for (uint32_t i = 0; i < GP_ISA_LANES; i++) {
		uint32_t index = in->control & 2u ? first[i] : 0, offset = (uint32_t)in->offset;
		int r;

		if (!(access.exec >> i & 1u))
			continue;
		if (in->control & 1u)
			offset += in->control & 2u ? first[GP_ISA_LANES + i] : first[i];
		/* Swizzled is private memory; its end the driver's resource does not say. */
		if (buffer.is_swizzled) {
			r = flat_private(&access, i, buffer.base + soffset, offset);
		} else if (in->control & 2u ? index >= buffer.records :
					      (uint64_t)offset + soffset + size > buffer.records) {
			flat_nothing(&access, i);
			r = 0;
		} else {
			r = flat_lane(&access, i, buffer.base + soffset + offset + index * buffer.stride);
		}
		if (r < 0)
			return ISA_FAULT;
	}
	return ISA_NEXT;
}

static enum isa_result flat_no_cache(struct gp_isa_group *group, struct gp_isa_wave *wave,
				     const struct isa_instruction *in)
{
	return ISA_NEXT;
}

/* clang-format off */
#define TABLE(prefix, run)                                                                                                \
	{ prefix "load_ubyte", run, 16, 1, FLAT_LOAD }, { prefix "load_sbyte", run, 17, 1, FLAT_LOAD | FLAT_SIGNED },      \
	{ prefix "load_ushort", run, 18, 2, FLAT_LOAD }, { prefix "load_sshort", run, 19, 2, FLAT_LOAD | FLAT_SIGNED },    \
	{ prefix "load_dword", run, 20, 4, FLAT_LOAD }, { prefix "load_dwordx2", run, 21, 8, FLAT_LOAD },                  \
	{ prefix "load_dwordx3", run, 22, 12, FLAT_LOAD }, { prefix "load_dwordx4", run, 23, 16, FLAT_LOAD },              \
	{ prefix "store_byte", run, 24, 1, FLAT_STORE }, { prefix "store_byte_d16_hi", run, 25, 1, FLAT_STORE | FLAT_HIGH }, \
	{ prefix "store_short", run, 26, 2, FLAT_STORE }, { prefix "store_short_d16_hi", run, 27, 2, FLAT_STORE | FLAT_HIGH }, \
	{ prefix "store_dword", run, 28, 4, FLAT_STORE }, { prefix "store_dwordx2", run, 29, 8, FLAT_STORE },              \
	{ prefix "store_dwordx3", run, 30, 12, FLAT_STORE }, { prefix "store_dwordx4", run, 31, 16, FLAT_STORE },          \
	{ prefix "load_ubyte_d16", run, 32, 1, FLAT_LOAD | FLAT_LOW }, { prefix "load_ubyte_d16_hi", run, 33, 1, FLAT_LOAD | FLAT_HIGH }, \
	{ prefix "load_sbyte_d16", run, 34, 1, FLAT_LOAD | FLAT_SIGNED | FLAT_LOW },                                      \
	{ prefix "load_sbyte_d16_hi", run, 35, 1, FLAT_LOAD | FLAT_SIGNED | FLAT_HIGH },                                  \
	{ prefix "load_short_d16", run, 36, 2, FLAT_LOAD | FLAT_LOW }, { prefix "load_short_d16_hi", run, 37, 2, FLAT_LOAD | FLAT_HIGH }, \
	ATOMIC(prefix, run, "swap", 0, ISA_SWAP), ATOMIC(prefix, run, "cmpswap", 1, ISA_CMPSWAP), ATOMIC(prefix, run, "add", 2, ISA_ADD), \
	ATOMIC(prefix, run, "sub", 3, ISA_SUB), ATOMIC(prefix, run, "smin", 4, ISA_SMIN), ATOMIC(prefix, run, "umin", 5, ISA_UMIN), \
	ATOMIC(prefix, run, "smax", 6, ISA_SMAX), ATOMIC(prefix, run, "umax", 7, ISA_UMAX), ATOMIC(prefix, run, "and", 8, ISA_AND), \
	ATOMIC(prefix, run, "or", 9, ISA_OR), ATOMIC(prefix, run, "xor", 10, ISA_XOR), ATOMIC(prefix, run, "inc", 11, ISA_INC), \
	ATOMIC(prefix, run, "dec", 12, ISA_DEC), { prefix "atomic_add_f32", run, 77, ISA_ADD_F32, FLAT_ATOMIC },           \
	{ prefix "atomic_pk_add_f16", run, 78, ISA_PK_ADD_F16, FLAT_ATOMIC },                                             \
	{ prefix "atomic_add_f64", run, 79, ISA_ADD_F64, FLAT_ATOMIC | FLAT_WIDE },                                       \
	{ prefix "atomic_min_f64", run, 80, ISA_MIN_F64, FLAT_ATOMIC | FLAT_WIDE },                                       \
	{ prefix "atomic_max_f64", run, 81, ISA_MAX_F64, FLAT_ATOMIC | FLAT_WIDE },                                       \
	{ prefix "atomic_pk_add_bf16", run, 82, ISA_PK_ADD_BF16, FLAT_ATOMIC }
#define ATOMIC(prefix, run, name, number, op)                                 \
	{ prefix "atomic_" name, run, 64 + number, op, FLAT_ATOMIC },         \
	{ prefix "atomic_" name "_x2", run, 96 + number, op, FLAT_ATOMIC | FLAT_WIDE }
const struct isa_op gp_isa_flat[] = { TABLE("flat_", flat_run), { 0 } };
const struct isa_op gp_isa_mubuf[] = {
	TABLE("buffer_", flat_run_buffer),
	{ "buffer_wbl2", flat_no_cache, 40, 0, 0 }, { "buffer_inv", flat_no_cache, 41, 0, 0 },
	{ "buffer_wbinvl1", flat_no_cache, 62, 0, 0 }, { "buffer_wbinvl1_vol", flat_no_cache, 63, 0, 0 }, { 0 },
};
/* clang-format on */
