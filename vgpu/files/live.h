/* SPDX-License-Identifier: MIT */
/* Files whose content changes while the node runs: debugfs (hqds, mqds, rls) and what proc/ has of each process. */
#ifndef GP_VGPU_LIVE_H
#define GP_VGPU_LIVE_H

#include <stdio.h>

#include "vgpu/node/node.h"
#include "vgpu/kfd/queue.h"

/* Process and queue folders below node->proc_dir, when there is one; a file that cannot be written is only missing. */
void gp_live_process_add(struct gp_vproc *process);
void gp_live_process_remove(const struct gp_vproc *process);
void gp_live_queue_add(const struct gp_vqueue *queue);
void gp_live_queue_remove(const struct gp_vqueue *queue);
uint32_t gp_live_pasid(const struct gp_vproc *process);

/* Something changed that the files show; they follow soon, not at once. */
void gp_live_mark(struct gp_vnode *node);
void gp_live_turn(struct gp_vnode *node);
uint64_t gp_live_deadline_ns(const struct gp_vnode *node);

/* debugfs.c */
void gp_debugfs_hqds(FILE *stream, const struct gp_vnode *node);
void gp_debugfs_mqds(FILE *stream, const struct gp_vnode *node);
void gp_debugfs_rls(FILE *stream, const struct gp_vnode *node);

#endif
