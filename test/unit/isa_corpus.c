/* SPDX-License-Identifier: MIT */
/*
 * Runs the kernels of a code object (isa_kernels.cpp for a GPU) through the interpreter and compares with the CPU
 * (isa_kernels.cpp for the host, loaded with dlopen).
 *
 * usage: isa-corpus HOST.so [--every N] [--omit PARTS] [--only KERNEL] [--variant 0|1|2] CODE_OBJECT...
 *
 * --every N: after every N wave instructions of a workgroup all its waves are saved as records, their registers and LDS
 * are thrown away, and new ones are filled with noise and restored from the records. --omit PARTS: each part in turn is
 * left as noise, and the loss of those that are named ("all", or some) must be noticed.
 * Exit status: 0 right, 1 wrong, 2 usage.
 */
#include <dlfcn.h>
#include <elf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/file.h"
#include "vgpu/execute/execute.h"
#include "vgpu/node/memory.h"

#define CORPUS_N          1024u
#define CORPUS_BLOCKS     4u
#define CORPUS_THREADS    256u
#define CORPUS_CODE_VA    0x100000000ull
#define CORPUS_IN_VA      0x200000000ull
#define CORPUS_OUT_VA     0x300000000ull
#define CORPUS_ARGS_VA    0x400000000ull
#define CORPUS_SCRATCH_VA 0x500000000ull
#define CORPUS_LANE_SIZE  16384u
#define CORPUS_BUDGET     100000000ull

/* What a restore can forget. */
static const char *const corpus_parts[] = { "vgprs", "agprs", "sgprs", "high sgprs", "vcc",          "exec",    "scc",
					    "pc",    "m0",    "mode",  "lds",        "flat scratch", "barrier", NULL };

struct corpus {
	uint32_t in[CORPUS_N], out[CORPUS_N], expected[CORPUS_N];
	uint8_t args[512], *image, *scratch;
	uint64_t image_size;
	struct gp_execution execution;
	struct gp_vqueue queue;
	struct gp_vdispatch dispatch;
	uint64_t every;
	int omit; /* an index of corpus_parts; -1: nothing */
	uint64_t executed, restored;
};

static struct corpus corpus;

static int corpus_find(void *context, uint64_t va, struct gp_isa_range *ret_range)
{
	struct corpus *c = context;
	const struct gp_isa_range ranges[] = {
		{ CORPUS_CODE_VA, c->image_size, c->image, true },
		{ CORPUS_IN_VA, sizeof(c->in), (uint8_t *)c->in, false },
		{ CORPUS_OUT_VA, sizeof(c->out), (uint8_t *)c->out, true },
		{ CORPUS_ARGS_VA, sizeof(c->args), c->args, false },
		{ CORPUS_SCRATCH_VA, CORPUS_LANE_SIZE * 64u * 4u, c->scratch, true },
		{ GP_EXECUTE_PACKET_VA, 64, c->dispatch.packet.bytes, false },
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (va - ranges[i].base < ranges[i].size) {
			*ret_range = ranges[i];
			return 0;
		}
	return -1;
}

/* Loads the segments, and makes addresses of those relocations that a code object has. */
static int corpus_load(struct corpus *c, const uint8_t *file, size_t size)
{
	const Elf64_Ehdr *head = (const void *)file;
	const Elf64_Phdr *segments = (const void *)(file + head->e_phoff);
	const Elf64_Shdr *sections = (const void *)(file + head->e_shoff);

	if (size < sizeof(*head) || memcmp(head->e_ident, ELFMAG, 4))
		return -1;
	c->image_size = 0;
	for (uint32_t i = 0; i < head->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD && segments[i].p_vaddr + segments[i].p_memsz > c->image_size)
			c->image_size = segments[i].p_vaddr + segments[i].p_memsz;
	c->image_size = (c->image_size + 8191u) & ~4095ull;
	free(c->image);
	c->image = calloc(1, c->image_size);
	for (uint32_t i = 0; i < head->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD)
			memcpy(c->image + segments[i].p_vaddr, file + segments[i].p_offset, segments[i].p_filesz);
	for (uint32_t i = 0; i < head->e_shnum; i++) {
		const Elf64_Rela *relocations = (const void *)(file + sections[i].sh_offset);

		for (uint64_t k = 0; sections[i].sh_type == SHT_RELA && k < sections[i].sh_size / sizeof(Elf64_Rela);
		     k++) {
			uint64_t to = CORPUS_CODE_VA + (uint64_t)relocations[k].r_addend;

			if (ELF64_R_TYPE(relocations[k].r_info) == 13)
				memcpy(c->image + relocations[k].r_offset, &to, 8);
		}
	}
	return 0;
}

/* Where NAME.kd is. */
static int corpus_symbol(const uint8_t *file, const char *name, uint64_t *ret_offset)
{
	const Elf64_Ehdr *head = (const void *)file;
	const Elf64_Shdr *sections = (const void *)(file + head->e_shoff);
	char wanted[128];

	snprintf(wanted, sizeof(wanted), "%s.kd", name);
	for (uint32_t i = 0; i < head->e_shnum; i++) {
		const Elf64_Sym *symbols = (const void *)(file + sections[i].sh_offset);
		const char *names;

		if (sections[i].sh_type != SHT_DYNSYM)
			continue;
		names = (const char *)(file + sections[sections[i].sh_link].sh_offset);
		for (uint64_t k = 0; k < sections[i].sh_size / sizeof(Elf64_Sym); k++)
			if (!strcmp(names + symbols[k].st_name, wanted)) {
				*ret_offset = symbols[k].st_value;
				return 0;
			}
	}
	return -1;
}

static enum gp_isa_target corpus_target(const uint8_t *file)
{
	switch (((const Elf64_Ehdr *)(const void *)file)->e_flags & 0xffu) {
	case 0x2f: return GP_ISA_GFX906;
	case 0x30: return GP_ISA_GFX908;
	case 0x3f: return GP_ISA_GFX90A;
	default: return GP_ISA_GFX940;
	}
}

static void corpus_noise(struct gp_isa_wave *wave)
{
	for (uint32_t r = 0; r < wave->row_count; r++)
		for (uint32_t i = 0; i < 64u; i++)
			wave->v[r][i] = 0xdead0000u + r * 64u + i;
	for (uint32_t i = 0; i < GP_ISA_SGPR_MAX; i++)
		wave->s[i] = 0xbad00000u + i;
	wave->scc = 1;
	wave->pc = 0xbad4;
	wave->mode = 0xff;
}

/* Puts noise back where the part that is to be forgotten was restored. */
static void corpus_forget(const struct corpus *c, struct gp_execute_group *group, struct gp_isa_wave *wave,
			  const char *part)
{
	uint32_t accum = c->execution.accum_offset;

	if (!strcmp(part, "vgprs"))
		memset(wave->v[0], 0x5a, (accum < wave->row_count ? accum : wave->row_count) * 256u);
	else if (!strcmp(part, "agprs") && accum < wave->row_count)
		memset(wave->v[accum], 0x5a, (wave->row_count - accum) * 256u);
	else if (!strcmp(part, "sgprs"))
		memset(&wave->s[0], 0x5a, 24u * 4u);
	else if (!strcmp(part, "high sgprs"))
		memset(&wave->s[24], 0x5a, 78u * 4u);
	else if (!strcmp(part, "vcc"))
		memset(&wave->s[GP_ISA_VCC], 0x5a, 8);
	else if (!strcmp(part, "exec"))
		memset(&wave->s[GP_ISA_EXEC], 0x5a, 8);
	else if (!strcmp(part, "scc"))
		wave->scc = 1;
	else if (!strcmp(part, "pc"))
		wave->pc += 8u;
	else if (!strcmp(part, "m0"))
		wave->s[GP_ISA_M0] = 0x5a5au;
	else if (!strcmp(part, "mode"))
		wave->mode = 0;
	else if (!strcmp(part, "lds"))
		memset(group->lds, 0x5a, c->execution.lds_size);
	else if (!strcmp(part, "flat scratch"))
		wave->s[GP_ISA_FLAT_SCRATCH] += 4096u;
	else if (!strcmp(part, "barrier") && wave->state == GP_ISA_BARRIER)
		wave->state = GP_ISA_RUNS;
}

static struct gp_execute_group *corpus_replace(struct corpus *c, struct gp_execute_group *group)
{
	struct gp_execute_group *fresh = gp_execute_group_create(&c->execution, group->index, group->slot);
	uint32_t size = gp_isa_record_size(c->execution.row_count, 0);
	uint8_t *record = malloc(size);

	memset(fresh->lds, 0x77, c->execution.lds_size);
	memcpy(fresh->lds, group->lds, c->execution.lds_size);
	fresh->isa.at = group->isa.at;
	for (uint32_t i = 0; i < c->execution.wave_count; i++) {
		struct gp_isa_wave *wave = fresh->isa.waves[i];

		corpus_noise(wave);
		if (group->isa.waves[i]->state == GP_ISA_ENDED) {
			wave->state = GP_ISA_ENDED;
			continue;
		}
		gp_isa_wave_save(group->isa.waves[i], record);
		if (gp_isa_wave_restore(wave, record, c->execution.target == GP_ISA_GFX940) < 0)
			abort();
		c->restored++;
		if (c->omit >= 0)
			corpus_forget(c, fresh, wave, corpus_parts[c->omit]);
	}
	free(record);
	gp_execute_group_destroy(group);
	return fresh;
}

static enum gp_isa_state corpus_group(struct corpus *c, uint32_t index, struct gp_isa_fault *ret_fault)
{
	struct gp_execute_group *group = gp_execute_launch(&c->execution, index, 0);
	enum gp_isa_state state = GP_ISA_RUNS;
	uint64_t left = CORPUS_BUDGET, used;

	while (left && (state == GP_ISA_RUNS || state == GP_ISA_SLEEPS)) {
		state = gp_isa_group_run(&group->isa, c->every ? c->every : left, &used);
		left -= used < left ? used : left;
		c->executed += used;
		if (c->omit >= 0 && left < CORPUS_BUDGET - 200000u)
			break;
		if (c->every && state == GP_ISA_RUNS)
			group = corpus_replace(c, group);
	}
	*ret_fault = group->isa.fault;
	gp_execute_group_destroy(group);
	return state;
}

/* Words that are equal, or floats that are near. */
static bool corpus_is_near(uint32_t got, uint32_t expected, bool is_about)
{
	float x, y;

	if (got == expected)
		return true;
	memcpy(&x, &got, 4);
	memcpy(&y, &expected, 4);
	return is_about && fabsf(x - y) <= 2e-5f * (fabsf(y) + 1e-2f);
}

static void corpus_prepare(struct corpus *c, const uint8_t *file, uint64_t descriptor)
{
	struct gp_execution *e = &c->execution;
	uint64_t values[2] = { CORPUS_IN_VA, CORPUS_OUT_VA };
	uint32_t n = CORPUS_N, granules;

	memset(c->args, 0, sizeof(c->args));
	memcpy(c->args, values, 16);
	memcpy(c->args + 16, &n, 4);
	/* Hidden arguments of code object v5: workgroup counts, then sizes. */
	memset(c->out, 0, sizeof(c->out));
	gp_isa_code_destroy(e->code);
	memset(e, 0, sizeof(*e));
	memcpy(&e->descriptor, c->image + descriptor, sizeof(e->descriptor));
	e->queue = &c->queue;
	e->dispatch = &c->dispatch;
	e->bus.find = corpus_find;
	e->bus.context = c;
	e->target = corpus_target(file);
	e->entry = CORPUS_CODE_VA + descriptor + (uint64_t)e->descriptor.entry_offset;
	granules = (e->descriptor.rsrc1 & 0x3fu) + 1u;
	e->accum_offset = e->target >= GP_ISA_GFX90A ? ((e->descriptor.rsrc3 & 0x3fu) + 1u) * 4u : granules * 4u;
	e->row_count = e->target >= GP_ISA_GFX90A ? granules * 8u :
		       e->target == GP_ISA_GFX908 ? granules * 8u :
						    granules * 4u;
	e->lds_size = (e->descriptor.group_size + 511u) & ~511u;
	e->wave_count = CORPUS_THREADS / 64u;
	e->scratch = CORPUS_SCRATCH_VA;
	e->scratch_lane_size = CORPUS_LANE_SIZE;
	e->scratch_wave_size = CORPUS_LANE_SIZE * 64u;
	e->scratch_resource[0] = (uint32_t)CORPUS_SCRATCH_VA;
	e->scratch_resource[1] = (uint32_t)(CORPUS_SCRATCH_VA >> 32) | 1u << 31;
	e->scratch_resource[2] = UINT32_MAX;
	e->code = gp_isa_code_create(e->target, e->accum_offset);
	c->dispatch = (struct gp_vdispatch){ .workgroups = CORPUS_BLOCKS };
	c->dispatch.packet.kernel = (struct gp_aql_kernel){ .setup = 1,
							    .workgroup_size = { CORPUS_THREADS, 1, 1 },
							    .grid_size = { CORPUS_THREADS * CORPUS_BLOCKS, 1, 1 } };
	c->dispatch.kernel = (struct gp_kernel_call){ .workgroup_size = { CORPUS_THREADS, 1, 1 },
						      .grid_size = { CORPUS_THREADS * CORPUS_BLOCKS, 1, 1 },
						      .workgroups = { CORPUS_BLOCKS, 1, 1 },
						      .kernarg = CORPUS_ARGS_VA };
}

/* Wrong words; UINT32_MAX: it did not come to an end. */
static uint32_t corpus_kernel(struct corpus *c, const uint8_t *file, const char *name, bool is_quiet)
{
	struct gp_isa_fault fault = { 0 };
	uint64_t descriptor;
	uint32_t wrong = 0;

	if (corpus_symbol(file, name, &descriptor) < 0)
		return UINT32_MAX;
	corpus_prepare(c, file, descriptor);
	for (uint32_t block = 0; block < CORPUS_BLOCKS; block++) {
		enum gp_isa_state state = corpus_group(c, block, &fault);

		if (state != GP_ISA_ENDED) {
			if (!is_quiet)
				printf("%s: workgroup %u: state %d, fault %d, va 0x%llx, words %08x %08x at +0x%llx\n",
				       name, block, state, fault.kind, (unsigned long long)fault.va, fault.words[0],
				       fault.words[1], (unsigned long long)(fault.pc - c->execution.entry));
			return UINT32_MAX;
		}
	}
	for (uint32_t i = 0; i < CORPUS_N; i++)
		if (!corpus_is_near(c->out[i], c->expected[i], !strncmp(name, "about_", 6))) {
			if (!wrong++ && !is_quiet)
				printf("%s: word %u is %08x, expected %08x\n", name, i, c->out[i], c->expected[i]);
		}
	return wrong;
}

struct corpus_options {
	const char *only;
	const char *must; /* parts whose loss must be noticed; NULL: nothing is lost */
};

typedef const char *corpus_name_function(unsigned index);
typedef void corpus_run_function(unsigned index, unsigned blocks, unsigned threads, const uint32_t *in, uint32_t *out,
				 uint32_t n);

static void corpus_input(struct corpus *c, unsigned seed)
{
	uint64_t x = 88172645463325252ull + seed * 77777u;

	for (uint32_t i = 0; i < CORPUS_N; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		c->in[i] = (uint32_t)(x >> 16);
	}
}

static int corpus_file(struct corpus *c, void *host, const char *path, const struct corpus_options *options)
{
	corpus_name_function *name_at = (corpus_name_function *)dlsym(host, "isa_kernel_name");
	corpus_run_function *run = (corpus_run_function *)dlsym(host, "isa_kernel_run");
	uint32_t kernels = 0, failed = 0, noticed[32] = { 0 }, parts = 0;
	struct gp_error error;
	char *file;
	size_t size;

	if (gp_file_read(path, 64u << 20, &file, &size, &error) < 0 || corpus_load(c, (uint8_t *)file, size) < 0) {
		fprintf(stderr, "%s: not a code object\n", path);
		return 2;
	}
	for (unsigned k = 0; name_at(k); k++) {
		if (options->only && strcmp(options->only, name_at(k)))
			continue;
		corpus_input(c, k);
		memset(c->expected, 0, sizeof(c->expected));
		run(k, CORPUS_BLOCKS, CORPUS_THREADS, c->in, c->expected, CORPUS_N);
		kernels++;
		c->omit = -1;
		failed += corpus_kernel(c, (uint8_t *)file, name_at(k), false) != 0;
		for (parts = 0; options->must && corpus_parts[parts]; parts++) {
			c->omit = (int)parts;
			noticed[parts] += corpus_kernel(c, (uint8_t *)file, name_at(k), true) != 0;
		}
	}
	for (uint32_t i = 0; i < parts; i++) {
		printf("%s: %s not saved: noticed by %u of %u kernels\n", path, corpus_parts[i], noticed[i], kernels);
		failed += !noticed[i] && (!strcmp(options->must, "all") || strstr(options->must, corpus_parts[i]));
	}
	printf("%s: %u kernels, %u wrong, %llu wave instructions, %llu waves restored\n", path, kernels, failed,
	       (unsigned long long)c->executed, (unsigned long long)c->restored);
	free(file);
	return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct corpus_options options = { 0 };
	void *host = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int status = 0, r;

	if (!host) {
		fprintf(stderr,
			"usage: isa-corpus HOST.so [--every N] [--omit PARTS] [--only KERNEL] [--variant V] CODE_OBJECT...\n");
		return 2;
	}
	corpus.omit = -1;
	corpus.scratch = calloc(4, CORPUS_LANE_SIZE * 64u);
	gp_isa_select(gp_isa_best());
	for (int i = 2; i < argc; i++) {
		if (strncmp(argv[i], "--", 2)) {
			r = corpus_file(&corpus, host, argv[i], &options);
			status = r > status ? r : status;
		} else if (i + 1 == argc) {
			return 2;
		} else if (!strcmp(argv[i], "--every")) {
			corpus.every = strtoull(argv[++i], NULL, 10);
		} else if (!strcmp(argv[i], "--only")) {
			options.only = argv[++i];
		} else if (!strcmp(argv[i], "--omit")) {
			options.must = argv[++i];
		} else if (!strcmp(argv[i], "--variant") &&
			   !gp_isa_select((enum gp_isa_variant)strtoul(argv[++i], NULL, 10))) {
			printf("this processor does not have that variant\n");
			return 77;
		}
	}
	return status;
}
