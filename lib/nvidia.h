/* SPDX-License-Identifier: MIT */
/* What the NVIDIA driver says of itself and of its GPUs in /proc/driver/nvidia, and what else decides whether a GPU can
 * be scheduled: MIG, MPS, vGPU. For the daemon and for `doctor`. Reads files only; no file of the driver is opened. */
#ifndef GP_LIB_NVIDIA_H
#define GP_LIB_NVIDIA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/error.h"

#define GP_NVIDIA_NAME_SIZE 64u
#define GP_NVIDIA_UUID_SIZE 48u

struct gp_nvidia_driver {
	char version[32]; /* "580.159.03" */
	uint32_t major;
	bool is_open; /* the open kernel modules */
};

struct gp_nvidia_gpu {
	char model[GP_NVIDIA_NAME_SIZE], uuid[GP_NVIDIA_UUID_SIZE], bdf[16];
	uint32_t gpu_id; /* as RM has it: domain, bus and slot of its place */
	uint32_t minor;  /* of /dev/nvidiaN */
	bool has_minor, is_excluded, has_mig, is_vgpu;
};

/* The texts of "version" and of one GPU's "information". Unknown lines are skipped; -EINVAL and a sentence. */
int gp_nvidia_parse_version(const char *text, struct gp_nvidia_driver *ret_driver, struct gp_error *error);
int gp_nvidia_parse_gpu(const char *text, const char *folder, struct gp_nvidia_gpu *ret_gpu, struct gp_error *error);
/* The same of the files below root ("" for the machine's own); -ENOENT: no driver. */
int gp_nvidia_read_driver(const char *root, struct gp_nvidia_driver *ret_driver, struct gp_error *error);
int gp_nvidia_read_gpu(const char *root, const char *folder, struct gp_nvidia_gpu *ret_gpu, struct gp_error *error);
/* All GPUs below root ("" for the machine's own), at most count, by their place. Returns how many, 0: no driver, or
 * -errno. */
int gp_nvidia_topology(const char *root, struct gp_nvidia_driver *ret_driver, struct gp_nvidia_gpu *gpus,
		       uint32_t count, struct gp_error *error);
/* The pid of a running process of MPS, or 0. */
pid_t gp_nvidia_mps(const char *root);

#endif
