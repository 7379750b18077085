/* SPDX-License-Identifier: MIT */
/* The environment that `vgpu run` gives its command. */
#ifndef GP_VGPU_ENVIRONMENT_H
#define GP_VGPU_ENVIRONMENT_H

void gp_environment_set(const char *text); /* vgpud's description of the node */

#endif
