/* SPDX-License-Identifier: MIT */
/*
 * The GPU model: command processor, compute units, copy engines and context save, in virtual time.
 *
 * Driven by the simulator (virtual time) and by vgpud (real time): the driver submits packets, rings doorbells and
 * changes gates, asks for the time of the next internal event, advances to it and polls what happened. It is a timing
 * and scheduling model, not an instruction-set emulator. No clock, thread, float or libm: same calls, same events.
 *
 * All times are nanoseconds of device time. A call's now_ns must not lie before the last advance; internal events up to
 * now_ns are processed first. Functions returning int return 0 or a negative errno and change nothing on failure.
 */
#ifndef GP_MODEL_GPU_H
#define GP_MODEL_GPU_H

#include <stdbool.h>
#include <stdint.h>
#include "model/desc.h"

#define GP_GPU_PROCESS_MAX 4096u
#define GP_GPU_QUEUE_MAX   65536u
#define GP_GPU_RING_MAX    65536u /* packets in one ring, a power of two */
#define GP_GPU_SIGNAL_MAX  (1u << 20)
#define GP_GPU_DEPS        5u /* as in an AQL barrier packet */
#define GP_GPU_NEVER_NS    UINT64_MAX

struct gp_gpu;

struct gp_gpu_config {
	const struct gp_desc *desc; /* must outlive the gpu */
	uint64_t gate_cost_ns; /* one transaction end to end, close or open alike; 0: from the description and the bytes
				  resident */
	bool rptr_at_fetch;    /* the read counter moves at fetch instead of at completion */
	bool drains; /* cpsch without context save: what runs is not set aside but runs to its workgroups' ends first */
	bool pipe_by_process; /* cpsch, mes: queues of the n-th process go to pipe n mod pipes while it has room; what
				 the seeds propose, not what firmware does */
	bool hang_halts; /* cpsch: a close that hangs holds the whole device, and all transactions behind it, until a
			    reset */
};

enum gp_gpu_kind { GP_GPU_COMPUTE, GP_GPU_COPY };
struct gp_gpu_queue_attr {
	enum gp_gpu_kind kind;
	uint32_t ring_size; /* packets, a power of two, 2..GP_GPU_RING_MAX; 0: 1024 */
	uint32_t priority; /* hardware priority 0..15; 0 means 7 (NORMAL); arbitrates among queues of one pipe and among
			      pipes, never preempts */
	uint32_t cu_count; /* CU mask as a number of CUs, spread over XCC then SE as KFD does; 0: all */
	bool closed;       /* it begins closed, which halts nobody */
};

/* A kernel is so many identical workgroups of so much time each. */
struct gp_gpu_kernel {
	uint32_t workgroups;   /* 1.. */
	uint64_t workgroup_ns; /* time one workgroup runs, undisturbed; 1.. */
	uint32_t waves;        /* per workgroup, 1..16 */
	uint32_t vgprs;        /* per lane, arch + acc, 1..512 (rounded up to 8) */
	uint32_t lds_size;     /* bytes per workgroup */
	uint32_t spin_signal;  /* not 0: workgroups stay resident after their time until this signal is <= 0
				  (collectives) */
};

enum gp_gpu_packet_type { GP_GPU_KERNEL, GP_GPU_BARRIER_AND, GP_GPU_BARRIER_OR, GP_GPU_COPY_BYTES };
struct gp_gpu_packet {
	enum gp_gpu_packet_type type;
	bool barrier;               /* AQL barrier bit: not before all earlier packets of this queue completed */
	uint32_t signal;            /* decremented at completion; 0: none */
	uint32_t deps[GP_GPU_DEPS]; /* barrier packets: signals awaited (<= 0); 0: unused */
	uint64_t tag;               /* the driver's, returned in events */
	struct gp_gpu_kernel kernel;
	uint64_t copy_size; /* bytes */
};

enum gp_gpu_event_type {
	GP_GPU_EVENT_FETCH,  /* packet taken from the ring by its pipe */
	GP_GPU_EVENT_START,  /* first workgroup began, or work resumed after STOP; value: workgroups completed so far */
	GP_GPU_EVENT_STOP,   /* running work set aside (CWSR, context switch); value: workgroups completed so far */
	GP_GPU_EVENT_END,    /* packet complete, signal decremented; value: workgroups run, each exactly once */
	GP_GPU_EVENT_KILLED, /* progress thrown away by gp_gpu_kill(); value: workgroup-ns wasted */
	GP_GPU_EVENT_TRANSACTION, /* finished; value: its seq; error: 0 or negative errno (-EIO: preemption failed) */
	GP_GPU_EVENT_HALT,        /* the whole device stops (transaction, runlist update, slice switch) */
	GP_GPU_EVENT_RUN,         /* and runs again; value: ns it stood still */
	GP_GPU_EVENT_OVERSUBSCRIBED, /* value: 1 begins, 0 ends */
	GP_GPU_EVENT_RESET,          /* the device was reset; all queues are gone */
};
struct gp_gpu_event {
	uint64_t time_ns, tag, value, packet; /* packet: its index in the queue, from 0 */
	uint32_t queue, pipe, slot;           /* pipe and slot: where the queue sits; UINT32_MAX: nowhere */
	int32_t error;
	enum gp_gpu_event_type type;
};

/* Wrapping counters never wrap: 64 bits. read is what software sees (rptr): fetched or completed by configuration. */
struct gp_gpu_counters {
	uint64_t written, fetched, completed, read;
	uint64_t workgroups_run; /* workgroups completed, all packets */
	uint64_t busy_ns;        /* time with at least one workgroup or copy running */
	uint64_t unit_ns;  /* CU-share integral: sum of running workgroups' shares of the device x ns (whole device = 1)
			    */
	uint64_t delay_ns; /* of it what the model's merging of cohorts added, for all that was dispatched */
	bool open, mapped, resident;
	uint32_t pipe, slot;   /* UINT32_MAX: nowhere */
	uint32_t resident_cus; /* compute units its workgroups fill now, rounded up */
};

struct gp_gpu_change {
	uint32_t queue;
	bool open;
	bool set; /* priority and cu_count, as in gp_gpu_queue_attr, hold from the end of the transaction */
	uint32_t priority, cu_count;
};

int gp_gpu_create(const struct gp_gpu_config *config, struct gp_gpu **ret_gpu);
void gp_gpu_destroy(struct gp_gpu *gpu);

int gp_gpu_process_add(struct gp_gpu *gpu, uint32_t *ret_process);
int gp_gpu_process_remove(struct gp_gpu *gpu, uint32_t process, uint64_t now_ns); /* its queues and their work vanish */
int gp_gpu_queue_add(struct gp_gpu *gpu, uint32_t process, const struct gp_gpu_queue_attr *attr, uint64_t now_ns,
		     uint32_t *ret_queue);
/* Halts the device like a transaction, unless the queue is closed: KFD then leaves the runlist as it is. */
int gp_gpu_queue_remove(struct gp_gpu *gpu, uint32_t queue, uint64_t now_ns);
int gp_gpu_signal_add(struct gp_gpu *gpu, int64_t value, uint32_t *ret_signal); /* ids from 1 */
int gp_gpu_signal_set(struct gp_gpu *gpu, uint32_t signal, int64_t value, uint64_t now_ns);
void gp_gpu_signal_remove(struct gp_gpu *gpu, uint32_t signal);

int gp_gpu_submit(struct gp_gpu *gpu, uint32_t queue, const struct gp_gpu_packet *packet,
		  uint64_t now_ns); /* -ENOSPC: ring full */
int gp_gpu_doorbell(struct gp_gpu *gpu, uint32_t queue, uint64_t now_ns);

/* One transaction: on cpsch the whole device halts while it lasts; on mes and tsg only the queues named are touched.
 * Transactions of one device run one after the other, in the order given. Changing a gate to the state it has costs the
 * same. */
int gp_gpu_transact(struct gp_gpu *gpu, const struct gp_gpu_change *changes, uint32_t change_count, uint64_t seq,
		    uint64_t now_ns);
/* No change: a TRANSACTION event with this seq when everything asked for so far is through. */
int gp_gpu_mark(struct gp_gpu *gpu, uint64_t seq, uint64_t now_ns);
/* The runlist, in order: the ids of open compute queues, closed ones left out. Returns how many there are, of which at
 * most id_count are written. */
uint32_t gp_gpu_runlist(const struct gp_gpu *gpu, uint32_t *ret_ids, uint32_t id_count, bool *ret_oversubscribed);
/* How full it is. An oversubscribed device whose queues share one slice changes nothing by itself. */
struct gp_gpu_runlist_use {
	uint32_t queue_count;        /* open compute queues */
	uint32_t process_count;      /* with a queue, open or not: what the driver counts */
	uint32_t open_process_count; /* of these, with an open compute queue */
	uint32_t slice_count;        /* turns of 10 ms that it takes; at most 1: everything is there at once */
	bool oversubscribed;         /* as the driver decides it */
};
void gp_gpu_runlist_use(const struct gp_gpu *gpu, struct gp_gpu_runlist_use *ret_use);
int gp_gpu_set_timeslice(struct gp_gpu *gpu, uint32_t process, uint64_t slice_ns,
			 uint64_t now_ns); /* tsg only, else -EOPNOTSUPP */
/* tsg only: how often the process was put aside though it had work. */
int gp_gpu_switch_count(const struct gp_gpu *gpu, uint32_t process, uint32_t *ret_count);
int gp_gpu_announce(struct gp_gpu *gpu, uint32_t queue, uint64_t until_ns,
		    uint64_t now_ns); /* tsg only: bring the context in and hold it */
int gp_gpu_kill(struct gp_gpu *gpu, uint32_t queue,
		uint64_t now_ns); /* REEF: running packets lose their progress and start over */
int gp_gpu_reset(struct gp_gpu *gpu, uint64_t now_ns);

/* Faults on demand, for tests: the next close of this queue fails with -EIO, or never finishes (until reset). */
enum gp_gpu_fault { GP_GPU_FAULT_NONE, GP_GPU_FAULT_CLOSE_FAILS, GP_GPU_FAULT_CLOSE_HANGS };
int gp_gpu_set_fault(struct gp_gpu *gpu, uint32_t queue, enum gp_gpu_fault fault);

uint64_t gp_gpu_next_ns(const struct gp_gpu *gpu); /* GP_GPU_NEVER_NS: nothing will happen by itself */
void gp_gpu_advance(struct gp_gpu *gpu, uint64_t now_ns);
bool gp_gpu_poll(struct gp_gpu *gpu, struct gp_gpu_event *ret_event); /* events in time order */
int gp_gpu_counters(const struct gp_gpu *gpu, uint32_t queue, struct gp_gpu_counters *ret_counters);

/* What a close would cost now: firmware overhead and the bytes resident over the save bandwidth. */
uint64_t gp_gpu_gate_cost_ns(const struct gp_gpu *gpu);
/* How many workgroups of this kernel the whole device holds at once (occupancy x CUs). 0: it never fits. */
uint32_t gp_gpu_capacity(const struct gp_desc *desc, const struct gp_gpu_kernel *kernel);
const char *gp_gpu_check(const struct gp_gpu *gpu); /* whole-state invariants; NULL if all is well */

#endif
