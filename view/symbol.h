/* SPDX-License-Identifier: MIT */
/* Kernels' names as people read them. */
#ifndef GP_VIEW_SYMBOL_H
#define GP_VIEW_SYMBOL_H

#include <stddef.h>

/* "void at::native::fill<4, at::Half>(int, at::Half)" to "fill<4, Half>"; "_ZN2at4fillEv" to "fill". The name itself
 * where it is of no such kind. Cut at the end of the buffer. */
const char *gp_symbol_short(const char *name, char *buffer, size_t buffer_size);

#endif
