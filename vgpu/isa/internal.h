/* SPDX-License-Identifier: MIT */
/* What the files of this folder share: decoded instructions, the lanes' operations, operands. */
#ifndef GP_VGPU_ISA_INTERNAL_H
#define GP_VGPU_ISA_INTERNAL_H

#include <string.h>
#include "vgpu/isa/isa.h"

#define ISA_EACH for (uint32_t i = 0; i < GP_ISA_LANES; i++)

typedef uint32_t isa_row[GP_ISA_LANES];
typedef uint64_t isa_row64[GP_ISA_LANES];

/* What an instruction did to its wave. */
enum isa_result {
	ISA_NEXT,    /* on to the next instruction */
	ISA_STAY,    /* pc is where it should be */
	ISA_WAIT,    /* its state changed; on to the next instruction when it runs again */
	ISA_REPEAT,  /* its state changed; this instruction again */
	ISA_FAULT,   /* the bus knows */
	ISA_ILLEGAL, /* not executed here */
};

/* Of an operand. Floats have modifiers, and inline constants of their size. */
enum isa_type { ISA_NONE, ISA_U16, ISA_U32, ISA_U64, ISA_F16, ISA_F32, ISA_F64 };

/* One vector operation as its lanes see it. 64-bit operands are in q, others in r. */
struct isa_alu {
	const uint32_t *r[3];
	const uint64_t *q[3];
	uint32_t *d;
	uint64_t *qd;
	uint64_t mask_in, mask_out; /* a bit per lane: carries, conditions */
	uint32_t relation;          /* compares: which of less, equal, greater, unordered */
	bool clamp;
	uint32_t round; /* of the result's type, as the mode register has it */
};
typedef void isa_lanes_run(struct isa_alu *alu);

/* What a kind of operation takes and gives. */
struct isa_kind {
	uint8_t source_count;
	uint8_t source[3], result; /* enum isa_type */
	bool accumulates;          /* the last source is the old result */
	bool mask_in, mask_out;    /* a scalar pair goes in, comes out */
	bool keeps_half;           /* 16 bits: the other half of the result stays */
};

enum isa_encoding { ISA_VOP1, ISA_VOP2, ISA_VOP3, ISA_VOPC, ISA_VOP3P };

/* A vector operation: one line of lanes.def. */
struct isa_lane_op {
	const char *name;
	const struct isa_kind *kind;
	uint16_t index; /* in the table of lanes */
	uint16_t number;
	uint8_t encoding;
};

extern const struct isa_lane_op gp_isa_lane_ops[];
extern const uint32_t gp_isa_lane_op_count;
bool gp_isa_ignores_round(const struct isa_lane_op *op);

/* The same source built for three processors. */
struct isa_lanes {
	isa_lanes_run *const *ops;
	isa_lanes_run *const *compares; /* by enum isa_compare */
	/* Memory of a whole wave: words at base + at[lane]. */
	void (*gather)(uint32_t *to, const uint8_t *base, const uint32_t *at);
	void (*blend)(uint32_t *to, const uint32_t *from, const uint32_t *mask);
	bool (*span)(const uint64_t *va, const uint32_t *mask, uint64_t *ret_low, uint64_t *ret_high);
	void (*relative)(uint32_t *to, const uint64_t *va, uint64_t low, const uint32_t *mask);
	void (*broadcast)(uint32_t *to, uint32_t value);
};
extern const struct isa_lanes gp_isa_lanes_base, gp_isa_lanes_avx2, gp_isa_lanes_avx512;
extern const struct isa_lanes *gp_isa_lanes; /* the chosen one */

enum isa_compare {
	ISA_COMPARE_F16,
	ISA_COMPARE_F32,
	ISA_COMPARE_F64,
	ISA_COMPARE_I16,
	ISA_COMPARE_U16,
	ISA_COMPARE_I32,
	ISA_COMPARE_U32,
	ISA_COMPARE_I64,
	ISA_COMPARE_U64,
	ISA_COMPARE_CLASS_F16,
	ISA_COMPARE_CLASS_F32,
	ISA_COMPARE_CLASS_F64,
	ISA_COMPARE_COUNT,
};

struct isa_instruction;
typedef enum isa_result isa_run(struct gp_isa_group *group, struct gp_isa_wave *wave,
				const struct isa_instruction *instruction);

/* An operation that is no lane operation: one line of a file's table. */
struct isa_op {
	const char *name;
	isa_run *run;
	uint16_t number;
	uint8_t a, b; /* the table's own */
};

#define ISA_CONSTANT 200u /* source[]: the value is in value[] */
#define ISA_VECTOR   256u /* source[]: row + 256 */

/* Decoded once. Register numbers are inside their files, rows below row_end. */
struct isa_instruction {
	isa_run *run; /* NULL: not decoded yet */
	union {
		const struct isa_lane_op *lanes;
		const struct isa_op *op;
	};
	const char *name;
	uint64_t value[3];
	uint32_t words[2];
	int32_t offset;
	uint16_t source[3]; /* scalar register, ISA_CONSTANT, ISA_VECTOR + row; SPECIAL: see operand.c */
	uint16_t vdst;      /* row */
	uint16_t sdst;      /* scalar register */
	uint16_t row_end;   /* rows it touches lie below */
	uint16_t number;
	uint16_t control; /* DPP's control; flags of memory operations */
	uint8_t source_count, size, neg, abs, omod, clamp, opsel, opsel_hi;
	uint8_t dpp_mask;
	bool is_dpp, is_sdwa, bound_zero;
	bool is_plain;     /* rows and constants of 32 bits, nothing modified, no masks */
	bool counts_lanes; /* a vector operation */
	uint8_t sdwa_dst, sdwa_unused, sdwa_source[2];
	bool sdwa_sext[2];
	uint8_t relation; /* compares */
	uint8_t compare;
	bool writes_exec;
};

/* operand.c */
uint32_t gp_isa_scalar(const struct gp_isa_wave *wave, const struct isa_instruction *in, uint32_t which);
uint64_t gp_isa_scalar64(const struct gp_isa_wave *wave, const struct isa_instruction *in, uint32_t which);
/* The value of an inline constant or literal for an operand of that type; false: none. */
bool gp_isa_constant(uint32_t code, uint32_t literal, enum isa_type type, uint64_t *ret_value);
const uint32_t *gp_isa_lane_mask(struct gp_isa_wave *wave);
/* Writes 64 lanes into a row, where EXEC is set. */
void gp_isa_put(struct gp_isa_wave *wave, uint32_t row, const uint32_t *from);
void gp_isa_put_wide(struct gp_isa_wave *wave, uint32_t row, const uint64_t *from);
const uint32_t *gp_isa_row(const struct gp_isa_wave *wave, const struct isa_instruction *in, uint32_t which,
			   uint32_t *buffer);
void gp_isa_row64(const struct gp_isa_wave *wave, const struct isa_instruction *in, uint32_t which, uint64_t *buffer);

static inline uint64_t isa_exec(const struct gp_isa_wave *wave)
{
	return gp_isa_get64(wave, GP_ISA_EXEC);
}

/* decode.c */
void gp_isa_decode(enum gp_isa_target target, uint32_t accum_offset, const uint32_t words[2],
		   struct isa_instruction *ret_instruction);
const struct isa_instruction *gp_isa_fetch(struct gp_isa_code *code, struct gp_isa_bus *bus, uint64_t pc);

/* bus.c */
uint8_t *gp_isa_at(struct gp_isa_bus *bus, uint64_t va, uint64_t size, bool write);

/* The tables of the families. */
extern const struct isa_op gp_isa_sop1[], gp_isa_sop2[], gp_isa_sopc[], gp_isa_sopk[], gp_isa_sopp[], gp_isa_smem[];
extern const struct isa_op gp_isa_vop_special[], gp_isa_vop3p[], gp_isa_ds[], gp_isa_flat[], gp_isa_mubuf[],
	gp_isa_mfma[];
isa_run gp_isa_run_lanes, gp_isa_run_compare;
const struct isa_kind *gp_isa_compare_kind(uint32_t compare);
/* Of vop_special: what a says. */
enum { ISA_OPERANDS_NONE, ISA_OPERANDS_TO_SCALAR, ISA_OPERANDS_ROWS, ISA_OPERANDS_ACC, ISA_OPERANDS_SCALAR };
/* How many rows an operation reads and writes. ds: data has the second operand's in its high half. */
struct isa_extent {
	uint8_t address, data, result;
};
struct isa_extent gp_isa_ds_extent(const struct isa_op *op);
struct isa_extent gp_isa_flat_extent(const struct isa_op *op);
struct isa_extent gp_isa_mfma_extent(const struct isa_op *op); /* address: of A, data: of B */
/* Of vop3p: what b says. a is the count of sources. */
enum { ISA_PACKED_16, ISA_PACKED_MIX, ISA_PACKED_F32, ISA_PACKED_ACC_READ, ISA_PACKED_ACC_WRITE };

/* atomic.c: what an atomic leaves in memory. */
enum isa_atomic {
	ISA_SWAP,
	ISA_CMPSWAP,
	ISA_ADD,
	ISA_SUB,
	ISA_RSUB,
	ISA_SMIN,
	ISA_UMIN,
	ISA_SMAX,
	ISA_UMAX,
	ISA_AND,
	ISA_OR,
	ISA_XOR,
	ISA_INC,
	ISA_DEC,
	ISA_ADD_F32,
	ISA_ADD_F64,
	ISA_MIN_F64,
	ISA_MAX_F64,
	ISA_MIN_F32,
	ISA_MAX_F32,
	ISA_PK_ADD_F16,
	ISA_PK_ADD_BF16,
	ISA_MSKOR,
	ISA_CMPSWAP_F, /* compares as floats */
};
/* Returns the old value. p is aligned to its size. */
uint64_t gp_isa_atomic(uint8_t *p, enum isa_atomic op, bool is_wide, uint64_t x, uint64_t compare);

#endif
