/* SPDX-License-Identifier: MIT */
/* A call of the application's to RM, for the files that look into it. */
#ifndef GP_AGENT_NVIDIA_CAPTURE_H
#define GP_AGENT_NVIDIA_CAPTURE_H

#include "agent/nvidia/nvidia.h"

struct gp_nvidia_capture {
	int fd;
	unsigned long request;
	void *arg;
	uint32_t number, size; /* of the structure, also where an XFER wraps it */
	uint64_t at;
	union {
		struct gp_rm_memory memory;
		struct gp_rm_free free;
		struct gp_rm_alloc alloc;
		struct gp_rm_alloc_rights alloc_rights;
		struct gp_rm_control control;
		struct gp_rm_dup dup;
		struct gp_rm_version version;
		struct gp_rm_map map;
		struct gp_rm_unmap unmap;
	} body;
};

/* False: the address cannot be read. */
bool gp_nvidia_capture_read(void *into, uint64_t from, uint32_t size);
int gp_nvidia_capture_forward(const struct gp_nvidia_capture *call);

/* Lock held. The queue of a group or of one of its channels; NULL: not a queue. */
struct gp_slot *gp_nvidia_capture_slot(uint32_t client, uint32_t handle);
void gp_nvidia_queue_changed(struct gp_slot *slot);     /* its channels have changed; NULL: does nothing */
void gp_nvidia_queue_renew(const struct gp_slot *slot); /* opens it and announces it to the daemon as a new queue */

int gp_nvidia_watch(struct gp_nvidia_capture *call); /* a control */

#endif
