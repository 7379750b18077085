/* SPDX-License-Identifier: MIT */
/*
 * What vgpud knows of kernels. A kernel is recognised by a fingerprint of its code, and then has a name, a time and
 * perhaps a body in C that computes what the kernel would, workgroup by workgroup. Others are executed (execute.h).
 */
#ifndef GP_VGPU_KERNELS_H
#define GP_VGPU_KERNELS_H

#include "vgpu/packet/abi.h"
#include "vgpu/node/node.h"

#define GP_KERNELS_DEFAULT_NS 10000u /* a workgroup of a kernel nobody described: chosen, not measured */

struct gp_body;

/* One dispatch, as a body sees it. */
struct gp_kernel_call {
	struct gp_vproc *process;
	const struct gp_vdev *gpu;
	const struct gp_body *body; /* NULL: none in C */
	bool is_described;          /* by vgpud itself or by the kernels file */
	uint32_t workgroup_size[3], grid_size[3], workgroups[3];
	uint64_t kernarg;
	char name[32];
	uint64_t workgroup_ns;
	uint32_t vgprs;
	uint64_t fingerprint;
	uint32_t piece, piece_count; /* work.c: which part of a single workgroup's bytes; 0, 0: all of them */
};

struct gp_body {
	const char *name;
	/* Computes workgroups first..last-1, in x, then y, then z order. -EFAULT: an address is not mapped. */
	int (*run)(const struct gp_kernel_call *call, uint32_t first, uint32_t last);
	/* Bytes the whole kernel moves, for its time; NULL: as the description says. */
	uint64_t (*bytes)(const struct gp_kernel_call *call);
	bool is_heavy; /* one workgroup is much to compute */
};

const struct gp_body *gp_body_find(const char *name);
const char *gp_body_names(void);

int gp_kernels_create(const char *path, struct gp_kernels **ret_kernels, struct gp_error *error);
/* A number for what a file says, as text: two files are the same for a node if theirs are. */
int gp_kernels_digest(const char *path, char *ret_text, size_t text_size, struct gp_error *error);
void gp_kernels_destroy(struct gp_kernels *kernels);
/* Reads descriptor and code at kernel_object. -EFAULT: they are not there. */
int gp_kernels_recognise(struct gp_vdev *gpu, uint64_t kernel_object, struct gp_kernel_call *call);
uint64_t gp_kernels_fingerprint(const uint32_t *words, size_t word_count);

#endif
