/* SPDX-License-Identifier: MIT */
/*
 * Single instructions and all they may touch. test/data/isa/state.txt has, for each operation on memory, LDS, masks,
 * matrices and control, words as LLVM's assembler makes them, what is set beforehand, and a hash of registers, LDS and
 * memory afterwards as isa_state.py computes it. Each line runs with every build of the lanes that this processor has.
 *
 * Then: no operation of the interpreter's tables is without a line here or in ops.txt.
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

#define STATE_CODE_VA   0x1000u
#define STATE_MEMORY_VA 0x100000u
#define STATE_ROWS      48u
#define STATE_ACC       16u
#define STATE_WORDS     1024u /* of LDS, and of memory */
#define STATE_NAMES     2048u

struct state {
	uint32_t code[1024], memory[STATE_WORDS], lds[STATE_WORDS];
	struct gp_isa_bus bus;
	struct gp_isa_group group;
	struct gp_isa_wave *wave;
	uint32_t message, gws_op, gws_value; /* what the caller was told last */
};

struct state_line {
	char name[48], target[16], setup[256];
	uint32_t words[8], count;
	unsigned long long hash;
};

static uint32_t state_fill(uint32_t i)
{
	uint32_t x = i * 0x9E3779B1u + 0x7F4A7C15u;

	x ^= x >> 15;
	x *= 0x85EBCA6Bu;
	return x ^ x >> 13;
}

static float state_small(uint32_t i)
{
	return (float)(state_fill(i) % 17u) - 8.0f;
}

static uint32_t state_bits(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, 4);
	return bits;
}

/* Of a small whole number. */
static uint32_t state_half(float x)
{
	uint32_t bits = state_bits(x), sign = bits >> 16 & 0x8000u;

	return bits & 0x7fffffffu ? sign | ((bits >> 23 & 0xffu) - 112u) << 10 | (bits >> 13 & 0x3ffu) : sign;
}

static void state_double(uint32_t *low, uint32_t *high, float x)
{
	double wide = (double)x;
	uint64_t bits;

	memcpy(&bits, &wide, 8);
	*low = (uint32_t)bits;
	*high = (uint32_t)(bits >> 32);
}

static int state_find(void *context, uint64_t va, struct gp_isa_range *ret_range)
{
	struct state *state = context;
	const struct gp_isa_range ranges[] = {
		{ STATE_CODE_VA, sizeof(state->code), (uint8_t *)state->code, true },
		{ STATE_MEMORY_VA, sizeof(state->memory), (uint8_t *)state->memory, true },
	};

	for (uint32_t i = 0; i < 2u; i++)
		if (va - ranges[i].base < ranges[i].size) {
			*ret_range = ranges[i];
			return 0;
		}
	return -1;
}

static uint64_t state_clock(void *context, bool is_real)
{
	(void)context;
	return is_real ? 7 : 5;
}

static void state_message(void *context, struct gp_isa_group *group, uint32_t message, uint32_t m0)
{
	(void)group, (void)m0;
	((struct state *)context)->message = message;
}

static bool state_gws(void *context, struct gp_isa_group *group, uint32_t op, uint32_t resource, uint32_t value)
{
	struct state *state = context;

	(void)group, (void)resource;
	state->gws_op = op;
	state->gws_value = value;
	return true;
}

static int state_open(void **ret)
{
	struct state *state = calloc(1, sizeof(*state));

	*ret = state;
	state->bus.find = state_find;
	state->bus.context = state;
	state->wave = gp_isa_wave_create(STATE_ROWS);
	state->group = (struct gp_isa_group){ .bus = &state->bus,
					      .lds = (uint8_t *)state->lds,
					      .lds_size = sizeof(state->lds),
					      .wave_count = 1,
					      .waves = { state->wave },
					      .clock = state_clock,
					      .message = state_message,
					      .gws = state_gws,
					      .context = state };
	return 0;
}

static int state_close(void **ret)
{
	struct state *state = *ret;

	gp_isa_wave_destroy(state->wave);
	gp_isa_code_destroy(state->group.code);
	free(state);
	return 0;
}

static void state_reset(struct state *state)
{
	struct gp_isa_wave *wave = state->wave;

	for (uint32_t r = 0; r < STATE_ROWS; r++)
		for (uint32_t i = 0; i < 64u; i++)
			wave->v[r][i] = state_fill(0x10000u + r * 64u + i);
	for (uint32_t n = 0; n < GP_ISA_SGPR_MAX; n++)
		wave->s[n] = n < 108u ? state_fill(0x20000u + n) : 0;
	for (uint32_t n = 0; n < STATE_WORDS; n++) {
		state->lds[n] = state_fill(0x30000u + n);
		state->memory[n] = state_fill(0x40000u + n);
	}
	gp_isa_put64(wave, GP_ISA_EXEC, UINT64_MAX);
	wave->mode = 0xf0;
	wave->scc = 0;
	wave->gpr_index = false;
}

static void state_set_row(struct gp_isa_wave *wave, char kind, uint32_t n, uint32_t first, uint32_t second)
{
	for (uint32_t i = 0; i < 64u; i++) {
		float x = state_small(n * 64u + i), y = state_small(n * 64u + i + 7u);

		switch (kind) {
		case 'L': wave->v[n][i] = i * first + second; break;
		case 'K': wave->v[n][i] = (wave->v[n][i] & first) | second; break;
		case 'F': wave->v[n][i] = state_bits(x); break;
		case 'H': wave->v[n][i] = state_half(x) | state_half(y) << 16; break;
		case 'B': wave->v[n][i] = state_bits(x) >> 16 | (state_bits(y) & 0xffff0000u); break;
		case 'D': state_double(&wave->v[n][i], &wave->v[n + 1u][i], x); break;
		default: fail_msg("no kind '%c'", kind);
		}
	}
}

static void state_set_memory(uint32_t *to, char kind)
{
	for (uint32_t k = 0; k < STATE_WORDS; k++) {
		float x = state_small(k * 2u), y = state_small(k * 2u + 1u);

		switch (kind) {
		case 'f': to[k] = state_bits(state_small(k)); break;
		case 'h': to[k] = state_half(x) | state_half(y) << 16; break;
		case 'b': to[k] = state_bits(x) >> 16 | (state_bits(y) & 0xffff0000u); break;
		default:
			if (k % 2u == 0)
				state_double(&to[k], &to[k + 1u], state_small(k / 2u));
		}
	}
}

/* One item of a line: see isa_state.py. */
static void state_set(struct state *state, const char *text)
{
	unsigned long long first = 0, second = 0;
	unsigned n = 0;

	if (text[1] && text[1] != '=')
		sscanf(text + 1, "%u", &n);
	if (strchr(text, '='))
		sscanf(strchr(text, '=') + 1, "%llx,%llx", &first, &second);
	switch (*text) {
	case 'S': state->wave->s[n] = (uint32_t)first; break;
	case 'X': gp_isa_put64(state->wave, GP_ISA_EXEC, first); break;
	case 'C': state->wave->scc = (uint32_t)first; break;
	case 'f':
	case 'd':
	case 'h':
	case 'b':
		state_set_memory(state->lds, *text);
		state_set_memory(state->memory, *text);
		break;
	default: state_set_row(state->wave, *text, n, (uint32_t)first, (uint32_t)second);
	}
}

static uint64_t state_mix(uint64_t hash, const uint32_t *words, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		hash = (hash ^ words[i]) * 0x100000001b3ull;
	return hash;
}

static uint64_t state_hash(const struct state *state)
{
	const struct gp_isa_wave *wave = state->wave;
	const uint32_t rest[] = { wave->s[GP_ISA_M0], wave->s[GP_ISA_EXEC], wave->s[GP_ISA_EXEC + 1u], wave->scc,
				  wave->mode };
	uint64_t hash = 0xcbf29ce484222325ull;

	for (uint32_t r = 0; r < STATE_ROWS; r++)
		hash = state_mix(hash, wave->v[r], 64);
	hash = state_mix(hash, wave->s, 108);
	hash = state_mix(hash, rest, 5);
	return state_mix(state_mix(hash, state->lds, STATE_WORDS), state->memory, STATE_WORDS);
}

static enum gp_isa_target state_target(const char *name)
{
	return !strcmp(name, "gfx906") ? GP_ISA_GFX906 : !strcmp(name, "gfx940") ? GP_ISA_GFX940 : GP_ISA_GFX90A;
}

static enum gp_isa_state state_run(struct state *state, enum gp_isa_target target, const uint32_t *words,
				   uint32_t count)
{
	uint64_t used;

	memcpy(state->code, words, count * 4u);
	state->code[count] = 0xbf810000u;
	gp_isa_code_destroy(state->group.code);
	state->group.code = gp_isa_code_create(target, STATE_ACC);
	gp_isa_bus_flush(&state->bus);
	state->wave->pc = STATE_CODE_VA;
	state->wave->state = GP_ISA_RUNS;
	return gp_isa_group_run(&state->group, 100, &used);
}

static void state_check(struct state *state, const struct state_line *line)
{
	enum gp_isa_state end;
	char setup[256], *rest = setup, *item;

	state_reset(state);
	strcpy(setup, line->setup);
	while (strcmp(line->setup, "-") && (item = strtok_r(rest, ";", &rest)))
		state_set(state, item);
	end = state_run(state, state_target(line->target), line->words, line->count);
	/* A hint to sleep gives up the turn. */
	while (end == GP_ISA_SLEEPS) {
		uint64_t used;

		end = gp_isa_group_run(&state->group, 100, &used);
	}
	if (end != GP_ISA_ENDED)
		fail_msg("%s (%08x, %s) ended with %d, fault %d", line->name, line->words[0], line->target, end,
			 state->group.fault.kind);
	if (state_hash(state) != line->hash)
		fail_msg("%s (%08x, %s) with %s leaves another state", line->name, line->words[0], line->target,
			 line->setup);
}

static bool state_read(FILE *file, struct state_line *ret_line)
{
	char text[512], *rest = text;

	do
		if (!fgets(text, sizeof(text), file))
			return false;
	while (*text == '#');
	memset(ret_line, 0, sizeof(*ret_line));
	snprintf(ret_line->name, sizeof(ret_line->name), "%s", strtok_r(rest, " ", &rest));
	snprintf(ret_line->target, sizeof(ret_line->target), "%s", strtok_r(rest, " ", &rest));
	ret_line->count = (uint32_t)atoi(strtok_r(rest, " ", &rest));
	assert_true(ret_line->count && ret_line->count <= 8u);
	for (uint32_t i = 0; i < ret_line->count; i++)
		ret_line->words[i] = (uint32_t)strtoul(strtok_r(rest, " ", &rest), NULL, 16);
	snprintf(ret_line->setup, sizeof(ret_line->setup), "%s", strtok_r(rest, " ", &rest));
	ret_line->hash = strtoull(rest, NULL, 16);
	return true;
}

/* Shows: every line of the table, by every build of the lanes. */
static void test_table(void **context)
{
	FILE *file = fopen(ISA_DATA "/state.txt", "r");
	struct state_line line;
	uint32_t count = 0;

	assert_non_null(file);
	while (state_read(file, &line)) {
		uint32_t size;

		assert_string_equal(gp_isa_name(state_target(line.target), line.words, &size), line.name);
		for (uint32_t variant = 0; variant < 3u; variant++)
			if (gp_isa_select((enum gp_isa_variant)variant))
				state_check(*context, &line);
		count++;
	}
	fclose(file);
	assert_true(count > 1200u);
}

/* Shows: what an instruction tells the caller. */
static void test_told(void **context)
{
	static const uint32_t trap[] = { 0xbf920007 }, message[] = { 0xbf900001 };
	static const uint32_t init[] = { 0xd9330000, 0x00000000 },
			      barrier[] = { 0xd93b0000, 0x00000000 }; /* of v0, gds */
	struct state *state = *context;

	state_reset(state);
	assert_int_equal(state_run(state, GP_ISA_GFX90A, trap, 1), GP_ISA_FAULTED);
	assert_int_equal(state->group.fault.kind, GP_ISA_FAULT_TRAP);
	assert_int_equal(state->group.fault.trap_id, 7);
	assert_int_equal(state_run(state, GP_ISA_GFX90A, message, 1), GP_ISA_ENDED);
	assert_int_equal(state->message, 1);
	state->wave->v[0][0] = 41;
	assert_int_equal(state_run(state, GP_ISA_GFX90A, init, 2), GP_ISA_ENDED);
	assert_int_equal(state->gws_op, 153);
	assert_int_equal(state->gws_value, 41);
	assert_int_equal(state_run(state, GP_ISA_GFX90A, barrier, 2), GP_ISA_GWS);
	assert_int_equal(state->gws_op, 157);
}

static char tested_names[STATE_NAMES][48];
static uint32_t tested_count;

static void tested_add(const char *name)
{
	for (uint32_t i = tested_count; i--;)
		if (!strcmp(tested_names[i], name))
			return;
	assert_true(tested_count < STATE_NAMES);
	snprintf(tested_names[tested_count++], sizeof(tested_names[0]), "%s", name);
}

static void tested_read(const char *path)
{
	FILE *file = fopen(path, "r");
	char text[512];

	assert_non_null(file);
	while (fgets(text, sizeof(text), file))
		if (*text != '#')
			tested_add(strtok(text, " "));
	fclose(file);
}

/* Shows: each operation that the interpreter has a name for is in one of the two tables, or in test_told. */
static void test_complete(void **context)
{
	uint32_t missing = 0, count = 0;
	const char *name;

	(void)context;
	tested_read(ISA_DATA "/ops.txt");
	tested_read(ISA_DATA "/state.txt");
	tested_add("s_trap");
	tested_add("ds_gws_init");
	tested_add("ds_gws_barrier");
	for (; (name = gp_isa_name_at(count)); count++) {
		bool is_tested = false;

		for (uint32_t i = 0; i < tested_count; i++)
			is_tested |= !strcmp(tested_names[i], name);
		if (!is_tested)
			print_error("%s has no test\n", name);
		missing += !is_tested;
	}
	print_message("%u operations, %u of them without a test\n", count, missing);
	assert_int_equal(missing, 0);
	assert_true(count > 700u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_table, state_open, state_close),
		cmocka_unit_test_setup_teardown(test_told, state_open, state_close),
		cmocka_unit_test(test_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
