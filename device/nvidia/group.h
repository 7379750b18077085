/* SPDX-License-Identifier: MIT */
/* The channel groups that one GPU's thread has been lent: taken from their processes, looked at, changed. Only that
 * thread comes here. */
#ifndef GP_DEVICE_NVIDIA_GROUP_H
#define GP_DEVICE_NVIDIA_GROUP_H

#include "device/device.h"
#include "device/nvidia/rm.h"

struct gp_borrow_group {
	struct gp_borrow_group *next;
	uint64_t tag;
	uint32_t slot, generation;
	int fd; /* our own duplicate of the client's file */
	uint32_t client, subdevice, group, channel_count;
	uint32_t channels[GP_WIRE_CHANNEL_MAX];
	uint32_t left[GP_WIRE_CHANNEL_MAX],
		left_count;        /* channels that left it disabled, and could not be enabled yet */
	uint64_t disabled;         /* by us, a bit for each channel; perhaps, if a call failed */
	uint64_t app_us, short_us; /* the application's; ours, if it was ever short */
	bool closed, is_short;     /* by us; perhaps, if a call failed */
	bool alone;                /* a call that carried others as well failed because of it */
	bool probed;
};

/* Who lends it, and what it should be. */
struct gp_nvidia_lender {
	int pidfd;
	uint32_t owner, gpu_id;
	bool by_name; /* see gp_nvidia_is_rm_file() */
};
/* Takes the file and asks RM whether the handles are what they should be. 0, or -errno and a sentence. */
int gp_nvidia_group_take(const struct gp_wire_group *wire, const struct gp_nvidia_lender *lender,
			 struct gp_borrow_group **ret_group, char *why, size_t why_size);
void gp_nvidia_group_free(struct gp_borrow_group *group);
/* Once, before it is first closed: how the GPU puts it aside, as a sentence (left alone if that cannot be asked).
 * -EPROTO: it answers, but not as the driver that we know. */
int gp_nvidia_group_probe(struct gp_borrow_group *group, const char **ret_found);
/* It is the same group as before, with other channels: those that came are closed if it was closed, those that left the
 * group are enabled, and none is disabled twice. 0 or -errno: then it is open. */
int gp_nvidia_group_follow(struct gp_borrow_group *group, const struct gp_borrow_group *before);
/* Channels off or on, of all in as few calls as there is room; each one's result is its own. */
void gp_nvidia_groups_change(struct gp_borrow_group *const *groups, uint32_t count, bool open, int *results);
int gp_nvidia_group_slice(struct gp_borrow_group *group, uint64_t slice_us); /* 0: the application's */
int gp_nvidia_group_saves(const struct gp_borrow_group *group, uint32_t *ret_saves);
/* Open, as far as RM lets us; for a queue that goes. */
void gp_nvidia_group_open(struct gp_borrow_group *group);
/* As it was before us, as far as RM lets us. */
void gp_nvidia_group_restore(struct gp_borrow_group *group);

#endif
