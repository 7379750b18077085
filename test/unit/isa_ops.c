/* SPDX-License-Identifier: MIT */
/*
 * Single instructions. test/data/isa/ops.txt has, for each operation, words as LLVM's assembler makes them, operands,
 * and the result as isa_ops.py computes it: neither shares anything with the interpreter. Each line runs with every
 * build of the lanes that this processor has, with all lanes and with some. Then modes, DPP, memory and faults by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "vgpu/isa/isa.h"

#define OPS_CODE_VA   0x1000u
#define OPS_MEMORY_VA 0x100000u
#define OPS_CONST_VA  0x200000u
#define OPS_SOME      0xff00ff00f0f0aaaaull
#define OPS_BEFORE    0x55aa55aau

struct ops {
	uint32_t code[2048], memory[1024], constants[64];
	struct gp_isa_bus bus;
	struct gp_isa_group group;
	struct gp_isa_wave *wave;
	uint8_t lds[512];
};

static int ops_find(void *context, uint64_t va, struct gp_isa_range *ret_range)
{
	struct ops *ops = context;
	const struct gp_isa_range ranges[] = {
		{ OPS_CODE_VA, sizeof(ops->code), (uint8_t *)ops->code, true },
		{ OPS_MEMORY_VA, sizeof(ops->memory), (uint8_t *)ops->memory, true },
		{ OPS_CONST_VA, sizeof(ops->constants), (uint8_t *)ops->constants, false },
	};

	for (uint32_t i = 0; i < 3u; i++)
		if (va - ranges[i].base < ranges[i].size) {
			*ret_range = ranges[i];
			return 0;
		}
	return -1;
}

static int ops_open(void **state)
{
	struct ops *ops = calloc(1, sizeof(*ops));

	*state = ops;
	ops->bus.find = ops_find;
	ops->bus.context = ops;
	ops->wave = gp_isa_wave_create(32);
	ops->group = (struct gp_isa_group){ .bus = &ops->bus,
					    .lds = ops->lds,
					    .lds_size = sizeof(ops->lds),
					    .wave_count = 1,
					    .waves = { ops->wave } };
	return 0;
}

static int ops_close(void **state)
{
	struct ops *ops = *state;

	gp_isa_wave_destroy(ops->wave);
	gp_isa_code_destroy(ops->group.code);
	free(ops);
	return 0;
}

/* Runs words, up to an end that is added. */
static enum gp_isa_state ops_run(struct ops *ops, const uint32_t *words, uint32_t count)
{
	uint64_t used;

	memcpy(ops->code, words, count * 4u);
	ops->code[count] = 0xbf810000u;
	gp_isa_code_destroy(ops->group.code);
	ops->group.code = gp_isa_code_create(GP_ISA_GFX90A, 16);
	gp_isa_bus_flush(&ops->bus);
	ops->wave->pc = OPS_CODE_VA;
	ops->wave->state = GP_ISA_RUNS;
	return gp_isa_group_run(&ops->group, 100, &used);
}

static void ops_clear(struct ops *ops, uint64_t exec)
{
	struct gp_isa_wave *wave = ops->wave;

	memset(wave->s, 0, sizeof(wave->s));
	memset(wave->v, 0, 32u * 256u);
	for (uint32_t i = 0; i < 64u; i++)
		wave->v[6][i] = wave->v[7][i] = OPS_BEFORE;
	wave->mode = 0xf0;
	wave->scc = 0;
	wave->gpr_index = false;
	gp_isa_put64(wave, GP_ISA_EXEC, exec);
}

struct ops_line {
	char name[48];
	uint32_t words[2];
	unsigned long long operands[3], result;
	uint32_t scc, wide;
};

static void ops_check(struct ops *ops, const struct ops_line *line, uint64_t exec)
{
	struct gp_isa_wave *wave = ops->wave;
	bool is_scalar = line->wide & 16u;
	uint64_t expected = line->result;

	ops_clear(ops, exec);
	for (uint32_t n = 0; n < 3u; n++) {
		gp_isa_put64(wave, n * 2u, line->operands[n]);
		for (uint32_t i = 0; i < 64u; i++) {
			wave->v[n * 2u][i] = (uint32_t)line->operands[n];
			wave->v[n * 2u + 1u][i] = (uint32_t)(line->operands[n] >> 32);
		}
	}
	if (ops_run(ops, line->words, line->words[1] == 0xbf810000u ? 1 : 2) != GP_ISA_ENDED)
		fail_msg("%s (%08x) is not executed", line->name, line->words[0]);
	/* A compare leaves a mask of the lanes that are on. */
	if (line->name[0] == 'v' && is_scalar)
		expected &= exec;
	if (is_scalar && strncmp(line->name, "s_cmp", 5)) {
		uint64_t got = line->wide & 8u ? gp_isa_get64(wave, 6) : wave->s[6];

		if (got != expected)
			fail_msg("%s: 0x%llx instead of 0x%llx", line->name, (unsigned long long)got,
				 (unsigned long long)expected);
	}
	if (line->scc != 2u && wave->scc != line->scc)
		fail_msg("%s: SCC is %u", line->name, wave->scc);
	for (uint32_t i = 0; !is_scalar && i < 64u; i++) {
		uint64_t got = wave->v[6][i] | (uint64_t)wave->v[7][i] << 32;
		uint64_t before = OPS_BEFORE | (uint64_t)OPS_BEFORE << 32, is = expected;

		if (!(line->wide & 8u)) {
			got &= UINT32_MAX;
			before &= UINT32_MAX;
			/* Some operations of halves leave the other half alone. */
			if (got >> 16 == OPS_BEFORE >> 16 && expected >> 16 == 0)
				is |= OPS_BEFORE & 0xffff0000u;
		}
		if (got != (exec >> i & 1u ? is : before))
			fail_msg("%s(0x%llx, 0x%llx, 0x%llx): lane %u is 0x%llx instead of 0x%llx", line->name,
				 line->operands[0], line->operands[1], line->operands[2], i, (unsigned long long)got,
				 (unsigned long long)(exec >> i & 1u ? is : before));
	}
}

/* Shows: every line of the table, by every build of the lanes. */
static void test_table(void **state)
{
	FILE *file = fopen(ISA_OPS, "r");
	struct ops_line line;
	char text[256];
	uint32_t count = 0;

	assert_non_null(file);
	while (fgets(text, sizeof(text), file)) {
		uint32_t size;

		if (*text == '#')
			continue;
		assert_int_equal(sscanf(text, "%47s %x %x %llx %llx %llx %llx %u %u", line.name, &line.words[0],
					&line.words[1], &line.operands[0], &line.operands[1], &line.operands[2],
					&line.result, &line.scc, &line.wide),
				 9);
		assert_string_equal(gp_isa_name(GP_ISA_GFX90A, line.words, &size), line.name);
		for (uint32_t variant = 0; variant < 3u; variant++)
			if (gp_isa_select((enum gp_isa_variant)variant)) {
				ops_check(*state, &line, UINT64_MAX);
				ops_check(*state, &line, OPS_SOME);
			}
		count++;
	}
	fclose(file);
	assert_true(count > 1500u);
}

/* Shows: v_add_f32 rounds and flushes as the mode register says. 1 + 2^-24 is between two floats. */
static void test_modes(void **state)
{
	static const uint32_t add[] = { 0x020c0500 }; /* v_add_f32 v6, v0, v2 */
	static const struct {
		uint32_t mode, x, y, result;
	} cases[] = {
		{ 0xf0, 0x3f800000, 0x33800000, 0x3f800000 }, { 0xf1, 0x3f800000, 0x33800000, 0x3f800001 },
		{ 0xf2, 0x3f800000, 0x33800000, 0x3f800000 }, { 0xf3, 0xbf800000, 0xb3800000, 0xbf800000 },
		{ 0xf2, 0xbf800000, 0xb3800000, 0xbf800001 }, { 0xf0, 0x00000003, 0x00000004, 0x00000007 },
		{ 0xc0, 0x00000003, 0x00000004, 0x00000000 }, { 0xe0, 0x00800003, 0x80800000, 0x00000003 },
		{ 0xd0, 0x00800003, 0x80800000, 0x00000000 },
	};
	struct ops *ops = *state;

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ops_clear(ops, UINT64_MAX);
		ops->wave->mode = cases[i].mode;
		ops->wave->v[0][9] = cases[i].x;
		ops->wave->v[2][9] = cases[i].y;
		assert_int_equal(ops_run(ops, add, 1), GP_ISA_ENDED);
		if (ops->wave->v[6][9] != cases[i].result)
			fail_msg("case %u: 0x%x", i, ops->wave->v[6][9]);
	}
}

/* Shows: v_mov_b32_dpp v6, v0 with the moves that scans are made of. */
static void test_dpp(void **state)
{
	static const struct {
		uint32_t control, lane, from; /* 64: what was there */
	} cases[] = {
		{ 0x111, 17, 16 }, { 0x111, 16, 64 }, { 0x101, 3, 4 },   { 0x101, 15, 64 }, { 0x1b, 5, 6 },
		{ 0x142, 20, 15 }, { 0x142, 3, 64 },  { 0x143, 40, 31 }, { 0x140, 18, 29 }, { 0x141, 9, 14 },
		{ 0x121, 16, 31 }, { 0x138, 32, 31 }, { 0x13c, 0, 63 },  { 0x153, 37, 35 },
	};
	struct ops *ops = *state;

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t words[2] = { 0x7e0c02fa, 0xff000000u | cases[i].control << 8 };

		ops_clear(ops, UINT64_MAX);
		for (uint32_t lane = 0; lane < 64u; lane++)
			ops->wave->v[0][lane] = lane;
		assert_int_equal(ops_run(ops, words, 2), GP_ISA_ENDED);
		if (ops->wave->v[6][cases[i].lane] != (cases[i].from == 64u ? OPS_BEFORE : cases[i].from))
			fail_msg("control 0x%x: lane %u is 0x%x", cases[i].control, cases[i].lane,
				 ops->wave->v[6][cases[i].lane]);
	}
}

/* Shows: v_mfma_f32_4x4x1f32 a[0:3], v0, v2, 0 multiplies sixteen blocks of four by four. */
static void test_matrix(void **state)
{
	static const uint32_t words[] = { 0xd3c28000, 0x02020500 };
	struct ops *ops = *state;

	ops_clear(ops, UINT64_MAX);
	for (uint32_t lane = 0; lane < 64u; lane++) {
		float a = (float)(lane + 1u), b = (float)(2u * lane + 1u);

		memcpy(&ops->wave->v[0][lane], &a, 4);
		memcpy(&ops->wave->v[2][lane], &b, 4);
	}
	assert_int_equal(ops_run(ops, words, 2), GP_ISA_ENDED);
	for (uint32_t lane = 0; lane < 64u; lane++)
		for (uint32_t row = 0; row < 4u; row++) {
			float expected = (float)((lane & ~3u) + row + 1u) * (float)(2u * lane + 1u), got;

			memcpy(&got, &ops->wave->v[16u + row][lane], 4);
			assert_true(got == expected);
		}
}

/* Shows: what cannot be done is a fault of its kind, with the address. */
static void test_faults(void **state)
{
	static const struct {
		uint32_t words[2], address;
		enum gp_isa_fault_kind kind;
		uint64_t va;
	} cases[] = {
		{ { 0xdc508000, 0x067f0000 },
		  0x777000,
		  GP_ISA_FAULT_UNMAPPED,
		  0x777000 }, /* global_load_dword v6, v[0:1] */
		{ { 0xdc708000, 0x007f0200 },
		  OPS_CONST_VA,
		  GP_ISA_FAULT_READ_ONLY,
		  OPS_CONST_VA }, /* global_store_dword v[0:1], v2 */
		{ { 0xdd088000, 0x007f0200 },
		  OPS_MEMORY_VA + 2u,
		  GP_ISA_FAULT_MISALIGNED,
		  OPS_MEMORY_VA + 2u },                                                         /* atomic_add */
		{ { 0xd86c0000, 0x06000000 }, 512, GP_ISA_FAULT_APERTURE, 0x1000000000200ull }, /* ds_read_b32 v6, v0 */
		{ { 0xf0000000, 0x00000000 }, 0, GP_ISA_FAULT_ILLEGAL, OPS_CODE_VA },           /* an image */
		{ { 0x7efe0300, 0xbf810000 }, 0, GP_ISA_FAULT_ILLEGAL, OPS_CODE_VA }, /* v127, which it has not */
		{ { 0xbf920002, 0xbf810000 }, 0, GP_ISA_FAULT_TRAP, OPS_CODE_VA },    /* s_trap 2 */
	};
	struct ops *ops = *state;

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ops_clear(ops, 2);
		ops->wave->v[0][1] = cases[i].address;
		assert_int_equal(ops_run(ops, cases[i].words, 2), GP_ISA_FAULTED);
		if (ops->group.fault.kind != cases[i].kind || ops->group.fault.va != cases[i].va)
			fail_msg("case %u: kind %d at 0x%llx", i, ops->group.fault.kind,
				 (unsigned long long)ops->group.fault.va);
		assert_int_equal(ops->group.fault.words[0], cases[i].words[0]);
	}
}

/* Shows: a record of a wave is refused when it is none. */
static void test_record(void **state)
{
	struct ops *ops = *state;
	uint8_t *record = calloc(1, gp_isa_record_size(32, 0));

	ops_clear(ops, 5);
	assert_int_equal(gp_isa_wave_restore(ops->wave, record, false), -22);
	gp_isa_wave_save(ops->wave, record);
	assert_int_equal(gp_isa_wave_restore(ops->wave, record, false), 0);
	assert_int_equal(gp_isa_get64(ops->wave, GP_ISA_EXEC), 5);
	free(record);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_table, ops_open, ops_close),
		cmocka_unit_test_setup_teardown(test_modes, ops_open, ops_close),
		cmocka_unit_test_setup_teardown(test_dpp, ops_open, ops_close),
		cmocka_unit_test_setup_teardown(test_matrix, ops_open, ops_close),
		cmocka_unit_test_setup_teardown(test_faults, ops_open, ops_close),
		cmocka_unit_test_setup_teardown(test_record, ops_open, ops_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
