/* SPDX-License-Identifier: MIT */
/* Front end seccomp: the calls of commands that run under the filter of seccomp_filter.c are asked of vgpud. Needs no
 * privilege. */
#ifndef GP_VGPU_FRONTEND_SECCOMP_H
#define GP_VGPU_FRONTEND_SECCOMP_H

#include "vgpu/node/node.h"

struct gp_seccomp;
struct gp_vgpu_store;

/* store: filled, and stays the caller's. */
int gp_seccomp_create(struct gp_vnode *node, struct gp_vgpu_store *store, struct gp_seccomp **ret_seccomp,
		      struct gp_error *error);
void gp_seccomp_destroy(struct gp_seccomp *seccomp);
/* The listener of one more command, which becomes ours on success; *ret_number is what serve is called with. lender:
 * the connection it came by, where "memory PID" may be asked for. */
int gp_seccomp_add(struct gp_seccomp *seccomp, int listener, int lender, uint32_t *ret_number);
void gp_seccomp_lent_take(struct gp_seccomp *seccomp, pid_t pid, int fd); /* the answer to that; fd < 0: refused */
void gp_seccomp_lender_gone(struct gp_seccomp *seccomp, int lender);
void gp_seccomp_serve(struct gp_seccomp *seccomp, uint32_t number);  /* its descriptor is readable, or has hung up */
uint32_t gp_seccomp_command_count(const struct gp_seccomp *seccomp); /* those with a process left */
void gp_seccomp_process_exit(struct gp_seccomp *seccomp, uint64_t serial);
/* Looks after callers that wait, and says when to do so again (UINT64_MAX: nobody waits). */
uint64_t gp_seccomp_turn(struct gp_seccomp *seccomp);

#endif
