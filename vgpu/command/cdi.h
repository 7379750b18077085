/* SPDX-License-Identifier: MIT */
#ifndef GP_VGPU_CDI_H
#define GP_VGPU_CDI_H

int gp_vgpu_cdi(void); /* prints it; 0, or a negative errno after a sentence on standard error */

#endif
