/* SPDX-License-Identifier: MIT */
/*
 * What the processes of a simulation want from the GPUs: plain data, filled by mixes (sim/mix.h), by the replay of a
 * trace, or by a test. Bound to one device description: numbers of workgroups are already resolved. The simulator only
 * reads it, so that every compared run sees the same work.
 */
#ifndef GP_SIM_WORKLOAD_H
#define GP_SIM_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/error.h"
#include "model/gpu.h"

#define GP_WORK_CLIENT_MAX   GP_GPU_PROCESS_MAX
#define GP_WORK_QUEUE_MAX    64u    /* compute queues (streams) of one client on one device */
#define GP_WORK_STEP_MAX     65536u /* steps of one sequence */
#define GP_WORK_SEQUENCE_MAX 8192u
#define GP_WORK_ARRIVAL_MAX  (1u << 22) /* explicit arrivals of one client */
#define GP_WORK_REPEAT_MAX   1000000u
#define GP_WORK_BURST_MAX    4096u
#define GP_WORK_DEVICE_MAX   64u
#define GP_WORK_RANK_MAX     64u              /* members of one collective: devices of all ranks of a job */
#define GP_WORK_NS_MAX       3600000000000ull /* one hour: no kernel, gap or offset is longer */
#define GP_WORK_DEPS         GP_GPU_DEPS

enum gp_step_type {
	GP_STEP_KERNEL,
	GP_STEP_COPY,       /* on the client's copy queue of its direction */
	GP_STEP_COLLECTIVE, /* a kernel per device of the client, and of its peers, that stays resident until all of
			       them have started */
};

/* Which of an arrival's own numbers a step is multiplied by. */
enum gp_step_by { GP_BY_NONE, GP_BY_FIRST, GP_BY_SECOND };

/* One step of a request. Steps on one queue run in order. A step waits for the steps named in deps, through signals and
 * a barrier packet where they are on another queue. It runs on every device of its client, unless device says one. */
struct gp_work_step {
	enum gp_step_type type;
	uint32_t queue;  /* kernels: stream, 0..queue_count-1 of its client, counted from the request's own stream */
	uint32_t repeat; /* 1.. */
	uint32_t device; /* UINT32_MAX: every device of the client; else the n-th of them */
	uint32_t deps[GP_WORK_DEPS]; /* number of an earlier step of this sequence, from 1; 0: unused */
	struct gp_gpu_kernel kernel; /* spin_signal is set by the simulator */
	uint64_t copy_size;          /* bytes */
	bool to_host;                /* copies: device to host */
	enum gp_step_by time_by, repeat_by;
};

struct gp_work_sequence {
	uint32_t step_count;
	struct gp_work_step *steps;
};

enum gp_work_kind {
	GP_WORK_SERVICE, /* requests with a latency */
	GP_WORK_BATCH,   /* repeats its sequence for ever, depth packets queued ahead */
};

enum gp_work_arrival {
	GP_ARRIVAL_POISSON,  /* mean gap period_ns */
	GP_ARRIVAL_PERIODIC, /* every period_ns */
	GP_ARRIVAL_CLOSED,   /* the next request think_ns after the last one completed */
	GP_ARRIVAL_EXPLICIT, /* arrivals[], in order of time */
};

struct gp_work_request {
	uint64_t offset_ns;
	uint32_t size[2];                /* its own numbers, for time_by and repeat_by */
	uint32_t first_step, step_count; /* the part of its client's sequence it runs */
};

struct gp_work_client {
	char name[48];
	enum gp_work_kind kind;
	int32_t priority;        /* 0..99, 99 = most urgent */
	uint32_t weight;         /* 0: default */
	uint32_t floor_permille; /* guaranteed share of each device; 0: none */
	uint64_t deadline_ns;    /* relative to arrival; 0: none */
	uint64_t budget_ns;      /* device time per arrival, for the admission test of edf; 0: not tested */
	uint32_t gang;           /* 0: none */
	uint32_t meets;   /* clients with the same number are ranks of one job, which meet in collectives; 0: none */
	uint64_t devices; /* set of device numbers; not empty */
	uint32_t queue_count; /* compute queues per device, 1.. */
	uint32_t ring_size;   /* 0: 1024 */
	uint64_t start_ns;    /* the process starts so late */
	uint32_t hw_priority; /* of its compute queues in hardware, 1..15; 0: NORMAL */
	uint64_t memory_size; /* bytes held, for drf */
	bool spread;          /* request n uses stream n mod queue_count as its first */
	bool idempotent;      /* its kernels may be killed and run again (mode reset) */
	bool unseen;          /* its doorbells are not seen by an agent */
	bool claims;          /* hostile: its agent always claims packets that are not there */
	bool is_stuck_alone;  /* a queue of it that cannot be put aside does not keep its gang open */
	uint64_t user;        /* clients of one user age as one; 0: a user of its own */
	uint32_t sequence;    /* index into the workload's sequences */
	uint32_t warm_count;  /* its first requests, or iterations, that are in none of its figures */
	/* services */
	enum gp_work_arrival arrival;
	uint64_t period_ns, think_ns;
	uint32_t session; /* closed: so many requests, then pause_ns instead of think_ns; 0: no end */
	uint64_t pause_ns;
	uint32_t burst;   /* requests per arrival; 0: 1 */
	uint64_t hint_ns; /* announces each request so long before; 0: no hint */
	uint32_t request_count;
	struct gp_work_request *requests;
	/* batch */
	uint32_t depth; /* packets queued ahead, 1.. */
};

#define GP_WORK_LIST_MAX 8u

/* A kernel list that came with the latency of the whole: what the model makes of it alone, and what was measured, both
 * on the device of the list. */
struct gp_work_list {
	char name[48], device[48];
	uint64_t model_ns, measured_ns;
};

struct gp_workload {
	char name[64];
	char title[160]; /* empty: none */
	uint32_t client_count;
	struct gp_work_client *clients;
	uint32_t sequence_count;
	struct gp_work_sequence *sequences;
	uint32_t device_count; /* devices the workload was made for */
	uint64_t duration_ns;  /* how long to simulate unless told otherwise; 0: until request_target */
	uint32_t list_count;
	struct gp_work_list lists[GP_WORK_LIST_MAX];
	uint32_t request_target; /* with duration 0: until the first open-loop service has had so many arrivals */
};

/* Checks every limit and reference; 0, or -EINVAL with the client and what is wrong. Everything below relies on it. */
int gp_workload_check(const struct gp_workload *workload, const struct gp_desc *desc, struct gp_error *error);
/* Growing; indices stay valid, pointers do not. NULL or UINT32_MAX: no memory or too many. */
struct gp_work_client *gp_workload_add_client(struct gp_workload *workload);
uint32_t gp_workload_add_sequence(struct gp_workload *workload);
struct gp_work_step *gp_workload_add_step(struct gp_workload *workload, uint32_t sequence);
struct gp_work_request *gp_workload_add_request(struct gp_work_client *client);
void gp_workload_fini(struct gp_workload *workload);

/* A kernel that fills the device `rounds` times, one workgroup of four waves and the full register file per place. */
struct gp_gpu_kernel gp_workload_full_kernel(const struct gp_desc *desc, uint32_t rounds, uint64_t kernel_ns);
/* When the run ends: duration_ns, or the arrival of the target's last request drawn from this seed. */
uint64_t gp_workload_duration_ns(const struct gp_workload *workload, uint64_t seed);

#endif
