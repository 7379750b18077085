/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Everything the core needs from outside, hosted: this file is the core's only dependency. */
#ifndef GP_DEPS_H
#define GP_DEPS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Trap at once: in tests and in the daemon a broken invariant must not be survived quietly. */
#define GP_ASSERT(x) ((x) ? (void)0 : __builtin_trap())
/* A branch that cannot happen. Evaluates to the condition, so that the safe branch can be taken. */
#define GP_NEVER(x) (__builtin_expect(!!(x), 0) ? (__builtin_trap(), true) : false)

#endif
