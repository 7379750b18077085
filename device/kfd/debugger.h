/* SPDX-License-Identifier: MIT */
/*
 * The daemon as debugger of its clients: a few threads that seize, enable, detach, and then suspend and resume sets of
 * queues. Jobs for one client are done in order; clients do not wait for each other, unless more than 32 calls hang in
 * the driver. All functions are for the decision thread and do not block, except create and destroy.
 */
#ifndef GP_DEVICE_KFD_DEBUGGER_H
#define GP_DEVICE_KFD_DEBUGGER_H

#include "device/kfd/kfd.h"

/* Chosen; a save takes milliseconds. A call that takes longer than late_ns counts as stuck, and a client that comes
 * back does not wait for it. At the end the daemon waits for calls as long as end_ns. Tests set their own. */
extern uint64_t gp_kfd_debugger_late_ns, gp_kfd_debugger_end_ns;

/* A dry run on a child of the daemon's, without queues. True: debugging works; otherwise why. It takes milliseconds; if
 * the machine stalls, up to 20 s. */
bool gp_kfd_debugger_try(struct gp_backend *backend, char *why, size_t why_size);

int gp_kfd_debugger_create(struct gp_backend *backend, struct gp_kfd_debugger **ret_debugger, struct gp_error *error);
/* Releases all clients first; NULL is fine. False: a call hangs in the driver. When it returns, its thread goes on with
 * the debugger and the backend, so neither is freed. */
bool gp_kfd_debugger_destroy(struct gp_kfd_debugger *debugger);
/* Reports by host->mechanism: DEBUGGER, or fallback and why. */
void gp_kfd_debugger_attach(struct gp_kfd_debugger *debugger, struct gp_device_client *client, uint32_t fallback);
void gp_kfd_debugger_detach(struct gp_kfd_debugger *debugger, struct gp_device_client *client, bool gone);
void gp_kfd_debugger_queue_added(struct gp_kfd_debugger *debugger, struct gp_device_client *client);
/* Opens the queue after all orders before; reports nothing. */
void gp_kfd_debugger_queue_removed(struct gp_kfd_debugger *debugger, struct gp_device_client *client,
				   const struct gp_device_change *open);
int gp_kfd_debugger_apply(struct gp_kfd_debugger *debugger, struct gp_device_client *client, uint64_t seq,
			  uint32_t gpu_id, const struct gp_device_change *changes, uint32_t count);

uint32_t gp_kfd_debugger_stuck(struct gp_kfd_debugger *debugger, uint32_t gpu_id); /* see struct gp_backend_ops */

uint32_t gp_kfd_agent_mechanism(const struct gp_backend *backend, const struct gp_device_client *client);

#endif
