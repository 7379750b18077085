/* SPDX-License-Identifier: MIT */
/* The channel groups that one GPU's thread has borrowed: it takes them from their processes, checks and changes them.
 * Only that thread calls these functions. */
#ifndef GP_DEVICE_NVIDIA_GROUP_H
#define GP_DEVICE_NVIDIA_GROUP_H

#include "device/device.h"
#include "device/nvidia/rm.h"

struct gp_borrow_group {
	struct gp_borrow_group *next;
	uint64_t tag;
	uint32_t slot, generation;
	uint32_t owner; /* the user of its process */
	int fd;         /* the daemon's duplicate of the client's file */
	uint32_t client, subdevice, group, channel_count;
	uint32_t channels[GP_WIRE_CHANNEL_MAX];
	uint32_t left[GP_WIRE_CHANNEL_MAX],
		left_count;        /* channels that left the group disabled, and could not be enabled yet */
	uint64_t disabled;         /* by the daemon, a bit for each channel; uncertain if a call failed */
	uint64_t app_us, short_us; /* the application's; the daemon's last, if it ever set one */
	bool closed, is_short;     /* by the daemon; uncertain if a call failed */
	bool alone;                /* a call for several groups failed because of this one */
	bool probed;
};

/* The process that owns the group, and what the group must be. */
struct gp_nvidia_lender {
	pid_t pid;
	int pidfd;
	uint32_t owner, gpu_id;
	bool by_name; /* see gp_nvidia_is_rm_file() */
};
/* Takes the file and asks RM whether the handles are what the agent says. 0, or -errno and a sentence. */
int gp_nvidia_group_take(const struct gp_wire_group *wire, const struct gp_nvidia_lender *lender,
			 struct gp_borrow_group **ret_group, char *why, size_t why_size);
void gp_nvidia_group_free(struct gp_borrow_group *group); /* does not wait for its file to close */
/* Once, before the group is first closed: how the GPU puts it aside, as a sentence (ret_found stays as it is if RM does
 * not say). -EPROTO: RM answers, but not as a driver that the daemon knows. */
int gp_nvidia_group_probe(struct gp_borrow_group *group, const char **ret_found);
/* The same group as before, with other channels: closes channels that came if the group was closed, enables channels
 * that left it, and disables none twice. 0, or -errno: then the group is open. */
int gp_nvidia_group_follow(struct gp_borrow_group *group, const struct gp_borrow_group *before);
/* Disables or enables the channels of all groups, in as few calls as possible; one result for each group. */
void gp_nvidia_groups_change(struct gp_borrow_group *const *groups, uint32_t count, bool open, int *results);
int gp_nvidia_group_slice(struct gp_borrow_group *group, uint64_t slice_us); /* 0: the application's */
int gp_nvidia_group_saves(const struct gp_borrow_group *group, uint32_t *ret_saves);
/* Opens the group and restores its slice, as far as RM allows. */
void gp_nvidia_group_restore(struct gp_borrow_group *group);

#endif
