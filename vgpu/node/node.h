/* SPDX-License-Identifier: MIT */
/*
 * The virtual node: what vgpud is made of. One process, one thread, no locks: the front end hands in calls, the main
 * loop turns, everything below is owned by that loop. Memory that clients can write (rings, doorbells, signals) is
 * hostile and is read once, into a local, before it is judged.
 */
#ifndef GP_VGPU_NODE_H
#define GP_VGPU_NODE_H

#include <linux/kfd_ioctl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "model/desc.h"
#include "model/gpu.h"
#include "vgpu/node/bar.h"
#include "vgpu/node/identity.h"
#include "vgpu/node/params.h"
#include "vgpu/node/pending.h"

#define GP_VPROC_MAX       1024u /* processes at once: one doorbell slot each */
#define GP_VPROC_QUEUE_MAX 1024u /* queue ids of one process, as KFD has it */
#define GP_VPROC_EVENT_MAX 4096u /* signal events of one process, as KFD has it */
#define GP_VPROC_BO_MAX    65536u
#define GP_VQUEUE_WINDOW   128u  /* packets of one queue handed to the model at once; a power of two */
#define GP_VDOORBELL_COUNT 1024u /* of one process on one device, 8 bytes each: the 8 KiB slice of SOC15 */
#define GP_VSDMA_QUEUE_MAX 128u

struct gp_vnode;
struct gp_vproc;
struct gp_vqueue;

/* One GPU of the node. */
struct gp_vdev {
	struct gp_vnode *node;
	uint32_t index, gpu_id, minor; /* minor: of its render node, from 128 */
	const struct gp_desc *desc;
	const struct gp_identity *identity;
	struct gp_gpu *model;
	struct gp_range vram;
	uint64_t vram_used;
	uint32_t sdma_used[GP_VSDMA_QUEUE_MAX / 32u];
	struct gp_vqueue *by_model[GP_GPU_QUEUE_MAX]; /* the model's queue ids back to ours */
	uint64_t halt_count, halt_ns;
	uint32_t reset_count;
	uint32_t queue_count, active_count; /* of all processes; active: compute queues with all gates open */
};

/* A piece of memory of one process: in the BAR, or its own pages (userptr). */
/* A piece that was exported: who knows its key, or has a descriptor of it, may import it (share.c). */
struct gp_vshare {
	struct gp_vshare *next;
	uint32_t key[4], refs, flags, gpu_index; /* refs: pieces that are this one */
	uint64_t size, offset;
	int pipe; /* share.c: the node's end of its descriptors; -1: it never had one */
};

struct gp_vbo {
	uint64_t handle, va, size;
	uint64_t offset; /* in the BAR; meaningless for a userptr */
	uint64_t user;   /* not 0: address in the client */
	uint32_t flags;  /* KFD_IOC_ALLOC_MEM_FLAGS_… */
	uint32_t mapped; /* bit per GPU */
	uint32_t gpu_index;
	bool accounted;
	bool imported;           /* counted by the process that made it */
	struct gp_vshare *share; /* NULL: nobody else can have it */
};

struct gp_vevent {
	uint32_t id, type;
	bool used, auto_reset, signaled;
	uint64_t age;     /* signals so far, from 1 */
	uint64_t data[4]; /* exception data, as kfd_event_data carries it */
};

struct gp_vnode_counters {
	uint64_t ioctls, dispatches, workgroups, workgroups_body, copies, copy_bytes, process_vm, queues_created,
		queues_destroyed;
	uint64_t processes_seen, exactly_once_violations, queue_errors;
	uint64_t workgroups_executed, wave_instructions, waves_saved, waves_restored;
	uint64_t stopped_inside; /* preemptions of executed kernels that found a wave between its first and last
				    instruction */
};

struct gp_kernels;
struct gp_execute_codes;
struct gp_smi_client;

struct gp_vnode {
	struct gp_bar bar;
	struct gp_desc desc;
	struct gp_vdev gpus[GP_VNODE_GPU_MAX];
	uint32_t gpu_count;
	uint32_t dilation;  /* device time runs this many times slower than the host's */
	uint64_t origin_ns; /* host time of device time 0 */
	uint64_t now_ns;    /* host time of this turn */
	struct gp_range gtt;
	uint64_t gtt_used, gtt_size;
	struct gp_vproc *processes;
	uint32_t slots[GP_VPROC_MAX / 32u];
	struct gp_vcall *calls; /* outstanding */
	struct gp_vshare *shares;
	struct gp_vtransaction *transactions;
	uint64_t seq;
	uint64_t busy_ns; /* host time of the last thing that happened */
	struct gp_kernels *kernels;
	struct gp_vnode_counters counters;
	struct gp_params params;
	char proc_dir[128];   /* where /sys/class/kfd/kfd/proc is kept; empty: nowhere */
	char module_dir[128]; /* where /sys/module/amdgpu is kept */
	char debug_dir[128];  /* where /sys/kernel/debug/kfd is kept */
	bool live_changed;    /* files of live.c are behind */
	uint64_t live_ns;     /* not to be written before */
	void (*complete)(struct gp_vnode *node, struct gp_vcall *call, int result); /* the front end's answer */
	/* Puts a copy of fd into the caller, close-on-exec not set; returns its number there or a negative errno.
	 * Called while the call is being decided, the fd stays the node's. NULL: this front end cannot. */
	int (*install_fd)(struct gp_vnode *node, struct gp_vcall *call, int fd);
	struct gp_smi_client *smi_clients;
	uint32_t fail_ioctl; /* the N-th from now fails; 0: none */
	int verbose;
};

/* What the files below proc/ say of a process on a GPU (live.c). */
struct gp_vproc_live {
	bool written;
	uint64_t evicted_ms, cu_count, vram_used, sdma_us;
};

struct gp_vproc_device {
	uint32_t model;
	bool has_model, vm;
	uint8_t *doorbells;
	uint32_t doorbell_used[GP_VDOORBELL_COUNT / 32u];
	uint32_t queue_count;
	uint32_t evicted;      /* after a memory fault, for good */
	bool has_reset;        /* a queue of it was reset: UPDATE_QUEUE gives EACCES from then on */
	struct gp_vqueue *gws; /* the one queue that has the global wave sync */
	uint64_t vram_used;    /* bytes */
	uint64_t sdma_ns;      /* copy engines' time of queues that are gone */
	struct gp_vproc_live live;
	uint64_t exception_status; /* for its debugger */
	struct kfd_hsa_memory_exception_data fault;
	bool has_fault; /* a debugger saw it, the runtime has not yet */
};

/* What was done with a program's kernels, each counted once. */
enum gp_vproc_kernel { GP_VPROC_DESCRIBED, GP_VPROC_EXECUTED, GP_VPROC_REFUSED, GP_VPROC_IDLE, GP_VPROC_KERNEL_KINDS };
#define GP_VPROC_KERNEL_MAX 256u

struct gp_vproc_kernels {
	uint64_t fingerprints[GP_VPROC_KERNEL_MAX];
	uint8_t kinds[GP_VPROC_KERNEL_MAX];
	uint32_t count;
};

struct gp_vproc {
	struct gp_vproc *next;
	struct gp_vnode *node;
	pid_t pid, thread;  /* thread: through which its memory is reached; usually the first, whose number is pid */
	uint32_t pid_depth; /* PID namespaces it is in, ours included; 0: not looked at */
	int pidfd;
	int memory;      /* /proc/PID/mem, which stays that of the program before an exec; -1: not looked at */
	bool lent;       /* its memory is reached through that only */
	uint64_t serial; /* of all processes of this node, from 1: a pid comes again, this does not */
	uint32_t slot, open_count;
	struct gp_vproc_device devices[GP_VNODE_GPU_MAX];
	struct gp_vbo **bos;     /* by address */
	struct gp_vbo **handles; /* by the low half of the handle */
	uint32_t bo_count, bo_capacity, handle_count, handle_free;
	struct gp_vevent *events; /* GP_VPROC_EVENT_MAX, by id */
	struct gp_vbo *event_page;
	uint64_t fault_va;              /* where the last access of a GPU found nothing */
	bool fault_is_write;            /* or what it must not write */
	struct gp_execute_codes *codes; /* decoded for it (execute.c) */
	struct gp_vproc_kernels kernels;
	struct gp_vqueue *queues[GP_VPROC_QUEUE_MAX];
	uint32_t queue_count;
	/* Debugging (debug.c). */
	bool runtime_enabled, runtime_ttmp, debug_enabled;
	bool runtime_retry;     /* RUNTIME_ENABLE was interrupted while it waited */
	uint32_t runtime_leave; /* how often the debugger said go on */
	uint64_t runtime_r_debug;
	struct gp_vproc *debugger; /* another process that debugs this one; NULL: nobody, or itself */
	int debug_fd;              /* the debugger's, written to when something happens; -1: none */
	uint64_t exception_mask, exception_status;
	uint32_t evicted; /* checkpoint pause, reset; counted */
	uint64_t evicted_since_ns, evicted_ns;
	bool criu_paused;
};

uint64_t gp_vnode_clock_ns(void);                         /* the host's monotonic time, now */
uint64_t gp_vnode_device_ns(const struct gp_vnode *node); /* device time of this turn */
uint64_t gp_vnode_ticks(const struct gp_vnode *node,
			uint64_t device_ns); /* the GPU's 100 MHz counter at that device time */
uint64_t gp_vnode_ticks_now(void);
struct gp_vdev *gp_vnode_gpu(struct gp_vnode *node, uint32_t gpu_id); /* NULL: no such GPU */

struct gp_vnode_config {
	const char *device; /* name of a description */
	uint32_t gpu_count, dilation;
	const char *kernels_path; /* NULL: only the kernels that come with vgpud */
	uint64_t gtt_size;        /* 0: three quarters of the host's memory */
	const char *params;       /* module parameters, name=value[,…]; NULL: the driver's defaults */
	int verbose;
};
int gp_vnode_init(struct gp_vnode *node, const struct gp_vnode_config *config, struct gp_error *error);
void gp_vnode_fini(struct gp_vnode *node);
/* One turn of the machine: lets the model run to now, takes new packets, answers calls that are due. Returns the host
 * time by which it wants to be called again. */
uint64_t gp_vnode_turn(struct gp_vnode *node);
void gp_vnode_log(const struct gp_vnode *node, int level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Answers an outstanding call and frees it. */
void gp_vcall_finish(struct gp_vnode *node, struct gp_vcall *call, int result);

#endif
