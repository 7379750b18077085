/* SPDX-License-Identifier: MIT */
/* Starting a vgpud: what was asked for on the command line, and the process that is made of it. */
#ifndef GP_VGPU_STARTER_H
#define GP_VGPU_STARTER_H

#include <stdbool.h>

#define GP_STARTER_FAILED 125 /* as env, nohup and timeout have it: the failure is ours, not the command's */

/* As the user gave it; NULL: not given. */
struct gp_starter {
	const char *device, *gpus, *dilation, *kernels, *params, *name, *root, *front;
	int verbose;
};

/* 0: it runs; -EEXIST: somebody else has just started one of this name; otherwise it has said why not. keep: it stays
 * when nobody uses it. */
int gp_starter_start(const struct gp_starter *options, bool keep);

#endif
