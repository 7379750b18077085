/* SPDX-License-Identifier: MIT */
/*
 * The host's side of a packet: what kernels compute and copies move, when the model says they did. vgpud has one
 * thread, so it is done in slices; a queue whose work takes longer is behind, goes on in the next turns, and nobody
 * else waits for it. Its completions, and the answers to calls that stop it, come when it has caught up.
 */
#ifndef GP_VGPU_WORK_H
#define GP_VGPU_WORK_H

#include "vgpu/kfd/queue.h"

#define GP_WORK_PIECE_SIZE (1u << 20) /* bytes moved between two looks at the clock */

uint64_t gp_work_deadline_ns(void); /* of a slice that begins now */
bool gp_work_is_over(uint64_t deadline_ns);
/* Runs the dispatch's body as far as the model has come. False: its slice is over before that. */
bool gp_work_run(struct gp_vqueue *queue, struct gp_vdispatch *dispatch);
/* Goes on with what a queue is behind with. Whether anything was finished. */
bool gp_work_turn(struct gp_vqueue *queue);
bool gp_work_is_behind(const struct gp_vproc *process); /* any of its queues that are off the device */

#endif
