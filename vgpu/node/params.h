/* SPDX-License-Identifier: MIT */
/* The driver's module parameters, as far as they change what a scheduler sees, and the node's time scale beside them.
 */
#ifndef GP_VGPU_PARAMS_H
#define GP_VGPU_PARAMS_H

#include <stdint.h>
#include "lib/error.h"

struct gp_vnode;

enum gp_vparam {
	GP_PARAM_SCHED_POLICY,      /* 0: HWS, 1: HWS without oversubscription, 2: no HWS */
	GP_PARAM_HWS_MAX_CONC_PROC, /* -1: as many as there are VMIDs */
	GP_PARAM_CWSR_ENABLE,
	GP_PARAM_MAX_QUEUES, /* of one device, all processes together */
	GP_PARAM_QUEUE_PREEMPTION_TIMEOUT_MS,
	GP_PARAM_NUM_KCQ,          /* kernel compute queues: what they leave is KFD's; -1: 8 */
	GP_PARAM_HALT_IF_HWS_HANG, /* shown only */
	GP_PARAM_RPTR_AT_FETCH,    /* the read pointer moves when a packet starts, not when it is complete */
	GP_PARAM_EXECUTE,   /* 0: no kernel's instructions, 1: those of kernels nobody described, 2: every kernel's */
	GP_PARAM_KFD_SCHED, /* 1: the driver has AMDKFD_IOC_SCHED of kernel/patches, and does not schedule itself; 2: it
			     * says that it does, and refuses gates with EBUSY */
	GP_PARAM_COUNT
};

#define GP_PARAM_KFD_SCHED_BUSY 2

struct gp_params {
	int64_t values[GP_PARAM_COUNT];
};

void gp_params_init(struct gp_params *params);
/* "name=value[,name=value…]". */
int gp_params_parse(struct gp_params *params, const char *text, struct gp_error *error);
/* Writes parameters/ and vgpu_dilation below dir (/sys/module/amdgpu), and remembers dir. */
int gp_params_write(struct gp_vnode *node, const char *dir);
void gp_params_write_dilation(const struct gp_vnode *node); /* it changed */
/* The timeout as its file says now: the driver lets root write it at any time. */
uint32_t gp_params_timeout_ms(struct gp_vnode *node);

#endif
