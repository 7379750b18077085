/* SPDX-License-Identifier: MIT */
/* What is under way: ioctls whose answer is outstanding, and the transactions they wait for. */
#ifndef GP_VGPU_PENDING_H
#define GP_VGPU_PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define GP_VNODE_GPU_MAX  8u
#define GP_VCALL_ARG_SIZE 4096u /* largest ioctl argument taken */

struct gp_kfd_sched_gate;
struct gp_vproc;
struct gp_vdev;

enum gp_vcall_kind {
	GP_VCALL_WAIT_EVENTS,
	GP_VCALL_TRANSACTION,   /* for the transactions outstanding */
	GP_VCALL_DESTROY_QUEUE, /* for the debugger to let go of the queue */
	GP_VCALL_RUNTIME,       /* for the debugger's leave to go on */
};

/* An ioctl: while it is being decided, and while its answer is outstanding. */
struct gp_vcall {
	struct gp_vcall *next;
	struct gp_vproc *process; /* NULL once it is gone */
	uint64_t token;           /* the front end's */
	uint32_t command;
	pid_t thread;
	_Alignas(8) uint8_t arg[GP_VCALL_ARG_SIZE];
	size_t arg_size;
	/* Outstanding calls only. */
	enum gp_vcall_kind kind;
	int result;
	uint64_t deadline_ns;              /* host time; UINT64_MAX: none */
	uint32_t event_count, outstanding; /* outstanding: transactions still to finish */
	uint32_t failed;                   /* bit per GPU whose transaction failed, with result */
	/* Called once when nothing is outstanding any more, to make the answer; process is NULL if it is gone. */
	void (*done)(struct gp_vcall *call);
	uint32_t *event_ids;
	uint64_t *event_ages; /* the age of each that the caller has seen; 0: does not say */
	bool *event_marks;    /* signalled for this wait */
	uint32_t queue_id;
	struct gp_vproc *target; /* debug calls: the process whose queues are stopped */
	uint32_t *queue_ids;     /* suspend, resume: as the client gave them, with the error bits */
	uint32_t queue_count;
	uint64_t queue_array, clear_mask;
	struct gp_kfd_sched_gate *gates;    /* batch gate: as the caller gave them, queue_count of them */
	uint32_t changed[GP_VNODE_GPU_MAX]; /* queues suspended or resumed on each GPU */
};

struct gp_vtransaction_queue {
	struct gp_vproc *process; /* NULL: it is gone */
	uint32_t id;
};

struct gp_vtransaction {
	struct gp_vtransaction *next;
	uint64_t seq;
	struct gp_vdev *gpu;
	struct gp_vcall *call; /* NULL: nobody waits */
	uint64_t deadline_ns;  /* not 0: it hangs, and ends in a reset then */
	uint32_t queue_count;
	struct gp_vtransaction_queue queues[];
};

#endif
