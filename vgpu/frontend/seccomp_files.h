/* SPDX-License-Identifier: MIT */
/*
 * Open device files, as the kernel knows them. A descriptor of a client is a number that dup, fork, exec and sockets
 * carry about; what it stands for is one open file, and the kernel says whether two descriptors stand for the same
 * (kcmp). vgpud keeps a descriptor of each file it has handed out, in the order kcmp gives them.
 */
#ifndef GP_VGPU_SECCOMP_FILES_H
#define GP_VGPU_SECCOMP_FILES_H

#include "vgpu/kfd/call.h"

#define GP_SECCOMP_FILE_MAX  65536u
#define GP_SECCOMP_HINT_MAX  256u
#define GP_SECCOMP_FILE_MANY 64u /* of one process: from here on it is looked at which of them it has closed */

struct gp_seccomp_file {
	int fd; /* ours */
	enum gp_vfile kind;
	pid_t pid; /* who opened it: process and serial */
	uint64_t serial;
	bool seen; /* while looking for closed ones */
};

/* Where a descriptor was last found: checked before it is believed. */
struct gp_seccomp_hint {
	pid_t thread;
	int fd;
	struct gp_seccomp_file *file;
};

struct gp_seccomp_files {
	struct gp_seccomp_file **sorted;
	uint32_t count, capacity;
	struct gp_seccomp_hint hints[GP_SECCOMP_HINT_MAX];
};

int gp_seccomp_files_init(struct gp_error *error); /* whether this kernel can do it */
void gp_seccomp_files_fini(struct gp_seccomp_files *files);
/* Takes fd on success. ENFILE: there are as many as vgpud can hold. */
int gp_seccomp_files_add(struct gp_seccomp_files *files, int fd, enum gp_vfile kind, const struct gp_vproc *process);
void gp_seccomp_files_remove(struct gp_seccomp_files *files, int fd);
/* What fd of that thread stands for; NULL: none of ours. */
struct gp_seccomp_file *gp_seccomp_files_find(struct gp_seccomp_files *files, pid_t thread, int fd);
void gp_seccomp_files_drop(struct gp_seccomp_files *files, uint64_t serial); /* the process is gone */
/* The kernel tells nobody of a close. A process that opens again and again is looked at: returns how many of its files
 * it has closed, which are dropped. */
uint32_t gp_seccomp_files_collect(struct gp_seccomp_files *files, const struct gp_vproc *process);

#endif
