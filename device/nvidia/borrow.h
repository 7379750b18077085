/* SPDX-License-Identifier: MIT */
/* Mechanism borrow: the daemon calls RM itself, on a duplicate of the client's file. One thread per GPU does the jobs,
 * in order, because each call may take a millisecond, or for ever. All functions here are for the decision thread and
 * do not block, except destroy. */
#ifndef GP_DEVICE_NVIDIA_BORROW_H
#define GP_DEVICE_NVIDIA_BORROW_H

#include "device/device.h"

struct gp_nvidia_borrow;

/* Chosen. A call that takes longer than hang_ns counts as hanging: the longest measured took 1.4 ms, and the driver
 * itself gives up after seconds. At the end the daemon waits for a thread as long as end_ns. Tests set their own. */
extern uint64_t gp_nvidia_hang_ns, gp_nvidia_end_ns;

struct gp_nvidia_borrow_config {
	const struct gp_device_host *host; /* the backend's; copied */
	const uint32_t *gpu_ids;
	uint32_t gpu_count;
	bool by_name;      /* see gp_nvidia_is_rm_file() */
	uint32_t fallback; /* for a client whose group the daemon cannot borrow: GP_MECHANISM_CHANNEL or _NONE */
};

extern const struct gp_device_host gp_nvidia_no_host; /* ignores all reports */

int gp_nvidia_borrow_create(const struct gp_nvidia_borrow_config *config, struct gp_nvidia_borrow **ret_borrow,
			    struct gp_error *error);
/* Opens every gate and restores every slice; leaves threads behind that hang. */
void gp_nvidia_borrow_destroy(struct gp_nvidia_borrow *borrow);

/* Reports by host->grouped, host->ungrouped, or host->mechanism(fallback): then every gate of this client is open, on
 * all GPUs. */
void gp_nvidia_borrow_group(struct gp_nvidia_borrow *borrow, const struct gp_device_client *client, uint32_t gpu_id,
			    const struct gp_wire_group *group);
void gp_nvidia_borrow_fall_back(struct gp_nvidia_borrow *borrow, uint64_t tag, const char *why);
void gp_nvidia_borrow_remove(struct gp_nvidia_borrow *borrow, uint64_t tag, uint32_t gpu_id, uint32_t slot);
void gp_nvidia_borrow_forget(struct gp_nvidia_borrow *borrow, uint64_t tag);
/* The changes wait until commit; then one host->done follows for each call. -EIO: the GPU's thread hangs, and
 * host->failed has reported it. */
int gp_nvidia_borrow_apply(struct gp_nvidia_borrow *borrow, uint64_t tag, uint64_t seq, uint32_t gpu_id,
			   const struct gp_device_change *changes, uint32_t count);
void gp_nvidia_borrow_commit(struct gp_nvidia_borrow *borrow, uint32_t gpu_id);
int gp_nvidia_borrow_slice(struct gp_nvidia_borrow *borrow, uint64_t tag, const struct gp_device_slice *slice);
int gp_nvidia_borrow_count(struct gp_nvidia_borrow *borrow, uint64_t tag, const struct gp_device_count *count);

#endif
