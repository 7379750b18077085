/* SPDX-License-Identifier: MIT */
/* What the node says of itself: lines of text for `vgpu ls -v` and for tests that count. */
#ifndef GP_VGPU_REPORT_H
#define GP_VGPU_REPORT_H

#include "vgpu/node/node.h"

void gp_report_status(struct gp_vnode *node, char *ret_text, size_t text_size);

#endif
