/* SPDX-License-Identifier: MIT */
/*
 * The simulator: model GPUs, processes and, optionally, the scheduler core, in virtual time.
 *
 * For those who run simulations (program, swarm tester, lab). Deterministic: the same configuration gives the same
 * events in the same order on every machine. Each client draws its arrivals from a stream of its own, so runs that
 * differ in policy or gate cost see the same arrivals. Single-threaded; nothing here reads a clock or the environment.
 *
 *   gp_sim_create() → gp_sim_step() / gp_sim_run_until() / gp_sim_run() → gp_sim_result() → gp_sim_destroy()
 */
#ifndef GP_SIM_ENGINE_H
#define GP_SIM_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <gpreempt/sched.h>
#include "lib/error.h"
#include "model/gpu.h"
#include "sim/workload.h"
#include "view/result.h"

struct gp_sim;

enum gp_sim_mode {
	GP_SIM_STOCK,      /* no core: what the firmware does */
	GP_SIM_CORE,       /* the core with config.policy */
	GP_SIM_SEQUENTIAL, /* one request or iteration at a time, the most urgent first */
	GP_SIM_LV1,        /* launch gating: lower clients launch nothing while a higher one has work */
	GP_SIM_RESET,      /* kill and re-run: idempotent clients only */
};

/* The fate of one answer: of one client, to what one transaction changed. All zero: delivered once, at once. */
struct gp_sim_ack_fate {
	bool drop;
	uint64_t delay_ns;      /* a delay beyond another answer reorders them */
	uint32_t copies;        /* further deliveries, */
	uint64_t copy_delay_ns; /* each so long after the one before */
};

/* Consulted where the outside world may misbehave. Any entry may be NULL: that never misbehaves. Called synchronously;
 * the callee may use the gp_sim_* questions and gp_gpu_set_fault(), nothing that changes the simulation otherwise. */
struct gp_sim_faults {
	void *context;
	/* Before an answer is delivered; *fate comes in as all zero. */
	void (*ack)(void *context, uint32_t device, uint32_t client, uint64_t now_ns, struct gp_sim_ack_fate *fate);
	/* false: the client neither carries out nor answers what it is ordered now. */
	bool (*obeys)(void *context, uint32_t client, uint64_t now_ns);
	/* Before a transaction goes to the model. */
	void (*transaction)(void *context, uint32_t device, const struct gp_gpu_change *changes, uint32_t change_count,
			    uint64_t now_ns);
};

/* Told about everything that happens, in order. Any entry may be NULL. Queues and clients are the simulator's numbers
 * (gp_sim_queue(), gp_sim_client()). Must not change the simulation. */
struct gp_sim_observer {
	void *context;
	void (*gpu_event)(void *context, uint32_t device, const struct gp_gpu_event *event);
	void (*submit)(void *context, uint32_t queue, const struct gp_gpu_packet *packet, uint64_t now_ns);
	void (*arrival)(void *context, uint32_t client, uint64_t job, uint64_t now_ns);
	void (*completion)(void *context, uint32_t client, uint64_t job, uint64_t arrival_ns, uint64_t now_ns);
	/* A plan as the core gave it, at the time it was decided. */
	void (*plan)(void *context, const struct gp_plan *plan, uint64_t now_ns);
	/* After each gp_sched_applied() with its return value; first: of this answer. */
	void (*ack)(void *context, const struct gp_order *order, uint64_t seq, int result, bool first, int ret,
		    uint64_t now_ns);
	/* After gp_sched_sample(); first: it reports an idle→busy edge. */
	void (*sample)(void *context, uint32_t queue, uint64_t written, uint64_t completed, bool first, int ret,
		       uint64_t now_ns);
	void (*client_change)(void *context, uint32_t client, bool added, bool in_core, uint64_t now_ns);
	/* After each step, when model, core and simulator agree on the time. */
	void (*step)(void *context, uint64_t now_ns);
};

/* Things that go wrong, or change, at a given time. */
enum gp_sim_fault_type {
	GP_SIM_FAULT_DEATH, /* client dies in whatever state; the core hears of it notice_ns later (NEVER: not at all);
			     * respawn_ns after its death it starts anew (0: never) */
	GP_SIM_FAULT_FORK,  /* client forks: a child on each of its devices, without queues, exits respawn_ns later
			     * (0: stays) */
	GP_SIM_FAULT_PRIORITY, /* client's queues get priority `value` (told to the core notice_ns later) */
	GP_SIM_FAULT_HINT,     /* client announces work in `value` ns that never comes */
	GP_SIM_FAULT_RESET,    /* device resets: every process on it dies, the core is told notice_ns later to stop it;
				* respawn_ns later it starts again, and so do the processes */
	GP_SIM_FAULT_CLOCK,    /* the time the core sees jumps by `value` ns, forwards or backwards */
	GP_SIM_FAULT_CLOSE_FAILS, /* the next close of queue (simulator's number) fails */
	GP_SIM_FAULT_CLOSE_HANGS, /* the next close of queue never finishes, until reset */
	GP_SIM_FAULT_GATE_LOST,   /* queue's gate opens without an order (its lease ran out); told notice_ns later,
				   * unless an order for it was carried out since */
};
struct gp_sim_fault {
	uint64_t time_ns;
	enum gp_sim_fault_type type;
	uint32_t client, queue, device;
	int64_t value;
	uint64_t notice_ns, respawn_ns;
};

#define SIM_SLICE_NONE UINT64_MAX /* middle_slice_ns: switched off */

struct gp_sim_config {
	const struct gp_workload *workload; /* checked; outlives the simulation */
	const struct gp_desc *desc;         /* outlives the simulation */
	uint32_t device_count;              /* of the same description; 1.. */
	enum gp_sim_mode mode;
	const char *policy; /* GP_SIM_CORE: a name from gp_policy_names */
	struct gp_param param;
	enum gp_unit unit;     /* how plans are carried out */
	uint64_t gate_cost_ns; /* 0: from the description */
	uint32_t dilate;       /* the device is so many times slower than the host; 0: 1 */
	uint64_t seed;
	uint64_t duration_ns; /* arrivals and measurement end here; see gp_workload_duration_ns() */
	/* Host time, divided by dilate. GP_SIM_DEFAULT_NS: the default beside it. */
	uint64_t notice_ns; /* an edge or an acknowledgement reaches the core; 5 us */
	uint64_t decide_ns; /* decision to the call into the driver; 5 us */
	uint64_t sample_ns; /* sampling interval of the counters; 20 us */
	bool rptr_at_fetch;
	uint32_t lv1_depth;     /* commands in flight of a lower client; 0: 8 */
	uint32_t reset_depth;   /* packets in flight of a lower client; 0: 2 */
	uint64_t reset_cost_ns; /* one kill or relaunch; 0: 20 us */
	uint32_t only_client;   /* simulate this client by itself (with the arrivals it has in company) */
	bool has_only_client;
	bool no_arrivals_limit;  /* arrivals go on after duration_ns (swarm: it stops them with gp_sim_stop_arrivals) */
	uint64_t ack_timeout_ns; /* given to the core; 0: its default */
	/* Time-sliced contexts (tsg) only. */
	uint32_t hold_out; /* 1: the core must not rely on the device putting lower contexts aside by itself */
	/* Slice of the clients below the top priority, in every mode; 0: 1 us with the core, else the device's own. */
	uint64_t lower_slice_ns;
	uint64_t middle_slice_ns; /* tsg: of one that has another open below it; 0: 2 ms; SIM_SLICE_NONE: none */
	uint32_t trace_count;     /* events the core keeps; a power of two; 0: 4096 */
	/* Recording of slices and marks. All zero: 200 ms from the first arrival after 10 % of the run, 20,000
	 * slices. */
	uint64_t window_start_ns, window_ns;
	uint32_t slice_max;
	bool no_recording;
	const struct gp_sim_observer *observer; /* or NULL */
	const struct gp_sim_faults *faults;     /* or NULL */
};
#define GP_SIM_DEFAULT_NS UINT64_MAX

/* A queue as the simulator knows it. Numbers are never reused; a respawned client gets new ones. */
struct gp_sim_queue_info {
	uint32_t client, device, gpu_queue, gpu_process;
	enum gp_gpu_kind kind;
	bool alive;   /* exists in the model */
	bool in_core; /* core_queue is known to the core */
	struct gp_queue_id core_queue;
	uint64_t written, completed; /* packets, as submitted and as seen completed */
	uint32_t running;            /* packets that run right now */
	bool closed;                 /* by the last finished transaction that named it */
};
struct gp_sim_client_info {
	const struct gp_work_client *work;
	int32_t priority; /* as it is now */
	bool alive, in_core;
	struct gp_client_id core_client;
	uint32_t first_queue, queue_count; /* its queues are numbered consecutively */
	uint64_t arrived, completed, lost; /* requests or iterations; lost: by death or reset */
	uint64_t workgroups_submitted;     /* of packets that were not lost, each must run exactly once */
	uint64_t workgroups_done;          /* from END events */
	uint64_t spin_ns; /* time its collectives ran and not all of their members had started, summed over devices */
};

int gp_sim_create(const struct gp_sim_config *config, struct gp_sim **ret_sim, struct gp_error *error);
void gp_sim_destroy(struct gp_sim *sim);
/* Handles the next event; false: nothing will ever happen again. */
bool gp_sim_step(struct gp_sim *sim);
uint64_t gp_sim_next_ns(const struct gp_sim *sim); /* time of the next event; UINT64_MAX: none */
/* Everything up to and including until_ns. */
void gp_sim_run_until(struct gp_sim *sim, uint64_t until_ns);
void gp_sim_run(struct gp_sim *sim); /* until duration_ns */
uint64_t gp_sim_now_ns(const struct gp_sim *sim);
int gp_sim_add_fault(struct gp_sim *sim, const struct gp_sim_fault *fault);
/* No more arrivals and iterations: what is under way drains. */
void gp_sim_stop_arrivals(struct gp_sim *sim);
bool gp_sim_is_drained(const struct gp_sim *sim); /* every live client's every job is complete */

struct gp_gpu *gp_sim_gpu(const struct gp_sim *sim, uint32_t device);
struct gp_sched *gp_sim_core(const struct gp_sim *sim); /* NULL without a core */
uint64_t gp_sim_core_now_ns(const struct gp_sim *sim);  /* the time the core sees: jumps included */
uint32_t gp_sim_queue_count(const struct gp_sim *sim);
void gp_sim_queue(const struct gp_sim *sim, uint32_t queue, struct gp_sim_queue_info *ret_info);
void gp_sim_client(const struct gp_sim *sim, uint32_t client, struct gp_sim_client_info *ret_info);
uint32_t gp_sim_find_queue(const struct gp_sim *sim, struct gp_queue_id core_queue); /* UINT32_MAX: none */

/* What was found until now; the caller frees with gp_sim_result_fini(). */
int gp_sim_result(struct gp_sim *sim, const char *name, struct gp_result_run *ret_run);
void gp_sim_result_fini(struct gp_result_run *run);

#endif
