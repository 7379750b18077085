/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The device's compute units are a program of the guest (test/kernel/guest/cores.c): it opens softgpu/cores in debugfs,
 * takes one dispatch after the other that is over for the model, executes its instructions and gives it back. Reading
 * and writing the file at an offset reads and writes the memory of the dispatch's process at that address.
 */
#ifndef SOFT_CORES_H
#define SOFT_CORES_H

#include <linux/ioctl.h>
#include <linux/types.h>

struct soft_cores_dispatch {
	__u64 index;        /* in its ring */
	__u64 rptr_address; /* where its queue's read counter is: inside amd_queue_t */
	__u8 packet[64];
};

/* A piece of memory of the dispatch's process, as it was allocated. */
struct soft_cores_piece {
	__u64 address; /* somewhere in it */
	__u64 base, size;
};

#define SOFT_CORES_NEXT _IOR('G', 1, struct soft_cores_dispatch) /* waits for one */
#define SOFT_CORES_FIND _IOWR('G', 2, struct soft_cores_piece)   /* EFAULT: there is none */
#define SOFT_CORES_DONE _IOW('G', 3, __u32)                      /* 0: executed; else it could not be */

#endif
