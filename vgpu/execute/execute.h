/* SPDX-License-Identifier: MIT */
/* Dispatches whose instructions are executed (vgpu/isa): their workgroups between launch and end, in slices. */
#ifndef GP_VGPU_EXECUTE_H
#define GP_VGPU_EXECUTE_H

#include "vgpu/isa/isa.h"
#include "vgpu/kfd/queue.h"

#define GP_EXECUTE_SIGNAL_TRAP 0x80000000u  /* what ROCr's trap handler adds to the inactive signal */
#define GP_EXECUTE_PACKET_VA   (1ull << 47) /* where a kernel finds its dispatch packet: outside the clients' space */

struct gp_execute_group;

struct gp_execution {
	struct gp_vqueue *queue;
	struct gp_vdispatch *dispatch;
	struct gp_isa_bus bus;
	struct gp_isa_code *code;
	enum gp_isa_target target;
	struct gp_kernel_descriptor descriptor;
	uint64_t entry;
	uint32_t accum_offset, row_count, lds_size, wave_count;
	uint64_t scratch, scratch_wave_size; /* the queue's private memory; bytes of a wave */
	uint32_t scratch_lane_size, scratch_resource[4];
	uint32_t next, done;                        /* workgroups: first not yet launched, ended */
	uint32_t live_count, live_max, live_target; /* resident at once; may be; are wanted */
	uint32_t at;                                /* whose turn is next */
	uint32_t idle;                              /* turns in a row in which nobody ended */
	struct gp_execute_group **live;
	bool is_stopped;                /* its queue is off the device */
	struct gp_execute_saved *saved; /* workgroups whose waves are in the queue's save area */
	uint32_t saved_count;
	bool is_fresh; /* code is looked at anew */
};

/* A workgroup in a save area: what the control stack knows of it. */
struct gp_execute_saved {
	uint32_t index, slot;
	uint32_t waves;  /* a bit per wave that has not ended */
	uint32_t offset; /* of its first wave's record, from the end of the control stack */
	uint64_t spent, total, executed;
};

struct gp_execute_group {
	struct gp_isa_group isa;
	uint32_t index; /* of the workgroup in its grid */
	uint32_t slot;  /* its place in scratch memory */
	uint64_t spent; /* wave instructions in this turn */
	uint64_t total;
	uint8_t *lds;
};

/* Reads what the kernel needs. 0; -EFAULT: not there; -ENOMEM; -EINVAL: a descriptor no wave can be made of. */
int gp_execute_create(struct gp_vqueue *queue, struct gp_vdispatch *dispatch, const struct gp_gpu_kernel *kernel,
		      struct gp_execution **ret_execution);
void gp_execute_destroy(struct gp_execution *execution);
/* Runs workgroups until the deadline. True: nothing is left to do until the model goes on, or everything is done. */
bool gp_execute_run(struct gp_execution *execution, uint64_t deadline_ns);
/* Between two workgroups of a dispatch that has begun: launches the next and lets it come part-way, as a preemption
 * finds it on hardware. */
void gp_execute_begin_one(struct gp_execution *execution);
/* save.c: the queue is preempted, and runs again. */
void gp_execute_stop(struct gp_execution *execution);
void gp_execute_resume(struct gp_execution *execution);
bool gp_execute_is_over(const struct gp_execution *execution);
/* Of a process: what was decoded for it. */
void gp_execute_forget(struct gp_vproc *process);

/* How many workgroups the queue's save area holds. */
uint32_t gp_execute_save_room(const struct gp_execution *execution);
void gp_execute_save_header(const struct gp_vqueue *queue, struct gp_kfd_wave_state *ret_state);
int gp_execute_save_show(struct gp_vqueue *queue, uint64_t address); /* header and control stack, as of now */
int gp_execute_wave_state(struct gp_vproc *process, struct kfd_ioctl_get_queue_wave_state_args *args);

/* fault.c: the queue stops, and the runtime hears why. */
void gp_execute_fault(struct gp_execution *execution, const struct gp_execute_group *group);

/* memory.c */
int gp_execute_find(void *context, uint64_t va, struct gp_isa_range *ret_range);
void gp_execute_memory_begin(struct gp_execution *execution);
bool gp_execute_memory_is_open(void);                      /* a slice is under way */
int gp_execute_memory_end(struct gp_execution *execution); /* -EFAULT: the client's pages are gone */

/* group.c */
/* Empty registers. */
struct gp_execute_group *gp_execute_group_create(struct gp_execution *execution, uint32_t index, uint32_t slot);
struct gp_execute_group *gp_execute_launch(struct gp_execution *execution, uint32_t index, uint32_t slot);
void gp_execute_group_destroy(struct gp_execute_group *group);

#endif
