/* SPDX-License-Identifier: MIT */
/* Another root for the command: a second system (an unpacked distribution) that sees the node's device files. */
#ifndef GP_VGPU_ROOT_H
#define GP_VGPU_ROOT_H

#include "lib/error.h"

/* Called in the node's mount namespace by the process that will become the command. The mounts it makes are in one more
 * namespace of that process, so that they end with it. The working folder is then the root. */
int gp_root_enter(const char *dir, struct gp_error *error);

#endif
