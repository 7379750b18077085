/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * A software GPU below the real amdkfd.
 *
 * amdkfd is built from the kernel's own source. In place of amdgpu and the hardware stands this module: it binds to
 * QEMU's ivshmem device, whose memory is the doorbell aperture, answers what amdkfd asks of amdgpu, reads the packets
 * that amdkfd puts into the HIQ (or the calls it makes of MES), and runs the user's queues on model/, the model that
 * vgpud and the simulator use.
 *
 * One thread is the device (device_thread). Everything of the device is under `lock`; amdkfd's locks are outside it:
 * the device thread never calls amdkfd with the lock held.
 */
#ifndef SOFT_DEVICE_H
#define SOFT_DEVICE_H

#include <linux/debugfs.h>
#include <linux/kthread.h>
#include <linux/pci.h>
#include <linux/vmalloc.h>
#include <linux/xarray.h>
#include "amdgpu.h"
#include "amdgpu_amdkfd.h"
#include "kfd_priv.h"
#include "v9_structs.h"
#include "v11_structs.h"
#include "model/gpu.h"

#define SOFT_QUEUE_MAX 512u /* that the device remembers at once */
#define SOFT_RING      256u /* packets of one queue in the model */
#define SOFT_GPU_MAX   4u

struct soft_packet { /* taken from a ring, not complete */
	u64 signal, end_ns;
	u32 workgroups;
	bool is_done;                /* for the model */
	bool is_kernel, is_executed; /* cores.c */
};

struct soft_queue {
	void *mqd; /* NULL: this place is free */
	u64 mqd_address, pasid;
	u64 ring, rptr_address, wptr_address;
	u32 packet_count, doorbell; /* doorbell: dword on the aperture */
	u32 model;                  /* its id in the model */
	u64 taken, completed;       /* packets, as the ring counts them */
	u64 doorbell_seen;
	u64 run_when_closed; /* workgroups complete when it was last unmapped */
	/* SDMA: `completed` counts bytes of the ring; a copy in the model's engine, and whether it is through */
	u64 ring_size, copy_bytes;
	bool copy_is_done;
	bool mapped, blocked, is_copy, was_mapped, in_runlist;
	bool is_hung; /* it did not answer a preemption, and runs on until it is reset */
	struct soft_packet packets[SOFT_RING];
};

struct soft_stats {
	u64 runlists, map_queues, unmaps, fences, mes_adds, mes_removes;
	u64 dispatches, copies, interrupts, preempted, faults, resets, queue_resets, violations;
	u64 executed, not_executed; /* dispatches, by cores.c */
	u64 copies_apart; /* copies that ended while one compute queue at most was mapped, and none of their process */
	u64 stale;        /* what would be a violation, had the driver not given up on the device until its reset */
	u64 runlist_queues_max, packet_hash, packet_count, packet_words;
	/* What one RUN_LIST changed at most: queues that it left out or brought in, and of how many processes. */
	u64 left_max, left_processes_max, changed_max;
};

/* The program that executes kernels, and the dispatch that it has. */
struct soft_cores {
	bool is_open;
	u64 done_count; /* dispatches that were over for the model */
	wait_queue_head_t wait;
	struct soft_queue *queue; /* NULL: none */
	u64 index, pasid;
	u32 model;
};

struct soft {
	struct amdgpu_device adev; /* embeds the DRM device */
	struct gp_gpu *gpu;
	void __iomem *doorbells;
	size_t doorbells_size;
	struct mutex lock;
	struct mutex gtt_lock;
	struct list_head gtt;
	u64 gtt_next;
	struct xarray bos;
	struct task_struct *thread;
	struct work_struct reset_work;
	u32 index; /* among the devices */
	struct dentry *dir;

	struct v9_mqd *hiq;
	u32 hiq_doorbell, hiq_rptr;
	u64 hiq_waits; /* transaction that the HIQ waits for; 0: none */
	u64 seq, seq_done;
	bool is_resetting; /* the driver unmaps nothing any more, until the device was reset */
	wait_queue_head_t transacted;

	struct soft_packet retired[SOFT_RING]; /* the device thread's alone: what it completes without the lock */
	struct soft_queue *queues;
	u32 queue_high; /* places from here on were never taken: the device looks at all below every 100 us */
	struct xarray process_ids; /* PASID -> model's process + 1 */
	struct soft_cores cores;
	struct soft_stats stats;
};

extern struct soft *soft_gpus[SOFT_GPU_MAX];
extern uint soft_trace, soft_close_hangs, soft_close_fails, soft_reset_fails;

static inline struct soft *to_soft(struct amdgpu_device *adev)
{
	return container_of(adev, struct soft, adev);
}

#define soft_log(...)                                     \
	do {                                              \
		if (soft_trace)                           \
			pr_info("softgpu: " __VA_ARGS__); \
	} while (0)

/* memory.c */
void *soft_gtt(struct soft *soft, u64 address);
struct amdgpu_bo *soft_bo_new(struct amdgpu_device *adev, u64 offset); /* offset: what tells it from others */

/* queue.c: what lies in the rings */
int soft_queue_find(struct soft *soft, u64 mqd_address, u32 pasid, u32 doorbell, bool is_copy, u32 *ret_queue);
int soft_queue_map(struct soft *soft, const u32 *queues, u32 count); /* opens; returns when it is asked for */
int soft_queue_unmap(struct soft *soft, u32 pasid);                  /* closes all; pasid 0: of everybody */
int soft_queue_unmap_one(struct soft *soft, u32 queue);
u64 soft_queue_hung(struct soft *soft);       /* the ring of a queue that does not answer, or 0 */
u64 soft_queue_reset_hung(struct soft *soft); /* the same, and ends it */
void soft_queue_process_gone(struct soft *soft, u32 pasid);
u64 soft_queue_run(struct soft *soft); /* rings, completions; returns when it wants to be called again */
void soft_violation(struct soft *soft, const char *what, u64 value);
void soft_stale(struct soft *soft, const char *what, u64 value); /* one, unless a reset is on its way */
u64 soft_now_ns(void);

/* copy.c: what lies in the rings of the copy engines; called with the lock, which it drops */
void soft_copy_serve(struct soft *soft, struct soft_queue *queue, struct kfd_process *process);

/* cores.c */
extern const struct file_operations soft_cores_fops;

/* command.c: the HIQ */
void soft_command_run(struct soft *soft);
extern const struct amdgpu_mes_funcs soft_mes_funcs;

/* device description, generated from share/devices */
extern const struct gp_desc soft_desc;

#endif
