/* SPDX-License-Identifier: MIT */
/*
 * What the simulator's own files share; nobody else includes this. Who owns what:
 *   engine.c   time, the heap, dispatch          process.c  clients, jobs, submission
 *   agent.c    what the core is told             apply.c    carrying out its plans
 *   baseline.c modes without the core            fault.c    things that go wrong on request
 *   slice.c    slices, as ordered and counted     meeting.c  collectives
 *   account.c  who waited for whom, results      record.c   the window of slices and marks
 */
#ifndef GP_SIM_STATE_H
#define GP_SIM_STATE_H

#include "lib/rng.h"
#include "sim/engine.h"
#include "sim/heap.h"

#define SIM_NONE          UINT32_MAX
#define SIM_LEVELS        (GP_PRIORITY_MAX + 1)
#define SIM_SLICE_CALL_NS 400000u /* SET_TIMESLICE (measured, H200, driver 580.159: 386 and 428 us) */
#define SIM_PAIR_MAX      64u     /* clients whose waits are kept pair by pair */

/* Heap events; index and value as beside. */
enum sim_event {
	SIM_START,   /* client, incarnation */
	SIM_ARRIVAL, /* client, incarnation */
	SIM_HINT,    /* client, time the work is announced for */
	SIM_NOTICE,  /* queue */
	SIM_SAMPLE,  /* queue */
	SIM_ISSUE,   /* apply: its next transaction */
	SIM_HURRY,   /* apply, plan's seq: its patience is over */
	SIM_ACK,     /* apply, the first order that is answered */
	SIM_HOST_BUSY,
	SIM_HOST_IDLE,     /* client (baselines): the host-side scheduler notices */
	SIM_GRANT,         /* sequential: the next job may go */
	SIM_FAULT,         /* fault */
	SIM_CORE_REMOVE,   /* grave: the core hears of a death */
	SIM_CORE_PRIORITY, /* client */
	SIM_DEVICE_STOP,
	SIM_DEVICE_START,
	SIM_CHILD_EXIT, /* device, process */
	SIM_GATE_LOST,  /* queue, the last transaction issued before */
	SIM_SLICE,      /* queue, plan's seq: its slice is set now */
	SIM_SLICED,     /* queue, plan's seq: the core hears of it */
	SIM_COUNT,      /* device: switches are counted */
};

struct sim_packet {            /* one place of a queue's ring */
	uint64_t start_ns;     /* since when it runs, + 1; 0: it does not */
	uint32_t job, meeting; /* meeting: of a collective, or SIM_NONE */
	uint32_t workgroups;
	uint32_t capacity; /* how many such workgroups fill the device; 0: not a kernel */
};

struct sim_queue {
	struct gp_sim_queue_info info;
	uint32_t ring_size;
	struct sim_packet *ring;
	bool has_deadline; /* the core took it */
	bool armed;        /* the core takes it for idle: the next doorbell is an edge */
	bool notice_pending, sample_pending, doorbell_due;
	bool closing;              /* a transaction under way closes it; cleared when its stop was counted */
	uint64_t ended_seq;        /* the last transaction that named it and is over */
	uint64_t blocked_since_ns; /* has work behind a closed gate since, + 1; 0: no */
	uint64_t hold_until_ns;    /* tsg: how long an announcement of this queue holds its context */
	uint64_t slice_seq;        /* tsg: the plan of the last order for its slice … */
	uint64_t slice_ns;         /* … what that was … */
	uint64_t slice_set_ns;     /* … and what was last carried out; 0: the device's own */
};

/* One request or iteration. */
struct sim_job {
	uint64_t number, arrival_ns;             /* number: counted per client */
	uint32_t client, next;                   /* next: in its client's list, or in the free list */
	uint32_t step, step_end, repeat, member; /* what is submitted next, and where the job ends */
	uint32_t packet_count;                   /* submitted, not complete */
	uint32_t size[2];
	uint32_t meeting; /* of the collective being submitted */
	bool waited;      /* the barrier before the next packet is submitted */
	bool submitted, granted, live;
	uint32_t *signals; /* one per signalling step and device of the client */
};

struct sim_meeting {     /* of one collective */
	bool used, over; /* over: all have started, or it was given up */
	uint32_t job;    /* whose ranks meet; 0: the devices of one client do */
	uint64_t number; /* the how manieth of this job, from 0 */
	uint32_t member_count;
	uint32_t expected, left; /* packets not written yet; written and not complete */
	uint64_t started;        /* set of members */
	uint32_t clients[GP_WORK_RANK_MAX], devices[GP_WORK_RANK_MAX], signals[GP_WORK_RANK_MAX]; /* by member */
	uint64_t since_ns[GP_WORK_RANK_MAX]; /* since when it runs and waits for the others, + 1; 0: it does not */
};

/* What a client has had of the device, and how long it waited for it, up to a moment. */
struct sim_spent {
	uint64_t now_ns, unit_ns, wait_ns;
};

struct sim_client {
	struct gp_sim_client_info info;
	const struct gp_work_sequence *sequence;
	struct gp_rng rng;
	uint32_t incarnation;
	uint32_t device_count; /* of the client */
	uint32_t devices[GP_WORK_DEVICE_MAX], processes[GP_WORK_DEVICE_MAX];
	uint32_t queues_per_device;
	uint32_t copy_queue[2]; /* place among its queues of one device: to the device, to the host; SIM_NONE */
	uint32_t *signal_place; /* per step: which of a job's signals, or SIM_NONE */
	uint32_t signal_count;
	uint32_t first_job, last_job; /* not wholly submitted, in order */
	uint32_t job_count;           /* not complete */
	uint32_t packet_count;        /* submitted, not complete */
	uint64_t job_number;
	uint32_t request_index;
	/* collectives: how many members they have, the first of them that is its own, the number of the next */
	uint32_t meet_count, meet_first;
	uint64_t meet_number;
	bool meets_nobody;   /* one of its job's ranks died */
	uint64_t job_target; /* jobs that it makes though arrivals have stopped, because its peers have made so many */
	/* baselines */
	int32_t host_level; /* priority under which the host-side scheduler counts its work */
	/* results */
	struct gp_hist latency_ns;
	uint64_t unit_ns; /* of queues that are gone */
	uint64_t wait_ns, deadlines_met, deadlines_missed, deadlines_refused, unfinished;
	uint32_t warm_done;     /* of its warm-up: requests that are complete */
	struct sim_spent begin; /* when they all were: its figures count from there */
};

/* An order of a plan being carried out. */
struct sim_order {
	int result;
	uint32_t answer;      /* those with the same number are answered together: the place of the first of them */
	uint64_t transaction; /* that carries it out */
	uint64_t start_ns;
};

/* A plan being carried out. */
struct sim_apply {
	struct gp_plan plan;
	struct sim_order orders[2 * GP_PLAN_MAX];
	uint32_t device;            /* the simulator's number */
	uint32_t transaction_count; /* under way */
	uint32_t references;        /* answers still to come, and 1 while orders are to be issued; 0: free */
	bool issuing;               /* it has that one */
	bool hurried;               /* its patience is over: nothing waits for anything any more */
};

struct sim_grave { /* a death the core has yet to hear of */
	uint32_t client, first_queue, queue_count;
	struct gp_client_id core_client;
};

struct sim_device {
	struct gp_gpu *gpu;
	uint32_t core_device;
	uint32_t *queue_of; /* model's queue number → ours */
	uint32_t queue_of_count;
	uint64_t close_ns, open_ns; /* learned costs */
	bool stopped;
	bool count_pending;
	/* who has work and who runs, by priority; inversions by the level that waits */
	uint32_t work[SIM_LEVELS], running[SIM_LEVELS];
	uint64_t level_since_ns[SIM_LEVELS];    /* + 1; 0: no inversion */
	uint32_t *client_work, *client_running; /* queues per client */
	uint64_t *pair_since_ns;                /* [waits * SIM_PAIR_MAX + runs], + 1 */
	uint64_t halt_ns;                       /* + 1 while the device stands still */
};

struct sim_pair {
	uint64_t count, total_ns, max_ns;
};

struct sim_record {
	bool enabled, is_full;
	uint64_t start_ns, end_ns;
	uint32_t slice_count, slice_max, mark_count, mark_max;
	struct gp_result_slice *slices;
	struct gp_result_mark *marks;
};

struct gp_sim {
	struct gp_sim_config config;
	uint64_t now_ns, notice_ns, decide_ns, sample_ns;
	struct gp_sim_heap heap;
	bool out_of_memory; /* a push failed: the run stops and says so */
	bool arrivals_stopped;
	uint32_t device_count;
	struct sim_device *devices;
	uint32_t client_count;
	struct sim_client *clients;
	uint32_t queue_count, queue_capacity;
	struct sim_queue *queues;
	uint32_t job_capacity, job_free;
	struct sim_job *jobs;
	uint32_t meeting_capacity;
	struct sim_meeting *meetings;
	uint64_t live_jobs;
	/* core */
	void *core_memory;
	struct gp_sched *core;
	bool core_dirty;
	int64_t clock_offset_ns;
	uint64_t core_retry_ns; /* the core's deadline is not looked at before */
	uint64_t trace_cursor;
	uint32_t *queue_of_core; /* core's queue index → ours */
	uint32_t core_queue_count;
	struct gp_rng host_rng;
	uint32_t apply_count;
	struct sim_apply **applies;
	uint64_t transaction_seq;
	struct gp_plan plan;
	/* sequential */
	uint32_t *turn_jobs; /* ring of waiting jobs */
	uint32_t turn_head, turn_count, turn_capacity;
	bool turn_taken;
	/* reset: the transaction under way, and whether the holds changed meanwhile */
	uint32_t host_work[SIM_LEVELS];
	bool hold_busy[GP_WORK_DEVICE_MAX], hold_again[GP_WORK_DEVICE_MAX];
	uint64_t hold_seq[GP_WORK_DEVICE_MAX], hold_start_ns[GP_WORK_DEVICE_MAX];
	/* faults */
	uint32_t fault_count;
	struct gp_sim_fault *faults;
	uint32_t grave_count;
	struct sim_grave *graves;
	/* totals */
	uint64_t preemptions, transactions, transaction_ns, killed_ns;
	uint64_t inversion_count, inversion_ns, inversion_ns_max;
	struct sim_pair *pairs; /* or NULL: too many clients */
	struct sim_record record;
};

/* engine.c */
void gp_sim_push(struct gp_sim *sim, uint64_t time_ns, enum sim_event type, uint32_t index, uint64_t value);
void gp_sim_drain(struct gp_sim *sim); /* hand every event the models have ready to its handlers */

/* workload.c */

void gp_workload_rng(uint64_t seed, uint32_t client_count, struct gp_rng *ret_rngs);
uint64_t gp_workload_first_gap_ns(const struct gp_work_client *client, struct gp_rng *rng);
uint64_t gp_workload_next_gap_ns(const struct gp_work_client *client, struct gp_rng *rng);

/* process.c */
int gp_sim_process_init(struct gp_sim *sim, uint32_t client);
void gp_sim_process_fini(struct sim_client *client);
int gp_sim_process_start(struct gp_sim *sim, uint32_t client);
/* The next arrival, if any may still come. */
void gp_sim_process_schedule(struct gp_sim *sim, uint32_t client, uint64_t arrival_ns);
void gp_sim_process_arrive(struct gp_sim *sim, uint32_t client);
void gp_sim_process_pump(struct gp_sim *sim, uint32_t client);
void gp_sim_process_die(struct gp_sim *sim, uint32_t client);
void gp_sim_process_finish(struct gp_sim *sim); /* arrivals have stopped: ranks do what their peers wait for */

/* result.c */
struct sim_spent gp_sim_client_spent(const struct gp_sim *sim, uint32_t client); /* so far */

/* job.c */
uint32_t gp_sim_job_create(struct gp_sim *sim, uint32_t client, const struct gp_work_request *request);
int gp_sim_job_submit_next(struct gp_sim *sim,
			   uint32_t job); /* 0, 1: that was the last packet, -ENOSPC: a ring is full */
void gp_sim_job_event(struct gp_sim *sim, uint32_t queue, const struct gp_gpu_event *event);
void gp_sim_job_discard_all(struct gp_sim *sim, uint32_t client);

/* meeting.c */
void gp_sim_meeting_init(struct gp_sim *sim); /* after all clients */
/* The client's next collective, or SIM_NONE: no memory. Each of its members joins when its packet is written, and
 * leaves when that is complete or gone. */
uint32_t gp_sim_meeting_take(struct gp_sim *sim, uint32_t client);
uint32_t gp_sim_meeting_signal(const struct gp_sim *sim, uint32_t meeting, uint32_t client, uint32_t member);
void gp_sim_meeting_join(struct gp_sim *sim, uint32_t meeting);
void gp_sim_meeting_leave(struct gp_sim *sim, uint32_t meeting);
void gp_sim_meeting_start(struct gp_sim *sim, uint32_t meeting, uint32_t client, uint32_t device); /* it runs now */
void gp_sim_meeting_stop(struct gp_sim *sim, uint32_t meeting, uint32_t client, uint32_t device);
void gp_sim_meeting_give_up(struct gp_sim *sim, uint32_t client); /* which dies */

/* agent.c */
int gp_sim_agent_init(struct gp_sim *sim, struct gp_error *error);
void gp_sim_agent_client_add(struct gp_sim *sim, uint32_t client);
void gp_sim_agent_client_remove(struct gp_sim *sim, uint32_t grave);
void gp_sim_agent_set_priority(struct gp_sim *sim, uint32_t client);
void gp_sim_agent_submitted(struct gp_sim *sim, uint32_t queue);
void gp_sim_agent_progressed(struct gp_sim *sim, uint32_t queue);
void gp_sim_agent_hint(struct gp_sim *sim, uint32_t client, uint64_t target_ns);
void gp_sim_agent_report(struct gp_sim *sim, uint32_t queue, bool first);
void gp_sim_agent_decide(struct gp_sim *sim);
uint64_t gp_sim_agent_deadline_ns(const struct gp_sim *sim);

/* apply.c */
void gp_sim_apply_begin(struct gp_sim *sim, const struct gp_plan *plan);
void gp_sim_apply_issue(struct gp_sim *sim, uint32_t apply);
void gp_sim_apply_hurry(struct gp_sim *sim, uint32_t apply, uint64_t seq);
void gp_sim_apply_given_up(struct gp_sim *sim); /* what the core has given up is not begun any more */
void gp_sim_apply_device_reset(struct gp_sim *sim, uint32_t device);
bool gp_sim_apply_transaction_end(struct gp_sim *sim, uint32_t device, const struct gp_gpu_event *event);
void gp_sim_apply_deliver(struct gp_sim *sim, uint32_t apply, uint32_t answer);
void gp_sim_apply_fini(struct gp_sim *sim);

/* slice.c */
bool gp_sim_slice_is_there(const struct gp_sim *sim); /* the devices have contexts with slices */
void gp_sim_slice_begin(struct gp_sim *sim, const struct gp_plan *plan);
void gp_sim_slice_issue(struct gp_sim *sim, uint32_t queue, uint64_t seq);
void gp_sim_slice_deliver(struct gp_sim *sim, uint32_t queue, uint64_t seq);
void gp_sim_slice_watch(struct gp_sim *sim); /* the core may want to know how often devices switch */
void gp_sim_slice_count(struct gp_sim *sim, uint32_t device);
void gp_sim_slice_set_lower(struct gp_sim *sim); /* without a core: who is there has changed */

/* baseline.c */
bool gp_sim_baseline_may_submit(struct gp_sim *sim, uint32_t client, uint32_t job);
void gp_sim_baseline_job_created(struct gp_sim *sim, uint32_t job);
void gp_sim_baseline_job_ended(struct gp_sim *sim, uint32_t job);
void gp_sim_baseline_host(struct gp_sim *sim, uint32_t client, bool busy);
void gp_sim_baseline_grant(struct gp_sim *sim);
bool gp_sim_baseline_transaction_end(struct gp_sim *sim, uint32_t device, const struct gp_gpu_event *event);

/* fault.c */
void gp_sim_fault_act(struct gp_sim *sim, const struct gp_sim_fault *fault);
void gp_sim_fault_device(struct gp_sim *sim, uint32_t device, bool stop);
void gp_sim_fault_gate_lost(struct gp_sim *sim, uint32_t queue, uint64_t seq);

/* account.c */
int gp_sim_account_init(struct gp_sim *sim);
void gp_sim_account_fini(struct gp_sim *sim);
void gp_sim_account_work(struct gp_sim *sim, uint32_t queue, bool has_work);
void gp_sim_account_running(struct gp_sim *sim, uint32_t queue, bool runs);
void gp_sim_account_gate(struct gp_sim *sim, uint32_t queue);
void gp_sim_account_set_priority(struct gp_sim *sim, uint32_t client, int32_t priority);
void gp_sim_account_finish(struct gp_sim *sim);
void gp_sim_account_queue_gone(struct gp_sim *sim, uint32_t queue);

/* record.c */
int gp_sim_record_init(struct gp_sim *sim);
void gp_sim_record_slice(struct gp_sim *sim, uint32_t queue, const struct gp_gpu_event *event, uint64_t start_ns,
			 bool preempted);
void gp_sim_record_mark(struct gp_sim *sim, const struct gp_result_mark *mark);
void gp_sim_record_decisions(struct gp_sim *sim);

#endif
