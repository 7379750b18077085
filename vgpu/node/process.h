/* SPDX-License-Identifier: MIT */
/* Client processes: from the first open to the last release or the exit, whichever comes first. */
#ifndef GP_VGPU_PROCESS_H
#define GP_VGPU_PROCESS_H

#include "vgpu/node/node.h"

/* Another open of a device file by this process (pid: its thread group). The first makes it known. */
int gp_vproc_open(struct gp_vnode *node, pid_t pid, struct gp_vproc **ret_process);
void gp_vproc_close(struct gp_vproc *process);   /* the last takes everything back */
void gp_vproc_destroy(struct gp_vproc *process); /* it exited: whatever is still open */
struct gp_vproc *gp_vproc_find(struct gp_vnode *node, pid_t pid);
/* pidns.c: the process that the caller means by a number. */
struct gp_vproc *gp_pidns_find(struct gp_vproc *caller, pid_t pid);
/* The same by the number of any of its threads, as DBG_TRAP has it: the driver finds the process by the memory of that
 * thread. NULL: the thread has none, because it has ended, though others of its process may go on. */
struct gp_vproc *gp_pidns_find_thread(struct gp_vproc *caller, pid_t number);
pid_t gp_vproc_thread_group(pid_t thread); /* itself if it is gone */
bool gp_vproc_is_thread_alive(pid_t thread);
int gp_vproc_getfd(const struct gp_vproc *process, int fd);   /* a copy of its descriptor; -1 and errno */
pid_t gp_vproc_living_thread(const struct gp_vproc *process); /* the first, if it has not ended; 0: all have */
/* Notes once what was done with a kernel: that it was refused, in place of what was noted before. */
void gp_vproc_note_kernel(struct gp_vproc *process, uint64_t fingerprint, enum gp_vproc_kernel kind);
bool gp_vproc_has_thread(const struct gp_vproc *process, pid_t thread);
/* The model's process and the doorbells on one GPU, made on first use. */
int gp_vproc_bind(struct gp_vproc *process, struct gp_vdev *gpu);

#endif
