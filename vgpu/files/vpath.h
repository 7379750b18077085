/* SPDX-License-Identifier: MIT */
/* Paths as clients name them: which of them the node provides. Text only: nothing here looks at a file system. */
#ifndef GP_VGPU_VPATH_H
#define GP_VGPU_VPATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GP_VPATH_SIZE 4096u /* as the kernel has it (PATH_MAX) */

/* path, from the folder base (absolute) when it is relative; "." and ".." are taken by name, so a symbolic link before
 * ".." is not seen. True: the node provides it, and ret_path (of GP_VPATH_SIZE bytes) is it without the leading slash.
 */
bool gp_vpath_resolve(const char *base, const char *path, char *ret_path);
/* A resolved path that is a device file: 0 for /dev/kfd, 1 + i for /dev/dri/renderD(128 + i). */
bool gp_vpath_is_device(const char *path, uint32_t gpu_count, uint32_t *ret_number);

#endif
