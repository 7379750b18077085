/* SPDX-License-Identifier: MIT */
/* The system calls that the seccomp front end looks at: one table, from which the filter is made and by which vgpud
 * reads the arguments. */
#ifndef GP_VGPU_SECCOMP_CALLS_H
#define GP_VGPU_SECCOMP_CALLS_H

#include <stddef.h>
#include <stdint.h>
#include "lib/error.h"

enum gp_seccomp_op {
	GP_SECCOMP_OPEN,
	GP_SECCOMP_STAT,
	GP_SECCOMP_STATX,
	GP_SECCOMP_ACCESS,
	GP_SECCOMP_READLINK,
	GP_SECCOMP_XATTR, /* refused on the node's files, as sysfs has none */
};

#define GP_SECCOMP_NONE 7u /* no such argument */

/* Numbers of arguments, from 0. */
struct gp_seccomp_call {
	int nr;
	enum gp_seccomp_op op;
	uint8_t folder; /* the descriptor a relative path starts from */
	uint8_t path;
	uint8_t buffer;   /* where the answer goes; for access: the mode; for open: the flags, or the open_how */
	uint8_t at_flags; /* AT_…: with AT_EMPTY_PATH the call is about a descriptor and is let through by the filter */
};

extern const struct gp_seccomp_call gp_seccomp_calls[];
extern const size_t gp_seccomp_call_count;

/* Puts the calling process, which will become the command, under the filter; hands its listener to vgpud through the
 * control connection; returns when vgpud has taken it. Cannot be undone: after a failure the caller exits. */
int gp_seccomp_enter(int connection, int vgpud, struct gp_error *error);
/* In the process that watches the command: answers vgpud's next request on the connection, which is for the memory of
 * one of the command's processes. Negative: there will be no more. */
int gp_seccomp_lend(int connection);

#endif
