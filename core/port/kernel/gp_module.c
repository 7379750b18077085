// SPDX-License-Identifier: GPL-2.0 OR MIT
/* A module that holds the core and exports nothing. It exists so that tools/kernel-check compiles and links the core
 * the way the kernel does (its flags, its headers, modpost); it is never loaded by the project. */
#include <linux/module.h>
#include <gpreempt/sched.h>

MODULE_DESCRIPTION("gpreempt scheduler core, compile check");
MODULE_LICENSE("Dual MIT/GPL");
