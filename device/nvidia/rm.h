/* SPDX-License-Identifier: MIT */
/* Calls into NVIDIA's resource manager (RM) on a client's file. They may take a millisecond, and hang if the GPU does:
 * never from the decision thread. */
#ifndef GP_DEVICE_NVIDIA_RM_H
#define GP_DEVICE_NVIDIA_RM_H

#include <gpreempt/rm.h>
#include <stdbool.h>
#include <stdint.h>

/* An object, on the file on which its client was created. */
struct gp_borrow_object {
	int fd;
	uint32_t client, object;
};

bool gp_nvidia_is_rm_file(int fd, bool by_name); /* by_name: a file of that name counts too (tests) */
int gp_borrow_control(const struct gp_borrow_object *object, uint32_t command, void *params, uint32_t params_size);
int gp_borrow_slice_get(const struct gp_borrow_object *group, uint64_t *ret_us);
int gp_nvidia_slice_set(const struct gp_borrow_object *group, uint64_t us);
int gp_nvidia_gpu_id(const struct gp_borrow_object *subdevice, uint32_t *ret_gpu_id);
int gp_nvidia_group_id(const struct gp_borrow_object *group, uint32_t *ret_id);

#endif
