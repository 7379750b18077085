/* SPDX-License-Identifier: MIT */
/* The private mount namespace in which the virtual devices are where programs look for the real ones. */
#ifndef GP_VGPU_NAMESPACE_H
#define GP_VGPU_NAMESPACE_H

#include "vgpu/node/node.h"

#define GP_NAMESPACE_DIR  "/dev/.vgpu" /* ours, inside the namespace only */
#define GP_NAMESPACE_FUSE GP_NAMESPACE_DIR "/fuse"
#define GP_NAMESPACE_BIN  GP_NAMESPACE_DIR "/bin" /* programs that must stand before the system's in PATH */

/* Moves the calling process into a new namespace and fills it. Nothing outside changes; all of it goes with the
 * last process inside. */
int gp_namespace_enter(struct gp_vnode *node, struct gp_error *error);

#endif
