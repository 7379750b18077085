/* SPDX-License-Identifier: MIT */
/* Stopping work from outside a queue: RUNTIME_ENABLE, DBG_TRAP and CRIU_OP, with the rules of Linux 6.12. */
#ifndef GP_VGPU_DEBUG_H
#define GP_VGPU_DEBUG_H

#include "vgpu/packet/abi.h"
#include "vgpu/node/node.h"

int gp_debug_runtime(struct gp_vcall **call);
/* Whether a call that waits for the debugger's leave is over; it may go on waiting for something else. */
bool gp_debug_runtime_over(struct gp_vcall *call);
int gp_debug_trap(struct gp_vcall **call);
/* Whom it debugged runs again; who debugged it is told by errors. */
void gp_debug_process_gone(struct gp_vproc *process);
bool gp_debug_is_tracer(const struct gp_vproc *process, pid_t thread);
bool gp_debug_is_admin(pid_t thread); /* CAP_SYS_ADMIN */
/* checkpoint.c */
int gp_debug_criu(struct gp_vcall **call);
/* A number in /proc/PID/status; 0: not there. */
uint64_t gp_debug_status_field(pid_t pid, const char *name, int base);

#endif
