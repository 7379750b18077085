/* SPDX-License-Identifier: MIT */
/* Mechanism borrow: the daemon calls RM itself, on a duplicate of the client's file. One thread per GPU does what it is
 * given, in order, because each call may take a millisecond, or for ever. All functions here are the decision thread's
 * and do not block, but for destroy. */
#ifndef GP_DEVICE_NVIDIA_BORROW_H
#define GP_DEVICE_NVIDIA_BORROW_H

#include "device/device.h"

struct gp_nvidia_borrow;

/* Chosen. A call that takes longer than the first hangs: the longest measured took 1.4 ms, and the driver itself gives
 * up after seconds. At the end a thread is waited for as long as the second. Tests have their own. */
extern uint64_t gp_nvidia_hang_ns, gp_nvidia_end_ns;

struct gp_nvidia_borrow_config {
	const struct gp_device_host *host; /* stays */
	const uint32_t *gpu_ids;
	uint32_t gpu_count;
	bool by_name;      /* see gp_nvidia_is_rm_file() */
	uint32_t fallback; /* of a client whose group is not lent to us: GP_MECHANISM_CHANNEL or _NONE */
};

extern const struct gp_device_host gp_nvidia_no_host; /* listens to nothing */

int gp_nvidia_borrow_create(const struct gp_nvidia_borrow_config *config, struct gp_nvidia_borrow **ret_borrow,
			    struct gp_error *error);
/* Everything is open and as long as it was; threads that hang are left behind. */
void gp_nvidia_borrow_destroy(struct gp_nvidia_borrow *borrow);

/* host->grouped, or host->mechanism(fallback): then everything of this client's is open, on all GPUs. */
void gp_nvidia_borrow_group(struct gp_nvidia_borrow *borrow, const struct gp_device_client *client, uint32_t gpu_id,
			    const struct gp_wire_group *group);
void gp_nvidia_borrow_remove(struct gp_nvidia_borrow *borrow, uint64_t tag, uint32_t gpu_id, uint32_t slot);
void gp_nvidia_borrow_forget(struct gp_nvidia_borrow *borrow, uint64_t tag);
/* Kept until commit; then one host->done follows for each. -EIO: its thread hangs, and host->failed was told. */
int gp_nvidia_borrow_apply(struct gp_nvidia_borrow *borrow, uint64_t tag, uint64_t seq, uint32_t gpu_id,
			   const struct gp_device_change *changes, uint32_t count);
void gp_nvidia_borrow_commit(struct gp_nvidia_borrow *borrow, uint32_t gpu_id);
int gp_nvidia_borrow_slice(struct gp_nvidia_borrow *borrow, uint64_t tag, const struct gp_device_slice *slice);
int gp_nvidia_borrow_count(struct gp_nvidia_borrow *borrow, uint64_t tag, const struct gp_device_count *count);

#endif
