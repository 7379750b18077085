/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Everything the core needs from outside, inside the Linux kernel: warn and take the safe branch, never trap. */
#ifndef GP_DEPS_H
#define GP_DEPS_H

#include <linux/bug.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <linux/types.h>

#ifndef INT64_MIN
#define INT64_MIN S64_MIN
#define INT64_MAX S64_MAX
#endif
#ifndef UINT32_MAX
#define UINT32_MAX U32_MAX
#endif
#ifndef UINT64_MAX
#define UINT64_MAX U64_MAX
#endif

#define GP_ASSERT(x) ((void)WARN_ON_ONCE(!(x)))
#define GP_NEVER(x) WARN_ON_ONCE(x)

#endif
