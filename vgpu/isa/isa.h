/* SPDX-License-Identifier: MIT */
/*
 * Executes the instructions of gfx906, gfx908, gfx90a and gfx94x: waves of 64 lanes, workgroups that share LDS, memory
 * through a bus that the caller provides. Owns no clock, no thread and no process. Code, registers that were saved and
 * every address are the client's: decode.c, bus.c and save.c judge them.
 */
#ifndef GP_VGPU_ISA_H
#define GP_VGPU_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GP_ISA_LANES    64u
#define GP_ISA_WAVE_MAX 16u  /* of a workgroup */
#define GP_ISA_ROW_MAX  512u /* vector registers of a wave, accumulation registers included */
#define GP_ISA_LDS_MAX  65536u
#define GP_ISA_SGPR_MAX 128u /* by operand number */
#define GP_ISA_TLB_SIZE 16u

#define GP_ISA_SHARED_APERTURE  0x10000u /* the high half of an address in LDS */
#define GP_ISA_PRIVATE_APERTURE 0x20000u /* the high half of an address in scratch */

/* Operand numbers of scalar registers with a name. */
enum gp_isa_sgpr {
	GP_ISA_FLAT_SCRATCH = 102,
	GP_ISA_XNACK_MASK = 104,
	GP_ISA_VCC = 106,
	GP_ISA_TTMP = 108,
	GP_ISA_M0 = 124,
	GP_ISA_EXEC = 126,
};

enum gp_isa_target { GP_ISA_GFX906, GP_ISA_GFX908, GP_ISA_GFX90A, GP_ISA_GFX940 };

enum gp_isa_state {
	GP_ISA_RUNS,
	GP_ISA_SLEEPS, /* runs, and gave up the rest of its turn */
	GP_ISA_BARRIER,
	GP_ISA_GWS, /* waits at the device-wide barrier */
	GP_ISA_ENDED,
	GP_ISA_HALTED, /* s_sethalt */
	GP_ISA_FAULTED,
};

enum gp_isa_fault_kind {
	GP_ISA_FAULT_NONE,
	GP_ISA_FAULT_UNMAPPED,
	GP_ISA_FAULT_READ_ONLY,
	GP_ISA_FAULT_ILLEGAL,    /* no such instruction, or none that is executed here: word and pc say which */
	GP_ISA_FAULT_APERTURE,   /* outside LDS or scratch */
	GP_ISA_FAULT_MISALIGNED, /* an atomic */
	GP_ISA_FAULT_TRAP,       /* s_trap: the program gave up */
};

struct gp_isa_fault {
	enum gp_isa_fault_kind kind;
	uint64_t va, pc;
	uint32_t words[2];
	uint32_t trap_id;
};

/* A piece of memory. host is valid until the bus is flushed. */
struct gp_isa_range {
	uint64_t base, size;
	uint8_t *host;
	bool writable;
};

struct gp_isa_bus {
	/* What lies at va. 0 or -EFAULT. Called when none of the ranges seen since the last flush has it. */
	int (*find)(void *context, uint64_t va, struct gp_isa_range *ret_range);
	void *context;
	struct gp_isa_range ranges[GP_ISA_TLB_SIZE];
	uint32_t range_count, last, next;
	uint64_t fault_va;
	enum gp_isa_fault_kind fault;
};

struct gp_isa_code;

struct gp_isa_wave {
	uint64_t pc;
	uint32_t s[GP_ISA_SGPR_MAX]; /* by operand number */
	uint32_t scc, mode, trapsts;
	enum gp_isa_state state;
	uint32_t row_count;    /* vector registers it has */
	bool gpr_index;        /* s_set_gpr_idx_on: M0 says which operands are indexed, and by how much */
	uint64_t scratch;      /* gfx94x: where its private memory is (architected flat scratch) */
	uint32_t scratch_size; /* bytes of a lane; 0: as many as there are */
	uint64_t executed;
	uint64_t mask_exec;          /* lane_mask[] is this EXEC, spread */
	uint32_t (*v)[GP_ISA_LANES]; /* row_count of them */
	_Alignas(64) uint32_t lane_mask[GP_ISA_LANES];
};

struct gp_isa_group {
	struct gp_isa_bus *bus;
	struct gp_isa_code *code;
	uint8_t *lds;
	uint32_t lds_size, wave_count;
	struct gp_isa_wave *waves[GP_ISA_WAVE_MAX];
	uint32_t at; /* the wave whose turn is next */
	/* The caller's. */
	uint64_t (*clock)(void *context, bool is_real); /* device time: ticks of 100 MHz, or of the core clock */
	void (*message)(void *context, struct gp_isa_group *group, uint32_t message, uint32_t m0); /* s_sendmsg */
	bool (*gws)(void *context, struct gp_isa_group *group, uint32_t op, uint32_t resource, uint32_t value);
	void *context;
	uint64_t executed, lanes_executed; /* wave instructions; lanes of vector instructions */
	struct gp_isa_fault fault;
};

/* Which build of the lanes runs: the best this processor has, or the one asked for (tests, benches). */
enum gp_isa_variant { GP_ISA_BASE, GP_ISA_AVX2, GP_ISA_AVX512 };
bool gp_isa_select(enum gp_isa_variant variant); /* false: this processor has it not */
enum gp_isa_variant gp_isa_best(void);

/* Decoded code, by address. accum_offset: the first row that is an accumulation register. */
struct gp_isa_code *gp_isa_code_create(enum gp_isa_target target, uint32_t accum_offset);
void gp_isa_code_destroy(struct gp_isa_code *code);
/* Forgets what is not in memory any more as it was: when a dispatch begins, as the instruction cache does. */
void gp_isa_code_refresh(struct gp_isa_code *code, struct gp_isa_bus *bus);
/* The name of the instruction at words, for messages and tests; NULL: none that is executed here. */
const char *gp_isa_name(enum gp_isa_target target, const uint32_t words[2], uint32_t *ret_size);
/* Walks all names; NULL ends. */
const char *gp_isa_name_at(uint32_t index);

struct gp_isa_wave *gp_isa_wave_create(uint32_t row_count);
void gp_isa_wave_destroy(struct gp_isa_wave *wave);

/* Lets the group's waves run in turn until all ended (GP_ISA_ENDED), one faulted, all wait (GP_ISA_SLEEPS, _GWS) or
 * `budget` wave instructions are used up (GP_ISA_RUNS). */
enum gp_isa_state gp_isa_group_run(struct gp_isa_group *group, uint64_t budget, uint64_t *ret_used);

/* A wave's record in a save area: its size, and where LDS lies in that of a workgroup's first wave. */
uint32_t gp_isa_record_size(uint32_t row_count, uint32_t lds_size);
uint32_t gp_isa_record_lds(uint32_t row_count);
void gp_isa_wave_save(const struct gp_isa_wave *wave, uint8_t *to);
/* -EINVAL: no record of a wave. has_scratch: private memory is the wave's own register (gfx94x). */
int gp_isa_wave_restore(struct gp_isa_wave *wave, const uint8_t *from, bool has_scratch);

void gp_isa_bus_flush(struct gp_isa_bus *bus);
/* Copies between memory and data; 0 or -EFAULT, with fault and fault_va set. */
int gp_isa_bus_read(struct gp_isa_bus *bus, uint64_t va, void *ret_data, uint32_t size);
int gp_isa_bus_write(struct gp_isa_bus *bus, uint64_t va, const void *data, uint32_t size);

static inline uint64_t gp_isa_get64(const struct gp_isa_wave *wave, uint32_t sgpr)
{
	return wave->s[sgpr] | (uint64_t)wave->s[sgpr + 1u] << 32;
}

static inline void gp_isa_put64(struct gp_isa_wave *wave, uint32_t sgpr, uint64_t value)
{
	wave->s[sgpr] = (uint32_t)value;
	wave->s[sgpr + 1u] = (uint32_t)(value >> 32);
}

#endif
