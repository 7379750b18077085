/* SPDX-License-Identifier: MIT */
/* Mechanism kernel: the driver of kernel/patches changes gates of several processes in one call. One thread per GPU
 * makes that call, because it takes as long as a preemption, or for ever. All functions here are for the decision
 * thread and do not block, except destroy. */
#ifndef GP_DEVICE_KFD_GATE_H
#define GP_DEVICE_KFD_GATE_H

#include "device/kfd/kfd.h"

struct gp_kfd_gate;

extern uint64_t gp_kfd_gate_end_ns; /* how long destroy waits for a call that hangs; tests set their own */

/* Whether this driver has the call and lets the daemon make it; why: a sentence, also on success. */
bool gp_kfd_gate_try(const struct gp_backend *backend, uint32_t gpu_id, char *why, size_t why_size);
int gp_kfd_gate_create(struct gp_backend *backend, const struct gp_device_info *infos, uint32_t count,
		       struct gp_kfd_gate **ret_gate, struct gp_error *error);
/* Opens every gate. False: a call hangs in the driver, and its thread is left behind. */
bool gp_kfd_gate_destroy(struct gp_kfd_gate *gate);

int gp_kfd_gate_attach(struct gp_kfd_gate *gate, struct gp_device_client *client);  /* 0 or -errno; repeatable */
void gp_kfd_gate_detach(struct gp_kfd_gate *gate, struct gp_device_client *client); /* opens its closed gates */
/* The changes wait until commit; then one host->done follows for each call. */
int gp_kfd_gate_apply(struct gp_kfd_gate *gate, struct gp_device_client *client, uint64_t seq, uint32_t gpu_id,
		      const struct gp_device_change *changes, uint32_t count);
void gp_kfd_gate_commit(struct gp_kfd_gate *gate, uint32_t gpu_id);
uint32_t gp_kfd_gate_stuck(struct gp_kfd_gate *gate, uint32_t gpu_id); /* see struct gp_backend_ops */

#endif
