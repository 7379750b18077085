/* SPDX-License-Identifier: MIT */
/* Calls to RM, as the daemon uses them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "device/nvidia/rm.h"

int gp_borrow_control(const struct gp_borrow_object *object, uint32_t command, void *params, uint32_t params_size)
{
	struct gp_rm_control args = {
		.client = object->client,
		.object = object->object,
		.command = command,
		.params = (uintptr_t)params,
		.params_size = params_size,
		.status = UINT32_MAX,
	};
	int r;

	do {
		r = ioctl(object->fd, GP_RM_REQUEST(GP_RM_CONTROL) | (unsigned long)sizeof(args) << 16, &args);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : gp_rm_errno(args.status);
}

bool gp_nvidia_is_rm_file(int fd, bool by_name)
{
	char path[40], target[512];
	const char *name;
	struct stat st;
	ssize_t size;

	if (fstat(fd, &st))
		return false;
	if (S_ISCHR(st.st_mode) && major(st.st_rdev) == GP_RM_MAJOR)
		return true;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	size = by_name ? readlink(path, target, sizeof(target) - 1) : -1;
	if (size <= 0)
		return false;
	target[size] = '\0';
	name = strrchr(target, '/');
	return name && !strncmp(name + 1, "nvidia", 6);
}

int gp_borrow_slice_get(const struct gp_borrow_object *group, uint64_t *ret_us)
{
	uint64_t us = 0;
	int r = gp_borrow_control(group, GP_RM_SLICE_GET, &us, sizeof(us));

	if (!r)
		*ret_us = us;
	return r;
}

int gp_nvidia_slice_set(const struct gp_borrow_object *group, uint64_t us)
{
	return gp_borrow_control(group, GP_RM_SLICE_SET, &us, sizeof(us));
}

int gp_nvidia_gpu_id(const struct gp_borrow_object *subdevice, uint32_t *ret_gpu_id)
{
	uint32_t gpu_id = UINT32_MAX;
	int r = gp_borrow_control(subdevice, GP_RM_GPU_ID, &gpu_id, sizeof(gpu_id));

	if (!r)
		*ret_gpu_id = gpu_id;
	return r;
}

int gp_nvidia_group_id(const struct gp_borrow_object *group, uint32_t *ret_id)
{
	uint32_t id = UINT32_MAX;
	int r = gp_borrow_control(group, GP_RM_GROUP_INFO, &id, sizeof(id));

	if (!r)
		*ret_id = id;
	return r;
}
