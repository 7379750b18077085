/* SPDX-License-Identifier: MIT */
/* KFD queues: their life, their gates, and the packets of theirs that the model holds. */
#ifndef GP_VGPU_QUEUE_H
#define GP_VGPU_QUEUE_H

#include "vgpu/packet/abi.h"
#include "vgpu/packet/kernels.h"
#include "vgpu/node/node.h"

#define GP_VQUEUE_GWS     4u
#define GP_VQUEUE_FAULTED UINT32_MAX /* errors that are not the packet processor's */
#define GP_VQUEUE_RESET   (UINT32_MAX - 1u)

/* A packet between its ring and its completion. */
struct gp_vdispatch {
	uint64_t index; /* in the client's ring, counted from 0 */
	bool used, done, started;
	uint64_t start_ns; /* device time */
	union gp_aql_packet packet;
	uint32_t barrier_signal; /* the model's; barrier packets: goes to 0 when the client's signals allow */
	bool barrier_met;        /* it did */
	uint32_t workgroups, workgroups_due, workgroups_run; /* due: as far as the model has come */
	struct gp_kernel_call kernel;
	bool has_body;
	struct gp_execution *execution; /* its instructions are executed; NULL: described, or nothing to execute */
	bool ended;                     /* for the model, at end_ns */
	uint64_t end_ns;
};

/* A device-wide barrier: how many waves it is for, and how many have come. */
struct gp_vqueue_gws {
	uint32_t limit, arrived;
};

/* What of its waves is in the save area (save.c). */
struct gp_vqueue_save {
	uint32_t holders; /* dispatches that have something there */
	uint32_t size;    /* bytes, from the end of the control stack */
	uint32_t stack_count, stack_capacity;
	uint32_t *stack; /* the control stack, the newest word last */
};

/* What a copy engine still has to move: of a window, this row, and then those that follow it. */
struct gp_vcopy {
	uint64_t to, from, left;
	uint64_t row_size, rows_left;
	uint64_t to_row, from_row; /* where the row begins */
	uint32_t row, slice_rows;  /* of its slice */
	uint64_t to_pitch, from_pitch, to_slice, from_slice;
	uint32_t value, packet_size;
	bool fills;
};

struct gp_vqueue {
	bool is_user; /* made through DRM */
	struct gp_vproc *process;
	struct gp_vdev *gpu;
	uint32_t id, type, doorbell_id, sdma_id;
	uint64_t ring, rptr_va, wptr_va, eop, cwsr;
	uint32_t ring_size, cwsr_size, ctl_stack_size;
	uint32_t percent, priority, cu_count;
	uint64_t exception_status; /* for a debugger; EC_QUEUE_NEW until it clears it */
	bool suspended;
	struct gp_vproc *gate_owner; /* who closed it by AMDKFD_IOC_SCHED; NULL: open */
	bool being_destroyed;        /* DESTROY_QUEUE waits for the debugger */
	bool leaving;                /* the transaction that ends it is under way */
	bool scratch_asked;          /* its head packet waits for more scratch than the queue has */
	bool scratch_once;           /* the scratch it has is for the packet at scratch_index, and then goes back */
	bool scratch_returns;        /* the runtime has been told to take it back */
	uint64_t scratch_index;
	bool masked_out; /* its CU mask has no bit */
	uint32_t error;  /* not 0: the packet processor refused a packet, nothing runs any more */
	uint32_t model;  /* the model's queue id */
	bool model_open;
	uint32_t model_priority, model_cu_count; /* as the model has them */
	bool model_gone;                         /* the GPU was reset */
	bool counted;                            /* in the GPU's active_count */
	bool hung;                               /* by demand: takes no more packets */
	bool close_fails, close_hangs;           /* by demand */
	volatile uint64_t *doorbell;
	uint64_t doorbell_seen;
	/* AQL: packet counts. SDMA: bytes. */
	uint64_t read, submitted, limit;
	uint64_t shown; /* AQL: the read index as the client sees it */
	uint32_t in_flight;
	struct gp_vdispatch *window; /* GP_VQUEUE_WINDOW, by index */
	uint64_t copy_size;          /* SDMA: bytes of the packet the model is working on; 0: none */
	struct gp_vcopy copy;        /* that packet, once the model is through with it */
	bool behind;                 /* the host is not: work.c */
	uint64_t packets, workgroups;
	uint64_t stopped_inside; /* as of the node's counters */
	uint64_t taken_off;      /* compute: how often a gate, a debugger or an eviction took it off the runlist */
	struct gp_vqueue_gws gws[GP_VQUEUE_GWS];
	struct gp_vqueue_save save;
};

int gp_vqueue_create(struct gp_vcall **call, struct gp_kfd_create_queue *args);
/* A user queue of DRM, with a doorbell of the caller's choice: KFD's calls do not find it. */
int gp_vqueue_create_user(struct gp_vcall **call, struct gp_kfd_create_queue *args, uint32_t doorbell_id);
int gp_vqueue_destroy(struct gp_vcall **call, uint32_t id, bool is_user);
uint64_t gp_vqueue_doorbells(const struct gp_vproc *process, const struct gp_vdev *gpu); /* where they are mapped */
/* The debugger let go: goes on with the destruction. 0: over; GP_VCALL_LATER: waits for its transaction. */
int gp_vqueue_destroy_begin(struct gp_vcall *call, struct gp_vqueue *queue);
/* update.c */
int gp_vqueue_update(struct gp_vcall **call, const struct kfd_ioctl_update_queue_args *args);
int gp_vqueue_set_cu_mask(struct gp_vcall **call, const struct kfd_ioctl_set_cu_mask_args *args);
int gp_vqueue_set_gws(struct gp_vcall **call, struct kfd_ioctl_alloc_queue_gws_args *args);
void gp_vqueue_destroy_all(struct gp_vproc *process);
void gp_vqueue_free(struct gp_vqueue *queue);
struct gp_vqueue *gp_vqueue_find(struct gp_vproc *process, uint32_t id);
bool gp_vqueue_is_sdma(const struct gp_vqueue *queue);
/* As KFD's QUEUE_IS_ACTIVE: all gates must be open. */
bool gp_vqueue_is_active(const struct gp_vqueue *queue);
bool gp_vqueue_runs(const struct gp_vqueue *queue); /* active, and its mask lets it */
void gp_vqueue_count(struct gp_vqueue *queue);      /* brings the GPU's active_count up to date */
uint32_t gp_vqueue_model_priority(uint32_t priority);
/* Whether va is where a piece of memory begins that is just so large and mapped on the GPU: what KFD wants of rings and
 * counters (kfd_queue_buffer_get()). */
bool gp_vqueue_owns(struct gp_vproc *process, const struct gp_vdev *gpu, uint64_t va, uint64_t size);
/* Looks at the doorbell, takes packets; returns whether anything moved. */
bool gp_vqueue_turn(struct gp_vqueue *queue);
/* Model events. */
void gp_vdev_turn(struct gp_vdev *gpu);
void gp_vqueue_fail(struct gp_vqueue *queue, uint32_t error);
void gp_vqueue_tell(struct gp_vqueue *queue, uint32_t error); /* through its inactive signal, and that signal's event */
void gp_vqueue_fault(struct gp_vqueue *queue, uint64_t va);
/* A wave of it cannot go on: the driver's exception, and what the trap handler puts into the inactive signal. */
void gp_vqueue_wave_error(struct gp_vqueue *queue, uint64_t exception, uint32_t signal);

/* aql.c, sdma.c */
bool gp_aql_turn(struct gp_vqueue *queue);
void gp_aql_start(struct gp_vqueue *queue, const struct gp_gpu_event *event);
void gp_aql_progress(struct gp_vqueue *queue, const struct gp_gpu_event *event);
void gp_aql_end(struct gp_vqueue *queue, const struct gp_gpu_event *event);
void gp_aql_catch_up(struct gp_vqueue *queue);
void gp_aql_gate(struct gp_vqueue *queue); /* a transaction that changed it is over */
void gp_aql_drop(struct gp_vqueue *queue); /* forgets its packets */
bool gp_sdma_turn(struct gp_vqueue *queue);
void gp_sdma_end(struct gp_vqueue *queue, const struct gp_gpu_event *event);
void gp_sdma_catch_up(struct gp_vqueue *queue);

#endif
