/* SPDX-License-Identifier: MIT */
/*
 * Which kernel is it? The fingerprint is FNV-1a (64 bits) over the code words from the entry to the first s_endpgm,
 * which does not depend on where the code was loaded. Descriptions come with vgpud (kernels_known.h) and from a file:
 *
 *   [0123456789abcdef]              the fingerprint; vgpud -v prints those of kernels it does not know
 *   name           = my_kernel
 *   workgroup_time = 20 us
 *   body           = vector_add     optional; see gp_body_names()
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/cleanup.h"
#include "lib/file.h"
#include "lib/ini.h"
#include "lib/units.h"
#include "vgpu/packet/kernels.h"
#include "vgpu/packet/kernels_known.h"
#include "vgpu/node/memory.h"

#define KERNELS_MAX         4096u
#define KERNELS_CODE_WORDS  4096u
#define KERNELS_CODE_STEP   64u
#define KERNELS_ENDPGM      0xbf810000u
#define KERNELS_FILE_SIZE   (1u << 20)
#define KERNELS_TIME_NS_MAX 1000000000000ull
#define KERNELS_HASH_BEGIN  14695981039346656037ull /* FNV-1a */
#define KERNELS_HASH_STEP   1099511628211ull

struct kernels_entry {
	uint64_t fingerprint, workgroup_ns;
	const struct gp_body *body;
	char name[32];
};

struct gp_kernels {
	uint32_t count;
	struct kernels_entry entries[KERNELS_MAX];
	uint64_t printed[64]; /* unknown fingerprints already printed, the last ones */
	uint32_t printed_count;
	pid_t warned_pid; /* the last program of which was said that its results are not computed */
};

uint64_t gp_kernels_fingerprint(const uint32_t *words, size_t word_count)
{
	uint64_t hash = KERNELS_HASH_BEGIN;

	for (size_t i = 0; i < word_count * 4u; i++)
		hash = (hash ^ (words[i / 4u] >> i % 4u * 8u & 0xffu)) * KERNELS_HASH_STEP;
	return hash;
}

static const struct kernels_entry *kernels_find(const struct gp_kernels *kernels, uint64_t fingerprint)
{
	for (uint32_t i = 0; i < kernels->count; i++)
		if (kernels->entries[i].fingerprint == fingerprint)
			return &kernels->entries[i];
	return NULL;
}

static int kernels_section(struct gp_kernels *kernels, const char *section, struct gp_error *error)
{
	char *end;
	uint64_t fingerprint;

	errno = 0;
	fingerprint = strtoull(section, &end, 16);
	if (errno || *end || strlen(section) != 16u)
		return gp_error_set(error, -EINVAL, "'%s' is not a fingerprint (16 hexadecimal digits)", section);
	if (kernels->count == KERNELS_MAX)
		return gp_error_set(error, -E2BIG, "more than %u kernels", KERNELS_MAX);
	/* A file may describe a known kernel anew; the later entry wins because it is put in front. */
	memmove(&kernels->entries[1], &kernels->entries[0], kernels->count * sizeof(kernels->entries[0]));
	kernels->entries[0] =
		(struct kernels_entry){ .fingerprint = fingerprint, .workgroup_ns = GP_KERNELS_DEFAULT_NS };
	snprintf(kernels->entries[0].name, sizeof(kernels->entries[0].name), "%s", section);
	kernels->count++;
	return 0;
}

static int kernels_entry_line(void *context, const char *section, const char *name, const char *value, uint32_t line,
			      struct gp_error *error)
{
	struct gp_kernels *kernels = context;
	struct kernels_entry *entry = &kernels->entries[0];

	(void)line;
	if (!name)
		return kernels_section(kernels, section, error);
	if (!*section)
		return gp_error_set(error, -EINVAL, "'%s' stands before the first [fingerprint]", name);
	if (!strcmp(name, "name")) {
		snprintf(entry->name, sizeof(entry->name), "%s", value);
		return 0;
	}
	if (!strcmp(name, "workgroup_time"))
		return gp_units_parse_ns(value, name, 1, KERNELS_TIME_NS_MAX, &entry->workgroup_ns, error);
	if (!strcmp(name, "body")) {
		entry->body = gp_body_find(value);
		return entry->body ?
			       0 :
			       gp_error_set(error, -EINVAL, "no body '%s'; there are: %s", value, gp_body_names());
	}
	return gp_error_set(error, -EINVAL, "unknown entry '%s' (name, workgroup_time, body)", name);
}

int gp_kernels_create(const char *path, struct gp_kernels **ret_kernels, struct gp_error *error)
{
	GP_AUTO_FREE struct gp_kernels *kernels = calloc(1, sizeof(*kernels));
	GP_AUTO_FREE char *text = NULL;
	size_t size;
	int r;

	if (!kernels)
		return gp_error_set(error, -ENOMEM, "out of memory");
	for (size_t i = 0; i < sizeof(kernels_known) / sizeof(kernels_known[0]); i++) {
		struct kernels_entry *entry = &kernels->entries[kernels->count++];

		entry->fingerprint = kernels_known[i].fingerprint;
		entry->workgroup_ns = kernels_known[i].workgroup_ns;
		entry->body = gp_body_find(kernels_known[i].body);
		snprintf(entry->name, sizeof(entry->name), "%s", kernels_known[i].body);
	}
	if (path) {
		r = gp_file_read(path, KERNELS_FILE_SIZE, &text, &size, error);
		if (r < 0)
			return r;
		r = gp_ini_parse(text, size, path, kernels_entry_line, kernels, error);
		if (r < 0)
			return r;
	}
	*ret_kernels = GP_TAKE(kernels);
	return 0;
}

int gp_kernels_digest(const char *path, char *ret_text, size_t text_size, struct gp_error *error)
{
	uint64_t hash = KERNELS_HASH_BEGIN;
	GP_AUTO_FREE char *text = NULL;
	size_t size;
	int r = gp_file_read(path, KERNELS_FILE_SIZE, &text, &size, error);

	if (r < 0)
		return r;
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (uint8_t)text[i]) * KERNELS_HASH_STEP;
	snprintf(ret_text, text_size, "%016" PRIx64, hash);
	return 0;
}

void gp_kernels_destroy(struct gp_kernels *kernels)
{
	free(kernels);
}

/* Code is read in steps, since what follows the last instruction may not be mapped. */
static int kernels_code_hash(struct gp_vproc *process, const struct gp_vdev *gpu, uint64_t entry, uint64_t *ret_hash)
{
	static uint32_t words[KERNELS_CODE_WORDS];

	for (uint32_t at = 0; at < KERNELS_CODE_WORDS; at += KERNELS_CODE_STEP) {
		if (gp_vm_read(process, gpu, entry + at * 4ull, &words[at], KERNELS_CODE_STEP * 4u) < 0)
			return -EFAULT;
		for (uint32_t i = at; i < at + KERNELS_CODE_STEP; i++)
			if (words[i] == KERNELS_ENDPGM) {
				*ret_hash = gp_kernels_fingerprint(words, i + 1u);
				return 0;
			}
	}
	*ret_hash = gp_kernels_fingerprint(words, KERNELS_CODE_WORDS);
	return 0;
}

/* gfx90a and gfx942 have one register file of up to 512 per lane in steps of 8, as the descriptor counts them. */
static uint32_t kernels_vgprs(const struct gp_kernel_descriptor *descriptor)
{
	return ((descriptor->rsrc1 & 0x3fu) + 1u) * 8u;
}

static void kernels_tell(struct gp_vnode *node, const struct gp_kernel_call *call)
{
	struct gp_kernels *kernels = node->kernels;
	uint64_t words[12];

	/* Once for each program, so that nobody takes what such a kernel leaves behind for a result. */
	if (!node->params.values[GP_PARAM_EXECUTE] && kernels->warned_pid != call->process->pid) {
		kernels->warned_pid = call->process->pid;
		gp_vnode_log(node, 0,
			     "process %d launches kernels that the node does not know: their results are not computed "
			     "(vgpu_execute=1 executes them, -k FILE describes them, -v names them)",
			     call->process->pid);
	}
	for (uint32_t i = 0; i < 64u; i++)
		if (kernels->printed[i] == call->fingerprint)
			return;
	kernels->printed[kernels->printed_count++ % 64u] = call->fingerprint;
	gp_vnode_log(node, 1, "process %d: unknown kernel [%016" PRIx64 "], %u VGPRs: %u ns per workgroup, %s",
		     call->process->pid, call->fingerprint, call->vgprs, GP_KERNELS_DEFAULT_NS,
		     node->params.values[GP_PARAM_EXECUTE] ? "its instructions are executed" : "nothing computed");
	/* What a description is written from. */
	if (gp_vm_read(call->process, call->gpu, call->kernarg, words, sizeof(words)) == 0)
		for (uint32_t i = 0; i < 12u; i++)
			gp_vnode_log(node, 2, "kernarg %2u: 0x%016" PRIx64, i * 8u, words[i]);
}

/* A kernel that only moves bytes takes as long as memory does, if all its workgroups fit at once. */
static uint64_t kernels_bytes_ns(const struct gp_vdev *gpu, uint64_t bytes)
{
	uint64_t bandwidth = (uint64_t)gp_desc_get(gpu->desc, GP_DESC_MEMORY_BANDWIDTH);
	uint64_t ns = (uint64_t)((unsigned __int128)bytes * 1000000000u / (bandwidth ? bandwidth : 1u));

	return ns < 1000u ? 1000u : ns;
}

int gp_kernels_recognise(struct gp_vdev *gpu, uint64_t kernel_object, struct gp_kernel_call *call)
{
	struct gp_kernel_descriptor descriptor;
	const struct kernels_entry *entry;

	if (gp_vm_read(call->process, call->gpu, kernel_object, &descriptor, sizeof(descriptor)) < 0)
		return -EFAULT;
	if (kernels_code_hash(call->process, gpu, kernel_object + (uint64_t)descriptor.entry_offset,
			      &call->fingerprint) < 0)
		return -EFAULT;
	call->vgprs = kernels_vgprs(&descriptor);
	entry = kernels_find(gpu->node->kernels, call->fingerprint);
	if (!entry) {
		call->workgroup_ns = GP_KERNELS_DEFAULT_NS;
		snprintf(call->name, sizeof(call->name), "%016" PRIx64, call->fingerprint);
		kernels_tell(gpu->node, call);
		return 0;
	}
	call->is_described = true;
	call->body = entry->body;
	call->workgroup_ns = entry->workgroup_ns;
	memcpy(call->name, entry->name, sizeof(call->name));
	if (call->body && call->body->bytes)
		call->workgroup_ns = kernels_bytes_ns(gpu, call->body->bytes(call));
	return 0;
}
