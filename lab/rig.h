/* SPDX-License-Identifier: MIT */
/*
 * The rig: so many processes that replay a graph of dependent kernels on the model GPU, and count how many they finish.
 *
 * The published figures come from an inference server whose graph hops over the hardware queues of its process; what is
 * not known of it (how many kernels, how many fork, how many fill the device exactly once) are numbers of struct
 * lab_load, fitted in one place (share/lab/fit.ini). Everything else is a switch. Virtual time and integers only: the
 * same setup gives the same result on every machine.
 */
#ifndef GP_LAB_RIG_H
#define GP_LAB_RIG_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/error.h"
#include "model/gpu.h"

#define LAB_PROCESS_MAX 16u
#define LAB_QUEUE_MAX   32u /* compute queues of one process */
#define LAB_STREAM_MAX  64u
#define LAB_STAGE_MAX   400u
#define LAB_ENTITY_MAX  32u

enum lab_queue_ids { LAB_IDS_FIRST_FIT, LAB_IDS_PID_HASH };
enum lab_doorbells { LAB_DOORBELL_SLICE, LAB_DOORBELL_SHARED };
enum lab_runlist { LAB_RUNLIST_STOCK, LAB_RUNLIST_REMOVED, LAB_RUNLIST_QUEUED, LAB_RUNLIST_FEARED };
enum lab_rings { LAB_RING_FIXED, LAB_RING_HASH, LAB_RING_ROUND_ROBIN, LAB_RING_LEAST_LOADED };
enum lab_submission { LAB_SUBMIT_DOORBELL, LAB_SUBMIT_DRM_SCHED };
enum lab_workqueue { LAB_WORKQUEUE_PER_RING, LAB_WORKQUEUE_ONE };

/* One query, as far as it is known; fitted. */
struct lab_load {
	uint32_t stages;        /* dependent steps of a query */
	uint32_t fork_ppm;      /* of them are two kernels of half the device side by side */
	uint32_t wave_ppm;      /* of the kernels fill the device exactly once; the others eight times */
	uint32_t jitter_ppm;    /* durations are drawn from kernel_ns (1 - jitter) to kernel_ns (1 + jitter) */
	uint64_t kernel_ns;     /* mean, on the whole device */
	uint64_t host_ns;       /* between two queries */
	uint64_t slice_loss_ns; /* lost per process slice when oversubscribed */
};

/* A value, without pointers but the description's: equal setups give equal results, and are run once. */
struct lab_setup {
	const struct gp_desc *desc; /* the device; what is below replaces its values */
	struct lab_load load;
	uint32_t process_count;
	uint32_t stream_count; /* per process */
	uint32_t queue_count;  /* hardware queues they share (GPU_MAX_HW_QUEUES) */
	uint32_t idle_count;   /* further open queues that never have work (utility, cooperative) */
	uint32_t cu_count;     /* CU mask; 0: all */
	uint32_t kcq_count;    /* kernel queues reserved on the 32 of the command processor */
	uint32_t priority;     /* hardware priority of the first process; 0: NORMAL, as everybody */
	uint32_t admit;        /* with turns: so many processes have open gates at once; 0: one */
	uint32_t ring_count, entity_count;
	uint64_t turn_ns;      /* gates change every so often; 0: all are always open */
	uint64_t gate_cost_ns; /* of a transaction; 0: from the description */
	uint64_t quantum_ns, process_quantum_ns;
	uint64_t job_ns;      /* one job through a scheduler's work item, assumed */
	bool graph_on_one;    /* the graph is captured on one queue, whatever streams there are */
	bool mask_balanced;   /* the mask is rounded down to the same number of CUs in every shader engine */
	bool pipe_by_process; /* all queues of process n sit on pipe n mod pipes */
	bool rotate;          /* a pipe passes over a blocked head at once */
	bool pack_slots;      /* a slice of an oversubscribed device holds as many processes as fit */
	bool is_cpx;          /* one partition per XCC, processes spread over them */
	bool is_coupled;      /* ranks of one job: the next query comes when all have ended theirs */
	enum lab_queue_ids queue_ids;
	enum lab_doorbells doorbells;
	enum lab_runlist runlist;
	enum lab_submission submission;
	enum lab_rings rings;
	enum lab_workqueue workqueue;
	uint64_t seed, duration_ns;
};

struct lab_rates {
	uint64_t qps_milli;     /* queries per 1000 s, all processes */
	uint64_t slowest_milli; /* of the process that got least */
	uint64_t events;        /* of the model */
	bool oversubscribed;
	uint32_t unmapped;  /* queues that never come onto the runlist */
	uint32_t lost;      /* processes whose doorbells ring somebody else's queue */
	int32_t map_result; /* of a second runlist sent without an unmap */
};

/* One device, or the sum over the partitions. */
int lab_rig_run(const struct lab_setup *setup, struct lab_rates *ret_rates, struct gp_error *error);

#endif
